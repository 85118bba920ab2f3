/* Operations that the graph does not have: they become a library call, or a break that calls the
 * real ufunc. */
#include "operation/ufunc.h"

/* Saves the arrays to which the real ufunc may write: out, and the first operand of `at`. */
static int
keep_written(PyObject *args, PyObject *out)
{
    PyObject *first = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
    int result = cx_is_traced(first) ? cx_storage_keep(((CxTraced *)first)->storage) : 0;
    Py_ssize_t n = out == NULL ? 0 : PyTuple_Check(out) ? PyTuple_GET_SIZE(out) : 1;

    for (Py_ssize_t k = 0; k < n && result == 0; k++) {
        PyObject *item = PyTuple_Check(out) ? PyTuple_GET_ITEM(out, k) : out;
        result = cx_is_traced(item) ? cx_storage_keep(((CxTraced *)item)->storage) : 0;
    }
    return result;
}

/* Makes the ufunc a library call of the graph, through the surface; NotImplemented if it cannot
 * be one. */
static PyObject *
library_call(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    int failed = 0;
    PyObject *handler =
        state->functions ? cx_dict_find(state->functions, state->ufunc_type, &failed) : NULL;

    if (failed)
        return NULL;
    if (handler == NULL)
        return Py_NewRef(Py_NotImplemented);
    PyObject *four = PyTuple_Pack(4, ufunc, method, args, kwargs ? kwargs : Py_None),
             *none = PyDict_New();
    PyObject *result =
        four && none ? PyObject_CallFunctionObjArgs(handler, (PyObject *)tracer, four, none, NULL)
                     : NULL;
    Py_XDECREF(four);
    Py_XDECREF(none);
    return result;
}

/* Runs an operation that the graph does not have: as a library call, or else after a break with
 * real values. The result is traced. */
PyObject *
cx_ufunc_fallback(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
                  PyObject *kwargs, const char *reason)
{
    CxState *state = tracer->state;
    PyObject *name = NULL, *function = NULL, *a = NULL, *k = NULL, *out = NULL;
    PyObject *result = library_call(tracer, ufunc, method, args, kwargs);

    if (result != Py_NotImplemented)
        return result;
    Py_CLEAR(result);
    name = PyObject_GetAttr(ufunc, state->str___name__);
    if (name == NULL)
        return NULL;
    if (cx_tracer_break(tracer, "ufunc '%S': %s", name, reason) < 0)
        goto done;
    function = PyObject_GetAttr(ufunc, method);
    a = function ? cx_materialise_tree(args) : NULL;
    k = a ? (kwargs ? cx_materialise_tree(kwargs) : PyDict_New()) : NULL;
    out = kwargs ? PyDict_GetItemWithError(kwargs, state->str_out) : NULL;
    if (k == NULL || keep_written(args, out) < 0)
        goto done;
    result = PyObject_Call(function, a, k);
    result = cx_tracer_wrap(tracer, result, (CxGiven){{args, kwargs}, {a, k}});
done:
    Py_DECREF(name);
    Py_XDECREF(function);
    Py_XDECREF(a);
    Py_XDECREF(k);
    return result;
}
