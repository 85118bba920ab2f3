/* The queries on operations, as functions over the tables of ops.def.
 *
 * Invariant: this file has no case for a single operation, because every fact is in a row of
 * ops.def. */
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
#define MATH(name, arity, function) PLAIN(name, math, arity, same, none)
#define UFUNC(name, arity, result, own) PLAIN(name, ufunc, arity, result, none)
#define REDUCE(name, combine) PLAIN(name, reduce, 1, same, combine)
#define ARGREDUCE(name) PLAIN(name, argreduce, 1, position, none)
#define ONLINE(name, width) PLAIN(name, online, 1, same, none)
#define SCAN(name, combine) PLAIN(name, scan, 1, same, combine)
#define VIEW(name) PLAIN(name, view, 1, same, none)
#define CREATE(name) PLAIN(name, create, 0, same, none)
#define STRUCTURE(name, arity) PLAIN(name, structure, arity, same, none)
#define EXTERN(name) PLAIN(name, extern, -1, same, none)
#define REGION(name) PLAIN(name, region, -1, same, none)
#define COMPOSITE(name, arity, result, class) PLAIN(name, composite, arity, result, none)
#define SCALAR(name, arity, result) PLAIN(name, scalar, arity, result, none)
#define LANES(name, arity) PLAIN(name, lanes, arity, same, none)
#include "ir/ops.def"
    {"none", CI_OPKIND_scalar, 0, CI_RESULT_same, CI_OP_none, REFUSE, REFUSALS(none)},
};

/* ---- what few rows have ---- */

enum {
    commutes = CI_FACT_commutes,
    keeps = CI_FACT_keeps,
    by_parts = CI_FACT_by_parts,
    costly = CI_FACT_costly,
    low_bits = CI_FACT_low_bits,
    low_bits_of_first = CI_FACT_low_bits_of_first,
    each_bit = CI_FACT_each_bit,
    memory = CI_FACT_memory,
    effect = CI_FACT_effect,
    stacks = CI_FACT_stacks,
    real_only = CI_FACT_real_only,
    collective = CI_FACT_collective
};

static const int facts_of[CI_OP_COUNT + 1] = {
#define FACTS(name, facts) [CI_OP_##name] = facts,
#include "ir/ops.def"
};

typedef enum Identity {
    IDENTITY_zero,
    IDENTITY_minus_zero,
    IDENTITY_one,
    IDENTITY_all_bits,
    IDENTITY_least,
    IDENTITY_greatest,
    IDENTITY_lost_least,
    IDENTITY_lost_greatest
} Identity;

static const Identity identities[CI_OP_COUNT + 1] = {
#define IDENTITY(name, value) [CI_OP_##name] = IDENTITY_##value,
#include "ir/ops.def"
};

static const int widths[CI_OP_COUNT + 1] = {
#define ARGREDUCE(name) [CI_OP_##name] = 2,
#define ONLINE(name, width) [CI_OP_##name] = width,
#include "ir/ops.def"
};

static const char *const functions[CI_OP_COUNT + 1] = {
#define MATH(name, arity, function) [CI_OP_##name] = #function,
#include "ir/ops.def"
};

static const CiOp by_numpy[CI_OP_COUNT + 1] = {
#define UFUNC(name, arity, result, own) [CI_OP_##own] = CI_OP_##name,
#include "ir/ops.def"
};

static const char *const unsigned_expressions[CI_OP_COUNT + 1] = {
#define UNSIGNED(name, expression) [CI_OP_##name] = #expression,
#include "ir/ops.def"
};

static const CiClass composite_classes[CI_OP_COUNT + 1] = {
#define COMPOSITE(name, arity, result, class) [CI_OP_##name] = CI_CLASS_##class,
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
    return rows[op].arity;
}

bool
ci_op_has(CiOp op, CiOpFact fact)
{
    return (facts_of[op] & (int)fact) != 0;
}

int
ci_op_width(CiOp op)
{
    return widths[op] ? widths[op] : 1;
}

const char *
ci_op_function(CiOp op)
{
    return functions[op];
}

CiOp
ci_op_by_numpy(CiOp op)
{
    return by_numpy[op] ? by_numpy[op] : CI_OP_none;
}

CiOp
ci_op_public(CiOp op)
{
    static const CiOp own_operation[CI_OP_COUNT + 1] = {
#define UFUNC(name, arity, result, own) [CI_OP_##name] = CI_OP_##own,
#include "ir/ops.def"
    };
    return own_operation[op] ? own_operation[op] : op;
}

const char *
ci_op_why_never_in_graphs(CiOp op)
{
    switch (ci_op_kind(op)) {
    case CI_OPKIND_ufunc:
        return "it is named by the function, without numpy_: who computes it is its attribute `by`";
    case CI_OPKIND_composite:
        return "it becomes other operations before passes of yours run: see register_lowering";
    case CI_OPKIND_online:
    case CI_OPKIND_scalar:
    case CI_OPKIND_lanes:
        return "it exists below the graph only";
    default:
        return NULL;
    }
}

int
ci_op_ufunc_loop(CiOp op, CiDtype dtype)
{
    static const int numbers[CI_OP_COUNT + 1] = {
#define UFUNC(name, arity, result, own) [CI_OP_##name] = CI_UFUNC_##own,
#include "ir/ops.def"
    };
    return numbers[op] * CI_DTYPE_COUNT + (int)dtype;
}

CiDtype
ci_op_ufunc_operand(int loop)
{
    return (CiDtype)(loop % CI_DTYPE_COUNT);
}

CiDtype
ci_op_ufunc_result(int loop)
{
    static const CiOp ops[CI_UFUNC_COUNT] = {
#define UFUNC(name, arity, result, own) [CI_UFUNC_##own] = CI_OP_##name,
#include "ir/ops.def"
    };
    return ci_op_result(ops[loop / CI_DTYPE_COUNT], ci_op_ufunc_operand(loop));
}

bool
ci_op_is_function(CiOp op)
{
    return rows[op].kind == CI_OPKIND_math || rows[op].kind == CI_OPKIND_ufunc;
}

bool
ci_op_is_elementwise(CiOp op)
{
    return rows[op].kind == CI_OPKIND_pointwise || ci_op_is_function(op) ||
           rows[op].kind == CI_OPKIND_composite || op == CI_OP_where;
}

const char *
ci_op_unsigned(CiOp op)
{
    return unsigned_expressions[op];
}

CiDtype
ci_op_result(CiOp op, CiDtype operand)
{
    if (rows[op].combine != CI_OP_none)
        return ci_op_result(rows[op].combine, operand);
    switch (rows[op].result) {
    case CI_RESULT_boolean:
    case CI_RESULT_compared:
        return CI_DTYPE_bool;
    case CI_RESULT_position:
        return CI_DTYPE_i64;
    case CI_RESULT_real:
        return ci_dtype_real(operand);
    default:
        return operand;
    }
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
    case CI_OPKIND_ufunc:
        return (operand == CI_CLASS_complex && !(facts_of[op] & CI_FACT_real_only)) ||
               (operand == CI_CLASS_float && rows[op].result == CI_RESULT_same);
    case CI_OPKIND_composite:
        return operand == composite_classes[op];
    case CI_OPKIND_argreduce:
        return operand != CI_CLASS_complex;
    case CI_OPKIND_online:
        return operand == CI_CLASS_float;
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
    Identity identity = identities[rows[op].combine];
    switch (identity) {
    case IDENTITY_minus_zero:
        return ci_dtype_is_integral(dtype) ? ci_const_int(dtype, 0) : minus_zero;
    case IDENTITY_one:
        return ci_const_int(dtype, 1);
    case IDENTITY_all_bits:
        return ci_const_int(dtype, -1);
    case IDENTITY_least:
    case IDENTITY_greatest:
        return extreme(dtype, identity == IDENTITY_greatest);
    case IDENTITY_lost_least: /* a NaN loses against everything, and is the answer where nothing
                                 else is */
    case IDENTITY_lost_greatest:
        return is_real ? ci_const_double(dtype, (double)NAN)
                       : extreme(dtype, identity == IDENTITY_lost_greatest);
    default:
        return ci_const_int(dtype, 0);
    }
}

bool
ci_op_rounds(CiOp op, CiDtype operand)
{
    return !ci_dtype_is_integral(operand) && ci_op_result(op, operand) == operand &&
           !ci_op_has(op, CI_FACT_keeps);
}

bool
ci_op_is_order_free(CiOp op, CiDtype dtype)
{
    CiOp combine = rows[op].combine;
    return rows[op].kind != CI_OPKIND_online &&
           (combine == CI_OP_none || !ci_op_rounds(combine, dtype));
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
               (ci_dtype_sum(operand) == operand && ci_dtype_class(operand) != CI_CLASS_complex) ||
               ci_dtype_is_integral(operand);
    case CI_OPKIND_reduce:
        return ci_op_is_order_free(op, operand);
    case CI_OPKIND_online:
        return false;
    case CI_OPKIND_pointwise:
        return ci_dtype_class(operand) != CI_CLASS_complex || ci_op_has(op, CI_FACT_by_parts);
    case CI_OPKIND_structure: /* NumPy adds a product in BLAS's order */
        return op != CI_OP_product || ci_dtype_is_integral(operand);
    case CI_OPKIND_ufunc: /* NumPy's own loops, and calls of the libraries that NumPy calls */
    case CI_OPKIND_extern:
    case CI_OPKIND_argreduce: /* these compare, move or count elements */
    case CI_OPKIND_view:
    case CI_OPKIND_create:
    case CI_OPKIND_region:
    case CI_OPKIND_scalar:
    case CI_OPKIND_lanes:
        return true;
    }
    return false;
}

bool
ci_op_is_expensive(CiOp op)
{
    return ci_op_is_function(op) || rows[op].kind == CI_OPKIND_composite ||
           ci_op_has(op, CI_FACT_costly);
}
