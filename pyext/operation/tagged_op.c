/* Operators of tagged numbers, which are of one class on one path and of another class on another.
 * NumPy's operation is used where Python's would give the same value. If the result may also be
 * either, it keeps the bool that tells which.
 *
 * An int with a float is computed as a float, which is exact as long as the result is small. The
 * program checks that it is. */
#include "graph/size.h"
#include "operation/ufunc.h"
#include "value/build.h"
#include "value/python_number.h"
#include "value/tagged.h"

#define MAX_INT (1LL << 53)   /* largest constant that python_data.c takes */
#define MAX_INT32 (1LL << 24) /* ints below it are exact in float32 */
#define MAX_EXPONENT 62

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

/* True if a power of the operand is an int if the operand is Python's int. */
static bool
has_whole_power(PyObject *a, PyObject *b)
{
    int overflow = 0;
    if (cx_tagged(a) == NULL || ((CxTraced *)a)->storage->weak != CI_DTYPE_i64 ||
        !PyLong_CheckExact(b))
        return false;
    long long exponent = PyLong_AsLongLongAndOverflow(b, &overflow);
    return overflow == 0 && exponent >= 0 && exponent <= MAX_EXPONENT;
}

static bool
is_alike(int ufunc, PyObject *a, PyObject *b)
{
    CxTagged when = cx_tagged_when(ufunc);
    return when == CX_TAGGED_alike || when == CX_TAGGED_same ||
           (when == CX_TAGGED_divisor && is_divisor(b)) ||
           (when == CX_TAGGED_whole && has_whole_power(a, b));
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
        if (other != NULL && cx_tagged(other) == NULL && dtype == CI_DTYPE_f32)
            return false; /* NumPy's number keeps the result narrow */
        bool is_float =
            dtype == CI_DTYPE_f64 || (other != NULL && is_of_dtype(other, CI_DTYPE_f64));
        if (!is_float && !cx_is_comparison(ufunc))
            return false;
    }
    return is_alike(ufunc, a, b) || cx_is_comparison(ufunc);
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
    return is_alike(ufunc, a, b);
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

/* ---- an int on one path, and another dtype on the other ---- */

static bool
has_int_or_other(PyObject *a, PyObject *b)
{
    return cx_is_int_or_other(a) || (b != NULL && cx_is_int_or_other(b));
}

/* The dtype of the operand if it is Python's number. */
static CiDtype
pythons_dtype(PyObject *o)
{
    if (cx_is_traced(o))
        return cx_tagged(o) != NULL ? ((CxTraced *)o)->storage->weak : cx_dtype((CxTraced *)o);
    return PyBool_Check(o)           ? CI_DTYPE_bool
           : PyLong_CheckExact(o)    ? CI_DTYPE_i64
           : PyFloat_CheckExact(o)   ? CI_DTYPE_f64
                                     : CI_DTYPE_c128;
}

/* The dtype of the result if it is Python's. */
static CiDtype
pythons_result(int ufunc, PyObject *a, PyObject *b)
{
    CiDtype x = pythons_dtype(a), y = b == NULL ? x : pythons_dtype(b);

    if (cx_is_comparison(ufunc))
        return CI_DTYPE_bool;
    return ufunc == CI_OP_divide || x == CI_DTYPE_f64 || y == CI_DTYPE_f64 ? CI_DTYPE_f64
                                                                         : CI_DTYPE_i64;
}

/* True for an operand that the float dtype represents exactly if it is Python's, or as NumPy does. */
static bool
is_exact_operand(PyObject *o, CiDtype dtype)
{
    int overflow = 0;
    CiDtype pythons = pythons_dtype(o);

    if (cx_tagged(o) != NULL && cx_dtype((CxTraced *)o) != dtype)
        return false;
    if (pythons == CI_DTYPE_bool)
        return true;
    if (pythons == CI_DTYPE_i64 && !cx_is_traced(o))
        return llabs(PyLong_AsLongLongAndOverflow(o, &overflow)) <=
                   (dtype == CI_DTYPE_f32 ? MAX_INT32 : MAX_INT) &&
               overflow == 0;
    if (pythons == CI_DTYPE_i64)
        return dtype == CI_DTYPE_f64 || cx_tagged(o) != NULL;
    return pythons == CI_DTYPE_f64 && dtype == CI_DTYPE_f64;
}

/* True for a tagged number whose other class is Python's, too. */
static bool
is_pythons_either_way(PyObject *o)
{
    return cx_tagged(o) != NULL && cx_is_python_kind(o);
}

static bool
is_numpys_or_pythons(PyObject *o)
{
    return cx_tagged(o) != NULL && !cx_is_python_kind(o);
}

/* True if one operation on values gives what each class's own would give, and the result has at
 * most two classes. */
static bool
is_exact_op(int ufunc, PyObject *a, PyObject *b)
{
    CiDtype dtype = cx_dtype((CxTraced *)(cx_is_int_or_other(a) ? a : b));
    bool compares = cx_is_comparison(ufunc), is_float = ci_dtype_class(dtype) == CI_CLASS_float;

    if (!compares && (!is_float || !is_alike(ufunc, a, b) ||
                      !cx_may_check(((CxTraced *)(cx_is_traced(a) ? a : b))->tracer)))
        return false;
    if (ufunc == CI_OP_divide && dtype == CI_DTYPE_f32)
        return false;
    if (is_float && !(is_exact_operand(a, dtype) && (b == NULL || is_exact_operand(b, dtype))))
        return false;
    if (!is_float && b != NULL && cx_tagged(a) != NULL && cx_tagged(b) != NULL &&
        cx_dtype((CxTraced *)a) != cx_dtype((CxTraced *)b))
        return false;
    bool are_both = b != NULL && ((is_pythons_either_way(a) && is_numpys_or_pythons(b)) ||
                                  (is_pythons_either_way(b) && is_numpys_or_pythons(a)));
    return !are_both || pythons_result(ufunc, a, b) != CI_DTYPE_i64;
}

int
cx_is_tagged_op(int ufunc, PyObject *a, PyObject *b)
{
    bool has_tagged = cx_tagged(a) != NULL || (b != NULL && cx_tagged(b) != NULL);

    if (has_tagged && b != NULL && (tells_class(a) || tells_class(b)))
        return cx_tagged_resolve(((CxTraced *)(cx_is_traced(a) ? a : b))->tracer,
                                 cx_tagged(a) != NULL ? a : b);
    if (!has_tagged || !(cx_tagged(a) != NULL || cx_is_python_number(a)) ||
        !(b == NULL || cx_tagged(b) != NULL || cx_is_python_number(b)))
        return 0;
    bool is_known = has_int_or_other(a, b)
                        ? is_exact_op(ufunc, a, b)
                        : computes_alike(ufunc, a, b) || is_int_op(ufunc, a, b) ||
                              is_bool_op(ufunc, a, b);
    if (is_known)
        return 1;
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    bool is_done = cx_tagged_resolve(t, a) == 0 && (b == NULL || cx_tagged_resolve(t, b) == 0);
    return is_done ? 0 : -1;
}

/* Returns a tagged number as a number of that kind, any other as it is. A new reference. */
static PyObject *
as_kind(CxTracer *t, PyObject *o, CiKind kind)
{
    if (o == NULL || cx_tagged(o) == NULL)
        return Py_XNewRef(o);
    if (cx_traced_prepare((CxTraced *)o) < 0)
        return NULL;
    return cx_traced_from_node(t, cx_node((CxTraced *)o), kind);
}

static PyObject *
as_pythons(CxTracer *t, PyObject *o)
{
    return as_kind(t, o, CI_KIND_python);
}

static PyObject *
as_numpys(CxTracer *t, PyObject *o)
{
    return as_kind(t, o, CI_KIND_scalar);
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

/* A new Traced of a storage. */
static PyObject *
of_storage(CxTracer *t, CxStorage *s)
{
    s->refs++;
    return cx_traced_new(t, s, NULL);
}

/* Adds a check that the value is smaller than limit if it is an int. strong: it is none. */
static int
check_small(CxTracer *t, CxStorage *strong, PyObject *value, double limit)
{
    PyObject *number = PyFloat_FromDouble(limit), *other = of_storage(t, strong), *less = NULL;
    PyObject *size = cx_ufunc_operator(t, CI_OP_absolute, 1, &value);

    if (size != NULL && number != NULL)
        less = cx_ufunc_operator(t, CI_OP_less, 2, (PyObject *[]){size, number});
    int status = cx_ufunc_check(t, CI_OP_bitwise_or, less, other, "an int that a float does not hold");
    Py_XDECREF(number);
    Py_XDECREF(other);
    Py_XDECREF(less);
    Py_XDECREF(size);
    return status;
}

/* Returns the value in which an int has no negative zero. */
static PyObject *
without_minus_zero(CxTracer *t, CxStorage *strong, PyObject *value)
{
    CxOperand operands[3] = {{.want = CI_DTYPE_bool}, {.want = cx_dtype((CxTraced *)value)},
                             {.want = cx_dtype((CxTraced *)value)}};
    PyObject *zero = PyFloat_FromDouble(0.0), *other = of_storage(t, strong), *result = NULL;
    PyObject *sum = zero == NULL ? NULL
                                 : cx_ufunc_operator(t, CI_OP_add, 2, (PyObject *[]){value, zero});

    operands[0].traced = (CxTraced *)other;
    operands[1].traced = (CxTraced *)value;
    operands[2].traced = (CxTraced *)sum;
    if (sum != NULL && other != NULL) {
        CiNode *node =
            cx_build_pointwise(t, CI_OP_where, 3, operands, CI_DTYPE_none, CI_KIND_scalar);
        result = node == NULL ? NULL : cx_traced_from_node(t, node, CI_KIND_scalar);
    }
    Py_XDECREF(zero);
    Py_XDECREF(other);
    Py_XDECREF(sum);
    return result;
}

/* The conditions under which an int result is right. */
static PyObject *
as_exact_int(CxTracer *t, int ufunc, CxStorage *strong, PyObject *const *args, int nargs,
             PyObject *made)
{
    bool is_f32 = cx_dtype((CxTraced *)made) == CI_DTYPE_f32;
    double limit = (double)(is_f32 ? MAX_INT32 : MAX_INT);
    bool is_sum = ufunc == CI_OP_add || ufunc == CI_OP_subtract;

    for (int k = 0; k < nargs && is_sum; k++) /* NumPy rounds an operand that is large */
        if (cx_is_traced(args[k]) && cx_tagged(args[k]) == NULL && !cx_is_size((CxTraced *)args[k]) &&
            check_small(t, strong, args[k], limit) < 0)
            return NULL;
    if (nargs > 1 && check_small(t, strong, made, limit) < 0)
        return NULL;
    return is_sum ? Py_NewRef(made) : without_minus_zero(t, strong, made);
}

/* The bool of the result: false if it is Python's. An operand that is Python's in any case only decides
 * between int and float. */
static CxStorage *
strong_of_result(CxTracer *t, CiDtype pythons, PyObject *a, PyObject *b)
{
    PyObject *both[2] = {a, b};
    CxStorage *strong[2] = {NULL, NULL};

    for (int k = 0; k < 2; k++)
        if (both[k] != NULL && (is_numpys_or_pythons(both[k]) || pythons == CI_DTYPE_i64))
            strong[k] = cx_tagged(both[k]);
    return strong[0] == NULL && strong[1] == NULL ? NULL : strong_of(t, strong[0], strong[1]);
}

/* Builds the operation on the values, and the bool of the result. */
static PyObject *
exact_op(CxTracer *t, int ufunc, PyObject *a, PyObject *b)
{
    CiDtype pythons = pythons_result(ufunc, a, b);
    bool is_numpys = is_numpys_or_pythons(a) || (b != NULL && is_numpys_or_pythons(b));
    CxStorage *strong = strong_of_result(t, pythons, a, b);
    PyObject *args[2] = {as_numpys(t, a), as_numpys(t, b)}, *made = NULL, *result = NULL;
    int nargs = b == NULL ? 1 : 2;

    if (args[0] != NULL && (b == NULL || args[1] != NULL) && !PyErr_Occurred() &&
        (cx_tagged_when(ufunc) != CX_TAGGED_divisor || check_divisor(t, b) == 0))
        made = cx_ufunc_operator(t, ufunc, nargs, args);
    if (made != NULL && !cx_is_traced(made)) /* the same for all values of the dtype */
        Py_SETREF(made, (PyObject *)cx_lifted(t, made));
    if (made != NULL && pythons == CI_DTYPE_i64)
        Py_SETREF(made, as_exact_int(t, ufunc, strong, (PyObject *[]){a, b}, nargs, made));
    if (made != NULL && cx_traced_prepare((CxTraced *)made) == 0)
        result = cx_traced_from_node(t, cx_node((CxTraced *)made),
                                     is_numpys ? CI_KIND_scalar : CI_KIND_python);
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    Py_XDECREF(made);
    if (result != NULL && strong != NULL) {
        ((CxTraced *)result)->storage->strong = strong;
        ((CxTraced *)result)->storage->weak = pythons;
    } else if (strong != NULL) {
        cx_storage_release(strong);
    }
    return result;
}

PyObject *
cx_tagged_op(int ufunc, PyObject *a, PyObject *b)
{
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *args[2] = {NULL, NULL}, *made = NULL;

    if (has_int_or_other(a, b))
        return exact_op(t, ufunc, a, b);
    if (is_int_op(ufunc, a, b)) {
        made = int_op(t, ufunc, a, b);
    } else if ((args[0] = as_numpys(t, a)) != NULL &&
               (b == NULL || (args[1] = as_numpys(t, b)) != NULL) &&
               (cx_tagged_when(ufunc) != CX_TAGGED_divisor || check_divisor(t, b) == 0)) {
        made = cx_ufunc_operator(t, ufunc, b ? 2 : 1, args);
    }
    Py_XDECREF(args[0]);
    Py_XDECREF(args[1]);
    CxTraced *result = (CxTraced *)made;
    if (result == NULL || !cx_is_traced((PyObject *)result))
        return (PyObject *)result;
    result->storage->strong = strong_of(t, cx_tagged(a), b ? cx_tagged(b) : NULL);
    result->storage->weak = cx_dtype(result);
    if (result->storage->strong == NULL)
        Py_CLEAR(result);
    return (PyObject *)result;
}
