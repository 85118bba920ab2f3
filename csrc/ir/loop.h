/* The loop level: one loop nest for each value that is stored in memory, with a body of scalar operations.
 *
 *   loops f(in0: f32[128,256], in1: python f64[]) {
 *     buf0: f32[128] = for i0<128 sum.lanes r0<256 {
 *       %0: f32 = load in0[256*i0 + r0]
 *       %1: f32 = exp %0
 *       yield %1
 *     }  @net.py:7
 *     buf1: f32[128,256] strides [256,1]
 *     buf1[256*i0 + i1] = for i0<128, i1<256 { … yield %3 }
 *     buf2: f32[64,64] = extern matmul(buf1, in0) key "…"
 *     in0[i0] = for i0<128 { … }                 # writes in place
 *     return buf0, buf1[+0; sizes; strides]
 *   }
 *
 * A buffer is one allocation and one pointer. A nest runs its body at every point of its axes and
 * stores the yielded value at `store` of `target`. Point axes i0, i1… come first. They are followed
 * by reduce axes r0, r1… over which the value is folded (stored once per point), or by one scan
 * axis r0 (stored at every step). Items run in order; an item may read the stores of earlier ones.
 *
 * Indirect access. `%3: i64 = bind %2 [at0<n]` makes the index symbol at0 the value of %2, which is
 * in [0, n). After it a load's index may use at0, and the load has the bind among its operands. A
 * store that uses at0 yields `place %value, %bind…`. Its points run sequentially in C order, so
 * that the last of several values for one element is stored. The nest may run in any order if it
 * is `distinct` or all values are equal. With an operation before `for` (`buf0[at0] = add for …`)
 * the value is combined with the element.
 * `%5: f64 = pack %4, %1 [at0<u0]` compresses: it yields, at at0 = 0, 1, …, the values %4 whose %1
 * is true; others are not stored.
 *
 * The order of a float fold is part of the nest's meaning (`order`), and the same in every backend
 * with the same bits. The elements v[0..n) of the reduce domain are taken in C order of the axes.
 *
 *   serial   ((v0 + v1) + v2) + …, starting from v0.
 *   fused    of sums of products: x = 0, then x = fma(a, b, x) for each a*b in order.
 *   lanes    blocks of CI_BLOCK_CHAIN*L elements, L = ci_lane_count(dtype). In a block, lane l
 *            folds elements l, l+L, l+2L… in order, starting from the identity; then lanes fold
 *            pairwise: for (h = L/2; h; h /= 2) lane[l] op= lane[l+h] for l < h. Blocks fold as a
 *            binary counter: block k, then merge equal-sized neighbours (earlier op later) as
 *            carries; what remains is folded from the latest to the earliest: x = earlier op x.
 *   rows     as lanes with L = 1: chains of CI_BLOCK_CHAIN, then the binary counter. For folds
 *            whose point axis is the contiguous one.
 *   pairwise NumPy's. The innermost `ninner` reduce axes make a block; x = start, and then for each
 *            block, in C order of the others, and for each `chunk` of its elements (the last may be
 *            shorter), x = x op P(chunk). The start is +0.0 of a sum, 1 of a product. P of n
 *            elements, with L = 8 (4 of complex ones, whose parts are added apart):
 *              n < L     serial
 *              n <= 16L  L accumulators, v[k] into number k % L while whole Ls last; neighbours
 *                        pairwise, ((0 + 1) + (2 + 3)) + …; then what is left, one by one
 *              else      P(the first h) + P(the others), h = n/2 less its remainder by L (complex:
 *                        n less its remainder by 8, halved)
 *            Without inner axes a block is one element: x = (x op v0) op v1…. `or n where e` says
 *            that there are blocks of n axes instead where e, a size of what is not folded, is 1.
 *
 * A fold of at most CI_SERIAL_LIMIT elements is serial in each order, so lengths that are known and
 * those that are not give the same bits. Order-free folds (integers, min, max, any, all) have no
 * order. An empty float sum is +0.0 (the identity -0.0 plus 0.0). */
#ifndef CI_IR_LOOP_H
#define CI_IR_LOOP_H

#include "ir/graph.h"

#define CI_BLOCK_CHAIN 32
#define CI_SERIAL_LIMIT 8
static inline int
ci_lane_count(CiDtype dtype) /* 256 bytes of accumulators, but at least 16 lanes */
{
    return ci_dtype_size(dtype) >= 16 ? 16
                                      : 256 / (ci_dtype_size(ci_dtype_compute(dtype)) < 4
                                                   ? 4
                                                   : ci_dtype_size(ci_dtype_compute(dtype)));
}

typedef enum CiBufferKind { CI_BUFFER_input, CI_BUFFER_scalar, CI_BUFFER_temp } CiBufferKind;

typedef struct CiBuffer {
    const char *name;  /* in0, buf3 */
    CiBufferKind kind; /* scalar: a run-time Python scalar, one element */
    int id;            /* position in CiLoops.buffers */
    int input;         /* input, scalar: parameter number in the graph; else -1 */
    CiDtype dtype;
    int rank;
    const CiExpr *const *sizes;
    const CiExpr *const *strides; /* in elements; temps are dense, in some order */
    int device; /* number of the device whose memory it is in; of a temp: set when kernels are created */
    bool is_written;              /* input: written in place */
    bool is_result;               /* leaves the program: the caller's allocation */
    bool is_private; /* a temp that only one kernel stores and reads, but whose row has no known bound:
                      * it stays in memory */
    bool is_swapped; /* a temp that exchanges its memory with another; it is never a result */
} CiBuffer;

#define CI_MAX_OPERANDS 4

/* One scalar operation of a body. Operands are positions of earlier ones. */
typedef struct CiScalar {
    CiOp op;       /* load, index, const, cast, where, bind, place, pack, pointwise, math */
    CiDtype dtype; /* dtype of the result */
    int args[CI_MAX_OPERANDS]; /* load, index: the binds whose symbols are in `index` */
    int nargs;
    CiBuffer *buffer;    /* load: the array; pack: gets the number of packed elements, or NULL */
    const CiExpr *index; /* load: element number in the buffer; index: the expression; bind, pack:
                            the symbol */
    CiConst value;       /* const */
} CiScalar;

typedef struct CiBody {
    CiScalar *ops;
    int nops, capops;
    int result; /* position of the yielded value */
} CiBody;

typedef enum CiAxisKind { CI_AXIS_point, CI_AXIS_reduce, CI_AXIS_scan } CiAxisKind;
typedef enum CiFoldKind {
    CI_FOLD_serial,
    CI_FOLD_lanes,
    CI_FOLD_rows,
    CI_FOLD_pairwise,
    CI_FOLD_fused
} CiFoldKind;

typedef struct CiFoldOrder {
    CiFoldKind kind;
    int ninner;          /* pairwise: axes of a block */
    const CiExpr *chunk; /* pairwise: elements of a chunk; NULL: a block is one */
    const CiExpr *alone; /* pairwise: if this size is 1, blocks have `nalone` axes; or NULL */
    int nalone;
} CiFoldOrder;

typedef struct CiAxis {
    CiAxisKind kind;
    const CiExpr *var; /* index symbol */
    const CiExpr *extent;
} CiAxis;

typedef struct CiNest {
    CiAxis *axes; /* point axes, then reduce or scan axes */
    int naxes, npoint;
    CiOp fold; /* CI_OP_none, a reduction, argmax/argmin, or a scan */
    CiFoldOrder order;
    CiBody body;
    CiBuffer *target;
    const CiExpr *store; /* element number in target; reduce axes do not occur in it */
    bool is_combined;    /* the value is combined with the stored element, by `combine` */
    CiOp combine;
    bool is_distinct; /* place: no element is stored twice */
    bool is_separate;    /* must not be fused: in a common kernel it would have fewer points, or end later */
    int device;       /* the device that it runs on; a loop pass chooses it */
    CiLoc *locs;      /* source lines it came from, distinct */
    int nlocs, caplocs;
} CiNest;

typedef struct CiExternItem {
    const CiExtern *ext;
    CiOp op;
    /* Views of buffers, of each operand and then of the result: see offsets, sizes, strides. */
    CiBuffer **operands;
    const CiExpr **offsets;
    int *ranks;
    const CiExpr *const **sizes;
    const CiExpr *const **strides;
    int noperands;
    CiBuffer *result;
    int device; /* the device that executes it, if one does; a loop pass chooses it */
    CiLoc loc;
} CiExternItem;

typedef enum CiItemKind {
    CI_ITEM_nest,
    CI_ITEM_extern,
    CI_ITEM_for,
    CI_ITEM_while,
    CI_ITEM_if,
    CI_ITEM_symbol,
    CI_ITEM_check
} CiItemKind;

typedef struct CiItem CiItem;
typedef struct CiItems {
    CiItem *items;
    int count, capacity;
} CiItems;

/* Regions contain items. for: var in [0, extent); its name is t and a number, because i, j and r
 * are those of nests and kernels. while, if: the condition is the one element of `condition`. At
 * the end of each iteration of a loop, pairs of temps of equal sizes, strides and dtype exchange
 * their memory: `swap buf1, buf2`. */
typedef struct CiRegion {
    CiItemKind kind; /* for, while, if */
    int device;      /* the device that its items run on; a loop pass chooses it */
    const CiExpr *var, *extent;
    CiBuffer *condition;
    CiItems condition_items; /* while: run before each test */
    CiItems body, other;
    CiBuffer **swaps;     /* two for each swap, in order */
    int nswaps, capswaps; /* buffers in swaps: twice the number of swaps */
    bool is_parallel;     /* for: iterations are independent and may run at the same time */
} CiRegion;

/* Checks that the host evaluates between nests; a failing one stops the program. `u0 = symbol buf3
 * in [0, s0)`: the one element of an i64 is the value of an unbacked symbol, and must be in the
 * symbol's range. `check buf4 "why"`: the one element of a bool must be true. */
typedef struct CiCheckItem {
    CiBuffer *buffer;
    const CiExpr *symbol, *limit; /* symbol: its upper bound; infinite if there is none */
    const char *why;              /* check */
    CiLoc loc;
} CiCheckItem;

struct CiItem {
    CiItemKind kind;
    CiNest *nest;
    CiExternItem *ext;
    CiRegion *region;
    CiCheckItem *check; /* symbol, check */
};

/* A result of the program: a view of a buffer. */
typedef struct CiResult {
    CiBuffer *buffer;
    CiDtype dtype;
    CiKind kind;
    int rank;
    const CiExpr *offset; /* elements */
    const CiExpr *const *sizes;
    const CiExpr *const *strides; /* elements */
    bool is_whole;                /* the buffer itself, no view */
} CiResult;

typedef struct CiLoops {
    CiContext *ctx;
    CiSym *sym;
    const char *name;
    CiBuffer **buffers;
    int nbuffers, capbuffers;
    int ninputs; /* buffers[0..ninputs) are the graph's inputs in order */
    CiItems items;
    CiResult *results;
    int nresults, capresults;
    int nnew_axes; /* numbers given to axes that passes made: d0, d1, … */
} CiLoops;

static inline bool
ci_fold_order_equal(CiFoldOrder a, CiFoldOrder b)
{
    return a.kind == b.kind && a.ninner == b.ninner && a.chunk == b.chunk && a.alone == b.alone &&
           a.nalone == b.nalone;
}
/* The buffer that gets the number of elements that the nest packs; NULL if it packs none, or stores no number. */
static inline CiBuffer *
ci_nest_count(const CiNest *nest)
{
    const CiScalar *last = nest->body.nops ? &nest->body.ops[nest->body.result] : NULL;
    return last && last->op == CI_OP_pack ? last->buffer : NULL;
}
/* True if the accumulators of one result take contiguous elements (along); or if contiguous elements belong to different
 * results (across). */
static inline bool
ci_fold_runs_along(CiFoldOrder order)
{
    return order.kind == CI_FOLD_lanes || (order.kind == CI_FOLD_pairwise && order.ninner);
}
static inline bool
ci_fold_runs_across(CiFoldOrder order)
{
    return order.kind == CI_FOLD_rows || (order.kind == CI_FOLD_pairwise && !order.ninner);
}
/* True if the buffer's elements are contiguous. */
bool ci_buffer_is_dense(const CiLoops *loops, const CiBuffer *buffer);
/* One more than the highest device number of a buffer. */
int ci_loops_device_count(const CiLoops *loops);
CiLoops *ci_loops_new(CiContext *ctx, CiSym *sym, const char *name);
CiBuffer *ci_loops_add_buffer(CiLoops *loops, CiBufferKind kind, CiDtype dtype, int rank,
                              const CiExpr *const *sizes, const CiExpr *const *strides);
/* Removes the temps for which is_kept is false; nothing may use them. Later buffers get new numbers and names. */
void ci_loops_keep_buffers(CiLoops *loops, const bool *is_kept);
CiNest *ci_loops_add_nest(CiLoops *loops, CiItems *items);
/* Creates a call without operands, and adds an operand. */
CiExternItem *ci_extern_new(CiContext *ctx, const CiExtern *ext, CiOp op, int capacity);
void ci_extern_add_operand(CiExternItem *item, CiBuffer *buffer, const CiExpr *offset, int rank,
                           const CiExpr *const *sizes, const CiExpr *const *strides);
/* Sets the part of the result that the call fills. ci_extern_set_result sets the result's buffer, and the part to all of it
 * unless a part has been set. */
void ci_extern_set_part(CiExternItem *item, const CiExpr *offset, int rank,
                        const CiExpr *const *sizes, const CiExpr *const *strides);
void ci_extern_set_result(CiSym *sym, CiExternItem *item, CiBuffer *buffer);
/* True if operand k (the result for k = noperands) is all of its buffer. */
bool ci_extern_is_whole(const CiExternItem *item, int k);
/* Appends an op to a body; the same op with the same operands is returned once (value numbering by
 * the caller's memo). */
int ci_body_add(CiContext *ctx, CiBody *body, CiScalar op);
/* Makes the binds whose symbols are in op->index operands of op; a place has one before them. */
void ci_body_link(CiContext *ctx, const CiBody *body, CiScalar *op, const CiExpr *index);
/* True if a bind or pack of the body defines the symbol. */
bool ci_body_binds(const CiBody *body, const CiExpr *symbol);
bool ci_is_one_element(CiSym *sym, const CiBuffer *buffer);
/* Iterates over the loads of a nest (NULL: no loads): returns the load after `load`, the first load for NULL, and NULL after
 * the last. */
CiScalar *ci_nest_next_load(const CiNest *nest, const CiScalar *load);
/* True if the nest's body loads from the buffer. */
bool ci_nest_loads(const CiNest *nest, const CiBuffer *buffer);
/* True if the nest stores at data-dependent positions and its points must run in order: a pack, a
 * combining store, or a place of different values that is not proved distinct. */
bool ci_nest_is_serial(const CiNest *nest);
/* True if the nest places equal values only, so that the order of points makes no difference. */
bool ci_nest_places_alike(const CiNest *nest);
static inline bool
ci_nest_is_fold(const CiNest *nest) /* stored once, after its reduce axes */
{
    return nest->fold != CI_OP_none && ci_op_kind(nest->fold) != CI_OPKIND_scan;
}
static inline bool
ci_nest_is_scan(const CiNest *nest)
{
    return nest->fold != CI_OP_none && ci_op_kind(nest->fold) == CI_OPKIND_scan;
}
/* True if the nest stores at data-dependent positions, and so maybe not to every element. */
bool ci_nest_is_indirect(const CiNest *nest);
/* Returns a copy of the body with index symbols replaced. */
CiBody ci_body_substitute(CiContext *ctx, CiSym *sym, const CiBody *body, int count,
                          const CiExpr *const *from, const CiExpr *const *to);
/* Replaces index symbols of a nest, in a body of its own. */
void ci_nest_substitute(CiContext *ctx, CiSym *sym, CiNest *nest, int count, const CiExpr *const *from,
                        const CiExpr *const *to);
void ci_loops_print(CiText *out, const CiLoops *loops);
CiLoops *ci_loops_parse(CiContext *ctx, const char *text);
void ci_loops_verify(const CiLoops *loops); /* bounds by ranges, dtypes, order of definition */

/* Calls visit for each item. The items of a region follow the region. */
void ci_items_visit(const CiItems *items, void (*visit)(void *arg, CiItem *item), void *arg);

#endif
