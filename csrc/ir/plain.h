/* How long NumPy and Python take for what a graph does, and a compiler for the graph: estimates, by
 * which nothing but who answers is decided. */
#ifndef CI_IR_PLAIN_H
#define CI_IR_PLAIN_H

#include "ir/graph.h"

/* Sizes as the caller knows them. */
typedef struct CiSizes {
    double (*of)(const struct CiSizes *sizes, const CiExpr *e);
    double unknown_trips; /* of a loop that nothing is known of */
} CiSizes;

double ci_plain_seconds(const CiGraph *graph, const CiSizes *sizes);
/* On the machine that the figures are from: the caller multiplies by what was measured since. */
double ci_build_seconds(const CiGraph *graph);

#endif
