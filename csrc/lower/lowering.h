/* Shared declarations of lower/: the state of one lowering, and the body builder (recorder).
 *
 * A node is *lazy* (it has no buffer: a consumer inlines it by calling its inner function) or
 * *realized* (it has a buffer). Views are always lazy: they only change the index. Nodes are
 * visited in program order, and a write first realizes the lazy readers of the memory it
 * overwrites, so one buffer can contain all versions of an array.
 *
 * A node's id is its position: parameters of the graph, then nodes in program order. Nodes of a
 * region's blocks come after the region. Each block has one more position after its
 * nodes, at which its results are used. */
#ifndef CI_LOWER_LOWERING_H
#define CI_LOWER_LOWERING_H

#include "base/map.h"
#include "ir/layout.h"
#include "lower/lower.h"

/* Where the elements of a realized node are. */
typedef struct CiStorage {
    CiBuffer *buffer;
    const CiExpr *const *strides; /* one per axis of the node */
} CiStorage;

typedef struct CiNodeState {
    CiNode *node;
    CiStorage storage; /* buffer NULL: lazy */
    CiNode **users;
    int nusers, capusers;
    int *ends; /* positions after the blocks of which it is a result */
    int nends, capends;
    int last_use;   /* position of the last use; a use of a view is a use of its source */
    CiNode *reader; /* the only realized node that reads it; NULL: none or several */
    bool has_several_readers; /* several readers, or one that reads each element many times */
    bool is_wanted;           /* will be realized when visited */
    bool is_result_base;      /* its memory is returned by the program */
    CiNode *online_of;        /* the node is computed as an online reduction of these elements; or NULL */
    CiOp online;              /* that reduction */
    CiNode *counts_with; /* compress: the sum over its mask that the same nest computes; or NULL */
    bool is_dead;             /* unused: all its readers were replaced by online reductions */
    uint32_t visit;           /* number of the last traversal that visited it */
    const CiExpr *induction;  /* parameter of a for, define: its symbol */
    int end[2];               /* region: the position after each block */
    CiStorage *storages;            /* region: storages of its results */
    CiStorage hint;              /* next value of a carried array: the storage it must end in */
    CiNode *container;             /* the empty array whose first elements it becomes */
    bool waits;               /* an empty array: its memory is chosen at the first write */
} CiNodeState;

/* A region around the current block. Scopes are a list, innermost first. */
typedef struct CiScope {
    struct CiScope *outer;
    int region; /* position of the region */
    bool is_loop;
    int skip_first, skip_last; /* positions of the other branch, which does not run if this one does */
} CiScope;

typedef struct CiLowering {
    CiContext *ctx;
    CiSym *sym;
    CiGraph *graph;
    CiLoops *loops;
    const CiMachine *machine;
    const CiOptions *options;
    bool own_order; /* float reductions may use cinductor's order instead of NumPy's */
    CiNodeState *states; /* by node->id */
    int nstates;
    int end;        /* position after the program */
    int fail_end;   /* position after the last check: then arguments may be written */
    CiItems *items; /* list that gets new nests: the program's, or a region block's */
    CiScope *scope; /* NULL outside regions */
    CiNode **realized; /* nodes realized on demand of a reader, oldest first */
    int nrealized, caprealized;
    int position; /* of the node being visited */
    bool has_online;
    int nbinds;   /* number of data-dependent index symbols so far, over all nests */
    uint32_t visit;
} CiLowering;

/* Builds one body, with value numbering. Values of nodes are memoised by (node, index). */
typedef struct CiRecorder {
    CiLowering *low;
    CiBody body;
    CiMap *values; /* hash of an op -> chain of positions */
    CiMap *memo;   /* hash of (node, index) -> chain of entries */
    CiLoc locs[16];
    int nlocs;
} CiRecorder;

static inline CiNodeState *
ci_lowering_state(const CiLowering *low, const CiNode *node)
{
    return &low->states[node->id];
}

/* lower.c */
void ci_lowering_block(CiLowering *low, CiBlock *block);

/* lower_partial.c: computes a reduction from another one over fewer axes of the same elements. needs: nodes are not numbered
 * yet. */
void ci_lowering_partial_results(CiContext *ctx, CiBlock *block);

/* lower_uses.c: positions and users of all nodes; `after` means after low->position, or in the next
 * iteration of a loop. */
void ci_lowering_number(CiLowering *low);
bool ci_lowering_is_after(const CiLowering *low, const CiNode *node, int position);
bool ci_lowering_is_used_after(const CiLowering *low, const CiNode *node);
/* True if the node is defined outside a loop around the current block. */
bool ci_lowering_is_outside_loop(const CiLowering *low, const CiNode *node);
bool ci_lowering_is_lazy(const CiNode *node); /* true if its readers may inline it; views are lazy */
bool ci_lowering_reads(CiLowering *low, CiNode *node,
                       const CiBuffer *buffer); /* true if it would read the buffer when inlined now; needs a new visit */

/* lower_online.c: replaces a reduction whose elements depend on another reduction of the same elements, such as the sum of
 * exp(x - max(x)), by an online reduction (see the file). */
void ci_lowering_find_online(CiLowering *low);
/* An operand of a node; for an online reduction the elements themselves. */
static inline CiNode *
ci_lowering_operand(const CiLowering *low, const CiNode *node, int k)
{
    CiNode *elements = ci_lowering_state(low, node)->online_of;
    return elements ? elements : node->args[k];
}

/* lower_region.c */
void ci_lowering_region(CiLowering *low, CiNode *node);

/* lower_check.c */
void ci_lowering_check(CiLowering *low, CiNode *node);
/* A buffer of one element that the host can read and that shares no memory with an argument. It is the value's own buffer if
 * the value was computed after the position `first`, else a copy. */
CiBuffer *ci_lowering_host_value(CiLowering *low, CiNode *value, int first);
/* Sets low->fail_end. */
void ci_lowering_find_checks(CiLowering *low);

/* lower_recorder.c */
CiRecorder ci_recorder_new(CiLowering *low);
int ci_recorder_add(CiRecorder *rec, CiScalar op);
void ci_recorder_note(CiRecorder *rec, CiLoc loc); /* adds a source line of the nest */
const CiExpr *ci_lowering_element(CiLowering *low, CiStorage storage, int rank,
                                  const CiExpr *const *index);

/* lower_index.c */
/* Adds a bind of the value at `position`, an index below limit, and returns the bind's position. */
int ci_recorder_bind(CiRecorder *rec, int position, const CiExpr *limit);
/* A new symbol for a bind, in [0, limit). */
const CiExpr *ci_lowering_bound_symbol(CiLowering *low, const CiExpr *limit);
/* The index into an operand that is broadcast to this rank: axes are aligned at the right, and the index is 0 along axes of one
 * element. */
const CiExpr *const *ci_lowering_aligned_index(CiLowering *low, const CiNode *operand, int rank,
                                               const CiExpr *const *index);
/* gather, scatter: the broadcast rank of the index arrays, which are the args from `first` on. */
int ci_lowering_index_rank(const CiNode *node, int first);
/* gather, scatter: the index into the source: `found` along the indexed axes, the node's own index along the others. */
const CiExpr *const *ci_lowering_source_index(CiLowering *low, const CiNode *node, int rank,
                                              int nindex, const CiExpr *const *found,
                                              const CiExpr *const *index);

/* lower_value.c: emits the value of node at index (node->rank expressions); returns its position in
 * the body. */
int ci_recorder_value(CiRecorder *rec, CiNode *node, const CiExpr *const *index);

/* lower_scatter.c */
void ci_lowering_scatter(CiLowering *low, CiNode *node);

/* lower_pack.c: finds the compresses that one nest computes together with the sum over their mask. Called before any node is
 * visited. */
void ci_lowering_find_counts(CiLowering *low);
/* True if the mask of compresses that are counted beforehand should be in memory. This pays off if
 * the mask is small compared with its operands, because it is read to count, again for each part of
 * a long array, and to compress. */
bool ci_lowering_needs_mask(const CiLowering *low, const CiNode *mask);
/* True if arguments are in device memory. Then the host executes the library calls that the device does not support, on
 * contiguous copies. */
static inline bool
ci_lowering_has_device_arrays(const CiLowering *low)
{
    return low->machine->has_memory && !low->machine->host_arrays;
}
/* Lowers a sum over a mask together with the compresses that it counts; false if there are none. */
bool ci_lowering_count(CiLowering *low, CiNode *sum);
void ci_lowering_compress(CiLowering *low, CiNode *node);

/* lower_view.c: translates an index into a view to an index into its source. */
const CiExpr *const *ci_view_source_index(CiLowering *low, const CiNode *view,
                                          const CiExpr *const *index);
/* Translates an index into a chain of views to an index into `base`. */
const CiExpr *const *ci_view_base_index(CiLowering *low, CiNode *view, const CiNode *base,
                                        const CiExpr *const *index);

/* lower_realize.c: allocates memory for nodes. */
/* Realizes the lazy readers of node that are used after low->position; true when node itself is
 * read after it, so that its old contents must survive. The caller has begun a new visit. */
bool ci_lowering_realize_readers(CiLowering *low, CiNode *node);
CiStorage ci_lowering_new_storage(CiLowering *low, const CiNode *node);
/* The storage that the node must end in, if that is free now; else a new one. */
CiStorage ci_lowering_make_storage(CiLowering *low, CiNode *node);
/* Chooses memory for an empty array that is written by `assign`: in place of an operand of the
 * value, if each element depends only on the element at the same position. */
CiStorage ci_lowering_preallocate(CiLowering *low, CiNode *assign);
/* Realizes the node, unless it has a storage. */
void ci_lowering_realize(CiLowering *low, CiNode *node);
/* Index variables i0, i1, … over sizes, added to nest; an axis of extent 1 gets the constant 0 and
 * no loop. */
const CiExpr *const *ci_lowering_point_axes(CiLowering *low, CiNest *nest, int rank,
                                            const CiExpr *const *sizes);
void ci_lowering_add_axis(CiLowering *low, CiNest *nest, CiAxisKind kind, const char *prefix,
                          const CiExpr *extent, const CiExpr **var);
void ci_lowering_finish_nest(CiNest *nest, CiRecorder *rec, int result, CiContext *ctx);
/* One nest that stores value, broadcast over the sizes of view. The elements of view are in base,
 * whose memory is storage. */
void ci_lowering_store(CiLowering *low, CiNode *value, CiNode *view, const CiNode *base,
                       CiStorage storage);

/* True if this store needs no temporary. */
bool ci_lowering_can_store(CiLowering *low, CiNode *value, CiNode *view, const CiNode *base,
                           CiStorage storage);

/* lower_border.c: the box of base that a view selects: its start and end along each axis. ci_lowering_find_border succeeds if
 * base is large and the box is all of it except a thin border. */
typedef struct CiBorder {
    const CiExpr **starts, **ends;
} CiBorder;
bool ci_lowering_find_border(CiLowering *low, const CiNode *base, CiNode *view, CiBorder *border);
/* Stores the elements of the border in a storage that nothing reads at that time. */
void ci_lowering_store_border(CiLowering *low, CiNode *node, const CiBorder *border, CiStorage storage);

/* lower_overlap.c: true if a point of the nest reads an element that another point stores. */
bool ci_lowering_has_hazard(CiLowering *low, const CiBody *body, const CiNest *nest);

/* lower_reduce.c */
/* The order of a fold: lanes if the operand's contiguous axis is reduced, rows if it is kept; serial if the fold is short or the
 * dtype adds in order. */
CiFoldKind ci_lowering_fold_kind(const CiNode *node, const CiNode *operand, const CiExpr *length);
void ci_lowering_reduce(CiLowering *low, CiNode *node);
void ci_lowering_product(CiLowering *low, CiNode *node);

/* lower_scan.c */
void ci_lowering_scan(CiLowering *low, CiNode *node);

/* lower_write.c */
bool ci_lowering_may_overwrite(const CiLowering *low, CiStorage storage);
void ci_lowering_save(CiLowering *low,
                      CiNode *node); /* copies it to memory of its own */
/* A value that is not done yet and reads the storage of value k; -1 if there is none. */
int ci_lowering_find_conflict(CiLowering *low, int count, CiNode *const *values,
                              const CiStorage *storages, const bool *is_done, int k);
bool ci_storage_is_same(const CiNode *node, CiStorage a, CiStorage b);
/* Parallel assignment: stores each value, as it was before the call, in its storage. */
void ci_lowering_store_all(CiLowering *low, int n, CiNode *const *values, const CiStorage *storages,
                           bool *is_stored);
/* assign, scatter: the storage of the new version of args[0], which already has all old elements except those of `written`
 * (NULL: any element may be missing). */
CiStorage ci_lowering_take_over(CiLowering *low, CiNode *node, CiNode *written);
void ci_lowering_assign(CiLowering *low, CiNode *node);
void ci_lowering_concat(CiLowering *low, CiNode *node);
void ci_lowering_extern(CiLowering *low, CiNode *node);
void ci_lowering_final_writes(CiLowering *low);
void ci_lowering_results(CiLowering *low);

#endif
