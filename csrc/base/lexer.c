/* One token ahead, no buffer: the lexer is a cursor over a NUL-terminated text that outlives it.
 * Numbers are read in the C locale, whatever the process has set. */
#define _GNU_SOURCE
#include "base/lexer.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int
hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void
skip_blank(CiLexer *lex)
{
    for (;; lex->at++) {
        if (*lex->at == '#')
            while (*lex->at && *lex->at != '\n')
                lex->at++;
        if (*lex->at == '\n')
            lex->line++;
        else if (*lex->at != ' ' && *lex->at != '\t' && *lex->at != '\r')
            return;
    }
}

static void
read_name(CiLexer *lex)
{
    while (is_name_start(*lex->at) || is_digit(*lex->at))
        lex->at++;
    size_t length = (size_t)(lex->at - lex->start);
    lex->kind = CI_TOKEN_name;
    lex->string = ci_intern_chars(lex->ctx, lex->start, length);
    if (strcmp(lex->string, "inf") == 0 || strcmp(lex->string, "nan") == 0) {
        lex->kind = CI_TOKEN_float;
        lex->float_value = lex->string[0] == 'i' ? (double)INFINITY : (double)NAN;
    }
}

/* The end of the number at start, which is an int unless *is_float is set. `1..4` is a range. */
static const char *
scan_number(const char *at, bool *is_float)
{
    bool hex = at[0] == '0' && (at[1] == 'x' || at[1] == 'X');
    if (hex)
        at += 2;
    while (hex ? hex_digit(*at) >= 0 : is_digit(*at))
        at++;
    *is_float = false;
    if (*at == '.' && at[1] != '.') {
        *is_float = true;
        at++;
        while (hex ? hex_digit(*at) >= 0 : is_digit(*at))
            at++;
    }
    char mark = hex ? 'p' : 'e';
    if ((*at | 0x20) == mark) {
        const char *digits = at + 1 + (at[1] == '+' || at[1] == '-');
        if (is_digit(*digits)) {
            *is_float = true;
            at = digits;
            while (is_digit(*at))
                at++;
        }
    }
    return at;
}

static void
read_int(CiLexer *lex)
{
    const char *digit = lex->start;
    bool hex = lex->length > 1 && (digit[1] == 'x' || digit[1] == 'X');
    uint64_t base = hex ? 16 : 10, value = 0;
    if (hex && lex->length == 2)
        ci_lexer_fail(lex, "a number has no digits");
    for (digit += hex ? 2 : 0; digit < lex->at; digit++) {
        uint64_t add = (uint64_t)hex_digit(*digit);
        if (value > (UINT64_MAX - add) / base)
            ci_lexer_fail(lex, "an integer does not fit in 64 bits");
        value = value * base + add;
    }
    lex->kind = CI_TOKEN_int;
    lex->int_value = (int64_t)value;
    lex->float_value = (double)value;
}

static void
read_number(CiLexer *lex)
{
    bool is_float;
    lex->at = scan_number(lex->start, &is_float);
    lex->length = (size_t)(lex->at - lex->start);
    if (is_name_start(*lex->at))
        ci_lexer_fail(lex, "a number runs into a name");
    if (!is_float) {
        read_int(lex);
        return;
    }
    lex->kind = CI_TOKEN_float;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    CI_REQUIRE(lex->ctx, plain != (locale_t)0);
    lex->float_value = strtod_l(lex->start, NULL, plain);
    freelocale(plain);
}

/* The character after a backslash at lex->at, which is moved past it. */
static char
read_escape(CiLexer *lex)
{
    char c = *lex->at++;
    if (c == 'n')
        return '\n';
    if (c == '"' || c == '\\')
        return c;
    int high = c == 'x' ? hex_digit(*lex->at) : -1;
    int low = high >= 0 ? hex_digit(lex->at[1]) : -1;
    if (low < 0 || 16 * high + low == 0) {
        lex->at = lex->start;
        ci_lexer_fail(lex, "a string has an escape that is none of \\\" \\\\ \\n \\xHH");
    }
    lex->at += 2;
    return (char)(16 * high + low);
}

static void
read_string(CiLexer *lex)
{
    CiText text = ci_text_new(lex->ctx);
    for (lex->at = lex->start + 1; *lex->at != '"';) {
        if (*lex->at == 0 || *lex->at == '\n')
            ci_lexer_fail(lex, "a string does not end on its line");
        char c = *lex->at++;
        if (c == '\\')
            c = read_escape(lex);
        ci_text_add_chars(&text, &c, 1);
    }
    lex->at++;
    lex->kind = CI_TOKEN_string;
    lex->string = ci_intern_chars(lex->ctx, text.data, text.length);
}

static void
read_punct(CiLexer *lex)
{
    static const char PAIRS[][3] = {"->", "..", "<=", ">=", "==", "!=", "//", ":="};
    lex->kind = CI_TOKEN_punct;
    lex->at++;
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++)
        if (lex->start[0] == PAIRS[i][0] && lex->start[1] == PAIRS[i][1])
            lex->at = lex->start + 2;
}

void
ci_lexer_init(CiLexer *lex, CiContext *ctx, const char *text)
{
    *lex = (CiLexer){.ctx = ctx, .source = text, .text = text, .at = text, .line = 1};
    ci_lexer_next(lex);
}

void
ci_lexer_next(CiLexer *lex)
{
    skip_blank(lex);
    lex->start = lex->at;
    lex->string = NULL;
    lex->length = 0;
    if (*lex->at == 0)
        lex->kind = CI_TOKEN_end;
    else if (is_name_start(*lex->at))
        read_name(lex);
    else if (is_digit(*lex->at))
        read_number(lex);
    else if (*lex->at == '"')
        read_string(lex);
    else
        read_punct(lex);
    lex->length = (size_t)(lex->at - lex->start);
}

bool
ci_lexer_is(const CiLexer *lex, const char *token)
{
    return lex->kind != CI_TOKEN_end && lex->kind != CI_TOKEN_string &&
           strlen(token) == lex->length && memcmp(lex->start, token, lex->length) == 0;
}

bool
ci_lexer_accept(CiLexer *lex, const char *token)
{
    if (!ci_lexer_is(lex, token))
        return false;
    ci_lexer_next(lex);
    return true;
}

/* The token at the cursor, for messages: "'foo'" or "the end". */
static const char *
describe(CiLexer *lex)
{
    if (lex->kind == CI_TOKEN_end)
        return "the end of the text";
    int length = lex->length > 40 ? 40 : (int)lex->length;
    return ci_format(lex->ctx, "'%.*s'", length, lex->start);
}

void
ci_lexer_expect(CiLexer *lex, const char *token)
{
    if (!ci_lexer_accept(lex, token))
        ci_lexer_fail(lex, "'%s' is expected here, not %s", token, describe(lex));
}

const char *
ci_lexer_expect_name(CiLexer *lex)
{
    if (lex->kind != CI_TOKEN_name)
        ci_lexer_fail(lex, "a name is expected here, not %s", describe(lex));
    const char *name = lex->string;
    ci_lexer_next(lex);
    return name;
}

int64_t
ci_lexer_expect_int(CiLexer *lex)
{
    bool minus = ci_lexer_accept(lex, "-");
    if (lex->kind != CI_TOKEN_int)
        ci_lexer_fail(lex, "an integer is expected here, not %s", describe(lex));
    uint64_t bits = (uint64_t)lex->int_value;
    if (bits > (uint64_t)INT64_MAX + minus)
        ci_lexer_fail(lex, "an integer does not fit in 64 bits");
    ci_lexer_next(lex);
    return (int64_t)(minus ? 0 - bits : bits);
}

/* Shows the line of the current token with a caret. */
static _Noreturn void
fail_at(const CiLexer *lex, CiStatus status, const char *message)
{
    const char *first = lex->start;
    while (first > lex->text && first[-1] != '\n')
        first--;
    int width = (int)strcspn(first, "\n"), column = (int)(lex->start - first);
    /* A long line is shown from a little before the place. */
    int skip = column > 80 ? column - 60 : 0;
    width = width - skip > 100 ? 100 : width - skip;
    ci_fail(lex->ctx, status, "line %d, column %d: %s\n  %.*s\n  %*s^", lex->line, column + 1,
            message, width, first + skip, column - skip, "");
}

void
ci_lexer_fail(CiLexer *lex, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail_at(lex, CI_ERR_SYNTAX, message);
}

void
ci_lexer_run(CiContext *ctx, CiLexer *lex, void (*parse)(CiContext *ctx, void *arg), void *arg)
{
    CiStatus status = ci_protect(ctx, parse, arg);
    bool has_place = status == CI_ERR_SYNTAX || status == CI_ERR_MEMORY || status == CI_ERR_INTERNAL;
    const char *message = status ? ci_format(ctx, "%s", ci_context_message(ctx)) : NULL;
    if (has_place)
        ci_fail(ctx, status, "%s", message);
    if (!status)
        return;
    CiLexer at = *lex; /* the last token that was read */
    while (at.start > at.text && strchr(" \t\r\n", at.start[-1]))
        at.line -= *--at.start == '\n';
    at.start -= at.start > at.text;
    fail_at(&at, status, message);
}
