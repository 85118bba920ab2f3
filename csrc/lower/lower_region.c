/* Regions: for, while and if as items around items.
 *
 * Each carried value has one storage. The entry value is there before the loop (in its own memory
 * if that is not needed otherwise), and the parameter reads and writes it there. After each
 * iteration the next value is stored there, or it is computed in a second buffer and the two
 * exchange their memory. A result is the storage itself, so a loop without iterations gives the
 * entry value.
 *
 * Invariants: a value that a region reads from outside has memory before the region, or is cheap
 * enough to be recomputed wherever it is read. Lazy readers of memory that a branch writes are
 * realized before the `if`. A node that is defined outside a region but realized inside is
 * forgotten at the region's end, because the region may not have run. */
#include "lower/lowering.h"

#include "analysis/choices.h"

/* ---- scopes ---- */

typedef struct CiRegionState {
    CiScope scope;
    CiItems *items;
    int nrealized;
} CiRegionState;

static void
enter(CiLowering *low, CiRegionState *state, CiScope scope, CiItems *items)
{
    *state = (CiRegionState){scope, low->items, low->nrealized};
    state->scope.outer = low->scope;
    low->scope = &state->scope;
    low->items = items;
}

static void
leave(CiLowering *low, const CiRegionState *state, const CiNode *region)
{
    low->scope = state->scope.outer;
    low->items = state->items;
    for (int k = state->nrealized; k < low->nrealized; k++) {
        CiNode *node = low->realized[k];
        if (node->id < region->id)
            ci_lowering_state(low, node)->storage.buffer = NULL;
    }
    low->nrealized = state->nrealized;
}

static void
add_item(CiLowering *low, CiItemKind kind, CiRegion *region)
{
    CiItem item = {.kind = kind, .region = region};
    region->kind = kind;
    CI_PUSH(low->ctx, low->items->items, low->items->count, low->items->capacity, item);
}

/* ---- what is read from outside ---- */

/* True if the node depends only on constants, run-time scalars and loop variables, which no write
 * changes, and costs no more than a load. C compilers do not hoist a division out of a loop that
 * may have no iterations, so divisions are excluded. */
static bool
is_cheap(CiLowering *low, const CiNode *node, int *budget)
{
    const CiNodeState *state = ci_lowering_state(low, node);
    if (state->induction || ci_op_kind(node->op) == CI_OPKIND_create)
        return state->induction || !state->storage.buffer ||
               state->storage.buffer->kind == CI_BUFFER_scalar;
    if (node->rank || state->storage.buffer || ci_op_is_expensive(node->op) || --*budget < 0)
        return false;
    for (int k = 0; k < node->nargs; k++) {
        if (!is_cheap(low, node->args[k], budget))
            return false;
    }
    return ci_lowering_is_lazy(node);
}

static void
realize_outside(CiLowering *low, const CiNode *region, CiNode *node)
{
    int budget = (int)CI_CHOOSE(low, repeated_scalars);
    while (ci_node_is_view(node) && !ci_lowering_state(low, node)->storage.buffer)
        node = node->args[0];
    if (node->id < region->id && !ci_lowering_state(low, node)->storage.buffer &&
        !is_cheap(low, node, &budget))
        ci_lowering_realize(low, node);
}

static void
realize_read(CiLowering *low, const CiNode *region, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        for (int a = 0; a < node->nargs; a++) {
            if (node->args[a]->id < region->id)
                realize_outside(low, region, node->args[a]);
        }
        for (int b = 0; b < node->nblocks; b++)
            realize_read(low, region, node->blocks[b]);
    }
    for (int k = 0; k < block->nresults; k++) {
        if (block->results[k]->id < region->id)
            realize_outside(low, region, block->results[k]);
    }
}

typedef struct Reading {
    CiLowering *low;
    const CiNode *region;
} Reading;

/* Before an `if`: readers of what a branch may write in place. */
static void
realize_readers_of_written(void *arg, CiNode *node)
{
    const Reading *reading = arg;
    int nwritten = node->op == CI_OP_assign || node->op == CI_OP_scatter ? 1
                   : node->op == CI_OP_for || node->op == CI_OP_while    ? node->nargs
                                                                         : 0;
    for (int a = 0; a < nwritten; a++) {
        reading->low->visit++;
        if (node->args[a]->id < reading->region->id)
            (void)ci_lowering_realize_readers(reading->low, node->args[a]);
    }
}

/* ---- carried values ---- */

static bool
is_taken(const CiStorage *storages, int count, const CiBuffer *buffer)
{
    for (int k = 0; k < count; k++) {
        if (storages[k].buffer == buffer)
            return true;
    }
    return false;
}

/* The entry's own memory if its contents are not needed elsewhere, or a copy. */
static CiStorage
enter_carried(CiLowering *low, CiNode *entry, const CiNode *param, const CiStorage *storages, int count)
{
    CiStorage storage = ci_lowering_state(low, entry)->storage;
    if (storage.buffer && !ci_node_is_view(entry) && !ci_lowering_is_outside_loop(low, entry)) {
        low->visit++;
        bool survives = ci_lowering_realize_readers(low, entry) || ci_lowering_is_used_after(low, entry);
        if (!survives && !is_taken(storages, count, storage.buffer) &&
            ci_lowering_may_overwrite(low, storage))
            return storage;
    }
    storage = ci_lowering_new_storage(low, param);
    if (entry->op != CI_OP_empty)
        ci_lowering_store(low, entry, entry, entry, storage);
    return storage;
}

static bool
has_users(const CiLowering *low, const CiNode *node, const CiNode *one, const CiNode *other)
{
    const CiNodeState *state = ci_lowering_state(low, node);
    bool result = state->nends == 0;
    for (int k = 0; k < state->nusers; k++)
        result &= state->users[k] == one || state->users[k] == other;
    return result;
}

/* True if the view is a contiguous first part of the memory and has no user except the writer: some
 * of its rows, or a part of one in another shape. */
static bool
is_first_part(const CiLowering *low, const CiNode *view, const CiNode *base, const CiNode *writer)
{
    bool result = true;
    if (view->op == CI_OP_reshape && has_users(low, view, writer, writer)) {
        result = base->rank == 1 && ci_layout_is_c_order(view->rank, view->order);
        writer = view;
        view = view->args[0];
    }
    if (view == base)
        return result;
    result &=
        view->op == CI_OP_slice && view->args[0] == base && has_users(low, view, writer, writer);
    for (int k = 0; result && k < view->rank; k++) {
        int axis = view->order[k];
        result = base->order[k] == axis && ci_expr_equals_const(view->starts[axis], 0) &&
                 ci_expr_equals_const(view->steps[axis], 1) &&
                 (k == 0 || view->sizes[axis] == base->sizes[axis]);
    }
    return result;
}

/* A carried value in a preallocated array: the next value is put into an empty array of larger
 * capacity. It is computed there directly if it is stored part by part; other values are copied
 * there. */
static void
hint_preallocated(CiLowering *low, CiNode *next, int first)
{
    CiNode *container = next->args[0], *view = next->args[1], *value = next->args[2];
    const CiNode *inner = view->op == CI_OP_reshape ? view->args[0] : view;
    if (container->op != CI_OP_empty || container->id < first || !is_first_part(low, view, container, next) ||
        !has_users(low, container, inner == container ? view : inner, next))
        return;
    ci_lowering_state(low, container)->waits = true;
    bool is_whole = value->rank == view->rank && value->dtype == container->dtype;
    for (int k = 0; is_whole && k < value->rank; k++)
        is_whole = value->sizes[k] == view->sizes[k] && value->order[k] == view->order[k];
    if (is_whole && value->op == CI_OP_concat && value->id > first &&
        has_users(low, value, next, next))
        ci_lowering_state(low, value)->container = container;
}

/* A node of the body that is the next value of an array may be made where it has to be. */
static void
hint_destinations(CiLowering *low, const CiNode *region, const CiBlock *body, const CiStorage *storages)
{
    const CiNodeState *state = ci_lowering_state(low, region);
    int first = region->nblocks > 1 ? state->end[0] : region->id,
        last = state->end[region->nblocks - 1];
    for (int k = 0; k < body->nresults; k++) {
        CiNode *next = body->results[k];
        CiStorage dense = {storages[k].buffer, ci_layout_dense_strides(low->ctx, low->sym, next->rank,
                                                                 next->sizes, next->order)};
        bool is_made_here = next->id > first && next->id < last && next->op != CI_OP_result;
        if (is_made_here && storages[k].buffer->kind == CI_BUFFER_temp &&
            ci_storage_is_same(next, dense, storages[k]))
            ci_lowering_state(low, next)->hint = storages[k];
        if (is_made_here && next->op == CI_OP_assign)
            hint_preallocated(low, next, first);
    }
}

/* How the next values of an iteration reach their storage. */
typedef struct CiNext {
    CiNode *const *values;
    const CiStorage *storages;
    int count;
    bool *is_done;      /* in place already */
    bool *is_exchanged; /* its memory becomes the storage's */
} CiNext;

/* True if the value is an array in the program's own memory, computed in this iteration, and the
 * memory contains nothing else that is needed. */
static bool
can_exchange(CiLowering *low, const CiNode *region, const CiNext *next, int k)
{
    const CiNode *value = next->values[k];
    CiStorage storage = ci_lowering_state(low, value)->storage,
           moved = {next->storages[k].buffer, storage.strides};
    if (next->is_done[k] || !value->rank || !storage.buffer || value->id < region->id)
        return false;
    for (int j = 0; j < next->count; j++) {
        if (j != k && (j < k || next->is_done[j]) &&
            ci_lowering_state(low, next->values[j])->storage.buffer == storage.buffer)
            return false;
    }
    return storage.buffer->kind == CI_BUFFER_temp && moved.buffer->kind == CI_BUFFER_temp &&
           ci_storage_is_same(value, moved, next->storages[k]);
}

/* Chooses the values that exchange their memory. A value that is stored where another value must go
 * cannot wait for an exchange. */
static void
choose_exchanged(CiLowering *low, const CiNode *region, const CiNext *next)
{
    bool has_changed = true;
    for (int k = 0; k < next->count; k++)
        next->is_exchanged[k] = can_exchange(low, region, next, k);
    while (has_changed) {
        has_changed = false;
        for (int k = 0; k < next->count; k++) {
            const CiBuffer *place = ci_lowering_state(low, next->values[k])->storage.buffer;
            for (int j = 0; j < next->count && next->is_exchanged[k]; j++) {
                if (next->storages[j].buffer == place && !next->is_exchanged[j]) {
                    next->is_exchanged[k] = false;
                    has_changed = true;
                }
            }
        }
    }
}

static void
exchange(CiLowering *low, CiRegion *region, const CiNext *next)
{
    int n = next->count;
    CiBuffer **places = CI_NEW_ARRAY(low->ctx, CiBuffer *, n + 1); /* where the values are by now */
    for (int k = 0; k < n; k++)
        places[k] =
            next->is_exchanged[k] ? ci_lowering_state(low, next->values[k])->storage.buffer : NULL;
    for (int k = 0; k < n; k++) {
        CiBuffer *pair[2] = {next->storages[k].buffer, places[k]};
        if (!pair[1] || pair[0] == pair[1])
            continue;
        for (int j = 0; j < n; j++) {
            if (places[j] == pair[0])
                places[j] = pair[1];
        }
        places[k] = pair[0];
        for (int i = 0; i < 2; i++) {
            pair[i]->is_swapped = true;
            CI_PUSH(low->ctx, region->swaps, region->nswaps, region->capswaps, pair[i]);
        }
    }
}

/* A value that reads other elements of what it replaces, or replaces what others read, is made
 * beside it. */
static void
save_waiting(CiLowering *low, const CiNode *region, const CiNext *next)
{
    for (int k = 0; k < next->count; k++) {
        CiNode *value = next->values[k];
        bool is_here =
            value->id > region->id && value->rank && !ci_lowering_state(low, value)->storage.buffer;
        if (!is_here || next->storages[k].buffer->kind != CI_BUFFER_temp)
            continue;
        if (ci_lowering_find_conflict(low, next->count, next->values, next->storages, next->is_done,
                                      k) >= 0 ||
            !ci_lowering_can_store(low, value, value, value, next->storages[k]))
            ci_lowering_save(low, value);
    }
}

static void
store_next(CiLowering *low, const CiNode *node, CiRegion *region, const CiStorage *storages)
{
    const CiBlock *body = node->blocks[node->nblocks - 1];
    CiNext next = {.values = body->results, .storages = storages, .count = body->nresults};
    next.is_done = CI_NEW_ARRAY(low->ctx, bool, next.count + 1);
    next.is_exchanged = CI_NEW_ARRAY(low->ctx, bool, next.count + 1);
    for (int k = 0; k < next.count; k++) {
        CiStorage storage = ci_lowering_state(low, next.values[k])->storage;
        next.is_done[k] = storage.buffer && ci_storage_is_same(next.values[k], storage, storages[k]);
    }
    save_waiting(low, node, &next);
    choose_exchanged(low, node, &next);
    for (int k = 0; k < next.count; k++)
        next.is_done[k] |= next.is_exchanged[k];
    ci_lowering_store_all(low, next.count, next.values, storages, next.is_done);
    exchange(low, region, &next);
}

static void
lower_loop(CiLowering *low, CiNode *node)
{
    CiRegionState around;
    CiNodeState *state = ci_lowering_state(low, node);
    CiRegion *region = CI_NEW(low->ctx, CiRegion);
    CiBlock *head = node->blocks[0], *body = node->blocks[node->nblocks - 1];
    bool is_for = node->op == CI_OP_for;
    CiStorage *storages = CI_NEW_ARRAY(low->ctx, CiStorage, node->nargs + 1);
    for (int b = 0; b < node->nblocks; b++)
        realize_read(low, node, node->blocks[b]);
    for (int k = 0; k < node->nargs; k++)
        storages[k] = enter_carried(low, node->args[k], head->params[k + is_for], storages, k);
    for (int k = 0; k < node->nargs; k++)
        ci_lowering_state(low, head->params[k + is_for])->storage = storages[k];
    CiScope scope = {.region = node->id, .is_loop = true, .skip_first = -1, .skip_last = -1};
    if (is_for) {
        region->extent = node->starts[0];
        region->var = ci_lowering_state(low, head->params[0])->induction = node->starts[1];
    } else {
        /* The condition runs once more than the body: there the parameters are not its to
         * overwrite. */
        scope.region = node->id + head->nparams;
        enter(low, &around, scope, &region->condition_items);
        ci_lowering_block(low, head);
        low->position = state->end[0];
        region->condition = ci_lowering_host_value(low, head->results[0], scope.region);
        low->items = &region->body;
        around.scope.region = node->id;
    }
    if (is_for)
        enter(low, &around, scope, &region->body);
    hint_destinations(low, node, body, storages);
    ci_lowering_block(low, body);
    low->position = state->end[node->nblocks - 1];
    store_next(low, node, region, storages);
    leave(low, &around, node);
    add_item(low, is_for ? CI_ITEM_for : CI_ITEM_while, region);
    low->position = node->id;
    state->storages = storages;
}

/* ---- branches ---- */

/* Where both branches left a result in the same memory, that is its storage. */
static CiStorage
join_storages(CiLowering *low, const CiNode *node, int k, const CiStorage *storages)
{
    CiNode *a = node->blocks[0]->results[k], *b = node->blocks[1]->results[k];
    CiStorage first = ci_lowering_state(low, a)->storage, second = ci_lowering_state(low, b)->storage;
    bool is_shared = a != b && first.buffer && second.buffer && !ci_node_is_view(a) &&
                     !ci_node_is_view(b) && ci_storage_is_same(a, first, second);
    if (is_shared && !is_taken(storages, k, first.buffer) && ci_lowering_may_overwrite(low, first))
        return first;
    return ci_lowering_new_storage(low, b);
}

static void
lower_if(CiLowering *low, CiNode *node)
{
    CiRegionState around;
    CiNodeState *state = ci_lowering_state(low, node);
    CiRegion *region = CI_NEW(low->ctx, CiRegion);
    CiItems *items[2] = {&region->body, &region->other};
    int nresults = node->blocks[0]->nresults;
    CiStorage *storages = CI_NEW_ARRAY(low->ctx, CiStorage, nresults + 1);
    region->condition = ci_lowering_host_value(low, node->args[0], -1);
    for (int b = 0; b < 2; b++)
        realize_read(low, node, node->blocks[b]);
    for (int b = 0; b < 2; b++)
        ci_block_visit(node->blocks[b], realize_readers_of_written, &(Reading){low, node});
    CiScope scopes[2] = {
        {.region = node->id, .skip_first = state->end[0] + 1, .skip_last = state->end[1]},
        {.region = node->id, .skip_first = -1, .skip_last = -1}};
    for (int b = 0; b < 2; b++) {
        enter(low, &around, scopes[b], items[b]);
        ci_lowering_block(low, node->blocks[b]);
        leave(low, &around, node);
    }
    for (int k = 0; k < nresults; k++)
        storages[k] = join_storages(low, node, k, storages);
    for (int b = 0; b < 2; b++) {
        enter(low, &around, scopes[b], items[b]);
        low->position = state->end[b];
        for (int k = 0; k < nresults; k++) {
            CiNode *value = node->blocks[b]->results[k];
            CiStorage storage = ci_lowering_state(low, value)->storage;
            if (value->op != CI_OP_empty &&
                (!storage.buffer || !ci_storage_is_same(value, storage, storages[k])))
                ci_lowering_store(low, value, value, value, storages[k]);
        }
        leave(low, &around, node);
    }
    add_item(low, CI_ITEM_if, region);
    low->position = node->id;
    state->storages = storages;
}

void
ci_lowering_region(CiLowering *low, CiNode *node)
{
    if (node->op == CI_OP_if)
        lower_if(low, node);
    else
        lower_loop(low, node);
}
