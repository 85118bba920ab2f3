/* Swapped buffers of trees, for C-like targets.
 *
 * Such buffers are pointers that are exchanged. After the tree their contents are moved to the
 * original memory, because callers have not seen the exchange. */
#include "target/emit.h"

bool
ci_tree_swaps(const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if ((node->region && node->region->nswaps) || ci_tree_swaps(&node->body) ||
            ci_tree_swaps(&node->other))
            return true;
    }
    return false;
}

static void
join_groups(const CiKernel *kernel, const CiLoopTree *tree, int *groups)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        for (int n = 0; node->region && n < node->region->nswaps; n += 2) {
            int a = groups[ci_kernel_buffer_position(kernel, node->region->swaps[n])],
                b = groups[ci_kernel_buffer_position(kernel, node->region->swaps[n + 1])];
            for (int j = 0; j < kernel->nbuffers; j++)
                if (groups[j] == a || groups[j] == b)
                    groups[j] = a < b ? a : b;
        }
        join_groups(kernel, &node->body, groups);
        join_groups(kernel, &node->other, groups);
    }
}

const int *
ci_swap_groups(CiContext *ctx, const CiKernel *kernel)
{
    int *groups = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1),
        *sizes = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        groups[k] = k;
    join_groups(kernel, ci_kernel_tree(kernel), groups);
    for (int k = 0; k < kernel->nbuffers; k++)
        sizes[groups[k]]++;
    for (int k = 0; k < kernel->nbuffers; k++)
        if (sizes[groups[k]] == 1)
            groups[k] = -1;
    return groups;
}
