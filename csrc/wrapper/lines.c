/* The rows of lines.def, and their patterns filled in. */
#include "wrapper/wrapper.h"

#include "ir/layout.h"

#include <string.h>

static const CiLineRow rows[] = {
#define LINE(kind, buffer, other, block, record, python, c)                                        \
    [CI_LINE_##kind] = {#kind,                                                                     \
                        CI_USE_##buffer,                                                           \
                        CI_USE_##other,                                                            \
                        CI_BLOCK_##block,                                                          \
                        CI_RECORD_##record,                                                        \
                        python,                                                                    \
                        c},
#include "wrapper/lines.def"
};

const CiLineRow *
ci_line_row(CiLineKind kind)
{
    return &rows[kind];
}

bool
ci_line_opens(const CiLine *line)
{
    CiLineBlock block = rows[line->kind].block;
    return block == CI_BLOCK_opens || block == CI_BLOCK_turns;
}

bool
ci_line_closes(const CiLine *line)
{
    CiLineBlock block = rows[line->kind].block;
    return block == CI_BLOCK_closes || block == CI_BLOCK_turns;
}

/* ---- patterns ---- */

/* Between quotes, for Python and C. */
static void
add_quoted(CiText *out, const char *text, CiExprStyle style)
{
    char quote = style == CI_STYLE_python ? '\'' : '"';
    ci_text_add(out, "%c", quote);
    for (const char *c = text; *c; c++)
        if (*c == quote || *c == '\\')
            ci_text_add(out, "\\%c", *c);
        else if (*c >= ' ' && *c < 127 && *c != '?')
            ci_text_add(out, "%c", *c);
        else
            ci_text_add(out, style == CI_STYLE_python ? "\\x%02x" : "\\%03o",
                        *(const unsigned char *)c);
    ci_text_add(out, "%c", quote);
}

static bool
is_field(const char *at, size_t length, const char *name)
{
    return strlen(name) == length && !memcmp(at, name, length);
}

static void
add_field(CiText *out, const CiLine *line, const char *at, size_t length, CiExprStyle style)
{
    if (is_field(at, length, "buffer"))
        ci_text_add(out, "%s", line->buffer->name);
    else if (is_field(at, length, "other"))
        ci_text_add(out, "%s", line->other->name);
    else if (is_field(at, length, "symbol"))
        ci_text_add(out, "%s", line->symbol->name);
    else if (is_field(at, length, "value"))
        ci_expr_print(out, line->value, style);
    else if (is_field(at, length, "bytes"))
        ci_expr_print(out, line->bytes, style);
    else if (line->kind == CI_LINE_comment) /* the compiler's own words */
        ci_text_add(out, "%s", line->text);
    else
        add_quoted(out, line->text, style);
}

void
ci_line_print(CiText *out, const CiLine *line, const char *pattern, CiExprStyle style)
{
    for (const char *at = pattern; *at;) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        if (close) {
            add_field(out, line, at + 1, (size_t)(close - at - 1), style);
            at = close + 1;
        } else {
            ci_text_add_chars(out, at++, 1);
        }
    }
}

const CiExpr *
ci_buffer_bytes(CiSym *sym, const CiBuffer *buffer)
{
    return ci_expr_mul(sym, ci_layout_count(sym, buffer->rank, buffer->sizes),
                       ci_expr_const(sym, ci_dtype_size(buffer->dtype)));
}

CiSide
ci_wrapper_side(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return wrapper->side_of[buffer->id];
}

bool
ci_wrapper_is_on_host(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return !wrapper->options.has_device_memory || ci_wrapper_side(wrapper, buffer) == CI_SIDE_host;
}

#define POOL_ALIGNMENT 64

const CiExpr *
ci_pool_capacity(CiSym *sym, const CiExpr *bytes)
{
    const CiExpr *unit = ci_expr_const(sym, POOL_ALIGNMENT);
    if (ci_sym_known_multiple_of(sym, bytes, unit))
        return bytes;
    const CiExpr *more = ci_expr_add(sym, bytes, ci_expr_const(sym, POOL_ALIGNMENT - 1));
    return ci_expr_mul(sym, unit, ci_expr_floordiv(sym, more, unit));
}
