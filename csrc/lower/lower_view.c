/* Views as index maps: the position of a view's element in its source. A view emits and copies
 * nothing; loads compose the maps. */
#include "lower/lowering.h"

static void
permute_index(const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    for (int k = 0; k < view->rank; k++)
        source[view->axes[k]] = index[k];
}

static void
slice_index(CiSym *sym, const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    for (int k = 0; k < view->rank; k++)
        source[k] = ci_expr_add(sym, view->starts[k], ci_expr_mul(sym, view->steps[k], index[k]));
}

static void
expand_index(CiSym *sym, const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    const CiNode *from = view->args[0];
    int shift = view->rank - from->rank;
    for (int k = 0; k < from->rank; k++)
        source[k] =
            ci_expr_equals_const(from->sizes[k], 1) ? ci_expr_const(sym, 0) : index[k + shift];
}

static void
diagonal_index(CiSym *sym, const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    const CiExpr *zero = ci_expr_const(sym, 0), *offset = view->starts[0];
    const CiExpr *along = index[view->rank - 1];
    int axis1 = view->axes[0], axis2 = view->axes[1], next = 0;
    for (int k = 0; k < view->args[0]->rank; k++) {
        if (k != axis1 && k != axis2)
            source[k] = index[next++];
    }
    source[axis1] = ci_expr_add(sym, along, ci_expr_max(sym, ci_expr_neg(sym, offset), zero));
    source[axis2] = ci_expr_add(sym, along, ci_expr_max(sym, offset, zero));
}

static void
window_index(CiSym *sym, const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    int rank = view->args[0]->rank, axis = view->axes[0];
    for (int k = 0; k < rank; k++)
        source[k] = index[k];
    source[axis] = ci_expr_add(sym, index[axis], index[rank]);
}

/* Sizes [from, to) as one number. */
static const CiExpr *
linear_index(CiSym *sym, const CiExpr *const *sizes, const CiExpr *const *index, int from, int to)
{
    const CiExpr *linear = ci_expr_const(sym, 0);
    for (int k = from; k < to; k++)
        linear = ci_expr_add(sym, ci_expr_mul(sym, linear, sizes[k]), index[k]);
    return linear;
}

/* An axis without elements has no positions; its index is never used. */
static void
split_index(CiSym *sym, const CiExpr *linear, const CiExpr *const *sizes, int from, int to,
            const CiExpr **source)
{
    for (int k = to - 1; k > from; k--) {
        if (ci_expr_equals_const(sizes[k], 0)) {
            source[k] = sizes[k];
            continue;
        }
        source[k] = ci_expr_mod(sym, linear, sizes[k]);
        linear = ci_expr_floordiv(sym, linear, sizes[k]);
    }
    source[from] = linear;
}

/* Axes are paired in groups of equal size from the left, so that only what really is folded or
 * split pays for a division. */
static void
reshape_index(CiSym *sym, const CiNode *view, const CiExpr *const *index, const CiExpr **source)
{
    const CiNode *from = view->args[0];
    int a = 0, b = 0; /* next axis of the source, of the view */
    while (a < from->rank) {
        int a0 = a, b0 = b;
        const CiExpr *source_size = from->sizes[a++];
        if (ci_expr_equals_const(source_size, 1)) {
            source[a0] = ci_expr_const(sym, 0);
            continue;
        }
        while (b < view->rank && ci_expr_equals_const(view->sizes[b], 1))
            b0 = ++b;
        const CiExpr *view_size = b < view->rank ? view->sizes[b++] : ci_expr_const(sym, 1);
        while (source_size != view_size && (a < from->rank || b < view->rank)) {
            bool grow_view = b < view->rank &&
                             (a == from->rank || ci_sym_known_lt(sym, view_size, source_size) ||
                              (!ci_sym_known_lt(sym, source_size, view_size) && b - b0 <= a - a0));
            if (grow_view)
                view_size = ci_expr_mul(sym, view_size, view->sizes[b++]);
            else
                source_size = ci_expr_mul(sym, source_size, from->sizes[a++]);
        }
        if (a - a0 == 1 && b - b0 == 1)
            source[a0] = index[b0];
        else
            split_index(sym, linear_index(sym, view->sizes, index, b0, b), from->sizes, a0, a,
                        source);
    }
}

const CiExpr *const *
ci_view_source_index(CiLowering *low, const CiNode *view, const CiExpr *const *index)
{
    const CiExpr **source = CI_NEW_ARRAY(low->ctx, const CiExpr *, view->args[0]->rank + 1);
    switch (view->op) {
    case CI_OP_permute:
        permute_index(view, index, source);
        break;
    case CI_OP_slice:
        slice_index(low->sym, view, index, source);
        break;
    case CI_OP_expand:
        expand_index(low->sym, view, index, source);
        break;
    case CI_OP_diagonal:
        diagonal_index(low->sym, view, index, source);
        break;
    case CI_OP_window:
        window_index(low->sym, view, index, source);
        break;
    case CI_OP_reshape:
        reshape_index(low->sym, view, index, source);
        break;
    default:
        ci_fail(low->ctx, CI_ERR_INTERNAL, "%s is not a view", ci_op_name(view->op));
    }
    return source;
}

const CiExpr *const *
ci_view_base_index(CiLowering *low, CiNode *view, const CiNode *base, const CiExpr *const *index)
{
    while (view != base) {
        if (!ci_node_is_view(view))
            ci_fail(low->ctx, CI_ERR_INTERNAL, "an assign's view does not start from its base");
        index = ci_view_source_index(low, view, index);
        view = view->args[0];
    }
    return index;
}
