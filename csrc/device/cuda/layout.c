/* Layouts: from procs, and to the functions of a loaded module. */
#include "device/cuda/executable.h"
#include "target/cuda/print.h"

#include <stdio.h>

#define DEFAULT_CAPABILITY 90
#define ATTRIBUTE_dynamic_shared 8

static CiCudaFunction
describe_function(CiContext *ctx, const CiCudaBuild *b, const CiProc *proc)
{
    CiSym *sym = b->kernels->loops->sym;
    return (CiCudaFunction){.threads = ci_cuda_threads(proc),
                            .shared_bytes = ci_cuda_shared_bytes(proc),
                            .blocks =
                                ci_cuda_extent_new(ctx, proc->kernel, ci_cuda_blocks(sym, proc))};
}

/* Partial results that blocks ask for while others store them. */
static bool
is_told(const CiStmt *stmt)
{
    return stmt->op == CI_OP_load && stmt->is_atomic;
}

static void
describe_params(CiContext *ctx, const CiCudaBuild *b, const CiProc *proc, CiCudaLayout *layout)
{
    CiSym *sym = b->kernels->loops->sym;
    const CiExpr *bytes = ci_expr_const(sym, 0);
    layout->nslots = 0;
    for (int k = 0; k < proc->nparams; k++) {
        const CiMemory *memory = proc->params[k];
        if (memory->space == CI_SPACE_argument)
            layout->slots[layout->nslots++] =
                ci_emit_scalar_slot(b->kernels->loops, memory->buffer);
        if (memory->space == CI_SPACE_partials)
            bytes = ci_expr_add(
                sym, bytes, ci_expr_mul(sym, memory->size, ci_expr_const(sym, CI_PARTIAL_STEP)));
        if (memory->space != CI_SPACE_global)
            continue;
        int alignment = ci_cuda_alignment(b->kernels->loops->ctx, sym, proc, memory);
        if (alignment > layout->alignment[k])
            layout->alignment[k] = alignment;
    }
    layout->partial_bytes = ci_cuda_extent_new(ctx, proc->kernel, bytes);
}

void
ci_cuda_describe(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel, CiCudaLayout *layout)
{
    const CiProc *proc = ci_cuda_find_proc(b->procs, kernel, false),
                 *finish = ci_cuda_find_proc(b->procs, kernel, true);
    *layout = (CiCudaLayout){.name = ci_format(ctx, "%s", kernel->name),
                             .has_checks = kernel->nchecks > 0,
                             .has_finish = finish != NULL,
                             .nbuffers = kernel->nbuffers,
                             .nsizes = kernel->nsize_args};
    layout->alignment = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    layout->buffers = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    for (int k = 0; k < kernel->nbuffers; k++)
        layout->buffers[k] = k;
    layout->slots = CI_NEW_ARRAY(ctx, int, proc->nparams + 1);
    layout->functions[0] = describe_function(ctx, b, proc);
    if (finish) {
        layout->functions[1] = describe_function(ctx, b, finish);
        describe_params(ctx, b, finish, layout);
    }
    describe_params(ctx, b, proc, layout);
    layout->tells = ci_stmts_have(&proc->body, is_told);
    if (layout->nbuffers + layout->nsizes + layout->nslots + 2 > CI_CUDA_MAX_PARAMETERS)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "kernel %s takes too many arguments for the device",
                kernel->name);
}

/* Parts that meet use some shared memory too. */
static int
find_function(const CiCudaContextScope *stay, CUmodule module, const char *name, CiCudaFunction *function)
{
    int result = stay->driver->module_function(&function->run, module, name);
    if (!result && function->shared_bytes > CI_CUDA_STATIC_SHARED / 2)
        result = stay->driver->function_attribute(function->run, ATTRIBUTE_dynamic_shared,
                                                  (int)function->shared_bytes);
    return result;
}

int
ci_cuda_find_functions(const CiCudaContextScope *stay, CUmodule module, CiCudaLayout *layout)
{
    char finish[64];
    int result = find_function(stay, module, layout->name, &layout->functions[0]);
    snprintf(finish, sizeof finish, "%s_finish", layout->name);
    if (!result && layout->has_finish)
        result = find_function(stay, module, finish, &layout->functions[1]);
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

bool
ci_cuda_is_aligned(const CiCudaLayout *layout, const CiLaunch *launch)
{
    for (int k = 0; k < layout->nbuffers; k++)
        if (layout->alignment[k] > 1 &&
            (uintptr_t)launch->buffers[layout->buffers[k]] % (uintptr_t)layout->alignment[k])
            return false;
    return true;
}
