/* An upper bound of a call's time in Python, computed from the function's bytecode and the arguments. */
#ifndef CX_BOUND_H
#define CX_BOUND_H

#include "state/state.h"

extern PyType_Spec cx_bound_spec;

/* Classes of instructions. COUNTS: it takes time. WORKS: it may work on an array. JUMPS_BACK: by its argument. JUMPS_TO: to the
 * offset in its argument. ITERATES: it calls an iterator. OPERATES: an operator. EXTENDS: the argument of the next
 * instruction. LOADS: a constant. */
#define CX_INSTRUCTION_CLASSES(X) \
    X(COUNTS) X(WORKS) X(JUMPS_BACK) X(JUMPS_TO) X(ITERATES) X(OPERATES) X(EXTENDS) X(LOADS)

typedef struct CxBound CxBound;

bool cx_is_bound(PyObject *value);

/* Seconds that a call with these arguments may take. *asked: the bound without corrections by the times of earlier calls. */
double cx_bound_seconds(CxBound *bound, PyObject *const *args, Py_ssize_t count, double *asked);
/* Records that a call whose uncorrected bound was `asked` has taken `seconds`. */
void cx_bound_note(CxBound *bound, double asked, double seconds);

#endif
