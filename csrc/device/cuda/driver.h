/* The CUDA driver and NVRTC, opened at run time: the package builds and runs without them. Only
 * what is used is declared, from the documented interface. Everything here is status-coded. */
#ifndef CI_DEVICE_CUDA_DRIVER_H
#define CI_DEVICE_CUDA_DRIVER_H

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUdeviceptr;

/* CUmemAccessDesc: a device, and what it may do with the memory of a pool. */
typedef struct CiCudaAccess {
    int location, device, flags;
} CiCudaAccess;

/* DRIVER(field, symbol, parameters): all return a CUresult, 0 for success. */
#define CI_CUDA_DRIVER_TABLE                                                                       \
    DRIVER(init, cuInit, (unsigned flags))                                                         \
    DRIVER(device_count, cuDeviceGetCount, (int *count))                                           \
    DRIVER(device_get, cuDeviceGet, (int *device, int ordinal))                                    \
    DRIVER(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))        \
    DRIVER(device_name, cuDeviceGetName, (char *name, int length, int device))                     \
    DRIVER(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device))                        \
    DRIVER(memory_left, cuMemGetInfo_v2, (size_t *left, size_t *all))                              \
    DRIVER(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, int device))            \
    DRIVER(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                            \
    DRIVER(context_push, cuCtxPushCurrent_v2, (CUcontext context))                                 \
    DRIVER(context_pop, cuCtxPopCurrent_v2, (CUcontext * context))                                 \
    DRIVER(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                  \
    DRIVER(module_unload, cuModuleUnload, (CUmodule module))                                       \
    DRIVER(module_function, cuModuleGetFunction,                                                   \
           (CUfunction * function, CUmodule module, const char *name))                             \
    DRIVER(function_attribute, cuFuncSetAttribute,                                                 \
           (CUfunction function, int attribute, int value))                                        \
    DRIVER(launch, cuLaunchKernel,                                                                 \
           (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                \
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,           \
            CUstream stream, void **parameters, void **extra))                                     \
    DRIVER(allocate, cuMemAllocAsync, (CUdeviceptr * block, size_t size, CUstream stream))         \
    DRIVER(release, cuMemFreeAsync, (CUdeviceptr block, CUstream stream))                          \
    DRIVER(pool, cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, int device))                     \
    DRIVER(pool_attribute, cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void *value)) \
    DRIVER(pool_state, cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *value))     \
    DRIVER(pool_trim, cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep))                           \
    DRIVER(clear, cuMemsetD32Async,                                                                \
           (CUdeviceptr block, unsigned value, size_t count, CUstream stream))                     \
    DRIVER(copy_in, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size))              \
    DRIVER(copy_out, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size))                   \
    DRIVER(copy_in_on, cuMemcpyHtoDAsync_v2,                                                       \
           (CUdeviceptr to, const void *from, size_t size, CUstream stream))                       \
    DRIVER(copy_out_on, cuMemcpyDtoHAsync_v2,                                                      \
           (void *to, CUdeviceptr from, size_t size, CUstream stream))                             \
    DRIVER(host_allocate, cuMemAllocHost_v2, (void **block, size_t size))                          \
    DRIVER(host_release, cuMemFreeHost, (void *block))                                             \
    DRIVER(can_access, cuDeviceCanAccessPeer, (int *can, int device, int peer))                    \
    DRIVER(pool_access, cuMemPoolSetAccess,                                                        \
           (CUmemoryPool pool, const CiCudaAccess *access, size_t count))                          \
    DRIVER(copy_across, cuMemcpyPeerAsync,                                                         \
           (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,        \
            size_t size, CUstream stream))                                                         \
    DRIVER(synchronize, cuStreamSynchronize, (CUstream stream))                                    \
    DRIVER(synchronize_all, cuCtxSynchronize, (void))                                              \
    DRIVER(stream_open, cuStreamCreate, (CUstream * stream, unsigned flags))                       \
    DRIVER(stream_close, cuStreamDestroy_v2, (CUstream stream))                                    \
    DRIVER(event_open, cuEventCreate, (CUevent * event, unsigned flags))                           \
    DRIVER(event_close, cuEventDestroy_v2, (CUevent event))                                        \
    DRIVER(event_record, cuEventRecord, (CUevent event, CUstream stream))                          \
    DRIVER(event_wait, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))        \
    DRIVER(event_synchronize, cuEventSynchronize, (CUevent event))                                 \
    DRIVER(event_elapsed, cuEventElapsedTime, (float *ms, CUevent first, CUevent second))          \
    DRIVER(error_string, cuGetErrorString, (int result, const char **text))

typedef struct CiCudaDriver {
#define DRIVER(field, symbol, parameters) int(*field) parameters;
    CI_CUDA_DRIVER_TABLE
#undef DRIVER
} CiCudaDriver;

typedef struct CiCublas CiCublas;

/* One device, its primary context. Work that names no stream goes to the legacy default stream: in
 * order among itself and with whoever else uses that stream. */
typedef struct CiCudaLoaded CiCudaLoaded; /* library.h */

typedef struct CiCudaState {
    CiDeviceState base;
    CiCudaDriver driver;
    CUcontext context;
    int index; /* of all the process sees */
    int count; /* that it sees */
    int device;
    int capability;    /* 90 for sm_90; 0 without a device */
    int shared_limit;  /* bytes of shared memory a block may ask for */
    int64_t process;   /* whose context it is: a forked child cannot use it */
    atomic_bool is_open; /* or known to be unusable; who comes meanwhile waits for the lock */
    pthread_mutex_t opening;
    char why_not[256]; /* "": usable */
    atomic_int last_error;
    atomic_uint peers; /* bit d: device d has been asked to read this one's memory by itself */
    pthread_mutex_t lock; /* of what library calls need: matmul.h, library.h */
    struct CiCublas *cublas;
    CiCudaLoaded *loaded;
} CiCudaState;

/* NULL, or why no device can be used here. Opens the driver and leaves it open. */
const char *ci_cuda_driver_open(CiCudaDriver *driver, char *out, size_t capacity);
/* That of a queue, made when first asked for. NULL only without memory. May be unusable: see
 * why_not. */
CiCudaState *ci_cuda_state(const CiQueue *queue);
/* Makes the context current for this thread, or says CI_ERR_DEVICE; ends by ci_cuda_leave. */
int32_t ci_cuda_enter(CiCudaState *state);
int32_t ci_cuda_leave(CiCudaState *state,
                      int result); /* CI_OK, CI_ERR_MEMORY or CI_ERR_DEVICE, remembered */
/* The functions of the device: see CiDevice. */
const char *ci_cuda_last_error(const CiQueue *queue, char *out, size_t capacity);
int ci_cuda_count(const CiQueue *queue);
int32_t ci_cuda_properties(const CiQueue *queue, CiDeviceProperties *out);
int32_t ci_cuda_allocate(const CiQueue *queue, size_t size, void **block);
void ci_cuda_release(const CiQueue *queue, void *block, size_t size);
int32_t ci_cuda_copy_in(const CiQueue *queue, void *device, const void *host, size_t size);
int32_t ci_cuda_copy_out(const CiQueue *queue, void *host, const void *device, size_t size);
int32_t ci_cuda_synchronize(const CiQueue *queue);
int32_t ci_cuda_memory_left(const CiQueue *queue, size_t *left, size_t *all);
int32_t ci_cuda_reserved(const CiQueue *queue, size_t *bytes);
int32_t ci_cuda_keep_memory(const CiQueue *queue, size_t bytes);
/* peers.c */
int32_t ci_cuda_host_allocate(const CiQueue *queue, size_t size, void **block);
void ci_cuda_host_release(const CiQueue *queue, void *block, size_t size);
int32_t ci_cuda_copy_out_start(const CiQueue *queue, void *host, const void *device, size_t size);
int32_t ci_cuda_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                            size_t size);
/* stream.c */
int32_t ci_cuda_stream_open(const CiQueue *queue, void **stream);
void ci_cuda_stream_close(const CiQueue *queue, void *stream);
int32_t ci_cuda_event_open(const CiQueue *queue, void **event);
void ci_cuda_event_close(const CiQueue *queue, void *event);
int32_t ci_cuda_event_record(const CiQueue *queue, void *event);
int32_t ci_cuda_event_wait(const CiQueue *queue, void *event);
int32_t ci_cuda_event_synchronize(const CiQueue *queue, void *event);
int32_t ci_cuda_event_elapsed(const CiQueue *queue, void *first, void *second, double *ms);

/* ---- nvrtc.c ---- */

/* Source to cubin through the disk cache. `where` is a file or folder of NVRTC to look in before
 * the loader's, or NULL. */
typedef struct CiCudaCompile {
    const char *source;
    int capability;
    bool is_fast;
    const char *where;
    CiCache *cache; /* may be NULL */
    void *cubin;    /* out: malloc'ed, the caller's */
    size_t size;
    bool from_cache;
    char message[2400]; /* why it failed */
} CiCudaCompile;
CiStatus ci_cuda_compile(CiCudaCompile *job);
const char *ci_cuda_why_no_nvrtc(const char *where, char *out, size_t capacity);

#endif
