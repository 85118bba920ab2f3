/* The functions of doubles, and their loops. */
#include "vmath/vmath.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include "vmath/float64.h"
#include "vmath/loops.h"

/* ---- sine and cosine: IBM Accurate Mathematical Library, as of 2.28 ---- */

/* The distance from the nearest k/128, and the sine and cosine of that as sums. */
typedef struct Near128 {
    D x, sine, sine_low, cosine, cosine_low;
} Near128;

INLINE Near128
near_128(D size)
{
    const D big = all_d(0x1.8p45);
    D u = big + size, row[4];
    load_4(ci_vmath_sincos, ((L)u & 127) * 4, row);
    return (Near128){size - (u - big), row[0], row[1], row[2], row[3]};
}

INLINE D
cosine_part(D xx)
{
    D c = fma_d(xx, all_d(1.38888874007937613028114285595617E-03),
                all_d(-4.16666666666664434524222570944589E-02));
    return fma_d(xx, c, all_d(4.99999999999999999999950396842453E-01));
}

INLINE D
sine_part(D xx)
{
    return fma_d(xx, all_d(8.33333214285722277379541354343671E-03),
                 all_d(-1.66666666666664880952546298448555E-01));
}

/* The cosine of x + dx, |x| < 0.86. */
INLINE D
cos_near(Near128 n, D x, D dx)
{
    D r = n.x + (D)((L)dx ^ ((L)x & INT64_MIN)), rr = r * r;
    D s = fma_d(r * rr, sine_part(rr), r), c = rr * cosine_part(rr);
    D sum = fma_d(-n.cosine, c, fma_d(-s, n.sine_low, n.cosine_low));
    return n.cosine + fma_d(-n.sine, s, sum);
}

/* The sine of x + dx, |x| < 0.86. */
INLINE D
sin_near(Near128 n, D x, D dx)
{
    D d = (D)((L)dx ^ ((L)x & INT64_MIN)), r = n.x, rr = r * r, xx = x * x;
    D s = r + fma_d(r * rr, sine_part(rr), d), c = fma_d(r, d, rr * cosine_part(rr));
    D sum = fma_d(n.cosine, s, fma_d(-n.sine, c, fma_d(s, n.cosine_low, n.sine_low)));
    D t = fma_d(all_d(-0x1.addffc2fcdf59p-26), xx, all_d(0x1.71de27b9a7ed9p-19));
    t = fma_d(t, xx, all_d(-0x1.a01a019db08b8p-13));
    t = fma_d(t, xx, all_d(0x1.1111111110ecep-7));
    t = fma_d(t, xx, all_d(-0x1.5555555555555p-3));
    t = fma_d(fma_d(t, x, -0.5 * dx), xx, dx);
    return pick_d(abs_d(x) < 0.126, x + t, sign_d(n.sine + sum, x));
}

/* The nearest multiple of a quarter turn: x is n quarters and the sum of `angle` and `rest`. |x| < 2^27. */
typedef struct Quarters {
    L n;
    D angle, rest;
} Quarters;

INLINE Quarters
quarters_of(D x)
{
    D magic = all_d(0x1.8p52), q = fma_d(x, all_d(0x1.45f306dc9c883p-1), magic);
    L n = (L)q;
    q -= magic;
    D y = fma_d(-q, all_d(-0x1.dde973c000000p-27), fma_d(-q, all_d(0x1.921fb58000000p0), x));
    D third = all_d(-0x1.cb3b398000000p-55), fourth = all_d(-0x1.d747f23e32ed7p-83);
    D t = fma_d(-q, third, y), rest = fma_d(-q, third, y - t);
    D angle = fma_d(-q, fourth, t);
    return (Quarters){n, angle, rest + fma_d(-q, fourth, t - angle)};
}

enum { SINES = 0, COSINES = 1, COSINES_AND_SINES = 2 }; /* the last: in even and in odd lanes, as sincos */

/* The sine of x and one more quarter for a cosine. Each range has its own way to the nearest quarter. */
INLINE D
sine_d(D x, int which, L *rare)
{
    const L alternate = {1, 0, 1, 0}, quarter = which == COSINES_AND_SINES ? alternate : (L){0} + which;
    D size = abs_d(x);
    Quarters turned = quarters_of(x);
    L n = turned.n + quarter;
    L small = size < HIGH(0x3feb6000), middle = (size < HIGH(0x400368fd)) & ~small;
    D rest = all_d(0x1.921fb54442d18p0) - size, part = all_d(0x1.1a62633145c07p-54);
    if (which != SINES) { /* cos(x) = sin(pi/2 - |x|) */
        D sum = rest + part;
        part = (rest - sum) + part;
        rest = sum;
    }
    D a = pick_d(small, x, pick_d(middle, rest, turned.angle));
    D low = pick_d(small, all_d(0.0), pick_d(middle, part, turned.rest));
    n = (L)pick_d(small, (D)quarter, (D)n);
    n = (L)pick_d(middle, (D)(1 - quarter), (D)n);
    Near128 near = near_128(abs_d(a));
    D result = pick_d((n & 1) == 1, cos_near(near, a, low), sin_near(near, a, low));
    L flip = (n & 2) << 62;
    if (which != COSINES)
        flip |= middle & (quarter == 0) & (L)x & INT64_MIN;
    *rare |= ~(size < HIGH(0x419921fb));
    return (D)((L)result ^ flip);
}

INLINE D
sin_d(D x, L *rare)
{
    return pick_d(abs_d(x) < 0x1p-26, x, sine_d(x, SINES, rare));
}

INLINE D
cos_d(D x, L *rare)
{
    return pick_d(abs_d(x) < 0x1p-27, all_d(1.0), sine_d(x, COSINES, rare));
}

/* Two complex numbers: exp of the real part times cosine and sine of the imaginary part. */
INLINE D
cexp_d(D x, L *rare)
{
    const D one = {1.0, 0.0, 1.0, 0.0};
    D real = first_of_pairs(x), imaginary = second_of_pairs(x);
    D turned = sine_d(imaginary, COSINES_AND_SINES, rare);
    turned = pick_d(abs_d(imaginary) < 0x1p-27, pick_d(one != 0.0, one, imaginary), turned);
    return exp_d(real, rare) * turned;
}

/* ---- correct rounding: tangent and inverse functions ----
 *
 * The GNU C library has these functions from IBM's Accurate Mathematical Library (dbl-64; 2.34 and later),
 * and says how wrong they may be. More than half a unit in the last place (ULP) are 0.12 for tan, 0.06 for
 * atan and atan2, 0.024 for asin and acos, and less in most ranges. Earlier versions round correctly.
 *
 * If the exact value is farther from the middle of two doubles, the result is the nearest double, by
 * whatever steps it is computed. The library computes all others. Values here are sums of two doubles with
 * relative errors below 2^-64. */

/* A number as a sum, |rest| <= ULP(high)/2. */
typedef struct Sum {
    D high, rest;
} Sum;

/* |low| < |high| */
INLINE Sum
sum_of(D high, D low)
{
    D sum = high + low;
    return (Sum){sum, (high - sum) + low};
}

/* The double nearest to the number. error: of the library. */
INLINE D
rounded(Sum a, D error, L *rare)
{
    *rare |= a.high + (a.rest + error) != a.high + (a.rest - error);
    return a.high;
}

INLINE D
ulp_of(D size)
{
    return (D)((L)size & (INT64_C(0x7ff) << 52)) * 0x1p-52;
}

/* Lanes of numbers that are not 0, and whose squares and quotients may overflow or underflow. */
INLINE L
is_extreme(D size)
{
    return ~((size < 0x1p500) & ((size > 0x1p-500) | (size == 0.0)));
}

/* Another number, of at least its size, less a in the lanes of a mask. */
INLINE Sum
minus_from(L mask, D high, D rest, Sum a)
{
    Sum other = sum_of(high, -a.high);
    other.rest += rest - a.rest;
    return sum_of(pick_d(mask, other.high, a.high), pick_d(mask, other.rest, a.rest));
}

/* Half a turn less the angle in the lanes of a mask. */
INLINE Sum
from_half_turn(L mask, Sum angle)
{
    return minus_from(mask, all_d(0x1.921fb54442d18p1), all_d(0x1.1a62633145c07p-53), angle);
}

/* The angle of the point (x, y), from 0 to a quarter turn: x, y >= 0, but not both 0. */
INLINE Sum
angle_of(Sum y, Sum x)
{
    L is_steep = y.high > x.high;
    D a = pick_d(is_steep, x.high, y.high), a_rest = pick_d(is_steep, x.rest, y.rest);
    D b = pick_d(is_steep, y.high, x.high), b_rest = pick_d(is_steep, y.rest, x.rest);
    D shift = all_d(0x1.8p46), near = a / b + shift; /* to the nearest k/64 */
    D c = near - shift, of_c, of_c_rest;
    load_2(ci_vmath_arctan, (L)near & 127, &of_c, &of_c_rest);
    /* t = (a - c b) / (b + c a), |t| < 1/127 */
    D cb = c * b, n = a - cb, n_rest = (a_rest - c * b_rest) - fma_d(c, b, -cb);
    D ca = c * a, d = b + ca, d_rest = ((b - d) + ca) + (fma_d(c, a, -ca) + (b_rest + c * a_rest));
    D inverse = 1.0 / d, t = n * inverse;
    D t_rest = (fma_d(-t, d, n) + (n_rest - t * d_rest)) * inverse;
    D z = t * t, p = fma_d(z, all_d(1.0 / 9), all_d(-1.0 / 7));
    p = fma_d(z, fma_d(z, p, all_d(1.0 / 5)), all_d(-1.0 / 3));
    Sum angle = sum_of(of_c, t);
    angle.rest += of_c_rest + fma_d(t * z, p, t_rest);
    return minus_from(is_steep, all_d(0x1.921fb54442d18p0), all_d(0x1.1a62633145c07p-54), angle);
}

/* From 1/16 on, the library adds at most 1/512, with an error of two units, to a number of a table. Below it
 * adds x^3 P(x^2) to x. */
INLINE D
error_of_arctan(D angle)
{
    return pick_d(angle > 0.06, fma_d(angle, all_d(0x1p-61), all_d(0x1p-60)), angle * 0x1p-58);
}

INLINE D
arctan_d(D x, L *rare)
{
    D size = abs_d(x);
    Sum angle = angle_of((Sum){size, all_d(0.0)}, (Sum){all_d(1.0), all_d(0.0)});
    *rare |= is_extreme(size);
    return sign_d(rounded(angle, error_of_arctan(angle.high), rare), x);
}

INLINE D
arctan2_d(D y, D x, L *rare)
{
    D size_y = abs_d(y), size_x = abs_d(x);
    Sum angle = angle_of((Sum){size_y, all_d(0.0)}, (Sum){size_x, all_d(0.0)});
    angle = from_half_turn((L)x < 0, angle);
    *rare |= is_extreme(size_y) | is_extreme(size_x) | ((size_x == 0.0) & (size_y == 0.0));
    return sign_d(rounded(angle, error_of_arctan(angle.high), rare), y);
}

/* The root of 1 - x^2, |x| < 1. */
INLINE Sum
other_side(D x)
{
    D square = x * x, w = 1.0 - square;
    Sum sum = sum_of(w, ((1.0 - w) - square) - fma_d(x, x, -square));
    D root = sqrt_d(sum.high);
    return (Sum){root, (fma_d(-root, root, sum.high) + sum.rest) / (root + root)};
}

INLINE D
arcsin_d(D x, L *rare)
{
    D size = abs_d(x);
    Sum angle = angle_of((Sum){size, all_d(0.0)}, other_side(size));
    *rare |= is_extreme(size) | ~(size < 1.0);
    return sign_d(rounded(angle, 0.03125 * ulp_of(angle.high), rare), x);
}

INLINE D
arccos_d(D x, L *rare)
{
    D size = abs_d(x);
    Sum angle = from_half_turn(x < 0.0, angle_of(other_side(size), (Sum){size, all_d(0.0)}));
    *rare |= is_extreme(size) | ~(size < 1.0);
    return rounded(angle, 0.03125 * ulp_of(angle.high), rare);
}

/* From 0.06 on, the library adds a quotient of at most (1 + tan(x)^2)/512, with an error of four units, to a
 * number of a table. Below it adds x^3 P(x^2) to x. */
INLINE D
tan_d(D x, L *rare)
{
    Quarters turned = quarters_of(x);
    D size = abs_d(turned.angle), low = (D)((L)turned.rest ^ ((L)turned.angle & INT64_MIN));
    D shift = all_d(0x1.8p46), near = size + shift, t = size - (near - shift), of_c, of_c_rest;
    load_2(ci_vmath_tan, (L)near & 63, &of_c, &of_c_rest);
    D z = t * t, p = fma_d(z, all_d(62.0 / 2835), all_d(17.0 / 315));
    p = fma_d(z, fma_d(z, p, all_d(2.0 / 15)), all_d(1.0 / 3));
    D t_rest = fma_d(t * z, p, low);
    /* (of_c + t) / (1 - of_c t), or the negative inverse */
    D n = of_c + t, ct = of_c * t, d = 1.0 - ct;
    D d_rest = ((1.0 - d) - ct) - fma_d(of_c, t, -ct) - fma_d(of_c, t_rest, of_c_rest * t);
    Sum sine = sum_of(n, (t - (n - of_c)) + (of_c_rest + t_rest)), cosine = sum_of(d, d_rest);
    L is_odd = (turned.n & 1) == 1;
    D above = pick_d(is_odd, cosine.high, sine.high), above_rest = pick_d(is_odd, cosine.rest, sine.rest);
    D below = pick_d(is_odd, sine.high, cosine.high), below_rest = pick_d(is_odd, sine.rest, cosine.rest);
    D inverse = 1.0 / below, y = above * inverse;
    D y_rest = (fma_d(-y, below, above) + (above_rest - y * below_rest)) * inverse;
    D of_x = abs_d(x);
    *rare |= is_extreme(of_x) | ~(of_x < HIGH(0x419921fb)) | ((size < 0x1p-30) & (of_x > 0.5));
    D error = fma_d(y, y, all_d(1.0)) * 0x1.4p-60;
    error = pick_d(size < 0.06, abs_d(y) * 0x1p-58, error);
    D result = rounded(sum_of(y, y_rest), error, rare);
    result = (D)((L)result ^ (((L)turned.angle & INT64_MIN) ^ (turned.n << 63)));
    return pick_d(of_x < 0x1p-27, x, result);
}

/* ---- hyperbolic functions ---- */

INLINE D
sinh_d(D x, L *rare)
{
    L none = {0};
    D size = abs_d(x), h = sign_d(all_d(0.5), x);
    L is_small = size < 22.0;
    D t = expm1_d(pick_d(is_small, size, all_d(0.0)), &none), ratio = t / (t + 1.0);
    D y = h * pick_d(size < 1.0, 2.0 * t - t * t / (t + 1.0), t + ratio);
    if (bits_d(~is_small))
        y = pick_d(is_small, y, h * exp_d(size, rare));
    return pick_d(size < 0x1p-28, x, y);
}

INLINE D
cosh_d(D x, L *rare)
{
    L none = {0};
    D size = abs_d(x), e = exp_d(size, rare);
    D y = pick_d(size < 22.0, 0.5 * e + 0.5 / e, 0.5 * e);
    L is_small = size < HIGH(0x3fd62e43);
    if (bits_d(is_small)) {
        D t = expm1_d(pick_d(is_small, size, all_d(0.0)), &none), w = 1.0 + t;
        y = pick_d(is_small, 1.0 + (t * t) / (w + w), y);
    }
    return y;
}

INLINE D
arctanh_d(D x, L *rare)
{
    L none = {0};
    D size = abs_d(x), t = size + size, ratio = pick_d(size < 0.5, t * size, t) / (1.0 - size);
    *rare |= ~(size < 1.0);
    D sum = log1p_d(pick_d(size < 0.5, t + ratio, ratio), &none);
    *rare |= none;
    return pick_d(size < 0x1p-28, x, sign_d(0.5 * sum, x));
}

INLINE D
arcsinh_d(D x, L *rare)
{
    L none = {0}, none_too = {0};
    D a = abs_d(x), square = a * a, root = sqrt_d(1.0 + square);
    L is_huge = a >= HIGH(0x41b00001), is_large = (a >= HIGH(0x40000001)) & ~is_huge;
    D of_log = pick_d(is_large, 2.0 * a + 1.0 / (root + a), a);
    D y = log1p_d(a + square / (1.0 + root), &none), log = log_d(of_log, &none_too);
    y = pick_d(is_large, log, y);
    y = pick_d(is_huge, log + 6.93147180559945286227e-01, y);
    *rare |= ~(a < 0x1p500) | (none & ~is_large & ~is_huge);
    return pick_d(a < HIGH(0x3e300000), x, sign_d(y, x));
}

INLINE D
arccosh_d(D x, L *rare)
{
    L none = {0}, none_too = {0};
    L is_huge = x >= 0x1p28, is_large = (x > 2.0) & ~is_huge;
    D inner = pick_d(is_large, x * x - 1.0, all_d(1.0)), t = x - 1.0;
    D of_log = pick_d(is_large, 2.0 * x - 1.0 / (x + sqrt_d(inner)), x);
    D y = log1p_d(t + sqrt_d(2.0 * t + t * t), &none), log = log_d(of_log, &none_too);
    *rare |= ~((x > 1.0) & (x < 0x1p500)) | (none & ~is_large & ~is_huge);
    y = pick_d(is_large, log, y);
    return pick_d(is_huge, log + 6.93147180559945286227e-01, y);
}

/* NumPy's polynomials of degree 16 in 16 ranges. */
INLINE D
tanh_d(D x, L *rare)
{
    L bits = (L)x & 0x7ff8000000000000, index = bits - 0x3fc0000000000000;
    index = (L)pick_d(index > 0, (D)index, (D)(L){0});
    index = (L)((U)index >> 51);
    index = (L)pick_d(index < 15, (D)index, (D)((L){0} + 15));
    D c[20];
    for (int k = 0; k < 20; k += 4)
        load_4(ci_vmath_tanh + k, index * 20, c + k);
    D y = abs_d(x) - c[0], r = c[17];
    for (int k = 16; k > 0; k--)
        r = fma_d(r, y, c[k]);
    *rare |= ~(abs_d(x) < 0x1p1000);
    return (D)((L)r | ((L)x & INT64_MIN));
}

/* ---- powers ---- */

/* A negative number has a power if y is whole: *rare otherwise. */
INLINE D
sign_of_power(D x, D y, D power, L *rare)
{
    D half = 0.5 * y;
    L is_negative = x < 0.0, is_odd = trunc_d(half) != half;
    *rare |= is_negative & (trunc_d(y) != y);
    return (D)((L)power ^ (is_negative & is_odd & INT64_MIN));
}

INLINE D
power_d(D x, D y, L *rare)
{
    D size = abs_d(x), rest, log = log_sum(size, &rest), high = y * log;
    D low = fma_d(y, rest, fma_d(y, log, -high));
    D power = pick_d(abs_d(high) < 0x1p-54, 1.0 + high, exp_sum(high, low));
    *rare |= is_no_normal(size) | ~(abs_d(high) < 512.0);
    return bits_d(x < 0.0) ? sign_of_power(x, y, power, rare) : power;
}

/* ---- roots and sums ---- */

/* D. Alboth and U. Drepper, 1997: a polynomial, and one step of Halley's method. */
INLINE D
cbrt_d(D x, L *rare)
{
    static const double factors[] = {1.0 / 1.5874010519681994748, 1.0 / 1.2599210498948731648, 1.0,
                                     1.2599210498948731648, 1.5874010519681994748};
    D size = abs_d(x);
    D m = (D)(((L)x & 0x000fffffffffffff) | 0x3fe0000000000000);
    D exponent = (D)((L)((U)(L)size >> 52) | 0x4330000000000000) - (0x1p52 + 1022);
    D third = trunc_d(exponent * 0x1.5555555555556p-2);
    D u = 0.784932344976639262 - 0.145263899385486377 * m;
    u = -1.83469277483613086 + u * m;
    u = 2.44693122563534430 + u * m;
    u = -2.11499494167371287 + u * m;
    u = 1.50819193781584896 + u * m;
    u = 0.354895765043919860 + u * m;
    D t2 = u * u * u;
    D y = u * (t2 + 2.0 * m) / (2.0 * t2 + m);
    y *= gather_d(factors + 2, int_d(exponent - 3.0 * third));
    *rare |= is_no_normal(size);
    return sign_d(scale_d(y, int_d(third)), x);
}

/* C. F. Borges, "An improved algorithm for hypot(a,b)", 2019 (arXiv 1904.09481), without FMA. */
INLINE D
hypot_d(D x, D y, L *rare)
{
    D ax = abs_d(x), ay = abs_d(y);
    L is_less = ax < ay;
    D larger = pick_d(is_less, ay, ax), smaller = pick_d(is_less, ax, ay);
    L is_one = (smaller == 0.0) | ((smaller <= larger * 0x1p-54) & (larger > 0x1p-900));
    D a = pick_d(is_one, all_d(1.0), larger), b = pick_d(is_one, all_d(0.0), smaller);
    D h = sqrt_d(a * a + b * b), delta = h - b, other = h - a;
    L is_near = h <= 2.0 * b;
    D t1 = pick_d(is_near, a * (2.0 * delta - a), 2.0 * other * (a - 2.0 * b));
    D t2 = pick_d(is_near, (delta - 2.0 * (a - b)) * delta,
                  (4.0 * other - b) * b + other * other);
    h -= (t1 + t2) / (2.0 * h);
    *rare |= ~((ax < __builtin_inf()) & (ay < __builtin_inf()));
    *rare |= ~is_one & ((a > 0x1p511) | (b < 0x1p-459));
    return pick_d(is_one, larger + smaller, h);
}

INLINE D
logaddexp_d(D x, D y, L *rare)
{
    D d = x - y, larger = pick_d(d > 0.0, x, y);
    D sum = larger + log1p_d(exp_d(-abs_d(d), rare), rare);
    return pick_d(x == y, x + 0.693147180559945309417232121458176568, sum);
}

INLINE D
logaddexp2_d(D x, D y, L *rare)
{
    D d = x - y, larger = pick_d(d > 0.0, x, y);
    D low = log1p_d(exp2_d(-abs_d(d), rare), rare);
    return pick_d(x == y, x + 1.0, larger + 1.442695040888963407359924681001892137 * low);
}

#define ROW_f16(op, nargs, function, source)
#define ROW_f32(op, nargs, function, source)
#define ROW_c64(op, nargs, function, source)
#define ROW_f64(op, nargs, function, source) CI_VMATH_RUN(nargs, function, double, D, L, 4, bits_d, all_d)
#define ROW_c128(op, nargs, function, source)                                                      \
    CI_VMATH_RUN(nargs, function, ComplexD, D, L, 2, bits_of_pairs_d, all_pairs_d)
#include "vmath/vmath.def"
#undef ROW_f64
#undef ROW_c128

#define ROW_f64(op, nargs, function, source) {CI_OP_##op, CI_DTYPE_f64, nargs, source, function##_run},
#define ROW_c128(op, nargs, function, source) {CI_OP_##op, CI_DTYPE_c128, nargs, source, function##_run},
const CiVmathRow ci_vmath_float64[] = {
#include "vmath/vmath.def"
    {CI_OP_none, CI_DTYPE_f64, 0, NULL, NULL}};

#endif
