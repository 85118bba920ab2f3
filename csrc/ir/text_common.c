/* Pieces of text that graphs and loops share. Invariant: whatever is printed here reads back to the
 * same value, whatever characters a user's path or name has in it. */
#include "ir/text_common.h"

#include "ir/layout.h"

#include <inttypes.h>
#include <string.h>

/* ---- printing ---- */

static void
print_met(CiText *out, const CiExpr *symbol, void *arg)
{
    CiMap *met = arg;

    if (symbol->symbol_kind != CI_SYMBOL_unbacked) {
        ci_text_add(out, "%s", symbol->name);
        return;
    }
    if (ci_map_find(met, CI_KEY(symbol)) == NULL)
        ci_map_put(met, CI_KEY(symbol), (void *)(uintptr_t)(ci_map_count(met) + 1));
    ci_text_add(out, "u%d", (int)(uintptr_t)ci_map_find(met, CI_KEY(symbol)) - 1);
}

void
ci_form_print_expr(CiText *out, const CiExpr *e, CiMap *met)
{
    if (met == NULL)
        ci_expr_print(out, e, CI_STYLE_text);
    else
        ci_expr_print_with(out, e, CI_STYLE_text, print_met, met);
}

void
ci_form_add_expr(CiText *out, const char *before, const CiExpr *e, const char *after)
{
    ci_text_add(out, "%s", before);
    ci_expr_print(out, e, CI_STYLE_text);
    ci_text_add(out, "%s", after);
}

void
ci_form_print_exprs(CiText *out, int count, const CiExpr *const *exprs, CiMap *met)
{
    for (int k = 0; k < count; k++) {
        ci_text_add(out, k ? "," : "");
        ci_form_print_expr(out, exprs[k], met);
    }
}

void
ci_form_print_ints(CiText *out, int count, const int *values)
{
    ci_text_add(out, "[");
    for (int k = 0; k < count; k++)
        ci_text_add(out, "%s%d", k ? ", " : "", values[k]);
    ci_text_add(out, "]");
}

/* [1,0] */
static void
print_order(CiText *out, int rank, const int8_t *order)
{
    ci_text_add(out, "[");
    for (int k = 0; k < rank; k++)
        ci_text_add(out, "%s%d", k ? "," : "", order[k]);
    ci_text_add(out, "]");
}

void
ci_form_print_type(CiText *out, CiKind kind, CiDtype dtype, int rank, const CiExpr *const *sizes,
                   const int8_t *order, CiMap *met)
{
    ci_text_add(out, "%s%s[",
                kind == CI_KIND_scalar   ? "scalar "
                : kind == CI_KIND_python ? "python "
                                         : "",
                ci_dtype_name(dtype));
    ci_form_print_exprs(out, rank, sizes, met);
    ci_text_add(out, "]");
    if (order && !ci_layout_is_c_order(rank, order)) {
        ci_text_add(out, " order ");
        print_order(out, rank, order);
    }
}

void
ci_form_print_string(CiText *out, const char *text)
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

void
ci_form_print_name(CiText *out, const char *name)
{
    if (ci_name_is_safe(name))
        ci_text_add(out, "%s", name);
    else
        ci_form_print_string(out, name);
}

static bool
is_path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_./-+<>", c);
}

void
ci_form_print_loc(CiText *out, CiLoc loc)
{
    if (loc.line <= 0)
        return;
    const char *file = loc.file ? loc.file : "", *c = file;
    while (*c && is_path_char(*c))
        c++;
    ci_text_add(out, "@");
    if (*c || !*file)
        ci_form_print_string(out, file);
    else
        ci_text_add(out, "%s", file);
    ci_text_add(out, ":%d", loc.line);
    if (loc.quiet)
        ci_text_add(out, " quiet %u", loc.quiet);
}

static void
collect_symbol(void *arg, const CiExpr *symbol)
{
    if (symbol->symbol_kind == CI_SYMBOL_index)
        return;
    ci_map_put(arg, CI_KEY(symbol), (void *)(uintptr_t)symbol);
    if (symbol->limit)
        ci_form_collect_symbols(arg, symbol->limit);
}

void
ci_form_collect_symbols(CiMap *symbols, const CiExpr *e)
{
    if (!ci_expr_is_const(e, NULL))
        ci_expr_visit_symbols(e, collect_symbol, symbols);
}

void
ci_form_print_range(CiText *out, int64_t low, const CiExpr *limit, CiMap *met)
{
    if (low == CI_MINUS_INFINITY)
        ci_text_add(out, "(-inf, ");
    else
        ci_text_add(out, "[%" PRId64 ", ", low);
    if (ci_expr_equals_const(limit, CI_INFINITY))
        ci_text_add(out, "inf");
    else
        ci_form_print_expr(out, limit, met);
    ci_text_add(out, ")");
}

void
ci_form_print_symbol(CiText *out, const CiExpr *symbol, CiMap *met)
{
    static const char *const words[] = {"", "index ", "unbacked ", "argument "};
    ci_text_add(out, "%s", words[symbol->symbol_kind]);
    ci_form_print_expr(out, symbol, met);
    ci_text_add(out, " in ");
    if (symbol->limit) {
        ci_form_print_range(out, symbol->low, symbol->limit, met);
        return;
    }
    if (symbol->low == CI_MINUS_INFINITY)
        ci_text_add(out, "(-inf, ");
    else
        ci_text_add(out, "[%" PRId64 ", ", symbol->low);
    if (symbol->high == CI_INFINITY)
        ci_text_add(out, "inf)");
    else
        ci_text_add(out, "%" PRId64 "]", symbol->high);
}

void
ci_form_require_same(CiContext *ctx, const char *level, const char *once, const char *twice)
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

/* ---- parsing ---- */

void
ci_form_enter(CiLexer *lex, int *depth)
{
    enum { MOST = 2000 };
    if (++*depth > MOST)
        ci_lexer_fail(lex, "more than %d blocks inside of each other", MOST);
    ci_lexer_expect(lex, "{");
}

void
ci_form_leave(CiLexer *lex, int *depth)
{
    ci_lexer_expect(lex, "}");
    --*depth;
}

const CiExpr *const *
ci_form_parse_exprs(CiSym *sym, CiLexer *lex, const char *close, int *count)
{
    const CiExpr **exprs = CI_NEW_ARRAY(lex->ctx, const CiExpr *, CI_MAX_RANK + 1);
    *count = 0;
    while (!ci_lexer_is(lex, close)) {
        if (*count)
            ci_lexer_expect(lex, ",");
        if (*count == CI_MAX_RANK)
            ci_lexer_fail(lex, "more than %d axes", CI_MAX_RANK);
        exprs[(*count)++] = ci_expr_parse(sym, lex);
    }
    return exprs;
}

static void
parse_order(CiLexer *lex, CiFormType *type)
{
    int8_t *order = CI_NEW_ARRAY(lex->ctx, int8_t, type->rank + 1);
    uint32_t seen = 0;
    ci_lexer_expect(lex, "[");
    for (int k = 0; k < type->rank; k++) {
        if (k)
            ci_lexer_expect(lex, ",");
        int64_t axis = ci_lexer_expect_int(lex);
        if (axis < 0 || axis >= type->rank || seen & (uint32_t)1 << axis)
            ci_lexer_fail(lex, "order is no permutation of the axes");
        seen |= (uint32_t)1 << axis;
        order[k] = (int8_t)axis;
    }
    ci_lexer_expect(lex, "]");
    type->order = order;
    type->has_order = true;
}

CiFormType
ci_form_parse_type(CiSym *sym, CiLexer *lex)
{
    CiFormType type = {.kind = CI_KIND_array};
    int nstrides = 0;
    if (ci_lexer_accept(lex, "scalar"))
        type.kind = CI_KIND_scalar;
    else if (ci_lexer_accept(lex, "python"))
        type.kind = CI_KIND_python;
    const char *name = lex->kind == CI_TOKEN_name ? lex->string : "";
    type.dtype = ci_dtype_find(name);
    if (type.dtype == CI_DTYPE_none)
        ci_lexer_fail(lex, "expected a dtype");
    ci_lexer_next(lex);
    ci_lexer_expect(lex, "[");
    type.sizes = ci_form_parse_exprs(sym, lex, "]", &type.rank);
    ci_lexer_expect(lex, "]");
    if (type.kind != CI_KIND_array && type.rank)
        ci_lexer_fail(lex, "a scalar has rank 0");
    type.order = ci_layout_c_order(lex->ctx, type.rank);
    if (ci_lexer_accept(lex, "order"))
        parse_order(lex, &type);
    if (ci_lexer_accept(lex, "strides")) {
        ci_lexer_expect(lex, "[");
        type.strides = ci_form_parse_exprs(sym, lex, "]", &nstrides);
        ci_lexer_expect(lex, "]");
        if (nstrides != type.rank)
            ci_lexer_fail(lex, "%d strides for %d axes", nstrides, type.rank);
    }
    return type;
}

void
ci_form_print_device(CiText *out, int device)
{
    if (device)
        ci_text_add(out, " on %d", device);
}

int
ci_form_parse_device(CiLexer *lex)
{
    if (!ci_lexer_accept(lex, "on"))
        return 0;
    int64_t device = ci_lexer_expect_int(lex);
    if (device < 0 || device >= CI_MAX_DEVICES)
        ci_lexer_fail(lex, "devices are numbered from 0 to %d", CI_MAX_DEVICES - 1);
    return (int)device;
}

const char *
ci_form_parse_name(CiLexer *lex)
{
    if (lex->kind != CI_TOKEN_string)
        return ci_lexer_expect_name(lex);
    const char *name = lex->string;
    ci_lexer_next(lex);
    return name;
}

/* Reads an unquoted path by its characters, because it is not a sequence of tokens. */
CiLoc
ci_form_parse_loc(CiLexer *lex)
{
    CiLoc loc = {.file = ""};
    if (!ci_lexer_is(lex, "@"))
        return loc;
    const char *end = lex->at;
    if (*end == '"') {
        ci_lexer_next(lex);
        loc.file = ci_form_parse_name(lex);
    } else {
        while (*end && is_path_char(*end))
            end++;
        loc.file = ci_intern_chars(lex->ctx, lex->at, (size_t)(end - lex->at));
        lex->at = end;
        ci_lexer_next(lex);
    }
    ci_lexer_expect(lex, ":");
    loc.line = (int)ci_lexer_expect_int(lex);
    if (ci_lexer_accept(lex, "quiet"))
        loc.quiet = (unsigned)ci_lexer_expect_int(lex);
    return loc;
}

CiLoc *
ci_form_parse_locs(CiLexer *lex, int *count)
{
    CiLoc *locs = NULL;
    int capacity = 0;
    *count = 0;
    while (ci_lexer_is(lex, "@"))
        CI_PUSH(lex->ctx, locs, *count, capacity, ci_form_parse_loc(lex));
    return locs;
}

static int64_t
parse_bound(CiLexer *lex, int64_t infinite)
{
    bool is_negative = ci_lexer_is(lex, "-") && *lex->at == 'i';
    if (is_negative)
        ci_lexer_next(lex);
    return ci_lexer_accept(lex, "inf") ? infinite : ci_lexer_expect_int(lex);
}

/* `in [0, s0)` or `in [0, 7]`: the least value, and what is above the largest. */
static int64_t
parse_range(CiSym *sym, CiLexer *lex, const CiExpr **limit)
{
    ci_lexer_expect(lex, "in");
    if (!ci_lexer_accept(lex, "("))
        ci_lexer_expect(lex, "[");
    int64_t low = parse_bound(lex, CI_MINUS_INFINITY);
    ci_lexer_expect(lex, ",");
    if (ci_lexer_accept(lex, "inf"))
        *limit = ci_expr_const(sym, CI_INFINITY);
    else
        *limit = ci_expr_parse(sym, lex);
    if (ci_lexer_accept(lex, "]"))
        *limit = ci_expr_add(sym, *limit, ci_expr_const(sym, 1));
    else
        ci_lexer_expect(lex, ")");
    return low;
}

const CiExpr *
ci_form_parse_symbol(CiSym *sym, CiLexer *lex)
{
    CiSymbolKind kind = CI_SYMBOL_size;
    const CiExpr *limit;
    bool is_index = ci_lexer_accept(lex, "index"), is_unbacked = ci_lexer_accept(lex, "unbacked");
    if (ci_lexer_accept(lex, "argument"))
        kind = CI_SYMBOL_argument;
    const char *name = ci_lexer_expect_name(lex);
    if (ci_lexer_accept(lex, "=")) {
        ci_sym_set_alias(sym, name, ci_expr_parse(sym, lex));
        return ci_sym_find_symbol(sym, name);
    }
    if (is_index) {
        (void)parse_range(sym, lex, &limit);
        return ci_expr_index(sym, name, limit);
    }
    if (is_unbacked)
        return ci_form_parse_range(sym, lex, name, &limit);
    ci_lexer_expect(lex, "in");
    if (!ci_lexer_accept(lex, "("))
        ci_lexer_expect(lex, "[");
    int64_t low = parse_bound(lex, CI_MINUS_INFINITY);
    ci_lexer_expect(lex, ",");
    int64_t high = parse_bound(lex, CI_INFINITY);
    if (!ci_lexer_accept(lex, ")"))
        ci_lexer_expect(lex, "]");
    return ci_expr_symbol(sym, name, kind, low, high);
}

const CiExpr *
ci_form_parse_range(CiSym *sym, CiLexer *lex, const char *name, const CiExpr **limit)
{
    int64_t low = parse_range(sym, lex, limit);
    return ci_expr_unbacked(sym, name, low, ci_expr_equals_const(*limit, CI_INFINITY) ? NULL : *limit);
}
