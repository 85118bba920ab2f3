/* Estimated seconds of a graph in NumPy and Python, and of its build. They only decide whether NumPy or a program
 * runs a call. */
#ifndef CI_IR_PLAIN_H
#define CI_IR_PLAIN_H

#include "ir/graph.h"

/* Returns the numbers of a call's sizes. */
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
/* For the machine of the constants: the caller multiplies by the ratio that it has measured. */
double ci_build_seconds(const CiGraph *graph);

#endif
