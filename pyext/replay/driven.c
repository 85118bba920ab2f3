/* Calls that a dispatcher runs: the function split at its breaks, with compiled pieces between
 * (capture/pieces/driver.py). Only calls that are known to be faster this way are recognised
 * here, by the keys of plain.c; Python decides about the others. */
#include "replay/driven.h"

#include "replay/specialization.h"

PyObject *
cx_keys_with(PyObject *keys, PyObject *key)
{
    enum { MOST = 4 };
    Py_ssize_t known = keys ? PyTuple_GET_SIZE(keys) : 0, kept = known < MOST ? known : MOST - 1;
    PyObject *made = PyTuple_New(kept + 1);

    if (made == NULL)
        return NULL;
    PyTuple_SET_ITEM(made, 0, Py_NewRef(key));
    for (Py_ssize_t k = 0; k < kept; k++)
        PyTuple_SET_ITEM(made, k + 1, Py_NewRef(PyTuple_GET_ITEM(keys, k)));
    return made;
}

int
cx_driven_note(CxDriven *d, PyObject *driver, PyObject *fix, PyObject *key)
{
    PyObject *keys = cx_keys_with(d->driver == driver ? d->keys : NULL, key);

    if (keys == NULL)
        return -1;
    Py_XSETREF(d->driver, Py_NewRef(driver));
    Py_XSETREF(d->fix, Py_NewRef(fix));
    Py_XSETREF(d->keys, keys);
    return 0;
}

void
cx_driven_clear(CxDriven *d)
{
    Py_CLEAR(d->keys);
    Py_CLEAR(d->driver);
    Py_CLEAR(d->fix);
}

int
cx_driven_visit(const CxDriven *d, visitproc visit, void *arg)
{
    Py_VISIT(d->keys);
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

int
cx_driven_call(const CxDriven *d, PyObject *const *bound, int count, PyObject *const *args,
               size_t nargsf, PyObject *names, PyObject **result)
{
    int fits = d->keys != NULL ? cx_is_plain(d->keys, bound, count) : 0;

    if (fits <= 0)
        return fits;
    PyObject *driver = Py_NewRef(d->driver), *fix = Py_NewRef(d->fix);
    *result = PyObject_Vectorcall(driver, args, nargsf, names);
    if (*result == NULL)
        fix_exception(fix);
    Py_DECREF(driver);
    Py_DECREF(fix);
    return 1;
}
