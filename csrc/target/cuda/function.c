/* Functions of CUDA's mathematics library, by the names that kernels call them by. */
#include "target/cuda/print.h"

#include <string.h>

typedef struct Rough {
    const char *function;
    int noperands;
    const char *shortcut;
} Rough;

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

static const Rough roughs[] = {
#define ROUGH(function, operands, shortcut) {#function, operands, shortcut},
#include "target/cuda/imprecise.def"
};

static bool
is_rough(const char *function)
{
    for (size_t k = 0; k < sizeof roughs / sizeof *roughs; k++)
        if (!strcmp(roughs[k].function, function))
            return true;
    return false;
}

const char *
ci_cuda_function(CiContext *ctx, CiOp op, CiDtype dtype)
{
    const char *function = ci_op_function(op);
    if (dtype == CI_DTYPE_f64)
        return function;
    return ci_format(ctx, is_rough(function) ? "ci_rounded_%s" : "%sf", function);
}

void
ci_cuda_add_functions(CiText *out, const char *kernels)
{
    for (size_t k = 0; k < sizeof roughs / sizeof *roughs; k++) {
        const char *function = roughs[k].function;
        bool is_pair = roughs[k].noperands == 2;
        if (ci_emit_mentions(kernels, ci_format(out->ctx, "ci_rounded_%s", function)))
            ci_text_add(out,
                        "static __device__ float ci_rounded_%s(float a%s) { %sreturn "
                        "(float)%s((double)a%s); }\n",
                        function, is_pair ? ", float b" : "", roughs[k].shortcut, function,
                        is_pair ? ", (double)b" : "");
    }
}
