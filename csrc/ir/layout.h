/* Stride orders and strides, by NumPy's rules. */
#ifndef CI_IR_LAYOUT_H
#define CI_IR_LAYOUT_H

#include "ir/graph.h"

/* C order for a rank, shared and constant. */
const int8_t *ci_layout_c_order(CiContext *ctx, int rank);
bool ci_layout_is_c_order(int rank, const int8_t *order);
/* Dense strides (in elements) of an array with these sizes laid out in this order. */
const CiExpr *const *ci_layout_dense_strides(CiContext *ctx, CiSym *sym, int rank,
                                             const CiExpr *const *sizes, const int8_t *order);
/* The order that strides imply: by |stride|, ties and size-1 axes keep C order (NumPy's K order).
 */
const int8_t *ci_layout_order_of_strides(CiContext *ctx, CiSym *sym, int rank,
                                         const CiExpr *const *sizes, const CiExpr *const *strides);
/* True if the strides are dense in C or Fortran order, as NumPy's flags say: an axis of size 1 may have
 * any stride, and so may every axis of an array without elements. unit: the stride between neighbours. */
bool ci_layout_has_dense_steps(CiSym *sym, int rank, const CiExpr *const *sizes,
                               const CiExpr *const *strides, int64_t unit, bool is_fortran);
/* True if the elements are contiguous, in the order that the strides imply. */
bool ci_layout_is_dense(CiContext *ctx, CiSym *sym, int rank, const CiExpr *const *sizes,
                        const CiExpr *const *strides);
/* The order NumPy gives a new result of a ufunc over these operands. */
const int8_t *ci_layout_broadcast_order(CiContext *ctx, int rank, int nargs, CiNode *const *args);
/* The order NumPy gives the concatenation of these arrays. */
const int8_t *ci_layout_concat_order(CiContext *ctx, int rank, int nargs, CiNode *const *args);
/* Result sizes of broadcasting; fails with CI_ERR_SHAPE and NumPy's message. */
const CiExpr *const *ci_layout_broadcast(CiGraph *g, int nargs, CiNode *const *args, int *rank,
                                         CiLoc loc);
/* Strides of a view chain relative to base strides: true and offset/strides when the view is affine
 * in memory (always, but for a reshape that memory order forbids). */
bool ci_layout_view_strides(CiGraph *g, const CiNode *view, const CiNode *base,
                            const CiExpr *const *base_strides, const CiExpr **offset,
                            const CiExpr **strides);
/* The strides of a reshape in C order without a copy; false if NumPy would copy, or if that is unknown. unit: the stride
 * between neighbours. */
bool ci_layout_reshape(CiSym *sym, int rank, const CiExpr *const *sizes,
                       const CiExpr *const *strides, int new_rank, const CiExpr *const *new_sizes,
                       const CiExpr *unit, const CiExpr **new_strides);
/* The strides of a node's value, in elements. An input or a view has its own; any other value is dense in its order. */
const CiExpr *const *ci_layout_strides(CiGraph *g, const CiNode *node);
const CiExpr *ci_layout_count(CiSym *sym, int rank,
                              const CiExpr *const *sizes); /* number of elements */
/* Makes an axis non-negative. Fails with NumPy's message if it is out of bounds. */
int ci_layout_axis(CiGraph *g, int axis, int rank);
/* Sizes as NumPy's messages write them: "(3,4)", "(3,)". */
const char *ci_layout_shape_text(CiContext *ctx, int rank, const CiExpr *const *sizes);

#endif
