/* Operators of Python numbers that are traced. */
#ifndef CX_PYTHON_NUMBER_H
#define CX_PYTHON_NUMBER_H

#include "value/value.h"

/* number.c: the columns of number.def. */
/* The condition under which Python's operator and NumPy's give the same value: number.def. */
typedef enum CxTagged {
    CX_TAGGED_never,
    CX_TAGGED_alike,
    CX_TAGGED_same,
    CX_TAGGED_divisor,
    CX_TAGGED_compared,
    CX_TAGGED_bools,
    CX_TAGGED_whole
} CxTagged;
CxTagged cx_tagged_when(int ufunc);

/* A comparison of sizes: the relation of the operands, possibly swapped. */
typedef struct CxCompared {
    CiOp op;
    const char *sign;
    CiRelation relation;
    bool is_swapped;
} CxCompared;
const CxCompared *cx_compared(int ufunc); /* NULL if it is not a comparison */
const CxCompared *cx_compared_by(const char *sign);
CiOp cx_comparison_of(CiRelation relation);

static inline bool
cx_is_python_kind(PyObject *o) /* a Traced one */
{
    return cx_is_traced(o) && cx_kind((CxTraced *)o) == CI_KIND_python;
}

static inline bool
cx_is_python_number(PyObject *o)
{
    return cx_is_python_kind(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) ||
           PyComplex_CheckExact(o) || PyBool_Check(o);
}

static inline PyObject *
cx_python_value(PyObject *o) /* borrowed; NULL if it is only known at run time */
{
    return cx_is_traced(o) ? ((CxTraced *)o)->storage->value : o;
}

/* python_data.c: adds the operation to the graph. NotImplemented if the graph has no such operation. value: Python's result in
 * this call, or NULL. */
PyObject *cx_python_data(CxTracer *tracer, int ufunc, PyObject *a, PyObject *b, PyObject *value);
/* For tagged numbers. */
PyObject *cx_python_data_either(CxTracer *tracer, int ufunc, PyObject *a, PyObject *b);

/* python_number.c: operators of Python numbers of which at least one is Traced. */
PyObject *cx_python_binary(int ufunc, PyObject *a, PyObject *b, binaryfunc python);
PyObject *cx_python_unary(int ufunc, PyObject *a, unaryfunc python);

#endif
