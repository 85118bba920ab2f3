/* Runs a call in the original function, which another thread may stop: then a program runs the call from its beginning.
 *
 * The interpreter looks at pending calls between two instructions, so the function runs as fast as
 * ever. One that finds the thread in code of the call raises a signal there. In other code it does
 * nothing, and the other thread tries again. Pending calls are the main thread's. */
#include "replay/overtakable.h"

#include "state/docs.h"

typedef struct CxOvertakable {
    PyObject_HEAD CxState *state;
    PyObject *codes, *signal; /* the code that may be left, a tuple; the class that is raised in it */
    PyFrameObject *caller;    /* of the call while it runs, or NULL */
    bool is_pending;
} CxOvertakable;

static bool
may_leave(const CxOvertakable *call, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    bool found = false;

    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(call->codes); k++)
        found |= PyTuple_GET_ITEM(call->codes, k) == (PyObject *)code;
    Py_DECREF(code);
    return found;
}

/* True if every frame of the call may be left. */
static bool
may_leave_all(const CxOvertakable *call)
{
    PyFrameObject *frame = PyEval_GetFrame();
    bool may = call->caller != NULL && frame != call->caller;

    Py_XINCREF(frame);
    while (may && frame != NULL && frame != call->caller) {
        PyFrameObject *inner = frame;
        may = may_leave(call, frame);
        frame = PyFrame_GetBack(inner);
        Py_DECREF(inner);
    }
    may = may && frame != NULL;
    Py_XDECREF(frame);
    return may;
}

static int
raise_signal(void *arg)
{
    CxOvertakable *call = arg;
    bool leaves = may_leave_all(call);

    call->is_pending = false;
    if (leaves)
        PyErr_SetNone(call->signal);
    Py_DECREF((PyObject *)call);
    return leaves ? -1 : 0;
}

static PyObject *
overtakable_run(PyObject *self, PyObject *args)
{
    CxOvertakable *call = (CxOvertakable *)self;
    PyObject *account = NULL, *fn = NULL, *positional = NULL, *keywords = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!OO!O!", call->state->account_type, &account, &fn, &PyTuple_Type,
                          &positional, &PyDict_Type, &keywords))
        return NULL;
    call->caller = PyEval_GetFrame();
    CxStopwatch watch = cx_stopwatch_begin(call->state);
    PyObject *result = PyObject_Call(fn, positional, keywords);
    call->caller = NULL;
    bool is_left = result == NULL && PyErr_ExceptionMatches(call->signal);
    cx_stopwatch_end(call->state, &watch, is_left ? NULL : (CxAccount *)account);
    return result;
}

static PyObject *
overtakable_stop(PyObject *self, PyObject *unused)
{
    CxOvertakable *call = (CxOvertakable *)self;

    (void)unused;
    CX_ENTRY();
    if (call->caller != NULL && !call->is_pending) {
        Py_INCREF(self);
        call->is_pending = Py_AddPendingCall(raise_signal, self) == 0;
        if (!call->is_pending)
            Py_DECREF(self);
    }
    Py_RETURN_NONE;
}

static PyObject *
overtakable_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *codes = NULL, *signal = NULL;

    CX_ENTRY();
    if ((kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0) ||
        !PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &codes, &signal)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "Overtakable takes no keyword arguments");
        return NULL;
    }
    CxState *state = PyType_GetModuleState(type);
    CxOvertakable *call = state ? (CxOvertakable *)type->tp_alloc(type, 0) : NULL;
    if (call == NULL)
        return NULL;
    call->state = state;
    call->codes = Py_NewRef(codes);
    call->signal = Py_NewRef(signal);
    return (PyObject *)call;
}

static void
overtakable_dealloc(PyObject *self)
{
    CxOvertakable *call = (CxOvertakable *)self;

    Py_XDECREF(call->codes);
    Py_XDECREF(call->signal);
    cx_object_free(self);
}

static PyMethodDef overtakable_methods[] = {
    CX_METHOD(Overtakable, run, overtakable_run, METH_VARARGS),
    CX_METHOD(Overtakable, stop, overtakable_stop, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_overtakable_spec, Overtakable, CxOvertakable, 0, CX_SLOT(Py_tp_new, overtakable_new),
        CX_SLOT(Py_tp_dealloc, overtakable_dealloc), CX_SLOT(Py_tp_methods, overtakable_methods));
