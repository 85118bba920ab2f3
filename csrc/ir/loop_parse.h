/* Pieces of the loop level's text that the kernel level reads too. */
#ifndef CI_IR_LOOP_PARSE_H
#define CI_IR_LOOP_PARSE_H

#include "base/map.h"
#include "ir/loop.h"

#define CI_MAX_SCOPE 64

typedef struct CiLoopParser {
    CiLexer lex;
    CiLoops *loops;
    CiMap *buffers; /* interned name -> CiBuffer */
    const CiExpr *scope[CI_MAX_SCOPE];
    int nscope;
    int depth; /* of regions inside of each other */
} CiLoopParser;

CiLoopParser ci_loop_parser(CiContext *ctx, const char *text); /* of new loops */
/* symbols {…}, the word, f(in0: f32[3], …) */
void ci_loop_parse_head(CiLoopParser *p, const char *word);
void ci_loop_parse_end(CiLoopParser *p); /* return …, } and no more */
const CiExpr *ci_loop_parse_expr(CiLoopParser *p);
/* i0<4096: the variable is in scope until ci_loop_leave_scope goes back to as many as there were.
 */
const CiExpr *ci_loop_parse_variable(CiLoopParser *p, const CiExpr **extent);
void ci_loop_leave_scope(CiLoopParser *p, int outside);
CiBuffer *ci_loop_find_buffer(CiLoopParser *p); /* by the name that is the current token */
CiBuffer *ci_loop_parse_declaration(CiLoopParser *p, const char *name, bool is_input);
CiFoldOrder ci_fold_order_parse(CiSym *sym, CiLexer *lex); /* lanes; rows; pairwise 1 by [8192] */
bool ci_loop_parse_fold(CiLoopParser *p, CiNest *nest); /* sum.lanes; false where there is none */
/* [16*i0 + at0]: a store is written before what it names is known, and read once that is. */
CiLexer ci_loop_skip_store(CiLoopParser *p);
void ci_loop_parse_store(CiLoopParser *p, CiNest *nest, const CiLexer *store);
void ci_loop_parse_body(CiLoopParser *p, CiBody *body); /* { … } */
CiExternItem *ci_loop_parse_extern(CiLoopParser *p);    /* matmul(buf1, in0) key "…", its place */
bool ci_loop_is_check(CiLoopParser *p);
CiItem ci_loop_parse_check(CiLoopParser *p);
void ci_loop_parse_swaps(CiLoopParser *p, CiRegion *region);

#endif
