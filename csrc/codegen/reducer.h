/* Shared declarations of the files of the pass `reduce`, which expands folds to loops over accumulators. */
#ifndef CI_CODEGEN_REDUCER_H
#define CI_CODEGEN_REDUCER_H

#include "codegen/instantiate.h"
#include "codegen/codegen.h"

/* Blocks of the pairwise tree whose sums are computed at the same time, to hide the latency of additions. */
#define CI_CHAINS 4

typedef struct CiReducer {
    CiBuild b;
    bool is_in_lanes; /* a loop around the fold is vectorized */
    const CiStmt *fold;
    CiStmts body; /* the fold's body, as a function of `var` */
    const CiExpr *var, *extent;
    const CiExpr *first, *length; /* point number of the first element; points of the whole fold */
    int width, lanes;             /* number of accumulators; lanes of a vector of them: the width, or 1 */
    int wide;                     /* pairwise: lanes of a vector of elements */
    CiMemory **acc;               /* by accumulator: width / lanes vectors */
    CiMemory **chains[CI_CHAINS]; /* pairwise: `acc` of each block that runs at the same time; NULL: one block runs */
    CiMemory **sums;              /* of reductions with a required order: the result of the last finished block */
    CiMemory **pending, *depth;
    /* Of a fold over several axes: the elements of a block, copied to contiguous memory; by accumulator. */
    CiMemory **strips;
    CiMemory *from, *end; /* pairwise: range of the elements that are in `strips` */
    const CiExpr *position;  /* index into `pending` at which the sums are stored */
    const int *lifted;    /* values that the body has yielded */
    const CiExpr *vector; /* narrow accumulators: symbol of the body, index of a vector in its chunk */
    const CiExpr *chunk;   /* narrow accumulators: first element of the chunk; NULL: there are no chunks */
    int walk;             /* pass over a block that is read in two passes: 1 or 2; 0: one pass suffices */
    bool is_in_registers;         /* the fold's elements are in registers; false for partial results */
    /* Of a fold that is distributed over the threads of a block. */
    int threads, apart;   /* their number; the distance of two threads of one point */
    const CiExpr *thread; /* variable of the loop over threads */
    CiMemory **partials;  /* by accumulator: an element per thread */
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

/* accumulators.c. The initial value of accumulator k. */
int ci_reduce_identity(CiReducer *r, CiOp fold, int k, const CiMemory *into, int lanes);
/* Lanes along the fold's own axis, at most `most`. */
int ci_reduce_lanes_inside(const CiReducer *r, int most);
void ci_reduce_alloc_accumulators(CiReducer *r);
/* Sets the accumulators to their initial values. */
void ci_reduce_reset(CiReducer *r, CiOp fold, int at, int count);
/* Combines each accumulator with one more element, from `first` on; only `left` of them (NULL: all). */
void ci_reduce_chain(CiReducer *r, const CiExpr *first, const CiExpr *left);
void ci_reduce_step(CiReducer *r, const CiExpr *first, const CiExpr *row, int lanes,
                    CiMemory *const *acc, const CiExpr *live);
/* Combines the values that a body has yielded, one per lane, with the accumulators in `row`. */
void ci_reduce_take(CiReducer *r, const int *lifted, const CiExpr *row, int lanes,
                    CiMemory *const *acc, const CiExpr *live);
/* Combines all accumulators into one, by halving: ci_reduce_halve_rows, then ci_reduce_halve_lanes. */
void ci_reduce_halve(CiReducer *r, CiOp fold, int at, int count, int *values);
/* Combines the vectors of accumulators into the first one; combines the lanes of `values` into one. */
void ci_reduce_halve_rows(CiReducer *r, CiOp fold, int at, int count);
void ci_reduce_halve_lanes(CiReducer *r, CiOp fold, int count, int *values);
int ci_reduce_plain_zero(CiReducer *r, int value);
/* Combines `count` contiguous elements from `first` on with the accumulators. */
void ci_reduce_chains(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* True if some reduction of the fold is cheaper in two passes over the elements (CiReduction.begin). Between the two
 * passes, ci_reduce_transpose computes what the second needs (CiReduction.turn). */
bool ci_reduce_has_passes(const CiReducer *r);
void ci_reduce_transpose(CiReducer *r, CiOp fold, int at, int count);
/* Stores the result of an empty fold. */
void ci_reduce_start(CiReducer *r, CiOp fold, int at, int count);

/* reduce_registers.c: folds elements that are in a thread's registers, as a few groups of `lanes` elements. */
#define CI_MAX_REGISTER_ROW 16
typedef struct CiRegisterRow {
    const int *lifted[CI_MAX_REGISTER_ROW]; /* by group: the values that its body has yielded */
    int count, lanes;
} CiRegisterRow;
/* True if a reduction of the fold is faster when all elements are in registers. */
bool ci_registers_help(const CiStmt *fold);
/* True if a statement loads an element at an index that was itself loaded from memory. */
bool ci_stmts_gather(const CiStmts *stmts);
/* The lanes of a reduction's accumulators. */
int ci_register_lanes(const CiReducer *r, CiOp fold, int lanes);
void ci_registers_alloc_accumulators(CiReducer *r, int lanes);
/* Combines the elements with the accumulators. */
void ci_reduce_registers(CiReducer *r, const CiRegisterRow *registers, const CiExpr *row);

/* reduce_block.c. True if `count` elements are one block, which needs no tree. */
bool ci_block_is_whole(const CiReducer *r, const CiExpr *count);
int64_t ci_block_most_at_once(const CiReducer *r);
/* Emits an exit from the loop, taken if `count` elements are one block. */
void ci_block_exit(CiReducer *r, const CiExpr *count);
/* Folds `count` elements from `first` on into the sums. */
void ci_block_add(CiReducer *r, const CiExpr *first, const CiExpr *count);

/* reduce_narrow.c: expands a fold whose order is free with accumulators narrower than its results. Returns false,
 * and changes nothing, if narrower accumulators would not have more lanes. */
bool ci_reduce_narrow(CiReducer *r);
/* Removes lets without users from a block. */
void ci_build_drop_unused(CiBuild *b, CiStmts *block);

/* reduce_search.c: expands a fold whose result is known at its first true (or first false) element. */
void ci_reduce_search(CiReducer *r);

/* reduce_pairwise.c: expands a fold in NumPy's order of pairwise summation. */
void ci_reduce_pairwise(CiReducer *r);

/* reduce_counter.c. True if the reduction whose first accumulator has the number `at` has a required order. */
bool ci_reduce_is_ordered(const CiReducer *r, CiOp fold, int at);
void ci_reduce_alloc(CiReducer *r, CiMemory ***to, const char *stem, int lanes, CiSpace space,
                     int64_t size);
void ci_reduce_load(CiReducer *r, int *values, CiMemory *const *from, int count, const CiExpr *at,
                    int lanes);
void ci_reduce_store(CiReducer *r, CiMemory *const *to, int count, const CiExpr *at,
                     const int *values, const CiExpr *live);
/* Allocates `partials` for a fold that is distributed over threads. Each thread stores its partial result,
 * ci_reduce_threads combines them into the elements of the first `apart` threads, and ci_reduce_result loads these. */
void ci_reduce_alloc_partials(CiReducer *r, const CiStmt *fold);
void ci_reduce_threads(CiReducer *r);
void ci_reduce_result(CiReducer *r, int *values, int at, int count, const CiExpr *thread);
/* Calls emit for each ordered reduction (`ordered`), each reduction whose order is free (`free_ones`), or both, with
 * the number of its first accumulator. */
void ci_reduce_each(CiReducer *r, bool ordered, bool free_ones,
                    void (*emit)(CiReducer *r, CiOp fold, int at, int count));
/* The pairwise tree is summed bottom-up, as a binary counter of blocks: `pending` has the sum of one subtree per bit
 * that is set. `open` starts with no blocks. `carry` combines the sums of a finished block with the pending subtrees of
 * equal size, and `push` stores the result. `close` and `join` combine all pending subtrees into the fold's sums. */
void ci_counter_open(CiReducer *r);
void ci_counter_carry(CiReducer *r, const CiExpr *block);
void ci_counter_push(CiReducer *r);
void ci_counter_close(CiReducer *r, const CiExpr *block);
void ci_counter_join(CiReducer *r);
/* sums = pending[top] op sums. */
void ci_counter_merge(CiReducer *r, const CiExpr *top);

/* reduce_axes.c: replaces the fold's axes by one variable, which counts the points of all axes. */
void ci_reduce_flatten(CiReducer *r);
/* True if a ufunc loop of NumPy computes the folded values, many elements at a time. */
bool ci_reduce_calls_ufunc(const CiReducer *r);
/* Allocates strips of `size` elements if reading elements one by one would need a division or a call for each;
 * else allocates nothing. */
void ci_reduce_alloc_strips(CiReducer *r, int64_t size);
/* Copies `count` elements from `first` on to the strips. The body reads the strips from now on. */
void ci_reduce_fill_strips(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* Like ci_reduce_fill_strips, for a fold that reads a few elements at a time in order: the strips are a window, filled
 * for many elements at once. ci_reduce_through_window returns the index of element `first` in the window. */
void ci_reduce_open_window(CiReducer *r);
const CiExpr *ci_reduce_through_window(CiReducer *r, const CiExpr *first, const CiExpr *count);
/* Folds all elements piece by piece: fills the strips with a piece, then calls add for its elements. */
void ci_reduce_in_pieces(CiReducer *r,
                         void (*add)(CiReducer *r, const CiExpr *first, const CiExpr *count));

#endif
