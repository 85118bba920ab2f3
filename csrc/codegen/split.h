/* Shared declarations of the files that split a proc in two: one for the chunks of a fold or scan, one that combines
 * their partial results. */
#ifndef CI_CODEGEN_SPLIT_H
#define CI_CODEGEN_SPLIT_H

#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef struct CiSplitter {
    CiBuild b;
    CiStmt *loops[CI_MAX_FOLD_AXES]; /* loops over points, around the fold */
    int nloops;
    CiStmts *inside;            /* the block that contains the fold */
    const CiExpr *chunks, *chunk; /* number of chunks of a fold; index of the current one */
    const CiExpr *size;         /* elements per chunk; NULL: a chunk is a subtree */
    bool has_own_order;         /* the fold's order is free: a chunk need not be a block of it */
    int npartials;
} CiSplitter;

/* The points of the current chunk of a fold: returns their number and sets *first to the first one. */
const CiExpr *ci_split_chunk_of(CiSplitter *s, const CiStmt *fold, const CiExpr **first);
/* Replaces a fold by a fold over `count` points from `first` on (NULL: over the current chunk). It stores its results
 * to the partials with the numbers from s->npartials on. */
void ci_split_fold_chunk(CiSplitter *s, CiStmt *fold, const CiExpr *first, const CiExpr *count);
/* Replaces a fold by a fold over the partial results of its chunks. */
void ci_split_fold_sums(CiSplitter *s, CiStmt *fold);
/* split_proc.c: adds a second proc of the same kernel, with an empty body. Its values have the same numbers as those of
 * the first proc. */
CiProc *ci_split_new_finish(CiProcs *procs, const CiProc *proc);
/* Adds the parameter for the partial results with that number: `positions` elements. */
CiMemory *ci_split_add_partial(CiBuild *b, CiDtype dtype, const CiExpr *positions, int number);
/* reduce_search.c: true if the first true (or first false) element decides the result, and not reading the elements
 * after it has no visible effect. */
bool ci_fold_is_search(const CiStmt *fold);
/* True if the search stops at a true element, false if at a false one. */
bool ci_search_is_for_true(const CiStmt *fold);

#endif
