/* Dead code elimination: one backward pass, because users follow their operands. A library call of
 * unknown kind stays (it may raise, or draw from a generator), as do a define and a check (they may
 * fail), with everything that their arguments need. A region is kept or removed as a whole.
 *
 * needs: a valid graph. keeps: results, writes, effects. */
#include "passes/pass.h"

static bool
has_effect(void *arg, const CiNode *node)
{
    (void)arg;
    return ci_op_has(node->op, CI_FACT_effect);
}

static bool
is_needed(const CiNode *node)
{
    bool needed = node->is_live || has_effect(NULL, node);
    for (int b = 0; !needed && b < node->nblocks; b++)
        needed = ci_block_has(node->blocks[b], has_effect, NULL);
    return needed;
}

static void
clear(void *arg, CiNode *node)
{
    (void)arg;
    node->is_live = false;
}

static void
sweep_block(CiBlock *block)
{
    for (int k = 0; k < block->nresults; k++)
        block->results[k]->is_live = true;
    for (int k = block->nnodes - 1; k >= 0; k--) {
        CiNode *node = block->nodes[k];
        if (!is_needed(node))
            continue;
        node->is_live = true;
        for (int b = node->nblocks - 1; b >= 0; b--)
            sweep_block(node->blocks[b]);
        for (int i = 0; i < node->nargs; i++)
            node->args[i]->is_live = true;
    }
    int kept = 0;
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        bool is_of_live = node->op == CI_OP_result && node->args[0]->is_live;
        if (node->is_live || is_of_live) /* results go with their region */
            block->nodes[kept++] = block->nodes[k];
    }
    block->nnodes = kept;
}

void
ci_pass_dce(CiGraph *g)
{
    ci_block_visit(g->body, clear, NULL);
    for (int k = 0; k < g->ninputs; k++)
        g->inputs[k]->is_live = false;
    for (int k = 0; k < g->nwrites; k++)
        g->writes[k].value->is_live = true;
    sweep_block(g->body);
}
