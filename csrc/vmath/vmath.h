/* Elementary functions on vectors, with the bits of the loops that NumPy runs on some machine.
 *
 * A function computes the common operands. It leaves the others (NaN, infinities, overflow, huge
 * arguments, ...), and their float flags, to NumPy's loop. Whether the bits are those of the NumPy and
 * the C library at hand is not decided here (device/ufunc_vector.c). */
#ifndef CI_VMATH_VMATH_H
#define CI_VMATH_VMATH_H

#include "ir/op.h"

enum { CI_VMATH_BLOCK = 512, CI_VMATH_BYTES = 32 };

/* A vector with operands that the function left out: where it begins, one bit for each lane of them,
 * and the operands, which the result may have overwritten. */
typedef struct CiVmathRare {
    int32_t first;
    uint32_t lanes;
    char operands[2][CI_VMATH_BYTES];
} CiVmathRare;

/* One call: contiguous elements, CI_VMATH_BLOCK at most, one or whole vectors. `out` may be an
 * operand. */
typedef struct CiVmathBlock {
    const char *operands[2];
    char *out;
    int64_t count;
    int32_t nrare;
    CiVmathRare rare[CI_VMATH_BLOCK / 4];
} CiVmathBlock;

typedef struct CiVmathRow {
    CiOp op;
    CiDtype dtype;
    int32_t nargs;
    const char *source; /* of the algorithm */
    void (*run)(CiVmathBlock *block);
} CiVmathRow;

/* The rows of an operation, one after another: several, if the algorithm differs between versions.
 * NULL: there is none, or the processor lacks the instructions. */
const CiVmathRow *ci_vmath_find(CiOp op, CiDtype dtype, int *count);

#endif
