/* Saves what a run changes, so that the original function can run the call instead. It saves the contents of the
 * arrays that the program writes and the state of the generators that it draws from. A program refers to a
 * generator by its address, so the address sources of the guards list the generators. */
#include "replay/guards_private.h"
#include "replay/specialization.h"
#include "state/array.h"

enum { MAX_KEPT = 1 << 26 }; /* bytes of the arrays of one call */

bool
cx_draws_any(const CxGuards *g)
{
    for (int k = 0; k < g->nsources; k++)
        if (g->sources[k].kind == SOURCE_address)
            return true;
    return false;
}

/* The object that has the state, and the state: a Generator's bit generator, or the RandomState
 * itself, as is Python's own generator. */
static PyObject *
state_of(PyObject *generator)
{
    PyObject *bits = PyObject_GetAttrString(generator, "bit_generator"), *state = NULL;

    if (bits != NULL) {
        state = PyObject_GetAttrString(bits, "state");
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        bits = Py_NewRef(generator);
        state = PyObject_HasAttrString(bits, "getstate")
                    ? PyObject_CallMethod(bits, "getstate", NULL)
                    : PyObject_CallMethod(bits, "get_state", "O", Py_False);
    }
    PyObject *pair = state ? PyTuple_Pack(2, bits, state) : NULL;
    Py_XDECREF(bits);
    Py_XDECREF(state);
    return pair;
}

static int
set_state(PyObject *bits, PyObject *state)
{
    const char *name = PyObject_HasAttrString(bits, "setstate") ? "setstate" : "set_state";

    if (!PyObject_HasAttrString(bits, name))
        return PyObject_SetAttrString(bits, "state", state);
    PyObject *done = PyObject_CallMethod(bits, name, "(O)", state); /* "O" would spread a tuple */
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Adds the pairs of the generators to the list. */
static int
save_draws(PyObject *saved, const CxGuards *g, PyObject *const *values)
{
    for (int k = 0; k < g->nsources; k++) {
        if (g->sources[k].kind != SOURCE_address || values[k] == NULL)
            continue;
        if (g->sources[g->sources[k].from].kind == SOURCE_made)
            continue; /* the original function makes another generator */
        PyObject *pair = state_of(values[g->sources[k].from]);
        int failed = pair == NULL ? -1 : PyList_Append(saved, pair);
        Py_XDECREF(pair);
        if (failed < 0)
            return -1;
    }
    return 0;
}

/* The array to which a write of the graph goes. */
static PyArrayObject *
written(const CiGraph *graph, const CxInput *inputs, PyObject *const *values, int write)
{
    for (int k = 0; k < graph->ninputs; k++)
        if (graph->inputs[k] == graph->writes[write].input && inputs[k].symbol < 0)
            return (PyArrayObject *)values[inputs[k].source];
    return NULL;
}

/* Adds pairs of each array and a copy of it to the list. 0: there are too many bytes, or there is no memory. */
static int
save_writes(PyObject *saved, const CiGraph *graph, const CxInput *inputs, PyObject *const *values)
{
    npy_intp bytes = 0;

    for (int k = 0; k < graph->nwrites; k++) {
        PyArrayObject *array = written(graph, inputs, values, k);
        if (array == NULL || (bytes += PyArray_NBYTES(array)) > MAX_KEPT)
            return 0;
        PyObject *copy = PyArray_NewCopy(array, NPY_KEEPORDER);
        PyObject *pair = copy ? PyTuple_Pack(2, (PyObject *)array, copy) : NULL;
        int failed = pair == NULL ? -1 : PyList_Append(saved, pair);
        Py_XDECREF(copy);
        Py_XDECREF(pair);
        if (failed < 0) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

/* Returns a list for cx_undo. NULL without an exception if the writes cannot be undone. graph: NULL if there are no writes
 * yet when the call is undone. */
PyObject *
cx_undo_save(const CxGuards *g, PyObject *const *values, const CiGraph *graph, const CxInput *inputs)
{
    PyObject *saved = PyList_New(0);

    if (saved != NULL && save_draws(saved, g, values) == 0 &&
        (graph == NULL || save_writes(saved, graph, inputs, values) > 0))
        return saved;
    Py_XDECREF(saved);
    return NULL;
}

int
cx_undo(PyObject *saved)
{
    for (Py_ssize_t k = 0; saved != NULL && k < PyList_GET_SIZE(saved); k++) {
        PyObject *what = PyTuple_GET_ITEM(PyList_GET_ITEM(saved, k), 0),
                 *was = PyTuple_GET_ITEM(PyList_GET_ITEM(saved, k), 1);
        int failed = PyArray_Check(what) ? PyArray_CopyInto((PyArrayObject *)what, (PyArrayObject *)was)
                                         : set_state(what, was);
        if (failed < 0)
            return -1;
    }
    return 0;
}
