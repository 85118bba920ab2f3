/* The order of a nest's point axes: the axis with the largest stride in the target first, so that
 * the last one is contiguous. Any order is right: points are independent, but for those that data
 * places. */
#include "loops/loops.h"

/* True if stride a is larger than b. If their sizes are symbols, a multiple of b is larger: for sizes
 * of 0 and 1, which would contradict this, the order has no effect. */
static bool
is_farther(const CiLoopRewriter *r, const CiExpr *a, const CiExpr *b)
{
    if (a->high < 0)
        a = ci_expr_neg(r->sym, a);
    if (b->high < 0)
        b = ci_expr_neg(r->sym, b);
    bool is_multiple =
        a != b && !ci_expr_equals_const(a, 0) && ci_sym_known_multiple_of(r->sym, a, b);
    return ci_sym_known_lt(r->sym, b, a) || (is_multiple && !ci_sym_known_lt(r->sym, a, b));
}

void
ci_loops_order_axes(const CiLoopRewriter *r, CiNest *nest)
{
    const CiExpr *coefs[CI_MAX_RANK], *rest;
    if (ci_nest_is_serial(nest)) /* the order of its points is part of what it does */
        return;
    for (int k = 0; k < nest->npoint; k++) {
        if (!ci_expr_split_linear(r->sym, nest->store, nest->axes[k].var, &coefs[k], &rest))
            return;
    }
    for (int k = 1; k < nest->npoint; k++) {
        for (int j = k; j > 0 && is_farther(r, coefs[j], coefs[j - 1]); j--) {
            CiAxis axis = nest->axes[j];
            const CiExpr *coef = coefs[j];
            nest->axes[j] = nest->axes[j - 1];
            coefs[j] = coefs[j - 1];
            nest->axes[j - 1] = axis;
            coefs[j - 1] = coef;
        }
    }
}
