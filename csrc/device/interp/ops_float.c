/* The operations of floats and complex numbers. Halves are floats that a half can hold; each result
 * is rounded to one. */
#include "device/interp/ops.h"
#include "device/interp/support.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define WRAPS
#define DTYPE_NAME f32
#define T float
#define R T
#define BITS 32
#define M(name) __builtin_##name##f
#define S(name) ci_##name##_f32
#define ROUND(x) x
#define PICK(b, i, u, f, c) f
#include "device/interp/op_rows.h"

#define DTYPE_NAME f64
#define T double
#define R T
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_f64
#define ROUND(x) x
#define PICK(b, i, u, f, c) f
#include "device/interp/op_rows.h"

/* What halves have of their own, and what they take from float. */
#define half_fmod __builtin_fmodf
#define half_fabs __builtin_fabsf
#define half_floor __builtin_floorf
#define half_ceil __builtin_ceilf
#define half_trunc __builtin_truncf
#define half_rint __builtin_rintf
#define half_sqrt __builtin_sqrtf
#define half_copysign __builtin_copysignf
#define half_erf __builtin_erff
#define half_erfc __builtin_erfcf
#define half_nextafter ci_nextafter_f16
#define half_huge_val __builtin_huge_valf
#define half_support_floor_divide ci_floor_divide_f32
#define half_support_remainder ci_remainder_f32
#define half_support_spacing ci_spacing_f16
#define half_support_ldexp ci_ldexp_f32
#define half_support_frexp_mantissa ci_frexp_mantissa_f32
#define half_support_frexp_exponent ci_frexp_exponent_f32
#define half_support_scalar_power ci_scalar_power_f32
#define DTYPE_NAME f16
#define T float
#define R T
#define BITS 32
#define M(name) half_##name
#define S(name) half_support_##name
#define ROUND(x) ci_round_half_f32(x)
#define PICK(b, i, u, f, c) f
#include "device/interp/op_rows.h"

#define DTYPE_NAME c64
#define T ci_c64
#define R float
#define BITS 32
#define M(name) __builtin_##name##f
#define S(name) ci_##name##_c64
#define ROUND(x) x
#define PICK(b, i, u, f, c) c
#include "device/interp/op_rows.h"

#define DTYPE_NAME c128
#define T ci_c128
#define R double
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_c128
#define ROUND(x) x
#define PICK(b, i, u, f, c) c
#include "device/interp/op_rows.h"
