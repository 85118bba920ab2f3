/* Accesses of nests to elements of arrays, and proofs that two of them touch different elements. Lowering, passes over loops,
 * the scheduler and codegen collect and compare accesses by these functions. */
#ifndef CI_ANALYSIS_ACCESS_H
#define CI_ANALYSIS_ACCESS_H

#include "ir/loop.h"

/* ---- accesses: access.c ---- */

/* The store of a nest, or one of its loads. */
typedef struct CiNestAccess {
    CiNest *nest;
    CiScalar *load; /* NULL: the store */
    CiBuffer *buffer;
    const CiExpr *index;
} CiNestAccess;

/* Advances to the next access of a nest, the store first: for (CiNestAccess at = {0};
 * ci_nest_next_access(nest, &at);). False after the last one, and for no nest (NULL). */
bool ci_nest_next_access(const CiNest *nest, CiNestAccess *at);

typedef struct CiAccesses {
    CiNestAccess *list;
    int count, capacity, nstores;
} CiAccesses;
/* Accesses of all nests in the items, regions included, in program order. Scalar inputs, which nothing
 * stores, are left out. */
CiAccesses ci_items_accesses(CiContext *ctx, const CiItems *items);

/* True if the coefficient of the variable in the index is -1, 0 or 1: along it, accesses are contiguous or to one
 * element. */
bool ci_is_near_along(CiSym *sym, const CiExpr *index, const CiExpr *var);

/* ---- proofs: disjoint.c ---- */

/* A block of a region, inside other blocks. The program's block has no scope (NULL). */
typedef struct CiLoopScope {
    const CiRegion *region;
    const struct CiLoopScope *outer;
} CiLoopScope;

/* True if the symbol is the variable of a loop around the block. */
bool ci_is_loop_variable(const CiLoopScope *scope, const CiExpr *symbol);

/* Points of loops, whose accesses are compared. */
typedef struct CiPoints {
    CiSym *sym;
    const CiLoopScope *scope; /* loops around all points: their variables do not change */
    const CiExpr *vars[CI_MAX_RANK], *extents[CI_MAX_RANK];
    int count;
} CiPoints;
void ci_add_points(CiPoints *points, const CiExpr *var, const CiExpr *extent);
/* Two elements of one buffer, addressed by a and b: NULL if they can be the same element only at
 * the same point, else the reason. */
const char *ci_why_points_overlap(const CiPoints *points, const CiExpr *a, const CiExpr *b);

/* True if no element that a nest of the loop stores is accessed at another point, in any iteration. The body of
 * the loop is nests. */
bool ci_stores_are_of_points(CiContext *ctx, const CiPoints *points, const CiRegion *loop);

/* True if `count` elements from a on and `others` from b on are disjoint, by the range of the distance. */
bool ci_runs_are_disjoint(CiSym *sym, const CiExpr *a, int64_t count, const CiExpr *b, int64_t others);
/* True if a and b differ by a constant above `reach`. Then they also differ at two points whose offsets differ by at most
 * `reach`. */
bool ci_is_beyond_reach(CiSym *sym, const CiExpr *a, const CiExpr *b, int64_t reach);

/* Expressions that are at least 0 where accesses are compared. */
#define CI_MAX_FACTS 24
typedef struct CiFacts {
    const CiExpr *list[CI_MAX_FACTS];
    int count;
} CiFacts;
/* Adds the fact that a loop of this extent has at least one iteration. Facts beyond CI_MAX_FACTS are dropped. */
void ci_add_iteration(CiSym *sym, CiFacts *facts, const CiExpr *extent);
/* True if a and b are never the same element. Proofs divide by the strides of the buffer, or, if it is
 * NULL, by those of the variables in a. facts may be NULL. */
bool ci_elements_are_disjoint(CiSym *sym, const CiBuffer *buffer, const CiExpr *a, const CiExpr *b, const CiFacts *facts);
/* Returns the index with each of the symbols replaced by a new one of the same range, for the comparison of two points. */
const CiExpr *ci_at_other_point(CiContext *ctx, CiSym *sym, const CiExpr *index, int count, const CiExpr *const *symbols);

#endif
