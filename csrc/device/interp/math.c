/* Calls of libmvec through pointers. Only the functions here are compiled for wide registers, and
 * they hold nothing but the call, so the core itself is built for the baseline. */
#include "device/interp/math.h"

#include "target/c/c.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

CiInterpRoutine
ci_interp_math_find(const CiInterpMath *math, CiOp op, CiDtype dtype)
{
    CiInterpRoutine routine = {.op = op, .is_double = dtype == CI_DTYPE_f64, .level = math->level};
    char symbol[40];
    if (!math->library)
        return routine;
    ci_c_math_symbol(ci_cpu_instructions(math->level), op, dtype, ci_cpu_vector_bytes(math->level),
                     symbol);
    routine.vector = dlsym(math->library, symbol);
    return routine;
}

/* ---- whole vectors ---- */

#if defined(__x86_64__)
#define VECTOR_CALLS(name, type, bytes, attribute)                                                 \
    typedef type name##_vector __attribute__((vector_size(bytes), may_alias));                     \
    attribute static void name##_1(void *routine, void *out, const void *a, int64_t vectors)       \
    {                                                                                              \
        name##_vector (*call)(name##_vector);                                                      \
        memcpy(&call, &routine, sizeof call);                                                      \
        for (int64_t k = 0; k < vectors; k++)                                                      \
            ((name##_vector *)out)[k] = call(((const name##_vector *)a)[k]);                       \
    }                                                                                              \
    attribute static void name##_2(void *routine, void *out, const void *a, const void *b,         \
                                   int64_t vectors)                                                \
    {                                                                                              \
        name##_vector (*call)(name##_vector, name##_vector);                                       \
        memcpy(&call, &routine, sizeof call);                                                      \
        for (int64_t k = 0; k < vectors; k++)                                                      \
            ((name##_vector *)out)[k] =                                                            \
                call(((const name##_vector *)a)[k], ((const name##_vector *)b)[k]);                \
    }
#define BASELINE
#define WITH_AVX2 __attribute__((target("avx2")))
#define WITH_AVX512 __attribute__((target("avx512f")))
VECTOR_CALLS(f32_16, float, 16, BASELINE)
VECTOR_CALLS(f64_16, double, 16, BASELINE)
VECTOR_CALLS(f32_32, float, 32, WITH_AVX2)
VECTOR_CALLS(f64_32, double, 32, WITH_AVX2)
VECTOR_CALLS(f32_64, float, 64, WITH_AVX512)
VECTOR_CALLS(f64_64, double, 64, WITH_AVX512)

static void
run_vectors(const CiInterpRoutine *routine, void *out, void *a, void *b, int64_t vectors)
{
    typedef void (*Call1)(void *, void *, const void *, int64_t);
    typedef void (*Call2)(void *, void *, const void *, const void *, int64_t);
    static const Call1 one[CI_CPU_LEVEL_COUNT][2] = {
        {f32_16_1, f64_16_1}, {f32_32_1, f64_32_1}, {f32_64_1, f64_64_1}};
    static const Call2 two[CI_CPU_LEVEL_COUNT][2] = {
        {f32_16_2, f64_16_2}, {f32_32_2, f64_32_2}, {f32_64_2, f64_64_2}};
    if (b)
        two[routine->level][routine->is_double](routine->vector, out, a, b, vectors);
    else
        one[routine->level][routine->is_double](routine->vector, out, a, vectors);
}
#else
static void
run_vectors(const CiInterpRoutine *routine, void *out, void *a, void *b, int64_t vectors)
{
    (void)routine, (void)out, (void)a, (void)b, (void)vectors;
}
#endif

/* ---- one by one ---- */

typedef struct ScalarRow {
    double (*one64)(double);
    float (*one32)(float);
    double (*two64)(double, double);
    float (*two32)(float, float);
} ScalarRow;

static ScalarRow
scalar_row(CiOp op)
{
    switch (op) {
#define ROW_1(function) {function, function##f, NULL, NULL}
#define ROW_2(function) {NULL, NULL, function, function##f}
#define MATH(name, arity, function)                                                                \
    case CI_OP_##name:                                                                             \
        return (ScalarRow)ROW_##arity(function);
#include "ir/ops.def"
    default:
        return (ScalarRow){NULL, NULL, NULL, NULL};
    }
}

static void
run_scalars(const CiInterpRoutine *routine, void *out, const void *a, const void *b, int64_t count)
{
    ScalarRow row = scalar_row(routine->op);
    for (int64_t k = 0; k < count && routine->is_double; k++)
        ((double *)out)[k] = b ? row.two64(((const double *)a)[k], ((const double *)b)[k])
                               : row.one64(((const double *)a)[k]);
    for (int64_t k = 0; k < count && !routine->is_double; k++)
        ((float *)out)[k] = b ? row.two32(((const float *)a)[k], ((const float *)b)[k])
                              : row.one32(((const float *)a)[k]);
}

static void
pad(void *values, int size, int64_t count, int64_t lanes)
{
    char *last = (char *)values + size * (count - 1);
    for (int64_t k = count; k % lanes; k++)
        memcpy((char *)values + size * k, last, (size_t)size);
}

void
ci_interp_math_run(const CiInterpRoutine *routine, void *out, void *a, void *b, int64_t count)
{
    int size = routine->is_double ? 8 : 4;
    int64_t lanes = ci_cpu_vector_bytes(routine->level) / size;
    if (!routine->vector) {
        run_scalars(routine, out, a, b, count);
        return;
    }
    pad(a, size, count, lanes);
    if (b)
        pad(b, size, count, lanes);
    run_vectors(routine, out, a, b, (count + lanes - 1) / lanes);
}
