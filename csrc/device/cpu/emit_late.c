/* Values that wait for the trip before.
 *
 * In min(min(a, b), c) of integers, where only a comes from a variable that the stage stores, trips
 * follow each other as fast as a becomes the result: two steps, or one as min(a, min(b, c)). The C
 * compiler orders such a chain by rules of its own, which take a variable for early; so what does
 * not wait is settled, that is, made before the compiler's eyes without its seeing how.
 *
 * needs: a stage without lanes, planned. keeps: values; arguments stand before their users. */
#include "device/cpu/emit_cpu.h"

#include <string.h>

static bool
is_variable(const CiCpuEmitter *c, const CiCpuStage *s, const CiBuffer *buffer)
{
    const CiPlacement *placement = ci_kernel_find_placement(c->kernel, buffer);
    return placement && placement->place == CI_PLACE_scalar && ci_stage_stores(s->stage, buffer);
}

static bool *
find_late(const CiCpuEmitter *c, const CiCpuStage *s)
{
    bool *is_late = CI_NEW_ARRAY(c->ctx, bool, s->code->nvalues + 1);
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        is_late[k] = op->op == CI_OP_load && is_variable(c, s, op->buffer);
        for (int a = 0; a < op->nargs; a++)
            is_late[k] |= is_late[op->args[a]];
    }
    return is_late;
}

static int
count_users(const CiCpuStage *s, int value)
{
    int count = 0;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        for (int a = 0; a < op->nargs; a++)
            count += op->args[a] == value;
    }
    for (int n = 0; n < s->stage->nnests; n++)
        count += s->code->results[n] == value;
    return count;
}

static bool
is_choice(const CiScalar *op)
{
    return (op->op == CI_OP_minimum || op->op == CI_OP_maximum) &&
           ci_dtype_is_integral(op->dtype) && ci_dtype_size(op->dtype) >= 4;
}

/* A value takes a later place; those between move up by one. */
static void
move_value(const CiCpuStage *s, int from, int to)
{
    CiStageCode *code = s->code;
    CiValue moved = code->values[from];
    memmove(&code->values[from], &code->values[from + 1], (size_t)(to - from) * sizeof moved);
    code->values[to] = moved;
    for (int k = from; k < code->nvalues; k++)
        for (int a = 0; a < code->values[k].op.nargs; a++) {
            int *arg = &code->values[k].op.args[a];
            *arg = *arg == from ? to : *arg - (*arg > from && *arg <= to);
        }
    for (int n = 0; n < s->stage->nnests; n++) {
        int *result = &code->results[n];
        *result = *result == from ? to : *result - (*result > from && *result <= to);
    }
}

/* op(op(late, early), other) becomes op(late, op(early, other)). */
static void
turn_chain(CiCpuStage *s, const bool *is_late, int value)
{
    CiScalar *outer = &s->code->values[value].op;
    for (int side = 0; side < 2; side++) {
        int inside = outer->args[side];
        const CiScalar *chain = &s->code->values[inside].op;
        int late = is_late[chain->args[0]] ? 0 : 1;
        if (chain->op != outer->op || is_late[outer->args[!side]] || count_users(s, inside) != 1 ||
            !is_late[chain->args[late]] || is_late[chain->args[!late]])
            continue;
        move_value(s, inside, value - 1);
        CiScalar *inner = &s->code->values[value - 1].op;
        int other = outer->args[!side];
        outer->args[side] = inner->args[late];
        outer->args[!side] = value - 1;
        inner->args[late] = other;
        return;
    }
}

void
ci_cpu_plan_late(CiCpuEmitter *c, CiCpuStage *s)
{
    bool *is_late = find_late(c, s);
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (!is_choice(op))
            continue;
        turn_chain(s, is_late, k);
        is_late = find_late(c, s);
        for (int side = 0; side < 2; side++) {
            int waits = op->args[side], early = op->args[!side];
            const CiScalar *chain = &s->code->values[early].op;
            if (is_late[waits] && s->code->values[waits].op.op != CI_OP_load && !is_late[early] &&
                chain->op == op->op)
                s->is_settled[early] = true;
        }
    }
}
