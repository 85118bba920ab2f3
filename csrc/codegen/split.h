/* Shared declarations of the files that split procs. */
#ifndef CI_CODEGEN_SPLIT_H
#define CI_CODEGEN_SPLIT_H

#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef struct CiSplitter {
    CiBuild b;
    CiStmt *loops[CI_MAX_FOLD_AXES]; /* over points */
    int nloops;
    CiStmts *inside;            /* the block of the fold */
    const CiExpr *chunks, *chunk; /* number of chunks of a fold; index of the current one */
    const CiExpr *size;         /* elements per chunk; NULL: a chunk is a subtree */
    bool has_own_order;         /* chunks need not be blocks of the fold's order */
    int npartials;
} CiSplitter;

/* The points of the current chunk of a fold: returns the first, and sets how many. */
const CiExpr *ci_split_chunk_of(CiSplitter *s, const CiStmt *fold, const CiExpr **first);
/* Replaces a fold by one over `count` points from `first` on (NULL: over the current chunk), which stores to
 * partials number `npartials` and following. */
void ci_split_fold_chunk(CiSplitter *s, CiStmt *fold, const CiExpr *first, const CiExpr *count);
/* Replaces a fold by one over the partials that its chunks have stored. */
void ci_split_fold_sums(CiSplitter *s, CiStmt *fold);
/* split_proc.c: adds a proc of the same kernel with an empty body, whose values have the numbers of the
 * first one's. */
CiProc *ci_split_new_finish(CiProcs *procs, const CiProc *proc);
/* Adds a parameter for partials of that number, with an element for each place. */
CiMemory *ci_split_add_partial(CiBuild *b, CiDtype dtype, const CiExpr *positions, int number);
/* reduce_search.c: true if the first element that is true, or false, is the result, and reading no further has no
 * visible effect. */
bool ci_fold_is_search(const CiStmt *fold);
bool ci_search_is_for_true(const CiStmt *fold);

#endif
