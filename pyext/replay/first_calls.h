/* Calls of new kinds that the original function runs before Python is asked about them. */
#ifndef CX_FIRST_CALLS_H
#define CX_FIRST_CALLS_H

#include "replay/account.h"
#include "replay/bound.h"

/* Python allows this while options stay as they are and no package is imported whose arrays NumPy cannot take. It is asked
 * about a call that may take `longest` by its bound, and told of a kind after a call with which the kind has taken `due`. */
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
/* Seconds that a call may take by its bound; -1: Python is asked about it. */
double cx_first_calls_bound(const CxFirstCalls *first, PyObject *const *args, Py_ssize_t count);

#endif
