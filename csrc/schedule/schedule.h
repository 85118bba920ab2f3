/* The scheduler: loops -> kernels. It fuses nests to kernels, chooses their axes, and places their buffers. */
#ifndef CI_SCHEDULE_SCHEDULE_H
#define CI_SCHEDULE_SCHEDULE_H

#include "base/options.h"
#include "ir/kernel.h"

CiKernels *ci_schedule(CiLoops *loops, const CiMachine *machine, const CiOptions *options);

/* Moves the kernel's private buffers (CiBuffer.is_private) to rows if the ranges of sizes bound their extent. Called by a
 * device that knows narrower ranges than the scheduler did. The buffers are then no longer arguments of the kernel. */
void ci_kernel_place_rows(const CiKernels *kernels, CiKernel *kernel);

#endif
