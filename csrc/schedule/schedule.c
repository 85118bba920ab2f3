/* The scheduler: calls its steps in order. Loops in, kernels out. */
#include "schedule/in_place.h"

/* Fails if a kernel takes more buffers than the machine allows. Fusion respects the limit, so this
 * is a single nest, and the scheduler cannot split a nest. */
static void
check_buffers(void *arg, const CiKernel *kernel)
{
    const CiKernels *kernels = arg;
    const CiMachine *machine = kernels->machine;
    if (ci_kernel_has_loops(kernel) && kernel->nbuffers > machine->max_buffers)
        ci_fail(kernels->loops->ctx, CI_ERR_UNSUPPORTED,
                "a loop touches %d arrays, and a kernel of device %s takes %d", kernel->nbuffers,
                machine->device, machine->max_buffers);
}

CiKernels *
ci_schedule(CiLoops *loops, const CiMachine *machine, const CiOptions *options)
{
    CiSchedulerTotals totals = {0};
    CiScheduler s = {.ctx = loops->ctx,
                     .sym = loops->sym,
                     .loops = loops,
                     .machine = machine,
                     .options = options,
                     .totals = &totals};
    ci_count_all_uses(loops, &totals.nreaders, &totals.nwriters);
    ci_schedule_fusion(&s, &loops->items);
    ci_find_readers(&s);
    ci_schedule_finish(&s);
    ci_kernels_visit(s.kernels, check_buffers, s.kernels);
    if (options->fusion)
        ci_order_kernels(&s);
    if (options->reuse)
        ci_coalesce(&s);
    s.kernels->joins = totals.joins;
    s.kernels->njoins = totals.njoins;
    return s.kernels;
}
