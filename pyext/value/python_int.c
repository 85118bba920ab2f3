/* Python ints in the graph: i64, or u64 for values in [0, 2**64), which 64-bit masks produce.
 *
 * A computed value always equals Python's int modulo 2**64. If the exact result may not fit i64
 * or u64, the result is checked. The check is not needed if only the low 64 bits are used
 * (csrc/passes/wrapping_ints.c). So operations whose low bits only depend on low bits of the
 * operands take the operands unchecked. Other operations (division, right shifts, comparisons,
 * floats) need the exact value.
 *
 * A value that fits both types is i64, which all other operations of the graph take. */
#include "value/python_int.h"
#include "graph/size.h"

static const char *const wide = "an int of more than 64 bits";

CiNode *
cx_number_constant(CxNumber *n, CiDtype dtype, double value)
{
    return ci_graph_const(n->building.graph, dtype, CI_KIND_python, ci_const_double(dtype, value),
                          n->building.loc);
}

CiNode *
cx_number_apply(CxNumber *n, CiOp op, CiNode *a, CiNode *b)
{
    CiNode *args[2] = {a, b};
    CiNode *node =
        ci_graph_pointwise(n->building.graph, op, b == NULL ? 1 : 2, args, n->building.loc);
    return ci_node_set_kind(node, CI_KIND_python);
}

static void
check_of(CxNumber *n, CiNode *condition, CiNode *value, const char *why)
{
    if (!n->may_check)
        n->is_refused = true;
    else
        (void)ci_graph_check_of(n->building.graph, condition, n->is_either ? NULL : value, why,
                                n->building.loc);
}

void
cx_number_check(CxNumber *n, CiNode *condition, const char *why)
{
    check_of(n, condition, NULL, why);
}

static CiNode *
int_const(CxNumber *n, CiDtype dtype, int64_t value)
{
    CiConst c = {value, 0.0, 0.0};
    return ci_graph_const(n->building.graph, dtype, CI_KIND_python, c, n->building.loc);
}

/* A constant stays a constant, because masks and shifts depend on its value. */
static CiNode *
cast(CxNumber *n, CiNode *node, CiDtype want)
{
    if (node->dtype == want)
        return node;
    if (node->op == CI_OP_const)
        return ci_graph_const(n->building.graph, want, CI_KIND_python,
                              ci_const_cast(node->value, node->dtype, want), n->building.loc);
    return ci_node_set_kind(ci_graph_cast(n->building.graph, node, want, n->building.loc),
                            CI_KIND_python);
}

CiNode *
cx_number_operand(CxNumber *n, int k, CiDtype want)
{
    if (n->traced[k] != NULL)
        return cast(n, cx_node(n->traced[k]), want);
    return ci_graph_const(n->building.graph, want, CI_KIND_python,
                          ci_const_cast(n->values[k], n->dtypes[k], want), n->building.loc);
}

void
cx_number_check_divisor(CxNumber *n, CiNode *b)
{
    if (b->op == CI_OP_const && (b->value.i != 0 || b->value.re != 0.0 || b->value.im != 0.0))
        return;
    cx_number_check(n, cx_number_apply(n, CI_OP_not_equal, b, cx_number_constant(n, b->dtype, 0.0)),
                    "division by zero");
}

/* ---- the two types ---- */

static bool
is_unsigned(const CiNode *node)
{
    return node->dtype == CI_DTYPE_u64;
}

static CiNode *
bits_of(CxNumber *n, CiNode *node) /* the low 64 bits */
{
    return cast(n, node, CI_DTYPE_i64);
}

static CiNode *
is_not_negative(CxNumber *n, CiNode *node)
{
    return cx_number_apply(n, CI_OP_greater_equal, bits_of(n, node), int_const(n, CI_DTYPE_i64, 0));
}

/* Converts the int to u64. where: the operand that is checked for a negative value; NULL: any. */
static CiNode *
as_unsigned(CxNumber *n, CiNode *node, CiNode **negative)
{
    *negative = NULL;
    if (is_unsigned(node))
        return node;
    bool is_narrowed = node->op == CI_OP_cast && is_unsigned(node->args[0]);
    if (is_narrowed && node->kind == CI_KIND_python && node->args[0]->kind == CI_KIND_python)
        return node->args[0];
    if (node->op != CI_OP_const || node->value.i < 0)
        *negative = node;
    return cast(n, node, CI_DTYPE_u64);
}

/* ---- operations ---- */

/* Checks that an int fits. size: its magnitude as a float, accurate to a few units of the last
 * place. */
static void
check_fits(CxNumber *n, CiNode *size, CiNode *value)
{
    CiNode *limit = cx_number_constant(n, CI_DTYPE_f64, 9.2e18);
    check_of(n, cx_number_apply(n, CI_OP_less, size, limit), value, wide);
}

static CiNode *
int_sum(CxNumber *n, CiNode *a, CiNode *b)
{
    CiOp op = (CiOp)n->ufunc;
    CiNode *x = bits_of(n, a), *y = bits_of(n, b), *result = cx_number_apply(n, op, x, y);
    if (is_unsigned(a) || is_unsigned(b)) {
        CiNode *f = cx_number_apply(n, op, cast(n, a, CI_DTYPE_f64), cast(n, b, CI_DTYPE_f64));
        check_fits(n, cx_number_apply(n, CI_OP_absolute, f, NULL), result);
        return result;
    }
    /* A sum overflows if the sign of the result differs from that of both operands. */
    bool is_sum = n->ufunc == CI_OP_add;
    CiNode *whole = is_sum ? result : x, *part = is_sum ? x : y, *other = is_sum ? y : result;
    CiNode *signs =
        cx_number_apply(n, CI_OP_bitwise_and, cx_number_apply(n, CI_OP_bitwise_xor, whole, part),
                        cx_number_apply(n, CI_OP_bitwise_xor, whole, other));
    check_of(n, is_not_negative(n, signs), result, wide);
    return result;
}

static CiNode *
int_product(CxNumber *n, CiNode *a, CiNode *b)
{
    CiNode *f =
        cx_number_apply(n, CI_OP_multiply, cast(n, a, CI_DTYPE_f64), cast(n, b, CI_DTYPE_f64));
    CiNode *result = cx_number_apply(n, CI_OP_multiply, bits_of(n, a), bits_of(n, b));
    check_fits(n, cx_number_apply(n, CI_OP_absolute, f, NULL), result);
    return result;
}

/* Negation. The smallest int has no opposite. */
static CiNode *
int_opposite(CxNumber *n, CiNode *a, CiNode *b)
{
    (void)b;
    if (n->ufunc == CI_OP_absolute && is_unsigned(a))
        return a;
    CiNode *x = bits_of(n, a), *result = cx_number_apply(n, (CiOp)n->ufunc, x, NULL);
    if (is_unsigned(a))
        check_of(n, is_not_negative(n, a), result, wide);
    else if (n->ufunc != CI_OP_invert)
        check_of(n, cx_number_apply(n, CI_OP_not_equal, x, int_const(n, CI_DTYPE_i64, INT64_MIN)),
                 result, wide);
    return result;
}

/* Modulo a power of two of up to 64 bits: the low bits. */
static CiNode *
low_bits(CxNumber *n, CiNode *a, uint64_t mask)
{
    CiDtype dtype = mask >> 63 ? CI_DTYPE_u64 : CI_DTYPE_i64;
    return cx_number_apply(n, CI_OP_bitwise_and, cast(n, a, dtype),
                           int_const(n, dtype, (int64_t)mask));
}

/* The quotient or the remainder. With u64 no operand may be negative. */
static CiNode *
int_quotient(CxNumber *n, CiNode *a, CiNode *b)
{
    CiOp op = (CiOp)n->ufunc;
    uint64_t divisor = b->op == CI_OP_const ? (uint64_t)b->value.i : 0;
    bool is_power = divisor && !(divisor & (divisor - 1)) && (is_unsigned(b) || b->value.i > 0);
    if (is_power && op == CI_OP_remainder)
        return low_bits(n, a, divisor - 1);
    cx_number_check_divisor(n, b);
    if (!is_unsigned(a) && !is_unsigned(b)) {
        CiNode *result = cx_number_apply(n, op, a, b);
        if (op == CI_OP_floor_divide && (b->op != CI_OP_const || b->value.i == -1))
            check_of(n,
                     cx_number_apply(n, CI_OP_not_equal, a, int_const(n, CI_DTYPE_i64, INT64_MIN)),
                     result, wide);
        return result;
    }
    CiNode *negative[2], *x = as_unsigned(n, a, &negative[0]), *y = as_unsigned(n, b, &negative[1]);
    for (int k = 0; k < 2; k++)
        if (negative[k] != NULL && negative[k]->op == CI_OP_const)
            n->is_refused = true;
        else if (negative[k] != NULL)
            cx_number_check(n, is_not_negative(n, negative[k]),
                            "a negative int together with a large one");
    CiNode *result = cx_number_apply(n, op, x, y);
    bool is_small = op == CI_OP_remainder ? !is_unsigned(b) : !is_unsigned(a) || divisor > 1;
    return is_small ? bits_of(n, result) : result;
}

/* A bit operation with a u64 operand; the bits above 64 of the other one are its sign. */
static CiNode *
bits_of_words(CxNumber *n, CiNode *a, CiNode *b)
{
    CiNode *other = is_unsigned(a) ? b : a, *large = is_unsigned(a) ? a : b, *negative;
    CiOp op = (CiOp)n->ufunc;
    if (op == CI_OP_bitwise_and) { /* the bits of a negative constant are not a mask */
        CiNode *same = ci_graph_cast(n->building.graph, other, CI_DTYPE_u64, n->building.loc);
        return cx_number_apply(n, op, large, ci_node_set_kind(same, CI_KIND_python));
    }
    if (other->op == CI_OP_const && other->value.i < 0) {
        CiNode *result = cx_number_apply(n, op, bits_of(n, large), other);
        if (op == CI_OP_bitwise_xor)
            check_of(n, is_not_negative(n, large), result, wide);
        return result;
    }
    CiNode *result = cx_number_apply(n, op, large, as_unsigned(n, other, &negative));
    if (negative != NULL)
        check_of(n, is_not_negative(n, negative), result, wide);
    return result;
}

static CiNode *
int_bits(CxNumber *n, CiNode *a, CiNode *b)
{
    for (int k = 0; k < 2 && n->ufunc == CI_OP_bitwise_and; k++) {
        const CiNode *mask = k == 0 ? b : a;
        if (mask->op == CI_OP_const && (is_unsigned(mask) || mask->value.i >= 0))
            return low_bits(n, k == 0 ? a : b, (uint64_t)mask->value.i);
    }
    if (is_unsigned(a) != is_unsigned(b))
        return bits_of_words(n, a, b);
    return cx_number_apply(n, (CiOp)n->ufunc, a, b);
}

static CiNode *
int_shift(CxNumber *n, CiNode *a, CiNode *b)
{
    CiNode *count = bits_of(n, b); /* a larger count looks negative */
    bool is_known = count->op == CI_OP_const && count->value.i >= 0;
    if (!is_known)
        cx_number_check(n, is_not_negative(n, count), "a negative shift count");
    CiNode *most = is_known
                       ? int_const(n, CI_DTYPE_i64, count->value.i < 63 ? count->value.i : 63)
                       : cx_number_apply(n, CI_OP_minimum, count, int_const(n, CI_DTYPE_i64, 63));
    if (n->ufunc == CI_OP_right_shift && is_unsigned(a)) { /* a shift by 64 or more gives 0 */
        CiNode *result = cx_number_apply(n, CI_OP_right_shift, a, cast(n, count, CI_DTYPE_u64));
        return is_known && count->value.i > 0 ? bits_of(n, result) : result;
    }
    if (n->ufunc == CI_OP_right_shift)
        return cx_number_apply(n, CI_OP_right_shift, a, most);
    CiNode *x = bits_of(n, a), *result = cx_number_apply(n, CI_OP_left_shift, x, count);
    /* The shift is exact if shifting back gives the operand. */
    check_of(
        n, cx_number_apply(n, CI_OP_equal, cx_number_apply(n, CI_OP_right_shift, result, most), x),
        result, wide);
    if (is_unsigned(a))
        check_of(n, is_not_negative(n, x), result, wide);
    return result;
}

/* An operand whose value fits i64. */
static CiNode *
narrowed(CxNumber *n, CiNode *node)
{
    if (is_unsigned(node))
        cx_number_check(n, is_not_negative(n, node), wide);
    return bits_of(n, node);
}

/* a ** b: not a fraction, and in 64 bits. */
static CiNode *
int_power(CxNumber *n, CiNode *a, CiNode *b)
{
    CiNode *x = narrowed(n, a), *y = narrowed(n, b);
    CiNode *base = cx_number_apply(n, CI_OP_absolute, cast(n, x, CI_DTYPE_f64), NULL);
    CiNode *size = cx_number_apply(n, CI_OP_power, base, cast(n, y, CI_DTYPE_f64));
    cx_number_check(n, is_not_negative(n, y), "an int to a negative power");
    CiNode *result = cx_number_apply(n, CI_OP_int_power, x, y);
    check_fits(n, size, result);
    return result;
}

static CiNode *
int_same(CxNumber *n, CiNode *a, CiNode *b)
{
    (void)n;
    (void)b;
    return a;
}

/* A u64 and an i64 are compared by value. */
static CiNode *
int_plain(CxNumber *n, CiNode *a, CiNode *b)
{
    return cx_number_apply(n, (CiOp)n->ufunc, a, b);
}

#define int_none NULL
static CiNode *(*const of_ints[CI_OP_COUNT])(CxNumber *n, CiNode *a, CiNode *b) = {
#define NUMBER(op, sizes, ints, ...) [CI_OP_##op] = int_##ints,
#include "value/number.def"
};

bool
cx_int_has(int ufunc)
{
    return ufunc < CI_OP_COUNT && of_ints[ufunc] != NULL;
}

/* Bit operations of bools give bools. */
static CiNode *
int_operand(CxNumber *n, int k)
{
    bool are_bools = n->dtypes[0] == CI_DTYPE_bool && n->dtypes[n->nargs - 1] == CI_DTYPE_bool;
    bool is_bool = are_bools && n->nargs > 1 && of_ints[n->ufunc] == int_bits;
    return cx_number_operand(n, k, is_bool                           ? CI_DTYPE_bool
                                   : n->dtypes[k] == CI_DTYPE_u64 ? CI_DTYPE_u64
                                                                     : CI_DTYPE_i64);
}

CiNode *
cx_int_cast(CxNumber *n)
{
    CiNode *a = int_operand(n, 0), *negative;
    if (n->cast == CI_DTYPE_i64)
        return narrowed(n, a);
    CiNode *result = as_unsigned(n, a, &negative);
    if (negative != NULL)
        check_of(n, is_not_negative(n, negative), result, "an int that is not negative");
    return result;
}

CiNode *
cx_int_op(CxNumber *n)
{
    CiNode *a = int_operand(n, 0), *b = n->nargs > 1 ? int_operand(n, 1) : NULL;
    return a->dtype == CI_DTYPE_bool ? int_plain(n, a, b) : of_ints[n->ufunc](n, a, b);
}
