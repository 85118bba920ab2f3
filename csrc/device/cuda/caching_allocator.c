/* Caching allocator: keeps freed blocks for later allocations. An allocation by the driver takes
 * longer than the rest of a launch, and one of pinned host memory takes longer than many kernels
 * run.
 *
 * Invariant: a cached block of the GPU was last used by the device's own stream and is given to
 * that stream only, so stream order is sufficient. Blocks of other streams are returned to the
 * driver, which knows how streams wait for each other. A cached block of host memory has no user
 * left. */
#include "device/cuda/driver.h"

#define LEAST_BLOCK 256

/* Blocks of a class are all as large as the largest of them; -1: such are not kept. */
static int
class_of(size_t size, int classes)
{
    int class = 0;
    while (class < classes && ((size_t)LEAST_BLOCK << class) < size)
        class++;
    return class < classes ? class : -1;
}

static size_t
size_of(int class)
{
    return (size_t)LEAST_BLOCK << class;
}

/* One that is kept, or 0. */
static uint64_t
take(CiCudaBlocks *blocks, int class)
{
    uint64_t block = 0;
    pthread_mutex_lock(&blocks->lock);
    if (blocks->counts[class] > 0) {
        block = blocks->kept[class][--blocks->counts[class]];
        blocks->bytes -= size_of(class);
    }
    pthread_mutex_unlock(&blocks->lock);
    return block;
}

static bool
keep(CiCudaBlocks *blocks, int class, uint64_t block)
{
    size_t size = size_of(class);
    pthread_mutex_lock(&blocks->lock);
    bool is_kept = blocks->counts[class] < CI_CUDA_CACHED_BLOCKS && size <= blocks->most &&
                   blocks->bytes <= blocks->most - size;
    if (is_kept) {
        blocks->kept[class][blocks->counts[class]++] = block;
        blocks->bytes += size;
    }
    pthread_mutex_unlock(&blocks->lock);
    return is_kept;
}

/* One that is too much, or 0; the largest ones first. */
static uint64_t
take_surplus(CiCudaBlocks *blocks, size_t most)
{
    uint64_t block = 0;
    pthread_mutex_lock(&blocks->lock);
    blocks->most = most;
    for (int class = CI_CUDA_HOST_CLASSES - 1; class >= 0 && !block && blocks->bytes > most; class--)
        if (blocks->counts[class] > 0) {
            block = blocks->kept[class][--blocks->counts[class]];
            blocks->bytes -= size_of(class);
        }
    pthread_mutex_unlock(&blocks->lock);
    return block;
}

bool
ci_cuda_block_take_cached(CiCudaState *state, size_t size, void **block)
{
    int class = class_of(size, CI_CUDA_BLOCK_CLASSES);
    *block = class >= 0 ? (void *)(uintptr_t)take(&state->blocks, class) : NULL;
    return *block;
}

bool
ci_cuda_block_keep(CiCudaState *state, void *block, size_t size)
{
    int class = class_of(size, CI_CUDA_BLOCK_CLASSES);
    return class >= 0 && keep(&state->blocks, class, (uintptr_t)block);
}

int
ci_cuda_block_take(const CiCudaContextScope *scope, size_t size, CUstream stream, CUdeviceptr *block)
{
    int class = class_of(size, CI_CUDA_BLOCK_CLASSES);
    *block = class < 0 || stream ? 0 : take(&scope->state->blocks, class);
    return *block ? 0 : scope->driver->allocate(block, class < 0 ? size : size_of(class), stream);
}

int
ci_cuda_block_give(const CiCudaContextScope *scope, CUdeviceptr block, size_t size, CUstream stream)
{
    int class = stream ? -1 : class_of(size, CI_CUDA_BLOCK_CLASSES);
    return class >= 0 && keep(&scope->state->blocks, class, block)
               ? 0
               : scope->driver->release(block, stream);
}

int
ci_cuda_host_take(const CiCudaContextScope *scope, size_t size, void **block)
{
    int class = class_of(size, CI_CUDA_HOST_CLASSES);
    *block = class < 0 ? NULL : (void *)(uintptr_t)take(&scope->state->host_blocks, class);
    return *block ? 0 : scope->driver->host_allocate(block, class < 0 ? size : size_of(class));
}

int
ci_cuda_host_give(const CiCudaContextScope *scope, void *block, size_t size)
{
    int class = class_of(size, CI_CUDA_HOST_CLASSES);
    return class >= 0 && keep(&scope->state->host_blocks, class, (uintptr_t)block)
               ? 0
               : scope->driver->host_release(block);
}

int
ci_cuda_blocks_bound(const CiCudaContextScope *scope, size_t bytes)
{
    uint64_t block;
    int result = 0;
    while ((block = take_surplus(&scope->state->blocks, bytes)) != 0 && !result)
        result = scope->driver->release(block, NULL);
    size_t most = bytes < CI_CUDA_HOST_BYTES ? bytes : CI_CUDA_HOST_BYTES;
    while (!result && (block = take_surplus(&scope->state->host_blocks, most)) != 0)
        result = scope->driver->host_release((void *)(uintptr_t)block);
    return result;
}
