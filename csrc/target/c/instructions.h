/* Instructions of a CPU family for operations that C and the compilers' vectors do not have. Each is an expression
 * for the body of a helper, over vectors a and b of `type`; NULL: there is no instruction, and C is printed. */
#ifndef CI_TARGET_C_MACHINE_H
#define CI_TARGET_C_MACHINE_H

#include "target/emit.h"

typedef struct CiCInstructions {
    bool is_portable; /* nothing that a version of a compiler may lack */
    /* floor, ceil, trunc, rint or sqrt: a statement that ends with a return. */
    const char *(*rounding)(CiContext *ctx, const char *function, CiDtype dtype, int bytes);
    /* a*b + c, rounded once: a statement likewise. */
    const char *(*fused)(CiContext *ctx, CiDtype dtype, int bytes, int vector_bytes);
    /* The greater (max) or lesser (min) one, b where neither is; of a number that is no NaN. */
    const char *(*extreme)(CiContext *ctx, const char *instruction, CiDtype dtype, int bytes);
    /* The integers of vector a in another width, as a vector of `type`: statements that end with a
     * return. NULL: a compiler's own conversion is as fast. */
    const char *(*resized)(CiContext *ctx, const char *type, CiDtype from, CiDtype to, int lanes,
                           int vector_bytes);
    /* A half's "round" or "narrow" of target/narrow.def: statements that change u and end with a return. NULL: those
     * of narrow.def. */
    const char *(*half)(CiContext *ctx, const char *function, int lanes, int vector_bytes);
    /* False where no instruction shifts each lane of so many bytes by a number of its own; NULL: one always does. */
    bool (*has_lane_shifts)(int size, int vector_bytes);
    /* The highest bit of each byte of the vector `mask`, as an unsigned integer; NULL: no instruction collects them. */
    const char *(*byte_bits)(CiContext *ctx, int bytes, int vector_bytes);
    /* The letter of the vector routines of the C library for registers of so many bytes; NULL: it
     * has none, and its scalar functions stand in, lane by lane. */
    char (*routines)(int vector_bytes);
    /* Registers of that many bytes have masks, which move and pack elements of four and eight bytes;
     * NULL: none have. The rest is there where this is. */
    bool (*has_masks)(int vector_bytes);
    /* Expressions, over the memory `m` and `n` live lanes. dtype: f32 or f64, as which all elements
     * are moved; vector: the name of its type. A load takes other lanes from `first`. */
    const char *(*masked_load)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
    const char *(*masked_store)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
    /* The bits of `mask` as an int; and a statement that stores the lanes of `v` whose bit of
     * `chosen` is set side by side, n of them. */
    const char *(*mask_bits)(CiContext *ctx, CiDtype dtype, int bytes);
    const char *(*pack)(CiContext *ctx, CiDtype dtype, int bytes, const char *vector);
} CiCInstructions;

extern const CiCInstructions ci_c_x86, ci_c_arm, ci_c_portable;

#endif
