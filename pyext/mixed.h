/* Numbers that are Python's on one path and NumPy's on another. */
#ifndef CX_MIXED_H
#define CX_MIXED_H

#include "value.h"

CxStorage *cx_mixed(PyObject *object); /* its `strong`, borrowed */
int cx_mixed_check(CxTracer *tracer, int nargs, PyObject *const *args);
bool cx_is_mixed_op(PyObject *a, PyObject *b); /* Python's operation if the operand is Python's */
PyObject *cx_mixed_op(int ufunc, PyObject *a, PyObject *b);
PyObject *cx_mixed_real(CxStorage *storage); /* Python's number or NumPy's: both are real by now */

#endif
