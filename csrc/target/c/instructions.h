/* The table of a CPU family's instructions, for operations that C and the compilers' vector types lack. Each function
 * returns the C text of an intrinsic, for the body of a helper whose arguments are vectors a, b and c. It returns NULL if
 * there is no instruction; then plain C is printed. */
#ifndef CI_TARGET_C_MACHINE_H
#define CI_TARGET_C_MACHINE_H

#include "target/emit.h"

typedef struct CiCInstructions {
    bool is_portable; /* every supported compiler has all of these instructions */
    /* floor, ceil, trunc, rint or sqrt, as a return statement. */
    const char *(*rounding)(CiContext *ctx, const char *function, CiDtype dtype, int bytes);
    /* fma(a, b, c), as a return statement. */
    const char *(*fused)(CiContext *ctx, CiDtype dtype, int bytes, int vector_bytes);
    /* max or min, as an expression; b if the operands compare equal. The operands are no NaN. */
    const char *(*extreme)(CiContext *ctx, const char *instruction, CiDtype dtype, int bytes);
    /* Converts the integers of vector a to another width, as a vector of `type`; statements that end with a return.
     * NULL: the compiler's own conversion is as fast. */
    const char *(*resized)(CiContext *ctx, const char *type, CiDtype from, CiDtype to, int lanes,
                           int vector_bytes);
    /* The functions "round" and "narrow" of target/narrow.def for f16: statements that change u and end with a return.
     * NULL: the text of narrow.def is printed. */
    const char *(*half)(CiContext *ctx, const char *function, int lanes, int vector_bytes);
    /* False if no instruction shifts each lane, `size` bytes wide, by its own count. NULL: there always is one. */
    bool (*has_lane_shifts)(int size, int vector_bytes);
    /* The highest bit of each byte of the vector `mask`, as an unsigned integer; NULL: no instruction collects them. */
    const char *(*byte_bits)(CiContext *ctx, int bytes, int vector_bytes);
    /* The letter in the names of libmvec's routines for registers of that size. NULL: the C library has no vector
     * routines, and its scalar functions are called for each lane. */
    char (*routines)(int vector_bytes);
    /* True if instructions on registers of that size take masks, for elements of four and eight bytes. NULL: none do.
     * The functions below are called only if it returns true. */
    bool (*has_masks)(int vector_bytes);
    /* Load and store of the first `n` lanes at the address `m`, as expressions. dtype: f32 or f64, by the width of the
     * elements; vector: the name of the vector's type. A load fills the other lanes from `first`. */
    const char *(*masked_load)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
    const char *(*masked_store)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
    /* The bits of the vector `mask` as an int. */
    const char *(*mask_bits)(CiContext *ctx, CiDtype dtype, int bytes);
    /* Compress: a statement that stores the lanes of `v` whose bits in `chosen` are set contiguously; there are n. */
    const char *(*pack)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
} CiCInstructions;

extern const CiCInstructions ci_c_x86, ci_c_arm, ci_c_portable;

#endif
