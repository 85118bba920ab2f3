/* Functions of the core for external compilers. A library cannot link with the core, so its CiConnect gets a table of
 * functions.
 *
 * They work in the context of a compilation and fail through it (`fail` does not return). The headers of the named
 * types document the rest. */
#ifndef CI_DEVICE_TOOLKIT_H
#define CI_DEVICE_TOOLKIT_H

#include "codegen/codegen.h"
#include "device/device.h"
#include "device/gpu/gpu.h"
#include "target/c/c.h"

typedef struct CiToolkit {
    int abi; /* CI_DEVICE_ABI */
    void (*fail)(CiContext *ctx, CiStatus status, const char *format, ...) CI_PRINTF(3, 4);
    char *(*format)(CiContext *ctx, const char *format, ...) CI_PRINTF(2, 3);
    CiText (*text_new)(CiContext *ctx);
    void (*text_add)(CiText *text, const char *format, ...) CI_PRINTF(2, 3);
    void (*text_line)(CiText *text, const char *format, ...) CI_PRINTF(2, 3);
    /* A row of machine.def, for a backend to change: CI_MACHINE_generic is one thread without vectors. */
    CiMachine (*machine)(CiMachineId id);
    /* Kernels as statements, by the passes of the machine's family: of interp plain loops, in vectors
     * where it has more lanes than one. */
    CiProcs *(*codegen)(const CiKernels *kernels, const CiMachine *machine, bool verify);
    /* The numbers of a kernel's launch, read off its procs: a table that the executable keeps and frees, NULL
     * without memory. fill_table computes them, by CiLaunchNumber, from the sizes of a launch. */
    CiSizeTable *(*launch_table)(CiContext *ctx, const CiProcs *procs, const CiKernel *kernel);
    void (*fill_table)(const CiSizeTable *table, const int64_t *sizes, int64_t *out);
    /* A printer of statements in a C-like language. What the dialect leaves NULL is as C has it, for
     * one lane. `argument` and `statement` must be there. */
    CiCPrinter *(*printer)(const CiKernels *kernels, const CiSpelling *spelling,
                           const CiCDialect *dialect);
    /* body: the statements of one proc. support: the functions and types that all printed procs
     * use; it goes before them. */
    CiText (*body)(CiCPrinter *printer, const CiProc *proc);
    void (*support)(CiCPrinter *printer, CiText *out);
    /* Names: of memory and an element of it, of an index expression, of types in memory and as they
     * are computed in, of a size or an argument of the kernel that is being printed. */
    const char *(*memory)(CiCPrinter *printer, const CiMemory *memory);
    const char *(*element)(CiCPrinter *printer, const CiMemory *memory, const CiExpr *index);
    const char *(*index)(CiCPrinter *printer, const CiExpr *index);
    const char *(*storage)(CiDtype dtype);
    const char *(*buffer)(CiCPrinter *printer, const CiBuffer *buffer);
    /* The value of a scalar input, out of `scalars`. */
    const char *(*scalar)(CiCPrinter *printer, const CiBuffer *buffer);
    const char *(*conditions)(CiCPrinter *printer, const CiStmt *stmt); /* of a statement's tests */
    void (*print_alloc)(CiCPrinter *printer, const CiMemory *memory);
    /* For GPUs (device/gpu/gpu.h): limits of kernels, whose language is a dialect; the compiler of a
     * vendor. */
    void (*gpu_machine)(CiMachine *machine, const CiGpuDialect *dialect);
    CiCompiler (*gpu_compiler)(const CiGpuVendor *vendor);
    /* True if the printed procs use a name, such as ci_shuffle: for `helpers` of a dialect. */
    bool (*uses)(CiEmitter *emitter, const char *name);
} CiToolkit;

extern const CiToolkit ci_toolkit;

/* `cinductor_connect`, which the library of a device exports for cinductor.register_device(path): stores
 * its device and its compiler, which live as long as the process. Returns NULL, or why there is none. */
typedef const char *CiConnect(const CiToolkit *toolkit, const CiDevice **device,
                              const CiCompiler **compiler);

#endif
