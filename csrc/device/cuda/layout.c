/* Layouts: from plans, and to the functions of a loaded module. */
#include "device/cuda/executable.h"
#include "target/cuda/print.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_CAPABILITY 90
#define ATTRIBUTE_dynamic_shared 8

static void
describe_slots(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel, CiCudaLayout *layout)
{
    const CiBuffer **slots;
    layout->nslots = ci_cuda_slots(ctx, kernel, &slots);
    layout->slots = CI_NEW_ARRAY(ctx, int, layout->nslots + 1);
    for (int k = 0; k < layout->nslots; k++)
        layout->slots[k] = ci_emit_scalar_slot(b->kernels->loops, slots[k]);
}

static void
describe_plan(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel, CiCudaLayout *layout)
{
    const CiCudaPlan *plan = b->form.plans[kernel->id];
    layout->is_split = plan->is_split;
    layout->shape = plan->shape;
    layout->finish = plan->finish;
    layout->shared_bytes = plan->shared_bytes;
    layout->threads = plan->shape.group * plan->shape.points;
    layout->points = ci_cuda_extent_new(ctx, kernel, plan->npoints);
    if (plan->is_split) {
        layout->length = ci_cuda_extent_new(ctx, kernel, plan->length);
        layout->nfolds = plan->stages[0].nfolds;
    }
    describe_slots(ctx, b, kernel, layout);
}

static void
describe_proc(CiContext *ctx, const CiCudaBuild *b, const CiProc *proc, CiCudaLayout *layout)
{
    layout->threads = ci_cuda_threads(proc);
    layout->shared_bytes = ci_cuda_shared_bytes(proc);
    layout->slots = CI_NEW_ARRAY(ctx, int, proc->nparams + 1);
    for (int k = 0; k < proc->nparams; k++)
        if (proc->params[k]->space == CI_SPACE_argument)
            layout->slots[layout->nslots++] =
                ci_emit_scalar_slot(b->kernels->loops, proc->params[k]->buffer);
}

void
ci_cuda_describe(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel, CiCudaLayout *layout)
{
    const CiProc *proc = ci_cuda_find_proc(b->form.procs, kernel);
    *layout = (CiCudaLayout){.name = ci_format(ctx, "%s", kernel->name),
                             .has_checks = kernel->nchecks > 0,
                             .nbuffers = kernel->nbuffers,
                             .nsizes = kernel->nsize_args};
    layout->blocks = ci_cuda_extent_new(ctx, kernel, b->form.blocks[kernel->id]);
    layout->alignment = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    memcpy(layout->alignment, b->form.alignment[kernel->id],
           sizeof(int) * (size_t)kernel->nbuffers);
    if (proc)
        describe_proc(ctx, b, proc, layout);
    else
        describe_plan(ctx, b, kernel, layout);
    if (layout->nbuffers + layout->nsizes + layout->nslots + 2 > CI_CUDA_MAX_PARAMETERS)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "kernel %s takes too many arguments for the device",
                kernel->name);
}

int
ci_cuda_find_functions(CiCudaState *state, CUmodule module, CiCudaLayout *layout)
{
    char finish[64];
    int result = state->driver.module_function(&layout->run, module, layout->name);
    if (!result && layout->is_split) {
        snprintf(finish, sizeof finish, "%s_finish", layout->name);
        result = state->driver.module_function(&layout->finish_run, module, finish);
    }
    if (!result && layout->shared_bytes > CI_CUDA_STATIC_SHARED / 2) /* folds use some too */
        result = state->driver.function_attribute(layout->run, ATTRIBUTE_dynamic_shared,
                                                  (int)layout->shared_bytes);
    return result;
}

CiCudaCompile
ci_cuda_compile_job(CiCudaExecutable *executable, const char *source)
{
    CiCudaState *state = ci_cuda_state(executable->base.runtime);
    return (CiCudaCompile){.source = source,
                           .is_fast = executable->is_fast,
                           .where = executable->where,
                           .cache = executable->uses_cache ? executable->base.runtime->cache : NULL,
                           .capability =
                               state && state->capability ? state->capability : DEFAULT_CAPABILITY};
}

bool
ci_cuda_is_aligned(const CiCudaLayout *layout, const CiLaunch *launch)
{
    for (int k = 0; k < layout->nbuffers; k++)
        if (layout->alignment[k] > 1 &&
            (uintptr_t)launch->buffers[k] % (uintptr_t)layout->alignment[k])
            return false;
    return true;
}
