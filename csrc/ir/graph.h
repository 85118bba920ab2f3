/* The graph level: operations on whole arrays, functional, as a tree of blocks.
 *
 *   graph f(in0: f32[128,256], in1: f32[], in2: python f64[]) {
 *     %0: f32[128,256] = multiply(in0, in1)              @net.py:7
 *     %1: f32[126,256] = slice(%0, starts=[1, 0], steps=[1, 1])  @net.py:8
 *     %2: f32[128,256] = assign(%0, %1, in1)             @net.py:8
 *     %3: f32[128] = sum(%2, axes=[1])                   @net.py:9
 *     write in0 = %2
 *     return %3, %1
 *   }
 *
 * Values. Each node makes one value: dtype, symbolic sizes, a kind, and a stride order. Dtypes are
 * decided by capture; operands of a pointwise node have equal dtype (casts are explicit) and
 * broadcastable sizes. Kind: `array`; `scalar` (NumPy's: immutable, strong, rank 0); `python`
 * (weak, rank 0; f64, c128, i64, u64 or bool). Stride order: order[0] is the axis with the largest
 * stride. C order is 0,1,2,…; printed only when it is not.
 *
 * Views share elements: permute, reshape, slice, expand, diagonal, window of a value are that
 * value's memory whenever it has memory; a `copy` node is written where NumPy copies. So a result
 * that is a chain of views of an input (or of another result's base) is returned as a view.
 *
 * Writes. assign(base, view, value) is a new version of base in which the elements of `view` are
 * replaced by those of value (broadcast, already cast). `view` is base itself or a chain of views
 * of the *same version* of base. `write in0 = %k` is the version that an argument holds in the end.
 * Lowering decides which versions share memory.
 *
 * Data-dependent sizes. expr(e) is the value of a symbolic expression; define(v) sets the value of
 * an unbacked symbol v, which must be in [low, limit); check(c) fails if c is false. The last two
 * are effects: they stay in their block, in program order. A define's symbol may be used after it
 * in its block and in blocks inside. If one fails, the program stops with CI_ERR_CHECK before any
 * argument has been changed.
 *
 * Python's ints. A `python` i64 or u64 equals Python's int modulo 2**64. It is that int if its
 * checks hold: check(c, v) states that v is the int Python computes, provided that v's operands
 * are. Such a check exists only up to the pass `wrap`, which removes it or makes it a plain check.
 *
 * Indirect access. gather(a, i…) axes=[k…] takes elements of a at indices along axes k (ascending);
 * the axes of the indices, broadcast together, replace the first of k. scatter(base, view, value,
 * i…) axes=[k…] is the version of base in which the elements that gather(view, i…) takes are
 * replaced by those of value. If several values go to one element, the last one in C order is
 * stored; with combine=op each one is combined with the element. Indices are i64 and in range:
 * their producer has wrapped and checked them. `distinct` states that no element is addressed
 * twice. The size of compress(a, mask) must be the number of true elements of mask.
 *
 * Regions. A `for`, `while` or `if` node has no value of its own (dtype none); one `result` node
 * for each value it makes follows it, with args = [region] and index = its number. A block's
 * parameters are `param` nodes.
 *   for    args = initial carried values; starts = [trip count, induction symbol]; blocks[0] has
 *          params [induction (python i64), carried…], results = next values
 *   while  args = initial carried values; blocks[0] has params = carried, results = [condition];
 *          blocks[1] has no params of its own: it sees those of blocks[0]; results = next values
 *   if     args = [condition]; blocks[0] and blocks[1] without params, results of equal types
 *
 * Order. Nodes of a block are in program order; an argument precedes its users. */
#ifndef CI_IR_GRAPH_H
#define CI_IR_GRAPH_H

#include "ir/op.h"
#include "sym/shape_env.h"

#define CI_MAX_RANK 32
/* Most devices of one kind that a program may use. */
#define CI_MAX_DEVICES 16

typedef enum CiKind { CI_KIND_array, CI_KIND_scalar, CI_KIND_python } CiKind;

typedef struct CiNode CiNode;
typedef struct CiBlock CiBlock;
typedef struct CiGraph CiGraph;

/* A library call. A user of the core registers it and implements it. Its operands are dense. */
typedef struct CiExtern CiExtern;

struct CiQueue;

typedef struct CiExternCall {
    const CiExtern *ext;
    int noperands;
    void *const *operands;         /* data of each operand */
    const int64_t *const *sizes;   /* per operand; then the result's at [noperands] */
    const int64_t *const *strides; /* in elements, per operand, then the result's */
    const int *ranks;
    const CiDtype *dtypes;
    void *result; /* memory to fill */
    /* If it is not NULL, the callee may put the result into memory that it allocates, and store the address here. The
     * memory then belongs to the program's caller, who allocated `result`. */
    void **other_result;
    const struct CiQueue *queue; /* queue of the device whose memory the operands are; NULL: host memory */
    void *arg;    /* CiCall.arg, which the program's caller sets */
    unsigned quiet; /* CiLoc.quiet: floating-point flags that are not reported */
} CiExternCall;

/* The number of elements of operand k; of the result for k = noperands. */
static inline int64_t
ci_extern_count(const CiExternCall *call, int k)
{
    int64_t count = 1;
    for (int axis = 0; axis < call->ranks[k]; axis++)
        count *= call->sizes[k][axis];
    return count;
}

/* Parses an axis at `text`, in the key of a call; it ends at a space or at the end of the text. A negative number counts
 * from the last of `rank` axes. -1: the text is no axis. */
int ci_extern_axis(const char *text, int rank);

struct CiExtern {
    const char *name; /* printed: "matmul" */
    const char *key;  /* everything else the call depends on, as text; enters keys and dumps */
    /* Returns 0, or CI_ERR_PYTHON if the callee has set a Python exception. Acquires the locks that it needs. */
    int32_t (*call)(void *data, const CiExternCall *call);
    /* Like `call`, from any thread and without locks. The floating-point flags that it raises stay set in the thread. False,
     * with nothing done, if a call without locks is not possible. NULL: it never is. */
    bool (*call_anywhere)(void *data, const CiExternCall *call);
    void *data;
    void (*retain)(void *data);
    void (*release)(void *data);
    int position_axis; /* k + 1: the result has positions along axis k of the first operand; 0: it has not */
    bool may_fail;     /* whether it fails depends on the operands' values, as for a check */
    bool calls_back;   /* call runs code of the caller's that is not compiled */
    /* Like call, on memory of the program's device, in the order of the queue's stream. NULL: the device
     * implements the call itself, or it has no device version. */
    int32_t (*call_on)(void *data, const CiExternCall *call);
    bool takes_strides; /* call_on: operands may have any strides; else they are in C order */
};

/* The order in which NumPy computes a sum or product: `pairwise` in ir/loop.h. */
typedef struct CiPairwise {
    const int *axes;     /* the reduced axes, outermost first */
    int ninner;          /* the innermost `ninner` axes are a block */
    const CiExpr *chunk; /* elements of a chunk, which has a sum of its own; NULL: the block is one chunk */
    /* NULL: blocks are as above. Else blocks exist only if this size is 1, and are the innermost `nalone` axes. */
    const CiExpr *alone;
    int nalone;
} CiPairwise;

struct CiNode {
    CiOp op;
    CiDtype dtype;
    CiKind kind;
    int id; /* number in the order of creation; printed as %id after ci_graph_number */
    int rank;
    const CiExpr *const *sizes;   /* rank of them */
    const int8_t *order;          /* rank of them */
    const CiExpr *const *strides; /* inputs and views: in elements, as NumPy's array has them; NULL:
                                     dense in `order` */
    int nargs;
    CiNode **args;
    CiLoc loc;

    int naxes;
    const int *axes;            /* permute: source axis of each axis; reduce, argreduce: axes folded
                                   (sorted; never kept: keepdims is a reshape); scan, concat, iota: [axis];
                                   diagonal: [axis1, axis2]; window: [axis], its length the last size;
                                   gather, scatter: those indexed, ascending */
    const CiPairwise *pairwise; /* reduce: NumPy's order; NULL: the device chooses the order */
    const CiExpr *const *starts; /* slice: per axis, index of the first element; for: [trip count,
                                    induction symbol]; expr: [the expression]; define: [symbol,
                                    limit], the limit infinite where there is none */
    const CiExpr *const *steps; /* slice: per axis, may be negative; diagonal: [offset] in starts */
    CiConst value;              /* const */
    int index;                  /* input, param: number of the parameter; result: number of the result */
    const char *name;           /* input: in0, in1…; check: the message if it fails; else NULL */
    int device;                 /* input: number of the device whose memory it is in; see ir/loop.h */
    const CiExtern *ext;        /* extern kinds */
    bool is_combined;           /* scatter: values are combined with the stored elements, by `combine` */
    CiOp combine;
    bool is_distinct; /* scatter: no element is addressed twice */
    int nblocks;      /* regions */
    CiBlock **blocks;

    bool is_live; /* scratch of dce */
    void *mark;   /* scratch of the pass that runs */
};

struct CiBlock {
    CiNode **params; /* for, while: induction and carried values */
    int nparams, capparams;
    CiNode **nodes;
    int nnodes, capnodes;
    CiNode **results; /* next(...) or the block's values */
    int nresults, capresults;
};

typedef struct CiWrite {
    CiNode *input;
    CiNode *value; /* same dtype and sizes as the input */
} CiWrite;

struct CiGraph {
    CiContext *ctx;
    CiSym *sym;
    CiShapeEnv *env;
    const char *name;
    CiNode **inputs;
    int ninputs, capinputs;
    const CiExpr *const *
        *strides; /* per input: strides in elements of the array passed (rank of them) */
    int capstrides;
    CiBlock *body; /* body->results are what the graph returns */
    CiWrite *writes;
    int nwrites, capwrites;
    CiBlock *at; /* where builders append: the body, until a region's block is built */
    int next_id;
};

CiGraph *ci_graph_new(CiContext *ctx, const char *name);

/* Building. Each appends to g->at (the body unless changed), infers sizes and order, verifies its
 * operands, and fails with CI_ERR_SHAPE, CI_ERR_DTYPE or CI_ERR_VALUE. Arrays passed in are copied.
 */
CiNode *ci_graph_input(CiGraph *g, CiDtype dtype, CiKind kind, int rank, const CiExpr *const *sizes,
                       const CiExpr *const *strides);
CiNode *ci_graph_const(CiGraph *g, CiDtype dtype, CiKind kind, CiConst value, CiLoc loc);
CiNode *ci_graph_iota(CiGraph *g, int rank, const CiExpr *const *sizes, int axis, CiLoc loc);
CiNode *ci_graph_empty(CiGraph *g, CiDtype dtype, int rank, const CiExpr *const *sizes,
                       const int8_t *order, CiLoc loc);
/* python i64 of rank 0 */
CiNode *ci_graph_expr(CiGraph *g, const CiExpr *e, CiLoc loc);
/* symbol: of ci_expr_unbacked, with this low and limit (exclusive; NULL: none), not defined yet.
 * value: i64 of rank 0. The node is the symbol's value, python i64. */
CiNode *ci_graph_define(CiGraph *g, CiNode *value, const CiExpr *symbol, int64_t low,
                        const CiExpr *limit, CiLoc loc);
CiNode *ci_graph_check(CiGraph *g, CiNode *condition, const char *why, CiLoc loc);
/* A check that is needed only if some user of `value`, a Python int, depends on more than its lowest 64 bits. NULL: it is
 * always needed. */
CiNode *ci_graph_check_of(CiGraph *g, CiNode *condition, CiNode *value, const char *why, CiLoc loc);
/* pointwise, math, composite, where: broadcasts operands (by index, no expand node needed) */
CiNode *ci_graph_pointwise(CiGraph *g, CiOp op, int nargs, CiNode *const *args, CiLoc loc);
CiNode *ci_graph_cast(CiGraph *g, CiNode *a, CiDtype dtype, CiLoc loc); /* a itself when equal */
CiNode *ci_graph_reduce(CiGraph *g, CiOp op, CiNode *a, int naxes, const int *axes, CiLoc loc);
CiNode *ci_graph_scan(CiGraph *g, CiOp op, CiNode *a, int axis, CiLoc loc);
CiNode *ci_graph_permute(CiGraph *g, CiNode *a, const int *axes, CiLoc loc);
CiNode *ci_graph_reshape(CiGraph *g, CiNode *a, int rank, const CiExpr *const *sizes, CiLoc loc);
CiNode *ci_graph_slice(CiGraph *g, CiNode *a, const CiExpr *const *starts,
                       const CiExpr *const *steps, const CiExpr *const *sizes, CiLoc loc);
CiNode *ci_graph_expand(CiGraph *g, CiNode *a, int rank, const CiExpr *const *sizes, CiLoc loc);
CiNode *ci_graph_diagonal(CiGraph *g, CiNode *a, int axis1, int axis2, const CiExpr *offset,
                          const CiExpr *size, CiLoc loc);
/* Sliding windows of `size` elements along the axis: [.., n, ..] becomes [.., n - size + 1, .., size]. */
CiNode *ci_graph_window(CiGraph *g, CiNode *a, int axis, const CiExpr *size, CiLoc loc);
CiNode *ci_graph_copy(CiGraph *g, CiNode *a, const int8_t *order, CiLoc loc); /* order NULL: C */
CiNode *ci_graph_assign(CiGraph *g, CiNode *base, CiNode *view, CiNode *value, CiLoc loc);
CiNode *ci_graph_concat(CiGraph *g, int nargs, CiNode *const *args, int axis, CiLoc loc);
/* Indices are i64 arrays that broadcast together, one for each axis. order NULL: C. */
#define CI_MAX_INDICES 3
CiNode *ci_graph_gather(CiGraph *g, CiNode *a, int naxes, const int *axes, CiNode *const *indices,
                        const int8_t *order, CiLoc loc);
/* view: a chain of views of base, or base. combine: a pointwise operation on two values of base's
 * dtype, or CI_OP_none. */
CiNode *ci_graph_scatter(CiGraph *g, CiNode *base, CiNode *view, CiNode *value, int naxes,
                         const int *axes, CiNode *const *indices, CiOp combine, bool is_distinct,
                         CiLoc loc);
/* Matrix product over the last two axes. The axes before them are equal in both operands. */
CiNode *ci_graph_product(CiGraph *g, CiNode *a, CiNode *b, CiLoc loc);
CiNode *ci_graph_compress(CiGraph *g, CiNode *a, CiNode *mask, const CiExpr *size, CiLoc loc);
/* graph_index.c. Normalizes an index of any integer type along an axis of that size, as NumPy does. A negative index counts
 * from the end. An index out of range fails a check, which is omitted if every index is known to be in range. NULL if a
 * check is needed and may_check is false. */
CiNode *ci_graph_wrap_index(CiGraph *g, CiNode *index, const CiExpr *size, bool may_check,
                            CiLoc loc);
CiNode *ci_graph_extern(CiGraph *g, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                        CiNode *const *args, int rank, const CiExpr *const *sizes, CiLoc loc);
/* Any node: a copy of `like` (op, args, attributes filled), inferred and appended. For the parser
 * and for rewriting. */
CiNode *ci_graph_add(CiGraph *g, const CiNode *like);
/* NULL if the number of operands and the attributes of a node that ci_graph_add is given are those of its
 * op, as inference assumes; else the reason. */
const char *ci_node_why_not(CiContext *ctx, const CiNode *node);
void ci_graph_return(CiGraph *g, CiNode *value);
void ci_graph_write(CiGraph *g, CiNode *input,
                    CiNode *value); /* replaces an earlier write of that input */
/* To build a region, create a block and its params, enter it, build its nodes and add its results. Then enter the outer block
 * again, which ci_graph_enter had returned, and create the region there. */
CiBlock *ci_graph_block(CiGraph *g);
CiBlock *ci_graph_enter(CiGraph *g, CiBlock *block);
CiNode *ci_graph_param(CiGraph *g, CiBlock *block, CiDtype dtype, CiKind kind, int rank,
                       const CiExpr *const *sizes, const int8_t *order);
void ci_graph_block_result(CiGraph *g, CiBlock *block, CiNode *value);
/* `trip_count` and `induction` (trip count and induction variable): for only, else NULL. Appends the
 * region and its result nodes; returns the region. */
CiNode *ci_graph_region(CiGraph *g, CiOp op, int nargs, CiNode *const *args, const CiExpr *trip_count,
                        const CiExpr *induction, int nblocks, CiBlock *const *blocks, CiLoc loc);
CiNode *ci_node_set_kind(CiNode *node, CiKind kind); /* scalar and python need rank 0 */

/* The node at the start of a chain of views; the node itself if it is no view. */
CiNode *ci_node_base(CiNode *node);
bool ci_node_is_view(const CiNode *node);
int ci_node_nstarts(const CiNode *node);   /* entries of starts */
void ci_graph_number(CiGraph *g);          /* ids 0.. in order, for printing */
/* Calls visit for each node of the block, params first, in order. The nodes of a region's blocks follow the region. */
void ci_block_visit(CiBlock *block, void (*visit)(void *arg, CiNode *node), void *arg);
/* True if `is` holds for a node of the block, or of the blocks inside. */
bool ci_block_has(const CiBlock *block, bool (*is)(void *arg, const CiNode *node), void *arg);
/* Removes the nodes for which `keeps` is false, in the block and the blocks inside. A region is visited after the nodes of
 * its blocks. */
void ci_block_filter(CiBlock *block, bool (*keeps)(void *arg, CiNode *node), void *arg);
int ci_graph_node_count(const CiGraph *g); /* blocks inside included */
/* A copy of g in another context, symbols re-interned. */
CiGraph *ci_graph_copy_to(CiContext *ctx, const CiGraph *g);

/* The symbols that occur in inputs, nodes and guards, including those that defines define. */
struct CiMap *ci_graph_symbols(const CiGraph *g);
void ci_graph_print(CiText *out, CiGraph *g);
/* Prints the same text for graphs that differ only in the names of data-dependent symbols or in
 * hints. */
void ci_graph_print_canonical(CiText *out, CiGraph *g);
CiGraph *ci_graph_parse(CiContext *ctx, const char *text);
/* Adds a symbol (`s0 in [0, inf) from in0.sizes 1 hint 7`), and an input (`f32[3] on 1`), from its text. */
const CiExpr *ci_graph_parse_symbol(CiGraph *g, const char *text);
CiNode *ci_graph_parse_input(CiGraph *g, const char *text);
/* Fails with CI_ERR_INTERNAL, naming the node and the rule broken. */
void ci_graph_verify(CiGraph *g);

#endif
