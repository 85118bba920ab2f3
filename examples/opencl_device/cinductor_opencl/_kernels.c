/* OpenCL C as a row of cinductor's dialects for GPUs, and kernels: the driver builds and launches them.
 *
 * There are no warps: the size of a sub-group depends on the GPU, and the order of reductions must
 * not. */
#include "_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of C's functions and constants in the texts that all languages share. The first line is for
 * devices without f64, whose kernels get no values of f64: scalars come as f32. */
#define NO_F64 "#define double float\n"
static const char prelude[] = NO_F64 "#pragma OPENCL FP_CONTRACT OFF\n"
                                     "#undef __INT64_TYPE__\n"
                                     "#undef __UINT64_TYPE__\n"
                                     "#define __INT64_TYPE__ long\n"
                                     "#define __UINT64_TYPE__ ulong\n"
                                     "#define __builtin_popcountll popcount\n"
                                     "#define __builtin_fabsf fabs\n"
                                     "#define __builtin_inff() as_float(0x7f800000)\n"
                                     "#define __builtin_nanf(text) as_float(0x7fc00000)\n"
                                     "#define __builtin_huge_valf() __builtin_inff()\n"
                                     "#define __builtin_inf() ((double)__builtin_inff())\n"
                                     "#define __builtin_nan(text) ((double)__builtin_nanf(text))\n"
                                     "#define huge_val __builtin_inf\n"
                                     "#define copysign(a, b) copysign((double)(a), (double)(b))\n";

/* All functions that OpenCL does not define as exact. */
static const CiImprecise imprecise[] = {
    {"erf", 1, ""},
    {"erfc", 1, ""},
#define MATH(name, arity, function) {#function, arity, ""},
#include "ir/ops.def"
};

/* C's own complex numbers do not exist here. */
static const char *
own_support(const char *name, CiDtype dtype)
{
    (void)dtype;
    return strcmp(name, "library_power")
               ? NULL
               : "{ double size = log(hypot((double)a.re, (double)a.im)); "
                 "double angle = atan2((double)a.im, (double)a.re); "
                 "double turn = b.im * size + b.re * angle; size = exp(b.re * size - b.im * angle); "
                 "T y = {(R)(size * cos(turn)), (R)(size * sin(turn))}; return y; }";
}

static CiGpuDialect dialect = {
    .spelling = {.function = "static",
                 .builtin = "",
                 .is_overloaded = true,
                 .imprecise = imprecise,
                 .nimprecise = (int)(sizeof imprecise / sizeof *imprecise),
                 .style = CI_STYLE_c,
                 .has_undefined_overflow = true,
                 .override = own_support},
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
    .long_word = "long"};

void
adapt_dialect(void)
{
    dialect.has_f64 = every.has_f64;
    dialect.prelude = prelude + (every.has_f64 ? strlen(NO_F64) : 0);
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

static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    return kit->gpu_codegen(kernels, options->verify, false);
}

static void
emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    kit->gpu_source(out, kernels, lower(kernels, options), &dialect);
}

/* ---- programs ---- */

static const char *
version(const CiQueue *queue)
{
    return devices[queue->index].about;
}

/* Builds a program, or frees it. The messages go to log. */
static cl_int
build_program(const Device *device, cl_program program, char *log, size_t capacity)
{
    cl_int error = cl.BuildProgram(program, 1, &device->id,
                                   "-w -cl-fp32-correctly-rounded-divide-sqrt", NULL, NULL);
    if (error) {
        (void)cl.GetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, capacity, log, NULL);
        (void)cl.ReleaseProgram(program);
    }
    return error;
}

static int32_t
load_source(const CiQueue *queue, const char *source, void **program, char *log, size_t capacity)
{
    const Device *device = &devices[queue->index];
    cl_int error;
    cl_program made = cl.CreateProgramWithSource(device->context, 1, &source, NULL, &error);
    if (error || build_program(device, made, log, capacity))
        return CI_ERR_COMPILE;
    *program = made;
    return CI_OK;
}

static bool
load_binary(const CiQueue *queue, const void *data, size_t size, void **program)
{
    const Device *device = &devices[queue->index];
    const unsigned char *binary = data;
    char log[8];
    cl_int error;
    cl_program made =
        cl.CreateProgramWithBinary(device->context, 1, &device->id, &size, &binary, NULL, &error);
    bool is_loaded = !error && !build_program(device, made, log, sizeof log);
    *program = is_loaded ? made : NULL;
    return is_loaded;
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

static void
unload(void *program)
{
    (void)cl.ReleaseProgram(program);
}

static const char *
find(CiContext *ctx, const CiQueue *queue, void *program, const char *name,
     const CiGpuLayout *layout, CiGpuFunction *function)
{
    const Device *device = &devices[queue->index];
    size_t group = 0, bytes = (size_t)(layout->nbuffers + layout->nsizes + 2) * 8 +
                              (size_t)layout->nslots * sizeof(CiSlot);
    cl_ulong used = 0;
    cl_int error;
    if (bytes > device->parameter_bytes)
        return kit->format(ctx, "its arguments take %zu bytes, and the device takes %zu", bytes,
                           device->parameter_bytes);
    function->run = cl.CreateKernel(program, name, &error);
    if (error)
        return kit->format(ctx, "OpenCL error %d in clCreateKernel", (int)error);
    (void)cl.GetKernelWorkGroupInfo(function->run, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                    sizeof group, &group, NULL);
    (void)cl.GetKernelWorkGroupInfo(function->run, device->id, CL_KERNEL_LOCAL_MEM_SIZE,
                                    sizeof used, &used, NULL);
    if ((size_t)function->threads > group)
        return kit->format(ctx, "a block needs %d threads, and the device has %zu",
                           function->threads, group);
    if (used > device->local_bytes)
        return kit->format(ctx, "a block needs %llu bytes of local memory, and the device has %llu",
                           (unsigned long long)used, (unsigned long long)device->local_bytes);
    return NULL;
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

static cl_int
set_value(cl_kernel kernel, cl_uint k, const CiGpuParameters *p)
{
    const double *from = p->values[k];
    float narrow[2];
    if (every.has_f64 || !p->is_real[k])
        return cl.SetKernelArg(kernel, k, p->bytes[k], from);
    for (int part = 0; part < p->bytes[k] / 8; part++)
        narrow[part] = (float)from[part];
    return cl.SetKernelArg(kernel, k, p->bytes[k] / 2, narrow);
}

static int32_t
run(const CiQueue *queue, const CiGpuFunction *function, int64_t blocks, const CiGpuParameters *p)
{
    size_t threads = (size_t)function->threads, all = threads * (size_t)blocks;
    cl_int error = CL_SUCCESS;
    for (int k = 0; k < p->count && !error; k++)
        error = p->bytes[k] ? set_value(function->run, (cl_uint)k, p)
                            : cl.SetKernelArgSVMPointer(function->run, (cl_uint)k,
                                                        *(void *const *)p->values[k]);
    if (!error)
        error = cl.EnqueueNDRangeKernel(queue_of(queue), function->run, 1, NULL, &all, &threads, 0,
                                        NULL, NULL);
    return status_of(error);
}

static CiExecutable *
build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels, const CiOptions *options,
      CiBuildInfo *info)
{
    static const CiGpuVendor vendor = {.dialect = &dialect,
                                         .name = "opencl",
                                         .version = version,
                                         .load_source = load_source,
                                         .load_binary = load_binary,
                                         .binary = binary_of,
                                         .find = find,
                                         .forget = forget,
                                         .unload = unload,
                                         .clear = clear,
                                         .run = run};
    return kit->gpu_build(ctx, queue, kernels, options, info, &vendor);
}

const CiCompiler opencl_compiler = {.abi = CI_DEVICE_ABI,
                                    .name = "opencl",
                                    .doc = "OpenCL C, built by the driver",
                                    .fill_machine = fill_machine,
                                    .lower = lower,
                                    .emit = emit,
                                    .build = build};
