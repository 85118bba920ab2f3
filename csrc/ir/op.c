/* What ops.def says, as functions over one table.
 *
 * Invariant: nothing about an operation is written here that its row could say; the few switches
 * below answer for kinds whose rows carry no arity (structure). */
#include "ir/op.h"

#include <math.h>
#include <string.h>

typedef struct OpRow {
    const char *name;
    CiOpKind kind;
    int arity;
    CiResultRule result;
    CiOp combine;
    const char *expressions[5]; /* per CiClass; "NONE" refuses */
    const char *refusals[5];
} OpRow;

#define REFUSALS(name)                                                                             \
    {#name " of bool", #name " of integers", #name " of unsigned integers", #name " of floats",    \
     #name " of complex numbers"}
#define REFUSE {"NONE", "NONE", "NONE", "NONE", "NONE"}
#define PLAIN(name, kind, arity, result, combine)                                                  \
    {#name, CI_OPKIND_##kind, arity, CI_RESULT_##result, CI_OP_##combine, REFUSE, REFUSALS(name)},

static const OpRow rows[CI_OP_COUNT + 1] = {
#define POINTWISE(name, arity, result, b, i, u, f, c)                                              \
    {#name,      CI_OPKIND_pointwise,  arity,         CI_RESULT_##result,                          \
     CI_OP_none, {#b, #i, #u, #f, #c}, REFUSALS(name)},
#define MATH(name, arity) PLAIN(name, math, arity, same, none)
#define REDUCE(name, combine) PLAIN(name, reduce, 1, same, combine)
#define ARGREDUCE(name) PLAIN(name, argreduce, 1, same, none)
#define SCAN(name, combine) PLAIN(name, scan, 1, same, combine)
#define VIEW(name) PLAIN(name, view, 1, same, none)
#define CREATE(name) PLAIN(name, create, 0, same, none)
#define STRUCTURE(name) PLAIN(name, structure, -1, same, none)
#define EXTERN(name) PLAIN(name, extern, -1, same, none)
#define REGION(name) PLAIN(name, region, -1, same, none)
#define COMPOSITE(name, arity) PLAIN(name, composite, arity, same, none)
#define SCALAR(name) PLAIN(name, scalar, 0, same, none)
#define LANES(name, arity) PLAIN(name, lanes, arity, same, none)
#include "ir/ops.def"
    {"none", CI_OPKIND_scalar, 0, CI_RESULT_same, CI_OP_none, REFUSE, REFUSALS(none)},
};

static const bool is_by_parts[CI_OP_COUNT + 1] = {
#define BY_PARTS(name) [CI_OP_##name] = true,
#include "ir/ops.def"
};

const char *
ci_op_name(CiOp op)
{
    return rows[op].name;
}

/* Slow on purpose: only parsers and the front end's set-up ask by name. */
CiOp
ci_op_find(const char *name)
{
    int k = 0;
    while (k < CI_OP_COUNT && strcmp(rows[k].name, name))
        k++;
    return (CiOp)k;
}

CiOpKind
ci_op_kind(CiOp op)
{
    return rows[op].kind;
}

int
ci_op_arity(CiOp op)
{
    switch (op) {
    case CI_OP_cast:
    case CI_OP_copy:
    case CI_OP_define:
    case CI_OP_bind:
        return 1;
    case CI_OP_expr:
        return 0;
    case CI_OP_compress:
    case CI_OP_pack:
        return 2;
    case CI_OP_check:
    case CI_OP_place:
        return -1;
    case CI_OP_where:
    case CI_OP_assign:
        return 3;
    default:
        return rows[op].arity;
    }
}

CiDtype
ci_op_result(CiOp op, CiDtype operand)
{
    if (rows[op].kind == CI_OPKIND_argreduce || op == CI_OP_index)
        return CI_DTYPE_i64;
    if (rows[op].combine != CI_OP_none)
        return ci_op_result(rows[op].combine, operand);
    if (rows[op].result == CI_RESULT_boolean || rows[op].result == CI_RESULT_compared)
        return CI_DTYPE_bool;
    return rows[op].result == CI_RESULT_real || op == CI_OP_complex_absolute
               ? ci_dtype_real(operand)
               : operand;
}

bool
ci_op_compares_signs(CiOp op, CiDtype a, CiDtype b)
{
    return rows[op].result == CI_RESULT_compared && a != b &&
           (a == CI_DTYPE_u64 || b == CI_DTYPE_u64) && (a == CI_DTYPE_i64 || b == CI_DTYPE_i64);
}

const char *
ci_op_expression(CiOp op, CiClass operand)
{
    const char *text = rows[op].expressions[operand];
    return strcmp(text, "NONE") ? text : NULL;
}

static bool
is_defined(CiOp op, CiClass operand)
{
    switch (rows[op].kind) {
    case CI_OPKIND_pointwise:
        return ci_op_expression(op, operand) != NULL;
    case CI_OPKIND_math:
        return operand == CI_CLASS_float;
    case CI_OPKIND_composite:
        return operand == (op == CI_OP_complex_absolute || op == CI_OP_complex_exp
                               ? CI_CLASS_complex
                               : CI_CLASS_float);
    case CI_OPKIND_argreduce:
        return operand != CI_CLASS_complex;
    case CI_OPKIND_reduce:
    case CI_OPKIND_scan:
        return is_defined(rows[op].combine, operand);
    default:
        return true;
    }
}

static bool
is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool
ci_op_reads(CiOp op, CiDtype operand, int position)
{
    if (ci_op_kind(op) != CI_OPKIND_pointwise)
        return true;
    const char *text = ci_op_expression(op, ci_dtype_class(operand));
    for (const char *at = text; at && *at; at++)
        if (*at == 'a' + position && !is_word(at[1]) && (at == text || !is_word(at[-1])))
            return true;
    return false;
}

const char *
ci_op_why_not(CiOp op, CiDtype operand)
{
    CiClass class = ci_dtype_class(operand);
    return is_defined(op, class) ? NULL : rows[op].refusals[class];
}

CiOp
ci_op_combine(CiOp op)
{
    return rows[op].combine;
}

CiOp
ci_op_alike(CiOp op, CiOpKind kind)
{
    for (int other = 0; other < CI_OP_COUNT; other++)
        if (rows[other].kind == kind && rows[other].combine == rows[op].combine)
            return (CiOp)other;
    return CI_OP_none;
}

/* The least (or greatest) value of a dtype; infinities for floats. */
static CiConst
extreme(CiDtype dtype, bool greatest)
{
    int bits = 8 * ci_dtype_size(dtype);
    switch (ci_dtype_class(dtype)) {
    case CI_CLASS_bool:
        return ci_const_int(dtype, greatest);
    case CI_CLASS_uint:
        return ci_const_int(dtype, greatest ? -1 : 0);
    case CI_CLASS_int:
        return ci_const_int(dtype, greatest ? (int64_t)(UINT64_MAX >> (65 - bits))
                                            : -(int64_t)(UINT64_MAX >> (65 - bits)) - 1);
    default:
        return ci_const_double(dtype, greatest ? HUGE_VAL : -HUGE_VAL);
    }
}

CiConst
ci_op_identity(CiOp op, CiDtype dtype)
{
    bool is_real = ci_dtype_is_float(dtype);
    CiConst minus_zero = {0, -0.0, -0.0};
    switch (rows[op].combine) {
    case CI_OP_add:
        return ci_dtype_is_integral(dtype) ? ci_const_int(dtype, 0) : minus_zero;
    case CI_OP_multiply:
    case CI_OP_logical_and:
        return ci_const_int(dtype, 1);
    case CI_OP_bitwise_and:
        return ci_const_int(dtype, -1);
    case CI_OP_maximum:
        return extreme(dtype, false);
    case CI_OP_minimum:
        return extreme(dtype, true);
    case CI_OP_fmax: /* a NaN loses against everything, and is the answer where nothing else is */
        return is_real ? ci_const_double(dtype, (double)NAN) : extreme(dtype, false);
    case CI_OP_fmin:
        return is_real ? ci_const_double(dtype, (double)NAN) : extreme(dtype, true);
    default:
        return ci_const_int(dtype, 0);
    }
}

bool
ci_op_is_order_free(CiOp op, CiDtype dtype)
{
    if (ci_dtype_is_integral(dtype) || rows[op].kind == CI_OPKIND_argreduce)
        return true;
    return rows[op].combine != CI_OP_add && rows[op].combine != CI_OP_multiply;
}

bool
ci_op_is_exact(CiOp op, CiDtype operand)
{
    switch (rows[op].kind) {
    case CI_OPKIND_math:
    case CI_OPKIND_composite:
        return ci_dtype_is_integral(operand);
    case CI_OPKIND_scan: /* one after another, as NumPy does it */
        return rows[op].combine == CI_OP_add ||
               (operand != CI_DTYPE_f16 && ci_dtype_class(operand) != CI_CLASS_complex) ||
               ci_dtype_is_integral(operand);
    case CI_OPKIND_reduce:
        return ci_op_is_order_free(op, operand);
    case CI_OPKIND_pointwise:
        return ci_dtype_class(operand) != CI_CLASS_complex || is_by_parts[op];
    default:
        return true;
    }
}

bool
ci_op_is_expensive(CiOp op)
{
    switch (op) {
    case CI_OP_divide:
    case CI_OP_floor_divide:
    case CI_OP_remainder:
    case CI_OP_fmod:
    case CI_OP_reciprocal:
    case CI_OP_int_power:
    case CI_OP_complex_power:
    case CI_OP_gcd:
    case CI_OP_lcm:
    case CI_OP_sqrt:
    case CI_OP_nextafter:
    case CI_OP_spacing:
    case CI_OP_ldexp:
    case CI_OP_erf:
    case CI_OP_erfc:
    case CI_OP_scalar_power:
    case CI_OP_frexp_mantissa:
    case CI_OP_frexp_exponent:
        return true;
    default:
        return rows[op].kind == CI_OPKIND_math || rows[op].kind == CI_OPKIND_composite;
    }
}
