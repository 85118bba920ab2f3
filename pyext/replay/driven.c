/* Calls that a dispatcher runs: the function split at its breaks, with compiled pieces between
 * (capture/pieces/driver.py). Only calls that are known to be faster this way are recognised
 * here, by their kinds and sizes; Python decides about the others. */
#include "replay/driven.h"

void
cx_driven_note(CxDriven *d, PyObject *driver, PyObject *fix, const CxKind *kind)
{
    if (d->driver != driver)
        d->kinds.count = 0;
    cx_kinds_add(&d->kinds, kind);
    Py_XSETREF(d->driver, Py_NewRef(driver));
    Py_XSETREF(d->fix, Py_NewRef(fix));
}

void
cx_driven_clear(CxDriven *d)
{
    d->kinds.count = 0;
    Py_CLEAR(d->driver);
    Py_CLEAR(d->fix);
}

int
cx_driven_visit(const CxDriven *d, visitproc visit, void *arg)
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

PyObject *
cx_driven_call(const CxDriven *d, PyObject *const *args, size_t nargsf, PyObject *names)
{
    PyObject *driver = Py_NewRef(d->driver), *fix = Py_NewRef(d->fix);
    PyObject *result = PyObject_Vectorcall(driver, args, nargsf, names);

    if (result == NULL)
        fix_exception(fix);
    Py_DECREF(driver);
    Py_DECREF(fix);
    return result;
}
