/* The C source of a program's kernels: their procs as functions, and what these call. */
#include "device/cpu/source.h"

#include "analysis/templates.h"
#include "codegen/codegen.h"
#include "device/cpu/level.h"
#include "target/c/c.h"

#include <string.h>

typedef struct Source {
    CiContext *ctx;
    CiEmitter *base;
    CiCPrinter *printer;
    const CiProcs *procs;
    CiMap *known; /* text of a kernel, with holes -> the kernel */
    CiCpuUnit *unit;
    CiText functions;
    const char *function; /* whose name symbols get; NULL: they get none */
} Source;

static const CiSpelling cpu_spelling = {.function = "static inline __attribute__((always_inline))",
                                        .builtin = "__builtin_",
                                        .style = CI_STYLE_c};

CiProcs *
ci_cpu_lower(const CiKernels *kernels, const CiOptions *options)
{
    return ci_codegen(kernels, kernels->machine, options && options->verify);
}

/* ---- kernels ---- */

/* A split kernel has two procs. */
static void
print_procs(Source *s, CiText texts[2], const CiKernel *kernel, bool *is_optimized)
{
    for (int side = 0; side < 2; side++) {
        const CiProc *proc = ci_procs_find(s->procs, kernel->name, side);
        texts[side] = ci_text_new(s->ctx);
        if (!proc)
            continue;
        ci_c_print_proc(s->printer, &texts[side], proc);
        *is_optimized |= s->printer->has_loops_left;
    }
}

/* The functions of a kernel, each after the lines of the program that it computes. */
static void
add_functions(Source *s, const CiText texts[2], const CiKernel *kernel)
{
    for (int side = 0; side < 2; side++) {
        const CiProc *proc = ci_procs_find(s->procs, kernel->name, side);
        if (!proc)
            continue;
        ci_text_add(&s->functions, "\n");
        ci_emit_locations(&s->functions, proc);
        ci_emit_fill(s->base, &s->functions, texts[side].data);
    }
}

/* A C name from a qualified one: what follows its last dot, as letters, digits and single underscores. */
static const char *
word_of(CiContext *ctx, const char *name)
{
    const char *dot = strrchr(name, '.');
    char *word = ci_format(ctx, "%.40s", dot && dot[1] ? dot + 1 : name);
    size_t length = 0;
    for (const char *c = word; *c; c++) {
        bool is_kept = (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z');
        if (is_kept || (length > 0 && word[length - 1] != '_'))
            word[length++] = is_kept ? *c : '_';
    }
    while (length > 0 && word[length - 1] == '_')
        length--;
    word[length] = 0;
    return length > 0 && (*word < '0' || *word > '9') ? word : "kernel";
}

/* A second symbol for each function of a kernel. Tools show it: perf takes the longer of two symbols at one address. */
static void
add_symbols(Source *s, const CiKernel *kernel)
{
    int line = kernel->nlocs > 0 ? kernel->locs[0].line : 0;
    for (int side = 0; s->function && side < 2; side++) {
        const CiProc *proc = ci_procs_find(s->procs, kernel->name, side);
        if (proc)
            ci_text_add(&s->functions,
                        "\nextern __typeof__(%s) %s_%d_%s __attribute__((alias(\"%s\")));\n",
                        proc->name, s->function, line, proc->name, proc->name);
    }
}

/* Returns an earlier kernel whose functions differ only in names. If there is none, enters this one and returns NULL. */
static const CiKernel *
find_same(Source *s, const CiKernel *kernel, const CiText texts[2])
{
    const char *key = ci_intern(s->ctx, ci_format(s->ctx, "%s%s", texts[0].data, texts[1].data));
    const CiKernel *found = ci_map_find(s->known, CI_KEY(key));
    if (!found)
        ci_map_put(s->known, CI_KEY(key), (void *)kernel);
    return found;
}

/* Adds nothing if an earlier kernel has the same functions, as in another iteration of an unrolled loop or another layer
 * of a network. A byte of loops that the compiler vectorises takes half as much time again as other source. */
static void
add_kernel(void *arg, const CiKernel *kernel)
{
    Source *s = arg;
    if (!ci_kernel_has_loops(kernel) || (s->unit && !s->unit->is_wanted[kernel->id]))
        return;
    CiText own[2];
    size_t before = s->functions.length;
    bool is_optimized = false;
    if (!ci_name_is_safe(kernel->name))
        ci_fail(s->ctx, CI_ERR_INTERNAL, "kernel %d has no safe name", kernel->id);
    ci_emit_begin_holes(s->base);
    print_procs(s, own, kernel, &is_optimized);
    const CiKernel *same = s->unit ? find_same(s, kernel, own) : NULL;
    if (!same)
        add_functions(s, own, kernel);
    if (s->unit) {
        int64_t length = (int64_t)(s->functions.length - before);
        s->unit->launches[kernel->id] = ci_procs_launch(s->procs, kernel->name);
        s->unit->printed[kernel->id] = same ? same : kernel;
        s->unit->lengths[kernel->id] = is_optimized ? length * 3 / 2 : length;
    }
    if (!same)
        add_symbols(s, kernel);
}

/* ---- what they call ---- */

static void
print_fault_helper(const Source *s, CiText *out)
{
    if (ci_emit_uses(s->base, "ci_fault"))
        ci_text_add(
            out,
            "\n__attribute__((noinline, cold)) static int32_t\nci_fault(CiRun *run, int32_t "
            "node)\n{\n    int32_t *const fault = run->fault;\n    if (fault) {\n"
            "        fault[0] = %d;\n        fault[1] = node;\n    }\n    return %d;\n}\n",
            (int)CI_ERR_CHECK, (int)CI_ERR_CHECK);
}

static void
print_index_helpers(const Source *s, CiText *out)
{
    static const char *const helpers[][2] = {
        {"ci_floordiv",
         "    const int64_t q = b ? a / b : 0;\n    return q - (b && a % b != 0 && (a < 0) != (b < 0));\n"},
        {"ci_mod",
         "    const int64_t r = b ? a % b : 0;\n    return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"},
    };
    for (size_t k = 0; k < sizeof helpers / sizeof *helpers; k++)
        if (ci_emit_uses(s->base, helpers[k][0]))
            ci_text_add(out,
                        "\nstatic inline __attribute__((always_inline)) int64_t\n%s(int64_t a, "
                        "int64_t b)\n{\n%s}\n",
                        helpers[k][0], helpers[k][1]);
}

/* gcc before 12 has no __builtin_shufflevector. Its own __builtin_shuffle only gives vectors as long as its operands. The lanes are
 * moved as integers, whose type a comparison gives without qualifiers. */
static void
print_shuffle_macro(const Source *s, CiText *out)
{
    static const char name[] = "__builtin_shufflevector";
    if (strstr(s->functions.data, name) || strstr(s->printer->helpers.data, name))
        ci_text_add(
            out,
            "#if !defined(__clang__) && __GNUC__ < 12\n#define %s(a, b, ...) ({ \\\n"
            "    typedef __typeof__(((a) < (a))[0]) ci_int; \\\n"
            "    enum { ci_lanes = sizeof(a) / sizeof(ci_int), ci_count = sizeof((int[]){__VA_ARGS__}) / sizeof(int) }; \\\n"
            "    typedef ci_int ci_ints __attribute__((vector_size(ci_count * sizeof(ci_int)))); \\\n"
            "    typedef __typeof__((a)[0]) ci_same __attribute__((vector_size(ci_count * sizeof(ci_int)))); \\\n"
            "    const __typeof__((a) < (a)) ci_a = (__typeof__((a) < (a)))(a), ci_b = (__typeof__((a) < (a)))(b); \\\n"
            "    const int ci_from[] = {__VA_ARGS__}; \\\n"
            "    ci_ints ci_made; \\\n"
            "    for (int ci_k = 0; ci_k < ci_count; ci_k++) \\\n"
            "        ci_made[ci_k] = ci_from[ci_k] < ci_lanes ? ci_a[ci_from[ci_k]] : ci_b[ci_from[ci_k] - ci_lanes]; \\\n"
            "    (ci_same)ci_made; })\n#endif\n",
            name);
}

/* Prints macros for attributes of gcc that clang does not have. Loops that the compiler vectorises begin at a cache
 * line: a loop of ten instructions across two lines takes half as long again. */
static void
print_macros(const Source *s, CiText *out, bool is_fast)
{
    if (ci_emit_uses(s->base, "CI_OPTIMIZED"))
        ci_text_add(out,
                    "#ifdef __clang__\n#define CI_OPTIMIZED\n#else\n#define CI_OPTIMIZED "
                    "__attribute__((optimize(\"O3,align-loops=64,wrapv,no-strict-aliasing,fp-contract=%s\")))\n"
                    "#endif\n",
                    is_fast ? "fast" : "off");
    if (ci_c_has(s->printer, "CI_COLD"))
        ci_text_add(out, "#ifdef __clang__\n#define CI_COLD __attribute__((noinline))\n#else\n"
                         "#define CI_COLD __attribute__((noinline, optimize(\"Os\")))\n#endif\n");
    if (ci_c_has(s->printer, "CI_INLINE"))
        ci_text_add(out, "#define CI_INLINE static inline __attribute__((always_inline))\n");
}

void
ci_cpu_emit_source(CiText *out, const CiKernels *kernels, const CiProcs *procs,
                   const CiOptions *options, CiCpuUnit *unit)
{
    CiContext *ctx = kernels->loops->ctx;
    Source s = {.ctx = ctx,
                .base = ci_emitter_new(kernels, &cpu_spelling),
                .printer = ci_c_printer_new(ctx, ci_cpu_instructions(ci_cpu_level(options)),
                                            ci_cpu_vector_bytes(ci_cpu_level(options))),
                .procs = procs,
                .known = ci_map_new(ctx),
                .unit = unit,
                .functions = ci_text_new(ctx)};
    s.printer->base = s.base;
    s.printer->has_routines = ci_cpu_has_routines(options);
    s.printer->sym = kernels->loops->sym;
    if (options && options->symbols)
        s.function = word_of(ctx, kernels->loops->name);
    ci_kernels_visit(kernels, add_kernel, &s);
    for (int k = 0; unit && k < CI_LIBRARY_COUNT; k++)
        unit->is_linked[k] = s.base->is_linked[k] || kernels->given_source;
    if (kernels->given_source) {
        ci_text_add(out, "%s", kernels->given_source);
        return;
    }
    ci_emit_types(out);
    ci_text_add(out, "typedef struct CiRun {\n    void *scratch, *partials, *fault;\n    int32_t "
                     "(*poll)(void *arg);\n"
                     "    void *poll_arg;\n"
                     "    void (*apply)(const void *, int32_t, int64_t, void *, const void *, "
                     "int64_t, const void *, int64_t);\n"
                     "    const void *ufuncs;\n    int64_t *turn;\n"
                     "    int32_t (*wait)(void *arg, int64_t unit);\n    void *wait_arg;\n"
                     "    int32_t is_again;\n} CiRun;\n");
    bool is_fast = options && options->numerics && !strcmp(options->numerics, "fast");
    print_macros(&s, out, is_fast);
    print_shuffle_macro(&s, out);
    print_index_helpers(&s, out);
    print_fault_helper(&s, out);
    ci_emit_support(s.base, out);
    ci_text_add(out, "%s%s", s.printer->helpers.data, s.functions.data);
}
