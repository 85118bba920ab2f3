/* Stages: what they keep declared, and the loops in which a group of threads walks their elements.
 */
#include "device/cuda/emit_cuda.h"

/* For division: unsigned is cheaper. */
static const char *
bits_type(const CiCudaEmitter *c)
{
    return c->plan->is_wide ? "uint64_t" : "uint32_t";
}

static const CiExpr *
in_vectors(CiCudaEmitter *c, const CiExpr *extent, int vector)
{
    return ci_expr_floordiv(c->sym, extent, ci_expr_const(c->sym, vector));
}

void
ci_cuda_emit_axes(CiCudaEmitter *c, const CiKernelAxis *axes, int count, int vector,
                  const char *number)
{
    const char *type = ci_cuda_index_type(c),
               *scale = vector > 1 ? ci_format(c->ctx, "*%d", vector) : "";
    const char *suffix = vector > 1 ? "_base" : "";
    if (count == 1)
        ci_text_line(c->out, "const %s %s%s = (%s)%s%s;", type, axes[0].var->name, suffix, type,
                     number, scale);
    if (count < 2)
        return;
    const char *q = ci_format(c->ctx, "q_%s", axes[0].var->name);
    ci_text_line(c->out, "%s %s = (%s)(%s);", bits_type(c), q, bits_type(c), number);
    for (int k = count - 1; k > 0; k--) {
        bool is_last = k == count - 1;
        const char *extent = ci_emit_index_text(
            c->base, is_last ? in_vectors(c, axes[k].extent, vector) : axes[k].extent);
        ci_text_line(c->out, "const %s %s%s = (%s)(%s %% (%s)(%s))%s;", type, axes[k].var->name,
                     is_last ? suffix : "", type, q, bits_type(c), extent, is_last ? scale : "");
        ci_text_line(c->out, "%s /= (%s)(%s);", q, bits_type(c), extent);
    }
    ci_text_line(c->out, "const %s %s = (%s)%s;", type, axes[0].var->name, type, q);
}

static const CiExpr *
shared_count(CiCudaEmitter *c, const CiCudaStage *s)
{
    const CiExpr *product = ci_expr_const(c->sym, 1);
    for (int k = 0; k < s->nshared; k++)
        product = ci_expr_mul(c->sym, product, s->stage->axes[k].extent);
    return product;
}

static int64_t
fold_memory(const CiCudaEmitter *c)
{
    int64_t most = 0;
    for (int t = 0; t < c->plan->nstages; t++)
        if (ci_cuda_fold_bytes(&c->shape, &c->plan->stages[t]) > most)
            most = ci_cuda_fold_bytes(&c->shape, &c->plan->stages[t]);
    return most;
}

static void
declare_row(CiCudaEmitter *c, int placement)
{
    const CiPlacement *row = &c->plan->kernel->placements[placement];
    const char *type = ci_emit_storage(row->buffer->dtype),
               *name = ci_emit_buffer(c->base, row->buffer);
    const CiKernel *kernel = c->plan->kernel;
    int64_t count = row->row_size->value /
                    (kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 1);
    ci_text_line(c->out, "%s *const %s_row = (%s *)(rows + %lld) + %lldLL*p;", type, name, type,
                 (long long)c->plan->row_offset[placement],
                 (long long)(c->shape.lanes_inside || c->shape.points == 1 ? count : 1));
}

void
ci_cuda_emit_declarations(CiCudaEmitter *c)
{
    const CiCudaPlan *plan = c->plan;
    if (fold_memory(c))
        ci_text_line(c->out, "__shared__ __align__(16) unsigned char fold_memory[%lld];",
                     (long long)fold_memory(c));
    if (plan->shared_bytes)
        ci_text_line(c->out, "extern __shared__ __align__(16) unsigned char rows[];");
    for (int k = 0; k < plan->kernel->nplacements; k++) {
        const CiPlacement *placement = &plan->kernel->placements[k];
        const char *type = ci_emit_type(placement->buffer->dtype),
                   *name = ci_emit_buffer(c->base, placement->buffer);
        if (plan->row_offset[k] >= 0)
            declare_row(c, k);
        else if (plan->is_shared_local[k])
            ci_text_line(c->out, "__shared__ %s %s_shared[%d];", type, name, c->shape.points);
        else if (placement->place == CI_PLACE_local)
            ci_text_line(c->out, "%s %s_local;", type, name);
    }
    for (int k = 0; k < plan->ncaches; k++)
        ci_text_line(c->out, "%s r%d[%lld];",
                     ci_cuda_vector_type(c, plan->caches[k].buffer->dtype, plan->caches[k].vector),
                     k, (long long)plan->caches[k].trips);
}

/* Rounds known beforehand are unrolled, so that what is kept in r<n>[k] lies in registers. */
static void
emit_trips(CiCudaEmitter *c, const CiCudaStage *s, const char *count)
{
    const char *type = ci_cuda_index_type(c);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int k = 0; k < %lld; k++) {", (long long)s->trips);
    ci_text_line(c->out, "const %s e = (%s)k*%d + g;", type, type, c->shape.group);
    if (!s->is_exact)
        ci_text_open(c->out, "if (e < %s) {", count);
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
    ci_cuda_emit_elements(c, s, s->vector);
    if (!s->is_exact)
        ci_text_close(c->out);
    ci_text_close(c->out);
}

static void
emit_round(CiCudaEmitter *c, const CiCudaStage *s, int rounds, const char *count, const char *step,
           bool is_load)
{
    int64_t total;
    bool is_exact = ci_expr_is_const(shared_count(c, s), &total) && !c->plan->is_split &&
                    total % ((int64_t)s->vector * rounds * c->shape.group) == 0;
    const char *type = ci_cuda_index_type(c);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int k = 0; k < %d; k++) {", rounds);
    ci_text_line(c->out, "const %s e = first + k*(%s);", type, step);
    ci_text_open(c->out, "%s", is_exact ? "{" : ci_format(c->ctx, "if (e < %s) {", count));
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
    if (is_load)
        ci_cuda_emit_batch_loads(c, s);
    else
        ci_cuda_emit_elements(c, s, s->vector);
    ci_text_close(c->out);
    ci_text_close(c->out);
}

/* Several rounds at a time, their loads first: what hides the way to memory is loads under way. */
static void
emit_rounds(CiCudaEmitter *c, const CiCudaStage *s, const char *start, const char *count,
            const char *step)
{
    const char *type = ci_cuda_index_type(c);
    int rounds = ci_cuda_start_batch(c, s);
    if (rounds == 1) {
        ci_text_line(c->out, "#pragma unroll 4");
        ci_text_open(c->out, "for (%s e = %s; e < %s; e += %s) {", type, start, count, step);
        ci_cuda_emit_axes(c, s->stage->axes, s->nshared, s->vector, "e");
        ci_cuda_emit_elements(c, s, s->vector);
        ci_text_close(c->out);
        return;
    }
    ci_text_open(c->out, "for (%s first = %s; first < %s; first += %d*(%s)) {", type, start, count,
                 rounds, step);
    ci_cuda_emit_batch_declarations(c, s, rounds);
    emit_round(c, s, rounds, count, step, true);
    emit_round(c, s, rounds, count, step, false);
    ci_text_close(c->out);
    ci_cuda_end_batch(c);
}

static void
emit_shared_loop(CiCudaEmitter *c, const CiCudaStage *s)
{
    const char *type = ci_cuda_index_type(c),
               *count = ci_emit_index_text(c->base, in_vectors(c, shared_count(c, s), s->vector));
    const char *start =
        c->plan->is_split ? ci_format(c->ctx, "(%s)chunk*%d + g", type, c->shape.group) : "g";
    const char *step = c->plan->is_split ? ci_format(c->ctx, "(%s)chunks*%d", type, c->shape.group)
                                         : ci_format(c->ctx, "%d", c->shape.group);
    if (s->trips) {
        emit_trips(c, s, count);
        return;
    }
    emit_rounds(c, s, start, count, step);
    if (!s->has_tail)
        return;
    const char *name = s->stage->axes[0].var->name,
               *extent = ci_emit_index_text(c->base, s->stage->axes[0].extent);
    ci_text_open(c->out, "for (%s %s = (%s)(%s)*%d + %s; %s < %s; %s += %s) {", type, name, type,
                 count, s->vector, start, name, extent, name, step);
    ci_cuda_emit_elements(c, s, 1);
    ci_text_close(c->out);
}

static void
start_scans(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (!ci_nest_is_scan(nest))
            continue;
        CiText start = ci_text_new(c->ctx);
        CiDtype dtype = s->code->values[s->code->results[n]].op.dtype;
        ci_emit_const(&start, dtype, ci_op_identity(nest->fold, dtype));
        ci_text_line(c->out, "%s scan%d = %s;", ci_emit_type(dtype), n, start.data);
    }
}

static void
emit_serial(CiCudaEmitter *c, const CiCudaStage *s)
{
    const char *type = ci_cuda_index_type(c);
    ci_text_open(c->out, "for (%s e = g; e < %s; e += %d) {", type,
                 ci_emit_index_text(c->base, shared_count(c, s)), c->shape.group);
    ci_cuda_emit_axes(c, s->stage->axes, s->nshared, 1, "e");
    for (int f = 0; f < s->nfolds; f++)
        ci_cuda_emit_fold_start(c, &s->folds[f], 1);
    start_scans(c, s);
    ci_cuda_emit_pack_starts(c, s);
    for (int k = s->nshared; k < s->stage->naxes; k++) {
        const char *name = s->stage->axes[k].var->name;
        ci_text_open(c->out, "for (%s %s = 0; %s < %s; %s++) {", type, name, name,
                     ci_emit_index_text(c->base, s->stage->axes[k].extent), name);
    }
    ci_cuda_emit_elements(c, s, 1);
    for (int k = s->nshared; k < s->stage->naxes; k++)
        ci_text_close(c->out);
    ci_cuda_emit_fold_results(c, s);
    ci_text_close(c->out);
}

static void
emit_barrier(CiCudaEmitter *c)
{
    if (c->shape.group == 1)
        return;
    ci_text_line(c->out, c->shape.lanes_inside && c->shape.group <= 32 ? "__syncwarp();"
                                                                       : "__syncthreads();");
}

void
ci_cuda_emit_stage(CiCudaEmitter *c, const CiCudaStage *s)
{
    if (s->has_barrier)
        emit_barrier(c);
    ci_text_open(c->out, "{");
    if (s->kind == CI_CUDA_once) {
        ci_cuda_emit_elements(c, s, 1);
    } else if (s->kind == CI_CUDA_serial) {
        emit_serial(c, s);
    } else {
        for (int f = 0; f < s->nfolds; f++)
            ci_cuda_emit_fold_start(c, &s->folds[f], s->vector);
        emit_shared_loop(c, s);
        ci_cuda_emit_fold_lanes(c, s);
    }
    if (s->kind == CI_CUDA_fold) {
        ci_cuda_emit_fold_group(c, s);
        if (c->plan->is_split)
            ci_cuda_emit_partials_out(c, s);
        else
            ci_cuda_emit_fold_results(c, s);
    }
    ci_text_close(c->out);
}

void
ci_cuda_emit_stages(CiCudaEmitter *c)
{
    for (int t = 0; t < (c->plan->is_split ? 1 : c->plan->nstages); t++)
        ci_cuda_emit_stage(c, &c->plan->stages[t]);
}
