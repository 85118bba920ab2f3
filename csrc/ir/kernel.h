/* The kernel level: which nests run together, how each axis runs, where each buffer lives.
 *
 *   kernels f(in0: f32[4096,4096]) device=cpu backend=c {
 *     k0: for i0<4096 parallel {
 *       stage r0<4096 vector {  buf0 local = max.lanes …  }
 *       stage i1<4096 vector {  buf1 row = …;  buf2 local = sum.lanes … }
 *       stage i1<4096 vector {  buf3 = … }
 *     }
 *     # k0, k1 are not fused: buf3 is read at another outer index
 *     k1: extern matmul(buf3, in1) -> buf4
 *   }
 *
 * A kernel has outer axes that all its stages share. Each point of the outer axes runs the stages
 * in order. A stage has inner axes of its own and one or more nests that share them (its reduce
 * axes included). The nests of a kernel are rewritten over the kernel's own index symbols, so equal
 * symbols mean the same loop. Exactly one axis has lanes (`vector`): the last outer axis (then all
 * stages work on a tile of it) or the last inner axis of each stage.
 *
 * A buffer made and used only inside one kernel need not be memory. A `local` is one value per
 * point of the outer axes, a `row` is scratch for one outer point (element number
 * `store - row_base`); both are per lane if the lanes are on an outer axis. A value that is read in
 * the stage that makes it, at the same index, is in a register, whatever its placement.
 *
 * Trees. A region whose statements are all small is one kernel. Its only stage has no nests, but a
 * tree of loops and branches, run in program order by one unit. If it is a loop with independent
 * iterations, the loop is the outer axis, and an iteration is a unit. The leaves are kernels of
 * their own kind: outer axes that are plain loops, stages, placements; no number, no arguments.
 * One-element temps that the tree makes are `scalar`s, variables of the kernel's function. They are
 * loaded before the tree and stored after it only if the value is used outside.
 *
 *     k0: for {
 *       takes out in0; sizes s0
 *       scalar buf1 in out
 *       stage serial {
 *         for t0<s0 {
 *           do {  stage {  buf1 scalar = …  }  }
 *           do i0<s0 - t0 vector {  stage { in0[…] = … }  }
 *         }
 *       }
 *     }
 *
 * Short rows. Where every stage with axes runs over one of the same unknown extent, the row, it may
 * be short in a call. Then points run in tiles of the last outer axis, lanes outside; placements
 * are per lane.
 *
 *     k0: for i0<s0 parallel, rows of s1<=16 are lanes {
 *
 * Tiles. Where an elementwise kernel reads an array across, one outer axis has rows of tiles: a
 * unit is a tile of that axis and the last. Where a row is folded for each pair of points of these axes
 * and depends on the last alone, the rows of a tile are transposed for all of its points.
 *
 *     k0: for i0<s0 parallel 64, i1<s1 vector 64 lanes on outer {
 *
 * Templates. csrc/kernels has builders for the loops of some kinds of kernels. A product folds sums
 * of products in its only nest of the first stage, and its other stages are elementwise. One factor
 * varies along the axis of rows, the other along the last axis; units are tiles of these two axes.
 *
 *     k0: template product for i0<s0 parallel 48, i1<s1 vector 64 lanes on outer {
 *       stage r0<s2 {  buf0 local = sum.fused …  }
 *       stage {  buf1 = …  }
 *
 * Margins (row-and-column reductions). Folds over the rows and over the columns of one table, in
 * two stages, are one pass. A unit is a subtree of the columns; the finishing function combines the
 * units' partial results of the rows.
 *
 *   k0: template margins for split into 8 {
 *     stage j0<4096 vector, j1<4096 {  buf0 = sum.pairwise 0 …  }
 *     stage j0<4096, j1<4096 vector {  buf1 = sum.pairwise 1 …  }
 *
 * Attention. Between two products of narrow floats, a row of scores becomes weights: the exponentials of
 * its elements less their maximum. The sum of a row's weights divides the second product. On a GPU with
 * products of tiles, a unit is a block of rows, for which scores and weights are never in memory.
 *
 *   k0: template attention for i0<16 parallel, i1<4096 vector 1 lanes on outer {
 *     stage j0<4096, j1<64 {  buf0 row = sum.fused …  }
 *     stage j0<4096 {  buf1 local = max …  }
 *     stage j0<4096 {  buf2 row = …  buf3 local = sum …  }
 *     stage j0<64, j1<4096 {  buf4 register = sum.fused …  }
 *     stage j0<64 {  buf5 = …  }
 *
 * Splitting. If the outer axes give too little parallel work and the first stage is one long fold,
 * the fold runs in chunks. split_extent > 0 is the number of elements of the reduce domain per
 * chunk (a power of two times the fold's block). Chunk c of outer point o stores its partial
 * accumulators; a finishing function folds them in chunk order and runs the rest. Pairwise folds
 * are split into the subtrees of their order, `split into 64`, or at their own chunks. A loop that
 * scans or packs with order-free operations is split likewise: each chunk stores its total, and the
 * finishing function's units are chunks too. If units start in order, it is `chained 32768`
 * instead, in one function. A chunk that fits in a core's cache then waits for the running prefix
 * of the chunks before it, and publishes the prefix including its own total. */
#ifndef CI_IR_KERNEL_H
#define CI_IR_KERNEL_H

#include "ir/loop.h"
#include "ir/machine.h"
#include "ir/pass_plan.h"

typedef enum CiLabel {
#define LABEL(name) CI_LABEL_##name,
#include "ir/kernel.def"
} CiLabel;

typedef struct CiKernelAxis {
    const CiExpr *var, *extent;
    CiLabel label;
    int factor; /* vector: lanes in a tile; parallel: rows in one, or 0 */
} CiKernelAxis;

typedef enum CiStored {
#define STORED(name) CI_STORED_##name,
#include "ir/kernel.def"
} CiStored;

/* Elements of a head of an attention template, at most. */
#define CI_ATTENTION_SIZE 256
/* A head may have that size; an unknown one is taken for small where the factors are not narrow. */
static inline bool
ci_attention_has_size(const CiExpr *size, bool is_wide)
{
    return (is_wide && size->kind != CI_EXPR_const) || size->high <= CI_ATTENTION_SIZE;
}

typedef enum CiTemplate {
    CI_TEMPLATE_none,
#define TEMPLATE(kind, cpu, gpu) CI_TEMPLATE_##kind,
#include "ir/templates.def"
    CI_TEMPLATE_COUNT
} CiTemplate;

typedef struct CiKernel CiKernel;
struct CiProcs;

typedef enum CiTreeKind {
    CI_TREE_leaf,
    CI_TREE_check, /* of a symbol's value, or of a condition */
    CI_TREE_for,
    CI_TREE_while,
    CI_TREE_if
} CiTreeKind;

typedef struct CiTreeNode CiTreeNode;
typedef struct CiLoopTree {
    CiTreeNode *nodes;
    int count, capacity;
} CiLoopTree;

struct CiTreeNode {
    CiTreeKind kind;
    CiKernel *leaf;
    const CiCheckItem *check;
    int number;             /* of the check in the kernel's: what a fault is about */
    const CiRegion *region; /* its variable, extent, condition and swaps; not its items */
    CiLoopTree body, other; /* other: the else branch; of a while, what makes the condition */
};

typedef struct CiStage {
    CiKernelAxis *axes; /* inner axes; reduce axes of its folds are among them, last */
    int naxes;
    CiNest **nests; /* over kernel symbols; axes of each = outer axes + this stage's axes */
    int nnests, capnests;
    CiLoopTree *tree; /* instead of axes and nests: a kernel's only stage */
} CiStage;

/* How a buffer made in the kernel is kept. */
typedef struct CiPlacement {
    CiBuffer *buffer;
    CiStored stored;          /* register: read only in the stage that makes it */
    bool is_taken, is_kept; /* scalar: loaded before the tree, stored after it */
    const CiExpr *row_base; /* row: element number of the outer point's first element */
    const CiExpr *row_size; /* row: elements (times the tile when lanes are on an outer axis) */
    const CiExpr *scratch_offset; /* row: bytes from the start of the unit's scratch */
} CiPlacement;

struct CiKernel {
    int id;
    const char *name;           /* k0 */
    int device;                 /* number of the one that it runs on */
    CiExternItem *ext;          /* a library call instead of loops; all below empty */
    CiCheckItem *check;         /* or what the host reads and checks */
    CiRegion *region;           /* a loop or branch around kernels */
    struct CiKernels *inner[2]; /* region bodies */
    CiKernelAxis *outer;
    int nouter;
    int nparallel; /* the first nparallel outer axes are collapsed and run in ranges */
    bool lanes_on_outer;
    CiTemplate kind; /* of its loops: who writes them */
    const CiExpr *row; /* extent of all inner axes, where short rows are lanes; else NULL */
    int64_t short_row; /* elements of the longest that is short */
    CiStage *stages;
    int nstages, capstages;
    const CiCheckItem **checks; /* of its tree */
    int nchecks, capchecks;
    CiPlacement *placements;
    int nplacements, capplacements;
    CiBuffer **buffers; /* pointers it takes, in order: memory buffers read or written */
    int nbuffers, capbuffers;
    bool *is_stored;          /* per buffer */
    const CiExpr **size_args; /* symbols and precomputed sizes it takes */
    int nsize_args, capsize_args;
    const CiExpr *split_extent; /* elements of a part; NULL: not split, or into subtrees */
    bool is_chained;            /* parts hand on what they add; there is no finishing function */
    int split_chunks;            /* subtrees of a pairwise fold, a power of two; or 0 */
    const CiExpr
        *unit_work; /* elements one unit touches: how many units make a chunk worth a thread */
    CiLoc *locs;
    int nlocs, caplocs;
};

/* Two groups that the scheduler has put together, by what the last nest of each makes. */
typedef struct CiJoin {
    const char *first, *second;
    CiLoc loc;            /* of the second */
    int number;           /* among all pairs that a kernel could hold, those held apart included */
    int64_t saved, bytes; /* of memory traffic: what the join saves, and both groups' */
} CiJoin;

typedef struct CiKernels {
    CiLoops *loops; /* buffers, results and names */
    const CiMachine *machine;
    CiKernel **kernels;
    int nkernels, capkernels;
    const char **refusals; /* "k0 and k1 are not fused: …" */
    int nrefusals, caprefusals;
    const char **notes; /* "buf3 is stored where buf1 was" */
    int nnotes, capnotes;
    CiJoin *joins; /* of the whole program, on its outermost kernels */
    int njoins, capjoins;
    /* User-supplied texts of later levels, which replace those made of the kernels; NULL: none. The
     * interpreter runs the procs, the C backend builds the source. */
    struct CiProcs *given_procs;
    const char *given_source;
    const CiPassPlan *plan; /* of the passes over their procs; NULL: all of them, without an observer */
} CiKernels;

const char *ci_stored_name(CiStored stored);
extern const char *const ci_template_names[CI_TEMPLATE_COUNT]; /* "" of none */

/* A nest of its first stage scans or packs. */
static inline bool
ci_kernel_is_split(const CiKernel *kernel)
{
    return kernel->split_extent || kernel->split_chunks;
}
/* Lanes of the last outer axis, or 1. */
static inline int64_t
ci_kernel_outer_lanes(const CiKernel *kernel)
{
    return kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 1;
}

/* Bytes of an element of a row: of a narrow float in lanes, those of an f32. */
static inline int64_t
ci_kernel_row_item_bytes(const CiKernel *kernel, CiDtype dtype)
{
    return (int64_t)ci_dtype_size(kernel->lanes_on_outer ? ci_dtype_compute(dtype) : dtype);
}

/* Parts of a split kernel; at least one, which says how much was packed. NULL: it is not split. */
const CiExpr *ci_kernel_chunks(CiSym *sym, const CiKernel *kernel);
/* Bytes of scratch up to the end of the kernel's last row, in whole lines of a cache. */
const CiExpr *ci_kernel_rows_end(CiSym *sym, const CiKernel *kernel);
bool ci_kernel_runs(const CiKernel *kernel);
/* Loops to emit, and nothing for the host to do. */
bool ci_kernel_has_loops(const CiKernel *kernel);
/* Calls visit for each kernel, for those of a region before it. */
void ci_kernels_visit(const CiKernels *kernels, void (*visit)(void *arg, const CiKernel *kernel),
                      void *arg);
/* The highest number of a kernel plus one. */
int ci_kernels_count(const CiKernels *kernels);
/* NULL when the buffer is plain memory in this kernel. */
const CiPlacement *ci_kernel_find_placement(const CiKernel *kernel, const CiBuffer *buffer);
int ci_kernel_buffer_position(const CiKernel *kernel,
                              const CiBuffer *buffer); /* -1 when it takes none */
/* The position of a nest among those of a kernel's stages. */
typedef struct CiNestAt {
    int stage, nest;
} CiNestAt;
#define CI_BEFORE_NESTS ((CiNestAt){0, -1})
/* The nest after a position, to which that is set, or NULL: the nests of all stages in order. */
CiNest *ci_kernel_next_nest(const CiKernel *kernel, CiNestAt *at);
/* Nests of all stages, those in trees too, in program order. */
void ci_kernel_visit_nests(const CiKernel *kernel, void (*visit)(void *arg, const CiNest *nest),
                           void *arg);
/* The buffers of its launch, its call, its check or its region, and of the kernels in that: whose
 * memory it reads or stores, scalars too. */
void ci_kernel_visit_uses(const CiKernel *kernel,
                          void (*visit)(void *arg, CiBuffer *buffer, bool is_stored), void *arg);
/* NULL when the kernel has none. */
const CiLoopTree *ci_kernel_tree(const CiKernel *kernel);
void ci_kernels_print(CiText *out, const CiKernels *kernels);
/* One kernel with loops, as if it were the whole program: with the buffers and symbols that it
 * uses, and variables of loops around it as symbols. Scalars keep their numbers. */
void ci_kernels_print_alone(CiText *out, const CiKernels *kernels, const CiKernel *kernel);
/* machine: of the device and backend that the text names. */
CiKernels *ci_kernels_parse(CiContext *ctx, const char *text, const CiMachine *machine);
void ci_kernels_verify_text(const CiKernels *kernels); /* what is read back prints alike */

#endif
