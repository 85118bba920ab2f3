/* Estimates of the seconds that a graph takes in NumPy and Python, and that its compilation takes. They only decide whether
 * NumPy or the compiled program runs a call. */
#ifndef CI_IR_PLAIN_H
#define CI_IR_PLAIN_H

#include "ir/graph.h"

/* The values of symbolic sizes in one call. */
typedef struct CiSizes {
    double (*of)(const struct CiSizes *sizes, const CiExpr *e);
    double unknown_iterations; /* assumed iterations of a loop with an unknown number of them */
    enum {
        CI_COUNT_calls,      /* as the original makes them (CiLoc.call) */
        CI_COUNT_operations, /* of the graph, also where they stand for one call */
        CI_COUNT_callbacks,  /* library calls of code that is not compiled: no program is faster */
    } counted;
} CiSizes;

double ci_plain_seconds(const CiGraph *graph, const CiSizes *sizes);
/* Seconds on the machine on which the constants were measured. The caller multiplies them by the measured ratio of this
 * machine. */
double ci_build_seconds(const CiGraph *graph);

#endif
