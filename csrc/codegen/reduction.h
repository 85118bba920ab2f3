/* Reductions: what each does to its accumulators, one row per reduction, for any order and
 * machine. */
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
    /* A cheaper form for elements in registers, which are read in two passes: `begin` for all of
     * them, then `turn` (NULL: none), then `again` for all of them, which adds to the last
     * accumulator only. `begin` takes a partial result as it takes an element. NULL: there is no
     * such form. */
    void (*begin)(CiBuild *b, int lanes, int *acc, const int *lifted);
    void (*turn)(CiBuild *b, int lanes, int *acc);
    void (*again)(CiBuild *b, int lanes, int *acc, const int *lifted);
} CiReduction;

const CiReduction *ci_reduction_of(CiOp fold);
/* The initial value of accumulator k. */
CiConst ci_reduction_identity(CiOp fold, int k, CiDtype dtype);

/* A bool of argmax and argmin: value is more extreme than best. */
int ci_reduction_is_better(CiBuild *b, CiOp fold, int lanes, int best, int value);

/* The result of a reduction without elements: of a sum +0, although its initial value is -0. */
CiConst ci_reduction_of_nothing(CiOp fold, int k, CiDtype dtype);

#endif
