/* The whole source of a program's kernels: CUDA C++ without a header. Kernels are printed first,
 * into a text of their own, which tells what they need of types, helpers and support functions. */
#include "device/cuda/emit_cuda.h"
#include "target/cuda/print.h"

#include <string.h>

/* What the shared texts call, by CUDA's names. */
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
    "template <class T> static __device__ T ci_first(T a, int width) { return "
    "(T)__shfl_sync(0xffffffffu, a, 0, width); }\n"
    "static __device__ ci_c64 ci_first(ci_c64 a, int width) { return ci_c64{ci_first(a.re, width), "
    "ci_first(a.im, width)}; }\n"
    "static __device__ ci_c128 ci_first(ci_c128 a, int width) { return ci_c128{ci_first(a.re, "
    "width), ci_first(a.im, width)}; }\n";

static const char extremum_helpers[] =
    "#if __CUDA_ARCH__ >= 800\n"
    "static __device__ float ci_nan_max(float a, float b) { float r; asm(\"max.NaN.f32 %0, %1, "
    "%2;\" : "
    "\"=f\"(r) : \"f\"(a), \"f\"(b)); return r; }\n"
    "static __device__ float ci_nan_min(float a, float b) { float r; asm(\"min.NaN.f32 %0, %1, "
    "%2;\" : "
    "\"=f\"(r) : \"f\"(a), \"f\"(b)); return r; }\n"
    "#else\n"
    "static __device__ float ci_nan_max(float a, float b) { return a >= b || a != a ? a : b; }\n"
    "static __device__ float ci_nan_min(float a, float b) { return a <= b || a != a ? a : b; }\n"
    "#endif\n";

/* The first of equals wins, and a NaN beats all that is none; at < 0: no element yet. */
static const char arg_helpers[] =
    "template <class T> struct ci_arg { T value; int64_t at; };\n"
    "template <class T> static __device__ ci_arg<T> ci_shuffle(ci_arg<T> a, int h)\n"
    "{\n"
    "    return ci_arg<T>{ci_shuffle(a.value, h), ci_shuffle(a.at, h)};\n"
    "}\n"
    "template <class T> static __device__ ci_arg<T> ci_extreme(ci_arg<T> a, ci_arg<T> b, bool "
    "b_beats)\n"
    "{\n"
    "    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;\n"
    "    const bool takes_b = a_nan || b_nan ? b_nan && (!a_nan || b.at < a.at) : b_beats || "
    "(b.value == a.value && b.at < a.at);\n"
    "    return a.at < 0 || (b.at >= 0 && takes_b) ? b : a;\n"
    "}\n"
    "template <class T> static __device__ ci_arg<T> ci_argmax(ci_arg<T> a, ci_arg<T> b) { return "
    "ci_extreme(a, b, b.value > a.value); }\n"
    "template <class T> static __device__ ci_arg<T> ci_argmin(ci_arg<T> a, ci_arg<T> b) { return "
    "ci_extreme(a, b, b.value < a.value); }\n";

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

typedef struct Emission {
    CiCudaEmitter *c;
    CiCPrinter *printer;
    const CiCudaForm *form;
} Emission;

static void
emit_one(void *arg, const CiKernel *kernel)
{
    Emission *emission = arg;
    const CiProc *proc = ci_cuda_find_proc(emission->form->procs, kernel);
    if (!proc) {
        ci_cuda_emit_kernel(emission->c, emission->form->plans[kernel->id]);
        return;
    }
    ci_text_add(emission->c->out, "\n");
    ci_emit_locations(emission->c->out, kernel);
    ci_cuda_print_proc(emission->printer, emission->c->out, proc);
}

void
ci_cuda_emit_source(CiText *out, const CiKernels *kernels, const CiCudaForm *form)
{
    CiContext *ctx = kernels->loops->ctx;
    CiText body = ci_text_new(ctx), support = ci_text_new(ctx);
    CiCudaEmitter *c = CI_NEW(ctx, CiCudaEmitter);
    c->base = ci_emitter_new(kernels, &spelling);
    c->ctx = ctx;
    c->sym = kernels->loops->sym;
    c->out = &body;
    Emission emission = {c, ci_cuda_printer_new(c->base, c->sym), form};
    ci_cuda_visit_kernels(kernels, emit_one, &emission);
    ci_emit_support(c->base, &support);
    ci_text_add(out, "%s", prelude);
    ci_emit_types(out);
    if (ci_emit_mentions(body.data, "ci_floordiv") || ci_emit_mentions(body.data, "ci_mod"))
        ci_text_add(out, "%s", division_helpers);
    bool has_arg = ci_emit_mentions(body.data, "ci_arg");
    if (has_arg || ci_emit_mentions(body.data, "ci_shuffle") ||
        ci_emit_mentions(body.data, "ci_first"))
        ci_text_add(out, "%s", shuffle_helpers);
    if (has_arg)
        ci_text_add(out, "%s", arg_helpers);
    if (ci_emit_mentions(body.data, "ci_nan_max") || ci_emit_mentions(body.data, "ci_nan_min"))
        ci_text_add(out, "%s", extremum_helpers);
    ci_cuda_add_functions(out, body.data);
    ci_cuda_emit_vector_types(c, out);
    if (ci_emit_mentions(body.data, "ci_lanes"))
        ci_text_add(out, "%s", ci_cuda_lanes_helper);
    ci_text_add_chars(out, support.data, support.length);
    ci_text_add_chars(out, body.data, body.length);
}
