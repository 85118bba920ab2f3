/* Kernels -> procs, and what a launch of each must know. */
#include "device/cuda/cuda.h"
#include "target/cuda/print.h"

#define CI_CUDA_THREADS 256 /* of a block of points */

CiProcs *
ci_cuda_lower(const CiKernels *kernels, bool verify, bool may_vectorise)
{
    const CiFamily family = {.name = "gpu",
                             .target = kernels->target,
                             .lanes = 1,
                             .tiled_lanes = 1,
                             .chains = 1,
                             .threads = CI_CUDA_THREADS,
                             .access_bytes = may_vectorise ? 16 : 1,
                             .has_atomic = ci_cuda_has_atomic,
                             .has_own_order = true};
    return ci_codegen(kernels, &family, verify);
}

const CiProc *
ci_cuda_find_proc(const CiProcs *procs, const CiKernel *kernel, bool is_finish)
{
    for (int k = 0; k < procs->nprocs; k++)
        if (procs->procs[k]->kernel == kernel && procs->procs[k]->is_finish == is_finish)
            return procs->procs[k];
    return NULL;
}

void
ci_cuda_visit_kernels(const CiKernels *kernels, void (*visit)(void *arg, const CiKernel *kernel),
                      void *arg)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int b = 0; kernel->region && b < 2; b++)
            if (kernel->inner[b])
                ci_cuda_visit_kernels(kernel->inner[b], visit, arg);
        if (ci_kernel_has_loops(kernel))
            visit(arg, kernel);
    }
}
