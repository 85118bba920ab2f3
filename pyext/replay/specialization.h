/* One way in which a function was compiled: guards, program and result; and the function type that
 * tries them in turn. */
#ifndef CX_SPECIALIZATION_H
#define CX_SPECIALIZATION_H

#include "replay/race.h"
#include "replay/result.h"

extern PyType_Spec cx_specialization_spec, cx_function_spec;

typedef struct CxSpecialization CxSpecialization;
/* Takes guards, result and inputs over, made or not. diagnosed: floating-point flags that NumPy has
 * been asked about. */
PyObject *cx_specialization_new(CxState *state, CxProgram *program, CxGuards *guards,
                                CxResult *result, int ninputs, CxInput *inputs,
                                unsigned diagnosed);
/* Runs it on bound arguments. NULL without an exception when a guard fails, and when a check of the
 * program does: then no argument has been changed, and the function itself answers. */
/* UNUSUAL: it would fit if the sizes were usual ones. NUMPYS: it fits, and has not been run: see
 * trial.h. */
typedef enum CxAnswer { CX_NO_MATCH, CX_UNUSUAL, CX_MATCH, CX_NUMPYS, CX_CHECK_FAILED } CxAnswer;
/* What became of a call. suspects: the floating-point flags that NumPy is to be asked about;
 * CALLED_ONCE: not by another call, for it would write, or draw, again. trial: that of its sizes. */
enum { CX_CALLED_ONCE = 1 << 8 };
typedef struct CxOutcome {
    CxAnswer answer;
    unsigned suspects;
    CxNumpyTiming *trial;
} CxOutcome;
PyObject *cx_specialization_call(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs,
                                 CxOutcome *outcome);
PyObject *cx_specialization_why(CxSpecialization *spec, PyObject *const *args, Py_ssize_t nargs);
void cx_specialization_set_words(CxSpecialization *spec, PyObject *names, PyObject *where);

/* saved.c: what Tracer.recall makes one of again, in a later process: a tuple; None where only
 * this process knows what is in it. */
PyObject *cx_saved_parts(const CxProgram *program, const CxGuards *guards, const CxResult *result,
                         int ninputs, const CxInput *inputs);

/* plain.c: whether the function itself answers a call, by keys that key_of in job.py made of
 * others. -1 with an exception. */
int cx_is_plain(PyObject *keys, PyObject *const *bound, int count);

/* draws.c: the state of the generators that a call draws from, before it runs. */
bool cx_draws_any(const CxGuards *guards);
PyObject *cx_draws_save(const CxGuards *guards, PyObject *const *values);
int cx_draws_restore(PyObject *saved);

#endif
