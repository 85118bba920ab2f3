/* Folds: accumulators of a thread, then of the group of threads that shares an outer point, then
 * chunks of a split fold.
 *
 * f<id>[v] are a thread's accumulators, one per element of its vector; after
 * ci_cuda_emit_fold_group f<id>[0] is the group's and the same in each of its threads. */
#include "device/cuda/emit_cuda.h"

static const char *
fold_type(CiCudaEmitter *c, const CiCudaFold *fold)
{
    return fold->is_arg ? ci_format(c->ctx, "ci_arg<%s>", ci_emit_type(fold->dtype))
                        : ci_emit_type(fold->dtype);
}

/* One instruction for a maximum or minimum in which a NaN wins; it may give another zero than the
 * op's expression, which a fold does not promise. NULL: none. */
static const char *
extremum(const CiCudaFold *fold)
{
    if (ci_dtype_compute(fold->dtype) != CI_DTYPE_f32)
        return NULL;
    return fold->nest->fold == CI_OP_max   ? "ci_nan_max"
           : fold->nest->fold == CI_OP_min ? "ci_nan_min"
                                           : NULL;
}

/* accumulator = accumulator op other */
static void
combine(CiCudaEmitter *c, const CiCudaFold *fold, const char *accumulator, const char *other)
{
    CiText text = ci_text_new(c->ctx);
    if (fold->is_arg)
        ci_text_add(&text, "ci_%s(%s, %s)", ci_op_name(fold->nest->fold), accumulator, other);
    else if (extremum(fold))
        ci_text_add(&text, "%s(%s, %s)", extremum(fold), accumulator, other);
    else
        ci_emit_combine(c->base, &text, fold->nest->fold, fold->dtype, accumulator, other);
    ci_text_line(c->out, "%s = %s;", accumulator, text.data);
}

static void
combine_with(CiCudaEmitter *c, const CiCudaFold *fold, const char *other)
{
    ci_text_line(c->out, "const %s o%d = %s;", fold_type(c, fold), fold->id, other);
    combine(c, fold, ci_format(c->ctx, "f%d[0]", fold->id), ci_format(c->ctx, "o%d", fold->id));
}

void
ci_cuda_emit_fold_start(CiCudaEmitter *c, const CiCudaFold *fold, int vector)
{
    CiText all = ci_text_new(c->ctx);
    for (int v = 0; v < vector; v++) {
        ci_text_add(&all, v ? ", " : "");
        if (fold->is_arg)
            ci_text_add(&all, "{0, -1}");
        else
            ci_emit_const(&all, fold->dtype, ci_op_identity(fold->nest->fold, fold->dtype));
    }
    ci_text_line(c->out, "%s f%d[%d] = {%s};", fold_type(c, fold), fold->id, vector, all.data);
}

/* The number of the element among those folded, in C order of the reduce axes. */
static const char *
fold_position(CiCudaEmitter *c, const CiNest *nest)
{
    const CiExpr *position = ci_expr_const(c->sym, 0);
    for (int k = nest->npoint; k < nest->naxes; k++)
        position = ci_expr_add(c->sym, ci_expr_mul(c->sym, position, nest->axes[k].extent),
                               nest->axes[k].var);
    return ci_emit_index_text(c->base, position);
}

void
ci_cuda_emit_fold_step(CiCudaEmitter *c, const CiCudaStage *s, const CiCudaFold *fold,
                       const char *value, const char *lane)
{
    const char *accumulator = ci_format(c->ctx, "f%d[%s]", fold->id, s->vector > 1 ? lane : "0");
    if (fold->is_arg)
        value = ci_format(c->ctx, "ci_arg<%s>{%s, %s}", ci_emit_type(fold->dtype), value,
                          fold_position(c, fold->nest));
    combine(c, fold, accumulator, value);
}

void
ci_cuda_emit_fold_lanes(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int f = 0; f < s->nfolds; f++)
        for (int half = s->vector / 2; half; half /= 2)
            for (int v = 0; v < half; v++)
                combine(c, &s->folds[f], ci_format(c->ctx, "f%d[%d]", s->folds[f].id, v),
                        ci_format(c->ctx, "f%d[%d]", s->folds[f].id, v + half));
}

/* ---- groups ---- */

/* Zeros of either sign compare equal, so a minimum may differ between threads that folded in
 * another order. */
static bool
depends_on_side(const CiCudaFold *fold)
{
    return !fold->is_arg && ci_dtype_class(fold->dtype) == CI_CLASS_float &&
           fold->nest->fold != CI_OP_sum && fold->nest->fold != CI_OP_prod;
}

static void
fold_warp(CiCudaEmitter *c, const CiCudaStage *s)
{
    int lanes = c->shape.group < 32 ? c->shape.group : 32;
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int h = %d; h; h /= 2) {", lanes / 2);
    for (int f = 0; f < s->nfolds; f++)
        combine_with(c, &s->folds[f], ci_format(c->ctx, "ci_shuffle(f%d[0], h)", s->folds[f].id));
    ci_text_close(c->out);
    for (int f = 0; f < s->nfolds && c->shape.group <= 32; f++)
        if (depends_on_side(&s->folds[f]))
            ci_text_line(c->out, "f%d[0] = ci_first(f%d[0], %d);", s->folds[f].id, s->folds[f].id,
                         lanes);
}

static void
declare_memory(CiCudaEmitter *c, const CiCudaStage *s, int64_t count)
{
    int64_t offset = 0;
    if (c->fold_memory_used)
        ci_text_line(c->out, "__syncthreads();");
    c->fold_memory_used = true;
    for (int f = 0; f < s->nfolds; f++) {
        const char *type = fold_type(c, &s->folds[f]);
        ci_text_line(c->out, "%s *const m%d = (%s *)(fold_memory + %lld);", type, s->folds[f].id,
                     type, (long long)offset);
        offset += ci_cuda_one_fold_bytes(&s->folds[f], count);
    }
}

/* Each warp leaves its result; every thread folds those of its group, in order of the warps. */
static void
fold_warps(CiCudaEmitter *c, const CiCudaStage *s)
{
    int warps = c->shape.group / 32;
    declare_memory(c, s, warps * c->shape.points);
    ci_text_open(c->out, "if (tid %% 32 == 0) {");
    for (int f = 0; f < s->nfolds; f++)
        ci_text_line(c->out, "m%d[tid / 32] = f%d[0];", s->folds[f].id, s->folds[f].id);
    ci_text_close(c->out);
    ci_text_line(c->out, "__syncthreads();");
    for (int f = 0; f < s->nfolds; f++)
        ci_text_line(c->out, "f%d[0] = m%d[p*%d];", s->folds[f].id, s->folds[f].id, warps);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int w = 1; w < %d; w++) {", warps);
    for (int f = 0; f < s->nfolds; f++)
        combine_with(c, &s->folds[f], ci_format(c->ctx, "m%d[p*%d + w]", s->folds[f].id, warps));
    ci_text_close(c->out);
}

/* Threads of a group are not neighbours: they fold in shared memory, the lower half taking the
 * upper half's. */
static void
fold_across(CiCudaEmitter *c, const CiCudaStage *s)
{
    declare_memory(c, s, (int64_t)c->shape.group * c->shape.points);
    for (int f = 0; f < s->nfolds; f++)
        ci_text_line(c->out, "m%d[tid] = f%d[0];", s->folds[f].id, s->folds[f].id);
    ci_text_line(c->out, "__syncthreads();");
    ci_text_open(c->out, "for (int h = %d; h; h /= 2) {", c->shape.group / 2);
    ci_text_open(c->out, "if (g < h) {");
    for (int f = 0; f < s->nfolds; f++) {
        combine_with(c, &s->folds[f],
                     ci_format(c->ctx, "m%d[tid + h*%d]", s->folds[f].id, c->shape.points));
        ci_text_line(c->out, "m%d[tid] = f%d[0];", s->folds[f].id, s->folds[f].id);
    }
    ci_text_close(c->out);
    ci_text_line(c->out, "__syncthreads();");
    ci_text_close(c->out);
    for (int f = 0; f < s->nfolds; f++)
        ci_text_line(c->out, "f%d[0] = m%d[p];", s->folds[f].id, s->folds[f].id);
}

void
ci_cuda_emit_fold_group(CiCudaEmitter *c, const CiCudaStage *s)
{
    if (c->shape.group == 1)
        return;
    if (!c->shape.lanes_inside) {
        fold_across(c, s);
        return;
    }
    fold_warp(c, s);
    if (c->shape.group > 32)
        fold_warps(c, s);
}

/* ---- results ---- */

/* A sum over nothing is +0.0, where the identity is -0.0. */
static void
mend_empty_sum(CiCudaEmitter *c, const CiCudaFold *fold)
{
    const CiNest *nest = fold->nest;
    const CiExpr *length = ci_expr_const(c->sym, 1);
    for (int k = nest->npoint; k < nest->naxes; k++)
        length = ci_expr_mul(c->sym, length, nest->axes[k].extent);
    if (nest->fold == CI_OP_sum && !ci_dtype_is_integral(fold->dtype) && length->low <= 0)
        ci_text_line(c->out, "if (%s == 0) f%d[0] = %s{0};", ci_emit_index_text(c->base, length),
                     fold->id, ci_emit_type(fold->dtype));
}

void
ci_cuda_emit_fold_results(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int f = 0; f < s->nfolds; f++) {
        const CiCudaFold *fold = &s->folds[f];
        const CiBuffer *target = fold->nest->target;
        CiText text = ci_text_new(c->ctx);
        CiDtype dtype = fold->is_arg ? CI_DTYPE_i64 : fold->dtype;
        const char *name = ci_format(c->ctx, fold->is_arg ? "f%d[0].at" : "f%d[0]", fold->id);
        mend_empty_sum(c, fold);
        if (ci_dtype_is_narrow(dtype))
            name = ci_format(c->ctx, "%s(%s)", ci_emit_rounding(c->base, dtype), name);
        ci_emit_cast(c->base, &text, dtype, target->dtype, name);
        ci_text_line(c->out, "const %s folded%d = %s;", ci_emit_type(target->dtype), fold->id,
                     text.data);
        ci_cuda_emit_store(c, s, target, fold->nest->store,
                           ci_format(c->ctx, "folded%d", fold->id));
    }
}

/* ---- chunks ---- */

static const char *
partial_place(CiCudaEmitter *c, const CiCudaFold *fold, int number, const char *chunk)
{
    return ci_format(c->ctx, "*(%s *)(partials + %d*(((int64_t)%d*chunks + %s)*npoints + point))",
                     fold_type(c, fold), CI_CUDA_PARTIAL, number, chunk);
}

void
ci_cuda_emit_partials_out(CiCudaEmitter *c, const CiCudaStage *s)
{
    const char *guard = c->has_idle ? "is_active && g == 0" : "g == 0";
    ci_text_open(c->out, "if (%s) {", guard);
    for (int f = 0; f < s->nfolds; f++)
        ci_text_line(c->out, "%s = f%d[0];", partial_place(c, &s->folds[f], f, "chunk"),
                     s->folds[f].id);
    ci_text_close(c->out);
}

void
ci_cuda_emit_partials_in(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int f = 0; f < s->nfolds; f++)
        ci_cuda_emit_fold_start(c, &s->folds[f], 1);
    ci_text_open(c->out, "for (int chunk = g; chunk < chunks; chunk += %d) {", c->shape.group);
    for (int f = 0; f < s->nfolds; f++)
        combine_with(c, &s->folds[f], partial_place(c, &s->folds[f], f, "chunk"));
    ci_text_close(c->out);
}
