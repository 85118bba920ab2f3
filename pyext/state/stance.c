/* The stance of a call is read once, when the call begins. It is that of the innermost `with` of
 * the calling context, stored in a context variable as (stance, outer ones), else the process's.
 * So no thread changes the stance of another, and nothing is restored after a call.
 *
 * `set_stance(...)` sets the process's stance, unless the object that it returns is entered. The
 * call therefore only makes a proposal of its thread, state->proposed[thread] = (stance, number
 * of the object). The proposal takes effect when the thread calls a compiled function or makes
 * another proposal, or when the object dies; entering the object withdraws it. */
#include "state/stance.h"

#include "state/docs.h"

int
cx_stances_init(CxState *state)
{
    state->stance_in_force = PyContextVar_New("cinductor.stance", Py_None);
    state->proposed = PyDict_New();
    return state->stance_in_force == NULL || state->proposed == NULL ? -1 : 0;
}

/* Ends a thread's proposal made by that object or (NULL) by any. */
static int
end(CxState *state, PyObject *thread, PyObject *number, bool holds)
{
    PyObject *found = PyDict_GetItemWithError(state->proposed, thread);
    int is_same = found == NULL     ? 0
                  : number == NULL ? 1
                                   : PyObject_RichCompareBool(PyTuple_GET_ITEM(found, 1), number,
                                                              Py_EQ);

    if (is_same < 0 || PyErr_Occurred())
        return -1;
    if (is_same && holds)
        state->stance = (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 0));
    return is_same ? PyDict_DelItem(state->proposed, thread) : 0;
}

static int
end_own(CxState *state)
{
    if (PyDict_GET_SIZE(state->proposed) == 0)
        return 0;
    PyObject *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    int status = thread ? end(state, thread, NULL, true) : -1;
    Py_XDECREF(thread);
    return status;
}

int
cx_stance(CxState *state)
{
    PyObject *found = NULL;

    if (end_own(state) < 0)
        return -1;
    if (!state->has_stances) /* no context has a stance */
        return state->stance;
    if (PyContextVar_Get(state->stance_in_force, NULL, &found) < 0)
        return -1;
    int stance = PyTuple_CheckExact(found) ? (int)PyLong_AsLong(PyTuple_GET_ITEM(found, 0))
                                           : state->stance;
    Py_DECREF(found);
    return stance;
}

/* propose_stance(stance, number): returns the thread, for end_proposal. */
static PyObject *
propose_stance(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *number = NULL;
    int stance = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "iO!:propose_stance", &stance, &PyLong_Type, &number))
        return NULL;
    if (stance < CX_STANCE_default || stance > CX_STANCE_fail_on_recompile)
        return PyErr_Format(PyExc_ValueError, "a stance is 0, 1, 2 or 3");
    PyObject *thread = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    if (thread == NULL || end_own(state) < 0 ||
        PyDict_SetItem(state->proposed, thread, args) < 0)
        Py_CLEAR(thread);
    return thread;
}

static PyObject *
end_proposal(PyObject *module, PyObject *args)
{
    PyObject *thread = NULL, *number = NULL;
    int holds = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!p:end_proposal", &PyLong_Type, &thread, &PyLong_Type,
                          &number, &holds) ||
        end(PyModule_GetState(module), thread, number, holds) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Sets the context's stances; steals the reference. */
static PyObject *
put(CxState *state, PyObject *stances)
{
    PyObject *token = stances ? PyContextVar_Set(state->stance_in_force, stances) : NULL;

    Py_XDECREF(stances);
    if (token == NULL)
        return NULL;
    Py_DECREF(token);
    Py_RETURN_NONE;
}

static PyObject *
enter_stance(PyObject *module, PyObject *value)
{
    CxState *state = PyModule_GetState(module);
    PyObject *outside = NULL;

    CX_ENTRY();
    if (!PyLong_CheckExact(value))
        return PyErr_Format(PyExc_TypeError, "a stance is an int");
    if (PyContextVar_Get(state->stance_in_force, NULL, &outside) < 0)
        return NULL;
    state->has_stances = true;
    return put(state, Py_BuildValue("(ON)", value, outside));
}

static PyObject *
leave_stance(PyObject *module, PyObject *unused)
{
    CxState *state = PyModule_GetState(module);
    PyObject *found = NULL;

    (void)unused;
    CX_ENTRY();
    if (PyContextVar_Get(state->stance_in_force, NULL, &found) < 0)
        return NULL;
    PyObject *outside = PyTuple_CheckExact(found) ? Py_NewRef(PyTuple_GET_ITEM(found, 1)) : NULL;
    Py_DECREF(found);
    return outside ? put(state, outside)
                   : PyErr_Format(PyExc_RuntimeError, "no stance was entered in this context");
}

PyMethodDef cx_stance_methods[] = {
    CX_FUNCTION(propose_stance, propose_stance, METH_VARARGS),
    CX_FUNCTION(end_proposal, end_proposal, METH_VARARGS),
    CX_FUNCTION(enter_stance, enter_stance, METH_O),
    CX_FUNCTION(leave_stance, leave_stance, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};
