/* Text that grows: what every printer and emitter writes into. */
#ifndef CI_BASE_TEXT_H
#define CI_BASE_TEXT_H

#include "base/context.h"

typedef struct CiText {
    CiContext *ctx;
    char *data; /* always NUL-terminated */
    size_t length;
    size_t capacity;
    int indent; /* columns before the first character of a line */
} CiText;

CiText ci_text_new(CiContext *ctx);
void ci_text_add(CiText *text, const char *format, ...) CI_PRINTF(2, 3);
void ci_text_add_chars(CiText *text, const char *chars, size_t length);
void ci_text_indent(CiText *text);
/* Indentation, the formatted text, a newline. */
void ci_text_line(CiText *text, const char *format, ...) CI_PRINTF(2, 3);
/* The line that begins a block, "… {", and "}": lines between are indented by four columns more. */
void ci_text_open(CiText *text, const char *format, ...) CI_PRINTF(2, 3);
void ci_text_close(CiText *text);
/* A name or a path made safe inside a comment of any target or of Python: letters, digits, _ . - /
 * only; anything else becomes '?'. */
void ci_text_add_safe(CiText *text, const char *name);
/* Shortest decimal that reads back to the same double, always a float token: "1.0", "-0.0",
 * "1e+22", "inf", "-inf", "nan". */
void ci_text_add_double(CiText *text, double value);
/* C hexadecimal float constant; infinities and NaN as __builtin_ calls. suffix "" or
 * "f". Negative ones stand in parentheses, so the text can follow any operator. */
void ci_text_add_hex_double(CiText *text, double value, const char *suffix);
/* Is the word one of a list with commas or blanks between? */
bool ci_text_lists(const char *list, const char *word);
bool ci_name_is_safe(const char *name); /* [A-Za-z_][A-Za-z0-9_]* */

#endif
