/* What the files that split procs share. */
#ifndef CI_CODEGEN_SPLIT_H
#define CI_CODEGEN_SPLIT_H

#include "codegen/at.h"
#include "codegen/codegen.h"

typedef struct CiSplitter {
    CiBuild b;
    const CiKernel *kernel;
    CiStmt *loops[CI_MAX_FOLD_AXES]; /* over points */
    int nloops;
    CiStmts *inside;            /* where the fold stands */
    const CiExpr *parts, *part; /* how many a fold has; this one */
    const CiExpr *size;         /* elements of one; NULL: a subtree */
    bool has_own_order;         /* parts need be no blocks of the fold's order */
    int npartials;
} CiSplitter;

/* The points of this part of a fold: the first, and how many. */
const CiExpr *ci_split_part_of(CiSplitter *s, const CiStmt *fold, const CiExpr **first);
/* In the place of a fold: it over `count` points from `first` on (NULL: this part's), its sums to where they are kept, from number
 * `npartials` on; and it over what parts have left. */
void ci_split_fold_part(CiSplitter *s, CiStmt *fold, const CiExpr *first, const CiExpr *count);
void ci_split_fold_sums(CiSplitter *s, CiStmt *fold);
/* split_proc.c. A proc of the same kernel, its body still empty, values numbered as in the first.
 */
CiProc *ci_split_new_finish(CiProcs *procs, const CiProc *proc);
/* Parameter number `number` of what units leave: an element for each place. */
CiMemory *ci_split_add_partial(CiBuild *b, CiDtype dtype, const CiExpr *places, int number);
/* stop.c: nobody sees whether all of its elements are looked at, where fewer decide. */
bool ci_fold_may_stop(const CiStmt *fold);
/* split_running.c: a loop that scans or packs. */
void ci_split_running(CiProcs *procs, CiProc *proc, const CiFamily *family);

#endif
