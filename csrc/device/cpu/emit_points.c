/* The points of a kernel: loops over outer axes, stages one after another in each point, serial
 * axes in a stage. What lanes do inside is emit_lanes.c's.
 *
 * Invariant: a stage is planned before a line of it is printed. */
#include "device/cpu/emit_cpu.h"

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

/* Another thread may have taken elements out of the mask since it was counted: what nobody filled
 * is 0. */
static void
end_packs(CiCpuEmitter *c, const CiCpuStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiScalar *op = &s->code->values[s->code->results[n]].op;
        if (op->op != CI_OP_pack)
            continue;
        const char *at = op->index->name;
        bool is_complex = ci_dtype_class(op->dtype) == CI_CLASS_complex;
        ci_text_line(c->out, "for (; %s < %s; %s++)", at,
                     ci_emit_index_text(c->base, op->index->limit), at);
        c->out->indent += 4;
        ci_cpu_emit_store(c, s->stage->nests[n]->target, s->stage->nests[n]->store, op->dtype,
                          is_complex ? ci_format(c->ctx, "(%s){0, 0}", ci_emit_type(op->dtype))
                                     : "0");
        c->out->indent -= 4;
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
                          is_inner ? ci_emit_index_text(c->base, s->lane_extent) : "hi");
        return;
    }
    const CiKernelAxis *axis = &s->stage->axes[depth];
    const char *name = axis->var->name;
    ci_text_open(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", name, name,
                 ci_emit_index_text(c->base, axis->extent), name);
    emit_axis(c, s, depth + 1);
    ci_text_close(c->out);
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
    if (depth == 0)
        end_packs(c, s);
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
            ci_text_add(&text, " / (%s)",
                        ci_emit_product_text(c->base, axes + k + 1, count - 1 - k));
        if (k > 0)
            ci_text_add(&text, " %% (%s)", ci_emit_index_text(c->base, axes[k].extent));
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
        ci_text_open(c->out, "for (int64_t %s = first; %s < last; %s++) {", linear, linear, linear);
        if (count > 1)
            decode_axes(c, stage->axes, count, linear);
        ci_cpu_emit_lanes(c, s, "lo", "hi");
    } else if (count == 1) {
        ci_cpu_emit_lanes(c, s, "first", "last");
        return;
    } else {
        ci_text_line(c->out, "const int64_t width = %s;",
                     ci_emit_index_text(c->base, stage->axes[count - 1].extent));
        ci_text_open(c->out, "for (int64_t e = first / width; e * width < last; e++) {");
        ci_text_line(c->out, "const int64_t from = first > e * width ? first - e * width : 0;");
        ci_text_line(c->out,
                     "const int64_t to = last - e * width < width ? last - e * width : width;");
        decode_axes(c, stage->axes, count - 1, "e");
        ci_cpu_emit_lanes(c, s, "from", "to");
    }
    ci_text_close(c->out);
}

static CiLanes
lanes_of_stage(const CiCpuEmitter *c, const CiStage *stage, bool is_flat)
{
    if (c->tile)
        return is_flat ? CI_LANES_flat : CI_LANES_tile;
    return stage->naxes ? CI_LANES_inner : CI_LANES_none;
}

/* The first stage of a split kernel, which its chunks compute, and where each of its folds lies in
 * what a chunk leaves. */
static CiCpuStage *
plan_split(CiCpuEmitter *c, int *partial_bytes)
{
    const CiStage *stage = &c->kernel->stages[0];
    CiCpuStage *s = ci_cpu_plan_stage(c, stage, lanes_of_stage(c, stage, false));
    int offset = 0;
    for (int k = 0; k < s->nfolds; k++) {
        s->folds[k].partial_offset = offset;
        offset += ci_cpu_partial_size(c, &s->folds[k]);
    }
    *partial_bytes = (offset + 63) / 64 * 64;
    return s;
}

/* The chunk function of a split kernel: its first stage, to partials. */
static void
emit_part(CiCpuEmitter *c)
{
    int partial_bytes;
    CiCpuStage *s = plan_split(c, &partial_bytes);
    ci_text_line(c->out, "char *const partial = (char *)run->partials + unit * %d;", partial_bytes);
    ci_text_line(c->out, "const int64_t first = unit %% chunks * %s;",
                 ci_emit_index_text(c->base, c->kernel->split_extent));
    ci_text_line(c->out, "const int64_t last = first + %s < length ? first + %s : length;",
                 ci_emit_index_text(c->base, c->kernel->split_extent),
                 ci_emit_index_text(c->base, c->kernel->split_extent));
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
    int stride;
    CiCpuStage *s = plan_split(c, &stride);
    ci_text_line(c->out, "const int64_t stride = %d;", stride);
    ci_text_line(
        c->out,
        "const char *const partials = (const char *)run->partials + unit * chunks * stride;");
    for (int k = 0; k < s->nfolds; k++) {
        ci_text_open(c->out, "{");
        ci_cpu_emit_fold_merge(c, s, &s->folds[k]);
        ci_text_close(c->out);
    }
}

int
ci_cpu_partial_bytes(CiCpuEmitter *c)
{
    int bytes;
    plan_split(c, &bytes);
    return bytes;
}

void
ci_cpu_emit_stages(CiCpuEmitter *c, int from, int to, bool is_flat)
{
    for (int k = from; k < to; k++) {
        const CiStage *stage = &c->kernel->stages[k];
        CiCpuStage *s = ci_cpu_plan_stage(c, stage, lanes_of_stage(c, stage, is_flat));
        if (c->kernel->nstages > 1)
            ci_text_open(c->out, "{");
        emit_axis(c, s, 0);
        if (c->kernel->nstages > 1)
            ci_text_close(c->out);
    }
}

/* The case of rows of low to high elements, after another. */
static void
emit_row_case(CiCpuEmitter *c, void (*emit)(CiCpuEmitter *c), int low, int high)
{
    const CiExpr *more = ci_expr_index(c->sym, "more", ci_expr_const(c->sym, high - low + 1));
    const char *length = ci_emit_index_text(c->base, c->row);
    c->out->indent -= 4;
    ci_text_open(c->out, "} else if (%s <= %d) {", length, high);
    ci_text_line(c->out, "int64_t more = %s - %d;", length, low);
    ci_text_line(c->out, "CI_SETTLED(more);");
    c->row_here = ci_expr_add(c->sym, more, ci_expr_const(c->sym, low));
    emit(c);
}

/* A row of a chunk, or of less, is straight code, and the less the shorter. Which it is is asked
 * once for many rows, for one is a few cycles. Compilers are told which rows are short of time:
 * else they put masks and sums of all cases into registers first. */
void
ci_cpu_emit_row_cases(CiCpuEmitter *c, void (*emit)(CiCpuEmitter *c))
{
    enum { NARROW = 16 };
    int lanes, least = c->is_long ? (int)c->kernel->short_row + 1 : 1;
    const CiExpr *row = ci_cpu_row_length(c, &lanes);
    if (!row || least > lanes) {
        emit(c);
        return;
    }
    const char *length = ci_emit_index_text(c->base, row);
    c->row = row;
    ci_text_open(c->out, "if (__builtin_expect((uint64_t)(%s) - 1 < %d, 1)) {", length, lanes);
    ci_text_open(c->out, "if (%s == %d) {", length, lanes);
    c->row_here = ci_expr_const(c->sym, lanes);
    emit(c);
    if (c->is_long && least <= NARROW && lanes > NARROW) {
        emit_row_case(c, emit, least, NARROW);
        least = NARROW + 1;
    }
    emit_row_case(c, emit, least, lanes - 1);
    ci_text_close(c->out);
    c->row = NULL;
    c->out->indent -= 4;
    ci_text_open(c->out, "} else {");
    emit(c);
    ci_text_close(c->out);
}

/* ---- points ---- */

static bool
has_registers_only(const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nplacements; k++)
        if (kernel->placements[k].place != CI_PLACE_register &&
            kernel->placements[k].place != CI_PLACE_scalar)
            return false;
    return true;
}

bool
ci_cpu_is_flat(const CiKernel *kernel)
{
    return kernel->lanes_on_outer && kernel->nstages == 1 && kernel->stages[0].naxes == 0 &&
           has_registers_only(kernel);
}

static void
emit_point(CiCpuEmitter *c)
{
    if (c->function == CI_FUNCTION_part) {
        emit_part(c);
        return;
    }
    if (c->function == CI_FUNCTION_finish)
        emit_merges(c);
    ci_cpu_emit_stages(c, c->function == CI_FUNCTION_finish, c->kernel->nstages, false);
}

void
ci_cpu_emit_points(CiCpuEmitter *c, int axis)
{
    const CiKernel *kernel = c->kernel;
    if (axis == kernel->nouter) {
        emit_point(c);
        return;
    }
    const char *name = kernel->outer[axis].var->name,
               *extent = ci_emit_index_text(c->base, kernel->outer[axis].extent);
    bool is_last = axis == kernel->nouter - 1;
    if (c->is_tree && is_last && ci_cpu_is_flat(kernel)) {
        ci_cpu_emit_lanes(c, ci_cpu_plan_stage(c, &kernel->stages[0], CI_LANES_flat), "0", extent);
        return;
    }
    if (c->tile && is_last) {
        ci_text_open(c->out, "for (int64_t lo = 0; lo < %s; lo += %d) {", extent, c->tile);
        ci_text_line(c->out, "const int64_t m = %s - lo < %d ? %s - lo : %d;", extent, c->tile,
                     extent, c->tile);
    } else {
        ci_text_open(c->out, "for (int64_t %s = 0; %s < %s; %s++) {", name, name, extent, name);
    }
    ci_cpu_emit_points(c, axis + 1);
    ci_text_close(c->out);
}
