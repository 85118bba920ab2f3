/* Builds nodes of the pending graph that have operands. */
#ifndef CX_BUILD_H
#define CX_BUILD_H

#include "value/value.h"

/* Functions that prepare operands and then call one function of the graph's builder. */
typedef struct CxOperand {
    CxTraced *traced; /* borrowed; NULL: a constant */
    CiConst value;    /* in the dtype `want` */
    CiDtype want;     /* it is cast to this first */
    CiKind kind;      /* for a constant */
} CxOperand;
CiNode *cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                           CiKind kind);
CiNode *cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind);
CiNode *cx_build_fold(CxTracer *tracer, CiOp op, CxTraced *a, int naxes,
                      const int *axes); /* reduce, argreduce, scan */
/* A reduction in the given order. pairwise->chunk is an expression of the tracer's sizes. */
CiNode *cx_build_pairwise(CxTracer *tracer, CiOp op, CxTraced *a, int naxes, const int *axes,
                          const CiPairwise *pairwise);
CiNode *cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order);
CiNode *cx_build_concat(CxTracer *tracer, int nargs, CxTraced *const *args, int axis);
/* Products of matrices along the last two axes; the other axes are broadcast. */
CiNode *cx_build_product(CxTracer *tracer, CxTraced *const *args, int rank,
                         const CiExpr *const *sizes);
/* A library call. The result has the layout of NumPy's elementwise loops (is_elementwise), or C order. */
CiNode *cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                        CxTraced *const *args, int rank, const CiExpr *const *sizes,
                        bool is_elementwise);
/* Makes a new version of target's storage, in which the elements of the view are value's. */
int cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value);
CiNode *cx_build_define(CxTracer *tracer, CxTraced *value, const CiExpr *symbol);
CiNode *cx_build_check(CxTracer *tracer, CxTraced *condition, const char *why);

#endif
