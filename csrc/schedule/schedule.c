/* The scheduler on one screen. */
#include "schedule/in_place.h"

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

/* Arrays without elements need no loop: and a card would divide by their sizes. */
static bool
stores_nothing(const CiNest *nest)
{
    for (int k = 0; k < nest->naxes; k++) {
        if (nest->axes[k].kind != CI_AXIS_reduce && ci_expr_equals_const(nest->axes[k].extent, 0))
            return true;
    }
    return false;
}

static void
drop_empty(CiItems *items)
{
    int count = 0;
    for (int k = 0; k < items->count; k++) {
        CiItem item = items->items[k];
        if (item.region) {
            drop_empty(&item.region->condition_items);
            drop_empty(&item.region->body);
            drop_empty(&item.region->other);
        }
        if (!item.nest || !stores_nothing(item.nest))
            items->items[count++] = item;
    }
    items->count = count;
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
        ci_replace_by_scalars(s, items);
}

/* Fails if a kernel takes more buffers than the target allows. Fusion respects the limit, so this
 * is a single nest, and the scheduler cannot split a nest. */
static void
check_buffers(const CiKernels *kernels)
{
    const CiTarget *target = kernels->target;
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int b = 0; b < 2; b++)
            if (kernel->inner[b])
                check_buffers(kernel->inner[b]);
        if (ci_kernel_has_loops(kernel) && kernel->nbuffers > target->max_buffers)
            ci_fail(kernels->loops->ctx, CI_ERR_UNSUPPORTED,
                    "a loop touches %d arrays, and a kernel of device %s takes %d",
                    kernel->nbuffers, target->device, target->max_buffers);
    }
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
    drop_empty(&loops->items);
    if (options->fusion)
        ci_compose_trips(&s, &loops->items);
    count_uses(&s);
    if (options->has_device_memory)
        ci_delay_checks(&s);
    if (target->has_trees) {
        prepare_loops(&s, &loops->items);
        count_uses(&s);
    }
    if (target->has_batches && options->fusion) {
        ci_batch_calls(&s, &loops->items);
        count_uses(&s);
    }
    ci_assign_devices(loops);
    ci_schedule_fusion(&s, &loops->items);
    ci_find_readers(&s);
    ci_schedule_finish(&s);
    check_buffers(s.kernels);
    if (options->fusion)
        ci_order_kernels(&s);
    if (options->reuse)
        ci_coalesce(&s);
    s.kernels->joins = totals.joins;
    s.kernels->njoins = totals.njoins;
    return s.kernels;
}
