/* Forks while other threads run. Built without sanitizers, because AddressSanitizer's allocator
 * does not survive a fork that happens while another thread is inside the allocator. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci_test.h"
#include "host/pool.h"

enum { CHUNKS = 500 };

typedef struct Job {
    CiPool *pool;
    double parts[CHUNKS];
    _Atomic int64_t calls;
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
    return 0;
}

static double
run(CiPool *pool, Job *job, int most)
{
    memset(job, 0, sizeof *job);
    CHECK_INT(ci_pool_run(pool, CHUNKS, most, fill, job), 0);
    CHECK_INT(atomic_load(&job->calls), CHUNKS);
    double sum = 0;
    for (int k = 0; k < CHUNKS; k++)
        sum += job->parts[k];
    return sum;
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

TEST(a_forked_child_has_workers_of_its_own)
{
    Job job;
    CiPool *pool = ci_pool_open(4);
    double expected = run(pool, &job, 0);
    for (int k = 0; k < 20; k++) {
        pid_t child = fork();
        if (child == 0) {
            bool good = run(pool, &job, 0) == expected && run(pool, &job, 0) == expected;
            ci_pool_close(pool);
            _exit(good ? 0 : 1);
        }
        int status;
        CHECK(run(pool, &job, 0) == expected);
        waitpid(child, &status, 0);
        CHECK_INT(status, 0);
    }
    ci_pool_close(pool);
}

static void *
fork_and_run(void *arg)
{
    Job *job = calloc(1, sizeof *job);
    for (int k = 0; k < 20; k++) {
        pid_t child = fork();
        if (child == 0) {
            run(arg, job, 0);
            _exit(ci_test_failures ? 1 : 0);
        }
        int status;
        waitpid(child, &status, 0);
        CHECK_INT(status, 0);
    }
    free(job);
    return NULL;
}

TEST(a_fork_in_the_middle_of_a_job)
{
    pthread_t thread;
    CiPool *pool = ci_pool_open(3);
    pthread_create(&thread, NULL, fork_and_run, pool);
    run_often(pool);
    pthread_join(thread, NULL);
    ci_pool_close(pool);
}
