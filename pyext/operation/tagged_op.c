/* Operators of tagged numbers, which are Python's on one path and NumPy's on another. NumPy's
 * operation is used where Python's would give the same value. If the result may also be either,
 * it keeps the bool that tells which. */
#include "graph/size.h"
#include "operation/ufunc.h"
#include "value/build.h"
#include "value/python_number.h"
#include "value/tagged.h"

#define MAX_INT (1LL << 53) /* largest constant that python_data.c takes */

static bool
is_of_dtype(PyObject *o, CiDtype dtype)
{
    int overflow = 0;

    if (cx_is_traced(o))
        return cx_dtype((CxTraced *)o) == dtype;
    if (dtype != CI_DTYPE_i64)
        return dtype == CI_DTYPE_f64 ? PyFloat_CheckExact(o) : PyBool_Check(o);
    return PyLong_CheckExact(o) && llabs(PyLong_AsLongLongAndOverflow(o, &overflow)) <= MAX_INT &&
           overflow == 0;
}

static bool
is_int_or_bool(PyObject *o)
{
    return is_of_dtype(o, CI_DTYPE_i64) || is_of_dtype(o, CI_DTYPE_bool);
}

/* True if the operand is not zero, for which Python would raise. A run-time value is checked by
 * the program. */
static bool
is_divisor(PyObject *b)
{
    if (cx_is_traced(b))
        return cx_may_check(((CxTraced *)b)->tracer);
    return PyFloat_CheckExact(b) ? PyFloat_AS_DOUBLE(b) != 0.0
                                 : PyLong_CheckExact(b) && PyObject_IsTrue(b) == 1;
}

static bool
is_alike(int ufunc, PyObject *b)
{
    CxTagged when = cx_tagged_when(ufunc);
    return when == CX_TAGGED_alike || when == CX_TAGGED_same ||
           (when == CX_TAGGED_divisor && is_divisor(b));
}

/* True if Python's operation gives the same value without an exception. */
static bool
computes_alike(int ufunc, PyObject *a, PyObject *b)
{
    PyObject *both[2] = {a, b};

    for (int k = 0; k < 2; k++) {
        if (both[k] == NULL || cx_tagged(both[k]) == NULL)
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
    return is_alike(ufunc, b) || cx_is_comparison(ufunc);
}

/* The bool of the result: NumPy's if one of the operands is. */
static CxStorage *
strong_of(CxTracer *t, CxStorage *a, CxStorage *b)
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

/* True if Python's int equals NumPy's as long as it fits 64 bits, which the program checks. */
static bool
is_int_op(int ufunc, PyObject *a, PyObject *b)
{
    bool has_int = is_of_dtype(a, CI_DTYPE_i64) || (b != NULL && is_of_dtype(b, CI_DTYPE_i64));
    bool has_other = !is_int_or_bool(a) || (b != NULL && !is_int_or_bool(b));

    if (!has_int || has_other || !cx_may_check(((CxTraced *)(cx_is_traced(a) ? a : b))->tracer))
        return false;
    return is_alike(ufunc, b);
}

/* True for an operation on two bools, which gives the same in Python and NumPy. */
static bool
is_bool_op(int ufunc, PyObject *a, PyObject *b)
{
    return cx_tagged_when(ufunc) == CX_TAGGED_bools && is_of_dtype(a, CI_DTYPE_bool) &&
           is_of_dtype(b, CI_DTYPE_bool);
}

/* True for an operand to which Python's number and NumPy's do different things, such as a list. */
static bool
tells_class(PyObject *o)
{
    return !cx_is_traced(o) && !cx_is_python_number(o) && !PyArray_Check(o) &&
           !PyArray_IsScalar(o, Generic);
}

int
cx_is_tagged_op(int ufunc, PyObject *a, PyObject *b)
{
    bool has_mixed = cx_tagged(a) != NULL || (b != NULL && cx_tagged(b) != NULL);

    if (has_mixed && b != NULL && (tells_class(a) || tells_class(b)))
        return cx_tagged_resolve(((CxTraced *)(cx_is_traced(a) ? a : b))->tracer,
                                 cx_tagged(a) != NULL ? a : b);
    if (!has_mixed || !(cx_tagged(a) != NULL || cx_is_python_number(a)) ||
        !(b == NULL || cx_tagged(b) != NULL || cx_is_python_number(b)))
        return 0;
    if (computes_alike(ufunc, a, b) || is_int_op(ufunc, a, b) || is_bool_op(ufunc, a, b))
        return 1;
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    bool is_done = cx_tagged_resolve(t, a) == 0 && (b == NULL || cx_tagged_resolve(t, b) == 0);
    return is_done ? 0 : -1;
}

/* Returns a tagged number as Python's, any other as it is. A new reference. */
static PyObject *
as_pythons(CxTracer *t, PyObject *o)
{
    if (o == NULL || cx_tagged(o) == NULL)
        return Py_XNewRef(o);
    if (cx_traced_prepare((CxTraced *)o) < 0)
        return NULL;
    return cx_traced_from_node(t, cx_node((CxTraced *)o), CI_KIND_python);
}

/* Builds Python's operation. The program checks that it stays within 64 bits, so NumPy's has not
 * wrapped around. */
static PyObject *
int_op(CxTracer *t, int ufunc, PyObject *a, PyObject *b)
{
    PyObject *x = as_pythons(t, a), *y = as_pythons(t, b), *made = NULL, *result = NULL;

    if (x != NULL && (y != NULL || b == NULL))
        made = cx_python_data_either(t, ufunc, x, y);
    if (made == Py_NotImplemented)
        cx_raise_status(t->state, CI_ERR_INTERNAL, "an operation of ints that no graph has");
    else if (made != NULL)
        result = cx_traced_from_node(t, cx_node((CxTraced *)made), CI_KIND_scalar);
    Py_XDECREF(x);
    Py_XDECREF(y);
    Py_XDECREF(made);
    return result;
}

/* Adds a check that a run-time divisor is not zero, for which Python raises. */
static int
check_divisor(CxTracer *t, PyObject *b)
{
    CxOperand operands[2] = {{.traced = (CxTraced *)b, .want = CI_DTYPE_f64},
                             {.want = CI_DTYPE_f64, .kind = CI_KIND_scalar}};

    if (!cx_is_traced(b))
        return 0;
    CiNode *node =
        cx_build_pointwise(t, CI_OP_not_equal, 2, operands, CI_DTYPE_none, CI_KIND_scalar);
    CxTraced *holds = (CxTraced *)cx_traced_from_node(t, node, CI_KIND_scalar);
    if (holds != NULL)
        (void)cx_build_check(t, holds, "division by zero");
    Py_XDECREF(holds);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *
cx_tagged_op(int ufunc, PyObject *a, PyObject *b)
{
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *args[2] = {a, b}, *made = NULL;

    if (is_int_op(ufunc, a, b))
        made = int_op(t, ufunc, a, b);
    else if (cx_tagged_when(ufunc) != CX_TAGGED_divisor || check_divisor(t, b) == 0)
        made = cx_ufunc_operator(t, ufunc, b ? 2 : 1, args);
    CxTraced *result = (CxTraced *)made;
    if (result == NULL || !cx_is_traced((PyObject *)result))
        return (PyObject *)result;
    result->storage->strong = strong_of(t, cx_tagged(a), b ? cx_tagged(b) : NULL);
    if (result->storage->strong == NULL)
        Py_CLEAR(result);
    return (PyObject *)result;
}
