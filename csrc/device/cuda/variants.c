/* Kernels for the classes of sizes that launches bring: made when a class is first met, by NVRTC
 * (or from the disk cache, where it has met them before), and kept with the executable. A launch of
 * little work takes the kernel for all sizes, which it would not be quicker than. */
#include "device/cuda/executable.h"
#include "ir/choices.h"
#include "target/cuda/print.h"

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
ci_cuda_keep(CiContext *ctx, const CiCudaBuild *b, const CiKernel *kernel)
{
    const CiCudaClass as_it_is = {0};
    CiCudaGeneric *kept = &b->executable->kept[kernel->id];
    if (!ci_cuda_can_specialize(kernel))
        return;
    CiKernels *kernels = ci_cuda_copy_kernel(ctx, b->kernels, kernel, &as_it_is);
    const CiExpr *work = work_of(kernels->loops->sym, kernels->kernels[0]);
    for (int k = 0; k < work->nsymbols; k++)
        if (!takes_size(kernels->kernels[0], work->symbols[k])) /* extents that vary by row */
            return;
    kept->work = ci_cuda_extent_new(ctx, kernels->kernels[0], work);
    kept->kernels = kernels;
}

/* ---- making ---- */

typedef struct Making {
    CiCudaExecutable *executable;
    const CiCudaGeneric *kept;
    CiCudaVariant *variant;
    CiCudaBuild build;
    const char *source; /* in the context of the making */
} Making;

static void
describe(CiContext *ctx, void *arg)
{
    Making *making = arg;
    ci_cuda_describe(ctx, &making->build, making->build.kernels->kernels[0],
                     &making->variant->layout);
}

static void
make_source(CiContext *ctx, void *arg)
{
    Making *making = arg;
    const CiKernels *kept = making->kept->kernels;
    CiKernels *kernels = ci_cuda_copy_kernel(ctx, kept, kept->kernels[0], &making->variant->class);
    CiText source = ci_text_new(ctx);
    making->build.kernels = kernels;
    making->build.procs = ci_cuda_lower(kernels, NULL, making->variant->has_vectors);
    ci_cuda_print_source(&source, kernels, making->build.procs);
    making->source = source.data;
    CiStatus status = ci_protect(making->executable->memory, describe, making);
    if (status)
        ci_fail(ctx, status, "no layout");
}

static bool
load(Making *making)
{
    CiCudaStay stay;
    CiCudaCompile job = ci_cuda_compile_job(making->executable, making->source);
    CiCudaVariant *variant = making->variant;
    bool is_made = !ci_cuda_compile(&job) && !ci_cuda_enter(&stay, &making->executable->base.queue);
    if (is_made) {
        int result = stay.driver->module_load(&variant->module, job.cubin);
        if (!result)
            result = ci_cuda_find_functions(&stay, variant->module, &variant->layout);
        is_made = !ci_cuda_leave(&stay, result);
    }
    free(job.cubin);
    return is_made;
}

static void
make(CiCudaExecutable *executable, const CiCudaGeneric *kept, CiCudaVariant *variant)
{
    Making making = {.executable = executable, .kept = kept, .variant = variant};
    CiContext *ctx = ci_context_open();
    if (!ctx)
        return;
    if (ci_protect(ctx, make_source, &making) || !load(&making))
        variant->layout.name = NULL;
    ci_context_close(ctx);
}

/* ---- finding ---- */

static CiCudaVariant *
find(CiCudaGeneric *kept, const CiCudaClass *class, bool has_vectors)
{
    CiCudaVariant *variant = atomic_load(&kept->variants);
    while (variant && (variant->has_vectors != has_vectors ||
                       memcmp(&variant->class, class, sizeof *class) != 0))
        variant = variant->next;
    return variant;
}

static CiCudaVariant *
find_or_make(CiCudaExecutable *executable, CiCudaGeneric *kept, const CiCudaClass *class,
             bool has_vectors)
{
    CiCudaVariant *variant = find(kept, class, has_vectors);
    if (variant)
        return variant;
    pthread_mutex_lock(&executable->lock);
    variant = find(kept, class, has_vectors);
    if (!variant && (variant = calloc(1, sizeof *variant))) {
        variant->class = *class;
        variant->has_vectors = has_vectors;
        make(executable, kept, variant);
        variant->next = atomic_load(&kept->variants);
        atomic_store(&kept->variants, variant);
    }
    pthread_mutex_unlock(&executable->lock);
    return variant;
}

static int64_t
least_work(const CiCudaGeneric *kept)
{
    return ci_choice(kept->kernels->target, CI_CHOICE_variant_work);
}

const CiCudaLayout *
ci_cuda_find_variant(CiCudaExecutable *executable, const CiLaunch *launch, int64_t *sizes)
{
    CiCudaGeneric *kept = &executable->kept[launch->kernel];
    CiCudaClass class;
    if (!kept->kernels || ci_cuda_extent_value(&kept->work, launch->sizes) < least_work(kept) ||
        !ci_cuda_find_class(kept->kernels->kernels[0], launch->sizes, &class))
        return NULL;
    CiCudaVariant *variant = find_or_make(executable, kept, &class, true);
    if (variant && variant->layout.name && !ci_cuda_is_aligned(&variant->layout, launch))
        variant = find_or_make(executable, kept, &class, false);
    if (!variant || !variant->layout.name)
        return NULL;
    for (int k = 0; k < variant->layout.nsizes; k++)
        sizes[k] = launch->sizes[k] / ci_cuda_class_divisor(&class, k);
    return &variant->layout;
}

void
ci_cuda_close_variants(CiCudaExecutable *executable)
{
    for (int k = 0; executable->kept && k < executable->nkernels; k++) {
        CiCudaVariant *variant = atomic_load(&executable->kept[k].variants);
        while (variant) {
            CiCudaVariant *next = variant->next;
            ci_cuda_unload(&executable->base.queue, variant->module);
            free(variant);
            variant = next;
        }
    }
}
