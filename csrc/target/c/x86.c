/* x86-64: instructions by the compilers' names for them. */
#include "target/c/machine.h"

#include <string.h>

typedef struct Rounding {
    const char *function, *number; /* of the instruction's rounding modes */
} Rounding;

static const Rounding roundings[] = {
    {"floor", "9"}, {"ceil", "10"}, {"trunc", "11"}, {"rint", "4"}};

static const char *
rounding(CiContext *ctx, const char *function, CiDtype dtype, int bytes)
{
    const char *type = dtype == CI_DTYPE_f64 ? "pd" : "ps", *width = bytes == 64   ? "512"
                                                                     : bytes == 32 ? "256"
                                                                                   : "";
    if (bytes != 16 && bytes != 32 && bytes != 64)
        return NULL;
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++) {
        if (strcmp(function, roundings[k].function) != 0)
            continue;
        return bytes == 64
                   ? ci_format(ctx, "return __builtin_ia32_rndscale%s_mask(a, %s, a, -1, 4);", type,
                               roundings[k].number)
                   : ci_format(ctx, "return __builtin_ia32_round%s%s(a, %s);", type, width,
                               roundings[k].number);
    }
    return bytes == 64 ? ci_format(ctx, "return __builtin_ia32_sqrt%s512_mask(a, a, -1, 4);", type)
                       : ci_format(ctx, "return __builtin_ia32_sqrt%s%s(a);", type, width);
}

static const char *
extreme(CiContext *ctx, const char *instruction, CiDtype dtype, int bytes)
{
    const char *type = dtype == CI_DTYPE_f64 ? "pd" : "ps";
    return ci_format(ctx, "__builtin_ia32_%s%s%s(a, b%s)", instruction, type,
                     bytes == 64   ? "512_mask"
                     : bytes == 32 ? "256"
                                   : "",
                     bytes == 64 ? ", b, -1, 4" : "");
}

/* The level whose registers have 16 bytes has no such instruction. */
static const char *
fused(CiContext *ctx, CiDtype dtype, int bytes, int vector_bytes)
{
    const char *type = dtype == CI_DTYPE_f64 ? "pd" : "ps";
    if (vector_bytes < 32 || bytes > vector_bytes || (bytes != 16 && bytes != 32 && bytes != 64))
        return NULL;
    return bytes == 64
               ? ci_format(ctx, "return __builtin_ia32_vfmadd%s512_mask(a, b, c, -1, 4);", type)
               : ci_format(ctx, "return __builtin_ia32_vfmadd%s%s(a, b, c);", type,
                           bytes == 32 ? "256" : "");
}

static char
routines(int vector_bytes)
{
    return vector_bytes == 64 ? 'e' : vector_bytes == 32 ? 'd' : 'b';
}

/* ---- masks ---- */

static bool
has_masks(int vector_bytes)
{
    return vector_bytes == 64;
}

static const char *
masked_load(CiContext *ctx, CiDtype dtype, int bytes, const char *vector)
{
    return ci_format(ctx, "__builtin_ia32_loadu%s%d_mask((const %s *)m, (%s)first, (1u << n) - 1)",
                     dtype == CI_DTYPE_f32 ? "ps" : "pd", 8 * bytes, ci_emit_type(dtype), vector);
}

static const char *
masked_store(CiContext *ctx, CiDtype dtype, int bytes, const char *vector)
{
    return ci_format(ctx, "__builtin_ia32_storeu%s%d_mask((%s *)m, (%s)v, (1u << n) - 1)",
                     dtype == CI_DTYPE_f32 ? "ps" : "pd", 8 * bytes, ci_emit_type(dtype), vector);
}

static const char *
mask_bits(CiContext *ctx, CiDtype dtype, int bytes)
{
    return ci_format(ctx, "__builtin_ia32_cvt%s2mask%d((numbers)mask)",
                     dtype == CI_DTYPE_f32 ? "d" : "q", 8 * bytes);
}

static const char *
pack(CiContext *ctx, CiDtype dtype, int bytes, const char *vector)
{
    return ci_format(ctx,
                     "__builtin_ia32_storeu%s%d_mask((%s *)m, "
                     "__builtin_ia32_compress%s%d_mask((%s)v, (%s){0}, chosen), (1u << n) - 1)",
                     dtype == CI_DTYPE_f32 ? "ps" : "pd", 8 * bytes, ci_emit_type(dtype),
                     dtype == CI_DTYPE_f32 ? "sf" : "df", 8 * bytes, vector, vector);
}

const CiCMachine ci_c_x86 = {.rounding = rounding,
                             .fused = fused,
                             .extreme = extreme,
                             .routines = routines,
                             .has_masks = has_masks,
                             .masked_load = masked_load,
                             .masked_store = masked_store,
                             .mask_bits = mask_bits,
                             .pack = pack};
