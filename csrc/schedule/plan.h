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

/* A kernel to be: nests in program order (as lowered) and the kernel they make, or a library call. */
typedef struct CiDraft {
    CiDraftNest *nests;
    int nnests, capnests;
    CiExternItem *ext;
    CiKernel *kernel;
} CiDraft;

typedef struct CiScheduler {
    CiContext *ctx;
    CiSym *sym;
    CiLoops *loops;
    const CiTarget *target;
    const CiScheduleOptions *options;
    CiKernels *kernels;
    CiDraft *drafts;
    int ndrafts, capdrafts;
    int *readers;                  /* by buffer id: the one draft that reads it, or one of the two below */
    int *nwriters;                 /* by buffer id: nests and calls that write it */
} CiScheduler;

#define CI_NO_READER (-1)
#define CI_SEVERAL_READERS (-2)

/* depend.c */
CiDraftNest ci_draft_nest(CiScheduler *s, CiNest *nest);
bool ci_draft_reads(const CiDraftNest *nest, const CiBuffer *buffer);
/* NULL when nest may run before everything in draft, else the reason. */
const char *ci_why_not_before(CiScheduler *s, const CiDraft *draft, const CiDraftNest *nest);
bool ci_shares_data(const CiDraft *draft, const CiDraftNest *nest);
/* Two elements of one buffer, addressed by a and b over the kernel's outer symbols: NULL when they can only be the same element in
 * the same outer point, else the reason. */
const char *ci_why_not_local(CiScheduler *s, const CiKernel *kernel, const CiExpr *a, const CiExpr *b);

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

/* memory.c: where each buffer lives, what pointers and sizes a kernel takes. */
void ci_find_readers(CiScheduler *s);
void ci_place_buffers(CiScheduler *s, int draft);

#endif
