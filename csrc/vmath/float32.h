/* Elementary functions of vectors of floats. A lane of *rare is set where the result is not the
 * function's, and the caller has to ask the library.
 *
 * exp_f, log_f, sin_f, cos_f: NumPy's own loops for processors with FMA (BSD; umath, npy_simd_data.h
 * and loops_trigonometric), whose rational functions are those of Cody & Waite's reduction.
 * expf_f, exp2_f, log2_f, logf_f, power_f: S. Nagy, Arm Optimized Routines (2018, MIT), in doubles, as the C
 * library's build with FMA.
 * All others: fdlibm (Sun, 1993; I. L. Taylor's float versions) as the GNU C library has them up to
 * 2.40, built without FMA; asin's polynomial is S. L. Moshier's. */
#ifndef CI_VMATH_FLOAT32_H
#define CI_VMATH_FLOAT32_H

#include "vmath/simd.h"
#include "vmath/tables.h"

/* The float with these bits: fdlibm compares words. */
#define WORD(bits) ((F)((I){0} + (int32_t)(bits)))

INLINE I
is_no_normal_f(F x)
{
    return ~((x >= 0x1p-126f) & (x < __builtin_inff()));
}

/* ---- NumPy's own ---- */

INLINE F
exp_f(F x, I *rare)
{
    F q = (x * 1.442695040888963407359924681001892137f + 0x1.8p23f) - 0x1.8p23f;
    *rare |= ~((x < 88.72283935546875f) & (q > -125.0f));
    x = fma_f(q, all_f(-6.93145752e-1f), x);
    x = fma_f(q, all_f(-1.42860677e-6f), x);
    F p = fma_f(all_f(5.082762527590693718096e-04f), x, all_f(6.757896990527504603057e-03f));
    p = fma_f(p, x, all_f(5.114512081637298353406e-02f));
    p = fma_f(p, x, all_f(2.473615434895520810817e-01f));
    p = fma_f(p, x, all_f(7.257664613233124478488e-01f));
    p = fma_f(p, x, all_f(9.999999999980870924916e-01f));
    F d = fma_f(all_f(2.159509375685829852307e-02f), x, all_f(-2.742335390411667452936e-01f));
    d = fma_f(d, x, all_f(1.0f));
    return (F)((I)(p / d) + (int_f(q) << 23));
}

INLINE F
log_f(F x, I *rare)
{
    F exponent = float_i(((I)x >> 23) - 126), m = (F)(((I)x & 0x7fffff) | 0x3f000000);
    I low = m <= 0.707106781186547524400844362104849039f;
    *rare |= is_no_normal_f(x);
    m = pick_f(low, m + m, m) - 1.0f;
    exponent = pick_f(low, exponent - 1.0f, exponent);
    F p = fma_f(all_f(2.589979117907922693523e-02f), m, all_f(3.808837741388407920751e-01f));
    p = fma_f(p, m, all_f(1.480000633576506585156e+00f));
    p = fma_f(p, m, all_f(2.112677543073053063722e+00f));
    p = fma_f(p, m, all_f(9.999999999999998702752e-01f));
    p = fma_f(p, m, all_f(0.0f));
    F d = fma_f(all_f(5.875095403124574342950e-03f), m, all_f(1.546476374983906719538e-01f));
    d = fma_f(d, m, all_f(9.864942958519418960339e-01f));
    d = fma_f(d, m, all_f(2.453006071784736363091e+00f));
    d = fma_f(d, m, all_f(2.612677543073109236779e+00f));
    d = fma_f(d, m, all_f(1.0f));
    return fma_f(exponent, all_f(0.693147180559945309417232121458176568f), p / d);
}

/* The sine of x's quarter and `quarter` more ones. NumPy 2.1 and later fuse the product that finds the
 * quarter with the sum that rounds it; 2.0 does not. */
INLINE F
sine_f(F x, int quarter, int is_fused)
{
    const F two_over_pi = all_f(0x1.45f306p-1f), magic = all_f(0x1.8p23f);
    F q = (is_fused ? fma_f(x, two_over_pi, magic) : x * two_over_pi + magic) - magic;
    x = fma_f(q, all_f(-0x1.921fb0p+00f), x);
    x = fma_f(q, all_f(-0x1.5110b4p-22f), x);
    x = fma_f(q, all_f(-0x1.846988p-48f), x);
    F x2 = x * x;
    F c = fma_f(all_f(0x1.98e616p-16f), x2, all_f(-0x1.6c06dcp-10f));
    c = fma_f(c, x2, all_f(0x1.55553cp-05f));
    c = fma_f(c, x2, all_f(-0x1p-01f));
    c = fma_f(c, x2, all_f(1.0f));
    F s = fma_f(all_f(0x1.7d3bbcp-19f), x2, all_f(-0x1.a06bbap-13f));
    s = fma_f(s, x2, all_f(0x1.11119ap-07f));
    s = fma_f(s, x2, all_f(-0x1.555556p-03f));
    s = fma_f(s, x2, all_f(0.0f));
    s = fma_f(s, x, x);
    I n = int_f(q) + quarter;
    F y = pick_f((n & 1) == 0, s, c);
    return pick_f((n & 2) == 2, 0.0f - y, y);
}

/* NumPy calls the C library beyond `most`; small squares raise its underflow flag. */
INLINE I
is_no_angle(F x, float most)
{
    F size = abs_f(x);
    return ~(size <= most) | ((size < 0x1p-30f) & (size > 0.0f));
}

INLINE F
sin_f(F x, I *rare)
{
    *rare |= is_no_angle(x, 117435.992f);
    return sine_f(x, 0, 1);
}

INLINE F
cos_f(F x, I *rare)
{
    *rare |= is_no_angle(x, 71476.0625f);
    return sine_f(x, 1, 1);
}

INLINE F
sin_2_0_f(F x, I *rare)
{
    *rare |= is_no_angle(x, 117435.992f);
    return sine_f(x, 0, 0);
}

INLINE F
cos_2_0_f(F x, I *rare)
{
    *rare |= is_no_angle(x, 71476.0625f);
    return sine_f(x, 1, 0);
}

/* ---- exponentials and logarithms in doubles ---- */

/* 2^(k/32), k in the low bits of kd, times a polynomial of r. */
INLINE D
exp_half(D kd, D r, D c0, D c1, D c2)
{
    L k = (L)kd;
    D scale = (D)((L)gather_d(ci_vmath_exp2f, k & 31) + (k << 47));
    D z = fma_d(c0, r, c1), y = fma_d(c2, r, all_d(1.0));
    return fma_d(z, r * r, y) * scale;
}

INLINE D
expf_half(D x)
{
    const D shift = all_d(0x1.8p52), inverse = all_d(0x1.71547652b82fep5);
    D kd = fma_d(inverse, x, shift), r = fma_d(inverse, x, -(kd - shift));
    return exp_half(kd, r, all_d(0x1.c6af84b912394p-20), all_d(0x1.ebfce50fac4f3p-13),
                    all_d(0x1.62e42ff0c52d6p-6));
}

INLINE D
exp2f_half(D x)
{
    const D shift = all_d(0x1.8p47);
    D kd = x + shift, r = x - (kd - shift);
    return exp_half(kd, r, all_d(0x1.c6af84b912394p-5), all_d(0x1.ebfce50fac4f3p-3),
                    all_d(0x1.62e42ff0c52d6p-1));
}

INLINE F
expf_f(F x, I *rare)
{
    Halves h = widen_f(x);
    *rare |= ~(abs_f(x) < 88.0f);
    return narrow((Halves){expf_half(h.low), expf_half(h.high)});
}

INLINE F
exp2_f(F x, I *rare)
{
    Halves h = widen_f(x);
    *rare |= ~(abs_f(x) < 126.0f);
    return narrow((Halves){exp2f_half(h.low), exp2f_half(h.high)});
}

/* x = 2^k * z, and the elements of both tables for z. */
typedef struct Reduced {
    Halves z, k, inverse, log;
} Reduced;

INLINE Reduced
reduce_f(F x, const double *inverses, const double *logs)
{
    I bits = (I)x - 0x3f330000, index = (bits >> 19) & 15;
    return (Reduced){widen_f((F)((I)x - (bits & (int32_t)0xff800000))), widen_i(bits >> 23),
                     gather_halves(inverses, index), gather_halves(logs, index)};
}

INLINE D
log2f_half(D z, D k, D inverse, D log)
{
    D r = fma_d(z, inverse, all_d(-1.0)), y0 = log + k, r2 = r * r;
    D y = fma_d(all_d(0x1.ecabf496832ep-2), r, all_d(-0x1.715479ffae3dep-1));
    y = fma_d(all_d(-0x1.712b6f70a7e4dp-2), r2, y);
    return fma_d(y, r2, fma_d(all_d(0x1.715475f35c8b8p0), r, y0));
}

INLINE D
logf_half(D z, D k, D inverse, D log)
{
    D r = fma_d(z, inverse, all_d(-1.0)), y0 = fma_d(k, all_d(0x1.62e42fefa39efp-1), log);
    D r2 = r * r, y = fma_d(all_d(0x1.5575b0be00b6ap-2), r, all_d(-0x1.ffffef20a4123p-2));
    y = fma_d(all_d(-0x1.00ea348b88334p-2), r2, y);
    return fma_d(y, r2, y0 + r);
}

INLINE F
log2_f(F x, I *rare)
{
    Reduced r = reduce_f(x, ci_vmath_logf_inverse, ci_vmath_log2f);
    *rare |= is_no_normal_f(x);
    return narrow((Halves){log2f_half(r.z.low, r.k.low, r.inverse.low, r.log.low),
                           log2f_half(r.z.high, r.k.high, r.inverse.high, r.log.high)});
}

INLINE D
powf_half(D y, D z, D k, D inverse, D log)
{
    D r = fma_d(z, inverse, all_d(-1.0)), y0 = log + k, r2 = r * r;
    D p = fma_d(all_d(0x1.ec70a6ca7baddp-2), r, all_d(-0x1.7154748bef6c8p-1));
    D sum = fma_d(p, r2, fma_d(all_d(0x1.71547652ab82bp0), r, y0));
    p = fma_d(all_d(0x1.27616c9496e0bp-2), r, all_d(-0x1.71969a075c67ap-2));
    return y * fma_d(p, r2 * r2, sum);
}

/* A negative number has a power if y is whole: *rare otherwise. */
INLINE F
power_f(F x, F y, I *rare)
{
    F size = abs_f(x);
    Reduced r = reduce_f(size, ci_vmath_logf_inverse, ci_vmath_log2f);
    Halves e = widen_f(y);
    e.low = powf_half(e.low, r.z.low, r.k.low, r.inverse.low, r.log.low);
    e.high = powf_half(e.high, r.z.high, r.k.high, r.inverse.high, r.log.high);
    *rare |= is_no_normal_f(size) | ~(abs_f(narrow(e)) < 126.0f);
    F power = narrow((Halves){exp2f_half(e.low), exp2f_half(e.high)});
    I is_negative = x < 0.0f;
    if (!bits_f(is_negative))
        return power;
    F half = 0.5f * y;
    *rare |= is_negative & (trunc_f(y) != y);
    return (F)((I)power ^ (is_negative & (trunc_f(half) != half) & INT32_MIN));
}

INLINE F
logf_f(F x, I *rare)
{
    Reduced r = reduce_f(x, ci_vmath_logf_inverse, ci_vmath_logf);
    *rare |= is_no_normal_f(x);
    return narrow((Halves){logf_half(r.z.low, r.k.low, r.inverse.low, r.log.low),
                           logf_half(r.z.high, r.k.high, r.inverse.high, r.log.high)});
}

INLINE F
log10_f(F x, I *rare)
{
    I below = x < 1.0f, bits = (I)x, none = {0};
    F y = float_i((bits >> 23) - 127 - below);
    F scaled = (F)((bits & 0x7fffff) | (0x3f800000 + (below << 23)));
    *rare |= is_no_normal_f(x);
    F z = y * 7.9034151668e-07f + 4.3429449201e-01f * logf_f(scaled, &none);
    return z + y * 3.0102920532e-01f;
}

/* ---- fdlibm's pair of expm1 and log1p ---- */

INLINE F
expm1_f(F x, I *rare)
{
    F size = abs_f(x), one = sign_f(all_f(1.0f), x);
    I k = int_f(1.4426950216e+00f * x + sign_f(all_f(0.5f), x));
    F t = pick_f(size < WORD(0x3f851592), one, float_i(k));
    t = pick_f(size <= WORD(0x3eb17218), all_f(0.0f), t);
    F high = x - t * 6.9313812256e-01f, low = t * 9.0580006145e-06f;
    F r = high - low, c = (high - r) - low, half_r = 0.5f * r, h = r * half_r;
    F r1 = 4.0082177293e-06f + h * -2.0109921195e-07f;
    r1 = -7.9365076090e-05f + h * r1;
    r1 = 1.5873016091e-03f + h * r1;
    r1 = -3.3333335072e-02f + h * r1;
    r1 = 1.0f + h * r1;
    F u = 3.0f - r1 * half_r, e = h * ((r1 - u) / (6.0f - r * u));
    F of_0 = r - (r * e - h);
    e = (r * (e - c) - c) - h;
    F of_1 = pick_f(r < -0.25f, -2.0f * (e - (r + 0.5f)), 1.0f + 2.0f * (r - e));
    F of_minus_1 = 0.5f * (r - e) - 0.5f;
    k = int_f(t);
    I ends = (k <= -2) | (k > 56);
    F power = (F)((127 - k) << 23);
    F y = pick_f(k < 23, (1.0f - power) - (e - r), (r - (e + power)) + 1.0f);
    y = (F)((I)pick_f(ends, 1.0f - (e - r), y) + (k << 23));
    y = pick_f(ends, y - 1.0f, y);
    y = pick_f(k == 1, of_1, y);
    y = pick_f(k == -1, of_minus_1, y);
    y = pick_f(k == 0, of_0, y);
    y = pick_f(size < 0x1p-25f, x, y);
    *rare |= ~(size < WORD(0x42b17218));
    return pick_f(x <= -WORD(0x4195b844), all_f(-1.0f), y);
}

INLINE F
log1p_f(F x, I *rare)
{
    I near = (x < WORD(0x3ed413d7)) & (x > -WORD(0x3e95f620)), large = x >= WORD(0x5a000000);
    F u = pick_f(large, x, 1.0f + x);
    I mantissa = (I)u & 0x7fffff, above = mantissa >= 0x3504f7, k = ((I)u >> 23) - 127;
    F c = pick_f(k > 0, 1.0f - (u - x), x - (u - 1.0f)) / u;
    F f = pick_f(near, x, (F)(mantissa | (0x3f800000 + (above << 23))) - 1.0f);
    F kf = pick_f(near, all_f(0.0f), float_i(k - above));
    c = pick_f(large, all_f(0.0f), c);
    F square = 0.5f * f * f, s = f / (2.0f + f), z = s * s;
    F r = 1.5313838422e-01f + z * 1.4798198640e-01f;
    r = 1.8183572590e-01f + z * r;
    r = 2.2222198546e-01f + z * r;
    r = 2.8571429849e-01f + z * r;
    r = 4.0000000596e-01f + z * r;
    r = z * (6.6666668653e-01f + z * r);
    F product = s * (square + r);
    F far = kf * 6.9313812256e-01f - ((square - (product + (kf * 9.0580006145e-06f + c))) - f);
    F y = pick_f(kf == 0.0f, f - (square - product), far);
    *rare |= ~((x > -1.0f) & (x < __builtin_inff()));
    *rare |= ((mantissa == 0) | (mantissa > 0x7ffffc)) & ~near;
    I is_tiny = abs_f(x) < 0x1p-29f;
    F tiny = pick_f(is_tiny, x, all_f(0.0f));
    return pick_f(is_tiny, x - tiny * tiny * 0.5f, y);
}

/* ---- arc tangent ---- */

INLINE F
arctan_f(F x, I *rare)
{
    F a = abs_f(x), top = all_f(-1.0f), bottom = a;
    I in_2 = a < WORD(0x401c0000), in_1 = a < WORD(0x3f980000), in_0 = a < WORD(0x3f300000);
    I none = a < WORD(0x3ee00000);
    top = pick_f(in_2, a - 1.5f, top), bottom = pick_f(in_2, 1.0f + 1.5f * a, bottom);
    top = pick_f(in_1, a - 1.0f, top), bottom = pick_f(in_1, a + 1.0f, bottom);
    top = pick_f(in_0, 2.0f * a - 1.0f, top), bottom = pick_f(in_0, 2.0f + a, bottom);
    F high = pick_f(in_2, all_f(9.8279368877e-01f), all_f(1.5707962513e+00f));
    F low = pick_f(in_2, all_f(3.4473217170e-08f), all_f(7.5497894159e-08f));
    high = pick_f(in_1, all_f(7.8539812565e-01f), high);
    low = pick_f(in_1, all_f(3.7748947079e-08f), low);
    high = pick_f(in_0, all_f(4.6364760399e-01f), high);
    low = pick_f(in_0, all_f(5.0121582440e-09f), low);
    F t = pick_f(none, a, top / bottom), z = t * t, w = z * z;
    F s1 = 4.9768779427e-02f + w * 1.6285819933e-02f;
    s1 = 6.6610731184e-02f + w * s1;
    s1 = 9.0908870101e-02f + w * s1;
    s1 = 1.4285714924e-01f + w * s1;
    s1 = z * (3.3333334327e-01f + w * s1);
    F s2 = -5.8335702866e-02f + w * -3.6531571299e-02f;
    s2 = -7.6918758452e-02f + w * s2;
    s2 = -1.1111110449e-01f + w * s2;
    s2 = w * (-2.0000000298e-01f + w * s2);
    F y = t * (s1 + s2);
    *rare |= ~(a < 0x1p25f);
    return sign_f(pick_f(none, t - y, high - ((y - low) - t)), x);
}

#endif
