/* The whole source of a program's procs, without a header. Procs are printed first, into a text of
 * their own, so that only the types, helpers and support functions that they use are printed before it. */
#include "target/gpu/print.h"

/* Names of C's functions and constants in the texts that all languages share. On a device without f64 the
 * types of the texts are f32. */
static void
add_names(CiText *out, const CiGpuDialect *gpu)
{
    const char *word = gpu->long_word, *bits = gpu->float_of_bits;
    ci_text_add(out, "%s%s#undef __INT64_TYPE__\n#undef __UINT64_TYPE__\n",
                gpu->has_f64 ? "" : "#define double float\n", gpu->prelude);
    ci_text_add(out, "#define __INT64_TYPE__ %s\n#define __UINT64_TYPE__ unsigned %s\n", word, word);
    ci_text_add(out, "#define __builtin_popcountll %s\n#define __builtin_fabsf fabs\n", gpu->count_bits);
    ci_text_add(out,
                "#define __builtin_inff() %s(0x7f800000)\n#define __builtin_nanf(text) %s(0x7fc00000)\n",
                bits, bits);
    ci_text_add(out, "#define __builtin_huge_valf __builtin_inff\n"
                     "#define __builtin_inf() ((double)__builtin_inff())\n"
                     "#define __builtin_nan(text) ((double)__builtin_nanf(text))\n"
                     "#define huge_val __builtin_inf\n"
                     "#define copysign(a, b) copysign((double)(a), (double)(b))\n");
}

static void
add_division(CiText *out, const char *function)
{
    ci_text_add(out,
                "%s int64_t ci_floordiv(int64_t a, int64_t "
                "b) { return b ? a / b - (a %% b != 0 && (a ^ b) < 0) : 0; }\n"
                "%s int64_t ci_mod(int64_t a, int64_t b) { "
                "return b == 0 ? 0 : a %% b != 0 && (a ^ b) < 0 ? a %% b + b : a %% b; }\n",
                function, function);
}

/* Functions that are computed in f64 and rounded. */
static void
add_rounded(CiText *out, CiEmitter *e, const CiGpuDialect *gpu)
{
    for (int k = 0; k < gpu->spelling.nimprecise; k++) {
        const CiImprecise *row = &gpu->spelling.imprecise[k];
        bool is_pair = row->operands == 2;
        if (!ci_emit_uses(e, ci_format(out->ctx, "ci_rounded_%s", row->function)))
            continue;
        if (!gpu->has_f64)
            ci_fail(out->ctx, CI_ERR_UNSUPPORTED,
                    "%s of f32 is computed in f64, which the device does not have", row->function);
        ci_text_add(out, "%s float ci_rounded_%s(float a%s) { %sreturn (float)%s((double)a%s); }\n",
                    gpu->spelling.function, row->function, is_pair ? ", float b" : "",
                    row->shortcut, row->function, is_pair ? ", (double)b" : "");
    }
}

void
ci_gpu_print_source(CiText *out, const CiKernels *kernels, const CiProcs *procs)
{
    const CiGpuDialect *gpu = kernels->machine->dialect;
    CiContext *ctx = kernels->loops->ctx;
    CiText body = ci_text_new(ctx), support = ci_text_new(ctx);
    CiEmitter *base = ci_emitter_new(kernels, &gpu->spelling);
    CiCPrinter *printer = ci_gpu_printer_new(base, kernels->loops->sym, gpu);
    for (int k = 0; k < procs->nprocs; k++) {
        ci_text_add(&body, "\n");
        ci_emit_locations(&body, procs->procs[k]);
        ci_gpu_print_proc(printer, &body, procs->procs[k]);
        procs->procs[k]->shared_bytes = ((CiGpuPrinter *)printer)->shared_bytes;
    }
    ci_emit_support(base, &support);
    add_names(out, gpu);
    ci_emit_types(out);
    if (ci_emit_uses(base, "ci_floordiv") || ci_emit_uses(base, "ci_mod"))
        add_division(out, gpu->spelling.function);
    if (gpu->helpers)
        gpu->helpers(out, base);
    add_rounded(out, base, gpu);
    ci_text_add_chars(out, support.data, support.length);
    ci_text_add_chars(out, body.data, body.length);
}
