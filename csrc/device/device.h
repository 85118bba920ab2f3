/* What a backend is: a struct of functions, one row in devices.def, one folder. The registry is
 * keyed by (device, backend). Nothing above this folder names a device. */
#ifndef CI_DEVICE_DEVICE_H
#define CI_DEVICE_DEVICE_H

#include "device/ufunc.h"
#include "host/alloc.h"
#include "host/cache.h"
#include "host/pool.h"
#include "ir/proc.h"

typedef struct CiOptions {
#define CI_OPTION_bool bool
#define CI_OPTION_int int64_t
#define CI_OPTION_text const char *
#define CI_OPTION_levels const char *
#define OPTION(name, type, value, allowed, env, doc) CI_OPTION_##type name;
#include "base/options.def"
#undef OPTION
} CiOptions;
void
ci_options_default(CiOptions *options); /* the table's defaults; the environment is the binding's */
/* numerics is numpy or exact: floats are folded in NumPy's order, where the device follows it. */
bool ci_options_have_numpys_order(const CiOptions *options);

typedef struct CiBackend CiBackend;

/* What a backend keeps as long as a runtime lives (a driver, a context): embedded first in what the
 * backend allocates at its first use, from whatever thread, and found again by its `shut`. */
typedef struct CiDeviceState CiDeviceState;
struct CiDeviceState {
    void (*shut)(CiDeviceState *state); /* ends and frees it */
    CiDeviceState *next;
};

/* What kernels and executables use while running; owned by the binding, shared by all programs. */
typedef struct CiRuntime {
    CiPool *pool;
    CiAllocator *allocator;
    CiCache *cache;             /* NULL: no disk cache */
    int32_t (*poll)(void *arg); /* non-zero: stop (Ctrl-C); may be NULL; called from the launching
                                   thread only */
    void *poll_arg;
    bool (*should_stop_build)(void *arg); /* asked while a child process builds; may be NULL */
    void *should_stop_arg;
    _Atomic(CiDeviceState *) states; /* one per backend that keeps something */
    const CiUfuncLoop *ufuncs;       /* CI_UFUNC_LOOPS; NULL: programs have no UFUNC rows */
} CiRuntime;
/* Ends what backends keep; after the last program and the last memory of a device. */
void ci_runtime_shut(CiRuntime *runtime);

/* A run-time Python scalar: i64 and bool in i, f64 in f, c128 in c. 16 bytes. */
typedef union CiSlot {
    double f;
    int64_t i;
    double c[2];
} CiSlot;

/* Why a kernel stopped. kind 0: it did not. */
typedef struct CiFault {
    int32_t kind;
    int32_t node;
    int64_t values[4];
} CiFault;

/* What a kernel gets besides its operands. This struct is part of the kernel contract: emitted
 * source declares the same. */
typedef struct CiRun {
    void *scratch;  /* scratch_bytes of this call's own, 64-byte aligned */
    void *partials; /* split kernels: partial_bytes times unit number, shared by all */
    CiFault *fault;
    int32_t (*poll)(void *arg);
    void *poll_arg;
    void (*apply)(const CiUfuncLoop *loops, int32_t number, int64_t count, void *out, const void *a,
                  int64_t a_step, const void *b, int64_t b_step);
    const CiUfuncLoop *ufuncs;
} CiRun;

/* Does units [begin, end). buffers and sizes in the order of CiKernel.buffers and size_args;
 * scalars are the program's CiSlots, one per scalar input in order. Returns 0 or non-zero with
 * run->fault filled. */
typedef int32_t (*CiKernelFunction)(void *const *buffers, const int64_t *sizes, const void *scalars,
                                    int64_t begin, int64_t end, CiRun *run);

typedef struct CiLaunch {
    int kernel;           /* CiKernel.id */
    void *const *buffers; /* memory of the device */
    const int64_t *sizes;
    const CiSlot *scalars;
    int64_t units, finish_units, scratch_bytes, partial_bytes, unit_work;
    int max_threads; /* 0: all */
} CiLaunch;

typedef struct CiExecutable CiExecutable;

/* Built kernels of one program. The backend allocates it with malloc and embeds it first. */
struct CiExecutable {
    const CiBackend *backend;
    CiRuntime *runtime;
};

typedef struct CiBuildInfo {
    double emit_ms, compile_ms, load_ms;
    bool from_cache;
    int children; /* processes started */
} CiBuildInfo;

/* Functions that may be NULL say so. */
struct CiBackend {
    const char *device; /* "cpu" */
    const char *name;   /* "c" */
    const char *doc;
    /* NULL, or why it cannot be used here ("no C compiler: tried $CC, cc, gcc, clang"); text lives
     * in out. */
    const char *(*why_not_available)(const CiOptions *options, char *out, size_t capacity);
    void (*fill_target)(CiTarget *target, const CiOptions *options);
    /* Folds of floats are in the device's own order, the same in each run; else in NumPy's. */
    bool has_own_order;
    /* What kernels do, statement by statement; NULL: the backend prints kernels. */
    CiProcs *(*lower)(const CiKernels *kernels, const CiOptions *options);
    /* Source of all loop kernels as text; NULL when the backend has none. */
    void (*emit)(CiText *out, const CiKernels *kernels, const CiOptions *options);
    /* Builds and loads; fails through ctx, having closed what it opened. No lock of any interpreter
     * is needed. */
    CiExecutable *(*build)(CiContext *ctx, const CiKernels *kernels, const CiOptions *options,
                           CiRuntime *runtime, CiBuildInfo *info);
    void (*close)(CiExecutable *executable);
    /* Runs one kernel, returning when its results may be used by the next launch. 0, or a CiStatus
     * with fault filled. */
    int32_t (*launch)(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);
    /* Why the host is quicker at these kernels, with arrays of its own or with copies of the
     * device's, or NULL; text lives in the context of the loops. NULL: it never is. */
    const char *(*why_slower)(const CiKernels *kernels, bool host_arrays);
    /* Library calls done with memory of the device instead of the host's; NULL: none. A call is one
     * that was taken; results are there for the next launch. */
    bool (*takes_extern)(const CiExternItem *item);
    int32_t (*run_extern)(CiRuntime *runtime, CiOp op, const CiExternCall *call);
    /* Memory of the device. All NULL for devices whose memory is the host's. 0 or a CiStatus. */
    int32_t (*allocate)(CiRuntime *runtime, size_t size, void **block);
    void (*release)(CiRuntime *runtime, void *block, size_t size);
    int32_t (*copy_in)(CiRuntime *runtime, void *device, const void *host, size_t size);
    int32_t (*copy_out)(CiRuntime *runtime, void *host, const void *device, size_t size);
    int32_t (*synchronize)(CiRuntime *runtime);
    /* What the device said when a call last answered CI_ERR_DEVICE; NULL: nothing to add to the
     * status. */
    const char *(*last_error)(CiRuntime *runtime, char *out, size_t capacity);
};

/* The backend of a device by name; name NULL or "" gives the first one. NULL when unknown. */
const CiBackend *ci_backend_find(const char *device, const char *name);
int ci_backend_count(void);
const CiBackend *ci_backend_at(int position);

#endif
