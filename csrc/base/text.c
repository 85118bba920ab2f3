/* Text that grows by doubling. Invariant: data[length] is NUL and capacity > length. Numbers never
 * follow the locale: whatever it puts for a decimal point is written as '.'. */
#include "base/text.h"

#include "base/format.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CiText
ci_text_new(CiContext *ctx)
{
    CiText text = {.ctx = ctx, .capacity = 64};
    text.data = ci_new(ctx, text.capacity);
    return text;
}

static void
reserve(CiText *text, size_t more)
{
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return;
    size_t capacity = 2 * text->capacity > need ? 2 * text->capacity : need;
    text->data = ci_grow(text->ctx, text->data, text->length + 1, capacity);
    text->capacity = capacity;
}

void
ci_text_add_chars(CiText *text, const char *chars, size_t length)
{
    reserve(text, length);
    if (length)
        memcpy(text->data + text->length, chars, length);
    text->length += length;
    text->data[text->length] = 0;
}

static void CI_PRINTF(2, 0) add_args(CiText *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t space = text->capacity - text->length;
    int length = ci_vsnprintf(text->data + text->length, space, format, args);
    CI_REQUIRE(text->ctx, length >= 0);
    if ((size_t)length >= space) {
        text->data[text->length] = 0;
        reserve(text, (size_t)length);
        ci_vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    text->length += (size_t)length;
}

void
ci_text_add(CiText *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_args(text, format, args);
    va_end(args);
}

void
ci_text_indent(CiText *text)
{
    size_t indent = text->indent > 0 ? (size_t)text->indent : 0;
    reserve(text, indent);
    memset(text->data + text->length, ' ', indent);
    text->length += indent;
    text->data[text->length] = 0;
}

static void
add_line(CiText *text, const char *format, va_list args)
{
    ci_text_indent(text);
    add_args(text, format, args);
    ci_text_add_chars(text, "\n", 1);
}

void
ci_text_line(CiText *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_line(text, format, args);
    va_end(args);
}

void
ci_text_open(CiText *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_line(text, format, args);
    va_end(args);
    text->indent += 4;
}

void
ci_text_close(CiText *text)
{
    text->indent -= 4;
    ci_text_line(text, "}");
}

static bool
is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void
ci_text_add_safe(CiText *text, const char *name)
{
    reserve(text, strlen(name));
    for (; *name; name++) {
        /* "*" and "/" never meet, for '*' is not let through: a comment cannot be closed. */
        bool safe = is_name_char(*name) || *name == '.' || *name == '-' || *name == '/';
        text->data[text->length++] = safe ? *name : '?';
    }
    text->data[text->length] = 0;
}

bool
ci_name_is_safe(const char *name)
{
    if (!*name || (*name >= '0' && *name <= '9'))
        return false;
    while (*name && is_name_char(*name))
        name++;
    return *name == 0;
}

/* Puts '.' for the locale's decimal point, which may be several bytes long. */
static void
drop_locale(char *digits)
{
    char *to = digits;
    bool in_point = false;
    for (const char *from = digits; *from; from++) {
        bool plain = is_name_char(*from) || *from == '-' || *from == '+';
        if (plain)
            *to++ = *from;
        else if (!in_point)
            *to++ = '.';
        in_point = !plain;
    }
    *to = 0;
}

void
ci_text_add_double(CiText *text, double value)
{
    if (isnan(value) || isinf(value)) {
        ci_text_add(text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    char digits[64];
    /* Fifteen digits without their zeros are the shortest form of any normal number that has one of
     * fifteen or less; subnormal numbers have fewer bits, and so fewer digits. */
    int precision = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(digits, sizeof digits, "%.*g", precision++, value);
    while (precision <= 17 && strtod(digits, NULL) != value);
    drop_locale(digits);
    ci_text_add(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

void
ci_text_add_hex_double(CiText *text, double value, const char *suffix)
{
    if (isnan(value)) {
        ci_text_add(text, "__builtin_nan%s(\"\")", suffix);
        return;
    }
    char digits[64];
    snprintf(digits, sizeof digits, "%a", fabs(value));
    drop_locale(digits);
    const char *open = signbit(value) ? "(-" : "", *close = signbit(value) ? ")" : "";
    if (isinf(value))
        ci_text_add(text, "%s__builtin_inf%s()%s", open, suffix, close);
    else
        ci_text_add(text, "%s%s%s%s", open, digits, suffix, close);
}

bool
ci_text_lists(const char *list, const char *word)
{
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ", ");
        if (length == strlen(word) && !strncmp(at, word, length))
            return true;
        at += length + strspn(at + length, ", ");
    }
    return false;
}
