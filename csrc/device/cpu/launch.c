/* Running a kernel: small work straight on the calling thread, without a lock and without memory
 * from anywhere; large work in chunks on the pool. Chunks are fixed by size, so that who runs what
 * changes nothing. */
#include "device/cpu/cpu.h"

#include "base/os.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SCRATCH 4096
#define POLL_NS 5000000

typedef struct Job {
    CiKernelFunction function;
    const CiLaunch *launch;
    CiRuntime *runtime;
    CiFault *fault;
    void *partials;
    int64_t units, chunk_units;
    bool has_chunks; /* on the pool: units run on any thread */
    pthread_t launcher;
    int64_t last_poll; /* touched by the launcher alone */
} Job;

/* Asks the caller at most every few milliseconds whether to go on. */
static int32_t
poll(void *arg)
{
    Job *job = arg;
    int64_t now = ci_os_time_ns();
    if (now - job->last_poll < POLL_NS)
        return CI_OK;
    job->last_poll = now;
    return job->runtime->poll(job->runtime->poll_arg) ? CI_ERR_INTERRUPTED : CI_OK;
}

/* Only the thread that launched may ask: it may hold what asking needs. */
static bool
may_poll(const Job *job)
{
    return job->runtime->poll && !job->launch->is_on_pool &&
           (!job->has_chunks || pthread_equal(pthread_self(), job->launcher));
}

static int32_t
run_units(Job *job, int64_t begin, int64_t end, void *scratch)
{
    const CiLaunch *launch = job->launch;
    CiRun run = {.scratch = scratch,
                 .partials = job->partials,
                 .fault = job->fault,
                 .apply = ci_ufunc_apply,
                 .ufuncs = job->runtime->ufuncs};
    if (may_poll(job)) {
        run.poll = poll;
        run.poll_arg = job;
    }
    return job->function(launch->buffers, launch->sizes, launch->scalars, begin, end, &run);
}

static int32_t
run_with_scratch(Job *job, int64_t begin, int64_t end)
{
    size_t size = (size_t)job->launch->scratch_bytes;
    _Alignas(64) char small[SMALL_SCRATCH];
    if (size <= sizeof small)
        return run_units(job, begin, end, small);
    void *scratch = ci_allocator_take(job->runtime->allocator, size);
    if (!scratch)
        return CI_ERR_MEMORY;
    int32_t status = run_units(job, begin, end, scratch);
    ci_allocator_give(job->runtime->allocator, scratch, size);
    return status;
}

static int32_t
run_chunk(void *arg, int64_t chunk)
{
    Job *job = arg;
    int64_t begin = chunk * job->chunk_units, end = begin + job->chunk_units;
    int32_t status = run_with_scratch(job, begin, end < job->units ? end : job->units);
    return status || !may_poll(job) ? status : poll(job);
}

static int32_t
run_chunks(Job *job)
{
    int64_t count = (job->units + job->chunk_units - 1) / job->chunk_units;
    int threads = job->launch->max_threads;
    job->has_chunks = true;
    job->launcher = pthread_self();
    job->last_poll = ci_os_time_ns();
    if (job->runtime->pool && threads != 1)
        return ci_pool_run(job->runtime->pool, count, threads, run_chunk, job);
    for (int64_t chunk = 0; chunk < count; chunk++) {
        int32_t status = run_chunk(job, chunk);
        if (status)
            return status;
    }
    return CI_OK;
}

static int32_t
run_all(Job *job)
{
    if (job->units <= 0)
        return CI_OK;
    if (job->units > job->chunk_units)
        return run_chunks(job);
    return job->launch->scratch_bytes ? run_with_scratch(job, 0, job->units)
                                      : run_units(job, 0, job->units, NULL);
}

/* Chunks to partials, then the finishing function over the points. */
static int32_t
run_split(Job *job, const CiCpuKernel *kernel)
{
    size_t size = (size_t)(job->units * kernel->partial_bytes);
    job->partials = ci_allocator_take(job->runtime->allocator, size);
    if (!job->partials)
        return CI_ERR_MEMORY;
    memset(job->partials, 0, size);
    int32_t status = run_all(job);
    if (!status) {
        job->function = kernel->finish;
        job->units = job->launch->finish_units;
        status = run_all(job);
    }
    ci_allocator_give(job->runtime->allocator, job->partials, size);
    return status;
}

int32_t
ci_cpu_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    CiCpuExecutable *cpu = (CiCpuExecutable *)executable;
    const CiCpuKernel *kernel = &cpu->kernels[launch->kernel];
    int64_t work = launch->unit_work;
    Job job = {.function = kernel->run,
               .launch = launch,
               .runtime = executable->queue.runtime,
               .fault = fault,
               .units = launch->units};
    if (fault)
        fault->kind = 0;
    job.chunk_units = work < cpu->chunk_elements && work > 0 ? cpu->chunk_elements / work : 1;
    return kernel->finish ? run_split(&job, kernel) : run_all(&job);
}

void
ci_cpu_close(CiExecutable *executable)
{
    CiCpuExecutable *cpu = (CiCpuExecutable *)executable;
    for (int k = 0; k < cpu->nlibraries; k++)
        dlclose(cpu->libraries[k]);
    free(cpu);
}
