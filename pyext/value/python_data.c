/* Python's numbers as data of the graph, with Python's meaning: ints have no bound, division by
 * zero raises, a power may be complex. Where the graph's arithmetic means something else a check
 * stands before it: when in doubt it fails, and Python's own number answers. */
#include "graph/size.h"
#include "state/array.h"
#include "value/python_number.h"

/* Largest int all below which a float holds exactly. */
#define EXACT_INT (1LL << 53)

typedef struct Number {
    CxBuilding building;
    int ufunc;
    PyObject *operands[2]; /* borrowed, looked at before the body runs */
    CxTraced *traced[2];
    CiConst values[2];
    CiDtype dtypes[2];
    int nargs;
    bool may_check, is_refused;
} Number;

static CiNode *
constant(Number *n, CiDtype dtype, double value)
{
    CiConst c = {(int64_t)value, value, 0.0};
    return ci_graph_const(n->building.graph, dtype, CI_KIND_python, c, n->building.loc);
}

static CiNode *
apply(Number *n, CiOp op, CiNode *a, CiNode *b)
{
    CiNode *args[2] = {a, b};
    CiNode *node =
        ci_graph_pointwise(n->building.graph, op, b == NULL ? 1 : 2, args, n->building.loc);
    return ci_node_set_kind(node, CI_KIND_python);
}

static void
check(Number *n, CiNode *condition, const char *why)
{
    if (!n->may_check)
        n->is_refused = true;
    else
        (void)ci_graph_check(n->building.graph, condition, why, n->building.loc);
}

static CiNode *
operand(Number *n, int k, CiDtype want)
{
    CiGraph *g = n->building.graph;
    if (n->traced[k] == NULL)
        return ci_graph_const(g, want, CI_KIND_python,
                              ci_const_cast(n->values[k], n->dtypes[k], want), n->building.loc);
    CiNode *node = cx_node(n->traced[k]);
    if (node->dtype == want)
        return node;
    return ci_node_set_kind(ci_graph_cast(g, node, want, n->building.loc), CI_KIND_python);
}

static void
check_not_zero(Number *n, CiNode *b)
{
    CiConst value = ci_const_cast(n->values[1], n->dtypes[1], CI_DTYPE_f64);
    if (n->traced[1] != NULL || value.re == 0.0)
        check(n, apply(n, CI_OP_not_equal, b, constant(n, b->dtype, 0.0)), "division by zero");
}

static const char *const wide = "an int of more than 64 bits";

/* size: the magnitude of an int, as a float within a few units of the last place. */
static void
check_fits(Number *n, CiNode *size)
{
    check(n, apply(n, CI_OP_less, size, constant(n, CI_DTYPE_f64, 4.6e18)), wide);
}

/* a ** b of ints: no fraction, and in 64 bits. */
static CiNode *
int_power(Number *n, CiNode *a, CiNode *b)
{
    CiNode *size =
        apply(n, CI_OP_power, apply(n, CI_OP_absolute, operand(n, 0, CI_DTYPE_f64), NULL),
              operand(n, 1, CI_DTYPE_f64));
    check(n, apply(n, CI_OP_greater_equal, b, constant(n, CI_DTYPE_i64, 0.0)),
          "an int to a negative power");
    check_fits(n, size);
    return apply(n, CI_OP_int_power, a, b);
}

/* It is too large where its sign differs from that of both that make it a sum. */
static CiNode *
int_sum(Number *n, CiNode *a, CiNode *b)
{
    CiNode *result = apply(n, (CiOp)n->ufunc, a, b);
    bool is_sum = n->ufunc == CI_OP_add;
    CiNode *whole = is_sum ? result : a, *part = is_sum ? a : b, *other = is_sum ? b : result;
    CiNode *signs = apply(n, CI_OP_bitwise_and, apply(n, CI_OP_bitwise_xor, whole, part),
                          apply(n, CI_OP_bitwise_xor, whole, other));
    check(n, apply(n, CI_OP_greater_equal, signs, constant(n, CI_DTYPE_i64, 0.0)), wide);
    return result;
}

static CiNode *
int_product(Number *n, CiNode *a, CiNode *b)
{
    CiNode *f = apply(n, CI_OP_multiply, operand(n, 0, CI_DTYPE_f64), operand(n, 1, CI_DTYPE_f64));
    check_fits(n, apply(n, CI_OP_absolute, f, NULL));
    return apply(n, CI_OP_multiply, a, b);
}

/* The least int has no opposite, and none of its own by -1. */
static CiNode *
int_quotient(Number *n, CiNode *a, CiNode *b)
{
    CiConst least = {INT64_MIN, 0.0, 0.0};
    if (b != NULL)
        check_not_zero(n, b);
    if (n->ufunc != CI_OP_remainder)
        check(n,
              apply(n, CI_OP_not_equal, a,
                    ci_graph_const(n->building.graph, CI_DTYPE_i64, CI_KIND_python, least,
                                   n->building.loc)),
              wide);
    return apply(n, (CiOp)n->ufunc, a, b);
}

static CiNode *
int_shift(Number *n, CiNode *a, CiNode *b)
{
    CiNode *zero = constant(n, CI_DTYPE_i64, 0.0);
    check(n, apply(n, CI_OP_greater_equal, b, zero), "a negative shift count");
    CiNode *count = apply(n, CI_OP_minimum, b, constant(n, CI_DTYPE_i64, 63.0));
    if (n->ufunc == CI_OP_right_shift)
        return apply(n, CI_OP_right_shift, a, count);
    CiNode *result = apply(n, CI_OP_left_shift, a, b); /* shifted back it is what it was */
    check(n, apply(n, CI_OP_equal, apply(n, CI_OP_right_shift, result, count), a), wide);
    return result;
}

/* As ints: nothing leaves 64 bits. */
static CiNode *
int_op(Number *n, CiNode *a, CiNode *b)
{
    switch (n->ufunc) {
    case CI_OP_add:
    case CI_OP_subtract:
        return int_sum(n, a, b);
    case CI_OP_multiply:
        return int_product(n, a, b);
    case CI_OP_negative:
    case CI_OP_absolute:
    case CI_OP_floor_divide:
    case CI_OP_remainder:
        return int_quotient(n, a, b);
    case CI_OP_positive:
        return a;
    case CI_OP_bitwise_and:
    case CI_OP_bitwise_or:
    case CI_OP_bitwise_xor:
    case CI_OP_invert:
        return apply(n, (CiOp)n->ufunc, a, b);
    case CI_OP_right_shift:
    case CI_OP_left_shift:
        return int_shift(n, a, b);
    case CI_OP_power:
        return int_power(n, a, b);
    default:
        return NULL;
    }
}

/* A negative number to a power that is whole, or zero to one that is not negative, is real too;
 * exponent: NaN where only the program knows it. */
static void
check_real_power(Number *n, CiNode *a, CiNode *b, double exponent)
{
    CiNode *zero = constant(n, CI_DTYPE_f64, 0.0);
    CiNode *is_real = apply(n, exponent > 0.0 ? CI_OP_greater_equal : CI_OP_greater, a, zero);

    if (isnan(exponent)) {
        CiNode *is_whole = apply(n, CI_OP_equal, apply(n, CI_OP_trunc, b, NULL), b);
        CiNode *has_sign =
            apply(n, CI_OP_logical_and, apply(n, CI_OP_not_equal, a, zero), is_whole);
        CiNode *is_zero = apply(n, CI_OP_logical_and, apply(n, CI_OP_equal, a, zero),
                                apply(n, CI_OP_greater_equal, b, zero));
        is_real =
            apply(n, CI_OP_logical_or, is_real, apply(n, CI_OP_logical_or, has_sign, is_zero));
    }
    check(n, is_real, "a power that may be complex");
}

/* a ** b: real and in range, or the check fails. */
static CiNode *
float_power(Number *n, CiNode *a, CiNode *b)
{
    bool is_known = n->traced[1] == NULL;
    double exponent = is_known ? b->value.re : 0.0;
    bool is_square = exponent == 2.0;
    bool is_whole = is_known && fabs(exponent) < 1024.0 && exponent == (double)(int64_t)exponent;
    CiNode *zero = constant(n, CI_DTYPE_f64, 0.0);

    if (!is_whole)
        check_real_power(n, a, b, is_known ? exponent : NAN);
    else if (exponent < 0.0)
        check(n, apply(n, CI_OP_not_equal, a, zero), "zero to a negative power");
    CiNode *result = is_square          ? apply(n, CI_OP_multiply, a, a)
                     : exponent == -1.0 ? apply(n, CI_OP_divide, constant(n, CI_DTYPE_f64, 1.0), a)
                                        : apply(n, CI_OP_power, a, b);
    check(n, apply(n, CI_OP_isfinite, result, NULL), "a power out of range");
    return result;
}

/* A complex number and a real one where the real one acts on the parts; NULL: nothing of the kind.
 */
static CiNode *
parts_op(Number *n)
{
    CiGraph *g = n->building.graph;
    int at = n->dtypes[0] == CI_DTYPE_c128 ? 0 : 1;

    if (!CX_REAL_STAYS_REAL || n->nargs < 2 || n->dtypes[1 - at] == CI_DTYPE_c128)
        return NULL;
    CiNode *z = operand(n, at, CI_DTYPE_c128), *x = operand(n, 1 - at, CI_DTYPE_f64);
    CiNode *re = apply(n, CI_OP_real, z, NULL), *im = apply(n, CI_OP_imag, z, NULL);
    switch (n->ufunc) {
    case CI_OP_add:
        re = apply(n, CI_OP_add, re, x);
        break;
    case CI_OP_subtract:
        re = at == 0 ? apply(n, CI_OP_subtract, re, x) : apply(n, CI_OP_subtract, x, re);
        im = at == 0 ? im : apply(n, CI_OP_negative, im, NULL);
        break;
    case CI_OP_multiply:
        re = apply(n, CI_OP_multiply, re, x);
        im = apply(n, CI_OP_multiply, im, x);
        break;
    case CI_OP_divide:
        if (at == 1)
            return NULL;
        check_not_zero(n, x);
        re = apply(n, CI_OP_divide, re, x);
        im = apply(n, CI_OP_divide, im, x);
        break;
    default:
        return NULL;
    }
    re = ci_graph_cast(g, re, CI_DTYPE_c128, n->building.loc);
    im = ci_graph_cast(g, im, CI_DTYPE_c128, n->building.loc);
    return apply(n, CI_OP_join_parts, re, im);
}

static CiNode *
float_op(Number *n, CiNode *a, CiNode *b)
{
    bool is_complex = a->dtype == CI_DTYPE_c128;

    switch (n->ufunc) {
    case CI_OP_add:
    case CI_OP_subtract:
    case CI_OP_multiply:
    case CI_OP_negative:
        return apply(n, (CiOp)n->ufunc, a, b);
    case CI_OP_positive:
        return a;
    case CI_OP_absolute:
        return is_complex ? NULL : apply(n, CI_OP_absolute, a, NULL);
    case CI_OP_divide:
        if (is_complex && n->traced[1] != NULL)
            return NULL;
        check_not_zero(n, b);
        return apply(n, CI_OP_divide, a, b);
    case CI_OP_floor_divide:
    case CI_OP_remainder:
        if (is_complex)
            return NULL;
        check_not_zero(n, b);
        return apply(n, (CiOp)n->ufunc, a, b);
    case CI_OP_power:
        return is_complex ? NULL : float_power(n, a, b);
    default:
        return NULL;
    }
}

/* Ints that become floats must be exact for Python's true division and mixed comparisons. */
static void
check_exact(Number *n, int k)
{
    if (n->traced[k] == NULL || n->dtypes[k] != CI_DTYPE_i64 || n->traced[k]->storage->expr != NULL)
        return;
    CiNode *size = apply(n, CI_OP_absolute, operand(n, k, CI_DTYPE_f64), NULL);
    check(n, apply(n, CI_OP_less, size, constant(n, CI_DTYPE_f64, (double)EXACT_INT)),
          "an int that a float does not hold");
}

static void
body_number(CiContext *ctx, void *arg)
{
    Number *n = arg;
    CiDtype want = CI_DTYPE_i64;
    bool both_bool = true;

    (void)ctx;
    for (int k = 0; k < n->nargs; k++) {
        both_bool = both_bool && n->dtypes[k] == CI_DTYPE_bool;
        if (n->dtypes[k] == CI_DTYPE_c128 || (n->dtypes[k] == CI_DTYPE_f64 && want == CI_DTYPE_i64))
            want = n->dtypes[k];
    }
    bool is_bitwise = n->ufunc == CI_OP_bitwise_and || n->ufunc == CI_OP_bitwise_or ||
                      n->ufunc == CI_OP_bitwise_xor;
    if (both_bool && n->nargs == 2 && is_bitwise) {
        n->building.result =
            apply(n, (CiOp)n->ufunc, operand(n, 0, CI_DTYPE_bool), operand(n, 1, CI_DTYPE_bool));
        return;
    }
    bool is_inverse = n->ufunc == CI_OP_power && n->traced[1] == NULL && n->values[1].i < 0;
    bool divides_ints = want == CI_DTYPE_i64 && (n->ufunc == CI_OP_divide || is_inverse);
    if (divides_ints)
        want = CI_DTYPE_f64;
    for (int k = 0; k < n->nargs; k++)
        if (want != CI_DTYPE_i64 && (divides_ints || cx_is_comparison(n->ufunc)))
            check_exact(n, k);
    CiNode *parts = want == CI_DTYPE_c128 ? parts_op(n) : NULL;
    if (parts != NULL) {
        n->building.result = n->is_refused ? NULL : parts;
        return;
    }
    CiNode *a = operand(n, 0, want), *b = n->nargs > 1 ? operand(n, 1, want) : NULL;
    if (cx_is_comparison(n->ufunc))
        n->building.result = apply(n, (CiOp)n->ufunc, a, b);
    else if (want == CI_DTYPE_i64)
        n->building.result = int_op(n, a, b);
    else
        n->building.result = float_op(n, a, b);
    if (n->is_refused)
        n->building.result = NULL;
}

/* What body_number would refuse, known before anything is built. */
static bool
is_refused(const Number *n, bool is_complex)
{
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

/* An operand of the job; 0: the graph has no such number. */
static int
set_operand(CxTracer *t, Number *n, int k, PyObject *o)
{
    int overflow = 0;

    n->operands[k] = o;
    n->nargs = k + 1;
    if (cx_is_traced(o)) {
        n->traced[k] = (CxTraced *)o;
        n->dtypes[k] = cx_dtype((CxTraced *)o);
        return 1;
    }
    n->dtypes[k] = PyBool_Check(o)           ? CI_DTYPE_bool
                   : PyLong_CheckExact(o)    ? CI_DTYPE_i64
                   : PyFloat_CheckExact(o)   ? CI_DTYPE_f64
                   : PyComplex_CheckExact(o) ? CI_DTYPE_c128
                                             : CI_DTYPE_none;
    if (n->dtypes[k] == CI_DTYPE_none)
        return 0;
    if (n->dtypes[k] == CI_DTYPE_i64) {
        long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow != 0 || value > EXACT_INT || value < -EXACT_INT)
            return 0;
    }
    return cx_const_of(t->state, o, n->dtypes[k], &n->values[k]) == 0;
}

/* The op in the graph. NotImplemented: it has none. value: what Python computed, or NULL. */
PyObject *
cx_python_data(CxTracer *t, int ufunc, PyObject *a, PyObject *b, PyObject *value)
{
    Number n = {
        .ufunc = ufunc, .may_check = cx_may_check(t), .dtypes = {CI_DTYPE_none, CI_DTYPE_none}};
    PyObject *both[2] = {a, b};

    for (int k = 0; k < 2 && both[k] != NULL; k++)
        if (set_operand(t, &n, k, both[k]) == 0)
            Py_RETURN_NOTIMPLEMENTED;
    bool is_complex = n.dtypes[0] == CI_DTYPE_c128 || n.dtypes[1] == CI_DTYPE_c128;
    if (is_refused(&n, is_complex))
        Py_RETURN_NOTIMPLEMENTED;
    for (int round = 0; round < 2; round++) /* preparing one may flush the other's graph away */
        for (int k = 0; k < n.nargs; k++)
            if (n.traced[k] != NULL && cx_traced_prepare(n.traced[k]) < 0)
                return NULL;
    CiNode *node = cx_build_custom(t, body_number, &n.building);
    if (node == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
    CxStorage *s = cx_storage_from_node(t, node, CI_KIND_python);
    if (s == NULL)
        return NULL;
    s->value = Py_XNewRef(value);
    for (int k = 0; k < n.nargs && value != NULL; k++)
        if (n.traced[k] != NULL) {
            s->parents[k] = n.traced[k]->storage;
            s->parents[k]->refs++;
        }
    return cx_traced_new(t, s, NULL);
}
