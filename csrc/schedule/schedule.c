/* The scheduler on one screen. */
#include "schedule/plan.h"

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
            ci_order_axes(s, items->items[k].nest);
            CI_PUSH(s->ctx, draft.nests, draft.nnests, draft.capnests,
                    ci_draft_nest(s, items->items[k].nest));
        } else {
            ci_add_region(s, &draft, &items->items[k]);
        }
        CI_PUSH(s->ctx, s->drafts, s->ndrafts, s->capdrafts, draft);
    }
}

void
ci_add_locs(CiScheduler *s, CiKernel *kernel, const CiDraft *draft)
{
    for (int n = 0; n < draft->nnests; n++) {
        const CiNest *nest = draft->nests[n].nest;
        for (int k = 0; k < nest->nlocs && kernel->nlocs < 16; k++) {
            bool is_known = false;
            for (int m = 0; m < kernel->nlocs; m++)
                is_known |= kernel->locs[m].line == nest->locs[k].line &&
                            kernel->locs[m].file == nest->locs[k].file;
            if (!is_known)
                CI_PUSH(s->ctx, kernel->locs, kernel->nlocs, kernel->caplocs, nest->locs[k]);
        }
    }
}

CiKernel *
ci_plan_draft(CiScheduler *s, CiDraft *draft)
{
    const char *why = NULL;
    if (!draft->kernel)
        draft->kernel = ci_plan_kernel(s, draft->nnests, draft->nests, &why);
    if (!draft->kernel)
        ci_fail(s->ctx, CI_ERR_INTERNAL, "a nest has no kernel: %s", why);
    return draft->kernel;
}

static void
finish_kernel(CiScheduler *s, int number)
{
    CiDraft *draft = &s->drafts[number];
    int id = s->totals->nkernels++;
    if (draft->is_tree)
        draft->kernel = ci_finish_tree(s, draft);
    else if (draft->region)
        draft->kernel = ci_finish_region(s, draft);
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
    kernel->name = ci_format(s->ctx, "k%d", kernel->id);
    CI_PUSH(s->ctx, s->kernels->kernels, s->kernels->nkernels, s->kernels->capkernels, kernel);
    if (draft->ext || draft->region || draft->check)
        return;
    ci_add_locs(s, kernel, draft);
    ci_label_axes(s, kernel);
    ci_place_buffers(s, number);
}

void
ci_schedule_draft(CiScheduler *s, CiItems *items)
{
    s->kernels = CI_NEW(s->ctx, CiKernels);
    s->kernels->loops = s->loops;
    s->kernels->target = s->target;
    add_items(s, items);
    if (s->options->fusion)
        ci_fuse(s);
}

void
ci_schedule_finish(CiScheduler *s)
{
    for (int k = 0; k < s->ndrafts; k++)
        finish_kernel(s, k);
}

static void
count_uses(CiScheduler *s)
{
    CiLoops *loops = s->loops;
    s->totals->nreaders = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1);
    s->totals->nwriters = CI_NEW_ARRAY(s->ctx, int, loops->nbuffers + 1);
    ci_count_uses(&loops->items, s->totals->nreaders, s->totals->nwriters);
    for (int k = 0; k < loops->nresults; k++)
        s->totals->nreaders[loops->results[k].buffer->id]++;
}

/* Loops are turned from the outside in; then elements are held, where a loop around has a place for
 * what holds them. */
static void
prepare_loops(CiScheduler *s, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        CiItem *item = &items->items[k];
        if (!item->region)
            continue;
        ci_interchange(s, item);
        ci_make_rows(s, item);
        CiScheduler inner = *s;
        inner.outer = s;
        inner.region = item->region;
        prepare_loops(&inner, &item->region->body);
        prepare_loops(&inner, &item->region->other);
        prepare_loops(&inner, &item->region->condition_items);
    }
    if (s->region)
        ci_hold_elements(s, items);
}

CiKernels *
ci_schedule(CiLoops *loops, const CiTarget *target, const CiScheduleOptions *options)
{
    CiSchedulerTotals totals = {0};
    CiScheduler s = {.ctx = loops->ctx,
                     .sym = loops->sym,
                     .loops = loops,
                     .target = target,
                     .options = options,
                     .totals = &totals};
    count_uses(&s);
    if (target->has_trees) {
        prepare_loops(&s, &loops->items);
        count_uses(&s);
    }
    ci_schedule_draft(&s, &loops->items);
    ci_find_readers(&s);
    ci_schedule_finish(&s);
    return s.kernels;
}
