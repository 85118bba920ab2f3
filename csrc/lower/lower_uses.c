/* Positions, users, and what `later` means when there are loops and branches around. */
#include "lower/lowering.h"

/* ---- positions ---- */

/* The name of an induction becomes t0, t1, …: unlike the index variables of any nest, and no two
 * loops share one. */
static const CiExpr *
new_induction(CiLowering *low, const CiExpr *trip_count, int *number)
{
    for (;;) {
        const char *name = ci_format(low->ctx, "t%d", (*number)++);
        const CiExpr *known = ci_sym_find_symbol(low->sym, name);
        if (!known || known->symbol_kind == CI_SYMBOL_index)
            return ci_expr_index(low->sym, name, trip_count);
    }
}

typedef struct Renaming {
    CiLowering *low;
    const CiExpr *from, *to;
    int ninductions;
} Renaming;

static const CiExpr *const *
rename_in(const Renaming *r, int count, const CiExpr *const *exprs)
{
    const CiExpr **copy = CI_NEW_ARRAY(r->low->ctx, const CiExpr *, count + 1);
    for (int k = 0; exprs && k < count; k++)
        copy[k] = ci_expr_substitute(r->low->sym, exprs[k], 1, &r->from, &r->to);
    return exprs ? copy : NULL;
}

static void
rename_node(void *arg, CiNode *node)
{
    const Renaming *r = arg;
    node->sizes = rename_in(r, node->rank, node->sizes);
    node->strides = rename_in(r, node->rank, node->strides);
    node->starts = rename_in(r, ci_node_nstarts(node), node->starts);
    node->steps = rename_in(r, node->rank, node->steps);
}

static void
rename_induction(void *arg, CiNode *node)
{
    Renaming *r = arg;
    if (node->op != CI_OP_for)
        return;
    const CiExpr **starts = CI_NEW_ARRAY(r->low->ctx, const CiExpr *, 2);
    starts[0] = node->starts[0];
    starts[1] = r->to = new_induction(r->low, starts[0], &r->ninductions);
    r->from = node->starts[1];
    if (r->from != r->to)
        ci_block_visit(node->blocks[0], rename_node, r);
    node->starts = starts;
}

/* Ids at first; once there are states, what they say of positions. */
static int
number_block(CiLowering *low, CiBlock *block, int next)
{
    for (int k = 0; k < block->nparams; k++) {
        if (low->states)
            low->states[next].node = block->params[k];
        block->params[k]->id = next++;
    }
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        if (low->states)
            low->states[next].node = node;
        node->id = next++;
        for (int b = 0; b < node->nblocks; b++) {
            next = number_block(low, node->blocks[b], next);
            if (low->states)
                ci_lowering_state(low, node)->end[b] = next;
            next++;
        }
    }
    return next;
}

/* ---- users ---- */

static void
add_user(CiLowering *low, CiNode *node, CiNode *user)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (!state->nusers || state->users[state->nusers - 1] != user)
        CI_PUSH(low->ctx, state->users, state->nusers, state->capusers, user);
}

static void
add_use(CiLowering *low, CiNode *node, int position)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (position > state->last_use)
        state->last_use = position;
}

static void
add_end(CiLowering *low, CiNode *node, int position)
{
    CiNodeState *state = ci_lowering_state(low, node);
    CI_PUSH(low->ctx, state->ends, state->nends, state->capends, position);
    add_use(low, node, position);
}

/* The region that hands a block's results on counts as their reader. */
static void
find_users(CiLowering *low, const CiBlock *block, CiNode *region, int end)
{
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        for (int a = 0; a < node->nargs; a++) {
            add_user(low, ci_lowering_operand(low, node, a), node);
            add_use(low, ci_lowering_operand(low, node, a), node->id);
        }
        for (int b = 0; b < node->nblocks; b++)
            find_users(low, node->blocks[b], node, ci_lowering_state(low, node)->end[b]);
    }
    for (int k = 0; k < block->nresults; k++) {
        add_end(low, block->results[k], end);
        if (region)
            add_user(low, block->results[k], region);
    }
}

static void
find_final_uses(CiLowering *low)
{
    const CiGraph *graph = low->graph;
    for (int k = 0; k < graph->body->nresults; k++) {
        CiNode *base = ci_node_base(graph->body->results[k]);
        ci_lowering_state(low, base)->is_result_base = true;
        add_end(low, base, low->end);
    }
    for (int k = 0; k < graph->nwrites; k++)
        add_end(low, graph->writes[k].value, low->end);
}

void
ci_lowering_number(CiLowering *low)
{
    CiGraph *graph = low->graph;
    Renaming renaming = {.low = low};
    ci_block_visit(graph->body, rename_induction, &renaming);
    for (int k = 0; k < graph->ninputs; k++)
        graph->inputs[k]->id = k;
    low->end = low->nstates = number_block(low, graph->body, graph->ninputs);
    low->states = CI_NEW_ARRAY(low->ctx, CiNodeState, low->nstates + 1);
    for (int k = 0; k < graph->ninputs; k++)
        low->states[k].node = graph->inputs[k];
    number_block(low, graph->body, graph->ninputs);
    ci_lowering_find_online(low);
    find_users(low, graph->body, NULL, low->end);
    find_final_uses(low);
    /* A view keeps what it looks at alive. */
    for (int k = low->nstates - 1; k >= 0; k--) {
        CiNode *node = low->states[k].node;
        if (node && ci_node_is_view(node))
            add_use(low, node->args[0], low->states[k].last_use);
    }
}

/* ---- later ---- */

bool
ci_lowering_is_outside_loop(const CiLowering *low, const CiNode *node)
{
    for (const CiScope *scope = low->scope; scope; scope = scope->outer) {
        if (scope->is_loop && node->id <= scope->region)
            return true;
    }
    return false;
}

/* A value from outside a loop that is used in the loop is used again in the next iteration. */
bool
ci_lowering_is_after(const CiLowering *low, const CiNode *node, int position)
{
    bool is_later = position > low->position;
    for (const CiScope *scope = low->scope; scope; scope = scope->outer) {
        if (scope->is_loop && node->id <= scope->region && position > scope->region)
            return true;
        if (position >= scope->skip_first && position <= scope->skip_last)
            is_later = false;
    }
    return is_later;
}

bool
ci_lowering_is_used_after(const CiLowering *low, const CiNode *node)
{
    const CiNodeState *state = ci_lowering_state(low, node);
    if (!low->scope)
        return state->last_use > low->position;
    for (int k = 0; k < state->nends; k++) {
        if (ci_lowering_is_after(low, node, state->ends[k]))
            return true;
    }
    for (int k = 0; k < state->nusers; k++) {
        const CiNode *user = state->users[k];
        if (ci_lowering_is_after(low, node, user->id) ||
            (ci_node_is_view(user) && ci_lowering_is_used_after(low, user)))
            return true;
    }
    return false;
}

bool
ci_lowering_is_lazy(const CiNode *node)
{
    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_pointwise:
    case CI_OPKIND_math:
    case CI_OPKIND_ufunc:
    case CI_OPKIND_view:
        return true;
    case CI_OPKIND_structure:
        return node->op == CI_OP_cast || node->op == CI_OP_where || node->op == CI_OP_copy ||
               node->op == CI_OP_gather;
    case CI_OPKIND_create:
        return node->op == CI_OP_const || node->op == CI_OP_iota || node->op == CI_OP_expr;
    default:
        return false;
    }
}

bool
ci_lowering_reads(CiLowering *low, CiNode *node, const CiBuffer *buffer)
{
    CiNodeState *state = ci_lowering_state(low, node);
    if (state->storage.buffer)
        return state->storage.buffer == buffer;
    if (state->visit == low->visit)
        return false;
    state->visit = low->visit;
    for (int k = 0; k < node->nargs; k++) {
        if (ci_lowering_reads(low, node->args[k], buffer))
            return true;
    }
    return false;
}
