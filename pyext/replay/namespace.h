/* Names that a capture has looked up where they may be rebound: in dicts of modules, and in
 * classes. */
#ifndef CX_NAMESPACE_H
#define CX_NAMESPACE_H

#include "state/state.h"

/* Another number after each change of a dict or class; 0: it cannot tell. */
uint64_t cx_namespace_stamp(PyObject *space);
/* From here on the stamp of a dict tells of its changes; -1 with an exception. */
int cx_namespace_watch(PyObject *space);
/* pairs: (name, value or `missing`, ...); with None for a name, a callable that shall give a false
 * value for the namespace. False: one is not so, the first of them at *which. */
bool cx_namespace_has(PyObject *space, PyObject *pairs, PyObject *missing, Py_ssize_t *which);
/* In words: of a failure the name that is another one now; else all. */
PyObject *cx_namespace_text(PyObject *space, PyObject *pairs, PyObject *missing, bool is_failure);

#endif
