/* Blocks by size class, four classes per doubling. A freed block is put in the list of its class
 * and in one list of all by age; both lists are stored in the blocks themselves. If more is cached
 * than allowed, the oldest block is returned to the system.
 *
 * The lock is only tried: a thread that does not get it uses the system's allocator. So no thread
 * waits, and a child that was forked while another thread held the lock loses only the cache. */
#define _GNU_SOURCE
#include "host/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT 64
#define CLASSES 240
#define HUGE_PAGE ((size_t)2 << 20)

typedef struct Link {
    struct Link *before, *after;
} Link;

typedef struct Warm {
    Link same_class; /* first */
    Link age;
    size_t size;
} Warm;

struct CiAllocator {
    atomic_bool locked;
    size_t keep_bytes, kept_bytes;
    Link ages; /* newest after it */
    Link classes[CLASSES];
};

static void
link_empty(Link *head)
{
    head->before = head->after = head;
}

static void
link_insert(Link *head, Link *item)
{
    item->before = head;
    item->after = head->after;
    head->after->before = item;
    head->after = item;
}

static void
link_remove(Link *item)
{
    item->before->after = item->after;
    item->after->before = item->before;
}

/* The class of a size, and the size that all blocks of the class have; 0 when there is none. */
static int
class_of(size_t size, size_t *rounded)
{
    *rounded = 0;
    if (size > SIZE_MAX / 4)
        return 0;
    size_t base = ALIGNMENT;
    int octave = 0;
    for (; 2 * base < size; octave++)
        base *= 2;
    /* base < size <= 2*base, or size <= 64 */
    size_t step = base / 4, quarters = size > base ? (size - base + step - 1) / step : 0;
    *rounded = (base + quarters * step + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return 4 * octave + (int)quarters;
}

static void *
take_fresh(size_t size)
{
    bool huge = size >= 2 * HUGE_PAGE;
    size_t alignment = huge ? HUGE_PAGE : ALIGNMENT;
    void *block = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (block && huge)
        madvise(block, size, MADV_HUGEPAGE); /* advice: whether it is taken does not matter */
    return block;
}

CiAllocator *
ci_allocator_open(size_t keep_bytes)
{
    CiAllocator *allocator = calloc(1, sizeof *allocator);
    if (!allocator)
        return NULL;
    allocator->keep_bytes = keep_bytes;
    link_empty(&allocator->ages);
    for (int k = 0; k < CLASSES; k++)
        link_empty(&allocator->classes[k]);
    return allocator;
}

static bool
try_lock(CiAllocator *allocator)
{
    return !atomic_exchange_explicit(&allocator->locked, true, memory_order_acquire);
}

static void
unlock(CiAllocator *allocator)
{
    atomic_store_explicit(&allocator->locked, false, memory_order_release);
}

static Warm *
oldest(CiAllocator *allocator)
{
    return (Warm *)(void *)((char *)allocator->ages.before - offsetof(Warm, age));
}

static void
drop(CiAllocator *allocator, Warm *warm)
{
    link_remove(&warm->age);
    link_remove(&warm->same_class);
    allocator->kept_bytes -= warm->size;
}

void
ci_allocator_trim(CiAllocator *allocator)
{
    if (!try_lock(allocator))
        return;
    while (allocator->ages.after != &allocator->ages) {
        Warm *warm = oldest(allocator);
        drop(allocator, warm);
        free(warm);
    }
    unlock(allocator);
}

void
ci_allocator_close(CiAllocator *allocator)
{
    if (!allocator)
        return;
    ci_allocator_trim(allocator);
    free(allocator);
}

void *
ci_allocator_take(CiAllocator *allocator, size_t size)
{
    size_t rounded;
    int class = class_of(size, &rounded);
    if (!rounded)
        return NULL;
    Warm *warm = NULL;
    if (try_lock(allocator)) {
        Link *head = &allocator->classes[class];
        if (head->after != head) {
            warm = (Warm *)(void *)head->after;
            drop(allocator, warm);
        }
        unlock(allocator);
    }
    return warm ? (void *)warm : take_fresh(rounded);
}

void
ci_allocator_give(CiAllocator *allocator, void *block, size_t size)
{
    size_t rounded;
    int class = class_of(size, &rounded);
    if (!block)
        return;
    if (rounded > allocator->keep_bytes || !try_lock(allocator)) {
        free(block);
        return;
    }
    while (allocator->kept_bytes > allocator->keep_bytes - rounded) {
        Warm *warm = oldest(allocator);
        drop(allocator, warm);
        free(warm);
    }
    Warm *warm = block;
    warm->size = rounded;
    link_insert(&allocator->classes[class], &warm->same_class);
    link_insert(&allocator->ages, &warm->age);
    allocator->kept_bytes += rounded;
    unlock(allocator);
}
