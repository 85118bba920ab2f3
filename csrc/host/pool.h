/* A fork-safe thread pool. Chunks are numbered by the caller and fixed by size, never by thread
 * count; threads take chunk numbers from one counter, so results must not depend on who runs what.
 *
 * The pool is a value owned by its opener (no globals). Workers spin a few microseconds and then
 * sleep on a futex-like wait. After a fork the child finds another process id than the one that
 * made the workers, forgets them, and starts its own at the next parallel call. A call made while
 * another thread uses the pool runs in the calling thread. */
#ifndef CI_HOST_POOL_H
#define CI_HOST_POOL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct CiPool CiPool;

/* Returns NULL without memory. threads 0 = processors of this process's affinity mask. No thread is
 * started before the first parallel call. */
CiPool *ci_pool_open(int threads);
void ci_pool_close(CiPool *pool); /* joins workers of this process */
int ci_pool_threads(const CiPool *pool);
/* Calls body(arg, chunk) for each chunk in [0, count), possibly in parallel. Returns the first
 * non-zero result (other chunks may then be skipped), else 0. Floating-point flags of all chunks
 * are raised in the calling thread. max_threads 0 = all. */
int32_t ci_pool_run(CiPool *pool, int64_t count, int max_threads,
                    int32_t (*body)(void *arg, int64_t chunk), void *arg);
/* For a chunk that waits for one of a lower number, which has begun: a pause, or where the wait is
 * long already other threads run. */
void ci_pool_back_off(int64_t waited_ns);

#endif
