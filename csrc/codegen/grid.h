/* Shared declarations of the passes for blocks and threads: domains, the number of neighbours that
 * a thread takes, the number of threads that share a domain. */
#ifndef CI_CODEGEN_GRID_H
#define CI_CODEGEN_GRID_H

#include "codegen/codegen.h"

/* Loops one in the other, outer ones first, and what is inside. */
typedef struct CiDomain {
    const CiExpr *vars[CI_MAX_FOLD_AXES], *extents[CI_MAX_FOLD_AXES];
    int count;
    CiStmts body;
} CiDomain;

/* domain.c. The loop, or the loops of a fold. */
CiDomain ci_domain_of(const CiStmt *stmt);
/* Neighbours along the last axis that one access moves: 1 where none does. That axis is
 * made of whole groups of them, or is the only one. */
int ci_domain_lanes(const CiBuild *b, const CiDomain *domain);
/* Like ci_domain_lanes, for neighbours that may run in order, so that a thread carries its state
 * from one to the next. */
int ci_domain_running_lanes(const CiBuild *b, const CiDomain *domain);
/* Whole groups of so many neighbours. */
const CiExpr *ci_domain_count(CiSym *sym, const CiDomain *domain, int lanes);
bool ci_domain_is_whole(CiSym *sym, const CiDomain *domain, int lanes);
/* The variables at group number `number`. */
void ci_domain_decode(CiBuild *b, const CiDomain *domain, const CiExpr *number, int lanes,
                      const CiExpr **to);
void ci_domain_add(CiBuild *b, const CiDomain *domain, const CiExpr *const *to, int lanes);
/* A point has memory that the threads of a block share. */
bool ci_domain_has_scratch(const CiDomain *domain);
/* True if the rounds of the threads are few, and their number is known, so that they are unrolled. */
bool ci_domain_unrolls(const CiBuild *b, const CiDomain *domain, int lanes, int threads);

/* Enters a loop over the threads of a block. Returns its variable. */
const CiExpr *ci_domain_enter_threads(CiBuild *b, int threads);
/* Enters a loop over pairs of threads, x and y. Returns the block around it. */
CiStmts *ci_domain_enter_pairs(CiBuild *b, CiRunMode run, int threads, const CiExpr **x,
                               const CiExpr **y);

/* columns.c: neighbouring points are a block's, each of which has a group of threads. False where
 * this is no form of it. */
bool ci_share_columns(CiBuild *b, const CiDomain *points);
/* privatize_atomics.c: threads of a block combine in memory of their own first. Changes the points' body; false
 * where it is not worth it. */
bool ci_share_histogram(CiBuild *b, CiDomain *points);
/* blocks.c: each point is a block's, whose threads share out what is inside. False where nothing is
 * worth it. */
bool ci_share_rows(CiBuild *b, const CiDomain *points);

#endif
