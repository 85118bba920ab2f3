/* Ufuncs on traced values: their calls, and the operands that the files about them share. */
#ifndef CX_UFUNC_H
#define CX_UFUNC_H

#include "value/build.h"

/* Reasons why NumPy runs a call under numerics="exact". */
#define CX_OWN_ROUTINE "bits that only NumPy's own routine gives"
#define CX_LOSES_IMAGINARY "a cast of complex numbers to real ones, of which NumPy warns"
#define CX_OTHERS_LOOP "a ufunc with a loop that is not NumPy's own"

/* ufunc.c, ufunc_fold.c */
int cx_ufuncs_init(CxState *state);

/* The number of a ufunc; -1 if it has none, -2 with an exception. */
int cx_ufunc_find(CxState *state, PyObject *ufunc);
PyObject *cx_ufunc_call(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args);
/* A call by an operator. NumPy computes one without a loop if the operands are single numbers. */
PyObject *cx_ufunc_operator(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args);
/* Adds a check that the ufunc of a and b is true; -1 with an exception, also if one of them is NULL. */
int cx_ufunc_check(CxTracer *t, int ufunc, PyObject *a, PyObject *b, const char *why);
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
    CxTraced *traced; /* or NULL for a constant */
    PyObject *number;
    int code;
} CxArg;

typedef struct CxArgs {
    int nargs;
    CxArg args[3];
    int rank; /* rank of the broadcast operands */
    const CiExpr *sizes[CI_MAX_RANK];
    CxTraced *out; /* borrowed; the destination of results, or NULL */
    bool is_called; /* the user called the ufunc itself: NumPy runs its loop even for single numbers */
} CxArgs;

/* Opens and closes the operands. They own references until they are closed; close them also if opening failed. */
int cx_operands_open(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, CxArgs *out);
void cx_operands_close(CxArgs *args);
/* Returns false if NumPy refuses the shapes, or with an exception. */
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
/* 1: cx_tagged_op computes it; else the operands are resolved. b is NULL for a unary operation. */
int cx_is_tagged_op(int ufunc, PyObject *a, PyObject *b);
PyObject *cx_tagged_op(int ufunc, PyObject *a, PyObject *b);

/* power.c: the operation that NumPy's loop uses if all elements have this exponent. op: the operation for general
 * exponents. */
CiOp cx_short_power(const CxState *state, CiOp op, CiDtype dtype, double exponent);
/* A power of an array by one run-time number. */
CiNode *cx_power_by_number(CxTracer *tracer, CiOp op, const CxOperand *operands);

/* ufunc_probe.c: sets the flags of the state that say how NumPy rounds. */
int cx_ufuncs_probe(CxState *state);

/* ufunc_loops.c */
int cx_ufunc_loops_init(CxState *state);
/* True if NumPy uses other instructions because of an operand's or out's layout: negative
 * strides, float16 with gaps, one-operand complex functions into gaps. 1, 0 or -1; guarded if
 * strides are symbolic. */
int cx_ufunc_lies_otherwise(CxTracer *tracer, const CxArgs *args);
/* True if several elements of a power may have the same exponent of an array, in the order in which NumPy's iterator
 * visits them: then its loop may compute them as squares, roots and reciprocals. 1, 0 or -1, guarded. False if no
 * exponent is used twice, or if all operands are in C order and the exponents vary along the last axis. */
int cx_ufunc_repeats_exponents(CxTracer *tracer, const CxArgs *args);
/* True if the default numerics computes the function by other steps than NumPy's, which are faster.
 * The first question about a function may run the test of its vectors. */
bool cx_ufunc_is_slow(CxState *state, CiOp op, CiDtype dtype);
/* The op that calls NumPy's loop, if numerics requires its bits; else none. */
CiOp cx_op_by_numpy(const CxTracer *tracer, CiOp op, CiDtype dtype);

/* ufunc_report.c. [(name, character of the dtype, how its bits are obtained, source of the algorithm)] */
PyObject *cx_functions(CxState *state);
/* (name, character, first, step, blocks) -> (blocks that differ from NumPy's, an operand's bits). */
PyObject *cx_check_function(PyObject *module, PyObject *args);
PyObject *cx_note_proof(PyObject *module, PyObject *args);

#endif
