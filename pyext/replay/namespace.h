/* Names that a capture has looked up where they may be rebound: in dicts of modules, and in
 * classes. */
#ifndef CX_NAMESPACE_H
#define CX_NAMESPACE_H

#include "state/state.h"

/* A number that differs after each change of a dict or class; 0 if that is not supported. */
uint64_t cx_namespace_stamp(PyObject *space);
/* Starts to track changes of a dict in its stamp; -1 with an exception. */
int cx_namespace_watch(PyObject *space);
/* pairs: (name, value or `missing`, ...). With None for a name, the value is a callable that
 * must return a false value for the namespace. With a class for a name of a class, the value is
 * whether it is one of its bases. Returns false if one does not hold, with its
 * index in *which; then there may be an exception, of a comparison of keys or of a callable. */
bool cx_namespace_has(PyObject *space, PyObject *pairs, PyObject *missing, Py_ssize_t *which);

#endif
