/* Casts between element types, selection, and the way between memory and blocks. The casts are
 * those that emit.c prints: a float goes to a narrow integer through int32, to u32 through int64.
 */
#include "device/interp/ops.h"

#include <string.h>

#undef bool /* a name of a type here, not stdbool's macro */

#define EACH_INTEGER(X, ...)                                                                       \
    X(bool, uint8_t, __VA_ARGS__)                                                                  \
    X(i8, int8_t, __VA_ARGS__)                                                                     \
    X(i16, int16_t, __VA_ARGS__)                                                                   \
    X(i32, int32_t, __VA_ARGS__)                                                                   \
    X(i64, int64_t, __VA_ARGS__)                                                                   \
    X(u8, uint8_t, __VA_ARGS__)                                                                    \
    X(u16, uint16_t, __VA_ARGS__) X(u32, uint32_t, __VA_ARGS__) X(u64, uint64_t, __VA_ARGS__)

/* static void <name>(…): to[k] = expression of x, the k-th value of type `from`. */
#define CAST(name, from, to, expression)                                                           \
    static void name(void *out, const void *a, const void *b, const void *c, int64_t count)        \
    {                                                                                              \
        const from *source = a;                                                                    \
        to *target = out;                                                                          \
        (void)b, (void)c;                                                                          \
        for (int64_t k = 0; k < count; k++) {                                                      \
            const from x = source[k];                                                              \
            target[k] = expression;                                                                \
        }                                                                                          \
    }

/* From a real type (part is the expression of its real part) to all that blocks hold. */
#define CASTS_FROM(name, type, part, truth, narrow, wide)                                          \
    CAST(name##_to_bool, type, uint8_t, truth)                                                     \
    CAST(name##_to_i8, type, int8_t, (int8_t)narrow(part))                                         \
    CAST(name##_to_i16, type, int16_t, (int16_t)narrow(part))                                      \
    CAST(name##_to_i32, type, int32_t, (int32_t)(part))                                            \
    CAST(name##_to_i64, type, int64_t, (int64_t)(part))                                            \
    CAST(name##_to_u8, type, uint8_t, (uint8_t)narrow(part))                                       \
    CAST(name##_to_u16, type, uint16_t, (uint16_t)narrow(part))                                    \
    CAST(name##_to_u32, type, uint32_t, (uint32_t)wide(part))                                      \
    CAST(name##_to_u64, type, uint64_t, (uint64_t)(part))                                          \
    CAST(name##_to_f32, type, float, (float)(part))                                                \
    CAST(name##_to_f64, type, double, (double)(part))

#define COMPLEX_FROM(name, type, re, im)                                                           \
    CAST(name##_to_c64, type, ci_c64, ((ci_c64){(float)(re), (float)(im)}))                        \
    CAST(name##_to_c128, type, ci_c128, ((ci_c128){(double)(re), (double)(im)}))

#define FROM_INTEGER(name, type, ...)                                                              \
    CASTS_FROM(name, type, x, x != 0, , )                                                          \
    COMPLEX_FROM(name, type, x, 0)
EACH_INTEGER(FROM_INTEGER, )
CASTS_FROM(f32, float, x, x != 0, (int32_t), (int64_t))
COMPLEX_FROM(f32, float, x, 0)
CASTS_FROM(f64, double, x, x != 0, (int32_t), (int64_t))
COMPLEX_FROM(f64, double, x, 0)
CASTS_FROM(c64, ci_c64, x.re, x.re != 0 || x.im != 0, (int32_t), (int64_t))
COMPLEX_FROM(c64, ci_c64, x.re, x.im)
CASTS_FROM(c128, ci_c128, x.re, x.re != 0 || x.im != 0, (int32_t), (int64_t))
COMPLEX_FROM(c128, ci_c128, x.re, x.im)

static const CiInterpOp casts[CI_DTYPE_COUNT][CI_DTYPE_COUNT] = {
#define NARROW(name, ...) /* as f32 */
#define DTYPE(name, ...)                                                                           \
    [CI_DTYPE_##name] = {[CI_DTYPE_bool] = name##_to_bool, [CI_DTYPE_i8] = name##_to_i8,           \
                         [CI_DTYPE_i16] = name##_to_i16,   [CI_DTYPE_i32] = name##_to_i32,         \
                         [CI_DTYPE_i64] = name##_to_i64,   [CI_DTYPE_u8] = name##_to_u8,           \
                         [CI_DTYPE_u16] = name##_to_u16,   [CI_DTYPE_u32] = name##_to_u32,         \
                         [CI_DTYPE_u64] = name##_to_u64,   [CI_DTYPE_f32] = name##_to_f32,         \
                         [CI_DTYPE_f64] = name##_to_f64,   [CI_DTYPE_c64] = name##_to_c64,         \
                         [CI_DTYPE_c128] = name##_to_c128},
#include "ir/dtypes.def"
};

CiInterpOp
ci_interp_cast(CiDtype from, CiDtype to)
{
    const CiInterpNarrow *narrow = ci_interp_narrow(to);
    if (narrow && ci_dtype_real(from) == CI_DTYPE_f64)
        return from == CI_DTYPE_f64 ? narrow->from_f64 : narrow->from_c128;
    return casts[ci_dtype_compute(from)][ci_dtype_compute(to)];
}

CiInterpOp
ci_interp_function(CiOp op, CiDtype operand)
{
#define NARROW(name, ...)
    static const CiInterpRows *const rows[CI_DTYPE_COUNT] = {
#define DTYPE(name, ...) [CI_DTYPE_##name] = &ci_interp_rows_##name,
#include "ir/dtypes.def"
    };
    CiInterpOp own = ci_interp_own(op, operand);
    return own ? own : rows[ci_dtype_compute(operand)]->ops[op];
}

int
ci_interp_size(CiDtype dtype)
{
    return ci_dtype_size(ci_dtype_compute(dtype));
}

/* ---- where ---- */

#define WHERE(bytes, type)                                                                         \
    static void where_##bytes(void *out, const void *a, const void *b, const void *c,              \
                              int64_t count)                                                       \
    {                                                                                              \
        const uint8_t *condition = a;                                                              \
        const type *yes = b, *no = c;                                                              \
        type *to = out;                                                                            \
        for (int64_t k = 0; k < count; k++)                                                        \
            to[k] = condition[k] ? yes[k] : no[k];                                                 \
    }
WHERE(1, uint8_t)
WHERE(2, uint16_t)
WHERE(4, uint32_t)
WHERE(8, uint64_t)
WHERE(16, ci_c128)

CiInterpOp
ci_interp_where(CiDtype value)
{
    switch (ci_interp_size(value)) {
    case 1:
        return where_1;
    case 2:
        return where_2;
    case 4:
        return where_4;
    case 8:
        return where_8;
    default:
        return where_16;
    }
}

/* ---- memory ---- */

#define MOVE(type)                                                                                 \
    do {                                                                                           \
        for (int64_t k = 0; k < count; k++)                                                        \
            ((type *)to)[k * to_stride] = ((const type *)from)[k * from_stride];                   \
    } while (0)

void
ci_interp_move(int size, void *to, int64_t to_stride, const void *from, int64_t from_stride,
               int64_t count)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)(size * count));
        return;
    }
    switch (size) {
    case 1:
        MOVE(uint8_t);
        break;
    case 2:
        MOVE(uint16_t);
        break;
    case 4:
        MOVE(uint32_t);
        break;
    case 8:
        MOVE(uint64_t);
        break;
    default:
        MOVE(ci_c128);
    }
}

void
ci_interp_gather(CiDtype dtype, void *block, const void *memory, int64_t offset, int64_t stride,
                 int64_t count)
{
    const CiInterpNarrow *narrow = ci_interp_narrow(dtype);
    if (narrow) {
        narrow->gather(block, (const uint16_t *)memory + offset, stride, count);
        return;
    }
    int size = ci_dtype_size(dtype);
    ci_interp_move(size, block, 1, (const char *)memory + size * offset, stride, count);
}

void
ci_interp_scatter(CiDtype dtype, const void *block, void *memory, int64_t offset, int64_t stride,
                  int64_t count)
{
    const CiInterpNarrow *narrow = ci_interp_narrow(dtype);
    if (narrow) {
        narrow->scatter(block, (uint16_t *)memory + offset, stride, count);
        return;
    }
    int size = ci_dtype_size(dtype);
    ci_interp_move(size, (char *)memory + size * offset, stride, block, 1, count);
}
