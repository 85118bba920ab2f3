/* The rows of lines.def, and their patterns filled in. */
#include "wrapper/wrapper.h"

#include "ir/layout.h"

#include <stddef.h>
#include <string.h>

static const CiLineRow rows[] = {
#define LINE(kind, buffer, other, block, record, text, python, c)                                        \
    [CI_LINE_##kind] = {#kind,                                                                     \
                        CI_USE_##buffer,                                                           \
                        CI_USE_##other,                                                            \
                        CI_BLOCK_##block,                                                          \
                        CI_RECORD_##record,                                                        \
                        text,                                                                      \
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
    return block == CI_BLOCK_opens || block == CI_BLOCK_reopens;
}

bool
ci_line_closes(const CiLine *line)
{
    CiLineBlock block = rows[line->kind].block;
    return block == CI_BLOCK_closes || block == CI_BLOCK_reopens;
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

static void
add_field(CiText *out, const CiLine *line, CiLineField field, CiExprStyle style)
{
    const void *at = (const char *)line + field.offset;
    if (field.type == CI_FIELD_buffer)
        ci_text_add(out, "%s", (*(const CiBuffer *const *)at)->name);
    else if (field.type == CI_FIELD_symbol || field.type == CI_FIELD_expr)
        ci_expr_print(out, *(const CiExpr *const *)at, style);
    else if (field.type != CI_FIELD_text)
        ci_fail(out->ctx, CI_ERR_INTERNAL, "code has no %s of a line", field.name);
    else if (line->kind == CI_LINE_comment) /* the compiler's own words */
        ci_text_add(out, "%s", line->text);
    else
        add_quoted(out, line->text, style);
}

CiLineField
ci_line_field(CiContext *ctx, const char *at, size_t length)
{
    static const CiLineField fields[] = {
#define FIELD(name, type, member) {#name, CI_FIELD_##type, offsetof(CiLine, member)},
        CI_LINE_FIELDS(FIELD)
#undef FIELD
    };
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        if (strlen(fields[k].name) == length && !memcmp(at, fields[k].name, length))
            return fields[k];
    ci_fail(ctx, CI_ERR_INTERNAL, "no field of a line is called %.*s", (int)length, at);
}

void
ci_line_print(CiText *out, const CiLine *line, const char *pattern, CiExprStyle style)
{
    for (const char *at = pattern; *at;) {
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        if (close) {
            size_t length = (size_t)(close - at - 1);
            add_field(out, line, ci_line_field(out->ctx, at + 1, length), style);
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
ci_wrapper_side_of_call(const CiWrapper *wrapper, const CiExternItem *ext)
{
    const CiMachine *machine = wrapper->machine;
    bool is_known = machine->takes_extern && machine->takes_extern(ext);
    is_known |= machine->has_collectives && ci_op_has(ext->op, CI_FACT_collective);
    bool is_taken = machine->has_memory && (ext->ext->call_on || is_known);
    return is_taken ? CI_SIDE_device + ext->device : CI_SIDE_host;
}

bool
ci_wrapper_records_all(const CiWrapper *wrapper)
{
    return wrapper->machine->records && wrapper->options.graphs;
}

CiSide
ci_wrapper_side(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return wrapper->side_of[buffer->id];
}

bool
ci_wrapper_is_on_host(const CiWrapper *wrapper, const CiBuffer *buffer)
{
    return !wrapper->machine->has_memory || ci_wrapper_side(wrapper, buffer) == CI_SIDE_host;
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
