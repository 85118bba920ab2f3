/* Loops -> kernels: groups of nests, their axes, their memory. */
#ifndef CI_SCHEDULE_SCHEDULE_H
#define CI_SCHEDULE_SCHEDULE_H

#include "ir/kernel.h"

typedef struct CiScheduleOptions {
    bool fusion;
    bool reuse; /* values take over the memory of others */
    bool has_device_memory; /* the host waits for what it reads there */
    int64_t fusion_limit;    /* how often two groups of the program are put together, at most */
    const char *apart;       /* numbers of joins that are not made */
} CiScheduleOptions;

CiKernels *ci_schedule(CiLoops *loops, const CiTarget *target, const CiScheduleOptions *options);

/* Places the kernel's private buffers (CiBuffer.is_private) in rows where the ranges of sizes bound
 * them: for a device that knows more of the sizes than the scheduler did. They are no arguments of
 * the kernel any more. */
void ci_kernel_place_rows(const CiKernels *kernels, CiKernel *kernel);

#endif
