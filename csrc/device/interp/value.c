/* The effect of statements on values and memory, in the live lanes. */
#include "device/interp/run.h"

#include <string.h>

static int64_t
live_lanes(const CiInterpRun *r, const CiInterpStmt *stmt)
{
    if (!stmt->has_live)
        return stmt->lanes;
    int64_t live = ci_formula_evaluate(&stmt->live, r->env);
    return live < 0 ? 0 : live < stmt->lanes ? live : stmt->lanes;
}

/* ---- memory ---- */

static bool
is_line(const CiInterpAccess *at)
{
    return !at->index.nvarying;
}

static int64_t
first_element(const CiInterpRun *r, const CiInterpAccess *at)
{
    return ci_formula_evaluate(&at->index.formula, r->env) * at->element;
}

static void
load(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    const CiInterpAccess *at = &stmt->at;
    char *out = ci_interp_value(r, stmt->value);
    const void *memory = r->memory[at->memory];
    int size = ci_interp_size(stmt->dtype);
    int64_t stride = ci_formula_evaluate(&at->stride, r->env);
    if (r->checks)
        ci_interp_check(r, stmt, count);
    if (r->failure)
        return;
    if (is_line(at)) {
        ci_interp_gather(stmt->dtype, out, memory, first_element(r, at), stride, count);
    } else {
        int64_t numbers[CI_INTERP_LANES];
        ci_interp_numbers(r, &at->index, stride, numbers, count);
        for (int64_t k = 0; k < count; k++)
            ci_interp_gather(stmt->dtype, out + size * k, memory, numbers[k], 1, 1);
    }
    ci_interp_move(size, out + size * count, 1, stmt->constant, 0, stmt->lanes - count);
}

static void
apply(const CiInterpStmt *stmt, void *out, const void *a, const void *b, const void *c,
      int64_t count)
{
    stmt->compute(out, a, b, c, count);
    if (stmt->round)
        stmt->round(out, count);
}

/* Combines the values in sequence, because two of them may have the same element. */
static void
combine(CiInterpRun *r, const CiInterpStmt *stmt, const char *values, const int64_t *numbers,
        int64_t count)
{
    void *memory = r->memory[stmt->at.memory];
    int size = ci_interp_size(stmt->dtype);
    _Alignas(16) char old[16], made[16];
    for (int64_t k = 0; k < count; k++) {
        ci_interp_gather(stmt->dtype, old, memory, numbers[k], 1, 1);
        apply(stmt, made, old, values + size * k, NULL, 1);
        ci_interp_scatter(stmt->dtype, made, memory, numbers[k], 1, 1);
    }
}

static void
store(CiInterpRun *r, const CiInterpStmt *stmt)
{
    const CiInterpAccess *at = &stmt->at;
    int64_t count = live_lanes(r, stmt), stride = ci_formula_evaluate(&at->stride, r->env),
            numbers[CI_INTERP_LANES];
    const char *values = ci_interp_value(r, stmt->args[0]);
    int size = ci_interp_size(stmt->dtype);
    if (r->checks)
        ci_interp_check(r, stmt, count);
    if (r->failure)
        return;
    if (is_line(at) && !stmt->compute) {
        ci_interp_scatter(stmt->dtype, values, r->memory[at->memory], first_element(r, at), stride,
                          count);
        return;
    }
    ci_interp_numbers(r, &at->index, stride, numbers, count);
    if (stmt->compute) {
        combine(r, stmt, values, numbers, count);
        return;
    }
    for (int64_t k = 0; k < count; k++)
        ci_interp_scatter(stmt->dtype, values + size * k, r->memory[at->memory], numbers[k], 1, 1);
}

static void
pack(CiInterpRun *r, const CiInterpStmt *stmt)
{
    const char *values = ci_interp_value(r, stmt->args[0]);
    const uint8_t *mask = ci_interp_value(r, stmt->args[1]);
    int64_t *cell = r->memory[stmt->cell], first = first_element(r, &stmt->at),
            stride = ci_formula_evaluate(&stmt->at.stride, r->env), count = live_lanes(r, stmt),
            limit = ci_formula_evaluate(&stmt->limit, r->env);
    int size = ci_interp_size(stmt->dtype);
    for (int64_t k = 0; k < count; k++)
        if (mask[k] && (!stmt->has_limit || *cell < limit))
            ci_interp_scatter(stmt->dtype, values + size * k, r->memory[stmt->at.memory],
                              first + stride * (*cell)++, 1, 1);
}

void
ci_interp_access(CiInterpRun *r, const CiInterpStmt *stmt)
{
    if (stmt->kind == CI_STMT_call)
        pack(r, stmt);
    else
        store(r, stmt);
}

/* ---- values ---- */

/* Indices have been checked; but another thread may write to what they were read from, so that
 * those out of range are 0 here. */
static void
bind(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    const int64_t *from = ci_interp_value(r, stmt->args[0]);
    int64_t *out = ci_interp_value(r, stmt->value),
            limit = ci_formula_evaluate(&stmt->limit, r->env);
    for (int64_t k = 0; k < count; k++) {
        bool is_below = from[k] >= stmt->low && (!stmt->has_limit || from[k] < limit);
        out[k] = is_below ? from[k] : 0;
        if (r->checks && !is_below)
            r->failure = CI_ERR_INTERNAL;
    }
    r->env[stmt->slot] = out[0];
}

/* Lanes of one vector, or of two in turn. */
static void
shuffle(CiInterpRun *r, const CiInterpStmt *stmt)
{
    char *out = ci_interp_value(r, stmt->value);
    const char *a = ci_interp_value(r, stmt->args[0]);
    int size = ci_interp_size(stmt->dtype);
    int64_t lanes = stmt->lanes, half = size * (lanes / 2);
    switch (stmt->op) {
    case CI_OP_low:
    case CI_OP_high:
        ci_interp_move(size, out, 1, a + (stmt->op == CI_OP_high ? size * lanes : 0), 1, lanes);
        break;
    case CI_OP_even:
    case CI_OP_odd:
        ci_interp_move(size, out, 1, a + (stmt->op == CI_OP_odd ? size : 0), 2, lanes);
        break;
    case CI_OP_evens:
    case CI_OP_odds:
        for (int k = 0; k < 2; k++) {
            a = ci_interp_value(r, stmt->args[k]);
            ci_interp_move(size, out + k * half, 1, a + (stmt->op == CI_OP_odds ? size : 0), 2,
                           lanes / 2);
        }
        break;
    default:
        half = stmt->op == CI_OP_ziphi ? half : 0;
        ci_interp_move(size, out, 2, a + half, 1, lanes / 2);
        a = ci_interp_value(r, stmt->args[1]);
        ci_interp_move(size, out + size, 2, a + half, 1, lanes / 2);
    }
}

static int64_t
first_true(const uint8_t *mask, int64_t lanes)
{
    int64_t lane = 0;
    while (lane < lanes && !mask[lane])
        lane++;
    return lane;
}

/* The cell holds what ran before; lanes come in order, and the one at position 0 begins. */
static void
run_on(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    const char *from = ci_interp_value(r, stmt->args[0]);
    char *out = ci_interp_value(r, stmt->value);
    int size = ci_interp_size(stmt->dtype);
    _Alignas(16) char running[16];
    int64_t position = ci_formula_evaluate(&stmt->expr.formula, r->env);
    ci_interp_gather(stmt->dtype, running, r->memory[stmt->cell], 0, 1, 1);
    for (int64_t k = 0; k < count; k++) {
        if (position + k == 0)
            memcpy(running, from, (size_t)size);
        else
            apply(stmt, running, running, from + size * k, NULL, 1);
        memcpy(out + size * k, running, (size_t)size);
    }
    ci_interp_scatter(stmt->dtype, running, r->memory[stmt->cell], 0, 1, 1);
}

/* Narrow floats go through memory of their own, in which they are narrow. */
static void
apply_ufunc(CiInterpRun *r, const CiInterpStmt *stmt, void *out, void *const *args, int64_t count)
{
    _Alignas(64) uint16_t narrow[3][CI_INTERP_LANES];
    CiDtype operand = ci_op_ufunc_operand(stmt->ufunc);
    bool is_narrow = ci_dtype_is_narrow(operand);
    int64_t size = ci_dtype_size(operand), steps[2];
    const void *from[2] = {NULL, NULL};
    for (int a = 0; a < stmt->nargs; a++) {
        if (is_narrow)
            ci_interp_scatter(stmt->dtype, args[a], narrow[a], 0, 1, count);
        from[a] = is_narrow ? narrow[a] : args[a];
        steps[a] = stmt->is_one[a] ? 0 : size;
    }
    ci_ufunc_apply(r->runtime->ufuncs, stmt->ufunc, count, is_narrow ? narrow[2] : out, from[0],
                   steps[0], from[1], stmt->nargs > 1 ? steps[1] : 0);
    if (is_narrow)
        ci_interp_gather(stmt->dtype, out, narrow[2], 0, 1, count);
}

void
ci_interp_apply(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t size = ci_dtype_size(stmt->dtype), count = ci_formula_evaluate(&stmt->limit, r->env),
            result_size = ci_dtype_size(r->kernel->memories[stmt->at.memory].dtype), steps[2] = {0};
    const char *from[2] = {NULL, NULL};
    for (int k = 0; k < stmt->nargs; k++) {
        const CiInterpAccess *in = &stmt->in[k];
        from[k] = (const char *)r->memory[in->memory] + size * first_element(r, in);
        steps[k] = size * ci_formula_evaluate(&in->stride, r->env);
        if (r->checks)
            ci_interp_check_line(r, in, count, false);
    }
    if (r->checks)
        ci_interp_check_line(r, &stmt->at, count, true);
    if (!r->failure)
        ci_ufunc_apply(r->runtime->ufuncs, stmt->ufunc, count,
                       (char *)r->memory[stmt->at.memory] +
                           result_size * first_element(r, &stmt->at),
                       from[0], steps[0], from[1], steps[1]);
}

static void
compute(CiInterpRun *r, const CiInterpStmt *stmt, int64_t count)
{
    void *out = ci_interp_value(r, stmt->value), *args[CI_MAX_OPERANDS] = {NULL};
    for (int a = 0; a < stmt->nargs; a++)
        args[a] = ci_interp_value(r, stmt->args[a]);
    if (stmt->is_ufunc) {
        apply_ufunc(r, stmt, out, args, count);
        return;
    }
    if (!stmt->is_math) {
        apply(stmt, out, args[0], args[1], args[2], count);
        return;
    }
    ci_interp_math_run(&stmt->routine, out, args[0], args[1], count);
    if (stmt->round)
        stmt->round(out, count);
}

/* Numbers of an index, in each lane one `step` more; narrow ones in place of wide ones. */
static void
count_up(CiInterpRun *r, const CiInterpStmt *stmt, int step, void *out, int64_t count)
{
    char *bytes = out;
    ci_interp_numbers(r, &stmt->expr, step, out, count);
    for (int64_t k = 0; k < count && stmt->dtype == CI_DTYPE_i32; k++) {
        int64_t wide;
        memcpy(&wide, bytes + k * (int64_t)sizeof wide, sizeof wide);
        int32_t narrow = (int32_t)wide;
        memcpy(bytes + k * (int64_t)sizeof narrow, &narrow, sizeof narrow);
    }
}

/* Fills the lanes that are not live with the first one's value, as the generated C does. Operations
 * on all lanes then raise no floating-point flag for stale contents of this memory. */
static void
fill_rest(int lanes, int size, char *out, int64_t count)
{
    if (count == 0)
        memset(out, 0, (size_t)size * (size_t)lanes);
    for (int64_t k = count; k < lanes && count > 0; k++)
        memcpy(out + size * k, out, (size_t)size);
}

/* Units run one after another, so the turn has come. Where what is promised is looked at, every
 * other unit goes the way of one that came early. */
static void
read_ticket(const CiInterpRun *r, const CiInterpStmt *stmt, void *out)
{
    int64_t unit = ci_formula_evaluate(&stmt->expr.formula, r->env);
    bool is_here = !r->checks || unit % 2 == 0;
    if (r->checks)
        r->checks->is_sequential = is_here;
    *(uint8_t *)out = is_here;
}

void
ci_interp_let(CiInterpRun *r, const CiInterpStmt *stmt)
{
    int64_t count = live_lanes(r, stmt);
    int size = ci_interp_size(stmt->dtype);
    void *out = ci_interp_value(r, stmt->value);
    switch (stmt->op) {
    case CI_OP_load:
        load(r, stmt, count);
        break;
    case CI_OP_const:
        ci_interp_move(size, out, 1, stmt->constant, 0, count);
        break;
    case CI_OP_splat:
        ci_interp_move(size, out, 1, ci_interp_value(r, stmt->args[0]), 0, count);
        break;
    case CI_OP_index:
        count_up(r, stmt, 0, out, count);
        break;
    case CI_OP_iota:
        count_up(r, stmt, 1, out, count);
        break;
    case CI_OP_bind:
        bind(r, stmt, count);
        break;
    case CI_OP_turn:
        read_ticket(r, stmt, out);
        break;
    case CI_OP_low:
    case CI_OP_high:
    case CI_OP_even:
    case CI_OP_odd:
    case CI_OP_evens:
    case CI_OP_odds:
    case CI_OP_ziplo:
    case CI_OP_ziphi:
        shuffle(r, stmt);
        break;
    case CI_OP_first_true:
        *(int64_t *)out = first_true(ci_interp_value(r, stmt->args[0]), stmt->lanes);
        break;
    case CI_OP_cumsum:
    case CI_OP_cumprod:
    case CI_OP_cummax:
    case CI_OP_cummin:
        run_on(r, stmt, count);
        break;
    default:
        if (count > 0)
            compute(r, stmt, count);
        if (count < stmt->lanes)
            fill_rest(stmt->lanes, size, out, count);
    }
}
