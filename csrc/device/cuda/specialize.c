/* Kernels for a class of sizes. For such a class a plan knows as much as for known sizes: that
 * indices fit 32 bits, that rows start aligned and fit registers, how many threads a row is worth.
 *
 *   symbols {s0 in [0, inf)}                         symbols {s0_part in [65, 128], s0 = 8*s0_part}
 *   kernels f(in0: f32[s0,s1]) device=cuda …   ->    kernels f(in0: f32[s0,s1]) device=cuda …
 *
 * A variant is the text of its kernel, parsed again with other ranges for the symbols.
 *
 * The class of a size is the power of two that it does not exceed, and whether it is a multiple of
 * CI_CUDA_MULTIPLE. A variant takes the size over its divisor (ci_cuda_class_divisor): where
 * 16*i0*s0 was, 128*i0*s0_part shows the planner that vectors are aligned. Invariant: a variant is
 * right for every size of its class, and the class is decided at each launch, so the order of
 * reductions still depends on sizes and alignment alone. */
#include "device/cuda/cuda.h"

#include "analysis/templates.h"
#include "ir/text_common.h"
#include "schedule/schedule.h"

#include <string.h>

#define LARGEST 30 /* bits */

/* ---- classes ---- */

static bool
has_class(const CiExpr *symbol)
{
    return symbol->kind == CI_EXPR_symbol && symbol->symbol_kind == CI_SYMBOL_size;
}

bool
ci_cuda_find_class(const CiKernel *kernel, const int64_t *sizes, CiCudaClass *class)
{
    *class = (CiCudaClass){{0}};
    for (int k = 0; k < kernel->nsize_args; k++) {
        int bits = 0;
        if (!has_class(kernel->size_args[k]))
            continue;
        while (bits <= LARGEST && (INT64_C(1) << bits) < sizes[k])
            bits++;
        if (sizes[k] < 1 || bits > LARGEST)
            return false;
        class->of[k] =
            (unsigned char)(2 * bits + (bits >= 3 && sizes[k] % CI_CUDA_MULTIPLE == 0) + 1);
    }
    return true;
}

int64_t
ci_cuda_class_divisor(const CiCudaClass *class, int k)
{
    return class->of[k] && (class->of[k] - 1) % 2 ? CI_CUDA_MULTIPLE : 1;
}

bool
ci_cuda_can_specialize(const CiKernel *kernel)
{
    bool has_any = false;
    if (ci_kernel_tree(kernel) || kernel->nsize_args > CI_CUDA_MAX_SIZES)
        return false;
    for (int k = 0; k < kernel->nsize_args; k++) {
        has_any |= has_class(kernel->size_args[k]);
        if (kernel->size_args[k]->kind != CI_EXPR_symbol)
            return false;
    }
    return has_any;
}

/* ---- variants ---- */

/* s0_part in [9, 16], s0 = 8*s0_part: what both the class and the symbol's own range allow. */
static void
print_narrowed(CiText *out, const CiExpr *symbol, const CiCudaClass *class, int k)
{
    int bits = (class->of[k] - 1) / 2;
    int64_t divisor = ci_cuda_class_divisor(class, k), high = INT64_C(1) << bits,
            low = high / 2 + 1;
    low = symbol->low > low ? symbol->low : low;
    high = symbol->high < high ? symbol->high : high;
    ci_text_add(out, "%s_part in [%lld, %lld], %s = %lld*%s_part", symbol->name,
                (long long)((low + divisor - 1) / divisor), (long long)(high / divisor),
                symbol->name, (long long)divisor, symbol->name);
}

static int
size_position(const CiKernel *kernel, const CiExpr *symbol)
{
    int k = 0;
    while (k < kernel->nsize_args && strcmp(kernel->size_args[k]->name, symbol->name) != 0)
        k++;
    return k;
}

/* The first line of the text has the symbols. */
static const char *
narrow(CiContext *ctx, const char *text, const CiKernel *kernel, const CiCudaClass *class)
{
    CiSym *sym = ci_sym_new(ctx);
    CiText out = ci_text_new(ctx);
    CiTextIo in = ci_io_reader(ctx, sym, text), form = ci_io_printer(ctx, sym, &out);
    ci_io_text(&in, "symbols");
    for (const char *between = "{"; !ci_io_is(&in, "}"); between = ",") {
        ci_io_text(&in, between);
        const CiExpr *symbol = ci_io_symbol(&in, NULL);
        int k = size_position(kernel, symbol);
        ci_text_add(&out, *between == '{' ? "symbols {" : ", ");
        if (has_class(symbol) && k < kernel->nsize_args)
            print_narrowed(&out, symbol, class, k);
        else
            ci_io_symbol(&form, symbol);
    }
    ci_text_add(&out, "}%s", strchr(text, '\n'));
    return out.data;
}

CiKernels *
ci_cuda_parse_variant(CiContext *ctx, const char *text, const CiKernels *generic,
                      const CiCudaClass *class, bool verify)
{
    const CiKernel *kernel = generic->kernels[0];
    CiKernels *kernels =
        ci_kernels_parse(ctx, narrow(ctx, text, kernel, class), generic->machine);
    CiKernel *variant = kernels->kernels[0];
    for (int k = 0; k < variant->nsize_args; k++)
        if (has_class(kernel->size_args[k]))
            variant->size_args[k] = ci_sym_find_symbol(
                kernels->loops->sym, ci_format(ctx, "%s_part", kernel->size_args[k]->name));
    if (!variant->kind)
        ci_kernel_place_rows(kernels, variant);
    if (verify) {
        ci_kernels_verify(kernels);
        ci_kernels_verify_text(kernels);
    }
    return kernels;
}
