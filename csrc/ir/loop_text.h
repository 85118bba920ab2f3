/* Pieces of the loop level's text that the kernel level prints too. */
#ifndef CI_IR_LOOP_TEXT_H
#define CI_IR_LOOP_TEXT_H

#include "base/map.h"
#include "ir/loop.h"

void ci_loop_print_declaration(CiText *out, const CiLoops *loops, const CiBuffer *buffer);
void ci_loop_print_head(CiText *out, const CiLoops *loops); /* f(in0: f32[3], …) */
void ci_loop_print_body(CiText *out, const CiNest *nest);   /* { … }, places, a newline */
/* Nothing for serial. */
void ci_fold_order_print(CiText *out, const char *before, CiFoldOrder order);
void ci_loop_print_fold(CiText *out, const CiNest *nest);      /* sum.lanes; nothing when none */
void ci_loop_print_extern(CiText *out, const CiExternItem *e); /* matmul(buf1, in0) key "…" */
void ci_loop_print_results(CiText *out, const CiLoops *loops); /* return …, with its newline */
void ci_loop_print_locs(CiText *out, const CiLoc *locs, int nlocs);
/* Symbols in order of first sight; and the line that declares them but for those defined below. */
void ci_loop_collect_buffers(CiMap *symbols, const CiLoops *loops);
void ci_loop_collect_nest(CiMap *symbols, const CiNest *nest);
void ci_loop_collect_extern(CiMap *symbols, const CiExternItem *ext);
void ci_loop_collect_results(CiMap *symbols, const CiLoops *loops);
void ci_loop_print_symbols(CiText *out, const CiMap *symbols, const CiMap *defined);
/* Prints `u0 in [0, s0)`: sizes of buffers may use a symbol before the check that finds its value.
 * If the limit uses another symbol, that one is printed first. Prints nothing for a symbol that has
 * been printed or is not in `defined`. */
void ci_loop_print_defined(CiText *out, const CiMap *defined, const CiExpr *symbol, CiMap *printed);
void ci_loop_print_check(CiText *out, const CiCheckItem *check); /* a line */
void ci_loop_print_swaps(CiText *out, const CiRegion *region);

#endif
