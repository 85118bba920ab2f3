/* Regions that are no trees: each block is scheduled by itself, and nothing is fused across its
 * ends. So whatever a block shares with the world around it is read and written by different
 * kernels, and is memory by the ordinary rules. */
#include "schedule/plan.h"

static CiScheduler *
schedule_block(CiScheduler *s, CiItems *items, const CiItem *region)
{
    if (items->count == 0)
        return NULL;
    CiScheduler *inner = CI_NEW(s->ctx, CiScheduler);
    *inner = *s;
    inner->drafts = NULL;
    inner->ndrafts = inner->capdrafts = 0;
    inner->outer = s;
    inner->region = region->region;
    inner->condition = NULL;
    inner->is_in_loop = s->is_in_loop || region->kind != CI_ITEM_if;
    ci_schedule_draft(inner, items);
    return inner;
}

void
ci_add_region(CiScheduler *s, CiDraft *draft, CiItem *item)
{
    CiRegion *region = item->region;
    /* A kernel's own axes are i0, i1, … and j0, j1, …; of the same extent they would be the same
     * symbol. */
    if (region->var && (region->var->name[0] == 'i' || region->var->name[0] == 'j'))
        ci_fail(s->ctx, CI_ERR_UNSUPPORTED,
                "a loop around kernels over %s: the name is one of a kernel's axes",
                region->var->name);
    draft->region = item;
    draft->inner[0] = schedule_block(s, &region->body, item);
    draft->inner[1] = schedule_block(
        s, item->kind == CI_ITEM_while ? &region->condition_items : &region->other, item);
    if (item->kind == CI_ITEM_while && draft->inner[0])
        draft->inner[0]->condition = draft->inner[1];
    const char *why = s->target->has_trees ? ci_why_not_tree(s, draft) : NULL;
    draft->is_tree = s->target->has_trees && !why;
    if (why)
        CI_PUSH(s->ctx, s->kernels->refusals, s->kernels->nrefusals, s->kernels->caprefusals,
                ci_format(s->ctx, "%s %s is no single kernel: %s",
                          region->var                     ? "for"
                          : region->condition_items.count ? "while"
                                                          : "if",
                          region->var ? region->var->name : region->condition->name, why));
}

CiKernel *
ci_finish_region(CiScheduler *s, const CiDraft *draft)
{
    CiKernel *kernel = CI_NEW(s->ctx, CiKernel);
    kernel->region = draft->region->region;
    for (int k = 0; k < 2; k++) {
        if (!draft->inner[k])
            continue;
        ci_schedule_finish(draft->inner[k]);
        kernel->inner[k] = draft->inner[k]->kernels;
    }
    return kernel;
}
