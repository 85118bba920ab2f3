/* Functions that print or parse a level's text. One function does both, so that a level's text is described once. */
#ifndef CI_IR_TEXT_COMMON_H
#define CI_IR_TEXT_COMMON_H

#include "base/map.h"
#include "ir/graph.h"

/* The state of printing or parsing. If `out` is set, a function prints the value that it gets and returns it. Otherwise it
 * parses the text at `lex` and returns the value that it has read. */
typedef struct CiTextIo {
    CiContext *ctx;
    CiSym *sym;
    CiText *out;
    CiLexer lex;
    /* Printing: NULL, or the data-dependent symbols printed so far. If it is set, such symbols are renamed u0, u1… in the
     * order of their first use, so that equal graphs have equal texts. */
    CiMap *met;
    CiMap *seen, *made; /* printing: NULL, or the symbols used so far, and those that the text declares */
    int depth; /* of nested blocks */
    /* Parsing: the symbols in scope. An inner symbol may shadow an outer one. */
    const CiExpr **scope;
    int nscope, capscope;
} CiTextIo;

typedef struct CiTextType {
    CiKind kind;
    CiDtype dtype;
    int rank;
    const CiExpr *const *sizes;
    const int8_t *order; /* read: C order when none was written */
    bool has_order;
    const CiExpr *const *strides; /* NULL when none were written */
} CiTextType;

CiTextIo ci_io_printer(CiContext *ctx, CiSym *sym, CiText *out);
CiTextIo ci_io_reader(CiContext *ctx, CiSym *sym, const char *text);
void ci_io_text(CiTextIo *f, const char *text); /* required text; a parser ignores blanks */
bool ci_io_flag(CiTextIo *f, const char *text, bool is); /* optional text, present if `is` */
bool ci_io_is(CiTextIo *f, const char *text); /* parsing: true if the text comes next; consumes nothing */
void ci_io_indent(CiTextIo *f);
/* Iterates over a list with commas: true if it has an element k. An element exists at k = 0 if it begins with the token
 * `first`; NULL: the list is not empty. */
bool ci_io_more(CiTextIo *f, int k, int count, const char *first);
/* The `{` and `}` of blocks that nest: open is printed before the block, close after it. A reader is
 * recursive, so a depth beyond that of any real program is an error. */
void ci_io_enter(CiTextIo *f, const char *open);
void ci_io_leave(CiTextIo *f, const char *close);
const CiExpr *ci_io_enter_scope(CiTextIo *f, const CiExpr *symbol); /* the text declares it */
void ci_io_leave_scope(CiTextIo *f, int outside); /* removes the symbols after the first `outside` */
int64_t ci_io_int(CiTextIo *f, int64_t value);
int ci_io_count(CiTextIo *f, int value, int least); /* in [least, INT_MAX] */
const char *ci_io_word(CiTextIo *f, const char *name);
const char *ci_io_name(CiTextIo *f, const char *name);     /* quoted only if necessary */
const char *ci_io_string(CiTextIo *f, const char *string); /* quoted */
int ci_io_choice(CiTextIo *f, const char *const *words, int count, int value, const char *what);
CiOp ci_io_op(CiTextIo *f, CiOp op);
CiDtype ci_io_dtype(CiTextIo *f, CiDtype dtype);
CiConst ci_io_const(CiTextIo *f, CiDtype dtype, CiConst value);
int ci_io_value(CiTextIo *f, int value, int limit); /* %3; must be below the limit */
void ci_io_expr(CiTextIo *f, const char *before, const CiExpr **e, const char *after);
void ci_io_if(CiTextIo *f, const char *before, const CiExpr **e, const char *after); /* nothing for NULL */
void ci_io_exprs(CiTextIo *f, int *count, const CiExpr *const **exprs, const char *close);
CiLoc ci_io_loc(CiTextIo *f, const char *before, CiLoc loc); /* `@net.py:7 quiet 8 call 80`, or nothing */
CiLoc *ci_io_locs(CiTextIo *f, const CiLoc *locs, int *count);
int ci_io_device(CiTextIo *f, int device); /* ` on 1`, or nothing for 0 */
/* The bounds in `s0 in [0, inf)`; the name has been printed or read before. */
const CiExpr *ci_io_bounds(CiTextIo *f, const char *name, const CiExpr *symbol, const CiExpr **limit);
const CiExpr *ci_io_bounded(CiTextIo *f, const CiExpr *symbol, const CiExpr **limit); /* the name and the bounds */
CiKind ci_io_kind(CiTextIo *f, CiKind kind); /* a word and a blank, or nothing for an array */
/* The kind unless array, the dtype, the sizes, and order and strides unless C: scalar f64[], f32[3,4] order [1,0] */
void ci_io_type(CiTextIo *f, CiTextType *type);
/* s0 in [0, inf); unbacked u0 in [0, s0); index t0 in [0, s0). The parser also accepts
 * `s0 = 8*s1`; then s0 means that expression in the text. */
const CiExpr *ci_io_symbol(CiTextIo *f, const CiExpr *symbol);
/* A level's text after a list `symbols {…}` of the symbols that the text uses and that neither the text nor `defined`
 * declares. The list is in the order of creation, because the terms of a sum are in that order. */
void ci_io_with_symbols(CiTextIo *f, const CiMap *defined, void (*io)(void *arg), void *arg);
/* Collects the symbols of an expression except loop variables, in the order of occurrence. */
void ci_io_collect_symbols(CiMap *symbols, const CiExpr *e);
/* Fails with the first line in which two texts of a level differ: `once` printed, and `twice` after parsing it again. */
void ci_io_require_same(CiContext *ctx, const char *level, const char *once, const char *twice);
void ci_io_end(CiTextIo *f); /* }, the end of the text */

#endif
