/* Domains in normal form: an axis that accesses divide becomes the two axes it is made of:
 *
 *   for i0<s0*s1 { load a[i0//s1] + load b[i0 % s1] }
 *   for i0<s0, i1<s1 { load a[i0] + load b[i1] }
 *
 * No element then pays for a division that the sizes decide, and neighbours are found by the
 * ordinary proofs. Points are independent, so none of this changes what a nest does. */
#include "loops/loops.h"

/* The size that e divides var by, or NULL. Long expressions are not searched: their operands are shared. */
static const CiExpr *
divisor_in(const CiExpr *e, const CiExpr *var)
{
    if (!ci_expr_depends_on(e, var) || e->has_long)
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
rows_of(const CiLoopRewriter *r, const CiExpr *extent, const CiExpr *length)
{
    if (!length || !is_size(length) || length->high < CI_CHOOSE(r, least_factor) ||
        ci_expr_equals_const(extent, 0))
        return NULL;
    const CiExpr *rows = ci_expr_quotient(r->sym, extent, length);
    return ci_expr_mul(r->sym, rows, length) == extent ? rows : NULL;
}

const CiExpr *
ci_new_axis(CiLoops *loops, const CiExpr *extent)
{
    for (;;) {
        const char *name = ci_format(loops->ctx, "d%d", loops->nnew_axes++);
        if (!ci_sym_find_symbol(loops->sym, name))
            return ci_expr_index(loops->sym, name, extent);
    }
}

void
ci_split_axis(CiLoops *loops, CiNest *nest, int k, const CiExpr *rows, const CiExpr *length)
{
    CiSym *sym = loops->sym;
    const CiExpr *var = nest->axes[k].var, *row = ci_new_axis(loops, rows), *at = ci_new_axis(loops, length);
    const CiExpr *from[3] = {ci_expr_floordiv(sym, var, length), ci_expr_mod(sym, var, length),
                             var};
    const CiExpr *to[3] = {row, at, ci_expr_add(sym, ci_expr_mul(sym, length, row), at)};
    ci_nest_substitute(loops->ctx, sym, nest, 3, from, to);
    CiAxis *axes = CI_NEW_ARRAY(loops->ctx, CiAxis, nest->naxes + 1);
    for (int a = 0; a < nest->naxes; a++)
        axes[a > k ? a + 1 : a] = nest->axes[a];
    axes[k] = (CiAxis){CI_AXIS_point, row, rows};
    axes[k + 1] = (CiAxis){CI_AXIS_point, at, length};
    nest->axes = axes;
    nest->naxes++;
    nest->npoint++;
}

void
ci_loops_factor_axes(const CiLoopRewriter *r, CiNest *nest)
{
    if (ci_nest_is_indirect(nest))
        return;
    for (int k = 0; k < nest->npoint && nest->npoint < CI_MAX_RANK;) {
        const CiExpr *length = divisor_of(nest, nest->axes[k].var),
                     *rows = rows_of(r, nest->axes[k].extent, length);
        if (rows)
            ci_split_axis(r->loops, nest, k, rows, length);
        else
            k++;
    }
}
