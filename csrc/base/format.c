/* Formats the conversions that the texts of programs consist of: %s, %.*s, %c, %d, %u with l, ll or z, and %%. The C library formats
 * all others.
 *
 * glibc takes a slow path for every conversion once a library has registered a specifier of its own, as libquadmath does, which comes
 * with NumPy's OpenBLAS. That path was 14 % of printing a graph. */
#include "base/format.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct Conversion {
    char letter;
    int longs; /* 1 for l, 2 for ll */
    bool is_size, is_bounded;
} Conversion;

typedef struct Output {
    char *chars;
    size_t space, length; /* length: of the whole text, which may have no room */
} Output;

/* Reads what follows a percent sign; its end, or NULL if the C library has to format it. */
static const char *
read_conversion(const char *at, Conversion *found)
{
    *found = (Conversion){.is_bounded = at[0] == '.' && at[1] == '*'};
    at += found->is_bounded ? 2 : 0;
    if (*at == 'z') {
        found->is_size = true;
        at++;
    }
    for (; *at == 'l' && found->longs < 2; at++)
        found->longs++;
    found->letter = *at;
    bool has_length = found->is_size || found->longs != 0, is_number = *at == 'd' || *at == 'u';
    if (found->is_bounded || *at == 's' || *at == 'c' || *at == '%')
        return !has_length && (*at == 's' || (!found->is_bounded && (*at == 'c' || *at == '%'))) ? at + 1 : NULL;
    return is_number && !(found->is_size && found->longs != 0) ? at + 1 : NULL;
}

static void
put(Output *out, const char *chars, size_t count)
{
    if (out->length < out->space) {
        size_t left = out->space - out->length;
        memcpy(out->chars + out->length, chars, count < left ? count : left);
    }
    out->length += count;
}

static void
put_number(Output *out, uint64_t size, bool is_negative)
{
    char digits[24], *first = digits + sizeof digits;
    do
        *--first = (char)('0' + size % 10);
    while ((size /= 10) != 0);
    if (is_negative)
        *--first = '-';
    put(out, first, (size_t)(digits + sizeof digits - first));
}

static void
put_text(Output *out, const char *text, int most)
{
    const char *chars = text != NULL ? text : "(null)";
    const char *end = most >= 0 ? memchr(chars, 0, (size_t)most) : NULL;
    put(out, chars, most < 0 ? strlen(chars) : end != NULL ? (size_t)(end - chars) : (size_t)most);
}

static bool
is_readable(const char *format)
{
    Conversion found;
    for (const char *at = strchr(format, '%'); at != NULL; at = strchr(at, '%'))
        if ((at = read_conversion(at + 1, &found)) == NULL)
            return false;
    return true;
}

int
ci_vsnprintf(char *chars, size_t space, const char *format, va_list args)
{
    Output out = {.chars = chars, .space = space != 0 ? space - 1 : 0};
    if (!is_readable(format))
        return vsnprintf(chars, space, format, args);
    for (const char *at = format; *at != 0;) {
        const char *next = strchr(at, '%');
        Conversion found;
        put(&out, at, next != NULL ? (size_t)(next - at) : strlen(at));
        if (next == NULL)
            break;
        at = read_conversion(next + 1, &found);
        if (found.letter == '%') {
            put(&out, "%", 1);
        } else if (found.letter == 'c') {
            char one = (char)va_arg(args, int);
            put(&out, &one, 1);
        } else if (found.letter == 's') {
            int most = found.is_bounded ? va_arg(args, int) : -1;
            put_text(&out, va_arg(args, const char *), most);
        } else if (found.letter == 'u') {
            put_number(&out,
                       found.is_size      ? va_arg(args, size_t)
                       : found.longs == 2 ? va_arg(args, unsigned long long)
                       : found.longs == 1 ? va_arg(args, unsigned long)
                                          : va_arg(args, unsigned),
                       false);
        } else {
            int64_t value = found.is_size      ? (int64_t)va_arg(args, size_t)
                            : found.longs == 2 ? va_arg(args, long long)
                            : found.longs == 1 ? va_arg(args, long)
                                               : va_arg(args, int);
            put_number(&out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
        }
    }
    if (space != 0)
        chars[out.length < out.space ? out.length : out.space] = 0;
    return out.length <= INT32_MAX ? (int)out.length : -1;
}
