/* A kernel as a C function: units, outer axes, stages, serial axes. What lanes do inside is
 * emit_lanes.c's.
 *
 * Invariant: a function's body is printed before its head, so that the head declares exactly the
 * names the body mentions. */
#include "device/cpu/emit_cpu.h"

#include <string.h>

typedef enum FunctionKind { FUNCTION_whole, FUNCTION_part, FUNCTION_finish } FunctionKind;

static const CiSpelling cpu_spelling = {
    .function = "static inline", .builtin = "__builtin_", .style = CI_STYLE_c};

const char *
ci_cpu_index_text(CiCpuEmitter *c, const CiExpr *e)
{
    return ci_emit_index_text(c->base, e);
}

const char *
ci_cpu_product_text(CiCpuEmitter *c, const CiKernelAxis *axes, int count)
{
    const CiExpr *product = ci_expr_const(c->sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(c->sym, product, axes[k].extent);
    return ci_cpu_index_text(c, product);
}

/* ---- stages ---- */

static bool
starts_at(const CiCpuStage *s, const CiNest *nest, int depth)
{
    return ci_nest_is_scan(nest) && depth == s->stage->naxes - 1;
}

static void
start_scans(CiCpuEmitter *c, const CiCpuStage *s, int depth)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (!starts_at(s, nest, depth))
            continue;
        const char *type = ci_emit_type(s->code->values[s->code->results[n]].op.dtype);
        bool is_complex =
            ci_dtype_class(s->code->values[s->code->results[n]].op.dtype) == CI_CLASS_complex;
        if (c->tile)
            ci_text_line(c->out, "%s scan%d[%d] = {%s};", type, n, c->tile,
                         is_complex ? "{0, 0}" : "0");
        else
            ci_text_line(c->out, "%s scan%d = %s;", type, n, is_complex ? "{0, 0}" : "0");
    }
}

/* What has been packed so far. */
static void
start_packs(CiCpuEmitter *c, const CiCpuStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiScalar *op = &s->code->values[s->code->results[n]].op;
        if (op->op == CI_OP_pack)
            ci_text_line(c->out, "int64_t %s = 0;", op->index->name);
    }
}

static void emit_axis(CiCpuEmitter *c, CiCpuStage *s, int depth);

static void
emit_inside(CiCpuEmitter *c, CiCpuStage *s, int depth)
{
    int nserial = s->stage->naxes - (s->lanes == CI_LANES_inner);
    if (depth == nserial) {
        bool is_inner = s->lanes == CI_LANES_inner;
        ci_cpu_emit_lanes(c, s, is_inner ? "0" : "lo",
                          is_inner ? ci_cpu_index_text(c, s->lane_extent) : "hi");
        return;
    }
    const CiKernelAxis *axis = &s->stage->axes[depth];
    const char *name = axis->var->name;
    ci_text_line(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", name, name,
                 ci_cpu_index_text(c, axis->extent), name);
    c->out->indent += 4;
    emit_axis(c, s, depth + 1);
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

static void
emit_axis(CiCpuEmitter *c, CiCpuStage *s, int depth)
{
    for (int k = 0; k < s->nfolds; k++)
        if (s->folds[k].depth == depth)
            ci_cpu_emit_fold_start(c, s, &s->folds[k]);
    start_scans(c, s, depth);
    if (depth == 0)
        start_packs(c, s);
    emit_inside(c, s, depth);
    for (int k = 0; k < s->nfolds; k++)
        if (s->folds[k].depth == depth)
            ci_cpu_emit_fold_end(c, s, &s->folds[k]);
}

/* Names of the serial axes from a linear counter, fastest last. */
static void
decode_axes(CiCpuEmitter *c, const CiKernelAxis *axes, int count, const char *linear)
{
    for (int k = 0; k < count; k++) {
        CiText text = ci_text_new(c->ctx);
        ci_text_add(&text, "%s", linear);
        if (k < count - 1)
            ci_text_add(&text, " / (%s)", ci_cpu_product_text(c, axes + k + 1, count - 1 - k));
        if (k > 0)
            ci_text_add(&text, " %% (%s)", ci_cpu_index_text(c, axes[k].extent));
        ci_text_line(c->out, "const int64_t %s = %s;", axes[k].var->name, text.data);
        ci_text_line(c->out, "(void)%s;", axes[k].var->name);
    }
}

/* Elements [first, last) of the fold's domain; all inner axes are reduced. */
static void
emit_chunk_loops(CiCpuEmitter *c, CiCpuStage *s)
{
    const CiStage *stage = s->stage;
    int count = stage->naxes;
    const char *last = stage->axes[count - 1].var->name;
    if (c->tile) {
        const char *linear = count == 1 ? last : "e";
        ci_text_line(c->out, "for (int64_t %s = first; %s < last; %s++) {", linear, linear, linear);
        c->out->indent += 4;
        if (count > 1)
            decode_axes(c, stage->axes, count, linear);
        ci_cpu_emit_lanes(c, s, "lo", "hi");
    } else if (count == 1) {
        ci_cpu_emit_lanes(c, s, "first", "last");
        return;
    } else {
        ci_text_line(c->out, "const int64_t width = %s;",
                     ci_cpu_index_text(c, stage->axes[count - 1].extent));
        ci_text_line(c->out, "for (int64_t e = first / width; e * width < last; e++) {");
        c->out->indent += 4;
        ci_text_line(c->out, "const int64_t from = first > e * width ? first - e * width : 0;");
        ci_text_line(c->out,
                     "const int64_t to = last - e * width < width ? last - e * width : width;");
        decode_axes(c, stage->axes, count - 1, "e");
        ci_cpu_emit_lanes(c, s, "from", "to");
    }
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

static int
place_partials(const CiCpuEmitter *c, CiCpuStage *s)
{
    int offset = 0;
    for (int k = 0; k < s->nfolds; k++) {
        s->folds[k].partial_offset = offset;
        offset += ci_cpu_partial_size(c, &s->folds[k]);
    }
    return (offset + 63) / 64 * 64;
}

static CiLanes
lanes_of_stage(const CiCpuEmitter *c, const CiStage *stage, bool is_flat)
{
    if (c->tile)
        return is_flat ? CI_LANES_flat : CI_LANES_tile;
    return stage->naxes ? CI_LANES_inner : CI_LANES_none;
}

static void
open_scope(CiCpuEmitter *c)
{
    ci_text_line(c->out, "{");
    c->out->indent += 4;
}

static void
close_scope(CiCpuEmitter *c)
{
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

/* The chunk function of a split kernel: its first stage, to partials. */
static void
emit_part(CiCpuEmitter *c, int *partial_bytes)
{
    CiCpuStage *s = ci_cpu_plan_stage(c, &c->kernel->stages[0],
                                      lanes_of_stage(c, &c->kernel->stages[0], false));
    *partial_bytes = place_partials(c, s);
    ci_text_line(c->out, "char *const partial = (char *)run->partials + unit * %d;",
                 *partial_bytes);
    ci_text_line(c->out, "const int64_t first = unit %% chunks * %s;",
                 ci_cpu_index_text(c, c->kernel->split_extent));
    ci_text_line(c->out, "const int64_t last = first + %s < length ? first + %s : length;",
                 ci_cpu_index_text(c, c->kernel->split_extent),
                 ci_cpu_index_text(c, c->kernel->split_extent));
    for (int k = 0; k < s->nfolds; k++)
        ci_cpu_emit_fold_start(c, s, &s->folds[k]);
    emit_chunk_loops(c, s);
    for (int k = 0; k < s->nfolds; k++)
        ci_cpu_emit_fold_end(c, s, &s->folds[k]);
}

/* Folds of a split kernel's first stage, from what its chunks left. */
static void
emit_merges(CiCpuEmitter *c)
{
    CiCpuStage *s = ci_cpu_plan_stage(c, &c->kernel->stages[0],
                                      lanes_of_stage(c, &c->kernel->stages[0], false));
    int stride = place_partials(c, s);
    ci_text_line(c->out, "const int64_t stride = %d;", stride);
    ci_text_line(
        c->out,
        "const char *const partials = (const char *)run->partials + unit * chunks * stride;");
    for (int k = 0; k < s->nfolds; k++) {
        open_scope(c);
        ci_cpu_emit_fold_merge(c, s, &s->folds[k]);
        close_scope(c);
    }
}

void
ci_cpu_emit_stages(CiCpuEmitter *c, int from, int to, bool is_flat)
{
    for (int k = from; k < to; k++) {
        const CiStage *stage = &c->kernel->stages[k];
        CiCpuStage *s = ci_cpu_plan_stage(c, stage, lanes_of_stage(c, stage, is_flat));
        if (c->kernel->nstages > 1)
            open_scope(c);
        emit_axis(c, s, 0);
        if (c->kernel->nstages > 1)
            close_scope(c);
    }
}

/* ---- units ---- */

/* Rows and locals that the unit's text mentions. */
void
ci_cpu_declare_placements(CiCpuEmitter *c, const char *body)
{
    for (int k = 0; k < c->kernel->nplacements; k++) {
        const CiPlacement *p = &c->kernel->placements[k];
        const char *name = ci_emit_buffer(c->base, p->buffer);
        const char *full =
            ci_format(c->ctx, p->place == CI_PLACE_row ? "row_%s" : "local_%s", name);
        if (!ci_emit_mentions(body, full))
            continue;
        const char *storage = ci_emit_storage(p->buffer->dtype),
                   *type = ci_emit_type(p->buffer->dtype);
        bool is_complex = ci_dtype_class(p->buffer->dtype) == CI_CLASS_complex;
        if (p->place == CI_PLACE_scalar)
            continue;
        if (p->place == CI_PLACE_row)
            ci_text_line(c->out, "%s *const %s = (%s *)((char *)run->scratch + %s);", storage, full,
                         storage, ci_cpu_index_text(c, p->scratch_offset));
        else if (c->tile || c->batch)
            ci_text_line(c->out, "%s %s[%d] __attribute__((aligned(64)));", type, full,
                         c->tile ? c->tile : c->batch);
        else
            ci_text_line(c->out, "%s %s = %s;", type, full, is_complex ? "{0, 0}" : "0");
    }
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
            is_tile ? "tiles"
                    : ci_format(c->ctx, "(%s)", ci_cpu_index_text(c, kernel->outer[k].extent));
        if (k > 0)
            ci_text_add(&text, " %% %s", extent);
        ci_text_add(&after, after.length ? " * %s" : "%s", extent);
        if (is_tile) {
            const char *n = ci_cpu_index_text(c, kernel->outer[k].extent);
            ci_text_line(c->out, "const int64_t lo = %s * %d;", text.data, c->tile);
            if (ci_emit_mentions(body, "m"))
                ci_text_line(c->out, "const int64_t m = %s - lo < %d ? %s - lo : %d;", n, c->tile,
                             n, c->tile);
        } else if (ci_emit_mentions(body, kernel->outer[k].var->name)) {
            ci_text_line(c->out, "const int64_t %s = %s;", kernel->outer[k].var->name, text.data);
        }
    }
}

static bool
has_registers_only(const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].place != CI_PLACE_register &&
            kernel->placements[k].place != CI_PLACE_scalar)
            return false;
    return true;
}

/* A leaf with nothing but one loop over lanes: the last outer axis is that loop. */
static bool
is_flat_leaf(const CiKernel *kernel)
{
    return kernel->lanes_on_outer && kernel->nstages == 1 && kernel->stages[0].naxes == 0 &&
           has_registers_only(kernel);
}

/* Outer axes that are not collapsed are loops around the stages. */
static void
emit_serial_outer(CiCpuEmitter *c, int k, FunctionKind kind)
{
    const CiKernel *kernel = c->kernel;
    if (k == kernel->nouter) {
        int ignored;
        if (kind == FUNCTION_part)
            emit_part(c, &ignored);
        if (kind == FUNCTION_finish)
            emit_merges(c);
        if (kind != FUNCTION_part)
            ci_cpu_emit_stages(c, kind == FUNCTION_finish, kernel->nstages, false);
        return;
    }
    const char *name = kernel->outer[k].var->name,
               *extent = ci_cpu_index_text(c, kernel->outer[k].extent);
    if (c->is_tree && k == kernel->nouter - 1 && is_flat_leaf(kernel)) {
        ci_cpu_emit_lanes(c, ci_cpu_plan_stage(c, &kernel->stages[0], CI_LANES_flat), "0", extent);
        return;
    }
    if (c->tile && k == kernel->nouter - 1) {
        ci_text_line(c->out, "for (int64_t lo = 0; lo < %s; lo += %d) {", extent, c->tile);
        ci_text_line(c->out, "    const int64_t m = %s - lo < %d ? %s - lo : %d;", extent, c->tile,
                     extent, c->tile);
    } else {
        ci_text_line(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", name, name, extent, name);
    }
    c->out->indent += 4;
    emit_serial_outer(c, k + 1, kind);
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

static void
emit_units(CiCpuEmitter *c, FunctionKind kind)
{
    int batched = ci_cpu_first_batched_stage(c->kernel);
    if (batched < c->kernel->nstages) {
        ci_cpu_emit_batches(c, batched);
        return;
    }
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = saved->indent + 4;
    c->out = &body;
    emit_serial_outer(c, c->kernel->nparallel, kind);
    c->out = saved;
    ci_text_line(c->out, "for (int64_t unit = begin; unit < end; unit++) {");
    c->out->indent += 4;
    declare_outer(c, kind == FUNCTION_part ? "unit / chunks" : "unit", body.data);
    ci_cpu_declare_placements(c, body.data);
    ci_text_add(c->out, "%s", body.data);
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

void
ci_cpu_emit_points(CiCpuEmitter *c)
{
    emit_serial_outer(c, 0, FUNCTION_whole);
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
    ci_text_line(c->out, "for (int64_t %s = begin; %s < end; %s++) {", var, var, var);
    c->out->indent += 4;
    ci_cpu_emit_tree(c);
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

/* Nothing but one loop over lanes: a run of tiles is one loop. */
static bool
is_flat(const CiKernel *kernel)
{
    return kernel->lanes_on_outer && !kernel->split_extent && kernel->nstages == 1 &&
           kernel->stages[0].naxes == 0 && kernel->nparallel == kernel->nouter &&
           has_registers_only(kernel);
}

static void
emit_flat(CiCpuEmitter *c)
{
    const CiKernel *kernel = c->kernel;
    const char *n = ci_cpu_index_text(c, kernel->outer[kernel->nouter - 1].extent);
    if (kernel->nouter == 1) {
        ci_text_line(c->out, "const int64_t lo = begin * %d, hi = end * %d < %s ? end * %d : %s;",
                     c->tile, c->tile, n, c->tile, n);
        ci_cpu_emit_stages(c, 0, 1, true);
        return;
    }
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = saved->indent + 4;
    c->out = &body;
    ci_cpu_emit_stages(c, 0, 1, true);
    c->out = saved;
    ci_text_line(c->out, "for (int64_t unit = begin, next; unit < end; unit = next) {");
    c->out->indent += 4;
    declare_outer(c, "unit", body.data);
    ci_text_line(c->out,
                 "next = (unit / tiles + 1) * tiles < end ? (unit / tiles + 1) * tiles : end;");
    ci_text_line(c->out,
                 "const int64_t stop = lo + (next - unit) * %d, hi = stop < %s ? stop : %s;",
                 c->tile, n, n);
    ci_text_add(c->out, "%s", body.data);
    c->out->indent -= 4;
    ci_text_line(c->out, "}");
}

/* ---- functions ---- */

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
    CiText late = ci_text_new(c->ctx);
    if (ci_emit_mentions(body, "tiles")) {
        const char *n = ci_cpu_index_text(c, kernel->outer[kernel->nouter - 1].extent);
        ci_text_add(&late, "    const int64_t tiles = (%s + %d) / %d;\n", n, c->tile - 1, c->tile);
    }
    if (ci_emit_mentions(body, "chunks")) {
        const char *split = ci_cpu_index_text(c, kernel->split_extent);
        ci_text_add(&late, "    const int64_t length = %s;\n",
                    ci_cpu_product_text(c, kernel->stages[0].axes, kernel->stages[0].naxes));
        ci_text_add(&late, "    const int64_t chunks = (length + %s - 1) / %s;\n", split, split);
    }
    for (int k = 0; k < kernel->nsize_args; k++) {
        const char *name = ci_format(c->ctx, "size%d", k);
        if (ci_emit_mentions(body, name) || ci_emit_mentions(late.data, name))
            ci_text_add(out, "    const int64_t %s = sizes[%d];\n", name, k);
    }
    ci_text_add(out, "%s", late.data);
    CiText head = ci_text_new(c->ctx);
    ci_text_add(&head, "%s%s", out->data, body);
    for (size_t k = 0; k < sizeof parameters / sizeof *parameters; k++)
        if (!ci_emit_mentions(head.data, parameters[k]))
            ci_text_add(out, "    (void)%s;\n", parameters[k]);
}

static void
emit_function(CiCpuEmitter *c, CiText *out, FunctionKind kind)
{
    CiText body = ci_text_new(c->ctx), head = ci_text_new(c->ctx);
    body.indent = 4;
    c->out = &body;
    c->is_split_part = kind == FUNCTION_part;
    c->nfolds = 0;
    if (ci_kernel_tree(c->kernel))
        emit_tree_units(c);
    else if (is_flat(c->kernel))
        emit_flat(c);
    else
        emit_units(c, kind);
    declare_arguments(c, &head, body.data);
    ci_text_add(out, "\n");
    ci_emit_locations(out, c->kernel);
    ci_text_add(out,
                "int32_t\n%s%s(void *const *buffers, const int64_t *sizes, const void *scalars, "
                "int64_t begin, int64_t end, CiRun *run)\n",
                c->kernel->name, kind == FUNCTION_finish ? "_finish" : "");
    ci_text_add(out, "{\n%s%s    return 0;\n}\n", head.data, body.data);
}

static int64_t
find_partial_bytes(CiCpuEmitter *c)
{
    CiCpuStage *s = ci_cpu_plan_stage(c, &c->kernel->stages[0],
                                      lanes_of_stage(c, &c->kernel->stages[0], false));
    return place_partials(c, s);
}

static void
emit_kernels(CiCpuEmitter *c, CiText *out, const CiKernels *kernels, const bool *is_wanted,
             int64_t *partial_bytes)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2 && kernel->region; side++)
            if (kernel->inner[side])
                emit_kernels(c, out, kernel->inner[side], is_wanted, partial_bytes);
        if (!ci_kernel_has_loops(kernel) || (is_wanted && !is_wanted[kernel->id]))
            continue;
        c->kernel = c->base->kernel = kernel;
        c->tile = kernel->lanes_on_outer ? kernel->outer[kernel->nouter - 1].factor : 0;
        if (!ci_name_is_safe(kernel->name))
            ci_fail(c->ctx, CI_ERR_INTERNAL, "kernel %d has no safe name", kernel->id);
        emit_function(c, out, kernel->split_extent ? FUNCTION_part : FUNCTION_whole);
        if (kernel->split_extent)
            emit_function(c, out, FUNCTION_finish);
        if (kernel->split_extent && partial_bytes)
            partial_bytes[kernel->id] = find_partial_bytes(c);
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

/* Both cost nothing but compile time where a compiler does not know them. */
static void
print_macros(CiText *out, const char *helpers, const char *functions)
{
    if (ci_emit_mentions(helpers, "CI_COLD"))
        ci_text_add(out, "#ifdef __clang__\n#define CI_COLD __attribute__((noinline))\n#else\n"
                         "#define CI_COLD __attribute__((noinline, optimize(\"Os\")))\n#endif\n");
    if (ci_emit_mentions(functions, "CI_SETTLED"))
        ci_text_add(out, "#define CI_SETTLED(v) __asm__(\"\" : \"+r\"(v))\n");
    if (ci_emit_mentions(functions, "CI_NO_VECTOR"))
        ci_text_add(out, "#define CI_NO_VECTOR __asm__(\"\")\n");
}

void
ci_cpu_emit_source(CiText *out, const CiKernels *kernels, const CiOptions *options,
                   const bool *is_wanted, int64_t *partial_bytes)
{
    CiCpuEmitter *c = CI_NEW(kernels->loops->ctx, CiCpuEmitter);
    c->base = ci_emitter_new(kernels, &cpu_spelling);
    c->ctx = c->base->ctx;
    c->sym = kernels->loops->sym;
    c->level = ci_cpu_level(options);
    CiText functions = ci_text_new(c->ctx), helpers = ci_text_new(c->ctx);
    emit_kernels(c, &functions, kernels, is_wanted, partial_bytes);
    ci_cpu_emit_math_helpers(c, &helpers);
    ci_cpu_emit_fold_helpers(c, &helpers);
    ci_emit_types(out);
    ci_text_add(out, "typedef struct CiRun {\n    void *scratch, *partials, *fault;\n    int32_t "
                     "(*poll)(void *arg);\n"
                     "    void *poll_arg;\n} CiRun;\n");
    print_macros(out, helpers.data, functions.data);
    print_index_helpers(out, functions.data);
    print_fault_helper(out, functions.data);
    ci_emit_support(c->base, out);
    ci_text_add(out, "%s%s", helpers.data, functions.data);
}
