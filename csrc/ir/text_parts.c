/* The parts of texts that levels share: expressions, types, source locations, ranges, symbols. Invariant: they read
 * back to the same value, whatever characters a user's path or name has in it. */
#include "ir/text_common.h"

#include "ir/layout.h"

#include <inttypes.h>
#include <string.h>

/* ---- names ---- */

static void
print_string(CiText *out, const char *text)
{
    ci_text_add(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            ci_text_add(out, "\\%c", *c);
        else if (*c == '\n')
            ci_text_add(out, "\\n");
        else if (*c < 32 || *c > 126)
            ci_text_add(out, "\\x%02x", *c);
        else
            ci_text_add(out, "%c", *c);
    }
    ci_text_add(out, "\"");
}

const char *
ci_io_string(CiTextIo *f, const char *string)
{
    if (f->out) {
        print_string(f->out, string);
        return string;
    }
    if (f->lex.kind != CI_TOKEN_string)
        return ci_lexer_expect_name(&f->lex);
    string = f->lex.string;
    ci_lexer_next(&f->lex);
    return string;
}

const char *
ci_io_name(CiTextIo *f, const char *name)
{
    return f->out && ci_name_is_safe(name) ? ci_io_word(f, name) : ci_io_string(f, name);
}

/* ---- expressions ---- */

static bool
print_met(CiText *out, const CiExpr *symbol, void *arg)
{
    CiMap *met = arg;

    if (symbol->kind != CI_EXPR_symbol || symbol->symbol_kind != CI_SYMBOL_unbacked)
        return false;
    if (ci_map_find(met, CI_KEY(symbol)) == NULL)
        ci_map_put(met, CI_KEY(symbol), (void *)(uintptr_t)(ci_map_count(met) + 1));
    ci_text_add(out, "u%d", (int)(uintptr_t)ci_map_find(met, CI_KEY(symbol)) - 1);
    return true;
}

static void
collect_symbol(void *arg, const CiExpr *symbol)
{
    if (symbol->symbol_kind == CI_SYMBOL_index)
        return;
    ci_map_put(arg, CI_KEY(symbol), (void *)(uintptr_t)symbol);
    if (symbol->limit)
        ci_io_collect_symbols(arg, symbol->limit);
}

void
ci_io_collect_symbols(CiMap *symbols, const CiExpr *e)
{
    if (!ci_expr_is_const(e, NULL))
        ci_expr_visit_symbols(e, collect_symbol, symbols);
}

static void
note_symbol(void *arg, const CiExpr *symbol)
{
    ci_map_put(arg, CI_KEY(symbol), (void *)(uintptr_t)symbol);
    if (symbol->limit && symbol->symbol_kind != CI_SYMBOL_index)
        ci_io_collect_symbols(arg, symbol->limit);
}

void
ci_io_expr(CiTextIo *f, const char *before, const CiExpr **e, const char *after)
{
    ci_io_text(f, before);
    if (f->seen && !ci_expr_is_const(*e, NULL))
        ci_expr_visit_symbols(*e, note_symbol, f->seen);
    if (f->out && f->met)
        ci_expr_print_with(f->out, *e, CI_STYLE_text, print_met, f->met);
    else if (f->out)
        ci_expr_print(f->out, *e, CI_STYLE_text);
    else
        *e = ci_expr_parse(f->sym, &f->lex);
    ci_io_text(f, after);
}

void
ci_io_if(CiTextIo *f, const char *before, const CiExpr **e, const char *after)
{
    if (ci_io_flag(f, before, *e != NULL))
        ci_io_expr(f, "", e, after);
}

void
ci_io_exprs(CiTextIo *f, int *count, const CiExpr *const **exprs, const char *close)
{
    const CiExpr **read = f->out ? NULL : CI_NEW_ARRAY(f->ctx, const CiExpr *, CI_MAX_RANK + 1);
    int n = f->out ? *count : 0;
    for (int k = 0; f->out ? k < n : !ci_io_is(f, close); k++) {
        const CiExpr *e = f->out ? (*exprs)[k] : NULL;
        if (k == CI_MAX_RANK)
            ci_lexer_fail(&f->lex, "more than %d axes", CI_MAX_RANK);
        ci_io_expr(f, k ? "," : "", &e, "");
        if (!f->out)
            read[n++] = e;
    }
    *count = n;
    *exprs = f->out ? *exprs : read;
    ci_io_text(f, close);
}

/* ---- types ---- */

/* 1,0] */
static const int8_t *
io_order(CiTextIo *f, int rank, const int8_t *order)
{
    int8_t *read = CI_NEW_ARRAY(f->ctx, int8_t, rank + 1);
    uint32_t seen = 0;
    for (int k = 0; k < rank; k++) {
        ci_io_text(f, k ? "," : "");
        int64_t axis = ci_io_int(f, f->out ? order[k] : 0);
        if (axis < 0 || axis >= rank || seen & (uint32_t)1 << axis)
            ci_lexer_fail(&f->lex, "order is no permutation of the axes");
        seen |= (uint32_t)1 << axis;
        read[k] = (int8_t)axis;
    }
    ci_io_text(f, "]");
    return read;
}

static bool
are_dense(const CiTextIo *f, const CiTextType *type)
{
    const CiExpr *const *dense = ci_layout_dense_strides(f->ctx, f->sym, type->rank, type->sizes,
                                                         ci_layout_c_order(f->ctx, type->rank));
    for (int k = 0; k < type->rank; k++)
        if (dense[k] != type->strides[k])
            return false;
    return true;
}

CiKind
ci_io_kind(CiTextIo *f, CiKind kind)
{
    if (ci_io_flag(f, "scalar ", kind == CI_KIND_scalar))
        return CI_KIND_scalar;
    return ci_io_flag(f, "python ", kind == CI_KIND_python) ? CI_KIND_python : CI_KIND_array;
}

void
ci_io_type(CiTextIo *f, CiTextType *type)
{
    int nstrides = type->rank;
    type->kind = ci_io_kind(f, type->kind);
    type->dtype = ci_io_dtype(f, type->dtype);
    ci_io_text(f, "[");
    ci_io_exprs(f, &type->rank, &type->sizes, "]");
    if (!f->out && type->kind != CI_KIND_array && type->rank)
        ci_lexer_fail(&f->lex, "a scalar has rank 0");
    bool has_order = type->order && !ci_layout_is_c_order(type->rank, type->order);
    type->has_order = ci_io_flag(f, " order [", has_order);
    if (type->has_order)
        type->order = io_order(f, type->rank, type->order);
    else if (!f->out)
        type->order = ci_layout_c_order(f->ctx, type->rank);
    if (!ci_io_flag(f, " strides [", f->out && type->strides && !are_dense(f, type)))
        return;
    ci_io_exprs(f, &nstrides, &type->strides, "]");
    if (nstrides != type->rank)
        ci_lexer_fail(&f->lex, "%d strides for %d axes", nstrides, type->rank);
}

int
ci_io_device(CiTextIo *f, int device)
{
    if (!ci_io_flag(f, " on ", device != 0))
        return 0;
    int64_t number = ci_io_int(f, device);
    if (number < 0 || number >= CI_MAX_DEVICES)
        ci_lexer_fail(&f->lex, "devices are numbered from 0 to %d", CI_MAX_DEVICES - 1);
    return (int)number;
}

/* ---- places ---- */

static bool
is_path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_./-+<>", c);
}

/* Reads an unquoted path by its characters, because it is not a sequence of tokens. */
static const char *
io_path(CiTextIo *f, const char *file)
{
    CiLexer *lex = &f->lex;
    const char *start = f->out ? file : lex->at, *end = start;
    while (*end && is_path_char(*end))
        end++;
    if (f->out && !*end && *file)
        return ci_io_word(f, file);
    if (f->out)
        return ci_io_string(f, file);
    if (*end == '"' && end == start) {
        ci_lexer_next(lex);
        return ci_io_string(f, NULL);
    }
    file = ci_intern_chars(f->ctx, start, (size_t)(end - start));
    lex->at = end;
    ci_lexer_next(lex);
    return file;
}

CiLoc
ci_io_loc(CiTextIo *f, const char *before, CiLoc loc)
{
    bool has_place = f->out ? loc.line > 0 : ci_lexer_is(&f->lex, "@");
    if (!has_place)
        return f->out ? loc : (CiLoc){.file = ""};
    if (f->out)
        ci_text_add(f->out, "%s@", before);
    loc.file = io_path(f, loc.file ? loc.file : "");
    ci_io_text(f, ":");
    loc.line = ci_io_count(f, loc.line, 1);
    if (ci_io_flag(f, " quiet ", loc.quiet != 0))
        loc.quiet = (unsigned)ci_io_count(f, (int)loc.quiet, 0) & 0xFFFF;
    if (ci_io_flag(f, " call ", loc.call != 0))
        loc.call = (unsigned)ci_io_count(f, (int)loc.call, 0) & 0xFFFF;
    return loc;
}

CiLoc *
ci_io_locs(CiTextIo *f, const CiLoc *locs, int *count)
{
    CiLoc *read = NULL;
    int capacity = 0, n = 0;
    for (int k = 0; f->out ? k < *count : ci_lexer_is(&f->lex, "@"); k++) {
        CiLoc loc = ci_io_loc(f, k ? " " : "  ", f->out ? locs[k] : (CiLoc){0});
        CI_PUSH(f->ctx, read, n, capacity, loc);
    }
    *count = n;
    return read;
}

/* ---- ranges and symbols ---- */

static int64_t
io_bound(CiTextIo *f, int64_t bound, int64_t infinite, const char *word)
{
    return ci_io_flag(f, word, bound == infinite) ? infinite : ci_io_int(f, bound);
}

/* `[0, `, `(-inf, `: the least value. */
static int64_t
io_low(CiTextIo *f, int64_t low)
{
    bool is_open = low == CI_MINUS_INFINITY;
    ci_io_text(f, " in ");
    is_open = ci_io_flag(f, "(", is_open);
    ci_io_text(f, is_open ? "" : "[");
    low = io_bound(f, low, CI_MINUS_INFINITY, "-inf");
    ci_io_text(f, ", ");
    return low;
}

/* `s0)`, `7]`, `inf)`: what is above the largest value. */
static void
io_limit(CiTextIo *f, const CiExpr **limit)
{
    bool is_open = ci_io_flag(f, "inf", f->out && ci_expr_equals_const(*limit, CI_INFINITY));
    if (!is_open)
        ci_io_expr(f, "", limit, "");
    else if (!f->out)
        *limit = ci_expr_const(f->sym, CI_INFINITY);
    if (!f->out && ci_io_flag(f, "]", false))
        *limit = ci_expr_add(f->sym, *limit, ci_expr_const(f->sym, 1));
    else
        ci_io_text(f, ")");
}

const CiExpr *
ci_io_bounds(CiTextIo *f, const char *name, const CiExpr *symbol, const CiExpr **limit)
{
    int64_t low = io_low(f, f->out ? symbol->low : 0);
    io_limit(f, limit);
    if (f->out)
        return symbol;
    return ci_expr_unbacked(f->sym, name, low, ci_expr_equals_const(*limit, CI_INFINITY) ? NULL : *limit);
}

/* The name of a symbol. */
static const char *
io_name_of(CiTextIo *f, const CiExpr *symbol)
{
    if (!f->out)
        return ci_lexer_expect_name(&f->lex);
    ci_io_expr(f, "", &symbol, "");
    return symbol->name;
}

const CiExpr *
ci_io_bounded(CiTextIo *f, const CiExpr *symbol, const CiExpr **limit)
{
    const char *name = io_name_of(f, symbol);
    return ci_io_bounds(f, name, symbol, limit);
}

const CiExpr *
ci_io_symbol(CiTextIo *f, const CiExpr *symbol)
{
    static const char *const words[] = {"", "index ", "unbacked ", "argument "};
    CiSymbolKind kind = f->out ? symbol->symbol_kind : CI_SYMBOL_size;
    const CiExpr *limit = f->out ? symbol->limit : NULL;
    for (CiSymbolKind k = CI_SYMBOL_size; k <= CI_SYMBOL_argument; k++)
        if (*words[k] && ci_io_flag(f, words[k], kind == k))
            kind = k;
    const char *name = io_name_of(f, symbol);
    if (!f->out && ci_io_flag(f, "=", false)) {
        ci_sym_set_alias(f->sym, name, ci_expr_parse(f->sym, &f->lex));
        return ci_sym_find_symbol(f->sym, name);
    }
    if (f->out ? limit != NULL : kind == CI_SYMBOL_unbacked)
        return ci_io_bounds(f, name, symbol, &limit);
    int64_t low = io_low(f, f->out ? symbol->low : 0);
    if (kind == CI_SYMBOL_index) {
        io_limit(f, &limit);
        return ci_expr_index(f->sym, name, limit);
    }
    int64_t high = io_bound(f, f->out ? symbol->high : 0, CI_INFINITY, "inf");
    if (!ci_io_flag(f, ")", high == CI_INFINITY))
        ci_io_text(f, "]");
    return f->out ? symbol : ci_expr_symbol(f->sym, name, kind, low, high);
}

void
ci_io_require_same(CiContext *ctx, const char *level, const char *once, const char *twice)
{
    const char *a = once, *b = twice;
    while (*a && strcspn(a, "\n") == strcspn(b, "\n") && !strncmp(a, b, strcspn(a, "\n"))) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    if (*a || *b)
        ci_fail(ctx, CI_ERR_INTERNAL, "read back, the line of %s\n%.*s\nprints as\n%.*s", level,
                (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

/* ---- texts with symbols ---- */

static bool
is_declared(const CiTextIo *f, const CiMap *defined, const CiExpr *symbol)
{
    return (defined && ci_map_find(defined, CI_KEY(symbol))) || ci_map_find(f->made, CI_KEY(symbol));
}

/* The symbol that was created next after the last; NULL at the end. */
static const CiExpr *
next_symbol(const CiTextIo *f, const CiMap *defined, const CiExpr *last)
{
    const CiExpr *next = NULL;
    for (int k = 0; k < ci_map_count(f->seen); k++) {
        const CiExpr *symbol = ci_map_value_at(f->seen, k);
        if ((!last || symbol->id > last->id) && (!next || symbol->id < next->id) &&
            !is_declared(f, defined, symbol))
            next = symbol;
    }
    return next;
}

static void
read_symbols(CiTextIo *f)
{
    if (!ci_io_flag(f, "symbols {", false))
        return;
    do {
        const CiExpr *symbol = ci_io_symbol(f, NULL);
        if (symbol->kind == CI_EXPR_symbol && symbol->symbol_kind == CI_SYMBOL_index)
            ci_io_enter_scope(f, symbol);
    } while (ci_io_flag(f, ",", false));
    ci_io_text(f, "}");
}

static void
print_symbols(CiTextIo *f, const CiMap *defined)
{
    const char *before = "symbols {";
    CiTextIo plain = ci_io_printer(f->ctx, f->sym, f->out);
    for (int k = 0; k < ci_map_count(f->seen); k++) { /* grows */
        const CiExpr *symbol = ci_map_value_at(f->seen, k);
        if (symbol->limit && !is_declared(f, defined, symbol))
            ci_expr_visit_symbols(symbol->limit, note_symbol, f->seen);
    }
    for (const CiExpr *symbol = NULL; (symbol = next_symbol(f, defined, symbol)) != NULL; before = ", ") {
        ci_io_text(&plain, before);
        ci_io_symbol(&plain, symbol);
    }
    ci_io_text(&plain, *before == ',' ? "}\n" : "");
}

void
ci_io_with_symbols(CiTextIo *f, const CiMap *defined, void (*io)(void *arg), void *arg)
{
    CiText *out = f->out, text = ci_text_new(f->ctx);
    if (!out) {
        read_symbols(f);
        io(arg);
        return;
    }
    text.indent = out->indent;
    f->out = &text;
    f->seen = ci_map_new(f->ctx);
    f->made = ci_map_new(f->ctx);
    io(arg);
    f->out = out;
    print_symbols(f, defined);
    ci_text_add_chars(out, text.data, text.length);
}
