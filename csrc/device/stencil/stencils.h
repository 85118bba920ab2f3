/* The stencils: pieces of machine code of which stencil.c makes kernels. Compiled by
 * tools/make_stencils.py for x86-64-v3 while cinductor is built, and by nothing else.
 *
 * Each function is one stencil. It ends with a jump to the stencil after it (`next`), and may jump to
 * another one (`target`). Addresses of `hole_0` … are numbers that are entered when the piece is
 * copied: places in the frame, factors, widths. What stencils hand on, in registers:
 *
 *   f    the frame: values, addresses of memory, sizes and variables of loops, at constant places.
 *   i    The element that the innermost loop is at.
 *   x    An index expression.
 *   n    Lanes that are live.
 *   acc  The latest value.
 *
 * A value of fewer lanes than a register has is there more than once: all lanes l with the same
 * l % lanes are equal. So one stencil does an operation for any number of lanes, a splat is no code,
 * and no lane raises a float flag that the value's own lanes do not. A bool is a mask of lanes as
 * wide as those of a number that it was compared with. */
#include <immintrin.h>

#include "device/interp/support.h"

typedef __m256i V;
#define VECTOR(name, type) typedef type V_##name __attribute__((vector_size(32)));
VECTOR(f32, float)
VECTOR(f64, double)
VECTOR(i8, int8_t)
VECTOR(i32, int32_t)
VECTOR(i64, int64_t)
VECTOR(u8, uint8_t)
VECTOR(bool, uint8_t)
#define STATE char *f, int64_t i, int64_t x, int64_t n, V acc
#define ON f, i, x, n, acc

#pragma GCC visibility push(hidden)
extern char hole_0[], hole_1[];
int32_t next(STATE);
int32_t target(STATE);
#pragma GCC visibility pop
#define HOLE(k) ((int64_t)(intptr_t)hole_##k)
#define SLOT(k) (f + HOLE(k))
#define NUMBER(k) (*(int64_t *)SLOT(k))
#define STENCIL(name)                                                                              \
    int32_t stencil_##name(STATE);                                                                 \
    int32_t stencil_##name(STATE)
#define VALUE(k) (*(V *)SLOT(k))
#define COUNT(type) (32 / (int)sizeof(type))

/* ---- the entry, and the end ---- */

int32_t stencil_entry(void *const *buffers, const int64_t *sizes, const void *scalars,
                      int64_t begin, int64_t end, void *run);
int32_t
stencil_entry(void *const *buffers, const int64_t *sizes, const void *scalars, int64_t begin,
              int64_t end, void *run)
{
    char *f = __builtin_alloca_with_align((size_t)HOLE(0), 256);
    const int64_t head[6] = {(intptr_t)buffers, (intptr_t)sizes, (intptr_t)scalars,
                             begin,             end,             (intptr_t)run};
    for (int k = 0; k < 6; k++)
        ((volatile int64_t *)f)[k] = head[k];
    return next(f, 0, 0, 0, _mm256_setzero_si256());
}

STENCIL(end)
{
    (void)f, (void)i, (void)x, (void)n, (void)acc;
    __asm__ volatile("vzeroupper");
    return (int32_t)HOLE(0);
}

/* ---- index expressions, in x ---- */

STENCIL(x_is) /* an address has no sign, for a compiler */
{
    __asm__("movq $hole_0, %0" : "=r"(x));
    return next(ON);
}
STENCIL(x_is_wide)
{
    __asm__("movabsq $hole_0, %0" : "=r"(x));
    return next(ON);
}
STENCIL(x_is_slot)
{
    x = NUMBER(0);
    return next(ON);
}
STENCIL(x_is_i)
{
    x = i;
    return next(ON);
}
STENCIL(x_is_lane)
{
    x = _mm_cvtsi128_si64(_mm256_castsi256_si128(acc));
    return next(ON);
}
STENCIL(x_is_element) /* of the numbers or addresses that a slot has the address of */
{
    x = *(int64_t *)(NUMBER(0) + HOLE(1));
    return next(ON);
}
STENCIL(x_is_frame)
{
    x = (intptr_t)SLOT(0);
    return next(ON);
}
STENCIL(x_adds)
{
    x += HOLE(0);
    return next(ON);
}
STENCIL(x_adds_slot)
{
    x += NUMBER(0);
    return next(ON);
}
STENCIL(x_adds_times)
{
    x += NUMBER(0) * HOLE(1);
    return next(ON);
}
STENCIL(x_times)
{
    x *= HOLE(0);
    return next(ON);
}
STENCIL(x_times_slot)
{
    x *= NUMBER(0);
    return next(ON);
}
STENCIL(x_floordiv)
{
    const int64_t b = NUMBER(0), q = x / b;
    x = q - (x % b != 0 && (x < 0) != (b < 0));
    return next(ON);
}
STENCIL(x_mod)
{
    const int64_t b = NUMBER(0), r = x % b;
    x = r != 0 && (r < 0) != (b < 0) ? r + b : r;
    return next(ON);
}
STENCIL(x_min)
{
    const int64_t b = NUMBER(0);
    x = b < x ? b : x;
    return next(ON);
}
STENCIL(x_max)
{
    const int64_t b = NUMBER(0);
    x = b > x ? b : x;
    return next(ON);
}
STENCIL(x_to_slot)
{
    NUMBER(0) = x;
    return next(ON);
}
STENCIL(x_to_n)
{
    n = x;
    return next(ON);
}
STENCIL(x_to_acc)
{
    acc = _mm256_set1_epi64x(x);
    return next(ON);
}

/* ---- loops and branches ---- */

STENCIL(i_is_0)
{
    i = 0;
    return next(ON);
}
STENCIL(i_adds)
{
    i += HOLE(0);
    return next(ON);
}
STENCIL(jump)
{
    return target(ON);
}
/* Jumps past what is not done. */
#define SKIP(name, is_done)                                                                        \
    STENCIL(skip_unless_##name)                                                                    \
    {                                                                                              \
        if (__builtin_expect(is_done, 1))                                                          \
            return next(ON);                                                                       \
        return target(ON);                                                                         \
    }
SKIP(less, NUMBER(0) < x)
SKIP(less_equal, NUMBER(0) <= x)
SKIP(equal, NUMBER(0) == x)
SKIP(is, _mm256_extract_epi8(acc, 0) != 0)
SKIP(is_not, _mm256_extract_epi8(acc, 0) == 0)
/* Jumps back while the variable is below its end. */
STENCIL(step)
{
    int64_t var = NUMBER(0) + 1;
    NUMBER(0) = var;
    if (__builtin_expect(var < NUMBER(1), 1))
        return target(ON);
    return next(ON);
}
STENCIL(step_i)
{
    i += HOLE(0);
    if (__builtin_expect(i < NUMBER(1), 1))
        return target(ON);
    return next(ON);
}

/* ---- values ---- */

STENCIL(slot_to_acc)
{
    acc = VALUE(0);
    return next(ON);
}
STENCIL(acc_to_slot)
{
    VALUE(0) = acc;
    return next(ON);
}
/* The lanes that are live, of HOLE(1) bytes each. */
STENCIL(live_to_acc)
{
    volatile char own[32] __attribute__((aligned(32)));
    *(volatile V *)own = acc;
    for (int64_t k = 0; k < 32 && n > 0; k++)
        own[k] = SLOT(0)[k < n * HOLE(1) ? k : k & (HOLE(1) - 1)];
    acc = *(volatile V *)own;
    return next(ON);
}
STENCIL(live_to_slot)
{
    volatile char own[32] __attribute__((aligned(32)));
    *(volatile V *)own = acc;
    for (int64_t k = 0; k < n * HOLE(1) && k < 32; k++)
        ((volatile char *)SLOT(0))[k] = own[k];
    return next(ON);
}
STENCIL(iota_8) /* x, and one more in each lane */
{
    acc = _mm256_set_epi64x(x + 3, x + 2, x + 1, x);
    return next(ON);
}

/* Elements of so many bytes (width), so many bytes in all (size), at an address in a slot, and x
 * elements on, and HOLE(1) bytes on. */
#define AT(width) ((char *)NUMBER(0) + x * width + HOLE(1))
#define SPREAD(size, type, set)                                                                    \
    static inline __attribute__((always_inline)) V spread_##size(const char *at)                   \
    {                                                                                              \
        type a;                                                                                    \
        __builtin_memcpy(&a, at, size);                                                            \
        return set(a);                                                                             \
    }
SPREAD(1, char, _mm256_set1_epi8)
SPREAD(2, short, _mm256_set1_epi16)
SPREAD(4, int, _mm256_set1_epi32)
SPREAD(8, int64_t, _mm256_set1_epi64x)
SPREAD(16, __m128i, _mm256_broadcastsi128_si256)
SPREAD(32, V, )
/* Byte by byte, the elements that are live. The others are the first one, which raises no other float flag; acc has what
 * all are if none is. */
#define MOVE(width, size)                                                                          \
    STENCIL(load_##width##_##size)                                                                 \
    {                                                                                              \
        acc = spread_##size(AT(width));                                                            \
        return next(ON);                                                                           \
    }                                                                                              \
    STENCIL(store_##width##_##size)                                                                \
    {                                                                                              \
        __builtin_memcpy(AT(width), &acc, size);                                                   \
        return next(ON);                                                                           \
    }                                                                                              \
    STENCIL(load_live_##width##_##size)                                                            \
    {                                                                                              \
        volatile char own[32] __attribute__((aligned(32)));                                        \
        *(volatile V *)own = acc;                                                                  \
        for (int64_t k = 0; k < size && n > 0; k++)                                                \
            own[k] = AT(width)[k < n * width ? k : k & (width - 1)];                               \
        acc = spread_##size((const char *)own);                                                    \
        return next(ON);                                                                           \
    }                                                                                              \
    STENCIL(store_live_##width##_##size)                                                           \
    {                                                                                              \
        volatile char own[32] __attribute__((aligned(32)));                                        \
        *(volatile V *)own = acc;                                                                  \
        for (int64_t k = 0; k < n * width && k < size; k++)                                        \
            ((volatile char *)AT(width))[k] = own[k];                                              \
        return next(ON);                                                                           \
    }
MOVE(1, 1)
MOVE(1, 2)
MOVE(1, 4)
MOVE(1, 8)
MOVE(1, 16)
MOVE(1, 32)
MOVE(4, 4)
MOVE(4, 8)
MOVE(4, 16)
MOVE(4, 32)
MOVE(8, 8)
MOVE(8, 16)
MOVE(8, 32)

/* Lanes that lie n elements apart. */
#define STRIDE(name, width, type)                                                                  \
    STENCIL(load_stride_##width)                                                                   \
    {                                                                                              \
        V_##name out;                                                                              \
        for (int l = 0; l < COUNT(type); l++)                                                      \
            out[l] = ((const type *)AT(width))[n * l];                                             \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }                                                                                              \
    STENCIL(store_stride_##width)                                                                  \
    {                                                                                              \
        const V_##name in = (V_##name)acc;                                                         \
        for (int l = 0; l < COUNT(type); l++)                                                      \
            ((type *)AT(width))[n * l] = in[l];                                                    \
        return next(ON);                                                                           \
    }
STRIDE(i32, 4, int32_t)
STRIDE(i64, 8, int64_t)

/* Masks: from bytes of 0 and 1, and to them; from lanes of one width to another. */
STENCIL(mask_of_bytes)
{
    acc = _mm256_cmpgt_epi8(acc, _mm256_setzero_si256());
    return next(ON);
}
STENCIL(bytes_of_mask)
{
    acc = _mm256_abs_epi8(acc);
    return next(ON);
}
STENCIL(where)
{
    acc = _mm256_blendv_epi8(VALUE(1), VALUE(0), acc);
    return next(ON);
}
/* The first lanes of acc, as many as fit, and again where there is room. */
#define CAST(stencil, from, to, type, expression)                                                  \
    STENCIL(stencil)                                                                               \
    {                                                                                              \
        const V_##from in = (V_##from)acc;                                                         \
        V_##to out;                                                                                \
        const int from_count = COUNT(in[0]), to_count = COUNT(out[0]),                             \
                  count = from_count < to_count ? from_count : to_count;                           \
        for (int l = 0; l < to_count; l++) {                                                       \
            const __typeof__(in[0]) a = in[l % count];                                             \
            out[l] = (type)(expression);                                                           \
        }                                                                                          \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }
CAST(mask_1_4, i8, i32, int32_t, a)
CAST(mask_1_8, i8, i64, int64_t, a)
CAST(mask_4_1, i32, i8, int8_t, a)
CAST(mask_4_8, i32, i64, int64_t, a)
CAST(mask_8_1, i64, i8, int8_t, a)
CAST(mask_8_4, i64, i32, int32_t, a)
CAST(cast_f32_f64, f32, f64, double, a)
CAST(cast_f32_i32, f32, i32, int32_t, a)
CAST(cast_f32_i64, f32, i64, int64_t, a)
CAST(cast_f32_u8, f32, u8, uint8_t, (int32_t)a)
CAST(cast_f64_f32, f64, f32, float, a)
CAST(cast_f64_i32, f64, i32, int32_t, a)
CAST(cast_f64_i64, f64, i64, int64_t, a)
CAST(cast_f64_u8, f64, u8, uint8_t, (int32_t)a)
CAST(cast_i32_f32, i32, f32, float, a)
CAST(cast_i32_f64, i32, f64, double, a)
CAST(cast_i32_i64, i32, i64, int64_t, a)
CAST(cast_i32_u8, i32, u8, uint8_t, a)
CAST(cast_i64_f32, i64, f32, float, a)
CAST(cast_i64_f64, i64, f64, double, a)
CAST(cast_i64_i32, i64, i32, int32_t, a)
CAST(cast_i64_u8, i64, u8, uint8_t, a)
CAST(cast_u8_f32, u8, f32, float, a)
CAST(cast_u8_f64, u8, f64, double, a)
CAST(cast_u8_i32, u8, i32, int32_t, a)
CAST(cast_u8_i64, u8, i64, int64_t, a)
/* Of a mask as wide as the number, and to it. */
CAST(cast_bool_f32, i32, f32, float, a & 1)
CAST(cast_bool_f64, i64, f64, double, a & 1)
CAST(cast_bool_i32, i32, i32, int32_t, a & 1)
CAST(cast_bool_i64, i64, i64, int64_t, a & 1)
CAST(cast_bool_u8, i8, u8, uint8_t, a & 1)
CAST(cast_f32_bool, f32, i32, int32_t, -(a != 0))
CAST(cast_f64_bool, f64, i64, int64_t, -(a != 0))
CAST(cast_i32_bool, i32, i32, int32_t, -(a != 0))
CAST(cast_i64_bool, i64, i64, int64_t, -(a != 0))
CAST(cast_u8_bool, u8, i8, int8_t, -(a != 0))

/* Every second lane of two values, the odd or the even ones. */
#define HALVES(type, width)                                                                        \
    HALF(odds_##width, type, 1)                                                                    \
    HALF(evens_##width, type, 0)
#define HALF(stencil, type, odd)                                                                   \
    STENCIL(stencil)                                                                               \
    {                                                                                              \
        const V_##type one = (V_##type)acc, two = (V_##type)VALUE(0);                              \
        V_##type out;                                                                              \
        const int count = COUNT(one[0]);                                                           \
        for (int l = 0; l < count; l++)                                                            \
            out[l] = 2 * l < count ? one[2 * l % count + odd] : two[2 * l % count + odd];          \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }
HALVES(i8, 1)
HALVES(i32, 4)
HALVES(i64, 8)

/* The number of the first lane that is true of a mask, 1 << HOLE(0) bytes a lane; HOLE(1) if none is. */
STENCIL(first_true)
{
    const unsigned bits = (unsigned)_mm256_movemask_epi8(acc);
    acc = _mm256_set1_epi64x(bits ? __builtin_ctz(bits) >> HOLE(0) : HOLE(1));
    return next(ON);
}
/* The first and the second half of the lanes of a value of so many bytes. */
#define PARTS(bytes)                                                                               \
    PART(low_##bytes, bytes, 0)                                                                    \
    PART(high_##bytes, bytes, bytes / 8)
#define PART(stencil, bytes, from)                                                                 \
    STENCIL(stencil)                                                                               \
    {                                                                                              \
        const V_i32 in = (V_i32)acc;                                                               \
        V_i32 out;                                                                                 \
        for (int l = 0; l < 8; l++)                                                                \
            out[l] = in[from + l % (bytes / 8)];                                                   \
        acc = (V)out;                                                                              \
        return next(ON);                                                                           \
    }
PARTS(8)
PARTS(16)
PARTS(32)

/* ---- calls, and the ways out ---- */

typedef struct Run { /* CiRun */
    void *scratch, *partials;
    int32_t *fault;
    int32_t (*poll)(void *arg);
    void *poll_arg;
    void (*apply)(const void *loops, int32_t number, int64_t count, void *out, const void *a,
                  int64_t a_step, const void *b, int64_t b_step);
    const void *ufuncs;
} Run;
#define RUN ((const Run *)((int64_t *)f)[5])

/* The loop of a ufunc: HOLE(0) is its number; of x elements; the rest is in slots from HOLE(1) on. */
STENCIL(apply)
{
    const int64_t *given = (const int64_t *)SLOT(1);
    __asm__ volatile("vzeroupper");
    RUN->apply(RUN->ufuncs, (int32_t)HOLE(0), x, (void *)given[0], (const void *)given[1], given[2],
               (const void *)given[3], given[4]);
    return next(f, i, 0, 0, _mm256_setzero_si256());
}
/* The interpreter's function at the address HOLE(0), of x values in each of the registers after the slot HOLE(1). */
STENCIL(operation)
{
    char *const out = SLOT(1);
    void (*function)(void *out, const void *a, const void *b, const void *c, int64_t count);
    __asm__("movabsq $hole_0, %0" : "=r"(function));
    __asm__ volatile("vzeroupper");
    function(out, out + 32, out + 64, out + 96, x);
    return next(f, i, 0, 0, *(const V *)out);
}
/* Appends those of x values of HOLE(0) bytes whose mask is true. From the slot HOLE(1) on there are the address of the
 * first element, the bytes between elements, their limit, the address of their count; then masks, and values. */
STENCIL(pack)
{
    char *const at = SLOT(1);
    const int64_t *const given = (const int64_t *)at;
    int64_t *const count = (int64_t *)given[3];
    for (int64_t k = 0; k < x * HOLE(0); k += HOLE(0)) {
        volatile char *const to = (char *)given[0] + given[1] * *count;
        if (!at[32 + k] || *count >= given[2])
            continue;
        ++*count;
        for (int64_t byte = 0; byte < HOLE(0); byte++)
            to[byte] = at[64 + k + byte];
    }
    return next(f, i, 0, 0, _mm256_setzero_si256());
}
STENCIL(poll) /* x more units of work; the count of them is in a slot */
{
    NUMBER(0) += x;
    if (__builtin_expect(NUMBER(0) < HOLE(1), 1))
        return next(f, i, 0, 0, _mm256_setzero_si256());
    NUMBER(0) = 0;
    __asm__ volatile("vzeroupper");
    if (RUN->poll && RUN->poll(RUN->poll_arg))
        return target(f, 0, 0, 0, _mm256_setzero_si256());
    return next(f, i, 0, 0, _mm256_setzero_si256());
}
STENCIL(stop) /* of check HOLE(0); HOLE(1) is the kind of a fault */
{
    int32_t *const fault = RUN->fault;
    if (fault) {
        fault[0] = (int32_t)HOLE(1);
        fault[1] = (int32_t)HOLE(0);
    }
    return next(ON);
}

/* ---- the rows of ops.def ---- */

#define DTYPE_NAME f32
#define T float
#define MASK int32_t
#define MASKS V_i32
#define BITS 32
#define M(name) __builtin_##name##f
#define PICK(b, i, u, f, c) f
#include "device/stencil/op_stencils.h"

#define DTYPE_NAME f64
#define T double
#define MASK int64_t
#define MASKS V_i64
#define BITS 64
#define PICK(b, i, u, f, c) f
#include "device/stencil/op_stencils.h"

#define DTYPE_NAME i32
#define T int32_t
#define MASK int32_t
#define MASKS V_i32
#define BITS 32
#define PICK(b, i, u, f, c) i
#include "device/stencil/op_stencils.h"

#define DTYPE_NAME i64
#define T int64_t
#define MASK int64_t
#define MASKS V_i64
#define BITS 64
#define PICK(b, i, u, f, c) i
#include "device/stencil/op_stencils.h"

#define DTYPE_NAME u8
#define T uint8_t
#define MASK int8_t
#define MASKS V_i8
#define BITS 8
#define PICK(b, i, u, f, c) u
#include "device/stencil/op_stencils.h"

/* Masks, a byte of each lane's at a time; what comes of them is a mask of the same width. */
#undef bool
#define DTYPE_NAME bool
#define T uint8_t
#define MASK int8_t
#define MASKS V_i8
#define BITS 8
#define OPERAND(a) ((a) & 1)
#define SAME(e) VALUE_boolean(e)
#define PICK(b, i, u, f, c) b
#include "device/stencil/op_stencils.h"
