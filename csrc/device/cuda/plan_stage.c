/* The stages of a plan: how threads share each out, its code and its folds; and a leaf of a tree,
 * which is stages alone. */
#include "device/cuda/cuda.h"

const CiExpr *
ci_cuda_axes_product(CiSym *sym, const CiKernelAxis *axes, int count)
{
    const CiExpr *product = ci_expr_const(sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(sym, product, axes[k].extent);
    return product;
}

static CiCudaStageKind
stage_kind(const CiStage *stage, int *nshared)
{
    int folds = 0;
    bool has_scan = false, is_serial = false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        if (nest->naxes - nest->npoint > folds)
            folds = nest->naxes - nest->npoint;
        has_scan |= ci_nest_is_scan(nest);
        is_serial |= ci_nest_is_serial(nest);
    }
    *nshared = stage->naxes;
    if (stage->naxes == 0)
        return CI_CUDA_once;
    if (is_serial) { /* one thread stores one value after another */
        *nshared = 0;
        return CI_CUDA_serial;
    }
    if (folds == 0)
        return CI_CUDA_each;
    if (!has_scan && folds == stage->naxes)
        return CI_CUDA_fold;
    *nshared = stage->naxes - folds;
    return CI_CUDA_serial;
}

static void
add_folds(CiContext *ctx, CiCudaStage *s, int *next_fold)
{
    s->folds = CI_NEW_ARRAY(ctx, CiCudaFold, s->stage->nnests + 1);
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (!ci_nest_is_fold(nest))
            continue;
        CiDtype value = s->code->values[s->code->results[n]].op.dtype;
        s->folds[s->nfolds++] =
            (CiCudaFold){.nest = nest,
                         .nest_number = n,
                         .dtype = value,
                         .is_arg = ci_op_kind(nest->fold) == CI_OPKIND_argreduce,
                         .id = (*next_fold)++};
    }
}

void
ci_cuda_plan_stages(CiContext *ctx, CiCudaPlan *plan)
{
    const CiKernel *kernel = plan->kernel;
    int next_fold = 0;
    plan->nstages = kernel->nstages;
    plan->stages = CI_NEW_ARRAY(ctx, CiCudaStage, kernel->nstages + 1);
    for (int t = 0; t < kernel->nstages; t++) {
        CiCudaStage *s = &plan->stages[t];
        s->stage = &kernel->stages[t];
        s->kind = stage_kind(s->stage, &s->nshared);
        s->code = ci_stage_code_new(ctx, kernel, s->stage);
        s->vector = 1;
        add_folds(ctx, s, &next_fold);
    }
}

/* All stages as one, in order: their nests run point by point. */
static void
plan_flat(CiContext *ctx, CiCudaPlan *plan)
{
    const CiKernel *kernel = plan->kernel;
    CiStage *all = CI_NEW(ctx, CiStage);
    for (int t = 0; t < kernel->nstages; t++)
        for (int n = 0; n < kernel->stages[t].nnests; n++)
            CI_PUSH(ctx, all->nests, all->nnests, all->capnests, kernel->stages[t].nests[n]);
    plan->is_flat = true;
    plan->nstages = 1;
    plan->stages = CI_NEW(ctx, CiCudaStage);
    plan->stages->stage = all;
    plan->stages->kind = CI_CUDA_each;
    plan->stages->code = ci_stage_code_new(ctx, kernel, all);
    plan->stages->vector = 1;
}

bool
ci_cuda_is_small(const CiExpr *e)
{
    return e->low > -(1LL << 30) && e->high < 1LL << 30;
}

static bool
needs_wide(CiSym *sym, const CiCudaPlan *plan)
{
    const CiKernel *kernel = plan->kernel;
    if (!ci_cuda_is_small(plan->npoints))
        return true;
    for (int t = 0; t < kernel->nstages; t++) {
        const CiStage *stage = &kernel->stages[t];
        if (!ci_cuda_is_small(ci_cuda_axes_product(sym, stage->axes, stage->naxes)))
            return true;
        for (int n = 0; n < stage->nnests; n++) {
            const CiNest *nest = stage->nests[n];
            if (!ci_cuda_is_small(nest->store))
                return true;
            for (int k = 0; k < nest->body.nops; k++)
                if (nest->body.ops[k].index && !ci_cuda_is_small(nest->body.ops[k].index))
                    return true;
        }
    }
    return false;
}

CiCudaPlan *
ci_cuda_plan_new(CiContext *ctx, CiSym *sym, const CiKernel *kernel)
{
    CiCudaPlan *plan = CI_NEW(ctx, CiCudaPlan);
    plan->kernel = kernel;
    plan->npoints = ci_cuda_axes_product(sym, kernel->outer, kernel->nouter);
    plan->alignment = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    plan->is_shared_local = CI_NEW_ARRAY(ctx, bool, kernel->nplacements + 1);
    plan->row_offset = CI_NEW_ARRAY(ctx, int64_t, kernel->nplacements + 1);
    plan->is_wide = needs_wide(sym, plan);
    return plan;
}

bool
ci_cuda_has_inner_axes(const CiKernel *kernel)
{
    for (int t = 0; t < kernel->nstages; t++)
        if (kernel->stages[t].naxes > 0)
            return true;
    return false;
}

CiCudaPlan *
ci_cuda_plan_leaf(CiContext *ctx, const CiKernels *kernels, const CiKernel *leaf,
                  const CiCudaShape *shape)
{
    CiSym *sym = kernels->loops->sym;
    CiCudaPlan *plan = ci_cuda_plan_new(ctx, sym, leaf);
    if (leaf->nouter && !ci_cuda_has_inner_axes(leaf)) {
        plan_flat(ctx, plan);
        plan->shape = *shape;
        return plan;
    }
    ci_cuda_plan_stages(ctx, plan);
    plan->shape = *shape;
    ci_cuda_plan_locals(plan);
    ci_cuda_plan_rows(ctx, plan);
    ci_cuda_plan_barriers(plan);
    return plan;
}
