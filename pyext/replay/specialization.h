/* One compiled version of a function (guards, program and result), and the function type that
 * tries the versions in order. */
#ifndef CX_SPECIALIZATION_H
#define CX_SPECIALIZATION_H

#include "replay/autotune.h"
#include "replay/result.h"

extern PyType_Spec cx_specialization_spec, cx_function_spec;

typedef struct CxSpecialization CxSpecialization;
/* Owns guards, result and inputs, also on failure. flags: float flags about which the caller asks NumPy. */
PyObject *cx_specialization_new(CxState *state, CxProgram *program, CxGuards *guards,
                                CxResult *result, int ninputs, CxInput *inputs,
                                unsigned flags);
/* The answer of cx_specialization_call. UNUSUAL: it would match for usual sizes. NUMPYS: it matches, but NumPy runs the call
 * (see numpy_timing.h). */
typedef enum CxMatchResult { CX_NO_MATCH, CX_UNUSUAL, CX_MATCH, CX_NUMPYS, CX_CHECK_FAILED } CxMatchResult;
/* The outcome of a call. suspects: floating-point flags that NumPy must confirm. CALLED_ONCE: the call must not be repeated to
 * confirm them, because it would write or draw again. trial: the trial of the call's size class. */
enum { CX_CALLED_ONCE = 1 << 8 };
typedef struct CxOutcome {
    CxMatchResult answer;
    unsigned suspects;
    CxNumpyTiming *trial;
} CxOutcome;
/* Runs the specialization on bound arguments. NULL without an exception if a guard or a check fails: no argument has been
 * changed, and the original function runs. */
PyObject *cx_specialization_call(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs,
                                 CxOutcome *outcome);
PyObject *cx_specialization_why(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs);
/* True if results may have other bits than NumPy's. */
bool cx_specialization_is_inexact(const CxSpecialization *spec);
void cx_specialization_set_words(CxSpecialization *spec, PyObject *names, PyObject *where);

/* saved.c: the parts from which Tracer.recall rebuilds it in a later process, as a tuple; None
 * if an object in it is only known to this process. */
PyObject *cx_saved_parts(const CxProgram *program, const CxGuards *guards, const CxResult *result,
                         int ninputs, const CxInput *inputs);

/* undo.c: saves the arguments that a run changes, and restores them. */
bool cx_draws_any(const CxGuards *guards);
PyObject *cx_undo_save(const CxGuards *guards, PyObject *const *values, const CiGraph *graph,
                       const CxInput *inputs);
int cx_undo(PyObject *saved);

#endif
