/* What the files of schedule/ share: nests with what they read, and kernels being planned. */
#ifndef CI_SCHEDULE_PLAN_H
#define CI_SCHEDULE_PLAN_H

#include "schedule/schedule.h"

/* A nest and the distinct buffers it loads. */
typedef struct CiDraftNest {
    CiNest *nest;
    CiBuffer **reads;
    int nreads;
} CiDraftNest;

typedef struct CiScheduler CiScheduler;

/* A kernel to be: nests in program order (as lowered) and the kernel they make, or a library call,
 * or what the host reads, or a region. */
typedef struct CiDraft {
    int number; /* in program order, over all regions */
    CiDraftNest *nests;
    int nnests, capnests;
    CiExternItem *ext;
    CiCheckItem *check;
    CiItem *region;        /* a for, while or if */
    CiScheduler *inner[2]; /* of a region: its blocks as CiKernel.inner */
    CiKernel *kernel;
} CiDraft;

/* What all blocks share. */
typedef struct CiSchedulerTotals {
    int *readers; /* by buffer id: number of the one draft that reads it, or one of the two below */
    int *nwriters; /* by buffer id: nests and calls that write it */
    int ndrafts, nkernels;
} CiSchedulerTotals;

/* Schedules one list of items: the program's, or a block of a region. */
struct CiScheduler {
    CiContext *ctx;
    CiSym *sym;
    CiLoops *loops;
    const CiTarget *target;
    const CiScheduleOptions *options;
    CiKernels *kernels;
    CiDraft *drafts;
    int ndrafts, capdrafts;
    CiSchedulerTotals *totals;
    const CiScheduler *outer; /* of the list around the region */
    const CiExpr *variable;   /* block of a for: its variable */
    bool is_in_loop;
};

#define CI_NO_READER (-1)
#define CI_SEVERAL_READERS (-2)

/* depend.c */
CiDraftNest ci_draft_nest(CiScheduler *s, CiNest *nest);
bool ci_draft_reads(const CiDraftNest *nest, const CiBuffer *buffer);
/* NULL when nest may run before everything in draft, else the reason. */
const char *ci_why_not_before(CiScheduler *s, const CiDraft *draft, const CiDraftNest *nest);
bool ci_shares_data(const CiDraft *draft, const CiDraftNest *nest);
/* Two elements of one buffer, addressed by a and b over the kernel's outer symbols: NULL when they
 * can only be the same element in the same outer point, else the reason. */
const char *ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a,
                             const CiExpr *b);
/* A variable of one of the kernel's own loops, and not of a region around it. */
bool ci_is_kernel_axis(const CiKernel *kernel, const CiExpr *symbol);

/* order.c: point axes in the order of the target's memory, so that the last one is contiguous. */
void ci_order_axes(CiScheduler *s, CiNest *nest);

/* plan.c: the kernel that nests would make together, or NULL with *why. */
CiKernel *ci_plan_kernel(CiScheduler *s, int count, const CiDraftNest *nests, const char **why);

/* fuse.c: which nests run together. */
void ci_fuse(CiScheduler *s);

/* axes.c: merged axes, lanes, splits, units. */
void ci_label_axes(CiScheduler *s, CiKernel *kernel);
bool ci_wants_outer_lanes(CiScheduler *s, const CiKernel *kernel);
bool ci_can_split(CiScheduler *s, const CiKernel *kernel);

/* region.c: blocks of regions, and what crosses their trips. */
void ci_add_region(CiScheduler *s, CiDraft *draft, CiItem *item);
CiKernel *ci_finish_region(CiScheduler *s, const CiDraft *draft);

/* schedule.c */
void ci_schedule_draft(CiScheduler *s, CiItems *items); /* drafts, fused */
void ci_schedule_finish(CiScheduler *s);                /* their kernels */

/* memory.c: where each buffer lives, what pointers and sizes a kernel takes. */
void ci_find_readers(CiScheduler *s);
void ci_place_buffers(CiScheduler *s, int draft);

#endif
