/* Decides whether a program runs faster on the host. Sequential iterations are an order of
 * magnitude slower on a GPU, and the host needs at most a copy of the arrays there and back.
 *
 * Invariant: the decision depends on the program and on the location of its arguments, not on the
 * GPU's load. */
#include "device/cuda/cuda.h"
#include "analysis/labels.h"

/* Number of sequential iterations, which a GPU runs more slowly than a CPU. */
static CiAmount
count_iterations(const CiKernels *tree)
{
    CiAmount most = ci_amount(1);
    for (int k = 0; tree && k < tree->nkernels; k++) {
        const CiKernel *kernel = tree->kernels[k];
        CiAmount inner = count_iterations(kernel->inner[0]);
        if (ci_kernel_is_region(kernel, CI_ITEM_for))
            inner = ci_amount_of(inner, kernel->region->extent);
        else if (ci_kernel_is_region(kernel, CI_ITEM_while))
            inner.unknowns++;
        most = ci_amount_max(most, ci_amount_max(inner, count_iterations(kernel->inner[1])));
    }
    return most;
}

typedef struct Slow {
    CiContext *ctx;
    int64_t iterations; /* that are worth it */
    const char *why;
} Slow;

/* Number of iterations that pay for copying device arrays to the host and back, at 0.4 us per
 * iteration on the GPU, 10 GB/s for the copies, and a fixed cost for the calls. */
static int64_t
iterations_worth_copies(const CiLoops *loops)
{
    CiAmount bytes = ci_amount(0);
    for (int k = 0; k < loops->ninputs; k++)
        if (loops->buffers[k]->kind == CI_BUFFER_input)
            bytes = ci_amount_plus(bytes, ci_cost_of_buffer(loops->buffers[k]));
    return (int64_t)((200 + 2 * (double)ci_amount_likely(bytes) / 1e4) / 0.4);
}

/* True if there are so many points that a CPU is slower, however long their iterations. */
static bool
is_wide(const CiKernels *kernels, const CiKernel *kernel)
{
    return ci_amount_high(ci_kernel_points(kernel)) >=
           ci_choice(kernels->machine, CI_CHOICE_many_points);
}

static void
find_slow(Slow *slow, const CiKernels *kernels, CiAmount around)
{
    for (int k = 0; k < kernels->nkernels && slow->why == NULL; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        const CiExpr *extent = kernel->region ? kernel->region->extent : NULL;
        for (int b = 0; kernel->region && b < 2; b++)
            if (kernel->inner[b])
                find_slow(slow, kernel->inner[b], extent ? ci_amount_of(around, extent) : around);
        const CiKernels *tree = ci_kernel_has_loops(kernel) ? ci_kernel_tree(kernel) : NULL;
        if (slow->why || !tree || is_wide(kernels, kernel) ||
            ci_amount_high(ci_amount_times(around, count_iterations(tree))) <= slow->iterations)
            continue;
        slow->why = ci_format(
            slow->ctx,
            "%s:%d: the loop is sequential, so it runs faster on the CPU (offload=\"always\" "
            "keeps it on the device)",
            kernel->nlocs ? kernel->locs[0].file : "", kernel->nlocs ? kernel->locs[0].line : 0);
    }
}

const char *
ci_cuda_why_slower(const CiKernels *kernels, bool host_arrays)
{
    Slow slow = {kernels->loops->ctx,
                 host_arrays ? ci_choice(kernels->machine, CI_CHOICE_serial_iterations)
                             : iterations_worth_copies(kernels->loops), NULL};
    find_slow(&slow, kernels, ci_amount(1));
    return slow.why;
}
