/* Whether a program is quicker on the host: trips that run one after another are an order of
 * magnitude slower on a card, and what the host needs is at most a copy of the arrays there and
 * back.
 *
 * Invariant: the answer follows from the program and from where its arguments are, not from how the
 * card is loaded. */
#include "device/cuda/cuda.h"

#define CI_CUDA_SERIAL_TRIPS 64 /* that cost less than the copies for which the card was asked */
#define CI_CUDA_MANY_POINTS 256 /* whose trips run side by side: a processor has no chance */

/* A number times the most that an extent can be, up to about 2**20. */
static int64_t
times(int64_t count, const CiExpr *extent)
{
    return extent->high >= 1 << 20 ? 1 << 20 : count * (extent->high > 0 ? extent->high : 1);
}

/* Trips, one after another, of which a card is slower than a processor. */
static int64_t
count_trips(const CiLoopTree *tree)
{
    int64_t most = 1;
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        int64_t inner = count_trips(&node->body), other = count_trips(&node->other);
        if (node->kind == CI_TREE_for)
            inner = times(inner, node->region->extent);
        else if (node->kind == CI_TREE_while)
            inner = 1 << 20;
        inner = other > inner ? other : inner;
        most = inner > most ? inner : most;
    }
    return most;
}

/* What runs side by side, as far as it matters. */
static int64_t
count_points(const CiKernel *kernel)
{
    int64_t points = 1;
    for (int k = 0; k < kernel->nouter && points < CI_CUDA_MANY_POINTS; k++)
        points = times(points, kernel->outer[k].extent);
    return points;
}

typedef struct Slow {
    CiContext *ctx;
    int64_t trips; /* that are worth it */
    const char *why;
} Slow;

/* With arrays of the device the host needs copies, both ways: at 0.4 us a trip on the card and 10
 * GB/s between, and some time for the calls. */
static int64_t
trips_worth_copies(const CiLoops *loops)
{
    double bytes = 0;
    for (int k = 0; k < loops->ninputs; k++) {
        const CiBuffer *input = loops->buffers[k];
        double size = ci_dtype_size(input->dtype);
        for (int axis = 0; axis < input->rank; axis++)
            size *= input->sizes[axis]->high < 1 << 20 ? (double)input->sizes[axis]->high : 1 << 10;
        bytes += input->kind == CI_BUFFER_input ? size : 0;
    }
    return (int64_t)((200 + 2 * bytes / 1e4) / 0.4);
}

static void
find_slow(Slow *slow, const CiKernels *kernels, int64_t around)
{
    for (int k = 0; k < kernels->nkernels && slow->why == NULL; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        const CiExpr *extent = kernel->region ? kernel->region->extent : NULL;
        for (int b = 0; kernel->region && b < 2; b++)
            if (kernel->inner[b])
                find_slow(slow, kernel->inner[b], extent ? times(around, extent) : around);
        const CiLoopTree *tree = ci_kernel_has_loops(kernel) ? ci_kernel_tree(kernel) : NULL;
        if (slow->why || !tree || count_points(kernel) >= CI_CUDA_MANY_POINTS ||
            around * count_trips(tree) <= slow->trips)
            continue;
        slow->why = ci_format(
            slow->ctx,
            "%s:%d: trips run one after another, which the CPU is quicker at (option "
            "offload=\"always\" keeps them on the device)",
            kernel->nlocs ? kernel->locs[0].file : "", kernel->nlocs ? kernel->locs[0].line : 0);
    }
}

const char *
ci_cuda_why_slower(const CiKernels *kernels, bool host_arrays)
{
    Slow slow = {kernels->loops->ctx,
                 host_arrays ? CI_CUDA_SERIAL_TRIPS : trips_worth_copies(kernels->loops), NULL};
    find_slow(&slow, kernels, 1);
    return slow.why;
}
