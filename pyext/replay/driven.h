/* Calls that a function's dispatcher runs, recognised without Python code. */
#ifndef CX_DRIVEN_H
#define CX_DRIVEN_H

#include "state/state.h"

typedef struct CxDriven {
    PyObject *keys, *driver, *fix; /* all NULL, or none */
} CxDriven;

/* A tuple with the key first, then some of the previous keys; NULL with an exception. keys may
 * be NULL. */
PyObject *cx_keys_with(PyObject *keys, PyObject *key);
/* fix(error) corrects the traceback of an exception from the dispatcher. -1 with an exception. */
int cx_driven_note(CxDriven *driven, PyObject *driver, PyObject *fix, PyObject *key);
void cx_driven_clear(CxDriven *driven);
int cx_driven_visit(const CxDriven *driven, visitproc visit, void *arg);
/* 1: the dispatcher was called, and result is its result or NULL; 0: the call is not for it; -1
 * with an exception. */
int cx_driven_call(const CxDriven *driven, PyObject *const *bound, int count, PyObject *const *args,
                   size_t nargsf, PyObject *names, PyObject **result);

#endif
