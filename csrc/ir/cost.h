/* What work comes to, for everybody who estimates: fusion, threads, splits, trees, offloading.
 *
 * A count of which sizes are not known is what is known of it times some factors that are not. So
 * it has a least value, a likely one and a highest one, and two of them can be compared. */
#ifndef CI_IR_COST_H
#define CI_IR_COST_H

#include "ir/loop.h"

/* A size that is not known is likely of that many elements. */
#define CI_LIKELY_SIZE 1024

typedef struct CiAmount {
    int64_t low;
    int64_t known; /* at most, all factors that are not known left out */
    int unknowns;  /* how many these are */
} CiAmount;

CiAmount ci_amount(int64_t count);
CiAmount ci_amount_times(CiAmount a, CiAmount b);
CiAmount ci_amount_of(CiAmount count, const CiExpr *extent); /* count times the extent */
CiAmount ci_amount_plus(CiAmount a, CiAmount b);
CiAmount ci_amount_max(CiAmount a, CiAmount b);
int64_t ci_amount_high(CiAmount a);   /* CI_INFINITY: no bound is known */
int64_t ci_amount_likely(CiAmount a); /* at most CI_INFINITY */

/* What a nest does in all its points: bytes of memory that it touches, each once; scalar operations
 * but loads; points. */
typedef struct CiCost {
    CiAmount bytes, flops, trips;
} CiCost;

CiCost ci_cost_of_nest(const CiNest *nest);
/* What an access of the nest touches, each element once. */
CiAmount ci_cost_of_access(const CiNest *nest, const CiBuffer *buffer, const CiExpr *index);
/* The trips of the deepest statement, times those around. */
CiAmount ci_cost_of_items(const CiItems *items, CiAmount around);
CiAmount ci_cost_of_buffer(const CiBuffer *buffer); /* its bytes */

#endif
