/* Writes, library calls and results of the graph.
 *
 * All versions of an array are stored in one buffer. This is correct for two reasons: before a
 * write, every lazy value that still reads the old version is realized, and a write whose value
 * reads other elements of the buffer uses a temporary. If the old version is needed as memory
 * afterwards, the new one gets a copy. */
#include "lower/lowering.h"

static bool
is_written_input(const CiLowering *low, const CiNode *node)
{
    for (int k = 0; k < low->graph->nwrites; k++) {
        if (low->graph->writes[k].input == node)
            return true;
    }
    return false;
}

bool
ci_lowering_may_overwrite(const CiLowering *low, CiStorage storage)
{
    if (storage.buffer->kind == CI_BUFFER_temp)
        return true;
    return storage.buffer->kind == CI_BUFFER_input && low->position > low->fail_end &&
           is_written_input(low, low->graph->inputs[storage.buffer->input]);
}

static bool
survives(CiLowering *low, CiNode *base)
{
    low->visit++;
    return ci_lowering_is_outside_loop(low, base) || ci_lowering_realize_readers(low, base) ||
           ci_lowering_is_used_after(low, base);
}

CiStorage
ci_lowering_take_over(CiLowering *low, CiNode *node, CiNode *written)
{
    CiNode *base = node->args[0];
    CiBorder border;
    bool is_framed = written && written != base &&
                     ci_lowering_find_border(low, base, written, &border);
    CiNodeState *state = ci_lowering_state(low, base);
    bool is_gone = is_framed && !state->storage.buffer && !survives(low, base);
    if (!is_gone)
        ci_lowering_realize(low, base);
    if (!is_gone && !survives(low, base) && ci_lowering_may_overwrite(low, state->storage))
        return state->storage;
    CiStorage storage = ci_lowering_make_storage(low, node);
    if (is_framed)
        ci_lowering_store_border(low, base, &border, storage);
    else if (written != base)
        ci_lowering_store(low, base, base, base, storage);
    return storage;
}

/* True if the value was computed where it is to be stored. */
static bool
is_there(const CiLowering *low, const CiNode *base, const CiNode *value)
{
    const CiNodeState *state = ci_lowering_state(low, value);
    return state->container == base && state->storage.buffer &&
           state->storage.buffer == ci_lowering_state(low, base)->storage.buffer;
}

void
ci_lowering_assign(CiLowering *low, CiNode *node)
{
    CiNode *base = node->args[0], *view = node->args[1], *value = node->args[2];
    CiNodeState *state = ci_lowering_state(low, base);
    if (state->waits && !state->storage.buffer)
        state->storage = ci_lowering_preallocate(low, node);
    if (is_there(low, base, value)) {
        ci_lowering_state(low, node)->storage = state->storage;
        return;
    }
    CiStorage storage = ci_lowering_take_over(low, node, view);
    ci_lowering_store(low, value, view, base, storage);
    ci_lowering_state(low, node)->storage = storage;
}

void
ci_lowering_concat(CiLowering *low, CiNode *node)
{
    CiStorage storage = ci_lowering_make_storage(low, node);
    int axis = node->axes[0];
    const CiExpr *start = ci_expr_const(low->sym, 0), *one = ci_expr_const(low->sym, 1);
    for (int k = 0; k < node->nargs; k++) {
        CiNode *part = node->args[k];
        CiNode *window =
            CI_NEW(low->ctx, CiNode); /* where the part goes, as a slice of the result */
        const CiExpr **starts = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
        const CiExpr **steps = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
        for (int d = 0; d < node->rank; d++) {
            starts[d] = d == axis ? start : ci_expr_const(low->sym, 0);
            steps[d] = one;
        }
        *window = (CiNode){.op = CI_OP_slice,
                           .dtype = node->dtype,
                           .rank = node->rank,
                           .sizes = part->sizes,
                           .order = node->order,
                           .nargs = 1,
                           .args = CI_NEW_ARRAY(low->ctx, CiNode *, 1),
                           .starts = starts,
                           .steps = steps,
                           .loc = node->loc};
        window->args[0] = node;
        ci_lowering_store(low, part, window, node, storage);
        start = ci_expr_add(low->sym, start, part->sizes[axis]);
    }
    ci_lowering_state(low, node)->storage = storage;
}

/* An operand as memory: a strided view of a buffer, or a copy where memory order forbids that. */
static void
add_operand(CiLowering *low, CiExternItem *item, CiNode *node)
{
    CiNode *base = ci_node_base(node);
    const CiExpr *offset = ci_expr_const(low->sym, 0);
    const CiExpr **strides = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    ci_lowering_realize(low, base);
    CiStorage storage = ci_lowering_state(low, base)->storage;
    if (!ci_layout_view_strides(low->graph, node, base, storage.strides, &offset, strides)) {
        ci_lowering_realize(low, node);
        storage = ci_lowering_state(low, node)->storage;
        offset = ci_expr_const(low->sym, 0);
        for (int k = 0; k < node->rank; k++)
            strides[k] = storage.strides[k];
    }
    ci_extern_add_operand(item, storage.buffer, offset, node->rank, node->sizes, strides);
}

static bool
is_in_order(CiLowering *low, const CiExternItem *item, int k)
{
    const CiExpr *step = ci_expr_const(low->sym, 1);
    for (int d = item->ranks[k] - 1; d >= 0; d--) {
        if (item->strides[k][d] != step && !ci_expr_equals_const(item->sizes[k][d], 1))
            return false;
        step = ci_expr_mul(low->sym, step, item->sizes[k][d]);
    }
    return true;
}

static bool
has_reversed_axis(CiLowering *low, const CiExternItem *item, int k)
{
    for (int d = 0; d < item->ranks[k]; d++)
        if (!ci_sym_known_le(low->sym, ci_expr_const(low->sym, 0), item->strides[k][d]))
            return true;
    return false;
}

/* True if the operand must be packed. A library call on the host gets no non-contiguous argument: a
 * packed copy is made on the argument's device and copied to the host. A device call gets operands
 * in C order, unless it takes strides; these are not negative. A collective gets them in C order. */
static bool
needs_packing(CiLowering *low, const CiExternItem *item, int k)
{
    const CiBuffer *buffer = item->operands[k];
    if (ci_op_has(item->op, CI_FACT_collective))
        return !is_in_order(low, item, k);
    if (item->ext->call_on)
        return item->ext->takes_strides ? low->machine->has_memory && has_reversed_axis(low, item, k)
                                        : !is_in_order(low, item, k);
    if (low->machine->takes_extern && low->machine->takes_extern(item))
        return false;
    return ci_lowering_has_device_arrays(low) && buffer->kind == CI_BUFFER_input &&
           !ci_buffer_is_dense(low->loops, buffer);
}

static void
pack_operands(CiLowering *low, CiExternItem *item, const CiNode *node)
{
    for (int k = 0; k < item->noperands; k++) {
        CiNode *value = node->args[k];
        if (!needs_packing(low, item, k))
            continue;
        CiStorage storage = ci_lowering_new_storage(low, value);
        ci_lowering_store(low, value, value, value, storage);
        item->operands[k] = storage.buffer;
        item->offsets[k] = ci_expr_const(low->sym, 0);
        item->strides[k] = storage.strides;
    }
}

void
ci_lowering_extern(CiLowering *low, CiNode *node)
{
    CiContext *ctx = low->ctx;
    CiExternItem *item = ci_extern_new(ctx, node->ext, node->op, node->nargs);
    item->loc = node->loc;
    for (int k = 0; k < node->nargs; k++)
        add_operand(low, item, node->args[k]);
    CiStorage storage = ci_lowering_make_storage(low, node);
    ci_extern_set_result(low->sym, item, storage.buffer);
    pack_operands(low, item, node);
    CiItem entry = {.kind = CI_ITEM_extern, .ext = item};
    CI_PUSH(ctx, low->items->items, low->items->count, low->items->capacity, entry);
    ci_lowering_state(low, node)->storage = storage;
}

/* ---- several values at once ---- */

bool
ci_storage_is_same(const CiNode *node, CiStorage a, CiStorage b)
{
    bool is_same = a.buffer == b.buffer;
    for (int k = 0; k < node->rank && is_same; k++)
        is_same = a.strides[k] == b.strides[k];
    return is_same;
}

void
ci_lowering_save(CiLowering *low, CiNode *node)
{
    CiStorage storage = ci_lowering_new_storage(low, node);
    ci_lowering_store(low, node, node, node, storage);
    ci_lowering_state(low, node)->storage = storage;
}

int
ci_lowering_find_conflict(CiLowering *low, int count, CiNode *const *values, const CiStorage *storages,
                          const bool *is_done, int k)
{
    for (int j = 0; j < count; j++) {
        low->visit++;
        if (j != k && !is_done[j] && ci_lowering_reads(low, values[j], storages[k].buffer))
            return j;
    }
    return -1;
}

/* All at once, as the assignment of a tuple: a storage is overwritten when no value still to be stored
 * reads it; where each waits for another, values are saved first. */
void
ci_lowering_store_all(CiLowering *low, int n, CiNode *const *values, const CiStorage *storages,
                      bool *is_stored)
{
    int left = 0;
    for (int k = 0; k < n; k++) {
        CiStorage storage = ci_lowering_state(low, values[k])->storage;
        is_stored[k] |= storage.buffer && ci_storage_is_same(values[k], storage, storages[k]);
        left += !is_stored[k];
    }
    while (left) {
        int least = -1, first = -1;
        for (int k = 0; k < n && least < 0; k++) {
            if (is_stored[k])
                continue;
            first = first < 0 ? k : first;
            if (ci_lowering_find_conflict(low, n, values, storages, is_stored, k) < 0)
                least = k;
        }
        for (int j; least < 0 &&
                    (j = ci_lowering_find_conflict(low, n, values, storages, is_stored, first)) >= 0;)
            ci_lowering_save(low, values[j]);
        least = least < 0 ? first : least;
        ci_lowering_store(low, values[least], values[least], values[least], storages[least]);
        is_stored[least] = true;
        left--;
    }
}

/* Copies a returned version out of the buffer before another version is written there. */
static void
save_results_in(CiLowering *low, const CiBuffer *buffer)
{
    const CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nresults; k++) {
        CiNode *base = ci_node_base(body->results[k]);
        if (base->op != CI_OP_input && ci_lowering_state(low, base)->storage.buffer == buffer)
            ci_lowering_save(low, base);
    }
}

/* Inputs whose last version is not in their own memory are copied back, and nothing fails from here
 * on. */
void
ci_lowering_final_writes(CiLowering *low)
{
    int n = 0, nwrites = low->graph->nwrites;
    CiNode **values = CI_NEW_ARRAY(low->ctx, CiNode *, nwrites + 1);
    CiStorage *storages = CI_NEW_ARRAY(low->ctx, CiStorage, nwrites + 1);
    for (int k = 0; k < nwrites; k++) {
        CiNode *input = low->graph->writes[k].input, *value = low->graph->writes[k].value;
        CiStorage storage = ci_lowering_state(low, input)->storage,
               last = ci_lowering_state(low, value)->storage;
        if (value == input || (last.buffer && ci_storage_is_same(value, last, storage)))
            continue;
        save_results_in(low, storage.buffer);
        values[n] = value;
        storages[n++] = storage;
    }
    /* A saved input is still returned as the argument that it is. */
    CiStorage *own = CI_NEW_ARRAY(low->ctx, CiStorage, low->graph->ninputs + 1);
    for (int k = 0; k < low->graph->ninputs; k++)
        own[k] = ci_lowering_state(low, low->graph->inputs[k])->storage;
    ci_lowering_store_all(low, n, values, storages, CI_NEW_ARRAY(low->ctx, bool, n + 1));
    for (int k = 0; k < low->graph->ninputs; k++)
        ci_lowering_state(low, low->graph->inputs[k])->storage = own[k];
}

static bool
is_all_of(const CiNode *node, CiStorage storage)
{
    bool is_all = node->rank == storage.buffer->rank;
    for (int k = 0; is_all && k < node->rank; k++)
        is_all = node->sizes[k] == storage.buffer->sizes[k];
    return is_all;
}

static void
add_result(CiLowering *low, CiNode *node)
{
    CiNode *base = ci_node_base(node);
    CiResult result = {
        .dtype = node->dtype, .kind = node->kind, .rank = node->rank, .sizes = node->sizes};
    const CiExpr **strides = CI_NEW_ARRAY(low->ctx, const CiExpr *, node->rank + 1);
    ci_lowering_realize(low, base);
    CiStorage storage = ci_lowering_state(low, base)->storage;
    result.offset = ci_expr_const(low->sym, 0);
    result.is_whole = node == base && is_all_of(base, storage);
    if (storage.buffer->is_swapped) {
        ci_lowering_save(low, base);
        storage = ci_lowering_state(low, base)->storage;
    }
    if (!ci_layout_view_strides(low->graph, node, base, storage.strides, &result.offset, strides)) {
        ci_lowering_realize(low, node);
        storage = ci_lowering_state(low, node)->storage;
        result.is_whole = true;
        for (int k = 0; k < node->rank; k++)
            strides[k] = storage.strides[k];
    }
    result.buffer = storage.buffer;
    result.strides = strides;
    if (storage.buffer->kind == CI_BUFFER_temp)
        storage.buffer->is_result = true;
    CI_PUSH(low->ctx, low->loops->results, low->loops->nresults, low->loops->capresults, result);
}

void
ci_lowering_results(CiLowering *low)
{
    CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nresults; k++)
        add_result(low, body->results[k]);
}
