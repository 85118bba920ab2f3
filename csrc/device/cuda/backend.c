/* The CUDA backend: building an executable and launching its kernels.
 *
 * Vectors need aligned memory. An executable has two images: one that uses vectors, loaded when
 * built, and one without, made the first time a kernel meets memory that is not aligned (a view
 * that starts inside an array). A program whose kernels use no vectors has the first one only.
 * Building works without a device, for the architecture below; launching then answers
 * CI_ERR_DEVICE. */
#include "device/cuda/cuda.h"
#include "device/cuda/executable.h"
#include "device/cuda/library.h"
#include "target/gpu/print.h"

#include "base/os.h"
#include "analysis/choices.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- description ---- */

static const char *
nvrtc_folder(const CiOptions *options)
{
    const char *folder = getenv("CINDUCTOR_NVRTC");
    (void)options;
    return folder && *folder ? folder : NULL;
}

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    CiCudaDriver driver;
    const char *why = ci_cuda_driver_open(&driver, out, capacity);
    return why ? why : ci_cuda_why_no_nvrtc(nvrtc_folder(options), out, capacity);
}

void
ci_cuda_fill_machine(CiMachine *machine, const CiOptions *options)
{
    (void)options;
    ci_gpu_fill_machine(machine, &ci_gpu_cuda);
    machine->stores_to_host = true;
}

/* ---- build ---- */

static bool
uses_vectors(const CiCudaBuild *b)
{
    for (int k = 0; k < b->nkernels; k++)
        for (int j = 0; b->layouts[k].name && j < b->layouts[k].nbuffers; j++)
            if (b->layouts[k].alignment[j] > 0)
                return true;
    return false;
}

/* Runs in the executable's own memory. */
static void
describe_image(CiContext *ctx, void *arg)
{
    CiCudaBuild *b = arg;
    b->layouts = ci_gpu_layouts(ctx, b->kernels, b->procs);
}

typedef struct Copy {
    const char *text;
    char *out;
} Copy;

static void
copy_text(CiContext *ctx, void *arg)
{
    Copy *copy = arg;
    copy->out = ci_format(ctx, "%s", copy->text);
}

static void
check(CiContext *ctx, const CiCudaExecutable *executable, CiStatus status)
{
    if (status)
        ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(executable->memory)));
}

static void
make_image(CiContext *ctx, CiCudaBuild *b, int number)
{
    CiCudaImage *image = &b->executable->images[number];
    CiText source = ci_text_new(ctx);
    b->procs = ci_cuda_lower(&b->executable->base.queue, b->kernels, b->executable->verifies, number == 0);
    ci_gpu_print_source(&source, b->kernels, b->procs);
    check(ctx, b->executable, ci_protect(b->executable->memory, describe_image, b));
    image->layouts = b->layouts;
    Copy copy = {.text = source.data};
    check(ctx, b->executable, ci_protect(b->executable->memory, copy_text, &copy));
    image->source = copy.out;
}

/* ---- what variants are made of ---- */

typedef struct Keeping {
    CiContext *ctx; /* of the build */
    const CiCudaBuild *build;
    const char **texts; /* by kernel id; NULL: it has no variants */
} Keeping;

static void
print_alone(void *arg, const CiKernel *kernel)
{
    Keeping *keeping = arg;
    CiText text = ci_text_new(keeping->ctx);
    if (!ci_kernel_has_loops(kernel) || !ci_cuda_can_specialize(kernel))
        return;
    ci_kernels_print_alone(&text, keeping->build->kernels, kernel);
    keeping->texts[kernel->id] = text.data;
}

/* Runs in the executable's own memory. */
static void
keep_body(CiContext *ctx, void *arg)
{
    const Keeping *keeping = arg;
    CiCudaExecutable *executable = keeping->build->executable;
    const CiMachine *from = keeping->build->kernels->machine;
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    *machine = *from;
    machine->requested = NULL;
    machine->choices = ci_choices_copy(ctx, from);
    executable->machine = machine;
    if (keeping->build->kernels->plan && keeping->build->kernels->plan->skip)
        executable->plan.skip = ci_format(ctx, "%s", keeping->build->kernels->plan->skip);
    executable->kept = CI_NEW_ARRAY(ctx, CiCudaGeneric, executable->nkernels + 1);
    for (int k = 0; k < executable->nkernels; k++)
        if (keeping->texts[k])
            ci_cuda_keep(ctx, executable, k, keeping->texts[k]);
}

static void
keep_kernels(CiContext *ctx, const CiCudaBuild *b)
{
    Keeping keeping = {ctx, b, CI_NEW_ARRAY(ctx, const char *, b->nkernels + 1)};
    ci_kernels_visit(b->kernels, print_alone, &keeping);
    check(ctx, b->executable, ci_protect(b->executable->memory, keep_body, &keeping));
}

/* ---- loading: status-coded, because a launch may do it ---- */

static int32_t
load_cubin(CiCudaExecutable *executable, CiCudaImage *image, const void *cubin)
{
    CiCudaContextScope scope;
    int32_t status = ci_cuda_enter(&scope, &executable->base.queue);
    if (status)
        return status;
    int result = scope.driver->module_load(&image->module, cubin);
    for (int k = 0; k < executable->nkernels && !result; k++)
        if (image->layouts[k].name)
            result = ci_cuda_find_functions(&scope, image->module, &image->layouts[k]);
    return ci_cuda_leave(&scope, result);
}

static int32_t
load_second(CiCudaExecutable *executable)
{
    CiCudaImage *image = &executable->images[1];
    int32_t status = CI_OK;
    pthread_mutex_lock(&executable->loading);
    if (!atomic_load(&image->is_loaded)) {
        CiCudaCompile job = ci_cuda_compile_job(executable, image->source);
        status = (int32_t)ci_cuda_compile(&job);
        if (!status)
            status = load_cubin(executable, image, job.cubin);
        free(job.cubin);
        if (!status)
            atomic_store(&image->is_loaded, true);
    }
    pthread_mutex_unlock(&executable->loading);
    return status;
}

static void
load_first(CiContext *ctx, CiCudaExecutable *executable, CiBuildInfo *info)
{
    CiCudaImage *image = &executable->images[0];
    char why[300];
    CiCudaCompile job = ci_cuda_compile_job(executable, image->source);
    int64_t start = ci_os_time_ns();
    CiStatus status = ci_cuda_compile(&job);
    if (status)
        ci_fail(ctx, status, "%s", job.message[0] ? job.message : ci_status_text(status));
    int64_t compiled = ci_os_time_ns();
    const CiCudaState *state = ci_cuda_state(&executable->base.queue);
    if (state && !state->why_not[0])
        status = (CiStatus)load_cubin(executable, image, job.cubin);
    free(job.cubin);
    if (status) {
        const char *text = ci_cuda_last_error(&executable->base.queue, why, sizeof why);
        ci_fail(ctx, status, "the kernels could not be loaded: %s",
                text ? text : ci_status_text(status));
    }
    atomic_store(&image->is_loaded, true);
    info->from_cache = job.from_cache;
    info->compile_ms = (double)(compiled - start) * 1e-6;
    info->load_ms = (double)(ci_os_time_ns() - compiled) * 1e-6;
}

typedef struct Building {
    CiCudaBuild build;
    const CiOptions *options;
    CiBuildInfo *info;
} Building;

static void
build_body(CiContext *ctx, void *arg)
{
    Building *building = arg;
    CiCudaBuild *b = &building->build;
    int64_t start = ci_os_time_ns();
    Copy where = {.text = nvrtc_folder(building->options)};
    if (where.text)
        check(ctx, b->executable, ci_protect(b->executable->memory, copy_text, &where));
    b->executable->where = where.out;
    keep_kernels(ctx, b);
    make_image(ctx, b, 0);
    if (uses_vectors(b))
        make_image(ctx, b, 1);
    building->info->emit_ms = (double)(ci_os_time_ns() - start) * 1e-6;
    load_first(ctx, b->executable, building->info);
}

static void
close_executable(CiExecutable *base)
{
    CiCudaExecutable *executable = (CiCudaExecutable *)base;
    ci_cuda_close_variants(executable);
    for (int k = 0; k < 2; k++)
        ci_cuda_unload(&base->queue, executable->images[k].module);
    pthread_mutex_destroy(&executable->loading);
    pthread_mutex_destroy(&executable->lock);
    pthread_cond_destroy(&executable->variant_made);
    if (executable->memory)
        ci_context_close(executable->memory);
    free(executable);
}

static int32_t launch_kernel(CiExecutable *base, const CiLaunch *requested, CiFault *fault);

static CiExecutable *
build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels, const CiOptions *options,
      CiBuildInfo *info)
{
    CiBuildInfo ignored;
    CiCudaExecutable *executable = calloc(1, sizeof *executable);
    if (!executable)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for an executable");
    executable->base =
        (CiExecutable){.queue = *queue, .close = close_executable, .launch = launch_kernel};
    executable->memory = ci_context_open();
    executable->is_fast = options->numerics && !strcmp(options->numerics, "fast");
    executable->uses_cache = options->cache;
    executable->verifies = options->verify;
    pthread_mutex_init(&executable->loading, NULL);
    pthread_mutex_init(&executable->lock, NULL);
    pthread_cond_init(&executable->variant_made, NULL);
    executable->nkernels = ci_kernels_count(kernels);
    Building building = {.build = {.kernels = kernels,
                                   .executable = executable,
                                   .nkernels = executable->nkernels},
                         .options = options,
                         .info = info ? info : &ignored};
    *building.info = (CiBuildInfo){0};
    CiStatus status = executable->memory ? ci_protect(ctx, build_body, &building) : CI_ERR_MEMORY;
    if (status == CI_OK)
        return &executable->base;
    close_executable(&executable->base);
    ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
}

/* ---- launch ---- */

typedef struct Launching {
    CiCudaContextScope scope;
    CUstream stream;
} Launching;

static CUdeviceptr
address(const void *block)
{
    return (CUdeviceptr)(uintptr_t)block;
}

static int
take(void *arg, size_t bytes, void **block)
{
    Launching *launching = arg;
    CUdeviceptr at = 0;
    int result = ci_cuda_block_take(&launching->scope, bytes, launching->stream, &at);
    *block = (void *)(uintptr_t)at;
    return result;
}

static int
give(void *arg, void *block, size_t bytes)
{
    Launching *launching = arg;
    return ci_cuda_block_give(&launching->scope, address(block), bytes, launching->stream);
}

static int
clear(void *arg, void *block, size_t bytes)
{
    Launching *launching = arg;
    return launching->scope.driver->clear(address(block), 0, bytes / 4, launching->stream);
}

static int
run(void *arg, const CiGpuFunction *function, int64_t blocks, const CiGpuParameters *parameters)
{
    Launching *launching = arg;
    return ci_cuda_launch_early(&launching->scope, function->run, (unsigned)blocks, 1, (unsigned)function->threads,
                                (unsigned)function->shared_bytes, launching->stream, (void **)(uintptr_t)parameters->values);
}

static int
read_block(void *arg, void *host, const void *block, size_t bytes)
{
    Launching *launching = arg;
    const CiCudaDriver *driver = launching->scope.driver;
    int result = driver->copy_out_on(host, address(block), bytes, launching->stream);
    return result ? result : ci_cuda_wait_stream(&launching->scope, launching->stream);
}

/* The kernel for all sizes and the alignment of this launch. */
static int32_t
choose_image(CiCudaExecutable *executable, const CiLaunch *launch, const CiGpuLayout **layout)
{
    int32_t status = CI_OK;
    *layout = &executable->images[0].layouts[launch->kernel];
    if (!ci_gpu_is_aligned(*layout, launch)) {
        *layout = &executable->images[1].layouts[launch->kernel];
        if (!atomic_load(&executable->images[1].is_loaded))
            status = load_second(executable);
    }
    return status;
}

static int32_t
launch_layout(CiCudaExecutable *executable, const CiGpuLayout *layout, const CiLaunch *launch,
              CiFault *fault)
{
    static const CiGpuDriver driver = {take, give, clear, run, read_block};
    Launching launching = {.stream = launch->stream};
    int failed;
    int32_t status = ci_cuda_enter(&launching.scope, &executable->base.queue);
    if (status)
        return status;
    int result = ci_gpu_launch(&driver, &launching, layout, launch, &failed);
    status = ci_cuda_leave(&launching.scope, result);
    if (status || !failed)
        return status;
    fault->kind = CI_ERR_CHECK;
    fault->node = failed - 1;
    return CI_ERR_CHECK;
}

static int32_t
launch_kernel(CiExecutable *base, const CiLaunch *requested, CiFault *fault)
{
    CiCudaExecutable *executable = (CiCudaExecutable *)base;
    int64_t sizes[CI_CUDA_MAX_SIZES];
    const CiGpuLayout *layout;
    CiCudaVariant *variant;
    CiLaunch own = *requested;
    if (fault)
        fault->kind = 0;
    int32_t status = ci_cuda_take_variant(executable, requested, sizes, &variant);
    if (variant) {
        own.sizes = sizes;
        status = launch_layout(executable, &variant->layout, &own, fault);
        ci_cuda_give_variant(executable, requested, variant);
    } else if (!status) {
        status = choose_image(executable, requested, &layout);
        if (!status)
            status = launch_layout(executable, layout, requested, fault);
    }
    return status;
}

extern const CiCompiler ci_compiler_cuda;

const CiCompiler ci_compiler_cuda = {
    .abi = CI_DEVICE_ABI,
    .name = "cuda",
    .doc = "CUDA C++ through NVRTC",
    .why_not_available = why_not_available,
    .fill_machine = ci_cuda_fill_machine,
    .lower = ci_gpu_lower_program,
    .emit = ci_gpu_emit,
    .build = build,
    .why_slower = ci_cuda_why_slower,
    .build_text = ci_cuda_build_text,
};
