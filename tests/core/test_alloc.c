/* Tests the caching allocator of host memory: alignment, reuse by size class, the limit on
 * cached memory, failures, and threads. */
#include <pthread.h>
#include <stdlib.h>

#include "ci_test.h"
#include "host/alloc.h"

TEST(blocks_are_aligned_and_warm)
{
    CiAllocator *allocator = ci_allocator_open(1 << 20);
    for (size_t size = 0; size < 100000; size = size * 5 / 4 + 1) {
        char *block = ci_allocator_take(allocator, size);
        CHECK(block && (uintptr_t)block % 64 == 0);
        memset(block, 1, size);
        ci_allocator_give(allocator, block, size);
        CHECK(ci_allocator_take(allocator, size) == (void *)block);
        ci_allocator_give(allocator, block, size);
    }
    ci_allocator_give(allocator, NULL, 64);
    ci_allocator_close(allocator);
    ci_allocator_close(NULL);
}

TEST(sizes_of_one_class_share)
{
    CiAllocator *allocator = ci_allocator_open(1 << 20);
    void *block = ci_allocator_take(allocator, 1000);
    ci_allocator_give(allocator, block, 1000);
    char *other = ci_allocator_take(allocator, 1024);
    CHECK((void *)other == block);
    memset(other, 1, 1024);
    ci_allocator_give(allocator, other, 1024);
    ci_allocator_close(allocator);
}

TEST(no_memory_is_null)
{
    CiAllocator *allocator = ci_allocator_open(1 << 20);
    CHECK(ci_allocator_take(allocator, SIZE_MAX) == NULL);
    CHECK(ci_allocator_take(allocator, SIZE_MAX / 4) == NULL);
    ci_allocator_close(allocator);
}

TEST(the_oldest_goes_first)
{
    CiAllocator *allocator = ci_allocator_open(4096);
    char *blocks[5];
    for (int k = 0; k < 5; k++)
        blocks[k] = ci_allocator_take(allocator, 1024);
    for (int k = 0; k < 5; k++)
        ci_allocator_give(allocator, blocks[k], 1024);
    for (int k = 4; k >= 1; k--)
        CHECK(ci_allocator_take(allocator, 1024) == (void *)blocks[k]);
    for (int k = 1; k < 5; k++)
        ci_allocator_give(allocator, blocks[k], 1024);
    void *big = ci_allocator_take(allocator, 8192);
    ci_allocator_give(allocator, big, 8192); /* more than the cache may hold */
    ci_allocator_trim(allocator);
    ci_allocator_close(allocator);
}

TEST(big_blocks)
{
    CiAllocator *allocator = ci_allocator_open(64 << 20);
    char *block = ci_allocator_take(allocator, (9 << 20) + 5);
    CHECK((uintptr_t)block % (2 << 20) == 0);
    memset(block, 1, (9 << 20) + 5);
    ci_allocator_give(allocator, block, (9 << 20) + 5);
    ci_allocator_close(allocator);
}

static void *
churn(void *arg)
{
    unsigned state = (unsigned)(uintptr_t)&state;
    for (int k = 0; k < 20000; k++) {
        state = state * 1664525u + 1013904223u;
        size_t size = state >> 20;
        char *block = ci_allocator_take(arg, size);
        if (!block)
            abort();
        memset(block, (int)state, size);
        ci_allocator_give(arg, block, size);
    }
    return NULL;
}

TEST(threads)
{
    pthread_t threads[4];
    CiAllocator *allocator = ci_allocator_open(1 << 16);
    for (int k = 0; k < 4; k++)
        pthread_create(&threads[k], NULL, churn, allocator);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    ci_allocator_close(allocator);
}
