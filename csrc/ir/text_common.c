/* Text that one description prints and reads. Invariant: what a reader accepts is what a printer adds,
 * but for blanks. */
#include "ir/text_common.h"

#include <inttypes.h>
#include <string.h>

CiTextIo
ci_io_printer(CiContext *ctx, CiSym *sym, CiText *out)
{
    return (CiTextIo){.ctx = ctx, .sym = sym, .out = out};
}

CiTextIo
ci_io_reader(CiContext *ctx, CiSym *sym, const char *text)
{
    CiTextIo f = {.ctx = ctx, .sym = sym};
    ci_lexer_init(&f.lex, ctx, text);
    return f;
}

static bool
is_of_name(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Moves after one token of the text, and after the blanks that follow it. NULL: the lexer is at another one. */
static const char *
after_token(const CiLexer *lex, const char *text)
{
    const char *end = text + lex->length;
    if (lex->kind == CI_TOKEN_end || lex->kind == CI_TOKEN_string ||
        strncmp(text, lex->start, lex->length) != 0 || (is_of_name(end[-1]) && is_of_name(*end)))
        return NULL;
    return end + strspn(end, " \n");
}

/* True if the tokens of the text are there, after which *lex then is. */
static bool
skip(CiLexer *lex, const char *text)
{
    CiLexer at;
    text += strspn(text, " \n");
    if (*text && !after_token(lex, text))
        return false;
    for (at = *lex; *text; ci_lexer_next(&at))
        if ((text = after_token(&at, text)) == NULL)
            return false;
    *lex = at;
    return true;
}

void
ci_io_text(CiTextIo *f, const char *text)
{
    CiLexer of;
    if (f->out) {
        ci_text_add_chars(f->out, text, strlen(text));
        return;
    }
    if (skip(&f->lex, text))
        return;
    for (ci_lexer_init(&of, f->ctx, text); of.kind != CI_TOKEN_end; ci_lexer_next(&of))
        ci_lexer_expect(&f->lex, ci_copy_text(f->ctx, of.start, of.length));
}

bool
ci_io_flag(CiTextIo *f, const char *text, bool is)
{
    if (!f->out)
        return skip(&f->lex, text);
    if (is)
        ci_io_text(f, text);
    return is;
}

bool
ci_io_is(CiTextIo *f, const char *text)
{
    CiLexer ahead = f->lex;
    return skip(&ahead, text);
}

void
ci_io_indent(CiTextIo *f)
{
    if (f->out)
        ci_text_indent(f->out);
}

bool
ci_io_more(CiTextIo *f, int k, int count, const char *first)
{
    if (k)
        return ci_io_flag(f, ", ", k < count);
    return f->out ? count > 0 : !first || ci_lexer_is(&f->lex, first);
}

void
ci_io_enter(CiTextIo *f, const char *open)
{
    enum { MOST = 2000 };
    if (++f->depth > MOST)
        ci_lexer_fail(&f->lex, "more than %d blocks inside of each other", MOST);
    ci_io_text(f, open);
    if (f->out)
        f->out->indent += 2;
}

void
ci_io_leave(CiTextIo *f, const char *close)
{
    f->depth--;
    if (f->out)
        f->out->indent -= 2;
    ci_io_indent(f);
    ci_io_text(f, close);
}

const CiExpr *
ci_io_enter_scope(CiTextIo *f, const CiExpr *symbol)
{
    if (!f->out)
        CI_PUSH(f->ctx, f->scope, f->nscope, f->capscope, symbol);
    else if (f->made && symbol->symbol_kind == CI_SYMBOL_index)
        ci_map_put(f->made, CI_KEY(symbol), (void *)(uintptr_t)symbol);
    return symbol;
}

/* Asking for a variable again gives the name back to it. */
void
ci_io_leave_scope(CiTextIo *f, int outside)
{
    if (f->out)
        return;
    f->nscope = outside;
    for (int k = 0; k < outside; k++)
        if (f->scope[k]->symbol_kind == CI_SYMBOL_index)
            ci_expr_index(f->sym, f->scope[k]->name, f->scope[k]->limit);
}

int64_t
ci_io_int(CiTextIo *f, int64_t value)
{
    if (!f->out)
        return ci_lexer_expect_int(&f->lex);
    ci_text_add(f->out, "%" PRId64, value);
    return value;
}

const char *
ci_io_word(CiTextIo *f, const char *name)
{
    if (!f->out)
        return ci_lexer_expect_name(&f->lex);
    ci_io_text(f, name);
    return name;
}

int
ci_io_choice(CiTextIo *f, const char *const *words, int count, int value, const char *what)
{
    if (f->out) {
        ci_io_text(f, words[value]);
        return value;
    }
    for (int k = 0; k < count; k++)
        if (ci_lexer_accept(&f->lex, words[k]))
            return k;
    ci_lexer_fail(&f->lex, "no %s is called that", what);
}

CiOp
ci_io_op(CiTextIo *f, CiOp op)
{
    const char *name = ci_io_word(f, f->out ? ci_op_name(op) : NULL);
    op = f->out ? op : ci_op_find(name);
    if (op == CI_OP_none)
        ci_lexer_fail(&f->lex, "no operation is called %s", name);
    return op;
}

CiDtype
ci_io_dtype(CiTextIo *f, CiDtype dtype)
{
    const char *name = ci_io_word(f, f->out ? ci_dtype_name(dtype) : NULL);
    dtype = f->out ? dtype : ci_dtype_find(name);
    if (dtype == CI_DTYPE_none)
        ci_lexer_fail(&f->lex, "no dtype is called %s", name);
    return dtype;
}

CiConst
ci_io_const(CiTextIo *f, CiDtype dtype, CiConst value)
{
    if (!f->out)
        return ci_const_parse(&f->lex, dtype);
    ci_const_print(f->out, dtype, value);
    return value;
}

int
ci_io_value(CiTextIo *f, int value, int limit)
{
    ci_io_text(f, "%");
    int64_t number = ci_io_int(f, value);
    if (!f->out && (number < 0 || number >= limit))
        ci_lexer_fail(&f->lex, "%%%" PRId64 " is not defined yet", number);
    return (int)number;
}

void
ci_io_end(CiTextIo *f)
{
    ci_io_leave(f, "}\n");
    if (!f->out && f->lex.kind != CI_TOKEN_end)
        ci_lexer_fail(&f->lex, "unexpected text after the end");
}
