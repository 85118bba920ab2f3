/* Nodes of the pending graph. */
#ifndef CX_BUILD_H
#define CX_BUILD_H

#include "value.h"

/* graph.c: a body of the caller's own, given a struct that begins with this one, builds into graph
 * and leaves a result where there is one. */
typedef struct CxBuilding {
    CiGraph *graph;
    CiLoc loc;
    CiNode *result;
} CxBuilding;
int cx_graph_open(CxTracer *tracer);
int cx_build_run(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
/* Its result; NULL, which may be no error, where there is none. */
CiNode *cx_build_custom(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building);
/* Inside a body: a size as the graph has it. */
const CiExpr *cx_graph_expr(CxTracer *tracer, const CiExpr *e);
const CiExpr **cx_graph_exprs(CxTracer *tracer, int count, const CiExpr *const *exprs);
CiLoc cx_location(CxTracer *tracer);
bool cx_node_is_quiet(const CiNode *node); /* it computes no array and no number of NumPy's */
bool cx_node_works(const CiNode *node);
void cx_tracer_end(CxTracer *tracer);

/* build_source.c: nodes without operands; NULL or -1 with an exception. */
CiNode *cx_build_const(CxTracer *tracer, CiDtype dtype, CiKind kind, CiConst value);
CiNode *cx_build_expr(CxTracer *tracer, const CiExpr *e);
CiNode *cx_build_fill(CxTracer *tracer, CiDtype dtype, int rank, const CiExpr *const *sizes,
                      const int8_t *order, const CiConst *value); /* value NULL: empty */
CiNode *cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis);
int cx_build_input(CxStorage *storage); /* its value is an input of the pending graph */

/* build.c: one call of the graph's builder each, its operands prepared. */
typedef struct CxOperand {
    CxTraced *traced; /* borrowed; NULL: a constant */
    CiConst value;    /* of the dtype it is wanted in */
    CiDtype want;     /* cast to this first */
    CiKind kind;      /* of a constant */
} CxOperand;
CiNode *cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                           CiKind kind);
CiNode *cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind);
CiNode *cx_build_fold(CxTracer *tracer, CiOp op, CxTraced *a, int naxes,
                      const int *axes); /* reduce, argreduce, scan */
CiNode *cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order);
CiNode *cx_build_concat(CxTracer *tracer, int nargs, CxTraced *const *args, int axis);
CiNode *cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                        CxTraced *const *args, int rank, const CiExpr *const *sizes);
/* A new version of target's storage in which the elements it addresses are value's. */
int cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value);
CiNode *cx_build_define(CxTracer *tracer, CxTraced *value, const CiExpr *symbol);
CiNode *cx_build_check(CxTracer *tracer, CxTraced *condition, const char *why);

/* extern.c */
/* position_axis: as in CiExtern; the same for all calls of one name and key. */
const CiExtern *cx_extern_find(CxState *state, const char *name, const char *key,
                               PyObject *callable, int position_axis);

#endif
