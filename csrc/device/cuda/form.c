/* Kernels -> procs, or plans: who has which. */
#include "device/cuda/cuda.h"
#include "target/cuda/print.h"

#define CI_CUDA_THREADS 256 /* of a block of points */

/* Points alone: nothing is shared out inside of one. */
static bool
is_points(const CiKernel *kernel)
{
    return !ci_kernel_tree(kernel) && !ci_cuda_has_inner_axes(kernel);
}

/* Rows that a block shares out, each of its stages. */
static bool
is_rows(const CiKernels *kernels, const CiKernel *kernel)
{
    if (ci_kernel_tree(kernel) || kernel->lanes_on_outer)
        return false;
    const CiCudaPlan *plan = ci_cuda_plan(kernels->loops->ctx, kernels, kernel, true);
    bool is_shared = plan->shape.lanes_inside && !plan->is_split;
    for (int t = 0; t < plan->nstages; t++)
        is_shared &= plan->stages[t].kind != CI_CUDA_serial;
    return is_shared;
}

static bool
takes(const CiKernels *kernels, const CiKernel *kernel)
{
    return is_points(kernel) || is_rows(kernels, kernel);
}

CiProcs *
ci_cuda_lower(const CiKernels *kernels, const CiOptions *options, bool may_vectorise)
{
    const CiFamily family = {.name = "gpu",
                             .threads = CI_CUDA_THREADS,
                             .access_bytes = may_vectorise ? 16 : 1,
                             .takes = takes};
    return ci_codegen(kernels, &family, options && options->verify);
}

const CiProc *
ci_cuda_find_proc(const CiProcs *procs, const CiKernel *kernel)
{
    for (int k = 0; k < procs->nprocs; k++)
        if (procs->procs[k]->kernel == kernel)
            return procs->procs[k];
    return NULL;
}

typedef struct Forming {
    CiContext *ctx;
    const CiKernels *kernels;
    bool may_vectorise;
    CiCudaForm form;
    int count;
} Forming;

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

static void
count_kernel(void *arg, const CiKernel *kernel)
{
    int *count = arg;
    *count = kernel->id >= *count ? kernel->id + 1 : *count;
}

static void
plan_kernel(void *arg, const CiKernel *kernel)
{
    Forming *f = arg;
    CiSym *sym = f->kernels->loops->sym;
    const CiProc *proc = ci_cuda_find_proc(f->form.procs, kernel);
    if (proc) {
        int *alignment = CI_NEW_ARRAY(f->ctx, int, kernel->nbuffers + 1);
        for (int k = 0; k < kernel->nbuffers; k++)
            alignment[k] = ci_cuda_alignment(f->ctx, sym, proc, proc->params[k]);
        f->form.alignment[kernel->id] = alignment;
        f->form.blocks[kernel->id] = ci_cuda_blocks(sym, proc);
        return;
    }
    CiCudaPlan *plan = ci_cuda_plan(f->ctx, f->kernels, kernel, f->may_vectorise);
    f->form.plans[kernel->id] = plan;
    f->form.alignment[kernel->id] = plan->alignment;
    f->form.blocks[kernel->id] =
        ci_expr_ceildiv(sym, plan->npoints, ci_expr_const(sym, plan->shape.points));
}

CiCudaForm
ci_cuda_form(CiContext *ctx, const CiKernels *kernels, const CiOptions *options, bool may_vectorise)
{
    Forming f = {.ctx = ctx, .kernels = kernels, .may_vectorise = may_vectorise};
    f.form.procs = ci_cuda_lower(kernels, options, may_vectorise);
    ci_cuda_visit_kernels(kernels, count_kernel, &f.count);
    f.form.plans = CI_NEW_ARRAY(ctx, CiCudaPlan *, f.count + 1);
    f.form.blocks = CI_NEW_ARRAY(ctx, const CiExpr *, f.count + 1);
    f.form.alignment = CI_NEW_ARRAY(ctx, int *, f.count + 1);
    ci_cuda_visit_kernels(kernels, plan_kernel, &f);
    return f.form;
}
