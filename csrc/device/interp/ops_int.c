/* The operations of bool and integers. Overflow wraps, and shifts of negative numbers are shifts of
 * their bits: generated code is compiled with -fwrapv, so here the compiler is told the same. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("wrapv")
#endif
#include "device/interp/ops.h"
#include "device/interp/support.h"

#define WRAPS __attribute__((no_sanitize("signed-integer-overflow"), no_sanitize("shift")))
#undef bool /* a name of a type here, not stdbool's macro */

#define DTYPE_NAME bool
#define T uint8_t
#define R T
#define BITS 8
#define M(name) __builtin_##name
#define S(name) ci_##name##_bool
#define PICK(b, i, u, f, c) b
#include "device/interp/op_rows.h"

#define DTYPE_NAME i8
#define T int8_t
#define R T
#define BITS 8
#define M(name) __builtin_##name
#define S(name) ci_##name##_i8
#define PICK(b, i, u, f, c) i
#include "device/interp/op_rows.h"

#define DTYPE_NAME i16
#define T int16_t
#define R T
#define BITS 16
#define M(name) __builtin_##name
#define S(name) ci_##name##_i16
#define PICK(b, i, u, f, c) i
#include "device/interp/op_rows.h"

#define DTYPE_NAME i32
#define T int32_t
#define R T
#define BITS 32
#define M(name) __builtin_##name
#define S(name) ci_##name##_i32
#define PICK(b, i, u, f, c) i
#include "device/interp/op_rows.h"

#define DTYPE_NAME i64
#define T int64_t
#define R T
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_i64
#define PICK(b, i, u, f, c) i
#include "device/interp/op_rows.h"

#define DTYPE_NAME u8
#define T uint8_t
#define R T
#define BITS 8
#define M(name) __builtin_##name
#define S(name) ci_##name##_u8
#define PICK(b, i, u, f, c) u
#include "device/interp/op_rows.h"

#define DTYPE_NAME u16
#define T uint16_t
#define R T
#define BITS 16
#define M(name) __builtin_##name
#define S(name) ci_##name##_u16
#define PICK(b, i, u, f, c) u
#include "device/interp/op_rows.h"

#define DTYPE_NAME u32
#define T uint32_t
#define R T
#define BITS 32
#define M(name) __builtin_##name
#define S(name) ci_##name##_u32
#define PICK(b, i, u, f, c) u
#include "device/interp/op_rows.h"

#define DTYPE_NAME u64
#define T uint64_t
#define R T
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_u64
#define PICK(b, i, u, f, c) u
#include "device/interp/op_rows.h"
