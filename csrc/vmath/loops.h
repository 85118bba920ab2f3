/* From a function on vectors to one on blocks of memory. */
#ifndef CI_VMATH_LOOPS_H
#define CI_VMATH_LOOPS_H

#include "vmath/simd.h"
#include "vmath/vmath.h"

#include <string.h>

/* Records operands that the function left out: `bytes` of them, at `offset`. To be called before the
 * result is stored, which may take their place. */
static inline void
ci_vmath_add_rare(CiVmathBlock *block, int64_t first, int lanes, size_t offset, size_t bytes)
{
    CiVmathRare *rare = &block->rare[block->nrare++];
    rare->first = (int32_t)first;
    rare->lanes = (uint32_t)lanes;
    for (int a = 0; a < 2 && block->operands[a] != NULL; a++)
        memcpy(rare->operands[a], block->operands[a] + offset, bytes);
}

/* NARGS: 1 or 2; WIDTH: lanes; BITS(mask): one bit for each lane; ALL(x): x of TYPE in all lanes. */
#define CI_VMATH_RUN(NARGS, function, TYPE, VECTOR, MASK, WIDTH, BITS, ALL)                        \
    static CI_VMATH_LEVEL void function##_one(CiVmathBlock *block)                                 \
    {                                                                                              \
        TYPE a, b;                                                                                 \
        memcpy(&a, block->operands[0], sizeof a);                                                  \
        memcpy(&b, block->operands[NARGS - 1], sizeof b);                                          \
        MASK rare = {0};                                                                           \
        VECTOR x = ALL(a), y = ALL(b), result = CI_VMATH_CALL_##NARGS(function);                   \
        (void)y;                                                                                   \
        if (BITS(rare) & 1)                                                                        \
            ci_vmath_add_rare(block, 0, 1, 0, sizeof a);                                           \
        memcpy(block->out, &result, sizeof a);                                                     \
    }                                                                                              \
                                                                                                   \
    static CI_VMATH_LEVEL void function##_run(CiVmathBlock *block)                                 \
    {                                                                                              \
        size_t offset = 0;                                                                         \
        if (block->count == 1) {                                                                   \
            function##_one(block);                                                                 \
            return;                                                                                \
        }                                                                                          \
        for (int64_t k = 0; k < block->count; k += WIDTH, offset += sizeof(VECTOR)) {              \
            MASK rare = {0};                                                                       \
            VECTOR x, y;                                                                           \
            memcpy(&x, block->operands[0] + offset, sizeof x);                                     \
            memcpy(&y, block->operands[NARGS - 1] + offset, sizeof y);                             \
            VECTOR result = CI_VMATH_CALL_##NARGS(function);                                       \
            int lanes = BITS(rare);                                                                \
            if (__builtin_expect(lanes != 0, 0))                                                   \
                ci_vmath_add_rare(block, k, lanes, offset, sizeof x);                              \
            memcpy(block->out + offset, &result, sizeof result);                                   \
        }                                                                                          \
    }

#define CI_VMATH_CALL_1(function) function(x, &rare)
#define CI_VMATH_CALL_2(function) function(x, y, &rare)

#endif
