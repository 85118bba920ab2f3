/* What the files about ufuncs share. */
#ifndef CX_UFUNC_H
#define CX_UFUNC_H

#include "pyext.h"

typedef struct CxArg {
    CxTraced *traced; /* or NULL: a constant number */
    PyObject *number;
    int code;
} CxArg;

typedef struct CxArgs {
    int nargs;
    CxArg args[3];
    int rank; /* of all operands broadcast */
    const CiExpr *sizes[CI_MAX_RANK];
} CxArgs;

/* Each holds references until closed, opened whole or not. */
int cx_operands_open(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, CxArgs *out);
void cx_operands_close(CxArgs *args);
/* False when NumPy refuses the shapes, or with an exception. */
bool cx_args_broadcast(CxTracer *tracer, CxArgs *args);
bool cx_broadcast_into(CxTracer *tracer, int *rank, const CiExpr **sizes, int more,
                       const CiExpr *const *more_sizes);
int cx_ufunc_nout(int ufunc);
int cx_resolve_slow(CxState *state, int ufunc, int nargs, const int *codes, PyObject *kwargs,
                    CxResolved *out);
const char *cx_ufunc_op(int ufunc, int part, const CxResolved *r, const CxArgs *args, CiOp *op);
int cx_ufunc_node(CxTracer *tracer, int ufunc, int part, CxArgs *args, const CxResolved *r,
                  CiKind kind, CiNode **node, const char **reason);
PyObject *cx_ufunc_raise(CxTracer *tracer, int ufunc, CxArgs *args, PyObject *kwargs);

#endif
