/* Type inference: the value of a node from its op, operands and attributes. */
#ifndef CI_IR_INFER_H
#define CI_IR_INFER_H

#include "ir/graph.h"

/* Fills dtype, rank, sizes, order, strides and the default kind; fails with CI_ERR_SHAPE,
 * CI_ERR_DTYPE or CI_ERR_VALUE and NumPy's message. The attributes of the op must
 * be set before, and are checked: sizes of reshape, expand, slice, diagonal, window, iota, empty, input and extern; order of
 * copy, empty and extern. */
void ci_infer_node(CiGraph *g, CiNode *node);

/* infer_indirect.c */
/* True if a value can be broadcast to these sizes. Adds guards for unknown sizes. */
bool ci_infer_broadcasts(CiGraph *g, const CiNode *node, const CiNode *value, int rank,
                         const CiExpr *const *sizes);
void ci_infer_indirect(CiGraph *g, CiNode *node);
/* Checks an assign or scatter, whose args are the base, a view of it and the value; the value is broadcast to `sizes`. */
void ci_infer_write(CiGraph *g, const CiNode *node, int rank, const CiExpr *const *sizes);

#endif
