/* Constant folding. Exact pointwise operations are evaluated by the very expressions of ops.def,
 * compiled here once per class; what needs a support function, and all of MATH, stays.
 *
 * Integers are evaluated in 128 bits and wrapped. f16 and f32 are evaluated in double and rounded,
 * which is exact for + - * / and sqrt (53 >= 2*24 + 2). A fold that would hide a warning or an
 * exception (a non-finite result of finite operands, a Python int leaving 64 bits) is not done.
 *
 * needs: a valid graph. keeps: values bit for bit. */
#include <math.h>

#include "passes/pass.h"
#include "passes/rewrite.h"

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 WideUnsigned;

/* S(f)(a, b), and exact functions that depend on the width of T, give up. */
#define GIVE_UP(...) (*is_exact = false, (T)0)
#define S(f) GIVE_UP
#define NONE GIVE_UP()
#define M(f) M_##f
#define M_floor floor
#define M_ceil ceil
#define M_trunc trunc
#define M_rint rint
#define M_sqrt sqrt
#define M_fabs fabs
#define M_copysign copysign
#define M_nextafter GIVE_UP
#define M_fma GIVE_UP
#define M_erf GIVE_UP
#define M_erfc GIVE_UP
#define M_huge_val() HUGE_VAL
#define BITS ((T)bits)

#define EVALUATE_HEAD(name)                                                                        \
    static T name(CiOp op, T a, T b, int bits, bool *is_exact)                                     \
    {                                                                                              \
        (void)bits;                                                                                \
        (void)b;                                                                                   \
        switch (op) {
#define EVALUATE_TAIL                                                                              \
    default:                                                                                       \
        return GIVE_UP();                                                                          \
        }                                                                                          \
        }

#define T int
EVALUATE_HEAD(evaluate_bool)
#define POINTWISE(name, arity, result, b_, i_, u_, f_, c_)                                         \
    case CI_OP_##name:                                                                             \
        return (T)(b_);
#include "ir/ops.def"
EVALUATE_TAIL
#undef T

#define T Wide
EVALUATE_HEAD(evaluate_int)
#define POINTWISE(name, arity, result, b_, i_, u_, f_, c_)                                         \
    case CI_OP_##name:                                                                             \
        return (T)(i_);
#include "ir/ops.def"
EVALUATE_TAIL
#undef T

#define T WideUnsigned
EVALUATE_HEAD(evaluate_unsigned)
#define POINTWISE(name, arity, result, b_, i_, u_, f_, c_)                                         \
    case CI_OP_##name:                                                                             \
        return (T)(u_);
#include "ir/ops.def"
EVALUATE_TAIL
#undef T

#define T double
EVALUATE_HEAD(evaluate_float)
#define POINTWISE(name, arity, result, b_, i_, u_, f_, c_)                                         \
    case CI_OP_##name:                                                                             \
        return (T)(f_);
#include "ir/ops.def"
EVALUATE_TAIL
#undef T

static bool
is_division(CiOp op)
{
    return op == CI_OP_floor_divide || op == CI_OP_remainder || op == CI_OP_fmod;
}

/* Integer division by 0 warns or raises; a shift of a negative number left has no meaning in C. */
static bool
fold_int(CiOp op, CiDtype dtype, CiKind kind, CiConst a, CiConst b, CiConst *value)
{
    bool is_exact = true;
    int bits = 8 * ci_dtype_size(dtype);
    if ((is_division(op) && b.i == 0) || (op == CI_OP_left_shift && a.i < 0))
        return false;
    Wide wide = evaluate_int(op, a.i, b.i, bits, &is_exact);
    *value = ci_const_int(ci_op_result(op, dtype), (int64_t)(WideUnsigned)wide);
    bool is_wrapped = wide != value->i;
    return is_exact && !(is_wrapped && kind == CI_KIND_python);
}

static bool
fold_unsigned(CiOp op, CiDtype dtype, CiConst a, CiConst b, CiConst *value)
{
    bool is_exact = true;
    if (is_division(op) && b.i == 0)
        return false;
    WideUnsigned wide =
        evaluate_unsigned(op, (uint64_t)a.i, (uint64_t)b.i, 8 * ci_dtype_size(dtype), &is_exact);
    *value = ci_const_int(ci_op_result(op, dtype), (int64_t)(uint64_t)wide);
    return is_exact;
}

static bool
fold_float(CiOp op, CiDtype dtype, int arity, CiConst a, CiConst b, CiConst *value)
{
    bool is_exact = true;
    if (ci_dtype_is_narrow(dtype) && a.re == 0 && signbit(a.re)) /* they differ about its sign */
        return false;
    double number = evaluate_float(op, a.re, b.re, 8 * ci_dtype_size(dtype), &is_exact);
    CiDtype result = ci_op_result(op, dtype);
    bool is_clean = isfinite(a.re) && (arity < 2 || isfinite(b.re));
    if (result == CI_DTYPE_bool) {
        *value = ci_const_int(result, number != 0);
        return is_exact;
    }
    *value = ci_const_double(result, number);
    return is_exact && (isfinite(value->re) || !is_clean);
}

static bool
fold_pointwise(const CiNode *node, CiConst *value)
{
    if (node->nargs < 1 || node->nargs > 2)
        return false;
    CiDtype dtype = node->args[0]->dtype;
    CiConst zero = {0, 0.0, 0.0};
    CiConst a = node->args[0]->value, b = node->nargs > 1 ? node->args[1]->value : zero;
    bool is_exact = true;
    switch (ci_dtype_class(dtype)) {
    case CI_CLASS_bool:
        *value =
            ci_const_int(node->dtype, evaluate_bool(node->op, (int)a.i, (int)b.i, 8, &is_exact));
        return is_exact;
    case CI_CLASS_int:
        return fold_int(node->op, dtype, node->kind, a, b, value);
    case CI_CLASS_uint:
        return fold_unsigned(node->op, dtype, a, b, value);
    case CI_CLASS_float:
        return fold_float(node->op, dtype, node->nargs, a, b, value);
    default:
        return false;
    }
}

/* A value that does not fit warns at run time, so it stays for run time. */
static bool
fold_cast(const CiNode *node, CiConst *value)
{
    const CiNode *source = node->args[0];
    CiDtype from = source->dtype, to = node->dtype;
    *value = ci_const_cast(source->value, from, to);
    if (ci_dtype_is_integral(from))
        return ci_dtype_is_integral(to) || isfinite(value->re);
    if (ci_dtype_class(from) == CI_CLASS_complex && ci_dtype_class(to) != CI_CLASS_complex &&
        to != CI_DTYPE_bool)
        return false;
    if (to == CI_DTYPE_bool)
        return true;
    if (ci_dtype_is_integral(to))
        return ci_const_cast(*value, to, CI_DTYPE_f64).re == trunc(source->value.re);
    return isfinite(value->re) == isfinite(source->value.re) &&
           isfinite(value->im) == isfinite(source->value.im);
}

static bool
has_constant_args(const CiNode *node)
{
    for (int k = 0; k < node->nargs; k++)
        if (node->args[k]->op != CI_OP_const)
            return false;
    return node->rank == 0 && node->nargs > 0;
}

static CiNode *
rule_fold(CiGraph *g, CiNode *node)
{
    CiConst value;
    if (!has_constant_args(node))
        return NULL;
    bool is_folded =
        node->op == CI_OP_cast ? fold_cast(node, &value) : fold_pointwise(node, &value);
    return is_folded ? ci_graph_const(g, node->dtype, node->kind, value, node->loc) : NULL;
}

static const CiRule rules[] = {
#define POINTWISE(name, arity, result, b, i, u, f, c)                                              \
    {"fold_" #name, NULL, NULL, CI_OP_##name, rule_fold, false},
#include "ir/ops.def"
    {"fold_cast", NULL, NULL, CI_OP_cast, rule_fold, false},
};

void
ci_pass_fold(CiGraph *g)
{
    ci_rewrite(g, rules, (int)(sizeof rules / sizeof rules[0]));
}
