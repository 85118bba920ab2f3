/* Loops -> kernels: groups of nests, their axes, their memory. */
#ifndef CI_SCHEDULE_SCHEDULE_H
#define CI_SCHEDULE_SCHEDULE_H

#include "base/options.h"
#include "ir/kernel.h"

CiKernels *ci_schedule(CiLoops *loops, const CiMachine *machine, const CiOptions *options);

/* Places the kernel's private buffers (CiBuffer.is_private) in rows where the ranges of sizes bound
 * them: for a device that knows more of the sizes than the scheduler did. They are no arguments of
 * the kernel any more. */
void ci_kernel_place_rows(const CiKernels *kernels, CiKernel *kernel);

#endif
