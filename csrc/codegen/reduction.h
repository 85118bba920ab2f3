/* What reductions do to their accumulators, whatever the order and the machine: a row each. */
#ifndef CI_CODEGEN_REDUCTION_H
#define CI_CODEGEN_REDUCTION_H

#include "ir/proc.h"

#define CI_MAX_ACCUMULATORS 3

typedef struct CiReduction {
    int count; /* accumulators */
    CiConst (*identity)(CiOp fold, int k, CiDtype dtype);
    /* The accumulators of one element alone; NULL: it, and its position where there are two. */
    void (*lift)(CiBuild *b, int element, int *lifted);
    /* The accumulators after one value more: acc and lifted are values of the same lanes. */
    void (*step)(CiBuild *b, CiOp fold, int lanes, int *acc, const int *lifted);
    /* Of two parts one: acc is the earlier. */
    void (*combine)(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later);
    /* The same steps cheaper, where elements are near enough to be walked twice: all of them in one
     * way, then a turn (NULL: none), then all in another, which adds to the last accumulator alone. The first way takes
     * what some have come to as it takes an element. NULL: there is no such way. */
    void (*begin)(CiBuild *b, int lanes, int *acc, const int *lifted);
    void (*turn)(CiBuild *b, int lanes, int *acc);
    void (*again)(CiBuild *b, int lanes, int *acc, const int *lifted);
} CiReduction;

const CiReduction *ci_reduction_of(CiOp fold);
/* What accumulator number k starts from. */
CiConst ci_reduction_identity(CiOp fold, int k, CiDtype dtype);

/* And what a reduction of nothing is: a sum +0, though it begins from -0. */
CiConst ci_reduction_of_nothing(CiOp fold, int k, CiDtype dtype);

#endif
