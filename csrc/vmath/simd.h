/* Vectors of 32 bytes for the functions of this folder: arithmetic is the compiler's own, and the
 * rest are instructions of x86-64-v3 (AVX2, FMA, F16C), the level of each function. The compiler
 * contracts nothing (-ffp-contract=off): a product is fused with a sum only by fma_f and fma_d. */
#ifndef CI_VMATH_SIMD_H
#define CI_VMATH_SIMD_H

#include <immintrin.h>
#include <stdint.h>

typedef float F __attribute__((vector_size(32)));
typedef int32_t I __attribute__((vector_size(32)));
typedef double D __attribute__((vector_size(32)));
typedef int64_t L __attribute__((vector_size(32)));
typedef uint64_t U __attribute__((vector_size(32)));

#define CI_VMATH_LEVEL __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline CI_VMATH_LEVEL __attribute__((always_inline))

/* a*b + c, rounded once. */
INLINE F
fma_f(F a, F b, F c)
{
    return (F)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE D
fma_d(D a, D b, D c)
{
    return (D)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

/* a where the mask is set, else b. */
INLINE F
pick_f(I mask, F a, F b)
{
    return (F)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
}

INLINE D
pick_d(L mask, D a, D b)
{
    return (D)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask);
}

INLINE F
all_f(float x)
{
    return (F)_mm256_set1_ps(x);
}

INLINE D
all_d(double x)
{
    return (D)_mm256_set1_pd(x);
}

INLINE F
abs_f(F x)
{
    return (F)((I)x & 0x7fffffff);
}

INLINE D
abs_d(D x)
{
    return (D)((L)x & INT64_MAX);
}

/* |magnitude| with the sign of `sign`. */
INLINE F
sign_f(F magnitude, F sign)
{
    return (F)(((I)magnitude & 0x7fffffff) | ((I)sign & INT32_MIN));
}

INLINE D
sign_d(D magnitude, D sign)
{
    return (D)(((L)magnitude & INT64_MAX) | ((L)sign & INT64_MIN));
}

/* One bit for each lane of a mask. */
INLINE int
bits_f(I mask)
{
    return _mm256_movemask_ps((__m256)mask);
}

INLINE int
bits_d(L mask)
{
    return _mm256_movemask_pd((__m256d)mask);
}

INLINE F
sqrt_f(F x)
{
    return (F)_mm256_sqrt_ps((__m256)x);
}

INLINE D
sqrt_d(D x)
{
    return (D)_mm256_sqrt_pd((__m256d)x);
}

INLINE D
trunc_d(D x)
{
    return (D)_mm256_round_pd((__m256d)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

INLINE F
trunc_f(F x)
{
    return (F)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

/* Ints of floats, toward zero. */
INLINE I
int_f(F x)
{
    return (I)_mm256_cvttps_epi32((__m256)x);
}

INLINE F
float_i(I x)
{
    return (F)_mm256_cvtepi32_ps((__m256i)x);
}

/* Whole doubles below 2^51 as ints, and back: the sum's last bits are the number. */
INLINE L
int_d(D whole)
{
    return (L)(whole + 0x1.8p52) - (L)all_d(0x1.8p52);
}

INLINE D
double_l(L small)
{
    return (D)(small + (L)all_d(0x1.8p52)) - 0x1.8p52;
}

INLINE D
gather_d(const double *table, L index)
{
    return (D)_mm256_i64gather_pd(table, (__m256i)index, 8);
}

INLINE F
gather_f(const float *table, I index)
{
    return (F)_mm256_i32gather_ps(table, (__m256i)index, 4);
}

/* Rows of two and of four doubles by their numbers: loads and shuffles take less time than gathers. */
INLINE void
load_2(const double *table, L row, D *a, D *b)
{
    __m256d even = _mm256_set_m128d(_mm_loadu_pd(table + 2 * row[2]), _mm_loadu_pd(table + 2 * row[0]));
    __m256d odd = _mm256_set_m128d(_mm_loadu_pd(table + 2 * row[3]), _mm_loadu_pd(table + 2 * row[1]));
    *a = (D)_mm256_unpacklo_pd(even, odd);
    *b = (D)_mm256_unpackhi_pd(even, odd);
}

/* row: where each begins. */
INLINE void
load_4(const double *table, L row, D *parts)
{
    __m256d r0 = _mm256_loadu_pd(table + row[0]), r1 = _mm256_loadu_pd(table + row[1]);
    __m256d r2 = _mm256_loadu_pd(table + row[2]), r3 = _mm256_loadu_pd(table + row[3]);
    __m256d t0 = _mm256_unpacklo_pd(r0, r1), t1 = _mm256_unpackhi_pd(r0, r1);
    __m256d t2 = _mm256_unpacklo_pd(r2, r3), t3 = _mm256_unpackhi_pd(r2, r3);
    parts[0] = (D)_mm256_permute2f128_pd(t0, t2, 0x20);
    parts[1] = (D)_mm256_permute2f128_pd(t1, t3, 0x20);
    parts[2] = (D)_mm256_permute2f128_pd(t0, t2, 0x31);
    parts[3] = (D)_mm256_permute2f128_pd(t1, t3, 0x31);
}

/* Whole numbers toward zero, |x| < 2^31. */
INLINE L
whole_of(D x)
{
    return (L)_mm256_cvtepi32_epi64(_mm256_cvttpd_epi32((__m256d)x));
}

/* ---- complex numbers: pairs of lanes ---- */

typedef struct ComplexF {
    float parts[2];
} ComplexF;

typedef struct ComplexD {
    double parts[2];
} ComplexD;

/* The first, or the second, lane of each pair in both lanes. */
INLINE D
first_of_pairs(D x)
{
    return (D)_mm256_movedup_pd((__m256d)x);
}

INLINE D
second_of_pairs(D x)
{
    return (D)_mm256_permute_pd((__m256d)x, 15);
}

INLINE F
all_pairs_f(ComplexF x)
{
    return (F){x.parts[0], x.parts[1], x.parts[0], x.parts[1], x.parts[0], x.parts[1], x.parts[0], x.parts[1]};
}

INLINE D
all_pairs_d(ComplexD x)
{
    return (D){x.parts[0], x.parts[1], x.parts[0], x.parts[1]};
}

/* One bit for each pair with a lane of a mask. */
INLINE int
bits_of_pairs_d(L mask)
{
    int bits = bits_d(mask | (L)_mm256_permute_pd((__m256d)mask, 5));
    return (bits & 1) | (bits >> 1 & 2);
}

INLINE int
bits_of_pairs_f(I mask)
{
    L pairs = (L)mask != 0;
    return bits_d(pairs);
}

/* ---- the two halves of a vector of floats, as doubles ---- */

typedef struct Halves {
    D low, high;
} Halves;

INLINE Halves
widen_f(F x)
{
    __m256 a = (__m256)x;
    return (Halves){(D)_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                    (D)_mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
}

INLINE Halves
widen_i(I x)
{
    __m256i a = (__m256i)x;
    return (Halves){(D)_mm256_cvtepi32_pd(_mm256_castsi256_si128(a)),
                    (D)_mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1))};
}

/* The elements of a table that ints from 0 on number. */
INLINE Halves
gather_halves(const double *table, I index)
{
    __m256i a = (__m256i)index;
    return (Halves){(D)_mm256_i32gather_pd(table, _mm256_castsi256_si128(a), 8),
                    (D)_mm256_i32gather_pd(table, _mm256_extracti128_si256(a, 1), 8)};
}

INLINE F
narrow(Halves x)
{
    return (F)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)x.high), _mm256_cvtpd_ps((__m256d)x.low));
}

#endif
