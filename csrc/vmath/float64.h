/* exp, log and their kin for vectors of doubles, step by step as the GNU C library's x86-64 build
 * with FMA computes them (2.29 and later, unless said otherwise). A lane of *rare is set where the
 * result is not that function's, and the caller has to ask the library.
 *
 * exp, exp2, log, log2, pow: S. Nagy, Arm Optimized Routines (2018, MIT), in which a product is fused
 * with the sum that reads it. expm1, log1p, sinh, cosh, atanh: fdlibm (Sun, 1993), in the C
 * library's order of additions. */
#ifndef CI_VMATH_FLOAT64_H
#define CI_VMATH_FLOAT64_H

#include "vmath/simd.h"
#include "vmath/tables.h"

/* The double whose high word is that: fdlibm compares high words. */
#define HIGH(word) ((D)((L){0} + ((int64_t)(word) << 32)))

/* 2^(k/128) * (1 + tail), k in the low bits of `bits`. */
INLINE D
exp_scale(L bits, D *tail)
{
    D scale;
    load_2(ci_vmath_exp, bits & 127, tail, &scale);
    return (D)((L)scale + (bits << 45));
}

/* exp(x + rest), where rest is much smaller than x. */
INLINE D
exp_sum(D x, D rest)
{
    D tail, shift = all_d(0x1.8p52), kd = fma_d(all_d(0x1.71547652b82fep7), x, shift);
    D scale = exp_scale((L)kd, &tail);
    kd -= shift;
    D r = fma_d(kd, all_d(-0x1.62e42fefa0000p-8), x);
    r = fma_d(kd, all_d(-0x1.cf79abc9e3b3ap-47), r) + rest;
    D r2 = r * r;
    D low = fma_d(r, all_d(0x1.555555555543cp-3), all_d(0x1.ffffffffffdbdp-2));
    D high = fma_d(r, all_d(0x1.1111167a4d017p-7), all_d(0x1.55555cf172b91p-5));
    D sum = fma_d(r2 * r2, high, fma_d(r2, low, tail + r));
    return fma_d(scale, sum, scale);
}

INLINE D
exp_d(D x, L *rare)
{
    *rare |= ~(abs_d(x) < 512.0);
    return exp_sum(x, all_d(-0.0)); /* the rest that changes no bit */
}

/* Built without FMA. */
INLINE D
exp2_d(D x, L *rare)
{
    D tail, shift = all_d(0x1.8p45), kd = x + shift;
    D scale = exp_scale((L)kd, &tail), r = x - (kd - shift), r2 = r * r;
    D low = 0x1.ebfbdff82c424p-3 + r * 0x1.c6b08d70cf4b5p-5;
    D high = 0x1.3b2abd24650ccp-7 + r * 0x1.5d7e09b4e3a84p-10;
    D sum = tail + r * 0x1.62e42fefa39efp-1 + r2 * low + r2 * r2 * high;
    *rare |= ~(abs_d(x) <= 928.0);
    return scale + scale * sum;
}

/* ---- logarithms ---- */

/* x = 2^exponent * z: z from some number on, below twice that. */
typedef struct Mantissa {
    D z, exponent;
    L bits; /* of z, from that number on */
} Mantissa;

/* first: the bits of the least z. */
INLINE Mantissa
split_d(D x, int64_t first)
{
    L bits = (L)x - first;
    L exponent = (L)((U)(bits + (INT64_C(1024) << 52)) >> 52);
    return (Mantissa){(D)((L)x - (bits & INT64_C(0xfff) << 52)),
                      (D)(exponent | 0x4330000000000000) - (0x1p52 + 1024), bits};
}

/* Zeros, subnormals, negative numbers, infinities and NaN. */
INLINE L
is_no_normal(D x)
{
    return ~((x >= 0x1p-1022) & (x < __builtin_inf()));
}

INLINE D
log_near_1(D x)
{
    D r = x - 1.0, r2 = r * r, r3 = r * r2;
    D c = fma_d(r, all_d(-0x1.999eb43b068ffp-4), all_d(0x1.c7184282ad6cap-4));
    c = fma_d(r3, all_d(-0x1.5521375d145cdp-4), fma_d(r2, all_d(0x1.78182f7afd085p-4), c));
    D b = fma_d(r, all_d(0x1.24924a344de3p-3), all_d(-0x1.55555556745a7p-3));
    b = fma_d(r3, c, fma_d(r2, all_d(-0x1.fffffa4423d65p-4), b));
    D a = fma_d(r, all_d(-0x1.ffffffffffdcbp-3), all_d(0x1.5555555555577p-2));
    a = fma_d(r3, b, fma_d(r2, all_d(0x1.999999995dd0cp-3), a));
    D w = r * 0x1p27, high = (r + w) - w, low = r - high;
    w = high * high * -0.5;
    D sum = r + w, rest = (r - sum) + w;
    rest = fma_d(-0.5 * low, high + r, rest);
    return fma_d(r3, a, rest) + sum;
}

INLINE D
log_d(D x, L *rare)
{
    Mantissa m = split_d(x, 0x3fe6000000000000);
    D of_c, log_of_c;
    load_2(ci_vmath_log, (L)((U)m.bits >> 45) & 127, &of_c, &log_of_c);
    D r = fma_d(m.z, of_c, all_d(-1.0));
    D w = fma_d(m.exponent, all_d(0x1.62e42fefa3800p-1), log_of_c);
    D high = w + r, low = (w - high) + r;
    low = fma_d(m.exponent, all_d(0x1.ef35793c76730p-45), low);
    D r2 = r * r;
    D p = fma_d(r, all_d(-0x1.fffffffeb459p-3), all_d(0x1.555555551305bp-2));
    p = fma_d(r2, fma_d(r, all_d(-0x1.55575e506c89fp-3), all_d(0x1.999b324f10111p-3)), p);
    D far = fma_d(r * r2, p, fma_d(r2, all_d(-0x1.0000000000001p-1), low)) + high;
    L near = (x >= 1.0 - 0x1p-4) & (x < 1.0 + 0x1.09p-4);
    *rare |= is_no_normal(x);
    return bits_d(near) ? pick_d(near, log_near_1(x), far) : far;
}

/* log(x) as the sum of the result and *rest. */
INLINE D
log_sum(D x, D *rest)
{
    Mantissa m = split_d(x, 0x3fe6955500000000);
    D c[4];
    load_4(ci_vmath_pow, ((L)((U)m.bits >> 45) & 127) * 4, c);
    D r = fma_d(m.z, c[0], all_d(-1.0));
    D t1 = fma_d(m.exponent, all_d(0x1.62e42fefa3800p-1), c[1]), t2 = t1 + r;
    D low = fma_d(m.exponent, all_d(0x1.ef35793c76730p-45), c[2]) + ((t1 - t2) + r);
    D half = -0.5 * r, square = r * half, high = t2 + square;
    low = low + fma_d(half, r, -square) + ((t2 - high) + square);
    D p = fma_d(r, all_d(0x1.0002b8b263fc3p0), all_d(-0x1.2495b9b4845e9p0));
    p = fma_d(square, p, fma_d(r, all_d(-0x1.555555529a47ap-1), all_d(0x1.999999959554ep-1)));
    p = fma_d(square, p, fma_d(r, all_d(0x1.0000000000006p-1), all_d(-0x1.5555555555560p-1)));
    low = fma_d(r * square, p, low);
    D y = high + low;
    *rest = (high - y) + low;
    return y;
}

INLINE D
log2_near_1(D x)
{
    D r = x - 1.0, r2 = r * r, r4 = r2 * r2;
    D inverse = all_d(0x1.7154765200000p+0), high = r * inverse;
    D low = fma_d(r, all_d(0x1.705fc2eefa200p-33), fma_d(r, inverse, -high));
    D p = fma_d(r, all_d(0x1.ec709dc3a03f7p-2), all_d(-0x1.71547652b82fep-1));
    D y = fma_d(r2, p, high);
    low += fma_d(r2, p, high - y);
    D a = fma_d(r, all_d(0x1.2776c50f05be4p-2), all_d(-0x1.71547652b7c3fp-2));
    a = fma_d(r2, fma_d(r, all_d(0x1.a61761ec4e736p-3), all_d(-0x1.ec709dd768fe5p-3)), a);
    D b = fma_d(r, all_d(0x1.484d154f01b4ap-3), all_d(-0x1.7153fbc64a79bp-3));
    b = fma_d(r2, fma_d(r, all_d(0x1.0b32f285aee66p-3), all_d(-0x1.289e4a72c383cp-3)), b);
    return y + fma_d(r4, fma_d(r4, b, a), low);
}

/* With FMA from 2.39 on, and in the branches of 2.35 to 2.38. */
INLINE D
log2_d(D x, L *rare)
{
    Mantissa m = split_d(x, 0x3fe6000000000000);
    D of_c, log_of_c, inverse = all_d(0x1.7154765200000p+0);
    load_2(ci_vmath_log2, (L)((U)m.bits >> 46) & 63, &of_c, &log_of_c);
    D r = fma_d(m.z, of_c, all_d(-1.0)), t1 = r * inverse;
    D t2 = fma_d(r, all_d(0x1.705fc2eefa200p-33), fma_d(r, inverse, -t1));
    D t3 = m.exponent + log_of_c;
    D high = t3 + t1, low = ((t3 - high) + t1) + t2, r2 = r * r;
    D p = fma_d(r, all_d(0x1.ec709dc3a04bep-2), all_d(-0x1.71547652b8339p-1));
    p = fma_d(r2, fma_d(r, all_d(0x1.2776c50034c48p-2), all_d(-0x1.7154764702ffbp-2)), p);
    D q = fma_d(r, all_d(0x1.a6225e117f92ep-3), all_d(-0x1.ec7b328ea92bcp-3));
    D far = fma_d(r2, fma_d(r2 * r2, q, p), low) + high;
    L near = (x >= 1.0 - 0x1.5b51p-5) & (x < 1.0 + 0x1.6ab2p-5);
    *rare |= is_no_normal(x);
    return bits_d(near) ? pick_d(near, log2_near_1(x), far) : far;
}

/* fdlibm: from the logarithm of x scaled to [1, 2), or to [0.5, 1) below 1. */
INLINE D
log10_d(D x, L *rare)
{
    L below = x < 1.0, bits = (L)x;
    D y = (D)((L)((U)bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    D scaled = (D)((bits & 0x000fffffffffffff) | (0x3ff0000000000000 + (below << 52)));
    y = y - double_l(below);
    *rare |= is_no_normal(x);
    L none = {0};
    D z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * log_d(scaled, &none);
    return z + y * 3.01029995663611771306e-01;
}

/* ---- fdlibm's pair of expm1 and log1p ---- */

/* 2^k * y, a normal number: k is added to y's exponent. */
INLINE D
scale_d(D y, L k)
{
    return (D)((L)y + (k << 52));
}

INLINE D
expm1_d(D x, L *rare)
{
    const D half = all_d(0.5);
    D size = abs_d(x), one = sign_d(all_d(1.0), x);
    D t = trunc_d(fma_d(all_d(1.44269504088896338700), x, sign_d(half, x)));
    t = pick_d(size < HIGH(0x3ff0a2b2), one, t);
    t = pick_d(size < HIGH(0x3fd62e43), all_d(0.0), t);
    D high = fma_d(-t, all_d(6.93147180369123816490e-01), x);
    D low = t * 1.90821492927058770002e-10;
    D r = high - low, c = (high - r) - low, half_r = 0.5 * r, h = r * half_r, h2 = h * h;
    D r1 = fma_d(h, all_d(-3.33333333333331316428e-02), all_d(1.0));
    D r2 = fma_d(h, all_d(-7.93650757867487942473e-05), all_d(1.58730158725481460165e-03));
    D r3 = fma_d(h, all_d(-2.01099218183624371326e-07), all_d(4.00821782732936239552e-06));
    r1 = fma_d(h2 * h2, r3, fma_d(h2, r2, r1));
    D u = fma_d(-r1, half_r, all_d(3.0));
    D e = h * ((r1 - u) / fma_d(-r, u, all_d(6.0)));
    D of_0 = r - fma_d(r, e, -h);
    e = fma_d(r, e - c, -c) - h;
    D of_1 = pick_d(r < -0.25, -2.0 * (e - (r + 0.5)), 1.0 + 2.0 * (r - e));
    D of_minus_1 = 0.5 * (r - e) - 0.5;
    L k = int_d(t), ends = (t <= -2.0) | (t > 56.0);
    D power = (D)((1023 - k) << 52); /* 2^-k */
    D y = pick_d(t < 20.0, (1.0 - power) - (e - r), (r - (e + power)) + 1.0);
    y = scale_d(pick_d(ends, 1.0 - (e - r), y), k);
    y = pick_d(ends, y - 1.0, y);
    y = pick_d(t == 1.0, of_1, y);
    y = pick_d(t == -1.0, of_minus_1, y);
    y = pick_d(t == 0.0, of_0, y);
    *rare |= ~(size < HIGH(0x40862e42));
    return pick_d(x <= -HIGH(0x4043687a), all_d(-1.0), y);
}

/* 1 + x = 2^k * (1 + f), and what was rounded off. */
typedef struct Sum1 {
    D f, k, rest;
    L is_power; /* |f| < 2^-20: other steps */
} Sum1;

INLINE Sum1
add_1_d(D x)
{
    L large = x >= HIGH(0x43400000);
    D u = pick_d(large, x, 1.0 + x);
    L mantissa = (L)u & 0x000fffffffffffff, word = (L)((U)mantissa >> 32);
    L k = (L)((U)(L)u >> 52) - 1023, above = word >= 0x6a09e;
    D rest = pick_d(k > 0, 1.0 - (u - x), x - (u - 1.0)) / u;
    D f = (D)(mantissa | (0x3ff0000000000000 + (above << 52))) - 1.0;
    return (Sum1){f, double_l(k - above), pick_d(large, all_d(0.0), rest),
                  (word == 0) | (word > 0xffffc)};
}

INLINE D
log1p_d(D x, L *rare)
{
    L near = (x < HIGH(0x3fda827a)) & (x > -HIGH(0x3fd2bec4));
    Sum1 sum = add_1_d(x);
    D f = pick_d(near, x, sum.f), k = pick_d(near, all_d(0.0), sum.k);
    D square = 0.5 * f * f, s = f / (2.0 + f), z = s * s, z2 = z * z, z4 = z2 * z2;
    D r2 = fma_d(z, all_d(2.857142874366239149e-01), all_d(3.999999999940941908e-01));
    D r3 = fma_d(z, all_d(1.818357216161805012e-01), all_d(2.222219843214978396e-01));
    D r4 = fma_d(z, all_d(1.479819860511658591e-01), all_d(1.531383769920937332e-01));
    D r = fma_d(z, all_d(6.666666666666735130e-01), z2 * r2);
    r = fma_d(z4 * z2, r4, fma_d(z4, r3, r));
    D product = s * (square + r);
    D low = product + fma_d(k, all_d(1.90821492927058770002e-10), sum.rest);
    D far = fma_d(k, all_d(6.93147180369123816490e-01), -((square - low) - f));
    D y = pick_d(k == 0.0, f - (square - product), far);
    *rare |= ~((x > -1.0) & (x < __builtin_inf())) | (sum.is_power & ~near);
    L is_tiny = abs_d(x) < 0x1p-29;
    D tiny = pick_d(is_tiny, x, all_d(0.0));
    return pick_d(is_tiny, fma_d(-(tiny * tiny), all_d(0.5), x), y);
}

#endif
