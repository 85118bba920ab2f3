/* Calls of new kinds that the original function runs before Python is asked about them. */
#include "replay/first_calls.h"

int
cx_first_calls_allow(CxFirstCalls *first, PyObject *args)
{
    CxFirstCalls made = {0};

    if (PyTuple_GET_SIZE(args) > 0 &&
        !PyArg_ParseTuple(args, "OOO!O!dd:run_first_calls", &made.bound, &made.meet, &PyList_Type, &made.current, &PyTuple_Type,
                          &made.packages, &made.longest, &made.due))
        return -1;
    if (made.bound != NULL && (!cx_is_bound(made.bound) || PyList_GET_SIZE(made.current) == 0)) {
        PyErr_SetString(PyExc_TypeError, "wanted: a Bound, and a list of one item");
        return -1;
    }
    made.settings = made.bound ? Py_NewRef(PyList_GET_ITEM(made.current, 0)) : NULL;
    Py_XINCREF(made.bound);
    Py_XINCREF(made.current);
    Py_XINCREF(made.packages);
    Py_XINCREF(made.meet);
    cx_first_calls_clear(first);
    *first = made;
    return 0;
}

int
cx_first_calls_visit(const CxFirstCalls *first, visitproc visit, void *arg)
{
    Py_VISIT(first->bound);
    Py_VISIT(first->settings);
    Py_VISIT(first->current);
    Py_VISIT(first->packages);
    Py_VISIT(first->meet);
    return 0;
}

void
cx_first_calls_clear(CxFirstCalls *first)
{
    Py_CLEAR(first->bound);
    Py_CLEAR(first->settings);
    Py_CLEAR(first->current);
    Py_CLEAR(first->packages);
    Py_CLEAR(first->meet);
}

int
cx_first_calls_tell(const CxFirstCalls *first, PyObject *account, PyObject *const *args, Py_ssize_t count)
{
    PyObject *tuple = first->meet != NULL ? PyTuple_New(count) : NULL, *done = NULL;

    if (tuple == NULL)
        return PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t k = 0; k < count; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
    PyObject *both[] = {account, tuple}, *meet = Py_NewRef(first->meet);
    done = PyObject_Vectorcall(meet, both, 2, NULL);
    Py_DECREF(meet);
    Py_DECREF(tuple);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static bool
is_one_imported(PyObject *packages)
{
    PyObject *modules = PyImport_GetModuleDict();
    bool found = false;

    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(packages) && !found; k++)
        found = PyDict_GetItemWithError(modules, PyTuple_GET_ITEM(packages, k)) != NULL;
    PyErr_Clear();
    return found;
}

double
cx_first_calls_bound(const CxFirstCalls *first, PyObject *const *args, Py_ssize_t count)
{
    double asked = 0;

    if (first->bound == NULL || PyList_GET_SIZE(first->current) == 0 ||
        PyList_GET_ITEM(first->current, 0) != first->settings || is_one_imported(first->packages))
        return -1;
    bool is_long = cx_bound_seconds((CxBound *)first->bound, args, count, &asked) >= first->longest;
    return is_long ? -1 : asked;
}
