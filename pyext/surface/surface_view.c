/* The methods of Tracer that make views. */
#include "graph/methods.h"
#include "value/index.h"

PyObject *
cx_method_permute(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *order = NULL, *result = NULL;
    int64_t given[CI_MAX_RANK];
    int axes[CI_MAX_RANK];
    bool seen[CI_MAX_RANK] = {false};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:permute", &value, &order))
        return NULL;
    int n = cx_axes_from(order, given, CI_MAX_RANK);
    CxTraced *x = n < 0 ? NULL : cx_lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    if (n != cx_rank(x)) {
        PyErr_SetString(PyExc_ValueError, "axes don't match array");
        goto done;
    }
    for (int k = 0; k < n; k++) {
        int64_t axis = given[k] < 0 ? given[k] + n : given[k];
        if (axis < 0 || axis >= n || seen[axis]) {
            PyErr_SetString(PyExc_ValueError, axis >= 0 && axis < n ? "repeated axis in transpose"
                                                                    : "axes don't match array");
            goto done;
        }
        seen[axis] = true;
        axes[k] = (int)axis;
    }
    result = cx_make_permute(x, axes);
done:
    Py_DECREF(x);
    return result;
}

static PyObject *
reshape_or_expand(PyObject *self, PyObject *args,
                  PyObject *(*make)(CxTraced *, int, const CiExpr *const *))
{
    PyObject *value = NULL, *shape = NULL, *result = NULL;
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO", &value, &shape))
        return NULL;
    int rank = cx_shape_from((CxTracer *)self, shape, sizes);
    CxTraced *x = rank < 0 ? NULL : cx_lifted((CxTracer *)self, value);
    if (x != NULL)
        result = make(x, rank, sizes);
    Py_XDECREF(x);
    return result;
}

PyObject *
cx_method_reshape(PyObject *self, PyObject *args)
{
    return reshape_or_expand(self, args, cx_make_reshape);
}

PyObject *
cx_method_expand(PyObject *self, PyObject *args)
{
    return reshape_or_expand(self, args, cx_make_expand);
}

PyObject *
cx_method_broadcast_view(PyObject *self, PyObject *args)
{
    return reshape_or_expand(self, args, cx_make_broadcast);
}

PyObject *
cx_method_slice(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *lists[3] = {NULL}, *result = NULL;
    const CiExpr *numbers[3][CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOOO:slice", &value, &lists[0], &lists[1], &lists[2]))
        return NULL;
    CxTraced *x = cx_lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    for (int k = 0; k < 3; k++) {
        int n = cx_shape_from((CxTracer *)self, lists[k], numbers[k]);
        if (n >= 0 && n != cx_rank(x))
            PyErr_SetString(PyExc_ValueError, "one start, step and size per axis are expected");
        if (n != cx_rank(x))
            goto done;
    }
    result = cx_make_slice(x, numbers[0], numbers[1], numbers[2]);
done:
    Py_DECREF(x);
    return result;
}

PyObject *
cx_method_diagonal(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *shift = NULL, *result = NULL;
    int axis1 = 0, axis2 = 1, is_writable = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OiiO|p:diagonal", &value, &axis1, &axis2, &shift, &is_writable))
        return NULL;
    const CiExpr *offset = cx_size_from((CxTracer *)self, shift);
    CxTraced *x = offset == NULL ? NULL : cx_lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    int rank = cx_rank(x);
    axis1 += axis1 < 0 ? rank : 0;
    axis2 += axis2 < 0 ? rank : 0;
    if (axis1 == axis2 || axis1 < 0 || axis2 < 0 || axis1 >= rank || axis2 >= rank)
        PyErr_SetString(PyExc_ValueError, axis1 == axis2 ? "axis1 and axis2 cannot be the same"
                                                         : "axis is out of bounds");
    else
        result = cx_make_diagonal(x, axis1, axis2, offset, !is_writable);
    Py_DECREF(x);
    return result;
}

PyObject *
cx_method_window(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *length = NULL, *result = NULL;
    int axis = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OiO:window", &value, &axis, &length))
        return NULL;
    const CiExpr *size = cx_size_from((CxTracer *)self, length);
    CxTraced *x = size == NULL ? NULL : cx_lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    if (axis < 0 || axis >= cx_rank(x) || cx_rank(x) + 1 > CI_MAX_RANK)
        PyErr_SetString(PyExc_ValueError, "axis is out of bounds, or too many axes");
    else
        result = cx_make_window(x, axis, size);
    Py_DECREF(x);
    return result;
}
