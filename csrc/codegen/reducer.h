/* Shared declarations of the pass `reduce`. */
#ifndef CI_CODEGEN_REDUCER_H
#define CI_CODEGEN_REDUCER_H

#include "codegen/instantiate.h"
#include "codegen/codegen.h"

/* Blocks of a tree that are added up side by side. */
#define CI_CHAINS 4

typedef struct CiReducer {
    CiBuild b;
    bool is_in_lanes; /* of a loop around */
    const CiStmt *fold;
    CiStmts body; /* over `var` alone */
    const CiExpr *var, *extent;
    const CiExpr *first, *length; /* point number of the first element; points of the whole fold */
    int width, lanes;             /* of accumulators; of a vector of them: the width, or 1 */
    int wide;                     /* pairwise: lanes of a vector of elements */
    CiMemory **acc;               /* per accumulator, width / lanes vectors */
    CiMemory **chains[CI_CHAINS]; /* pairwise: acc of blocks side by side; NULL: there is one */
    CiMemory **sums;              /* of those whose order is told: of the block that is closed */
    CiMemory **pending, *depth;
    /* Of a fold over several axes, where a block of it is brought together: per accumulator. */
    CiMemory **strips;
    CiMemory *from, *end; /* pairwise: the elements that are in them */
    const CiExpr *position;  /* of what is pending, where the sums are left */
    const int *lifted;    /* what a body has yielded */
    const CiExpr *vector; /* of narrow accumulators: a symbol of the body, the number of a vector in */
    const CiExpr *chunk;   /* its part, and the first element of that; NULL: there is none */
    int walk;             /* of a block that is read in two passes: 1 or 2; 0: one pass */
    bool is_in_registers;         /* its elements are in registers; false for partial results */
    /* Of a fold that the threads of a block share: their number, and how far those of one point are apart.
     * The variable of their loop. Per accumulator, an element for each. */
    int threads, apart;
    const CiExpr *thread;
    CiMemory **partials;
} CiReducer;

static inline const CiExpr *
ci_reduce_number(CiReducer *r, int64_t value)
{
    return ci_expr_const(r->b.sym, value);
}

static inline const CiExpr *
ci_reduce_scaled(CiReducer *r, const CiExpr *e, int64_t by)
{
    return ci_expr_mul(r->b.sym, e, ci_reduce_number(r, by));
}

/* accumulators.c. Their start, one more value for each from element `first` on, as far as
 * there are `left` (NULL: all), and all of them as one. */
int ci_reduce_identity(CiReducer *r, CiOp fold, int k, const CiMemory *into, int lanes);
int ci_reduce_lanes_inside(const CiReducer *r, int most); /* of the fold's own, at most so many */
void ci_reduce_alloc_accumulators(CiReducer *r);
void ci_reduce_reset(CiReducer *r, CiOp fold, int at, int count);
void ci_reduce_chain(CiReducer *r, const CiExpr *first, const CiExpr *left);
void ci_reduce_step(CiReducer *r, const CiExpr *first, const CiExpr *row, int lanes,
                    CiMemory *const *acc, const CiExpr *live);
/* Combines the values that a body has yielded, one per lane, with the accumulators in `row`. */
void ci_reduce_take(CiReducer *r, const int *lifted, const CiExpr *row, int lanes,
                    CiMemory *const *acc, const CiExpr *live);
void ci_reduce_halve(CiReducer *r, CiOp fold, int at, int count, int *values);
/* Its two steps: rows of vectors into the first one, and the lanes of `values` into one. */
void ci_reduce_halve_rows(CiReducer *r, CiOp fold, int at, int count);
void ci_reduce_halve_lanes(CiReducer *r, CiOp fold, int count, int *values);
int ci_reduce_plain_zero(CiReducer *r, int value);
/* `count` contiguous elements from `first` on into the accumulators. */
void ci_reduce_chains(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* Some reduction is cheaper in two walks; between them each has its turn. */
bool ci_reduce_has_passes(const CiReducer *r);
void ci_reduce_transpose(CiReducer *r, CiOp fold, int at, int count);
/* Stores the result of an empty fold. */
void ci_reduce_start(CiReducer *r, CiOp fold, int at, int count);

/* reduce_registers.c: elements that a thread holds, a few groups of as many lanes. Does a reduction of the fold gain from having
 * them all at once? Its accumulators then, of how many lanes each is, and the elements into them. */
#define CI_MAX_REGISTER_ROW 16
typedef struct CiRegisterRow {
    const int *lifted[CI_MAX_REGISTER_ROW]; /* what bodies have yielded */
    int count, lanes;
} CiRegisterRow;
bool ci_registers_help(const CiStmt *fold);
/* True if statements load an element at an index that they have loaded before. */
bool ci_stmts_gather(const CiStmts *stmts);
int ci_register_lanes(const CiReducer *r, CiOp fold, int lanes);
void ci_registers_alloc_accumulators(CiReducer *r, int lanes);
void ci_reduce_registers(CiReducer *r, const CiRegisterRow *registers, const CiExpr *row);

/* reduce_block.c: is a fold of `count` elements added up at once? And the fold of as many, from
 * number `first` on, into the sums. */
bool ci_block_is_whole(const CiReducer *r, const CiExpr *count);
int64_t ci_block_most_at_once(const CiReducer *r);
/* Leaves the loop where there are so few elements. */
void ci_block_exit(CiReducer *r, const CiExpr *count);
void ci_block_add(CiReducer *r, const CiExpr *first, const CiExpr *count);

/* reduce_narrow.c: expands a fold that is free of order with accumulators narrower than its results.
 * Returns false, and changes nothing, if those would have no more lanes. */
bool ci_reduce_narrow(CiReducer *r);
/* Removes lets without users from a block. */
void ci_build_drop_unused(CiBuild *b, CiStmts *block);

/* reduce_search.c: expands a fold that its first true or false element decides. */
void ci_reduce_search(CiReducer *r);

/* reduce_pairwise.c: NumPy's order. */
void ci_reduce_pairwise(CiReducer *r);

/* reduce_counter.c. Is the order of a reduction told? at: its first accumulator's number. */
bool ci_reduce_is_ordered(const CiReducer *r, CiOp fold, int at);
void ci_reduce_alloc(CiReducer *r, CiMemory ***to, const char *stem, int lanes, CiSpace space,
                     int64_t size);
void ci_reduce_load(CiReducer *r, int *values, CiMemory *const *from, int count, const CiExpr *at,
                    int lanes);
void ci_reduce_store(CiReducer *r, CiMemory *const *to, int count, const CiExpr *at,
                     const int *values, const CiExpr *live);
/* Allocates `partials` for a fold that threads share. Then they have what each has; ci_reduce_threads combines them, the
 * results are in the elements of the first `apart` threads, and ci_reduce_result loads them. */
void ci_reduce_alloc_partials(CiReducer *r, const CiStmt *fold);
void ci_reduce_threads(CiReducer *r);
void ci_reduce_result(CiReducer *r, int *values, int at, int count, const CiExpr *thread);
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
/* The sums become: what is pending at `top`, op the sums. */
void ci_counter_merge(CiReducer *r, const CiExpr *top);

/* reduce_axes.c: several axes as one. A variable that counts the points of all of them. */
void ci_reduce_flatten(CiReducer *r);
/* True if a ufunc loop of NumPy computes the folded values, many elements at a time. */
bool ci_reduce_calls_ufunc(const CiReducer *r);
/* Memory for that many elements, where reading them one by one would divide for each, or call; else
 * none. */
void ci_reduce_alloc_strips(CiReducer *r, int64_t size);
/* Elements from `first` on come into the strips, and are what the body reads from now on. */
void ci_reduce_fill_strips(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* Like ci_reduce_fill_strips, for elements that are needed in order, a few at a time: a window of
 * many is filled at once. Returns the number of the first element in the window. */
void ci_reduce_open_window(CiReducer *r);
const CiExpr *ci_reduce_through_window(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* Reduces all elements piece by piece: fills strips, and calls add for the elements that are in them. */
void ci_reduce_in_pieces(CiReducer *r,
                         void (*add)(CiReducer *r, const CiExpr *first, const CiExpr *count));

#endif
