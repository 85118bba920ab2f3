/* Reshapes the iteration domain of a nest, so that it can join a kernel of another domain: [n*m]
 * becomes [n, m], and [n, m] becomes [n*m] if every access allows it. Points are independent, so the
 * nest computes the same values. */
#include "schedule/plan.h"

/* Merges axis k and the axes after it into one of that extent, as far as accesses allow. */
static void
merge_up_to(CiScheduler *s, CiNest *nest, int k, const CiExpr *extent)
{
    while (nest->axes[k].extent != extent && k + 1 < nest->npoint) {
        const CiAxis *a = &nest->axes[k], *b = &nest->axes[k + 1];
        if (!ci_can_merge_axes(s, nest, a->var, b->var, b->extent))
            return;
        const CiExpr *product = ci_expr_mul(s->sym, a->extent, b->extent);
        ci_merge_axes(s, nest, k, ci_new_axis(s->loops, product), product);
    }
}

/* Splits an axis that is longer than `rows` into two, the outer of which has that many. */
static void
split_down_to(CiScheduler *s, CiNest *nest, int k, const CiExpr *rows)
{
    const CiExpr *extent = nest->axes[k].extent;
    if (extent == rows || nest->npoint == CI_MAX_RANK || ci_expr_equals_const(rows, 0) ||
        ci_expr_equals_const(extent, 0))
        return;
    const CiExpr *length = ci_expr_quotient(s->sym, extent, rows);
    if (ci_expr_mul(s->sym, rows, length) == extent && !ci_expr_equals_const(length, 1))
        ci_split_axis(s->loops, nest, k, rows, length);
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
