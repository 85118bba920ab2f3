/* Python's numbers as data of the graph, with Python's meaning: ints have no bound (python_int.c),
 * division by zero raises, a power may be complex. Where the graph's arithmetic means something
 * else a check stands before it: when in doubt it fails, and Python's own number answers. */
#include "graph/methods.h"
#include "graph/size.h"
#include "state/array.h"
#include "value/python_int.h"

/* Largest int all below which a float holds exactly. */
#define EXACT_INT (1LL << 53)

/* A negative number to a power that is whole, or zero to one that is not negative, is real too;
 * exponent: NaN where only the program knows it. */
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

/* a ** b: real and in range, or the check fails. Inside of loops a square is a product, which may
 * be a vector's; the C library's is another number once in a thousand times. */
static CiNode *
float_power(CxNumber *n, CiNode *a, CiNode *b)
{
    bool is_known = n->traced[1] == NULL;
    double exponent = is_known ? b->value.re : 0.0;
    bool is_whole = is_known && fabs(exponent) < 1024.0 && exponent == (double)(int64_t)exponent;
    CiNode *zero = cx_number_constant(n, CI_DTYPE_f64, 0.0);

    if (!is_whole)
        check_real_power(n, a, b, is_known ? exponent : NAN);
    else if (exponent < 0.0)
        cx_number_check(n, cx_number_apply(n, CI_OP_not_equal, a, zero),
                        "zero to a negative power");
    CiNode *result = exponent == 2.0 && n->is_inside ? cx_number_apply(n, CI_OP_multiply, a, a)
                                                     : cx_number_apply(n, CI_OP_scalar_power, a, b);
    cx_number_check(n, cx_number_apply(n, CI_OP_isfinite, result, NULL), "a power out of range");
    return result;
}

/* A complex number and a real one where the real one acts on the parts; NULL: nothing of the kind.
 */
static CiNode *
parts_op(CxNumber *n)
{
    CiGraph *g = n->building.graph;
    int at = n->dtypes[0] == CI_DTYPE_c128 ? 0 : 1;

    if (!CX_REAL_STAYS_REAL || n->nargs < 2 || n->dtypes[1 - at] == CI_DTYPE_c128)
        return NULL;
    CiNode *z = cx_number_operand(n, at, CI_DTYPE_c128),
           *x = cx_number_operand(n, 1 - at, CI_DTYPE_f64);
    CiNode *re = cx_number_apply(n, CI_OP_real, z, NULL),
           *im = cx_number_apply(n, CI_OP_imag, z, NULL);
    switch (n->ufunc) {
    case CI_OP_add:
        re = cx_number_apply(n, CI_OP_add, re, x);
        break;
    case CI_OP_subtract:
        re = at == 0 ? cx_number_apply(n, CI_OP_subtract, re, x)
                     : cx_number_apply(n, CI_OP_subtract, x, re);
        im = at == 0 ? im : cx_number_apply(n, CI_OP_negative, im, NULL);
        break;
    case CI_OP_multiply:
        re = cx_number_apply(n, CI_OP_multiply, re, x);
        im = cx_number_apply(n, CI_OP_multiply, im, x);
        break;
    case CI_OP_divide:
        if (at == 1)
            return NULL;
        cx_number_check_divisor(n, x);
        re = cx_number_apply(n, CI_OP_divide, re, x);
        im = cx_number_apply(n, CI_OP_divide, im, x);
        break;
    default:
        return NULL;
    }
    re = ci_graph_cast(g, re, CI_DTYPE_c128, n->building.loc);
    im = ci_graph_cast(g, im, CI_DTYPE_c128, n->building.loc);
    return cx_number_apply(n, CI_OP_join_parts, re, im);
}

static CiNode *
float_op(CxNumber *n, CiNode *a, CiNode *b)
{
    bool is_complex = a->dtype == CI_DTYPE_c128;

    switch (n->ufunc) {
    case CI_OP_add:
    case CI_OP_subtract:
    case CI_OP_multiply:
    case CI_OP_negative:
        return cx_number_apply(n, (CiOp)n->ufunc, a, b);
    case CI_OP_positive:
        return a;
    case CI_OP_absolute:
        return is_complex ? NULL : cx_number_apply(n, CI_OP_absolute, a, NULL);
    case CI_OP_divide:
        if (is_complex && n->traced[1] != NULL)
            return NULL;
        cx_number_check_divisor(n, b);
        return cx_number_apply(n, CI_OP_divide, a, b);
    case CI_OP_floor_divide:
    case CI_OP_remainder:
        if (is_complex)
            return NULL;
        cx_number_check_divisor(n, b);
        return cx_number_apply(n, (CiOp)n->ufunc, a, b);
    case CI_OP_power:
        return is_complex ? NULL : float_power(n, a, b);
    default:
        return NULL;
    }
}

/* Ints that become floats must be exact for Python's true division and mixed comparisons. */
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

static bool
is_bitwise(int ufunc)
{
    return ufunc == CI_OP_bitwise_and || ufunc == CI_OP_bitwise_or || ufunc == CI_OP_bitwise_xor;
}

static bool
are_all(const CxNumber *n, CiDtype dtype)
{
    for (int k = 0; k < n->nargs; k++)
        if (n->dtypes[k] != dtype)
            return false;
    return true;
}

/* Two ints, one to a negative power, are a float. */
static bool
makes_float(const CxNumber *n)
{
    bool is_inverse = n->ufunc == CI_OP_power && n->traced[1] == NULL && n->values[1].i < 0 &&
                      n->dtypes[1] == CI_DTYPE_i64;
    return n->ufunc == CI_OP_divide || is_inverse;
}

static CiNode *
op_of_both(CxNumber *n, CiDtype want, bool are_ints)
{
    for (int k = 0; k < n->nargs; k++)
        if (are_ints || cx_is_comparison(n->ufunc))
            check_exact(n, k);
    CiNode *parts = want == CI_DTYPE_c128 ? parts_op(n) : NULL;
    if (parts != NULL)
        return parts;
    CiNode *a = cx_number_operand(n, 0, want);
    CiNode *b = n->nargs > 1 ? cx_number_operand(n, 1, want) : NULL;
    return cx_is_comparison(n->ufunc) ? cx_number_apply(n, (CiOp)n->ufunc, a, b)
                                      : float_op(n, a, b);
}

static void
body_number(CiContext *ctx, void *arg)
{
    CxNumber *n = arg;
    CiDtype want = CI_DTYPE_i64;
    CiNode *result;

    (void)ctx;
    for (int k = 0; k < n->nargs; k++)
        if (n->dtypes[k] == CI_DTYPE_c128 || (n->dtypes[k] == CI_DTYPE_f64 && want == CI_DTYPE_i64))
            want = n->dtypes[k];
    bool are_ints = want == CI_DTYPE_i64;
    if (n->nargs == 2 && is_bitwise(n->ufunc) && are_all(n, CI_DTYPE_bool))
        result = cx_number_apply(n, (CiOp)n->ufunc, cx_number_operand(n, 0, CI_DTYPE_bool),
                                 cx_number_operand(n, 1, CI_DTYPE_bool));
    else if (!are_ints || makes_float(n))
        result = op_of_both(n, are_ints ? CI_DTYPE_f64 : want, are_ints);
    else
        result = n->cast != CI_DTYPE_none     ? cx_int_cast(n)
                 : cx_is_comparison(n->ufunc) ? cx_int_compare(n)
                                              : cx_int_op(n);
    n->building.result = n->is_refused ? NULL : result;
}

/* An int beside a float, or divided by one, that no float holds. */
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

/* What body_number would refuse, known before anything is built. */
static bool
is_refused(const CxNumber *n, bool is_complex)
{
    if (is_inexact(n))
        return true;
    switch (n->ufunc) {
    case CX_UFUNC_divmod:
    case CI_OP_matmul:
        return true;
    case CI_OP_power:
        return is_complex;
    case CI_OP_absolute:
    case CI_OP_floor_divide:
    case CI_OP_remainder:
        return is_complex;
    case CI_OP_divide:
        return is_complex && n->traced[1] != NULL;
    case CI_OP_less:
    case CI_OP_less_equal:
    case CI_OP_greater:
    case CI_OP_greater_equal:
        return is_complex;
    case CI_OP_bitwise_and:
    case CI_OP_bitwise_or:
    case CI_OP_bitwise_xor:
    case CI_OP_left_shift:
    case CI_OP_right_shift:
    case CI_OP_invert:
        return n->dtypes[0] == CI_DTYPE_f64 || n->dtypes[1] == CI_DTYPE_f64 || is_complex;
    default:
        return false;
    }
}

/* Of those that are floats, too. */
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

/* A constant int. Divided by a power of two an int is the float it is made, and that times another;
 * by 2**64 the rest is what a mask leaves. 0: of more than 64 bits. */
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
    unsigned long long large = PyLong_AsUnsignedLongLong(o); /* all ones where it does not fit */
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

/* An operand of the job; 0: the graph has no such number. */
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

static PyObject *
number_data(CxTracer *t, CxNumber *n, PyObject *a, PyObject *b, PyObject *value)
{
    PyObject *both[2] = {a, b};

    n->may_check = cx_may_check(t);
    n->is_inside = t->nblocks > 0;
    n->dtypes[0] = n->dtypes[1] = CI_DTYPE_none;
    for (int k = 0; k < 2 && both[k] != NULL; k++)
        if (set_operand(t, n, k, both[k]) == 0)
            Py_RETURN_NOTIMPLEMENTED;
    bool is_complex = n->dtypes[0] == CI_DTYPE_c128 || n->dtypes[1] == CI_DTYPE_c128;
    if (is_refused(n, is_complex))
        Py_RETURN_NOTIMPLEMENTED;
    for (int round = 0; round < 2; round++) /* preparing one may flush the other's graph away */
        for (int k = 0; k < n->nargs; k++)
            if (n->traced[k] != NULL && cx_traced_prepare(n->traced[k]) < 0)
                return NULL;
    CiNode *node = cx_build_custom(t, body_number, &n->building);
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

/* The op in the graph. NotImplemented: it has none. value: what Python computed, or NULL. */
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

static PyObject *
as_int(PyObject *self, PyObject *value, CiDtype want)
{
    CxNumber n = {.ufunc = CI_OP_positive, .cast = want};

    if (!cx_is_python_kind(value) || !cx_is_int_dtype(cx_dtype((CxTraced *)value)))
        return cx_misuse(((CxTracer *)self)->state, "a Traced int of Python's is expected");
    PyObject *made = number_data((CxTracer *)self, &n, value, NULL, cx_python_value(value));
    if (made == Py_NotImplemented)
        Py_SETREF(made, Py_NewRef(Py_None));
    return made;
}

/* as_unsigned(int): the same int as u64, which the running program checks; None where it may not.
 */
PyObject *
cx_method_as_unsigned(PyObject *self, PyObject *value)
{
    CX_ENTRY();
    return as_int(self, value, CI_DTYPE_u64);
}

/* as_signed(int): as i64. */
PyObject *
cx_method_as_signed(PyObject *self, PyObject *value)
{
    CX_ENTRY();
    return as_int(self, value, CI_DTYPE_i64);
}
