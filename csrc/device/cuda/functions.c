/* The functions of a loaded module, a job for NVRTC, and procs for a device. */
#include "device/cuda/executable.h"

#include <stdio.h>

#define DEFAULT_CAPABILITY 90
#define TILES_CAPABILITY 80 /* from which on there are products of tiles */
#define ATTRIBUTE_dynamic_shared 8

/* Parts that meet use some shared memory too. */
static int
find_function(const CiCudaContextScope *scope, CUmodule module, const char *name, CiGpuFunction *function)
{
    CUfunction found = NULL;
    int result = scope->driver->module_function(&found, module, name);
    function->run = found;
    if (!result && function->shared_bytes > CI_STATIC_SHARED_BYTES / 2)
        result = scope->driver->function_attribute(found, ATTRIBUTE_dynamic_shared,
                                                   (int)function->shared_bytes);
    return result;
}

int
ci_cuda_find_functions(const CiCudaContextScope *scope, CUmodule module, CiGpuLayout *layout)
{
    char finish[64];
    int result = find_function(scope, module, layout->name, &layout->functions[0]);
    snprintf(finish, sizeof finish, "%s_finish", layout->name);
    if (!result && layout->has_finish)
        result = find_function(scope, module, finish, &layout->functions[1]);
    return result;
}

CiCudaCompile
ci_cuda_compile_job(CiCudaExecutable *executable, const char *source)
{
    const CiCudaState *state = ci_cuda_known(&executable->base.queue);
    return (CiCudaCompile){
        .source = source,
        .is_fast = executable->is_fast,
        .where = executable->where,
        .cache = executable->uses_cache ? executable->base.queue.runtime->cache : NULL,
        .capability = state && state->capability ? state->capability : DEFAULT_CAPABILITY};
}

CiProcs *
ci_cuda_lower(const CiQueue *queue, const CiKernels *kernels, bool verify, bool may_vectorise)
{
    const CiCudaState *state = ci_cuda_known(queue);
    CiMachine machine = *kernels->machine;
    CiKernels own = *kernels;
    own.machine = &machine;
    if (state && state->capability && state->capability < TILES_CAPABILITY)
        machine.tensor_dtypes = 0;
    if (state && state->capability && state->shared_limit < machine.request_bytes)
        machine.request_bytes = state->shared_limit;
    return ci_gpu_lower(&own, verify, may_vectorise);
}

int
ci_cuda_launch_early(const CiCudaContextScope *scope, CUfunction kernel, unsigned blocks, unsigned rows, unsigned threads,
                     unsigned shared_bytes, CUstream stream, void **parameters)
{
    CiCudaLaunchAttribute overlaps = {CI_CUDA_OVERLAPS, {[1] = 1}};
    CiCudaLaunch launch = {.grid = {blocks, rows, 1},
                           .block = {threads, 1, 1},
                           .shared_bytes = shared_bytes,
                           .stream = stream,
                           .attributes = &overlaps,
                           .nattributes = scope->state->capability >= 90};
    return scope->driver->launch_with(&launch, kernel, parameters, NULL);
}
