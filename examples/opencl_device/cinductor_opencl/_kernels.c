/* OpenCL C as a row of cinductor's dialects for GPUs, and kernels: the driver builds and launches them.
 *
 * There are no warps: the size of a sub-group depends on the GPU, and the order of reductions must
 * not. */
#include "_opencl.h"

#include <stdio.h>
#include <stdlib.h>

/* All functions that OpenCL does not define as exact. */
static const CiImprecise imprecise[] = {
    {"erf", 1, ""},
    {"erfc", 1, ""},
#define MATH(name, arity, function) {#function, arity, ""},
#include "ir/ops.def"
};

static CiGpuDialect dialect = {
    .spelling = {.function = "static",
                 .builtin = "",
                 .is_overloaded = true,
                 .imprecise = imprecise,
                 .nimprecise = (int)(sizeof imprecise / sizeof *imprecise),
                 .style = CI_STYLE_c,
                 .lacks_complex = true,
                 .has_undefined_overflow = true},
    .warp = 1,
    .access_bytes = 1,
    .threads = 256,
    .has_wide_sizes = true,
    .shared_is_first = true,
    .waits_for_ended = true,
    .global = "__global ",
    .shared = "__local ",
    .shared_array = "__local ",
    .rows = "__local unsigned char rows[%lld] __attribute__((aligned(16)));",
    .restrict_word = "restrict ",
    .thread = "(uint)get_local_id(0)",
    .block = "(uint)get_group_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .warp_barrier = "",
    .kernel = "__kernel __attribute__((reqd_work_group_size(%d, 1, 1))) void",
    .atomic32 = "atomic_",
    .has_lower_atomics = true,
    .long_word = "long",
    .float_of_bits = "as_float",
    .count_bits = "popcount",
    .prelude = "#pragma OPENCL FP_CONTRACT OFF\n"};

void
adapt_dialect(void)
{
    dialect.has_f64 = every.has_f64;
    dialect.atomic64 = every.has_atomic64 ? "atom_" : NULL;
    dialect.threads = every.group < 256 ? (int)every.group : 256;
}

/* Kernels that any of the devices can run. */
static void
fill_machine(CiMachine *machine, const CiOptions *options)
{
    (void)options;
    kit->gpu_machine(machine, &dialect);
    machine->row_bytes = (int64_t)every.local_bytes;
    machine->max_buffers = (int)(every.parameter_bytes / 16);
}

/* ---- programs ---- */

static const char *
version(const CiQueue *queue)
{
    return devices[queue->index].about;
}

static void
unload(void *program)
{
    (void)cl.ReleaseProgram(program);
}

static int32_t
load(const CiQueue *queue, const char *source, const void *binary, size_t size, void **program,
     char *log, size_t capacity)
{
    const Device *device = &devices[queue->index];
    const unsigned char *data = binary;
    cl_int error;
    cl_program made = source ? cl.CreateProgramWithSource(device->context, 1, &source, NULL, &error)
                             : cl.CreateProgramWithBinary(device->context, 1, &device->id, &size,
                                                          &data, NULL, &error);
    if (error)
        return CI_ERR_COMPILE;
    error = cl.BuildProgram(made, 1, &device->id, "-w -cl-fp32-correctly-rounded-divide-sqrt", NULL,
                            NULL);
    if (error) {
        (void)cl.GetProgramBuildInfo(made, device->id, CL_PROGRAM_BUILD_LOG, capacity, log, NULL);
        unload(made);
    }
    *program = error ? NULL : made;
    return error ? CI_ERR_COMPILE : CI_OK;
}

static void *
binary_of(void *program, size_t *size)
{
    if (cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *size, size, NULL) || !*size)
        return NULL;
    unsigned char *data = malloc(*size);
    if (data && cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL)) {
        free(data);
        data = NULL;
    }
    return data;
}

static int32_t
find(const CiQueue *queue, void *program, const char *name, void **run, CiGpuLimits *limits)
{
    const Device *device = &devices[queue->index];
    cl_int error;
    limits->parameter_bytes = device->parameter_bytes;
    limits->shared_bytes = (size_t)device->local_bytes;
    *run = cl.CreateKernel(program, name, &error);
    if (error)
        return status_of(error);
    (void)cl.GetKernelWorkGroupInfo(*run, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                    sizeof limits->threads, &limits->threads, NULL);
    (void)cl.GetKernelWorkGroupInfo(*run, device->id, CL_KERNEL_LOCAL_MEM_SIZE,
                                    sizeof(cl_ulong), &limits->shared_used, NULL);
    return CI_OK;
}

static void
forget(void *run)
{
    (void)cl.ReleaseKernel(run);
}

/* ---- launches ---- */

static int32_t
clear(const CiQueue *queue, void *block, size_t bytes)
{
    static const cl_uint zero = 0;
    return status_of(cl.EnqueueSVMMemFill(queue_of(queue), block, &zero, sizeof zero, bytes, 0, NULL, NULL));
}

static int32_t
run(const CiQueue *queue, const CiGpuFunction *function, int64_t blocks, const CiGpuParameters *p)
{
    size_t threads = (size_t)function->threads, all = threads * (size_t)blocks;
    cl_int error = CL_SUCCESS;
    for (int k = 0; k < p->count && !error; k++)
        error = p->bytes[k] ? cl.SetKernelArg(function->run, (cl_uint)k, p->bytes[k], p->values[k])
                            : cl.SetKernelArgSVMPointer(function->run, (cl_uint)k,
                                                        *(void *const *)p->values[k]);
    if (!error)
        error = cl.EnqueueNDRangeKernel(queue_of(queue), function->run, 1, NULL, &all, &threads, 0,
                                        NULL, NULL);
    return status_of(error);
}

const CiGpuVendor opencl_vendor = {.name = "opencl",
                                   .doc = "OpenCL C, built by the driver",
                                   .fill_machine = fill_machine,
                                   .version = version,
                                   .load = load,
                                   .binary = binary_of,
                                   .find = find,
                                   .forget = forget,
                                   .unload = unload,
                                   .clear = clear,
                                   .run = run};
