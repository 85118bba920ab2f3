/* Operators of numbers that are Python's on one path and NumPy's on another: NumPy's, where
 * Python's would come to the same; a result that is Python's as well hands the bool on. */
#include "build.h"
#include "mixed.h"
#include "python_number.h"
#include "ufunc.h"

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
        if (dtype != CI_DTYPE_f64 && !cx_is_comparison(ufunc))
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

PyObject *
cx_mixed_op(int ufunc, PyObject *a, PyObject *b)
{
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *args[2] = {a, b};

    if (!computes_alike(ufunc, a, b)) {
        (void)cx_refuse_mixed(t);
        return NULL;
    }
    CxTraced *result = (CxTraced *)cx_ufunc_call(t, ufunc, b ? 2 : 1, args);
    if (result == NULL || !cx_is_traced((PyObject *)result))
        return (PyObject *)result;
    result->storage->strong = either(t, cx_mixed(a), b ? cx_mixed(b) : NULL);
    if (result->storage->strong == NULL)
        Py_CLEAR(result);
    return (PyObject *)result;
}
