/* Shared declarations of schedule/: nests with their accesses, and kernels that are being
 * planned. */
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
    int part;     /* of several kernels that are one launch, its own */
} CiFusionNest;

typedef struct CiScheduler CiScheduler;
typedef struct CiPlanned CiPlanned; /* plan.c: a nest in the kernel it is planned for */

/* A kernel to be: nests in program order (as lowered) and the kernel they make, or a library call,
 * or what the host reads, or a region. */
typedef struct CiFusion {
    int number; /* in program order, over all regions */
    CiFusionNest *nests;
    int nnests, capnests;
    CiExternItem *ext;
    CiCheckItem *check;
    CiItem *region;        /* a for, while or if */
    CiScheduler *inner[2]; /* of a region: its blocks as CiKernel.inner */
    bool is_tree;          /* of a region: it becomes a tree inside one kernel */
    CiKernel *kernel;
    CiPlanned *planned; /* by nest, of the kernel; or NULL */
} CiFusion;

/* State that all blocks share. */
typedef struct CiSchedulerTotals {
    int *readers; /* by buffer id: number of the one fusion that reads it, or one of the two below */
    int *nreaders; /* by buffer id: nests, calls, tests and swaps that read it, and the return */
    int *nwriters; /* by buffer id: nests, calls and swaps that write it */
    int nfusions, nkernels;
    CiJoin *joins; /* groups put together, in the order in which they were */
    int njoins, capjoins;
    int npairs; /* that a kernel could hold: joins, and what the option apart says of others */
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
    const CiScheduler *outer;     /* of the block around the region */
    const CiLoopScope *scope;     /* the region whose block this is; NULL: the program's */
    const CiScheduler *condition; /* of the body of a while: of what it sees besides; or NULL */
    bool is_in_loop;
};

#define CI_NO_READER (-1)
#define CI_SEVERAL_READERS (-2)

/* depend.c */
CiFusionNest ci_fusion_nest(CiScheduler *s, CiNest *nest);
/* The reason when one kernel of both (b may be NULL) would touch more arrays than the machine takes,
 * or the C compiler would need long for it. */
const char *ci_why_too_large(CiScheduler *s, const CiFusion *a, const CiFusion *b);
/* NULL when nest may run before everything in fusion, else the reason. */
const char *ci_why_not_before(CiScheduler *s, const CiFusion *fusion, const CiFusionNest *nest);
/* Two elements of one buffer, addressed by a and b over the kernel's outer symbols: NULL when they
 * can only be the same element in the same outer point, else the reason. */
const char *ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a,
                             const CiExpr *b);
/* A variable of one of the kernel's own loops, those of its tree included, and not of a region
 * around it. */
bool ci_is_kernel_axis(const CiKernel *kernel, const CiExpr *symbol);

/* domain.c: the nest with its first point axes of these extents, merged and split to that end, or NULL. */
const CiNest *ci_refit_axes(CiScheduler *s, const CiNest *nest, int count,
                            const CiKernelAxis *axes);

/* plan.c: the kernel that nests make together. */
/* The kernel of a fusion with all nests of `first` and more: false with *why where there is none. */
bool ci_plan_joined(CiScheduler *s, const CiFusion *first, CiFusion *both, const char **why);
CiKernel *ci_plan_fusion(CiScheduler *s, CiFusion *fusion); /* of one with nests */
void ci_add_locs(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion);

/* One launch for small kernels that need nothing of each other: `count` nests, of which those with
 * the same `part` were a kernel. */
CiKernel *ci_plan_combined(CiScheduler *s, int count, const CiFusionNest *nests);

/* fuse.c: which nests run together. horizontal_fusion.c: which small kernels are one launch. */
void ci_fuse(CiScheduler *s);
void ci_combine(CiScheduler *s);

/* fusion_policy.c: NULL where `count` nests that a kernel could hold should be in it, else the reason. */
const char *ci_why_not_together(CiScheduler *s, const CiKernel *kernel, int count);

/* attention.c: two products and the softmax between them, as one kernel. */
void ci_fuse_attention(CiScheduler *s);

/* axes.c: two neighbouring axes of a nest as one. */
bool ci_can_merge_axes(CiScheduler *s, const CiNest *nest, const CiExpr *outer,
                       const CiExpr *inner, const CiExpr *extent);
void ci_merge_axes(CiScheduler *s, CiNest *nest, int k, const CiExpr *var, const CiExpr *extent);
/* Axes that every nest accesses as one become one. */
void ci_merge_all_axes(CiScheduler *s, CiKernel *kernel);
/* Merges axes, and finds the kind of a kernel and the direction of its reductions. */
void ci_finish_axes(CiScheduler *s, CiKernel *kernel);

/* inline_regions.c: regions that are small enough to be trees inside one kernel. */
const char *ci_why_not_tree(CiScheduler *s, const CiFusion *fusion); /* its blocks are grouped */
CiKernel *ci_finish_tree(CiScheduler *s, const CiFusion *fusion);

/* region_scalars.c: one-element temps of a tree become variables. */
void ci_place_scalars(CiScheduler *s, CiKernel *kernel, const CiFusion *fusion);
bool ci_is_placed_in_leaf(const CiKernels *tree, const CiBuffer *buffer);

/* parallel.c. NULL if the iterations of a `for` are independent, else the reason. tree: the loop's
 * tree, or NULL if it is not built yet. */
const char *ci_why_not_parallel(CiScheduler *s, const CiItem *loop, const CiKernels *tree);
/* Number of perfectly nested loops whose iterations are all independent. */
int ci_parallel_loops(CiScheduler *s, const CiItem *loop, const CiKernels *tree);
/* kernel_order.c: the order of kernels that holds least memory. */
void ci_order_kernels(CiScheduler *s);

/* fusion.c */
void ci_schedule_fusion(CiScheduler *s, CiItems *items); /* fusions, fused */
void ci_schedule_finish(CiScheduler *s);                /* their kernels */

/* buffer_placement.c: where each buffer lives, what pointers and sizes a kernel takes. */
void ci_find_readers(CiScheduler *s);
void ci_place_buffers(CiScheduler *s, int fusion);
void ci_place_leaf(CiScheduler *s, CiKernel *leaf, const CiFusion *fusion); /* takes nothing */
/* Pointers and sizes that the code of a nest of the kernel or of a leaf of its tree mentions. body
 * (may be NULL) makes symbols of its own. */
void ci_take_operands(CiScheduler *s, CiKernel *kernel, const CiKernel *leaf, const CiNest *nest);
void ci_take_buffer(CiScheduler *s, CiKernel *kernel, CiBuffer *buffer, bool is_stored);
void ci_take_symbols(CiScheduler *s, CiKernel *kernel, const CiBody *body, const CiExpr *e);

#endif
