/* Narrow floats in blocks, as floats with values of the narrow type. The operations are those of
 * f32, except for the neighbours of a number; the caller rounds. */
#include "device/interp/ops.h"
#include "device/interp/support.h"

/* The functions of support.def for a format are used for the narrow type too. */
#define ci_round_half_f16(x) ci_round_half_f32(x)

#define LOOP(out, type, expression)                                                                \
    for (int64_t k = 0; k < count; k++)                                                            \
    ((type *)out)[k] = expression
#define A(type) (((const type *)a)[k])
#define FROM_f64(name, form, x) ci_round_##form##_f64(x)
#define FROM_f32(name, form, x) ci_round_##form##_##name((float)(x))

#define NARROW(name, storage, size, character, exponent, mantissa, form, from, sum)                \
    static void name##_round(float *block, int64_t count)                                          \
    {                                                                                              \
        LOOP(block, float, ci_round_##form##_##name(block[k]));                                    \
    }                                                                                              \
    static void name##_gather(float *block, const storage *memory, int64_t stride, int64_t count)  \
    {                                                                                              \
        LOOP(block, float, ci_widen_##name(memory[k * stride]));                                   \
    }                                                                                              \
    static void name##_scatter(const float *block, storage *memory, int64_t stride, int64_t count) \
    {                                                                                              \
        for (int64_t k = 0; k < count; k++)                                                        \
            memory[k * stride] = ci_narrow_##name(block[k]);                                       \
    }                                                                                              \
    static void name##_from_f64(void *out, const void *a, const void *b, const void *c,            \
                                int64_t count)                                                     \
    {                                                                                              \
        (void)b, (void)c;                                                                          \
        LOOP(out, float, FROM_##from(name, form, A(double)));                                      \
    }                                                                                              \
    static void name##_from_c128(void *out, const void *a, const void *b, const void *c,           \
                                 int64_t count)                                                    \
    {                                                                                              \
        (void)b, (void)c;                                                                          \
        LOOP(out, float, FROM_##from(name, form, A(ci_c128).re));                                  \
    }
#include "ir/dtypes.def"

const CiInterpNarrow *
ci_interp_narrow(CiDtype dtype)
{
    static const CiInterpNarrow rows[CI_DTYPE_COUNT] = {
#define NARROW(name, storage, size, character, exponent, mantissa, form, from, sum)                \
    [CI_DTYPE_##name] = {name##_round, name##_gather, name##_scatter, name##_from_f64,             \
                         name##_from_c128},
#include "ir/dtypes.def"
    };
    return ci_dtype_is_narrow(dtype) ? &rows[dtype] : NULL;
}

/* ---- operations of their own ---- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define SUPPORT(name, class, result, params, ...)
#define OPERANDS_1 (A(float))
#define OPERANDS_2 (A(float), ((const float *)b)[k])
#define OWN(name, operands)                                                                        \
    static void JOIN(name##_, N)(void *out, const void *a, const void *b, const void *c,           \
                                 int64_t count)                                                    \
    {                                                                                              \
        (void)b, (void)c;                                                                          \
        LOOP(out, float, JOIN(ci_##name##_, N) OPERANDS_##operands);                               \
    }
#include "target/narrow.def"

CiInterpOp
ci_interp_own(CiOp op, CiDtype narrow)
{
    static const struct {
        CiOp op;
        CiDtype narrow;
        CiInterpOp function;
    } rows[] = {
#define OWN(name, operands) {CI_OP_##name, JOIN(CI_DTYPE_, N), JOIN(name##_, N)},
#include "target/narrow.def"
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].op == op && rows[k].narrow == narrow)
            return rows[k].function;
    return NULL;
}
