/* Whether a graph's results have NumPy's own bits: then it makes no difference who answers a call. */
#include "graph/graph.h"

static bool
is_exact(const CiNode *node)
{
    CiDtype operand = node->nargs > 0 ? node->args[0]->dtype : node->dtype;
    if (!node->pairwise && !ci_op_is_exact(node->op, operand))
        return false;
    for (int k = 0; k < node->nblocks; k++)
        if (!cx_block_is_exact(node->blocks[k]))
            return false;
    return true;
}

bool
cx_block_is_exact(const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++)
        if (!is_exact(block->nodes[k]))
            return false;
    return true;
}
