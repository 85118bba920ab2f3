/* Numbers that are Python's on one path and NumPy's on another. */
#ifndef CX_MIXED_H
#define CX_MIXED_H

#include "value.h"

/* Its `strong`, borrowed; NULL: it is no such number. */
static inline CxStorage *
cx_mixed(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL ? ((CxTraced *)o)->storage->strong
                                                            : NULL;
}

/* mixed.c */
/* In a region it raises RegionBreak, elsewhere it is a break: then the number, if it is mixed, is
 * Python's or NumPy's. */
int cx_mixed_settle(CxTracer *tracer, PyObject *number);
int cx_mixed_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_promotes_alike(CiDtype mixed, PyObject *other);

/* mixed_op.c */
/* 1: cx_mixed_op computes it; else the operands are settled. b: NULL for an operand alone. */
int cx_is_mixed_op(int ufunc, PyObject *a, PyObject *b);
PyObject *cx_mixed_op(int ufunc, PyObject *a, PyObject *b);

#endif
