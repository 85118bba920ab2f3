/* Interval arithmetic. Ends are computed in 128 bits; what may wrap is all that its type holds. */
#include "ir/interval.h"

__extension__ typedef __int128 Wide;

static const CiInterval ALL = {INT64_MIN, INT64_MAX};

CiInterval
ci_interval_of_type(CiDtype dtype)
{
    int bits = 8 * ci_dtype_size(dtype);
    if (dtype == CI_DTYPE_bool)
        return (CiInterval){0, 1};
    if (!ci_dtype_is_integral(dtype) || bits == 64)
        return ALL;
    if (ci_dtype_class(dtype) == CI_CLASS_uint)
        return (CiInterval){0, ((int64_t)1 << bits) - 1};
    return (CiInterval){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
}

bool
ci_interval_is_known(CiDtype dtype)
{
    return ci_dtype_is_integral(dtype) && dtype != CI_DTYPE_u64;
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

CiInterval
ci_interval_hull(CiInterval a, CiInterval b)
{
    return (CiInterval){least(a.low, b.low), most(a.high, b.high)};
}

bool
ci_interval_is_within(CiInterval a, CiInterval b)
{
    return b.low <= a.low && a.high <= b.high;
}

/* ---- exact results ---- */

typedef struct Ends {
    Wide low, high;
} Ends;

static Ends
ends_of(Wide a, Wide b, Wide c, Wide d)
{
    Wide ab = a < b ? a : b, cd = c < d ? c : d, AB = a > b ? a : b, CD = c > d ? c : d;
    return (Ends){ab < cd ? ab : cd, AB > CD ? AB : CD};
}

static bool
fit(Ends ends, CiInterval type, CiInterval *fitted)
{
    if (ends.low < type.low || ends.high > type.high)
        return false;
    *fitted = (CiInterval){(int64_t)ends.low, (int64_t)ends.high};
    return true;
}

bool
ci_interval_add_up(CiInterval a, CiInterval step, int64_t times, CiInterval *sum)
{
    Wide down = step.low < 0 ? (Wide)step.low * times : 0,
         up = step.high > 0 ? (Wide)step.high * times : 0;
    return fit((Ends){a.low + down, a.high + up}, ALL, sum);
}

/* ---- bits ---- */

/* All bits below and at the highest one that any number of the two intervals has. */
static int64_t
bits_of(CiInterval a, CiInterval b)
{
    uint64_t bits = 0;
    int64_t ends[4] = {a.low, a.high, b.low, b.high};
    for (int k = 0; k < 4; k++)
        bits |= (uint64_t)(ends[k] < 0 ? ~ends[k] : ends[k]);
    for (int shift = 1; shift < 64; shift *= 2)
        bits |= bits >> shift;
    return (int64_t)bits;
}

static CiInterval
bitwise(CiOp op, CiInterval a, CiInterval b)
{
    int64_t bits = bits_of(a, b);
    bool may_be_negative = a.low < 0 || b.low < 0;
    CiInterval r = {may_be_negative ? ~bits : 0, bits};
    if (op == CI_OP_bitwise_and) {
        r.low = a.low < 0 && b.low < 0 ? ~bits : 0;
        r.high = a.low >= 0 && b.low >= 0 ? least(a.high, b.high)
                 : a.low >= 0             ? a.high
                 : b.low >= 0             ? b.high
                                          : most(a.high, b.high);
    } else if (op == CI_OP_bitwise_or) {
        r.low = may_be_negative ? least(a.low, b.low) : most(a.low, b.low);
    }
    return r;
}

/* Counts below the width of the type; others give 0 or -1. */
static Ends
shifted(CiOp op, CiInterval a, CiInterval count, int bits)
{
    Ends unknown = {(Wide)INT64_MIN * 2, (Wide)INT64_MAX * 2};
    if (count.low < 0 || (op == CI_OP_left_shift && count.high >= bits))
        return unknown;
    int few = (int)least(count.low, 63), many = (int)least(count.high, 63);
    if (op == CI_OP_right_shift)
        return ends_of(a.low >> few, a.low >> many, a.high >> few, a.high >> many);
    Wide one = 1;
    return ends_of(a.low * (one << few), a.low * (one << many), a.high * (one << few),
                   a.high * (one << many));
}

/* ---- operations ---- */

/* By a number whose sign is known. */
static Ends
divided(CiOp op, CiInterval a, CiInterval b, CiInterval type)
{
    Ends all = {type.low, type.high}, hull;
    bool is_positive = b.low > 0;
    if (!is_positive)
        return all;
    if (op == CI_OP_floor_divide) {
        hull = ends_of(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high);
        hull.low -= a.low < 0; /* rounded down, not to zero */
        return hull;
    }
    if (op == CI_OP_fmod)
        return (Ends){a.low < 0 ? 1 - b.high : 0, a.high < 0 ? 0 : b.high - 1};
    return (Ends){0, a.low >= 0 ? least(a.high, b.high - 1) : b.high - 1};
}

static Ends
absolute(CiInterval a)
{
    Wide low = a.low, high = a.high, size = -low > high ? -low : high;
    return (Ends){low > 0 ? low : high < 0 ? -high : 0, size};
}

/* 1: always, 0: never, -1: it depends. */
static int
compare(CiOp op, CiInterval a, CiInterval b)
{
    switch (op) {
    case CI_OP_less:
        return a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    case CI_OP_less_equal:
        return a.high <= b.low ? 1 : a.low > b.high ? 0 : -1;
    case CI_OP_greater:
        return compare(CI_OP_less, b, a);
    case CI_OP_greater_equal:
        return compare(CI_OP_less_equal, b, a);
    case CI_OP_equal:
        if (a.high < b.low || b.high < a.low)
            return 0;
        return a.low == a.high && b.low == b.high ? 1 : -1;
    case CI_OP_not_equal: {
        int is_equal = compare(CI_OP_equal, a, b);
        return is_equal < 0 ? -1 : !is_equal;
    }
    default:
        return -1;
    }
}

static Ends
ends_of_op(CiOp op, CiDtype dtype, CiInterval a, CiInterval b, CiInterval type)
{
    CiInterval r = type;
    switch (op) {
    case CI_OP_add:
        return (Ends){(Wide)a.low + b.low, (Wide)a.high + b.high};
    case CI_OP_subtract:
        return (Ends){(Wide)a.low - b.high, (Wide)a.high - b.low};
    case CI_OP_multiply:
        return ends_of((Wide)a.low * b.low, (Wide)a.low * b.high, (Wide)a.high * b.low,
                       (Wide)a.high * b.high);
    case CI_OP_negative:
        return (Ends){-(Wide)a.high, -(Wide)a.low};
    case CI_OP_absolute:
        return absolute(a);
    case CI_OP_floor_divide:
    case CI_OP_remainder:
    case CI_OP_fmod:
        return divided(op, a, b, type);
    case CI_OP_left_shift:
    case CI_OP_right_shift:
        return shifted(op, a, b, 8 * ci_dtype_size(dtype));
    case CI_OP_positive:
        r = a;
        break;
    case CI_OP_minimum:
        r = (CiInterval){least(a.low, b.low), least(a.high, b.high)};
        break;
    case CI_OP_maximum:
        r = (CiInterval){most(a.low, b.low), most(a.high, b.high)};
        break;
    case CI_OP_bitwise_and:
    case CI_OP_bitwise_or:
    case CI_OP_bitwise_xor:
        r = bitwise(op, a, b);
        break;
    case CI_OP_invert:
        r = (CiInterval){~a.high, ~a.low};
        break;
    default:
        break;
    }
    return (Ends){r.low, r.high};
}

static CiInterval
truth(CiOp op, CiInterval a, CiInterval b)
{
    bool has_true_a = a.low > 0 || a.high < 0, is_false_a = a.low == 0 && a.high == 0,
         has_true_b = b.low > 0 || b.high < 0, is_false_b = b.low == 0 && b.high == 0;
    int known = compare(op, a, b);
    if (op == CI_OP_logical_not)
        known = has_true_a ? 0 : is_false_a ? 1 : -1;
    else if (op == CI_OP_logical_and || op == CI_OP_bitwise_and)
        known = has_true_a && has_true_b ? 1 : is_false_a || is_false_b ? 0 : -1;
    else if (op == CI_OP_logical_or || op == CI_OP_bitwise_or)
        known = has_true_a || has_true_b ? 1 : is_false_a && is_false_b ? 0 : -1;
    return known < 0 ? (CiInterval){0, 1} : (CiInterval){known, known};
}

CiInterval
ci_interval_pointwise(CiOp op, CiDtype operand, CiInterval a, CiInterval b, bool *may_wrap)
{
    CiDtype result = ci_op_result(op, operand);
    CiInterval type = ci_interval_of_type(result), r;
    *may_wrap = false;
    if (result == CI_DTYPE_bool)
        return truth(op, a, b);
    if (fit(ends_of_op(op, operand, a, b, type), type, &r))
        return r;
    *may_wrap = true;
    return type;
}

static int64_t
widen_up(int64_t value)
{
    static const int rungs[] = {0, 8, 16, 32, 48, 60, 62};
    for (size_t k = 0; k < sizeof rungs / sizeof rungs[0]; k++)
        if (value < (int64_t)1 << rungs[k])
            return ((int64_t)1 << rungs[k]) - 1;
    return INT64_MAX;
}

CiInterval
ci_interval_widen(CiInterval a)
{
    return (CiInterval){a.low < 0 ? ~widen_up(~a.low) : 0, a.high < 0 ? -1 : widen_up(a.high)};
}
