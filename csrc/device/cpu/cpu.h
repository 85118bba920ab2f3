/* Built kernels of the C backend. */
#ifndef CI_DEVICE_CPU_CPU_H
#define CI_DEVICE_CPU_CPU_H

#include "device/device.h"

typedef struct CiCpuKernel {
    CiKernelFunction run, finish; /* finish: split kernels only */
    int64_t partial_bytes;        /* split kernels: what a unit stores */
} CiCpuKernel;

typedef struct CiCpuExecutable {
    CiExecutable base;
    void *library;
    int64_t chunk_elements;
    int nkernels; /* ids 0.. */
    CiCpuKernel *kernels;
} CiCpuExecutable;

int32_t ci_cpu_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);

#endif
