/* Pieces of the loop level's text that kernels have too: each is printed or read, as its form is. */
#ifndef CI_IR_LOOP_TEXT_H
#define CI_IR_LOOP_TEXT_H

#include "ir/text_common.h"
#include "ir/loop.h"

/* Loops inside each other, of whose variables a text knows. */
#define CI_MAX_SCOPE 64

typedef struct CiLoopForm {
    CiForm form;
    CiLoops *loops;
    CiMap *buffers;  /* read: interned name -> CiBuffer */
    CiMap *declared; /* read: interned name of a symbol -> where a line declares it, or the loops once a check
                      * defines it */
    /* Printed: */
    int ndeclared;  /* buffers[0..ndeclared) have been declared */
    CiMap *defined; /* symbols that data define -> CiCheckItem */
    CiMap *printed; /* of these, those that stand in the text */
} CiLoopForm;

CiLoopForm ci_loop_printer(CiText *out, const CiLoops *loops);
CiLoopForm ci_loop_reader(CiContext *ctx, const char *text); /* of new loops */
/* the word, f(in0: f32[3], …) */
void ci_loop_form_head(CiLoopForm *p, const char *word);
void ci_loop_form_end(CiLoopForm *p); /* return …, } and no more */
/* i0<4096: the variable is in scope until ci_form_leave_scope. */
const CiExpr *ci_loop_form_variable(CiLoopForm *p, const CiExpr *var, const CiExpr **extent);
CiBuffer *ci_loop_form_buffer(CiLoopForm *p, CiBuffer *buffer); /* its name */
CiBuffer *ci_loop_form_declaration(CiLoopForm *p, CiBuffer *buffer, bool is_input); /* in0: f32[3] */
CiFoldOrder ci_fold_order_form(CiForm *f, CiFoldOrder order); /* lanes; rows; pairwise 1 by [8192] */
bool ci_loop_form_fold(CiLoopForm *p, CiNest *nest); /* sum.lanes; false where there is none */
bool ci_loop_is_fold(const CiLoopForm *p);           /* read: one begins here */
/* [16*i0 + at0]: it precedes the declaration of what it names. A reader skips it, and reads it later. */
CiLexer ci_loop_form_store(CiLoopForm *p, const CiNest *nest);
void ci_loop_read_store(CiLoopForm *p, CiNest *nest, const CiLexer *store);
void ci_loop_form_body(CiLoopForm *p, CiNest *nest); /* { … }, places, a newline */
CiExternItem *ci_loop_form_extern(CiLoopForm *p, CiExternItem *e); /* matmul(buf1, in0) key "…" */
bool ci_loop_is_check(const CiLoopForm *p); /* read: one begins here */
CiCheckItem *ci_loop_form_check(CiLoopForm *p, CiCheckItem *check); /* a line */
void ci_loop_form_swaps(CiLoopForm *p, CiRegion *region);
/* Prints `u0 in [0, s0)`: sizes of buffers may use a symbol before the check that finds its value.
 * If the limit uses another symbol, that one is printed first. Prints nothing for a symbol that has
 * been printed or is not in `defined`. */
void ci_loop_print_defined(CiLoopForm *p, const CiExpr *symbol);
bool ci_loop_read_defined(CiLoopForm *p); /* true if there was one: a check of the text has to define it */

#endif
