/* What C-like targets share of trees: checks, and buffers that exchange their memory.
 *
 * Such buffers are pointers that do; behind the tree what they hold is moved to where the world
 * outside, which has not seen the exchange, looks for it. */
#include "target/emit.h"

const char *
ci_emit_check(CiEmitter *e, CiText *out, const CiCheckItem *check, const char *value)
{
    CiText test = ci_text_new(e->ctx);
    if (!check->symbol)
        return ci_format(e->ctx, "!%s", value);
    const char *name = ci_emit_index_text(e, check->symbol);
    ci_text_line(out, "const int64_t %s = %s;", name, value);
    if (check->symbol->low != CI_MINUS_INFINITY)
        ci_text_add(&test, "%s < %lld", name, (long long)check->symbol->low);
    if (check->limit->low != CI_INFINITY)
        ci_text_add(&test, "%s%s >= %s", test.length ? " || " : "", name,
                    ci_emit_index_text(e, check->limit));
    return test.length ? test.data : NULL;
}

void
ci_emit_swaps(CiEmitter *e, CiText *out, const CiRegion *region)
{
    for (int k = 0; k < region->nswaps; k += 2) {
        const char *a = ci_emit_buffer(e, region->swaps[k]),
                   *b = ci_emit_buffer(e, region->swaps[k + 1]),
                   *type = ci_emit_storage(region->swaps[k]->dtype);
        ci_text_line(out, "%s *const swap%d = %s;", type, k, a);
        ci_text_line(out, "%s = %s;", a, b);
        ci_text_line(out, "%s = swap%d;", b, k);
    }
}

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
