/* Pieces of text that graphs and loops share: types, size lists, locations, strings, symbols. */
#ifndef CI_IR_TEXT_COMMON_H
#define CI_IR_TEXT_COMMON_H

#include "base/map.h"
#include "ir/graph.h"

/* met: NULL, or the symbols of data that were met before. With it these are not printed by name but
 * numbered as they come, u0, u1, so that what was made in the same way prints alike. */
void ci_form_print_expr(CiText *out, const CiExpr *e, CiMap *met);
void ci_form_print_exprs(CiText *out, int count, const CiExpr *const *exprs, CiMap *met); /* 3,s0 */
void ci_form_add_expr(CiText *out, const char *before, const CiExpr *e, const char *after);
void ci_form_print_ints(CiText *out, int count, const int *values); /* [1, 0] */
/* kind when not array, dtype, sizes, order when not C: scalar f64[], f32[3,4] order [1,0] */
void ci_form_print_type(CiText *out, CiKind kind, CiDtype dtype, int rank,
                        const CiExpr *const *sizes, const int8_t *order, CiMap *met);
void ci_form_print_string(CiText *out, const char *text); /* quoted and escaped */
void ci_form_print_name(CiText *out, const char *name);   /* as it is when safe, else quoted */
void ci_form_print_loc(CiText *out, CiLoc loc); /* @net.py:7 quiet 8; nothing when there is none */
/* Collects the symbols of an expression, loop variables left out, in order of first sight. */
void ci_form_collect_symbols(CiMap *symbols, const CiExpr *e);
/* s0 in [0, inf); unbacked u0 in [0, s0); index t0 in [0, s0) */
void ci_form_print_symbol(CiText *out, const CiExpr *symbol, CiMap *met);
/* [0, s0), (-inf, inf): the limit is exclusive */
void ci_form_print_range(CiText *out, int64_t low, const CiExpr *limit, CiMap *met);
/* Fails with the first line of a level that is another one where the level's text is read back. */
void ci_form_require_same(CiContext *ctx, const char *level, const char *once, const char *twice);

typedef struct CiFormType {
    CiKind kind;
    CiDtype dtype;
    int rank;
    const CiExpr *const *sizes;
    const int8_t *order; /* C order when none was written */
    bool has_order;
    const CiExpr *const *strides; /* NULL when none were written */
} CiFormType;

/* The `{` and `}` of blocks that nest. Their parser is recursive, so a depth beyond that of any
 * real program is an error. */
void ci_form_enter(CiLexer *lex, int *depth);
void ci_form_leave(CiLexer *lex, int *depth);
CiFormType ci_form_parse_type(CiSym *sym, CiLexer *lex);
/* Prints ` on 1` for a device number other than 0. */
void ci_form_print_device(CiText *out, int device);
int ci_form_parse_device(CiLexer *lex);
/* Expressions up to (not including) the closing token; arena-owned. */
const CiExpr *const *ci_form_parse_exprs(CiSym *sym, CiLexer *lex, const char *close, int *count);
const char *ci_form_parse_name(CiLexer *lex); /* a name or a string */
CiLoc ci_form_parse_loc(CiLexer *lex);        /* the current token is @; line 0 when it is not */
CiLoc *ci_form_parse_locs(CiLexer *lex, int *count); /* all that follow */
/* Reads what ci_form_print_symbol prints; or `s0 = 8*s1`, after which the text may use s0 for the
 * expression. */
const CiExpr *ci_form_parse_symbol(CiSym *sym, CiLexer *lex);
/* graph_parse.c: `s0 in [0, inf) from in0.sizes 1 hint 7`; an input's type and device, and the input. */
const CiExpr *ci_graph_parse_symbol(CiGraph *g, CiLexer *lex);
CiNode *ci_graph_parse_input(CiGraph *g, CiLexer *lex);
/* `in [0, s0)`, and the unbacked symbol that it declares; *limit is infinite where there is none.
 */
const CiExpr *ci_form_parse_range(CiSym *sym, CiLexer *lex, const char *name, const CiExpr **limit);

#endif
