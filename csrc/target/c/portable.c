/* Any processor: vectors of the compilers' own kind, and C in each lane. gcc and clang compile it for every target. */
#include "target/c/instructions.h"

static const char *
rounding(CiContext *ctx, const char *function, CiDtype dtype, int bytes)
{
    (void)ctx, (void)function, (void)dtype, (void)bytes;
    return NULL;
}

static const char *
fused(CiContext *ctx, CiDtype dtype, int bytes, int vector_bytes)
{
    (void)ctx, (void)dtype, (void)bytes, (void)vector_bytes;
    return NULL;
}

const CiCInstructions ci_c_portable = {.rounding = rounding, .fused = fused, .is_portable = true};
