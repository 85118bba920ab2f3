/* Questions about kernels. Slow on purpose: a kernel has few buffers. */
#include "ir/kernel.h"

bool
ci_kernel_has_loops(const CiKernel *kernel)
{
    return !kernel->ext && !kernel->region && !kernel->check;
}

const CiPlacement *
ci_kernel_find_placement(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].buffer == buffer)
            return kernel->placements[k].place == CI_PLACE_memory ? NULL : &kernel->placements[k];
    return NULL;
}

int
ci_kernel_buffer_position(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nbuffers; k++)
        if (kernel->buffers[k] == buffer)
            return k;
    return -1;
}
