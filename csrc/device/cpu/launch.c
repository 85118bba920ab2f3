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
/* How long a unit of a chained scan waits for the previous one, about what the wait costs. A unit
 * that waits longer, perhaps for a suspended thread, ends so that its thread can start other units.
 * This is no threshold of choices.def, because kernels do not depend on it. */
#define PATIENCE_NS 30000
#define UNIT_LATER (-1) /* no CiStatus: the unit is begun again when its turn has come */

typedef struct Job {
    CiKernelFunction function;
    const CiLaunch *launch;
    int64_t numbers[CI_LAUNCH_COUNT];
    CiRuntime *runtime;
    CiFault *fault;
    void *partials;
    int64_t units, chunk_units;
    bool has_chunks; /* on the pool: units run on any thread */
    pthread_t launcher;
    int64_t last_poll;   /* touched by the launcher alone */
    uint8_t *is_waiting; /* of a chain, by unit: it is to be begun again */
    int64_t begun;       /* of a chain: units that somebody has begun */
    _Alignas(64) int64_t ticket; /* of a chain: units that have published */
    _Alignas(64) int32_t ended; /* of a chain: why a unit ends the launch; 0: none does */
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

/* Waits until the previous unit has published, or the launch has ended. The previous unit has
 * started on another thread. If it waits itself, this unit stops waiting. */
static int32_t
wait_for_ticket(void *arg, int64_t unit)
{
    Job *job = arg;
    int64_t start = ci_os_time_ns(), waited = 0;
    while (__atomic_load_n(&job->ticket, __ATOMIC_ACQUIRE) < unit) {
        int32_t ended = __atomic_load_n(&job->ended, __ATOMIC_RELAXED);
        bool is_late = waited > PATIENCE_NS ||
                       __atomic_load_n(&job->is_waiting[unit - 1], __ATOMIC_RELAXED);
        if (ended || is_late)
            return ended ? ended : UNIT_LATER;
        ci_pool_back_off(0);
        waited = ci_os_time_ns() - start;
    }
    return CI_OK;
}

static int32_t
run_units(Job *job, int64_t begin, int64_t end, void *scratch, bool is_again)
{
    const CiLaunch *launch = job->launch;
    CiRun run = {.scratch = scratch,
                 .partials = job->partials,
                 .fault = job->fault,
                 .apply = ci_ufunc_apply,
                 .ufuncs = job->runtime->ufuncs,
                 .ticket = &job->ticket,
                 .wait = wait_for_ticket,
                 .wait_arg = job,
                 .is_again = is_again};
    if (may_poll(job)) {
        run.poll = poll;
        run.poll_arg = job;
    }
    return job->function(launch->buffers, launch->sizes, launch->scalars, begin, end, &run);
}

static int32_t
run_with_scratch(Job *job, int64_t begin, int64_t end, bool is_again)
{
    size_t size = (size_t)job->numbers[CI_LAUNCH_scratch_bytes];
    _Alignas(64) char small[SMALL_SCRATCH];
    if (size <= sizeof small)
        return run_units(job, begin, end, small, is_again);
    void *scratch = ci_allocator_take(job->runtime->allocator, size);
    if (!scratch)
        return CI_ERR_MEMORY;
    int32_t status = run_units(job, begin, end, scratch, is_again);
    ci_allocator_give(job->runtime->allocator, scratch, size);
    return status;
}

static int32_t
run_chunk(void *arg, int64_t chunk)
{
    Job *job = arg;
    int64_t begin = chunk * job->chunk_units, end = begin + job->chunk_units;
    int32_t status = run_with_scratch(job, begin, end < job->units ? end : job->units, false);
    return status || !may_poll(job) ? status : poll(job);
}

/* ---- chains ---- */

/* The unit whose turn it is, if it must be restarted; else -1. Publishing precedes this check, and
 * waiting precedes the check of the turn, so at least one of the two threads sees the other. */
static int64_t
take_waiting(Job *job)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    int64_t unit = __atomic_load_n(&job->ticket, __ATOMIC_ACQUIRE);
    uint8_t waits = true;
    bool is_taken = unit < job->units &&
                    __atomic_compare_exchange_n(&job->is_waiting[unit], &waits, false, false,
                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return is_taken ? unit : -1;
}

static int32_t
run_link(Job *job, int64_t unit, bool is_again)
{
    int32_t status = run_with_scratch(job, unit, unit + 1, is_again);
    if (status != UNIT_LATER)
        return status;
    __atomic_store_n(&job->is_waiting[unit], true, __ATOMIC_RELEASE);
    return CI_OK;
}

/* A unit, and those that wait to be begun again. Once all have begun every thread stays for what is
 * left of them: who waited for a thread that was stopped has left it much. */
static int32_t
run_link_chunk(void *arg, int64_t unit)
{
    Job *job = arg;
    int64_t start = ci_os_time_ns();
    __atomic_fetch_add(&job->begun, 1, __ATOMIC_RELAXED);
    int32_t status = run_link(job, unit, false);
    while (!status && __atomic_load_n(&job->ticket, __ATOMIC_RELAXED) < job->units) {
        int64_t waiting = take_waiting(job);
        if (waiting >= 0)
            status = run_link(job, waiting, true);
        else if (__atomic_load_n(&job->begun, __ATOMIC_RELAXED) < job->units)
            break;
        else {
            ci_pool_back_off(ci_os_time_ns() - start);
            status = __atomic_load_n(&job->ended, __ATOMIC_RELAXED);
        }
    }
    if (!status && may_poll(job))
        status = poll(job);
    if (status)
        __atomic_store_n(&job->ended, status, __ATOMIC_RELAXED);
    return status;
}

static int32_t
run_chunks(Job *job)
{
    int64_t count = (job->units + job->chunk_units - 1) / job->chunk_units;
    int threads = job->launch->max_threads;
    job->has_chunks = true;
    job->launcher = pthread_self();
    job->last_poll = ci_os_time_ns();
    int32_t (*run)(void *arg, int64_t chunk) = job->is_waiting ? run_link_chunk : run_chunk;
    if (job->runtime->pool && threads != 1)
        return ci_pool_run(job->runtime->pool, count, threads, run, job);
    for (int64_t chunk = 0; chunk < count; chunk++) {
        int32_t status = run(job, chunk);
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
    return job->numbers[CI_LAUNCH_scratch_bytes] ? run_with_scratch(job, 0, job->units, false)
                                                 : run_units(job, 0, job->units, NULL, false);
}

/* Chunks to partials, then the finishing function over the points. Units of a chain are chunks of
 * their own, so that those side by side are neighbours, and finish themselves. */
static int32_t
run_split(Job *job, const CiCpuKernel *kernel)
{
    size_t partials = (size_t)job->numbers[CI_LAUNCH_partial_bytes], size = partials + (kernel->finish ? 0 : (size_t)job->units);
    job->partials = ci_allocator_take(job->runtime->allocator, size);
    if (!job->partials)
        return CI_ERR_MEMORY;
    memset(job->partials, 0, size);
    if (!kernel->finish) {
        job->is_waiting = (uint8_t *)job->partials + partials;
        job->chunk_units = 1;
    }
    int32_t status = run_all(job);
    if (!status && kernel->finish) {
        job->function = kernel->finish;
        job->units = job->numbers[CI_LAUNCH_finish_units];
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
               .fault = fault};
    ci_size_table_fill(kernel->launch, launch->sizes, job.numbers);
    job.units = job.numbers[CI_LAUNCH_units];
    if (fault)
        fault->kind = 0;
    job.chunk_units = work < cpu->chunk_elements && work > 0 ? cpu->chunk_elements / work : 1;
    return kernel->is_split ? run_split(&job, kernel) : run_all(&job);
}

void
ci_cpu_set_launch(CiContext *ctx, CiCpuKernel *own, const CiKernel *kernel, const CiLaunchExprs *launch)
{
    own->is_split = launch->of[CI_LAUNCH_partial_bytes] != NULL;
    own->launch = ci_size_table_of_launch(ctx, kernel, launch);
    if (!own->launch)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for a kernel");
}

void
ci_cpu_close(CiExecutable *executable)
{
    CiCpuExecutable *cpu = (CiCpuExecutable *)executable;
    for (int k = 0; k < cpu->nlibraries; k++)
        dlclose(cpu->libraries[k]);
    for (int k = 0; k < cpu->nkernels; k++)
        free(cpu->kernels[k].launch);
    free(cpu);
}
