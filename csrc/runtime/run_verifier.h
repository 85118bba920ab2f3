/* Optional checks at run time, which compare a run with the memory plan: lifetimes, sizes,
 * alignment, and NaNs. Without these options a program has no watch, and a step costs nothing
 * more. */
#ifndef CI_RUNTIME_RUN_VERIFIER_H
#define CI_RUNTIME_RUN_VERIFIER_H

#include "runtime/plan.h"

typedef enum CiMemoryWatch { CI_MEMORY_unwatched, CI_MEMORY_log, CI_MEMORY_assert } CiMemoryWatch;

typedef struct CiWatchedSlot {
    const char *name;
    CiDtype dtype;
    int bytes;       /* value number of what its sizes come to */
    int first, last; /* steps between which the plan has it hold memory; last of a result: the end */
    bool is_host;
} CiWatchedSlot;

typedef struct CiWatch {
    CiMemoryWatch memory;
    bool nans, sizes, alignment;
    CiWatchedSlot *slots; /* by slot */
    const char **steps;   /* by step: what it is, and the user's line */
    int nsteps, capsteps;
    const bool **stores; /* by launch: of its buffers */
} CiWatch;

/* One run of it. */
typedef struct CiWatching {
    const CiProgram *program;
    void *const *slots;
    const int64_t *values;
    int64_t live, peak; /* bytes taken now, and at most */
    char *message;      /* of message_size; what is wrong */
    size_t message_size;
} CiWatching;

/* NULL where nothing is asked for. */
CiWatch *ci_watch_new(CiContext *ctx, const CiOptions *options);
/* 0, or CI_ERR_ASSERT with a message. */
int32_t ci_watch_before(CiWatching *watching, const CiStep *step);
int32_t ci_watch_after(CiWatching *watching, const CiStep *step);

#endif
