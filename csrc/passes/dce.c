/* Dead code elimination: one backward pass, because users follow their operands. A library call of
 * unknown kind stays (it may raise, or draw from a generator), as do a define and a check (they may
 * fail), with everything that their arguments need. A region is kept or removed as a whole.
 *
 * needs: a valid graph. keeps: results, writes, effects. */
#include "passes/pass.h"

static bool
block_has_effect(const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        if (ci_op_has(block->nodes[k]->op, CI_FACT_effect))
            return true;
        for (int b = 0; b < block->nodes[k]->nblocks; b++)
            if (block_has_effect(block->nodes[k]->blocks[b]))
                return true;
    }
    return false;
}

static bool
is_needed(const CiNode *node)
{
    bool needed = node->is_live || ci_op_has(node->op, CI_FACT_effect);
    for (int b = 0; !needed && b < node->nblocks; b++)
        needed = block_has_effect(node->blocks[b]);
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
