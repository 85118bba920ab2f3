/* A simulated accelerator, from outside cinductor: one core without vectors or threads, with 16 KiB of
 * scratchpad in addition to its memory. A CiMachine describes it.
 *
 * Its compiler takes procs, prints C for the core with rows in the scratchpad, and builds that with the
 * system's compiler. A vendor's own compiler would be called by `build_library`.
 *
 * All functions of cinductor that are called here come from the toolkit. */
#include "device/toolkit.h"

#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAD_BYTES 16384

static const CiToolkit *kit;
static char pad[PAD_BYTES] __attribute__((aligned(64)));
static int64_t most_used; /* bytes of the scratchpad used by the largest launch */

/* ---- the machine: data ---- */

/* Fields of the machine that `limit` changes, for tests; one removes a dtype. */
#define LIMITS                                                                                     \
    LIMIT(row_bytes, PAD_BYTES)                                                                    \
    LIMIT(chunk_elements, INT64_MAX / 2) /* one core: no work is distributed */                     \
    LIMIT(tile_rows, 0)                                                                            \
    LIMIT(max_buffers, 16)                                                                         \
    LIMIT(max_fused_nests, 16)                                                                     \
    LIMIT(missing, CI_DTYPE_c64)

static struct {
#define LIMIT(field, value) int64_t field;
    LIMITS
#undef LIMIT
} limits;

static void
reset_limits(void)
{
#define LIMIT(field, value) limits.field = value;
    LIMITS
#undef LIMIT
}

static void
fill_machine(CiMachine *machine, const CiOptions *options)
{
    (void)options;
    *machine = kit->machine(CI_MACHINE_generic);
    machine->row_bytes = limits.row_bytes;
    machine->chunk_elements = limits.chunk_elements;
    machine->tile_rows = limits.tile_rows;
    machine->max_buffers = (int)limits.max_buffers;
    machine->max_fused_nests = (int)limits.max_fused_nests;
    machine->dtypes &= ~(CI_DTYPE_BIT(CI_DTYPE_c64) | CI_DTYPE_BIT(CI_DTYPE_c128) |
                         CI_DTYPE_BIT(limits.missing));
}

static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    return kit->codegen(kernels, kernels->machine, options->verify);
}

/* ---- the printer ---- */

static const char *
argument(CiCPrinter *p, const CiMemory *memory)
{
    return kit->scalar(p, memory->buffer);
}

/* A failed check ends the kernel and returns the check's number. */
static const CiStmt *
statement(CiCPrinter *p, const CiStmt *stmt)
{
    if (stmt->kind == CI_STMT_stop) {
        kit->text_line(p->out, "if (%s)", kit->conditions(p, stmt));
        kit->text_line(p->out, "    return %d;", stmt->number + 1);
        return stmt;
    }
    if (stmt->kind == CI_STMT_apply || stmt->kind == CI_STMT_swap)
        kit->fail(p->ctx, CI_ERR_UNSUPPORTED, "the scratchpad core has no such statement");
    return NULL;
}

/* The scheduler gives rows their offsets in the scratchpad. All other memory is a variable. */
static void
alloc(CiCPrinter *p, const CiMemory *memory)
{
    if (memory->space == CI_SPACE_scratch)
        kit->text_line(p->out, "%s *const %s = (%s *)(pad + %s);", kit->storage(memory->dtype),
                       memory->name, kit->storage(memory->dtype), kit->index(p, memory->offset));
    else
        kit->print_alloc(p, memory);
}

static void
print_function(CiCPrinter *p, CiText *out, const CiProc *proc)
{
    CiText body = kit->body(p, proc);
    kit->text_add(out, "int %s(void *const *memory, const int64_t *sizes, const void *scalars, "
                       "char *pad)\n{\n",
                  proc->name);
    for (int k = 0; k < proc->nparams && proc->params[k]->space == CI_SPACE_global; k++)
        kit->text_add(out, "    %s *const %s = memory[%d];\n",
                      kit->storage(proc->params[k]->dtype), kit->buffer(p, proc->params[k]->buffer),
                      k);
    for (int k = 0; k < proc->nsizes; k++)
        kit->text_add(out, "    const int64_t size%d = sizes[%d];\n", k, k);
    kit->text_add(out, "%s    return 0;\n}\n\n", body.data);
}

static void
emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    static const CiSpelling spelling = {
        .function = "static inline", .builtin = "__builtin_", .style = CI_STYLE_c};
    static const CiCDialect dialect = {
        .statement = statement, .argument = argument, .alloc = alloc};
    const CiProcs *procs = lower(kernels, options);
    CiCPrinter *p = kit->printer(kernels, &spelling, &dialect);
    CiText functions = kit->text_new(kernels->loops->ctx);
    for (int k = 0; k < procs->nprocs; k++)
        print_function(p, &functions, procs->procs[k]);
    kit->support(p, out);
    kit->text_add(out, "%s", functions.data);
}

/* ---- the library ---- */

typedef int (*CoreFunction)(void *const *memory, const int64_t *sizes, const void *scalars,
                            char *scratchpad);

typedef struct Core {
    CoreFunction function;
    CiSizeTable *launch; /* the numbers of its launches */
} Core;

typedef struct Executable {
    CiExecutable base;
    void *library;
    int count;
    Core kernels[]; /* by number */
} Executable;

/* Runs the system's compiler on a file; false if it fails. */
static bool
run_compiler(const char *source, const char *library)
{
    const char *cc = "cc";
    char *const words[] = {(char *)cc, "-O2", "-w", "-fwrapv", "-fno-strict-aliasing",
                           "-ffp-contract=off", "-shared", "-fPIC", (char *)source, "-o",
                           (char *)library, "-lm", NULL};
    extern char **environ;
    pid_t child;
    int result = -1;
    if (posix_spawnp(&child, cc, NULL, NULL, words, environ))
        return false;
    while (waitpid(child, &result, 0) < 0 && errno == EINTR)
        ;
    return result == 0;
}

/* Compiles and loads the text; returns NULL on failure. No file is left. */
static void *
build_library(const CiText *text)
{
    char folder[] = "/tmp/scratchpad-XXXXXX", source[64], library[64];
    void *loaded = NULL;
    if (!mkdtemp(folder))
        return NULL;
    snprintf(source, sizeof source, "%s/core.c", folder);
    snprintf(library, sizeof library, "%s/core.so", folder);
    FILE *file = fopen(source, "w");
    bool is_written = file && fwrite(text->data, 1, text->length, file) == text->length;
    if (file && fclose(file))
        is_written = false;
    if (is_written && run_compiler(source, library))
        loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    unlink(source);
    unlink(library);
    rmdir(folder);
    return loaded;
}

static void
close_executable(CiExecutable *base)
{
    Executable *executable = (Executable *)base;
    for (int k = 0; k < executable->count; k++)
        free(executable->kernels[k].launch);
    if (executable->library)
        dlclose(executable->library);
    free(executable);
}

static int32_t
launch(CiExecutable *base, const CiLaunch *asked, CiFault *fault)
{
    const Core *core = &((Executable *)base)->kernels[asked->kernel];
    int64_t numbers[CI_LAUNCH_COUNT];
    kit->fill_table(core->launch, asked->sizes, numbers);
    if (numbers[CI_LAUNCH_scratch_bytes] > PAD_BYTES)
        return CI_ERR_DEVICE;
    if (numbers[CI_LAUNCH_scratch_bytes] > most_used)
        most_used = numbers[CI_LAUNCH_scratch_bytes];
    int failed = core->function(asked->buffers, asked->sizes, asked->scalars, pad);
    if (fault)
        *fault = (CiFault){.kind = failed ? CI_ERR_CHECK : 0, .node = failed - 1};
    return failed ? CI_ERR_CHECK : CI_OK;
}

/* Returns the number of kernels with loops, including those in regions: the highest number plus
 * one. */
static int
count_kernels(const CiKernels *kernels)
{
    int count = 0;
    for (int k = 0; kernels && k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        count = kernel->id >= count ? kernel->id + 1 : count;
        for (int n = 0; n < 2; n++) {
            int inner = count_kernels(kernel->inner[n]);
            count = inner > count ? inner : count;
        }
    }
    return count;
}

/* Adds the numbers of launches of all kernels; false without memory. */
static bool
add_launches(CiContext *ctx, Executable *executable, const CiKernels *kernels, const CiProcs *procs)
{
    bool are_there = true;
    for (int k = 0; kernels && k < kernels->nkernels && are_there; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        CiSizeTable **launch = &executable->kernels[kernel->id].launch;
        *launch = kit->launch_table(ctx, procs, kernel);
        are_there = *launch && add_launches(ctx, executable, kernel->inner[0], procs) &&
                    add_launches(ctx, executable, kernel->inner[1], procs);
    }
    return are_there;
}

static CiExecutable *
build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels, const CiOptions *options,
      CiBuildInfo *info)
{
    CiText source = kit->text_new(ctx);
    int count = count_kernels(kernels);
    if (info)
        *info = (CiBuildInfo){.children = 1};
    emit(&source, kernels, options);
    Executable *executable = calloc(1, sizeof *executable + sizeof(Core) * (size_t)count);
    if (!executable)
        kit->fail(ctx, CI_ERR_MEMORY, "no memory for an executable");
    executable->base = (CiExecutable){*queue, close_executable, launch};
    executable->count = count;
    bool has_launches = add_launches(ctx, executable, kernels, lower(kernels, options));
    executable->library = has_launches ? build_library(&source) : NULL;
    if (!executable->library) {
        close_executable(&executable->base);
        kit->fail(ctx, CI_ERR_COMPILE, "cc does not compile the source for the scratchpad core");
    }
    for (int k = 0; k < count; k++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", k);
        void *found = dlsym(executable->library, name);
        memcpy(&executable->kernels[k].function, &found, sizeof found);
    }
    return &executable->base;
}

static const CiCompiler compiler = {.abi = CI_DEVICE_ABI,
                                    .name = "core",
                                    .doc = "C for a core with a scratchpad",
                                    .fill_machine = fill_machine,
                                    .lower = lower,
                                    .emit = emit,
                                    .build = build};

/* ---- the device: host memory, every call is synchronous ---- */

static int32_t
allocate(const CiQueue *queue, size_t size, void **block)
{
    (void)queue;
    *block = aligned_alloc(64, (size + 64) / 64 * 64);
    return *block ? CI_OK : CI_ERR_MEMORY;
}

static void
release(const CiQueue *queue, void *block, size_t size)
{
    (void)queue, (void)size;
    free(block);
}

static int32_t
copy_in(const CiQueue *queue, void *there, const void *host, size_t size)
{
    (void)queue;
    memcpy(there, host, size);
    return CI_OK;
}

static int32_t
copy_out(const CiQueue *queue, void *host, const void *here, size_t size)
{
    (void)queue;
    memcpy(host, here, size);
    return CI_OK;
}

static int32_t
synchronize(const CiQueue *queue)
{
    (void)queue;
    return CI_OK;
}

static const CiDevice device = {.abi = CI_DEVICE_ABI,
                                .name = "scratchpad",
                                .doc = "one simulated core with 16 KiB of scratchpad",
                                .allocate = allocate,
                                .release = release,
                                .copy_in = copy_in,
                                .copy_out = copy_out,
                                .synchronize = synchronize};

/* ---- for Python ---- */

const char *
cinductor_connect(const CiToolkit *toolkit, const CiDevice **own_device, const CiCompiler **own_compiler)
{
    reset_limits();
    kit = toolkit;
    *own_device = &device;
    *own_compiler = &compiler;
    return kit->abi == CI_DEVICE_ABI ? NULL : "built for another version of cinductor";
}

/* The most bytes that a launch used in the scratchpad. */
int64_t
scratchpad_most_used(void)
{
    return most_used;
}

/* Sets a field of the machine; or takes a C type from the core, by its name. "": restores all. */
void
scratchpad_limit(const char *name, int64_t value)
{
    if (!*name)
        reset_limits();
#define LIMIT(field, default_value)                                                                \
    if (!strcmp(name, #field))                                                                     \
        limits.field = value;
    LIMITS
#undef LIMIT
    for (int k = 0; k < CI_DTYPE_COUNT; k++)
        if (*name && !strcmp(name, kit->storage((CiDtype)k)))
            limits.missing = k;
}
