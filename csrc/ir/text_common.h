/* Text forms: printers and readers of a level share one description of its text. */
#ifndef CI_IR_TEXT_COMMON_H
#define CI_IR_TEXT_COMMON_H

#include "base/map.h"
#include "ir/graph.h"

/* A text that one description prints and reads. With `out`, a function adds the text of the value that it
 * is given, and returns the value. Without, it reads that text from `lex`, and returns what the text says. */
typedef struct CiTextIo {
    CiContext *ctx;
    CiSym *sym;
    CiText *out;
    CiLexer lex;
    /* Printed: NULL, or the symbols of data that were met before. With it these have no names but
     * numbers as they come, u0, u1, so that what was made in the same way prints alike. */
    CiMap *met;
    CiMap *seen, *made; /* Printed: NULL, or the symbols in expressions so far, and those that it declares. */
    int depth; /* of blocks inside of each other */
    /* Read symbols that have names now. Inner ones may take the names of outer ones. */
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
void ci_io_text(CiTextIo *f, const char *text); /* is there always; blanks do not matter to a reader */
bool ci_io_flag(CiTextIo *f, const char *text, bool is); /* is there if it is so */
bool ci_io_is(CiTextIo *f, const char *text); /* read: it is next, and stays there */
void ci_io_indent(CiTextIo *f);
/* A list with commas. True if there is an element k: the first, if it begins with that token; NULL: there
 * is one at least. */
bool ci_io_more(CiTextIo *f, int k, int count, const char *first);
/* The `{` and `}` of blocks that nest: open is printed before the block, close after it. A reader is
 * recursive, so a depth beyond that of any real program is an error. */
void ci_io_enter(CiTextIo *f, const char *open);
void ci_io_leave(CiTextIo *f, const char *close);
const CiExpr *ci_io_enter_scope(CiTextIo *f, const CiExpr *symbol); /* the text declares it */
void ci_io_leave_scope(CiTextIo *f, int outside); /* as many symbols as there were have their names back */
int64_t ci_io_int(CiTextIo *f, int64_t value);
int ci_io_count(CiTextIo *f, int value, int least); /* from the least one to INT_MAX */
const char *ci_io_word(CiTextIo *f, const char *name);
const char *ci_io_name(CiTextIo *f, const char *name);     /* as it is when safe, else quoted */
const char *ci_io_string(CiTextIo *f, const char *string); /* quoted */
int ci_io_choice(CiTextIo *f, const char *const *words, int count, int value, const char *what);
CiOp ci_io_op(CiTextIo *f, CiOp op);
CiDtype ci_io_dtype(CiTextIo *f, CiDtype dtype);
CiConst ci_io_const(CiTextIo *f, CiDtype dtype, CiConst value);
int ci_io_value(CiTextIo *f, int value, int limit); /* %3, below the limit */
void ci_io_expr(CiTextIo *f, const char *before, const CiExpr **e, const char *after);
void ci_io_if(CiTextIo *f, const char *before, const CiExpr **e, const char *after); /* nothing for NULL */
void ci_io_exprs(CiTextIo *f, int *count, const CiExpr *const **exprs, const char *close);
CiLoc ci_io_loc(CiTextIo *f, const char *before, CiLoc loc); /* `@net.py:7 quiet 8 call 80`, or nothing */
CiLoc *ci_io_locs(CiTextIo *f, const CiLoc *locs, int *count);
int ci_io_device(CiTextIo *f, int device); /* ` on 1`, or nothing for 0 */
/* `s0 in [0, inf)`, of which the name has been there. */
const CiExpr *ci_io_bounds(CiTextIo *f, const char *name, const CiExpr *symbol, const CiExpr **limit);
const CiExpr *ci_io_bounded(CiTextIo *f, const CiExpr *symbol, const CiExpr **limit); /* with its name */
CiKind ci_io_kind(CiTextIo *f, CiKind kind); /* a word and a blank, or nothing for an array */
/* kind when not array, dtype, sizes, order and strides when not C: scalar f64[], f32[3,4] order [1,0] */
void ci_io_type(CiTextIo *f, CiTextType *type);
/* s0 in [0, inf); unbacked u0 in [0, s0); index t0 in [0, s0). It is read as `s0 = 8*s1`, too, after which
 * the text may use s0 for the expression. */
const CiExpr *ci_io_symbol(CiTextIo *f, const CiExpr *symbol);
/* A level's text: `symbols {…}` with the symbols that the text uses and neither it nor `defined` declares, then
 * the text. They are in the order in which they were made, because terms of a sum are in that order. */
void ci_io_with_symbols(CiTextIo *f, const CiMap *defined, void (*io)(void *arg), void *arg);
/* Collects the symbols of an expression, loop variables left out, in order of first sight. */
void ci_io_collect_symbols(CiMap *symbols, const CiExpr *e);
/* Fails with the first line of a level that is another one where the level's text is read back. */
void ci_io_require_same(CiContext *ctx, const char *level, const char *once, const char *twice);
void ci_io_end(CiTextIo *f); /* } and no more */

#endif
