/* Kernels -> procs, and the passes over them: one a file, in the order of procs.def. */
#ifndef CI_CODEGEN_CODEGEN_H
#define CI_CODEGEN_CODEGEN_H

#include "ir/proc.h"

/* Parameters of a family of machines for the passes over procs. */
typedef struct CiFamily {
    const char *name;
    const CiTarget *target; /* whose thresholds decide */
    int lanes;       /* most of a loop that runs in vectors; a power of two */
    int tiled_lanes; /* where each lane has a row of its own: they should stay in near cache */
    /* Vectors that fill a register, by the widest value of a loop; 0: of any count of lanes. */
    int vector_bytes;
    int strip;          /* elements that a loop of NumPy's is called for; 0: lets stand for calls */
    int chains;         /* such vectors that a fold in any order accumulates in */
    int threads;        /* of a block that takes points, one or a few each */
    int access_bytes;   /* that one access of memory moves at most */
    bool has_own_order; /* of folds, whatever kernels say */
    /* NULL when an operation in lanes is vector instructions, else the reason: then a loop is left
     * to a compiler, if that can make vectors of it. NULL: all are. */
    const char *(*why_not_vector)(CiContext *ctx, CiOp op, CiDtype operand, CiDtype result);
    /* Values are packed in vectors; NULL: none are. */
    bool (*has_pack)(CiDtype dtype);
    /* Threads may combine at one element at once, in whatever order; NULL: never. */
    bool (*has_atomic)(CiOp op, CiDtype dtype);
} CiFamily;

typedef struct CiProcPass {
    const char *name, *doc, *families;
    bool is_needed; /* cannot be left out */
    void (*run)(CiProcs *procs, CiProc *proc, const CiFamily *family);
} CiProcPass;

/* In their order. */
int ci_proc_pass_count(void);
const CiProcPass *ci_proc_pass_at(int position);

/* Kernels with loops as statements; no lanes yet. */
CiProcs *ci_expand(const CiKernels *kernels);
/* Expands, and runs the family's passes that the kernels' plan does not leave out; with verify the
 * verifier too, after each. */
CiProcs *ci_codegen(const CiKernels *kernels, const CiFamily *family, bool verify);

/* lanes.c: how many a loop's body runs in. 1: it runs serially; 0: it is left to a compiler. */
int ci_choose_lanes(const CiBuild *b, const CiFamily *family, const CiStmts *body,
                    const CiExpr *lane_var, int64_t trips);

/* NumPy's order (pairwise of ir/loop.h): accumulators, the most vectors of them in a block, and how
 * many of `count` elements are in the left one of two subtrees. */
#define CI_PAIRWISE_LENGTH 16
int ci_pairwise_lanes(CiDtype dtype);
const CiExpr *ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count);

/* Bytes between two sums of one unit in memory for partials. */
#define CI_PARTIAL_STEP 16
/* csrc/kernels: the loops of a kernel of some kind are what the builder of the family makes. */
void ci_template(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* dead_stores.c: stores that later ones overwrite are removed. */
void ci_dead_stores(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* short_row_variant.c: rows that may be short are lanes where they are. */
void ci_version(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* split_reduction.c: a long fold becomes two procs, of its parts and of what they left. */
void ci_split(CiProcs *procs, CiProc *proc, const CiFamily *family);
void ci_split_blocks(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* chained_scan.c: a loop that scans or packs becomes parts that hand on what they add. */
void ci_chain(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* early_exit.c: whether any or all of many are true is asked piece by piece. */
void ci_stop(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* cancellation.c: long work asks now and then whether to go on. */
void ci_poll(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* tile_loads.c: what is read across two axes is turned in tiles of them. */
void ci_stage_in(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* distribute.c: what runs side by side becomes units of work. */
void ci_map(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* jam_scans.c: rows that are scanned run a few at a time. */
void ci_jam(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* jam_rows.c: rows that read what others do are taken by one block. */
void ci_near_rows(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* grid.c: points become threads of blocks. */
void ci_grid(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* register_cache.c: what a thread touches in one loop and again in another it keeps. */
void ci_keep(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* barriers.c: threads of a block wait where one touches what another has stored. */
void ci_barriers(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* reduce.c: folds become loops over accumulators. */
void ci_reduce(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* interchange.c: loops down columns run outside of those over lanes. */
void ci_interchange_columns(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* strip_mine.c: elementary functions become calls of NumPy's ufunc loops. */
void ci_strips(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* vector.c: loops that run in vectors become loops over strips of lanes. */
void ci_vector(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* unroll.c: loops over registers are unrolled. */
void ci_unroll(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* simplify.c: branches, loops and masks that are known are gone. */
void ci_simplify(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* reassociate.c: reassociates min and max so that the loop-carried operand is applied last. */
void ci_late(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* forward.c: store-to-load forwarding for registers, and removal of unused stores and values. */
void ci_forward(CiProcs *procs, CiProc *proc, const CiFamily *family);

#endif
