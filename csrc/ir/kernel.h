/* The kernel level: which nests run together, and where each buffer lives. How a machine runs the axes is not
 * part of it: analysis/labels.h says that of a kernel and a machine, and procs have it.
 *
 *   kernels f(in0: f32[4096,4096]) device=cpu backend=c {
 *     k0: for i0<4096 {
 *       stage j0<4096 {  buf0 local = max.lanes …  }
 *       stage j0<4096 {  buf1 row = …;  buf2 local = sum.lanes … }
 *       stage j0<4096 {  buf3 = … }
 *     }
 *     # k0, k1 are not fused: buf3 is read at another outer index
 *     k1: extern matmul(buf3, in1) -> buf4
 *   }
 *
 * A kernel has outer axes that all its stages share. Each point of the outer axes runs the stages
 * in order. A stage has inner axes of its own and one or more nests that share them (its reduce
 * axes included). The nests of a kernel are rewritten over the kernel's own index symbols, so equal
 * symbols mean the same loop.
 *
 * A buffer made and used only inside one kernel need not be memory. A `local` is one value per
 * point of the outer axes, a `row` is scratch for one outer point (element number
 * `store - row_base`). A value that is read in the stage that makes it, at the same index, is in a
 * register, whatever its placement.
 *
 * Trees. A region whose statements are all small is one kernel. Its only stage has no nests, but a
 * tree of loops, branches and checks, run in program order by one unit: a list of kernels
 * like those of a program. If it is a loop with independent
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
 *           do i0<s0 - t0 {  stage { in0[…] = … }  }
 *         }
 *       }
 *     }
 *
 * Templates. csrc/kernels has builders for the loops of some kinds of kernels. A product folds sums
 * of products in its only nest of the first stage, and its other stages are elementwise. One factor
 * varies along the axis of rows, the other along the last axis; units are tiles of these two axes.
 *
 *     k0: template product for i0<s0, i1<s1 {
 *       stage r0<s2 {  buf0 local = sum.fused …  }
 *       stage {  buf1 = …  }
 *
 * Margins (row-and-column reductions). Folds over the rows and over the columns of one table, in
 * two stages, are one pass. A unit is a subtree of the columns; the finishing function combines the
 * units' partial results of the rows.
 *
 *   k0: template margins for {
 *     stage j0<4096, j1<4096 {  buf0 = sum.pairwise 0 …  }
 *     stage j0<4096, j1<4096 {  buf1 = sum.pairwise 1 …  }
 *
 * Attention. Between two products of narrow floats, a row of scores becomes weights: the exponentials of
 * its elements less their maximum. The sum of a row's weights divides the second product. On a GPU with
 * products of tiles, a unit is a block of rows, for which scores and weights are never in memory.
 *
 *   k0: template attention for i0<16, i1<4096 {
 *     stage j0<4096, j1<64 {  buf0 row = sum.fused …  }
 *     stage j0<4096 {  buf1 local = max …  }
 *     stage j0<4096 {  buf2 row = …  buf3 local = sum …  }
 *     stage j0<64, j1<4096 {  buf4 register = sum.fused …  }
 *     stage j0<64 {  buf5 = …  } */
#ifndef CI_IR_KERNEL_H
#define CI_IR_KERNEL_H

#include "ir/loop.h"
#include "ir/machine.h"
#include "ir/pass_plan.h"

typedef struct CiKernelAxis {
    const CiExpr *var, *extent;
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

typedef struct CiStage {
    CiKernelAxis *axes; /* inner axes; reduce axes of its folds are among them, last */
    int naxes;
    CiNest **nests; /* over kernel symbols; axes of each = outer axes + this stage's axes */
    int nnests, capnests;
    struct CiKernels *tree; /* instead of axes and nests: a kernel's only stage */
} CiStage;

/* How a buffer made in the kernel is kept. */
typedef struct CiPlacement {
    CiBuffer *buffer;
    CiStored stored;          /* register: read only in the stage that makes it */
    bool is_taken, is_kept; /* scalar: loaded before the tree, stored after it */
    const CiExpr *row_base; /* row: element number of the outer point's first element */
    const CiExpr *row_size; /* row: elements */
} CiPlacement;

struct CiKernel {
    int id;                     /* of a check in a tree: its number among the kernel's */
    const char *name;           /* k0 */
    int device;                 /* number of the one that it runs on */
    CiExternItem *ext;          /* a library call instead of loops; all below empty */
    CiCheckItem *check;         /* or what the host reads and checks */
    CiRegion *region;           /* a loop or branch around kernels */
    struct CiKernels *inner[2]; /* region bodies */
    CiKernelAxis *outer;
    int nouter;
    CiTemplate kind; /* of its loops: who writes them */
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

bool ci_kernel_runs(const CiKernel *kernel); /* a nest of its first stage scans or packs */
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
const CiKernels *ci_kernel_tree(const CiKernel *kernel);
/* True for a loop or branch of the kind around kernels. */
bool ci_kernel_is_region(const CiKernel *kernel, CiItemKind kind);
void ci_kernels_print(CiText *out, const CiKernels *kernels);
/* One kernel with loops, as if it were the whole program: with the buffers and symbols that it
 * uses, and variables of loops around it as symbols. Scalars keep their numbers. */
void ci_kernels_print_alone(CiText *out, const CiKernels *kernels, const CiKernel *kernel);
/* machine: of the device and backend that the text names. */
CiKernels *ci_kernels_parse(CiContext *ctx, const char *text, const CiMachine *machine);
void ci_kernels_verify_text(const CiKernels *kernels); /* what is read back prints alike */

#endif
