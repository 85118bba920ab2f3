/* What a program holds, in words for whoever has no memory for it. */
#ifndef CI_RUNTIME_SHORTAGE_H
#define CI_RUNTIME_SHORTAGE_H

#include "runtime/plan.h"

/* Of a step that takes memory, into the call's message: that there is none, what the program holds
 * at most by its plan, and the largest buffers of that moment with the user's lines. Sizes that are
 * not known yet count as nothing, of a loop one trip. */
void ci_program_tell_shortage(const CiProgram *program, const CiStep *step, const int64_t *values,
                              CiCall *call);

#endif
