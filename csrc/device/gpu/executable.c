/* Executables of a dialect and a driver: the source, its binary in the disk cache, launches. */
#include "base/os.h"
#include "device/binary_cache.h"
#include "device/gpu/gpu.h"
#include "target/gpu/print.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct Executable {
    CiExecutable base;
    const CiGpuVendor *vendor;
    CiContext *memory; /* of the layouts */
    CiGpuLayout *layouts;
    int count;
    void *program;
    pthread_mutex_t lock; /* a function may have one set of arguments */
} Executable;

static void
close_executable(CiExecutable *base)
{
    Executable *executable = (Executable *)base;
    for (int k = 0; k < 2 * executable->count && executable->layouts; k++)
        if (executable->layouts[k / 2].functions[k % 2].run)
            executable->vendor->forget(executable->layouts[k / 2].functions[k % 2].run);
    if (executable->program)
        executable->vendor->unload(executable->program);
    if (executable->memory)
        ci_context_close(executable->memory);
    pthread_mutex_destroy(&executable->lock);
    free(executable);
}

/* ---- launch ---- */

typedef struct Launching {
    CiQueue queue; /* with the launch's stream */
    const CiGpuVendor *vendor;
} Launching;

static int
take(void *arg, size_t bytes, void **block)
{
    const CiQueue *queue = &((Launching *)arg)->queue;
    return queue->backend->device->allocate(queue, bytes, block);
}

static int
give(void *arg, void *block, size_t bytes)
{
    const CiQueue *queue = &((Launching *)arg)->queue;
    queue->backend->device->release(queue, block, bytes);
    return CI_OK;
}

static int
clear(void *arg, void *block, size_t bytes)
{
    const Launching *launching = arg;
    return launching->vendor->clear(&launching->queue, block, bytes);
}

static int
run(void *arg, const CiGpuFunction *function, int64_t blocks, const CiGpuParameters *parameters)
{
    const Launching *launching = arg;
    return launching->vendor->run(&launching->queue, function, blocks, parameters);
}

static int
read_block(void *arg, void *host, const void *block, size_t bytes)
{
    const CiQueue *queue = &((Launching *)arg)->queue;
    return queue->backend->device->copy_out(queue, host, block, bytes);
}

static int32_t
launch(CiExecutable *base, const CiLaunch *requested, CiFault *fault)
{
    static const CiGpuDriver driver = {take, give, clear, run, read_block};
    Executable *executable = (Executable *)base;
    Launching launching = {base->queue, executable->vendor};
    int failed;
    launching.queue.stream = requested->stream;
    pthread_mutex_lock(&executable->lock);
    int status = ci_gpu_launch(&driver, &launching, &executable->layouts[requested->kernel], requested,
                               &failed);
    pthread_mutex_unlock(&executable->lock);
    if (fault)
        *fault = (CiFault){.kind = failed ? CI_ERR_CHECK : 0, .node = failed - 1};
    return failed ? CI_ERR_CHECK : status;
}

/* ---- build ---- */

typedef struct Building {
    Executable *executable;
    const CiKernels *kernels;
    const CiOptions *options;
    const CiProcs *procs;
    CiBuildInfo *info;
} Building;

/* Runs in the executable's own memory. */
static void
make_layouts(CiContext *memory, void *arg)
{
    Building *b = arg;
    b->executable->layouts = ci_gpu_layouts(memory, b->kernels, b->procs);
}

/* Loads the program from the disk cache, or compiles it. */
static void
load(CiContext *ctx, Building *b, const char *source)
{
    const CiGpuVendor *vendor = b->executable->vendor;
    const CiQueue *queue = &b->executable->base.queue;
    CiCache *cache = b->options->cache ? queue->runtime->cache : NULL;
    const char *texts[] = {vendor->name, vendor->version(queue)};
    char key[65], log[4000] = "";
    void *data = NULL;
    size_t size = 0;
    ci_binary_key(texts, 2, source, key);
    b->info->from_cache =
        ci_binary_read(cache, key, vendor->name, &data, &size) &&
        !vendor->load(queue, NULL, data, size, &b->executable->program, log, sizeof log);
    free(data);
    if (b->info->from_cache)
        return;
    int32_t status =
        vendor->load(queue, source, NULL, 0, &b->executable->program, log, sizeof log);
    if (status)
        ci_fail(ctx, (CiStatus)status, "%s does not compile the kernels: %s", vendor->name, log);
    data = cache ? vendor->binary(b->executable->program, &size) : NULL;
    if (data)
        ci_binary_write(cache, key, vendor->name, data, size);
    free(data);
}

static void
check_limit(CiContext *ctx, const char *name, const char *what, size_t needed, size_t most)
{
    if (needed > most)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "kernel %s needs %zu %s, and the device has %zu", name,
                needed, what, most);
}

static void
find_function(CiContext *ctx, Executable *executable, const CiGpuLayout *layout,
              CiGpuFunction *function, const char *name)
{
    CiGpuLimits limits = {0, 0, 0, 0};
    size_t declared = (size_t)function->declared_bytes; /* some drivers do not count it */
    int32_t status = executable->vendor->find(&executable->base.queue, executable->program, name,
                                              &function->run, &limits);
    if (status)
        ci_fail(ctx, (CiStatus)status, "kernel %s is not found in what %s has compiled", name,
                executable->vendor->name);
    check_limit(ctx, name, "bytes of arguments",
                (size_t)(layout->nbuffers + layout->nsizes + 2) * sizeof(int64_t) +
                    (size_t)layout->nslots * sizeof(CiSlot),
                limits.parameter_bytes);
    check_limit(ctx, name, "threads of a block", (size_t)function->threads, limits.threads);
    check_limit(ctx, name, "bytes of local memory",
                limits.shared_used > declared ? limits.shared_used : declared, limits.shared_bytes);
}

static void
find_functions(CiContext *ctx, Executable *executable)
{
    for (int k = 0; k < executable->count; k++) {
        CiGpuLayout *layout = &executable->layouts[k];
        for (int n = 0; layout->name && n <= layout->has_finish; n++)
            find_function(ctx, executable, layout, &layout->functions[n],
                          ci_format(ctx, n ? "%s_finish" : "%s", layout->name));
    }
}

static void
build_body(CiContext *ctx, void *arg)
{
    Building *b = arg;
    int64_t start = ci_os_time_ns();
    CiText source = ci_text_new(ctx);
    b->procs = ci_gpu_lower_program(b->kernels, b->options);
    ci_gpu_print_source(&source, b->kernels, b->procs);
    CiStatus status = ci_protect(b->executable->memory, make_layouts, b);
    if (status)
        ci_fail(ctx, status, "%s",
                ci_format(ctx, "%s", ci_context_message(b->executable->memory)));
    int64_t emitted = ci_os_time_ns();
    load(ctx, b, source.data);
    int64_t compiled = ci_os_time_ns();
    find_functions(ctx, b->executable);
    b->info->emit_ms = (double)(emitted - start) * 1e-6;
    b->info->compile_ms = (double)(compiled - emitted) * 1e-6;
    b->info->load_ms = (double)(ci_os_time_ns() - compiled) * 1e-6;
}

static CiExecutable *
build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels, const CiOptions *options,
      CiBuildInfo *info)
{
    CiBuildInfo ignored;
    Executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for an executable");
    executable->base = (CiExecutable){*queue, close_executable, launch};
    executable->vendor = queue->backend->compiler->data;
    executable->memory = ci_context_open();
    executable->count = ci_kernels_count(kernels);
    pthread_mutex_init(&executable->lock, NULL);
    Building building = {executable, kernels, options, NULL, info ? info : &ignored};
    *building.info = (CiBuildInfo){0};
    CiStatus status = executable->memory ? ci_protect(ctx, build_body, &building) : CI_ERR_MEMORY;
    if (status == CI_OK)
        return &executable->base;
    close_executable(&executable->base);
    ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
}

CiCompiler
ci_gpu_compiler(const CiGpuVendor *vendor)
{
    return (CiCompiler){.abi = CI_DEVICE_ABI,
                        .name = vendor->name,
                        .doc = vendor->doc,
                        .data = (void *)(uintptr_t)vendor,
                        .fill_machine = vendor->fill_machine,
                        .lower = ci_gpu_lower_program,
                        .emit = ci_gpu_emit,
                        .build = build};
}
