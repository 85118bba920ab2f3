/* A reduction over some axes continues from another one over fewer of them, whose results are
 * partial results of its own:
 *
 *   %1 = sum(in0, axes=[1])            ->  %1 = sum(in0, axes=[1])
 *   %2 = sum(in0, axes=[0, 1])             %2 = sum(%1, axes=[0])
 *
 * The array is then read once. Not in NumPy's order, and not in halves, whose partial results would
 * be rounded. */
#include "lower/lowering.h"

static bool
has_partials(const CiNode *node)
{
    return ci_op_kind(node->op) == CI_OPKIND_reduce && node->naxes > 1 &&
           (!ci_dtype_is_float(node->dtype) || ci_dtype_size(node->dtype) >= 4);
}

static bool
reduces(const CiNode *node, int axis)
{
    for (int k = 0; k < node->naxes; k++)
        if (node->axes[k] == axis)
            return true;
    return false;
}

static bool
is_partial(const CiNode *node, const CiNode *whole)
{
    bool is = node->op == whole->op && node->dtype == whole->dtype && node->args[0] == whole->args[0] &&
              node->naxes && node->naxes < whole->naxes;
    for (int k = 0; is && k < node->naxes; k++)
        is = reduces(whole, node->axes[k]);
    return is;
}

/* The axes that are left have other numbers in the results. */
static void
continue_from(CiContext *ctx, CiNode *node, CiNode *partial)
{
    int *axes = CI_NEW_ARRAY(ctx, int, node->naxes + 1), naxes = 0, number = 0;
    for (int axis = 0; axis < node->args[0]->rank; axis++) {
        if (reduces(partial, axis))
            continue;
        if (reduces(node, axis))
            axes[naxes++] = number;
        number++;
    }
    node->args[0] = partial;
    node->axes = axes;
    node->naxes = naxes;
    node->pairwise = NULL; /* an order of more axes */
}

void
ci_lowering_partial_results(CiContext *ctx, CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        for (int b = 0; b < node->nblocks; b++)
            ci_lowering_partial_results(ctx, node->blocks[b]);
        for (int j = k - 1; j >= 0 && has_partials(node); j--)
            if (is_partial(block->nodes[j], node))
                continue_from(ctx, node, block->nodes[j]);
    }
}
