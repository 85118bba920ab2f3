/* The backend "stencil": kernels of copied stencils, for processors of x86-64-v3 and better, at that
 * level. A kernel that stencils cannot do is run by the interpreter. */
#include "device/cpu/cpu.h"
#include "device/cpu/level.h"
#include "device/cpu/source.h"
#include "device/stencil/stencil.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct StencilExecutable {
    CiExecutable base;
    CiCpuExecutable *copied;
    CiExecutable *interpreted; /* of kernels that have no function there; NULL: all have */
    void *code;
    size_t code_bytes;
} StencilExecutable;

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    CiCpuLevel level = ci_cpu_level(options);
    bool is_level = level == CI_CPU_x86_64_v3 || level == CI_CPU_x86_64_v4;
    if (is_level && ci_stencil_find("entry"))
        return NULL;
    snprintf(out, capacity, "there are no stencils for %s", ci_cpu_level_name(level));
    return out;
}

static void
fill_machine(CiMachine *machine, const CiOptions *options)
{
    CiOptions own = options ? *options : (CiOptions){0};
    own.arch = "x86-64-v3";
    ci_cpu_fill_machine(machine, &own);
}

static int32_t
launch_stencil(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    StencilExecutable *exe = (StencilExecutable *)executable;
    return exe->copied->kernels[launch->kernel].run
               ? ci_cpu_launch(&exe->copied->base, launch, fault)
               : exe->interpreted->launch(exe->interpreted, launch, fault);
}

static void
close_stencil(CiExecutable *executable)
{
    StencilExecutable *exe = (StencilExecutable *)executable;
    if (exe->interpreted)
        exe->interpreted->close(exe->interpreted);
    if (exe->code)
        ci_stencil_unmap(exe->code, exe->code_bytes);
    if (exe->copied)
        ci_cpu_close(&exe->copied->base);
    free(exe);
}

/* ---- building ---- */

typedef struct Build {
    CiContext *ctx;
    const CiQueue *queue;
    const CiKernels *kernels;
    const CiOptions *options;
    const CiProcs *procs;
    CiStencilCode *code;
    int (*positions)[2]; /* by kernel: of its function, and of the one that finishes it; -1: none */
    int ninterpreted;
    StencilExecutable *exe;
} Build;

typedef struct Translation {
    const Build *b;
    const CiKernel *kernel;
    int *positions;
} Translation;

static void
body_translate(CiContext *ctx, void *arg)
{
    Translation *translation = arg;
    const Build *b = translation->b;
    (void)ctx;
    for (int side = 0; side < 2; side++) {
        const CiProc *proc = ci_procs_find(b->procs, translation->kernel->name, side);
        translation->positions[side] =
            proc ? ci_stencil_translate(b->code, b->kernels, proc) : -1;
    }
}

static void
translate(void *arg, const CiKernel *kernel)
{
    Build *b = arg;
    Translation translation = {b, kernel, b->positions[kernel->id]};
    if (!ci_kernel_has_loops(kernel))
        return;
    int size = b->code->size;
    CiStatus status = ci_protect(b->ctx, body_translate, &translation);
    if (!status)
        return;
    if (status != CI_ERR_UNSUPPORTED)
        ci_fail(b->ctx, status, "%s", ci_format(b->ctx, "%s", ci_context_message(b->ctx)));
    b->code->size = size;
    b->code->njumps = 0;
    b->positions[kernel->id][0] = -1;
    b->ninterpreted++;
}

static CiKernelFunction
function_at(const StencilExecutable *exe, int position)
{
    CiKernelFunction function = NULL;
    char *address = (char *)exe->code + position;
    if (position >= 0)
        memcpy(&function, &address, sizeof function);
    return function;
}

static void
fill(void *arg, const CiKernel *kernel)
{
    Build *b = arg;
    const int *positions = b->positions[kernel->id];
    if (!ci_kernel_has_loops(kernel) || positions[0] < 0)
        return;
    CiCpuKernel *own = &b->exe->copied->kernels[kernel->id];
    own->run = function_at(b->exe, positions[0]);
    own->finish = function_at(b->exe, positions[1]);
    CiLaunchExprs launch = ci_procs_launch(b->procs, kernel->name);
    ci_cpu_set_launch(b->ctx, own, kernel, &launch);
}

static void
interpret(CiContext *ctx, Build *b)
{
    CiQueue queue = *b->queue;
    queue.backend = ci_backend_find(queue.runtime->registry, queue.backend->device->name, "interp");
    if (!queue.backend)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "there is no interpreter for what stencils cannot do");
    b->exe->interpreted =
        queue.backend->compiler->build(ctx, &queue, b->kernels, b->options, NULL);
}

static void
body_build(CiContext *ctx, void *arg)
{
    Build *b = arg;
    int count = ci_kernels_count(b->kernels);
    b->procs = b->kernels->given_procs ? b->kernels->given_procs : ci_cpu_lower(b->kernels, b->options);
    b->code = ci_stencil_code_new(ctx);
    b->positions = ci_new(ctx, sizeof *b->positions * (size_t)(count + 1));
    ci_kernels_visit(b->kernels, translate, b);
    b->exe = calloc(1, sizeof *b->exe);
    if (b->exe)
        b->exe->copied = calloc(1, sizeof *b->exe->copied + sizeof(CiCpuKernel) * (size_t)count);
    if (!b->exe || !b->exe->copied)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for %d kernels", count);
    b->exe->code = ci_stencil_map(b->code, &b->exe->code_bytes);
    if (!b->exe->code)
        ci_fail(ctx, CI_ERR_LOAD, "the system gives no memory that may be executed");
    CiCpuExecutable *copied = b->exe->copied;
    copied->base.queue = b->exe->base.queue = *b->queue;
    copied->kernels = (CiCpuKernel *)(copied + 1);
    copied->nkernels = count;
    copied->chunk_elements = b->kernels->machine->chunk_elements;
    ci_kernels_visit(b->kernels, fill, b);
    if (b->ninterpreted > 0)
        interpret(ctx, b);
}

static CiExecutable *
build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels, const CiOptions *options,
      CiBuildInfo *info)
{
    int64_t start = ci_os_time_ns();
    Build b = {.ctx = ctx, .queue = queue, .kernels = kernels, .options = options};
    CiStatus status = ci_protect(ctx, body_build, &b);
    if (status) {
        const char *message = ci_format(ctx, "%s", ci_context_message(ctx));
        if (b.exe)
            close_stencil(&b.exe->base);
        ci_fail(ctx, status, "%s", message);
    }
    b.exe->base.close = close_stencil;
    b.exe->base.launch = launch_stencil;
    if (info)
        *info = (CiBuildInfo){.load_ms = (double)(ci_os_time_ns() - start) * 1e-6,
                              .interpreted = b.ninterpreted};
    return &b.exe->base;
}

static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    return ci_cpu_lower(kernels, options);
}

extern const CiCompiler ci_compiler_stencil;

const CiCompiler ci_compiler_stencil = {
    .abi = CI_DEVICE_ABI,
    .name = "stencil",
    .doc = "machine code of pieces made beforehand, needs no compiler",
    .why_not_available = why_not_available,
    .fill_machine = fill_machine,
    .lower = lower,
    .build = build,
};
