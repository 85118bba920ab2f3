/* One block of a nest: up to 256 lanes of one axis, each operation over the whole block; and the
 * step from one block to the next. */
#include "device/interp/run.h"

#include "base/os.h"
#include "device/interp/support.h"

#include <string.h>

#define POLL_NS 5000000

int64_t
ci_formula_evaluate(const CiFormula *f, const int64_t *env)
{
    int64_t a, b;
    switch (f->kind) {
    case CI_EXPR_const:
        return f->value;
    case CI_EXPR_symbol:
        return env[f->slot];
    case CI_EXPR_linear:
        a = f->value;
        for (int k = 0; k < f->nargs; k++)
            a += f->coefs[k] * ci_formula_evaluate(&f->args[k], env);
        return a;
    case CI_EXPR_product:
        a = 1;
        for (int k = 0; k < f->nargs; k++)
            a *= ci_formula_evaluate(&f->args[k], env);
        return a;
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        a = ci_formula_evaluate(&f->args[0], env);
        b = ci_formula_evaluate(&f->args[1], env);
        if (b == 0)
            return 0;
        if (f->kind == CI_EXPR_floordiv)
            return a / b - (a % b != 0 && (a < 0) != (b < 0));
        return a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b;
    default:
        a = ci_formula_evaluate(&f->args[0], env);
        for (int k = 1; k < f->nargs; k++) {
            b = ci_formula_evaluate(&f->args[k], env);
            a = (f->kind == CI_EXPR_min) == (b < a) ? b : a;
        }
        return a;
    }
}

/* ---- values ---- */

static int
lane_slot(const CiInterpNest *nest)
{
    return nest->first_slot + nest->lane_axis;
}

static void *
block_of(const CiInterpRun *r, int position)
{
    return r->blocks + (size_t)position * CI_INTERP_BLOCK_BYTES;
}

/* Element numbers of lanes [start, start + count). Indices have been checked; but another thread
 * may write to what they were read from, so that those out of range are 0 here. */
static void
index_block(CiInterpRun *r, const CiInterpNest *nest, const CiInterpIndex *index, int64_t start,
            int64_t *out, int64_t count)
{
    if (index->is_linear) {
        int64_t stride = ci_formula_evaluate(&index->stride, r->env),
                base = ci_formula_evaluate(&index->base, r->env) + start * stride;
        for (int64_t k = 0; k < count; k++)
            out[k] = base + k * stride;
        return;
    }
    int64_t ignored = 0, *lane = nest->lane_axis < 0 ? &ignored : &r->env[lane_slot(nest)],
            saved = *lane, limits[CI_MAX_OPERANDS];
    for (int b = 0; b < index->nbinds; b++)
        limits[b] = ci_formula_evaluate(&index->limits[b], r->env);
    for (int64_t k = 0; k < count; k++) {
        *lane = start + k;
        for (int b = 0; b < index->nbinds; b++) {
            int64_t at = ((const int64_t *)block_of(r, index->binds[b]))[k];
            r->env[index->slots[b]] = (uint64_t)at < (uint64_t)limits[b] ? at : 0;
        }
        out[k] = ci_formula_evaluate(&index->whole, r->env);
    }
    *lane = saved;
}

static void
load_block(CiInterpRun *r, const CiInterpNest *nest, const CiInterpScalar *op, int64_t start,
           void *out, int64_t count)
{
    const void *memory = r->memory[op->memory];
    int size = ci_interp_size(op->dtype);
    if (op->index.is_linear) {
        int64_t stride = ci_formula_evaluate(&op->index.stride, r->env);
        ci_interp_gather(op->dtype, out, memory,
                         ci_formula_evaluate(&op->index.base, r->env) + start * stride, stride,
                         count);
        return;
    }
    int64_t numbers[CI_INTERP_BLOCK];
    index_block(r, nest, &op->index, start, numbers, count);
    for (int64_t k = 0; k < count; k++)
        ci_interp_gather(op->dtype, (char *)out + size * k, memory, numbers[k], 1, 1);
}

static void
fill(void *block, const void *value, int size, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        memcpy((char *)block + size * k, value, (size_t)size);
}

static void
slot_value(const CiInterpRun *r, const CiInterpScalar *op, void *value)
{
    const CiSlot *slot = &r->launch->scalars[op->memory];
    CiConst v = {slot->i, slot->f, 0};
    if (ci_dtype_class(op->dtype) == CI_CLASS_complex)
        v = (CiConst){0, slot->c[0], slot->c[1]};
    ci_const_store(op->dtype, v, value);
}

static void
run_op(CiInterpRun *r, const CiInterpNest *nest, int position, int64_t start, int64_t count)
{
    const CiInterpScalar *op = &nest->ops[position];
    void *out = r->blocks + (size_t)position * CI_INTERP_BLOCK_BYTES;
    void *args[CI_MAX_OPERANDS] = {NULL};
    for (int a = 0; a < op->nargs; a++)
        args[a] = block_of(r, op->args[a]);
    _Alignas(16) unsigned char value[16];
    switch (op->kind) {
    case CI_INTERP_load:
        load_block(r, nest, op, start, out, count);
        break;
    case CI_INTERP_slot:
        slot_value(r, op, value);
        fill(out, value, ci_interp_size(op->dtype), count);
        break;
    case CI_INTERP_index:
        index_block(r, nest, &op->index, start, out, count);
        break;
    case CI_INTERP_const:
        fill(out, op->value, ci_interp_size(op->dtype), count);
        break;
    case CI_INTERP_op:
        op->op(out, args[0], args[1], args[2], count);
        break;
    case CI_INTERP_math:
        ci_interp_math_run(&op->routine, out, args[0], args[1], count);
        for (int64_t k = 0; k < count && op->rounds; k++)
            ((float *)out)[k] = ci_round_half_f32(((float *)out)[k]);
        break;
    }
}

void *
ci_interp_block(CiInterpRun *r, const CiInterpNest *nest, int64_t start, int64_t count)
{
    for (int k = 0; k < nest->nops; k++)
        run_op(r, nest, k, start, count);
    void *result = r->blocks + (size_t)nest->result * CI_INTERP_BLOCK_BYTES;
    if (nest->needs_truth) {
        CiDtype dtype = nest->ops[nest->result].dtype;
        ci_interp_cast(dtype, CI_DTYPE_bool)(r->truth, result, NULL, NULL, count);
        result = r->truth;
    }
    return result;
}

/* One value after another, for the element of one may be that of the next. */
static void
combine_values(CiInterpRun *r, const CiInterpNest *nest, const char *values, const int64_t *numbers,
               int64_t count)
{
    void *memory = r->memory[nest->target];
    int size = ci_interp_size(nest->target_dtype);
    _Alignas(16) char old[16], made[16];
    for (int64_t k = 0; k < count; k++) {
        ci_interp_gather(nest->target_dtype, old, memory, numbers[k], 1, 1);
        nest->placed(made, old, values + size * k, NULL, 1);
        ci_interp_scatter(nest->target_dtype, made, memory, numbers[k], 1, 1);
    }
}

static void
pack_values(CiInterpRun *r, const CiInterpNest *nest, int64_t count)
{
    const uint8_t *mask = block_of(r, nest->pack_mask);
    const char *values = block_of(r, nest->pack_value);
    int size = ci_interp_size(nest->target_dtype);
    int64_t limit = ci_formula_evaluate(&nest->pack_limit, r->env);
    for (int64_t k = 0; k < count; k++) {
        if (!mask[k] || r->env[nest->pack_slot] >= limit)
            continue;
        ci_interp_scatter(nest->target_dtype, values + size * k, r->memory[nest->target],
                          ci_formula_evaluate(&nest->store.base, r->env), 1, 1);
        r->env[nest->pack_slot]++;
    }
}

void
ci_interp_pack_rest(CiInterpRun *r, const CiInterpNest *nest)
{
    static const char zero[16];
    int64_t *at = &r->env[nest->pack_slot], limit = ci_formula_evaluate(&nest->pack_limit, r->env);
    for (; *at < limit; ++*at)
        ci_interp_scatter(nest->target_dtype, zero, r->memory[nest->target],
                          ci_formula_evaluate(&nest->store.base, r->env), 1, 1);
}

void
ci_interp_store(CiInterpRun *r, const CiInterpNest *nest, const void *values, int64_t start,
                int64_t count)
{
    void *memory = r->memory[nest->target];
    if (nest->pack_slot >= 0) {
        pack_values(r, nest, count);
        return;
    }
    nest->store_cast(r->stored, values, NULL, NULL, count);
    if (nest->store.is_linear && !nest->placed) {
        int64_t stride = ci_formula_evaluate(&nest->store.stride, r->env);
        ci_interp_scatter(nest->target_dtype, r->stored, memory,
                          ci_formula_evaluate(&nest->store.base, r->env) + start * stride, stride,
                          count);
        return;
    }
    int64_t numbers[CI_INTERP_BLOCK];
    int size = ci_interp_size(nest->target_dtype);
    index_block(r, nest, &nest->store, start, numbers, count);
    if (nest->placed) {
        combine_values(r, nest, r->stored, numbers, count);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        ci_interp_scatter(nest->target_dtype, r->stored + size * k, memory, numbers[k], 1, 1);
}

/* ---- domains ---- */

int32_t
ci_interp_poll(CiInterpRun *r)
{
    CiRuntime *runtime = r->runtime;
    if (!runtime->poll || ++r->blocks_since_poll < 64)
        return CI_OK;
    r->blocks_since_poll = 0;
    int64_t now = ci_os_time_ns();
    if (now - r->last_poll < POLL_NS)
        return CI_OK;
    r->last_poll = now;
    return runtime->poll(runtime->poll_arg) ? CI_ERR_INTERRUPTED : CI_OK;
}

/* The next point of axes [from, to) in C order; false after the last. */
bool
ci_interp_next(CiInterpRun *r, const CiInterpNest *nest, int from, int to)
{
    for (int k = to - 1; k >= from; k--) {
        if (++r->env[nest->first_slot + k] < r->extents[k])
            return true;
        r->env[nest->first_slot + k] = 0;
    }
    return false;
}

bool
ci_interp_start(CiInterpRun *r, const CiInterpNest *nest, int from, int to)
{
    bool has_any = true;
    for (int k = from; k < to; k++) {
        r->env[nest->first_slot + k] = 0;
        has_any &= r->extents[k] > 0;
    }
    return has_any;
}
