/* The interpreter as a backend: no compiler, no files. */
#include "device/interp/program.h"

#include "base/os.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    (void)options, (void)out, (void)capacity;
    return NULL;
}

static void
fill_machine(CiMachine *machine, const CiOptions *options)
{
    (void)options;
    *machine = ci_machine(CI_MACHINE_interp);
}

/* Kernels may be another machine's: the interpreter runs some of a program that is compiled. */
static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    CiMachine machine = ci_machine(CI_MACHINE_interp);
    machine.choices = kernels->machine->choices;
    machine.requested = kernels->machine->requested;
    return ci_codegen(kernels, &machine, options->verify);
}

typedef struct Build {
    CiInterpExecutable *exe;
    const CiKernels *kernels;
    const CiProcs *procs;
    CiStatus status; /* of the executable's own context */
} Build;

static void
compile_body(CiContext *own, void *arg)
{
    Build *b = arg;
    (void)own;
    ci_interp_compile(b->exe, b->kernels, b->procs);
}

/* Two arenas grow while compiling, the executable's and (for expressions) the compilation's: either
 * may fail. */
static void
build_body(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->status = ci_protect(b->exe->ctx, compile_body, b);
}

static void
close_executable(CiExecutable *executable)
{
    CiInterpExecutable *exe = (CiInterpExecutable *)executable;
    if (exe->math.library)
        dlclose(exe->math.library);
    ci_context_close(exe->ctx);
    free(exe);
}

CiExecutable *
ci_interp_build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels,
                const CiOptions *options, CiBuildInfo *info)
{
    int64_t start = ci_os_time_ns();
    const CiProcs *procs = kernels->given_procs ? kernels->given_procs
                                                : queue->backend->compiler->lower(kernels, options);
    CiInterpExecutable *exe = calloc(1, sizeof *exe);
    CiContext *own = exe ? ci_context_open() : NULL;
    if (!own) {
        free(exe);
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for the interpreter");
    }
    exe->base =
        (CiExecutable){.queue = *queue, .close = close_executable, .launch = ci_interp_launch};
    exe->ctx = own;
    exe->is_checked = options->verify;
    CiCpuLevel level = ci_cpu_level(options);
    exe->math = (CiInterpMath){ci_cpu_instructions(level)->routines ? ci_cpu_math_open() : NULL, level};
    Build b = {exe, kernels, procs, CI_OK};
    CiStatus status = ci_protect(ctx, build_body, &b);
    if (status != CI_OK || b.status != CI_OK) {
        char message[1024];
        snprintf(message, sizeof message, "%s", ci_context_message(status != CI_OK ? ctx : own));
        close_executable(&exe->base);
        ci_fail(ctx, status != CI_OK ? status : b.status, "%s", message);
    }
    if (info)
        *info = (CiBuildInfo){.load_ms = (double)(ci_os_time_ns() - start) * 1e-6,
                              .interpreted = ci_kernels_count(kernels)};
    return &exe->base;
}

extern const CiCompiler ci_compiler_interp;

const CiCompiler ci_compiler_interp = {
    .abi = CI_DEVICE_ABI,
    .name = "interp",
    .doc = "interprets kernels, needs no compiler",
    .why_not_available = why_not_available,
    .fill_machine = fill_machine,
    .lower = lower,
    .build = ci_interp_build,
};
