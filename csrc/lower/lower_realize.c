/* Giving values memory: buffers, point axes, and the nest that fills a buffer from an inner
 * function. */
#include "lower/lowering.h"

CiStorage
ci_lowering_new_storage(CiLowering *low, const CiNode *node)
{
    CiStorage storage;
    storage.strides =
        ci_layout_dense_strides(low->ctx, low->sym, node->rank, node->sizes, node->order);
    storage.buffer = ci_loops_add_buffer(low->loops, CI_BUFFER_temp, node->dtype, node->rank,
                                      node->sizes, storage.strides);
    return storage;
}

bool
ci_lowering_realize_readers(CiLowering *low, CiNode *node)
{
    CiNodeState *state = ci_lowering_state(low, node);
    bool survives = false;
    for (int k = 0; k < state->nusers; k++) {
        CiNode *user = state->users[k];
        CiNodeState *reader = ci_lowering_state(low, user);
        if (user->id == low->position)
            continue;
        if (ci_lowering_is_after(low, node, user->id))
            survives = true;
        else if (reader->storage.buffer || reader->visit == low->visit || !ci_lowering_is_lazy(user))
            continue;
        else if (ci_node_is_view(user)) {
            reader->visit = low->visit;
            survives |= ci_lowering_realize_readers(low, user);
        } else if (ci_lowering_is_used_after(low, user))
            ci_lowering_realize(low, user);
        else {
            reader->visit = low->visit;
            (void)ci_lowering_realize_readers(low, user);
        }
    }
    return survives;
}

/* True if the buffer is not read after low->position, neither by the nodes stored in it nor by
 * nodes that are still to be inlined. Searches all nodes, because few of them have a hint. */
static bool
is_left(CiLowering *low, const CiNode *node, const CiBuffer *buffer)
{
    for (int k = 0; k < low->nstates; k++) {
        CiNodeState *state = &low->states[k];
        if (!state->node || state->node == node || state->storage.buffer != buffer)
            continue;
        low->visit++;
        if (ci_lowering_realize_readers(low, state->node) || ci_lowering_is_used_after(low, state->node))
            return false;
    }
    return true;
}

static bool
is_free(CiLowering *low, const CiNode *node, const CiBuffer *buffer)
{
    if (!is_left(low, node, buffer))
        return false;
    low->visit++;
    for (int k = 0; k < node->nargs; k++) {
        if (ci_lowering_reads(low, node->args[k], buffer))
            return false;
    }
    return true;
}

CiStorage
ci_lowering_make_storage(CiLowering *low, CiNode *node)
{
    CiNodeState *state = ci_lowering_state(low, node);
    CiStorage hint = state->hint;
    state->hint.buffer = NULL; /* what is realized meanwhile may ask for this node */
    /* On its own turn only: who asks for it earlier has still to read what it reads. */
    if (node->id != low->position)
        return ci_lowering_new_storage(low, node);
    if (state->container) {
        ci_lowering_realize(low, state->container);
        CiStorage storage = {ci_lowering_state(low, state->container)->storage.buffer,
                       ci_layout_dense_strides(low->ctx, low->sym, node->rank, node->sizes,
                                               node->order)};
        return storage;
    }
    if (hint.buffer && is_free(low, node, hint.buffer))
        return hint;
    return ci_lowering_new_storage(low, node);
}

CiStorage
ci_lowering_preallocate(CiLowering *low, CiNode *assign)
{
    CiNode *base = assign->args[0];
    CiStorage hint = ci_lowering_state(low, assign)->hint;
    ci_lowering_state(low, assign)->hint.buffer = NULL;
    if (hint.buffer && is_left(low, assign, hint.buffer) &&
        ci_lowering_can_store(low, assign->args[2], assign->args[1], base, hint))
        return hint;
    return ci_lowering_new_storage(low, base);
}

void
ci_lowering_add_axis(CiLowering *low, CiNest *nest, CiAxisKind kind, const char *prefix,
                     const CiExpr *extent, const CiExpr **var)
{
    if (ci_expr_equals_const(extent, 1)) {
        *var = ci_expr_const(low->sym, 0);
        return;
    }
    int number = kind == CI_AXIS_point ? nest->npoint : nest->naxes - nest->npoint;
    CiAxis *axes = ci_grow(low->ctx, nest->axes, sizeof *axes * (size_t)nest->naxes,
                           sizeof *axes * (size_t)(nest->naxes + 1));
    *var = ci_expr_index(low->sym, ci_format(low->ctx, "%s%d", prefix, number), extent);
    axes[nest->naxes] = (CiAxis){.kind = kind, .var = *var, .extent = extent};
    nest->axes = axes;
    nest->naxes++;
    if (kind == CI_AXIS_point)
        nest->npoint++;
}

const CiExpr *const *
ci_lowering_point_axes(CiLowering *low, CiNest *nest, int rank, const CiExpr *const *sizes)
{
    const CiExpr **index = CI_NEW_ARRAY(low->ctx, const CiExpr *, rank + 1);
    for (int k = 0; k < rank; k++)
        ci_lowering_add_axis(low, nest, CI_AXIS_point, "i", sizes[k], &index[k]);
    return index;
}

void
ci_lowering_finish_nest(CiNest *nest, CiRecorder *rec, int result, CiContext *ctx)
{
    nest->body = rec->body;
    nest->body.result = result;
    nest->locs = CI_NEW_ARRAY(ctx, CiLoc, rec->nlocs + 1);
    nest->nlocs = rec->nlocs;
    for (int k = 0; k < rec->nlocs; k++)
        nest->locs[k] = rec->locs[k];
}

/* Starts a nest over the elements of view, which are in base: sets its store, and returns the index
 * of value. */
static const CiExpr *const *
begin_store(CiLowering *low, CiNest *nest, const CiNode *value, CiNode *view, const CiNode *base,
            CiStorage storage)
{
    const CiExpr *const *index = ci_lowering_point_axes(low, nest, view->rank, view->sizes);
    CI_REQUIRE(low->ctx, value->rank <= view->rank);
    nest->store =
        ci_lowering_element(low, storage, base->rank, ci_view_base_index(low, view, base, index));
    return ci_lowering_aligned_index(low, value, view->rank, index);
}

bool
ci_lowering_can_store(CiLowering *low, CiNode *value, CiNode *view, const CiNode *base, CiStorage storage)
{
    CiNest draft = {.fold = CI_OP_none, .target = storage.buffer};
    const CiExpr *const *index = begin_store(low, &draft, value, view, base, storage);
    CiRecorder rec = ci_recorder_new(low);
    (void)ci_recorder_value(&rec, value, index);
    return !ci_lowering_has_hazard(low, &rec.body, &draft);
}

void
ci_lowering_store(CiLowering *low, CiNode *value, CiNode *view, const CiNode *base, CiStorage storage)
{
    CiNest draft = {.fold = CI_OP_none, .target = storage.buffer};
    const CiExpr *const *inner = begin_store(low, &draft, value, view, base, storage);
    CiRecorder rec = ci_recorder_new(low);
    int result = ci_recorder_value(&rec, value, inner);
    if (ci_lowering_has_hazard(low, &rec.body, &draft)) {
        /* A value that is read before it is overwritten needs a temporary. */
        CiStorage temporary = ci_lowering_new_storage(low, value);
        ci_lowering_store(low, value, value, value, temporary);
        CiScalar load = {.op = CI_OP_load, .dtype = value->dtype, .buffer = temporary.buffer};
        load.index = ci_lowering_element(low, temporary, value->rank, inner);
        rec = ci_recorder_new(low);
        result = ci_recorder_add(&rec, load);
    }
    if (!rec.nlocs) /* elements are only loaded: the line is that of the store */
        ci_recorder_note(&rec, base->loc);
    ci_lowering_finish_nest(&draft, &rec, result, low->ctx);
    if (storage.buffer->kind == CI_BUFFER_input)
        storage.buffer->is_written = true;
    *ci_loops_add_nest(low->loops, low->items) = draft;
}

void
ci_lowering_realize(CiLowering *low, CiNode *node)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (state->storage.buffer)
        return;
    CiStorage storage = ci_lowering_make_storage(low, node);
    if (state->storage.buffer)
        return;
    if (node->op != CI_OP_empty)
        ci_lowering_store(low, node, node, node, storage);
    state->storage = storage;
    CI_PUSH(low->ctx, low->realized, low->nrealized, low->caprealized, node);
}
