/* Uses of buffers in items and in the regions inside them: how often each buffer is read and
 * written, and its first access. */
#include "loops/loops.h"

static void
count_nest(const CiNest *nest, int *nreaders, int *nwriters)
{
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
        ++(at.load ? nreaders : nwriters)[at.buffer->id];
    nreaders[nest->target->id] += nest->is_combined;
    if (ci_nest_count(nest))
        nwriters[ci_nest_count(nest)->id]++;
}

static void
count_region(const CiRegion *region, int *nreaders, int *nwriters)
{
    if (region->condition)
        nreaders[region->condition->id]++;
    for (int k = 0; k < region->nswaps; k++) {
        nreaders[region->swaps[k]->id]++;
        nwriters[region->swaps[k]->id]++;
    }
    ci_count_uses(&region->condition_items, nreaders, nwriters);
    ci_count_uses(&region->body, nreaders, nwriters);
    ci_count_uses(&region->other, nreaders, nwriters);
}

void
ci_count_uses(const CiItems *items, int *nreaders, int *nwriters)
{
    for (int k = 0; k < items->count; k++) {
        const CiItem *item = &items->items[k];
        if (item->nest)
            count_nest(item->nest, nreaders, nwriters);
        for (int a = 0; item->ext && a < item->ext->noperands; a++)
            nreaders[item->ext->operands[a]->id]++;
        if (item->ext)
            nwriters[item->ext->result->id]++;
        if (item->check)
            nreaders[item->check->buffer->id]++;
        if (item->region)
            count_region(item->region, nreaders, nwriters);
    }
}

void
ci_count_all_uses(const CiLoops *loops, int **nreaders, int **nwriters)
{
    *nreaders = CI_NEW_ARRAY(loops->ctx, int, loops->nbuffers + 1);
    *nwriters = CI_NEW_ARRAY(loops->ctx, int, loops->nbuffers + 1);
    ci_count_uses(&loops->items, *nreaders, *nwriters);
    for (int k = 0; k < loops->nresults; k++)
        (*nreaders)[loops->results[k].buffer->id]++;
}

/* ---- what is first ---- */

static CiFirst
first_in_nest(const CiNest *nest, const CiBuffer *buffer)
{
    if (ci_nest_loads(nest, buffer))
        return CI_FIRST_read;
    if (ci_nest_count(nest) == buffer)
        return CI_FIRST_store;
    if (nest->target != buffer)
        return CI_FIRST_nothing;
    return nest->is_combined ? CI_FIRST_read : CI_FIRST_store;
}

static CiFirst
first_in_extern(const CiExternItem *ext, const CiBuffer *buffer)
{
    for (int k = 0; k < ext->noperands; k++) {
        if (ext->operands[k] == buffer)
            return CI_FIRST_read;
    }
    bool is_stored = ext->result == buffer && ci_extern_is_whole(ext, ext->noperands);
    return is_stored ? CI_FIRST_store : CI_FIRST_nothing;
}

static CiFirst
first_in_region(const CiItem *item, const CiBuffer *buffer)
{
    const CiRegion *region = item->region;
    CiFirst first = ci_first_use(&region->condition_items, buffer); /* they run at least once */
    if (first != CI_FIRST_nothing)
        return first;
    if (region->condition == buffer)
        return CI_FIRST_read;
    CiFirst body = ci_first_use(&region->body, buffer),
            other = ci_first_use(&region->other, buffer);
    for (int k = 0; k < region->nswaps; k++) {
        if (region->swaps[k] == buffer && body == CI_FIRST_nothing)
            body = CI_FIRST_read;
    }
    if (body == CI_FIRST_read || other == CI_FIRST_read)
        return CI_FIRST_read;
    bool is_certain = item->kind == CI_ITEM_for  ? region->extent->low > 0
                      : item->kind == CI_ITEM_if ? other == CI_FIRST_store
                                                 : false;
    return is_certain ? body : CI_FIRST_nothing;
}

CiFirst
ci_first_use(const CiItems *items, const CiBuffer *buffer)
{
    CiFirst first = CI_FIRST_nothing;
    for (int k = 0; k < items->count && first == CI_FIRST_nothing; k++) {
        const CiItem *item = &items->items[k];
        if (item->nest)
            first = first_in_nest(item->nest, buffer);
        else if (item->ext)
            first = first_in_extern(item->ext, buffer);
        else if (item->check)
            first = item->check->buffer == buffer ? CI_FIRST_read : CI_FIRST_nothing;
        else
            first = first_in_region(item, buffer);
    }
    return first;
}
