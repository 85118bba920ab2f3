/* The elements that a thread takes at a time: one, or a vector of neighbours; and what it keeps of
 * them in registers, between stages or for several rounds of a loop.
 *
 * A vector is printed as loads of 16 bytes or less, an unrolled loop `v` over its elements, and
 * stores. Loads and stores that are not contiguous and aligned stay inside the loop, element by
 * element. */
#include "device/cuda/emit_cuda.h"

/* ---- types ---- */

const char *
ci_cuda_vector_type(CiCudaEmitter *c, CiDtype dtype, int vector)
{
    c->has_vector[dtype][vector] = true;
    return ci_format(c->ctx, "ci_%sx%d", ci_dtype_name(dtype), vector);
}

void
ci_cuda_emit_vector_types(CiCudaEmitter *c, CiText *out)
{
    for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++)
        for (int vector = 1; vector <= 16; vector++)
            if (c->has_vector[dtype][vector])
                ci_text_line(out, "struct __align__(%d) ci_%sx%d { %s v[%d]; };",
                             vector * ci_dtype_size((CiDtype)dtype), ci_dtype_name((CiDtype)dtype),
                             vector, ci_emit_storage((CiDtype)dtype), vector);
}

/* ---- elements ---- */

static bool
is_first_use(const CiCudaElement *e, const CiCudaCache *cache)
{
    return !cache->is_row && &e->c->plan->stages[cache->first] == e->s;
}

/* Elements that are not contiguous are gathered one by one. */
static void
fill_cache(const CiCudaElement *e, const CiCudaCache *cache, const char *into)
{
    CiCudaEmitter *c = e->c;
    const char *from = ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, cache->buffer),
                                 ci_emit_index_text(c->base, cache->index));
    if (ci_cuda_is_vector_access(e, cache->buffer, cache->index)) {
        ci_text_line(c->out, "%s[k] = *(const %s *)&%s;", into,
                     ci_cuda_vector_type(c, cache->buffer->dtype, e->vector), from);
        return;
    }
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int v = 0; v < %d; v++) {", e->vector);
    if (e->vector > 1)
        ci_text_line(c->out, "const auto %s = %s_base + v;", e->var->name, e->var->name);
    ci_text_line(c->out, "%s[k].v[v] = %s;", into, from);
    ci_text_close(c->out);
}

/* Lines printed by `lines` in a block where the axis stands at the vector's first element; nothing
 * when there are none. */
static void
at_base(const CiCudaElement *e, void (*lines)(const CiCudaElement *e))
{
    CiCudaEmitter *c = e->c;
    CiText *out = c->out, block = ci_text_new(c->ctx);
    block.indent = out->indent + 4;
    c->out = &block;
    lines(e);
    c->out = out;
    if (!block.length)
        return;
    ci_text_line(out, "{");
    if (e->vector > 1)
        ci_text_line(out, "    const auto %s = %s_base;", e->var->name, e->var->name);
    ci_text_add_chars(out, block.data, block.length);
    ci_text_line(out, "}");
}

static bool
is_loaded_as_vector(const CiCudaElement *e, int position)
{
    const CiValue *value = &e->s->code->values[position];
    return value->op.op == CI_OP_load && value->is_needed &&
           ci_cuda_is_vector_access(e, value->op.buffer, value->op.index) &&
           !ci_cuda_find_cache(e->c->plan, e->s, value->op.buffer, value->op.index) &&
           ci_cuda_batch_number(e->c, value->op.buffer, value->op.index) < 0;
}

static void
emit_vector_loads(const CiCudaElement *e)
{
    CiCudaEmitter *c = e->c;
    for (int k = 0; k < e->s->code->nvalues; k++) {
        const CiScalar *op = &e->s->code->values[k].op;
        if (op->op != CI_OP_load || !e->s->code->values[k].is_needed)
            continue;
        const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, op->buffer, op->index);
        if (cache && is_first_use(e, cache))
            fill_cache(e, cache, ci_format(c->ctx, "r%d", ci_cuda_cache_number(c->plan, cache)));
        if (is_loaded_as_vector(e, k))
            ci_text_line(c->out, "x%d = *(const %s *)&%s[%s];", k,
                         ci_cuda_vector_type(c, op->dtype, e->vector),
                         ci_emit_buffer(c->base, op->buffer),
                         ci_emit_index_text(c->base, op->index));
    }
}

static bool
is_vector_store(const CiCudaElement *e, int number)
{
    const CiNest *nest = e->s->stage->nests[number];
    return !ci_nest_is_fold(nest) && ci_cuda_is_vector_access(e, nest->target, nest->store) &&
           e->s->code->values[e->s->code->results[number]].is_needed;
}

static void
emit_vector_stores(const CiCudaElement *e)
{
    CiCudaEmitter *c = e->c;
    for (int n = 0; n < e->s->stage->nnests; n++) {
        const CiNest *nest = e->s->stage->nests[n];
        if (is_vector_store(e, n))
            ci_text_line(c->out, "%s*(%s *)&%s[%s] = y%d;", c->has_idle ? "if (is_active) " : "",
                         ci_cuda_vector_type(c, nest->target->dtype, e->vector),
                         ci_emit_buffer(c->base, nest->target),
                         ci_emit_index_text(c->base, nest->store), n);
    }
}

static void
declare_vectors(const CiCudaElement *e)
{
    for (int k = 0; k < e->s->code->nvalues; k++)
        if (is_loaded_as_vector(e, k))
            ci_text_line(e->c->out, "%s x%d;",
                         ci_cuda_vector_type(e->c, e->s->code->values[k].op.dtype, e->vector), k);
    for (int n = 0; n < e->s->stage->nnests; n++)
        if (is_vector_store(e, n))
            ci_text_line(e->c->out, "%s y%d;",
                         ci_cuda_vector_type(e->c, e->s->stage->nests[n]->target->dtype, e->vector),
                         n);
}

static void
declare_flat_placements(const CiCudaElement *e)
{
    const CiKernel *kernel = e->c->plan->kernel;
    for (int k = 0; e->c->plan->is_flat && k < kernel->nplacements; k++) {
        const CiPlacement *placement = &kernel->placements[k];
        const char *name = ci_emit_buffer(e->c->base, placement->buffer);
        int64_t count;
        if (placement->place == CI_PLACE_local)
            ci_text_line(e->c->out, "%s %s_local;", ci_emit_type(placement->buffer->dtype), name);
        if (placement->place != CI_PLACE_row || !ci_expr_is_const(placement->row_size, &count))
            continue;
        int factor = kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 1;
        ci_text_line(e->c->out, "%s %s_row[%lld];", ci_emit_storage(placement->buffer->dtype), name,
                     (long long)count / factor);
    }
}

/* A vector starts at <var>_base; a single element is at <var> itself. */
void
ci_cuda_emit_elements(CiCudaEmitter *c, const CiCudaStage *s, int vector)
{
    CiCudaElement e = {c, s, ci_cuda_vector_axis(c->plan, s), vector};
    if (vector == 1 &&
        s->vector > 1) { /* the tail of a vectorised stage: nothing is cached there */
        declare_flat_placements(&e);
        ci_cuda_emit_element(&e);
        return;
    }
    declare_vectors(&e);
    at_base(&e, emit_vector_loads);
    if (vector > 1) {
        ci_text_line(c->out, "#pragma unroll");
        ci_text_open(c->out, "for (int v = 0; v < %d; v++) {", vector);
        ci_text_line(c->out, "const auto %s = %s_base + v;", e.var->name, e.var->name);
    }
    declare_flat_placements(&e);
    if (!s->stage->naxes)
        ci_cuda_emit_pack_starts(c, s);
    ci_cuda_emit_element(&e);
    if (vector > 1) {
        ci_text_close(c->out);
    }
    at_base(&e, emit_vector_stores);
}

/* ---- loads of several rounds together ---- */

static bool
depends_on_shared_axes(const CiCudaStage *s, const CiExpr *index)
{
    for (int k = 0; k < s->nshared; k++)
        if (ci_expr_depends_on(index, s->stage->axes[k].var))
            return true;
    return false;
}

static bool
can_batch(const CiCudaEmitter *c, const CiCudaStage *s, const CiValue *value)
{
    const CiScalar *op = &value->op;
    return op->op == CI_OP_load && !op->nargs && value->is_needed &&
           op->buffer->kind != CI_BUFFER_scalar &&
           ci_cuda_placement_number(c->plan->kernel, op->buffer) < 0 &&
           !ci_stage_stores(s->stage, op->buffer) && depends_on_shared_axes(s, op->index) &&
           ci_cuda_batch_number(c, op->buffer, op->index) < 0;
}

int
ci_cuda_start_batch(CiCudaEmitter *c, const CiCudaStage *s)
{
    int registers = 0;
    c->batch = CI_NEW_ARRAY(c->ctx, CiCudaCache, s->code->nvalues + 1);
    c->nbatch = 0;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (!can_batch(c, s, &s->code->values[k]))
            continue;
        c->batch[c->nbatch++] =
            (CiCudaCache){.buffer = op->buffer, .index = op->index, .vector = s->vector};
        registers += (s->vector * ci_dtype_size(op->buffer->dtype) + 3) / 4;
    }
    int rounds = registers == 0    ? 1
                 : registers <= 2  ? 8
                 : registers <= 10 ? 4
                 : registers <= 20 ? 2
                                   : 1;
    if (rounds == 1)
        c->nbatch = 0;
    return rounds;
}

void
ci_cuda_end_batch(CiCudaEmitter *c)
{
    c->nbatch = 0;
}

void
ci_cuda_emit_batch_declarations(CiCudaEmitter *c, const CiCudaStage *s, int rounds)
{
    for (int k = 0; k < c->nbatch; k++)
        ci_text_line(c->out, "%s b%d[%d];",
                     ci_cuda_vector_type(c, c->batch[k].buffer->dtype, s->vector), k, rounds);
}

static void
fill_batch(const CiCudaElement *e)
{
    for (int k = 0; k < e->c->nbatch; k++)
        fill_cache(e, &e->c->batch[k], ci_format(e->c->ctx, "b%d", k));
}

void
ci_cuda_emit_batch_loads(CiCudaEmitter *c, const CiCudaStage *s)
{
    CiCudaElement e = {c, s, ci_cuda_vector_axis(c->plan, s), s->vector};
    at_base(&e, fill_batch);
}
