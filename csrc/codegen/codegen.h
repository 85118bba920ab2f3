/* Kernels -> procs, and the passes over them: one a file, in the order of procs.def. */
#ifndef CI_CODEGEN_CODEGEN_H
#define CI_CODEGEN_CODEGEN_H

#include "ir/choices.h"
#include "ir/proc.h"

typedef struct CiProcPass {
    const char *name, *doc;
    unsigned families; /* bits of those that run it */
    bool is_needed; /* cannot be left out */
    void (*run)(CiBuild *b);
} CiProcPass;

/* In their order. */
int ci_proc_pass_count(void);
const CiProcPass *ci_proc_pass_at(int position);

/* Kernels with loops as statements; no lanes yet. */
CiProcs *ci_expand(const CiKernels *kernels);
/* Expands, and runs the machine's passes that the kernels' plan does not leave out; with verify the
 * verifier too, after each. */
CiProcs *ci_codegen(const CiKernels *kernels, const CiMachine *machine, bool verify);

/* lanes.c: how many a loop's body runs in. 1: it runs serially; 0: it is left to a compiler. */
int ci_choose_lanes(const CiBuild *b, const CiStmts *body,
                    const CiExpr *lane_var, int64_t trips);

/* NumPy's order (pairwise of ir/loop.h): accumulators, the most vectors of them in a block, and how
 * many of `count` elements are in the left one of two subtrees. */
#define CI_PAIRWISE_LENGTH 16
int ci_pairwise_lanes(CiDtype dtype);
const CiExpr *ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count);

/* Bytes between two sums of one unit in memory for partials. */
#define CI_PARTIAL_STEP 16
/* csrc/kernels: the loops of a kernel of some kind are what the builder of the machine makes. */
void ci_template(CiBuild *b);
/* dead_stores.c: stores that later ones overwrite are removed. */
void ci_dead_stores(CiBuild *b);
/* short_row_variant.c: rows that may be short are lanes where they are. */
void ci_version(CiBuild *b);
/* split_reduction.c: a long fold becomes two procs, of its parts and of what they left. */
void ci_split(CiBuild *b);
void ci_split_blocks(CiBuild *b);
/* chained_scan.c: a loop that scans or packs becomes parts that hand on what they add. */
void ci_chain(CiBuild *b);
/* early_exit.c: whether any or all of many are true is asked piece by piece. */
void ci_stop(CiBuild *b);
/* cancellation.c: long work asks now and then whether to go on. */
void ci_poll(CiBuild *b);
/* tile_loads.c: what is read across two axes is turned in tiles of them. */
void ci_stage_in(CiBuild *b);
/* distribute.c: what runs side by side becomes units of work. */
void ci_map(CiBuild *b);
/* jam_scans.c: rows that are scanned run a few at a time. */
void ci_jam(CiBuild *b);
/* jam_rows.c: rows that read what others do are taken by one block. */
void ci_near_rows(CiBuild *b);
/* grid.c: points become threads of blocks. */
void ci_grid(CiBuild *b);
/* register_cache.c: what a thread touches in one loop and again in another it keeps. */
void ci_keep(CiBuild *b);
/* barriers.c: threads of a block wait where one touches what another has stored. */
void ci_barriers(CiBuild *b);
/* reduce.c: folds become loops over accumulators. */
void ci_reduce(CiBuild *b);
/* interchange.c: loops down columns run outside of those over lanes. */
void ci_interchange_columns(CiBuild *b);
/* strip_mine.c: elementary functions become calls of NumPy's ufunc loops. */
void ci_strips(CiBuild *b);
/* vector.c: loops that run in vectors become loops over strips of lanes. */
void ci_vector(CiBuild *b);
/* unroll.c: loops over registers are unrolled. */
void ci_unroll(CiBuild *b);
/* simplify.c: branches, loops and masks that are known are gone. */
void ci_simplify(CiBuild *b);
/* reassociate.c: reassociates min and max so that the loop-carried operand is applied last. */
void ci_late(CiBuild *b);
/* forward.c: store-to-load forwarding for registers, and removal of unused stores and values. */
void ci_forward(CiBuild *b);

#endif
