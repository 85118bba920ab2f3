/* Shared declarations of the files that distribute points over blocks of threads. */
#ifndef CI_CODEGEN_BLOCKS_H
#define CI_CODEGEN_BLOCKS_H

#include "base/map.h"
#include "codegen/grid.h"
#include "codegen/reducer.h"

typedef struct CiBlocks {
    CiReducer r;
    int64_t bytes;  /* of shared memory, so far */
    CiMap *touched; /* memory -> how many statements name it */
    CiMap *dropped; /* memory that one thread has for itself instead */
    int least;      /* elements that are worth sharing */
    int lanes;      /* of the loop or fold that is being shared */
    int registers;       /* groups of so many neighbours that a thread takes of a fold at once; of a loop 1 */
    CiDomain domain;
    const CiExpr *from, *count; /* the elements of a fold that are reduced, in order; NULL: all */
    void (*add)(struct CiBlocks *s, const CiExpr *const *to, int lanes);
} CiBlocks;

static inline const CiExpr *
ci_blocks_number(const CiBlocks *s, int64_t value)
{
    return ci_expr_const(s->r.b.sym, value);
}

/* single_thread.c. ci_blocks_count counts the statements that use each memory. ci_blocks_run handles a loop
 * or fold that is not divided among the threads: one thread runs it if its stores are visible to
 * others, otherwise all threads run it. ci_blocks_drop removes registers that became one thread's
 * own from the block. ci_blocks_place places memory that the threads share. */
void ci_blocks_count(CiBlocks *s, const CiStmts *body);
void ci_blocks_run(CiBlocks *s, CiStmt *stmt);
void ci_blocks_drop(CiBlocks *s, CiStmts *body);
void ci_blocks_place(CiBlocks *s, CiMemory *memory);

#endif
