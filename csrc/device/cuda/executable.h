/* State of a program's kernels in the backend: layouts for launches, images made by NVRTC, and
 * copies of the kernels from which variants for the sizes of calls are made.
 *
 * An executable is shared by threads. `is_loaded` is published by the thread that holds `loading`;
 * readers take no lock. */
#ifndef CI_DEVICE_CUDA_EXECUTABLE_H
#define CI_DEVICE_CUDA_EXECUTABLE_H

#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"

#include <pthread.h>

typedef struct CiCudaImage {
    const char *source;
    CiGpuLayout *layouts; /* by kernel id */
    CUmodule module;
    atomic_bool is_loaded;
} CiCudaImage;

/* A kernel made for a class of sizes, with vectors or without. The executable's lock protects
 * it, except the fields that its maker fills in before others see it. */
typedef struct CiCudaVariant CiCudaVariant;
struct CiCudaVariant {
    CiCudaVariant *next;
    CiCudaClass class;
    bool has_vectors;
    bool is_made;     /* others wait until it is */
    bool is_recorded; /* a recording launches it: it is not evicted */
    int users;        /* launches that have it now */
    int64_t last_use; /* number of the launch */
    int32_t status;   /* of making it */
    CiContext *memory;
    CiGpuLayout layout; /* without a name: it could not be made */
    CUmodule module;
};

/* A kernel of symbolic sizes, kept to make variants of. */
typedef struct CiCudaGeneric {
    const char *text;         /* of this one alone; NULL: it has no variants */
    const CiKernels *kernels; /* parsed */
    CiSizeTable work;         /* elements of a launch */
    CiCudaVariant *variants;  /* under the executable's lock */
    int64_t launches;         /* that had variants */
} CiCudaGeneric;

typedef struct CiCudaExecutable {
    CiExecutable base;
    CiContext *memory; /* of everything below */
    int nkernels;
    CiCudaImage images[2]; /* with vectors, without */
    CiCudaGeneric *kept;   /* by kernel id */
    const CiMachine *machine; /* of variants */
    CiPassPlan plan;        /* of their procs */
    bool is_fast, uses_cache, verifies;
    const char *where;            /* NVRTC */
    pthread_mutex_t loading;      /* while the second image is made */
    pthread_mutex_t lock;         /* of the lists of variants; never while one is made */
    pthread_cond_t variant_made;
} CiCudaExecutable;

/* The inputs of an image, for backend.c and variants.c. */
typedef struct CiCudaBuild {
    const CiKernels *kernels;
    CiCudaExecutable *executable;
    const CiProcs *procs;
    CiGpuLayout *layouts;
    int nkernels;
} CiCudaBuild;

/* functions.c. Finds the functions of a layout in a module. Returns a status of the driver. */
int ci_cuda_find_functions(const CiCudaContextScope *scope, CUmodule module, CiGpuLayout *layout);
CiCudaCompile ci_cuda_compile_job(CiCudaExecutable *executable, const char *source);
/* Lowers kernels to procs for the queue's device. Its properties are known now, and were not when the
 * machine was described. */
CiProcs *ci_cuda_lower(const CiQueue *queue, const CiKernels *kernels, bool verify, bool may_vectorise);

/* variants.c */
/* Copies the kernel from which variants are made into the executable's memory. text: the source of
 * this kernel alone. */
void ci_cuda_keep(CiContext *ctx, CiCudaExecutable *executable, int kernel, const char *text);
/* The variant for the launch's sizes, compiled now if needed; *variant is NULL if the generic
 * kernel is used. sizes: the variant's arguments in place of the launch's. A variant is released
 * after its launch. Fails if the executable verifies and the variant is wrong, or if the number of
 * variants of recordings is exhausted. */
int32_t ci_cuda_take_variant(CiCudaExecutable *executable, const CiLaunch *launch, int64_t *sizes,
                             CiCudaVariant **variant);
void ci_cuda_give_variant(CiCudaExecutable *executable, const CiLaunch *launch,
                          CiCudaVariant *variant);
void ci_cuda_close_variants(CiCudaExecutable *executable);

#endif
