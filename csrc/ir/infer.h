/* Type inference: the value of a node from its op, operands and attributes. */
#ifndef CI_IR_INFER_H
#define CI_IR_INFER_H

#include "ir/graph.h"

/* Fills dtype, rank, sizes, order, strides and the default kind; fails with CI_ERR_SHAPE,
 * CI_ERR_DTYPE or CI_ERR_VALUE and NumPy's message. What is an attribute of the op (sizes of
 * reshape, expand, slice, diagonal, window, iota, empty, input, extern; order of copy, empty,
 * extern) must be there, and is checked. */
void ci_infer_node(CiGraph *g, CiNode *node);

/* infer_indirect.c */
/* True if a value can be broadcast to these sizes; guards those that are not known. */
bool ci_infer_broadcasts(CiGraph *g, const CiNode *node, const CiNode *value, int rank,
                         const CiExpr *const *sizes);
void ci_infer_indirect(CiGraph *g, CiNode *node);
/* assign, scatter: args are base, view of it and the value, stored over elements of these sizes. */
void ci_infer_write(CiGraph *g, const CiNode *node, int rank, const CiExpr *const *sizes);

#endif
