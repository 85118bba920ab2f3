/* Scatters: nests that store at data-dependent positions. If the points must run in order and the
 * device has a library call for scatters, a scatter is that call.
 *
 * Invariant: a scatter's operands that are in the memory it writes have been copied first, because
 * NumPy evaluates the whole right-hand side before it stores. */
#include "lower/lowering.h"

#include "analysis/choices.h"
#include "analysis/cost.h"

typedef struct Operand {
    CiNode *node;
    CiStorage copy; /* buffer NULL: read where it is */
} Operand;

static Operand
take_operand(CiLowering *low, CiNode *node, const CiBuffer *target)
{
    Operand operand = {.node = node};
    low->visit++;
    if (!ci_lowering_reads(low, node, target))
        return operand;
    operand.copy = ci_lowering_new_storage(low, node);
    ci_lowering_store(low, node, node, node, operand.copy);
    return operand;
}

static int
operand_value(CiRecorder *rec, const Operand *operand, const CiExpr *const *index)
{
    CiStorage copy = operand->copy;
    if (!copy.buffer)
        return ci_recorder_value(rec, operand->node, index);
    CiScalar load = {.op = CI_OP_load, .dtype = operand->node->dtype, .buffer = copy.buffer};
    load.index = ci_lowering_element(rec->low, copy, operand->node->rank, index);
    return ci_recorder_add(rec, load);
}

/* The extents of what is stored, of equal or broadcast indices. */
static int
stored_sizes(const CiNode *node, int nindex, const CiExpr **sizes)
{
    const CiNode *view = node->args[1];
    int rank = 0;
    for (int k = 0, next = 0; k < view->rank; k++) {
        for (int d = 0; d < nindex && k == node->axes[0]; d++, rank++) {
            sizes[rank] = NULL;
            for (int i = 3; i < node->nargs; i++) {
                int axis = d - nindex + node->args[i]->rank;
                if (axis < 0 || (sizes[rank] && !ci_expr_equals_const(sizes[rank], 1)))
                    continue;
                sizes[rank] = node->args[i]->sizes[axis];
            }
        }
        if (next < node->naxes && k == node->axes[next])
            next++;
        else
            sizes[rank++] = view->sizes[k];
    }
    return rank;
}

/* Binds the indices; the element that they say. */
static const CiExpr *
record_place(CiRecorder *rec, CiNode *node, CiStorage storage, const Operand *operands,
             const CiExpr *const *index)
{
    CiLowering *low = rec->low;
    CiNode *base = node->args[0], *view = node->args[1];
    const CiExpr *found[CI_MAX_INDICES];
    int nindex = ci_lowering_index_rank(node, 3);
    for (int k = 0; k < node->naxes; k++) {
        const Operand *operand = &operands[k + 1];
        int position = operand_value(
            rec, operand,
            ci_lowering_aligned_index(low, operand->node, nindex, index + node->axes[0]));
        position = ci_recorder_bind(rec, position, view->sizes[node->axes[k]]);
        found[k] = rec->body.ops[position].index;
    }
    const CiExpr *const *source =
        ci_lowering_source_index(low, node, view->rank, nindex, found, index);
    return ci_lowering_element(low, storage, base->rank, ci_view_base_index(low, view, base, source));
}

/* Stores the value where the indices say. */
static void
record_scatter(CiRecorder *rec, CiNest *nest, CiNode *node, CiStorage storage, const Operand *operands,
               const CiExpr *const *index, int rank)
{
    CiLowering *low = rec->low;
    CiScalar place = {.op = CI_OP_place, .dtype = node->dtype, .nargs = 1};
    nest->store = record_place(rec, node, storage, operands, index);
    place.args[0] = operand_value(rec, &operands[0],
                                  ci_lowering_aligned_index(low, operands[0].node, rank, index));
    ci_body_link(low->ctx, &rec->body, &place, nest->store);
    int result = ci_recorder_add(rec, place);
    ci_recorder_note(rec, node->loc);
    ci_lowering_finish_nest(nest, rec, result, low->ctx);
}

/* ---- as one call ---- */

static int32_t
refuse_call(void *data, const CiExternCall *call)
{
    (void)data, (void)call;
    return CI_ERR_UNSUPPORTED; /* a device does it, or there is no such call */
}

/* Devices know which operations they do. */
static const CiExtern *
make_call(const CiLowering *low, const CiNode *node)
{
    CiExtern *call = CI_NEW(low->ctx, CiExtern);
    *call = (CiExtern){.name = ci_op_name(CI_OP_scatter_points),
                       .key = node->is_combined ? ci_op_name(node->combine) : "place",
                       .call = refuse_call};
    return call;
}

/* Points need an order, and are not few. */
static bool
wants_call(const CiLowering *low, const CiNode *node, int rank, const CiExpr *const *sizes)
{
    CiAmount points = ci_amount(1);
    for (int k = 0; k < rank; k++)
        points = ci_amount_of(points, sizes[k]);
    const CiMachine *machine = low->machine;
    bool needs_order =
        node->is_combined ? !machine->has_atomic || !machine->has_atomic(node->combine, node->dtype)
                          : !node->is_distinct && node->args[2]->rank > 0;
    return ci_lowering_has_device_arrays(low) && machine->takes_extern && needs_order &&
           ci_amount_likely(points) >= CI_CHOOSE(low, scattered_points);
}

static void
add_whole(CiLowering *low, CiExternItem *item, CiStorage storage)
{
    const CiBuffer *buffer = storage.buffer;
    ci_extern_add_operand(item, storage.buffer, ci_expr_const(low->sym, 0), buffer->rank,
                          buffer->sizes, storage.strides);
}

/* The operand of a copy that is not in memory. It still has the same elements, because a write to it would have stored the
 * copy. */
static CiNode *
copied_node(CiLowering *low, CiNode *node)
{
    CiNode *from = node;
    while (from->op == CI_OP_copy && !ci_lowering_state(low, from)->storage.buffer)
        from = from->args[0];
    return ci_node_is_view(from) ? node : from;
}

/* The old version in memory as the new one's. */
static CiStorage
take_base(CiLowering *low, CiNode *base, CiStorage as)
{
    base = copied_node(low, base);
    ci_lowering_realize(low, base);
    CiStorage storage = ci_lowering_state(low, base)->storage;
    for (int k = 0; k < base->rank; k++)
        if (storage.strides[k] != as.strides[k]) {
            CiStorage copy = ci_lowering_new_storage(low, base);
            ci_lowering_store(low, base, base, base, copy);
            return copy;
        }
    return storage;
}

/* A nest that stores at its points in order; `record` emits the value of each point. */
typedef int Record(CiRecorder *rec, CiNode *node, CiStorage storage, const CiExpr *const *index, int rank);

static int
record_value(CiRecorder *rec, CiNode *node, CiStorage storage, const CiExpr *const *index, int rank)
{
    (void)storage;
    CiNode *value = node->args[2];
    return ci_recorder_value(rec, value, ci_lowering_aligned_index(rec->low, value, rank, index));
}

/* The number of the element that a point goes to. */
static int
record_number(CiRecorder *rec, CiNode *node, CiStorage storage, const CiExpr *const *index, int rank)
{
    (void)rank;
    Operand operands[CI_MAX_INDICES + 1];
    for (int k = 2; k < node->nargs; k++)
        operands[k - 2] = (Operand){.node = node->args[k]};
    CiScalar number = {.op = CI_OP_index, .dtype = CI_DTYPE_i64};
    number.index = record_place(rec, node, storage, operands, index);
    ci_body_link(rec->low->ctx, &rec->body, &number, number.index);
    return ci_recorder_add(rec, number);
}

static CiStorage
store_points(CiLowering *low, CiNode *node, CiDtype dtype, CiStorage storage, int rank,
             const CiExpr *const *sizes, Record *record)
{
    CiStorage into = {.strides = ci_layout_dense_strides(low->ctx, low->sym, rank, sizes,
                                                      ci_layout_c_order(low->ctx, rank))};
    into.buffer =
        ci_loops_add_buffer(low->loops, CI_BUFFER_temp, dtype, rank, sizes, into.strides);
    CiNest nest = {.fold = CI_OP_none, .target = into.buffer};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, rank, sizes);
    CiRecorder rec = ci_recorder_new(low);
    int result = record(&rec, node, storage, index, rank);
    nest.store = ci_lowering_element(low, into, rank, index);
    ci_recorder_note(&rec, node->loc);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
    return into;
}

/* True if the value is an array of the points in C order, which is in memory. */
static bool
is_stored(CiLowering *low, const CiNode *value, int rank, const CiExpr *const *sizes)
{
    CiStorage storage = ci_lowering_state(low, value)->storage;
    const CiExpr *const *strides = ci_layout_dense_strides(low->ctx, low->sym, rank, sizes, ci_layout_c_order(low->ctx, rank));
    bool is_same = storage.buffer && value->rank == rank && !ci_node_is_view(value);
    for (int k = 0; is_same && k < rank; k++)
        is_same = value->sizes[k] == sizes[k] && storage.strides[k] == strides[k];
    return is_same;
}

static CiStorage
store_values(CiLowering *low, CiNode *node, CiStorage storage, int rank, const CiExpr *const *sizes)
{
    const CiNode *value = copied_node(low, node->args[2]);
    return is_stored(low, value, rank, sizes) ? ci_lowering_state(low, value)->storage
                                              : store_points(low, node, node->dtype, storage, rank, sizes, record_value);
}

static void
lower_as_call(CiLowering *low, CiNode *node, int rank, const CiExpr *const *sizes)
{
    CiExternItem *item = ci_extern_new(low->ctx, make_call(low, node), CI_OP_scatter_points, 3);
    CiStorage storage = ci_lowering_make_storage(low, node);
    item->loc = node->loc;
    add_whole(low, item, take_base(low, node->args[0], storage));
    add_whole(low, item,
              store_points(low, node, CI_DTYPE_i64, storage, rank, sizes, record_number));
    add_whole(low, item, store_values(low, node, storage, rank, sizes));
    ci_extern_set_result(low->sym, item, storage.buffer);
    CiItem entry = {.kind = CI_ITEM_extern, .ext = item};
    CI_PUSH(low->ctx, low->items->items, low->items->count, low->items->capacity, entry);
    ci_lowering_state(low, node)->storage = storage;
}

static bool
is_taken(CiLowering *low, const CiNode *node)
{
    CiBuffer result = {.dtype = node->dtype, .kind = CI_BUFFER_temp};
    CiExternItem item = {
        .ext = make_call(low, node), .op = CI_OP_scatter_points, .noperands = 3, .result = &result};
    return low->machine->takes_extern(&item);
}

void
ci_lowering_scatter(CiLowering *low, CiNode *node)
{
    const CiExpr **sizes = CI_NEW_ARRAY(low->ctx, const CiExpr *, 2 * CI_MAX_RANK);
    Operand operands[CI_MAX_INDICES + 1];
    int rank = stored_sizes(node, ci_lowering_index_rank(node, 3), sizes);
    if (wants_call(low, node, rank, sizes) && is_taken(low, node)) {
        lower_as_call(low, node, rank, sizes);
        return;
    }
    CiStorage storage = ci_lowering_take_over(low, node, NULL);
    for (int k = 2; k < node->nargs; k++)
        operands[k - 2] = take_operand(low, node->args[k], storage.buffer);
    CiNest nest = {.fold = CI_OP_none,
                   .target = storage.buffer,
                   .is_combined = node->is_combined,
                   .combine = node->combine,
                   .is_distinct = node->is_distinct};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, rank, sizes);
    CiRecorder rec = ci_recorder_new(low);
    record_scatter(&rec, &nest, node, storage, operands, index, rank);
    if (storage.buffer->kind == CI_BUFFER_input)
        storage.buffer->is_written = true;
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->storage = storage;
}
