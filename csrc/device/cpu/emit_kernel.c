/* Kernels as C functions: their arguments, units of work, helpers. What is done in a unit is
 * emit_points.c's, emit_batch.c's or emit_tree.c's.
 *
 * Invariant: a function's body is printed before its head, so that the head declares exactly the
 * names the body mentions. */
#include "device/cpu/emit_cpu.h"

#include "codegen/codegen.h"

#include <string.h>

static const CiSpelling cpu_spelling = {
    .function = "static inline", .builtin = "__builtin_", .style = CI_STYLE_c};

/* ---- procs ---- */

/* Those that are nothing but one loop over lanes. */
static bool
is_lowered(const CiKernel *kernel)
{
    return ci_cpu_is_flat(kernel) && !kernel->split_extent && kernel->nparallel == kernel->nouter;
}

CiProcs *
ci_cpu_lower(const CiKernels *kernels, const CiOptions *options)
{
    int bytes = ci_cpu_vector_bytes(ci_cpu_level(options));
    CiFamily family = {.name = "cpu",
                       .lanes = bytes,
                       .tiled_lanes = CI_STAGE_TILE,
                       .vector_bytes = bytes,
                       .why_not_vector = ci_c_why_not_vector,
                       .takes = is_lowered};
    return ci_codegen(kernels, &family, options && options->verify);
}

/* ---- units ---- */

/* Units that are neighbours along the last outer axis are a loop: a division by a number that no
 * compiler knows takes as long as a short row. */
static bool
has_runs(const CiCpuEmitter *c)
{
    const CiKernel *kernel = c->kernel;
    return c->function == CI_FUNCTION_whole && !c->tile && kernel->nouter > 1 &&
           kernel->nparallel == kernel->nouter &&
           kernel->outer[kernel->nouter - 1].extent->kind != CI_EXPR_const;
}

/* Index variables of the collapsed parallel axes, each straight from the point's number. */
static void
declare_outer(CiCpuEmitter *c, const char *point, const char *body)
{
    const CiKernel *kernel = c->kernel;
    bool has_tiles = c->tile && kernel->nparallel == kernel->nouter;
    CiText after = ci_text_new(c->ctx); /* product of the faster axes */
    for (int k = kernel->nparallel - 1; k >= 0; k--) {
        bool is_tile = has_tiles && k == kernel->nouter - 1;
        CiText text = ci_text_new(c->ctx);
        ci_text_add(&text, after.length ? "%s / (%s)" : "%s", point, after.data);
        const char *extent =
            is_tile
                ? "tiles"
                : ci_format(c->ctx, "(%s)", ci_emit_index_text(c->base, kernel->outer[k].extent));
        if (k > 0)
            ci_text_add(&text, " %% %s", extent);
        ci_text_add(&after, after.length ? " * %s" : "%s", extent);
        if (is_tile) {
            const char *n = ci_emit_index_text(c->base, kernel->outer[k].extent);
            ci_text_line(c->out, "const int64_t lo = %s * %d;", text.data, c->tile);
            if (ci_emit_mentions(body, "m"))
                ci_text_line(c->out, "const int64_t m = %s - lo < %d ? %s - lo : %d;", n, c->tile,
                             n, c->tile);
        } else if (ci_emit_mentions(body, kernel->outer[k].var->name) &&
                   !(k == kernel->nouter - 1 && has_runs(c))) {
            ci_text_line(c->out, "const int64_t %s = %s;", kernel->outer[k].var->name, text.data);
        }
    }
}

static void
emit_unit_loop(CiCpuEmitter *c)
{
    bool runs = has_runs(c);
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = saved->indent + (runs ? 8 : 4);
    c->out = &body;
    ci_cpu_emit_points(c, c->kernel->nparallel);
    c->out = saved;
    if (!runs) {
        ci_text_open(c->out, "for (int64_t unit = begin; unit < end; unit++) {");
        declare_outer(c, c->function == CI_FUNCTION_part ? "unit / chunks" : "unit", body.data);
    } else {
        const CiKernelAxis *last = &c->kernel->outer[c->kernel->nouter - 1];
        const char *n = ci_emit_index_text(c->base, last->extent);
        ci_text_open(c->out, "for (int64_t unit = begin, next; unit < end; unit = next) {");
        declare_outer(c, "unit", body.data);
        ci_text_line(c->out, "const int64_t lo = unit %% (%s);", n);
        ci_text_line(c->out, "next = %s - lo < end - unit ? unit + %s - lo : end;", n, n);
        ci_text_open(c->out, "for (int64_t %s = lo; %s < lo + next - unit; %s++) {",
                     last->var->name, last->var->name, last->var->name);
    }
    ci_cpu_declare_placements(c, body.data);
    ci_text_add(c->out, "%s", body.data);
    if (runs)
        ci_text_close(c->out);
    ci_text_close(c->out);
}

static void
emit_units_of_long_rows(CiCpuEmitter *c)
{
    int batched = ci_cpu_first_batched_stage(c->kernel);
    if (batched < c->kernel->nstages)
        ci_cpu_emit_batches(c, batched);
    else
        ci_cpu_emit_row_cases(c, emit_unit_loop);
}

static void
emit_units(CiCpuEmitter *c)
{
    const CiKernel *kernel = c->kernel;
    if (!kernel->row) {
        emit_units_of_long_rows(c);
        return;
    }
    ci_text_open(c->out, "if ((uint64_t)(%s) - 1 < %lld) {",
                 ci_emit_index_text(c->base, kernel->row), (long long)kernel->short_row);
    ci_cpu_emit_short_rows(c);
    c->out->indent -= 4;
    ci_text_open(c->out, "} else {");
    c->is_long = true;
    emit_units_of_long_rows(c);
    c->is_long = false;
    ci_text_close(c->out);
}

/* Once, or once for each trip of the loop that is shared out. */
static void
emit_tree_units(CiCpuEmitter *c)
{
    if (c->kernel->nouter == 0) {
        ci_cpu_emit_tree(c);
        return;
    }
    const char *var = c->kernel->outer[0].var->name;
    ci_text_open(c->out, "for (int64_t %s = begin; %s < end; %s++) {", var, var, var);
    ci_cpu_emit_tree(c);
    ci_text_close(c->out);
}

/* ---- functions ---- */

/* Numbers of a kernel that sizes make. */
static CiText
derived_sizes(CiCpuEmitter *c, const char *body)
{
    const CiKernel *kernel = c->kernel;
    CiText text = ci_text_new(c->ctx);
    if (ci_emit_mentions(body, "tiles")) {
        const CiExpr *extent = kernel->outer[kernel->nouter - 1].extent;
        bool is_empty = ci_expr_equals_const(extent, 0); /* a row is divided by, though there is none */
        const char *n = is_empty ? "1" : ci_emit_index_text(c->base, extent);
        ci_text_add(&text, "    const int64_t tiles = (%s + %d) / %d;\n", n, c->tile - 1, c->tile);
    }
    if (ci_emit_mentions(body, "chunks")) {
        const char *split = ci_emit_index_text(c->base, kernel->split_extent);
        ci_text_add(&text, "    const int64_t length = %s;\n",
                    ci_emit_product_text(c->base, kernel->stages[0].axes, kernel->stages[0].naxes));
        ci_text_add(&text, "    const int64_t chunks = (length + %s - 1) / %s;\n", split, split);
    }
    for (int lanes = 16; lanes <= 64 && kernel->row; lanes *= 2) {
        if (ci_emit_mentions(body, ci_format(c->ctx, "rest%d", lanes)))
            ci_text_add(&text, "    const int64_t rest%d = (%s) %% %d;\n", lanes,
                        ci_emit_index_text(c->base, kernel->row), lanes);
    }
    return text;
}

static void
declare_arguments(CiCpuEmitter *c, CiText *out, const char *body)
{
    static const char *const parameters[] = {"buffers", "sizes", "scalars", "run", "begin", "end"};
    const CiKernel *kernel = c->kernel;
    for (int k = 0; k < kernel->nbuffers; k++) {
        const CiBuffer *buffer = kernel->buffers[k];
        const char *name = ci_emit_buffer(c->base, buffer);
        bool is_moved = buffer->is_swapped && ci_kernel_tree(kernel);
        if (ci_emit_mentions(body, name))
            ci_text_add(out, "    %s%s *%s%s = buffers[%d];\n",
                        kernel->is_stored[k] ? "" : "const ", ci_emit_storage(buffer->dtype),
                        is_moved ? "" : "restrict const ", name, k);
    }
    CiText late = derived_sizes(c, body);
    for (int k = 0; k < kernel->nsize_args; k++) {
        const char *name = ci_format(c->ctx, "size%d", k);
        if (ci_emit_mentions(body, name) || ci_emit_mentions(late.data, name))
            ci_text_add(out, "    const int64_t %s = sizes[%d];\n", name, k);
    }
    ci_text_add(out, "%s", late.data);
    for (int k = 0; k < c->nhidden; k++)
        ci_text_add(out, "    int64_t hidden%lld = %lld;\n    CI_SETTLED(hidden%lld);\n",
                    (long long)c->hidden[k], (long long)c->hidden[k], (long long)c->hidden[k]);
    CiText head = ci_text_new(c->ctx);
    ci_text_add(&head, "%s%s", out->data, body);
    for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++)
        if (!ci_emit_mentions(head.data, parameters[k]))
            ci_text_add(out, "    (void)%s;\n", parameters[k]);
}

/* A fold in order in a register: where it is made of vectors, their elements are taken out one by
 * one, and what does so shares its port with the folding where vectors are as long as can be. */
static bool
wants_half_vectors(const CiCpuEmitter *c)
{
    const CiKernel *kernel = c->kernel;
    if (c->level != CI_CPU_V4 || !ci_kernel_tree(kernel))
        return false;
    for (int k = 0; k < kernel->nplacements; k++) {
        const CiPlacement *p = &kernel->placements[k];
        if (p->place == CI_PLACE_scalar && ci_dtype_is_float(p->buffer->dtype))
            return true;
    }
    return false;
}

static void
emit_function(CiCpuEmitter *c, CiText *out, CiCpuFunction function)
{
    CiText body = ci_text_new(c->ctx), head = ci_text_new(c->ctx);
    body.indent = 4;
    c->out = &body;
    c->function = function;
    c->nfolds = 0;
    c->nhidden = 0;
    if (ci_kernel_tree(c->kernel))
        emit_tree_units(c);
    else
        emit_units(c);
    declare_arguments(c, &head, body.data);
    if (wants_half_vectors(c))
        ci_text_add(out, "CI_HALF_VECTORS ");
    ci_text_add(out,
                "int32_t\n%s%s(void *const *buffers, const int64_t *sizes, const void *scalars, "
                "int64_t begin, int64_t end, CiRun *run)\n",
                c->kernel->name, function == CI_FUNCTION_finish ? "_finish" : "");
    ci_text_add(out, "{\n%s%s    return 0;\n}\n", head.data, body.data);
}

static const CiProc *
find_proc(const CiCpuEmitter *c, const CiKernel *kernel)
{
    for (int k = 0; k < c->procs->nprocs; k++)
        if (c->procs->procs[k]->kernel == kernel)
            return c->procs->procs[k];
    return NULL;
}

static void
emit_functions(CiCpuEmitter *c, CiText *out, const CiKernel *kernel)
{
    const CiProc *proc = find_proc(c, kernel);
    c->kernel = c->base->kernel = kernel;
    c->tile = kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 0;
    if (proc) {
        ci_c_print_proc(c->printer, out, proc);
        return;
    }
    c->printer->is_plain = false;
    emit_function(c, out, kernel->split_extent ? CI_FUNCTION_part : CI_FUNCTION_whole);
    if (kernel->split_extent) {
        ci_text_add(out, "\n");
        ci_emit_locations(out, kernel);
        emit_function(c, out, CI_FUNCTION_finish);
    }
}

/* Functions of one kernel; none where a kernel before it has the same. */
static void
emit_kernel(CiCpuEmitter *c, CiText *out, const CiKernel *kernel, CiCpuUnit *unit)
{
    CiText own = ci_text_new(c->ctx);

    if (!ci_name_is_safe(kernel->name))
        ci_fail(c->ctx, CI_ERR_INTERNAL, "kernel %d has no safe name", kernel->id);
    emit_functions(c, &own, kernel);
    if (kernel->split_extent && unit)
        unit->partial_bytes[kernel->id] = ci_cpu_partial_bytes(c);
    if (unit) {
        const CiKernel *same = ci_cpu_find_same(c->known, kernel, &own);
        unit->printed[kernel->id] = same ? same : kernel;
        unit->lengths[kernel->id] = same ? 0 : (int64_t)own.length;
        if (same)
            return;
    }
    ci_text_add(out, "\n");
    ci_emit_locations(out, kernel);
    ci_text_add(out, "%s", own.data);
}

static void
emit_kernels(CiCpuEmitter *c, CiText *out, const CiKernels *kernels, CiCpuUnit *unit)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2 && kernel->region; side++)
            if (kernel->inner[side])
                emit_kernels(c, out, kernel->inner[side], unit);
        if (ci_kernel_has_loops(kernel) && (!unit || unit->is_wanted[kernel->id]))
            emit_kernel(c, out, kernel, unit);
    }
}

static void
print_fault_helper(CiText *out, const char *kernels)
{
    if (ci_emit_mentions(kernels, "ci_fault"))
        ci_text_add(
            out,
            "\n__attribute__((noinline, cold)) static int32_t\nci_fault(CiRun *run, int32_t "
            "node)\n{\n    int32_t *const fault = run->fault;\n    if (fault) {\n"
            "        fault[0] = %d;\n        fault[1] = node;\n    }\n    return %d;\n}\n",
            (int)CI_ERR_CHECK, (int)CI_ERR_CHECK);
}

static void
print_index_helpers(CiText *out, const char *kernels)
{
    static const char *const helpers[][2] = {
        {"ci_floordiv",
         "    const int64_t q = a / b;\n    return q - (a % b != 0 && (a < 0) != (b < 0));\n"},
        {"ci_mod",
         "    const int64_t r = a % b;\n    return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"},
    };
    for (size_t k = 0; k < sizeof helpers / sizeof *helpers; k++)
        if (ci_emit_mentions(kernels, helpers[k][0]))
            ci_text_add(out, "\nstatic inline int64_t\n%s(int64_t a, int64_t b)\n{\n%s}\n",
                        helpers[k][0], helpers[k][1]);
}

/* Chains of choices (minima of maxima, a where in a where) stay choices, which are vectors: partial
 * redundancy elimination would make branches of them. */
static void
print_pragma(const CiCpuEmitter *c, CiText *out)
{
    enum { CHAIN = 8 };
    if (c->nchoices >= CHAIN)
        ci_text_add(out, "#ifndef __clang__\n#pragma GCC optimize(\"no-tree-pre\")\n#endif\n");
}

/* They cost nothing but compile time where a compiler does not know them. */
static void
print_macros(CiText *out, const char *helpers, const char *functions)
{
    if (ci_emit_mentions(helpers, "CI_COLD"))
        ci_text_add(out, "#ifdef __clang__\n#define CI_COLD __attribute__((noinline))\n#else\n"
                         "#define CI_COLD __attribute__((noinline, optimize(\"Os\")))\n#endif\n");
    if (ci_emit_mentions(helpers, "CI_INLINE"))
        ci_text_add(out, "#define CI_INLINE static inline __attribute__((always_inline))\n");
    if (ci_emit_mentions(functions, "CI_HALF_VECTORS"))
        ci_text_add(out, "#ifdef __clang__\n#define CI_HALF_VECTORS\n#else\n"
                         "#define CI_HALF_VECTORS "
                         "__attribute__((target(\"prefer-vector-width=256\")))\n#endif\n");
    if (ci_emit_mentions(functions, "CI_SETTLED"))
        ci_text_add(out, "#define CI_SETTLED(v) __asm__(\"\" : \"+r\"(v))\n");
    if (ci_emit_mentions(functions, "CI_NO_VECTOR"))
        ci_text_add(out, "#define CI_NO_VECTOR __asm__(\"\")\n");
}

void
ci_cpu_emit_source(CiText *out, const CiKernels *kernels, const CiOptions *options, CiCpuUnit *unit)
{
    CiCpuEmitter *c = CI_NEW(kernels->loops->ctx, CiCpuEmitter);
    c->base = ci_emitter_new(kernels, &cpu_spelling);
    c->ctx = c->base->ctx;
    c->sym = kernels->loops->sym;
    c->level = ci_cpu_level(options);
    c->known = ci_map_new(c->ctx);
    c->procs = ci_cpu_lower(kernels, options);
    c->printer = ci_c_printer_new(c->ctx, ci_cpu_vector_bytes(c->level));
    c->printer->base = c->base;
    c->printer->sym = c->sym;
    CiText functions = ci_text_new(c->ctx), helpers = ci_text_new(c->ctx);
    emit_kernels(c, &functions, kernels, unit);
    ci_cpu_emit_math_helpers(c, &helpers);
    ci_cpu_emit_fold_helpers(c, &helpers);
    print_pragma(c, out);
    ci_emit_types(out);
    ci_text_add(out, "typedef struct CiRun {\n    void *scratch, *partials, *fault;\n    int32_t "
                     "(*poll)(void *arg);\n"
                     "    void *poll_arg;\n} CiRun;\n");
    print_macros(out, ci_format(c->ctx, "%s%s", c->printer->helpers.data, helpers.data),
                 functions.data);
    print_index_helpers(out, functions.data);
    print_fault_helper(out, functions.data);
    ci_emit_support(c->base, out);
    ci_text_add(out, "%s%s%s", c->printer->helpers.data, helpers.data, functions.data);
    if (unit)
        unit->is_plain = c->printer->is_plain;
}
