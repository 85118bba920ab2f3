/* Declares the methods of Tracer (methods.def), and the methods of a traced value that only
 * regions call (value_methods.def). The Python part of capture calls both. */
#ifndef CX_METHODS_H
#define CX_METHODS_H

#include "state/gil.h"

#define ARGS(name) PyObject *cx_method_##name(PyObject *self, PyObject *args);
#define KEYS(name) PyObject *cx_method_##name(PyObject *self, PyObject *args, PyObject *kwargs);
#define ONE(name) PyObject *cx_method_##name(PyObject *self, PyObject *object);
#define NONE(name) PyObject *cx_method_##name(PyObject *self, PyObject *unused);
#include "graph/methods.def"

#define ONE(name) PyObject *cx_traced_##name(PyObject *self, PyObject *object);
#define NONE(name) PyObject *cx_traced_##name(PyObject *self, PyObject *unused);
#include "graph/value_methods.def"

extern PyMethodDef cx_tracer_methods[]; /* surface.c */

#endif
