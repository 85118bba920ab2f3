/* Copies that nobody waits for: into pinned memory, and from card to card. */
#include "device/cuda/driver.h"

enum { ACCESS_device = 1, ACCESS_read_write = 3 };

int32_t
ci_cuda_host_allocate(const CiQueue *queue, size_t size, void **block)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = ci_cuda_enter(state);
    return status ? status
                  : ci_cuda_leave(state, state->driver.host_allocate(block, size ? size : 1));
}

void
ci_cuda_host_release(const CiQueue *queue, void *block, size_t size)
{
    CiCudaState *state = ci_cuda_state(queue);
    (void)size;
    if (!ci_cuda_enter(state))
        (void)ci_cuda_leave(state, state->driver.host_release(block));
}

int32_t
ci_cuda_copy_out_start(const CiQueue *queue, void *host, const void *device, size_t size)
{
    CiCudaState *state = ci_cuda_state(queue);
    int32_t status = size ? ci_cuda_enter(state) : CI_OK;
    if (status || !size)
        return status;
    return ci_cuda_leave(state, state->driver.copy_out_on(host, (CUdeviceptr)(uintptr_t)device,
                                                          size, queue->stream));
}

/* Lets the other card read this one's memory by itself, once, where the two can: without that the
 * driver copies through the host. */
static void
let_access(CiCudaState *from, const CiCudaState *to)
{
    unsigned bit = 1u << (to->index & 31);
    CUmemoryPool pool;
    int can = 0;
    if (atomic_fetch_or(&from->peers, bit) & bit)
        return;
    if (from->driver.can_access(&can, to->device, from->device) || !can)
        return;
    CiCudaAccess access = {ACCESS_device, to->device, ACCESS_read_write};
    if (!from->driver.pool(&pool, from->device))
        (void)from->driver.pool_access(pool, &access, 1);
}

int32_t
ci_cuda_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                    size_t size)
{
    CiCudaState *source = ci_cuda_state(from), *state = ci_cuda_state(to);
    int32_t status = size ? ci_cuda_enter(state) : CI_OK;
    if (status || !size)
        return status;
    let_access(source, state);
    return ci_cuda_leave(state, state->driver.copy_across(
                                    (CUdeviceptr)(uintptr_t)there, state->context,
                                    (CUdeviceptr)(uintptr_t)here, source->context, size, to->stream));
}
