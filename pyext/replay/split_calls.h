/* Calls that a function's dispatcher runs. They are recognised by their kind, without Python code. */
#ifndef CX_SPLIT_CALLS_H
#define CX_SPLIT_CALLS_H

#include "replay/kind.h"
#include "replay/numpy_timing.h"

/* Calls of one kind, and the comparison of the dispatcher with NumPy by size class. */
typedef struct CxSplitKind {
    uint64_t kind;
    CxNumpyTiming trials[CX_TRIAL_CLASSES];
} CxSplitKind;

enum { CX_MAX_SPLIT_KINDS = 8 };
typedef struct CxSplitCalls {
    int count;              /* kinds noted, also those overwritten; 0 without a driver */
    CxSplitKind *kinds;    /* the latest eight, none of which moves; NULL before the first */
    PyObject *driver, *fix; /* both NULL, or none */
} CxSplitCalls;

/* Lets the dispatcher run calls of a kind, one of the latest. fix(error) corrects the traceback of an exception from it.
 * is_timed: NumPy runs them if it is faster. -1 with an exception. */
int cx_split_calls_note(CxSplitCalls *split_calls, PyObject *driver, PyObject *fix, const CxKind *kind, bool is_timed);
void cx_split_calls_clear(CxSplitCalls *split_calls);
void cx_split_calls_free(CxSplitCalls *split_calls);
int cx_split_calls_visit(const CxSplitCalls *split_calls, visitproc visit, void *arg);
/* The trial of calls like this one, or NULL if no dispatcher runs them. */
CxNumpyTiming *cx_split_calls_trial(const CxSplitCalls *split_calls, const CxKind *kind);
/* Calls the dispatcher. */
PyObject *cx_split_calls_run(const CxSplitCalls *split_calls, PyObject *const *args, size_t nargsf, PyObject *names);
/* True if calls of a kind are timed. */
bool cx_split_calls_is_open(const CxSplitCalls *split_calls);
/* Why NumPy runs calls: a text, or None. */
PyObject *cx_split_calls_text(const CxSplitCalls *split_calls);

#endif
