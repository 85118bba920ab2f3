/* Kernels -> procs, and the passes over them: one a file, in the order of procs.def. */
#ifndef CI_CODEGEN_CODEGEN_H
#define CI_CODEGEN_CODEGEN_H

#include "analysis/choices.h"
#include "ir/proc.h"

typedef struct CiProcPass {
    const char *name, *doc;
    unsigned families; /* bits of those that run it */
    bool is_needed; /* cannot be left out */
    void (*run)(CiBuild *b);
} CiProcPass;

/* The passes by their position in the order. */
int ci_proc_pass_count(void);
const CiProcPass *ci_proc_pass_at(int position);

/* Kernels with loops as statements; no lanes yet. */
CiProcs *ci_expand(const CiKernels *kernels);
/* Runs the machine's passes that the plan does not leave out (NULL: all); with verify the verifier
 * too, before the first and after each. */
void ci_proc_passes_run(CiProcs *procs, const CiMachine *machine, const CiPassPlan *plan);
/* Expands, and runs the passes with the kernels' plan. */
CiProcs *ci_codegen(const CiKernels *kernels, const CiMachine *machine, bool verify);

/* lanes.c: how many a loop's body runs in. 1: it runs serially; 0: it is left to a compiler. */
int ci_choose_lanes(const CiBuild *b, const CiStmts *body,
                    const CiExpr *lane_var, int64_t iterations);

/* NumPy's order (pairwise of ir/loop.h): accumulators, the most vectors of them in a block, and how
 * many of `count` elements are in the left one of two subtrees. */
#define CI_PAIRWISE_LENGTH 16
int ci_pairwise_lanes(CiDtype dtype);
const CiExpr *ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count);

/* The index without var if the loop over var reads neighbours of an array that is not in a near cache,
 * so that they may be prefetched; else NULL. */
const CiExpr *ci_build_far_row(const CiBuild *b, const CiAccess *at, const CiExpr *var);

/* The passes, one a file each (architecture.md has the list); of csrc/kernels: template. */
#define PASS(function, name, families, is_needed, doc) void function(CiBuild *b);
#include "codegen/procs.def"

#endif
