/* Built kernels of the C backend. A program is at most CI_CPU_MAX_UNITS translation units, compiled
 * side by side. */
#ifndef CI_DEVICE_CPU_CPU_H
#define CI_DEVICE_CPU_CPU_H

#include "device/device.h"
#include "device/size_table.h"

#define CI_CPU_MAX_UNITS 4

typedef struct CiCpuKernel {
    CiKernelFunction run, finish; /* finish: split kernels only, but no chained ones */
    CiSizeTable *launch;          /* by CiLaunchNumber */
    bool is_split;                /* units leave partial results */
} CiCpuKernel;

typedef struct CiCpuExecutable {
    CiExecutable base;
    void *libraries[CI_CPU_MAX_UNITS];
    int nlibraries;
    int64_t chunk_elements;
    int nkernels; /* ids 0.. */
    CiCpuKernel *kernels;
} CiCpuExecutable;

/* The numbers of the kernel's launches, which ci_cpu_close frees. */
void ci_cpu_set_launch(CiContext *ctx, CiCpuKernel *own, const CiKernel *kernel, const CiLaunchExprs *launch);
/* build.c: see CiCompiler. */
CiExecutable *ci_cpu_build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels,
                           const CiOptions *options, CiBuildInfo *info);
/* User-written code: units [begin, end) of its grid. */
typedef struct CiCpuUserCode {
    CiUserCode base;
    int32_t (*function)(void *const *buffers, const int64_t *sizes, int64_t begin, int64_t end);
    void *library;
} CiCpuUserCode;

/* build.c: compiled, kept and loaded as kernels are: see CiCompiler. user_kernel.c: its functions. */
CiUserCode *ci_cpu_build_text(CiContext *ctx, const CiQueue *queue, const char *source,
                              const CiOptions *options);
int32_t ci_cpu_run_text(CiUserCode *code, const CiQueue *queue, int nbuffers, void *const *buffers,
                        int nsizes, const int64_t *sizes, int64_t units, int threads);
void ci_cpu_close_text(CiUserCode *code);

/* translation_unit.c: the unit of each kernel, by the length of its text (all by id), -1 where that is 0;
 * returns the number of units. */
int ci_cpu_assign_units(const int64_t *lengths, int nkernels, int *unit_of);

/* launch.c */
void ci_cpu_close(CiExecutable *executable);
int32_t ci_cpu_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);

#endif
