/* Loops -> kernels: depend, fuse, order, axes, memory. */
#ifndef CI_SCHEDULE_SCHEDULE_H
#define CI_SCHEDULE_SCHEDULE_H

#include "ir/kernel.h"

typedef struct CiScheduleOptions {
    bool fusion;
} CiScheduleOptions;

CiKernels *ci_schedule(CiLoops *loops, const CiTarget *target, const CiScheduleOptions *options);

#endif
