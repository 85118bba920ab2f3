/* Parsing, with Python's precedences:
 *   sum   = term {("+" | "-") term}
 *   term  = unary {("*" | "//" | "%") unary}
 *   unary = "-" unary | int | name | ("min" | "max") "(" sum {"," sum} ")" | "(" [name ":="] sum ")"
 * A name with := is defined until the end of the whole expression.
 * Building canonicalises, so any way to write an expression gives its one node. */
#include "sym/expr_private.h"

#include <string.h>

#define MAX_NESTING 200

static const CiExpr *parse_sum(CiSym *sym, CiLexer *lex, int depth);

static const CiExpr *
parse_extremum(CiSym *sym, CiLexer *lex, bool is_min, int depth)
{
    ci_lexer_expect(lex, "(");
    const CiExpr *out = parse_sum(sym, lex, depth);
    while (ci_lexer_accept(lex, ",")) {
        const CiExpr *next = parse_sum(sym, lex, depth);
        out = is_min ? ci_expr_min(sym, out, next) : ci_expr_max(sym, out, next);
    }
    ci_lexer_expect(lex, ")");
    return out;
}

static const CiExpr *
parse_name(CiSym *sym, CiLexer *lex, int depth)
{
    const char *name = lex->string;
    const CiExpr *symbol = ci_sym_find_symbol(sym, name);
    if (!symbol && (strcmp(name, "min") == 0 || strcmp(name, "max") == 0)) {
        ci_lexer_next(lex);
        return parse_extremum(sym, lex, name[1] == 'i', depth);
    }
    if (!symbol && sym->definitions)
        symbol = ci_map_find(sym->definitions, CI_KEY(ci_intern(sym->ctx, name)));
    if (!symbol)
        ci_lexer_fail(lex, "symbol %s is not declared", name);
    ci_lexer_next(lex);
    return symbol;
}

/* "e0 :=" after a parenthesis. */
static const char *
accept_definition(CiLexer *lex)
{
    CiLexer ahead = *lex;
    if (lex->kind != CI_TOKEN_name)
        return NULL;
    ci_lexer_next(&ahead);
    if (!ci_lexer_accept(&ahead, ":="))
        return NULL;
    const char *name = ci_intern(lex->ctx, lex->string);
    *lex = ahead;
    return name;
}

static const CiExpr *
parse_unary(CiSym *sym, CiLexer *lex, int depth)
{
    if (depth > MAX_NESTING)
        ci_lexer_fail(lex, "an expression is nested too deeply");
    if (lex->kind == CI_TOKEN_int)
        return ci_expr_const(sym, ci_lexer_expect_int(lex));
    if (lex->kind == CI_TOKEN_name)
        return parse_name(sym, lex, depth + 1);
    if (ci_lexer_is(lex, "-")) {
        CiLexer ahead = *lex;
        ci_lexer_next(&ahead);
        /* -9223372036854775808 is one constant: its positive half does not fit. */
        if (ahead.kind == CI_TOKEN_int && ahead.int_value == INT64_MIN)
            return ci_expr_const(sym, ci_lexer_expect_int(lex));
        ci_lexer_next(lex);
        return ci_expr_neg(sym, parse_unary(sym, lex, depth + 1));
    }
    if (!ci_lexer_accept(lex, "("))
        ci_lexer_fail(lex, "an expression is expected here");
    const char *name = accept_definition(lex);
    const CiExpr *out = parse_sum(sym, lex, depth + 1);
    if (name && !sym->definitions)
        sym->definitions = ci_map_new(sym->ctx);
    if (name)
        ci_map_put(sym->definitions, CI_KEY(name), (void *)(uintptr_t)out);
    ci_lexer_expect(lex, ")");
    return out;
}

static const CiExpr *
parse_term(CiSym *sym, CiLexer *lex, int depth)
{
    const CiExpr *out = parse_unary(sym, lex, depth);
    for (;;) {
        if (ci_lexer_accept(lex, "*"))
            out = ci_expr_mul(sym, out, parse_unary(sym, lex, depth));
        else if (ci_lexer_accept(lex, "//"))
            out = ci_expr_floordiv(sym, out, parse_unary(sym, lex, depth));
        else if (ci_lexer_accept(lex, "%"))
            out = ci_expr_mod(sym, out, parse_unary(sym, lex, depth));
        else
            return out;
    }
}

static const CiExpr *
parse_sum(CiSym *sym, CiLexer *lex, int depth)
{
    const CiExpr *out = parse_term(sym, lex, depth);
    for (;;) {
        if (ci_lexer_accept(lex, "+"))
            out = ci_expr_add(sym, out, parse_term(sym, lex, depth));
        else if (ci_lexer_accept(lex, "-"))
            out = ci_expr_sub(sym, out, parse_term(sym, lex, depth));
        else
            return out;
    }
}

const CiExpr *
ci_expr_parse(CiSym *sym, CiLexer *lex)
{
    sym->definitions = NULL;
    return parse_sum(sym, lex, 0);
}
