/* A body instantiated at an index: the one function that vectors, folds and versions are loops
 * around. */
#ifndef CI_CODEGEN_AT_H
#define CI_CODEGEN_AT_H

#include "ir/proc.h"

typedef struct CiAt {
    int count; /* symbols of the body, and what they are here */
    const CiExpr *const *from, *const *to;
    const CiExpr *lane_var; /* one of `from`, which is one more in each lane; NULL: one lane */
    int lanes;
    const CiExpr *live; /* NULL: all lanes */
    int parts; /* vectors side by side, statement by statement; 0: one, and no more yield */
} CiAt;

/* Statements of a body, fresh values in the place of its own. What depends on the lane variable, or
 * is read from what does, becomes a vector; memory that the body allocates and that holds such has
 * a lane dimension. The values of its yield, all with as many lanes, or NULL. */
const int *ci_build_at(CiBuild *b, const CiStmts *body, const CiAt *at);
/* One trip of a loop, where its variable is `at`. */
const int *ci_build_trip(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *at);
/* turn.c: as many vectors as each has lanes; lane l of vector k becomes lane k of vector l. */
#define CI_TURN_LANES 16
void ci_build_turn(CiBuild *b, CiType type, int *values);
/* for i<n parallel {…}  ->  for i<n parallel runs m { for j<m {…} }; the loop inside. */
CiStmt *ci_build_run_together(CiBuild *b, CiStmt *points, CiRunMode run);

#endif
