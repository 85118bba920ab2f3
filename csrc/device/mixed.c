/* One program's kernels in two executables: the interpreter runs the first n kernels, the requested compiler's code
 * runs the others. `bisect` changes n to find the kernel that makes a result wrong. */
#include <stdlib.h>

#include "device/registry.h"

typedef struct Mixed {
    CiExecutable base;
    CiExecutable *interpreted, *compiled;
    int64_t ninterpreted;
} Mixed;

static void
close_mixed(CiExecutable *executable)
{
    Mixed *mixed = (Mixed *)executable;
    mixed->interpreted->close(mixed->interpreted);
    mixed->compiled->close(mixed->compiled);
    free(mixed);
}

static int32_t
launch_mixed(CiExecutable *executable, const CiLaunch *launch, CiFault *fault)
{
    Mixed *mixed = (Mixed *)executable;
    CiExecutable *one = launch->kernel < mixed->ninterpreted ? mixed->interpreted : mixed->compiled;
    return one->launch(one, launch, fault);
}

typedef struct Build {
    CiQueue queue;
    const CiKernels *kernels;
    const CiOptions *options;
    CiExecutable *made;
} Build;

static void
body_build(CiContext *ctx, void *arg)
{
    Build *b = arg;
    b->made = b->queue.backend->compiler->build(ctx, &b->queue, b->kernels, b->options, NULL);
}

CiExecutable *
ci_executable_mixed(CiContext *ctx, CiExecutable *compiled, const CiKernels *kernels,
                    const CiOptions *options)
{
    const CiQueue *queue = &compiled->queue;
    const CiBackend *plain =
        ci_backend_find(queue->runtime->registry, queue->backend->device->name, "interp");
    if (!plain || plain == queue->backend || ci_backend_has_memory(queue->backend))
        return compiled;
    Build b = {.queue = *queue, .kernels = kernels, .options = options};
    b.queue.backend = plain;
    Mixed *mixed = calloc(1, sizeof *mixed);
    CiStatus status = mixed ? ci_protect(ctx, body_build, &b) : CI_ERR_MEMORY;
    if (status) {
        free(mixed);
        compiled->close(compiled);
        ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
    }
    *mixed = (Mixed){.base = {.queue = *queue, .close = close_mixed, .launch = launch_mixed},
                     .interpreted = b.made,
                     .compiled = compiled,
                     .ninterpreted = options->interpreted_kernels};
    return &mixed->base;
}
