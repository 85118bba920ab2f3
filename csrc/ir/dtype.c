/* Element types and the exact meaning of their casts.
 *
 * Invariant: a CiConst of a dtype is always in that dtype's range: integers are wrapped, floats
 * of less than 64 bits are rounded. Everything that makes one goes through `wrap` or `round_to`, so
 * no caller sees a value the dtype cannot hold. Nothing here has undefined behaviour: a float that
 * does not fit an integer gives what x86's conversion followed by truncation gives. */
#include "ir/dtype.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct DtypeRow {
    const char *name, *storage;
    int size;
    CiClass class;
    char character;
    CiDtype part;
    int exponent, mantissa;
} DtypeRow;

static const DtypeRow rows[CI_DTYPE_COUNT + 1] = {
#define DTYPE(name, storage, size, class, character, part, exponent, mantissa)                     \
    {#name, #storage, size, CI_CLASS_##class, character, CI_DTYPE_##part, exponent, mantissa},
#include "ir/dtypes.def"
    {"none", "", 0, CI_CLASS_bool, 0, CI_DTYPE_none, 0, 0},
};

typedef struct NarrowRow {
    const char *rounding; /* NULL: no narrow float */
    CiDtype from, sum;
} NarrowRow;

static const NarrowRow narrow_rows[CI_DTYPE_COUNT + 1] = {
#define NARROW(name, storage, size, character, exponent, mantissa, io, from, sum)                  \
    [CI_DTYPE_##name] = {"round_" #io, CI_DTYPE_##from, CI_DTYPE_##sum},
#include "ir/dtypes.def"
};

const char *
ci_dtype_name(CiDtype dtype)
{
    return rows[dtype].name;
}

const char *
ci_dtype_storage(CiDtype dtype)
{
    return rows[dtype].storage;
}

CiDtype
ci_dtype_find(const char *name)
{
    int k = 0;
    while (k < CI_DTYPE_COUNT && strcmp(rows[k].name, name))
        k++;
    return (CiDtype)k;
}

int
ci_dtype_size(CiDtype dtype)
{
    return rows[dtype].size;
}

CiClass
ci_dtype_class(CiDtype dtype)
{
    return rows[dtype].class;
}

char
ci_dtype_char(CiDtype dtype)
{
    return rows[dtype].character;
}

CiDtype
ci_dtype_real(CiDtype dtype)
{
    return rows[dtype].part;
}

bool
ci_dtype_is_narrow(CiDtype dtype)
{
    return narrow_rows[dtype].rounding != NULL;
}

CiDtype
ci_dtype_compute(CiDtype dtype)
{
    return ci_dtype_is_narrow(dtype) ? CI_DTYPE_f32 : dtype;
}

CiDtype
ci_dtype_sum(CiDtype dtype)
{
    return ci_dtype_is_narrow(dtype) ? narrow_rows[dtype].sum : dtype;
}

bool
ci_dtype_adds_in_order(CiDtype dtype)
{
    return ci_dtype_is_narrow(dtype) && narrow_rows[dtype].sum == dtype;
}

CiDtype
ci_dtype_rounded_from(CiDtype dtype)
{
    return narrow_rows[dtype].from;
}

const char *
ci_dtype_rounding(CiDtype dtype)
{
    return narrow_rows[dtype].rounding;
}

int
ci_dtype_exponent(CiDtype dtype)
{
    return rows[dtype].exponent;
}

int
ci_dtype_mantissa(CiDtype dtype)
{
    return rows[dtype].mantissa;
}

bool
ci_dtype_is_float(CiDtype dtype)
{
    return rows[dtype].class == CI_CLASS_float;
}

bool
ci_dtype_is_integral(CiDtype dtype)
{
    return dtype != CI_DTYPE_none && rows[dtype].class <= CI_CLASS_uint;
}

/* ---- narrow floats ---- */

/* Drops `shift` low bits, rounding to nearest even. */
static uint64_t
shift_rounded(uint64_t bits, int shift)
{
    uint64_t kept = bits >> shift, lost = bits & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)));
}

uint16_t
ci_narrow_from(CiDtype narrow, double value)
{
    int width = rows[narrow].mantissa, bias = (1 << (rows[narrow].exponent - 1)) - 1;
    uint64_t bits, infinity = (uint64_t)(2 * bias + 1) << width;
    value = ci_dtype_rounded_from(narrow) == CI_DTYPE_f32 ? (double)(float)value : value;
    memcpy(&bits, &value, sizeof bits);
    uint64_t sign = (bits >> 48) & 0x8000, mantissa = bits & (((uint64_t)1 << 52) - 1);
    int exponent = (int)((bits >> 52) & 0x7ff) - 1023, lost = 52 - width;
    if (exponent == 1024) {
        uint64_t payload = mantissa >> lost;
        return (uint16_t)(sign | infinity | (mantissa && !payload ? 1 : payload));
    }
    if (exponent > bias)
        return (uint16_t)(sign | infinity);
    if (exponent >= 1 - bias) /* a carry out of the mantissa raises the exponent, up to infinity */
        return (uint16_t)(sign |
                          (((uint64_t)(exponent + bias) << width) + shift_rounded(mantissa, lost)));
    if (exponent < -bias - width)
        return (uint16_t)sign;
    return (uint16_t)(sign |
                      shift_rounded(mantissa | ((uint64_t)1 << 52), lost + 1 - bias - exponent));
}

float
ci_narrow_to_float(CiDtype narrow, uint16_t element)
{
    int width = rows[narrow].mantissa, bias = (1 << (rows[narrow].exponent - 1)) - 1;
    uint32_t sign = (uint32_t)(element & 0x8000) << 16, number = element & 0x7fff;
    uint32_t exponent = number >> width, mantissa = number & ((1u << width) - 1);
    uint32_t bits = sign | mantissa << (23 - width);
    if (exponent == 0) { /* zero or subnormal, exact in float */
        float magnitude = ldexpf((float)mantissa, 1 - bias - width);
        return sign ? -magnitude : magnitude;
    }
    bits |= (exponent == 2 * (uint32_t)bias + 1 ? 255 : exponent + 127 - (uint32_t)bias) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- casts ---- */

/* Two's complement wrap of 64 bits to the width and signedness of an integer dtype. */
static int64_t
wrap(CiDtype dtype, uint64_t bits)
{
    int width = 8 * rows[dtype].size;
    if (width == 64)
        return (int64_t)bits;
    uint64_t low = bits & (((uint64_t)1 << width) - 1);
    bool is_negative = rows[dtype].class == CI_CLASS_int && low >> (width - 1);
    return (int64_t)(is_negative ? low | ~(uint64_t)0 << width : low);
}

static double
round_to(CiDtype real, double value)
{
    if (ci_dtype_is_narrow(real))
        return (double)ci_narrow_to_float(real, ci_narrow_from(real, value));
    return real == CI_DTYPE_f32 ? (double)(float)value : value;
}

static uint64_t
truncate64(double value)
{
    if (value >= -0x1p63 && value < 0x1p63)
        return (uint64_t)(int64_t)value;
    return (uint64_t)1 << 63;
}

static int64_t
int_from_double(CiDtype to, double value)
{
    if (to == CI_DTYPE_u64 && value >= 0x1p63)
        return (int64_t)(value < 0x1p64 ? (uint64_t)value : (uint64_t)0);
    bool through_32 = to != CI_DTYPE_i64 && to != CI_DTYPE_u64 && to != CI_DTYPE_u32;
    if (through_32 && !(value > -2147483649.0 && value < 2147483648.0))
        return wrap(to, (uint64_t)1 << 31);
    return wrap(to, truncate64(value));
}

/* Narrow floats are converted through float, as in NumPy. f32 is converted directly, because two
 * roundings would differ from one. */
static double
double_from_int(CiDtype from, CiDtype to, int64_t i)
{
    bool is_unsigned = from == CI_DTYPE_u64;
    if (to == CI_DTYPE_f64)
        return is_unsigned ? (double)(uint64_t)i : (double)i;
    float value = is_unsigned ? (float)(uint64_t)i : (float)i;
    return round_to(to, (double)value);
}

CiConst
ci_const_cast(CiConst v, CiDtype from, CiDtype to)
{
    CiConst result = {0, 0.0, 0.0};
    bool from_integral = ci_dtype_is_integral(from);
    CiDtype real = ci_dtype_real(to);
    if (to == CI_DTYPE_bool)
        result.i = from_integral ? v.i != 0
                                 : v.re != 0 || (rows[from].class == CI_CLASS_complex && v.im != 0);
    else if (ci_dtype_is_integral(to))
        result.i = from_integral ? wrap(to, (uint64_t)v.i) : int_from_double(to, v.re);
    else
        result.re = from_integral ? double_from_int(from, real, v.i) : round_to(real, v.re);
    if (rows[to].class == CI_CLASS_complex && rows[from].class == CI_CLASS_complex)
        result.im = round_to(real, v.im);
    return result;
}

CiConst
ci_const_int(CiDtype dtype, int64_t value)
{
    return ci_const_cast((CiConst){value, 0.0, 0.0}, CI_DTYPE_i64, dtype);
}

CiConst
ci_const_double(CiDtype dtype, double value)
{
    return ci_const_cast((CiConst){0, value, 0.0}, CI_DTYPE_f64, dtype);
}

static bool
same_double(double a, double b)
{
    return (a != a && b != b) || (a == b && signbit(a) == signbit(b));
}

bool
ci_const_equal(CiDtype dtype, CiConst a, CiConst b)
{
    if (ci_dtype_is_integral(dtype))
        return a.i == b.i;
    return same_double(a.re, b.re) &&
           (rows[dtype].class == CI_CLASS_float || same_double(a.im, b.im));
}

/* ---- memory ---- */

static void
store_real(CiDtype dtype, double value, void *element)
{
    if (dtype == CI_DTYPE_f64) {
        memcpy(element, &value, sizeof value);
    } else if (dtype == CI_DTYPE_f32) {
        float narrow = (float)value;
        memcpy(element, &narrow, sizeof narrow);
    } else {
        uint16_t narrow = ci_narrow_from(dtype, value);
        memcpy(element, &narrow, sizeof narrow);
    }
}

static double
load_real(CiDtype dtype, const void *element)
{
    if (dtype == CI_DTYPE_f64) {
        double value;
        memcpy(&value, element, sizeof value);
        return value;
    }
    if (dtype == CI_DTYPE_f32) {
        float value;
        memcpy(&value, element, sizeof value);
        return value;
    }
    uint16_t narrow;
    memcpy(&narrow, element, sizeof narrow);
    return (double)ci_narrow_to_float(dtype, narrow);
}

void
ci_const_store(CiDtype dtype, CiConst v, void *element)
{
    CiDtype real = ci_dtype_real(dtype);
    if (ci_dtype_is_integral(dtype)) {
        uint8_t b = (uint8_t)v.i;
        uint16_t h = (uint16_t)v.i;
        uint32_t w = (uint32_t)v.i;
        int size = rows[dtype].size;
        const void *source = size == 1   ? (void *)&b
                             : size == 2 ? (void *)&h
                             : size == 4 ? (void *)&w
                                         : (void *)&v.i;
        memcpy(element, source, (size_t)size);
        return;
    }
    store_real(real, v.re, element);
    if (real != dtype)
        store_real(real, v.im, (char *)element + rows[real].size);
}

static uint64_t
load_bits(int size, const void *element)
{
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (size) {
    case 1:
        memcpy(&b, element, sizeof b);
        return b;
    case 2:
        memcpy(&h, element, sizeof h);
        return h;
    case 4:
        memcpy(&w, element, sizeof w);
        return w;
    default:
        memcpy(&d, element, sizeof d);
        return d;
    }
}

CiConst
ci_const_load(CiDtype dtype, const void *element)
{
    CiConst v = {0, 0.0, 0.0};
    CiDtype real = ci_dtype_real(dtype);
    if (ci_dtype_is_integral(dtype)) {
        uint64_t bits = load_bits(rows[dtype].size, element);
        v.i = dtype == CI_DTYPE_bool ? bits != 0 : wrap(dtype, bits);
        return v;
    }
    v.re = load_real(real, element);
    if (real != dtype)
        v.im = load_real(real, (const char *)element + rows[real].size);
    return v;
}

/* ---- text ---- */

/* Shortest decimal that rounds back to the value in its own dtype, so that 0.1 of f32 prints as
 * 0.1. */
static void
print_real(CiText *out, CiDtype dtype, double value)
{
    if (dtype != CI_DTYPE_f64 && isfinite(value)) {
        char digits[40];
        for (int precision = 1; precision <= 9; precision++) {
            snprintf(digits, sizeof digits, "%.*e", precision - 1, value);
            double candidate = strtod(digits, NULL);
            if (round_to(dtype, candidate) == value) {
                value = value == 0 ? value : candidate;
                break;
            }
        }
    }
    if (value != value)
        ci_text_add(out, "nan");
    else
        ci_text_add_double(out, value);
}

void
ci_const_print(CiText *out, CiDtype dtype, CiConst v)
{
    CiDtype real = ci_dtype_real(dtype);
    if (dtype == CI_DTYPE_bool) {
        ci_text_add(out, v.i ? "true" : "false");
    } else if (rows[dtype].class == CI_CLASS_uint) {
        ci_text_add(out, "%" PRIu64, (uint64_t)v.i);
    } else if (rows[dtype].class == CI_CLASS_int) {
        ci_text_add(out, "%" PRId64, v.i);
    } else if (real == dtype) {
        print_real(out, dtype, v.re);
    } else {
        ci_text_add(out, "(");
        print_real(out, real, v.re);
        ci_text_add(out, ", ");
        print_real(out, real, v.im);
        ci_text_add(out, ")");
    }
}

/* The lexer's integers are 63 bits wide; the digits of the token give all 64. */
static uint64_t
parse_digits(CiLexer *lex)
{
    uint64_t value = 0;
    for (size_t k = 0; k < lex->length; k++) {
        uint64_t digit = (uint64_t)(lex->start[k] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            ci_lexer_fail(lex, "expected a 64-bit decimal integer");
        value = 10 * value + digit;
    }
    ci_lexer_next(lex);
    return value;
}

static double
parse_real(CiLexer *lex, CiDtype dtype)
{
    bool is_negative = ci_lexer_accept(lex, "-");
    if (lex->kind != CI_TOKEN_float && lex->kind != CI_TOKEN_int)
        ci_lexer_fail(lex, "expected a number");
    double value =
        lex->kind == CI_TOKEN_float ? lex->float_value : (double)(uint64_t)lex->int_value;
    ci_lexer_next(lex);
    return round_to(dtype, is_negative ? -value : value);
}

static int64_t
parse_integer(CiLexer *lex, CiDtype dtype)
{
    bool is_negative = ci_lexer_accept(lex, "-");
    if (lex->kind != CI_TOKEN_int)
        ci_lexer_fail(lex, "expected an integer");
    uint64_t magnitude = parse_digits(lex);
    int64_t value = wrap(dtype, is_negative ? 0 - magnitude : magnitude);
    bool fits = dtype == CI_DTYPE_u64 ? !is_negative || !magnitude
                                      : (value < 0) == is_negative || !magnitude;
    uint64_t back = value < 0 && dtype != CI_DTYPE_u64 ? 0 - (uint64_t)value : (uint64_t)value;
    if (!fits || back != magnitude)
        ci_lexer_fail(lex, "integer does not fit %s", ci_dtype_name(dtype));
    return value;
}

CiConst
ci_const_parse(CiLexer *lex, CiDtype dtype)
{
    CiConst v = {0, 0.0, 0.0};
    CiDtype real = ci_dtype_real(dtype);
    if (dtype == CI_DTYPE_bool) {
        v.i = ci_lexer_accept(lex, "true");
        if (!v.i)
            ci_lexer_expect(lex, "false");
    } else if (ci_dtype_is_integral(dtype)) {
        v.i = parse_integer(lex, dtype);
    } else if (real == dtype) {
        v.re = parse_real(lex, real);
    } else {
        ci_lexer_expect(lex, "(");
        v.re = parse_real(lex, real);
        ci_lexer_expect(lex, ",");
        v.im = parse_real(lex, real);
        ci_lexer_expect(lex, ")");
    }
    return v;
}
