/* Bounds of expressions: intervals of int64 that saturate. As a low end INT64_MIN means unbounded,
 * as a high end INT64_MAX does; clamping towards them only ever widens an interval, so each result
 * holds for the exact integers, which never overflow. */
#include "sym/expr_private.h"
#include "sym/expr_visit.h"

#include <math.h>

__extension__ typedef __int128 Wide;

#define WIDE_INFINITY ((Wide)1 << 126)

static Wide
wide_low(CiBounds a)
{
    return a.low == CI_MINUS_INFINITY ? -WIDE_INFINITY : a.low;
}

static Wide
wide_high(CiBounds a)
{
    return a.high == CI_INFINITY ? WIDE_INFINITY : a.high;
}

static CiBounds
narrow(Wide low, Wide high)
{
    CiBounds out;
    out.low = low <= INT64_MIN ? INT64_MIN : low >= INT64_MAX ? INT64_MAX : (int64_t)low;
    out.high = high <= INT64_MIN ? INT64_MIN : high >= INT64_MAX ? INT64_MAX : (int64_t)high;
    return out;
}

static CiBounds
join(CiBounds a, CiBounds b)
{
    return (CiBounds){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

CiBounds
ci_bounds_of(const CiExpr *e)
{
    return (CiBounds){e->low, e->high};
}

static CiBounds
sum_of(CiBounds a, CiBounds b)
{
    Wide low = a.low == INT64_MIN || b.low == INT64_MIN ? INT64_MIN : (Wide)a.low + b.low;
    Wide high = a.high == INT64_MAX || b.high == INT64_MAX ? INT64_MAX : (Wide)a.high + b.high;
    return narrow(low, high);
}

static Wide
product(Wide a, Wide b)
{
    if (a == 0 || b == 0)
        return 0;
    bool infinite =
        a >= WIDE_INFINITY || -a >= WIDE_INFINITY || b >= WIDE_INFINITY || -b >= WIDE_INFINITY;
    if (infinite)
        return (a < 0) == (b < 0) ? WIDE_INFINITY : -WIDE_INFINITY;
    return a * b;
}

static CiBounds
product_of(CiBounds a, CiBounds b)
{
    Wide corners[4] = {
        product(wide_low(a), wide_low(b)),
        product(wide_low(a), wide_high(b)),
        product(wide_high(a), wide_low(b)),
        product(wide_high(a), wide_high(b)),
    };
    Wide low = corners[0], high = corners[0];
    for (int i = 1; i < 4; i++) {
        low = corners[i] < low ? corners[i] : low;
        high = corners[i] > high ? corners[i] : high;
    }
    return narrow(low, high);
}

static Wide
quotient(Wide a, Wide b)
{
    if (a >= WIDE_INFINITY || a <= -WIDE_INFINITY)
        return a; /* b > 0 */
    if (b >= WIDE_INFINITY)
        return a < 0 ? -1 : 0;
    return a / b - (a % b < 0);
}

/* b.low >= 1 */
static CiBounds
floordiv_by_positive(CiBounds a, CiBounds b)
{
    Wide low = wide_low(a), high = wide_high(a), least = b.low, most = wide_high(b);
    return narrow(quotient(low, low < 0 ? least : most), quotient(high, high < 0 ? most : least));
}

static CiBounds
negate(CiBounds a)
{
    return narrow(-wide_high(a), -wide_low(a));
}

/* A divisor that may be 0 counts as one that is not: where it is, there is no value. */
static CiBounds
positive_of(CiBounds b)
{
    return (CiBounds){b.low > 1 ? b.low : 1, b.high > 1 ? b.high : 1};
}

static CiBounds
negative_of(CiBounds b)
{
    return (CiBounds){b.low < -1 ? b.low : -1, b.high < -1 ? b.high : -1};
}

CiBounds
ci_bounds_floordiv(CiBounds a, CiBounds b)
{
    CiBounds above = positive_of(b), below = negative_of(b);
    if (b.low >= 0)
        return floordiv_by_positive(a, above);
    CiBounds flipped = floordiv_by_positive(negate(a), negate(below));
    return b.high <= 0 ? flipped : join(flipped, floordiv_by_positive(a, above));
}

/* b.low >= 1 */
static CiBounds
mod_by_positive(CiBounds a, CiBounds b)
{
    if (a.low >= 0 && a.high < b.low)
        return a;
    CiBounds out = {0, b.high == CI_INFINITY ? CI_INFINITY : b.high - 1};
    if (a.low >= 0 && a.high < out.high)
        out.high = a.high;
    return out;
}

static CiBounds
remainder_of(CiBounds a, CiBounds b)
{
    CiBounds above = positive_of(b), below = negative_of(b);
    if (b.low >= 0)
        return mod_by_positive(a, above);
    CiBounds flipped = negate(mod_by_positive(negate(a), negate(below)));
    return b.high <= 0 ? flipped : join(flipped, mod_by_positive(a, above));
}

/* Equal factors stand side by side: an even power is not negative. */
static CiBounds
range_of_product(const CiExpr *e)
{
    CiBounds all = {1, 1};
    for (int k = 0, power; k < e->nargs; k += power) {
        CiBounds base = ci_bounds_of(e->args[k]), one = {1, 1};
        for (power = 0; k + power < e->nargs && e->args[k + power] == e->args[k]; power++)
            one = product_of(one, base);
        if (power % 2 == 0 && one.low < 0)
            one.low = 0;
        all = product_of(all, one);
    }
    return all;
}

static CiBounds
range_of_extremum(const CiExpr *e)
{
    CiBounds all = ci_bounds_of(e->args[0]);
    for (int k = 1; k < e->nargs; k++) {
        CiBounds one = ci_bounds_of(e->args[k]);
        bool low = (one.low < all.low) == (e->kind == CI_EXPR_min);
        bool high = (one.high < all.high) == (e->kind == CI_EXPR_min);
        all.low = low ? one.low : all.low;
        all.high = high ? one.high : all.high;
    }
    return all;
}

CiBounds
ci_bounds_compute(const CiExpr *e)
{
    CiBounds all = {e->value, e->value};
    switch (e->kind) {
    case CI_EXPR_linear:
        for (int k = 0; k < e->nargs; k++) {
            CiBounds coef = {e->coefs[k], e->coefs[k]};
            all = sum_of(all, product_of(coef, ci_bounds_of(e->args[k])));
        }
        return all;
    case CI_EXPR_product:
        return range_of_product(e);
    case CI_EXPR_floordiv:
        return ci_bounds_floordiv(ci_bounds_of(e->args[0]), ci_bounds_of(e->args[1]));
    case CI_EXPR_mod:
        return remainder_of(ci_bounds_of(e->args[0]), ci_bounds_of(e->args[1]));
    case CI_EXPR_min:
    case CI_EXPR_max:
        return range_of_extremum(e);
    case CI_EXPR_const:
    case CI_EXPR_symbol:
        break;
    }
    return all;
}

double
ci_expr_visit(CiExprVisit *visit, const CiExpr *e)
{
    unsigned place = e->id % CI_VISIT_KNOWN;
    if (visit->known[place] == e)
        return visit->values[place];
    if (visit->visits++ >= CI_MAX_VISITS)
        return HUGE_VAL;
    double value = visit->compute(visit, e);
    visit->known[place] = e;
    visit->values[place] = value;
    return value;
}

static double
magnitude(CiExprVisit *visit, const CiExpr *e)
{
    double value = e->kind == CI_EXPR_product ? 1.0 : fabs((double)e->value), most = visit->most;

    if (e->kind == CI_EXPR_symbol) {
        double high = e->limit != NULL         ? ci_expr_visit(visit, e->limit)
                      : e->high == CI_INFINITY ? most
                                               : fabs((double)e->high);
        double low = e->low == CI_MINUS_INFINITY ? most : fabs((double)e->low);
        return fmin(fmax(low, high), most);
    }
    for (int k = 0; k < e->nargs; k++) {
        double arg = ci_expr_visit(visit, e->args[k]);
        switch (e->kind) {
        case CI_EXPR_linear:
            value += fabs((double)e->coefs[k]) * arg;
            break;
        case CI_EXPR_product:
            value *= arg;
            break;
        case CI_EXPR_floordiv:
            value = k == 0 ? arg : value;
            break;
        case CI_EXPR_mod:
            value = arg;
            break;
        default:
            value = fmax(value, arg);
        }
    }
    return value;
}

double
ci_expr_magnitude(const CiExpr *e, double most)
{
    CiExprVisit visit = {.compute = magnitude, .most = most};
    return ci_expr_visit(&visit, e);
}
