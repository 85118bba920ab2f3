/* Kernels -> procs for blocks of threads. */
#include "device/gpu/gpu.h"
#include "target/gpu/print.h"

void
ci_gpu_fill_machine(CiMachine *machine, const CiGpuDialect *dialect)
{
    *machine = ci_machine(CI_MACHINE_sm_90);
    machine->dialect = dialect;
    machine->waits_for_ended = dialect->waits_for_ended;
    machine->threads = dialect->threads;
    machine->warp = dialect->warp;
    machine->access_bytes = dialect->access_bytes;
    machine->has_atomic = ci_gpu_has_atomic(dialect);
    if (!dialect->rows_of_tiles)
        machine->tensor_dtypes = 0;
    if (!dialect->has_f64)
        machine->dtypes &= ~(CI_DTYPE_BIT(CI_DTYPE_f64) | CI_DTYPE_BIT(CI_DTYPE_c128));
}

CiProcs *
ci_gpu_lower(const CiKernels *kernels, bool verify, bool may_vectorise)
{
    CiMachine machine = *kernels->machine;
    if (!may_vectorise)
        machine.access_bytes = 1;
    return ci_codegen(kernels, &machine, verify);
}

CiProcs *
ci_gpu_lower_program(const CiKernels *kernels, const CiOptions *options)
{
    return ci_gpu_lower(kernels, options->verify, true);
}

void
ci_gpu_emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    ci_gpu_print_source(out, kernels, ci_gpu_lower_program(kernels, options));
}
