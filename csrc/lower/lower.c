/* Drives lowering: decides which values get a buffer, and visits the nodes in program order.
 *
 * A value is realized if its kind requires memory (reductions, scans, library calls, writes,
 * results). It is also realized if it is expensive and several realized values read it (or one
 * reads each element many times), or if inlining it would make a body longer than the limit. All
 * other values are inlined by their readers. A gather of more than a few elements counts as reading
 * each element many times.
 *
 * needs: a valid graph without composites. keeps: the graph, except ids and the names of
 * inductions. */
#include "lower/lowering.h"

#include "analysis/choices.h"

static const CiExpr *
count_elements(CiLowering *low, const CiNode *node)
{
    const CiExpr *count = ci_expr_const(low->sym, 1);
    for (int k = 0; k < node->rank; k++)
        count = ci_expr_mul(low->sym, count, node->sizes[k]);
    return count;
}

/* True if a gather certainly reads few of the array's elements. */
static bool
reads_few(CiLowering *low, const CiNode *gather, const CiNode *array)
{
    const CiExpr *factor = ci_expr_const(low->sym, CI_CHOOSE(low, gathered_ratio)),
                 *reads = ci_expr_mul(low->sym, count_elements(low, gather), factor);
    return ci_sym_known_le(low->sym, reads, count_elements(low, array));
}

static bool
repeats_elements(CiLowering *low, const CiNode *user, const CiNode *operand)
{
    if (user->op == CI_OP_assign || user->op == CI_OP_compress ||
        ci_op_kind(user->op) == CI_OPKIND_extern)
        return false;
    if (ci_node_is_view(user) && user->op != CI_OP_expand && user->op != CI_OP_window)
        return false;
    if (user->op == CI_OP_window || user->op == CI_OP_product)
        return true;
    if (user->op == CI_OP_gather)
        return operand == user->args[0] ? !reads_few(low, user, operand)
                                        : user->rank > operand->rank;
    if (ci_op_kind(user->op) == CI_OPKIND_reduce || ci_op_kind(user->op) == CI_OPKIND_argreduce)
        return false;
    for (int k = 1; k <= user->rank; k++) {
        if (ci_expr_equals_const(user->sizes[user->rank - k], 1))
            continue;
        if (k > operand->rank || ci_expr_equals_const(operand->sizes[operand->rank - k], 1))
            return true;
    }
    return false;
}

/* The cast that alone reads a value, to fewer bits: it is what its readers share, so that it is
 * made once and not by each of them. */
static CiNode *
find_narrower(const CiNodeState *state)
{
    CiNode *user = state->nusers == 1 ? state->users[0] : NULL;
    bool is_narrower = user && user->op == CI_OP_cast &&
                       ci_dtype_size(user->dtype) < ci_dtype_size(user->args[0]->dtype);
    return is_narrower ? user : NULL;
}

/* True if every user of the node has become an online reduction, so that nothing reads the node any
 * more. */
static bool
is_dead(const CiLowering *low, const CiNodeState *state)
{
    if (!low->has_online || state->nends || state->is_result_base ||
        !ci_lowering_is_lazy(state->node))
        return false;
    for (int k = 0; k < state->nusers; k++)
        if (!ci_lowering_state(low, state->users[k])->is_dead)
            return false;
    return true;
}

/* Finds the realized reader of a node, through lazy users. Nodes are processed from last to
 * first. */
static void
find_reader(CiLowering *low, CiNode *node)
{
    CiNodeState *state = ci_lowering_state(low, node);
    int nviews = 0;
    state->is_dead = is_dead(low, state);
    if (state->is_dead)
        return;
    for (int k = 0; k < state->nusers; k++) {
        CiNode *user = state->users[k];
        CiNodeState *through = ci_lowering_state(low, user);
        if (through->is_dead)
            continue;
        bool is_inlined = ci_lowering_is_lazy(user) && !through->is_wanted;
        CiNode *reader = is_inlined ? through->reader : user;
        if ((is_inlined && through->has_several_readers) || repeats_elements(low, user, node) ||
            (state->reader && reader && state->reader != reader))
            state->has_several_readers = true;
        if (reader)
            state->reader = reader;
        nviews += ci_node_is_view(user);
    }
    if (nviews > 1) /* a stencil: each element is computed once for every view that meets it */
        state->has_several_readers = true;
    if (!ci_lowering_is_lazy(node) || ci_node_is_view(node))
        return;
    bool is_cheap_scalar = node->rank == 0 && !ci_op_is_function(node->op);
    bool is_costly = ci_op_is_expensive(node->op) && !is_cheap_scalar,
         is_shared = (state->has_several_readers && is_costly) || ci_lowering_needs_mask(low, node);
    CiNode *narrower = find_narrower(state);
    if (is_shared && narrower && !state->is_result_base) {
        ci_lowering_state(low, narrower)->is_wanted = true;
        state->reader = narrower;
        state->has_several_readers = false;
    } else {
        state->is_wanted |= state->is_result_base || is_shared;
    }
}

/* Distinct lazy nodes that inlining node would emit, counted up to limit. */
static int
count_inlined(CiLowering *low, CiNode *node, int limit)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (state->visit == low->visit || state->storage.buffer || limit <= 0)
        return 0;
    state->visit = low->visit;
    int count = 1;
    for (int k = 0; k < node->nargs; k++)
        count += count_inlined(low, node->args[k], limit - count);
    return count;
}

static void
visit_lazy(CiLowering *low, CiNode *node)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (ci_node_is_view(node) || ci_op_kind(node->op) == CI_OPKIND_create || state->is_dead)
        return;
    low->visit++;
    int64_t limit = low->options->inline_limit;
    int count = count_inlined(low, node, limit + 1);
    bool is_worth_keeping = state->has_several_readers && count > limit / 8 && node->rank > 0;
    if (state->is_wanted || count > limit || is_worth_keeping)
        ci_lowering_realize(low, node);
}

static void
visit_node(CiLowering *low, CiNode *node)
{
    if (ci_lowering_is_lazy(node)) {
        visit_lazy(low, node);
        return;
    }
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_create:
        if (node->op == CI_OP_empty && !ci_lowering_state(low, node)->waits)
            ci_lowering_realize(low, node);
        return;
    case CI_OPKIND_reduce:
    case CI_OPKIND_argreduce:
        if (!ci_lowering_count(low, node))
            ci_lowering_reduce(low, node);
        return;
    case CI_OPKIND_scan:
        ci_lowering_scan(low, node);
        return;
    case CI_OPKIND_extern:
        ci_lowering_extern(low, node);
        return;
    case CI_OPKIND_structure:
        if (node->op == CI_OP_assign)
            ci_lowering_assign(low, node);
        else if (node->op == CI_OP_scatter)
            ci_lowering_scatter(low, node);
        else if (node->op == CI_OP_compress)
            ci_lowering_compress(low, node);
        else if (node->op == CI_OP_concat)
            ci_lowering_concat(low, node);
        else if (node->op == CI_OP_product)
            ci_lowering_product(low, node);
        else
            ci_lowering_check(low, node);
        return;
    case CI_OPKIND_region:
        if (node->op == CI_OP_result)
            ci_lowering_state(low, node)->storage =
                ci_lowering_state(low, node->args[0])->storages[node->index];
        else
            ci_lowering_region(low, node);
        return;
    default:
        ci_fail(low->ctx, CI_ERR_LOWERING, "no lowering for %s (%s:%d)", ci_op_name(node->op),
                node->loc.file ? node->loc.file : "", node->loc.line);
    }
}

void
ci_lowering_block(CiLowering *low, CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        low->position = block->nodes[k]->id;
        visit_node(low, block->nodes[k]);
    }
}

static void
add_inputs(CiLowering *low)
{
    CiGraph *graph = low->graph;
    for (int k = 0; k < graph->ninputs; k++) {
        CiNode *node = graph->inputs[k];
        CiBufferKind kind = node->kind == CI_KIND_array ? CI_BUFFER_input : CI_BUFFER_scalar;
        CiStorage storage = {.strides = graph->strides[k]};
        storage.buffer = ci_loops_add_buffer(low->loops, kind, node->dtype, node->rank, node->sizes,
                                          storage.strides);
        storage.buffer->input = k;
        storage.buffer->name = node->name;
        storage.buffer->device = node->device;
        ci_lowering_state(low, node)->storage = storage;
    }
    low->loops->ninputs = graph->ninputs;
}

static bool
is_written(const CiGraph *graph, const CiNode *input)
{
    bool is = false;
    for (int k = 0; k < graph->nwrites; k++)
        is |= graph->writes[k].input == input;
    return is;
}

/* With arrays on several devices, a non-contiguous input is read from a packed copy on its own
 * device. The copy is what another device gets; if it is not needed elsewhere, the scheduler fuses
 * it away. An input that is written or leaves the program is not packed, because its own memory is
 * meant. */
static void
pack_inputs(CiLowering *low)
{
    for (int k = 0; k < low->graph->ninputs; k++) {
        CiNode *node = low->graph->inputs[k];
        CiNodeState *state = ci_lowering_state(low, node);
        const CiBuffer *buffer = state->storage.buffer;
        if (buffer->kind != CI_BUFFER_input || !state->nusers || state->is_result_base ||
            is_written(low->graph, node) || ci_buffer_is_dense(low->loops, buffer))
            continue;
        CiStorage storage = ci_lowering_new_storage(low, node);
        ci_lowering_store(low, node, node, node, storage);
        state->storage = storage;
    }
}

/* The device computes in the types that it has, and says so of others before anything is made. */
static void
check_dtypes(void *arg, CiItem *item)
{
    const CiLowering *low = arg;
    for (int n = 0; item->nest && n < item->nest->body.nops; n++) {
        CiDtype dtype = item->nest->body.ops[n].dtype;
        if (!(low->machine->dtypes & CI_DTYPE_BIT(dtype)))
            ci_fail(low->ctx, CI_ERR_UNSUPPORTED, "device %s has no %s", low->machine->device,
                    ci_dtype_name(dtype));
    }
}

CiLoops *
ci_lower(CiGraph *graph, const CiMachine *machine, const CiOptions *options)
{
    CiLowering low = {.ctx = graph->ctx,
                      .sym = graph->sym,
                      .graph = graph,
                      .machine = machine,
                      .options = options,
                      .own_order = machine->has_own_order || !ci_options_have_numpys_order(options)};
    low.loops = ci_loops_new(low.ctx, low.sym, graph->name);
    low.items = &low.loops->items;
    if (low.own_order)
        ci_lowering_partial_results(low.ctx, graph->body);
    ci_lowering_number(&low);
    ci_lowering_find_checks(&low);
    add_inputs(&low);
    ci_lowering_find_counts(&low);
    for (int k = low.nstates - 1; k >= graph->ninputs; k--)
        if (low.states[k].node)
            find_reader(&low, low.states[k].node);
    if (ci_loops_device_count(low.loops) > 1)
        pack_inputs(&low);
    ci_lowering_block(&low, graph->body);
    low.position = low.end;
    ci_lowering_final_writes(&low);
    ci_lowering_results(&low);
    ci_items_visit(&low.loops->items, check_dtypes, &low);
    return low.loops;
}
