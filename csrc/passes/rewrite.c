/* One forward sweep: when a node is reached its operands have been rewritten, so a chain collapses
 * as it is visited, and the cost is nodes times the few rules of their op. */
#include "passes/rewrite.h"

#include "passes/identity.h"

/* A rule set that does not move one way would run forever; this many steps at one node say so. */
#define MAX_STEPS 100

typedef struct Compiled {
    const CiRule *rule;
    CiPattern *pattern; /* NULL: the rule's function */
    struct Compiled *next;
} Compiled;

typedef struct Rewriter {
    CiGraph *g;
    Compiled *by_op[CI_OP_COUNT];
} Rewriter;

static void
enter(Rewriter *r, CiOp op, const CiRule *rule, CiPattern *pattern)
{
    Compiled *compiled = CI_NEW(r->g->ctx, Compiled);
    *compiled = (Compiled){rule, pattern, r->by_op[op]};
    r->by_op[op] = compiled;
}

static void
compile(Rewriter *r, const CiRule *rules, int nrules)
{
    for (int k = nrules - 1; k >= 0; k--) {
        const CiRule *rule = &rules[k];
        CiPattern *pattern = rule->pattern ? ci_pattern_compile(r->g->ctx, rule) : NULL;
        CiOp op = pattern ? ci_pattern_root(pattern) : rule->op;
        enter(r, op, rule, pattern);
        if (rule->is_users && ci_op_by_numpy(op) != CI_OP_none)
            enter(r, ci_op_by_numpy(op), rule, pattern);
    }
}

/* A value in memory of its own may be laid out as what it replaces was. */
static CiNode *
fit(CiGraph *g, const CiNode *node, CiNode *replacement)
{
    bool is_same = replacement->rank == node->rank;
    for (int k = 0; is_same && k < node->rank; k++)
        is_same = ci_sym_known_eq(g->sym, replacement->sizes[k], node->sizes[k]);
    if (!is_same)
        replacement = ci_graph_expand(g, replacement, node->rank, node->sizes, node->loc);
    if (!ci_identity_is_unclaimed(ci_node_info(g, replacement)))
        return replacement;
    if (!ci_node_is_view(replacement) && !ci_node_is_view(node))
        replacement->order = node->order;
    ci_node_set_kind(replacement, node->kind);
    return replacement;
}

static CiNode *rewrite_node(Rewriter *r, CiNode *node);

/* Rewrites the nodes appended since `from`, except the root, which is rewritten next. */
static void
rewrite_new(Rewriter *r, CiBlock *block, int from, CiNode *root)
{
    int nnew = block->nnodes - from;
    CiNode **fresh = CI_NEW_ARRAY(r->g->ctx, CiNode *, nnew + 1);
    for (int k = 0; k < nnew; k++)
        fresh[k] = block->nodes[from + k];
    block->nnodes = from;
    for (int k = 0; k < nnew; k++) {
        ci_identity_forward_args(fresh[k]);
        for (int i = 0; i < fresh[k]->nargs; i++)
            ci_node_info(r->g, fresh[k]->args[i])->uses++;
        CiNode *better = fresh[k] == root ? fresh[k] : rewrite_node(r, fresh[k]);
        if (better == fresh[k])
            CI_PUSH(r->g->ctx, block->nodes, block->nnodes, block->capnodes, fresh[k]);
    }
}

/* One step: the first rule that matches and may be used, or NULL. */
static CiNode *
step(Rewriter *r, CiNode *node)
{
    CiGraph *g = r->g;
    CiBlock *block = g->at;
    for (const Compiled *c = r->by_op[node->op]; c; c = c->next) {
        int from = block->nnodes;
        CiNode *replacement =
            c->pattern ? ci_pattern_apply(g, c->pattern, node) : c->rule->function(g, node);
        if (replacement && replacement != node) {
            for (int k = from; k < block->nnodes; k++)
                ci_node_info(g, block->nodes[k]);
            replacement = fit(g, node, replacement);
            if (!ci_identity_why_not_replace(g, node, replacement)) {
                ci_identity_replace(g, node, replacement);
                rewrite_new(r, block, from, replacement);
                return replacement;
            }
        }
        block->nnodes = from;
    }
    return NULL;
}

static bool
pop_if_last(CiBlock *block, const CiNode *node)
{
    bool is_last = block->nnodes && block->nodes[block->nnodes - 1] == node;
    block->nnodes -= is_last;
    return is_last;
}

/* The node's final replacement, or the node itself. A replacement has been added to the block. */
static CiNode *
rewrite_node(Rewriter *r, CiNode *node)
{
    CiNode *here = node;
    for (int steps = 0;; steps++) {
        bool was_last = here != node && pop_if_last(r->g->at, here);
        CiNode *next = steps < MAX_STEPS ? step(r, here) : NULL;
        CI_REQUIRE(r->g->ctx, steps < MAX_STEPS);
        if (!next) {
            if (was_last)
                CI_PUSH(r->g->ctx, r->g->at->nodes, r->g->at->nnodes, r->g->at->capnodes, here);
            return here;
        }
        if (!ci_node_info(r->g, next)->is_new)
            return next;
        here = next;
    }
}

static void
sweep(Rewriter *r, CiBlock *block)
{
    CiBlock *before = ci_graph_enter(r->g, block);
    CiNode **nodes = block->nodes;
    int nnodes = block->nnodes;
    block->nodes = CI_NEW_ARRAY(r->g->ctx, CiNode *, nnodes + 1);
    block->capnodes = nnodes + 1;
    block->nnodes = 0;
    for (int k = 0; k < nnodes; k++) {
        ci_identity_forward_args(nodes[k]);
        for (int b = 0; b < nodes[k]->nblocks; b++)
            sweep(r, nodes[k]->blocks[b]);
        if (rewrite_node(r, nodes[k]) == nodes[k])
            CI_PUSH(r->g->ctx, block->nodes, block->nnodes, block->capnodes, nodes[k]);
    }
    for (int k = 0; k < block->nresults; k++)
        block->results[k] = ci_identity_forward(block->results[k]);
    ci_graph_enter(r->g, before);
}

void
ci_rewrite(CiGraph *g, const CiRule *rules, int nrules)
{
    Rewriter *r = CI_NEW(g->ctx, Rewriter);
    r->g = g;
    ci_identity_mark(g);
    compile(r, rules, nrules);
    sweep(r, g->body);
    ci_identity_forward_ends(g);
}
