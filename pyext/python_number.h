/* Python's numbers, traced: what traced_number.c asks of python_number.c. */
#ifndef CX_PYTHON_NUMBER_H
#define CX_PYTHON_NUMBER_H

#include "value.h"

bool cx_is_python_kind(PyObject *o); /* a Traced one */
bool cx_is_python_number(PyObject *o);
PyObject *cx_python_value(PyObject *o); /* borrowed; NULL: only the program knows it */
/* Operators of Python numbers of which at least one is Traced. */
PyObject *cx_python_binary(int ufunc, PyObject *a, PyObject *b, binaryfunc python);
PyObject *cx_python_unary(int ufunc, PyObject *a, unaryfunc python);

#endif
