/* Whether a graph's results have NumPy's own bits: then it makes no difference who answers a call. */
#include "graph/graph.h"

/* What is done of complex numbers with each part by itself. */
static bool
is_by_parts(CiOp op)
{
    return op == CI_OP_equal || op == CI_OP_not_equal || op == CI_OP_real || op == CI_OP_imag ||
           op == CI_OP_add || op == CI_OP_subtract;
}

static bool
is_exact(const CiNode *node)
{
    CiDtype operand = node->nargs > 0 ? node->args[0]->dtype : node->dtype;
    CiClass class = ci_dtype_class(operand);

    switch (ci_op_kind(node->op)) {
    case CI_OPKIND_math:
    case CI_OPKIND_composite:
    case CI_OPKIND_scan:
        return class != CI_CLASS_float && class != CI_CLASS_complex;
    case CI_OPKIND_reduce:
        return ci_op_is_order_free(node->op, operand);
    case CI_OPKIND_pointwise:
        return class != CI_CLASS_complex || is_by_parts(node->op);
    default:
        break;
    }
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
