/* Inference of indirect access: gather, scatter, compress; and what every write needs.
 *
 * Invariant: indices are i64 and broadcast together; the elements that a scatter writes have the
 * sizes of those that a gather with its indices takes. */
#include "ir/infer.h"
#include "ir/layout.h"

/* The sizes that indices along axes of a take out of it; returns how many. */
static int
gathered_sizes(CiGraph *g, const CiNode *node, const CiNode *a, CiNode *const *indices,
               const CiExpr **sizes)
{
    int nindex, rank = 0, next = 0;
    for (int k = 0; k < node->naxes; k++) {
        int axis = node->axes[k];
        if (ci_layout_axis(g, axis, a->rank) != axis || (k && axis <= node->axes[k - 1]))
            ci_fail(g->ctx, CI_ERR_VALUE, "%s needs ascending axes", ci_op_name(node->op));
        if (indices[k]->dtype != CI_DTYPE_i64)
            ci_fail(g->ctx, CI_ERR_DTYPE, "%s needs indices of i64, not %s", ci_op_name(node->op),
                    ci_dtype_name(indices[k]->dtype));
    }
    const CiExpr *const *index = ci_layout_broadcast(g, node->naxes, indices, &nindex, node->loc);
    if (nindex + a->rank - node->naxes > CI_MAX_RANK)
        ci_fail(g->ctx, CI_ERR_VALUE, "maximum supported dimension for an ndarray is %d, found %d",
                CI_MAX_RANK, nindex + a->rank - node->naxes);
    for (int k = 0; k < a->rank; k++) {
        for (int d = 0; d < nindex && k == node->axes[0]; d++)
            sizes[rank++] = index[d];
        if (next < node->naxes && k == node->axes[next])
            next++;
        else
            sizes[rank++] = a->sizes[k];
    }
    return rank;
}

static void
require_indices(CiGraph *g, const CiNode *node, int first)
{
    if (node->naxes < 1 || node->naxes > CI_MAX_INDICES || node->nargs != first + node->naxes)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s needs an index for each of its axes",
                ci_op_name(node->op));
}

static void
infer_gather(CiGraph *g, CiNode *node)
{
    require_indices(g, node, 1);
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, 2 * CI_MAX_RANK);
    node->rank = gathered_sizes(g, node, node->args[0], node->args + 1, sizes);
    node->sizes = sizes;
    node->dtype = node->args[0]->dtype;
    node->kind = node->rank ? CI_KIND_array : CI_KIND_scalar;
    if (!node->order)
        node->order = ci_layout_c_order(g->ctx, node->rank);
}

bool
ci_infer_broadcasts(CiGraph *g, const CiNode *node, const CiNode *value, int rank,
                    const CiExpr *const *sizes)
{
    int missing = rank - value->rank;
    bool fits = missing >= 0;
    for (int k = 0; fits && k < value->rank; k++) {
        const CiExpr *from = value->sizes[k], *to = sizes[missing + k];
        bool is_open = !ci_expr_is_const(from, NULL) || !ci_expr_is_const(to, NULL);
        fits = from == to || ci_expr_equals_const(from, 1) ||
               (is_open && ci_shape_guard(g->ctx, g->env, CI_REL_eq, from, to, node->loc));
    }
    return fits;
}

/* value has to fit where it is stored: equal extents, or 1. */
static void
require_broadcast(CiGraph *g, const CiNode *node, const CiNode *value, int rank,
                  const CiExpr *const *sizes)
{
    if (!ci_infer_broadcasts(g, node, value, rank, sizes))
        ci_fail(g->ctx, CI_ERR_SHAPE, "could not broadcast input array from shape %s into shape %s",
                ci_layout_shape_text(g->ctx, value->rank, value->sizes),
                ci_layout_shape_text(g->ctx, rank, sizes));
}

void
ci_infer_write(CiGraph *g, const CiNode *node, int rank, const CiExpr *const *sizes)
{
    const CiNode *base = node->args[0], *walk = node->args[1], *value = node->args[2];
    while (walk != base && ci_node_is_view(walk))
        walk = walk->args[0];
    if (walk != base)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s needs a view of the version it writes",
                ci_op_name(node->op));
    if (value->dtype != base->dtype)
        ci_fail(g->ctx, CI_ERR_DTYPE, "%s of %s to %s", ci_op_name(node->op),
                ci_dtype_name(value->dtype), ci_dtype_name(base->dtype));
    require_broadcast(g, node, value, rank, sizes);
}

static void
check_combine(CiGraph *g, const CiNode *node)
{
    CiDtype dtype = node->args[0]->dtype;
    if (ci_op_kind(node->combine) != CI_OPKIND_pointwise || ci_op_arity(node->combine) != 2 ||
        ci_op_result(node->combine, dtype) != dtype)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s cannot combine values", ci_op_name(node->combine));
    if (ci_op_why_not(node->combine, dtype))
        ci_fail(g->ctx, CI_ERR_DTYPE, "%s is not defined", ci_op_why_not(node->combine, dtype));
}

static void
infer_scatter(CiGraph *g, CiNode *node)
{
    const CiExpr *sizes[2 * CI_MAX_RANK];
    const CiNode *base = node->args[0];
    require_indices(g, node, 3);
    int rank = gathered_sizes(g, node, node->args[1], node->args + 3, sizes);
    ci_infer_write(g, node, rank, sizes);
    if (node->is_combined)
        check_combine(g, node);
    node->rank = base->rank;
    node->sizes = base->sizes;
    node->order = base->order;
    node->strides = base->strides;
    node->dtype = base->dtype;
    node->kind = CI_KIND_array;
}

static void
infer_compress(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0], *mask = node->args[1];
    if (a->rank != 1 || mask->rank != 1 || node->rank != 1)
        ci_fail(g->ctx, CI_ERR_VALUE, "compress takes one axis");
    if (mask->dtype != CI_DTYPE_bool)
        ci_fail(g->ctx, CI_ERR_DTYPE, "compress needs a mask of bool, not %s",
                ci_dtype_name(mask->dtype));
    require_broadcast(g, node, a, 1, mask->sizes);
    node->dtype = a->dtype;
    node->kind = CI_KIND_array;
    node->order = ci_layout_c_order(g->ctx, 1);
}

void
ci_infer_indirect(CiGraph *g, CiNode *node)
{
    if (node->op == CI_OP_gather)
        infer_gather(g, node);
    else if (node->op == CI_OP_scatter)
        infer_scatter(g, node);
    else
        infer_compress(g, node);
}
