/* Trips of a loop that need nothing of each other. */
#ifndef CI_CODEGEN_APART_H
#define CI_CODEGEN_APART_H

#include "base/map.h"
#include "ir/proc.h"

/* Different trips store different elements of memory that is not a trip's own, or combine there
 * atomically, and read of it what they store themselves. */
bool ci_trips_are_apart(const CiBuild *b, const CiStmt *loop);
/* The same of the points of a kernel, which touch nothing of each other: nothing asks for an order. */
bool ci_points_are_apart(const CiBuild *b, const CiStmt *loop);
/* Variables of loops whose trips come one after another: a set. */
CiMap *ci_find_ordered_loops(CiContext *ctx, const CiProc *proc);

#endif
