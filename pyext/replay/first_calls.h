/* The first calls of a new kind. C runs them in the original function, without Python code of cinductor. */
#ifndef CX_FIRST_CALLS_H
#define CX_FIRST_CALLS_H

#include "replay/account.h"
#include "replay/bound.h"

/* Allowed while options do not change and no package is imported whose arrays NumPy does not accept. Python code decides about
 * a call whose bound is `longest` seconds or more. `meet` is called when the calls of a kind have taken `due` seconds. */
typedef struct CxFirstCalls {
    PyObject *bound, *settings, *current, *packages, *meet; /* settings: the first item of the list `current` then. NULL: not allowed */
    double longest, due;
} CxFirstCalls;

/* run_first_calls(bound, meet, settings, packages, longest, due), or nothing. Returns -1 with an exception. */
int cx_first_calls_allow(CxFirstCalls *first, PyObject *args);
int cx_first_calls_visit(const CxFirstCalls *first, visitproc visit, void *arg);
void cx_first_calls_clear(CxFirstCalls *first);
/* meet(account, args). Returns -1 with an exception. */
int cx_first_calls_tell(const CxFirstCalls *first, PyObject *account, PyObject *const *args, Py_ssize_t count);
/* The bound of a call in seconds; -1: Python code decides about the call. */
double cx_first_calls_bound(const CxFirstCalls *first, PyObject *const *args, Py_ssize_t count);

#endif
