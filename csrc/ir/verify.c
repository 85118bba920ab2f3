/* The graph's verifier: every rule of ir/graph.h that a pass could break, in one forward pass.
 *
 * A node must be in its block after its arguments, and agree with what inference says of it
 * again. Scopes: a value made in a block is seen in that block and those inside it only. */
#include "base/map.h"
#include "ir/graph.h"
#include "ir/infer.h"

#include <string.h>

typedef struct Verifier {
    CiGraph *g;
    CiMap *defined; /* node -> node while it is in scope; so are symbols that loops and data make */
} Verifier;

static _Noreturn void
fail_node(const Verifier *v, const CiNode *node, const char *rule)
{
    ci_fail(v->g->ctx, CI_ERR_INTERNAL, "graph %s: %%%d = %s: %s", v->g->name, node->id,
            ci_op_name(node->op), rule);
}

static bool
is_in_scope(const Verifier *v, const CiNode *node)
{
    return ci_map_find(v->defined, CI_KEY(node)) != NULL;
}

static void
define(Verifier *v, CiNode *node)
{
    if (is_in_scope(v, node))
        fail_node(v, node, "appears twice in its block");
    ci_map_put(v->defined, CI_KEY(node), node);
}

static bool
is_permutation(int rank, const int8_t *order)
{
    uint64_t seen = 0;
    for (int k = 0; k < rank; k++) {
        if (order[k] < 0 || order[k] >= rank)
            return false;
        seen |= (uint64_t)1 << order[k];
    }
    return seen == ((uint64_t)1 << rank) - 1;
}

static void
verify_value(const Verifier *v, const CiNode *node)
{
    if (node->dtype == CI_DTYPE_none)
        return;
    if (node->rank < 0 || node->rank > CI_MAX_RANK)
        fail_node(v, node, "its rank is out of range");
    if (!node->order || !is_permutation(node->rank, node->order))
        fail_node(v, node, "its order is no permutation of its axes");
    if (node->kind != CI_KIND_array && node->rank)
        fail_node(v, node, "a scalar has rank 0");
    for (int k = 0; k < node->rank; k++)
        if (!node->sizes[k] || node->sizes[k]->high < 0)
            fail_node(v, node, "a size is negative");
}

/* Repeats inference. Shape guards were recorded when the node was built; those of the repetition
 * are dropped. */
static void
verify_inference(const Verifier *v, const CiNode *node)
{
    CiNode again = *node;
    int nguards = v->g->env->nguards;
    ci_infer_node(v->g, &again);
    v->g->env->nguards = nguards;
    bool is_same = again.dtype == node->dtype && again.rank == node->rank;
    for (int k = 0; is_same && k < node->rank; k++)
        is_same = ci_sym_known_eq(v->g->sym, again.sizes[k], node->sizes[k]);
    if (!is_same)
        fail_node(v, node, "its dtype or sizes are not what inference gives");
    if (ci_node_is_view(node) && memcmp(again.order, node->order, (size_t)node->rank) != 0)
        fail_node(v, node, "the order of a view follows from what it sees");
    bool is_python = node->kind == CI_KIND_python;
    if (is_python && node->dtype != CI_DTYPE_f64 && node->dtype != CI_DTYPE_c128 &&
        node->dtype != CI_DTYPE_i64 && node->dtype != CI_DTYPE_u64 &&
        node->dtype != CI_DTYPE_bool)
        fail_node(v, node, "Python has no number of this dtype");
}

typedef struct SymbolCheck {
    const Verifier *verifier;
    const CiNode *node;
} SymbolCheck;

static void
verify_symbol(void *arg, const CiExpr *symbol)
{
    const SymbolCheck *check = arg;
    bool is_made_here =
        symbol->symbol_kind == CI_SYMBOL_index || symbol->symbol_kind == CI_SYMBOL_unbacked;
    if (is_made_here && !ci_map_find(check->verifier->defined, CI_KEY(symbol)))
        fail_node(check->verifier, check->node,
                  ci_format(check->verifier->g->ctx, "%s is not defined here", symbol->name));
}

static void
verify_symbols(const Verifier *v, const CiNode *node)
{
    SymbolCheck check = {v, node};
    for (int k = 0; k < node->rank; k++)
        ci_expr_visit_symbols(node->sizes[k], verify_symbol, &check);
    for (int k = node->op == CI_OP_define; k < ci_node_nstarts(node); k++)
        if (k == 0 || node->op != CI_OP_for)
            ci_expr_visit_symbols(node->starts[k], verify_symbol, &check);
    for (int k = 0; node->steps && k < node->rank; k++)
        ci_expr_visit_symbols(node->steps[k], verify_symbol, &check);
}

static void
define_symbol(Verifier *v, const CiNode *node, const CiExpr *symbol)
{
    if (ci_map_find(v->defined, CI_KEY(symbol)))
        fail_node(v, node, ci_format(v->g->ctx, "%s is defined already", symbol->name));
    ci_map_put(v->defined, CI_KEY(symbol), (void *)symbol);
}

static void
verify_args(const Verifier *v, const CiNode *node)
{
    for (int k = 0; k < node->nargs; k++) {
        if (!node->args[k] || !is_in_scope(v, node->args[k]))
            fail_node(v, node, "an argument does not precede it");
        if (node->args[k]->dtype == CI_DTYPE_none && node->op != CI_OP_result)
            fail_node(v, node, "an argument has no value");
    }
    if (ci_op_kind(node->op) == CI_OPKIND_extern && !node->ext)
        fail_node(v, node, "nothing to call");
    if (ci_op_has(node->op, CI_FACT_collective) && (node->nargs != 1 || node->args[0]->dtype != node->dtype))
        fail_node(v, node, "a collective has one operand, of the result's dtype");
}

static bool
is_same_type(const CiNode *a, const CiNode *b)
{
    bool is_same = a->dtype == b->dtype && a->rank == b->rank;
    for (int k = 0; is_same && k < a->rank; k++)
        is_same = a->sizes[k] == b->sizes[k];
    return is_same;
}

static void verify_block(Verifier *v, const CiBlock *block);

static void
leave_block(Verifier *v, const CiBlock *block)
{
    for (int k = 0; k < block->nparams; k++)
        ci_map_put(v->defined, CI_KEY(block->params[k]), NULL);
    for (int k = 0; k < block->nnodes; k++) {
        ci_map_put(v->defined, CI_KEY(block->nodes[k]), NULL);
        if (block->nodes[k]->op == CI_OP_define)
            ci_map_put(v->defined, CI_KEY(block->nodes[k]->starts[0]), NULL);
    }
}

static void
verify_carried(const Verifier *v, const CiNode *region)
{
    const CiBlock *first = region->blocks[0], *last = region->blocks[region->nblocks - 1];
    int skip = region->op == CI_OP_for;
    if (first->nparams != region->nargs + skip || last->nresults != region->nargs)
        fail_node(v, region, "it carries, starts and hands on different numbers of values");
    for (int k = 0; k < region->nargs; k++)
        if (!is_same_type(first->params[k + skip], region->args[k]) ||
            !is_same_type(last->results[k], region->args[k]))
            fail_node(v, region, "a carried value changes its type");
    if (skip && first->params[0]->dtype != CI_DTYPE_i64)
        fail_node(v, region, "the induction is no i64");
    if (region->op == CI_OP_while &&
        (first->nresults != 1 || first->results[0]->dtype != CI_DTYPE_bool ||
         first->results[0]->rank))
        fail_node(v, region, "the condition is no single truth value");
}

static void
verify_branches(const Verifier *v, const CiNode *region)
{
    const CiBlock *a = region->blocks[0], *b = region->blocks[1];
    if (region->nargs != 1 || region->args[0]->dtype != CI_DTYPE_bool || region->args[0]->rank)
        fail_node(v, region, "the condition is no single truth value");
    if (a->nresults != b->nresults || a->nparams || b->nparams)
        fail_node(v, region, "its branches make different numbers of values");
    for (int k = 0; k < a->nresults; k++)
        if (!is_same_type(a->results[k], b->results[k]))
            fail_node(v, region, "its branches make values of different types");
}

static void
verify_region(Verifier *v, const CiNode *region)
{
    int nblocks = region->op == CI_OP_for ? 1 : 2;
    if (region->nblocks != nblocks)
        fail_node(v, region, "it has the wrong number of blocks");
    if (region->op == CI_OP_if)
        verify_branches(v, region);
    else
        verify_carried(v, region);
    if (region->op == CI_OP_for)
        define_symbol(v, region, region->starts[1]);
    for (int b = 0; b < nblocks; b++)
        verify_block(v, region->blocks[b]);
    if (region->op == CI_OP_for)
        ci_map_put(v->defined, CI_KEY(region->starts[1]), NULL);
    /* The body of a while sees the parameters and values of its condition. */
    for (int b = 0; b < nblocks; b++)
        leave_block(v, region->blocks[b]);
}

static void
verify_block(Verifier *v, const CiBlock *block)
{
    for (int k = 0; k < block->nparams; k++) {
        verify_value(v, block->params[k]);
        define(v, block->params[k]);
    }
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        verify_args(v, node);
        verify_value(v, node);
        verify_inference(v, node);
        verify_symbols(v, node);
        if (node->nblocks)
            verify_region(v, node);
        define(v, node);
        if (node->op == CI_OP_define)
            define_symbol(v, node, node->starts[0]);
    }
    for (int k = 0; k < block->nresults; k++)
        if (!is_in_scope(v, block->results[k]))
            ci_fail(v->g->ctx, CI_ERR_INTERNAL, "graph %s: result %d of a block is not made in it",
                    v->g->name, k);
}

void
ci_graph_verify(CiGraph *g)
{
    Verifier v = {g, ci_map_new(g->ctx)};
    for (int k = 0; k < g->ninputs; k++) {
        if (g->inputs[k]->index != k || g->inputs[k]->op != CI_OP_input)
            fail_node(&v, g->inputs[k], "an input has another number than its place");
        verify_value(&v, g->inputs[k]);
        define(&v, g->inputs[k]);
    }
    verify_block(&v, g->body);
    for (int k = 0; k < g->nwrites; k++) {
        const CiWrite *write = &g->writes[k];
        if (!is_in_scope(&v, write->value) || !is_in_scope(&v, write->input) ||
            write->input->op != CI_OP_input)
            fail_node(&v, write->value, "a write needs an input and a value of the body");
        if (!is_same_type(write->input, write->value))
            fail_node(&v, write->value, "a write changes dtype or sizes");
    }
}
