/* Intervals of int64 that saturate. As a low end INT64_MIN means unbounded, as a high end INT64_MAX
 * does; clamping towards them only ever widens an interval, so each result holds for the exact
 * integers, which never overflow. */
#include "sym/expr_private.h"

__extension__ typedef __int128 Wide;

#define WIDE_INFINITY ((Wide)1 << 126)

static Wide
wide_low(CiInterval a)
{
    return a.low == CI_MINUS_INFINITY ? -WIDE_INFINITY : a.low;
}

static Wide
wide_high(CiInterval a)
{
    return a.high == CI_INFINITY ? WIDE_INFINITY : a.high;
}

static CiInterval
narrow(Wide low, Wide high)
{
    CiInterval out;
    out.low = low <= INT64_MIN ? INT64_MIN : low >= INT64_MAX ? INT64_MAX : (int64_t)low;
    out.high = high <= INT64_MIN ? INT64_MIN : high >= INT64_MAX ? INT64_MAX : (int64_t)high;
    return out;
}

static CiInterval
join(CiInterval a, CiInterval b)
{
    return (CiInterval){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

CiInterval
ci_interval_of(const CiExpr *e)
{
    return (CiInterval){e->low, e->high};
}

CiInterval
ci_interval_add(CiInterval a, CiInterval b)
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

CiInterval
ci_interval_mul(CiInterval a, CiInterval b)
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
static CiInterval
floordiv_by_positive(CiInterval a, CiInterval b)
{
    Wide low = wide_low(a), high = wide_high(a), least = b.low, most = wide_high(b);
    return narrow(quotient(low, low < 0 ? least : most), quotient(high, high < 0 ? most : least));
}

static CiInterval
negate(CiInterval a)
{
    return narrow(-wide_high(a), -wide_low(a));
}

/* A divisor that may be 0 counts as one that is not: where it is, there is no value. */
CiInterval
ci_interval_floordiv(CiInterval a, CiInterval b)
{
    CiInterval above = {b.low > 1 ? b.low : 1, b.high}, below = {b.low, b.high < -1 ? b.high : -1};
    if (b.low >= 0)
        return floordiv_by_positive(a, above);
    CiInterval flipped = floordiv_by_positive(negate(a), negate(below));
    return b.high <= 0 ? flipped : join(flipped, floordiv_by_positive(a, above));
}

/* b.low >= 1 */
static CiInterval
mod_by_positive(CiInterval a, CiInterval b)
{
    if (a.low >= 0 && a.high < b.low)
        return a;
    CiInterval out = {0, b.high == CI_INFINITY ? CI_INFINITY : b.high - 1};
    if (a.low >= 0 && a.high < out.high)
        out.high = a.high;
    return out;
}

CiInterval
ci_interval_mod(CiInterval a, CiInterval b)
{
    CiInterval above = {b.low > 1 ? b.low : 1, b.high}, below = {b.low, b.high < -1 ? b.high : -1};
    if (b.low >= 0)
        return mod_by_positive(a, above);
    CiInterval flipped = negate(mod_by_positive(negate(a), negate(below)));
    return b.high <= 0 ? flipped : join(flipped, mod_by_positive(a, above));
}

/* Equal factors stand side by side: an even power is not negative. */
static CiInterval
range_of_product(const CiExpr *e)
{
    CiInterval all = {1, 1};
    for (int k = 0, power; k < e->nargs; k += power) {
        CiInterval base = ci_interval_of(e->args[k]), one = {1, 1};
        for (power = 0; k + power < e->nargs && e->args[k + power] == e->args[k]; power++)
            one = ci_interval_mul(one, base);
        if (power % 2 == 0 && one.low < 0)
            one.low = 0;
        all = ci_interval_mul(all, one);
    }
    return all;
}

static CiInterval
range_of_extremum(const CiExpr *e)
{
    CiInterval all = ci_interval_of(e->args[0]);
    for (int k = 1; k < e->nargs; k++) {
        CiInterval one = ci_interval_of(e->args[k]);
        bool low = (one.low < all.low) == (e->kind == CI_EXPR_min);
        bool high = (one.high < all.high) == (e->kind == CI_EXPR_min);
        all.low = low ? one.low : all.low;
        all.high = high ? one.high : all.high;
    }
    return all;
}

CiInterval
ci_interval_compute(const CiExpr *e)
{
    CiInterval all = {e->value, e->value};
    switch (e->kind) {
    case CI_EXPR_linear:
        for (int k = 0; k < e->nargs; k++) {
            CiInterval coef = {e->coefs[k], e->coefs[k]};
            all = ci_interval_add(all, ci_interval_mul(coef, ci_interval_of(e->args[k])));
        }
        return all;
    case CI_EXPR_product:
        return range_of_product(e);
    case CI_EXPR_floordiv:
        return ci_interval_floordiv(ci_interval_of(e->args[0]), ci_interval_of(e->args[1]));
    case CI_EXPR_mod:
        return ci_interval_mod(ci_interval_of(e->args[0]), ci_interval_of(e->args[1]));
    case CI_EXPR_min:
    case CI_EXPR_max:
        return range_of_extremum(e);
    case CI_EXPR_const:
    case CI_EXPR_symbol:
        break;
    }
    return all;
}
