/* CUDA C++ as a dialect. The source has no headers. */
#include "target/gpu/print.h"

#include <string.h>

/* ---- functions ---- */

static const char shuffle_helpers[] =
    "template <class T> static __device__ T ci_shuffle(T a, int h) { return "
    "(T)__shfl_xor_sync(0xffffffffu, a, h); }\n"
    "static __device__ ci_c64 ci_shuffle(ci_c64 a, int h) { return ci_c64{ci_shuffle(a.re, h), "
    "ci_shuffle(a.im, h)}; }\n"
    "static __device__ ci_c128 ci_shuffle(ci_c128 a, int h) { return ci_c128{ci_shuffle(a.re, h), "
    "ci_shuffle(a.im, h)}; }\n"
    "template <class T> static __device__ T ci_before(T a, int h) { int from = (int)threadIdx.x % "
    "32 - h; return (T)__shfl_sync(0xffffffffu, a, from < 0 ? 0 : from); }\n"
    "static __device__ ci_c64 ci_before(ci_c64 a, int h) { return ci_c64{ci_before(a.re, h), "
    "ci_before(a.im, h)}; }\n"
    "static __device__ ci_c128 ci_before(ci_c128 a, int h) { return ci_c128{ci_before(a.re, h), "
    "ci_before(a.im, h)}; }\n"
    "template <class T> static __device__ T ci_first(T a, int width) { return "
    "(T)__shfl_sync(0xffffffffu, a, 0, width); }\n"
    "static __device__ ci_c64 ci_first(ci_c64 a, int width) { return ci_c64{ci_first(a.re, width), "
    "ci_first(a.im, width)}; }\n"
    "static __device__ ci_c128 ci_first(ci_c128 a, int width) { return ci_c128{ci_first(a.re, "
    "width), ci_first(a.im, width)}; }\n";

static const char lanes_helper[] =
    "template <class T, int N> struct __align__(sizeof(T) * N) ci_lanes { T v[N]; };\n";

/* The inverse is the hardware's, within an ULP of float; a step with the exact rest leaves less than 2^-23
 * of the quotient. Exact quotients of halves that are no halves and no numbers in the middle of two differ
 * from these by more: so both round to the same. Where the rest is of no use (zeros, infinities, NaN) the
 * product stands. */
static const char half_quotient[] =
    "{ float inverse; asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(inverse) : \"f\"(b)); "
    "const float near = a * inverse; const float y = fmaf(fmaf(-near, b, a), inverse, near); "
    "return fabsf(y) > 0 && fabsf(y) < huge_valf() ? y : near; }";

/* Instructions for which a NaN wins, from sm_80 on. */
#define EXTREME(word, order)                                                                       \
    "{ #if __CUDA_ARCH__ >= 800\n    float y; asm(\"" word ".NaN.f32 %0, %1, %2;\" : \"=f\"(y) : \"f\"(a), \"f\"(b)); return y; " \
    "#else\n    return a " order " b || a != a ? a : b; #endif\n}"

static const char *
own_support(const char *name, CiDtype dtype)
{
    if (!strcmp(name, "widen") && dtype == CI_DTYPE_f16)
        return "{ float a; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(a) : \"h\"(h)); return a; }";
    if (!strcmp(name, "narrow") && dtype == CI_DTYPE_f16)
        return "{ uint16_t h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(a)); return h; }";
    if (!strcmp(name, "divide") && dtype == CI_DTYPE_f16)
        return half_quotient;
    if (!strcmp(name, "maximum") && ci_dtype_compute(dtype) == CI_DTYPE_f32)
        return EXTREME("max", ">");
    if (!strcmp(name, "minimum") && ci_dtype_compute(dtype) == CI_DTYPE_f32)
        return EXTREME("min", "<");
    if (!strcmp(name, "rough_exp2") && dtype == CI_DTYPE_f32)
        return "{ float y; asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(a)); return y; }";
    if (!strcmp(name, "round_half") && dtype == CI_DTYPE_f64)
        return "{ uint16_t h; asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(h) : \"d\"(a)); float r; "
               "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
               "\"h\"(h)); return r; }";
    if (!strcmp(name, "round_half"))
        return "{ uint16_t h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(a)); float r; "
               "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
               "\"h\"(h)); return r; }";
    return NULL;
}

/* Powers with exponents that are halves of whole numbers up to 8: products of the operand, of its
 * square root or of their inverses. The inverse root is the hardware's, with one step of a third-order
 * iteration (Householder), so that the products in double are exact to 2^-49. If the exponent is a
 * constant, one test of the operand's range is left. Zeros, subnormals, infinities and NaN are left
 * to pow. */
#define power_by_halves                                                                            \
    "const float twice = b + b, size = fabsf(a); "                                                 \
    "const int halves = fabsf(twice) <= 16 ? (int)twice : 0, n = halves < 0 ? -halves : halves; "  \
    "if (n && halves == twice && size >= 0x1p-126f && size < huge_valf() && "                      \
    "(a > 0 || n % 2 == 0)) { "                                                                    \
    "const double x = size, guess = rsqrtf(size), h = fma(-x * guess, guess, 1.0); "               \
    "const double root = fma(guess * h, fma(0.375, h, 0.5), guess); "                              \
    "double base = halves < 0 ? root * root : x; "                                                 \
    "double power = n % 2 == 0 ? 1.0 : halves < 0 ? root : x * root; "                             \
    "power = n & 2 ? power * base : power; base *= base; "                                         \
    "power = n & 4 ? power * base : power; base *= base; "                                         \
    "power = n & 8 ? power * base : power; base *= base; "                                         \
    "power = n & 16 ? power * base : power; "                                                      \
    "return (float)(a < 0 && n & 2 ? -power : power); } "

/* Squares of floats are exact in double, and their sum cannot overflow. */
#define root_of_squares                                                                            \
    "if (fabsf(a) < huge_valf() && fabsf(b) < huge_valf()) "                                       \
    "return (float)sqrt((double)a * a + (double)b * b); "

static const CiImprecise imprecise[] = {
#define IMPRECISE(function, operands, shortcut) {#function, operands, shortcut},
#include "target/gpu/imprecise.def"
};

/* Blocks of the next kernel may wait on the processors already; this kernel reads and writes nothing before all earlier
 * ones have ended. It is so for launches that ask for it (device/cuda/backend.c), from sm_90 on. */
static const char await_helper[] =
    "static __device__ void ci_await_kernels()\n{\n#if __CUDA_ARCH__ >= 900\n"
    "    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");\n"
    "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n#endif\n}\n";

static void
add_helpers(CiText *out, CiEmitter *e)
{
    ci_text_add(out, "%s", await_helper);
    if (ci_emit_uses(e, "ci_shuffle") || ci_emit_uses(e, "ci_first") || ci_emit_uses(e, "ci_before"))
        ci_text_add(out, "%s", shuffle_helpers);
    if (ci_emit_uses(e, "ci_lanes"))
        ci_text_add(out, "%s", lanes_helper);
    ci_cuda_add_tiles(out, e);
}

const CiGpuDialect ci_gpu_cuda = {
    .spelling = {.function = "static __device__",
                 .builtin = "",
                 .imprecise = imprecise,
                 .nimprecise = (int)(sizeof imprecise / sizeof *imprecise),
                 .style = CI_STYLE_c,
                 .is_cpp = true,
                 .lacks_complex = true,
                 .has_undefined_overflow = true,
                 .override = own_support},
    .has_f64 = true,
    .warp = CI_WARP,
    .access_bytes = 16,
    .threads = 256,
    .global = "",
    .shared = "",
    .shared_array = "__shared__ ",
    .first = "    ci_await_kernels();\n",
    .rows = "extern __shared__ __align__(16) unsigned char rows[];", /* a launch says how many */
    .rows_of_tiles = "extern __shared__ __align__(1024) unsigned char rows[];",
    .restrict_word = "__restrict__ ",
    .thread = "threadIdx.x",
    .block = "blockIdx.x",
    .barrier = "__syncthreads();",
    .warp_barrier = "__syncwarp();",
    .kernel = "extern \"C\" __global__ void __launch_bounds__(%d%s)",
    .atomic32 = "atomic",
    .atomic64 = "atomic",
    .long_word = "long long",
    .float_of_bits = "__int_as_float",
    .count_bits = "__popcll",
    .prelude = "#define __builtin_memcpy memcpy\n#define huge_valf __builtin_inff\n",
    .helpers = add_helpers};
