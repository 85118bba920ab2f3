/* What the files of the CUDA backend share.
 *
 * Kernels of points alone are procs (csrc/codegen/grid.c). Of others each outer point belongs to a
 * group of threads, which share out the inner axes of every stage and meet in shuffles and shared
 * memory; neighbouring threads are neighbours of the inner axes (a row is a warp or a block) or of
 * the outer points (a fold down columns), as the scheduler put the lanes.
 *
 * The order of a float fold is this backend's own. A thread folds what it is given in order, in one
 * accumulator per element of its vector; accumulators fold pairwise; then threads fold pairwise
 * inside a warp, and warps in order; of a split fold, chunks last. All of it depends on sizes and
 * alignment alone, never on the card or on timing, so a program repeats its bits. */
#ifndef CI_DEVICE_CUDA_CUDA_H
#define CI_DEVICE_CUDA_CUDA_H

#include "codegen/codegen.h"
#include "device/device.h"
#include "target/emit.h"

/* ---- plan.c: how a kernel is laid on the card ---- */

typedef enum CiCudaStageKind {
    CI_CUDA_once, /* no inner axes: every thread of the group does the same, one of them stores */
    CI_CUDA_each, /* points of inner axes are shared out */
    CI_CUDA_fold, /* the domain of the folds is shared out, and the threads combine what they folded
                   */
    CI_CUDA_serial /* the first inner axes are shared out; a thread walks the rest alone: folds of
                      inner points, scans */
} CiCudaStageKind;

typedef struct CiCudaFold {
    const CiNest *nest;
    int nest_number;
    CiDtype dtype; /* of the value folded */
    bool is_arg;
    int id; /* names f<id> */
} CiCudaFold;

typedef struct CiCudaStage {
    const CiStage *stage;
    CiStageCode *code;
    CiCudaStageKind kind;
    int nshared;      /* axes shared out: the first ones */
    int vector;       /* elements of the last shared axis taken at a time */
    bool has_tail;    /* that axis need not be a multiple of the vector */
    int64_t trips;    /* > 0: rounds of the group over the stage, unrolled */
    bool is_exact;    /* unrolled rounds leave nobody without work */
    bool has_barrier; /* before it */
    CiCudaFold *folds;
    int nfolds;
} CiCudaStage;

/* Elements that a thread meets again in another stage at the same place: kept in registers. Rows
 * are values made here; the others are loads. */
typedef struct CiCudaCache {
    const CiBuffer *buffer;
    const CiExpr *index;
    bool is_row;
    int first, uses; /* the stage that fills it; stages that use it */
    int64_t trips;
    int vector;
} CiCudaCache;

typedef struct CiCudaShape {
    bool lanes_inside; /* neighbouring threads: of one group, else of neighbouring points */
    int group, points; /* threads of a group, groups of a block */
} CiCudaShape;

typedef struct CiCudaPlan CiCudaPlan;
struct CiCudaPlan {
    const CiKernel *kernel;
    bool is_flat, is_split;
    bool is_wide; /* indices need 64 bits */
    CiCudaShape shape, finish;
    CiCudaStage *stages;
    int nstages;
    CiCudaCache *caches;
    int ncaches, capcaches;
    int *alignment; /* per buffer of the kernel: bytes its memory must be aligned to for vectors */
    bool *is_shared_local; /* per placement: a local that one thread makes and all read */
    int64_t *row_offset;   /* per placement: bytes from the start of dynamic shared memory, -1: in
                              registers */
    int64_t shared_bytes;
    const CiExpr *npoints, *length; /* outer points; vectors of the domain of a split fold */
    bool is_tree, is_alone;         /* is_alone: a leaf that the first thread of a group runs */
    CiCudaPlan **leaves;            /* of a tree: one per leaf */
    int nleaves;
};

#define CI_CUDA_STATIC_SHARED 49152  /* bytes that a block may use without asking */
#define CI_CUDA_SHARED_COMFORT 49152 /* bytes of rows a block takes without crowding others out */
#define CI_CUDA_CHUNK_BLOCKS                                                                       \
    528 /* blocks that fill a large card: what a split fold is shared out among */
#define CI_CUDA_PARTIAL 16 /* bytes of one partial result */

/* ---- plan_*.c: what is decided before anything is printed, each calling those before it ---- */

/* plan_vector.c */
/* Elements must be done one after the other: a nest reads, at another index, what one stores. */
bool ci_cuda_has_hazard(const CiStage *stage);
/* Whether a stage reads or writes `index` in vectors along its last shared axis; that axis, or
 * NULL. */
bool ci_cuda_is_vector(CiSym *sym, const CiExpr *index, const CiExpr *var, int vector);
const CiExpr *ci_cuda_vector_axis(const CiCudaPlan *plan, const CiCudaStage *stage);
void ci_cuda_choose_vector(CiSym *sym, const CiCudaPlan *plan, CiCudaStage *stage,
                           const CiExpr *extent, bool may_have_tail);

/* plan_memory.c */
void ci_cuda_plan_caches(CiContext *ctx, CiCudaPlan *plan);
void ci_cuda_plan_locals(CiCudaPlan *plan);
void ci_cuda_plan_rows(CiContext *ctx, CiCudaPlan *plan);
void ci_cuda_fit_rows(CiContext *ctx, CiCudaPlan *plan); /* with fewer points a block if need be */
void ci_cuda_fit_folds(CiCudaPlan *plan);                /* with fewer threads a point */
/* Shared memory in which the folds of a stage meet; one of them, of `count` threads or warps. */
int64_t ci_cuda_fold_bytes(const CiCudaShape *shape, const CiCudaStage *s);
int64_t ci_cuda_one_fold_bytes(const CiCudaFold *fold, int64_t count);
void ci_cuda_plan_barriers(CiCudaPlan *plan);
void ci_cuda_plan_alignment(CiSym *sym, CiCudaPlan *plan);
/* NULL, or the cache that holds this access in stage number `stage`. */
const CiCudaCache *ci_cuda_find_cache(const CiCudaPlan *plan, const CiCudaStage *stage,
                                      const CiBuffer *buffer, const CiExpr *index);

/* plan_stage.c */
CiCudaPlan *ci_cuda_plan_new(CiContext *ctx, CiSym *sym, const CiKernel *kernel);
void ci_cuda_plan_stages(CiContext *ctx, CiCudaPlan *plan);
/* A statement of a tree, for groups of this shape. */
CiCudaPlan *ci_cuda_plan_leaf(CiContext *ctx, const CiKernels *kernels, const CiKernel *leaf,
                              const CiCudaShape *shape);
const CiExpr *ci_cuda_axes_product(CiSym *sym, const CiKernelAxis *axes, int count);
bool ci_cuda_has_inner_axes(const CiKernel *kernel);
bool ci_cuda_is_small(const CiExpr *e); /* 32 bits hold it and a few of it */

/* plan_tree.c */
void ci_cuda_plan_tree(CiContext *ctx, const CiKernels *kernels, CiCudaPlan *plan);
const CiCudaPlan *ci_cuda_find_leaf(const CiCudaPlan *plan, const CiKernel *leaf);
/* A number times the most that an extent can be, up to about 2**20. */
int64_t ci_cuda_times(int64_t count, const CiExpr *extent);
bool ci_cuda_leaf_stores_memory(const CiKernel *leaf);

/* plan.c: the plan of a kernel. */
CiCudaPlan *ci_cuda_plan(CiContext *ctx, const CiKernels *kernels, const CiKernel *kernel,
                         bool may_vectorise);

/* offload.c: a backend's why_slower. */
const char *ci_cuda_why_slower(const CiKernels *kernels, bool host_arrays);

/* ---- extent.c: sizes at a launch ---- */

/* An expression over a kernel's sizes, in postfix form. */
typedef struct CiCudaExtent {
    struct CiCudaExtentCode *code;
    int ncode;
} CiCudaExtent;

CiCudaExtent ci_cuda_extent_new(CiContext *ctx, const CiKernel *kernel, const CiExpr *e);
int64_t ci_cuda_extent_value(const CiCudaExtent *extent, const int64_t *sizes);

/* ---- specialize.c: kernels for a class of sizes ---- */

#define CI_CUDA_MULTIPLE 8
#define CI_CUDA_MAX_SIZES 16

typedef struct CiCudaClass {
    bool is_set;
    unsigned char of[CI_CUDA_MAX_SIZES]; /* per size argument; 0: none */
} CiCudaClass;

bool ci_cuda_can_specialize(const CiKernel *kernel);
/* False when a size is in no class, which the kernel for all sizes then serves. */
bool ci_cuda_find_class(const CiKernel *kernel, const int64_t *sizes, CiCudaClass *class);
/* What the kernel's k-th size is divided by to be the copy's. */
int64_t ci_cuda_class_divisor(const CiCudaClass *class, int k);
/* The kernel alone, in another context; with no class set, as it is. */
CiKernels *ci_cuda_copy_kernel(CiContext *ctx, const CiKernels *kernels, const CiKernel *kernel,
                               const CiCudaClass *class);

/* What kernels do: statement by statement, or (trees and groups of threads) as plans. */
typedef struct CiCudaForm {
    const CiProcs *procs;
    CiCudaPlan **plans;    /* by kernel id; NULL for library calls, and where there are procs */
    const CiExpr **blocks; /* by kernel id: of a launch */
    int **alignment;       /* and per buffer, bytes */
} CiCudaForm;
CiCudaForm ci_cuda_form(CiContext *ctx, const CiKernels *kernels, const CiOptions *options,
                        bool may_vectorise);
CiProcs *ci_cuda_lower(const CiKernels *kernels, const CiOptions *options, bool may_vectorise);
const CiProc *ci_cuda_find_proc(const CiProcs *procs, const CiKernel *kernel);

/* emit_source.c: the whole source. */
void ci_cuda_emit_source(CiText *out, const CiKernels *kernels, const CiCudaForm *form);
/* Calls visit for each kernel with loops, bodies of regions included. */
void ci_cuda_visit_kernels(const CiKernels *kernels,
                           void (*visit)(void *arg, const CiKernel *kernel), void *arg);
/* The scalar inputs a kernel reads, each once, in order: their slots' values are parameters after
 * the sizes. */
int ci_cuda_slots(CiContext *ctx, const CiKernel *kernel, const CiBuffer ***slots);

#endif
