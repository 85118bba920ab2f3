/* What can be said of the elements of an integer value without running anything. */
#ifndef CI_IR_BOUNDS_H
#define CI_IR_BOUNDS_H

#include "ir/graph.h"

/* Inclusive; NULL: not known. */
typedef struct CiBounds {
    const CiExpr *low, *high;
} CiBounds;

CiBounds ci_node_bounds(CiGraph *g, const CiNode *node);
/* Every element is proved to lie in [low, limit); an infinite bound asks nothing. */
bool ci_node_is_within(CiGraph *g, const CiNode *node, int64_t low, const CiExpr *limit);

#endif
