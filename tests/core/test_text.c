/* Tests text buffers: long texts, floats printed so that they are read back exactly, and names
 * that are safe in C. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format.h"
#include "base/text.h"
#include "ci_test.h"

TEST(adding_and_lines)
{
    CiText text = ci_text_new(ctx);
    CHECK_TEXT(text.data, "");
    ci_text_add(&text, "%s {\n", "for");
    text.indent += 2;
    ci_text_line(&text, "x = %d;", 4);
    text.indent -= 2;
    ci_text_line(&text, "}");
    ci_text_add_chars(&text, "abc", 2);
    CHECK_TEXT(text.data, "for {\n  x = 4;\n}\nab");
    CHECK_INT(text.length, strlen(text.data));
}

TEST(long_texts)
{
    CiText text = ci_text_new(ctx);
    for (int i = 0; i < 10000; i++)
        ci_text_add(&text, "%d,", i % 10);
    CHECK_INT(text.length, 20000);
    ci_text_add(&text, "%0*d", 100000, 7);
    CHECK_INT(text.length, 120000);
    CHECK_INT(strlen(text.data), 120000);
}

/* Formats into each number of characters as the C library does. */
#define AS_C(...)                                                                                  \
    for (size_t room = 0; room < 64; room++) {                                                     \
        char own[80] = {0}, other[80] = {0};                                                       \
        CHECK_INT(format(own, room, __VA_ARGS__), snprintf(other, room, __VA_ARGS__));             \
        CHECK(memcmp(own, other, sizeof own) == 0);                                                \
    }

static int CI_PRINTF(3, 4) format(char *chars, size_t room, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    int length = ci_vsnprintf(chars, room, form, args);
    va_end(args);
    return length;
}

TEST(conversions)
{
    AS_C("a%sb%dc%c%%%u", "xyz", -5, 'q', 4000000000u);
    AS_C("%" PRId64 " %" PRIu64 " %d", INT64_MIN, UINT64_MAX, INT_MIN);
    AS_C("%lld %llu %ld %lu %zu", LLONG_MIN, ULLONG_MAX, LONG_MAX, ULONG_MAX, SIZE_MAX);
    AS_C("%.*s|%.*s|%.*s", 2, "abc", -1, "abc", 0, "x");
    AS_C("%5d|%-4s|%.2s|%x|%g|%0*d", 3, "ab", "abc", 255, 2.5, 6, 7);
    AS_C("%s", "");
}

static const char *
number(CiContext *ctx, double value)
{
    CiText text = ci_text_new(ctx);
    ci_text_add_double(&text, value);
    return text.data;
}

static const char *
hex(CiContext *ctx, double value, const char *suffix)
{
    CiText text = ci_text_new(ctx);
    ci_text_add_hex_double(&text, value, suffix);
    return text.data;
}

TEST(doubles)
{
    CHECK_TEXT(number(ctx, 0.0), "0.0");
    CHECK_TEXT(number(ctx, -0.0), "-0.0");
    CHECK_TEXT(number(ctx, 0.1), "0.1");
    CHECK_TEXT(number(ctx, 0.1 + 0.2), "0.30000000000000004");
    CHECK_TEXT(number(ctx, 1e22), "1e+22");
    CHECK_TEXT(number(ctx, 5e-324), "5e-324");
    CHECK_TEXT(number(ctx, 123456), "123456.0");
    CHECK_TEXT(number(ctx, INFINITY), "inf");
    CHECK_TEXT(number(ctx, -INFINITY), "-inf");
    CHECK_TEXT(number(ctx, -NAN), "nan");
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            CHECK(strtod(number(ctx, value), NULL) == value);
    }
}

TEST(hexadecimal_doubles)
{
    CHECK_TEXT(hex(ctx, 1.5, ""), "0x1.8p+0");
    CHECK_TEXT(hex(ctx, -1.5, "f"), "(-0x1.8p+0f)");
    CHECK_TEXT(hex(ctx, -0.0, ""), "(-0x0p+0)");
    CHECK_TEXT(hex(ctx, INFINITY, ""), "__builtin_inf()");
    CHECK_TEXT(hex(ctx, -INFINITY, "f"), "(-__builtin_inff())");
    CHECK_TEXT(hex(ctx, NAN, "f"), "__builtin_nanf(\"\")");
}

TEST(safe_names)
{
    CiText text = ci_text_new(ctx);
    ci_text_add_safe(&text, "a/b-c.py */ \n\"\\\xc3\xa9");
    CHECK_TEXT(text.data, "a/b-c.py?"
                          "?/?"
                          "?"
                          "?"
                          "?"
                          "?"
                          "?");
    CHECK(ci_name_is_safe("in0") && ci_name_is_safe("_x9"));
    CHECK(!ci_name_is_safe("") && !ci_name_is_safe("9x") && !ci_name_is_safe("a b") &&
          !ci_name_is_safe("\xc3\xa9"));
}
