/* Removes nests that store nothing, and loops without a body: arrays without elements need no loop, and a
 * GPU would divide by their sizes. */
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

/* Regions inside have been visited. */
static void
drop(const CiLoopRewriter *r, CiItems *items)
{
    int count = 0;
    (void)r;
    for (int k = 0; k < items->count; k++)
        if (!does_nothing(&items->items[k]))
            items->items[count++] = items->items[k];
    items->count = count;
}

void
ci_loops_drop_empty(const CiLoopRewriter *r)
{
    ci_visit_blocks(r, &r->loops->items, NULL, drop);
}
