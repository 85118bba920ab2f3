/* Emulates GPU kernels on the CPU: without a GPU it checks that accesses are in bounds, and that no
 * thread accesses an element that another one stores before a barrier. */
#include "device/cuda/cuda.h"
#include "device/interp/program.h"

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    (void)options, (void)out, (void)capacity;
    return "it is slow: it interprets kernels of the GPU on the processor, to check them";
}

extern const CiDevice ci_device_cuda_on_host;
extern const CiCompiler ci_compiler_cuda_interp;

const CiDevice ci_device_cuda_on_host = {
    .abi = CI_DEVICE_ABI,
    .name = "cuda",
    .doc = "memory of the host, for the interpreter of GPU kernels",
};

const CiCompiler ci_compiler_cuda_interp = {
    .abi = CI_DEVICE_ABI,
    .name = "interp",
    .doc = "interpreter of GPU kernels",
    .why_not_available = why_not_available,
    .fill_machine = ci_cuda_fill_machine,
    .lower = ci_gpu_lower_program,
    .build = ci_interp_build,
};
