/* Shared declarations of the files that give each point of a kernel to one block of threads (blocks.c, single_thread.c). */
#ifndef CI_CODEGEN_BLOCKS_H
#define CI_CODEGEN_BLOCKS_H

#include "base/map.h"
#include "codegen/grid.h"
#include "codegen/reducer.h"

typedef struct CiBlocks {
    CiReducer r;
    int64_t bytes;  /* shared memory allocated so far */
    CiMap *touched; /* memory -> number of statements that use it */
    CiMap *dropped; /* set: memory that became private to one thread */
    int least;      /* fewer elements than this are not distributed */
    int lanes;      /* lanes per access of the loop or fold being distributed */
    int registers;       /* groups of `lanes` elements that a thread folds at once; 1 for a loop */
    CiDomain domain;
    const CiExpr *from, *count; /* range of elements folded now, for a fold in order; NULL: all elements */
    void (*add)(struct CiBlocks *s, const CiExpr *const *to, int lanes);
} CiBlocks;

static inline const CiExpr *
ci_blocks_number(const CiBlocks *s, int64_t value)
{
    return ci_expr_const(s->r.b.sym, value);
}

/* single_thread.c. Counts the statements that use each memory. */
void ci_blocks_count(CiBlocks *s, const CiStmts *body);
/* Emits a loop or fold that is not distributed. One thread runs it if other threads see its stores; otherwise
 * every thread runs it. */
void ci_blocks_run(CiBlocks *s, CiStmt *stmt);
/* Removes the allocations of memory that became private to one thread. */
void ci_blocks_drop(CiBlocks *s, CiStmts *body);
/* Chooses the space of memory that the threads share. */
void ci_blocks_place(CiBlocks *s, CiMemory *memory);

#endif
