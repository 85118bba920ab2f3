/* Inference: one function per kind of op, and the messages NumPy gives where it refuses.
 *
 * Invariant: a node that left here has dtype, rank, sizes and order, and strides when it is a view;
 * its attributes have been checked against its operands. The verifier runs the same functions
 * again. */
#include "ir/infer.h"

#include "ir/layout.h"

#include <string.h>

static void
like(CiNode *node, const CiNode *a)
{
    node->rank = a->rank;
    node->sizes = a->sizes;
    node->order = a->order;
}

static void
require_defined(CiGraph *g, CiOp op, CiDtype dtype)
{
    const char *reason = ci_op_why_not(op, dtype);
    if (reason)
        ci_fail(g->ctx, CI_ERR_DTYPE, "%s is not defined", reason);
}

/* ---- element-wise ---- */

static void
require_equal_dtypes(CiGraph *g, const CiNode *node, int first)
{
    for (int k = first + 1; k < node->nargs; k++)
        if (node->args[k]->dtype != node->args[first]->dtype)
            ci_fail(g->ctx, CI_ERR_DTYPE, "%s of %s and %s: operands must have one dtype",
                    ci_op_name(node->op), ci_dtype_name(node->args[first]->dtype),
                    ci_dtype_name(node->args[k]->dtype));
}

/* NumPy's ufuncs give scalars for rank 0; Python's operators stay among Python's numbers. */
static CiKind
result_kind(const CiNode *node)
{
    bool is_python = node->nargs > 0;
    for (int k = 0; k < node->nargs; k++)
        is_python = is_python && node->args[k]->kind == CI_KIND_python;
    return node->rank ? CI_KIND_array : is_python ? CI_KIND_python : CI_KIND_scalar;
}

static void
infer_pointwise(CiGraph *g, CiNode *node)
{
    int first = node->op == CI_OP_where;
    if (node->nargs != ci_op_arity(node->op))
        ci_fail(g->ctx, CI_ERR_VALUE, "%s takes %d operands, not %d", ci_op_name(node->op),
                ci_op_arity(node->op), node->nargs);
    if (first && node->args[0]->dtype != CI_DTYPE_bool)
        ci_fail(g->ctx, CI_ERR_DTYPE, "where needs a condition of bool, not %s",
                ci_dtype_name(node->args[0]->dtype));
    if (node->nargs != 2 ||
        !ci_op_compares_signs(node->op, node->args[0]->dtype, node->args[1]->dtype))
        require_equal_dtypes(g, node, first);
    CiDtype operand = node->args[first]->dtype;
    require_defined(g, node->op, operand);
    node->dtype = ci_op_result(node->op, operand);
    node->sizes = ci_layout_broadcast(g, node->nargs, node->args, &node->rank, node->loc);
    node->order = ci_layout_broadcast_order(g->ctx, node->rank, node->nargs, node->args);
    node->kind = result_kind(node);
}

/* A cast of Python's number is NumPy's: strong. The dtype is the attribute. */
static void
infer_cast(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    if (node->dtype >= CI_DTYPE_none)
        ci_fail(g->ctx, CI_ERR_DTYPE, "cast needs a dtype");
    node->rank = a->rank;
    node->sizes = a->sizes;
    node->order = ci_layout_broadcast_order(g->ctx, a->rank, 1, node->args);
    node->kind = a->kind == CI_KIND_python ? CI_KIND_scalar : a->kind;
}

/* ---- folds ---- */

/* The order names each folded axis once. */
static void
check_pairwise(CiGraph *g, const CiNode *node)
{
    const CiPairwise *pairwise = node->pairwise;
    unsigned folded = 0, named = 0;
    for (int k = 0; pairwise && k < node->naxes; k++) {
        folded |= 1u << node->axes[k];
        named |= 1u << (pairwise->axes[k] & 31);
    }
    if (pairwise && (folded != named || pairwise->ninner < 0 || pairwise->ninner > node->naxes))
        ci_fail(g->ctx, CI_ERR_VALUE, "an order of other axes than are folded");
}

static void
check_axes(CiGraph *g, const CiNode *node)
{
    for (int k = 0; k < node->naxes; k++) {
        int axis = node->axes[k];
        if (axis < 0 || axis >= node->args[0]->rank)
            ci_layout_axis(g, axis < 0 ? -CI_MAX_RANK - 1 : axis, node->args[0]->rank);
        if (k && axis <= node->axes[k - 1])
            ci_fail(g->ctx, CI_ERR_VALUE, "duplicate value in 'axis'");
    }
    check_pairwise(g, node);
}

static bool
has_empty_axis(const CiNode *node)
{
    bool has_one = false;
    for (int k = 0; k < node->naxes; k++)
        has_one = has_one || ci_expr_equals_const(node->args[0]->sizes[node->axes[k]], 0);
    return has_one;
}

/* NumPy refuses to fold nothing where a fold has no identity, even for an empty result. */
static void
check_not_empty(CiGraph *g, const CiNode *node)
{
    CiOp combine = ci_op_combine(node->op);
    if (!has_empty_axis(node))
        return;
    if (ci_op_kind(node->op) == CI_OPKIND_argreduce)
        ci_fail(g->ctx, CI_ERR_VALUE, "attempt to get %s of an empty sequence",
                ci_op_name(node->op));
    if (combine == CI_OP_maximum || combine == CI_OP_minimum || combine == CI_OP_fmax ||
        combine == CI_OP_fmin)
        ci_fail(g->ctx, CI_ERR_VALUE,
                "zero-size array to reduction operation %s which has no identity",
                ci_op_name(combine));
}

/* Kept axes stay in the operand's order; argmax and argmin allocate in C order. */
static void
infer_reduce(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    bool is_folded[CI_MAX_RANK] = {false};
    int8_t place[CI_MAX_RANK];
    check_axes(g, node);
    require_defined(g, node->op, a->dtype);
    for (int k = 0; k < node->naxes; k++)
        is_folded[node->axes[k]] = true;
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, a->rank + 1);
    node->rank = 0;
    for (int k = 0; k < a->rank; k++)
        if (!is_folded[k]) {
            place[k] = (int8_t)node->rank;
            sizes[node->rank++] = a->sizes[k];
        }
    node->sizes = sizes;
    node->dtype = ci_op_result(node->op, a->dtype);
    node->kind = node->rank ? CI_KIND_array : CI_KIND_scalar;
    node->order = ci_layout_c_order(g->ctx, node->rank);
    check_not_empty(g, node);
    const int8_t *source = ci_layout_broadcast_order(g->ctx, a->rank, 1, node->args);
    if (ci_op_kind(node->op) == CI_OPKIND_argreduce || ci_layout_is_c_order(a->rank, source))
        return;
    int8_t *order = CI_NEW_ARRAY(g->ctx, int8_t, node->rank + 1);
    for (int k = 0, count = 0; k < a->rank; k++)
        if (!is_folded[source[k]])
            order[count++] = place[source[k]];
    node->order = order;
}

static void
infer_scan(CiGraph *g, CiNode *node)
{
    check_axes(g, node);
    require_defined(g, node->op, node->args[0]->dtype);
    like(node, node->args[0]);
    node->order = ci_layout_broadcast_order(g->ctx, node->rank, 1, node->args);
    node->dtype = ci_op_result(node->op, node->args[0]->dtype);
    node->kind = CI_KIND_array;
}

/* ---- views ---- */

static void
infer_permute(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    uint32_t seen = 0;
    if (node->naxes != a->rank)
        ci_fail(g->ctx, CI_ERR_VALUE, "axes don't match array");
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, a->rank + 1);
    for (int k = 0; k < a->rank; k++) {
        int axis = ci_layout_axis(g, node->axes[k], a->rank);
        if (seen & (uint32_t)1 << axis)
            ci_fail(g->ctx, CI_ERR_VALUE, "repeated axis in transpose");
        seen |= (uint32_t)1 << axis;
        sizes[k] = a->sizes[axis];
    }
    node->rank = a->rank;
    node->sizes = sizes;
}

static void
infer_reshape(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    const CiExpr *before = ci_layout_count(g->sym, a->rank, a->sizes);
    const CiExpr *after = ci_layout_count(g->sym, node->rank, node->sizes);
    bool is_same = before == after || ci_sym_known_eq(g->sym, before, after);
    bool is_open = !ci_expr_is_const(before, NULL) || !ci_expr_is_const(after, NULL);
    if (!is_same &&
        !(is_open && ci_shape_guard(g->ctx, g->env, CI_REL_eq, before, after, node->loc))) {
        CiText size = ci_text_new(g->ctx);
        ci_expr_print(&size, before, CI_STYLE_text);
        ci_fail(g->ctx, CI_ERR_SHAPE, "cannot reshape array of size %s into shape %s", size.data,
                ci_layout_shape_text(g->ctx, node->rank, node->sizes));
    }
}

static void
infer_slice(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    const CiExpr *zero = ci_expr_const(g->sym, 0), *one = ci_expr_const(g->sym, 1);
    node->rank = a->rank;
    for (int k = 0; k < a->rank; k++) {
        const CiExpr *reach =
            ci_expr_mul(g->sym, ci_expr_sub(g->sym, node->sizes[k], one), node->steps[k]);
        const CiExpr *last = ci_expr_add(g->sym, node->starts[k], reach);
        bool is_empty = !ci_sym_known_lt(g->sym, zero, node->sizes[k]);
        bool is_outside = ci_sym_known_lt(g->sym, node->starts[k], zero) ||
                          ci_sym_known_lt(g->sym, last, zero) ||
                          ci_sym_known_le(g->sym, a->sizes[k], node->starts[k]) ||
                          ci_sym_known_le(g->sym, a->sizes[k], last);
        bool is_longer = ci_sym_known_lt(g->sym, a->sizes[k], node->sizes[k]);
        if (is_longer || (!is_empty && is_outside))
            ci_fail(g->ctx, CI_ERR_INDEX, "slice reaches out of bounds of axis %d", k);
    }
}

static void
infer_expand(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    if (!ci_infer_broadcasts(g, node, a, node->rank, node->sizes))
        ci_fail(g->ctx, CI_ERR_SHAPE,
                "operands could not be broadcast together with remapped shapes "
                "[original->remapped]: %s  "
                "and requested shape %s",
                ci_layout_shape_text(g->ctx, a->rank, a->sizes),
                ci_layout_shape_text(g->ctx, node->rank, node->sizes));
}

/* The attribute is the last size: how many elements the diagonal has. */
static void
infer_diagonal(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    if (a->rank < 2)
        ci_fail(g->ctx, CI_ERR_VALUE, "diag requires an array of at least two dimensions");
    int first = ci_layout_axis(g, node->axes[0], a->rank),
        second = ci_layout_axis(g, node->axes[1], a->rank);
    if (first == second)
        ci_fail(g->ctx, CI_ERR_VALUE, "axis1 and axis2 cannot be the same");
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, a->rank);
    int count = 0;
    for (int k = 0; k < a->rank; k++)
        if (k != first && k != second)
            sizes[count++] = a->sizes[k];
    sizes[count++] = node->sizes[node->rank - 1];
    node->rank = count;
    node->sizes = sizes;
}

/* The attribute is the last size: how long the window is. */
static void
infer_window(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    int axis = ci_layout_axis(g, node->axes[0], a->rank);
    const CiExpr *length = node->sizes[node->rank - 1], *one = ci_expr_const(g->sym, 1);
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, a->rank + 1);
    if (ci_sym_known_lt(g->sym, a->sizes[axis], length))
        ci_fail(g->ctx, CI_ERR_VALUE, "window shape cannot be larger than input array shape");
    for (int k = 0; k < a->rank; k++)
        sizes[k] = a->sizes[k];
    sizes[axis] = ci_expr_add(g->sym, ci_expr_sub(g->sym, a->sizes[axis], length), one);
    sizes[a->rank] = length;
    node->rank = a->rank + 1;
    node->sizes = sizes;
}

static void
infer_view(CiGraph *g, CiNode *node)
{
    CiNode *a = node->args[0];
    const CiExpr *offset;
    node->dtype = a->dtype;
    node->kind = CI_KIND_array;
    if (node->op == CI_OP_permute)
        infer_permute(g, node);
    else if (node->op == CI_OP_reshape)
        infer_reshape(g, node);
    else if (node->op == CI_OP_slice)
        infer_slice(g, node);
    else if (node->op == CI_OP_expand)
        infer_expand(g, node);
    else if (node->op == CI_OP_window)
        infer_window(g, node);
    else
        infer_diagonal(g, node);
    const CiExpr **strides = CI_NEW_ARRAY(g->ctx, const CiExpr *, node->rank + 1);
    bool is_affine = ci_layout_view_strides(g, node, a, ci_layout_strides(g, a), &offset, strides);
    node->strides = is_affine ? strides : NULL;
    node->order = is_affine
                      ? ci_layout_order_of_strides(g->ctx, g->sym, node->rank, node->sizes, strides)
                      : ci_layout_c_order(g->ctx, node->rank);
}

/* ---- structure ---- */

static void
infer_assign(CiGraph *g, CiNode *node)
{
    const CiNode *base = node->args[0], *view = node->args[1];
    ci_infer_write(g, node, view->rank, view->sizes);
    like(node, base);
    node->strides = base->strides;
    node->dtype = base->dtype;
    node->kind = CI_KIND_array;
}

static void
check_concat(CiGraph *g, const CiNode *node, int axis)
{
    const CiNode *first = node->args[0];
    for (int k = 1; k < node->nargs; k++) {
        const CiNode *other = node->args[k];
        if (other->rank != first->rank)
            ci_fail(g->ctx, CI_ERR_SHAPE,
                    "all the input arrays must have same number of dimensions, but the array at "
                    "index 0 has %d "
                    "dimension(s) and the array at index %d has %d dimension(s)",
                    first->rank, k, other->rank);
        for (int d = 0; d < first->rank; d++) {
            const CiExpr *a = first->sizes[d], *b = other->sizes[d];
            bool is_open = !ci_expr_is_const(a, NULL) || !ci_expr_is_const(b, NULL);
            if (d == axis || a == b ||
                (is_open && ci_shape_guard(g->ctx, g->env, CI_REL_eq, a, b, node->loc)))
                continue;
            CiText text = ci_text_new(g->ctx);
            ci_text_add(&text, "along dimension %d, the array at index 0 has size ", d);
            ci_expr_print(&text, a, CI_STYLE_text);
            ci_text_add(&text, " and the array at index %d has size ", k);
            ci_expr_print(&text, b, CI_STYLE_text);
            ci_fail(g->ctx, CI_ERR_SHAPE,
                    "all the input array dimensions except for the concatenation axis must match "
                    "exactly, but %s",
                    text.data);
        }
    }
}

static void
infer_concat(CiGraph *g, CiNode *node)
{
    if (!node->nargs)
        ci_fail(g->ctx, CI_ERR_VALUE, "need at least one array to concatenate");
    const CiNode *first = node->args[0];
    if (!first->rank)
        ci_fail(g->ctx, CI_ERR_VALUE, "zero-dimensional arrays cannot be concatenated");
    int axis = ci_layout_axis(g, node->axes[0], first->rank);
    require_equal_dtypes(g, node, 0);
    check_concat(g, node, axis);
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, first->rank);
    memcpy(sizes, first->sizes, sizeof(const CiExpr *) * (size_t)first->rank);
    for (int k = 1; k < node->nargs; k++)
        sizes[axis] = ci_expr_add(g->sym, sizes[axis], node->args[k]->sizes[axis]);
    node->rank = first->rank;
    node->sizes = sizes;
    node->dtype = first->dtype;
    node->kind = CI_KIND_array;
    node->order = ci_layout_concat_order(g->ctx, node->rank, node->nargs, node->args);
}

/* Stacks of as many matrices; who builds one has broadcast them. */
static void
infer_product(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0], *b = node->args[1];
    int last = a->rank - 1;
    require_equal_dtypes(g, node, 0);
    require_defined(g, CI_OP_fma, a->dtype);
    bool fits = a->rank == b->rank && last > 0 && a->sizes[last] == b->sizes[last - 1];
    for (int k = 0; k < last - 1 && fits; k++)
        fits = a->sizes[k] == b->sizes[k];
    if (!fits)
        ci_fail(g->ctx, CI_ERR_SHAPE, "product of shapes %s and %s",
                ci_layout_shape_text(g->ctx, a->rank, a->sizes),
                ci_layout_shape_text(g->ctx, b->rank, b->sizes));
    const CiExpr **sizes = CI_NEW_ARRAY(g->ctx, const CiExpr *, a->rank);
    memcpy(sizes, a->sizes, sizeof(const CiExpr *) * (size_t)a->rank);
    sizes[last] = b->sizes[last];
    node->rank = a->rank;
    node->sizes = sizes;
    node->dtype = a->dtype;
    node->kind = CI_KIND_array;
    node->order = ci_layout_c_order(g->ctx, node->rank);
}

static void
infer_copy(CiGraph *g, CiNode *node)
{
    const CiNode *a = node->args[0];
    node->dtype = a->dtype;
    node->rank = a->rank;
    node->sizes = a->sizes;
    node->kind = CI_KIND_array;
    if (!node->order)
        node->order = ci_layout_c_order(g->ctx, a->rank);
}

/* A define is the value of its symbol. */
static void
infer_define(CiGraph *g, CiNode *node)
{
    const CiNode *value = node->args[0];
    const CiExpr *symbol = node->starts[0];
    if (value->dtype != CI_DTYPE_i64 || value->rank)
        ci_fail(g->ctx, CI_ERR_DTYPE, "define needs an i64 without axes");
    if (symbol->kind != CI_EXPR_symbol || symbol->symbol_kind != CI_SYMBOL_unbacked)
        ci_fail(g->ctx, CI_ERR_VALUE, "define needs an unbacked symbol");
    node->dtype = CI_DTYPE_i64;
    node->kind = CI_KIND_python;
    like(node, value);
}

static void
infer_check(CiGraph *g, CiNode *node)
{
    const CiNode *condition = node->args[0];
    if (condition->dtype != CI_DTYPE_bool || condition->rank)
        ci_fail(g->ctx, CI_ERR_DTYPE, "check needs a bool without axes");
    if (node->nargs > 2 || (node->nargs == 2 && node->args[1]->kind != CI_KIND_python))
        ci_fail(g->ctx, CI_ERR_DTYPE, "check is of a Python int, or of nothing");
    node->dtype = CI_DTYPE_none;
    node->rank = 0;
}

static void
infer_structure(CiGraph *g, CiNode *node)
{
    switch (node->op) {
    case CI_OP_define:
        infer_define(g, node);
        break;
    case CI_OP_check:
        infer_check(g, node);
        break;
    case CI_OP_gather:
    case CI_OP_scatter:
    case CI_OP_compress:
        ci_infer_indirect(g, node);
        break;
    case CI_OP_cast:
        infer_cast(g, node);
        break;
    case CI_OP_where:
        infer_pointwise(g, node);
        break;
    case CI_OP_copy:
        infer_copy(g, node);
        break;
    case CI_OP_assign:
        infer_assign(g, node);
        break;
    case CI_OP_product:
        infer_product(g, node);
        break;
    default:
        infer_concat(g, node);
    }
}

/* ---- the rest ---- */

static void
infer_create(CiGraph *g, CiNode *node)
{
    if (node->op == CI_OP_iota) {
        node->dtype = CI_DTYPE_i64;
        if (node->naxes != 1)
            ci_fail(g->ctx, CI_ERR_VALUE, "iota needs one axis");
        ci_layout_axis(g, node->axes[0], node->rank);
    }
    if (node->op == CI_OP_expr)
        node->dtype = CI_DTYPE_i64;
    if (node->dtype >= CI_DTYPE_none)
        ci_fail(g->ctx, CI_ERR_DTYPE, "%s needs a dtype", ci_op_name(node->op));
    if (node->op == CI_OP_const || node->op == CI_OP_expr)
        node->rank = 0;
    if (!node->order)
        node->order = ci_layout_c_order(g->ctx, node->rank);
}

static void
infer_region(CiGraph *g, CiNode *node)
{
    if (node->op == CI_OP_param)
        return;
    if (node->op != CI_OP_result) {
        node->dtype = CI_DTYPE_none;
        return;
    }
    const CiNode *region = node->args[0];
    CiBlock *last = region->nblocks ? region->blocks[region->nblocks - 1] : NULL;
    if (ci_op_kind(region->op) != CI_OPKIND_region || !last || node->index >= last->nresults)
        ci_fail(g->ctx, CI_ERR_VALUE, "result %d of a region that has no such result", node->index);
    const CiNode *from =
        region->op == CI_OP_if ? last->results[node->index] : region->args[node->index];
    node->dtype = from->dtype;
    node->kind = from->kind;
    like(node, from);
}

void
ci_infer_node(CiGraph *g, CiNode *node)
{
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_pointwise:
    case CI_OPKIND_math:
    case CI_OPKIND_ufunc:
    case CI_OPKIND_composite:
        infer_pointwise(g, node);
        break;
    case CI_OPKIND_reduce:
    case CI_OPKIND_argreduce:
        infer_reduce(g, node);
        break;
    case CI_OPKIND_scan:
        infer_scan(g, node);
        break;
    case CI_OPKIND_view:
        infer_view(g, node);
        break;
    case CI_OPKIND_structure:
        infer_structure(g, node);
        break;
    case CI_OPKIND_create:
    case CI_OPKIND_extern:
        infer_create(g, node);
        break;
    case CI_OPKIND_region:
        infer_region(g, node);
        break;
    default:
        ci_fail(g->ctx, CI_ERR_VALUE, "%s is no operation on arrays", ci_op_name(node->op));
    }
}
