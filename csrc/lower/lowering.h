/* Shared declarations of lower/: the state of one lowering, and the recorder (body builder) of one
 * body.
 *
 * A node is *lazy* (it has no buffer: a consumer inlines it by calling its inner function) or
 * *realized* (it has a buffer). Views are always lazy: they only change the index. Nodes are
 * visited in program order, and a write first realizes the lazy readers of the memory it
 * overwrites, so one buffer can contain all versions of an array.
 *
 * A node's id is its position: parameters of the graph, then nodes in program order. Nodes of a
 * region's blocks come after the region. One more position after each block is where its results
 * are used. */
#ifndef CI_LOWER_LOWERING_H
#define CI_LOWER_LOWERING_H

#include "base/map.h"
#include "ir/layout.h"
#include "lower/lower.h"

/* Where the elements of a realized node are. */
typedef struct CiStorage {
    CiBuffer *buffer;
    const CiExpr *const *strides; /* rank of the node */
} CiStorage;

typedef struct CiNodeState {
    CiNode *node;
    CiStorage storage; /* buffer NULL: lazy */
    CiNode **users;
    int nusers, capusers;
    int *ends; /* positions after the blocks it is a result of */
    int nends, capends;
    int last_use;   /* position of the last direct use; a view's uses are its source's too */
    CiNode *reader; /* the one realized node that reads it, or NULL: several or none */
    bool has_several_readers; /* or one that reads each element many times */
    bool is_wanted;           /* will be realized when visited */
    bool is_result_base;      /* leaves the program as memory */
    CiNode *online_of;        /* a sum that is an online reduction of these elements; or NULL */
    CiOp online;              /* which */
    CiNode *counts_with; /* compress: the sum over its mask, made in the same walk; or NULL */
    bool is_dead;             /* all its readers have become online reductions */
    uint32_t visit;           /* stamp of the walk that saw it */
    const CiExpr *induction;  /* parameter of a for: its symbol; define: its own */
    int end[2];               /* region: the position after each block */
    CiStorage *storages;            /* region: of its results */
    CiStorage hint;              /* next value of a carried array: where it will have to be */
    CiNode *container;             /* an empty array of which it becomes the first elements */
    bool waits;               /* an empty array: memory is chosen for it when it is written */
} CiNodeState;

/* A region around the block that is being lowered, innermost first. */
typedef struct CiScope {
    struct CiScope *outer;
    int region; /* position of the region */
    bool is_loop;
    int skip_first, skip_last; /* positions of the other branch, which never runs after this one */
} CiScope;

typedef struct CiLowering {
    CiContext *ctx;
    CiSym *sym;
    CiGraph *graph;
    CiLoops *loops;
    const CiMachine *machine;
    const CiOptions *options;
    bool own_order; /* reductions of floats need not be in NumPy's order */
    CiNodeState *states; /* by node->id */
    int nstates;
    int end;        /* position after the program */
    int fail_end;   /* from here on nothing fails any more, and arguments may be written */
    CiItems *items; /* where nests go: the program's items, or those of a region */
    CiScope *scope; /* NULL outside regions */
    CiNode **realized; /* nodes realized because a reader asked, oldest first */
    int nrealized, caprealized;
    int position; /* of the node being visited */
    bool has_online;
    int nbinds;   /* index symbols made by data so far: each its own, over all nests */
    uint32_t visit;
} CiLowering;

/* Records one body: scalar ops numbered by value, nodes memoised by (node, index). */
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

/* lower_partial.c: reductions continue from others over fewer axes. needs: nothing is numbered yet. */
void ci_lowering_partial_results(CiContext *ctx, CiBlock *block);

/* lower_uses.c: positions and users of all nodes; `after` means after low->position, or in the next
 * iteration of a loop. */
void ci_lowering_number(CiLowering *low);
bool ci_lowering_is_after(const CiLowering *low, const CiNode *node, int position);
bool ci_lowering_is_used_after(const CiLowering *low, const CiNode *node);
/* Defined outside a loop that is around the block being lowered. */
bool ci_lowering_is_outside_loop(const CiLowering *low, const CiNode *node);
bool ci_lowering_is_lazy(const CiNode *node); /* its readers may inline it; views are */
bool ci_lowering_reads(CiLowering *low, CiNode *node,
                       const CiBuffer *buffer); /* when inlined now; needs a new visit */

/* lower_online.c: sums of what another reduction of the same elements is taken from. */
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
/* One element in memory that the host can read and no argument shares: the value's own if it was
 * made after the position `first`, else a copy. */
CiBuffer *ci_lowering_host_value(CiLowering *low, CiNode *value, int first);
/* Sets low->fail_end. */
void ci_lowering_find_checks(CiLowering *low);

/* lower_recorder.c */
CiRecorder ci_recorder_new(CiLowering *low);
int ci_recorder_add(CiRecorder *rec, CiScalar op);
void ci_recorder_note(CiRecorder *rec, CiLoc loc); /* a source line the nest comes from */
const CiExpr *ci_lowering_element(CiLowering *low, CiStorage storage, int rank,
                                  const CiExpr *const *index);

/* lower_index.c */
/* The position of the bind of the value at `position`, an index below limit; and its symbol. */
int ci_recorder_bind(CiRecorder *rec, int position, const CiExpr *limit);
const CiExpr *ci_lowering_bound_symbol(CiLowering *low, const CiExpr *limit);
/* The index into an operand that is broadcast to this rank: aligned at the right, 0 along axes of
 * one element. */
const CiExpr *const *ci_lowering_aligned_index(CiLowering *low, const CiNode *operand, int rank,
                                               const CiExpr *const *index);
/* gather, scatter: the rank of the arrays of indices, which are args from `first` on; the index
 * into the source of that rank, `found` along the indexed axes and the rest as it is. */
int ci_lowering_index_rank(const CiNode *node, int first);
const CiExpr *const *ci_lowering_source_index(CiLowering *low, const CiNode *node, int rank,
                                              int nindex, const CiExpr *const *found,
                                              const CiExpr *const *index);

/* lower_value.c: emits the value of node at index (node->rank expressions); returns its position in
 * the body. */
int ci_recorder_value(CiRecorder *rec, CiNode *node, const CiExpr *const *index);

/* lower_scatter.c */
void ci_lowering_scatter(CiLowering *low, CiNode *node);

/* lower_pack.c: which packs are one walk with the sum that counts them; before any node is visited. */
void ci_lowering_find_counts(CiLowering *low);
/* True if the mask of compresses that are counted beforehand should be in memory. This pays off if
 * the mask is small compared with its operands, because it is read to count, again for each part of
 * a long array, and to compress. */
bool ci_lowering_needs_mask(const CiLowering *low, const CiNode *mask);
/* Arguments are in the memory of devices. The host makes the library calls that these do not take,
 * with copies, each of one dense run of bytes. */
static inline bool
ci_lowering_has_device_arrays(const CiLowering *low)
{
    return low->machine->has_memory && !low->machine->host_arrays;
}
/* A sum, with the packs that it counts; false: there are none. */
bool ci_lowering_count(CiLowering *low, CiNode *sum);
void ci_lowering_compress(CiLowering *low, CiNode *node);

/* lower_view.c: the index into a view's source that an index into the view means. */
const CiExpr *const *ci_view_source_index(CiLowering *low, const CiNode *view,
                                          const CiExpr *const *index);
/* The index into `base` that an index into the chain of views `view` means. */
const CiExpr *const *ci_view_base_index(CiLowering *low, CiNode *view, const CiNode *base,
                                        const CiExpr *const *index);

/* lower_realize.c: giving nodes memory */
/* Realizes the lazy readers of node that are used after low->position; true when node itself is
 * read after it, so that its old contents must survive. The caller has begun a new visit. */
bool ci_lowering_realize_readers(CiLowering *low, CiNode *node);
CiStorage ci_lowering_new_storage(CiLowering *low, const CiNode *node);
/* A new storage, or where the node has to be in the end when that is free by now. */
CiStorage ci_lowering_make_storage(CiLowering *low, CiNode *node);
/* Chooses memory for an empty array that is written by `assign`: in place of an operand of the
 * value, if each element depends only on the element at the same position. */
CiStorage ci_lowering_preallocate(CiLowering *low, CiNode *assign);
/* Makes sure node has a storage. */
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

/* lower_border.c: of the box of base that view is: where it starts and ends along each axis. Found
 * where it fills base but for a thin frame, and base is large. */
typedef struct CiBorder {
    const CiExpr **starts, **ends;
} CiBorder;
bool ci_lowering_find_border(CiLowering *low, const CiNode *base, CiNode *view, CiBorder *border);
/* Stores the border of the box, in a storage that nothing reads. */
void ci_lowering_store_border(CiLowering *low, CiNode *node, const CiBorder *border, CiStorage storage);

/* lower_overlap.c: the nest reads, at another point than the one that stores it, memory it writes.
 */
bool ci_lowering_has_hazard(CiLowering *low, const CiBody *body, const CiNest *nest);

/* lower_reduce.c */
/* lanes when a folded axis is the contiguous one of the operand, rows when a kept one is; serial where
 * it is short, or its dtype adds in order. */
CiFoldKind ci_lowering_fold_kind(const CiNode *node, const CiNode *operand, const CiExpr *length);
void ci_lowering_reduce(CiLowering *low, CiNode *node);
void ci_lowering_product(CiLowering *low, CiNode *node);

/* lower_scan.c */
void ci_lowering_scan(CiLowering *low, CiNode *node);

/* lower_write.c */
bool ci_lowering_may_overwrite(const CiLowering *low, CiStorage storage);
void ci_lowering_save(CiLowering *low,
                      CiNode *node); /* gives it memory of its own, whatever it was made of */
/* A value other than number k that is not done and reads the storage of k; -1: none. */
int ci_lowering_find_conflict(CiLowering *low, int count, CiNode *const *values,
                              const CiStorage *storages, const bool *is_done, int k);
bool ci_storage_is_same(const CiNode *node, CiStorage a, CiStorage b);
/* All at once, as the assignment of a tuple: each value, as it is before the call, where it has to
 * be after it. */
void ci_lowering_store_all(CiLowering *low, int n, CiNode *const *values, const CiStorage *storages,
                           bool *is_stored);
/* assign, scatter: where the new version of args[0] lies, its elements there already but those of
 * `written`, which may be missing (NULL: any). */
CiStorage ci_lowering_take_over(CiLowering *low, CiNode *node, CiNode *written);
void ci_lowering_assign(CiLowering *low, CiNode *node);
void ci_lowering_concat(CiLowering *low, CiNode *node);
void ci_lowering_extern(CiLowering *low, CiNode *node);
void ci_lowering_final_writes(CiLowering *low);
void ci_lowering_results(CiLowering *low);

#endif
