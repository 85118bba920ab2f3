/* Methods of Tracer that take or return sizes, which may be symbolic. */
#include "graph/methods.h"
#include "operation/ufunc.h"
#include "value/index.h"

/* None or a size for each axis. *exprs is NULL if there are none. */
static int
axis_exprs(CxTracer *t, PyObject *given, PyObject *array, const CiExpr **capacity,
           const CiExpr *const **exprs)
{
    *exprs = NULL;
    if (given == Py_None)
        return 0;
    PyObject *fast = PySequence_Fast(given, "a sequence with an item per axis is expected");
    if (fast == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    bool fits = PyArray_Check(array) && n == PyArray_NDIM((PyArrayObject *)array);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "an item per axis is expected");
    for (Py_ssize_t k = 0; fits && k < n; k++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, k);
        capacity[k] = item == Py_None ? NULL : cx_size_from(t, item);
        fits = item == Py_None || capacity[k] != NULL;
    }
    Py_DECREF(fast);
    *exprs = capacity;
    return fits ? 0 : -1;
}

PyObject *
cx_method_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "source", "sizes", "paddings", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *lists[2] = {Py_None, Py_None};
    const CiExpr *capacity[2][CI_MAX_RANK], *const *exprs[2];
    int source = CX_SOURCE_unknown;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|iOO:array", names, &value, &source, &lists[0],
                                     &lists[1]))
        return NULL;
    for (int k = 0; k < 2; k++)
        if (axis_exprs(t, lists[k], value, capacity[k], &exprs[k]) < 0)
            return NULL;
    return cx_tracer_array_of(t, value, source, exprs[0], exprs[1]);
}

PyObject *
cx_method_scalar(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "source", "size", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *size = Py_None;
    int source = CX_SOURCE_unknown;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|O:scalar", names, &value, &source, &size))
        return NULL;
    if (size == Py_None)
        return cx_tracer_scalar(t, value, source);
    const CiExpr *e = cx_size_from(t, size);
    return e ? cx_size_object(t, e) : NULL;
}

/* size(text): the size for a text of a saved call. */
PyObject *
cx_method_size(PyObject *self, PyObject *text)
{
    CX_ENTRY();
    const CiExpr *e = cx_symbol_parse((CxTracer *)self, text);
    return e ? cx_size_object((CxTracer *)self, e) : NULL;
}

/* size_text(size): its text. */
PyObject *
cx_method_size_text(PyObject *self, PyObject *size)
{
    CX_ENTRY();
    const CiExpr *e = cx_size_from((CxTracer *)self, size);
    return e ? cx_symbol_text((CxTracer *)self, e, NULL) : NULL;
}

/* The broadcast shape of the arrays. */
PyObject *
cx_method_broadcast(PyObject *self, PyObject *items)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *fast = PySequence_Fast(items, "a sequence of arrays is expected"), *result = NULL;
    const CiExpr *sizes[CI_MAX_RANK];
    int rank = 0;
    bool fits = fast != NULL;

    CX_ENTRY();
    for (Py_ssize_t k = 0; fits && k < PySequence_Fast_GET_SIZE(fast); k++) {
        CxTraced *x = cx_lifted(t, PySequence_Fast_GET_ITEM(fast, k));
        fits = x != NULL && cx_broadcast_into(t, &rank, sizes, cx_rank(x), cx_sizes(x));
        Py_XDECREF(x);
    }
    if (fits)
        result = cx_shape_tuple(t, rank, sizes);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError,
                        "shape mismatch: objects cannot be broadcast to a single shape");
    Py_XDECREF(fast);
    return result;
}

static PyObject *
size_extremum(PyObject *self, PyObject *args, CiOp op)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *a = NULL, *b = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO", &a, &b))
        return NULL;
    const CiExpr *x = cx_size_from(t, a), *y = x ? cx_size_from(t, b) : NULL;
    return y ? cx_size_object(t, cx_size_extremum(t, op, x, y)) : NULL;
}

PyObject *
cx_method_size_min(PyObject *self, PyObject *args)
{
    return size_extremum(self, args, CI_OP_minimum);
}

PyObject *
cx_method_size_max(PyObject *self, PyObject *args)
{
    return size_extremum(self, args, CI_OP_maximum);
}
