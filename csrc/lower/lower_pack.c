/* Compresses (packs): the elements of an array at which a mask is true, contiguously.
 *
 * Their number is a sum over the mask, hence data-dependent: a symbol, which is the size of the
 * result. If counting takes about as long as compressing, both are one pass: elements are stored in
 * a buffer with space for all, and the first compress counts them. A result of the program is then
 * the first part of its memory.
 *
 * Otherwise the elements are counted beforehand. This is the case if the mask is in memory already,
 * or if the buffer would be larger than the arrays that the elements come from. It is also the case
 * if a compress needs a value that is known only after the count, or if results cannot be
 * shortened. */
#include "analysis/choices.h"
#include "lower/lowering.h"

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

/* The symbol that is defined as the value of the node, if there is no other reader; else NULL. */
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

/* ---- what it takes to ask ---- */

typedef struct Query {
    int noperations, most; /* most: more are not counted */
    bool is_function; /* a function is computed */
    int widest;       /* bytes of an element that is read */
} Query;

/* Counts the operations that compute the node from values in memory, and finds the widest of
 * these. */
static void
count_query(const CiNode *node, Query *query)
{
    if (!ci_lowering_is_lazy(node)) {
        int size = node->rank ? ci_dtype_size(node->dtype) : 0;
        query->widest = size > query->widest ? size : query->widest;
        return;
    }
    query->noperations += !ci_node_is_view(node) && ci_op_kind(node->op) != CI_OPKIND_create;
    query->is_function |= ci_op_is_expensive(node->op);
    for (int k = 0; k < node->nargs && query->noperations <= query->most; k++)
        count_query(node->args[k], query);
}

/* True if the mask reads much memory and computes little, so that the compress may count it. Empty
 * nests are excluded. */
static bool
is_worth_one_pass(const CiLowering *low, const CiNode *mask)
{
    Query query = {.most = (int)CI_CHOOSE(low, repeated_ops)};
    if (ci_expr_equals_const(mask->sizes[0], 0))
        return false;
    count_query(mask, &query);
    return query.noperations <= query.most && !query.is_function && query.widest >= CI_CHOOSE(low, packed_bytes);
}

/* True if a buffer for all elements is no larger than the arrays that they come from. */
static bool
has_space(const CiLowering *low, const CiNode *pack)
{
    Query query = {.most = (int)CI_CHOOSE(low, repeated_ops)};
    count_query(pack->args[0], &query);
    query.noperations = 0;
    count_query(pack->args[1], &query);
    return ci_dtype_size(pack->dtype) <= query.widest;
}

/* ---- which are one walk ---- */

/* Of what is known where they are counted. */
static bool
may_count(const CiLowering *low, const CiNode *pack, const CiNode *sum)
{
    const CiNodeState *state = ci_lowering_state(low, pack);
    return pack->sizes[0] == defined_as(low, sum) && pack->args[0]->id < sum->id &&
           (!low->machine->has_memory || !state->is_result_base) && !state->container &&
           !state->hint.buffer && is_outside_regions(low, pack) && has_space(low, pack);
}

static bool
is_pack_by(const CiNode *node, const CiNode *mask)
{
    return node->op == CI_OP_compress && node->args[1] == mask;
}

void
ci_lowering_find_counts(CiLowering *low)
{
    const CiBlock *body = low->graph->body;
    for (int k = 0; k < body->nnodes; k++) {
        CiNode *sum = body->nodes[k], *mask = counted_mask(sum);
        if (!mask || !defined_as(low, sum) || !is_worth_one_pass(low, mask))
            continue;
        const CiNodeState *state = ci_lowering_state(low, mask);
        bool may = true;
        for (int u = 0; u < state->nusers; u++)
            may &= !is_pack_by(state->users[u], mask) || may_count(low, state->users[u], sum);
        for (int u = 0; u < state->nusers && may; u++)
            if (is_pack_by(state->users[u], mask))
                ci_lowering_state(low, state->users[u])->counts_with = sum;
    }
}

bool
ci_lowering_needs_mask(const CiLowering *low, const CiNode *mask)
{
    const CiNodeState *state = ci_lowering_state(low, mask);
    bool is_asked = false;
    for (int k = 0; k < state->nusers; k++)
        is_asked |= is_pack_by(state->users[k], mask) &&
                    !ci_lowering_state(low, state->users[k])->counts_with;
    return is_asked && mask->nargs > 0 && ci_dtype_size(mask->args[0]->dtype) >= CI_CHOOSE(low, packed_bytes);
}

/* ---- the nests ---- */

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
