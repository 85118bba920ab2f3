/* Parsing, with Python's precedences:
 *   sum   = term {("+" | "-") term}
 *   term  = unary {("*" | "//" | "%") unary}
 *   unary = "-" unary | int | name | ("min" | "max") "(" sum {"," sum} ")" | "(" sum ")"
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
    if (!symbol)
        ci_lexer_fail(lex, "symbol %s is not declared", name);
    ci_lexer_next(lex);
    return symbol;
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
    const CiExpr *out = parse_sum(sym, lex, depth + 1);
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
    return parse_sum(sym, lex, 0);
}
