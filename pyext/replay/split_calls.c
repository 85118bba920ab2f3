/* Calls that a dispatcher runs: the function split at its breaks, with compiled pieces between
 * (capture/pieces/driver.py). It is compared with the original function as a program is. */
#include "replay/split_calls.h"

static int
known(const CxSplitCalls *d)
{
    return d->count < CX_MAX_SPLIT_KINDS ? d->count : CX_MAX_SPLIT_KINDS;
}

static CxSplitKind *
find(const CxSplitCalls *d, const CxKind *kind)
{
    for (int k = 0; k < known(d); k++)
        if (d->kinds[k].kind == kind->kind)
            return &d->kinds[k];
    return NULL;
}

int
cx_split_calls_note(CxSplitCalls *d, PyObject *driver, PyObject *fix, const CxKind *kind, bool is_timed)
{
    if (d->driver != driver)
        d->count = 0;
    if (d->kinds == NULL && (d->kinds = PyMem_Calloc(CX_MAX_SPLIT_KINDS, sizeof *d->kinds)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (find(d, kind) == NULL) {
        CxSplitKind *added = &d->kinds[d->count++ % CX_MAX_SPLIT_KINDS];
        added->kind = kind->kind;
        cx_trials_set(added->trials, (CxNumpyTiming){.is_wanted = is_timed, .times_long_calls = true});
    }
    Py_XSETREF(d->driver, Py_NewRef(driver));
    Py_XSETREF(d->fix, Py_NewRef(fix));
    return 0;
}

/* Keeps the memory of trials, because a call in progress may end one. */
void
cx_split_calls_clear(CxSplitCalls *d)
{
    d->count = 0;
    Py_CLEAR(d->driver);
    Py_CLEAR(d->fix);
}

void
cx_split_calls_free(CxSplitCalls *d)
{
    cx_split_calls_clear(d);
    PyMem_Free(d->kinds);
    d->kinds = NULL;
}

int
cx_split_calls_visit(const CxSplitCalls *d, visitproc visit, void *arg)
{
    Py_VISIT(d->driver);
    Py_VISIT(d->fix);
    return 0;
}

/* Corrects the traceback of an exception: the user sees the dispatcher and its pieces as one
 * frame. */
static void
fix_exception(PyObject *fix)
{
    PyObject *error = cx_take_exception();
    PyObject *done = PyObject_CallFunctionObjArgs(fix, error, NULL);

    if (done == NULL)
        PyErr_Clear();
    Py_XDECREF(done);
    cx_restore_exception(error);
}

CxNumpyTiming *
cx_split_calls_trial(const CxSplitCalls *d, const CxKind *kind)
{
    CxSplitKind *found = find(d, kind);
    return found == NULL ? NULL : &found->trials[cx_trial_class((int64_t)1 << (kind->class < 62 ? kind->class : 62))];
}

bool
cx_split_calls_is_open(const CxSplitCalls *d)
{
    for (int k = 0; k < known(d); k++) {
        const CxNumpyTiming *trials = d->kinds[k].trials;
        bool was_timed = !trials[0].is_wanted;
        for (int class = 0; class < CX_TRIAL_CLASSES; class++)
            was_timed |= trials[class].counts[0] > 0;
        if (!was_timed || cx_trials_are_open(trials, true))
            return true;
    }
    return false;
}

PyObject *
cx_split_calls_text(const CxSplitCalls *d)
{
    for (int k = 0; k < known(d); k++) {
        PyObject *text = cx_trials_text(d->kinds[k].trials);
        if (text != Py_None)
            return text;
        Py_DECREF(text);
    }
    Py_RETURN_NONE;
}

PyObject *
cx_split_calls_run(const CxSplitCalls *d, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyObject *driver = Py_NewRef(d->driver), *fix = Py_NewRef(d->fix);
    PyObject *result = PyObject_Vectorcall(driver, args, nargsf, names);

    if (result == NULL)
        fix_exception(fix);
    Py_DECREF(driver);
    Py_DECREF(fix);
    return result;
}
