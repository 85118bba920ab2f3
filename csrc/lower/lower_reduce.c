/* Reductions: the nest that folds, and the order in which a float fold is defined.
 *
 * The reduce axes of a nest are listed in the order of the operand's memory (so that a fold reads
 * it forwards), except for argmax and argmin, whose answer counts in C order. */
#include "lower/lowering.h"

static bool
is_folded(const CiNode *node, int axis)
{
    for (int k = 0; k < node->naxes; k++) {
        if (node->axes[k] == axis)
            return true;
    }
    return false;
}

CiFoldKind
ci_lowering_fold_kind(const CiNode *node, const CiNode *operand, const CiExpr *length)
{
    int64_t count;
    if (ci_expr_is_const(length, &count) && count <= CI_SERIAL_LIMIT)
        return CI_FOLD_serial;
    if (ci_dtype_adds_in_order(node->dtype))
        return CI_FOLD_serial;
    for (int k = operand->rank - 1; k >= 0; k--) {
        int axis = operand->order[k];
        if (!ci_expr_equals_const(operand->sizes[axis], 1))
            return is_folded(node, axis) ? CI_FOLD_lanes : CI_FOLD_rows;
    }
    return CI_FOLD_lanes;
}

/* As a fold of one element does, which turns -0.0 into 0.0. */
static int
add_zero(CiRecorder *rec, int value, CiDtype dtype)
{
    int zero = ci_recorder_add(rec, (CiScalar){.op = CI_OP_const, .dtype = dtype});
    return ci_recorder_add(
        rec, (CiScalar){.op = CI_OP_add, .dtype = dtype, .args = {value, zero}, .nargs = 2});
}

/* Of a Welford reduction what elements are beyond their row's first one, so that means are no larger
 * than what they are of, and rounded as little. */
static int
beyond_first(CiRecorder *rec, const CiNode *node, CiNode *elements, const CiExpr *const *index,
             int value)
{
    const CiExpr **first = CI_NEW_ARRAY(rec->low->ctx, const CiExpr *, elements->rank + 1);
    for (int k = 0; k < elements->rank; k++)
        first[k] = is_folded(node, k) ? ci_expr_const(rec->low->sym, 0) : index[k];
    CiScalar op = {.op = CI_OP_subtract, .dtype = node->dtype, .nargs = 2, .args = {value}};
    op.args[1] = ci_recorder_value(rec, elements, first);
    return ci_recorder_add(rec, op);
}

static void
finish_fold(CiLowering *low, CiNode *node, CiNest *nest, const CiExpr *const *index,
            const CiExpr *const *target_index)
{
    CiNodeState *state = ci_lowering_state(low, node);
    CiStorage storage = ci_lowering_make_storage(low, node);
    CiRecorder rec = ci_recorder_new(low);
    nest->target = storage.buffer;
    nest->store = ci_lowering_element(low, storage, node->rank, target_index);
    CiNode *operand = ci_lowering_operand(low, node, 0);
    int result = ci_recorder_value(&rec, operand, index);
    if (nest->fold == CI_OP_welford)
        result = beyond_first(&rec, node, operand, index, result);
    if (nest->order.kind == CI_FOLD_pairwise && nest->fold == CI_OP_none && node->op == CI_OP_sum)
        result = add_zero(&rec, result, node->dtype);
    if (rec.nlocs < 16 && node->loc.line)
        rec.locs[rec.nlocs++] = node->loc;
    ci_lowering_finish_nest(nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = *nest;
    state->storage = storage;
}

static void
store_zero(CiLowering *low, CiNode *node, CiNest *nest, const CiExpr *const *index)
{
    CiRecorder rec = ci_recorder_new(low);
    CiStorage storage = ci_lowering_make_storage(low, node);
    CiScalar zero = {.op = CI_OP_const, .dtype = CI_DTYPE_i64};
    int result = ci_recorder_add(&rec, zero);
    nest->target = storage.buffer;
    nest->store = ci_lowering_element(low, storage, node->rank, index);
    ci_lowering_finish_nest(nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = *nest;
    ci_lowering_state(low, node)->storage = storage;
}

void
ci_lowering_reduce(CiLowering *low, CiNode *node)
{
    CiNode *operand = ci_lowering_operand(low, node, 0);
    const CiPairwise *pairwise = low->own_order ? NULL : node->pairwise;
    CiNest nest = {.fold = operand == node->args[0] ? node->op
                                                    : ci_lowering_state(low, node)->online};
    const CiExpr **index = CI_NEW_ARRAY(low->ctx, const CiExpr *, operand->rank + 1);
    const CiExpr **kept = CI_NEW_ARRAY(low->ctx, const CiExpr *, operand->rank + 1);
    const CiExpr *length = ci_expr_const(low->sym, 1);
    bool in_c_order = ci_op_kind(node->op) == CI_OPKIND_argreduce;
    int nkept = 0;
    for (int k = 0; k < operand->rank; k++) {
        if (is_folded(node, k))
            continue;
        ci_lowering_add_axis(low, &nest, CI_AXIS_point, "i", operand->sizes[k], &index[k]);
        kept[nkept++] = index[k];
    }
    for (int k = 0; k < (pairwise ? node->naxes : operand->rank); k++) {
        int axis = pairwise ? pairwise->axes[k] : in_c_order ? k : operand->order[k];
        if (!is_folded(node, axis))
            continue;
        int before = nest.naxes;
        ci_lowering_add_axis(low, &nest, CI_AXIS_reduce, "r", operand->sizes[axis], &index[axis]);
        length = ci_expr_mul(low->sym, length, operand->sizes[axis]);
        if (pairwise && k >= node->naxes - pairwise->ninner)
            nest.order.ninner += nest.naxes - before;
        if (pairwise && k >= node->naxes - pairwise->nalone)
            nest.order.nalone += nest.naxes - before;
    }
    nest.order.kind = pairwise ? CI_FOLD_pairwise : ci_lowering_fold_kind(node, operand, length);
    nest.order.chunk = pairwise && nest.order.ninner ? pairwise->chunk : NULL;
    nest.order.alone = pairwise && nest.order.nalone ? pairwise->alone : NULL;
    if (nest.naxes == nest.npoint) { /* one element: its own fold, and its own first index */
        nest.fold = CI_OP_none;
        if (in_c_order) {
            store_zero(low, node, &nest, kept);
            return;
        }
    }
    finish_fold(low, node, &nest, index, kept);
}

/* Each element of the result is a sum of products in a fixed order, the same for every backend. */
void
ci_lowering_product(CiLowering *low, CiNode *node)
{
    CiNode *a = node->args[0], *b = node->args[1];
    CiNest nest = {.fold = CI_OP_sum, .order.kind = CI_FOLD_fused};
    int last = node->rank - 1;
    const CiExpr *step, *const *index = ci_lowering_point_axes(low, &nest, node->rank, node->sizes);
    ci_lowering_add_axis(low, &nest, CI_AXIS_reduce, "r", a->sizes[last], &step);
    const CiExpr **left = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank),
                 **right = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank);
    for (int k = 0; k <= last; k++) {
        left[k] = k == last ? step : index[k];
        right[k] = k == last - 1 ? step : index[k];
    }
    CiStorage storage = ci_lowering_make_storage(low, node);
    CiRecorder rec = ci_recorder_new(low);
    nest.target = storage.buffer;
    nest.store = ci_lowering_element(low, storage, node->rank, index);
    CiScalar times = {.op = CI_OP_multiply, .dtype = node->dtype, .nargs = 2};
    times.args[0] = ci_recorder_value(&rec, a, left);
    times.args[1] = ci_recorder_value(&rec, b, right);
    int result = ci_recorder_add(&rec, times);
    if (nest.naxes == nest.npoint) {
        nest.fold = CI_OP_none;
        nest.order.kind = CI_FOLD_serial;
        result = add_zero(&rec, result, node->dtype);
    }
    ci_recorder_note(&rec, node->loc);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->storage = storage;
}
