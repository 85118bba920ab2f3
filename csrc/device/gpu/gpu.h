/* Code that backends of GPUs share: kernels -> procs for blocks of threads, and their launches. The
 * language is a dialect (target/gpu), the driver a table of functions.
 *
 * The order of a float fold is the device's own. A thread folds its elements in order, with one
 * accumulator per element of an access. Then accumulators fold pairwise, threads of a warp fold
 * pairwise, and warps fold in order; without warps all threads of a block fold pairwise. For a fold
 * in parts, the parts fold last. The order depends on sizes and alignment only, never on the GPU
 * model or on timing, so results are reproducible. */
#ifndef CI_DEVICE_GPU_GPU_H
#define CI_DEVICE_GPU_GPU_H

#include "codegen/codegen.h"
#include "device/device.h"
#include "device/size_table.h"
#include "target/gpu/dialect.h"

#define CI_GPU_MAX_PARAMETERS 1024

/* ---- lower.c ---- */

/* The row sm_90 of machine.def, with what the dialect has. */
void ci_gpu_fill_machine(CiMachine *machine, const CiGpuDialect *dialect);
/* may_vectorise: one access moves several elements. */
CiProcs *ci_gpu_lower(const CiKernels *kernels, bool verify, bool may_vectorise);
/* CiCompiler.lower and CiCompiler.emit of every GPU. */
CiProcs *ci_gpu_lower_program(const CiKernels *kernels, const CiOptions *options);
void ci_gpu_emit(CiText *out, const CiKernels *kernels, const CiOptions *options);

/* ---- layout.c: what a launch must know of a kernel, copied from its procs ---- */

typedef struct CiGpuFunction {
    int threads; /* of a block */
    int64_t shared_bytes;
    void *run; /* the driver's */
    int64_t declared_bytes; /* of the block's memory, in the text */
} CiGpuFunction;

typedef struct CiGpuLayout {
    const char *name; /* NULL: there is none */
    bool has_checks, has_finish;
    CiGpuFunction functions[2]; /* finish: the second runs when the first has */
    CiSizeTable launch;         /* by CiLaunchNumber */
    bool notifies;                 /* blocks of the first tell each other there: it is zero when they begin */
    int nbuffers, nsizes, nslots;
    int *buffers;        /* numbers among the launch's */
    int *alignment;      /* per buffer, bytes */
    int *slots;          /* numbers among the program's scalars */
    CiDtype *slot_types; /* per slot: f64, c128, an integer; f32, c64 where there is no f64 */
} CiGpuLayout;

/* By kernel number; memory in ctx. */
CiGpuLayout *ci_gpu_layouts(CiContext *ctx, const CiKernels *kernels, const CiProcs *procs);
/* The layout of one kernel. */
void ci_gpu_describe(CiContext *ctx, const CiKernels *kernels, const CiProcs *procs,
                     const CiKernel *kernel, CiGpuLayout *layout);
bool ci_gpu_is_aligned(const CiGpuLayout *layout, const CiLaunch *launch);

/* ---- launch.c ---- */

/* In the order of the printed parameters. */
typedef struct CiGpuParameters {
    const void *values[CI_GPU_MAX_PARAMETERS]; /* where each is */
    unsigned char bytes[CI_GPU_MAX_PARAMETERS]; /* 0: it is an address of the device */
    float narrow[CI_GPU_MAX_PARAMETERS][2];     /* those of f32 */
    int count;
} CiGpuParameters;

/* Functions of a driver, in the order of a launch's stream. Each returns 0 or the driver's error. */
typedef struct CiGpuDriver {
    int (*take)(void *arg, size_t bytes, void **block);
    int (*give)(void *arg, void *block, size_t bytes);
    int (*clear)(void *arg, void *block, size_t bytes); /* a multiple of 4 */
    int (*run)(void *arg, const CiGpuFunction *function, int64_t blocks,
               const CiGpuParameters *parameters);
    int (*read)(void *arg, void *host, const void *block, size_t bytes); /* waits for it */
} CiGpuDriver;

/* Runs a kernel: both functions of a split one, with memory for its partial results. For one with
 * checks it waits: *failed is the number of a failed check plus one, or 0. */
int ci_gpu_launch(const CiGpuDriver *driver, void *arg, const CiGpuLayout *layout,
                  const CiLaunch *launch, int *failed);

/* ---- executable.c: a compiler of a dialect and a driver ---- */

/* The resources of a device for the blocks of one function. */
typedef struct CiGpuLimits {
    size_t threads, parameter_bytes, shared_bytes;
    size_t shared_used; /* by the function */
} CiGpuLimits;

/* The functions of a vendor. A `program` is code that the driver has loaded. */
typedef struct CiGpuVendor {
    const char *name; /* of the compiler, and of its binaries in the disk cache */
    const char *doc;
    /* CiCompiler.fill_machine, which begins with ci_gpu_fill_machine. */
    void (*fill_machine)(CiMachine *machine, const CiOptions *options);
    /* A text that names the compiler and the device of a binary; lives as long as the device. */
    const char *(*version)(const CiQueue *queue);
    /* Compiles a source, or with NULL loads a binary: a CiStatus, with the compiler's messages in log. */
    int32_t (*load)(const CiQueue *queue, const char *source, const void *binary, size_t size,
                    void **program, char *log, size_t capacity);
    /* The binary, which the caller frees; NULL: there is none. */
    void *(*binary)(void *program, size_t *size);
    /* A function by its name, and the limits for it; a CiStatus. */
    int32_t (*find)(const CiQueue *queue, void *program, const char *name, void **run,
                    CiGpuLimits *limits);
    void (*forget)(void *run);
    void (*unload)(void *program);
    /* In the order of the queue's stream; a CiStatus. A launch's memory is the device's. */
    int32_t (*clear)(const CiQueue *queue, void *block, size_t bytes);
    int32_t (*run)(const CiQueue *queue, const CiGpuFunction *function, int64_t blocks,
                   const CiGpuParameters *parameters);
} CiGpuVendor;

/* The compiler of a vendor, which is its data. Launches of one executable are given to the driver one
 * at a time. */
CiCompiler ci_gpu_compiler(const CiGpuVendor *vendor);

#endif
