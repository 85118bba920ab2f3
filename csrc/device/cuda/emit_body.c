/* The elements of a stage: loads, the straight-line code, stores; for one element or for a vector
 * of neighbours.
 *
 * A vector is printed as loads of 16 bytes or less, an unrolled loop `v` over its elements, and
 * stores. Loads and stores that are not contiguous and aligned stay inside the loop, element by
 * element. */
#include "device/cuda/cuda.h"

#include <string.h>

/* ---- vectors ---- */

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

static int
cache_number(const CiCudaPlan *plan, const CiCudaCache *cache)
{
    return (int)(cache - plan->caches);
}

/* ---- one element ---- */

typedef struct Element {
    CiCudaEmitter *c;
    const CiCudaStage *s;
    const CiExpr *var;
    int vector;
} Element;

static const char *
value_name(const Element *e, int position)
{
    return ci_format(e->c->ctx, "v%d", position);
}

static int
placement_number(const CiKernel *kernel, const CiBuffer *buffer)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].buffer == buffer)
            return kernel->placements[k].place == CI_PLACE_memory ? -1 : k;
    return -1;
}

/* The element of a row in shared memory (or, flat, in registers of the thread). */
static const char *
row_element(CiCudaEmitter *c, int placement, const CiExpr *index)
{
    const CiPlacement *row = &c->plan->kernel->placements[placement];
    const char *at = ci_emit_index_text(c->base, ci_expr_sub(c->sym, index, row->row_base));
    const char *name = ci_emit_buffer(c->base, row->buffer);
    if (c->plan->is_flat || c->shape.lanes_inside || c->shape.points == 1)
        return ci_format(c->ctx, "%s_row[%s]", name, at);
    return ci_format(c->ctx, "%s_row[%d*(%s)]", name, c->shape.points, at);
}

static const char *
local_name(CiCudaEmitter *c, int placement)
{
    const char *name = ci_emit_buffer(c->base, c->plan->kernel->placements[placement].buffer);
    return c->plan->is_shared_local[placement] ? ci_format(c->ctx, "%s_shared[p]", name)
                                               : ci_format(c->ctx, "%s_local", name);
}

static bool
is_vector_access(const Element *e, const CiBuffer *buffer, const CiExpr *index)
{
    return e->vector > 1 && buffer->kind != CI_BUFFER_scalar &&
           placement_number(e->c->plan->kernel, buffer) < 0 &&
           ci_cuda_is_vector(e->c->sym, index, e->var, e->vector);
}

const char *
ci_cuda_slot_text(CiCudaEmitter *c, const CiBuffer *buffer)
{
    const char *type = ci_emit_type(buffer->dtype),
               *part = ci_emit_type(ci_dtype_real(buffer->dtype));
    int slot = ci_emit_scalar_slot(c->base->kernels->loops, buffer);
    if (ci_dtype_class(buffer->dtype) == CI_CLASS_complex)
        return ci_format(c->ctx, "%s{(%s)slot%d.re, (%s)slot%d.im}", type, part, slot, part, slot);
    return ci_format(c->ctx, "(%s)slot%d", type, slot);
}

/* -1, or its number among the loads made together. */
static int
batch_number(const CiCudaEmitter *c, const CiBuffer *buffer, const CiExpr *index)
{
    for (int k = 0; k < c->nbatch; k++)
        if (c->batch[k].buffer == buffer && c->batch[k].index == index)
            return k;
    return -1;
}

static void
emit_load(const Element *e, CiText *out, int position)
{
    CiCudaEmitter *c = e->c;
    const CiScalar *op = &e->s->code->values[position].op;
    int placement = placement_number(c->plan->kernel, op->buffer);
    const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, op->buffer, op->index);
    const char *lane = e->vector > 1 ? "v" : "0";
    if (op->buffer->kind == CI_BUFFER_scalar)
        ci_text_add(out, "%s", ci_cuda_slot_text(c, op->buffer));
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_register)
        ci_text_add(
            out, "%s()",
            ci_emit_type(op->dtype)); /* read before it is made: memory that nobody filled */
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_local)
        ci_text_add(out, "%s", local_name(c, placement));
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_scalar)
        ci_text_add(out, "%s", ci_cuda_scalar_name(c, op->buffer));
    else if (cache)
        ci_emit_widen(c->base, out, op->dtype,
                      ci_format(c->ctx, "r%d[k].v[%s]", cache_number(c->plan, cache), lane));
    else if (batch_number(c, op->buffer, op->index) >= 0)
        ci_emit_widen(
            c->base, out, op->dtype,
            ci_format(c->ctx, "b%d[k].v[%s]", batch_number(c, op->buffer, op->index), lane));
    else if (placement >= 0)
        ci_emit_widen(c->base, out, op->dtype, row_element(c, placement, op->index));
    else if (is_vector_access(e, op->buffer, op->index))
        ci_emit_widen(c->base, out, op->dtype, ci_format(c->ctx, "x%d.v[v]", position));
    else
        ci_emit_widen(c->base, out, op->dtype,
                      ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, op->buffer),
                                ci_emit_index_text(c->base, op->index)));
}

static void
emit_math(const Element *e, CiText *out, const CiScalar *op, const char *const *names)
{
    bool is_half = op->dtype == CI_DTYPE_f16;
    if (is_half)
        ci_text_add(out, "%s(", ci_emit_use(e->c->base, "round_half", CI_DTYPE_f32));
    ci_text_add(out, "%s%s(%s", ci_emit_math_name(op->op), op->dtype == CI_DTYPE_f64 ? "" : "f",
                names[0]);
    ci_text_add(out, op->nargs > 1 ? ", %s)" : ")", names[1]);
    ci_text_add(out, is_half ? ")" : "");
}

/* Signed arithmetic wraps; in CUDA C++ overflow is undefined, so it is done without a sign. */
bool
ci_cuda_emit_wrapping(CiText *out, CiOp op, CiDtype dtype, const char *const *names)
{
    if (dtype != CI_DTYPE_i32 && dtype != CI_DTYPE_i64)
        return false;
    const char *type = ci_emit_type(dtype), *bits = dtype == CI_DTYPE_i32 ? "uint32_t" : "uint64_t";
    const char *sign = op == CI_OP_add ? "+" : op == CI_OP_subtract ? "-" : "*";
    switch (op) {
    case CI_OP_add:
    case CI_OP_subtract:
    case CI_OP_multiply:
    case CI_OP_square:
        ci_text_add(out, "(%s)((%s)%s %s (%s)%s)", type, bits, names[0], sign, bits,
                    op == CI_OP_square ? names[0] : names[1]);
        return true;
    case CI_OP_negative:
        ci_text_add(out, "(%s)(0 - (%s)%s)", type, bits, names[0]);
        return true;
    case CI_OP_absolute:
        ci_text_add(out, "%s < 0 ? (%s)(0 - (%s)%s) : %s", names[0], type, bits, names[0],
                    names[0]);
        return true;
    default:
        return false;
    }
}

static void
emit_cast(const Element *e, CiText *out, CiDtype from, CiDtype to, const char *x)
{
    const char *part = ci_emit_type(ci_dtype_real(to));
    if (from == to || ci_dtype_class(to) != CI_CLASS_complex)
        ci_emit_cast(e->c->base, out, from, to, x);
    else if (ci_dtype_class(from) == CI_CLASS_complex)
        ci_text_add(out, "%s{(%s)%s.re, (%s)%s.im}", ci_emit_type(to), part, x, part, x);
    else
        ci_text_add(out, "%s{(%s)%s, 0}", ci_emit_type(to), part, x);
}

static void
emit_expression(const Element *e, CiText *out, int position)
{
    const CiScalar *op = &e->s->code->values[position].op;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    CiDtype operand = op->nargs ? e->s->code->values[op->args[0]].op.dtype : op->dtype;
    for (int k = 0; k < op->nargs; k++)
        names[k] = value_name(e, op->args[k]);
    if (op->op == CI_OP_load)
        emit_load(e, out, position);
    else if (ci_op_kind(op->op) == CI_OPKIND_math)
        emit_math(e, out, op, names);
    else if (op->op == CI_OP_cast)
        emit_cast(e, out, operand, op->dtype, names[0]);
    else if (!ci_cuda_emit_wrapping(out, op->op, operand, names))
        ci_emit_scalar(e->c->base, out, op, operand, names);
}

/* A scan's value is its accumulator after this step. */
static void
emit_scan(const Element *e, int position)
{
    const CiValue *value = &e->s->code->values[position];
    CiText text = ci_text_new(e->c->ctx);
    const char *accumulator = ci_format(e->c->ctx, "scan%d", value->nest);
    const char *names[2] = {accumulator, value_name(e, value->op.args[0])};
    if (!ci_cuda_emit_wrapping(&text, ci_op_combine(value->op.op), value->op.dtype, names))
        ci_emit_combine(e->c->base, &text, value->op.op, value->op.dtype, names[0], names[1]);
    ci_text_line(e->c->out, "const %s v%d = %s = %s;", ci_emit_type(value->op.dtype), position,
                 accumulator, text.data);
}

static void
emit_value(const Element *e, int position)
{
    const CiValue *value = &e->s->code->values[position];
    if (value->op.op == CI_OP_pack) /* its store says it all */
        return;
    if (value->nest >= 0 && ci_op_kind(value->op.op) == CI_OPKIND_scan) {
        emit_scan(e, position);
        return;
    }
    CiText text = ci_text_new(e->c->ctx);
    emit_expression(e, &text, position);
    if (value->op.op == CI_OP_bind) /* whoever reads it writes the symbol */
        ci_text_line(e->c->out, "const int64_t %s = %s;", value->op.index->name, text.data);
    else
        ci_text_line(e->c->out, "const %s v%d = %s;", ci_emit_type(value->op.dtype), position,
                     text.data);
}

/* ---- stores ---- */

/* What must hold for this thread to store into memory: it has a point, and it is the one of its
 * group that stores. */
static const char *
store_guard(const CiCudaEmitter *c, const CiCudaStage *s, bool is_memory)
{
    bool is_held_by_all = !c->plan->is_flat &&
                          (s->kind == CI_CUDA_once || s->kind == CI_CUDA_fold) &&
                          c->shape.group > 1;
    bool may_idle = c->has_idle && is_memory;
    return is_held_by_all ? (may_idle ? "if (is_active && g == 0) " : "if (g == 0) ")
           : may_idle     ? "if (is_active) "
                          : "";
}

static void
store_with(CiCudaEmitter *c, const char *guard, const CiBuffer *buffer, const char *place,
           const char *value)
{
    CiText text = ci_text_new(c->ctx);
    ci_emit_narrow(c->base, &text, buffer->dtype, value);
    ci_text_line(c->out, "%s%s = %s;", guard, place, text.data);
}

void
ci_cuda_emit_store(CiCudaEmitter *c, const CiCudaStage *s, const CiBuffer *buffer,
                   const CiExpr *index, const char *value)
{
    int placement = placement_number(c->plan->kernel, buffer);
    if (placement < 0) {
        const char *place = ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, buffer),
                                      ci_emit_index_text(c->base, index));
        store_with(c, store_guard(c, s, true), buffer, place, value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_row) {
        store_with(c, store_guard(c, s, false), buffer, row_element(c, placement, index), value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_local) {
        ci_text_line(c->out, "%s = %s;", local_name(c, placement), value);
    } else if (c->plan->kernel->placements[placement].place == CI_PLACE_scalar) {
        ci_text_line(c->out, "%s = %s;", ci_cuda_scalar_name(c, buffer), value);
    }
}

/* What has been packed so far. */
void
ci_cuda_emit_pack_starts(CiCudaEmitter *c, const CiCudaStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiScalar *op = &s->code->values[s->code->results[n]].op;
        if (op->op == CI_OP_pack)
            ci_text_line(c->out, "int64_t %s = 0;", op->index->name);
    }
}

/* Values that come one after another: those whose condition holds, or combined with what is there.
 */
static void
store_in_order(const Element *e, const CiNest *nest, int result)
{
    CiCudaEmitter *c = e->c;
    const CiScalar *op = &e->s->code->values[result].op;
    const char *names[2] = {ci_format(c->ctx, "old%d", result), value_name(e, result)};
    if (op->op == CI_OP_pack) {
        ci_text_open(c->out, "if (%s) {", value_name(e, op->args[1]));
        ci_cuda_emit_store(c, e->s, nest->target, nest->store, value_name(e, op->args[0]));
        ci_text_line(c->out, "%s++;", op->index->name);
        ci_text_close(c->out);
        return;
    }
    CiText old = ci_text_new(c->ctx), text = ci_text_new(c->ctx);
    const CiPlacement *placement = ci_kernel_find_placement(c->plan->kernel, nest->target);
    if (placement && placement->place == CI_PLACE_scalar)
        ci_text_add(&old, "%s", ci_cuda_scalar_name(c, nest->target));
    else
        ci_emit_widen(c->base, &old, nest->target->dtype,
                      ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, nest->target),
                                ci_emit_index_text(c->base, nest->store)));
    ci_text_line(c->out, "const %s %s = %s;", ci_emit_type(nest->target->dtype), names[0],
                 old.data);
    if (!ci_cuda_emit_wrapping(&text, nest->combine, nest->target->dtype, names))
        ci_emit_pointwise(c->base, &text, nest->combine, nest->target->dtype, names);
    ci_text_line(c->out, "const %s new%d = %s;", ci_emit_type(nest->target->dtype), result,
                 text.data);
    ci_cuda_emit_store(c, e->s, nest->target, nest->store, ci_format(c->ctx, "new%d", result));
}

/* Elements inside the loops of a stage that shares them out belong to one thread. */
static void
store_element(const Element *e, int number)
{
    CiCudaEmitter *c = e->c;
    const CiNest *nest = e->s->stage->nests[number];
    const char *value = value_name(e, e->s->code->results[number]);
    const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, nest->target, nest->store);
    int placement = placement_number(c->plan->kernel, nest->target);
    CiCudaStage owner = *e->s;
    owner.kind = owner.kind == CI_CUDA_fold ? CI_CUDA_each : owner.kind;
    if (nest->is_combined || e->s->code->values[e->s->code->results[number]].op.op == CI_OP_pack)
        store_in_order(e, nest, e->s->code->results[number]);
    else if (cache && placement >= 0)
        store_with(c, "", nest->target,
                   ci_format(c->ctx, "r%d[k].v[%s]", cache_number(c->plan, cache),
                             e->vector > 1 ? "v" : "0"),
                   value);
    else if (is_vector_access(e, nest->target, nest->store))
        store_with(c, "", nest->target, ci_format(c->ctx, "y%d.v[v]", number), value);
    else
        ci_cuda_emit_store(c, &owner, nest->target, nest->store, value);
}

static void
emit_result(const Element *e, int number)
{
    const CiNest *nest = e->s->stage->nests[number];
    int result = e->s->code->results[number];
    if (!e->s->code->values[result].is_needed)
        return;
    for (int f = 0; f < e->s->nfolds; f++)
        if (e->s->folds[f].nest == nest)
            ci_cuda_emit_fold_step(e->c, e->s, &e->s->folds[f], value_name(e, result),
                                   e->vector > 1 ? "v" : "0");
    if (!ci_nest_is_fold(nest))
        store_element(e, number);
}

/* Values in order, each nest's result as soon as all before it is there: a later load of the
 * element then sees it. */
static void
emit_element(const Element *e)
{
    const CiStageCode *code = e->s->code;
    int next = 0, boundary = -1;
    for (int k = 0; k < code->nvalues; k++) {
        if (code->values[k].is_needed)
            emit_value(e, k);
        while (next < e->s->stage->nnests) {
            boundary = code->results[next] > boundary ? code->results[next] : boundary;
            if (boundary > k)
                break;
            emit_result(e, next++);
        }
    }
}

/* ---- vectors of elements ---- */

static bool
is_first_use(const Element *e, const CiCudaCache *cache)
{
    return !cache->is_row && &e->c->plan->stages[cache->first] == e->s;
}

/* Elements that are not contiguous are gathered one by one. */
static void
fill_cache(const Element *e, const CiCudaCache *cache, const char *into)
{
    CiCudaEmitter *c = e->c;
    const char *from = ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, cache->buffer),
                                 ci_emit_index_text(c->base, cache->index));
    if (is_vector_access(e, cache->buffer, cache->index)) {
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
at_base(const Element *e, void (*lines)(const Element *e))
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
is_loaded_as_vector(const Element *e, int position)
{
    const CiValue *value = &e->s->code->values[position];
    return value->op.op == CI_OP_load && value->is_needed &&
           is_vector_access(e, value->op.buffer, value->op.index) &&
           !ci_cuda_find_cache(e->c->plan, e->s, value->op.buffer, value->op.index) &&
           batch_number(e->c, value->op.buffer, value->op.index) < 0;
}

static void
emit_vector_loads(const Element *e)
{
    CiCudaEmitter *c = e->c;
    for (int k = 0; k < e->s->code->nvalues; k++) {
        const CiScalar *op = &e->s->code->values[k].op;
        if (op->op != CI_OP_load || !e->s->code->values[k].is_needed)
            continue;
        const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, op->buffer, op->index);
        if (cache && is_first_use(e, cache))
            fill_cache(e, cache, ci_format(c->ctx, "r%d", cache_number(c->plan, cache)));
        if (is_loaded_as_vector(e, k))
            ci_text_line(c->out, "x%d = *(const %s *)&%s[%s];", k,
                         ci_cuda_vector_type(c, op->dtype, e->vector),
                         ci_emit_buffer(c->base, op->buffer),
                         ci_emit_index_text(c->base, op->index));
    }
}

static bool
is_vector_store(const Element *e, int number)
{
    const CiNest *nest = e->s->stage->nests[number];
    return !ci_nest_is_fold(nest) && is_vector_access(e, nest->target, nest->store) &&
           e->s->code->values[e->s->code->results[number]].is_needed;
}

static void
emit_vector_stores(const Element *e)
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
declare_vectors(const Element *e)
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
declare_flat_placements(const Element *e)
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
    Element e = {c, s, ci_cuda_vector_axis(c->plan, s), vector};
    if (vector == 1 &&
        s->vector > 1) { /* the tail of a vectorised stage: nothing is cached there */
        declare_flat_placements(&e);
        emit_element(&e);
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
    emit_element(&e);
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
           placement_number(c->plan->kernel, op->buffer) < 0 &&
           !ci_stage_stores(s->stage, op->buffer) && depends_on_shared_axes(s, op->index) &&
           batch_number(c, op->buffer, op->index) < 0;
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
fill_batch(const Element *e)
{
    for (int k = 0; k < e->c->nbatch; k++)
        fill_cache(e, &e->c->batch[k], ci_format(e->c->ctx, "b%d", k));
}

void
ci_cuda_emit_batch_loads(CiCudaEmitter *c, const CiCudaStage *s)
{
    Element e = {c, s, ci_cuda_vector_axis(c->plan, s), s->vector};
    at_base(&e, fill_batch);
}
