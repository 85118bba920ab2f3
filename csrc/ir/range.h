/* Between which numbers the elements of an integer value lie, as far as can be said without running
 * anything, with ends that are expressions: iota along an axis of s0 is in [0, s0 - 1]. Asked for a
 * node at a time, while a graph is built or lowered. Numbers alone, but of a whole graph with its
 * loops, are intervals (ir/interval.h, passes/range_fold.c); what an expression itself can be are its
 * bounds (sym/expr.h). */
#ifndef CI_IR_RANGE_H
#define CI_IR_RANGE_H

#include "ir/graph.h"

/* Inclusive; NULL: that end is not known. */
typedef struct CiRange {
    const CiExpr *low, *high;
} CiRange;

CiRange ci_node_range(CiSym *sym, const CiNode *node);
/* Proved: every number in the range is at least `low`, is less than `limit`. */
bool ci_range_is_from(CiSym *sym, CiRange range, const CiExpr *low);
bool ci_range_is_below(CiSym *sym, CiRange range, const CiExpr *limit);

/* ranges f { … }: a line for each node of which something is known, "%3 in [0, s0 - 1]". */
void ci_ranges_print(CiText *out, CiGraph *g);

#endif
