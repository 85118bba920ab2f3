/* Implements `__array_ufunc__`: dispatches by ufunc and method. */
#include "operation/ufunc.h"

/* Comparisons with a NumPy scalar on the left: NumPy converts the scalar to an array, because
 * comparisons of arrays give arrays. A 0-d array here therefore comes from NumPy, because the
 * user's arrays are traced. */
static PyObject *
compare_number(CxTracer *tracer, PyObject *ufunc, PyObject *args)
{
    PyArrayObject *array = (PyArrayObject *)PyTuple_GET_ITEM(args, 0);
    PyObject *number = PyArray_ToScalar(PyArray_DATA(array), array);
    PyObject *both = number == NULL ? NULL : PyTuple_Pack(2, number, PyTuple_GET_ITEM(args, 1));
    PyObject *result = both == NULL ? NULL : cx_ufunc_general(tracer, ufunc, both, NULL);

    Py_XDECREF(both);
    Py_XDECREF(number);
    return result;
}

static bool
is_number_at_left(int number, PyObject *args, PyObject *kwargs)
{
    PyObject *left = PyTuple_GET_SIZE(args) == 2 ? PyTuple_GET_ITEM(args, 0) : NULL;
    return cx_is_comparison(number) && (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0) &&
           left != NULL && PyArray_CheckExact(left) && PyArray_NDIM((PyArrayObject *)left) == 0;
}

static PyObject *
traced_ufunc(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    int number = cx_ufunc_find(state, ufunc);

    if (number == -2)
        return NULL;
    bool is_call = PyUnicode_Compare(method, state->str___call__) == 0;
    if (is_call && is_number_at_left(number, args, kwargs))
        return compare_number(tracer, ufunc, args);
    if (is_call)
        return cx_ufunc_general(tracer, ufunc, args, kwargs);
    if (number >= 0 && PyUnicode_Compare(method, state->str_reduce) == 0)
        return cx_ufunc_reduce(tracer, number, args, kwargs);
    if (number >= 0 && PyUnicode_Compare(method, state->str_accumulate) == 0)
        return cx_ufunc_accumulate(tracer, number, args, kwargs);
    if (number >= 0 && PyUnicode_Compare(method, state->str_outer) == 0)
        return cx_ufunc_outer(tracer, number, args, kwargs);
    return cx_ufunc_fallback(tracer, ufunc, method, args, kwargs, "a method that is not captured");
}

PyObject *
cx_array_ufunc(CxTracer *tracer, PyObject *ufunc, PyObject *method, PyObject *args,
               PyObject *kwargs)
{
    PyObject *result = traced_ufunc(tracer, ufunc, method, args, kwargs);

    if (result == NULL && PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported"))) {
        PyErr_Clear();
        result = cx_ufunc_fallback(tracer, ufunc, method, args, kwargs,
                                   "an operand that is not captured");
    }
    return result;
}
