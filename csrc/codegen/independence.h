/* Independence of loop iterations. */
#ifndef CI_CODEGEN_INDEPENDENCE_H
#define CI_CODEGEN_INDEPENDENCE_H

#include "ir/proc.h"

/* True if different iterations store different elements of shared memory, or combine into them
 * atomically, and read only elements that they store themselves. */
bool ci_iterations_are_independent(const CiBuild *b, const CiStmt *loop);
/* Like ci_iterations_are_independent, for the points of a kernel, which need no order because they share no
 * elements. */
bool ci_points_are_disjoint(const CiBuild *b, const CiStmt *loop);

#endif
