/* How a kernel is laid on the card: flat or in groups, how many threads a point gets, vectors,
 * unrolled rounds, and what is kept in registers or shared memory between stages.
 *
 * Everything is decided from ranges of sizes, so that a kernel of symbolic sizes has one plan; a
 * plan is never wrong for a size, only slower than it could be. */
#include "device/cuda/cuda.h"

#define CI_CUDA_MAX_TRIPS 8
#define CI_CUDA_FLAT_THREADS 256
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

static const CiExpr *
axes_product(CiSym *sym, const CiKernelAxis *axes, int count)
{
    const CiExpr *product = ci_expr_const(sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(sym, product, axes[k].extent);
    return product;
}

/* What is right for the largest value is right enough for the least. */
static bool
is_narrow(const CiExpr *e)
{
    return e->low > 0 && e->high < CI_INFINITY && e->high / 4 <= e->low;
}

/* ---- stages ---- */

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

const CiExpr *
ci_cuda_vector_axis(const CiCudaPlan *plan, const CiCudaStage *stage)
{
    if (plan->is_flat)
        return plan->kernel->nouter ? plan->kernel->outer[plan->kernel->nouter - 1].var : NULL;
    return stage->nshared ? stage->stage->axes[stage->nshared - 1].var : NULL;
}

bool
ci_cuda_is_vector(CiSym *sym, const CiExpr *index, const CiExpr *var, int vector)
{
    const CiExpr *coef, *rest;
    return var && ci_expr_split_linear(sym, index, var, &coef, &rest) &&
           ci_expr_equals_const(coef, 1) &&
           ci_sym_known_multiple_of(sym, rest, ci_expr_const(sym, vector));
}

typedef struct VectorVotes {
    CiSym *sym;
    const CiExpr *var;
    int widest;   /* bytes of the widest element accessed with stride 1 */
    int vector;   /* candidate */
    bool has_any; /* some access works with the candidate */
} VectorVotes;

static void
vote(VectorVotes *votes, const CiBuffer *buffer, const CiExpr *index)
{
    const CiExpr *coef, *rest;
    if (buffer->kind == CI_BUFFER_scalar ||
        !ci_expr_split_linear(votes->sym, index, votes->var, &coef, &rest) ||
        !ci_expr_equals_const(coef, 1))
        return;
    if (ci_dtype_size(buffer->dtype) > votes->widest)
        votes->widest = ci_dtype_size(buffer->dtype);
    votes->has_any |= ci_cuda_is_vector(votes->sym, index, votes->var, votes->vector);
}

static void
vote_stage(VectorVotes *votes, const CiKernel *kernel, const CiStage *stage)
{
    votes->has_any = false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        for (int k = 0; k < nest->body.nops; k++)
            if (nest->body.ops[k].op == CI_OP_load &&
                !ci_kernel_find_placement(kernel, nest->body.ops[k].buffer))
                vote(votes, nest->body.ops[k].buffer, nest->body.ops[k].index);
        if (!ci_nest_is_fold(nest) && !ci_kernel_find_placement(kernel, nest->target))
            vote(votes, nest->target, nest->store);
    }
}

bool
ci_cuda_has_hazard(const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++) {
            const CiScalar *op = &stage->nests[n]->body.ops[k];
            for (int m = 0; op->op == CI_OP_load && m < stage->nnests; m++)
                if (stage->nests[m]->target == op->buffer && stage->nests[m]->store != op->index)
                    return true;
        }
    return false;
}

/* Data says where it reads or stores, which no vector reaches. */
static bool
is_indirect(const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++)
            if (stage->nests[n]->body.ops[k].op == CI_OP_bind)
                return true;
    return false;
}

static void
choose_vector(CiSym *sym, const CiCudaPlan *plan, CiCudaStage *s, const CiExpr *extent,
              bool may_have_tail)
{
    VectorVotes votes = {.sym = sym, .var = ci_cuda_vector_axis(plan, s), .vector = 1};
    s->vector = 1;
    if (!votes.var || is_indirect(s->stage) || ci_cuda_has_hazard(s->stage))
        return;
    vote_stage(&votes, plan->kernel, s->stage);
    if (!votes.widest)
        return;
    for (votes.vector = 16 / votes.widest; votes.vector > 1; votes.vector /= 2) {
        bool fits = ci_sym_known_multiple_of(sym, extent, ci_expr_const(sym, votes.vector));
        vote_stage(&votes, plan->kernel, s->stage);
        if (!votes.has_any || !(fits || may_have_tail) || extent->high < votes.vector)
            continue;
        s->vector = votes.vector;
        s->has_tail = !fits;
        return;
    }
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

static void
plan_stages(CiContext *ctx, CiCudaPlan *plan)
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
plan_flat(CiContext *ctx, CiSym *sym, CiCudaPlan *plan, bool may_vectorise)
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
    plan->shape = (CiCudaShape){.group = 1, .points = CI_CUDA_FLAT_THREADS};
    if (may_vectorise && kernel->nouter)
        choose_vector(sym, plan, plan->stages, kernel->outer[kernel->nouter - 1].extent,
                      kernel->nouter == 1);
}

/* ---- 64 bits ---- */

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
        if (!ci_cuda_is_small(axes_product(sym, stage->axes, stage->naxes)))
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

/* ---- groups ---- */

static int64_t
shared_count(CiSym *sym, const CiCudaStage *s)
{
    const CiExpr *count = axes_product(sym, s->stage->axes, s->nshared);
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
    const CiExpr *count = axes_product(sym, first->stage->axes, first->nshared);
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
        const CiExpr *points = axes_product(sym, s->stage->axes, s->nshared);
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
    plan_stages(ctx, plan);
    for (int t = 0; t < plan->nstages; t++) {
        CiCudaStage *s = &plan->stages[t];
        if (may_vectorise && lanes_inside && (s->kind == CI_CUDA_each || s->kind == CI_CUDA_fold))
            choose_vector(sym, plan, s, s->stage->axes[s->nshared - 1].extent, s->nshared == 1);
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

static CiCudaPlan *
new_plan(CiContext *ctx, CiSym *sym, const CiKernel *kernel)
{
    CiCudaPlan *plan = CI_NEW(ctx, CiCudaPlan);
    plan->kernel = kernel;
    plan->npoints = axes_product(sym, kernel->outer, kernel->nouter);
    plan->alignment = CI_NEW_ARRAY(ctx, int, kernel->nbuffers + 1);
    plan->is_shared_local = CI_NEW_ARRAY(ctx, bool, kernel->nplacements + 1);
    plan->row_offset = CI_NEW_ARRAY(ctx, int64_t, kernel->nplacements + 1);
    plan->is_wide = needs_wide(sym, plan);
    return plan;
}

static bool
has_inner_axes(const CiKernel *kernel)
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
    CiCudaPlan *plan = new_plan(ctx, sym, leaf);
    if (leaf->nouter && !has_inner_axes(leaf)) {
        plan_flat(ctx, sym, plan, false);
        plan->shape = *shape;
        return plan;
    }
    plan_stages(ctx, plan);
    plan->shape = *shape;
    ci_cuda_plan_locals(plan);
    ci_cuda_plan_rows(ctx, plan);
    ci_cuda_plan_barriers(plan);
    return plan;
}

CiCudaPlan *
ci_cuda_plan(CiContext *ctx, const CiKernels *kernels, const CiKernel *kernel, bool may_vectorise)
{
    CiSym *sym = kernels->loops->sym;
    CiCudaPlan *plan = new_plan(ctx, sym, kernel);
    if (ci_kernel_tree(kernel)) {
        ci_cuda_plan_tree(ctx, kernels, plan);
        return plan;
    }
    if (has_inner_axes(kernel))
        plan_group(ctx, sym, plan, may_vectorise);
    else
        plan_flat(ctx, sym, plan, may_vectorise);
    ci_cuda_plan_alignment(sym, plan);
    return plan;
}
