/* Kernels -> procs for blocks of threads. */
#include "device/gpu/gpu.h"

void
ci_gpu_fill_target(CiTarget *target, const CiGpuDialect *dialect)
{
    *target = (CiTarget){.has_trees = true,
                         .waits_for_ended = dialect->waits_for_ended,
                         .has_lanes_across_threads = true,
                         .has_templates = true,
                         .splits_running = true,
                         .has_own_order = true,
                         .row_bytes = 64 * 1024,
                         .chunk_elements = 1024,
                         .tree_elements = 512,
                         .tile_rows = 32,
                         .max_buffers = 256,
                         .max_fused_nests = 64,
                         .has_atomic = ci_gpu_has_atomic(dialect)};
    for (int k = 0; k < CI_DTYPE_COUNT; k++)
        target->dtypes[k] = dialect->has_f64 || (k != CI_DTYPE_f64 && k != CI_DTYPE_c128);
}

CiProcs *
ci_gpu_lower(const CiKernels *kernels, const CiGpuDialect *dialect, bool verify, bool may_vectorise)
{
    const CiFamily family = {.name = "gpu",
                             .target = kernels->target,
                             .lanes = 1,
                             .tiled_lanes = 1,
                             .chains = 1,
                             .threads = dialect->threads,
                             .warp = dialect->warp,
                             .access_bytes = may_vectorise ? dialect->access_bytes : 1,
                             .has_atomic = ci_gpu_has_atomic(dialect),
                             .has_own_order = true};
    return ci_codegen(kernels, &family, verify);
}

const CiProc *
ci_gpu_find_proc(const CiProcs *procs, const CiKernel *kernel, bool is_finish)
{
    for (int k = 0; k < procs->nprocs; k++)
        if (procs->procs[k]->kernel == kernel && procs->procs[k]->is_finish == is_finish)
            return procs->procs[k];
    return NULL;
}

void
ci_gpu_visit_kernels(const CiKernels *kernels, void (*visit)(void *arg, const CiKernel *kernel),
                     void *arg)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int b = 0; kernel->region && b < 2; b++)
            if (kernel->inner[b])
                ci_gpu_visit_kernels(kernel->inner[b], visit, arg);
        if (ci_kernel_has_loops(kernel))
            visit(arg, kernel);
    }
}

static void
count_kernel(void *arg, const CiKernel *kernel)
{
    int *count = arg;
    *count = kernel->id >= *count ? kernel->id + 1 : *count;
}

int
ci_gpu_count_kernels(const CiKernels *kernels)
{
    int count = 0;
    ci_gpu_visit_kernels(kernels, count_kernel, &count);
    return count;
}
