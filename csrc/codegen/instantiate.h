/* Copies a body with its symbols replaced, in one or several lanes. Passes that vectorize, unroll, tile or distribute a loop
 * enter new loops by the functions here and copy the old loop's body into them. */
#ifndef CI_CODEGEN_INSTANTIATE_H
#define CI_CODEGEN_INSTANTIATE_H

#include "ir/proc.h"

/* How ci_build_at copies a body. */
typedef struct CiAt {
    int count; /* symbols of the body (`from`), and the expressions that replace them (`to`) */
    const CiExpr *const *from, *const *to;
    const CiExpr *lane_var; /* the symbol of `from` that increases by 1 from lane to lane; NULL: the copy has one lane */
    int lanes;
    const CiExpr *live; /* number of live lanes, the first ones; NULL: all lanes */
    int parts; /* vectors: each statement is copied once per vector, before the next statement; 0: one vector */
} CiAt;

/* Copies the statements of a body with fresh values. Values that depend on the lane variable, or
 * are read from memory that does, become vectors; memory that the body allocates for them gets a
 * lane dimension. Returns the values of the yield, all with the same number of lanes, or NULL. */
const int *ci_build_at(CiBuild *b, const CiStmts *body, const CiAt *at);
/* Copies one iteration of a loop, with its variable replaced by `at`. */
const int *ci_build_iteration(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *at);
/* Copies `count` iterations of a loop from `first` on: each statement for all iterations, then the next statement
 * (unroll and jam: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001). */
void ci_build_jammed(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *first, int count);
/* A loop that has been entered. `first` is the first iteration of a group (or the iteration of a remainder loop),
 * `done` the number of iterations that the whole groups run, `outside` the block around the loop. */
typedef struct CiGroups {
    const CiExpr *first, *done;
    CiStmts *outside;
} CiGroups;
/* Enters a loop over the whole groups of `size` iterations among `count`. */
CiGroups ci_build_groups(CiBuild *b, const char *stem, const CiExpr *count, int64_t size);
/* Enters the remainder loop, over the iterations from `done` to `count`. */
CiGroups ci_build_left(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *done);
/* A piece of a loop: `count` iterations from `first` on. `outside` is the block around the loop over pieces. */
typedef struct CiPiece {
    const CiExpr *first, *count;
    CiStmts *outside;
} CiPiece;
/* Enters a loop over pieces of `size` iterations; the last piece may have fewer. */
CiPiece ci_build_pieces(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *size, CiRunMode run);
/* for i<n {…}  ->  for t<ceildiv(n, size) parallel {…}. Returns the iterations of one t; the caller rewrites the body. */
CiPiece ci_build_tiles(CiBuild *b, const char *stem, CiStmt *loop, int64_t size);
/* The number of iterations in the piece that starts at `first`: `size`, or fewer in the last one. */
const CiExpr *ci_build_piece_count(CiBuild *b, const CiExpr *count, const CiExpr *first, const CiExpr *size);
/* transpose.c: transposes n vectors of n lanes: lane l of vector k becomes lane k of vector l. */
#define CI_TRANSPOSE_LANES 16
void ci_build_transpose(CiBuild *b, CiType type, int *values);
/* for i<n parallel {…}  ->  for i<n parallel runs m { for j<m {…} }. Returns the inner loop. */
CiStmt *ci_build_run_together(CiBuild *b, CiStmt *points, CiRunMode run);

#endif
