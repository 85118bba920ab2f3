/* Makes the layout of a kernel (parameters, grid, memory of blocks) from its proc, because procs are freed with
 * the compilation. */
#include "device/gpu/gpu.h"
#include "target/gpu/print.h"

static CiGpuFunction
describe_function(const CiProc *proc)
{
    return (CiGpuFunction){.threads = ci_gpu_threads(proc),
                           .shared_bytes = ci_gpu_shared_bytes(proc),
                           .declared_bytes = ci_gpu_shared_bytes(proc) + proc->shared_bytes};
}

/* Partial results that blocks ask for while others store them. */
static bool
is_atomic_load(const CiStmt *stmt)
{
    return stmt->op == CI_OP_load && stmt->is_atomic;
}

/* The type in which a scalar of a dtype is passed. */
static CiDtype
slot_type(const CiMachine *machine, CiDtype dtype)
{
    bool has_f64 = machine->dtypes & CI_DTYPE_BIT(CI_DTYPE_f64);
    if (ci_dtype_class(dtype) == CI_CLASS_complex)
        return has_f64 ? CI_DTYPE_c128 : CI_DTYPE_c64;
    return ci_dtype_is_integral(dtype) ? CI_DTYPE_i64 : has_f64 ? CI_DTYPE_f64 : CI_DTYPE_f32;
}

static void
describe_params(const CiKernels *kernels, const CiProc *proc, CiGpuLayout *layout)
{
    layout->nslots = 0;
    for (int k = 0; k < proc->nparams; k++) {
        const CiMemory *memory = proc->params[k];
        if (memory->space == CI_SPACE_argument) {
            layout->slot_types[layout->nslots] = slot_type(kernels->machine, memory->dtype);
            layout->slots[layout->nslots++] = ci_emit_scalar_slot(kernels->loops, memory->buffer);
        }
        if (memory->space != CI_SPACE_global)
            continue;
        int alignment = ci_gpu_alignment(proc, memory);
        if (alignment > layout->alignment[k])
            layout->alignment[k] = alignment;
    }
}

void
ci_gpu_describe(CiContext *ctx, const CiKernels *kernels, const CiProcs *procs,
                const CiKernel *kernel, CiGpuLayout *layout)
{
    const CiProc *proc = ci_procs_find(procs, kernel->name, false),
                 *finish = ci_procs_find(procs, kernel->name, true);
    *layout = (CiGpuLayout){.name = ci_format(ctx, "%s", kernel->name),
                            .has_checks = kernel->nchecks > 0,
                            .has_finish = finish != NULL,
                            .nbuffers = kernel->nbuffers,
                            .nsizes = kernel->nsize_args};
    layout->alignment = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    layout->buffers = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        layout->buffers[k] = k;
    layout->slots = CI_NEW_ARRAY(ctx, int, proc->nparams + 1);
    layout->slot_types = CI_NEW_ARRAY(ctx, CiDtype, proc->nparams + 1);
    CiLaunchExprs launch = ci_procs_launch(procs, kernel->name);
    layout->launch = ci_size_table_new(ctx, kernel, CI_LAUNCH_COUNT, launch.of);
    layout->functions[0] = describe_function(proc);
    if (finish) {
        layout->functions[1] = describe_function(finish);
        describe_params(kernels, finish, layout);
    }
    describe_params(kernels, proc, layout);
    layout->notifies = ci_stmts_have(&proc->body, is_atomic_load);
    if (layout->nbuffers + layout->nsizes + layout->nslots + 2 > CI_GPU_MAX_PARAMETERS)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "kernel %s takes too many arguments for the device",
                kernel->name);
}

typedef struct Describing {
    CiContext *ctx;
    const CiKernels *kernels;
    const CiProcs *procs;
    CiGpuLayout *layouts;
} Describing;

static void
describe(void *arg, const CiKernel *kernel)
{
    Describing *d = arg;
    if (ci_kernel_has_loops(kernel))
        ci_gpu_describe(d->ctx, d->kernels, d->procs, kernel, &d->layouts[kernel->id]);
}

CiGpuLayout *
ci_gpu_layouts(CiContext *ctx, const CiKernels *kernels, const CiProcs *procs)
{
    int count = ci_kernels_count(kernels);
    Describing d = {ctx, kernels, procs, CI_NEW_ARRAY(ctx, CiGpuLayout, count + 1)};
    ci_kernels_visit(kernels, describe, &d);
    return d.layouts;
}

bool
ci_gpu_is_aligned(const CiGpuLayout *layout, const CiLaunch *launch)
{
    for (int k = 0; k < layout->nbuffers; k++)
        if (layout->alignment[k] > 1 &&
            (uintptr_t)launch->buffers[layout->buffers[k]] % (uintptr_t)layout->alignment[k])
            return false;
    return true;
}
