/* Kernels that the user has written: a thread for each unit. Parameters are the arrays, the sizes,
 * then the number of units. */
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"

#include <stdlib.h>

enum { THREADS = 256, MOST = 128 };

typedef struct UserCode {
    CiUserCode base;
    CiQueue queue; /* without a stream */
    CUmodule module;
    CUfunction function;
} UserCode;

static void
close_code(CiUserCode *base)
{
    UserCode *code = (UserCode *)base;
    ci_cuda_unload(&code->queue, code->module);
    free(code);
}

static int32_t
run_code(CiUserCode *base, const CiQueue *queue, int nbuffers, void *const *buffers, int nsizes,
         const int64_t *sizes, int64_t units, int threads)
{
    UserCode *code = (UserCode *)base;
    CiCudaContextScope scope;
    void *parameters[MOST + 1];
    int count = 0;
    (void)threads;
    if (nbuffers + nsizes > MOST || (units + THREADS - 1) / THREADS > INT32_MAX)
        return CI_ERR_VALUE;
    for (int k = 0; k < nbuffers; k++)
        parameters[count++] = (void *)(uintptr_t)&buffers[k];
    for (int k = 0; k < nsizes; k++)
        parameters[count++] = (void *)(uintptr_t)&sizes[k];
    parameters[count] = &units;
    int32_t status = units > 0 ? ci_cuda_enter(&scope, queue) : CI_OK;
    if (status || units <= 0)
        return status;
    unsigned blocks = (unsigned)((units + THREADS - 1) / THREADS);
    return ci_cuda_leave(&scope, scope.driver->launch(code->function, blocks, 1, 1, THREADS, 1, 1, 0,
                                                      queue->stream, parameters, NULL));
}

static int32_t
load(UserCode *code, const void *cubin)
{
    CiCudaContextScope scope;
    int32_t status = ci_cuda_enter(&scope, &code->queue);
    if (status)
        return status;
    int result = scope.driver->module_load(&code->module, cubin);
    if (!result)
        result = scope.driver->module_function(&code->function, code->module, "cinductor_kernel");
    return ci_cuda_leave(&scope, result);
}

CiUserCode *
ci_cuda_build_text(CiContext *ctx, const CiQueue *queue, const char *source,
                   const CiOptions *options)
{
    CiCudaState *state = ci_cuda_state(queue);
    if (!state || state->why_not[0])
        ci_fail(ctx, CI_ERR_DEVICE, "%s", state ? state->why_not : "no memory for the device");
    const char *where = getenv("CINDUCTOR_NVRTC");
    CiCudaCompile job = {.source = source,
                         .capability = state->capability,
                         .where = where && *where ? where : NULL,
                         .cache = options->cache ? queue->runtime->cache : NULL};
    CiStatus status = ci_cuda_compile(&job);
    if (status)
        ci_fail(ctx, status, "%s", job.message[0] ? job.message : ci_status_text(status));
    UserCode *code = calloc(1, sizeof *code);
    if (code) {
        *code = (UserCode){.base = {.run = run_code, .close = close_code}, .queue = *queue};
        code->queue.stream = NULL;
    }
    status = code ? (CiStatus)load(code, job.cubin) : CI_ERR_MEMORY;
    free(job.cubin);
    if (status && code)
        close_code(&code->base);
    if (status)
        ci_fail(ctx, status, "a kernel could not be loaded");
    return &code->base;
}
