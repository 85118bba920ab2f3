/* Numbers that are Python's where one path was taken and NumPy's where another was: `total` behind
 * `total = 0.0; if c: total += x[i]`. They are computed as NumPy's; `strong` is the bool that says
 * whether they are. An operation that would do something else with Python's number is refused, and
 * one whose result is Python's as well hands the bool on. */
#include "mixed.h"
#include "array.h"
#include "build.h"
#include "methods.h"
#include "python_number.h"
#include "ufunc.h"

CxStorage *
cx_mixed(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL ? ((CxTraced *)o)->storage->strong
                                                            : NULL;
}

static int
refuse(CxTracer *t)
{
    return cx_region_break(t, "a number that is Python's on one path and NumPy's on another");
}

/* Whether NumPy gives an operation with the operand the same dtype either way. */
static bool
promotes_alike(CiDtype mixed, PyObject *other)
{
    bool is_strong = false;
    int code = cx_is_traced(other) ? (int)cx_dtype((CxTraced *)other)
                                   : cx_code_of_number(other, &is_strong);

    if (cx_mixed(other) != NULL)
        return true;
    if (cx_is_python_number(other)) /* a float32 of NumPy's keeps the other one narrow, too */
        return mixed != CI_DTYPE_f32;
    if (mixed == CI_DTYPE_f32)
        return code == CI_DTYPE_f32 || code == CI_DTYPE_f64 || code == CI_DTYPE_c64 ||
               code == CI_DTYPE_c128;
    if (code == CI_DTYPE_f64 || code == CI_DTYPE_c128 || code == CI_DTYPE_bool)
        return true;
    CiClass kind =
        code >= 0 && code < CI_DTYPE_COUNT ? ci_dtype_class((CiDtype)code) : CI_CLASS_complex;
    return mixed == CI_DTYPE_f64 ? kind == CI_CLASS_int || kind == CI_CLASS_uint
                                 : code == CI_DTYPE_i64;
}

int
cx_mixed_check(CxTracer *t, int nargs, PyObject *const *args)
{
    for (int k = 0; k < nargs; k++) {
        if (cx_mixed(args[k]) == NULL)
            continue;
        for (int j = 0; j < nargs; j++)
            if (j != k && !promotes_alike(cx_dtype((CxTraced *)args[k]), args[j]))
                return refuse(t);
    }
    return 0;
}

static bool
is_comparison(int ufunc)
{
    return ufunc == CI_OP_less || ufunc == CI_OP_less_equal || ufunc == CI_OP_greater ||
           ufunc == CI_OP_greater_equal || ufunc == CI_OP_equal || ufunc == CI_OP_not_equal;
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
        if (other != NULL && !promotes_alike(dtype, other))
            return false;
        if (dtype != CI_DTYPE_f64 && !is_comparison(ufunc))
            return false;
    }
    if (ufunc == CI_OP_divide)
        return PyFloat_CheckExact(b) ? PyFloat_AS_DOUBLE(b) != 0.0
                                     : PyLong_CheckExact(b) && PyObject_IsTrue(b) == 1;
    return is_comparison(ufunc) || ufunc == CI_OP_add || ufunc == CI_OP_subtract ||
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

PyObject *
cx_mixed_real(CxStorage *s)
{
    if (s->strong->value == NULL) {
        cx_raise_status(s->tracer->state, CI_ERR_INTERNAL,
                        "the class of a number was lost when an earlier run failed or ended");
        return NULL;
    }
    int is_strong = PyObject_IsTrue(s->strong->value);
    if (is_strong < 0)
        return NULL;
    return is_strong ? Py_NewRef(s->value) : PyObject_CallMethod(s->value, "item", NULL);
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
        (void)refuse(t);
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

/* mixed(number, strong): the number, NumPy's where the bool holds; NumPy's when that is None. */
PyObject *
cx_tracer_mixed(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *strong = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:mixed", &value, &strong))
        return NULL;
    bool has_bool = cx_is_traced(strong) && ((CxTraced *)strong)->view == NULL &&
                    cx_dtype((CxTraced *)strong) == CI_DTYPE_bool;
    if (!cx_is_traced(value) || cx_rank((CxTraced *)value) != 0 || (strong != Py_None && !has_bool))
        return PyErr_Format(PyExc_TypeError, "mixed() takes a Traced number and a Traced bool");
    if (cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    CxTraced *made = (CxTraced *)cx_traced_from_node(t, cx_node((CxTraced *)value), CI_KIND_scalar);
    if (made != NULL && has_bool) {
        made->storage->strong = ((CxTraced *)strong)->storage;
        made->storage->strong->refs++;
    }
    return (PyObject *)made;
}
