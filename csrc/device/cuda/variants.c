/* Kernels for classes of sizes (variants). A variant is compiled by NVRTC when a launch first needs
 * its class, or loaded from the disk cache.
 *
 * The executable keeps a bounded number of variants per kernel. A launch with little work uses the
 * generic kernel, which is as fast.
 *
 * A variant is made by the thread that first needs it, outside of the lock; other threads that need
 * the same one wait for it. They do not use the generic kernel meanwhile: which kernel a launch
 * uses depends on its sizes alone, and so do the bits of its reductions. */
#include "device/cuda/executable.h"
#include "analysis/choices.h"
#include "target/gpu/print.h"

#include <stdlib.h>
#include <string.h>

/* ---- what is kept ---- */

/* Elements of the stage that has the most axes, at every outer point. */
static const CiExpr *
work_of(CiSym *sym, const CiKernel *kernel)
{
    const CiStage *widest = &kernel->stages[0];
    const CiExpr *work = ci_expr_const(sym, 1);
    for (int t = 1; t < kernel->nstages; t++)
        if (kernel->stages[t].naxes > widest->naxes)
            widest = &kernel->stages[t];
    for (int k = 0; k < kernel->nouter; k++)
        work = ci_expr_mul(sym, work, kernel->outer[k].extent);
    for (int k = 0; k < widest->naxes; k++)
        work = ci_expr_mul(sym, work, widest->axes[k].extent);
    return work;
}

static bool
takes_size(const CiKernel *kernel, const CiExpr *symbol)
{
    for (int k = 0; k < kernel->nsize_args; k++)
        if (kernel->size_args[k] == symbol)
            return true;
    return false;
}

void
ci_cuda_keep(CiContext *ctx, CiCudaExecutable *executable, int number, const char *text)
{
    CiCudaGeneric *kept = &executable->kept[number];
    CiKernels *kernels = ci_kernels_parse(ctx, text, executable->machine);
    const CiKernel *kernel = kernels->kernels[0];
    const CiExpr *work = work_of(kernels->loops->sym, kernel);
    for (int k = 0; k < work->nsymbols; k++)
        if (!takes_size(kernel, work->symbols[k])) /* extents that vary by row */
            return;
    kept->work = ci_size_table_new(ctx, kernel, 1, &work);
    kept->kernels = kernels;
    kept->text = ci_format(ctx, "%s", text);
}

/* ---- making ---- */

typedef struct Making {
    const CiCudaGeneric *kept;
    CiCudaVariant *variant;
    CiCudaBuild build;
    const char *source; /* in the context of the making */
} Making;

/* A row of the variant may be an argument of the kernel for all sizes: numbers are of its. */
static void
describe(CiContext *ctx, void *arg)
{
    Making *making = arg;
    const CiKernel *kernel = making->build.kernels->kernels[0],
                   *generic = making->kept->kernels->kernels[0];
    CiGpuLayout *layout = &making->variant->layout;
    ci_gpu_describe(ctx, making->build.kernels, making->build.procs, kernel, layout);
    for (int k = 0; k < kernel->nbuffers; k++)
        while (strcmp(generic->buffers[layout->buffers[k]]->name, kernel->buffers[k]->name) != 0)
            layout->buffers[k]++;
}

static void
make_source(CiContext *ctx, void *arg)
{
    Making *making = arg;
    CiCudaVariant *variant = making->variant;
    bool verifies = making->build.executable->verifies;
    CiText source = ci_text_new(ctx);
    CiKernels *kernels = ci_cuda_parse_variant(ctx, making->kept->text, making->kept->kernels,
                                               &variant->class, verifies);
    kernels->plan = &making->build.executable->plan;
    making->build.kernels = kernels;
    making->build.procs = ci_cuda_lower(&making->build.executable->base.queue, kernels, verifies, variant->has_vectors);
    ci_gpu_print_source(&source, kernels, making->build.procs);
    making->source = source.data;
    CiStatus status = ci_protect(variant->memory, describe, making);
    if (status)
        ci_fail(ctx, status, "no layout");
}

static bool
load(Making *making)
{
    CiCudaContextScope scope;
    CiCudaExecutable *executable = making->build.executable;
    CiCudaCompile job = ci_cuda_compile_job(executable, making->source);
    CiCudaVariant *variant = making->variant;
    bool is_made = !ci_cuda_compile(&job) && !ci_cuda_enter(&scope, &executable->base.queue);
    if (is_made) {
        int result = scope.driver->module_load(&variant->module, job.cubin);
        if (!result)
            result = ci_cuda_find_functions(&scope, variant->module, &variant->layout);
        is_made = !ci_cuda_leave(&scope, result);
    }
    free(job.cubin);
    return is_made;
}

static void
make(CiCudaExecutable *executable, const CiCudaGeneric *kept, CiCudaVariant *variant)
{
    Making making = {.kept = kept, .variant = variant, .build = {.executable = executable}};
    CiContext *ctx = ci_context_open();
    variant->memory = ci_context_open();
    variant->status = ctx && variant->memory ? ci_protect(ctx, make_source, &making)
                                             : CI_ERR_MEMORY;
    if (variant->status || !load(&making))
        variant->layout.name = NULL;
    if (ctx)
        ci_context_close(ctx);
}

static void
close_variant(CiCudaExecutable *executable, CiCudaVariant *variant)
{
    ci_cuda_unload(&executable->base.queue, variant->module);
    if (variant->memory)
        ci_context_close(variant->memory);
    free(variant);
}

/* ---- the list of a kernel: under the lock ---- */

static CiCudaVariant *
find(const CiCudaGeneric *kept, const CiCudaClass *class, bool has_vectors)
{
    CiCudaVariant *variant = kept->variants;
    while (variant && (variant->has_vectors != has_vectors ||
                       memcmp(&variant->class, class, sizeof *class) != 0))
        variant = variant->next;
    return variant;
}

static CiCudaVariant *
add(CiCudaGeneric *kept, const CiCudaClass *class, bool has_vectors)
{
    CiCudaVariant *variant = calloc(1, sizeof *variant);
    if (variant) {
        variant->class = *class;
        variant->has_vectors = has_vectors;
        variant->next = kept->variants;
        kept->variants = variant;
    }
    return variant;
}

/* Takes the variant that was launched longest ago out of the list; NULL when there is room. Those
 * in use stay, and those that recordings launch, which are counted by themselves. */
static CiCudaVariant *
take_out_least_used(CiCudaGeneric *kept)
{
    CiCudaVariant **least = NULL, *out = NULL;
    int64_t count = 0;
    for (CiCudaVariant **at = &kept->variants; *at; at = &(*at)->next) {
        count += !(*at)->is_recorded;
        if (!(*at)->users && !(*at)->is_recorded && (!least || (*at)->last_use < (*least)->last_use))
            least = at;
    }
    if (least && count > ci_choice(kept->kernels->machine, CI_CHOICE_most_variants)) {
        out = *least;
        *least = out->next;
    }
    return out;
}

/* ---- launches ---- */

/* NULL without memory. */
static CiCudaVariant *
take(CiCudaExecutable *executable, CiCudaGeneric *kept, const CiCudaClass *class, bool has_vectors)
{
    pthread_mutex_lock(&executable->lock);
    CiCudaVariant *variant = find(kept, class, has_vectors);
    bool makes = !variant;
    if (makes)
        variant = add(kept, class, has_vectors);
    if (variant) {
        variant->users++;
        variant->last_use = ++kept->launches;
    }
    while (variant && !makes && !variant->is_made)
        pthread_cond_wait(&executable->variant_made, &executable->lock);
    pthread_mutex_unlock(&executable->lock);
    if (variant && makes) {
        make(executable, kept, variant);
        pthread_mutex_lock(&executable->lock);
        variant->is_made = true;
        pthread_cond_broadcast(&executable->variant_made);
        pthread_mutex_unlock(&executable->lock);
    }
    return variant;
}

void
ci_cuda_give_variant(CiCudaExecutable *executable, const CiLaunch *launch, CiCudaVariant *variant)
{
    CiCudaVariant *out = NULL;
    pthread_mutex_lock(&executable->lock);
    variant->users--;
    if (!launch->is_recorded) /* a stream that captures takes no other calls of this thread */
        out = take_out_least_used(&executable->kept[launch->kernel]);
    pthread_mutex_unlock(&executable->lock);
    if (out)
        close_variant(executable, out);
}

/* False when recordings launch as many variants of the kernel as are kept: there is none for this. */
static bool
keep_for_recording(CiCudaExecutable *executable, CiCudaGeneric *kept, CiCudaVariant *variant)
{
    int64_t count = 0;
    pthread_mutex_lock(&executable->lock);
    for (const CiCudaVariant *other = kept->variants; other; other = other->next)
        count += other->is_recorded && other != variant;
    variant->is_recorded |= count < ci_choice(kept->kernels->machine, CI_CHOICE_most_variants);
    bool is_kept = variant->is_recorded;
    pthread_mutex_unlock(&executable->lock);
    return is_kept;
}

int32_t
ci_cuda_take_variant(CiCudaExecutable *executable, const CiLaunch *launch, int64_t *sizes,
                     CiCudaVariant **variant)
{
    CiCudaGeneric *kept = &executable->kept[launch->kernel];
    CiCudaClass class;
    int64_t work = 0;
    int32_t status = CI_OK;
    *variant = NULL;
    if (kept->text)
        ci_size_table_fill(&kept->work, launch->sizes, &work);
    if (!kept->text || work < ci_choice(kept->kernels->machine, CI_CHOICE_variant_work) ||
        !ci_cuda_find_class(kept->kernels->kernels[0], launch->sizes, &class))
        return CI_OK;
    CiCudaVariant *taken = take(executable, kept, &class, true);
    if (taken && taken->layout.name && !ci_gpu_is_aligned(&taken->layout, launch)) {
        ci_cuda_give_variant(executable, launch, taken);
        taken = take(executable, kept, &class, false);
    }
    bool is_there = taken && taken->layout.name;
    if (is_there && launch->is_recorded && !keep_for_recording(executable, kept, taken))
        status = CI_ERR_UNSUPPORTED;
    if (taken && !is_there && executable->verifies)
        status = taken->status;
    if (taken && (status || !is_there)) {
        ci_cuda_give_variant(executable, launch, taken);
        taken = NULL;
    }
    for (int k = 0; taken && k < taken->layout.nsizes; k++)
        sizes[k] = launch->sizes[k] / ci_cuda_class_divisor(&class, k);
    *variant = taken;
    return status;
}

void
ci_cuda_close_variants(CiCudaExecutable *executable)
{
    for (int k = 0; executable->kept && k < executable->nkernels; k++) {
        CiCudaVariant *variant = executable->kept[k].variants;
        while (variant) {
            CiCudaVariant *next = variant->next;
            close_variant(executable, variant);
            variant = next;
        }
    }
}
