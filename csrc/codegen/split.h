/* Shared declarations of the files that split procs. */
#ifndef CI_CODEGEN_SPLIT_H
#define CI_CODEGEN_SPLIT_H

#include "codegen/instantiate.h"
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
/* early_exit.c: true if the result may be known before all elements are read, and stopping has no visible
 * effect. */
bool ci_fold_may_stop(const CiStmt *fold);
/* split_scan.c: a loop that scans or packs, as two procs. */
void ci_split_running(CiProcs *procs, CiProc *proc);

/* ---- partial_scan.c: a loop that scans or packs, in parts ---- */

#define CI_MOST_CELLS 16

/* A value that is carried from element to element. */
typedef struct CiCell {
    CiMemory *memory;
    CiOp fold; /* sum of cumsum; of a pack, which counts */
    int value; /* what an element adds: that of a scan, the mask of a pack */
    bool is_count;
} CiCell;

typedef struct CiRunner {
    CiBuild b;
    const CiKernel *kernel;
    CiStmt *loop;
    const CiExpr *parts, *part;   /* how many there are; this one */
    const CiExpr *first, *count; /* elements of this one, once it is begun */
    CiCell cells[CI_MOST_CELLS];
    int ncells;
} CiRunner;

CiRunner ci_running_find(CiProcs *procs, CiProc *proc);
/* In r->b.proc, whose body is empty: a loop over parts, into whose body what is built next goes. */
void ci_running_begin_part(CiRunner *r);
/* Emits the totals of a part: one register per cell. */
CiMemory **ci_running_add_totals(CiRunner *r);
/* Moves the statements before the loop; returns those after it. */
CiStmts ci_running_move_front(CiRunner *r, CiStmts *whole);
/* The loop over the part's elements. */
void ci_running_walk(CiRunner *r);
/* Emits the statements after the loop, which the last part executes. */
void ci_running_end(CiRunner *r, CiStmts rest);

#endif
