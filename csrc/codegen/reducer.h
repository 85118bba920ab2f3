/* What the files of the pass `reduce` share. */
#ifndef CI_CODEGEN_REDUCER_H
#define CI_CODEGEN_REDUCER_H

#include "codegen/at.h"
#include "codegen/codegen.h"

typedef struct CiReducer {
    CiBuild b;
    const CiFamily *family;
    bool is_in_lanes; /* of a loop around */
    const CiStmt *fold;
    CiStmts body; /* over `var` alone */
    const CiExpr *var, *extent;
    const CiExpr *first, *length; /* point number of the first element; points of the whole fold */
    int width, lanes;             /* of accumulators; of a vector of them: the width, or 1 */
    CiMemory **acc;               /* per accumulator, width / lanes vectors */
    CiMemory **sums;              /* of those whose order is told: of the block that is closed */
    CiMemory **pending, *depth;
    /* Of a fold over several axes, where a block of it is brought together: per accumulator. */
    CiMemory **strips;
    const int *lifted; /* what a body has yielded */
} CiReducer;

static inline const CiExpr *
ci_reduce_number(CiReducer *r, int64_t value)
{
    return ci_expr_const(r->b.sym, value);
}

/* reduce_counter.c. Is the order of a reduction told? at: its first accumulator's number. */
bool ci_reduce_is_ordered(const CiReducer *r, CiOp fold, int at);
void ci_reduce_alloc(CiReducer *r, CiMemory ***to, const char *stem, int lanes, CiSpace space,
                     int64_t size);
void ci_reduce_load(CiReducer *r, int *values, CiMemory *const *from, int count, const CiExpr *at,
                    int lanes);
void ci_reduce_store(CiReducer *r, CiMemory *const *to, int count, const CiExpr *at,
                     const int *values, const CiExpr *live);
/* Calls emit for each reduction that is asked for, with the number of its first accumulator. */
void ci_reduce_each(CiReducer *r, bool ordered, bool free_ones,
                    void (*emit)(CiReducer *r, CiOp fold, int at, int count));
/* No blocks yet. A block that is whole meets its neighbours (carry) and becomes the latest (push);
 * all of them become the sums of the fold. */
void ci_counter_open(CiReducer *r);
void ci_counter_carry(CiReducer *r, const CiExpr *block);
void ci_counter_push(CiReducer *r);
void ci_counter_close(CiReducer *r, const CiExpr *block);
void ci_counter_join(CiReducer *r);

/* reduce_axes.c: several axes as one. A variable that counts the points of all of them. */
void ci_reduce_flatten(CiReducer *r);
/* Memory for that many elements, where reading them one by one would divide for each; else none. */
void ci_reduce_alloc_strips(CiReducer *r, int64_t size);
/* Elements from `first` on come into the strips, and are what the body reads from now on. */
void ci_reduce_fill_strips(CiReducer *r, const CiExpr *first, const CiExpr *count);

#endif
