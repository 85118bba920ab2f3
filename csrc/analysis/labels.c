/* Computes how a kernel runs from its loops and the machine: which axis the vector lanes cover, the
 * tiles, and the work units of threads. */
#include "analysis/access.h"
#include "analysis/cost.h"
#include "analysis/labels.h"
#include "analysis/occupancy.h"
#include "analysis/templates.h"

/* Accesses with stride 1 along var, less those with another stride but 0. */
static int
unit_strides(CiSym *sym, const CiNest *nest, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    int votes = 0;
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);) {
        if (!ci_expr_split_linear(sym, at.index, var, &coef, &rest))
            votes--;
        else if (ci_expr_equals_const(coef, 1))
            votes++;
        else if (!ci_expr_equals_const(coef, 0))
            votes--;
    }
    return votes;
}

/* Each access has stride 0 or 1 along var. */
static bool
is_contiguous_along(CiSym *sym, const CiNest *nest, const CiExpr *var)
{
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);)
        if (!ci_expr_has_stride(sym, at.index, var, 0) && !ci_expr_has_stride(sym, at.index, var, 1))
            return false;
    return true;
}

typedef struct CiLaneVotes {
    int outer, inner;
    bool has_inner, is_small, needs_inner, needs_outer;
    bool fills_vectors; /* each inner loop is elementwise, contiguous, and at least a vector long */
} CiLaneVotes;

static void
count_lane_votes(const CiLabeller *l, const CiStage *stage, CiLaneVotes *votes)
{
    const CiKernel *kernel = l->kernel;
    CiAmount length = ci_amount(1);
    for (int k = 0; k < stage->naxes; k++)
        length = ci_amount_of(length, stage->axes[k].extent);
    if (ci_amount_high(length) > CI_CHOOSE(l, small_inner))
        votes->is_small = false;
    const CiExpr *last = stage->axes[stage->naxes - 1].extent;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        const CiExpr *inner = stage->axes[stage->naxes - 1].var;
        bool fills = last->low >= l->machine->vector_bytes / (int64_t)ci_dtype_size(nest->target->dtype);
        votes->fills_vectors &= !ci_nest_is_fold(nest) && fills && is_contiguous_along(l->sym, nest, inner);
        votes->outer += unit_strides(l->sym, nest, kernel->outer[kernel->nouter - 1].var);
        votes->inner += unit_strides(l->sym, nest, inner);
        if (nest->fold == CI_OP_none || ci_op_is_order_free(nest->fold, nest->target->dtype))
            continue;
        votes->needs_inner |= ci_fold_runs_along(nest->order);
        votes->needs_outer |= ci_fold_runs_across(nest->order);
    }
}

static CiLaneVotes
lane_votes(const CiLabeller *l)
{
    const CiKernel *kernel = l->kernel;
    CiLaneVotes votes = {.is_small = true, .fills_vectors = l->machine->vector_bytes > 0};
    for (int t = 0; t < kernel->nstages; t++) {
        if (kernel->stages[t].naxes == 0)
            continue;
        votes.has_inner = true;
        count_lane_votes(l, &kernel->stages[t], &votes);
    }
    return votes;
}

static bool
wants_outer_lanes(const CiLabeller *l)
{
    const CiKernel *kernel = l->kernel;
    if (kernel->nouter == 0)
        return false;
    CiLaneVotes votes = lane_votes(l);
    if (!votes.has_inner || votes.needs_outer)
        return true;
    if (votes.needs_inner)
        return false;
    int64_t most = kernel->outer[kernel->nouter - 1].extent->high;
    bool lies_outside = votes.outer > votes.inner,
         is_short = votes.is_small && (votes.inner <= votes.outer || !votes.fills_vectors);
    return (lies_outside && most >= CI_CHOOSE(l, lane_columns)) || (is_short && most >= CI_CHOOSE(l, small_inner));
}

/* Reductions over rows of a few columns run along the rows if a machine with its own order of sums
 * reads contiguous elements there. The logical layout of the operand, from which lowering chose the
 * order, says nothing about the loads of a fused body. */
bool
ci_wants_rows_along(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiLabeller l = {ctx, sym, machine, kernel, NULL};
    if (!machine->has_own_order || kernel->nouter == 0 ||
        kernel->outer[kernel->nouter - 1].extent->high >= CI_CHOOSE(&l, lane_columns))
        return false;
    CiLaneVotes votes = lane_votes(&l);
    return votes.needs_outer && !votes.needs_inner && votes.inner > 0;
}

static const CiExpr *
extent_product(CiSym *sym, const CiKernelAxis *axes, int count)
{
    const CiExpr *product = ci_expr_const(sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(sym, product, axes[k].extent);
    return product;
}

/* True if all stages are reductions down columns, so that a unit holds one element of each. */
static bool
has_one_row(const CiKernel *kernel)
{
    for (int t = 0; t < kernel->nstages; t++) {
        const CiStage *stage = &kernel->stages[t];
        for (int n = 0; n < stage->nnests && stage->naxes; n++)
            if (!ci_nest_is_fold(stage->nests[n]) || stage->nests[n]->npoint > kernel->nouter)
                return false;
    }
    return true;
}

/* Columns side by side in memory, as many as leave a number of units to share out. */
static int
columns_of_unit(const CiLabeller *l, const CiExpr *extent)
{
    int64_t units = CI_CHOOSE(l, least_units), columns = CI_CHOOSE(l, unit_columns);
    int64_t most = extent->high == CI_INFINITY ? units * columns / 2 : extent->high;
    int count = CI_STAGE_TILE;
    while (count < columns && most / (2 * count) >= units)
        count *= 2;
    return count;
}

int64_t
ci_stage_widest_element(const CiStage *stage)
{
    int64_t widest = 1;
    for (int n = 0; n < stage->nnests; n++)
        for (CiNestAccess at = {0}; ci_nest_next_access(stage->nests[n], &at);)
            if (ci_dtype_size(at.buffer->dtype) > widest)
                widest = ci_dtype_size(at.buffer->dtype);
    return widest;
}

/* Lanes of a tile without inner loops: the more, the narrower its widest element is. */
static int
flat_lanes(const CiLabeller *l)
{
    int64_t widest = 1;
    for (int t = 0; t < l->kernel->nstages; t++) {
        int64_t size = ci_stage_widest_element(&l->kernel->stages[t]);
        widest = size > widest ? size : widest;
    }
    return (int)(CI_CHOOSE(l, flat_tile) * (widest < 8 ? 8 / widest : 1));
}

/* The last outer axis in tiles; more lanes in one where no stage has axes of its own. */
static void
label_lanes(const CiLabeller *l, bool has_inner)
{
    int last = l->kernel->nouter - 1;
    bool is_wide = l->machine->tile_rows && has_one_row(l->kernel);
    l->labels->tiles[last] = !has_inner ? flat_lanes(l)
                             : is_wide  ? columns_of_unit(l, l->kernel->outer[last].extent)
                                        : CI_STAGE_TILE;
}

static bool
has_inner_axes(const CiKernel *kernel)
{
    for (int t = 0; t < kernel->nstages; t++) {
        if (kernel->stages[t].naxes)
            return true;
    }
    return false;
}

/* A buffer that the kernel stores is not read ahead. */
static bool
is_stored(const CiStage *stage, const CiBuffer *buffer)
{
    for (int n = 0; n < stage->nnests; n++)
        if (stage->nests[n]->target == buffer)
            return true;
    return false;
}

/* An outer axis that is contiguous in some load which is strided along the last axis; -1 if
 * none. */
static int
find_crossed_axis(const CiLabeller *l, const CiNest *nest)
{
    const CiKernel *kernel = l->kernel;
    const CiExpr *last = kernel->outer[kernel->nouter - 1].var;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));) {
        if (load->buffer->kind == CI_BUFFER_scalar || load->nargs ||
            is_stored(&kernel->stages[0], load->buffer) || ci_expr_has_stride(l->sym, load->index, last, 0) ||
            ci_expr_has_stride(l->sym, load->index, last, 1))
            continue;
        for (int k = 0; k < kernel->nouter - 1; k++)
            if (ci_expr_has_stride(l->sym, load->index, kernel->outer[k].var, 1) &&
                kernel->outer[k].extent->high >= l->machine->tile_rows)
                return k;
    }
    return -1;
}

/* Elementwise, and stored along the last axis: what is read across it is turned tile by tile. */
static void
tile_crossed(const CiLabeller *l)
{
    const CiKernel *kernel = l->kernel;
    const CiStage *stage = &kernel->stages[0];
    const CiKernelAxis *last = &kernel->outer[kernel->nouter - 1];
    int crossed = -1;
    if (!l->machine->tile_rows || kernel->nstages != 1 || last->extent->high < l->machine->tile_rows)
        return;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        if (ci_nest_is_serial(nest) || !ci_expr_has_stride(l->sym, nest->store, last->var, 1))
            return;
        crossed = crossed < 0 ? find_crossed_axis(l, nest) : crossed;
    }
    if (crossed >= 0)
        l->labels->tiles[crossed] = l->labels->tiles[kernel->nouter - 1] = (int)l->machine->tile_rows;
}

static CiLabels
new_labels(CiContext *ctx, const CiKernel *kernel)
{
    CiLabels labels = {.tiles = CI_NEW_ARRAY(ctx, int, kernel->nouter + 1),
                       .lane_axes = CI_NEW_ARRAY(ctx, int, kernel->nstages + 1)};
    for (int t = 0; t < kernel->nstages; t++)
        labels.lane_axes[t] = -1;
    return labels;
}

/* Lanes are on the last axis of each stage, unless they are outside. */
static void
label_stages(const CiLabeller *l)
{
    for (int t = 0; t < l->kernel->nstages && !l->labels->has_lanes; t++)
        l->labels->lane_axes[t] = l->kernel->stages[t].naxes - 1;
}

/* Estimated work of a unit, which has `tile` points. */
static const CiExpr *
work_of_unit(const CiLabeller *l, int64_t tile)
{
    const CiExpr *work = ci_expr_const(l->sym, 0);
    for (int t = 0; t < l->kernel->nstages; t++)
        work = ci_expr_add(l->sym, work, extent_product(l->sym, l->kernel->stages[t].axes, l->kernel->stages[t].naxes));
    return ci_expr_mul(l->sym, work, ci_expr_const(l->sym, tile));
}

CiLabels
ci_labels_of_leaf(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *leaf)
{
    CiLabels labels = new_labels(ctx, leaf);
    CiLabeller l = {ctx, sym, machine, leaf, &labels};
    labels.has_lanes = wants_outer_lanes(&l);
    if (labels.has_lanes)
        label_lanes(&l, has_inner_axes(leaf));
    label_stages(&l);
    return labels;
}

/* Labels of nests without a builder. */
static void
label_nests(CiLabeller *l)
{
    const CiKernel *kernel = l->kernel;
    const CiExpr *points = extent_product(l->sym, kernel->outer, kernel->nouter);
    int64_t tile = 1;
    l->labels->has_lanes = wants_outer_lanes(l);
    if (!ci_label_lane_rows(l) && l->labels->has_lanes) {
        label_lanes(l, has_inner_axes(kernel));
        if (!has_inner_axes(kernel))
            tile_crossed(l);
    }
    label_stages(l);
    for (int k = 0; k < kernel->nouter; k++)
        tile *= l->labels->tiles[k] ? l->labels->tiles[k] : 1;
    l->labels->unit_work = work_of_unit(l, tile);
    bool is_few = ci_fill_is_few(l->machine, points->high, tile),
         is_late = l->machine->threads && !ci_kernel_runs(kernel); /* the pass split_blocks counts parts of reductions */
    if (ci_can_split(l->machine, kernel) && is_few && !is_late)
        ci_label_chunks(l, extent_product(l->sym, kernel->stages[0].axes, kernel->stages[0].naxes), tile);
}

CiLabels
ci_labels(CiContext *ctx, CiSym *sym, const CiMachine *machine, const CiKernel *kernel)
{
    CiLabels labels = new_labels(ctx, kernel);
    CiLabeller l = {ctx, sym, machine, kernel, &labels};
    if (ci_kernel_tree(kernel))
        labels.unit_work = ci_tree_work(sym, kernel);
    else if (kernel->kind)
        ci_template_label(&l);
    else
        label_nests(&l);
    return labels;
}

const CiExpr *
ci_labels_rows_end(CiSym *sym, const CiLabels *labels, const CiKernel *kernel, int count)
{
    const CiExpr *end = ci_expr_const(sym, 0), *line = ci_expr_const(sym, 64);
    for (int k = 0; k < count; k++) {
        const CiPlacement *row = &kernel->placements[k];
        if (row->stored != CI_STORED_row)
            continue;
        CiDtype dtype = labels->has_lanes ? ci_dtype_compute(row->buffer->dtype) : row->buffer->dtype;
        int64_t lanes = labels->has_lanes ? labels->tiles[kernel->nouter - 1] : 1, point = lanes * (int64_t)ci_dtype_size(dtype);
        const CiExpr *bytes = ci_expr_mul(sym, row->row_size, ci_expr_const(sym, point));
        end = ci_expr_add(sym, end, ci_expr_mul(sym, ci_expr_ceildiv(sym, bytes, line), line));
    }
    return end;
}
