/* How a machine is plugged in. Three things that know nothing of each other:
 *
 *   CiMachine   data: what its kernels may look like, what they may take (ir/machine.h)
 *   CiCompiler  kernels -> an executable
 *   CiDevice    memory, streams, events, and what the machine is like
 *
 * A backend is a device and a compiler for it: one row of devices.def, or registered while the
 * process runs (ci_registry_add). Nothing above this folder names one. */
#ifndef CI_DEVICE_DEVICE_H
#define CI_DEVICE_DEVICE_H

#include "base/options.h"
#include "device/ufunc.h"
#include "host/alloc.h"
#include "host/cache.h"
#include "host/pool.h"
#include "ir/proc.h"

typedef struct CiBackend CiBackend;
typedef struct CiRegistry CiRegistry;

/* State that a backend keeps for the life of a runtime (a driver, a context). It is the first
 * member of the struct that the backend allocates on first use, from any thread, and it is
 * identified by its `shut`. */
typedef struct CiDeviceState CiDeviceState;
struct CiDeviceState {
    void (*shut)(CiDeviceState *state); /* ends and frees it */
    CiDeviceState *next;
};

/* Services for running kernels and executables; owned by the binding, shared by all programs. */
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
    CiRegistry *registry;            /* NULL: what is built in */
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

/* The arguments of a kernel besides its operands. This struct is part of the kernel contract:
 * emitted source declares the same. */
typedef struct CiRun {
    void *scratch;  /* CI_LAUNCH_scratch_bytes of this call's own, 64-byte aligned */
    void *partials; /* split kernels: what each unit leaves, shared by all */
    CiFault *fault;
    int32_t (*poll)(void *arg);
    void *poll_arg;
    void (*apply)(const CiUfuncLoop *loops, int32_t number, int64_t count, void *out, const void *a,
                  int64_t a_step, const void *b, int64_t b_step);
    const CiUfuncLoop *ufuncs;
    int64_t *ticket; /* chained kernels: units that have published */
    /* Returns 0 once the unit's turn has come, or what the kernel ends with. */
    int32_t (*wait)(void *arg, int64_t unit);
    void *wait_arg;
    int32_t is_again; /* the unit has waited before */
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
    int nbuffers, nsizes, nscalars; /* for devices that run it later, and copy all three */
    int max_threads; /* 0: all */
    void *stream;    /* of the device; NULL: its own */
    bool may_fail;   /* the host waits for the answer: the kernel has checks */
    bool is_recorded; /* between record_begin and record_end: replays launch it again */
    bool is_on_pool; /* not on the calling thread: cancellation cannot be polled here */
} CiLaunch;

typedef struct CiExecutable CiExecutable;

/* ---- devices ---- */

/* One device of the machine, and the stream that work on it goes to. */
typedef struct CiQueue {
    const CiBackend *backend;
    CiRuntime *runtime;
    int index;    /* "cuda:1" */
    void *stream; /* NULL: the device's own, in order with everything else there */
} CiQueue;

typedef struct CiDeviceProperties {
    char name[128];
    int64_t memory; /* bytes in all; 0: not known */
    int capability; /* 90 for a CUDA device of 9.0; 0: it has no such number */
    int units;      /* multiprocessors or cores */
    /* Unique identifier, in other processes too; zeros: the index identifies the device. */
    unsigned char identity[16];
} CiDeviceProperties;

/* By which another process finds memory; what stands in it is the device's. */
typedef struct CiShareName {
    char bytes[64];
} CiShareName;

/* By which the members of a group find each other, in other processes too; what stands in it is the
 * device's. */
typedef struct CiGroupName {
    char bytes[128];
} CiGroupName;

/* An operation that the members of a group do together, each with memory of its own. */
typedef struct CiCollective {
    CiOp op;     /* a row with the fact `collective` */
    CiOp reduce; /* of all_reduce and reduce_scatter: add, multiply, maximum or minimum */
    CiDtype dtype;
    size_t size;   /* bytes of an element */
    int64_t count; /* elements of the operand; of reduce_scatter: of the result */
    const void *operand;
    void *result;
    int root;         /* of broadcast: the member whose operand all get */
    int to, from;     /* of send_recv: the member that gets the operand, that sends the result; -1: none */
} CiCollective;

#define CI_DEVICE_ABI 15

/* Memory and time of one kind of device. A function that may be NULL says so; one that returns
 * int32_t gives 0 or a CiStatus. The struct lives as long as the registry it is in. */
typedef struct CiDevice CiDevice;
struct CiDevice {
    int abi;          /* CI_DEVICE_ABI */
    const char *name; /* "cuda" */
    const char *doc;
    void *data; /* private data of the code that registered it */
    int dlpack; /* its number in DLPack's list of devices; 0: its memory is not shared */
    /* How many the machine has. NULL: one. */
    int (*count)(const CiQueue *queue);
    /* Properties of one of them. NULL: unknown. */
    int32_t (*properties)(const CiQueue *queue, CiDeviceProperties *out);
    /* Memory of the device, aligned for any kernel. NULL, and so are all copies: its memory is the
     * host's. */
    int32_t (*allocate)(const CiQueue *queue, size_t size, void **block);
    /* Frees the block in stream order, after the stream's work with it. */
    void (*release)(const CiQueue *queue, void *block, size_t size);
    /* From the host: `host` may be changed as soon as this returns. */
    int32_t (*copy_in)(const CiQueue *queue, void *device, const void *host, size_t size);
    /* To the host, when what the stream does is done: `host` may be read as soon as this returns.
     */
    int32_t (*copy_out)(const CiQueue *queue, void *host, const void *device, size_t size);
    /* Host memory for asynchronous copies. NULL: there is none. */
    int32_t (*host_allocate)(const CiQueue *queue, size_t size, void **block);
    void (*host_release)(const CiQueue *queue, void *block, size_t size);
    /* Asynchronous copy_out, into such memory: it may be read after an event of the queue's stream.
     * NULL where there is no host_allocate. */
    int32_t (*copy_out_start)(const CiQueue *queue, void *host, const void *device, size_t size);
    /* From memory of the device of the one queue to that of the other, both of this struct; in the
     * order of to's stream, which has been made to wait for from's. NULL: through the host. */
    int32_t (*copy_across)(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                           size_t size);
    /* Waits for all that the queue's stream was given; without a stream, that any of the device's
     * was. */
    int32_t (*synchronize)(const CiQueue *queue);
    /* Free and total bytes. NULL: unknown. */
    int32_t (*memory_left)(const CiQueue *queue, size_t *left, size_t *all);
    /* Bytes that `allocate` has from the machine, in use or kept for later. NULL: those in use. */
    int32_t (*reserved)(const CiQueue *queue, size_t *bytes);
    /* Keeps at most that much for later, from now on (SIZE_MAX: as much as by default); what is
     * more goes back at once. NULL: it keeps nothing. */
    int32_t (*keep)(const CiQueue *queue, size_t bytes);
    /* Memory that other processes can open, without what other memory is kept for. NULL, and so are the
     * next four: there is none. */
    int32_t (*share_allocate)(const CiQueue *queue, size_t size, void **block);
    /* Frees it when this process has no more users. Other processes that have opened it are not
     * considered. */
    void (*share_release)(const CiQueue *queue, void *block);
    int32_t (*share_name)(const CiQueue *queue, const void *block, CiShareName *name);
    /* Such memory of another process, and its size; CI_ERR_DEVICE where there is none of the name. */
    int32_t (*share_open)(const CiQueue *queue, const CiShareName *name, void **block,
                          size_t *size);
    /* Closes it when this process has no more users. */
    void (*share_close)(const CiQueue *queue, void *block);
    /* A stream beside the device's own; *stream NULL: that one again. NULL: there are none, and no events. */
    int32_t (*stream_open)(const CiQueue *queue, void **stream);
    /* Waits for what it was given, then ends it. */
    void (*stream_close)(const CiQueue *queue, void *stream);
    /* A point in time of a stream. May be closed while streams still wait for it. */
    int32_t (*event_open)(const CiQueue *queue, void **event);
    void (*event_close)(const CiQueue *queue, void *event);
    /* The event is when all that the queue's stream was given so far is done. */
    int32_t (*event_record)(const CiQueue *queue, void *event);
    /* Later work of the queue's stream waits for the event. */
    int32_t (*event_wait)(const CiQueue *queue, void *event);
    /* The host waits for it. */
    int32_t (*event_synchronize)(const CiQueue *queue, void *event);
    /* Milliseconds from one to the other, both done. */
    int32_t (*event_elapsed)(const CiQueue *queue, void *first, void *second, double *ms);
    /* Launches and library calls that this thread gives to *stream from now on are taken down and not
     * done; a call that cannot be taken down fails. NULL, and so are the next three: it does not record. */
    int32_t (*record_begin)(const CiQueue *queue, void **stream);
    /* Ends that, also where a call has failed; *recording is NULL where this does. */
    int32_t (*record_end)(const CiQueue *queue, void *stream, void **recording);
    /* Gives the queue's stream all that was taken down, in its order and with nothing between; or fails and
     * gives it nothing. By one thread at a time. */
    int32_t (*replay)(const CiQueue *queue, void *recording);
    /* Frees it, after the streams' replays of it. */
    void (*record_close)(const CiQueue *queue, void *recording);
    /* Of a library call that it takes: whether it can be taken down. NULL: all of them. */
    bool (*records_extern)(const CiExternItem *item);
    /* Runs a kernel that a compiler has made for memory of this device. NULL: the executable does
     * so itself (CiExecutable.launch). */
    int32_t (*launch)(const CiQueue *queue, CiExecutable *executable, const CiLaunch *launch,
                      CiFault *fault);
    /* Library calls done with memory of the device instead of the host's. NULL: none. A call is one
     * that was taken; results are there for the next launch. CI_ERR_CHECK: it has none for these contents. */
    bool (*takes_extern)(const CiExternItem *item);
    int32_t (*run_extern)(const CiQueue *queue, CiOp op, const CiExternCall *call);
    /* A new name for a group of devices of this kind. NULL, and so are the next four: there are no
     * collectives. */
    int32_t (*group_name)(const CiQueue *queue, CiGroupName *name);
    /* Makes the device member `rank` of `count` of the group, when all have come. One that does not come, here
     * or to a collective, within timeout_ms is CI_ERR_DEVICE for the others, also where they wait for the
     * queue: then the group does nothing any more. */
    int32_t (*group_open)(const CiQueue *queue, const CiGroupName *name, int rank, int count,
                          int64_t timeout_ms, void **group);
    /* Ends the membership; what is under way fails. */
    void (*group_close)(const CiQueue *queue, void *group);
    /* Starts a collective after what the queue's stream was given so far. Later work of the stream does not
     * wait for it; later collectives of the group do. */
    int32_t (*group_start)(const CiQueue *queue, void *group, const CiCollective *what);
    /* Later work of the queue's stream waits for the group's collectives. */
    int32_t (*group_join)(const CiQueue *queue, void *group);
    /* The device's message for the last CI_ERR_DEVICE. NULL: nothing to add to the status. */
    const char *(*last_error)(const CiQueue *queue, char *out, size_t capacity);
};

/* ---- compilers ---- */

/* Built kernels of one program. Who builds it allocates it and embeds this first. */
struct CiExecutable {
    CiQueue queue;
    /* Ends and frees it. */
    void (*close)(CiExecutable *executable);
    /* Runs one kernel, returning when its results may be used by the next launch. 0, or a CiStatus
     * with fault filled. */
    int32_t (*launch)(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);
};

typedef struct CiBuildInfo {
    double emit_ms, compile_ms, load_ms;
    bool from_cache;
    int children;    /* processes started */
    int interpreted; /* kernels that the interpreter runs */
} CiBuildInfo;

/* A function of source that the user has written, over the units of a grid. Who builds it allocates
 * it and embeds this first. */
typedef struct CiUserCode CiUserCode;
struct CiUserCode {
    /* Runs all units, threads 0: by as many threads as there are; 0, or a CiStatus. The queue is of
     * the device that it was built for, and may have a stream. */
    int32_t (*run)(CiUserCode *code, const CiQueue *queue, int nbuffers, void *const *buffers,
                   int nsizes, const int64_t *sizes, int64_t units, int threads);
    void (*close)(CiUserCode *code);
};

/* Kernels for one family of machines. A function that may be NULL says so. */
typedef struct CiCompiler {
    int abi;          /* CI_DEVICE_ABI */
    const char *name; /* "c" */
    const char *doc;
    void *data;
    /* NULL, or why it cannot be used here ("no C compiler: tried $CC, cc, gcc, clang"); text lives
     * in out. */
    const char *(*why_not_available)(const CiOptions *options, char *out, size_t capacity);
    /* Sets the machine, generic until then: a row of machine.def, and what this one does better.
     * options: NULL if they do not matter. */
    void (*fill_machine)(CiMachine *machine, const CiOptions *options);
    /* Kernels as statements. NULL: the compiler does not use this level. */
    CiProcs *(*lower)(const CiKernels *kernels, const CiOptions *options);
    /* Source of all loop kernels as text. NULL: there is none. */
    void (*emit)(CiText *out, const CiKernels *kernels, const CiOptions *options);
    /* Builds and loads; fails through ctx, having closed what it opened. No lock of any interpreter
     * is needed. */
    CiExecutable *(*build)(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels,
                           const CiOptions *options, CiBuildInfo *info);
    /* The reason why the host runs these kernels faster, with host arrays or with copies of the
     * device's; or NULL. The text is in the context of the loops. NULL function: it never does. */
    const char *(*why_slower)(const CiKernels *kernels, bool host_arrays);
    /* The function `cinductor_kernel` of a source; fails through ctx as build does. NULL: there is
     * none. */
    CiUserCode *(*build_text)(CiContext *ctx, const CiQueue *queue, const char *source,
                              const CiOptions *options);
} CiCompiler;

/* ---- backends ---- */

struct CiBackend {
    const CiDevice *device;
    const CiCompiler *compiler;
    const CiCompiler *first; /* its kernels run until the compiler has built; NULL: none */
};

static inline bool
ci_backend_has_memory(const CiBackend *backend)
{
    return backend->device->allocate != NULL;
}

/* The device whose memory is the host's. */
const CiDevice *ci_host_device(void);
/* CiMachine.has_own_order. */
bool ci_backend_has_own_order(const CiBackend *backend);
/* The backend's machine, as a program uses it that has arguments in host memory, or in the device's. */
CiMachine ci_backend_machine(const CiBackend *backend, const CiOptions *options, bool host_arrays);

/* The backends of a process. Built-in ones come first. A lookup from any thread finds those that
 * were added before it. */
CiRegistry *ci_registry_open(void); /* NULL without memory */
void ci_registry_close(CiRegistry *registry);
/* Adds a device with its compilers, one thread at a time. CI_ERR_VALUE, with why in out and nothing
 * added: a pair is there already, a struct is of another version, or a function is missing. */
CiStatus ci_registry_add(CiRegistry *registry, const CiDevice *device,
                         const CiCompiler *const *compilers, int count, char *out, size_t capacity);
/* The backend of a device by name; name NULL or "" gives the first one. NULL when unknown. Of a
 * registry of NULL: what is built in. */
const CiBackend *ci_backend_find(const CiRegistry *registry, const char *device, const char *name);
/* The backend whose kernels run until another one has built; NULL where there is none. */
const CiBackend *ci_backend_first(const CiRegistry *registry, const CiBackend *backend, const CiOptions *options);
int ci_backend_count(const CiRegistry *registry);
const CiBackend *ci_backend_at(const CiRegistry *registry, int position);

/* ---- memory of devices: memory.c ---- */

typedef struct CiMemoryUse {
    int64_t allocated, peak, blocks; /* bytes and blocks now, the most bytes at one time */
    int64_t allocations, retries;    /* since the process began */
    int64_t refused;                 /* bytes last asked for in vain */
    int64_t limit, keep;             /* bytes; limit 0: none; keep -1: as the device has it */
} CiMemoryUse;

/* The device's allocate, counted and limited. If memory is exhausted, the device's cached blocks
 * are released and the allocation is retried once. */
int32_t ci_device_allocate(const CiQueue *queue, size_t size, void **block);
void ci_device_release(const CiQueue *queue, void *block, size_t size);
/* Allocates memory that other processes can open. */
int32_t ci_device_share(const CiQueue *queue, size_t size, void **block);
/* The device's synchronize, followed by the frees that had to be deferred. */
int32_t ci_device_wait(const CiQueue *queue);
/* Called when this process holds no more references to the block; streams may still use it. */
void ci_device_unshare(const CiQueue *queue, void *address, size_t size, bool is_opened);
/* The memory in use of one device, through this runtime; all 0 where its registry is NULL. */
void ci_memory_use(const CiQueue *queue, CiMemoryUse *out);
void ci_memory_forget_peak(const CiQueue *queue);
/* Everything that is kept for later goes back to the machine; then the device keeps as before. */
int32_t ci_memory_give_back(const CiQueue *queue);
/* At most `limit` bytes (0: any number), `keep` of them kept for later (-1: as it was). */
int32_t ci_memory_bound(const CiQueue *queue, int64_t limit, int64_t keep);

/* ---- between devices: peer_copy.c ---- */

/* Makes later work of `later`'s stream wait for the present work of `first`'s; both queues have the
 * same device struct. Devices without events have one stream each, which is synchronized. */
int32_t ci_device_order(const CiQueue *first, const CiQueue *later);
/* Copies after the present work of both streams, and before their later work. */
int32_t ci_device_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                              size_t size);

/* launch of the device or the executable. */
int32_t ci_executable_launch(CiExecutable *executable, const CiLaunch *launch, CiFault *fault);

/* mixed.c: takes `compiled` over, closing it where it fails; the first options->interpreted_kernels
 * kernels run by the interpreter. `compiled` itself where the device has none. */
CiExecutable *ci_executable_mixed(CiContext *ctx, CiExecutable *compiled, const CiKernels *kernels,
                                  const CiOptions *options);

#endif
