/* A body instantiated at an index: the one function that vectors, folds and versions are loops
 * around. */
#ifndef CI_CODEGEN_INSTANTIATE_H
#define CI_CODEGEN_INSTANTIATE_H

#include "ir/proc.h"

typedef struct CiAt {
    int count; /* symbols of the body, and what they are here */
    const CiExpr *const *from, *const *to;
    const CiExpr *lane_var; /* one of `from`, which is one more in each lane; NULL: one lane */
    int lanes;
    const CiExpr *live; /* NULL: all lanes */
    int parts; /* vectors side by side, statement by statement; 0: one, and no more yield */
} CiAt;

/* Copies the statements of a body with fresh values. Values that depend on the lane variable, or
 * are read from memory that does, become vectors; memory that the body allocates for them gets a
 * lane dimension. Returns the values of the yield, all with the same number of lanes, or NULL. */
const int *ci_build_at(CiBuild *b, const CiStmts *body, const CiAt *at);
/* One iteration of a loop, with its variable replaced by `at`. */
const int *ci_build_iteration(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *at);
/* `count` iterations of a loop from `first` on, each statement for all of them before the next statement
 * (unroll and jam: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001). */
void ci_build_jammed(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *first, int count);
/* Loops over `count` iterations in groups of `size`, with the body entered: `first` is the number of
 * the first iteration of a group, `done` that of all groups. And over those that are left. */
typedef struct CiGroups {
    const CiExpr *first, *done;
    CiStmts *outside;
} CiGroups;
CiGroups ci_build_groups(CiBuild *b, const char *stem, const CiExpr *count, int64_t size);
CiGroups ci_build_left(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *done);
/* Iterations of a loop, from `first` on. */
typedef struct CiPiece {
    const CiExpr *first, *count;
    CiStmts *outside;
} CiPiece;
/* Loops over `count` iterations in pieces of `size`, of which the last may have fewer, with the body entered. */
CiPiece ci_build_pieces(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *size, CiRunMode run);
/* for i<n {…}  ->  for t<ceildiv(n, size) parallel {…}: the iterations of one t. The body is not changed. */
CiPiece ci_build_tiles(CiBuild *b, const char *stem, CiStmt *loop, int64_t size);
/* How many of `count` iterations a piece of that size has. */
const CiExpr *ci_build_piece_count(CiBuild *b, const CiExpr *count, const CiExpr *first, const CiExpr *size);
/* transpose.c: as many vectors as each has lanes; lane l of vector k becomes lane k of vector l. */
#define CI_TRANSPOSE_LANES 16
void ci_build_transpose(CiBuild *b, CiType type, int *values);
/* for i<n parallel {…}  ->  for i<n parallel runs m { for j<m {…} }; the loop inside. */
CiStmt *ci_build_run_together(CiBuild *b, CiStmt *points, CiRunMode run);

#endif
