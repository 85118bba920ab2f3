/* Builders: each makes a node, lets inference fill in what follows, and appends it.
 *
 * Invariant: a node is in its block only after inference accepted it, so a failed build leaves the
 * graph as it was. Whatever a builder is passed is copied into the graph's arena. */
#include "ir/graph.h"
#include "ir/infer.h"
#include "ir/layout.h"

#include "base/map.h"

#include <string.h>

static const CiExpr *const *
copy_exprs(CiGraph *g, int count, const CiExpr *const *exprs)
{
    const CiExpr **copy = CI_NEW_ARRAY(g->ctx, const CiExpr *, count + 1);
    if (count)
        memcpy(copy, exprs, sizeof(const CiExpr *) * (size_t)count);
    return copy;
}

static const int *
copy_axes(CiGraph *g, int count, const int *axes)
{
    int *copy = CI_NEW_ARRAY(g->ctx, int, count + 1);
    if (count)
        memcpy(copy, axes, sizeof(int) * (size_t)count);
    return copy;
}

static const int8_t *
copy_order(CiGraph *g, int rank, const int8_t *order)
{
    int8_t *copy = CI_NEW_ARRAY(g->ctx, int8_t, rank + 1);
    uint32_t seen = 0;
    for (int k = 0; k < rank; k++) {
        if (order[k] < 0 || order[k] >= rank || seen & (uint32_t)1 << order[k])
            ci_fail(g->ctx, CI_ERR_VALUE, "order is no permutation of the axes");
        seen |= (uint32_t)1 << order[k];
        copy[k] = order[k];
    }
    return copy;
}

static CiNode *
new_node(CiGraph *g, CiOp op, int nargs, CiNode *const *args, CiLoc loc)
{
    CiNode *node = CI_NEW(g->ctx, CiNode);
    node->op = op;
    node->dtype = CI_DTYPE_none;
    node->nargs = nargs;
    node->args = CI_NEW_ARRAY(g->ctx, CiNode *, nargs + 1);
    if (nargs)
        memcpy(node->args, args, sizeof(CiNode *) * (size_t)nargs);
    node->loc = loc;
    if (!node->loc.file)
        node->loc.file = "";
    return node;
}

static void
set_sizes(CiGraph *g, CiNode *node, int rank, const CiExpr *const *sizes)
{
    if (rank < 0 || rank > CI_MAX_RANK)
        ci_fail(g->ctx, CI_ERR_VALUE, "maximum supported dimension for an ndarray is %d, found %d",
                CI_MAX_RANK, rank);
    for (int k = 0; k < rank; k++)
        if (sizes[k]->high < 0)
            ci_fail(g->ctx, CI_ERR_SHAPE, "negative dimensions are not allowed");
    node->rank = rank;
    node->sizes = copy_exprs(g, rank, sizes);
}

static CiNode *
append(CiGraph *g, CiNode *node)
{
    ci_infer_node(g, node);
    node->id = g->next_id++;
    CI_PUSH(g->ctx, g->at->nodes, g->at->nnodes, g->at->capnodes, node);
    return node;
}

const char *
ci_node_why_not(CiContext *ctx, const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    const char *name = ci_op_name(node->op);
    int arity = ci_op_arity(node->op);
    bool is_axis_op = kind == CI_OPKIND_scan || node->op == CI_OP_concat ||
                      node->op == CI_OP_iota || node->op == CI_OP_window;

    if (kind == CI_OPKIND_scalar || kind == CI_OPKIND_region || node->op == CI_OP_input ||
        node->op == CI_OP_check)
        return ci_format(ctx, "%s cannot be called here", name);
    if (arity >= 0 && arity != node->nargs)
        return ci_format(ctx, "%s takes %d operands, not %d", name, arity, node->nargs);
    if ((is_axis_op && node->naxes != 1) ||
        (node->op == CI_OP_diagonal && (node->naxes != 2 || !node->starts)))
        return ci_format(ctx, "%s needs its axes", name);
    if (node->op == CI_OP_slice &&
        (!node->starts || !node->steps || node->args[0]->rank != node->rank))
        return "slice needs starts and steps for each axis";
    if ((node->op == CI_OP_gather && node->nargs < 2) ||
        (node->op == CI_OP_scatter && node->nargs < 4))
        return ci_format(ctx, "%s needs indices", name);
    if ((node->op == CI_OP_diagonal || node->op == CI_OP_window) && !node->rank)
        return ci_format(ctx, "%s has at least one axis", name);
    return NULL;
}

CiNode *
ci_graph_add(CiGraph *g, const CiNode *like)
{
    CiNode *node = new_node(g, like->op, like->nargs, like->args, like->loc);
    CiNode **args = node->args;
    *node = *like;
    node->args = args;
    node->is_live = false;
    node->mark = NULL;
    return append(g, node);
}

/* ---- values from nothing ---- */

static const CiLoc nowhere = {.file = ""};

CiNode *
ci_graph_input(CiGraph *g, CiDtype dtype, CiKind kind, int rank, const CiExpr *const *sizes,
               const CiExpr *const *strides)
{
    CiNode *node = new_node(g, CI_OP_input, 0, NULL, nowhere);
    node->dtype = dtype;
    node->kind = kind;
    if (kind != CI_KIND_array && rank)
        ci_fail(g->ctx, CI_ERR_VALUE, "a scalar has rank 0");
    set_sizes(g, node, rank, sizes);
    node->index = g->ninputs;
    node->name = ci_intern(g->ctx, ci_format(g->ctx, "in%d", g->ninputs));
    node->strides = strides ? copy_exprs(g, rank, strides)
                            : ci_layout_dense_strides(g->ctx, g->sym, rank, node->sizes,
                                                      ci_layout_c_order(g->ctx, rank));
    node->order = ci_layout_order_of_strides(g->ctx, g->sym, rank, node->sizes, node->strides);
    ci_infer_node(g, node);
    node->id = -1;
    int nstrides = g->ninputs;
    CI_PUSH(g->ctx, g->inputs, g->ninputs, g->capinputs, node);
    CI_PUSH(g->ctx, g->strides, nstrides, g->capstrides, node->strides);
    return node;
}

CiNode *
ci_graph_const(CiGraph *g, CiDtype dtype, CiKind kind, CiConst value, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_const, 0, NULL, loc);
    node->dtype = dtype;
    node->kind = kind;
    node->value = value;
    set_sizes(g, node, 0, NULL);
    return append(g, node);
}

CiNode *
ci_graph_iota(CiGraph *g, int rank, const CiExpr *const *sizes, int axis, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_iota, 0, NULL, loc);
    set_sizes(g, node, rank, sizes);
    axis = ci_layout_axis(g, axis, rank);
    node->naxes = 1;
    node->axes = copy_axes(g, 1, &axis);
    return append(g, node);
}

CiNode *
ci_graph_empty(CiGraph *g, CiDtype dtype, int rank, const CiExpr *const *sizes, const int8_t *order,
               CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_empty, 0, NULL, loc);
    node->dtype = dtype;
    set_sizes(g, node, rank, sizes);
    node->order = order ? copy_order(g, rank, order) : NULL;
    return append(g, node);
}

CiNode *
ci_graph_expr(CiGraph *g, const CiExpr *e, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_expr, 0, NULL, loc);
    node->starts = copy_exprs(g, 1, &e);
    node->kind = CI_KIND_python;
    set_sizes(g, node, 0, NULL);
    return append(g, node);
}

CiNode *
ci_graph_define(CiGraph *g, CiNode *value, const CiExpr *symbol, int64_t low, const CiExpr *limit,
                CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_define, 1, &value, loc);
    if (symbol->low != low || symbol->limit != limit)
        ci_fail(g->ctx, CI_ERR_VALUE, "symbol %s has another range", symbol->name);
    const CiExpr *starts[2] = {symbol, limit ? limit : ci_expr_const(g->sym, CI_INFINITY)};
    node->starts = copy_exprs(g, 2, starts);
    return append(g, node);
}

CiNode *
ci_graph_check(CiGraph *g, CiNode *condition, const char *why, CiLoc loc)
{
    return ci_graph_check_of(g, condition, NULL, why, loc);
}

CiNode *
ci_graph_check_of(CiGraph *g, CiNode *condition, CiNode *value, const char *why, CiLoc loc)
{
    CiNode *args[2] = {condition, value};
    CiNode *node = new_node(g, CI_OP_check, value ? 2 : 1, args, loc);
    node->name = ci_intern(g->ctx, why);
    return append(g, node);
}

/* ---- computing ---- */

CiNode *
ci_graph_pointwise(CiGraph *g, CiOp op, int nargs, CiNode *const *args, CiLoc loc)
{
    if (!ci_op_is_elementwise(op))
        ci_fail(g->ctx, CI_ERR_VALUE, "%s is no element-wise operation", ci_op_name(op));
    return append(g, new_node(g, op, nargs, args, loc));
}

CiNode *
ci_graph_cast(CiGraph *g, CiNode *a, CiDtype dtype, CiLoc loc)
{
    if (a->dtype == dtype)
        return a;
    CiNode *node = new_node(g, CI_OP_cast, 1, &a, loc);
    node->dtype = dtype;
    return append(g, node);
}

static int
compare_axes(const int *axes, int count)
{
    for (int k = 1; k < count; k++)
        if (axes[k] < axes[k - 1])
            return k;
    return 0;
}

/* Slow on purpose: there are at most 32 axes. */
static void
sort_axes(int *axes, int count)
{
    for (int k; (k = compare_axes(axes, count)) != 0;) {
        int axis = axes[k];
        axes[k] = axes[k - 1];
        axes[k - 1] = axis;
    }
}

/* any and all fold truth, so they take bool; a cast makes it, as NumPy's truth does. */
CiNode *
ci_graph_reduce(CiGraph *g, CiOp op, CiNode *a, int naxes, const int *axes, CiLoc loc)
{
    CiOpKind kind = ci_op_kind(op);
    if (kind != CI_OPKIND_reduce && kind != CI_OPKIND_argreduce)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s is no reduction", ci_op_name(op));
    int *sorted = CI_NEW_ARRAY(g->ctx, int, naxes + 1);
    for (int k = 0; k < naxes; k++)
        sorted[k] = ci_layout_axis(g, axes[k], a->rank);
    sort_axes(sorted, naxes);
    if (op == CI_OP_any || op == CI_OP_all)
        a = ci_graph_cast(g, a, CI_DTYPE_bool, loc);
    CiNode *node = new_node(g, op, 1, &a, loc);
    node->naxes = naxes;
    node->axes = sorted;
    return append(g, node);
}

CiNode *
ci_graph_scan(CiGraph *g, CiOp op, CiNode *a, int axis, CiLoc loc)
{
    if (ci_op_kind(op) != CI_OPKIND_scan)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s is no scan", ci_op_name(op));
    CiNode *node = new_node(g, op, 1, &a, loc);
    axis = ci_layout_axis(g, axis, a->rank);
    node->naxes = 1;
    node->axes = copy_axes(g, 1, &axis);
    return append(g, node);
}

CiNode *
ci_graph_concat(CiGraph *g, int nargs, CiNode *const *args, int axis, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_concat, nargs, args, loc);
    if (nargs && args[0]->rank)
        axis = ci_layout_axis(g, axis, args[0]->rank);
    node->naxes = 1;
    node->axes = copy_axes(g, 1, &axis);
    return append(g, node);
}

CiNode *
ci_graph_gather(CiGraph *g, CiNode *a, int naxes, const int *axes, CiNode *const *indices,
                const int8_t *order, CiLoc loc)
{
    CiNode *args[CI_MAX_INDICES + 1] = {a};
    if (naxes < 1 || naxes > CI_MAX_INDICES)
        ci_fail(g->ctx, CI_ERR_VALUE, "gather takes 1 to %d indices", CI_MAX_INDICES);
    memcpy(args + 1, indices, sizeof *args * (size_t)naxes);
    CiNode *node = new_node(g, CI_OP_gather, naxes + 1, args, loc);
    node->naxes = naxes;
    node->axes = copy_axes(g, naxes, axes);
    ci_infer_node(g, node);
    if (order)
        node->order = copy_order(g, node->rank, order);
    return append(g, node);
}

CiNode *
ci_graph_scatter(CiGraph *g, CiNode *base, CiNode *view, CiNode *value, int naxes, const int *axes,
                 CiNode *const *indices, CiOp combine, bool is_distinct, CiLoc loc)
{
    CiNode *args[CI_MAX_INDICES + 3] = {base, view, value};
    if (naxes < 1 || naxes > CI_MAX_INDICES)
        ci_fail(g->ctx, CI_ERR_VALUE, "scatter takes 1 to %d indices", CI_MAX_INDICES);
    memcpy(args + 3, indices, sizeof *args * (size_t)naxes);
    CiNode *node = new_node(g, CI_OP_scatter, naxes + 3, args, loc);
    node->naxes = naxes;
    node->axes = copy_axes(g, naxes, axes);
    node->is_combined = combine != CI_OP_none;
    node->combine = combine;
    node->is_distinct = is_distinct;
    return append(g, node);
}

CiNode *
ci_graph_product(CiGraph *g, CiNode *a, CiNode *b, CiLoc loc)
{
    CiNode *args[2] = {a, b};
    return append(g, new_node(g, CI_OP_product, 2, args, loc));
}

CiNode *
ci_graph_compress(CiGraph *g, CiNode *a, CiNode *mask, const CiExpr *size, CiLoc loc)
{
    CiNode *args[2] = {a, mask};
    CiNode *node = new_node(g, CI_OP_compress, 2, args, loc);
    set_sizes(g, node, 1, &size);
    return append(g, node);
}

CiNode *
ci_graph_extern(CiGraph *g, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                CiNode *const *args, int rank, const CiExpr *const *sizes, CiLoc loc)
{
    if (ci_op_kind(op) != CI_OPKIND_extern)
        ci_fail(g->ctx, CI_ERR_VALUE, "%s is no library call", ci_op_name(op));
    CiNode *node = new_node(g, op, nargs, args, loc);
    node->dtype = dtype;
    node->ext = ext;
    set_sizes(g, node, rank, sizes);
    return append(g, node);
}

/* ---- views and memory ---- */

CiNode *
ci_graph_permute(CiGraph *g, CiNode *a, const int *axes, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_permute, 1, &a, loc);
    int *normal = CI_NEW_ARRAY(g->ctx, int, a->rank + 1);
    for (int k = 0; k < a->rank; k++)
        normal[k] = ci_layout_axis(g, axes[k], a->rank);
    node->naxes = a->rank;
    node->axes = normal;
    return append(g, node);
}

CiNode *
ci_graph_reshape(CiGraph *g, CiNode *a, int rank, const CiExpr *const *sizes, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_reshape, 1, &a, loc);
    set_sizes(g, node, rank, sizes);
    return append(g, node);
}

CiNode *
ci_graph_slice(CiGraph *g, CiNode *a, const CiExpr *const *starts, const CiExpr *const *steps,
               const CiExpr *const *sizes, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_slice, 1, &a, loc);
    set_sizes(g, node, a->rank, sizes);
    node->starts = copy_exprs(g, a->rank, starts);
    node->steps = copy_exprs(g, a->rank, steps);
    return append(g, node);
}

CiNode *
ci_graph_expand(CiGraph *g, CiNode *a, int rank, const CiExpr *const *sizes, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_expand, 1, &a, loc);
    set_sizes(g, node, rank, sizes);
    return append(g, node);
}

CiNode *
ci_graph_diagonal(CiGraph *g, CiNode *a, int axis1, int axis2, const CiExpr *offset,
                  const CiExpr *size, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_diagonal, 1, &a, loc);
    int axes[2] = {axis1, axis2};
    if (a->rank >= 2) {
        axes[0] = ci_layout_axis(g, axis1, a->rank);
        axes[1] = ci_layout_axis(g, axis2, a->rank);
    }
    node->naxes = 2;
    node->axes = copy_axes(g, 2, axes);
    node->starts = copy_exprs(g, 1, &offset);
    set_sizes(g, node, 1, &size);
    return append(g, node);
}

CiNode *
ci_graph_window(CiGraph *g, CiNode *a, int axis, const CiExpr *size, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_window, 1, &a, loc);
    node->naxes = 1;
    node->axes = copy_axes(g, 1, &axis);
    set_sizes(g, node, 1, &size);
    return append(g, node);
}

CiNode *
ci_graph_copy(CiGraph *g, CiNode *a, const int8_t *order, CiLoc loc)
{
    CiNode *node = new_node(g, CI_OP_copy, 1, &a, loc);
    node->order = order ? copy_order(g, a->rank, order) : NULL;
    return append(g, node);
}

CiNode *
ci_graph_assign(CiGraph *g, CiNode *base, CiNode *view, CiNode *value, CiLoc loc)
{
    CiNode *args[3] = {base, view, value};
    return append(g, new_node(g, CI_OP_assign, 3, args, loc));
}

/* ---- results ---- */

void
ci_graph_return(CiGraph *g, CiNode *value)
{
    ci_graph_block_result(g, g->body, value);
}

void
ci_graph_write(CiGraph *g, CiNode *input, CiNode *value)
{
    bool fits =
        input->op == CI_OP_input && input->dtype == value->dtype && input->rank == value->rank;
    for (int k = 0; fits && k < input->rank; k++)
        fits = ci_sym_known_eq(g->sym, input->sizes[k], value->sizes[k]);
    if (!fits)
        ci_fail(g->ctx, CI_ERR_VALUE, "write needs an input and a value of its dtype and sizes");
    for (int k = 0; k < g->nwrites; k++)
        if (g->writes[k].input == input) {
            g->writes[k].value = value;
            return;
        }
    CiWrite write = {input, value};
    CI_PUSH(g->ctx, g->writes, g->nwrites, g->capwrites, write);
}

/* ---- regions ---- */

CiBlock *
ci_graph_block(CiGraph *g)
{
    return CI_NEW(g->ctx, CiBlock);
}

CiBlock *
ci_graph_enter(CiGraph *g, CiBlock *block)
{
    CiBlock *before = g->at;
    g->at = block;
    return before;
}

CiNode *
ci_graph_param(CiGraph *g, CiBlock *block, CiDtype dtype, CiKind kind, int rank,
               const CiExpr *const *sizes, const int8_t *order)
{
    CiNode *node = new_node(g, CI_OP_param, 0, NULL, nowhere);
    node->dtype = dtype;
    node->kind = kind;
    set_sizes(g, node, rank, sizes);
    node->order = order ? copy_order(g, rank, order) : ci_layout_c_order(g->ctx, rank);
    node->index = block->nparams;
    node->id = g->next_id++;
    CI_PUSH(g->ctx, block->params, block->nparams, block->capparams, node);
    return node;
}

void
ci_graph_block_result(CiGraph *g, CiBlock *block, CiNode *value)
{
    CI_PUSH(g->ctx, block->results, block->nresults, block->capresults, value);
}

CiNode *
ci_graph_region(CiGraph *g, CiOp op, int nargs, CiNode *const *args, const CiExpr *trip_count,
                const CiExpr *induction, int nblocks, CiBlock *const *blocks, CiLoc loc)
{
    CiNode *node = new_node(g, op, nargs, args, loc);
    const CiExpr *starts[2] = {trip_count, induction};
    node->starts = op == CI_OP_for ? copy_exprs(g, 2, starts) : NULL;
    node->blocks = CI_NEW_ARRAY(g->ctx, CiBlock *, nblocks + 1);
    memcpy(node->blocks, blocks, sizeof(CiBlock *) * (size_t)nblocks);
    node->nblocks = nblocks;
    append(g, node);
    int nresults = nblocks ? blocks[nblocks - 1]->nresults : 0;
    for (int k = 0; k < nresults; k++) {
        CiNode *result = new_node(g, CI_OP_result, 1, &node, loc);
        result->index = k;
        append(g, result);
    }
    return node;
}
