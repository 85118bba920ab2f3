/* The rows of reductions. */
#include "codegen/reduction.h"

#include <float.h>
#include <math.h>

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

static int
constant(CiBuild *b, CiDtype dtype, int lanes, double value)
{
    int made = ci_build_const(b, ci_type_of(dtype, 1), ci_const_double(dtype, value));
    if (lanes > 1)
        made = ci_build_let(b, ci_type_of(dtype, lanes), CI_OP_splat, 1, &made);
    return made;
}

static int
choose(CiBuild *b, int lanes, int condition, int yes, int no)
{
    const int args[] = {condition, yes, no};
    return ci_build_let(b, ci_type_of(dtype_of(b, yes), lanes), CI_OP_where, 3, args);
}

/* ---- one accumulator, one operation ---- */

static CiConst
identity_of_one(CiOp fold, int k, CiDtype dtype)
{
    (void)k;
    return ci_op_identity(fold, dtype);
}

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

int
ci_reduction_is_better(CiBuild *b, CiOp fold, int lanes, int best, int value)
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
    for (int k = 0; k < 2; k++)
        acc[k] = choose(b, lanes, condition, later[k], acc[k]);
}

static void
step_position(CiBuild *b, CiOp fold, int lanes, int *acc, const int *lifted)
{
    take_where(b, lanes, ci_reduction_is_better(b, fold, lanes, acc[0], lifted[0]), acc, lifted);
}

/* Among equal elements the first one wins, in whichever part it is. */
static void
combine_position(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later)
{
    int better = ci_reduction_is_better(b, fold, lanes, acc[0], later[0]),
        worse = ci_reduction_is_better(b, fold, lanes, later[0], acc[0]),
        level = ci_build_let(b, ci_type_of(CI_DTYPE_bool, lanes), CI_OP_logical_not, 1, &worse),
        first = apply(b, CI_OP_less, CI_DTYPE_bool, lanes, later[1], acc[1]);
    take_where(b, lanes, either(b, lanes, better, both(b, lanes, level, first)), acc, later);
}

static CiConst
identity_of_position(CiOp fold, int k, CiDtype dtype)
{
    CiOp like = fold == CI_OP_argmax ? CI_OP_max : CI_OP_min;
    return k > 0 ? ci_const_int(CI_DTYPE_i64, 0) : ci_op_identity(like, dtype);
}

/* ---- the maximum, and the sum of exp(x - it) ---- */

/* The sum is NaN if all elements are -inf, or if one of them is inf or NaN. */
static void
lift_exp_sum(CiBuild *b, int element, int *lifted)
{
    CiDtype dtype = dtype_of(b, element);
    int is_infinite = ci_build_let(b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_isinf, 1, &element);
    lifted[0] = element;
    lifted[1] = choose(b, 1, is_infinite, constant(b, dtype, 1, (double)NAN),
                       constant(b, dtype, 1, 1.0));
}

static int
finite_from_below(CiBuild *b, int lanes, int value)
{
    CiDtype dtype = dtype_of(b, value);
    double largest = dtype == CI_DTYPE_f32 ? (double)FLT_MAX : DBL_MAX;
    return apply(b, CI_OP_maximum, dtype, lanes, value, constant(b, dtype, lanes, -largest));
}

/* The sum beside the smaller maximum is scaled to the greater one. Beside anything else -inf comes
 * to nothing; and nothing is subtracted that would raise a flag where NumPy raises none. */
static void
merge_exp_sums(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later)
{
    CiDtype dtype = dtype_of(b, acc[0]);
    int top = apply(b, CI_OP_maximum, dtype, lanes, acc[0], later[0]),
        below = apply(b, CI_OP_minimum, dtype, lanes, acc[0], later[0]),
        is_later = apply(b, CI_OP_greater, CI_DTYPE_bool, lanes, later[0], acc[0]),
        is_level = apply(b, CI_OP_equal, CI_DTYPE_bool, lanes, below, top),
        is_nothing = apply(b, CI_OP_equal, CI_DTYPE_bool, lanes, below,
                           constant(b, dtype, lanes, -HUGE_VAL)),
        distance = apply(b, CI_OP_subtract, dtype, lanes, below, finite_from_below(b, lanes, top)),
        scale = ci_build_let(b, ci_type_of(dtype, lanes), CI_OP_exp, 1, &distance),
        kept = choose(b, lanes, is_later, later[1], acc[1]),
        small = choose(b, lanes, is_later, acc[1], later[1]),
        scaled = apply(b, CI_OP_multiply, dtype, lanes, small, scale);
    (void)fold;
    scaled = choose(b, lanes, is_nothing, constant(b, dtype, lanes, 0.0), scaled);
    scaled = choose(b, lanes, is_level, small, scaled);
    acc[0] = top;
    acc[1] = apply(b, CI_OP_add, dtype, lanes, kept, scaled);
}

static void
begin_exp_sum(CiBuild *b, int lanes, int *acc, const int *lifted)
{
    acc[0] = apply(b, CI_OP_maximum, dtype_of(b, acc[0]), lanes, acc[0], lifted[0]);
}

static void
again_exp_sum(CiBuild *b, int lanes, int *acc, const int *lifted)
{
    CiDtype dtype = dtype_of(b, acc[0]);
    int distance = apply(b, CI_OP_subtract, dtype, lanes, lifted[0],
                         finite_from_below(b, lanes, acc[0])),
        made = ci_build_let(b, ci_type_of(dtype, lanes), CI_OP_exp, 1, &distance);
    int is_infinite = ci_build_let(b, ci_type_of(CI_DTYPE_bool, lanes), CI_OP_isinf, 1, &acc[0]);
    made = choose(b, lanes, is_infinite, constant(b, dtype, lanes, (double)NAN), made);
    acc[1] = apply(b, CI_OP_add, dtype, lanes, acc[1], made);
}

static CiConst
identity_of_exp_sum(CiOp fold, int k, CiDtype dtype)
{
    (void)fold;
    return k == 0 ? ci_op_identity(CI_OP_max, dtype) : ci_const_double(dtype, 0.0);
}

/* ---- Welford's: how many, their mean, the sum of squares of what they differ from it ---- */

static void
lift_welford(CiBuild *b, int element, int *lifted)
{
    CiDtype dtype = dtype_of(b, element);
    int is_infinite = ci_build_let(b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_isinf, 1, &element);
    lifted[0] = constant(b, dtype, 1, 1.0);
    lifted[1] = element;
    lifted[2] = choose(b, 1, is_infinite, constant(b, dtype, 1, (double)NAN),
                       constant(b, dtype, 1, 0.0));
}

/* The mean moves by parts of both, neither of which is beyond what a float holds; nothing and
 * nothing is nothing. */
static void
merge_welford(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later)
{
    CiDtype dtype = dtype_of(b, acc[1]);
    int count = apply(b, CI_OP_add, dtype, lanes, acc[0], later[0]),
        some = apply(b, CI_OP_maximum, dtype, lanes, count, constant(b, dtype, lanes, 1.0)),
        part = apply(b, CI_OP_divide, dtype, lanes, later[0], some),
        apart = apply(b, CI_OP_subtract, dtype, lanes, later[1], acc[1]),
        from = apply(b, CI_OP_multiply, dtype, lanes, acc[1], part),
        to = apply(b, CI_OP_multiply, dtype, lanes, later[1], part),
        moved = apply(b, CI_OP_subtract, dtype, lanes, to, from),
        left = apply(b, CI_OP_multiply, dtype, lanes, apart, acc[0]),
        right = apply(b, CI_OP_multiply, dtype, lanes, apart, part),
        between = apply(b, CI_OP_multiply, dtype, lanes, left, right),
        within = apply(b, CI_OP_add, dtype, lanes, acc[2], later[2]);
    (void)fold;
    acc[0] = count;
    acc[1] = apply(b, CI_OP_add, dtype, lanes, acc[1], moved);
    acc[2] = apply(b, CI_OP_add, dtype, lanes, within, between);
}

static void
begin_welford(CiBuild *b, int lanes, int *acc, const int *lifted)
{
    CiDtype dtype = dtype_of(b, acc[1]);
    for (int k = 0; k < 2; k++)
        acc[k] = apply(b, CI_OP_add, dtype, lanes, acc[k], lifted[k]);
}

static void
transpose_welford(CiBuild *b, int lanes, int *acc)
{
    CiDtype dtype = dtype_of(b, acc[1]);
    int some = apply(b, CI_OP_maximum, dtype, lanes, acc[0], constant(b, dtype, lanes, 1.0));
    acc[1] = apply(b, CI_OP_divide, dtype, lanes, acc[1], some);
}

static void
again_welford(CiBuild *b, int lanes, int *acc, const int *lifted)
{
    CiDtype dtype = dtype_of(b, acc[1]);
    int apart = apply(b, CI_OP_subtract, dtype, lanes, lifted[1], acc[1]),
        square = apply(b, CI_OP_multiply, dtype, lanes, apart, apart);
    acc[2] = apply(b, CI_OP_add, dtype, lanes, acc[2], square);
}

static CiConst
identity_of_welford(CiOp fold, int k, CiDtype dtype)
{
    (void)fold, (void)k;
    return ci_const_double(dtype, 0.0);
}

/* ---- rows ---- */

const CiReduction *
ci_reduction_of(CiOp fold)
{
    static const CiReduction
        one = {1, identity_of_one, NULL, fold_one, fold_one, NULL, NULL, NULL},
        position = {2, identity_of_position, NULL, step_position, combine_position, NULL, NULL, NULL},
        exp_sum = {2,    identity_of_exp_sum, lift_exp_sum, merge_exp_sums, merge_exp_sums, begin_exp_sum,
                   NULL, again_exp_sum},
        welford = {3,
                   identity_of_welford,
                   lift_welford,
                   merge_welford,
                   merge_welford,
                   begin_welford,
                   transpose_welford,
                   again_welford};
    return fold == CI_OP_exp_sum                          ? &exp_sum
           : fold == CI_OP_welford                        ? &welford
           : ci_op_kind(fold) == CI_OPKIND_argreduce ? &position
                                                          : &one;
}

CiConst
ci_reduction_identity(CiOp fold, int k, CiDtype dtype)
{
    return ci_reduction_of(fold)->identity(fold, k, dtype);
}

CiConst
ci_reduction_of_nothing(CiOp fold, int k, CiDtype dtype)
{
    return k == 0 && ci_op_combine(fold) == CI_OP_add ? (CiConst){0}
                                                     : ci_reduction_identity(fold, k, dtype);
}
