/* Small blocks, kept for the next allocation: the driver takes longer for one than all else of a launch
 * does. Invariant: what is kept was last used by the device's own stream, and is given to that stream
 * alone, so that order in the stream is all that it needs.
 *
 * Blocks of other streams are the driver's, which knows how streams wait for each other. */
#include "device/cuda/driver.h"

#define LEAST_BLOCK 256

/* Of blocks of that size, which are all as large as the largest of them; -1: such are not kept. */
static int
class_of(size_t size)
{
    int class = 0;
    while (class < CI_CUDA_BLOCK_CLASSES && ((size_t)LEAST_BLOCK << class) < size)
        class++;
    return class < CI_CUDA_BLOCK_CLASSES ? class : -1;
}

int
ci_cuda_block_take(const CiCudaStay *stay, size_t size, CUstream stream, CUdeviceptr *block)
{
    CiCudaBlocks *blocks = &stay->state->blocks;
    int class = class_of(size);
    *block = 0;
    if (class >= 0)
        size = (size_t)LEAST_BLOCK << class;
    if (class >= 0 && !stream) {
        pthread_mutex_lock(&blocks->lock);
        if (blocks->counts[class] > 0) {
            *block = blocks->kept[class][--blocks->counts[class]];
            blocks->bytes -= size;
        }
        pthread_mutex_unlock(&blocks->lock);
    }
    return *block ? 0 : stay->driver->allocate(block, size, stream);
}

int
ci_cuda_block_give(const CiCudaStay *stay, CUdeviceptr block, size_t size, CUstream stream)
{
    CiCudaBlocks *blocks = &stay->state->blocks;
    int class = stream ? -1 : class_of(size);
    bool is_kept = false;
    if (class >= 0) {
        size = (size_t)LEAST_BLOCK << class;
        pthread_mutex_lock(&blocks->lock);
        is_kept = blocks->counts[class] < CI_CUDA_BLOCKS_KEPT && size <= blocks->most &&
                  blocks->bytes <= blocks->most - size;
        if (is_kept) {
            blocks->kept[class][blocks->counts[class]++] = block;
            blocks->bytes += size;
        }
        pthread_mutex_unlock(&blocks->lock);
    }
    return is_kept ? 0 : stay->driver->release(block, stream);
}

int
ci_cuda_blocks_bound(const CiCudaStay *stay, size_t bytes)
{
    CiCudaBlocks *blocks = &stay->state->blocks;
    int result = 0;
    pthread_mutex_lock(&blocks->lock);
    blocks->most = bytes;
    for (int class = CI_CUDA_BLOCK_CLASSES - 1; class >= 0; class--)
        while (blocks->counts[class] > 0 && blocks->bytes > bytes) {
            int gone = stay->driver->release(blocks->kept[class][--blocks->counts[class]], NULL);
            blocks->bytes -= (size_t)LEAST_BLOCK << class;
            result = result ? result : gone;
        }
    pthread_mutex_unlock(&blocks->lock);
    return result;
}
