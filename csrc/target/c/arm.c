/* aarch64: NEON's instructions, in the assembler's words, which every compiler takes. Its extremes
 * of a -0 and a 0 are others than NumPy's, so these are compared. */
#include "target/c/instructions.h"

#include <string.h>

static const char *const roundings[][2] = {{"floor", "frintm"},
                                           {"ceil", "frintp"},
                                           {"trunc", "frintz"},
                                           {"rint", "frinti"},
                                           {"sqrt", "fsqrt"}};

static const char *
rounding(CiContext *ctx, const char *function, CiDtype dtype, int bytes)
{
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings && bytes == 16; k++)
        if (strcmp(function, roundings[k][0]) == 0)
            return ci_format(ctx,
                             "__asm__(\"%s %%0.%s, %%1.%s\" : \"=w\"(a) : \"w\"(a)); return a;",
                             roundings[k][1], dtype == CI_DTYPE_f64 ? "2d" : "4s",
                             dtype == CI_DTYPE_f64 ? "2d" : "4s");
    return NULL;
}

static const char *
fused(CiContext *ctx, CiDtype dtype, int bytes, int vector_bytes)
{
    (void)vector_bytes;
    const char *lanes = dtype == CI_DTYPE_f64 ? "2d" : "4s";
    return bytes == 16 ? ci_format(ctx,
                                   "__asm__(\"fmla %%0.%s, %%1.%s, %%2.%s\" : \"+w\"(c) : "
                                   "\"w\"(a), \"w\"(b)); return c;",
                                   lanes, lanes, lanes)
                       : NULL;
}

const CiCInstructions ci_c_arm = {.fused = fused, .rounding = rounding};
