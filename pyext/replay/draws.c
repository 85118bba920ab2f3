/* Saves the state of the generators from which a program draws, before a run. If a check fails
 * the state is restored, because the original function then draws. A program refers to a
 * generator by its address, so the address sources of the guards list the generators. */
#include "replay/guards_private.h"
#include "replay/specialization.h"

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

/* Returns a list of such pairs; NULL without an exception if nothing is drawn. */
PyObject *
cx_draws_save(const CxGuards *g, PyObject *const *values)
{
    PyObject *saved = NULL;

    for (int k = 0; k < g->nsources; k++) {
        if (g->sources[k].kind != SOURCE_address || values[k] == NULL)
            continue;
        if (g->sources[g->sources[k].from].kind == SOURCE_made)
            continue; /* the original function makes another generator */
        PyObject *pair = state_of(values[g->sources[k].from]);
        if (saved == NULL)
            saved = PyList_New(0);
        if (pair == NULL || saved == NULL || PyList_Append(saved, pair) < 0) {
            Py_XDECREF(pair);
            Py_XDECREF(saved);
            return NULL;
        }
        Py_DECREF(pair);
    }
    return saved;
}

int
cx_draws_restore(PyObject *saved)
{
    for (Py_ssize_t k = 0; saved != NULL && k < PyList_GET_SIZE(saved); k++) {
        PyObject *pair = PyList_GET_ITEM(saved, k);
        if (set_state(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0)
            return -1;
    }
    return 0;
}
