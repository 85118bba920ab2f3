/* Bound of the time of a function's calls in Python, by bytecode and arguments alone. */
#ifndef CX_BOUND_H
#define CX_BOUND_H

#include "state/state.h"

extern PyType_Spec cx_bound_spec;

/* Classes of instructions. COUNTS: it takes time. WORKS: it may work on an array. JUMPS_BACK: by its argument. JUMPS_TO: to the
 * place that its argument names. ITERATES: it asks an iterator. OPERATES: an operator. EXTENDS: the argument of the next
 * instruction. LOADS: a constant. */
#define CX_INSTRUCTION_CLASSES(X) \
    X(COUNTS) X(WORKS) X(JUMPS_BACK) X(JUMPS_TO) X(ITERATES) X(OPERATES) X(EXTENDS) X(LOADS)

typedef struct CxBound CxBound;

bool cx_is_bound(PyObject *value);

/* Seconds that a call with these arguments may take. asked: the same, whatever other calls took. */
double cx_bound_seconds(CxBound *bound, PyObject *const *args, Py_ssize_t count, double *asked);
/* A call of this bound has taken so many seconds. */
void cx_bound_note(CxBound *bound, double asked, double seconds);

#endif
