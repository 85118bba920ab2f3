/* support.def compiled: ci_<name>_<dtype>, for every element type. */
#ifndef CI_DEVICE_INTERP_SUPPORT_H
#define CI_DEVICE_INTERP_SUPPORT_H

#include "ir/dtype.h"

/* Nothing in support.def overflows: what may wrap is unsigned there. */
#define SKIP(name, result, params, ...)
#define DEFINE(name, result, params, ...)                                                          \
    __attribute__((unused)) static inline result S(name) params __VA_ARGS__
#define SUPPORT(name, class, result, params, ...) CLASS_##class(name, result, params, __VA_ARGS__)
#define WITHOUT_NARROW

#define CLASS_real DEFINE
#define CLASS_int SKIP
#define CLASS_uint SKIP
#define CLASS_complex SKIP
#define T float
#define U uint32_t
#define BITS 32
#define M(name) __builtin_##name##f
#define S(name) ci_##name##_f32
#include "target/support.def"
#undef T
#undef U
#undef BITS
#undef M
#undef S
#define T double
#define U uint64_t
#define BITS 64
#define M(name) __builtin_##name
#define S(name) ci_##name##_f64
#include "target/support.def"
#undef T
#undef U
#undef BITS
#undef M
#undef S
#undef CLASS_real

#define CLASS_real SKIP

#undef CLASS_int
#define CLASS_int DEFINE
#define T int8_t
#define U uint8_t
#define S(name) ci_##name##_i8
#include "target/support.def"
#undef T
#undef U
#undef S
#define T int16_t
#define U uint16_t
#define S(name) ci_##name##_i16
#include "target/support.def"
#undef T
#undef U
#undef S
#define T int32_t
#define U uint32_t
#define S(name) ci_##name##_i32
#include "target/support.def"
#undef T
#undef U
#undef S
#define T int64_t
#define U uint64_t
#define S(name) ci_##name##_i64
#include "target/support.def"
#undef T
#undef U
#undef S
#undef CLASS_int
#undef CLASS_uint

#define CLASS_int SKIP
#define CLASS_uint DEFINE
#define T uint8_t
#define S(name) ci_##name##_u8
#include "target/support.def"
#undef T
#undef S
#define T uint16_t
#define S(name) ci_##name##_u16
#include "target/support.def"
#undef T
#undef S
#define T uint32_t
#define S(name) ci_##name##_u32
#include "target/support.def"
#undef T
#undef S
#define T uint64_t
#define S(name) ci_##name##_u64
#include "target/support.def"
#undef T
#undef S
#undef CLASS_uint
#undef CLASS_complex

#define CLASS_uint SKIP
#define CLASS_complex DEFINE
#define T ci_c64
#define R float
#define M(name) __builtin_##name##f
#define S(name) ci_##name##_c64
#include "target/support.def"
#undef T
#undef R
#undef M
#undef S
#define T ci_c128
#define R double
#define M(name) __builtin_##name
#define S(name) ci_##name##_c128
#include "target/support.def"
#undef T
#undef R
#undef M
#undef S
#undef CLASS_real
#undef CLASS_int
#undef CLASS_uint
#undef CLASS_complex
#undef SUPPORT
#undef WITHOUT_NARROW

#define SUPPORT(name, class, result, params, ...) DEFINE(name, result, params, __VA_ARGS__)
#define NAME_(name, narrow) ci_##name##_##narrow
#define NAME(name, narrow) NAME_(name, narrow)
#define S(name) NAME(name, N)
#include "target/narrow.def"
#undef S

#undef SUPPORT
#undef SKIP
#undef DEFINE

#endif
