/* Optional checks at run time, which compare a run with the memory plan: lifetimes, sizes,
 * alignment, and NaNs. Without these options a program has no watch, and a step costs nothing
 * more. */
#ifndef CI_RUNTIME_RUN_VERIFIER_H
#define CI_RUNTIME_RUN_VERIFIER_H

#include "runtime/plan.h"

typedef enum CiMemoryTracking { CI_MEMORY_untracked, CI_MEMORY_log, CI_MEMORY_assert } CiMemoryTracking;

typedef struct CiVerifiedSlot {
    const char *name;
    CiDtype dtype;
    int bytes;       /* value number of what its sizes come to */
    int first, last; /* steps between which the plan has it hold memory; last of a result: the end */
    bool is_host;
} CiVerifiedSlot;

typedef struct CiRunVerifier {
    CiMemoryTracking memory;
    bool nans, sizes, alignment;
    CiVerifiedSlot *slots; /* by slot */
    const char **steps;   /* by step: what it is, and the user's line */
    int nsteps, capsteps;
    const bool **stores; /* by launch: of its buffers */
} CiRunVerifier;

/* One run of it. */
typedef struct CiVerifiedRun {
    const CiProgram *program;
    void *const *slots;
    const int64_t *values;
    int64_t live, peak; /* bytes taken now, and at most */
    char *message;      /* of message_size; what is wrong */
    size_t message_size;
} CiVerifiedRun;

/* NULL where nothing is asked for. */
CiRunVerifier *ci_run_verifier_new(CiContext *ctx, const CiOptions *options);
/* 0, or CI_ERR_ASSERT with a message. */
int32_t ci_verify_before(CiVerifiedRun *verified, const CiStep *step);
int32_t ci_verify_after(CiVerifiedRun *verified, const CiStep *step);

#endif
