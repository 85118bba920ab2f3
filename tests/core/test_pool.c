/* Tests the thread pool: the same result for any number of threads, early stops, nested and
 * concurrent calls, and float flags. */
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "ci_test.h"
#include "host/pool.h"

enum { CHUNKS = 500 };

typedef struct Job {
    CiPool *pool;
    double parts[CHUNKS];
    _Atomic int64_t calls;
    int64_t fail_at;
} Job;

static int32_t
fill(void *arg, int64_t chunk)
{
    Job *job = arg;
    double sum = 0;
    for (int k = 1; k < 50; k++)
        sum += 1.0 / (double)(chunk * 50 + k);
    job->parts[chunk] = sum;
    atomic_fetch_add(&job->calls, 1);
    return chunk == job->fail_at ? 42 : 0;
}

static double
run(CiPool *pool, Job *job, int most)
{
    memset(job, 0, sizeof *job);
    job->fail_at = -1;
    CHECK_INT(ci_pool_run(pool, CHUNKS, most, fill, job), 0);
    CHECK_INT(atomic_load(&job->calls), CHUNKS);
    double sum = 0;
    for (int k = 0; k < CHUNKS; k++)
        sum += job->parts[k];
    return sum;
}

TEST(the_same_for_any_number_of_threads)
{
    Job job;
    double expected = 0;
    for (int threads = 1; threads <= 9; threads++) {
        CiPool *pool = ci_pool_open(threads);
        CHECK_INT(ci_pool_threads(pool), threads);
        if (threads == 1)
            expected = run(pool, &job, 0);
        for (int k = 0; k < 200; k++)
            CHECK(run(pool, &job, k % 5) == expected);
        ci_pool_close(pool);
    }
}

TEST(edges)
{
    Job job = {.fail_at = -1};
    CiPool *pool = ci_pool_open(0);
    CHECK(ci_pool_threads(pool) >= 1);
    CHECK_INT(ci_pool_run(pool, 0, 0, fill, &job), 0);
    CHECK_INT(ci_pool_run(pool, -3, 0, fill, &job), 0);
    CHECK_INT(atomic_load(&job.calls), 0);
    CHECK_INT(ci_pool_run(pool, 1, 0, fill, &job), 0);
    CHECK_INT(atomic_load(&job.calls), 1);
    ci_pool_close(pool);
    ci_pool_close(NULL);
    pool = ci_pool_open(1 << 30);
    CHECK(ci_pool_threads(pool) <= 1024);
    ci_pool_close(pool);
}

TEST(an_answer_stops_the_others)
{
    CiPool *pool = ci_pool_open(4);
    for (int k = 0; k < 300; k++) {
        Job job = {.fail_at = k};
        CHECK_INT(ci_pool_run(pool, CHUNKS, 0, fill, &job), 42);
        CHECK(atomic_load(&job.calls) <= CHUNKS);
    }
    ci_pool_close(pool);
}

static int32_t
count(void *arg, int64_t chunk)
{
    Job *job = arg;
    (void)chunk;
    atomic_fetch_add(&job->calls, 1);
    return 0;
}

static int32_t
nested(void *arg, int64_t chunk)
{
    Job *job = arg;
    (void)chunk;
    return ci_pool_run(job->pool, 10, 0, count, job);
}

TEST(a_call_inside_a_call_runs_in_its_thread)
{
    Job job = {.fail_at = -1, .pool = ci_pool_open(4)};
    CHECK_INT(ci_pool_run(job.pool, 20, 0, nested, &job), 0);
    CHECK_INT(atomic_load(&job.calls), 200);
    ci_pool_close(job.pool);
}

static void *
run_often(void *arg)
{
    Job *job = calloc(1, sizeof *job);
    for (int k = 0; k < 200; k++)
        run(arg, job, 0);
    free(job);
    return NULL;
}

TEST(several_threads_share_a_pool)
{
    pthread_t threads[4];
    CiPool *pool = ci_pool_open(3);
    for (int k = 0; k < 4; k++)
        pthread_create(&threads[k], NULL, run_often, pool);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    ci_pool_close(pool);
}

static int32_t
divide(void *arg, int64_t chunk)
{
    volatile double zero = 0, one = 1, quotient;
    usleep(100); /* so that no thread does all chunks */
    if (!pthread_equal(*(pthread_t *)arg, pthread_self()))
        quotient = one / zero;
    (void)quotient;
    (void)chunk;
    return 0;
}

TEST(float_flags_of_workers_reach_the_caller)
{
    pthread_t self = pthread_self();
    CiPool *pool = ci_pool_open(3);
    feclearexcept(FE_ALL_EXCEPT);
    ci_pool_run(pool, 100, 0, divide, &self);
    CHECK(fetestexcept(FE_DIVBYZERO));
    feclearexcept(FE_ALL_EXCEPT);
    ci_pool_close(pool);
}

TEST(sleeping_workers_wake)
{
    Job job;
    CiPool *pool = ci_pool_open(4);
    for (int k = 0; k < 30; k++) {
        run(pool, &job, 0);
        usleep(1000);
    }
    ci_pool_close(pool);
}

/* Prints the time of a hot call with two chunks. The time is not asserted. */
TEST(hot_calls)
{
    Job job = {.fail_at = -1};
    CiPool *pool = ci_pool_open(2);
    ci_pool_run(pool, 2, 0, fill, &job);
    int64_t start = ci_os_time_ns();
    for (int k = 0; k < 20000; k++)
        ci_pool_run(pool, 2, 0, fill, &job);
    printf("a hot call of two chunks: %lld ns\n", (long long)(ci_os_time_ns() - start) / 20000);
    CHECK_INT(atomic_load(&job.calls), 40002);
    ci_pool_close(pool);
}
