/* Shared declarations of the passes for blocks and threads: domains, the number of neighbours that
 * a thread takes, the number of threads that share a domain. */
#ifndef CI_CODEGEN_GRID_H
#define CI_CODEGEN_GRID_H

#include "codegen/codegen.h"

/* Perfectly nested loops, outermost first, and the body of the innermost. */
typedef struct CiDomain {
    const CiExpr *vars[CI_MAX_FOLD_AXES], *extents[CI_MAX_FOLD_AXES];
    int count;
    CiStmts body;
} CiDomain;

/* domain.c. The domain of a nest of loops, or of a fold. */
CiDomain ci_domain_of(const CiStmt *stmt);
/* Contiguous elements along the last axis that one access loads or stores; 1 if accesses are scalar. The extent of
 * the last axis is a multiple of this number, unless the domain has only one axis. */
int ci_domain_lanes(const CiBuild *b, const CiDomain *domain);
/* Like ci_domain_lanes, but a thread may run the elements of a group in order and carry its state from one to
 * the next. */
int ci_domain_running_lanes(const CiBuild *b, const CiDomain *domain);
/* The number of whole groups of `lanes` elements; true if no element is left over. */
const CiExpr *ci_domain_count(CiSym *sym, const CiDomain *domain, int lanes);
bool ci_domain_is_whole(CiSym *sym, const CiDomain *domain, int lanes);
/* Computes the variables of the first element of a group. */
void ci_domain_decode(CiBuild *b, const CiDomain *domain, const CiExpr *number, int lanes,
                      const CiExpr **to);
/* Emits the body with the variables replaced by `to`, in `lanes` lanes. */
void ci_domain_add(CiBuild *b, const CiDomain *domain, const CiExpr *const *to, int lanes);
/* True if the body allocates memory that the threads of a block share. */
bool ci_domain_has_scratch(const CiDomain *domain);
/* True if each thread runs a small, constant number of groups, so that its loop is unrolled. */
bool ci_domain_unrolls(const CiBuild *b, const CiDomain *domain, int lanes, int threads);

/* Enters a loop over the threads of a block. Returns its variable. */
const CiExpr *ci_domain_enter_threads(CiBuild *b, int threads);
/* Enters a loop over pairs of threads, x and y. Returns the block around it. */
CiStmts *ci_domain_enter_pairs(CiBuild *b, CiRunMode run, int threads, const CiExpr **x,
                               const CiExpr **y);

/* columns.c: gives neighbouring points to one block, and a group of its threads to each point. False if the points
 * do not have the shape that this needs. */
bool ci_share_columns(CiBuild *b, const CiDomain *points);
/* privatize_atomics.c: the threads of a block combine into the block's shared memory before they combine into the
 * array. Changes the points' body; false if this does not pay off. */
bool ci_share_histogram(CiBuild *b, CiDomain *points);
/* blocks.c: gives each point to one block, and distributes the point's loops and folds over the block's threads.
 * False if no loop or fold is long enough. */
bool ci_share_rows(CiBuild *b, const CiDomain *points);

#endif
