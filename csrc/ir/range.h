/* Ranges of the elements of an integer node, with symbolic ends: iota along an axis of s0 is in [0, s0 - 1]. A range
 * is computed on demand for one node, while a graph is built or lowered. Numeric ranges of a whole graph with
 * its loops are intervals (ir/interval.h, passes/range_fold.c); the bounds of an expression are in sym/expr.h. */
#ifndef CI_IR_RANGE_H
#define CI_IR_RANGE_H

#include "ir/graph.h"

/* Inclusive bounds; NULL: unknown. */
typedef struct CiRange {
    const CiExpr *low, *high;
} CiRange;

CiRange ci_node_range(CiSym *sym, const CiNode *node);
/* True if every number in the range is proved to be at least `low`; to be less than `limit`. */
bool ci_range_is_from(CiSym *sym, CiRange range, const CiExpr *low);
bool ci_range_is_below(CiSym *sym, CiRange range, const CiExpr *limit);

/* Prints ranges f { … }, with a line for each node with a known bound: "%3 in [0, s0 - 1]". */
void ci_ranges_print(CiText *out, CiGraph *g);

#endif
