/* Nodes of the pending graph. */
#ifndef CX_BUILD_H
#define CX_BUILD_H

#include "value.h"

/* build.c: one call of the graph's builder each; NULL with an exception. */
typedef struct CxOperand {
    CxTraced *traced; /* borrowed; NULL: a constant */
    CiConst value;    /* of the dtype it is wanted in */
    CiDtype want;     /* cast to this first */
    CiKind kind;      /* of a constant */
} CxOperand;
int cx_graph_open(CxTracer *tracer);
/* A body of the caller's own, given a struct that begins with this one: builds into graph, and
 * leaves a result where there is one. */
typedef struct CxBuilding {
    CiGraph *graph;
    CiLoc loc;
    CiNode *result;
} CxBuilding;
const CiExpr *cx_graph_expr(CxTracer *tracer, const CiExpr *e); /* inside a body */
int cx_build_run(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
/* Its result; NULL, which may be no error, where there is none. */
CiNode *cx_build_custom(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
CiLoc cx_location(CxTracer *tracer);
CiNode *cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                           CiKind kind);
CiNode *cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind);
CiNode *cx_build_const(CxTracer *tracer, CiDtype dtype, CiKind kind, CiConst value);
CiNode *cx_build_fold(CxTracer *tracer, CiOp op, CxTraced *a, int naxes,
                      const int *axes); /* reduce, argreduce, scan */
CiNode *cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order);
CiNode *cx_build_fill(CxTracer *tracer, CiDtype dtype, int rank, const CiExpr *const *sizes,
                      const int8_t *order, const CiConst *value); /* value NULL: empty */
CiNode *cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis);
CiNode *cx_build_concat(CxTracer *tracer, int nargs, CxTraced *const *args, int axis);
CiNode *cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                        CxTraced *const *args, int rank, const CiExpr *const *sizes);
/* A new version of target's storage in which the elements it addresses are value's. */
int cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value);
CiNode *cx_build_expr(CxTracer *tracer, const CiExpr *e);
CiNode *cx_build_define(CxTracer *tracer, CxTraced *value, const CiExpr *symbol);
CiNode *cx_build_check(CxTracer *tracer, CxTraced *condition, const char *why);
CiNode *cx_build_input(CxTracer *tracer, CxStorage *storage);
int cx_build_view(CxTracer *tracer, CxTraced *traced);

/* extern.c */
/* position_axis: as in CiExtern; the same for all calls of one name and key. */
const CiExtern *cx_extern_find(CxState *state, const char *name, const char *key,
                               PyObject *callable, int position_axis);

#endif
