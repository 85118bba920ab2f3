/* Packs: the elements of an array where a mask is true, one after another.
 *
 * How many they are is a sum over the mask, which data decide: a symbol, and the size of what is
 * packed. Where that is only read in the program, the sum and the packs are one walk: elements go
 * where there is room for all, and each count what they are. What leaves the program has memory of
 * its own size, so its elements are counted first. */
#include "lower/lowering.h"

#define FEW 4 /* operations that are done once more rather than kept */

/* The mask that node counts; NULL: it counts none. */
static CiNode *
counted_mask(const CiNode *node)
{
    if (node->op != CI_OP_sum || node->rank || node->dtype != CI_DTYPE_i64)
        return NULL;
    CiNode *mask = node->args[0];
    if (mask->op == CI_OP_cast)
        mask = mask->args[0];
    return mask->rank == 1 && mask->dtype == CI_DTYPE_bool ? mask : NULL;
}

/* The symbol that is defined as the value of node, which nobody else reads; NULL: there is none. */
static const CiExpr *
defined_as(const CiLowering *low, const CiNode *node)
{
    const CiNodeState *state = ci_lowering_state(low, node);
    bool is_defined = state->nusers == 1 && !state->nends && !state->is_result_base &&
                      state->users[0]->op == CI_OP_define;
    return is_defined ? state->users[0]->starts[0] : NULL;
}

static bool
is_outside_regions(const CiLowering *low, const CiNode *node)
{
    const CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nnodes; k++)
        if (body->nodes[k] == node)
            return true;
    return false;
}

/* Packs by the mask that sum counts, of what is known by then, for readers in the program. */
static bool
is_packed_with(const CiLowering *low, const CiNode *pack, const CiNode *sum)
{
    const CiNodeState *state = ci_lowering_state(low, pack);
    return pack->op == CI_OP_compress && pack->args[1] == counted_mask(sum) &&
           pack->sizes[0] == defined_as(low, sum) && pack->args[0]->id < sum->id &&
           !state->is_result_base && !state->nends && !state->room && !state->hint.buffer &&
           is_outside_regions(low, pack) && is_outside_regions(low, sum);
}

/* What is left of `most` operations when those are taken that make node of what is in memory; below
 * zero: it takes more, or a function. */
static int
left_of(const CiNode *node, int most)
{
    if (!ci_lowering_is_lazy(node))
        return most;
    if (ci_op_is_expensive(node->op))
        return -1;
    most -= !ci_node_is_view(node) && ci_op_kind(node->op) != CI_OPKIND_create;
    for (int k = 0; k < node->nargs && most >= 0; k++)
        most = left_of(node->args[k], most);
    return most;
}

bool
ci_lowering_keeps_mask(const CiLowering *low, const CiNode *mask)
{
    const CiNodeState *state = ci_lowering_state(low, mask);
    bool is_packed = false, is_counted = true,
         is_less = mask->nargs > 0 && ci_dtype_size(mask->args[0]->dtype) >= 4;
    for (int k = 0; k < state->nusers; k++) {
        const CiNode *user = state->users[k];
        if (user->op != CI_OP_compress || user->args[1] != mask)
            continue;
        is_packed = true;
        is_counted &= ci_lowering_state(low, user)->counts_with != NULL;
    }
    return is_packed && is_less && (!is_counted || left_of(mask, FEW) < 0);
}

void
ci_lowering_find_counts(CiLowering *low)
{
    const CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nnodes; k++) {
        CiNode *sum = body->nodes[k], *mask = counted_mask(sum);
        if (!mask || !defined_as(low, sum))
            continue;
        const CiNodeState *state = ci_lowering_state(low, mask);
        for (int u = 0; u < state->nusers; u++)
            if (is_packed_with(low, state->users[u], sum))
                ci_lowering_state(low, state->users[u])->counts_with = sum;
    }
}

/* Into memory of that many elements; how many were packed goes to `count`, unless NULL. */
static void
pack(CiLowering *low, CiNode *node, const CiExpr *most, CiBuffer *count)
{
    CiNode *a = node->args[0], *mask = node->args[1];
    CiStorage storage = {.strides = ci_layout_dense_strides(low->ctx, low->sym, 1, node->sizes,
                                                            node->order)};
    storage.buffer = ci_loops_add_buffer(low->loops, CI_BUFFER_temp, node->dtype, 1, &most,
                                         storage.strides);
    CiNest nest = {.fold = CI_OP_none, .target = storage.buffer};
    const CiExpr *const *index = ci_lowering_point_axes(low, &nest, 1, mask->sizes);
    CiRecorder rec = ci_recorder_new(low);
    CiScalar op = {.op = CI_OP_pack, .dtype = node->dtype, .nargs = 2, .buffer = count};
    op.args[0] = ci_recorder_value(&rec, a, ci_lowering_aligned_index(low, a, 1, index));
    op.args[1] = ci_recorder_value(&rec, mask, index);
    op.index = ci_lowering_bound_symbol(low, most);
    nest.store = ci_expr_mul(low->sym, storage.strides[0], op.index);
    int result = ci_recorder_add(&rec, op);
    ci_recorder_note(&rec, node->loc);
    ci_lowering_finish_nest(&nest, &rec, result, low->ctx);
    *ci_loops_add_nest(low->loops, low->items) = nest;
    ci_lowering_state(low, node)->storage = storage;
}

void
ci_lowering_compress(CiLowering *low, CiNode *node)
{
    if (!ci_lowering_state(low, node)->storage.buffer)
        pack(low, node, node->sizes[0], NULL);
}

bool
ci_lowering_count(CiLowering *low, CiNode *sum)
{
    CiNode *mask = counted_mask(sum);
    const CiNodeState *state = mask ? ci_lowering_state(low, mask) : NULL;
    CiBuffer *count = NULL;
    for (int k = 0; state && k < state->nusers; k++) {
        CiNode *user = state->users[k];
        if (ci_lowering_state(low, user)->counts_with != sum)
            continue;
        bool is_first = !count;
        if (is_first)
            count = ci_lowering_make_storage(low, sum).buffer;
        pack(low, user, mask->sizes[0], is_first ? count : NULL);
    }
    if (count)
        ci_lowering_state(low, sum)->storage = (CiStorage){.buffer = count};
    return count != NULL;
}
