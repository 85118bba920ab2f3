/* The whole source of a program's procs: CUDA C++ without a header. Procs are printed first, into a
 * text of their own, which tells what they need of types, helpers and support functions. */
#include "target/cuda/print.h"

#include <string.h>

/* CUDA's names for functions in the shared texts. */
static const char prelude[] =
    "#define __INT64_TYPE__ long long\n"
    "#define __UINT64_TYPE__ unsigned long long\n"
    "#define __builtin_memcpy memcpy\n"
    "#define __builtin_popcountll __popcll\n"
    "#define __builtin_fabsf fabsf\n"
    "#define __builtin_inff() __int_as_float(0x7f800000)\n"
    "#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)\n"
    "#define __builtin_nanf(text) __int_as_float(0x7fc00000)\n"
    "#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000LL)\n"
    "#define __builtin_huge_valf() __builtin_inff()\n"
    "#define huge_valf() __builtin_inff()\n"
    "#define huge_val() __builtin_inf()\n"
    "#define copysign(a, b) copysign((double)(a), (double)(b))\n";

static const char division_helpers[] = "static __device__ int64_t ci_floordiv(int64_t a, int64_t "
                                       "b) { return a / b - (a % b != 0 && (a ^ b) < 0); }\n"
                                       "static __device__ int64_t ci_mod(int64_t a, int64_t b) { "
                                       "return a % b != 0 && (a ^ b) < 0 ? a % b + b : a % b; }\n";

static const char shuffle_helpers[] =
    "template <class T> static __device__ T ci_shuffle(T a, int h) { return "
    "(T)__shfl_xor_sync(0xffffffffu, a, h); }\n"
    "static __device__ ci_c64 ci_shuffle(ci_c64 a, int h) { return ci_c64{ci_shuffle(a.re, h), "
    "ci_shuffle(a.im, h)}; }\n"
    "static __device__ ci_c128 ci_shuffle(ci_c128 a, int h) { return ci_c128{ci_shuffle(a.re, h), "
    "ci_shuffle(a.im, h)}; }\n"
    "template <class T> static __device__ T ci_before(T a, int h) { int from = (int)threadIdx.x % "
    "32 - h; return (T)__shfl_sync(0xffffffffu, a, from < 0 ? 0 : from); }\n"
    "static __device__ ci_c64 ci_before(ci_c64 a, int h) { return ci_c64{ci_before(a.re, h), "
    "ci_before(a.im, h)}; }\n"
    "static __device__ ci_c128 ci_before(ci_c128 a, int h) { return ci_c128{ci_before(a.re, h), "
    "ci_before(a.im, h)}; }\n"
    "template <class T> static __device__ T ci_first(T a, int width) { return "
    "(T)__shfl_sync(0xffffffffu, a, 0, width); }\n"
    "static __device__ ci_c64 ci_first(ci_c64 a, int width) { return ci_c64{ci_first(a.re, width), "
    "ci_first(a.im, width)}; }\n"
    "static __device__ ci_c128 ci_first(ci_c128 a, int width) { return ci_c128{ci_first(a.re, "
    "width), ci_first(a.im, width)}; }\n";

static const char *
own_support(const char *name, CiDtype dtype)
{
    if (!strcmp(name, "widen") && dtype == CI_DTYPE_f16)
        return "{ float a; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(a) : \"h\"(h)); return a; }";
    if (!strcmp(name, "narrow") && dtype == CI_DTYPE_f16)
        return "{ uint16_t h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(a)); return h; }";
    if (!strcmp(name, "library_power"))
        return "{ R size = log(hypot(a.re, a.im)); R angle = atan2(a.im, a.re); R turn = b.im * "
               "size "
               "+ b.re * angle; size = exp(b.re * size - b.im * angle); T y = {size * cos(turn), "
               "size * sin(turn)}; return y; }";
    if (!strcmp(name, "round_half") && dtype == CI_DTYPE_f64)
        return "{ uint16_t h; asm(\"cvt.rn.f16.f64 %0, %1;\" : \"=h\"(h) : \"d\"(a)); float r; "
               "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
               "\"h\"(h)); return r; }";
    if (!strcmp(name, "round_half"))
        return "{ uint16_t h; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(a)); float r; "
               "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
               "\"h\"(h)); return r; }";
    return NULL;
}

static const CiSpelling spelling = {.function = "static __device__",
                                    .builtin = "",
                                    .style = CI_STYLE_cuda,
                                    .is_cpp = true,
                                    .has_undefined_overflow = true,
                                    .override = own_support};

void
ci_cuda_print_source(CiText *out, const CiKernels *kernels, const CiProcs *procs)
{
    CiContext *ctx = kernels->loops->ctx;
    CiText body = ci_text_new(ctx), support = ci_text_new(ctx);
    CiEmitter *base = ci_emitter_new(kernels, &spelling);
    CiCPrinter *printer = ci_cuda_printer_new(base, kernels->loops->sym);
    for (int k = 0; k < procs->nprocs; k++) {
        ci_text_add(&body, "\n");
        ci_emit_locations(&body, procs->procs[k]->kernel);
        ci_cuda_print_proc(printer, &body, procs->procs[k]);
    }
    ci_emit_support(base, &support);
    ci_text_add(out, "%s", prelude);
    ci_emit_types(out);
    if (ci_emit_mentions(body.data, "ci_floordiv") || ci_emit_mentions(body.data, "ci_mod"))
        ci_text_add(out, "%s", division_helpers);
    if (ci_emit_mentions(body.data, "ci_shuffle") || ci_emit_mentions(body.data, "ci_first") ||
        ci_emit_mentions(body.data, "ci_before"))
        ci_text_add(out, "%s", shuffle_helpers);
    ci_cuda_add_functions(out, body.data);
    if (ci_emit_mentions(body.data, "ci_lanes"))
        ci_text_add(out, "%s", ci_cuda_lanes_helper);
    ci_text_add_chars(out, support.data, support.length);
    ci_text_add_chars(out, body.data, body.length);
}
