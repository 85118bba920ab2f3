/* The thread pool of the CPU: runs the chunks of one job at a time on the caller's thread and on
 * workers.
 *
 * One job at a time. Its state is one word, the gate: a generation, an open bit, and the number of
 * workers inside. A worker enters by a compare-and-swap on an open gate and takes chunk numbers
 * from a counter. The caller works too, closes the gate when no number is left, and waits only for
 * workers that did enter. So a worker that wakes late costs nothing, and the job's fields are
 * written only while no worker is inside. */
#define _GNU_SOURCE
#include "host/pool.h"

#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

#define MAX_THREADS 1024
#define SPIN_NS 10000
#define YIELD_NS 10000000 /* longer waits sleep between checks */
#define NAP_NS 50000

#define INSIDE 0x7fffu
#define OPEN 0x8000u
#define WAITING 0x10000u /* the caller sleeps on the gate */
#define GENERATION 0x20000u

struct CiPool {
    int threads;
    atomic_int owner; /* process that the workers belong to; 0 while a forked child cleans up */
    atomic_bool busy;
    pthread_t *workers;
    int nworkers;
    atomic_bool stop;
    _Alignas(
        64) _Atomic uint32_t wake; /* changes when there is something new; workers sleep on it */
    _Atomic uint32_t sleepers;
    _Alignas(64) _Atomic uint32_t gate;
    uint32_t most_inside;
    int64_t count;
    int32_t (*body)(void *arg, int64_t chunk);
    void *arg;
    _Atomic int32_t answer;
    _Atomic int float_flags; /* raised by workers, for the caller's environment */
    _Alignas(64) _Atomic int64_t next;
};

static void
futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void
ci_pool_back_off(int64_t waited_ns)
{
    if (waited_ns < SPIN_NS)
        relax();
    else if (waited_ns < YIELD_NS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* True once (*word & mask) is value, or is not, as wanted; false after a few microseconds. */
static bool
spin(_Atomic uint32_t *word, uint32_t mask, uint32_t value, bool wanted)
{
    int64_t start = ci_os_time_ns();
    do {
        for (int k = 0; k < 64; k++) {
            if (((atomic_load_explicit(word, memory_order_acquire) & mask) == value) == wanted)
                return true;
            relax();
        }
    } while (ci_os_time_ns() - start < SPIN_NS);
    return false;
}

static void
take_chunks(CiPool *pool)
{
    while (atomic_load_explicit(&pool->answer, memory_order_relaxed) == 0) {
        int64_t chunk = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (chunk >= pool->count)
            return;
        int32_t answer = pool->body(pool->arg, chunk), none = 0;
        if (answer)
            atomic_compare_exchange_strong(&pool->answer, &none, answer);
    }
}

static bool
enter(CiPool *pool)
{
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    while (gate & OPEN) {
        uint32_t inside = gate & INSIDE;
        /* Read before entering it may be of another job; then the exchange fails. */
        if (inside >= __atomic_load_n(&pool->most_inside, __ATOMIC_RELAXED))
            return false;
        if (atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1))
            return true;
    }
    return false;
}

static void
leave(CiPool *pool)
{
    uint32_t gate = atomic_fetch_sub(&pool->gate, 1) - 1;
    if ((gate & INSIDE) == 0 && (gate & WAITING))
        futex_wake(&pool->gate, 1);
}

static void *
work(void *arg)
{
    CiPool *pool = arg;
    /* One before now: what was announced while this thread started is not missed. */
    uint32_t seen = atomic_load(&pool->wake) - 1;
    for (;;) {
        while (!spin(&pool->wake, UINT32_MAX, seen, false)) {
            atomic_fetch_add(&pool->sleepers, 1);
            futex_wait(&pool->wake, seen);
            atomic_fetch_sub(&pool->sleepers, 1);
        }
        seen = atomic_load(&pool->wake);
        if (atomic_load(&pool->stop))
            return NULL;
        if (enter(pool)) {
            feclearexcept(FE_ALL_EXCEPT);
            take_chunks(pool);
            atomic_fetch_or(&pool->float_flags, fetestexcept(FE_ALL_EXCEPT));
            leave(pool);
        }
    }
}

static int
count_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return count > 0 ? count : 1;
}

static int
clamp_threads(int threads)
{
    if (threads <= 0)
        threads = count_processors();
    return threads < MAX_THREADS ? threads : MAX_THREADS;
}

CiPool *
ci_pool_open(int threads)
{
    CiPool *pool = aligned_alloc(64, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (CiPool){.workers = calloc(MAX_THREADS, sizeof(pthread_t))};
    if (!pool->workers) {
        free(pool);
        return NULL;
    }
    pool->threads = clamp_threads(threads);
    atomic_store(&pool->owner, getpid());
    return pool;
}

void
ci_pool_close(CiPool *pool)
{
    if (!pool)
        return;
    if (atomic_load(&pool->owner) == getpid()) {
        atomic_store(&pool->stop, true);
        atomic_fetch_add(&pool->wake, 1);
        futex_wake(&pool->wake, INT_MAX);
        for (int k = 0; k < pool->nworkers; k++)
            pthread_join(pool->workers[k], NULL);
    }
    free(pool->workers);
    free(pool);
}

int
ci_pool_threads(const CiPool *pool)
{
    return pool->threads;
}

/* Starts workers up to count, or as many as the system gives. The caller holds the pool. */
static void
start_workers(CiPool *pool, int count)
{
    if (pool->nworkers >= count)
        return;
    sigset_t all, old;
    sigfillset(&all);
    /* Signals are for the threads of the program, not for workers. */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool->nworkers < count &&
           pthread_create(&pool->workers[pool->nworkers], NULL, work, pool) == 0)
        pool->nworkers++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* After a fork the workers are gone and their words hold whatever they held. */
static void
forget_workers(CiPool *pool)
{
    pool->nworkers = 0;
    atomic_store(&pool->wake, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->gate, 0);
    atomic_store(&pool->stop, false);
}

/* True when the caller now has the pool to itself. */
static bool
acquire(CiPool *pool)
{
    int self = getpid(), owner = atomic_load(&pool->owner);
    if (owner != self) {
        if (owner == 0 || !atomic_compare_exchange_strong(&pool->owner, &owner, 0))
            return false;
        forget_workers(pool);
        atomic_store(&pool->busy, true);
        atomic_store(&pool->owner, self);
        return true;
    }
    return !atomic_exchange(&pool->busy, true);
}

static int32_t
run_alone(int64_t count, int32_t (*body)(void *arg, int64_t chunk), void *arg)
{
    int32_t answer = 0;
    for (int64_t chunk = 0; chunk < count && !answer; chunk++)
        answer = body(arg, chunk);
    return answer;
}

/* Opens the gate to `most` workers, works, and returns when the last one has left. */
static void
run_together(CiPool *pool, int most)
{
    uint32_t old = atomic_load(&pool->gate);
    __atomic_store_n(&pool->most_inside, (uint32_t)most, __ATOMIC_RELAXED);
    atomic_store(&pool->gate, ((old & ~(GENERATION - 1)) + GENERATION) | OPEN);
    atomic_fetch_add(&pool->wake, 1);
    if (atomic_load(&pool->sleepers))
        futex_wake(&pool->wake, most);
    take_chunks(pool);
    atomic_fetch_and(&pool->gate, ~OPEN);
    while (!spin(&pool->gate, INSIDE, 0, true)) {
        uint32_t gate = atomic_fetch_or(&pool->gate, WAITING) | WAITING;
        if (gate & INSIDE)
            futex_wait(&pool->gate, gate);
    }
}

int32_t
ci_pool_run(CiPool *pool, int64_t count, int max_threads, int32_t (*body)(void *arg, int64_t chunk),
            void *arg)
{
    int64_t threads = ci_pool_threads(pool);
    if (max_threads > 0 && max_threads < threads)
        threads = max_threads;
    if (count < threads)
        threads = count;
    if (threads <= 1 || !acquire(pool))
        return run_alone(count, body, arg);
    start_workers(pool, (int)threads - 1);
    pool->count = count;
    pool->body = body;
    pool->arg = arg;
    atomic_store(&pool->answer, 0);
    atomic_store(&pool->next, 0);
    atomic_store(&pool->float_flags, 0);
    run_together(pool, (int)threads - 1);
    int32_t answer = atomic_load(&pool->answer);
    int flags = atomic_load(&pool->float_flags);
    if (flags)
        feraiseexcept(flags);
    atomic_store(&pool->busy, false);
    return answer;
}
