/* x86-64: instructions by the compilers' names for them. */
#include "target/c/instructions.h"

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

/* AVX-512 has mask registers. */
static bool
has_masks(int vector_bytes)
{
    return vector_bytes == 64;
}

/* ---- widths of integers ---- */

static char
width_letter(int bytes)
{
    return bytes == 1 ? 'b' : bytes == 2 ? 'w' : bytes == 4 ? 'd' : 'q';
}

/* The instruction reads the first bytes of a register of at least 16. If there are mask registers, the others repeat
 * the value: gcc 13 joins a mask with a widening of a register whose other bytes are zero, and cannot print that. */
static const char *
widened(CiContext *ctx, const char *type, CiDtype from, CiDtype to, int lanes, bool repeats)
{
    static const char *const names[] = {"char", "short", "int", "int", "long long"};
    int size = (int)ci_dtype_size(from), wide = (int)ci_dtype_size(to), bytes = lanes * size;
    bool is_masked = lanes * wide == 64, is_small = bytes < 16;
    const char *unit = bytes == 8 ? "long long" : "int";
    const char *one = ci_format(ctx, "(%s)a", unit),
               *all = !repeats     ? one
                      : bytes == 8 ? ci_format(ctx, "%s, %s", one, one)
                                   : ci_format(ctx, "%s, %s, %s, %s", one, one, one, one);
    const char *source = is_small ? ci_format(ctx, "(%s __attribute__((vector_size(16)))){%s}", unit, all) : "a";
    return ci_format(
        ctx,
        "typedef %s source __attribute__((vector_size(%d)));\n    %sreturn (%s)"
        "__builtin_ia32_pmov%cx%c%c%d%s((source)%s%s);",
        names[size / 2], is_small ? 16 : bytes,
        is_masked ? ci_format(ctx,
                              "typedef %s result __attribute__((vector_size(64)));\n    ",
                              wide == 8 ? names[4] : names[wide / 2])
                  : "",
        type, ci_dtype_class(from) == CI_CLASS_uint ? 'z' : 's', width_letter(size),
        width_letter(wide), 8 * lanes * wide, is_masked ? "_mask" : "", source,
        is_masked ? ", (result){0}, -1" : "");
}

/* The low bytes of each lane, by a shuffle. */
static const char *
narrowed(CiContext *ctx, const char *type, CiDtype from, CiDtype to, int lanes)
{
    int size = (int)ci_dtype_size(from);
    CiText text = ci_text_new(ctx);
    ci_text_add(&text,
                "typedef char source __attribute__((vector_size(%d)));\n    return "
                "(%s)__builtin_shufflevector((source)a, (source)a",
                lanes * size, type);
    for (int l = 0; l < lanes; l++)
        for (int k = 0; k < (int)ci_dtype_size(to); k++)
            ci_text_add(&text, ", %d", l * size + k);
    ci_text_add(&text, ");");
    return text.data;
}

static const char *
resized(CiContext *ctx, const char *type, CiDtype from, CiDtype to, int lanes, int vector_bytes)
{
    int size = (int)ci_dtype_size(from), other = (int)ci_dtype_size(to),
        bytes = lanes * (size > other ? size : other);
    if (bytes < 16 || bytes > vector_bytes || lanes * (size < other ? size : other) < 4)
        return NULL;
    if (size < other)
        return widened(ctx, type, from, to, lanes, has_masks(vector_bytes));
    return size > 2 * other ? narrowed(ctx, type, from, to, lanes) : NULL;
}

/* F16C and AVX-512 round to nearest even. They shorten a NaN, which round keeps and narrow makes the quiet one. */
static const char *
half(CiContext *ctx, const char *function, int lanes, int vector_bytes)
{
    bool is_long = lanes == 16;
    if (vector_bytes < 32 || (lanes != 4 && lanes != 8 && !is_long) || 4 * lanes > vector_bytes)
        return NULL;
    const char *bits = lanes == 4 ? "" : is_long ? "512_mask" : "256",
               *given = is_long ? "0, (elements){0}, -1" : "0",
               *elements = ci_format(ctx, "__builtin_ia32_vcvtps2ph%s((F)u, %s)", bits, given);
    const char *start = ci_format(ctx,
                                  "typedef short elements __attribute__((vector_size(%d)));\n"
                                  "    const U is_nan = (U)((F)u != (F)u);\n    ",
                                  is_long ? 32 : 16);
    if (!strcmp(function, "narrow"))
        return ci_format(ctx, "%su = (u & ~(is_nan & 0x3fffff)) | (is_nan & 0x400000);\n    return (H)%s%s%s;",
                         start, lanes == 4 ? "((long long __attribute__((vector_size(16))))" : "", elements,
                         lanes == 4 ? ")[0]" : "");
    if (strcmp(function, "round") != 0)
        return NULL;
    const char *made = ci_format(ctx, "__builtin_ia32_vcvtph2ps%s(%s%s)", bits, elements,
                                 is_long ? ", (F){0}, -1, 4" : "");
    return is_long ? ci_format(ctx, "%sreturn (F)((is_nan & u) | (~is_nan & (U)%s));", start, made)
                   : ci_format(ctx, "%sreturn __builtin_ia32_blendvps%s(%s, (F)u, (F)is_nan);", start, bits, made);
}

static char
routines(int vector_bytes)
{
    return vector_bytes == 64 ? 'e' : vector_bytes == 32 ? 'd' : 'b';
}

/* ---- masks ---- */

/* Bytes have none either, but what a compiler makes of 64 of them is short. */
static bool
has_lane_shifts(int size, int vector_bytes)
{
    return vector_bytes == 64 || (vector_bytes == 32 && size >= 4);
}

static const char *
byte_bits(CiContext *ctx, int bytes, int vector_bytes)
{
    if (bytes > vector_bytes || (bytes != 16 && bytes != 32 && bytes != 64))
        return NULL;
    return ci_format(ctx, bytes == 64 ? "__builtin_ia32_cvtb2mask%d((char __attribute__((vector_size(%d))))mask)"
                                      : "(uint32_t)__builtin_ia32_pmovmskb%d((char __attribute__((vector_size(%d))))mask)",
                     8 * bytes, bytes);
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

const CiCInstructions ci_c_x86 = {.rounding = rounding,
                             .fused = fused,
                             .extreme = extreme,
                             .resized = resized,
                             .half = half,
                             .routines = routines,
                             .has_lane_shifts = has_lane_shifts,
                             .byte_bits = byte_bits,
                             .has_masks = has_masks,
                             .masked_load = masked_load,
                             .masked_store = masked_store,
                             .mask_bits = mask_bits,
                             .pack = pack};
