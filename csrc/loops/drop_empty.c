/* Removes nests that store nothing, exchanges of buffers without elements, and loops without a body:
 * arrays without elements need no loop, and a GPU would divide by their sizes. */
#include "loops/loops.h"

static bool
stores_nothing(const CiNest *nest)
{
    for (int k = 0; k < nest->naxes; k++) {
        if (nest->axes[k].kind != CI_AXIS_reduce && ci_expr_equals_const(nest->axes[k].extent, 0))
            return true;
    }
    return false;
}

static bool
does_nothing(const CiItem *item)
{
    if (item->nest)
        return stores_nothing(item->nest);
    return item->kind == CI_ITEM_for && !item->region->body.count && !item->region->nswaps;
}

static bool
is_empty(const CiBuffer *buffer)
{
    for (int d = 0; d < buffer->rank; d++)
        if (ci_expr_equals_const(buffer->sizes[d], 0))
            return true;
    return false;
}

static void
drop_swaps(CiRegion *region)
{
    int count = 0;
    for (int k = 0; k < region->nswaps; k += 2) {
        if (is_empty(region->swaps[k]))
            continue;
        region->swaps[count++] = region->swaps[k];
        region->swaps[count++] = region->swaps[k + 1];
    }
    region->nswaps = count;
}

/* Regions inside have been visited. */
void
ci_loops_drop_empty(const CiLoopRewriter *r, CiItems *items)
{
    int count = 0;
    (void)r;
    for (int k = 0; k < items->count; k++) {
        if (items->items[k].region)
            drop_swaps(items->items[k].region);
        if (!does_nothing(&items->items[k]))
            items->items[count++] = items->items[k];
    }
    items->count = count;
}
