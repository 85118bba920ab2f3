/* Decides whether the results of a graph have NumPy's bits. If they do, a call may run compiled
 * or in NumPy. */
#include "graph/graph.h"

/* True if the sign of a zero may differ: for 0 and -0, NumPy's maximum of narrow floats returns
 * the first, and for whole arrays either. */
static bool
may_choose_a_zero(CiOp op, CiDtype dtype)
{
    CiOp combine = ci_op_combine(op);
    bool is_fold = combine != CI_OP_none;

    op = is_fold ? combine : op;
    return (is_fold || ci_dtype_is_narrow(dtype)) && !ci_dtype_is_integral(dtype) &&
           (op == CI_OP_maximum || op == CI_OP_minimum || op == CI_OP_fmax || op == CI_OP_fmin);
}

/* True for a product of complex numbers that Python or NumPy multiply as programs do: without an FMA. */
static bool
is_plain_product(const CxState *state, const CiNode *node, CiDtype operand)
{
    return node->op == CI_OP_multiply && node->kind != CI_KIND_array &&
           ci_dtype_class(operand) == CI_CLASS_complex && state->has_plain_products;
}

static bool
is_exact(const CxState *state, const CiNode *node)
{
    CiDtype operand = node->nargs > 0 ? node->args[0]->dtype : node->dtype;
    if (!node->pairwise && !ci_op_is_exact(node->op, operand) && !is_plain_product(state, node, operand))
        return false;
    if (may_choose_a_zero(node->op, operand))
        return false;
    for (int k = 0; k < node->nblocks; k++)
        if (!cx_block_is_exact(state, node->blocks[k]))
            return false;
    return true;
}

bool
cx_block_is_exact(const CxState *state, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++)
        if (!is_exact(state, block->nodes[k]))
            return false;
    return true;
}

/* Products and powers of scalars use the C library's arithmetic, in NumPy and in programs. */
bool
cx_needs_routine(const CxTracer *t, CiOp op, CiDtype operand, CiKind kind)
{
    bool is_plain = op == CI_OP_scalar_power ||
                    (kind != CI_KIND_array && ci_op_kind(op) == CI_OPKIND_pointwise);

    return strcmp(t->options.numerics, "exact") == 0 && !is_plain &&
           (!ci_op_is_exact(op, operand) || may_choose_a_zero(op, operand));
}

bool
cx_squares_are_products(const CxTracer *t)
{
    return t->nblocks > 0 && strcmp(t->options.numerics, "exact") != 0;
}
