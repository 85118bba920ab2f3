/* Alternatives of a program: plans by other options, thresholds and joins, which give the same bits
 * by other ways. A race of calls finds the quickest (pyext/replay/race.h).
 *
 * Thresholds that had no say in a compile make no alternative of it. Whether one is another plan at
 * all its digest says: two plans of one digest do the same. */
#ifndef CI_API_ALTERNATIVES_H
#define CI_API_ALTERNATIVES_H

#include "api/compile.h"
#include "ir/choices.h"
#include "wrapper/wrapper.h"

/* option: its name, or that of a threshold; value as a text. */
typedef struct CiAlternative {
    const char *kind, *option, *value;
} CiAlternative;

/* What is known of a program that is planned, and not built; in the graph's context. */
typedef struct CiProgramPlan {
    char digest[65];
    int64_t held; /* bytes at its worst, likely ones where sizes are not known */
    CiAlternative *alternatives;
    int count, capacity;
} CiProgramPlan;

CiProgramPlan *ci_plan_new(const CiRequest *request, CiKernels *kernels, const CiWrapper *wrapper);

#endif
