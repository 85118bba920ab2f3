/* Fusions, in program order: groups of nests, library calls, checks and regions; and the kernels
 * that are made of them.
 *
 * A region that is no tree has its blocks scheduled by themselves, and nothing is fused across
 * their ends. So values that a block shares with the code around it are read and written by different
 * kernels, and are in memory by the ordinary rules. */
#include "schedule/plan.h"

static CiScheduler *
schedule_block(CiScheduler *s, CiItems *items, const CiItem *region)
{
    if (items->count == 0)
        return NULL;
    CiScheduler *inner = CI_NEW(s->ctx, CiScheduler);
    *inner = *s;
    inner->fusions = NULL;
    inner->nfusions = inner->capfusions = 0;
    inner->outer = s;
    CiLoopScope *scope = CI_NEW(s->ctx, CiLoopScope);
    *scope = (CiLoopScope){region->region, s->scope};
    inner->scope = scope;
    inner->condition = NULL;
    inner->is_in_loop = s->is_in_loop || region->kind != CI_ITEM_if;
    ci_schedule_fusion(inner, items);
    return inner;
}

static void
add_region(CiScheduler *s, CiFusion *fusion, CiItem *item)
{
    CiRegion *region = item->region;
    /* A kernel's own axes are i0, i1, … and j0, j1, …; of the same extent they would be the same
     * symbol. */
    if (region->var && (region->var->name[0] == 'i' || region->var->name[0] == 'j'))
        ci_fail(s->ctx, CI_ERR_UNSUPPORTED,
                "a loop around kernels over %s: the name is one of a kernel's axes",
                region->var->name);
    fusion->region = item;
    fusion->inner[0] = schedule_block(s, &region->body, item);
    fusion->inner[1] = schedule_block(
        s, item->kind == CI_ITEM_while ? &region->condition_items : &region->other, item);
    if (item->kind == CI_ITEM_while && fusion->inner[0])
        fusion->inner[0]->condition = fusion->inner[1];
    bool may_be_tree = s->machine->has_trees && !region->is_parallel;
    const char *why = may_be_tree ? ci_why_not_tree(s, fusion) : NULL;
    fusion->is_tree = may_be_tree && !why;
    if (why)
        CI_PUSH(s->ctx, s->kernels->refusals, s->kernels->nrefusals, s->kernels->caprefusals,
                ci_format(s->ctx, "%s %s is no single kernel: %s",
                          region->var                     ? "for"
                          : region->kind == CI_ITEM_while ? "while"
                                                          : "if",
                          region->var ? region->var->name : region->condition->name, why));
}

static CiKernel *
finish_region(CiScheduler *s, const CiFusion *fusion)
{
    CiKernel *kernel = CI_NEW(s->ctx, CiKernel);
    kernel->region = fusion->region->region;
    for (int k = 0; k < 2; k++) {
        if (!fusion->inner[k])
            continue;
        ci_schedule_finish(fusion->inner[k]);
        kernel->inner[k] = fusion->inner[k]->kernels;
    }
    return kernel;
}

static void
add_items(CiScheduler *s, CiItems *items)
{
    for (int k = 0; k < items->count; k++) {
        CiFusion fusion = {0};
        if (items->items[k].kind == CI_ITEM_extern)
            fusion.ext = items->items[k].ext;
        else if (items->items[k].check)
            fusion.check = items->items[k].check;
        else if (items->items[k].kind == CI_ITEM_nest) {
            CI_PUSH(s->ctx, fusion.nests, fusion.nnests, fusion.capnests,
                    ci_fusion_nest(s, items->items[k].nest));
        } else {
            add_region(s, &fusion, &items->items[k]);
        }
        CI_PUSH(s->ctx, s->fusions, s->nfusions, s->capfusions, fusion);
    }
}

void
ci_schedule_fusion(CiScheduler *s, CiItems *items)
{
    s->kernels = CI_NEW(s->ctx, CiKernels);
    s->kernels->loops = s->loops;
    s->kernels->machine = s->machine;
    add_items(s, items);
    if (s->options->fusion) {
        ci_fuse(s);
        ci_fuse_attention(s);
        ci_combine(s);
    }
}

static void
finish_kernel(CiScheduler *s, int number)
{
    CiFusion *fusion = &s->fusions[number];
    int id = s->totals->nkernels++;
    if (fusion->is_tree)
        fusion->kernel = ci_finish_tree(s, fusion);
    else if (fusion->region)
        fusion->kernel = finish_region(s, fusion);
    else if (fusion->check) {
        fusion->kernel = CI_NEW(s->ctx, CiKernel);
        fusion->kernel->check = fusion->check;
    } else if (fusion->ext) {
        fusion->kernel = CI_NEW(s->ctx, CiKernel);
        fusion->kernel->ext = fusion->ext;
        CI_PUSH(s->ctx, fusion->kernel->locs, fusion->kernel->nlocs, fusion->kernel->caplocs,
                fusion->ext->loc);
    } else
        (void)ci_plan_fusion(s, fusion);
    CiKernel *kernel = fusion->kernel;
    kernel->id = id;
    kernel->device = fusion->ext      ? fusion->ext->device
                     : fusion->region ? fusion->region->region->device
                     : fusion->nnests ? fusion->nests[0].nest->device
                                     : 0;
    kernel->name = ci_format(s->ctx, "k%d", kernel->id);
    CI_PUSH(s->ctx, s->kernels->kernels, s->kernels->nkernels, s->kernels->capkernels, kernel);
    if (fusion->ext || fusion->region || fusion->check)
        return;
    ci_add_locs(s, kernel, fusion);
    ci_finish_axes(s, kernel);
    ci_place_buffers(s, number);
}

void
ci_schedule_finish(CiScheduler *s)
{
    for (int k = 0; k < s->nfusions; k++)
        finish_kernel(s, k);
}
