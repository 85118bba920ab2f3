/* Python numbers as values of the graph, with Python's meaning: ints have no bound
 * (python_int.c), division by zero raises, a power may be complex. Where the graph's arithmetic
 * differs, a check precedes it. If in doubt the check fails, and Python computes the number. */
#include "graph/methods.h"
#include "graph/size.h"
#include "state/array.h"
#include "value/python_int.h"

/* All smaller ints are exact floats. */
#define EXACT_INT (1LL << 53)

/* Checks that a power is real. It is also real for a negative number with an integral exponent,
 * and for zero with one that is not negative. exponent: NaN if it is only known at run time. */
static void
check_real_power(CxNumber *n, CiNode *a, CiNode *b, double exponent)
{
    CiNode *zero = cx_number_constant(n, CI_DTYPE_f64, 0.0);
    CiNode *is_real =
        cx_number_apply(n, exponent > 0.0 ? CI_OP_greater_equal : CI_OP_greater, a, zero);

    if (isnan(exponent)) {
        CiNode *is_whole =
            cx_number_apply(n, CI_OP_equal, cx_number_apply(n, CI_OP_trunc, b, NULL), b);
        CiNode *has_sign = cx_number_apply(n, CI_OP_logical_and,
                                           cx_number_apply(n, CI_OP_not_equal, a, zero), is_whole);
        CiNode *is_zero =
            cx_number_apply(n, CI_OP_logical_and, cx_number_apply(n, CI_OP_equal, a, zero),
                            cx_number_apply(n, CI_OP_greater_equal, b, zero));
        is_real = cx_number_apply(n, CI_OP_logical_or, is_real,
                                  cx_number_apply(n, CI_OP_logical_or, has_sign, is_zero));
    }
    cx_number_check(n, is_real, "a power that may be complex");
}

/* a ** b: real and in range, or the check fails. */
static CiNode *
float_power(CxNumber *n)
{
    CiNode *a = cx_number_operand(n, 0, CI_DTYPE_f64), *b = cx_number_operand(n, 1, CI_DTYPE_f64);
    bool is_known = n->traced[1] == NULL;
    double exponent = is_known ? b->value.re : 0.0;
    bool is_whole = is_known && fabs(exponent) < 1024.0 && exponent == (double)(int64_t)exponent;
    CiNode *zero = cx_number_constant(n, CI_DTYPE_f64, 0.0);

    if (!is_whole)
        check_real_power(n, a, b, is_known ? exponent : NAN);
    else if (exponent < 0.0)
        cx_number_check(n, cx_number_apply(n, CI_OP_not_equal, a, zero),
                        "zero to a negative power");
    CiNode *result = exponent == 2.0 && n->has_products
                         ? cx_number_apply(n, CI_OP_multiply, a, a)
                         : cx_number_apply(n, CI_OP_scalar_power, a, b);
    cx_number_check(n, cx_number_apply(n, CI_OP_isfinite, result, NULL), "a power out of range");
    return result;
}

static void
both_operands(CxNumber *n, CiNode **a, CiNode **b)
{
    *a = cx_number_operand(n, 0, n->want);
    *b = n->nargs > 1 ? cx_number_operand(n, 1, n->want) : NULL;
}

static CiNode *
float_plain(CxNumber *n)
{
    CiNode *a, *b;
    both_operands(n, &a, &b);
    return cx_number_apply(n, (CiOp)n->ufunc, a, b);
}

static CiNode *
float_same(CxNumber *n)
{
    return cx_number_operand(n, 0, n->want);
}

static CiNode *
float_quotient(CxNumber *n)
{
    CiNode *a, *b;
    both_operands(n, &a, &b);
    cx_number_check_divisor(n, b);
    return cx_number_apply(n, (CiOp)n->ufunc, a, b);
}

/* A complex and a real operand; the real one acts on each part. */
typedef struct Parts {
    CiNode *re, *im, *x;
    bool is_first; /* the complex operand is first */
} Parts;

static bool
open_parts(CxNumber *n, Parts *p)
{
    p->is_first = n->dtypes[0] == CI_DTYPE_c128;
    if (!CX_REAL_STAYS_REAL || n->dtypes[p->is_first] == CI_DTYPE_c128)
        return false;
    CiNode *z = cx_number_operand(n, !p->is_first, CI_DTYPE_c128);
    p->x = cx_number_operand(n, p->is_first, CI_DTYPE_f64);
    p->re = cx_number_apply(n, CI_OP_real, z, NULL);
    p->im = cx_number_apply(n, CI_OP_imag, z, NULL);
    return true;
}

static CiNode *
join_parts(CxNumber *n, CiNode *re, CiNode *im)
{
    re = ci_graph_cast(n->building.graph, re, CI_DTYPE_c128, n->building.loc);
    im = ci_graph_cast(n->building.graph, im, CI_DTYPE_c128, n->building.loc);
    return cx_number_apply(n, CI_OP_join_parts, re, im);
}

static CiNode *
complex_sum(CxNumber *n)
{
    bool is_difference = n->ufunc == CI_OP_subtract;
    Parts p;

    if (!open_parts(n, &p))
        return float_plain(n);
    if (is_difference && !p.is_first)
        return join_parts(n, cx_number_apply(n, CI_OP_subtract, p.x, p.re),
                          cx_number_apply(n, CI_OP_negative, p.im, NULL));
    return join_parts(n, cx_number_apply(n, (CiOp)n->ufunc, p.re, p.x), p.im);
}

static CiNode *
of_each_part(CxNumber *n, const Parts *p)
{
    CiNode *re = cx_number_apply(n, (CiOp)n->ufunc, p->re, p->x);
    return join_parts(n, re, cx_number_apply(n, (CiOp)n->ufunc, p->im, p->x));
}

static CiNode *
complex_product(CxNumber *n)
{
    Parts p;
    return open_parts(n, &p) ? of_each_part(n, &p) : float_plain(n);
}

/* Divides by a known number. */
static CiNode *
complex_quotient(CxNumber *n)
{
    Parts p;
    if (n->dtypes[1] == CI_DTYPE_c128 || !open_parts(n, &p))
        return float_quotient(n);
    cx_number_check_divisor(n, p.x);
    return of_each_part(n, &p);
}

/* Python's abs() raises OverflowError where parts that are finite give infinity. */
static CiNode *
complex_magnitude(CxNumber *n)
{
    CiNode *z = cx_number_operand(n, 0, CI_DTYPE_c128);
    CiNode *re = cx_number_apply(n, CI_OP_real, z, NULL);
    CiNode *im = cx_number_apply(n, CI_OP_imag, z, NULL);
    CiNode *result = cx_number_apply(n, CI_OP_numpy_hypot, re, im);
    CiNode *limit = cx_number_constant(n, CI_DTYPE_f64, HUGE_VAL);
    cx_number_check(n, cx_number_apply(n, CI_OP_not_equal, result, limit),
                    "the magnitude of a complex number is infinite");
    return result;
}

/* Ints that become floats must be exact, for Python's true division and mixed comparisons. */
static void
check_exact(CxNumber *n, int k)
{
    bool is_int = n->dtypes[k] == CI_DTYPE_i64 || n->dtypes[k] == CI_DTYPE_u64;
    if (n->traced[k] == NULL || !is_int || n->traced[k]->storage->expr != NULL)
        return;
    CiNode *size = cx_number_apply(n, CI_OP_absolute, cx_number_operand(n, k, CI_DTYPE_f64), NULL);
    CiNode *limit = cx_number_constant(n, CI_DTYPE_f64, (double)EXACT_INT);
    cx_number_check(n, cx_number_apply(n, CI_OP_less, size, limit),
                    "an int that a float does not hold");
}

/* True for two ints with a negative exponent, whose power is a float. */
static bool
makes_float(const CxNumber *n)
{
    bool is_inverse = n->ufunc == CI_OP_power && n->traced[1] == NULL && n->values[1].i < 0 &&
                      n->dtypes[1] == CI_DTYPE_i64;
    return n->ufunc == CI_OP_divide || is_inverse;
}

static CiNode *
float_compared(CxNumber *n)
{
    for (int k = 0; k < n->nargs; k++)
        check_exact(n, k);
    return float_plain(n);
}

#define float_none NULL
#define complex_none NULL
#define complex_plain float_plain
#define complex_same float_same
#define complex_compared float_compared
static const struct {
    CiNode *(*of_floats)(CxNumber *n), *(*of_complexes)(CxNumber *n);
} rows[CI_OP_COUNT] = {
#define NUMBER(op, sizes, ints, floats, complexes, ...)                                            \
    [CI_OP_##op] = {float_##floats, complex_##complexes},
#include "value/number.def"
};

static void
body_number(CiContext *ctx, void *arg)
{
    CxNumber *n = arg;
    CiNode *result;

    (void)ctx;
    for (int k = 0; k < n->nargs && n->are_ints && n->want == CI_DTYPE_f64; k++)
        check_exact(n, k);
    if (n->want == CI_DTYPE_i64)
        result = n->cast != CI_DTYPE_none ? cx_int_cast(n) : cx_int_op(n);
    else
        result = n->want == CI_DTYPE_f64 ? rows[n->ufunc].of_floats(n)
                                         : rows[n->ufunc].of_complexes(n);
    n->building.result = n->is_refused ? NULL : result;
}

/* True for an int that is used with a float, or divided, and that no float represents. */
static bool
is_inexact(const CxNumber *n)
{
    bool is_float = n->dtypes[0] == CI_DTYPE_f64 || n->dtypes[1] == CI_DTYPE_f64;
    bool compares = cx_is_comparison(n->ufunc) && is_float;
    for (int k = 0; k < n->nargs && (compares || (makes_float(n) && !is_float)); k++) {
        int64_t value = n->values[k].i;
        if (n->traced[k] == NULL && n->dtypes[k] == CI_DTYPE_i64 &&
            (value > EXACT_INT || value < -EXACT_INT))
            return true;
        if (n->traced[k] == NULL && n->dtypes[k] == CI_DTYPE_u64)
            return true;
    }
    return false;
}

/* True if body_number would refuse the number; tested before anything is built. Also sets the
 * type in which it computes. */
static bool
is_refused(CxNumber *n)
{
    bool is_complex = n->dtypes[0] == CI_DTYPE_c128 || n->dtypes[1] == CI_DTYPE_c128;
    n->are_ints = !is_complex && n->dtypes[0] != CI_DTYPE_f64 && n->dtypes[1] != CI_DTYPE_f64;
    n->want = is_complex                         ? CI_DTYPE_c128
              : !n->are_ints || makes_float(n) ? CI_DTYPE_f64
                                                 : CI_DTYPE_i64;
    if (is_inexact(n) || n->ufunc >= CI_OP_COUNT)
        return true;
    if (n->want != CI_DTYPE_c128)
        return n->want == CI_DTYPE_i64 ? !cx_int_has(n->ufunc)
                                       : rows[n->ufunc].of_floats == NULL;
    return rows[n->ufunc].of_complexes == NULL ||
           (rows[n->ufunc].of_complexes == complex_quotient && n->traced[1] != NULL);
}

/* Also true for floats. */
static bool
is_power_of_two(PyObject *o)
{
    int exponent;
    double rounded = PyLong_AsDouble(o);
    if (PyErr_Occurred() || frexp(rounded, &exponent) != 0.5) {
        PyErr_Clear();
        return false;
    }
    PyObject *same = PyLong_FromDouble(rounded);
    int is_same = same == NULL ? -1 : PyObject_RichCompareBool(same, o, Py_EQ);
    Py_XDECREF(same);
    PyErr_Clear();
    return is_same > 0;
}

/* Sets a constant int. An int divided by a power of two is the product of a float and a
 * constant; a remainder by 2**64 is a mask. Returns 0 if it has more than 64 bits. */
static int
set_int(CxNumber *n, int k, PyObject *o)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(o, &overflow);

    if (k == 1 && n->ufunc == CI_OP_divide && is_power_of_two(o)) {
        n->dtypes[k] = CI_DTYPE_f64;
        n->values[k] = (CiConst){0, PyLong_AsDouble(o), 0.0};
        return 1;
    }
    n->dtypes[k] = CI_DTYPE_i64;
    n->values[k] = (CiConst){value, 0.0, 0.0};
    if (overflow == 0)
        return 1;
    n->dtypes[k] = CI_DTYPE_u64;
    unsigned long long large = PyLong_AsUnsignedLongLong(o); /* all ones if it does not fit */
    bool fits = !PyErr_Occurred();
    PyErr_Clear();
    if (!fits && k == 1 && n->ufunc == CI_OP_remainder && is_power_of_two(o) &&
        PyLong_AsDouble(o) == 0x1p64) {
        n->ufunc = CI_OP_bitwise_and;
        fits = true;
    }
    n->values[k] = (CiConst){(int64_t)large, 0.0, 0.0};
    return fits;
}

/* Sets an operand; 0 if the graph cannot have the number. */
static int
set_operand(CxTracer *t, CxNumber *n, int k, PyObject *o)
{
    n->nargs = k + 1;
    if (cx_is_traced(o)) {
        n->traced[k] = (CxTraced *)o;
        n->dtypes[k] = cx_dtype((CxTraced *)o);
        return 1;
    }
    if (PyLong_CheckExact(o))
        return set_int(n, k, o);
    n->dtypes[k] = PyBool_Check(o)           ? CI_DTYPE_bool
                   : PyFloat_CheckExact(o)   ? CI_DTYPE_f64
                   : PyComplex_CheckExact(o) ? CI_DTYPE_c128
                                             : CI_DTYPE_none;
    if (n->dtypes[k] == CI_DTYPE_none)
        return 0;
    return cx_const_of(t->state, o, n->dtypes[k], &n->values[k]) == 0;
}

PyObject *
cx_number_build(CxTracer *t, CxNumber *n, void (*body)(CiContext *ctx, void *arg), PyObject *value)
{
    for (int round = 0; round < 2; round++) /* preparing one operand may run the other's graph */
        for (int k = 0; k < n->nargs; k++)
            if (n->traced[k] != NULL && cx_traced_prepare(n->traced[k]) < 0)
                return NULL;
    CiNode *node = cx_build_custom(t, body, &n->building);
    if (node == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    CxStorage *s = cx_storage_from_node(t, node, CI_KIND_python);
    if (s == NULL)
        return NULL;
    s->value = Py_XNewRef(value);
    for (int k = 0; k < n->nargs && value != NULL; k++)
        if (n->traced[k] != NULL) {
            s->parents[k] = n->traced[k]->storage;
            s->parents[k]->refs++;
        }
    return cx_traced_new(t, s, NULL);
}

static PyObject *
number_data(CxTracer *t, CxNumber *n, PyObject *a, PyObject *b, PyObject *value)
{
    PyObject *both[2] = {a, b};

    n->may_check = cx_may_check(t);
    n->has_products = cx_squares_are_products(t);
    n->dtypes[0] = n->dtypes[1] = CI_DTYPE_none;
    for (int k = 0; k < 2 && both[k] != NULL; k++)
        if (set_operand(t, n, k, both[k]) == 0)
            Py_RETURN_NOTIMPLEMENTED;
    if (is_refused(n))
        Py_RETURN_NOTIMPLEMENTED;
    return cx_number_build(t, n, body_number, value);
}

/* Builds the operation in the graph. NotImplemented: the graph has none. value: what Python
 * computed, or NULL. */
PyObject *
cx_python_data(CxTracer *t, int ufunc, PyObject *a, PyObject *b, PyObject *value)
{
    CxNumber n = {.ufunc = ufunc, .cast = CI_DTYPE_none};
    return number_data(t, &n, a, b, value);
}

PyObject *
cx_python_data_either(CxTracer *t, int ufunc, PyObject *a, PyObject *b)
{
    CxNumber n = {.ufunc = ufunc, .cast = CI_DTYPE_none, .is_either = true};
    return number_data(t, &n, a, b, NULL);
}

/* as_int(int, dtype): the same int as i64 or u64, with a run-time check; None if no check is
 * possible. */
PyObject *
cx_method_as_int(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL;
    const char *dtype = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "Os:as_int", &value, &dtype))
        return NULL;
    CxNumber n = {.ufunc = CI_OP_positive, .cast = ci_dtype_find(dtype)};
    if (!cx_is_python_kind(value) || !cx_is_int_dtype(cx_dtype((CxTraced *)value)))
        return cx_misuse(t->state, "a Traced int of Python's is expected");
    PyObject *made = number_data(t, &n, value, NULL, cx_python_value(value));
    if (made == Py_NotImplemented)
        Py_SETREF(made, Py_NewRef(Py_None));
    return made;
}
