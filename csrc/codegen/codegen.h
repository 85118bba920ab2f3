/* Kernels -> procs, and the passes over them: one a file, in the order of procs.def. */
#ifndef CI_CODEGEN_CODEGEN_H
#define CI_CODEGEN_CODEGEN_H

#include "ir/proc.h"

/* What passes ask of a family of machines. */
typedef struct CiFamily {
    const char *name;
    int lanes;       /* of a loop that runs in vectors; a power of two */
    int tiled_lanes; /* where each lane has a row of its own: they should stay in near cache */
} CiFamily;

/* Every kernel with loops, as statements; no lanes yet. */
CiProcs *ci_expand(const CiKernels *kernels);
/* Expands, and runs the family's passes; with verify the verifier too, after each. */
CiProcs *ci_codegen(const CiKernels *kernels, const CiFamily *family, bool verify);

/* reduce.c: folds become loops over accumulators. */
void ci_reduce(CiProcs *procs, CiProc *proc, const CiFamily *family);
/* vector.c: loops that run in vectors become loops over strips of lanes. */
void ci_vector(CiProcs *procs, CiProc *proc, const CiFamily *family);

#endif
