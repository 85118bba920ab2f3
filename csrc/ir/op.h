/* What ops.def says, as functions. */
#ifndef CI_IR_OP_H
#define CI_IR_OP_H

#include "ir/dtype.h"

typedef enum CiOp {
#define POINTWISE(name, arity, result, b, i, u, f, c) CI_OP_##name,
#define MATH(name, arity) CI_OP_##name,
#define REDUCE(name, combine) CI_OP_##name,
#define ARGREDUCE(name) CI_OP_##name,
#define SCAN(name, combine) CI_OP_##name,
#define VIEW(name) CI_OP_##name,
#define CREATE(name) CI_OP_##name,
#define STRUCTURE(name) CI_OP_##name,
#define EXTERN(name) CI_OP_##name,
#define REGION(name) CI_OP_##name,
#define COMPOSITE(name, arity) CI_OP_##name,
#define SCALAR(name) CI_OP_##name,
#define LANES(name, arity) CI_OP_##name,
#include "ir/ops.def"
    CI_OP_COUNT,
    CI_OP_none = CI_OP_COUNT
} CiOp;

typedef enum CiOpKind {
    CI_OPKIND_pointwise,
    CI_OPKIND_math,
    CI_OPKIND_reduce,
    CI_OPKIND_argreduce,
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
    CI_RESULT_compared
} CiResultRule;

const char *ci_op_name(CiOp op);
CiOp ci_op_find(const char *name); /* CI_OP_none when there is none */
CiOpKind ci_op_kind(CiOp op);
int ci_op_arity(CiOp op); /* -1: varies */
/* Pointwise and math: the dtype that operands of this dtype give. */
CiDtype ci_op_result(CiOp op, CiDtype operand);
/* A comparison of a u64 with an i64, in either order: of their values, which no dtype holds. */
bool ci_op_compares_signs(CiOp op, CiDtype a, CiDtype b);
/* The expression text of a pointwise op for a class of operand; NULL when refused. */
const char *ci_op_expression(CiOp op, CiClass operand);
/* Whether the value depends on that operand: isnan of an integer reads nothing. */
bool ci_op_reads(CiOp op, CiDtype operand, int position);
/* NULL when op is defined for operands of this dtype, else the reason ("subtract of bool"). */
const char *ci_op_why_not(CiOp op, CiDtype operand);
/* The operation of that kind which combines as this one does, or none: cumsum of sum. */
CiOp ci_op_alike(CiOp op, CiOpKind kind);
CiOp ci_op_combine(
    CiOp reduction_or_scan); /* the pointwise op that folds; CI_OP_none for argmax/argmin */
/* What a fold starts from: -0.0 for float sums (so that a sum of -0.0 is -0.0), -inf or the least
 * value for max, … */
CiConst ci_op_identity(CiOp reduction_or_scan, CiDtype dtype);
/* True when folding in any order gives the same bits: integers, bools, min and max, any and all. */
bool ci_op_is_order_free(CiOp reduction, CiDtype dtype);
/* Whether results have NumPy's own bits, whatever way they are computed. */
bool ci_op_is_exact(CiOp op, CiDtype operand);
bool ci_op_is_expensive(
    CiOp op); /* math, divide, fmod…: worth a buffer when several consumers read it */

#endif
