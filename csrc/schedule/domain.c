/* Domains in normal form, and one domain as another.
 *
 * What a nest's accesses divide an axis by, it is made of:
 *
 *   for i0<s0*s1 { load a[i0//s1] + load b[i0 % s1] }
 *   for i0<s0, i1<s1 { load a[i0] + load b[i1] }
 *
 * So no element pays for a division that the sizes decide, and neighbours are found by the ordinary
 * proofs. And where a kernel runs over [n, m], a nest over [n*m] does too, and the other way round
 * where every access allows it. Points are independent, so none of this changes what a nest does. */
#include "schedule/plan.h"

/* The size that e divides var by, or NULL. */
static const CiExpr *
divisor_in(const CiExpr *e, const CiExpr *var)
{
    if (!ci_expr_depends_on(e, var))
        return NULL;
    bool is_division = e->kind == CI_EXPR_floordiv || e->kind == CI_EXPR_mod;
    if (is_division && e->args[0] == var)
        return e->args[1];
    const CiExpr *found = NULL;
    for (int k = 0; k < e->nargs && !found; k++)
        found = divisor_in(e->args[k], var);
    return found;
}

static const CiExpr *
divisor_of(const CiNest *nest, const CiExpr *var)
{
    const CiExpr *found = divisor_in(nest->store, var);
    for (int k = 0; k < nest->body.nops && !found; k++)
        if (nest->body.ops[k].index)
            found = divisor_in(nest->body.ops[k].index, var);
    return found;
}

static bool
is_size(const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k]->symbol_kind != CI_SYMBOL_size &&
            e->symbols[k]->symbol_kind != CI_SYMBOL_argument)
            return false;
    return true;
}

/* The number of rows of that length along the axis, or NULL. Short rows cost more than
 * divisions. */
static const CiExpr *
rows_of(CiScheduler *s, const CiExpr *extent, const CiExpr *length)
{
    if (!length || !is_size(length) || length->high < CI_CHOOSE(s, least_factor) ||
        ci_expr_equals_const(extent, 0))
        return NULL;
    const CiExpr *rows = ci_expr_quotient(s->sym, extent, length);
    return ci_expr_mul(s->sym, rows, length) == extent ? rows : NULL;
}

/* No other axis has its name. */
static const CiExpr *
new_axis(CiScheduler *s, const CiExpr *extent)
{
    return ci_expr_index(s->sym, ci_format(s->ctx, "d%d", s->totals->nfactors++), extent);
}

/* Axis k becomes two, var = length*row + at. */
static void
split_axis(CiScheduler *s, CiNest *nest, int k, const CiExpr *rows, const CiExpr *length)
{
    CiSym *sym = s->sym;
    const CiExpr *var = nest->axes[k].var, *row = new_axis(s, rows), *at = new_axis(s, length);
    const CiExpr *from[3] = {ci_expr_floordiv(sym, var, length), ci_expr_mod(sym, var, length),
                             var};
    const CiExpr *to[3] = {row, at, ci_expr_add(sym, ci_expr_mul(sym, length, row), at)};
    nest->body = ci_body_substitute(s->ctx, sym, &nest->body, 3, from, to);
    nest->store = ci_expr_substitute(sym, nest->store, 3, from, to);
    CiAxis *axes = CI_NEW_ARRAY(s->ctx, CiAxis, nest->naxes + 1);
    for (int a = 0; a < nest->naxes; a++)
        axes[a > k ? a + 1 : a] = nest->axes[a];
    axes[k] = (CiAxis){CI_AXIS_point, row, rows};
    axes[k + 1] = (CiAxis){CI_AXIS_point, at, length};
    nest->axes = axes;
    nest->naxes++;
    nest->npoint++;
}

void
ci_factor_axes(CiScheduler *s, CiNest *nest)
{
    if (ci_nest_is_indirect(nest))
        return;
    for (int k = 0; k < nest->npoint && nest->npoint < CI_MAX_RANK;) {
        const CiExpr *length = divisor_of(nest, nest->axes[k].var),
                     *rows = rows_of(s, nest->axes[k].extent, length);
        if (rows)
            split_axis(s, nest, k, rows, length);
        else
            k++;
    }
}

/* ---- as another domain ---- */

/* Merges axis k and the axes after it into one of that extent, as far as accesses allow. */
static void
merge_up_to(CiScheduler *s, CiNest *nest, int k, const CiExpr *extent)
{
    while (nest->axes[k].extent != extent && k + 1 < nest->npoint) {
        const CiAxis *a = &nest->axes[k], *b = &nest->axes[k + 1];
        if (!ci_can_merge_axes(s, nest, a->var, b->var, b->extent))
            return;
        const CiExpr *product = ci_expr_mul(s->sym, a->extent, b->extent);
        ci_merge_axes(s, nest, k, new_axis(s, product), product);
    }
}

/* Of an axis that is longer, that many rows. */
static void
split_down_to(CiScheduler *s, CiNest *nest, int k, const CiExpr *rows)
{
    const CiExpr *extent = nest->axes[k].extent;
    if (extent == rows || nest->npoint == CI_MAX_RANK || ci_expr_equals_const(rows, 0) ||
        ci_expr_equals_const(extent, 0))
        return;
    const CiExpr *length = ci_expr_quotient(s->sym, extent, rows);
    if (ci_expr_mul(s->sym, rows, length) == extent && !ci_expr_equals_const(length, 1))
        split_axis(s, nest, k, rows, length);
}

const CiNest *
ci_refit_axes(CiScheduler *s, const CiNest *nest, int count, const CiKernelAxis *axes)
{
    CiNest *copy = CI_NEW(s->ctx, CiNest);
    *copy = *nest;
    if (ci_nest_is_indirect(nest))
        return NULL;
    copy->axes = CI_NEW_ARRAY(s->ctx, CiAxis, nest->naxes + 1);
    for (int k = 0; k < nest->naxes; k++)
        copy->axes[k] = nest->axes[k];
    for (int k = 0; k < count; k++) {
        if (k >= copy->npoint)
            return NULL;
        bool is_longer = ci_sym_known_multiple_of(s->sym, copy->axes[k].extent, axes[k].extent);
        if (!is_longer)
            merge_up_to(s, copy, k, axes[k].extent);
        split_down_to(s, copy, k, axes[k].extent);
        if (copy->axes[k].extent != axes[k].extent)
            return NULL;
    }
    return copy;
}
