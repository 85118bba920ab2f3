/* Tests of a bit among the bits 8 to 15 of a number, as (crc & 0x8000) != 0 is one.
 *
 * gcc makes them tests of the second byte of a register (testb $-128, %ah), which Intel's
 * processors read late; a trip that waits for the one before, as a CRC's does, takes a quarter
 * longer. With a mask that it does not know it tests the register. */
#include "device/cpu/emit_cpu.h"

/* Whether a value of this stage is of some kind. */
typedef bool (*IsKind)(const CiCpuStage *s, int value);

static bool
is_only_used_by(const CiCpuStage *s, int value, IsKind is_kind)
{
    bool is_used = false;
    for (int n = 0; n < s->stage->nnests; n++)
        if (s->code->results[n] == value)
            return false;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        for (int a = 0; a < op->nargs; a++) {
            if (op->args[a] != value)
                continue;
            if (!is_kind(s, k))
                return false;
            is_used = true;
        }
    }
    return is_used;
}

static bool
is_zero(const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    return op->op == CI_OP_const && op->value.i == 0;
}

static bool
is_test(const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    return (op->op == CI_OP_equal || op->op == CI_OP_not_equal) &&
           (is_zero(s, op->args[0]) || is_zero(s, op->args[1]));
}

static bool
is_tested_part(const CiCpuStage *s, int value)
{
    return s->code->values[value].op.op == CI_OP_bitwise_and && is_only_used_by(s, value, is_test);
}

void
ci_cpu_plan_masks(CiCpuStage *s)
{
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (op->op == CI_OP_const && ci_dtype_is_integral(op->dtype) && op->value.i > 0 &&
            (op->value.i & 0xff00) == op->value.i)
            s->is_hidden[k] = is_only_used_by(s, k, is_tested_part);
    }
}
