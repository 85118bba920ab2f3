/* Drafts: what will be kernels, and the kernels they become, in program order.
 *
 * A region that is no tree has its blocks scheduled by themselves, and nothing is fused across
 * their ends. So whatever a block shares with the world around it is read and written by different
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

static void
add_region(CiScheduler *s, CiDraft *draft, CiItem *item)
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
    bool may_be_tree = s->target->has_trees && !region->is_parallel;
    const char *why = may_be_tree ? ci_why_not_tree(s, draft) : NULL;
    draft->is_tree = may_be_tree && !why;
    if (why)
        CI_PUSH(s->ctx, s->kernels->refusals, s->kernels->nrefusals, s->kernels->caprefusals,
                ci_format(s->ctx, "%s %s is no single kernel: %s",
                          region->var                     ? "for"
                          : region->kind == CI_ITEM_while ? "while"
                                                          : "if",
                          region->var ? region->var->name : region->condition->name, why));
}

static CiKernel *
finish_region(CiScheduler *s, const CiDraft *draft)
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

static void
add_items(CiScheduler *s, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        CiDraft draft = {0};
        if (items->items[k].kind == CI_ITEM_extern)
            draft.ext = items->items[k].ext;
        else if (items->items[k].check)
            draft.check = items->items[k].check;
        else if (items->items[k].kind == CI_ITEM_nest) {
            ci_factor_axes(s, items->items[k].nest);
            ci_order_axes(s, items->items[k].nest);
            CI_PUSH(s->ctx, draft.nests, draft.nnests, draft.capnests,
                    ci_draft_nest(s, items->items[k].nest));
        } else {
            add_region(s, &draft, &items->items[k]);
        }
        CI_PUSH(s->ctx, s->drafts, s->ndrafts, s->capdrafts, draft);
    }
}

void
ci_schedule_draft(CiScheduler *s, CiItems *items)
{
    s->kernels = CI_NEW(s->ctx, CiKernels);
    s->kernels->loops = s->loops;
    s->kernels->target = s->target;
    add_items(s, items);
    if (s->options->fusion) {
        ci_fuse(s);
        ci_combine(s);
    }
}

static void
finish_kernel(CiScheduler *s, int number)
{
    CiDraft *draft = &s->drafts[number];
    int id = s->totals->nkernels++;
    if (draft->is_tree)
        draft->kernel = ci_finish_tree(s, draft);
    else if (draft->region)
        draft->kernel = finish_region(s, draft);
    else if (draft->check) {
        draft->kernel = CI_NEW(s->ctx, CiKernel);
        draft->kernel->check = draft->check;
    } else if (draft->ext) {
        draft->kernel = CI_NEW(s->ctx, CiKernel);
        draft->kernel->ext = draft->ext;
        CI_PUSH(s->ctx, draft->kernel->locs, draft->kernel->nlocs, draft->kernel->caplocs,
                draft->ext->loc);
    } else
        (void)ci_plan_draft(s, draft);
    CiKernel *kernel = draft->kernel;
    kernel->id = id;
    kernel->device = draft->ext      ? draft->ext->device
                     : draft->region ? draft->region->region->device
                     : draft->nnests ? draft->nests[0].nest->device
                                     : 0;
    kernel->name = ci_format(s->ctx, "k%d", kernel->id);
    CI_PUSH(s->ctx, s->kernels->kernels, s->kernels->nkernels, s->kernels->capkernels, kernel);
    if (draft->ext || draft->region || draft->check)
        return;
    ci_add_locs(s, kernel, draft);
    ci_label_axes(s, kernel);
    ci_place_buffers(s, number);
    ci_find_short_rows(s, kernel);
}

void
ci_schedule_finish(CiScheduler *s)
{
    for (int k = 0; k < s->ndrafts; k++)
        finish_kernel(s, k);
}
