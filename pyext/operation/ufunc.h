/* Ufuncs on traced values: their calls, and the operands that the files about them share. */
#ifndef CX_UFUNC_H
#define CX_UFUNC_H

#include "value/build.h"

/* Why a call is NumPy's where numerics is "exact". */
#define CX_OWN_ROUTINE "bits that only NumPy's own routine gives"
#define CX_OTHERS_LOOP "a ufunc with a loop that is not NumPy's own"

/* ufunc.c, ufunc_fold.c */
int cx_ufuncs_init(CxState *state);

int cx_ufunc_find(CxState *state, PyObject *ufunc); /* its number, -1: none, -2: an exception */
PyObject *cx_ufunc_call(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args);
PyObject *cx_ufunc_into(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args,
                        CxTraced *out);
PyObject *cx_array_ufunc(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
                         PyObject *kwargs);
PyObject *cx_ufunc_general(CxTracer *tracer, PyObject *ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_reduce(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_accumulate(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_outer(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs);
PyObject *cx_ufunc_fallback(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
                            PyObject *kwargs, const char *reason);
PyObject *cx_matmul(CxTracer *tracer, PyObject *a, PyObject *b);
bool cx_matmul_fits(const CxTraced *product, const CxTraced *out);
int cx_normalize_axes(PyObject *axis, int rank, int *axes); /* sorted; -1 with NumPy's exception */

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
    CxTraced *out; /* borrowed: where results go, or NULL */
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
int cx_ufunc_node(CxTracer *tracer, int ufunc, int part, CxArgs *args, const CxResolved *r,
                  CiKind kind, CiNode **node, const char **reason);
PyObject *cx_ufunc_raise(CxTracer *tracer, int ufunc, CxArgs *args, PyObject *kwargs);

/* tagged_op.c */
/* 1: cx_tagged_op computes it; else the operands are resolved. b: NULL for an operand alone. */
int cx_is_tagged_op(int ufunc, PyObject *a, PyObject *b);
PyObject *cx_tagged_op(int ufunc, PyObject *a, PyObject *b);

/* power.c. What NumPy's loop takes where all its elements have this exponent; and a power of an
 * array by one number that only the program knows, where op is what other exponents take. */
CiOp cx_short_power(const CxState *state, CiDtype dtype, double exponent);
CiNode *cx_power_by_number(CxTracer *tracer, CiOp op, const CxOperand *operands);

/* ufunc_loops.c */
int cx_ufunc_loops_init(CxState *state);
/* True if NumPy computes by other instructions for how an operand, or out, is in memory:
 * backwards somewhere, float16 with paddings, complex numbers of one operand into paddings. 1, 0
 * or -1; guarded where strides are symbols. */
int cx_ufunc_lies_otherwise(CxTracer *tracer, const CxArgs *args);
/* [(name, characters of dtypes)] of functions that are our own by default. */
PyObject *cx_own_functions(const CxState *state);
/* The op that calls NumPy's loop, if numerics requires its bits; else none. */
CiOp cx_op_by_numpy(const CxTracer *tracer, CiOp op, CiDtype dtype);

#endif
