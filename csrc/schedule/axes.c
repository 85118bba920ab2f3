/* How a kernel's axes run: neighbours merged where every index allows it, lanes inside or outside,
 * long folds split, and the units a thread is given. None of it changes a bit of the results. */
#include "base/map.h"
#include "analysis/occupancy.h"
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
    nest->body = ci_body_substitute(s->ctx, s->sym, &nest->body, 2, from, to);
    nest->store = ci_expr_substitute(s->sym, nest->store, 2, from, to);
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

static void
merge_axes(CiScheduler *s, CiKernel *kernel)
{
    for (int k = kernel->nouter - 2; k >= 0; k--)
        (void)try_merge_outer(s, kernel, k);
    for (int t = 0; t < kernel->nstages; t++) {
        CiStage *stage = &kernel->stages[t];
        for (int k = stage->naxes - 2; k >= 0; k--)
            (void)try_merge_inner(s, kernel, stage, k);
    }
}

/* Accesses with stride 1 along var, less those with another stride but 0. */
static int
unit_strides(CiScheduler *s, const CiNest *nest, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    int votes = 0;
    for (CiNestAccess at = {0}; ci_nest_next_access(nest, &at);) {
        if (!ci_expr_split_linear(s->sym, at.index, var, &coef, &rest))
            votes--;
        else if (ci_expr_equals_const(coef, 1))
            votes++;
        else if (!ci_expr_equals_const(coef, 0))
            votes--;
    }
    return votes;
}

typedef struct CiLaneVotes {
    int outer, inner;
    bool has_inner, is_small, needs_inner, needs_outer;
} CiLaneVotes;

static void
count_lane_votes(CiScheduler *s, const CiKernel *kernel, const CiStage *stage, CiLaneVotes *votes)
{
    CiAmount length = ci_amount(1);
    for (int k = 0; k < stage->naxes; k++)
        length = ci_amount_of(length, stage->axes[k].extent);
    if (ci_amount_high(length) > CI_CHOOSE(s, small_inner))
        votes->is_small = false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        votes->outer += unit_strides(s, nest, kernel->outer[kernel->nouter - 1].var);
        votes->inner += unit_strides(s, nest, stage->axes[stage->naxes - 1].var);
        if (nest->fold == CI_OP_none || ci_op_is_order_free(nest->fold, nest->target->dtype))
            continue;
        votes->needs_inner |= ci_fold_runs_along(nest->order);
        votes->needs_outer |= ci_fold_runs_across(nest->order);
    }
}

static CiLaneVotes
lane_votes(CiScheduler *s, const CiKernel *kernel)
{
    CiLaneVotes votes = {.is_small = true};
    for (int t = 0; t < kernel->nstages; t++) {
        if (kernel->stages[t].naxes == 0)
            continue;
        votes.has_inner = true;
        count_lane_votes(s, kernel, &kernel->stages[t], &votes);
    }
    return votes;
}

static bool
wants_outer_lanes(CiScheduler *s, const CiKernel *kernel)
{
    if (kernel->nouter == 0)
        return false;
    CiLaneVotes votes = lane_votes(s, kernel);
    if (!votes.has_inner || votes.needs_outer)
        return true;
    if (votes.needs_inner)
        return false;
    int64_t most = kernel->outer[kernel->nouter - 1].extent->high;
    bool lies_outside = votes.outer > votes.inner;
    return (lies_outside && most >= CI_CHOOSE(s, lane_columns)) ||
           (votes.is_small && most >= CI_CHOOSE(s, small_inner));
}

/* Reductions over rows of a few columns run along the rows if a machine with its own order of sums
 * reads contiguous elements there. The logical layout of the operand, from which lowering chose the
 * order, says nothing about the loads of a fused body. */
static void
turn_few_columns(CiScheduler *s, CiKernel *kernel)
{
    if (!s->machine->has_own_order || kernel->nouter == 0 ||
        kernel->outer[kernel->nouter - 1].extent->high >= CI_CHOOSE(s, lane_columns))
        return;
    CiLaneVotes votes = lane_votes(s, kernel);
    if (!votes.needs_outer || votes.needs_inner || votes.inner <= 0)
        return;
    CiNestAt at = CI_BEFORE_NESTS;
    for (CiNest *nest; (nest = ci_kernel_next_nest(kernel, &at));)
        if (nest->order.kind == CI_FOLD_rows)
            nest->order.kind = CI_FOLD_lanes;
}

static bool
is_read(const CiStage *stage, const CiBuffer *buffer)
{
    for (int n = 0; n < stage->nnests; n++) {
        const CiBody *body = &stage->nests[n]->body;
        for (int k = 0; k < body->nops; k++)
            if (body->ops[k].buffer == buffer)
                return true;
    }
    return false;
}

/* One loop that scans or packs, whose chunks need of those before them what these add. */
static bool
can_split_running(const CiScheduler *s, const CiKernel *kernel)
{
    const CiStage *stage = &kernel->stages[0];
    bool is_split = s->machine->splits_running || s->machine->chains_running;
    if (!is_split || kernel->nouter || kernel->nstages != 1 || stage->naxes != 1)
        return false;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        bool is_pack = nest->body.ops[nest->body.result].op == CI_OP_pack,
             is_scan = ci_nest_is_scan(nest);
        if ((ci_nest_is_fold(nest) && !is_scan) || (ci_nest_is_serial(nest) && !is_pack) ||
            is_read(stage, nest->target))
            return false;
        if (is_scan && !s->machine->has_own_order &&
            !ci_dtype_is_integral(nest->body.ops[nest->body.result].dtype))
            return false;
    }
    return ci_kernel_runs(kernel);
}

/* A pairwise fold in subtrees of its only block, in that block's chunks, or in its blocks where
 * these are long. */
static bool
can_split_order(const CiScheduler *s, const CiNest *nest)
{
    int nouter = nest->naxes - nest->npoint - nest->order.ninner;
    if (nest->order.kind == CI_FOLD_fused)
        return false;
    if (nest->order.kind != CI_FOLD_pairwise ||
        ci_op_is_order_free(nest->fold, nest->target->dtype))
        return true;
    if (!nouter)
        return true;
    const CiAxis *last = &nest->axes[nest->naxes - 1];
    return nest->order.ninner == 1 && !nest->order.chunk && last->extent->low >= CI_CHOOSE(s, long_block);
}

bool
ci_can_split(CiScheduler *s, const CiKernel *kernel)
{
    bool has_fold = false;
    if (kernel->nstages && can_split_running(s, kernel))
        return true;
    if (kernel->nstages == 0 || kernel->stages[0].naxes == 0)
        return false;
    for (int t = 1; t < kernel->nstages; t++) {
        if (kernel->stages[t].naxes)
            return false;
    }
    for (int n = 0; n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        if (ci_nest_is_serial(nest))
            return false;
        if (nest->fold == CI_OP_none)
            continue;
        if (ci_op_kind(nest->fold) == CI_OPKIND_scan ||
            nest->naxes - nest->npoint != kernel->stages[0].naxes || !can_split_order(s, nest))
            return false;
        has_fold = true;
    }
    return has_fold;
}

static const CiExpr *
extent_product(CiScheduler *s, const CiKernelAxis *axes, int count)
{
    const CiExpr *product = ci_expr_const(s->sym, 1);
    for (int k = 0; k < count; k++)
        product = ci_expr_mul(s->sym, product, axes[k].extent);
    return product;
}

static void
label_stages(CiKernel *kernel)
{
    for (int t = 0; t < kernel->nstages; t++) {
        CiStage *stage = &kernel->stages[t];
        for (int k = 0; k < stage->naxes; k++) {
            bool has_lanes = !kernel->lanes_on_outer && k == stage->naxes - 1;
            stage->axes[k].label = has_lanes ? CI_LABEL_vector : CI_LABEL_serial;
        }
    }
}

/* Elements of the fold's domain per chunk: a power of two times the largest block of its folds. */
static int64_t
split_length(const CiScheduler *s, const CiKernel *kernel, int64_t tile)
{
    int64_t block = CI_BLOCK_CHAIN;
    for (int n = 0; n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        int64_t own = CI_BLOCK_CHAIN *
                      (nest->order.kind == CI_FOLD_lanes ? ci_lane_count(nest->target->dtype) : 1);
        if (nest->fold != CI_OP_none && own > block)
            block = own;
    }
    while (block * tile < CI_CHOOSE(s, split_elements))
        block *= 2;
    return block;
}

/* Marks the operations that say what an element adds: of a pack its mask alone. */
static bool *
find_asked(const CiScheduler *s, const CiBody *body)
{
    bool *is_asked = CI_NEW_ARRAY(s->ctx, bool, body->nops + 1);
    const CiScalar *result = &body->ops[body->result];
    is_asked[result->op == CI_OP_pack ? result->args[1] : body->result] = true;
    for (int k = body->nops - 1; k >= 0; k--)
        for (int a = 0; a < body->ops[k].nargs && is_asked[k]; a++)
            is_asked[body->ops[k].args[a]] = true;
    return is_asked;
}

/* Bytes that are read to know what an element adds. */
static int64_t
bytes_asked(const CiScheduler *s, const CiStage *stage)
{
    CiMap *seen = ci_map_new(s->ctx);
    int64_t bytes = 0;
    for (int n = 0; n < stage->nnests; n++) {
        const CiBody *body = &stage->nests[n]->body;
        const bool *is_asked = find_asked(s, body);
        for (int k = 0; k < body->nops; k++) {
            CiBuffer *buffer = body->ops[k].buffer;
            if (!buffer || !is_asked[k] || ci_map_find(seen, CI_KEY(buffer)))
                continue;
            ci_map_put(seen, CI_KEY(buffer), buffer);
            bytes += ci_dtype_size(buffer->dtype);
        }
    }
    return bytes;
}

/* Elements of a chunk that stays near while it is walked a second time: a power of two. */
static int64_t
chain_length(const CiScheduler *s, const CiKernel *kernel)
{
    int64_t length = CI_CHOOSE(s, chain_chunk), bytes = bytes_asked(s, &kernel->stages[0]);
    while (2 * length * bytes <= CI_CHOOSE(s, chain_bytes) &&
           2 * length <= CI_CHOOSE(s, split_elements))
        length *= 2;
    return length;
}

/* Elements of a chunk, of a loop that runs or of a fold. */
static int64_t
part_length(const CiScheduler *s, const CiKernel *kernel, int64_t tile)
{
    return kernel->is_chained ? chain_length(s, kernel) : split_length(s, kernel, tile);
}

/* The nest whose order is told; NULL: all are free. */
static const CiNest *
find_pairwise(const CiKernel *kernel)
{
    for (int n = 0; n < kernel->stages[0].nnests; n++) {
        const CiNest *nest = kernel->stages[0].nests[n];
        if (nest->fold != CI_OP_none && nest->order.kind == CI_FOLD_pairwise &&
            !ci_op_is_order_free(nest->fold, nest->target->dtype))
            return nest;
    }
    return NULL;
}

static void
choose_parts(CiScheduler *s, CiKernel *kernel, const CiExpr *length, int64_t tile)
{
    const CiNest *pairwise = find_pairwise(kernel);
    if (!pairwise) {
        kernel->split_extent = ci_expr_const(s->sym, part_length(s, kernel, tile));
        return;
    }
    bool has_outer = pairwise->naxes - pairwise->npoint > pairwise->order.ninner;
    if (pairwise->order.chunk || has_outer) {
        kernel->split_extent =
            has_outer ? pairwise->axes[pairwise->naxes - 1].extent : pairwise->order.chunk;
        return;
    }
    kernel->split_chunks = (int)CI_CHOOSE(s, most_subtrees);
    while (kernel->split_chunks > 2 && length->high / kernel->split_chunks < CI_CHOOSE(s, least_subtree))
        kernel->split_chunks /= 2;
}

static void
split_fold(CiScheduler *s, CiKernel *kernel, const CiExpr *length, int64_t tile)
{
    choose_parts(s, kernel, length, tile);
    const CiExpr *chunks = ci_kernel_chunks(s->sym, kernel);
    const CiExpr *chunk =
        kernel->split_extent ? kernel->split_extent : ci_expr_ceildiv(s->sym, length, chunks);
    kernel->unit_work = ci_expr_mul(s->sym, chunk, ci_expr_const(s->sym, tile));
}

/* Of folds down columns, one element of each is all that a unit holds. */
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
columns_of_unit(const CiScheduler *s, const CiExpr *extent)
{
    int64_t units = CI_CHOOSE(s, least_units), columns = CI_CHOOSE(s, unit_columns);
    int64_t most = extent->high == CI_INFINITY ? units * columns / 2 : extent->high;
    int count = CI_STAGE_TILE;
    while (count < columns && most / (2 * count) >= units)
        count *= 2;
    return count;
}

/* The last outer axis in tiles; more lanes in one where no stage has axes of its own. */
static void
label_lanes(const CiScheduler *s, CiKernel *kernel, bool has_inner)
{
    CiKernelAxis *last = &kernel->outer[kernel->nouter - 1];
    bool is_wide = s->machine->tile_rows && has_one_row(kernel);
    last->label = CI_LABEL_vector;
    last->factor = !has_inner ? (int)CI_CHOOSE(s, flat_tile)
                   : is_wide  ? columns_of_unit(s, last->extent)
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
find_crossed_axis(CiScheduler *s, const CiKernel *kernel, const CiNest *nest)
{
    const CiExpr *last = kernel->outer[kernel->nouter - 1].var;
    for (const CiScalar *load = NULL; (load = ci_nest_next_load(nest, load));) {
        if (load->buffer->kind == CI_BUFFER_scalar || load->nargs ||
            is_stored(&kernel->stages[0], load->buffer) || ci_expr_has_stride(s->sym, load->index, last, 0) ||
            ci_expr_has_stride(s->sym, load->index, last, 1))
            continue;
        for (int k = 0; k < kernel->nouter - 1; k++)
            if (ci_expr_has_stride(s->sym, load->index, kernel->outer[k].var, 1) &&
                kernel->outer[k].extent->high >= s->machine->tile_rows)
                return k;
    }
    return -1;
}

/* Elementwise, and stored along the last axis: what is read across it is turned tile by tile. */
static void
tile_crossed(CiScheduler *s, CiKernel *kernel)
{
    const CiStage *stage = &kernel->stages[0];
    CiKernelAxis *last = &kernel->outer[kernel->nouter - 1];
    int crossed = -1;
    if (!s->machine->tile_rows || kernel->nstages != 1 || last->extent->high < s->machine->tile_rows)
        return;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        if (ci_nest_is_serial(nest) || !ci_expr_has_stride(s->sym, nest->store, last->var, 1))
            return;
        crossed = crossed < 0 ? find_crossed_axis(s, kernel, nest) : crossed;
    }
    if (crossed >= 0)
        kernel->outer[crossed].factor = last->factor = (int)s->machine->tile_rows;
}

void
ci_label_leaf(CiScheduler *s, CiKernel *leaf)
{
    merge_axes(s, leaf);
    leaf->lanes_on_outer = wants_outer_lanes(s, leaf);
    if (leaf->lanes_on_outer)
        label_lanes(s, leaf, has_inner_axes(leaf));
    label_stages(leaf);
}

void
ci_label_axes(CiScheduler *s, CiKernel *kernel)
{
    merge_axes(s, kernel);
    kernel->nparallel = kernel->nouter;
    if (ci_template_label(s->sym, s->machine, kernel))
        return;
    turn_few_columns(s, kernel);
    kernel->lanes_on_outer = wants_outer_lanes(s, kernel);
    int64_t tile = 1;
    const CiExpr *work = ci_expr_const(s->sym, 0),
                 *points = extent_product(s, kernel->outer, kernel->nouter);
    for (int t = 0; t < kernel->nstages; t++)
        work = ci_expr_add(s->sym, work,
                           extent_product(s, kernel->stages[t].axes, kernel->stages[t].naxes));
    for (int k = 0; k < kernel->nouter; k++)
        kernel->outer[k].label = CI_LABEL_parallel;
    if (!ci_put_rows_in_lanes(s, kernel) && kernel->lanes_on_outer) {
        label_lanes(s, kernel, has_inner_axes(kernel));
        if (!has_inner_axes(kernel))
            tile_crossed(s, kernel);
    }
    for (int k = 0; k < kernel->nouter; k++)
        tile *= kernel->outer[k].factor ? kernel->outer[k].factor : 1;
    label_stages(kernel);
    kernel->unit_work = ci_expr_mul(s->sym, work, ci_expr_const(s->sym, tile));
    if (!ci_can_split(s, kernel) || !ci_fill_is_few(s->machine, points->high, tile))
        return;
    const CiExpr *length = extent_product(s, kernel->stages[0].axes, kernel->stages[0].naxes);
    kernel->is_chained = s->machine->chains_running && ci_kernel_runs(kernel);
    if (length->high > 2 * part_length(s, kernel, tile))
        split_fold(s, kernel, length, tile);
    else
        kernel->is_chained = false;
}
