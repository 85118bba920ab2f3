/* Calls that a function's dispatcher runs, recognised without Python code. */
#ifndef CX_SPLIT_CALLS_H
#define CX_SPLIT_CALLS_H

#include "replay/kind.h"
#include "replay/numpy_timing.h"

/* Calls of one kind, and the comparison of the dispatcher with NumPy by size class. */
typedef struct CxDrivenKind {
    uint64_t kind;
    CxNumpyTiming trials[CX_TRIAL_CLASSES];
} CxDrivenKind;

enum { CX_MAX_DRIVEN = 8 };
typedef struct CxDriven {
    int count;              /* kinds noted, also those overwritten; 0 without a driver */
    CxDrivenKind *kinds;    /* the latest eight, none of which moves; NULL before the first */
    PyObject *driver, *fix; /* both NULL, or none */
} CxDriven;

/* Lets the dispatcher run calls of a kind, one of the latest. fix(error) corrects the traceback of an exception from it.
 * is_timed: NumPy runs them if it is faster. -1 with an exception. */
int cx_driven_note(CxDriven *driven, PyObject *driver, PyObject *fix, const CxKind *kind, bool is_timed);
void cx_driven_clear(CxDriven *driven);
void cx_driven_free(CxDriven *driven);
int cx_driven_visit(const CxDriven *driven, visitproc visit, void *arg);
/* The trial of calls like this one, or NULL if no dispatcher runs them. */
CxNumpyTiming *cx_driven_trial(const CxDriven *driven, const CxKind *kind);
/* Calls the dispatcher. */
PyObject *cx_driven_call(const CxDriven *driven, PyObject *const *args, size_t nargsf, PyObject *names);
/* True if calls of a kind are timed. */
bool cx_driven_is_open(const CxDriven *driven);
/* Why NumPy runs calls: a text, or None. */
PyObject *cx_driven_text(const CxDriven *driven);

#endif
