/* The operations of floats and complex numbers. Narrow floats have those of f32: narrow.c. */
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
#define PICK(b, i, u, f, c) f
#include "device/interp/op_rows.h"

#define DTYPE_NAME f64
#define T double
#define R T
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_f64
#define PICK(b, i, u, f, c) f
#include "device/interp/op_rows.h"

#define DTYPE_NAME c64
#define T ci_c64
#define R float
#define BITS 32
#define M(name) __builtin_##name##f
#define S(name) ci_##name##_c64
#define PICK(b, i, u, f, c) c
#include "device/interp/op_rows.h"

#define DTYPE_NAME c128
#define T ci_c128
#define R double
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_c128
#define PICK(b, i, u, f, c) c
#include "device/interp/op_rows.h"
