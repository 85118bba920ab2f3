/* One element of a stage, which may be one of a vector: loads, the straight-line code, stores. */
#include "device/cuda/emit_cuda.h"

static const char *
value_name(const CiCudaElement *e, int position)
{
    return ci_format(e->c->ctx, "v%d", position);
}

bool
ci_cuda_is_vector_access(const CiCudaElement *e, const CiBuffer *buffer, const CiExpr *index)
{
    return e->vector > 1 && buffer->kind != CI_BUFFER_scalar &&
           ci_cuda_placement_number(e->c->plan->kernel, buffer) < 0 &&
           ci_cuda_is_vector(e->c->sym, index, e->var, e->vector);
}

int
ci_cuda_cache_number(const CiCudaPlan *plan, const CiCudaCache *cache)
{
    return (int)(cache - plan->caches);
}

int
ci_cuda_batch_number(const CiCudaEmitter *c, const CiBuffer *buffer, const CiExpr *index)
{
    for (int k = 0; k < c->nbatch; k++)
        if (c->batch[k].buffer == buffer && c->batch[k].index == index)
            return k;
    return -1;
}

static void
emit_load(const CiCudaElement *e, CiText *out, int position)
{
    CiCudaEmitter *c = e->c;
    const CiScalar *op = &e->s->code->values[position].op;
    int placement = ci_cuda_placement_number(c->plan->kernel, op->buffer);
    const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, op->buffer, op->index);
    const char *lane = e->vector > 1 ? "v" : "0";
    if (op->buffer->kind == CI_BUFFER_scalar)
        ci_text_add(out, "%s", ci_cuda_slot_text(c, op->buffer));
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_register)
        ci_text_add(
            out, "%s()",
            ci_emit_type(op->dtype)); /* read before it is made: memory that nobody filled */
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_local)
        ci_text_add(out, "%s", ci_cuda_local_name(c, placement));
    else if (placement >= 0 && c->plan->kernel->placements[placement].place == CI_PLACE_scalar)
        ci_text_add(out, "%s", ci_cuda_scalar_name(c, op->buffer));
    else if (cache)
        ci_emit_widen(
            c->base, out, op->dtype,
            ci_format(c->ctx, "r%d[k].v[%s]", ci_cuda_cache_number(c->plan, cache), lane));
    else if (ci_cuda_batch_number(c, op->buffer, op->index) >= 0)
        ci_emit_widen(c->base, out, op->dtype,
                      ci_format(c->ctx, "b%d[k].v[%s]",
                                ci_cuda_batch_number(c, op->buffer, op->index), lane));
    else if (placement >= 0)
        ci_emit_widen(c->base, out, op->dtype, ci_cuda_row_element(c, placement, op->index));
    else if (ci_cuda_is_vector_access(e, op->buffer, op->index))
        ci_emit_widen(c->base, out, op->dtype, ci_format(c->ctx, "x%d.v[v]", position));
    else
        ci_emit_widen(c->base, out, op->dtype,
                      ci_format(c->ctx, "%s[%s]", ci_emit_buffer(c->base, op->buffer),
                                ci_emit_index_text(c->base, op->index)));
}

static void
emit_expression(const CiCudaElement *e, CiText *out, int position)
{
    const CiScalar *op = &e->s->code->values[position].op;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    CiDtype operand = op->nargs ? e->s->code->values[op->args[0]].op.dtype : op->dtype;
    for (int k = 0; k < op->nargs; k++)
        names[k] = value_name(e, op->args[k]);
    if (op->op == CI_OP_load)
        emit_load(e, out, position);
    else if (ci_op_kind(op->op) == CI_OPKIND_math)
        ci_cuda_emit_math(e->c->base, out, op, names);
    else
        ci_emit_scalar(e->c->base, out, op, operand, names);
}

/* A scan's value is its accumulator after this step. */
static void
emit_scan(const CiCudaElement *e, int position)
{
    const CiValue *value = &e->s->code->values[position];
    CiText text = ci_text_new(e->c->ctx);
    const char *accumulator = ci_format(e->c->ctx, "scan%d", value->nest);
    const char *names[2] = {accumulator, value_name(e, value->op.args[0])};
    ci_emit_combine(e->c->base, &text, value->op.op, value->op.dtype, names[0], names[1]);
    ci_text_line(e->c->out, "const %s v%d = %s = %s;", ci_emit_type(value->op.dtype), position,
                 accumulator, text.data);
}

static void
emit_value(const CiCudaElement *e, int position)
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
store_in_order(const CiCudaElement *e, const CiNest *nest, int result)
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
    ci_emit_pointwise(c->base, &text, nest->combine, nest->target->dtype, names);
    ci_text_line(c->out, "const %s new%d = %s;", ci_emit_type(nest->target->dtype), result,
                 text.data);
    ci_cuda_emit_store(c, e->s, nest->target, nest->store, ci_format(c->ctx, "new%d", result));
}

/* Elements inside the loops of a stage that shares them out belong to one thread. */
static void
store_element(const CiCudaElement *e, int number)
{
    CiCudaEmitter *c = e->c;
    const CiNest *nest = e->s->stage->nests[number];
    const char *value = value_name(e, e->s->code->results[number]);
    const CiCudaCache *cache = ci_cuda_find_cache(c->plan, e->s, nest->target, nest->store);
    int placement = ci_cuda_placement_number(c->plan->kernel, nest->target);
    CiCudaStage owner = *e->s;
    owner.kind = owner.kind == CI_CUDA_fold ? CI_CUDA_each : owner.kind;
    if (nest->is_combined || e->s->code->values[e->s->code->results[number]].op.op == CI_OP_pack)
        store_in_order(e, nest, e->s->code->results[number]);
    else if (cache && placement >= 0)
        ci_cuda_store_with(c, "", nest->target,
                           ci_format(c->ctx, "r%d[k].v[%s]", ci_cuda_cache_number(c->plan, cache),
                                     e->vector > 1 ? "v" : "0"),
                           value);
    else if (ci_cuda_is_vector_access(e, nest->target, nest->store))
        ci_cuda_store_with(c, "", nest->target, ci_format(c->ctx, "y%d.v[v]", number), value);
    else
        ci_cuda_emit_store(c, &owner, nest->target, nest->store, value);
}

static void
emit_result(const CiCudaElement *e, int number)
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
void
ci_cuda_emit_element(const CiCudaElement *e)
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
