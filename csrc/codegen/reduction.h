/* The table of reductions: for each, the functions that emit code for its accumulators, in any order and on any
 * machine. */
#ifndef CI_CODEGEN_REDUCTION_H
#define CI_CODEGEN_REDUCTION_H

#include "ir/proc.h"

#define CI_MAX_ACCUMULATORS 3

typedef struct CiReduction {
    int count; /* accumulators */
    CiConst (*identity)(CiOp fold, int k, CiDtype dtype);
    /* The accumulators of a single element. NULL: the element, and its position if there are two accumulators. */
    void (*lift)(CiBuild *b, int element, int *lifted);
    /* Combines the accumulators with one more element. acc and lifted have the same lanes. */
    void (*step)(CiBuild *b, CiOp fold, int lanes, int *acc, const int *lifted);
    /* Combines two partial results into acc; `later` covers the elements after those of acc. */
    void (*combine)(CiBuild *b, CiOp fold, int lanes, int *acc, const int *later);
    /* A cheaper algorithm in two passes, for elements that are in registers: `begin` for each element, `turn` once
     * (NULL: not needed), then `again` for each element, which changes the last accumulator only. `begin` also accepts
     * a partial result as its element. NULL: the reduction has no such algorithm. */
    void (*begin)(CiBuild *b, int lanes, int *acc, const int *lifted);
    void (*turn)(CiBuild *b, int lanes, int *acc);
    void (*again)(CiBuild *b, int lanes, int *acc, const int *lifted);
} CiReduction;

const CiReduction *ci_reduction_of(CiOp fold);
/* The initial value of accumulator k. */
CiConst ci_reduction_identity(CiOp fold, int k, CiDtype dtype);

/* For argmax and argmin: emits the bool `value is more extreme than best`. */
int ci_reduction_is_better(CiBuild *b, CiOp fold, int lanes, int best, int value);

/* The result of a reduction of no elements. It may differ from the initial value: a sum starts at -0 and is +0. */
CiConst ci_reduction_of_nothing(CiOp fold, int k, CiDtype dtype);

#endif
