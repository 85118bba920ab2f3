/* How a kernel is laid on the card: flat or in groups, how many threads a point gets, vectors,
 * unrolled rounds, and what is kept in registers or shared memory between stages.
 *
 * Everything is decided from ranges of sizes, so that a kernel of symbolic sizes has one plan; a
 * plan is never wrong for a size, only slower than it could be. */
#include "device/cuda/cuda.h"

#define CI_CUDA_MAX_TRIPS 8
#define CI_CUDA_BLOCK 256         /* threads of a block of small groups */
#define CI_CUDA_FULL (132 * 2048) /* threads that fill a large card */
#define CI_CUDA_FEW_BLOCKS 264
#define CI_CUDA_LONG_FOLD 8192

static int64_t
power_of_two(int64_t least)
{
    int64_t power = 1;
    while (power < least && power < (1 << 20))
        power *= 2;
    return power;
}

/* What is right for the largest value is right enough for the least. */
static bool
is_narrow(const CiExpr *e)
{
    return e->low > 0 && e->high < CI_INFINITY && e->high / 4 <= e->low;
}

/* ---- groups ---- */

static int64_t
shared_count(CiSym *sym, const CiCudaStage *s)
{
    const CiExpr *count = ci_cuda_axes_product(sym, s->stage->axes, s->nshared);
    return count->high == CI_INFINITY ? 1 << 20 : count->high / s->vector;
}

static bool
has_rows(const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].place == CI_PLACE_row)
            return true;
    return false;
}

/* One fold over inner axes, then stages without any: chunks of it may go to blocks of their own. */
static bool
can_split(const CiCudaPlan *plan)
{
    if (plan->nstages == 0 || plan->stages[0].kind != CI_CUDA_fold || has_rows(plan->kernel))
        return false;
    for (int t = 1; t < plan->nstages; t++)
        if (plan->stages[t].kind != CI_CUDA_once)
            return false;
    for (int n = 0; n < plan->stages[0].stage->nnests; n++) {
        const CiNest *nest = plan->stages[0].stage->nests[n];
        const CiPlacement *placement = ci_kernel_find_placement(plan->kernel, nest->target);
        if (!ci_nest_is_fold(nest) && placement && placement->place == CI_PLACE_local)
            return false;
    }
    return true;
}

static int64_t
widest_share(CiSym *sym, const CiCudaPlan *plan)
{
    int64_t widest = 1;
    for (int t = 0; t < plan->nstages; t++)
        if (plan->stages[t].kind != CI_CUDA_once && shared_count(sym, &plan->stages[t]) > widest)
            widest = shared_count(sym, &plan->stages[t]);
    return widest;
}

/* Vectors of a row that a thread is given: the more, the fewer threads must meet, as long as they
 * fit in registers; short rows need the threads. Measured. */
static int64_t
vectors_per_thread(const CiCudaPlan *plan, int64_t widest)
{
    int vector = 1;
    for (int t = 0; t < plan->nstages; t++)
        vector = plan->stages[t].vector > vector ? plan->stages[t].vector : vector;
    return widest < 1024 || vector >= 8 ? CI_CUDA_MAX_TRIPS / 2 : CI_CUDA_MAX_TRIPS;
}

static void
shape_inside(CiCudaPlan *plan, int64_t widest)
{
    int64_t each = vectors_per_thread(plan, widest);
    int64_t points = plan->npoints->high == CI_INFINITY ? 1 << 20 : plan->npoints->high;
    int64_t group = power_of_two((widest + each - 1) / each);
    int64_t most = plan->is_split || widest < 1024 * each ? 512 : 1024;
    group = group > most ? most : group;
    while (group < 1024 && group < widest && group * points < CI_CUDA_FULL && !plan->is_split)
        group *= 2;
    int64_t together = group >= CI_CUDA_BLOCK ? 1 : CI_CUDA_BLOCK / group;
    plan->shape = (CiCudaShape){true, (int)group, (int)together};
    plan->finish = (CiCudaShape){true, 256, 1};
}

static void
shape_outside(CiSym *sym, CiCudaPlan *plan)
{
    int64_t points = plan->npoints->high == CI_INFINITY ? 1 << 20 : plan->npoints->high,
            longest = 1;
    for (int t = 0; t < plan->nstages; t++)
        if (plan->stages[t].kind == CI_CUDA_fold && shared_count(sym, &plan->stages[t]) > longest)
            longest = shared_count(sym, &plan->stages[t]);
    int64_t together = points < 32 ? power_of_two(points) : 32, group = 1;
    if (longest < 64) {
        together = 128;
    } else {
        int64_t most = 1024 / together;
        group = 512 / together < 32 ? 16 : 32;
        while (group < most && group < longest &&
               (group * points < CI_CUDA_FULL || group * together < 32))
            group *= 2;
    }
    plan->shape = (CiCudaShape){false, (int)group, (int)together};
    plan->finish = (CiCudaShape){false, 1, 128};
}

static void
choose_split(CiSym *sym, CiCudaPlan *plan)
{
    const CiCudaStage *first = &plan->stages[0];
    if (!can_split(plan))
        return;
    const CiExpr *count = ci_cuda_axes_product(sym, first->stage->axes, first->nshared);
    int64_t blocks = plan->npoints->high;
    if (plan->kernel->lanes_on_outer)
        blocks = blocks / 32;
    plan->is_split = count->high >= CI_CUDA_LONG_FOLD && blocks < CI_CUDA_FEW_BLOCKS;
    if (!is_narrow(plan->npoints) && count->high >= CI_CUDA_LONG_FOLD)
        plan->is_split = true;
    plan->length = ci_expr_ceildiv(sym, count, ci_expr_const(sym, first->vector));
}

static void
plan_trips(CiSym *sym, CiCudaPlan *plan)
{
    for (int t = 0; t < plan->nstages; t++) {
        CiCudaStage *s = &plan->stages[t];
        const CiExpr *points = ci_cuda_axes_product(sym, s->stage->axes, s->nshared);
        int64_t count = points->high / s->vector, group = plan->shape.group;
        bool is_shared = s->kind == CI_CUDA_each || s->kind == CI_CUDA_fold;
        if (!is_shared || s->has_tail || plan->is_split || !is_narrow(points))
            continue;
        int64_t trips = (count + group - 1) / group;
        if (trips < 1 || trips > CI_CUDA_MAX_TRIPS)
            continue;
        s->trips = trips;
        s->is_exact = ci_expr_is_const(points, NULL) && trips * group == count;
    }
}

/* ---- kernels ---- */

static void
plan_group(CiContext *ctx, CiSym *sym, CiCudaPlan *plan, bool may_vectorise)
{
    bool lanes_inside = !plan->kernel->lanes_on_outer;
    ci_cuda_plan_stages(ctx, plan);
    for (int t = 0; t < plan->nstages; t++) {
        CiCudaStage *s = &plan->stages[t];
        if (may_vectorise && lanes_inside && (s->kind == CI_CUDA_each || s->kind == CI_CUDA_fold))
            ci_cuda_choose_vector(sym, plan, s, s->stage->axes[s->nshared - 1].extent,
                                  s->nshared == 1);
    }
    int64_t widest = widest_share(sym, plan);
    choose_split(sym, plan);
    if (lanes_inside && widest > 1)
        shape_inside(plan, widest);
    else
        shape_outside(sym, plan);
    ci_cuda_fit_folds(plan);
    plan_trips(sym, plan);
    if (!plan->is_split)
        ci_cuda_plan_caches(ctx, plan);
    ci_cuda_plan_locals(plan);
    ci_cuda_fit_rows(ctx, plan);
    ci_cuda_plan_barriers(plan);
}

CiCudaPlan *
ci_cuda_plan(CiContext *ctx, const CiKernels *kernels, const CiKernel *kernel, bool may_vectorise)
{
    CiSym *sym = kernels->loops->sym;
    CiCudaPlan *plan = ci_cuda_plan_new(ctx, sym, kernel);
    if (ci_kernel_tree(kernel)) {
        ci_cuda_plan_tree(ctx, kernels, plan);
        return plan;
    }
    plan_group(ctx, sym, plan, may_vectorise);
    ci_cuda_plan_alignment(sym, plan);
    return plan;
}
