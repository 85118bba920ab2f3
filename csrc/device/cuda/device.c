/* The functions of the device (CiDevice). Most are a call of the driver, in a stay. */
#include "device/cuda/library.h"
#include "device/cuda/nccl.h"

#include <string.h>

enum {
    ATTRIBUTE_units = 16,
    POOL_release_threshold = 4,
    POOL_reserved = 5,
    ACCESS_device = 1,
    ACCESS_read_write = 3,
    STREAM_non_blocking = 1, /* it waits for no other, unless an event says so */
    SHARE_lazy_peers = 1
};

#define SHARED_BYTES ((size_t)1 << 21) /* what is shared with others has nothing else beside it */

static CUdeviceptr
address(const void *block)
{
    return (CUdeviceptr)(uintptr_t)block;
}

/* ---- what there is ---- */

static int
count(const CiQueue *queue)
{
    CiCudaState *state = ci_cuda_state(queue);
    return state && !state->why_not[0] ? state->count : 0;
}

static int
fill_properties(const CiCudaContextScope *scope, CiDeviceProperties *out)
{
    const CiCudaDriver *driver = scope->driver;
    int device = scope->state->device;
    size_t bytes = 0;
    *out = (CiDeviceProperties){.capability = scope->state->capability};
    int result = driver->device_name(out->name, sizeof out->name, device);
    if (!result)
        result = driver->device_memory(&bytes, device);
    if (!result)
        result = driver->device_attribute(&out->units, ATTRIBUTE_units, device);
    if (!result)
        result = driver->device_identity(out->identity, device);
    out->memory = (int64_t)bytes;
    return result;
}

CI_CUDA_FUNCTION(properties, (const CiQueue *queue, CiDeviceProperties *out),
                 fill_properties(&scope, out))
CI_CUDA_FUNCTION(memory_left, (const CiQueue *queue, size_t *left, size_t *all),
                 scope.driver->memory_left(left, all))

/* ---- memory ---- */

static int
find_reserved(const CiCudaContextScope *scope, size_t *bytes)
{
    CUmemoryPool pool;
    uint64_t reserved = 0;
    int result = scope->driver->pool(&pool, scope->state->device);
    if (!result)
        result = scope->driver->pool_state(pool, POOL_reserved, &reserved);
    *bytes = (size_t)reserved;
    return result;
}

static int
keep_at_most(const CiCudaContextScope *scope, size_t bytes)
{
    const CiCudaDriver *driver = scope->driver;
    CUmemoryPool pool;
    uint64_t keep = bytes == SIZE_MAX ? CI_CUDA_KEEP_BYTES : bytes;
    int result = ci_cuda_blocks_bound(scope, bytes);
    if (!result)
        result = driver->pool(&pool, scope->state->device);
    if (!result)
        result = driver->pool_attribute(pool, POOL_release_threshold, &keep);
    if (!result && bytes == 0) /* blocks that have just come back are free when this is done */
        result = ci_cuda_wait_stream(scope, NULL);
    return result ? result : driver->pool_trim(pool, (size_t)keep);
}

/* The driver's address as one of C's. */
static int
made(int result, CUdeviceptr at, void **block)
{
    *block = (void *)(uintptr_t)at;
    return result;
}

static int
take_block(const CiCudaContextScope *scope, const CiQueue *queue, size_t size, void **block)
{
    CUdeviceptr at = 0;
    int result = ci_cuda_block_take(scope, size, queue->stream, &at);
    return made(result, at, block);
}

static int
give_block(const CiCudaContextScope *scope, const CiQueue *queue, void *block, size_t size)
{
    return ci_cuda_block_give(scope, address(block), size, queue->stream);
}

static int
copy_in_now(const CiCudaContextScope *scope, const CiQueue *queue, void *device, const void *host,
            size_t size)
{
    const CiCudaDriver *driver = scope->driver;
    if (!size)
        return 0;
    if (!queue->stream)
        return driver->copy_in(address(device), host, size);
    int result = driver->copy_in_on(address(device), host, size, queue->stream);
    return result ? result : ci_cuda_wait_stream(scope, queue->stream);
}

static int
copy_out_now(const CiCudaContextScope *scope, const CiQueue *queue, void *host, const void *device,
             size_t size)
{
    const CiCudaDriver *driver = scope->driver;
    int waited = size ? ci_cuda_await_stream(scope, queue->stream) : 0;
    if (!size || waited)
        return waited;
    if (!queue->stream)
        return driver->copy_out(host, address(device), size);
    int result = driver->copy_out_on(host, address(device), size, queue->stream);
    return result ? result : ci_cuda_wait_stream(scope, queue->stream);
}

CI_CUDA_FUNCTION(reserved, (const CiQueue *queue, size_t *bytes), find_reserved(&scope, bytes))
CI_CUDA_FUNCTION(keep, (const CiQueue *queue, size_t bytes), keep_at_most(&scope, bytes))
CI_CUDA_FUNCTION(allocate_in_context, (const CiQueue *queue, size_t size, void **block),
                 take_block(&scope, queue, size, block))
CI_CUDA_PROCEDURE(release_in_context, (const CiQueue *queue, void *block, size_t size),
                  give_block(&scope, queue, block, size))

/* The state whose cached blocks the queue may use without its context, or NULL. */
static CiCudaState *
state_of_blocks(const CiQueue *queue)
{
    CiCudaState *state = queue->stream ? NULL : ci_cuda_state(queue);
    return state && !state->why_not[0] && ci_os_is_marked(state->mark) ? state : NULL;
}

static int32_t
allocate(const CiQueue *queue, size_t size, void **block)
{
    CiCudaState *state = state_of_blocks(queue);
    bool is_cached = state && ci_cuda_block_take_cached(state, size, block);
    return is_cached ? CI_OK : allocate_in_context(queue, size, block);
}

static void
release(const CiQueue *queue, void *block, size_t size)
{
    CiCudaState *state = block ? state_of_blocks(queue) : NULL;
    if (block && !(state && ci_cuda_block_keep(state, block, size)))
        release_in_context(queue, block, size);
}

CI_CUDA_FUNCTION(copy_in,
                 (const CiQueue *queue, void *device, const void *host, size_t size),
                 copy_in_now(&scope, queue, device, host, size))
CI_CUDA_FUNCTION(copy_out,
                 (const CiQueue *queue, void *host, const void *device, size_t size),
                 copy_out_now(&scope, queue, host, device, size))

/* ---- asynchronous copies: into pinned memory, and between GPUs ---- */

CI_CUDA_FUNCTION(host_allocate, (const CiQueue *queue, size_t size, void **block),
                 (ci_cuda_host_take(&scope, size, block)))
CI_CUDA_PROCEDURE(host_release, (const CiQueue *queue, void *block, size_t size),
                  (ci_cuda_host_give(&scope, block, size)))
CI_CUDA_FUNCTION(copy_out_start,
                 (const CiQueue *queue, void *host, const void *device, size_t size),
                 size ? scope.driver->copy_out_on(host, address(device), size, queue->stream) : 0)

/* Enables peer access from the other GPU to this one's memory, once and if possible: without it the
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

static int
copy_from(const CiCudaContextScope *scope, const CiQueue *from, CUdeviceptr there, CUdeviceptr here,
          size_t size, CUstream stream)
{
    CiCudaState *source = ci_cuda_state(from);
    if (source == scope->state)
        return scope->driver->copy_within(there, here, size, stream);
    let_access(source, scope->state);
    return scope->driver->copy_across(there, scope->state->context, here, source->context, size,
                                      stream);
}

CI_CUDA_FUNCTION(copy_across,
                 (const CiQueue *from, const CiQueue *queue, void *there, const void *here,
                  size_t size),
                 size ? copy_from(&scope, from, address(there), address(here), size, queue->stream)
                      : 0)

CI_CUDA_FUNCTION(synchronize, (const CiQueue *queue),
                 queue->stream ? ci_cuda_wait_stream(&scope, queue->stream) : ci_cuda_synchronize_all(&scope))

/* ---- memory that other processes open ---- */

static int
take_shared(const CiCudaDriver *driver, size_t size, void **block)
{
    CUdeviceptr at = 0;
    int result = driver->shared_allocate(&at, (size / SHARED_BYTES + 1) * SHARED_BYTES);
    return made(result, at, block);
}

static int
open_shared(const CiCudaDriver *driver, const CiShareName *name, void **block, size_t *size)
{
    CUdeviceptr found = 0, base = 0;
    int result = driver->share_open(&found, *name, SHARE_lazy_peers);
    if (!result)
        result = driver->shared_extent(&base, size, found);
    *size -= result ? 0 : (size_t)(found - base);
    return made(result, found, block);
}

CI_CUDA_FUNCTION(share_allocate, (const CiQueue *queue, size_t size, void **block),
                 take_shared(scope.driver, size, block))
CI_CUDA_PROCEDURE(share_release, (const CiQueue *queue, void *block),
                  scope.driver->shared_release(address(block)))
CI_CUDA_FUNCTION(share_name, (const CiQueue *queue, const void *block, CiShareName *name),
                 scope.driver->share(name, address(block)))
CI_CUDA_FUNCTION(share_open,
                 (const CiQueue *queue, const CiShareName *name, void **block, size_t *size),
                 open_shared(scope.driver, name, block, size))
CI_CUDA_PROCEDURE(share_close, (const CiQueue *queue, void *block),
                  scope.driver->share_close(address(block)))

/* ---- groups ---- */

static int
open_group(CiCudaState *state, const CiGroupName *name, int rank, int count, int64_t timeout_ms, void **group)
{
    CiCudaGroup *made = NULL;
    int result = ci_nccl_open(state, name, rank, count, timeout_ms, &made);
    *group = made;
    return result;
}

static int
close_group(CiCudaState *state, CiCudaGroup *group)
{
    ci_nccl_close(state, group);
    return 0;
}

CI_CUDA_FUNCTION(group_name, (const CiQueue *queue, CiGroupName *name), ci_nccl_name(scope.state, name))
CI_CUDA_FUNCTION(group_open,
                 (const CiQueue *queue, const CiGroupName *name, int rank, int count, int64_t timeout_ms,
                  void **group),
                 open_group(scope.state, name, rank, count, timeout_ms, group))
CI_CUDA_PROCEDURE(group_close, (const CiQueue *queue, void *group), close_group(scope.state, group))
CI_CUDA_FUNCTION(group_start, (const CiQueue *queue, void *group, const CiCollective *what),
                 ci_nccl_start(&scope, queue->stream, group, what))
CI_CUDA_FUNCTION(group_join, (const CiQueue *queue, void *group),
                 ci_nccl_join(&scope, queue->stream, group))

/* ---- streams and events ---- */

static int
close_stream(const CiCudaContextScope *scope, CUstream stream)
{
    (void)ci_cuda_wait_stream(scope, stream);
    return scope->driver->stream_close(stream);
}

static int
find_elapsed(const CiCudaDriver *driver, CUevent first, CUevent second, double *ms)
{
    float passed = 0.0f;
    int result = driver->event_elapsed(&passed, first, second);
    *ms = (double)passed;
    return result;
}

CI_CUDA_FUNCTION(stream_open, (const CiQueue *queue, void **stream),
                 scope.driver->stream_open((CUstream *)(void *)stream, STREAM_non_blocking))
CI_CUDA_PROCEDURE(stream_close, (const CiQueue *queue, void *stream), close_stream(&scope, stream))
CI_CUDA_FUNCTION(event_open, (const CiQueue *queue, void **event),
                 scope.driver->event_open((CUevent *)(void *)event, 0))
CI_CUDA_PROCEDURE(event_close, (const CiQueue *queue, void *event), scope.driver->event_close(event))
CI_CUDA_FUNCTION(event_record, (const CiQueue *queue, void *event),
                 scope.driver->event_record(event, queue->stream))
CI_CUDA_FUNCTION(event_wait, (const CiQueue *queue, void *event),
                 scope.driver->event_wait(queue->stream, event, 0))
CI_CUDA_FUNCTION(event_synchronize, (const CiQueue *queue, void *event),
                 ci_cuda_wait_event(&scope, event))
CI_CUDA_FUNCTION(event_elapsed, (const CiQueue *queue, void *first, void *second, double *ms),
                 find_elapsed(scope.driver, first, second, ms))

extern const CiDevice ci_device_cuda;

const CiDevice ci_device_cuda = {
    .abi = CI_DEVICE_ABI,
    .name = "cuda",
    .doc = "NVIDIA's devices, through the driver",
    .dlpack = 2,
    .count = count,
    .properties = properties,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .copy_out_start = copy_out_start,
    .copy_across = copy_across,
    .synchronize = synchronize,
    .memory_left = memory_left,
    .reserved = reserved,
    .keep = keep,
    .share_allocate = share_allocate,
    .share_release = share_release,
    .share_name = share_name,
    .share_open = share_open,
    .share_close = share_close,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .record_begin = ci_cuda_record_begin,
    .record_end = ci_cuda_record_end,
    .replay = ci_cuda_replay,
    .record_close = ci_cuda_record_close,
    .records_extern = ci_cuda_records_extern,
    .takes_extern = ci_cuda_takes_extern,
    .run_extern = ci_cuda_run_extern,
    .group_name = group_name,
    .group_open = group_open,
    .group_close = group_close,
    .group_start = group_start,
    .group_join = group_join,
    .last_error = ci_cuda_last_error,
};
