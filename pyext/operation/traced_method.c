/* Methods of traced values: the surface's handler as a bound method; without a handler, the real
 * value's own method, after a break. */
#include "operation/traced.h"
#include "operation/ufunc.h"
#include "state/device_array.h"
#include "state/docs.h"

/* The real value, only for inspection, a copy of an array of a device; None if there is none yet, or for a view. */
PyObject *
cx_traced_known(PyObject *self, PyObject *unused)
{
    const CxTraced *t = (CxTraced *)self;
    const CxStorage *s = t->storage;
    bool is_known = s->value != NULL && !(s->is_written && s->epoch == t->tracer->epoch);

    (void)unused;
    if (!is_known || t->view != NULL)
        return Py_NewRef(Py_None);
    return cx_device_memory_of(t->tracer->state, s->value) != NULL
               ? cx_device_host_copy(t->tracer->state, s->value)
               : Py_NewRef(s->value);
}

typedef struct CxMethod {
    PyObject_HEAD vectorcallfunc vectorcall;
    CxTraced *self;
    PyObject *name, *handler; /* handler NULL: the surface has no such method */
} CxMethod;

static PyObject *method_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf,
                                   PyObject *names);

PyObject *
cx_bound_method_new(CxTraced *t, PyObject *name, PyObject *handler)
{
    CxMethod *m = PyObject_GC_New(CxMethod, (PyTypeObject *)t->tracer->state->method_type);
    if (m == NULL)
        return NULL;
    m->vectorcall = method_vectorcall;
    m->self = (CxTraced *)Py_NewRef(t);
    m->name = Py_NewRef(name);
    m->handler = Py_XNewRef(handler);
    PyObject_GC_Track(m);
    return (PyObject *)m;
}

/* Runs the real value's own method. */
static PyObject *
call_real(CxMethod *m, PyObject *args, PyObject *kwargs)
{
    CxTracer *tracer = m->self->tracer;
    PyObject *real = NULL, *method = NULL, *real_args = NULL, *real_kwargs = NULL, *result = NULL;

    if (cx_kind(m->self) == CI_KIND_python)
        real = cx_traced_concretize(m->self, "a method of a Python number");
    else if (cx_tracer_break(tracer, "the method '%U' is not captured", m->name) == 0 &&
             cx_storage_keep(m->self->storage) == 0)
        real = cx_traced_materialise(m->self);
    if (real == NULL || (method = PyObject_GetAttr(real, m->name)) == NULL ||
        (real_args = cx_materialise_tree(args)) == NULL)
        goto done;
    if (kwargs != NULL && (real_kwargs = cx_materialise_tree(kwargs)) == NULL)
        goto done;
    result = PyObject_Call(method, real_args, real_kwargs);
    if (cx_kind(m->self) != CI_KIND_python)
        result = cx_tracer_wrap(
            tracer, result,
            (CxGiven){{(PyObject *)m->self, args, kwargs}, {real, real_args, real_kwargs}});
done:
    Py_XDECREF(real);
    Py_XDECREF(method);
    Py_XDECREF(real_args);
    Py_XDECREF(real_kwargs);
    return result;
}

static PyObject *
method_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    CxMethod *m = (CxMethod *)self;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), nnames = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *tuple = PyTuple_New(nargs), *dict = PyDict_New(), *result = NULL;

    CX_ENTRY();
    if (tuple == NULL || dict == NULL)
        goto done;
    for (Py_ssize_t k = 0; k < nargs; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
    for (Py_ssize_t k = 0; k < nnames; k++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, k), args[nargs + k]) < 0)
            goto done;
    if (m->handler != NULL) {
        PyObject *four[] = {(PyObject *)m->self->tracer, (PyObject *)m->self, tuple, dict};
        result = PyObject_Vectorcall(m->handler, four, 4, NULL);
        if (result != Py_NotImplemented)
            goto done;
        Py_CLEAR(result);
    }
    result = call_real(m, tuple, dict);
done:
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

/* ---- methods that NumPy defines by a ufunc ---- */

/* True for an int or None, whose values are guarded. What a tuple holds is guarded by the handler. */
static bool
is_plain_axis(PyObject *value)
{
    return value == Py_None || PyLong_CheckExact(value);
}

/* Takes at most an axis and keepdims, as borrowed values or None; false for a call with other arguments. */
static bool
take_plain(const CxState *state, PyObject *args, PyObject *kwargs, PyObject **axis, PyObject **keepdims)
{
    Py_ssize_t given = PyTuple_GET_SIZE(args), named = PyDict_GET_SIZE(kwargs);
    PyObject *by_name = PyDict_GetItemWithError(kwargs, state->str_axis), *kept = PyDict_GetItemWithError(kwargs, state->str_keepdims);
    if (given + (by_name != NULL) > 1 || named != (by_name != NULL) + (kept != NULL))
        return false;
    *axis = given == 1 ? PyTuple_GET_ITEM(args, 0) : by_name != NULL ? by_name : Py_None;
    *keepdims = kept != NULL ? kept : Py_False;
    return is_plain_axis(*axis) && PyBool_Check(*keepdims);
}

/* The keywords of the ufunc's method for a plain call; NULL, without an exception for another call. */
static PyObject *
plain_keywords(const CxState *state, bool is_running, const CxTraced *x, PyObject *args, PyObject *kwargs)
{
    PyObject *axis = NULL, *keepdims = NULL;
    if (!take_plain(state, args, kwargs, &axis, &keepdims))
        return NULL;
    if (!is_running)
        return Py_BuildValue("{OOOO}", state->str_axis, axis, state->str_keepdims, keepdims);
    bool is_line = axis == Py_None && cx_rank(x) == 1; /* without an axis the elements are one line */
    if (keepdims == Py_True || cx_rank(x) == 0 || !(is_line || PyLong_Check(axis)))
        return NULL;
    return is_line ? Py_BuildValue("{Oi}", state->str_axis, 0) : Py_BuildValue("{OO}", state->str_axis, axis);
}

/* True if the exception that is set is one after which the handler decides what the call raises; it is cleared. */
static bool
is_left_to_handler(void)
{
    PyObject *const classes[] = {PyExc_TypeError, PyExc_ValueError, PyExc_IndexError, PyExc_OverflowError, PyExc_AttributeError};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (PyErr_ExceptionMatches(classes[k])) {
            PyErr_Clear();
            return true;
        }
    return false;
}

/* fold(ufunc, how, args, kwargs): the call of a method that NumPy defines by the ufunc's reduce or accumulate, if its arguments
 * are plain; NotImplemented for another. */
static PyObject *
method_fold(PyObject *self, PyObject *given)
{
    CxTraced *x = ((CxMethod *)self)->self;
    PyObject *ufunc = NULL, *how = NULL, *args = NULL, *kwargs = NULL, *keywords = NULL, *result = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(given, "OUO!O!:fold", &ufunc, &how, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    bool is_running = PyUnicode_CompareWithASCIIString(how, "accumulate") == 0;
    if (cx_kind(x) == CI_KIND_array)
        keywords = plain_keywords(x->tracer->state, is_running, x, args, kwargs);
    PyObject *one = keywords != NULL ? PyTuple_Pack(1, x) : NULL;
    if (one != NULL)
        result = cx_array_ufunc(x->tracer, ufunc, how, one, keywords);
    bool is_left = result == NULL && (!PyErr_Occurred() || is_left_to_handler());
    Py_XDECREF(one);
    Py_XDECREF(keywords);
    return is_left ? Py_NewRef(Py_NotImplemented) : result;
}

static PyMethodDef method_methods[] = {
    CX_METHOD(Method, fold, method_fold, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

static int
method_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxMethod *m = (CxMethod *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(m->self);
    Py_VISIT(m->handler);
    return 0;
}

static void
method_dealloc(PyObject *self)
{
    CxMethod *m = (CxMethod *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    Py_DECREF(m->self);
    Py_DECREF(m->name);
    Py_XDECREF(m->handler);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CxMethod, vectorcall), READONLY, NULL},
    CX_MEMBER(Method, __self__, T_OBJECT, CxMethod, self, READONLY),
    CX_MEMBER(Method, __name__, T_OBJECT, CxMethod, name, READONLY),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_bound_method_spec, Method, CxMethod,
        Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, method_dealloc), CX_SLOT(Py_tp_traverse, method_traverse),
        CX_SLOT(Py_tp_call, PyVectorcall_Call), CX_SLOT(Py_tp_members, method_members),
        CX_SLOT(Py_tp_methods, method_methods));
