/* Calls that a function's dispatcher runs, recognised without Python code. */
#ifndef CX_DRIVEN_H
#define CX_DRIVEN_H

#include "state/state.h"

typedef struct CxDriven {
    PyObject *keys, *driver, *fix; /* NULL, all of them, or none */
} CxDriven;

/* A tuple with the key first, and a few of those before; NULL with an exception. keys may be NULL.
 */
PyObject *cx_keys_with(PyObject *keys, PyObject *key);
/* fix(error) puts the traceback of what the driver raises right. -1 with an exception. */
int cx_driven_note(CxDriven *driven, PyObject *driver, PyObject *fix, PyObject *key);
void cx_driven_clear(CxDriven *driven);
int cx_driven_visit(const CxDriven *driven, visitproc visit, void *arg);
/* 1: the driver has been called, and result is its result or NULL; 0: it is not its call; -1 with
 * an exception. */
int cx_driven_call(const CxDriven *driven, PyObject *const *bound, int count, PyObject *const *args,
                   size_t nargsf, PyObject *names, PyObject **result);

#endif
