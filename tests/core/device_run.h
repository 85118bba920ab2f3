/* Runs the text of a loops level on a CPU backend over generated inputs and returns the contents
 * of every buffer, so that backends can be compared bit by bit. */
#ifndef TEST_DEVICE_RUN_H
#define TEST_DEVICE_RUN_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/templates.h"
#include "device/device.h"
#include "schedule/schedule.h"

typedef struct TestRun {
    CiLoops *loops;
    void **data; /* by buffer id */
    int64_t *bytes;
} TestRun;

typedef struct TestSizes {
    const char *name;
    int64_t value; /* every size symbol has this value */
} TestSizes;

static inline uint64_t
test_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Mostly moderate numbers, sometimes infinities, NaN, zeros and extremes. */
static inline double
test_float(uint64_t *state, bool is_tame)
{
    static const double wild[] = {0.0, -0.0,    1.0,  -1.0,   INFINITY, -INFINITY, NAN,
                                  0.5, 65504.0, 5e-8, -1e-40, 3e38,     2.5};
    uint64_t bits = test_random(state);
    if (!is_tame && bits % 16 == 0)
        return wild[(bits >> 8) % (sizeof wild / sizeof *wild)];
    double unit = (double)(bits >> 11) * 0x1p-53;
    return is_tame ? unit * 2 + 0.25 : (unit - 0.5) * (bits % 8 == 1 ? 2000 : 8);
}

static inline void
test_fill(CiDtype dtype, void *data, int64_t count, uint64_t seed, bool is_tame)
{
    uint64_t state = seed * 2654435761u + 88172645463325252u;
    int size = ci_dtype_size(dtype);
    for (int64_t k = 0; k < count; k++) {
        CiConst v = {0, 0, 0};
        uint64_t bits = test_random(&state);
        if (ci_dtype_is_integral(dtype))
            v = ci_const_int(dtype, bits % 4 == 0
                                        ? (int64_t)(bits >> 3)
                                        : (int64_t)(bits >> 8) % 100 - (is_tame ? 0 : 50));
        else
            v = (CiConst){0, test_float(&state, is_tame), test_float(&state, is_tame)};
        if (dtype == CI_DTYPE_bool)
            v.i = bits >> 5 & 1;
        ci_const_store(dtype, v, (char *)data + size * k);
    }
}

static inline int64_t
test_value_of(void *arg, const CiExpr *symbol)
{
    (void)symbol;
    return *(int64_t *)arg;
}

static inline int64_t
test_evaluate(CiContext *ctx, const CiExpr *e, int64_t size)
{
    return e ? ci_expr_evaluate(ctx, e, test_value_of, &size) : 0;
}

static inline void
test_allocate(CiContext *ctx, TestRun *run, int64_t size, uint64_t seed, bool is_tame)
{
    CiLoops *loops = run->loops;
    run->data = CI_NEW_ARRAY(ctx, void *, loops->nbuffers + 1);
    run->bytes = CI_NEW_ARRAY(ctx, int64_t, loops->nbuffers + 1);
    for (int k = 0; k < loops->nbuffers; k++) {
        CiBuffer *buffer = loops->buffers[k];
        int64_t count = 1;
        for (int a = 0; a < buffer->rank; a++)
            count *= test_evaluate(ctx, buffer->sizes[a], size);
        run->bytes[k] = count * ci_dtype_size(buffer->dtype);
        run->data[k] = ci_new(ctx, (size_t)run->bytes[k] + 64);
        if (buffer->kind == CI_BUFFER_input)
            test_fill(buffer->dtype, run->data[k], count, seed + (uint64_t)k, is_tame);
    }
}

static inline int32_t
test_launch(CiContext *ctx, TestRun *run, CiExecutable *exe, const CiKernel *kernel, int64_t size,
            const CiSlot *scalars)
{
    void **buffers = CI_NEW_ARRAY(ctx, void *, kernel->nbuffers + 1);
    int64_t *sizes = CI_NEW_ARRAY(ctx, int64_t, kernel->nsize_args + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        buffers[k] = run->data[kernel->buffers[k]->id];
    for (int k = 0; k < kernel->nsize_args; k++)
        sizes[k] = test_evaluate(ctx, kernel->size_args[k], size);
    CiLaunch launch = {
        .kernel = kernel->id, .buffers = buffers, .sizes = sizes, .scalars = scalars};
    CiFault fault;
    return exe->launch(exe, &launch, &fault);
}

typedef struct TestSetting {
    const char *backend, *arch;
    bool fusion, is_tame;
    int threads;
    int64_t size; /* of every symbol */
    uint64_t seed;
} TestSetting;

typedef struct TestJob {
    const TestSetting *setting;
    CiRuntime runtime;
    CiExecutable *exe;
    TestRun run;
} TestJob;

static inline void
test_job(CiContext *ctx, void *arg)
{
    static const CiSlot scalars[4] = {{.f = 1.75}, {.i = 3}, {.c = {0.5, -2.0}}, {.f = -0.125}};
    TestJob *job = arg;
    const TestSetting *setting = job->setting;
    CiOptions options;
    ci_options_default(&options);
    options.arch = setting->arch ? setting->arch : "";
    const CiBackend *backend = ci_backend_find(NULL, "cpu", setting->backend);
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    *machine = ci_backend_machine(backend, &options, true);
    options.fusion = options.reuse = setting->fusion;
    CiKernels *kernels = ci_schedule(job->run.loops, machine, &options);
    CiBuildInfo info = {0};
    CiQueue queue = {.backend = backend, .runtime = &job->runtime};
    job->exe = backend->compiler->build(ctx, &queue, kernels, &options, &info);
    test_allocate(ctx, &job->run, setting->size, setting->seed, setting->is_tame);
    for (int k = 0; k < kernels->nkernels; k++) {
        int32_t status =
            test_launch(ctx, &job->run, job->exe, kernels->kernels[k], setting->size, scalars);
        if (status != CI_OK)
            ci_fail(ctx, (CiStatus)status, "kernel %d answered %d", k, (int)status);
    }
}

/* Buffers after the run, in memory of ctx; failures are raised through ctx. Kernels that the
 * disk cache contains are not compiled again, so a program may run at many sizes. */
static inline TestRun
test_run(CiContext *ctx, const char *text, const TestSetting *setting)
{
    TestJob job = {.setting = setting, .run = {.loops = ci_loops_parse(ctx, text)}};
    job.runtime.pool = setting->threads > 1 ? ci_pool_open(setting->threads) : NULL;
    job.runtime.allocator = ci_allocator_open(1 << 20);
    const char *folder = getenv("CINDUCTOR_CACHE_DIR");
    job.runtime.cache = folder ? ci_cache_open(folder) : NULL;
    CiStatus status = ci_protect(ctx, test_job, &job);
    if (job.exe)
        job.exe->close(job.exe);
    ci_runtime_shut(&job.runtime);
    ci_allocator_close(job.runtime.allocator);
    if (job.runtime.cache)
        ci_cache_close(job.runtime.cache);
    if (job.runtime.pool)
        ci_pool_close(job.runtime.pool);
    if (status != CI_OK)
        ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
    return job.run;
}

/* The first element of a buffer that differs (a NaN is equal to any NaN), or -1. */
static inline int64_t
test_first_difference(const CiBuffer *buffer, const void *a, const void *b, int64_t bytes)
{
    int size = ci_dtype_size(buffer->dtype);
    for (int64_t k = 0; k < bytes / size; k++)
        if (!ci_const_equal(buffer->dtype, ci_const_load(buffer->dtype, (const char *)a + size * k),
                            ci_const_load(buffer->dtype, (const char *)b + size * k)))
            return k;
    return -1;
}

#endif
