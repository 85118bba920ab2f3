/* Graph -> loops, define-by-run: each op is an inner function that emits the scalar value at an
 * index. */
#ifndef CI_LOWER_LOWER_H
#define CI_LOWER_LOWER_H

#include "ir/loop.h"
#include "ir/target.h"

typedef struct CiLowerOptions {
    int inline_limit; /* ops a body may reach before a value gets a buffer */
    int64_t frame_bytes; /* of an array from which on a copy leaves out what is overwritten */
    bool own_order;   /* folds of floats are in our own order, not in NumPy's */
    /* Of a row from which on what is folded of it twice is folded in one walk: squares, exponentials;
     * 0: never. */
    int64_t online_bytes, online_exp_bytes;
    bool shortens_results; /* what leaves the program may be the first elements of its memory */
    const CiTarget *target; /* whose thresholds say which scans are in parts; NULL: none are */
    /* Arguments are in the memory of devices, which do these library calls themselves (NULL: none); the
     * host does the others, with copies, each of one dense run of bytes. */
    bool packs_operands;
    bool (*takes_extern)(const CiExternItem *item);
    /* What threads may combine at one element at once, in no order; NULL: nothing. */
    bool (*has_atomic)(CiOp op, CiDtype dtype);
} CiLowerOptions;

CiLoops *ci_lower(CiGraph *graph, const CiLowerOptions *options);

#endif
