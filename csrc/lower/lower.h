/* Graph -> loops, define-by-run: each op is an inner function that emits the scalar value at an
 * index. */
#ifndef CI_LOWER_LOWER_H
#define CI_LOWER_LOWER_H

#include "ir/loop.h"
#include "ir/target.h"

typedef struct CiLowerOptions {
    int inline_limit; /* ops a body may reach before a value gets a buffer */
    const CiTarget *target; /* whose thresholds decide; NULL: nothing is done that one would have to be worth */
    bool own_order;        /* folds of floats are in our own order, not in NumPy's */
    bool is_online;        /* and dependent reductions of long rows may be one pass */
    bool shortens_results; /* what leaves the program may be the first elements of its memory */
    /* Arguments are in the memory of devices, which do these library calls themselves (NULL: none); the
     * host does the others, with copies, each of one dense run of bytes. */
    bool packs_operands;
    bool (*takes_extern)(const CiExternItem *item);
    /* True for operations that threads may combine at one element in any order; NULL: none. */
    bool (*has_atomic)(CiOp op, CiDtype dtype);
} CiLowerOptions;

CiLoops *ci_lower(CiGraph *graph, const CiLowerOptions *options);

#endif
