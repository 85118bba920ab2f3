/* Cost estimates for fusion, threads, splits, trees and offloading.
 *
 * A count that depends on unknown sizes is its known part times a number of unknown factors. It has
 * a least, a likely and a highest value, and two counts can be compared. */
#ifndef CI_ANALYSIS_COST_H
#define CI_ANALYSIS_COST_H

#include "ir/loop.h"

/* The number of elements assumed for an unknown size. */
#define CI_LIKELY_SIZE 1024

typedef struct CiAmount {
    int64_t low;
    int64_t known; /* upper bound of the known factors */
    int unknowns;  /* number of unknown factors */
} CiAmount;

CiAmount ci_amount(int64_t count);
CiAmount ci_amount_times(CiAmount a, CiAmount b);
CiAmount ci_amount_of(CiAmount count, const CiExpr *extent); /* count times the extent */
CiAmount ci_amount_plus(CiAmount a, CiAmount b);
CiAmount ci_amount_max(CiAmount a, CiAmount b);
int64_t ci_amount_high(CiAmount a);   /* CI_INFINITY: no bound is known */
int64_t ci_amount_likely(CiAmount a); /* at most CI_INFINITY */

/* The number of points of a nest. */
CiAmount ci_iterations_of_nest(const CiNest *nest);
/* The bytes that an access of the nest touches, each element counted once. */
CiAmount ci_cost_of_access(const CiNest *nest, const CiBuffer *buffer, const CiExpr *index);
/* The iterations of the most deeply nested statement, times `around`. */
CiAmount ci_cost_of_items(const CiItems *items, CiAmount around);
CiAmount ci_cost_of_buffer(const CiBuffer *buffer); /* in bytes */

#endif
