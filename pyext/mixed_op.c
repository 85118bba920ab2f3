/* Operators of numbers that are Python's on one path and NumPy's on another: NumPy's, where
 * Python's would come to the same; a result that is Python's as well hands the bool on. */
#include "build.h"
#include "mixed.h"
#include "python_number.h"
#include "ufunc.h"

static bool
is_of_dtype(PyObject *o, CiDtype dtype)
{
    if (cx_is_traced(o))
        return cx_dtype((CxTraced *)o) == dtype;
    return dtype == CI_DTYPE_f64 ? PyFloat_CheckExact(o) : PyLong_CheckExact(o);
}

/* Whether Python's number would come to the same, without an exception. */
static bool
computes_alike(int ufunc, PyObject *a, PyObject *b)
{
    PyObject *both[2] = {a, b};

    for (int k = 0; k < 2; k++) {
        if (both[k] == NULL || cx_mixed(both[k]) == NULL)
            continue;
        CiDtype dtype = cx_dtype((CxTraced *)both[k]);
        PyObject *other = both[1 - k];
        if (other != NULL && !cx_promotes_alike(dtype, other))
            return false;
        bool is_float =
            dtype == CI_DTYPE_f64 || (other != NULL && is_of_dtype(other, CI_DTYPE_f64));
        if (!is_float && !cx_is_comparison(ufunc))
            return false;
    }
    if (ufunc == CI_OP_divide)
        return PyFloat_CheckExact(b) ? PyFloat_AS_DOUBLE(b) != 0.0
                                     : PyLong_CheckExact(b) && PyObject_IsTrue(b) == 1;
    return cx_is_comparison(ufunc) || ufunc == CI_OP_add || ufunc == CI_OP_subtract ||
           ufunc == CI_OP_multiply || ufunc == CI_OP_negative || ufunc == CI_OP_positive ||
           ufunc == CI_OP_absolute;
}

/* NumPy's number as soon as one of two is. */
static CxStorage *
either(CxTracer *t, CxStorage *a, CxStorage *b)
{
    CxOperand operands[2] = {{.want = CI_DTYPE_bool}, {.want = CI_DTYPE_bool}};
    PyObject *x = NULL, *y = NULL;
    CxStorage *result = NULL;

    if (a == NULL || b == NULL || a == b) {
        result = a != NULL ? a : b;
        result->refs++;
        return result;
    }
    a->refs++;
    b->refs++;
    x = cx_traced_new(t, a, NULL);
    y = cx_traced_new(t, b, NULL);
    operands[0].traced = (CxTraced *)x;
    operands[1].traced = (CxTraced *)y;
    CiNode *node =
        x && y ? cx_build_pointwise(t, CI_OP_logical_or, 2, operands, CI_DTYPE_none, CI_KIND_scalar)
               : NULL;
    if (node != NULL)
        result = cx_storage_from_node(t, node, CI_KIND_scalar);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

bool
cx_is_mixed_op(PyObject *a, PyObject *b)
{
    if (cx_mixed(a) == NULL && (b == NULL || cx_mixed(b) == NULL))
        return false;
    return (cx_mixed(a) != NULL || cx_is_python_number(a)) &&
           (b == NULL || cx_mixed(b) != NULL || cx_is_python_number(b));
}

/* Whether Python's int is what NumPy's is, unless it leaves 64 bits. */
static bool
is_int_op(int ufunc, PyObject *a, PyObject *b)
{
    if (!is_of_dtype(a, CI_DTYPE_i64) || (b != NULL && !is_of_dtype(b, CI_DTYPE_i64)))
        return false;
    if (ufunc == CI_OP_floor_divide || ufunc == CI_OP_remainder)
        return PyLong_CheckExact(b) && PyObject_IsTrue(b) == 1;
    return ufunc == CI_OP_add || ufunc == CI_OP_subtract || ufunc == CI_OP_multiply ||
           ufunc == CI_OP_negative || ufunc == CI_OP_positive || ufunc == CI_OP_absolute;
}

/* A mixed number as Python's; any other as it is. A new reference. */
static PyObject *
as_pythons(CxTracer *t, PyObject *o)
{
    if (o == NULL || cx_mixed(o) == NULL)
        return Py_XNewRef(o);
    if (cx_traced_prepare((CxTraced *)o) < 0)
        return NULL;
    return cx_traced_from_node(t, cx_node((CxTraced *)o), CI_KIND_python);
}

/* Python's operation: the program checks that it stays within 64 bits, and so NumPy's has not
 * wrapped around. */
static PyObject *
int_op(CxTracer *t, int ufunc, PyObject *a, PyObject *b)
{
    PyObject *x = as_pythons(t, a), *y = as_pythons(t, b), *made = NULL, *result = NULL;

    if (x != NULL && (y != NULL || b == NULL))
        made = cx_python_data(t, ufunc, x, y, NULL);
    if (made == Py_NotImplemented)
        (void)cx_refuse_mixed(t);
    else if (made != NULL)
        result = cx_traced_from_node(t, cx_node((CxTraced *)made), CI_KIND_scalar);
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(made);
    return result;
}

PyObject *
cx_mixed_op(int ufunc, PyObject *a, PyObject *b)
{
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *args[2] = {a, b}, *made = NULL;

    if (computes_alike(ufunc, a, b))
        made = cx_ufunc_call(t, ufunc, b ? 2 : 1, args);
    else if (is_int_op(ufunc, a, b))
        made = int_op(t, ufunc, a, b);
    else
        (void)cx_refuse_mixed(t);
    CxTraced *result = (CxTraced *)made;
    if (result == NULL || !cx_is_traced((PyObject *)result))
        return (PyObject *)result;
    result->storage->strong = either(t, cx_mixed(a), b ? cx_mixed(b) : NULL);
    if (result->storage->strong == NULL)
        Py_CLEAR(result);
    return (PyObject *)result;
}
