/* Runs of points as lanes.
 *
 * Batches: a kernel whose stages end in one value per point, with mathematics on it, runs its
 * points 64 at a time: first the stages with axes, point by point, then the last stages with the
 * points as lanes. So a call of vector mathematics is never made for one value.
 *
 * Invariant: a stage that is put off this way reads locals and memory of its own point alone. */
#include "device/cpu/emit_cpu.h"

static bool
has_math(const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++)
        for (int k = 0; k < stage->nests[n]->body.nops; k++)
            if (ci_op_kind(stage->nests[n]->body.ops[k].op) == CI_OPKIND_math)
                return true;
    return false;
}

static bool
touches_rows(const CiKernel *kernel, const CiStage *stage)
{
    for (int n = 0; n < stage->nnests; n++) {
        const CiBody *body = &stage->nests[n]->body;
        const CiPlacement *target = ci_kernel_find_placement(kernel, stage->nests[n]->target);
        if (target && target->place == CI_PLACE_row)
            return true;
        for (int k = 0; k < body->nops; k++) {
            const CiPlacement *p = body->ops[k].op == CI_OP_load
                                       ? ci_kernel_find_placement(kernel, body->ops[k].buffer)
                                       : NULL;
            if (p && p->place == CI_PLACE_row)
                return true;
        }
    }
    return false;
}

/* The first of the stages without axes at the end, when they are worth a batch; else the number of
 * stages. */
int
ci_cpu_first_batched_stage(const CiKernel *kernel)
{
    int first = kernel->nstages;
    bool is_worth = false;
    if (kernel->lanes_on_outer || kernel->split_extent || kernel->nouter == 0 ||
        kernel->nparallel != kernel->nouter)
        return first;
    while (first > 0 && kernel->stages[first - 1].naxes == 0 &&
           !touches_rows(kernel, &kernel->stages[first - 1]))
        is_worth |= has_math(&kernel->stages[--first]);
    return is_worth && first > 0 ? first : kernel->nstages;
}

/* The stages with axes, point by point. */
static void
emit_batched_points(CiCpuEmitter *c)
{
    const char *last = c->kernel->outer[c->kernel->nouter - 1].var->name;
    CiText points = ci_text_new(c->ctx), *saved = c->out;
    points.indent = saved->indent + 4;
    c->out = &points;
    ci_cpu_emit_stages(c, 0, ci_cpu_first_batched_stage(c->kernel), false);
    c->out = saved;
    ci_text_line(c->out, "for (int64_t p = 0; p < m; p++) {");
    if (ci_emit_mentions(points.data, last))
        ci_text_line(c->out, "    const int64_t %s = lo + p;", last);
    ci_text_add(c->out, "%s", points.data);
    ci_text_line(c->out, "}");
}

/* Units in runs of at most as many lanes as a tile has, which no two rows of the last outer axis
 * share. The body was printed one level deeper. */
static void
emit_runs(CiCpuEmitter *c, const char *body)
{
    const CiKernel *kernel = c->kernel;
    const char *n = ci_emit_index_text(c->base, kernel->outer[kernel->nouter - 1].extent);
    ci_text_open(c->out, "for (int64_t unit = begin, m; unit < end; unit += m) {");
    ci_text_line(
        c->out,
        "const int64_t lo = unit %% (%s), rest = %s - lo < end - unit ? %s - lo : end - unit;", n,
        n, n);
    ci_text_line(c->out, "m = rest < %d ? rest : %d;", CI_STAGE_TILE, CI_STAGE_TILE);
    for (int k = 0; k < kernel->nouter - 1; k++) {
        const char *divisor =
            ci_emit_product_text(c->base, kernel->outer + k + 1, kernel->nouter - 1 - k);
        const char *wrapped =
            k ? ci_format(c->ctx, " %% (%s)", ci_emit_index_text(c->base, kernel->outer[k].extent))
              : "";
        if (ci_emit_mentions(body, kernel->outer[k].var->name))
            ci_text_line(c->out, "const int64_t %s = unit / (%s)%s;", kernel->outer[k].var->name,
                         divisor, wrapped);
    }
    ci_cpu_declare_placements(c, body);
    ci_text_add(c->out, "%s", body);
    ci_text_close(c->out);
}

void
ci_cpu_emit_batches(CiCpuEmitter *c, int first)
{
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    c->batch = CI_STAGE_TILE;
    body.indent = saved->indent + 4;
    c->out = &body;
    ci_cpu_emit_row_cases(c, emit_batched_points);
    c->tile = CI_STAGE_TILE;
    ci_cpu_emit_stages(c, first, c->kernel->nstages, false);
    c->tile = 0;
    c->out = saved;
    emit_runs(c, body.data);
    c->batch = 0;
}

void
ci_cpu_emit_short_rows(CiCpuEmitter *c)
{
    const CiExpr *rest = ci_expr_index(c->sym, "rest", ci_expr_const(c->sym, c->kernel->short_row));
    CiText body = ci_text_new(c->ctx), *saved = c->out;
    body.indent = saved->indent + 4;
    c->row = c->kernel->row;
    c->row_here = ci_expr_add(c->sym, rest, ci_expr_const(c->sym, 1));
    c->is_short = true;
    c->tile = CI_STAGE_TILE;
    c->out = &body;
    ci_cpu_emit_stages(c, 0, c->kernel->nstages, false);
    c->out = saved;
    emit_runs(c, body.data);
    c->tile = 0;
    c->is_short = false;
    c->row = NULL;
}
