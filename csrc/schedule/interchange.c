/* A loop around rows whose elements lie far apart, while the loop's own trips are neighbours in
 * memory:
 *
 *   for t0<m { y[m*i0 + t0 + 1] = for i0<n { … y[m*i0 + t0] … } }
 *
 * walks memory across. When no element of a row depends on another row position, positions may go
 * their way one after another; taken CI_ROWS at a time they use whole cache lines, and are still
 * independent of each other within a trip:
 *
 *   for t1<ceil(n/8) { for t0<m { y[…] = for i0<min(8, n - 8*t1) { … } } }
 *
 * The blocks are independent too: ci_why_not_parallel finds that. */
#include "schedule/plan.h"

#define CI_ROWS 8

static const CiAxis *
only_axis(const CiNest *nest)
{
    bool is_row = nest->naxes == 1 && nest->npoint == 1 && nest->fold == CI_OP_none &&
                  !ci_nest_is_indirect(nest);
    return is_row ? &nest->axes[0] : NULL;
}

/* Elements that lie apart from one step of the variable to the next. */
static int
count_far(CiScheduler *s, const CiNest *nest, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    int count = 0;
    for (int k = -1; k < nest->body.nops; k++) {
        const CiExpr *index = k < 0 ? nest->store : nest->body.ops[k].index;
        if (k >= 0 && nest->body.ops[k].op != CI_OP_load)
            continue;
        bool is_near = ci_expr_split_linear(s->sym, index, var, &coef, &rest) && coef->low >= -1 &&
                       coef->high <= 1;
        count += !is_near;
    }
    return count;
}

/* Does an element at another position of the row, in any trip, meet this one? */
static bool
are_apart(CiScheduler *s, const CiKernel *positions, const CiItems *items, const CiNest *writer)
{
    for (int k = 0; k < items->count; k++) {
        const CiNest *nest = items->items[k].nest;
        if (nest->target == writer->target &&
            ci_why_not_local(s, positions, writer->store, nest->store))
            return false;
        for (int n = 0; n < nest->body.nops; n++) {
            const CiScalar *op = &nest->body.ops[n];
            if (op->op == CI_OP_load && op->buffer == writer->target &&
                ci_why_not_local(s, positions, writer->store, op->index))
                return false;
        }
    }
    return true;
}

/* The rows' common axis, or NULL when the loop stays as it is. */
static const CiAxis *
find_rows(CiScheduler *s, const CiItem *loop)
{
    const CiRegion *region = loop->region;
    const CiAxis *rows = NULL;
    int far_trips = 0, far_rows = 0;
    if (loop->kind != CI_ITEM_for || region->nswaps || region->body.count == 0)
        return NULL;
    for (int k = 0; k < region->body.count; k++) {
        const CiNest *nest = region->body.items[k].nest;
        const CiAxis *axis = nest ? only_axis(nest) : NULL;
        if (!axis || (rows && axis->var != rows->var))
            return NULL;
        rows = axis;
        far_trips += count_far(s, nest, region->var);
        far_rows += count_far(s, nest, axis->var);
    }
    bool is_fixed = !ci_expr_depends_on(rows->extent, region->var);
    if (!is_fixed || rows->extent->high <= CI_ROWS || far_rows <= far_trips)
        return NULL;
    CiKernelAxis axis = {.var = rows->var, .extent = rows->extent};
    CiKernel positions = {.outer = &axis, .nouter = 1};
    for (int k = 0; k < region->body.count; k++) {
        if (!are_apart(s, &positions, &region->body, region->body.items[k].nest))
            return NULL;
    }
    return rows;
}

static const CiExpr *
new_variable(CiScheduler *s, const CiExpr *extent)
{
    for (int k = 0;; k++) {
        const char *name = ci_format(s->ctx, "t%d", k);
        if (!ci_sym_find_symbol(s->sym, name))
            return ci_expr_index(s->sym, name, extent);
    }
}

static void
narrow_nest(CiScheduler *s, CiNest *nest, const CiExpr *first)
{
    CiAxis *axis = &nest->axes[0];
    const CiExpr *rows = ci_expr_const(s->sym, CI_ROWS);
    const CiExpr *extent = ci_expr_min(s->sym, rows, ci_expr_sub(s->sym, axis->extent, first));
    const CiExpr *from = axis->var, *var = ci_expr_index(s->sym, from->name, extent),
                 *to = ci_expr_add(s->sym, first, var);
    nest->body = ci_body_substitute(s->ctx, s->sym, &nest->body, 1, &from, &to);
    nest->store = ci_expr_substitute(s->sym, nest->store, 1, &from, &to);
    nest->axes = CI_NEW(s->ctx, CiAxis);
    nest->axes[0] = (CiAxis){.kind = CI_AXIS_point, .var = var, .extent = extent};
}

void
ci_interchange(CiScheduler *s, CiItem *loop)
{
    const CiAxis *rows = find_rows(s, loop);
    if (!rows)
        return;
    CiSym *sym = s->sym;
    CiRegion *blocks = CI_NEW(s->ctx, CiRegion);
    const CiExpr *size = ci_expr_const(sym, CI_ROWS);
    blocks->extent = ci_expr_ceildiv(sym, rows->extent, size);
    blocks->var = new_variable(s, blocks->extent);
    const CiExpr *first = ci_expr_mul(sym, blocks->var, size);
    for (int k = 0; k < loop->region->body.count; k++)
        narrow_nest(s, loop->region->body.items[k].nest, first);
    CI_PUSH(s->ctx, blocks->body.items, blocks->body.count, blocks->body.capacity, *loop);
    loop->region = blocks;
}
