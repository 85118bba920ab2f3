/* What the files that print CPU kernels share, from the inside of a kernel outwards: each calls
 * those above it here.
 *
 * A kernel is printed from the inside out: the code of a stage first, into a text of its own; then
 * the frame asks that text which names it mentions and declares those. */
#ifndef CI_DEVICE_CPU_EMIT_CPU_H
#define CI_DEVICE_CPU_EMIT_CPU_H

#include "base/map.h"
#include "device/cpu/level.h"
#include "target/c/c.h"

#define CI_MOST_VECTORS 16          /* that the accumulators of a fold fill */
#define CI_CPU_BLOCK 256            /* lanes between two calls of vector mathematics */
#define CI_CPU_POLL_LANES (1 << 20) /* lanes of one unit between two polls */

/* How a fold is computed where it stands; decides bits only for ordered folds, where it is the
 * nest's own order. */
typedef enum CiFoldPlan {
    CI_PLAN_serial, /* one accumulator (per lane), in order */
    CI_PLAN_lanes,  /* inside: lanes of one row */
    CI_PLAN_rows,   /* outside: blocks of accumulators per lane */
    CI_PLAN_short   /* outside, at most two values each: a few accumulators per lane */
} CiFoldPlan;

typedef struct CiCpuFold {
    const CiNest *nest;
    int value;     /* what is folded: position in the stage's code */
    CiDtype dtype; /* accumulators */
    CiFoldPlan plan;
    bool is_arg, is_ordered;
    int lanes;          /* of a block: L of loop.h; 1 for rows */
    bool is_pushed;     /* lanes: values come in pieces of any length */
    bool is_one_block;  /* lanes: never more than a block, so there is no counter */
    bool is_vector;     /* lanes: accumulators are a few vectors, not an array of elements */
    int depth;          /* position of its first reduce axis among the stage's axes */
    int id;             /* names f<id>, fold<id> */
    int partial_offset; /* split: bytes */
} CiCpuFold;

/* Where the lanes of the stage being printed are. */
typedef enum CiLanes { CI_LANES_none, CI_LANES_inner, CI_LANES_tile, CI_LANES_flat } CiLanes;

typedef struct CiCpuStage {
    const CiStage *stage;
    CiStageCode *code;
    CiLanes lanes;
    const CiExpr *lane_var, *lane_extent;
    bool is_fused_fold; /* lanes fold in the loop that computes them, without arrays between */
    bool is_tail;       /* of such a loop what is printed now is the rest, less than a chunk */
    bool is_masked;     /* the rest computes in lanes that are there, and folds in all */
    bool is_narrow;     /* a few lanes that lie far apart: faster one by one */
    bool has_hazard;    /* reads elements that it stores elsewhere: no promise to the vectoriser */
    CiCpuFold *folds;
    int nfolds;
    /* per value */
    bool *is_invariant; /* the same for all lanes: computed once before them */
    bool *is_cheap;     /* recomputed where it is used instead of kept in an array */
    bool *is_settled;   /* the compiler may not see how it is made */
    bool *is_hidden;    /* a number that it may not know */
    int *segment;       /* calls of mathematics and scans cut the code into segments */
    int *slot;          /* array that carries it from one segment to the next, or -1 */
    int nsegments;
    CiDtype *slots; /* element type of each array */
    int nslots, capslots;
} CiCpuStage;

/* A split kernel is two functions: one leaves a partial result of each chunk, one joins them. */
typedef enum CiCpuFunction {
    CI_FUNCTION_whole,
    CI_FUNCTION_part,
    CI_FUNCTION_finish
} CiCpuFunction;

typedef struct CiCpuEmitter {
    CiEmitter *base;
    CiContext *ctx;
    CiSym *sym;
    CiCpuLevel level;
    CiText *out; /* where lines go now */
    const CiKernel *kernel;
    int batch;     /* points whose stages without axes run together, as lanes; 0: none */
    int tile;      /* lanes of a tile of the last outer axis; 0 when lanes are inside */
    bool is_short; /* rows of the kernel are short here: kernel.h */
    bool is_long;  /* or they are not, or empty */
    CiCpuFunction function;
    bool is_merging;              /* printing the merge of a split kernel's chunks */
    bool is_tree;                 /* printing leaves: the tree asks whether to go on */
    CiCPrinter *printer;
    const CiProcs *procs;         /* of kernels that are printed from them */
    CiMap *known;                 /* text of a kernel -> the kernel: emit_same.c */
    int nfolds;                   /* folds of the kernel so far */
    const CiExpr *row, *row_here; /* a length, and what it is known to be where lines go now */
    int nchoices;                 /* that the values of all kernels make */
    int64_t *hidden;              /* numbers that the body mentions and that no compiler may know */
    int nhidden, caphidden;
    const CiExpr *apart;           /* strides along this variable are hidden, or NULL */
    bool has_math[CI_OP_COUNT][2], has_single_math[CI_OP_COUNT][2]; /* f32, f64 */
    uint8_t has_fold[CI_OP_COUNT][CI_DTYPE_COUNT]; /* bits of CiFoldHelper */
} CiCpuEmitter;

typedef enum CiFoldHelper {
    CI_HELPER_pairwise = 1,
    CI_HELPER_counter = 2,
    CI_HELPER_block = 4,
    CI_HELPER_push = 8,
    CI_HELPER_rows = 16,
    CI_HELPER_vectors = 32,
    CI_HELPER_few = 64,
    CI_HELPER_short = 128
} CiFoldHelper;

/* emit_plan.c: what a stage needs, decided before a line is printed. */
CiCpuStage *ci_cpu_plan_stage(CiCpuEmitter *c, const CiStage *stage, CiLanes lanes);

/* emit_late.c: in a tree, what waits for the trip before comes last. */
void ci_cpu_plan_late(CiCpuEmitter *c, CiCpuStage *s);

/* emit_mask.c: in a tree, masks of tests that the compiler may not know. */
void ci_cpu_plan_masks(CiCpuStage *s);

/* emit_place.c: the name of a number whose value no compiler knows. */
const char *ci_cpu_hide(CiCpuEmitter *c, int64_t value);
/* A load of a buffer as text: memory, row, variable. */
const char *ci_cpu_load(CiCpuEmitter *c, const CiBuffer *buffer, const CiExpr *index);
/* Stores a named value where its buffer lives; in lanes, `l` is the lane. */
void ci_cpu_emit_store(CiCpuEmitter *c, const CiBuffer *buffer, const CiExpr *index, CiDtype dtype,
                       const char *value);
/* Rows and locals that the text of a unit mentions. */
void ci_cpu_declare_placements(CiCpuEmitter *c, const char *body);

/* emit_fold.c: accumulators around the lanes. */
void ci_cpu_emit_fold_start(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *fold);
void ci_cpu_emit_fold_step(CiCpuEmitter *c, const CiCpuStage *s, const CiCpuFold *fold,
                           const char *value);
/* The values of a block of lanes lie in tile<slot>[0..m), at lane q. */
void ci_cpu_emit_fold_array(CiCpuEmitter *c, const CiCpuFold *fold, int slot);
/* Lanes that fold as they are computed keep a chunk, one value for each accumulator, in chunk<id>:
 * all of them do at the end of a row, elsewhere those whose accumulators are vectors. */
bool ci_cpu_fold_has_chunk(const CiCpuFold *fold, bool is_tail);
void ci_cpu_emit_fold_chunk(CiCpuEmitter *c, const CiCpuFold *fold, bool is_tail);
/* Closes a block that is full. */
void ci_cpu_emit_fold_block(CiCpuEmitter *c, const CiCpuStage *s, const CiCpuFold *fold);
void ci_cpu_emit_fold_end(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *fold);
void ci_cpu_emit_fold_merge(CiCpuEmitter *c, CiCpuStage *s, const CiCpuFold *fold);
int ci_cpu_partial_size(const CiCpuEmitter *c, const CiCpuFold *fold);
void ci_cpu_emit_fold_helpers(CiCpuEmitter *c, CiText *out);
const CiExpr *ci_cpu_fold_extent(CiCpuEmitter *c, const CiNest *nest);
/* The length of all rows that the kernel folds in lanes, where it is not known and its points do
 * nothing else in loops; else NULL. lanes: those of a chunk. */
const CiExpr *ci_cpu_row_length(CiCpuEmitter *c, int *lanes);

/* emit_math.c; vectors are of floats of 32 or 64 bits. */
const char *ci_cpu_vector_type(CiDtype dtype);
int ci_cpu_vector_lanes(const CiCpuEmitter *c, CiDtype dtype);
void ci_cpu_emit_math_call(CiCpuEmitter *c, CiOp op, CiDtype dtype, const char *a, const char *b,
                           const char *result, const char *count);
/* The function of one value, an expression; names as of an op's operands. */
const char *ci_cpu_single_math(CiCpuEmitter *c, CiOp op, CiDtype dtype, const char *const *names);
void ci_cpu_emit_math_helpers(CiCpuEmitter *c, CiText *out);

/* emit_segment.c */
/* The lines of one segment, for one lane. has_room: for all that this block can pack. */
char *ci_cpu_segment_text(CiCpuEmitter *c, CiCpuStage *s, int number, bool folds_here,
                          bool has_room, int indent);
/* Values that are the same for all lanes; those kept in arrays fill `arrays` elements. */
void ci_cpu_emit_invariants(CiCpuEmitter *c, CiCpuStage *s, int arrays);
const char *ci_cpu_slot_name(CiCpuEmitter *c, const CiCpuStage *s, int value); /* its array */
/* Stores the result of nest number n of the stage. */
void ci_cpu_emit_sink(CiCpuEmitter *c, const CiCpuStage *s, int n, bool has_room);
bool ci_cpu_is_inline_scan(const CiCpuStage *s, int value); /* lanes outside of it */

/* emit_lanes.c: the code of one point of the serial axes: invariants, then the lanes. */
void ci_cpu_emit_lanes(CiCpuEmitter *c, CiCpuStage *s, const char *from, const char *to);

/* emit_points.c: what emit prints, once or, where rows of a chunk or less are worth code of their
 * own, for each case. */
void ci_cpu_emit_row_cases(CiCpuEmitter *c, void (*emit)(CiCpuEmitter *c));
/* Stages [from, to), one after another. */
void ci_cpu_emit_stages(CiCpuEmitter *c, int from, int to, bool is_flat);
/* All points of the outer axes from this one on, and the function's stages in each. */
void ci_cpu_emit_points(CiCpuEmitter *c, int axis);
/* Nothing but one loop over lanes. */
bool ci_cpu_is_flat(const CiKernel *kernel);
/* What a chunk of a split kernel leaves. */
int ci_cpu_partial_bytes(CiCpuEmitter *c);

/* emit_batch.c: the first of the stages without axes at the end, when they are worth a batch, else
 * the number of stages; and the loop over batches of points. */
int ci_cpu_first_batched_stage(const CiKernel *kernel);
void ci_cpu_emit_batches(CiCpuEmitter *c, int first);
/* All points of a kernel whose rows are short. */
void ci_cpu_emit_short_rows(CiCpuEmitter *c);

/* emit_tree.c: a tree with what is around it; the kernel has one. */
void ci_cpu_emit_tree(CiCpuEmitter *c);

/* emit_same.c: the kernel in `known` whose functions are these but for names, else NULL, and then
 * this one is known. */
const CiKernel *ci_cpu_find_same(CiMap *known, const CiKernel *kernel, const CiText *text);

/* emit_kernel.c */
/* The kernels of one translation unit, and what comes of them, all by kernel id. */
typedef struct CiCpuUnit {
    const bool *is_wanted;
    const CiKernel **printed; /* whose functions a kernel runs: its own, or those of one like it */
    int64_t *partial_bytes;   /* what a unit of work of a split kernel stores */
    int64_t *lengths;         /* bytes of the functions that are printed */
    bool is_plain;            /* out: the compiler has no vectors to make */
} CiCpuUnit;

/* The source of a unit's kernels; without one (NULL) of all, each by itself. */
void ci_cpu_emit_source(CiText *out, const CiKernels *kernels, const CiOptions *options,
                        CiCpuUnit *unit);
CiProcs *ci_cpu_lower(const CiKernels *kernels, const CiOptions *options);

#endif
