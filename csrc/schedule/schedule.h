/* Loops -> kernels: depend, fuse, order, axes, memory. */
#ifndef CI_SCHEDULE_SCHEDULE_H
#define CI_SCHEDULE_SCHEDULE_H

#include "ir/kernel.h"

typedef struct CiScheduleOptions {
    bool fusion;
    bool reuse; /* values take over the memory of others */
    bool has_device_memory; /* the host waits for what it reads there */
    int64_t library_threads; /* that a library call takes by itself; 0: nobody knows */
    int64_t fusion_limit;    /* how often two groups of the program are put together, at most */
    const char *apart;       /* numbers of joins that are not made */
} CiScheduleOptions;

CiKernels *ci_schedule(CiLoops *loops, const CiTarget *target, const CiScheduleOptions *options);

/* A private buffer (CiBuffer.is_private) as a row of its kernel, when the ranges of sizes bound
 * one: for a device that knows more of the sizes than was known here. Its scratch is not placed. */
bool ci_kernel_find_row(CiSym *sym, const CiKernel *kernel, const CiBuffer *buffer,
                        CiPlacement *row);

#endif
