/* What the backend keeps of a program's kernels: layouts for launches, images that NVRTC made, and
 * copies of kernels from which more are made for the sizes that calls bring.
 *
 * An executable is shared by threads. What is published (`is_loaded`, the list of variants) is only
 * added to, under the lock; readers take none. */
#ifndef CI_DEVICE_CUDA_EXECUTABLE_H
#define CI_DEVICE_CUDA_EXECUTABLE_H

#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"

#include <pthread.h>

#define CI_CUDA_MAX_PARAMETERS 1024

/* What a launch must know of a kernel; copied out of its procs, which die with the compilation. */
typedef struct CiCudaFunction {
    CiCudaExtent blocks;
    int threads; /* of a block */
    int64_t shared_bytes;
    CUfunction run;
} CiCudaFunction;

typedef struct CiCudaLayout {
    const char *name; /* NULL: there is none */
    bool has_checks, has_finish;
    CiCudaFunction functions[2]; /* finish: the second runs when the first has */
    CiCudaExtent partial_bytes;  /* that the one leaves for the other */
    bool tells;                  /* blocks of the first tell each other there: it is zero when they begin */
    int nbuffers, nsizes, nslots;
    int *alignment; /* per buffer, bytes */
    int *slots;     /* numbers among the program's scalars */
} CiCudaLayout;

typedef struct CiCudaImage {
    const char *source;
    CiCudaLayout *layouts; /* by kernel id */
    CUmodule module;
    atomic_bool is_loaded;
} CiCudaImage;

/* A kernel made for a class of sizes, with vectors or without. */
typedef struct CiCudaVariant CiCudaVariant;
struct CiCudaVariant {
    CiCudaVariant *next;
    CiCudaClass class;
    bool has_vectors;
    CiCudaLayout layout; /* without a name: it could not be made */
    CUmodule module;
};

/* A kernel of symbolic sizes, kept to make variants of. */
typedef struct CiCudaGeneric {
    const CiKernels *kernels; /* this one alone; NULL: it has no variants */
    CiCudaExtent work;        /* elements of a launch */
    CiCudaVariant *_Atomic variants;
} CiCudaGeneric;

typedef struct CiCudaExecutable {
    CiExecutable base;
    CiContext *memory; /* of everything below */
    int nkernels;
    CiCudaImage images[2]; /* with vectors, without */
    CiCudaGeneric *kept;      /* by kernel id */
    bool is_fast, uses_cache;
    const char *where;    /* NVRTC */
    pthread_mutex_t lock; /* while the second image or a variant is made */
} CiCudaExecutable;

/* layout.c */
typedef struct CiCudaBuild {
    const CiKernels *kernels;
    const CiOptions *options; /* NULL: of a variant */
    CiCudaExecutable *executable;
    const CiProcs *procs;
    CiCudaLayout *layouts;
    int nkernels;
} CiCudaBuild;
void ci_cuda_describe(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel,
                      CiCudaLayout *layout);
/* The functions of a layout in a module; a result of the driver. */
int ci_cuda_find_functions(const CiCudaStay *stay, CUmodule module, CiCudaLayout *layout);
CiCudaCompile ci_cuda_compile_job(CiCudaExecutable *executable, const char *source);
bool ci_cuda_is_aligned(const CiCudaLayout *layout, const CiLaunch *launch);

/* variants.c */
/* Copies what variants are made of into the executable's memory, where this runs. */
void ci_cuda_keep(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel);
/* The kernel made for the launch's sizes, made now if need be; NULL when the one for all sizes
 * serves. sizes: what it takes instead of the launch's. */
const CiCudaLayout *ci_cuda_find_variant(CiCudaExecutable *executable, const CiLaunch *launch,
                                         int64_t *sizes);
void ci_cuda_close_variants(CiCudaExecutable *executable);

#endif
