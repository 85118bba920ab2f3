/* Shared declarations of schedule/: the fusions (groups of nests) under construction, and the functions that test, plan
 * and finish their kernels. */
#ifndef CI_SCHEDULE_PLAN_H
#define CI_SCHEDULE_PLAN_H

#include "analysis/labels.h"
#include "analysis/templates.h"
#include "loops/loops.h"
#include "schedule/schedule.h"

/* A nest and the distinct buffers it loads. */
typedef struct CiFusionNest {
    CiNest *nest;
    CiBuffer **reads;
    int nreads;
    int position; /* in program order, in its block */
    int part;     /* horizontal fusion: number of the kernel that the nest belongs to */
} CiFusionNest;

typedef struct CiScheduler CiScheduler;
typedef struct CiPlanned CiPlanned; /* plan.c: a nest in the kernel it is planned for */

/* A candidate kernel. It is exactly one of: nests in program order with the kernel that they form, a library call, a check
 * by the host, a region. */
typedef struct CiFusion {
    int number; /* in program order, over all regions */
    CiFusionNest *nests;
    int nnests, capnests;
    CiExternItem *ext;
    CiCheckItem *check;
    CiItem *region;        /* a for, while or if */
    CiScheduler *inner[2]; /* of a region: the schedulers of its blocks, as in CiKernel.inner */
    bool is_tree;          /* of a region: it is inlined into one kernel, as a tree */
    CiKernel *kernel;
    CiPlanned *planned; /* by nest of the kernel: its plan; or NULL */
} CiFusion;

/* State that all blocks share. */
typedef struct CiSchedulerTotals {
    int *readers; /* by buffer id: number of the only fusion that reads it, CI_NO_READER or CI_SEVERAL_READERS */
    int *nreaders; /* by buffer id: number of nests, calls, tests and swaps that read it, plus the return */
    int *nwriters; /* by buffer id: number of nests, calls and swaps that write it */
    int nfusions, nkernels;
    CiJoin *joins; /* fused pairs of groups, in the order of fusion */
    int njoins, capjoins;
    int npairs; /* pairs that fit in a kernel: the joins, and the pairs that the option `apart` forbids */
} CiSchedulerTotals;

/* Schedules one list of items: the program's, or a block of a region. */
struct CiScheduler {
    CiContext *ctx;
    CiSym *sym;
    CiLoops *loops;
    const CiMachine *machine;
    const CiOptions *options;
    CiKernels *kernels;
    CiFusion *fusions;
    int nfusions, capfusions;
    CiSchedulerTotals *totals;
    const CiScheduler *outer;     /* scheduler of the block around the region */
    const CiLoopScope *scope;     /* the region whose block this is; NULL: the program's */
    const CiScheduler *condition; /* for a while's body: the scheduler of its condition, whose values the body sees; or NULL */
    bool is_in_loop;
};

#define CI_NO_READER (-1)
#define CI_SEVERAL_READERS (-2)

/* depend.c */
CiFusionNest ci_fusion_nest(CiScheduler *s, CiNest *nest);
/* NULL, or why one kernel of a and b (b may be NULL) would be too large: it accesses more arrays than the machine allows,
 * or the C compiler would need too long. */
const char *ci_why_too_large(CiScheduler *s, const CiFusion *a, const CiFusion *b);
/* NULL when nest may run before everything in fusion, else the reason. */
const char *ci_why_not_before(CiScheduler *s, const CiFusion *fusion, const CiFusionNest *nest);
/* a and b are indices of one buffer over the kernel's outer symbols. NULL if they are equal only at the same outer point,
 * else the reason. */
const char *ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a,
                             const CiExpr *b);
/* True if the symbol is the variable of a loop of the kernel or of its tree, not of a region around the kernel. */
bool ci_is_kernel_axis(const CiKernel *kernel, const CiExpr *symbol);

/* domain.c: the nest rewritten so that its first point axes have these extents, by merging and splitting axes; NULL if
 * that is not possible. */
const CiNest *ci_refit_axes(CiScheduler *s, const CiNest *nest, int count,
                            const CiKernelAxis *axes);

/* plan.c. Plans the kernel of `both`, which has all nests of `first` and more; false, with the reason in *why, if its
 * nests do not fit in one kernel. */
bool ci_plan_joined(CiScheduler *s, const CiFusion *first, CiFusion *both, const char **why);
CiKernel *ci_plan_fusion(CiScheduler *s, CiFusion *fusion); /* of one with nests */
void ci_add_locs(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion);

/* One launch for several small independent kernels. The `count` nests with equal `part` belong to one of them. */
CiKernel *ci_plan_combined(CiScheduler *s, int count, const CiFusionNest *nests);

/* fuse.c: vertical fusion of nests. horizontal_fusion.c: one launch for small independent kernels. */
void ci_fuse(CiScheduler *s);
void ci_combine(CiScheduler *s);

/* fusion_policy.c: NULL if the `count` nests, which fit in one kernel, should be fused, else the reason. */
const char *ci_why_not_together(CiScheduler *s, const CiKernel *kernel, int count);

/* attention.c: fuses two products and the softmax between them to one kernel. */
void ci_fuse_attention(CiScheduler *s);

/* axes.c: merges two neighbouring axes of a nest. */
bool ci_can_merge_axes(CiScheduler *s, const CiNest *nest, const CiExpr *outer,
                       const CiExpr *inner, const CiExpr *extent);
void ci_merge_axes(CiScheduler *s, CiNest *nest, int k, const CiExpr *var, const CiExpr *extent);
/* Merges the neighbouring axes that can be merged in every nest of the kernel. */
void ci_merge_all_axes(CiScheduler *s, CiKernel *kernel);
/* Merges axes, and finds the kind of a kernel and the direction of its reductions. */
void ci_finish_axes(CiScheduler *s, CiKernel *kernel);

/* inline_regions.c: regions that are small enough to become trees inside one kernel. NULL, or why a region does not; its
 * blocks have been fused before. */
const char *ci_why_not_tree(CiScheduler *s, const CiFusion *fusion);
CiKernel *ci_finish_tree(CiScheduler *s, const CiFusion *fusion);

/* region_scalars.c: scalar replacement of a tree's one-element temporaries. */
void ci_place_scalars(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion);
bool ci_is_placed_in_leaf(const CiKernels *tree, const CiBuffer *buffer);

/* parallel.c. NULL if the iterations of a `for` are independent, else the reason. tree: the loop's tree; NULL if it is
 * not built yet. */
const char *ci_why_not_parallel(CiScheduler *s, const CiItem *loop, const CiKernels *tree);
/* Number of perfectly nested loops whose iterations are all independent. */
int ci_parallel_loops(CiScheduler *s, const CiItem *loop, const CiKernels *tree);
/* kernel_order.c: reorders kernels to lower the peak memory. */
void ci_order_kernels(CiScheduler *s);

/* fusion.c */
void ci_schedule_fusion(CiScheduler *s, CiItems *items); /* creates the fusions and fuses them */
void ci_schedule_finish(CiScheduler *s);                /* creates their kernels */

/* buffer_placement.c: chooses the placement of each buffer, and the pointers and sizes that are a kernel's arguments. */
void ci_find_readers(CiScheduler *s);
void ci_place_buffers(CiScheduler *s, int fusion);
void ci_place_leaf(CiScheduler *s, CiKernel *leaf, const CiFusion *fusion); /* a leaf has no arguments */
/* Adds the pointers and sizes that a nest of the kernel, or of a leaf of its tree, uses to the kernel's arguments. Symbols
 * that `body` (may be NULL) defines are not arguments. */
void ci_take_operands(CiScheduler *s, CiKernel *kernel, const CiKernel *leaf, const CiNest *nest);
void ci_take_buffer(CiScheduler *s, CiKernel *kernel, CiBuffer *buffer, bool is_stored);
void ci_take_symbols(CiScheduler *s, CiKernel *kernel, const CiBody *body, const CiExpr *e);

#endif
