/* Wrapping ints: removes checks of Python ints of which only the lowest 64 bits are used.
 *
 * A Python int of the graph equals Python's own modulo 2**64; a check of it, check(c, v), states
 * that it is the same int. For sums, products, left shifts and bitwise operations, the lowest bits
 * of the result depend only on the lowest bits of the operands. So `x * 6364136223846793005 + 1 &
 * 0xFFFF` needs no check of the product, and neither does a hash that a loop carries and that is
 * masked after it. Every other user of an int (a comparison, a division, an index, a float, an
 * array, a result) needs its value.
 *
 * The need is propagated from observable results to operands, arms and carried values. It only
 * grows, so the work list becomes empty. A check of an int whose value is needed becomes a plain
 * check, and its condition is needed too.
 *
 * needs: nothing has been computed or simplified yet, so that all users of an int still exist.
 * keeps: every value that is needed is Python's, or a check fails. */
#include "passes/pass.h"

typedef enum Need { NEED_none, NEED_bits, NEED_value } Need;

typedef struct Guard Guard;
struct Guard {
    const CiNode *check;
    Guard *next;
};

typedef struct State {
    Need need;
    Guard *guards;
    const CiNode *region; /* of a parameter */
    int carried;          /* its number among those carried; -1: the induction */
} State;

typedef struct Wrap {
    CiContext *ctx;
    CiNode **stack; /* its need has grown */
    int depth;
} Wrap;

static State *
state_of(const CiNode *node)
{
    return node->mark;
}

static bool
is_pythons(const CiNode *node)
{
    return node->kind == CI_KIND_python && node->rank == 0;
}

static bool
is_int(const CiNode *node)
{
    return is_pythons(node) && (node->dtype == CI_DTYPE_i64 || node->dtype == CI_DTYPE_u64);
}

static void
mark_need(Wrap *w, CiNode *node, Need need)
{
    if (state_of(node)->need >= need)
        return;
    state_of(node)->need = need;
    w->stack[w->depth++] = node;
}

static void
ask_args(Wrap *w, const CiNode *node)
{
    for (int k = 0; k < node->nargs; k++)
        mark_need(w, node->args[k], NEED_value);
}

/* ---- one operation ---- */

/* Masked, an int is its own bits, whatever stood above them. */
static bool
is_mask(const CiNode *node)
{
    return node->op == CI_OP_const && (node->dtype == CI_DTYPE_u64 || node->value.i >= 0);
}

static Need
need_of_arg(const CiNode *node, int arg, Need need)
{
    if (!is_int(node) || !is_int(node->args[arg]))
        return NEED_value;
    if (node->op == CI_OP_bitwise_and && is_mask(node->args[!arg]))
        return NEED_bits;
    bool is_of_low_bits = ci_op_has(node->op, CI_FACT_low_bits) ||
                          (arg == 0 && ci_op_has(node->op, CI_FACT_low_bits_of_first));
    return is_of_low_bits ? need : NEED_value;
}

/* ---- regions ---- */

static CiBlock *
last_block(const CiNode *region)
{
    return region->blocks[region->nblocks - 1];
}

static void
ask_param(Wrap *w, const State *state)
{
    if (state->region == NULL || state->carried < 0)
        return;
    mark_need(w, state->region->args[state->carried], state->need);
    mark_need(w, last_block(state->region)->results[state->carried], state->need);
}

static void
ask_result(Wrap *w, const CiNode *node)
{
    const CiNode *region = node->args[0];
    Need need = state_of(node)->need;
    if (region->op == CI_OP_if)
        mark_need(w, region->blocks[0]->results[node->index], need);
    else /* a loop-invariant value is passed on */
        mark_need(w, region->args[node->index], need);
    mark_need(w, last_block(region)->results[node->index], need);
}

static void
spread(Wrap *w, const CiNode *node)
{
    const State *state = state_of(node);
    for (const Guard *g = state->need == NEED_value ? state->guards : NULL; g; g = g->next)
        mark_need(w, g->check->args[0], NEED_value);
    if (node->op == CI_OP_param)
        ask_param(w, state);
    else if (node->op == CI_OP_result)
        ask_result(w, node);
    else
        for (int k = 0; k < node->nargs; k++)
            mark_need(w, node->args[k], need_of_arg(node, k, state->need));
}

/* ---- what is observed ---- */

/* Only where somebody asks for it. */
static bool
is_lazy(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    return is_pythons(node) &&
           (kind == CI_OPKIND_pointwise || node->op == CI_OP_cast || node->op == CI_OP_where ||
            node->op == CI_OP_param || node->op == CI_OP_result || node->op == CI_OP_const);
}

static void
demand_block(Wrap *w, const CiBlock *block)
{
    for (int k = 0; k < block->nparams; k++)
        if (!is_lazy(block->params[k]))
            mark_need(w, block->params[k], NEED_value);
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        bool is_guard = node->op == CI_OP_check && node->nargs == 2;
        for (int b = 0; b < node->nblocks; b++)
            demand_block(w, node->blocks[b]);
        if (node->op == CI_OP_while)
            mark_need(w, node->blocks[0]->results[0], NEED_value);
        if (node->op == CI_OP_result ? !is_lazy(node) : node->op == CI_OP_if)
            mark_need(w, node->op == CI_OP_if ? node->args[0] : node, NEED_value);
        else if (!node->nblocks && !is_guard && !is_lazy(node))
            ask_args(w, node);
    }
}

/* ---- the pass ---- */

static int
clear_node(CiContext *ctx, CiNode *node)
{
    node->mark = CI_NEW(ctx, State);
    return 1;
}

static int
clear_block(CiContext *ctx, const CiBlock *block, const CiNode *region)
{
    int count = 0, first = region ? block->nparams - region->nargs : 0;
    for (int k = 0; k < block->nparams; k++) {
        count += clear_node(ctx, block->params[k]);
        state_of(block->params[k])->region = region;
        state_of(block->params[k])->carried = k - first;
    }
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        count += clear_node(ctx, node);
        for (int b = 0; b < node->nblocks; b++)
            count += clear_block(ctx, node->blocks[b], node);
        if (node->op == CI_OP_check && node->nargs == 2) {
            Guard *guard = CI_NEW(ctx, Guard);
            *guard = (Guard){node, state_of(node->args[1])->guards};
            state_of(node->args[1])->guards = guard;
        }
    }
    return count;
}

static bool
keeps_check(void *arg, CiNode *node)
{
    (void)arg;
    bool is_guard = node->op == CI_OP_check && node->nargs == 2;
    if (is_guard && state_of(node->args[1])->need < NEED_value)
        return false;
    node->nargs = is_guard ? 1 : node->nargs;
    return true;
}

void
ci_pass_wrap(CiGraph *g)
{
    int count = 0;
    for (int k = 0; k < g->ninputs; k++)
        count += clear_node(g->ctx, g->inputs[k]);
    count += clear_block(g->ctx, g->body, NULL);
    Wrap w = {g->ctx, CI_NEW_ARRAY(g->ctx, CiNode *, 2 * count + 1), 0};
    for (int k = 0; k < g->body->nresults; k++)
        mark_need(&w, g->body->results[k], NEED_value);
    for (int k = 0; k < g->nwrites; k++)
        mark_need(&w, g->writes[k].value, NEED_value);
    demand_block(&w, g->body);
    while (w.depth > 0)
        spread(&w, w.stack[--w.depth]);
    ci_block_filter(g->body, keeps_check, NULL);
}
