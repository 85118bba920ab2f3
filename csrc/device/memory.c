/* Allocation of device memory. Counts the memory in use, enforces a limit, and lets a device whose
 * memory is exhausted release its cached blocks once before the allocation is retried.
 *
 * The counters of a device are found by its struct and index; if the table of counters is full, a
 * device is not counted. */
#include "device/registry.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_COUNTED 32

/* Memory that processes share, made by this one or opened. */
typedef struct SharedBlock {
    struct SharedBlock *next;
    void *address;
    size_t size;
    bool is_opened;
} SharedBlock;

typedef struct Count {
    const CiDevice *device;
    int index;
    CiMemoryUse use;
    SharedBlock *put_off; /* to be freed when the device can be waited for */
} Count;

struct CiMemoryCounts {
    pthread_mutex_t lock;
    Count counts[MAX_COUNTED];
    int number;
};

CiMemoryCounts *
ci_memory_counts_open(void)
{
    CiMemoryCounts *counts = calloc(1, sizeof *counts);
    if (counts)
        pthread_mutex_init(&counts->lock, NULL);
    return counts;
}

void
ci_memory_counts_close(CiMemoryCounts *counts)
{
    if (!counts)
        return;
    for (int k = 0; k < counts->number; k++)
        for (SharedBlock *next, *late = counts->counts[k].put_off; late; late = next) {
            next = late->next;
            free(late);
        }
    pthread_mutex_destroy(&counts->lock);
    free(counts);
}

/* Locks the counters of a queue's device; NULL, and nothing is locked, where there are none. */
static Count *
lock_count(const CiQueue *queue)
{
    const CiRegistry *registry = queue->runtime->registry;
    const CiDevice *device = queue->backend->device;
    if (!registry)
        return NULL;
    CiMemoryCounts *all = registry->counts;
    pthread_mutex_lock(&all->lock);
    for (int k = 0; k < all->number; k++)
        if (all->counts[k].device == device && all->counts[k].index == queue->index)
            return &all->counts[k];
    if (all->number < MAX_COUNTED) {
        all->counts[all->number] = (Count){device, queue->index, {.keep = -1}, NULL};
        return &all->counts[all->number++];
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static CiMemoryUse *
lock(const CiQueue *queue)
{
    Count *count = lock_count(queue);
    return count ? &count->use : NULL;
}

static void
unlock(const CiQueue *queue)
{
    pthread_mutex_unlock(&queue->runtime->registry->counts->lock);
}

/* Counts bytes as taken, or says that they would be more than the limit. */
static bool
take(const CiQueue *queue, int64_t bytes)
{
    CiMemoryUse *use = lock(queue);
    if (!use)
        return true;
    bool fits = use->limit == 0 || use->allocated + bytes <= use->limit;
    if (fits) {
        use->allocated += bytes;
        use->blocks++;
        use->allocations++;
        use->peak = use->allocated > use->peak ? use->allocated : use->peak;
    } else {
        use->refused = bytes;
    }
    unlock(queue);
    return fits;
}

static void
give(const CiQueue *queue, int64_t bytes, bool is_refused)
{
    CiMemoryUse *use = lock(queue);
    if (!use)
        return;
    use->allocated -= bytes;
    use->blocks--;
    if (is_refused)
        use->refused = bytes;
    unlock(queue);
}

int32_t
ci_memory_give_back(const CiQueue *queue)
{
    const CiDevice *device = queue->backend->device;
    CiMemoryUse use;
    ci_memory_use(queue, &use);
    int32_t status = device->synchronize(queue);
    if (!status && device->keep)
        status = device->keep(queue, 0);
    if (!status && device->keep)
        status = device->keep(queue, use.keep < 0 ? SIZE_MAX : (size_t)use.keep);
    return status;
}

/* Retries an allocation after the device has released its cached blocks. */
static int32_t
retry(const CiQueue *queue, size_t size, void **block)
{
    CiMemoryUse *use = lock(queue);
    if (use) {
        use->retries++;
        unlock(queue);
    }
    int32_t status = ci_memory_give_back(queue);
    return status ? status : queue->backend->device->allocate(queue, size, block);
}

int32_t
ci_device_allocate(const CiQueue *queue, size_t size, void **block)
{
    const CiDevice *device = queue->backend->device;
    if (!take(queue, (int64_t)size))
        return CI_ERR_MEMORY;
    int32_t status = device->allocate(queue, size, block);
    if (status == CI_ERR_MEMORY && device->keep)
        status = retry(queue, size, block);
    if (status)
        give(queue, (int64_t)size, status == CI_ERR_MEMORY);
    return status;
}

int32_t
ci_device_share(const CiQueue *queue, size_t size, void **block)
{
    if (!take(queue, (int64_t)size))
        return CI_ERR_MEMORY;
    int32_t status = queue->backend->device->share_allocate(queue, size, block);
    if (status)
        give(queue, (int64_t)size, status == CI_ERR_MEMORY);
    return status;
}

/* Defers the release: it is unknown whether streams still use the block, so it is kept until the
 * device can be waited for. */
static void
put_off(const CiQueue *queue, SharedBlock block)
{
    Count *count = lock_count(queue);
    SharedBlock *own = count ? malloc(sizeof *own) : NULL;
    if (own) {
        *own = block;
        own->next = count->put_off;
        count->put_off = own;
    }
    if (count)
        unlock(queue);
}

static SharedBlock *
take_put_off(const CiQueue *queue)
{
    Count *count = lock_count(queue);
    SharedBlock *first = count ? count->put_off : NULL;
    if (count) {
        count->put_off = NULL;
        unlock(queue);
    }
    return first;
}

static void
unshare(const CiQueue *queue, const SharedBlock *block)
{
    const CiDevice *device = queue->backend->device;
    if (block->is_opened) {
        device->share_close(queue, block->address);
        return;
    }
    device->share_release(queue, block->address);
    give(queue, (int64_t)block->size, false);
}

/* Of the device, not of one stream. */
int32_t
ci_device_wait(const CiQueue *queue)
{
    int32_t status = queue->backend->device->synchronize(queue);
    SharedBlock *next, *late = status || queue->stream ? NULL : take_put_off(queue);
    for (; late; late = next) {
        next = late->next;
        unshare(queue, late);
        free(late);
    }
    return status;
}

void
ci_device_unshare(const CiQueue *queue, void *address, size_t size, bool is_opened)
{
    SharedBlock block = {NULL, address, size, is_opened};
    if (ci_device_wait(queue))
        put_off(queue, block);
    else
        unshare(queue, &block);
}

void
ci_device_release(const CiQueue *queue, void *block, size_t size)
{
    queue->backend->device->release(queue, block, size);
    give(queue, (int64_t)size, false);
}

void
ci_memory_use(const CiQueue *queue, CiMemoryUse *out)
{
    CiMemoryUse *use = lock(queue);
    *out = use ? *use : (CiMemoryUse){.keep = -1};
    if (use)
        unlock(queue);
}

void
ci_memory_forget_peak(const CiQueue *queue)
{
    CiMemoryUse *use = lock(queue);
    if (!use)
        return;
    use->peak = use->allocated;
    unlock(queue);
}

int32_t
ci_memory_bound(const CiQueue *queue, int64_t limit, int64_t keep)
{
    const CiDevice *device = queue->backend->device;
    CiMemoryUse *use = lock(queue);
    if (use) {
        use->limit = limit;
        use->keep = keep >= 0 ? keep : use->keep;
        unlock(queue);
    }
    return keep >= 0 && device->keep ? device->keep(queue, (size_t)keep) : CI_OK;
}
