/* What threads keep between the stages of a kernel and where: registers, shared memory; who must
 * wait for whom; and what alignment vectors ask of memory. After shapes and rounds are decided. */
#include "device/cuda/cuda.h"

static int64_t
round_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

/* ---- registers ---- */

static bool
is_stored_in_kernel(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int t = 0; t < kernel->nstages; t++)
        if (ci_stage_stores(&kernel->stages[t], buffer))
            return true;
    return false;
}

static bool
can_cache(const CiCudaStage *s)
{
    return s->trips > 0 && s->nshared == 1;
}

static CiCudaCache *
find_entry(CiCudaPlan *plan, const CiCudaStage *s, const CiBuffer *buffer, const CiExpr *index)
{
    for (int k = 0; k < plan->ncaches; k++) {
        CiCudaCache *cache = &plan->caches[k];
        if (cache->buffer == buffer && cache->index == index && cache->trips == s->trips &&
            cache->vector == s->vector)
            return cache;
    }
    return NULL;
}

const CiCudaCache *
ci_cuda_find_cache(const CiCudaPlan *plan, const CiCudaStage *stage, const CiBuffer *buffer,
                   const CiExpr *index)
{
    return can_cache(stage) ? find_entry((CiCudaPlan *)(uintptr_t)plan, stage, buffer, index)
                            : NULL;
}

static void
collect_loads(CiContext *ctx, CiCudaPlan *plan)
{
    for (int t = 0; t < plan->nstages; t++) {
        const CiCudaStage *s = &plan->stages[t];
        for (int k = 0; can_cache(s) && k < s->code->nvalues; k++) {
            const CiScalar *op = &s->code->values[k].op;
            if (op->op != CI_OP_load || op->nargs || !s->code->values[k].is_needed ||
                op->buffer->kind == CI_BUFFER_scalar ||
                is_stored_in_kernel(plan->kernel, op->buffer) ||
                !ci_expr_depends_on(op->index, s->stage->axes[0].var))
                continue;
            CiCudaCache *known = find_entry(plan, s, op->buffer, op->index);
            if (known) {
                known->uses++;
                continue;
            }
            CiCudaCache cache = {op->buffer, op->index, false, t, 1, s->trips, s->vector};
            CI_PUSH(ctx, plan->caches, plan->ncaches, plan->capcaches, cache);
        }
    }
}

/* A row stays in registers when its maker and all its readers walk it the same way. */
static bool
find_row_cache(const CiCudaPlan *plan, const CiBuffer *buffer, CiCudaCache *cache)
{
    *cache = (CiCudaCache){.buffer = buffer, .is_row = true, .uses = 2};
    for (int t = 0; t < plan->nstages; t++) {
        const CiCudaStage *s = &plan->stages[t];
        for (int n = 0; n < s->stage->nnests; n++) {
            const CiNest *nest = s->stage->nests[n];
            if (nest->target == buffer) {
                if (s->kind != CI_CUDA_each && s->kind != CI_CUDA_fold)
                    return false;
                if (!can_cache(s) || ci_nest_is_fold(nest) || cache->index)
                    return false;
                cache->index = nest->store;
                cache->first = t;
                cache->trips = s->trips;
                cache->vector = s->vector;
            }
            for (int k = 0; k < nest->body.nops; k++) {
                const CiScalar *op = &nest->body.ops[k];
                if (op->op != CI_OP_load || op->buffer != buffer)
                    continue;
                if (op->index != cache->index || !can_cache(s) || s->trips != cache->trips ||
                    s->vector != cache->vector)
                    return false;
            }
        }
    }
    return cache->index &&
           ci_expr_depends_on(cache->index, plan->stages[cache->first].stage->axes[0].var);
}

static int64_t
cache_registers(const CiCudaCache *cache)
{
    return cache->trips * ((cache->vector * ci_dtype_size(cache->buffer->dtype) + 3) / 4);
}

void
ci_cuda_plan_caches(CiContext *ctx, CiCudaPlan *plan)
{
    CiCudaCache *loads, row;
    int threads = plan->shape.group * plan->shape.points, kept = 0;
    int64_t budget = threads >= 1024 ? 40 : threads >= 512 ? 72 : 96;
    collect_loads(ctx, plan);
    int nloads = plan->ncaches;
    loads = plan->caches;
    plan->caches = CI_NEW_ARRAY(ctx, CiCudaCache, nloads + plan->kernel->nplacements + 1);
    plan->capcaches = nloads + plan->kernel->nplacements + 1;
    for (int k = 0; k < plan->kernel->nplacements; k++) {
        const CiPlacement *placement = &plan->kernel->placements[k];
        if (placement->place != CI_PLACE_row || !find_row_cache(plan, placement->buffer, &row) ||
            cache_registers(&row) > budget)
            continue;
        budget -= cache_registers(&row);
        plan->caches[kept++] = row;
    }
    for (int k = 0; k < nloads; k++) {
        if (loads[k].uses < 2 || cache_registers(&loads[k]) > budget)
            continue;
        budget -= cache_registers(&loads[k]);
        plan->caches[kept++] = loads[k];
    }
    plan->ncaches = kept;
}

static bool
is_cached_row(const CiCudaPlan *plan, const CiBuffer *buffer)
{
    for (int k = 0; k < plan->ncaches; k++)
        if (plan->caches[k].is_row && plan->caches[k].buffer == buffer)
            return true;
    return false;
}

/* ---- shared memory ---- */

static int64_t
row_count(CiContext *ctx, const CiKernel *kernel, const CiPlacement *placement)
{
    int64_t count;
    if (!ci_expr_is_const(placement->row_size, &count))
        ci_fail(ctx, CI_ERR_INTERNAL, "a row of %s has no fixed size", placement->buffer->name);
    return kernel->lanes_on_outer ? count / kernel->outer[kernel->nouter - 1].factor : count;
}

void
ci_cuda_plan_rows(CiContext *ctx, CiCudaPlan *plan)
{
    const CiKernel *kernel = plan->kernel;
    int64_t bytes = 0;
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        plan->row_offset[k] = -1;
        if (placement->place != CI_PLACE_row || is_cached_row(plan, placement->buffer))
            continue;
        plan->row_offset[k] = bytes;
        bytes += round_up(row_count(ctx, kernel, placement) * plan->shape.points *
                              ci_dtype_size(placement->buffer->dtype),
                          16);
    }
    plan->shared_bytes = bytes;
}

/* Fewer points a block while their rows crowd others out. */
void
ci_cuda_fit_rows(CiContext *ctx, CiCudaPlan *plan)
{
    int least =
        plan->shape.lanes_inside ? (plan->shape.group >= 32 ? 1 : 32 / plan->shape.group) : 32;
    ci_cuda_plan_rows(ctx, plan);
    while (plan->shared_bytes > CI_CUDA_SHARED_COMFORT && plan->shape.points / 2 >= least) {
        plan->shape.points /= 2;
        ci_cuda_plan_rows(ctx, plan);
    }
}

/* ---- folds ---- */

int64_t
ci_cuda_one_fold_bytes(const CiCudaFold *fold, int64_t count)
{
    int size = fold->is_arg ? 16 : ci_dtype_size(ci_dtype_compute(fold->dtype));
    return round_up(count * size, 16);
}

int64_t
ci_cuda_fold_bytes(const CiCudaShape *shape, const CiCudaStage *s)
{
    int64_t count = (int64_t)shape->group * shape->points / (shape->lanes_inside ? 32 : 1);
    int64_t bytes = 0;
    if (s->kind != CI_CUDA_fold || shape->group == 1 || (shape->lanes_inside && shape->group <= 32))
        return 0;
    for (int f = 0; f < s->nfolds; f++)
        bytes += ci_cuda_one_fold_bytes(&s->folds[f], count);
    return bytes;
}

/* Threads of a point that are not neighbours meet in shared memory, of which a block has only so
 * much without asking: fewer a point where a stage folds much at once. */
void
ci_cuda_fit_folds(CiCudaPlan *plan)
{
    for (int t = 0; t < plan->nstages; t++)
        while (ci_cuda_fold_bytes(&plan->shape, &plan->stages[t]) > CI_CUDA_STATIC_SHARED)
            plan->shape.group /= 2;
}

/* ---- barriers ---- */

static bool
is_visible_to_others(const CiCudaPlan *plan, const CiBuffer *buffer)
{
    for (int k = 0; k < plan->kernel->nplacements; k++)
        if (plan->kernel->placements[k].buffer == buffer)
            return plan->row_offset[k] >= 0 || plan->is_shared_local[k];
    return true;
}

static bool
stage_reads(const CiStage *stage, const CiBuffer *buffer)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++)
            if (stage->nests[n]->body.ops[k].op == CI_OP_load &&
                stage->nests[n]->body.ops[k].buffer == buffer)
                return true;
    return false;
}

static bool
conflicts(const CiCudaPlan *plan, const CiStage *early, const CiStage *late)
{
    for (int n = 0; n < early->nnests; n++) {
        const CiBuffer *target = early->nests[n]->target;
        if (is_visible_to_others(plan, target) &&
            (stage_reads(late, target) || ci_stage_stores(late, target)))
            return true;
    }
    for (int n = 0; n < late->nnests; n++) {
        const CiBuffer *target = late->nests[n]->target;
        if (is_visible_to_others(plan, target) && stage_reads(early, target))
            return true;
    }
    return false;
}

void
ci_cuda_plan_barriers(CiCudaPlan *plan)
{
    int since = 0;
    for (int t = 1; t < plan->nstages; t++) {
        for (int early = since; early < t; early++)
            plan->stages[t].has_barrier |=
                conflicts(plan, plan->stages[early].stage, plan->stages[t].stage);
        if (plan->stages[t].has_barrier)
            since = t;
    }
}

/* A local that a stage with shared axes makes (one of them of length one) is made by one thread. */
void
ci_cuda_plan_locals(CiCudaPlan *plan)
{
    for (int k = 0; k < plan->kernel->nplacements; k++)
        for (int t = 0; t < plan->nstages; t++) {
            const CiCudaStage *s = &plan->stages[t];
            for (int n = 0; n < s->stage->nnests; n++) {
                bool is_maker = s->stage->nests[n]->target == plan->kernel->placements[k].buffer;
                bool all_have_it = s->kind == CI_CUDA_once ||
                                   (s->kind == CI_CUDA_fold && ci_nest_is_fold(s->stage->nests[n]));
                if (is_maker && plan->kernel->placements[k].place == CI_PLACE_local && !all_have_it)
                    plan->is_shared_local[k] = true;
            }
        }
}

/* ---- alignment ---- */

static void
align(CiCudaPlan *plan, const CiBuffer *buffer, int bytes)
{
    int position = ci_kernel_buffer_position(plan->kernel, buffer);
    if (position >= 0 && plan->alignment[position] < bytes)
        plan->alignment[position] = bytes;
}

void
ci_cuda_plan_alignment(CiSym *sym, CiCudaPlan *plan)
{
    for (int t = 0; t < plan->nstages; t++) {
        const CiCudaStage *s = &plan->stages[t];
        const CiExpr *var = ci_cuda_vector_axis(plan, s);
        for (int n = 0; s->vector > 1 && n < s->stage->nnests; n++) {
            const CiNest *nest = s->stage->nests[n];
            if (ci_cuda_is_vector(sym, nest->store, var, s->vector))
                align(plan, nest->target, s->vector * ci_dtype_size(nest->target->dtype));
            for (int k = 0; k < nest->body.nops; k++) {
                const CiScalar *op = &nest->body.ops[k];
                if (op->op == CI_OP_load && ci_cuda_is_vector(sym, op->index, var, s->vector))
                    align(plan, op->buffer, s->vector * ci_dtype_size(op->buffer->dtype));
            }
        }
    }
}
