/* Converts sizes to Python ints, and Python ints to sizes: NumPy's shapes, indices and counts. */
#include "state/array.h"
#include "value/index.h"

PyObject *
cx_size_object(CxTracer *t, const CiExpr *e)
{
    if (e == NULL)
        return NULL;
    if (e->kind == CI_EXPR_const)
        return PyLong_FromLongLong(e->value);
    e = cx_size_resolve(t, e);
    return e == NULL                  ? NULL
           : e->kind == CI_EXPR_const ? PyLong_FromLongLong(e->value)
                                      : cx_traced_int(t, e);
}

/* An int, or the result of __index__. */
const CiExpr *
cx_size_from(CxTracer *t, PyObject *object)
{
    if (cx_is_traced(object) && ((CxTraced *)object)->tracer == t && cx_is_size((CxTraced *)object))
        return ((CxTraced *)object)->storage->expr;
    if (cx_is_data_int(object) && ((CxTraced *)object)->tracer == t)
        return cx_size_define((CxTraced *)object);
    Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    return value == -1 && PyErr_Occurred() ? NULL : cx_size_const(t, value);
}

/* The value of a size in this call, guarded; a break if it has none. */
int64_t
cx_size_concretize(CxTracer *t, const CiExpr *e, const char *what)
{
    int64_t value = -1;

    if (e->kind == CI_EXPR_const)
        return e->value;
    if (!cx_size_is_known(t, e) &&
        (cx_size_refuse(t, e, what) < 0 ||
         cx_tracer_break(t, "the value of a size is needed by %s", what) < 0))
        return -1;
    if (cx_size_values(t, 1, &e, &value) < 0)
        return -1;
    const CiExpr *number = cx_size_const(t, value);
    return number == NULL || cx_size_decide(t, CI_REL_eq, e, number) < 0 ? -1 : value;
}

PyObject *
cx_shape_tuple(CxTracer *t, int rank, const CiExpr *const *sizes)
{
    PyObject *tuple = PyTuple_New(rank);
    for (int k = 0; tuple != NULL && k < rank; k++)
        cx_put_item(&tuple, k, cx_size_object(t, sizes[k]));
    return tuple;
}

int
cx_shape_from(CxTracer *t, PyObject *object, const CiExpr **sizes)
{
    PyObject *items = NULL;
    int count = -1;

    if (PyBool_Check(object)) {
        PyErr_SetString(PyExc_TypeError, "an integer is required");
        return -1;
    }
    if (PyLong_Check(object) || (cx_is_traced(object) && cx_rank((CxTraced *)object) == 0) ||
        (!PySequence_Check(object) && PyIndex_Check(object)))
        return (sizes[0] = cx_size_from(t, object)) == NULL ? -1 : 1;
    items = PySequence_Fast(object, "an int or a sequence of ints is expected");
    if (items == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    if (n > CI_MAX_RANK) {
        PyErr_Format(PyExc_ValueError,
                     "maximum supported dimension for an ndarray is currently %d, found %zd",
                     CI_MAX_RANK, n);
        goto done;
    }
    for (Py_ssize_t k = 0; k < n; k++)
        if (PyBool_Check(PySequence_Fast_GET_ITEM(items, k))) {
            PyErr_SetString(PyExc_TypeError, "an integer is required");
            goto done;
        } else if ((sizes[k] = cx_size_from(t, PySequence_Fast_GET_ITEM(items, k))) == NULL)
            goto done;
    count = (int)n;
done:
    Py_DECREF(items);
    return count;
}

int
cx_axes_from(PyObject *object, int64_t *axes, int capacity)
{
    if (!cx_is_traced(object) || cx_rank((CxTraced *)object) != 0)
        return cx_sizes_from(object, axes, capacity);
    axes[0] = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    return axes[0] == -1 && PyErr_Occurred() ? -1 : 1;
}
