/* The rows of reductions. */
#include "codegen/reduction.h"

static CiDtype
dtype_of(const CiBuild *b, int value)
{
    return b->proc->types[value].dtype;
}

static int
apply(CiBuild *b, CiOp op, CiDtype dtype, int lanes, int left, int right)
{
    const int args[] = {left, right};
    return ci_build_let(b, ci_type_of(dtype, lanes), op, 2, args);
}

/* ---- one accumulator, one operation ---- */

static void
fold_one(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later)
{
    acc[0] = apply(b, ci_op_combine(fold), dtype_of(b, acc[0]), lanes, acc[0], later[0]);
}

/* ---- the extreme and where it is first; a NaN is more extreme than any number ---- */

static int
is_nan(CiBuild *b, int lanes, int value)
{
    return apply(b, CI_OP_not_equal, CI_DTYPE_bool, lanes, value, value);
}

static int
either(CiBuild *b, int lanes, int left, int right)
{
    return apply(b, CI_OP_logical_or, CI_DTYPE_bool, lanes, left, right);
}

static int
both(CiBuild *b, int lanes, int left, int right)
{
    return apply(b, CI_OP_logical_and, CI_DTYPE_bool, lanes, left, right);
}

/* value is more extreme than best. */
static int
is_better(CiBuild *b, CiOp fold, int lanes, int best, int value)
{
    CiOp compare = fold == CI_OP_argmax ? CI_OP_greater : CI_OP_less;
    int better = apply(b, compare, CI_DTYPE_bool, lanes, value, best);
    if (!ci_dtype_is_float(dtype_of(b, value)))
        return better;
    int is_number = apply(b, CI_OP_equal, CI_DTYPE_bool, lanes, best, best);
    return either(b, lanes, better, both(b, lanes, is_nan(b, lanes, value), is_number));
}

static void
take_where(CiBuild *b, int lanes, int condition, int *acc, const int *later)
{
    for (int k = 0; k < 2; k++) {
        const int args[] = {condition, later[k], acc[k]};
        acc[k] = ci_build_let(b, ci_type_of(dtype_of(b, acc[k]), lanes), CI_OP_where, 3, args);
    }
}

static void
step_place(CiBuild *b, CiOp fold, int lanes, int *acc, const int *lifted)
{
    take_where(b, lanes, is_better(b, fold, lanes, acc[0], lifted[0]), acc, lifted);
}

/* Of equal ones the first, wherever its part was. */
static void
combine_place(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later)
{
    int better = is_better(b, fold, lanes, acc[0], later[0]),
        worse = is_better(b, fold, lanes, later[0], acc[0]),
        level = ci_build_let(b, ci_type_of(CI_DTYPE_bool, lanes), CI_OP_logical_not, 1, &worse),
        first = apply(b, CI_OP_less, CI_DTYPE_bool, lanes, later[1], acc[1]);
    take_where(b, lanes, either(b, lanes, better, both(b, lanes, level, first)), acc, later);
}

/* ---- rows ---- */

const CiReduction *
ci_reduction_of(CiOp fold)
{
    static const CiReduction one = {1, fold_one, fold_one}, place = {2, step_place, combine_place};
    return ci_op_kind(fold) == CI_OPKIND_argreduce ? &place : &one;
}

CiConst
ci_reduction_identity(CiOp fold, int k, CiDtype dtype)
{
    if (k > 0)
        return ci_const_int(CI_DTYPE_i64, 0);
    CiOp like = fold == CI_OP_argmax ? CI_OP_max : fold == CI_OP_argmin ? CI_OP_min : fold;
    return ci_op_identity(like, dtype);
}

CiConst
ci_reduction_of_nothing(CiOp fold, int k, CiDtype dtype)
{
    return k == 0 && ci_op_combine(fold) == CI_OP_add ? (CiConst){0}
                                                     : ci_reduction_identity(fold, k, dtype);
}
