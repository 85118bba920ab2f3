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
/* split_scan.c: makes two procs of a loop that scans or packs. */
void ci_split_running(CiBuild *b);

/* ---- partial_scan.c: a loop that scans or packs, in chunks ---- */

#define CI_MAX_CELLS 16

/* A value that is carried from element to element. */
typedef struct CiCell {
    CiMemory *memory;
    CiOp fold, scan; /* sum, cumsum; of a pack, which counts, too */
    int value;       /* what an element adds: that of a scan, the mask of a pack */
    bool is_count;
    const CiExpr *position;         /* of an element; NULL: it counts from the cell's start */
    CiMemory *partials, *before, *own; /* scans.c: of the threads of a block */
} CiCell;

/* The value of a scan, or of a pack the mask. */
int ci_cell_operand(const CiStmt *stmt);
/* The cells of a body's scans and packs; returns how many. */
int ci_cells_find(CiContext *ctx, const CiStmts *body, CiCell *cells);
/* The values of a body that do not depend on cells; the yield at the end is what cells add. */
CiStmts ci_cells_lift(const CiBuild *b, const CiStmts *body, const CiCell *cells, int ncells);

typedef struct CiRunner {
    CiBuild b;
    CiStmt *loop;
    const CiExpr *chunks, *chunk;  /* number of chunks; index of the current one */
    const CiExpr *first, *count; /* elements of the current chunk, set by ci_running_begin_chunk */
    CiCell cells[CI_MAX_CELLS];
    int ncells;
} CiRunner;

CiRunner ci_running_find(const CiBuild *b);
/* Adds a loop over chunks to the empty body of r->b.proc, and enters the loop's body. */
void ci_running_begin_chunk(CiRunner *r);
/* Emits the totals of a chunk: one register per cell. */
CiMemory **ci_running_add_totals(CiRunner *r);
/* Moves the statements before the loop; returns those after it. */
CiStmts ci_running_move_front(CiRunner *r, CiStmts *whole);
/* The loop over the chunk's elements. */
void ci_running_pass(CiRunner *r);
/* Emits the statements after the loop, which the last part executes. */
void ci_running_end(CiRunner *r, CiStmts rest);

#endif
