/* Queries on operations (ops.def). */
#ifndef CI_IR_OP_H
#define CI_IR_OP_H

#include "ir/dtype.h"

typedef enum CiOp {
#define POINTWISE(name, arity, result, b, i, u, f, c) CI_OP_##name,
#define MATH(name, arity, function) CI_OP_##name,
#define UFUNC(name, arity, result, own) CI_OP_##name,
#define REDUCE(name, combine) CI_OP_##name,
#define ARGREDUCE(name) CI_OP_##name,
#define ONLINE(name, width) CI_OP_##name,
#define SCAN(name, combine) CI_OP_##name,
#define VIEW(name) CI_OP_##name,
#define CREATE(name) CI_OP_##name,
#define STRUCTURE(name, arity) CI_OP_##name,
#define EXTERN(name) CI_OP_##name,
#define REGION(name) CI_OP_##name,
#define COMPOSITE(name, arity, result, class) CI_OP_##name,
#define SCALAR(name, arity, result) CI_OP_##name,
#define LANES(name, arity) CI_OP_##name,
#include "ir/ops.def"
    CI_OP_COUNT,
    CI_OP_none = CI_OP_COUNT
} CiOp;

/* The UFUNC rows, numbered from 0. */
typedef enum CiUfunc {
#define UFUNC(name, arity, result, own) CI_UFUNC_##own,
#include "ir/ops.def"
    CI_UFUNC_COUNT
} CiUfunc;

typedef enum CiOpKind {
    CI_OPKIND_pointwise,
    CI_OPKIND_math,
    CI_OPKIND_ufunc,
    CI_OPKIND_reduce,
    CI_OPKIND_argreduce,
    CI_OPKIND_online,
    CI_OPKIND_scan,
    CI_OPKIND_view,
    CI_OPKIND_create,
    CI_OPKIND_structure,
    CI_OPKIND_extern,
    CI_OPKIND_region,
    CI_OPKIND_composite,
    CI_OPKIND_scalar,
    CI_OPKIND_lanes
} CiOpKind;

typedef enum CiResultRule {
    CI_RESULT_same,
    CI_RESULT_boolean,
    CI_RESULT_real,
    CI_RESULT_compared,
    CI_RESULT_position
} CiResultRule;

/* The facts of FACTS rows, which ops.def explains. */
typedef enum CiOpFact {
    CI_FACT_commutes = 1 << 0,
    CI_FACT_keeps = 1 << 1,
    CI_FACT_by_parts = 1 << 2,
    CI_FACT_costly = 1 << 3,
    CI_FACT_low_bits = 1 << 4,
    CI_FACT_low_bits_of_first = 1 << 5,
    CI_FACT_each_bit = 1 << 6,
    CI_FACT_memory = 1 << 7,
    CI_FACT_effect = 1 << 8,
    CI_FACT_stacks = 1 << 9,
    CI_FACT_real_only = 1 << 10,
    CI_FACT_collective = 1 << 11
} CiOpFact;

const char *ci_op_name(CiOp op);
CiOp ci_op_find(const char *name); /* CI_OP_none when there is none */
CiOpKind ci_op_kind(CiOp op);
int ci_op_arity(CiOp op); /* -1: varies */
bool ci_op_has(CiOp op, CiOpFact fact);
/* The number of accumulators of a reduction. The last one is the result. */
int ci_op_width(CiOp op);
/* The C library's name of a function of the MATH rows, without the suffix of its type: "asin". */
const char *ci_op_function(CiOp op);
/* The operation that computes the same by the inner loop of NumPy's ufunc; CI_OP_none if there is
 * none. */
CiOp ci_op_by_numpy(CiOp op);
/* The operation whose name a graph's text and patterns use: the row's `own` operation for a UFUNC row, otherwise op. */
CiOp ci_op_public(CiOp op);
/* NULL, or why a user's pass never sees a node of the operation. */
const char *ci_op_why_never_in_graphs(CiOp op);
/* The index of a UFUNC row's loop for operands of that dtype, in a table with one entry per row and
 * dtype. */
int ci_op_ufunc_loop(CiOp op, CiDtype dtype);
/* The dtypes of operands and result of the loop with that index. */
CiDtype ci_op_ufunc_operand(int loop);
CiDtype ci_op_ufunc_result(int loop);
/* True for a transcendental function, cinductor's or NumPy's. */
bool ci_op_is_function(CiOp op);
/* True if ci_graph_pointwise builds it: each element of the result depends on one element of each operand. */
bool ci_op_is_elementwise(CiOp op);
/* Pointwise, math and ufunc: the dtype of the result for operands of this dtype. */
CiDtype ci_op_result(CiOp op, CiDtype operand);
/* True if op compares a u64 with an i64, in either order. It compares the values; no common dtype represents both. */
bool ci_op_compares_signs(CiOp op, CiDtype a, CiDtype b);
/* The expression text of a pointwise op for a class of operand; NULL when refused. */
const char *ci_op_expression(CiOp op, CiClass operand);
/* The expression for signed integers where their overflow is undefined; NULL: the row's own. */
const char *ci_op_unsigned(CiOp op);
/* True if the value depends on that operand: isnan of an integer reads nothing. */
bool ci_op_reads(CiOp op, CiDtype operand, int position);
/* NULL when op is defined for operands of this dtype, else the reason ("subtract of bool"). */
const char *ci_op_why_not(CiOp op, CiDtype operand);
/* The operation of that kind with the same combine step, or none: cumsum for sum. */
CiOp ci_op_alike(CiOp op, CiOpKind kind);
CiOp ci_op_combine(
    CiOp reduction_or_scan); /* the pointwise op that folds; CI_OP_none for argmax/argmin */
/* The initial value of a fold: -0.0 for float sums (so that a sum of -0.0 is -0.0), -inf or the
 * least value for max, … */
CiConst ci_op_identity(CiOp reduction_or_scan, CiDtype dtype);
/* True if the result for such operands is rounded to their dtype. */
bool ci_op_rounds(CiOp op, CiDtype operand);
/* True if a fold in any order gives the same bits: integers, bools, min and max, any and all. */
bool ci_op_is_order_free(CiOp reduction, CiDtype dtype);
/* True if results always have NumPy's bits, however they are computed. */
bool ci_op_is_exact(CiOp op, CiDtype operand);
bool ci_op_is_expensive(
    CiOp op); /* math, divide, fmod…: worth a buffer when several consumers read it */

#endif
