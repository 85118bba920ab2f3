/* The axes of a kernel: neighbours are merged where every index allows it. */
#include "analysis/labels.h"
#include "schedule/plan.h"

static bool
can_merge_index(CiScheduler *s, const CiExpr *index, const CiExpr *outer, const CiExpr *inner,
                const CiExpr *extent)
{
    const CiExpr *c1, *c2, *rest;
    if (!ci_expr_split_linear(s->sym, index, outer, &c1, &rest) ||
        !ci_expr_split_linear(s->sym, rest, inner, &c2, &rest))
        return false;
    return c1 == ci_expr_mul(s->sym, c2, extent);
}

bool
ci_can_merge_axes(CiScheduler *s, const CiNest *nest, const CiExpr *outer,
                  const CiExpr *inner, const CiExpr *extent)
{
    if (!can_merge_index(s, nest->store, outer, inner, extent))
        return false;
    for (int k = 0; k < nest->body.nops; k++) {
        const CiScalar *op = &nest->body.ops[k];
        if (op->index && !can_merge_index(s, op->index, outer, inner, extent))
            return false;
    }
    return true;
}

/* Axes at positions k and k + 1 of the nest become one with variable var. */
void
ci_merge_axes(CiScheduler *s, CiNest *nest, int k, const CiExpr *var, const CiExpr *extent)
{
    const CiExpr *from[2] = {nest->axes[k].var, nest->axes[k + 1].var};
    const CiExpr *to[2] = {ci_expr_const(s->sym, 0), var};
    ci_nest_substitute(s->ctx, s->sym, nest, 2, from, to);
    nest->axes[k] = (CiAxis){.kind = nest->axes[k].kind, .var = var, .extent = extent};
    for (int a = k + 1; a + 1 < nest->naxes; a++)
        nest->axes[a] = nest->axes[a + 1];
    nest->naxes--;
    if (k >= nest->naxes - nest->order.ninner)
        nest->order.ninner--;
    if (k >= nest->naxes - nest->order.nalone)
        nest->order.nalone--;
    if (k < nest->npoint)
        nest->npoint--;
}

static void
drop_axis(CiKernelAxis *axes, int *count, int k, const CiExpr *var, const CiExpr *extent)
{
    axes[k].var = var;
    axes[k].extent = extent;
    for (int a = k + 1; a + 1 < *count; a++)
        axes[a] = axes[a + 1];
    (*count)--;
}

static bool
try_merge_outer(CiScheduler *s, CiKernel *kernel, int k)
{
    CiKernelAxis a = kernel->outer[k], b = kernel->outer[k + 1];
    CiNestAt at = CI_BEFORE_NESTS;
    for (const CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        if (!ci_can_merge_axes(s, nest, a.var, b.var, b.extent))
            return false;
    const CiExpr *extent = ci_expr_mul(s->sym, a.extent, b.extent);
    const CiExpr *var = ci_expr_index(s->sym, ci_format(s->ctx, "i%d", k), extent);
    at = CI_BEFORE_NESTS;
    for (CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        ci_merge_axes(s, nest, k, var, extent);
    drop_axis(kernel->outer, &kernel->nouter, k, var, extent);
    return true;
}

/* A pairwise fold's blocks begin there: elements of the axis before are no neighbours of theirs. */
static bool
divides_block(const CiNest *nest, int position)
{
    return nest->order.kind == CI_FOLD_pairwise && position < nest->naxes &&
           (position == nest->naxes - nest->order.ninner ||
            position == nest->naxes - nest->order.nalone);
}

static bool
try_merge_inner(CiScheduler *s, CiKernel *kernel, CiStage *stage, int k)
{
    CiKernelAxis a = stage->axes[k], b = stage->axes[k + 1];
    int position = kernel->nouter + k;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        bool is_mixed = position < nest->npoint && position + 1 >= nest->npoint;
        bool is_scan = nest->fold != CI_OP_none && ci_op_kind(nest->fold) == CI_OPKIND_scan;
        bool is_ordered = position >= nest->npoint && divides_block(nest, position + 1);
        if (is_mixed || is_scan || is_ordered || !ci_can_merge_axes(s, nest, a.var, b.var, b.extent))
            return false;
    }
    const CiExpr *extent = ci_expr_mul(s->sym, a.extent, b.extent);
    const CiExpr *var = ci_expr_index(s->sym, ci_format(s->ctx, "j%d", k), extent);
    for (int n = 0; n < stage->nnests; n++)
        ci_merge_axes(s, stage->nests[n], position, var, extent);
    drop_axis(stage->axes, &stage->naxes, k, var, extent);
    return true;
}

void
ci_merge_all_axes(CiScheduler *s, CiKernel *kernel)
{
    for (int k = kernel->nouter - 2; k >= 0; k--)
        (void)try_merge_outer(s, kernel, k);
    for (int t = 0; t < kernel->nstages; t++) {
        CiStage *stage = &kernel->stages[t];
        for (int k = stage->naxes - 2; k >= 0; k--)
            (void)try_merge_inner(s, kernel, stage, k);
    }
}

/* Reductions over rows of a few columns run along the rows if a machine with its own order of sums
 * reads contiguous elements there. The logical layout of the operand, from which lowering chose the
 * order, says nothing about the loads of a fused body. */
static void
turn_few_columns(CiScheduler *s, CiKernel *kernel)
{
    if (!ci_wants_rows_along(s->ctx, s->sym, s->machine, kernel))
        return;
    CiNestAt at = CI_BEFORE_NESTS;
    for (CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        if (nest->order.kind == CI_FOLD_rows)
            nest->order.kind = CI_FOLD_lanes;
}

void
ci_finish_axes(CiScheduler *s, CiKernel *kernel)
{
    ci_merge_all_axes(s, kernel);
    kernel->kind = ci_template_fit(s->sym, s->machine, kernel);
    if (!kernel->kind)
        turn_few_columns(s, kernel);
}
