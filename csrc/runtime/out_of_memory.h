/* The out-of-memory report: a program's memory, in words. */
#ifndef CI_RUNTIME_OUT_OF_MEMORY_H
#define CI_RUNTIME_OUT_OF_MEMORY_H

#include "runtime/plan.h"

/* For a step whose allocation failed, writes into the call's message that memory is exhausted, the
 * program's peak memory by its plan, and the largest buffers at this step with the user's lines.
 * Unknown sizes count as nothing, a loop as one iteration. */
void ci_program_report_shortage(const CiProgram *program, const CiStep *step, const int64_t *values,
                                CiCall *call);

#endif
