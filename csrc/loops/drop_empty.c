/* Removes nests that store nothing, exchanges of buffers without elements, and loops without a body:
 * arrays without elements need no loop, and a GPU would divide by their sizes. Then it removes buffers that
 * nothing uses, because their sizes may depend on the variable of a loop that was removed. */
#include "loops/loops.h"

/* True if the size is 0, by its value or by the range of its symbol. */
static bool
is_zero(const CiLoopRewriter *r, const CiExpr *size)
{
    return ci_sym_known_le(r->sym, size, ci_expr_const(r->sym, 0));
}

static bool
stores_nothing(const CiLoopRewriter *r, const CiNest *nest)
{
    for (int k = 0; k < nest->naxes; k++)
        if (nest->axes[k].kind != CI_AXIS_reduce && is_zero(r, nest->axes[k].extent))
            return true;
    return false;
}

static bool
does_nothing(const CiLoopRewriter *r, const CiItem *item)
{
    if (item->nest)
        return stores_nothing(r, item->nest);
    return item->kind == CI_ITEM_for && !item->region->body.count && !item->region->nswaps;
}

static bool
is_empty(const CiLoopRewriter *r, const CiBuffer *buffer)
{
    for (int d = 0; d < buffer->rank; d++)
        if (is_zero(r, buffer->sizes[d]))
            return true;
    return false;
}

static void
drop_swaps(const CiLoopRewriter *r, CiRegion *region)
{
    int count = 0;
    for (int k = 0; k < region->nswaps; k += 2) {
        if (is_empty(r, region->swaps[k]))
            continue;
        region->swaps[count++] = region->swaps[k];
        region->swaps[count++] = region->swaps[k + 1];
    }
    region->nswaps = count;
}

static void
drop_buffers(CiLoops *loops)
{
    int *nreaders, *nwriters;
    bool *is_used = CI_NEW_ARRAY(loops->ctx, bool, loops->nbuffers + 1);
    ci_count_all_uses(loops, &nreaders, &nwriters);
    for (int k = 0; k < loops->nbuffers; k++)
        is_used[k] = nreaders[k] || nwriters[k];
    ci_loops_keep_buffers(loops, is_used);
}

/* Regions inside have been visited. */
void
ci_loops_drop_empty(const CiLoopRewriter *r, CiItems *items)
{
    int count = 0;
    for (int k = 0; k < items->count; k++) {
        if (items->items[k].region)
            drop_swaps(r, items->items[k].region);
        if (!does_nothing(r, &items->items[k]))
            items->items[count++] = items->items[k];
    }
    items->count = count;
    if (!r->scope)
        drop_buffers(r->loops);
}
