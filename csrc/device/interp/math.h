/* Vector mathematics of the C library, called as generated code calls it: whole vectors of the
 * level's width, the tail repeating the last value. Without libmvec the C library's scalar
 * functions stand in. */
#ifndef CI_DEVICE_INTERP_MATH_H
#define CI_DEVICE_INTERP_MATH_H

#include "device/cpu/level.h"

typedef struct CiInterpMath {
    void *library; /* libmvec, or NULL */
    CiCpuLevel level;
} CiInterpMath;

/* The routine of a MATH row for f32 or f64, found once: pass it to ci_interp_math_run. */
typedef struct CiInterpRoutine {
    void *vector; /* NULL: scalar */
    CiOp op;
    bool is_double;
    CiCpuLevel level;
} CiInterpRoutine;

CiInterpRoutine ci_interp_math_find(const CiInterpMath *math, CiOp op, CiDtype dtype);
/* a and b have space for a whole vector after `count` elements; b is NULL for one operand. Blocks
 * are aligned to 64 bytes. */
void ci_interp_math_run(const CiInterpRoutine *routine, void *out, void *a, void *b, int64_t count);

#endif
