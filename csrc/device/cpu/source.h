/* Kernels as C source. */
#ifndef CI_DEVICE_CPU_SOURCE_H
#define CI_DEVICE_CPU_SOURCE_H

#include "base/map.h"
#include "device/device.h"
#include "ir/proc.h"

/* The kernels of one translation unit, and what comes of them, all by kernel id. */
typedef struct CiCpuUnit {
    const bool *is_wanted;
    const CiKernel **printed; /* whose functions a kernel runs: its own, or those of one like it */
    CiLaunchExprs *launches;
    int64_t *lengths;         /* bytes of the functions that are printed, as compilers take them */
    bool *is_linked;          /* per CiLibrary */
} CiCpuUnit;

CiProcs *ci_cpu_lower(const CiKernels *kernels, const CiOptions *options);
/* The source of a unit's kernels; without one (NULL) of all, each by itself. */
void ci_cpu_emit_source(CiText *out, const CiKernels *kernels, const CiProcs *procs,
                        const CiOptions *options, CiCpuUnit *unit);

#endif
