/* Calls of NumPy's loops. */
#include "device/ufunc.h"

#include "base/float_flags.h"

void
ci_ufunc_call(CiUfuncLoop loop, char **operands, const intptr_t *count, const intptr_t *steps)
{
    unsigned flags = loop.keeps_flags ? 0 : ci_float_flags_read();
    loop.loop(operands, count, steps, loop.data);
    if (!loop.keeps_flags) {
        ci_float_flags_gather();
        ci_float_flags_raise(flags);
    }
}

void
ci_ufunc_apply(const CiUfuncLoop *loops, int32_t number, int64_t count, void *out, const void *a,
               int64_t a_step, const void *b, int64_t b_step)
{
    intptr_t iterations = (intptr_t)count, step = (intptr_t)ci_dtype_size(ci_op_ufunc_result(number));
    char *unary[] = {(char *)(uintptr_t)a, out},
         *binary[] = {(char *)(uintptr_t)a, (char *)(uintptr_t)b, out};
    const intptr_t unary_steps[] = {(intptr_t)a_step, step},
                   binary_steps[] = {(intptr_t)a_step, (intptr_t)b_step, step};
    if (count > 0)
        ci_ufunc_call(loops[number], b ? binary : unary, &iterations, b ? binary_steps : unary_steps);
}
