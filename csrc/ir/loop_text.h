/* Functions that print or parse the parts of the loop level's text that the kernel level shares. Each does both, by the mode of
 * its CiTextIo. */
#ifndef CI_IR_LOOP_TEXT_H
#define CI_IR_LOOP_TEXT_H

#include "ir/text_common.h"
#include "ir/loop.h"

/* Maximum depth of nested loops in a text. */
#define CI_MAX_SCOPE 64

typedef struct CiLoopIo {
    CiTextIo io;
    CiLoops *loops;
    CiMap *buffers;  /* read: interned name -> CiBuffer */
    CiMap *declared; /* read: interned name of a symbol -> where a line declares it, or the loops once a check
                      * defines it */
    /* Used when printing: */
    int ndeclared;  /* buffers[0..ndeclared) have been declared */
    CiMap *defined; /* symbols defined by data -> CiCheckItem */
    CiMap *printed; /* set: those of them that have been printed */
} CiLoopIo;

CiLoopIo ci_loop_printer(CiText *out, const CiLoops *loops);
CiLoopIo ci_loop_reader(CiContext *ctx, const char *text); /* into new loops */
/* the word, f(in0: f32[3], …) */
void ci_loop_io_head(CiLoopIo *p, const char *word);
void ci_loop_io_end(CiLoopIo *p); /* return …, }, the end of the text */
/* i0<4096: the variable is in scope until ci_io_leave_scope. */
const CiExpr *ci_loop_io_variable(CiLoopIo *p, const CiExpr *var, const CiExpr **extent);
CiBuffer *ci_loop_io_buffer(CiLoopIo *p, CiBuffer *buffer); /* its name */
CiBuffer *ci_loop_io_declaration(CiLoopIo *p, CiBuffer *buffer, bool is_input); /* in0: f32[3] */
CiFoldOrder ci_fold_order_io(CiTextIo *f, CiFoldOrder order); /* lanes; rows; pairwise 1 by [8192] */
bool ci_loop_io_fold(CiLoopIo *p, CiNest *nest); /* sum.lanes; false where there is none */
bool ci_loop_is_fold(const CiLoopIo *p);           /* reading: true if a fold begins here */
/* [16*i0 + at0]: the index of a store. It precedes the declarations of its symbols, so ci_loop_io_store skips it when
 * reading, and ci_loop_read_store reads it later. */
CiLexer ci_loop_io_store(CiLoopIo *p, const CiNest *nest);
void ci_loop_read_store(CiLoopIo *p, CiNest *nest, const CiLexer *store);
void ci_loop_io_body(CiLoopIo *p, CiNest *nest); /* { … }, places, a newline */
CiExternItem *ci_loop_io_extern(CiLoopIo *p, CiExternItem *e); /* matmul(buf1, in0) key "…" */
bool ci_loop_is_check(const CiLoopIo *p); /* reading: true if a check begins here */
CiCheckItem *ci_loop_io_check(CiLoopIo *p, CiCheckItem *check); /* a line */
void ci_loop_io_swaps(CiLoopIo *p, CiRegion *region);
/* Prints `u0 in [0, s0)`: sizes of buffers may use a symbol before the check that finds its value.
 * If the limit uses another symbol, that one is printed first. Prints nothing for a symbol that has
 * been printed or is not in `defined`. */
void ci_loop_print_defined(CiLoopIo *p, const CiExpr *symbol);
bool ci_loop_read_defined(CiLoopIo *p); /* true if it read one; a later check of the text must define the symbol */

#endif
