/* What kernels of the GPU do, walked on the processor: without a card it is seen whether accesses
 * stay inside of memory, and whether a thread touches what another stores before a barrier. */
#include "device/cuda/cuda.h"
#include "device/interp/program.h"

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    (void)options, (void)out, (void)capacity;
    return "it walks procs to see that they are right, and is slow";
}

static void
fill_target(CiTarget *target, const CiOptions *options)
{
    ci_backend_find("cuda", "cuda")->fill_target(target, options);
    target->backend = "interp";
}

static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    return ci_cuda_lower(kernels, options, true);
}

extern const CiBackend ci_backend_cuda_interp;

static CiExecutable *
build(CiContext *ctx, const CiKernels *kernels, const CiOptions *options, CiRuntime *runtime,
      CiBuildInfo *info)
{
    return ci_interp_build(&ci_backend_cuda_interp, ctx, kernels, options, runtime, info);
}

const CiBackend ci_backend_cuda_interp = {
    .device = "cuda",
    .name = "interp",
    .doc = "walks what kernels of the GPU do, on the processor",
    .why_not_available = why_not_available,
    .fill_target = fill_target,
    .has_own_order = true,
    .lower = lower,
    .build = build,
    .close = ci_interp_close,
    .launch = ci_interp_launch,
};
