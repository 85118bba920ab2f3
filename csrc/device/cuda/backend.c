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
#include "target/cuda/print.h"

#include "base/os.h"
#include "ir/choices.h"

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
ci_cuda_fill_target(CiTarget *target, const CiOptions *options)
{
    (void)options;
    *target = (CiTarget){.device = "cuda",
                         .backend = "cuda",
                         .has_trees = true,
                         .has_lanes_across_threads = true,
                         .has_templates = true,
                         .splits_running = true,
                         .has_own_order = true,
                         .row_bytes = 64 * 1024,
                         .chunk_elements = 1024,
                         .tree_elements = 512,
                         .tile_rows = 32,
                         .max_buffers = 256,
                         .max_fused_nests = 64,
                         .has_atomic = ci_cuda_has_atomic};
    for (int k = 0; k < CI_DTYPE_COUNT; k++)
        target->dtypes[k] = true;
}

static void
emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    ci_cuda_print_source(out, kernels, ci_cuda_lower(kernels, options->verify, true));
}

static CiProcs *
lower(const CiKernels *kernels, const CiOptions *options)
{
    return ci_cuda_lower(kernels, options->verify, true);
}

/* ---- build ---- */

typedef struct Describing {
    CiContext *ctx;
    CiCudaBuild *build;
} Describing;

static void
describe(void *arg, const CiKernel *kernel)
{
    Describing *describing = arg;
    CiCudaBuild *b = describing->build;
    ci_cuda_describe(describing->ctx, b, kernel, &b->layouts[kernel->id]);
}

static void
count_kernel(void *arg, const CiKernel *kernel)
{
    int *count = arg;
    *count = kernel->id >= *count ? kernel->id + 1 : *count;
}

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
    b->layouts = CI_NEW_ARRAY(ctx, CiCudaLayout, b->nkernels + 1);
    Describing describing = {ctx, b};
    ci_cuda_visit_kernels(b->kernels, describe, &describing);
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
    b->procs = ci_cuda_lower(b->kernels, b->executable->verifies, number == 0);
    ci_cuda_print_source(&source, b->kernels, b->procs);
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
    if (!ci_cuda_can_specialize(kernel))
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
    const CiTarget *from = keeping->build->kernels->target;
    CiTarget *target = CI_NEW(ctx, CiTarget);
    *target = *from;
    target->asked = NULL;
    target->choices = ci_choices_copy(ctx, from);
    executable->target = target;
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
    ci_cuda_visit_kernels(b->kernels, print_alone, &keeping);
    check(ctx, b->executable, ci_protect(b->executable->memory, keep_body, &keeping));
}

/* ---- loading: status-coded, because a launch may do it ---- */

static int32_t
load_cubin(CiCudaExecutable *executable, CiCudaImage *image, const void *cubin)
{
    CiCudaContextScope stay;
    int32_t status = ci_cuda_enter(&stay, &executable->base.queue);
    if (status)
        return status;
    int result = stay.driver->module_load(&image->module, cubin);
    for (int k = 0; k < executable->nkernels && !result; k++)
        if (image->layouts[k].name)
            result = ci_cuda_find_functions(&stay, image->module, &image->layouts[k]);
    return ci_cuda_leave(&stay, result);
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

static int32_t launch_kernel(CiExecutable *base, const CiLaunch *asked, CiFault *fault);

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
    ci_cuda_visit_kernels(kernels, count_kernel, &executable->nkernels);
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

/* The list of target/cuda/print.c: pointers to the values of the parameters. */
typedef struct Parameters {
    void *list[CI_CUDA_MAX_PARAMETERS];
    int count;
} Parameters;

static void
fill_parameters(const CiCudaLayout *layout, const CiLaunch *launch, Parameters *parameters)
{
    int n = 0;
    for (int k = 0; k < layout->nbuffers; k++)
        parameters->list[n++] = (void *)(uintptr_t)&launch->buffers[layout->buffers[k]];
    for (int k = 0; k < layout->nsizes; k++)
        parameters->list[n++] = (void *)(uintptr_t)&launch->sizes[k];
    for (int k = 0; k < layout->nslots; k++)
        parameters->list[n++] = (void *)(uintptr_t)&launch->scalars[layout->slots[k]];
    parameters->count = n;
}

static int
start(const CiCudaDriver *driver, const CiCudaFunction *function, const CiLaunch *launch,
      Parameters *parameters)
{
    int64_t blocks = ci_cuda_extent_value(&function->blocks, launch->sizes);
    if (blocks <= 0)
        return 0;
    return driver->launch(function->run, (unsigned)blocks, 1, 1, (unsigned)function->threads, 1, 1,
                          (unsigned)function->shared_bytes, launch->stream, parameters->list, NULL);
}

/* Starts both functions of a split kernel; partial results are in memory of the launch. */
static int
start_both(const CiCudaContextScope *stay, const CiCudaLayout *layout, const CiLaunch *launch,
           Parameters *parameters)
{
    const CiCudaDriver *driver = stay->driver;
    CUdeviceptr partials = 0;
    if (!layout->has_finish)
        return start(driver, &layout->functions[0], launch, parameters);
    int64_t bytes = ci_cuda_extent_value(&layout->partial_bytes, launch->sizes);
    bytes = bytes > 0 ? (bytes + 3) / 4 * 4 : 4;
    int result = ci_cuda_block_take(stay, (size_t)bytes, launch->stream, &partials);
    if (result)
        return result;
    parameters->list[parameters->count++] = &partials;
    if (layout->tells)
        result = driver->clear(partials, 0, (size_t)bytes / 4, launch->stream);
    for (int k = 0; k < 2 && !result; k++)
        result = start(driver, &layout->functions[k], launch, parameters);
    int freed = ci_cuda_block_give(stay, partials, (size_t)bytes, launch->stream);
    return result ? result : freed;
}

/* Waits for the kernel, because the host must know whether to continue. */
static int
start_checked(const CiCudaContextScope *stay, const CiCudaLayout *layout, const CiLaunch *launch,
              Parameters *parameters, int *failed)
{
    const CiCudaDriver *driver = stay->driver;
    CUdeviceptr place = 0;
    int result = ci_cuda_block_take(stay, sizeof *failed, launch->stream, &place);
    if (result)
        return result;
    parameters->list[parameters->count++] = &place;
    result = driver->clear(place, 0, 1, launch->stream);
    if (!result)
        result = start(driver, &layout->functions[0], launch, parameters);
    if (!result)
        result = driver->copy_out_on(failed, place, sizeof *failed, launch->stream);
    if (!result)
        result = driver->synchronize(launch->stream);
    int freed = ci_cuda_block_give(stay, place, sizeof *failed, launch->stream);
    return result ? result : freed;
}

/* The kernel for all sizes and the alignment of this launch. */
static int32_t
choose_image(CiCudaExecutable *executable, const CiLaunch *launch, const CiCudaLayout **layout)
{
    int32_t status = CI_OK;
    *layout = &executable->images[0].layouts[launch->kernel];
    if (!ci_cuda_is_aligned(*layout, launch)) {
        *layout = &executable->images[1].layouts[launch->kernel];
        if (!atomic_load(&executable->images[1].is_loaded))
            status = load_second(executable);
    }
    return status;
}

static int32_t
launch_layout(CiCudaExecutable *executable, const CiCudaLayout *layout, const CiLaunch *launch,
              CiFault *fault)
{
    CiCudaContextScope stay;
    Parameters parameters;
    int failed = 0;
    int32_t status = ci_cuda_enter(&stay, &executable->base.queue);
    if (status)
        return status;
    fill_parameters(layout, launch, &parameters);
    int result = layout->has_checks
                     ? start_checked(&stay, layout, launch, &parameters, &failed)
                     : start_both(&stay, layout, launch, &parameters);
    status = ci_cuda_leave(&stay, result);
    if (status || !failed)
        return status;
    fault->kind = CI_ERR_CHECK;
    fault->node = failed - 1;
    return CI_ERR_CHECK;
}

static int32_t
launch_kernel(CiExecutable *base, const CiLaunch *asked, CiFault *fault)
{
    CiCudaExecutable *executable = (CiCudaExecutable *)base;
    int64_t sizes[CI_CUDA_MAX_SIZES];
    const CiCudaLayout *layout;
    CiCudaVariant *variant;
    CiLaunch own = *asked;
    if (fault)
        fault->kind = 0;
    int32_t status = ci_cuda_take_variant(executable, asked, sizes, &variant);
    if (variant) {
        own.sizes = sizes;
        status = launch_layout(executable, &variant->layout, &own, fault);
        ci_cuda_give_variant(executable, asked, variant);
    } else if (!status) {
        status = choose_image(executable, asked, &layout);
        if (!status)
            status = launch_layout(executable, layout, asked, fault);
    }
    return status;
}

extern const CiCompiler ci_compiler_cuda;

const CiCompiler ci_compiler_cuda = {
    .abi = CI_DEVICE_ABI,
    .name = "cuda",
    .doc = "CUDA C++ through NVRTC",
    .why_not_available = why_not_available,
    .fill_target = ci_cuda_fill_target,
    .has_own_order = true,
    .lower = lower,
    .emit = emit,
    .build = build,
    .why_slower = ci_cuda_why_slower,
    .build_text = ci_cuda_build_text,
};
