/* The CUDA driver and NVRTC, opened at run time: the package builds and runs without them. Only
 * what is used is declared, from the documented interface. Everything here is status-coded. */
#ifndef CI_DEVICE_CUDA_DRIVER_H
#define CI_DEVICE_CUDA_DRIVER_H

#include "base/os.h"
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUdeviceptr;

/* CUmemAccessDesc: a device, and what it may do with the memory of a pool. */
typedef struct CiCudaAccess {
    int location, device, flags;
} CiCudaAccess;

/* CUlaunchAttribute, of which only whole numbers are used; CUlaunchConfig. */
typedef struct CiCudaLaunchAttribute {
    int number;
    int value[17]; /* from the second on */
} CiCudaLaunchAttribute;

typedef struct CiCudaLaunch {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CiCudaLaunchAttribute *attributes;
    unsigned nattributes;
} CiCudaLaunch;

#define CI_CUDA_OVERLAPS 6 /* an attribute: blocks may start while kernels before run, if these allow it */

/* DRIVER(field, symbol, parameters): all return a CUresult, 0 for success. */
#define CI_CUDA_DRIVER_TABLE                                                                       \
    DRIVER(init, cuInit, (unsigned flags))                                                         \
    DRIVER(device_count, cuDeviceGetCount, (int *count))                                           \
    DRIVER(device_get, cuDeviceGet, (int *device, int ordinal))                                    \
    DRIVER(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, int device))        \
    DRIVER(device_name, cuDeviceGetName, (char *name, int length, int device))                     \
    DRIVER(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, int device))                        \
    DRIVER(device_identity, cuDeviceGetUuid_v2, (void *identity, int device))                      \
    DRIVER(memory_left, cuMemGetInfo_v2, (size_t *left, size_t *all))                              \
    DRIVER(context_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, int device))            \
    DRIVER(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                            \
    DRIVER(context_now, cuCtxGetCurrent, (CUcontext * context))                                    \
    DRIVER(context_set, cuCtxSetCurrent, (CUcontext context))                                      \
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
    DRIVER(launch_with, cuLaunchKernelEx,                                                          \
           (const CiCudaLaunch *launch, CUfunction function, void **parameters, void **extra))     \
    DRIVER(allocate, cuMemAllocAsync, (CUdeviceptr * block, size_t size, CUstream stream))         \
    DRIVER(release, cuMemFreeAsync, (CUdeviceptr block, CUstream stream))                          \
    DRIVER(shared_allocate, cuMemAlloc_v2, (CUdeviceptr * block, size_t size))                     \
    DRIVER(shared_release, cuMemFree_v2, (CUdeviceptr block))                                      \
    DRIVER(shared_extent, cuMemGetAddressRange_v2,                                                 \
           (CUdeviceptr * block, size_t * size, CUdeviceptr inside))                               \
    DRIVER(share, cuIpcGetMemHandle, (CiShareName * name, CUdeviceptr block))                      \
    DRIVER(share_open, cuIpcOpenMemHandle_v2,                                                      \
           (CUdeviceptr * block, CiShareName name, unsigned flags))                                \
    DRIVER(share_close, cuIpcCloseMemHandle, (CUdeviceptr block))                                  \
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
    DRIVER(copy_within, cuMemcpyDtoDAsync_v2,                                                      \
           (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream))                       \
    DRIVER(clear_bytes, cuMemsetD8Async,                                                           \
           (CUdeviceptr block, unsigned char value, size_t count, CUstream stream))                \
    DRIVER(synchronize, cuStreamSynchronize, (CUstream stream))                                    \
    DRIVER(stream_query, cuStreamQuery, (CUstream stream))                                         \
    DRIVER(event_query, cuEventQuery, (CUevent event))                                             \
    DRIVER(synchronize_all, cuCtxSynchronize, (void))                                              \
    DRIVER(stream_open, cuStreamCreate, (CUstream * stream, unsigned flags))                       \
    DRIVER(stream_close, cuStreamDestroy_v2, (CUstream stream))                                    \
    DRIVER(event_open, cuEventCreate, (CUevent * event, unsigned flags))                           \
    DRIVER(event_close, cuEventDestroy_v2, (CUevent event))                                        \
    DRIVER(event_record, cuEventRecord, (CUevent event, CUstream stream))                          \
    DRIVER(event_wait, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))        \
    DRIVER(event_synchronize, cuEventSynchronize, (CUevent event))                                 \
    DRIVER(event_elapsed, cuEventElapsedTime, (float *ms, CUevent first, CUevent second))          \
    DRIVER(capture_begin, cuStreamBeginCapture_v2, (CUstream stream, int mode))                    \
    DRIVER(capture_end, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                    \
    DRIVER(graph_instantiate, cuGraphInstantiateWithFlags,                                         \
           (CUgraphExec * made, CUgraph graph, unsigned long long flags))                          \
    DRIVER(graph_launch, cuGraphLaunch, (CUgraphExec graph, CUstream stream))                      \
    DRIVER(graph_close, cuGraphDestroy, (CUgraph graph))                                           \
    DRIVER(exec_close, cuGraphExecDestroy, (CUgraphExec graph))                                    \
    DRIVER(error_string, cuGetErrorString, (int result, const char **text))

typedef struct CiCudaDriver {
#define DRIVER(field, symbol, parameters) int(*field) parameters;
    CI_CUDA_DRIVER_TABLE
#undef DRIVER
} CiCudaDriver;

typedef struct CiCublas CiCublas;
typedef struct CiNccl CiNccl;           /* nccl.c */
typedef struct CiCudaGroup CiCudaGroup; /* the same */

#define CI_CUDA_BLOCK_CLASSES 13 /* 256 bytes to 1 MiB, in powers of two */
#define CI_CUDA_HOST_CLASSES 18  /* to 32 MiB */
#define CI_CUDA_CACHED_BLOCKS 16   /* of each */
#define CI_CUDA_HOST_BYTES ((size_t)1 << 27) /* of the host's, in all */

/* Blocks for the next allocation, by class. */
typedef struct CiCudaBlocks {
    pthread_mutex_t lock;
    size_t most, bytes; /* that are kept */
    int counts[CI_CUDA_HOST_CLASSES];
    uint64_t kept[CI_CUDA_HOST_CLASSES][CI_CUDA_CACHED_BLOCKS]; /* addresses */
} CiCudaBlocks;

/* One device, its primary context. Work without a stream goes to the legacy default stream, in
 * order with all other users of that stream. */
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
    CiOsMark *mark;    /* of the process whose context it is: a forked child cannot use it */
    /* The device's properties are known before its context is created; or it is known to be
     * unusable. A concurrent caller waits for the lock of the part that it needs. */
    atomic_bool is_known, is_open;
    pthread_mutex_t knowing, opening;
    char why_not[256]; /* "": usable */
    atomic_int last_error;
    CiCudaBlocks blocks, host_blocks; /* host_blocks: of pinned host memory */
    atomic_uint peers; /* bit d: device d has been asked to read this one's memory by itself */
    pthread_mutex_t recording; /* record.c */
    CUstream record_stream;    /* under it; NULL until something is recorded */
    pthread_mutex_t lock; /* of what library calls need: matmul.h, library.h */
    struct CiCublas *cublas;
    struct CiCufft *cufft;
    struct CiCusolver *cusolver;
    CiCudaLoaded *loaded;
    pthread_mutex_t grouping; /* of what follows; no other lock is taken under it */
    CiNccl *nccl;             /* NULL: not looked for yet */
    CiCudaGroup *groups;
    atomic_int npending; /* groups with work that is not known to be done */
    char group_error[240];
} CiCudaState;

/* NULL, or why no device can be used here. Opens the driver and leaves it open. */
const char *ci_cuda_driver_open(CiCudaDriver *driver, char *out, size_t capacity);
/* That of a queue, made when first asked for. NULL only without memory. May be unusable: see
 * why_not. */
CiCudaState *ci_cuda_state(const CiQueue *queue);
/* Like ci_cuda_state, but needs no context: for `capability`, 0 without a device. */
CiCudaState *ci_cuda_known(const CiQueue *queue);
const char *ci_cuda_last_error(const CiQueue *queue, char *out, size_t capacity);

/* A stay of this thread in the context of a device. */
typedef struct CiCudaContextScope {
    CiCudaState *state;
    const CiCudaDriver *driver;
    bool is_pushed; /* over a context that somebody else has made current */
} CiCudaContextScope;
/* Makes the context of the queue's device current, or says why not: CI_ERR_DEVICE, CI_ERR_MEMORY. Ends
 * by ci_cuda_leave. */
int32_t ci_cuda_enter(CiCudaContextScope *scope, const CiQueue *queue);
/* result: of the driver; it is remembered. CI_OK, CI_ERR_MEMORY or CI_ERR_DEVICE. */
int32_t ci_cuda_leave(const CiCudaContextScope *scope, int result);

/* functions.c. Launches a kernel whose blocks wait themselves for the end of all earlier kernels: from sm_90 on they may
 * start before it. Returns a status of the driver. */
int ci_cuda_launch_early(const CiCudaContextScope *scope, CUfunction kernel, unsigned blocks, unsigned rows, unsigned threads,
                         unsigned shared_bytes, CUstream stream, void **parameters);

/* Unloads a module of that device, or nothing. */
void ci_cuda_unload(const CiQueue *queue, CUmodule module);

/* A function of the device: `call` is done in a stay of the parameter `queue`, and is the driver's
 * result. */
#define CI_CUDA_FUNCTION(name, parameters, call)                                                   \
    static int32_t name parameters                                                                 \
    {                                                                                              \
        CiCudaContextScope scope;                                                                          \
        int32_t status = ci_cuda_enter(&scope, queue);                                             \
        return status ? status : ci_cuda_leave(&scope, (call));                                    \
    }
/* Like CI_CUDA_FUNCTION, for a function without a result. */
#define CI_CUDA_PROCEDURE(name, parameters, call)                                                  \
    static void name parameters                                                                    \
    {                                                                                              \
        CiCudaContextScope scope;                                                                          \
        if (ci_cuda_enter(&scope, queue))                                                          \
            return;                                                                                \
        (void)ci_cuda_leave(&scope, (call));                                                       \
    }

#define CI_CUDA_KEEP_BYTES ((uint64_t)1 << 32) /* freed memory that the driver keeps at hand */

/* ---- caching_allocator.c: blocks that are kept for the next allocation ---- */

/* Return results of the driver. A cached block of the GPU is reused by the device's own stream
 * only, in order after that stream's earlier work with it. */
int ci_cuda_block_take(const CiCudaContextScope *scope, size_t size, CUstream stream, CUdeviceptr *block);
int ci_cuda_block_give(const CiCudaContextScope *scope, CUdeviceptr block, size_t size, CUstream stream);
/* Take and keep cached blocks without a call of the driver; false if there is no such block, or too many. */
bool ci_cuda_block_take_cached(CiCudaState *state, size_t size, void **block);
bool ci_cuda_block_keep(CiCudaState *state, void *block, size_t size);
/* Pinned host memory; freed only when it has no user left. */
int ci_cuda_host_take(const CiCudaContextScope *scope, size_t size, void **block);
int ci_cuda_host_give(const CiCudaContextScope *scope, void *block, size_t size);
/* Keeps at most that many bytes from now on; what is more goes back to the driver. */
int ci_cuda_blocks_bound(const CiCudaContextScope *scope, size_t bytes);

/* ---- nccl.c ---- */

#define CI_CUDA_NO_MEMORY 2 /* a result of the driver */
#define CI_CUDA_GROUP_FAILED (-3) /* in place of a result of the driver: the state has the reason */

/* Waits until no group has work under way; until that, or a stream is done. A group that is late or has an error is
 * ended: CI_CUDA_GROUP_FAILED. */
int ci_cuda_await_groups(const CiCudaContextScope *scope);
int ci_cuda_await_stream(const CiCudaContextScope *scope, CUstream stream);
/* Waits for a stream, for an event. */
int ci_cuda_wait_stream(const CiCudaContextScope *scope, CUstream stream);
int ci_cuda_wait_event(const CiCudaContextScope *scope, CUevent event);

/* ---- record.c ---- */

int32_t ci_cuda_record_begin(const CiQueue *queue, void **stream);
int32_t ci_cuda_record_end(const CiQueue *queue, void *stream, void **recording);
int32_t ci_cuda_replay(const CiQueue *queue, void *recording);
void ci_cuda_record_close(const CiQueue *queue, void *recording);
/* Waits for all streams of the context, when none captures. */
int ci_cuda_synchronize_all(const CiCudaContextScope *scope);

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
