/* Alternatives of a program: plans by other options, thresholds and joins that give the same bits.
 * Timed calls find the fastest (pyext/replay/autotune.h).
 *
 * A threshold without effect on a compile makes no alternative. Plans are compared by digest: two
 * plans with equal digests are the same. */
#ifndef CI_API_ALTERNATIVES_H
#define CI_API_ALTERNATIVES_H

#include "api/compile.h"
#include "analysis/choices.h"
#include "wrapper/wrapper.h"

/* option: its name, or that of a threshold; value as a text. */
typedef struct CiAlternative {
    const char *kind, *option, *value;
} CiAlternative;

/* The plan of a program that is not built; in the graph's context. */
typedef struct CiProgramPlan {
    char digest[65];
    int64_t peak_bytes; /* bytes at its worst, likely ones where sizes are not known */
    CiAlternative *alternatives;
    int count, capacity;
} CiProgramPlan;

CiProgramPlan *ci_plan_new(const CiRequest *request, CiKernels *kernels, const CiWrapper *wrapper);

#endif
