/* Expands kernels to procs, and declares the passes over procs. Each pass has a file; procs.def has their order. */
#ifndef CI_CODEGEN_CODEGEN_H
#define CI_CODEGEN_CODEGEN_H

#include "analysis/choices.h"
#include "ir/proc.h"

typedef struct CiProcPass {
    const char *name, *doc;
    unsigned families; /* bit set of the machine families that run the pass */
    bool is_needed; /* cannot be left out */
    void (*run)(CiBuild *b);
} CiProcPass;

/* The number of passes, and the pass at a position of their order. */
int ci_proc_pass_count(void);
const CiProcPass *ci_proc_pass_at(int position);

/* Translates each kernel to a proc: loops and folds become statements, all of one lane. */
CiProcs *ci_expand(const CiKernels *kernels);
/* Runs the machine's passes except those that the plan leaves out (NULL: all run). If the plan says so, the
 * verifier runs before the first pass and after each pass. */
void ci_proc_passes_run(CiProcs *procs, const CiMachine *machine, const CiPassPlan *plan);
/* Expands the kernels and runs the passes with the kernels' plan. */
CiProcs *ci_codegen(const CiKernels *kernels, const CiMachine *machine, bool verify);

/* lanes.c: the number of lanes for a loop's body. 1: the loop runs serially; 0: the C compiler vectorizes it. */
int ci_choose_lanes(const CiBuild *b, const CiStmts *body,
                    const CiExpr *lane_var, int64_t iterations);

/* NumPy's pairwise summation (see ir/loop.h): the most vectors of accumulators in a block, the accumulators of a
 * dtype, and the number of elements in the left subtree of `count` elements. */
#define CI_PAIRWISE_LENGTH 16
int ci_pairwise_lanes(CiDtype dtype);
const CiExpr *ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count);

/* If the loop over var reads contiguous elements of an array too large for the L1 cache, returns the index of
 * the row (the access's index without var), which may be prefetched; else NULL. */
const CiExpr *ci_build_far_row(const CiBuild *b, const CiAccess *at, const CiExpr *var);

/* The passes (docs/architecture.md lists them). The pass `template` is in csrc/kernels. */
#define PASS(function, name, families, is_needed, doc) void function(CiBuild *b);
#include "codegen/procs.def"

#endif
