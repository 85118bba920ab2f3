/* Graph passes from Python. */
#ifndef CX_PASSES_H
#define CX_PASSES_H

#include "state/state.h"

typedef struct CxPasses CxPasses;
typedef struct CxPass {
    CxPasses *all;
    const char *name;
    PyObject *function;                /* borrowed from the row; NULL for a pattern */
    const char *pattern, *replacement; /* or NULL */
} CxPass;

/* The user passes of one compile. */
struct CxPasses {
    CxState *state;
    PyObject *rows, *texts; /* own the names and graphs that were read from them */
    PyObject *error;        /* an exception that a pass raised, or NULL */
    CxPass *passes;
    CiExtraPass *extras;
    int count;
    bool is_exact; /* numerics is "exact" */
};

/* rows may be NULL. Must be closed, also after a failure. */
int cx_passes_open(CxState *state, CxPasses *all, PyObject *rows, const CiOptions *options);
void cx_passes_close(CxPasses *all);
void cx_passes_explain(CxPasses *all);
void cx_pass_observed(void *arg, const char *pass, const char *text, double seconds);

PyObject *cx_set_passes(PyObject *module, PyObject *args);
PyObject *cx_set_pass_observer(PyObject *module, PyObject *observer);
PyObject *cx_list_passes(PyObject *module, PyObject *unused);
PyObject *cx_check_pattern(PyObject *module, PyObject *args);

#endif
