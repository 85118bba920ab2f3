/* More functions of floats, made from those of float32.h, and the loops of all. */
#include "vmath/vmath.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include "vmath/float32.h"
#include "vmath/loops.h"

/* ---- tangent ---- */

/* The reduction of the Arm Optimized Routines' sinf, in doubles: x - n*pi/2 as a sum. */
INLINE void
reduce_half(D x, D *high, D *low, D *n)
{
    D turns = trunc_d(x * 0x1.45f306dc9c883p+23) + 0x1p23;
    *n = (D)_mm256_floor_pd((__m256d)(turns * 0x1p-24));
    *high = x - *n * 0x1.921fb54442d18p0;
    *low = *high - (D)_mm256_cvtps_pd(_mm256_cvtpd_ps((__m256d)*high));
}

INLINE F
near_quarter(F x, F *rest, I *is_odd)
{
    Halves h = widen_f(x), high, low, n;
    reduce_half(h.low, &high.low, &low.low, &n.low);
    reduce_half(h.high, &high.high, &low.high, &n.high);
    *rest = narrow(low);
    *is_odd = (int_f(narrow(n)) & 1) == 1;
    return narrow(high);
}

INLINE F
tan_polynomial(F x, F y, F *r)
{
    F z = x * x, w = z * z;
    F a = 7.8179444245e-05f + w * -1.8558637748e-05f;
    a = 5.8804126456e-04f + w * a;
    a = 3.5920790397e-03f + w * a;
    a = 2.1869488060e-02f + w * a;
    a = 1.3333334029e-01f + w * a;
    F b = 7.1407252108e-05f + w * 2.5907305826e-05f;
    b = 2.4646313977e-04f + w * b;
    b = 1.4562094584e-03f + w * b;
    b = 8.8632395491e-03f + w * b;
    b = z * (5.3968254477e-02f + w * b);
    F s = z * x;
    *r = y + z * (s * (a + b) + y);
    *r += 3.3333334327e-01f * s;
    return x + *r;
}

/* -1/(x + r), x + r = w, with the bits that w has lost. */
INLINE F
minus_inverse(F x, F r, F w)
{
    const int32_t upper = (int32_t)0xfffff000;
    F z = (F)((I)w & upper), v = r - (z - x), a = -1.0f / w, t = (F)((I)a & upper);
    return t + a * ((1.0f + t * z) + t * v);
}

INLINE F
tan_f(F x, I *rare)
{
    I is_odd, is_reduced = abs_f(x) > WORD(0x3f490fda);
    F rest, r, y = near_quarter(x, &rest, &is_odd);
    is_odd &= is_reduced;
    y = pick_f(is_reduced, y, x), rest = pick_f(is_reduced, rest, all_f(0.0f));
    F iy = pick_f(is_odd, all_f(-1.0f), all_f(1.0f)), a = abs_f(y);
    I is_large = a >= WORD(0x3f2ca140), sign = (I)y & INT32_MIN;
    F u = (0.78539812565f - a) + (3.7748947079e-08f - (F)((I)rest ^ sign));
    u = pick_f(is_large, u, y);
    F w = tan_polynomial(u, pick_f(is_large, all_f(0.0f), rest), &r);
    F large = iy - 2.0f * (u - (w * w / (w + iy) - r));
    large = pick_f(abs_f(u) < 0x1p-13f, iy * (1.0f - 2.0f * iy * u), large);
    large = (F)((I)large ^ sign);
    F small = pick_f(is_odd, minus_inverse(u, r, pick_f(is_odd, w, all_f(1.0f))), w);
    small = pick_f(a < WORD(0x39000000), pick_f(is_odd, -1.0f / pick_f(is_odd, y, all_f(1.0f)), y), small);
    *rare |= ~(abs_f(x) < 120.0f);
    return pick_f(is_large, large, small);
}

/* ---- arc functions ---- */

INLINE F
moshier(F t)
{
    F p = 2.417951451e-2f + t * 4.216630880e-2f;
    p = 4.547037598e-2f + t * p;
    p = 7.495297643e-2f + t * p;
    return t * (1.666675248e-1f + t * p);
}

INLINE F
arcsin_f(F x, I *rare)
{
    const F high = all_f(1.57079637050628662109375f), low = all_f(-4.37113900018624283e-8f);
    const F quarter = all_f(0.785398185253143310546875f);
    F size = abs_f(x), t = (1.0f - size) * 0.5f, s = sqrt_f(t);
    I is_small = size < 0.5f;
    F p = moshier(pick_f(is_small, x * x, t)), small = x + x * p;
    F near_1 = high - (2.0f * (s + s * p) - low);
    F w = (F)((I)s & (int32_t)0xfffff000), c = (t - w * w) / (s + w);
    F middle = quarter - ((2.0f * s * p - (low - 2.0f * c)) - (quarter - 2.0f * w));
    *rare |= ~(size < 1.0f);
    return pick_f(is_small, small,
                  sign_f(pick_f(size >= WORD(0x3f79999a), near_1, middle), x));
}

INLINE F
arccos_f(F x, I *rare)
{
    const F high = all_f(1.5707962513e+00f), low = all_f(7.5497894159e-08f);
    F size = abs_f(x);
    I is_small = size < 0.5f;
    F z = pick_f(is_small, x * x, (1.0f - size) * 0.5f), s = sqrt_f(z);
    F p = 7.9153501429e-04f + z * 3.4793309169e-05f;
    p = -4.0055535734e-02f + z * p;
    p = 2.0121252537e-01f + z * p;
    p = -3.2556581497e-01f + z * p;
    p = z * (1.6666667163e-01f + z * p);
    F q = -6.8828397989e-01f + z * 7.7038154006e-02f;
    q = 2.0209457874e+00f + z * q;
    q = -2.4033949375e+00f + z * q;
    F r = p / (1.0f + z * q);
    F small = high - (x - (low - x * r));
    F below = 3.1415925026e+00f - 2.0f * (s + (r * s - low));
    F df = (F)((I)s & (int32_t)0xfffff000), c = (z - df * df) / pick_f(is_small, all_f(1.0f), s + df);
    F above = 2.0f * (df + (r * s + c));
    *rare |= ~(size < 1.0f);
    return pick_f(is_small, small, pick_f(x < 0.0f, below, above));
}

INLINE F
arctan2_f(F y, F x, I *rare)
{
    const F pi = all_f(3.1415927410e+00f), low = all_f(-8.7422776573e-08f);
    F ax = abs_f(x), ay = abs_f(y);
    I k = ((I)ay - (I)ax) >> 23;
    *rare |= ~((ax > 0.0f) & (ax < __builtin_inff()) & (ay > 0.0f) & (ay < __builtin_inff()));
    *rare |= (k > 60) | (k < -60);
    F z = arctan_f(abs_f(y / x), rare);
    return sign_f(pick_f(x < 0.0f, pi - (z - low), z), y);
}

/* ---- hyperbolic functions ---- */

INLINE F
sinh_f(F x, I *rare)
{
    I none = {0};
    F size = abs_f(x), h = sign_f(all_f(0.5f), x);
    I is_small = size < 22.0f;
    F t = expm1_f(pick_f(is_small, size, all_f(0.0f)), &none);
    F y = h * pick_f(size < 1.0f, 2.0f * t - t * t / (t + 1.0f), t + t / (t + 1.0f));
    if (bits_f(~is_small))
        y = pick_f(is_small, y, h * expf_f(size, rare));
    return pick_f(size < 0x1p-28f, x, y);
}

INLINE F
cosh_f(F x, I *rare)
{
    I none = {0};
    F size = abs_f(x), e = expf_f(size, rare);
    F y = pick_f(size < 22.0f, 0.5f * e + 0.5f / e, 0.5f * e);
    I is_small = size < WORD(0x3eb17218);
    if (bits_f(is_small)) {
        F t = expm1_f(pick_f(is_small, size, all_f(0.0f)), &none), w = 1.0f + t;
        y = pick_f(is_small, 1.0f + (t * t) / (w + w), y);
    }
    return y;
}

INLINE F
arcsinh_f(F x, I *rare)
{
    I none = {0}, none_too = {0};
    F a = abs_f(x), square = a * a, root = sqrt_f(1.0f + square);
    I is_huge = a > 0x1p15f, is_large = (a > 2.0f) & ~is_huge;
    F of_log = pick_f(is_large, 2.0f * a + 1.0f / (root + a), a);
    F of_log1p = a + square / (1.0f + root);
    F y = log1p_f(of_log1p, &none), log = logf_f(of_log, &none_too);
    y = pick_f(is_large, log, y);
    y = pick_f(is_huge, log + 6.9314718246e-01f, y);
    *rare |= ~(a < 0x1p60f) | (none & ~is_large & ~is_huge);
    return pick_f(a < WORD(0x38000000), x, sign_f(y, x));
}

INLINE F
arccosh_f(F x, I *rare)
{
    I none = {0}, none_too = {0}, is_huge = x >= 0x1p28f, is_large = (x > 2.0f) & ~is_huge;
    F inner = pick_f(is_large, x * x - 1.0f, all_f(1.0f)), t = x - 1.0f;
    F of_log = pick_f(is_large, 2.0f * x - 1.0f / (x + sqrt_f(inner)), x);
    F log = logf_f(of_log, &none_too);
    F y = log1p_f(t + sqrt_f(2.0f * t + t * t), &none);
    *rare |= ~((x > 1.0f) & (x < 0x1p60f)) | (none & ~is_large & ~is_huge);
    y = pick_f(is_large, log, y);
    return pick_f(is_huge, log + 6.9314718246e-01f, y);
}

INLINE F
arctanh_f(F x, I *rare)
{
    F a = abs_f(x), t = a + a, ratio = pick_f(a < 0.5f, t * a, t) / (1.0f - a);
    F sum = log1p_f(pick_f(a < 0.5f, t + ratio, ratio), rare);
    *rare |= ~(a < 1.0f);
    return pick_f(a < 0x1p-28f, x, sign_f(0.5f * sum, x));
}

/* ---- roots and sums ---- */

INLINE D
cbrt_seed(D m)
{
    return 0.492659620528969547 + (0.697570460207922770 - 0.191502161678719066 * m) * m;
}

INLINE D
cbrt_step(D u, D t2, D m)
{
    return u * (t2 + 2.0 * m) / (2.0 * t2 + m);
}

/* D. Alboth and U. Drepper, 1997: a polynomial, and one step of Halley's method in doubles. */
INLINE F
cbrt_f(F x, I *rare)
{
    static const double factors[] = {1.0 / 1.5874010519681994748, 1.0 / 1.2599210498948731648, 1.0,
                                     1.2599210498948731648, 1.5874010519681994748};
    F size = abs_f(x), mantissa = (F)(((I)x & 0x7fffff) | 0x3f000000);
    I exponent = ((I)size >> 23) - 126, third = int_f(float_i(exponent) * (1.0f / 3.0f + 0x1p-20f));
    Halves m = widen_f(mantissa);
    F seed = narrow((Halves){cbrt_seed(m.low), cbrt_seed(m.high)}), cube = seed * seed * seed;
    Halves u = widen_f(seed), t2 = widen_f(cube);
    Halves factor = gather_halves(factors, exponent - 3 * third + 2);
    F y = narrow((Halves){cbrt_step(u.low, t2.low, m.low) * factor.low,
                          cbrt_step(u.high, t2.high, m.high) * factor.high});
    *rare |= is_no_normal_f(size);
    return sign_f((F)((I)y + (third << 23)), x);
}

INLINE F
hypot_f(F x, F y, I *rare)
{
    Halves a = widen_f(x), b = widen_f(y);
    F z = narrow((Halves){sqrt_d(a.low * a.low + b.low * b.low),
                          sqrt_d(a.high * a.high + b.high * b.high)});
    *rare |= ~(z < __builtin_inff());
    return z;
}

INLINE F
logaddexp_f(F x, F y, I *rare)
{
    F d = x - y, larger = pick_f(d > 0.0f, x, y);
    F sum = larger + log1p_f(expf_f(-abs_f(d), rare), rare);
    return pick_f(x == y, x + 0.693147180559945309417232121458176568f, sum);
}

INLINE F
logaddexp2_f(F x, F y, I *rare)
{
    F d = x - y, larger = pick_f(d > 0.0f, x, y);
    F low = log1p_f(exp2_f(-abs_f(d), rare), rare);
    return pick_f(x == y, x + 1.0f, larger + 1.442695040888963407359924681001892137f * low);
}

/* Cosines in even lanes and sines in odd ones, as the C library's sincosf. |x| < 120. */
INLINE D
sincosf_half(D x)
{
    const L is_cosine = {-1, 0, -1, 0};
    L n = whole_of(x * 0x1.45f306dc9c883p+23);
    n = (n + 0x800000) >> 24;
    D r = fma_d(-double_l(n), all_d(0x1.921fb54442d18p0), x);
    D x2 = r * r, x3 = x2 * r, x4 = x2 * x2;
    D s = fma_d(x3, all_d(-0x1.555545995a603p-3), r);
    s = fma_d(x3 * x2, fma_d(x2, all_d(-0x1.994eb3774cf24p-13), all_d(0x1.1107605230bc4p-7)), s);
    D c = fma_d(x4, all_d(0x1.55553e1068f19p-5), fma_d(x2, all_d(-0x1.ffffffd0c621cp-2), all_d(1.0)));
    c = fma_d(x4 * x2, fma_d(x2, all_d(0x1.99343027bf8c3p-16), all_d(-0x1.6c087e89a359dp-10)), c);
    n = n - is_cosine;
    D y = pick_d((n & 1) == 1, c, s);
    y = (D)((L)y ^ (n & 2) << 62);
    return pick_d((abs_d(x) < 0x1p-126) & ~is_cosine, x, y);
}

/* Four complex numbers: expf of the real part times cosine and sine of the imaginary part. */
INLINE F
cexp_f(F x, I *rare)
{
    Halves h = widen_f(x);
    const I is_real = {-1, 0, -1, 0, -1, 0, -1, 0};
    *rare |= ~(abs_f(x) < pick_f(is_real, all_f(88.0f), all_f(120.0f)));
    Halves e = {expf_half(first_of_pairs(h.low)), expf_half(first_of_pairs(h.high))};
    Halves turned = {sincosf_half(second_of_pairs(h.low)), sincosf_half(second_of_pairs(h.high))};
    return narrow(e) * narrow(turned);
}

/* ---- float16: the function of float32, rounded ---- */

/* Only results that are not normal numbers of float16 can raise a flag; they are rare. */
#define RUN_HALF_2(function)                                                                       \
    static CI_VMATH_LEVEL void function##_half_run(CiVmathBlock *block)                            \
    {                                                                                              \
        if (block->count == 1) {                                                                   \
            add_one_rare(block);                                                                   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t k = 0; k < block->count; k += 8) {                                            \
            I rare = {0};                                                                          \
            F x = load_half(block->operands[0], k), z = load_half(block->operands[1], k);          \
            F y = function(x, z, &rare);                                                           \
            store_half(block, k, y, rare);                                                         \
        }                                                                                          \
    }

INLINE F
load_half(const char *from, int64_t first)
{
    __m128i x;
    memcpy(&x, from + 2 * first, sizeof x);
    return (F)_mm256_cvtph_ps(x);
}

INLINE void
store_half(CiVmathBlock *block, int64_t first, F y, I rare)
{
    __m128i rounded = _mm256_cvtps_ph((__m256)y, _MM_FROUND_TO_NEAREST_INT);
    F size = abs_f(y);
    int lanes = bits_f(rare | ~((size == 0.0f) | ((size >= 0x1p-14f) & (size < 65504.0f))));
    if (lanes)
        ci_vmath_add_rare(block, first, lanes, (size_t)first * 2, sizeof rounded);
    memcpy(block->out + 2 * first, &rounded, sizeof rounded);
}

/* One element alone is left to NumPy. */
static void
add_one_rare(CiVmathBlock *block)
{
    ci_vmath_add_rare(block, 0, 1, 0, 2);
}

/* ---- the rows ---- */

#define ROW_f16(op, nargs, function, source) RUN_HALF_##nargs(function)
#define ROW_f32(op, nargs, function, source) CI_VMATH_RUN(nargs, function, float, F, I, 8, bits_f, all_f)
#define ROW_c64(op, nargs, function, source)                                                       \
    CI_VMATH_RUN(nargs, function, ComplexF, F, I, 4, bits_of_pairs_f, all_pairs_f)
#define ROW_f64(op, nargs, function, source)
#define ROW_c128(op, nargs, function, source)
#include "vmath/vmath.def"
#undef ROW_f16
#undef ROW_f32
#undef ROW_c64

#define ROW_f16(op, nargs, function, source)                                                       \
    {CI_OP_##op, CI_DTYPE_f16, nargs, source, function##_half_run},
#define ROW_f32(op, nargs, function, source) {CI_OP_##op, CI_DTYPE_f32, nargs, source, function##_run},
#define ROW_c64(op, nargs, function, source) {CI_OP_##op, CI_DTYPE_c64, nargs, source, function##_run},
const CiVmathRow ci_vmath_float32[] = {
#include "vmath/vmath.def"
    {CI_OP_none, CI_DTYPE_f32, 0, NULL, NULL}};

#endif
