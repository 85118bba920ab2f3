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
int cx_refuse_mixed(CxTracer *tracer); /* -1 */
int cx_mixed_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_promotes_alike(CiDtype mixed, PyObject *other);

/* mixed_op.c */
bool cx_is_mixed_op(PyObject *a, PyObject *b); /* Python's operation if the operand is Python's */
PyObject *cx_mixed_op(int ufunc, PyObject *a, PyObject *b);

#endif
