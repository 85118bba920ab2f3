/* Operators of Python numbers. Ints that are expressions of sizes and indices stay expressions,
 * and comparisons of them are decided now if possible. Other numbers are computed now and in the
 * graph (python_data.c), or forced. */
#include "graph/methods.h"
#include "value/index.h"
#include "value/python_int.h"

/* ---- expressions ---- */

/* 1: an int as an expression; 0: another number, or an int of more than 64 bits. */
static int
expr_of(CxTracer *t, PyObject *o, const CiExpr **e)
{
    int overflow = 0;

    if (cx_is_traced(o)) {
        *e = ((CxTraced *)o)->storage->expr;
        return *e != NULL;
    }
    if (!PyLong_CheckExact(o))
        return 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow != 0)
        return 0;
    return (*e = cx_size_const(t, value)) == NULL ? -1 : 1;
}

/* An operator on one or two ints that are expressions. */
typedef struct SizeOp {
    CxTracer *tracer;
    CiOp op;
    PyObject *args[2];
    const CiExpr *x, *y;
} SizeOp;

/* The truth of a comparison in this call, a new reference; NULL if it is unknown, or with an
 * exception. */
static PyObject *
truth_of(CxTracer *t, CiRelation relation, const CiExpr *left, const CiExpr *right)
{
    const CiExpr *sides[2] = {left, right};
    int64_t v[2];

    if (!cx_size_is_known(t, left) || !cx_size_is_known(t, right) ||
        cx_size_values(t, 2, sides, v) < 0)
        return NULL;
    return PyBool_FromLong(ci_relation_is_true(relation, v[0], v[1]));
}

/* A proved or decided comparison is a bool. An open one is a Traced value that remembers its
 * operands. */
static PyObject *
size_compared(const SizeOp *s)
{
    CxTracer *t = s->tracer;
    const CxCompared *c = cx_compared(s->op);
    const CiExpr *left = c->is_swapped ? s->y : s->x, *right = c->is_swapped ? s->x : s->y;
    int holds = (t->leaves_open ? cx_size_prove : cx_size_decide)(t, c->relation, left, right);

    if (holds < 0)
        return NULL;
    if (holds != CX_OPEN)
        return PyBool_FromLong(holds);
    PyObject *value = truth_of(t, c->relation, left, right);
    if (value == NULL && PyErr_Occurred())
        return NULL;
    CxTraced *result = (CxTraced *)cx_python_data(t, s->op, s->args[0], s->args[1], value);
    Py_XDECREF(value);
    if (result != NULL && cx_is_traced((PyObject *)result)) {
        result->storage->relation = c->relation;
        result->storage->left = left;
        result->storage->right = right;
    }
    return (PyObject *)result;
}

static PyObject *
size_quotient(const SizeOp *s)
{
    int has_value = cx_size_usual(s->tracer, CI_REL_ne, s->y, s->tracer->zero);
    if (has_value < 0)
        return NULL;
    if (has_value == 0) {
        PyErr_SetString(PyExc_ZeroDivisionError, s->op == CI_OP_floor_divide
                                                     ? "integer division or modulo by zero"
                                                     : "integer modulo by zero");
        return NULL;
    }
    if (has_value == CX_OPEN)
        Py_RETURN_NOTIMPLEMENTED;
    return cx_size_object(s->tracer, cx_size_make(s->tracer, s->op, s->x, s->y));
}

/* Returns NotImplemented if the value may exceed 64 bits, so that Python computes it. */
static PyObject *
if_it_fits(CxTracer *t, const CiExpr *e)
{
    int fits = e == NULL ? -1 : cx_size_fits(t, e);
    if (e == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        fits = 0;
    }
    if (fits == 0)
        Py_RETURN_NOTIMPLEMENTED;
    return fits < 0 ? NULL : cx_size_object(t, e);
}

static PyObject *
size_made(const SizeOp *s)
{
    return if_it_fits(s->tracer, cx_size_make(s->tracer, s->op, s->x, s->y));
}

static const CiExpr *
negated(const SizeOp *s)
{
    return cx_size_make(s->tracer, CI_OP_subtract, s->tracer->zero, s->x);
}

static PyObject *
size_negative(const SizeOp *s)
{
    return cx_size_object(s->tracer, negated(s));
}

static PyObject *
size_same(const SizeOp *s)
{
    return cx_size_object(s->tracer, s->x);
}

static PyObject *
size_absolute(const SizeOp *s)
{
    return cx_size_object(s->tracer, cx_size_make(s->tracer, CI_OP_maximum, s->x, negated(s)));
}

/* A small power of a size, by multiplications. */
static PyObject *
size_power(const SizeOp *s)
{
    enum { LARGEST = 8 };
    int64_t exponent = 0;
    const CiExpr *e = s->tracer->one;

    if (!ci_expr_is_const(s->y, &exponent) || exponent < 0 || exponent > LARGEST)
        Py_RETURN_NOTIMPLEMENTED;
    for (int64_t k = 0; e != NULL && k < exponent; k++)
        e = cx_size_make(s->tracer, CI_OP_multiply, e, s->x);
    return if_it_fits(s->tracer, e);
}

#define size_none NULL
static PyObject *(*const of_sizes[CI_OP_COUNT])(const SizeOp *) = {
#define NUMBER(op, sizes, ...) [CI_OP_##op] = size_##sizes,
#include "value/number.def"
};

/* Returns NotImplemented unless all operands are expressions. */
static PyObject *
expr_op(CxTracer *t, int ufunc, PyObject *a, PyObject *b)
{
    SizeOp s = {.tracer = t, .op = (CiOp)ufunc, .args = {a, b}};
    bool has_row = ufunc < CI_OP_COUNT && of_sizes[ufunc] != NULL;
    int fits = has_row ? expr_of(t, a, &s.x) : 0;

    if (fits > 0 && b != NULL)
        fits = expr_of(t, b, &s.y);
    if (fits < 0)
        return NULL;
    return fits == 0 ? Py_NewRef(Py_NotImplemented) : of_sizes[ufunc](&s);
}

/* ---- operators ---- */

static int
specialize_both(PyObject *a, PyObject *b)
{
    if (cx_is_traced(a) && cx_tracer_specialize(((CxTraced *)a)->storage) < 0)
        return -1;
    return b != NULL && cx_is_traced(b) ? cx_tracer_specialize(((CxTraced *)b)->storage) : 0;
}

/* True for an int argument whose value is known and that is not a symbol: its value is part of
 * the graph. */
static bool
is_fixed_int(PyObject *o)
{
    if (o == NULL || !cx_is_traced(o))
        return false;
    const CxStorage *s = ((CxTraced *)o)->storage;
    bool is_word = s->dtype == CI_DTYPE_u64 && s->source >= 0;
    return s->value != NULL && s->expr == NULL && s->epoch != s->tracer->epoch &&
           cx_is_int_dtype(s->dtype) && !is_word;
}

/* value: what Python computed from the numbers of this call, or NULL with its exception. Steals
 * it. */
static PyObject *
known_op(CxTracer *t, int ufunc, PyObject *a, PyObject *b, PyObject *value)
{
    PyObject *result = NULL;

    if (value == NULL) { /* Python raised for these numbers */
        PyObject *exception = cx_take_exception();
        if (specialize_both(a, b) < 0)
            PyErr_Clear();
        cx_restore_exception(exception);
        return NULL;
    }
    bool fits = !is_fixed_int(a) && !is_fixed_int(b) && cx_is_python_number(value) &&
                !(PyComplex_CheckExact(value) && ufunc == CI_OP_power);
    result = fits ? cx_python_data(t, ufunc, a, b, value) : Py_NewRef(Py_NotImplemented);
    if (result == Py_NotImplemented)
        Py_SETREF(result, specialize_both(a, b) == 0 ? Py_NewRef(value) : NULL);
    Py_DECREF(value);
    return result;
}

/* An operation on run-time numbers that the graph does not have. */
static PyObject *
forced_op(PyObject *a, PyObject *b, PyObject *(*unary)(PyObject *), binaryfunc binary)
{
    PyObject *x =
        cx_is_traced(a) ? cx_traced_concretize((CxTraced *)a, "an operator of Python's") : Py_NewRef(a);
    PyObject *y = x == NULL || b == NULL ? NULL
                  : cx_is_traced(b)      ? cx_traced_concretize((CxTraced *)b, "an operator of Python's")
                                         : Py_NewRef(b);
    PyObject *result = NULL;
    if (x != NULL && (b == NULL || y != NULL))
        result = b == NULL ? unary(x) : binary(x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *
python_op(int ufunc, PyObject *a, PyObject *b, PyObject *(*unary)(PyObject *), binaryfunc binary)
{
    CxTracer *t = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *x = cx_python_value(a), *y = b ? cx_python_value(b) : NULL;
    PyObject *result = expr_op(t, ufunc, a, b);

    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result);
    if (x != NULL && (b == NULL || y != NULL))
        return known_op(t, ufunc, a, b, b == NULL ? unary(x) : binary(x, y));
    result = cx_python_data(t, ufunc, a, b, NULL);
    if (result != Py_NotImplemented)
        return result;
    Py_DECREF(result);
    return forced_op(a, b, unary, binary);
}

PyObject *
cx_python_binary(int ufunc, PyObject *a, PyObject *b, binaryfunc python)
{
    return python_op(ufunc, a, b, NULL, python);
}

PyObject *
cx_python_unary(int ufunc, PyObject *a, unaryfunc python)
{
    return python_op(ufunc, a, NULL, python, NULL);
}

/* as_python(number): the same value as a Python number, which has its dtype. Once NumPy runs the rest of the call, numbers are real. */
PyObject *
cx_method_as_python(PyObject *self, PyObject *value)
{
    CX_ENTRY();
    if (((CxTracer *)self)->has_fallen_back && !cx_is_traced(value))
        return PyArray_IsScalar(value, Generic) ? PyObject_CallMethod(value, "item", NULL) : Py_NewRef(value);
    CiDtype dtype = cx_is_traced(value) ? cx_dtype((CxTraced *)value) : CI_DTYPE_none;
    bool is_pythons = cx_is_int_dtype(dtype) || dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_c128;
    if (!is_pythons || cx_rank((CxTraced *)value) != 0)
        return cx_misuse(((CxTracer *)self)->state, "as_python() takes a Traced number");
    if (cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    return cx_traced_from_node((CxTracer *)self, cx_node((CxTraced *)value), CI_KIND_python);
}
