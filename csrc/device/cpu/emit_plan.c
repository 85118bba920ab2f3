/* What a stage needs before a line of it is printed: how its folds run, which values do not depend
 * on the lane, where calls of vector mathematics and scans cut the code, and which arrays carry
 * values over the cuts.
 *
 * What is packed is a segment of its own: its mask is computed in lanes before.
 *
 * Invariant: times order everything. Segment k is time 2k, what happens between segments k and k +
 * 1 (folds of arrays, scans, calls) is time 2k + 1; an array is taken again only after its last
 * reader. */
#include "device/cpu/emit_cpu.h"

static bool
is_cut(const CiCpuStage *s, int value)
{
    CiOpKind kind = ci_op_kind(s->code->values[value].op.op);
    return kind == CI_OPKIND_math || (kind == CI_OPKIND_scan && s->lanes != CI_LANES_tile);
}

/* ---- folds ---- */

/* As the lines that go out now may know it. */
static const CiExpr *
extent_here(const CiCpuEmitter *c, const CiExpr *extent)
{
    return c->row && extent == c->row ? c->row_here : extent;
}

const CiExpr *
ci_cpu_fold_extent(CiCpuEmitter *c, const CiNest *nest)
{
    const CiExpr *extent = ci_expr_const(c->sym, 1);
    for (int k = nest->npoint; k < nest->naxes; k++)
        extent = ci_expr_mul(c->sym, extent, nest->axes[k].extent);
    return extent_here(c, extent);
}

static CiFoldPlan
choose_plan(CiCpuEmitter *c, const CiCpuStage *s, CiCpuFold *fold)
{
    const CiNest *nest = fold->nest;
    bool is_short = ci_cpu_fold_extent(c, nest)->high <= CI_SERIAL_LIMIT;
    fold->lanes = fold->is_ordered && nest->order == CI_FOLD_rows ? 1 : ci_lane_count(fold->dtype);
    if (fold->is_ordered) {
        if (nest->order == CI_FOLD_serial)
            return CI_PLAN_serial;
        if (c->is_short && nest->order == CI_FOLD_lanes) {
            fold->lanes = (int)(c->kernel->short_row + 1) / 2; /* a power of two */
            return CI_PLAN_short;
        }
        return s->lanes == CI_LANES_tile || nest->order == CI_FOLD_rows ? CI_PLAN_rows
                                                                        : CI_PLAN_lanes;
    }
    return s->lanes == CI_LANES_tile || is_short ? CI_PLAN_serial : CI_PLAN_lanes;
}

/* At least one element and at most a block: the counter would hold exactly one entry. */
static bool
is_short_block(const CiExpr *extent, int64_t block)
{
    return extent->low > 0 && extent->high <= block;
}

static void
plan_folds(CiCpuEmitter *c, CiCpuStage *s)
{
    s->folds = CI_NEW_ARRAY(c->ctx, CiCpuFold, s->stage->nnests + 1);
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (!ci_nest_is_fold(nest))
            continue;
        CiCpuFold *fold = &s->folds[s->nfolds++];
        fold->nest = nest;
        fold->value = s->code->results[n];
        fold->dtype = ci_dtype_compute(s->code->values[fold->value].op.dtype);
        fold->is_arg = ci_op_kind(nest->fold) == CI_OPKIND_argreduce;
        fold->is_ordered = !ci_op_is_order_free(nest->fold, fold->dtype);
        fold->plan = choose_plan(c, s, fold);
        fold->depth = nest->npoint - c->kernel->nouter;
        fold->is_pushed = fold->depth != s->stage->naxes - 1;
        fold->is_one_block =
            !c->kernel->split_extent && !fold->is_pushed &&
            is_short_block(ci_cpu_fold_extent(c, nest), CI_BLOCK_CHAIN * fold->lanes);
        fold->is_vector = fold->plan == CI_PLAN_lanes && fold->is_ordered && !fold->is_pushed &&
                          ci_dtype_class(fold->dtype) == CI_CLASS_float;
        fold->id = c->nfolds++;
    }
}

/* All folds over the lane axis alone, in lanes, as many each. */
static bool
can_fuse_folds(const CiCpuStage *s)
{
    for (int k = 0; k < s->nfolds; k++) {
        const CiCpuFold *fold = &s->folds[k];
        if (fold->plan != CI_PLAN_lanes || fold->depth != s->stage->naxes - 1 ||
            fold->lanes != s->folds[0].lanes)
            return false;
    }
    return s->nfolds > 0 && s->nsegments == 1;
}

static bool
needs_arrays(const CiCpuStage *s)
{
    bool has_lanes = false;
    for (int k = 0; k < s->nfolds; k++)
        has_lanes |= s->folds[k].plan == CI_PLAN_lanes;
    return s->lanes == CI_LANES_inner && !s->is_fused_fold &&
           (has_lanes || (s->nfolds > 0 && s->nsegments > 1));
}

/* ---- values ---- */

/* Does a load of what the nest stores meet it in another lane? */
static bool
may_meet(CiCpuEmitter *c, const CiCpuStage *s, const CiNest *nest, const CiExpr *index)
{
    if (nest->store == index)
        return false;
    if (!s->lane_var)
        return true;
    const CiExpr *other = ci_expr_index(c->sym, "other", s->lane_extent);
    index = ci_expr_substitute(c->sym, index, 1, &s->lane_var, &other);
    return !ci_sym_known_apart(c->sym, nest->store, index, nest->target->rank,
                               nest->target->strides, 0, NULL);
}

/* No lane stores it. */
static bool
is_left_alone(CiCpuEmitter *c, const CiCpuStage *s, const CiScalar *op)
{
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        if (nest->target == op->buffer &&
            (nest->store == op->index || may_meet(c, s, nest, op->index)))
            return false;
    }
    return true;
}

static bool
load_is_invariant(CiCpuEmitter *c, const CiCpuStage *s, const CiScalar *op)
{
    const CiPlacement *placement = ci_kernel_find_placement(c->kernel, op->buffer);
    bool is_per_lane = placement && placement->place != CI_PLACE_scalar && c->tile > 0;
    return !is_per_lane && is_left_alone(c, s, op);
}

static bool
find_invariance(CiCpuEmitter *c, const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    if (s->lanes == CI_LANES_none)
        return true;
    if (op->index && ci_expr_depends_on(op->index, s->lane_var))
        return false;
    if (op->op == CI_OP_load && op->buffer->kind != CI_BUFFER_scalar &&
        !load_is_invariant(c, s, op))
        return false;
    for (int a = 0; a < op->nargs; a++)
        if (!s->is_invariant[op->args[a]])
            return false;
    return ci_op_kind(op->op) != CI_OPKIND_scan && op->op != CI_OP_pack;
}

static void
find_invariants(CiCpuEmitter *c, CiCpuStage *s)
{
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        s->is_invariant[k] = find_invariance(c, s, k);
        s->is_cheap[k] = !s->is_invariant[k] &&
                         (op->op == CI_OP_index || op->op == CI_OP_bind ||
                          (op->op == CI_OP_load && !ci_stage_stores(s->stage, op->buffer)));
    }
    if (s->lanes == CI_LANES_none)
        return;
    for (int k = 0; k < s->nfolds; k++) /* a fold reads its value in every lane */
        s->is_invariant[s->folds[k].value] = false;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        for (int a = 0; a < op->nargs; a++)
            s->is_invariant[k] &= s->is_invariant[op->args[a]];
        for (int a = 0; a < op->nargs && is_cut(s, k) && !s->is_invariant[k]; a++)
            s->is_cheap[op->args[a]] = false;
    }
}

static void
find_segments(CiCpuStage *s)
{
    s->nsegments = 1;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        if (s->is_invariant[k] || !s->code->values[k].is_needed)
            continue;
        for (int a = 0; a < op->nargs; a++)
            if (!s->is_invariant[op->args[a]] && s->segment[op->args[a]] > s->segment[k])
                s->segment[k] = s->segment[op->args[a]];
        s->segment[k] += is_cut(s, k) || (op->op == CI_OP_pack && s->lanes == CI_LANES_inner);
        if (s->segment[k] >= s->nsegments)
            s->nsegments = s->segment[k] + 1;
    }
}

/* ---- arrays ---- */

typedef struct Lifetime {
    int from, to, last_reader;
} Lifetime;

static void
read_at(Lifetime *life, int time, int reader)
{
    if (time > life->to || (time == life->to && reader > life->last_reader)) {
        life->to = time;
        life->last_reader = reader;
    }
}

static Lifetime *
find_lifetimes(CiCpuEmitter *c, const CiCpuStage *s, bool has_fold_arrays)
{
    int count = s->code->nvalues;
    Lifetime *lives = CI_NEW_ARRAY(c->ctx, Lifetime, count + 1);
    for (int k = 0; k < count; k++) {
        int time = 2 * s->segment[k] - is_cut(s, k);
        lives[k] = (Lifetime){time, time, k};
    }
    for (int k = 0; k < count; k++) {
        const CiValue *value = &s->code->values[k];
        for (int a = 0; a < value->op.nargs && value->is_needed && !s->is_invariant[k]; a++)
            read_at(&lives[value->op.args[a]], lives[k].from, k);
    }
    for (int n = 0; n < s->stage->nnests; n++)
        read_at(&lives[s->code->results[n]], 2 * s->segment[s->code->results[n]], -1);
    for (int k = 0; k < s->nfolds && has_fold_arrays; k++)
        read_at(&lives[s->folds[k].value], 2 * s->segment[s->folds[k].value] + 1, -1);
    return lives;
}

/* An array of this type that nobody reads any more when `value` is made, or a new one. */
static int
take_slot(CiCpuEmitter *c, CiCpuStage *s, const Lifetime *lives, int value, CiDtype dtype)
{
    for (int slot = 0; slot < s->nslots; slot++) {
        bool is_free = s->slots[slot] == dtype;
        for (int k = 0; k < value && is_free; k++) {
            bool is_over = lives[k].to < lives[value].from ||
                           (lives[k].to == lives[value].from && lives[k].last_reader == value &&
                            is_cut(s, value));
            is_free = s->slot[k] != slot || (is_over && !s->is_invariant[k]);
        }
        if (is_free)
            return slot;
    }
    CI_PUSH(c->ctx, s->slots, s->nslots, s->capslots, dtype);
    return s->nslots - 1;
}

static bool
is_argument_of_cut(const CiCpuStage *s, int value)
{
    for (int k = value + 1; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        for (int a = 0;
             a < op->nargs && is_cut(s, k) && !s->is_invariant[k] && s->code->values[k].is_needed;
             a++)
            if (op->args[a] == value)
                return true;
    }
    return false;
}

static void
find_slots(CiCpuEmitter *c, CiCpuStage *s)
{
    bool has_fold_arrays = needs_arrays(s);
    Lifetime *lives = find_lifetimes(c, s, has_fold_arrays);
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiValue *value = &s->code->values[k];
        s->slot[k] = -1;
        bool crosses = !s->is_invariant[k] && (is_cut(s, k) || lives[k].to > lives[k].from);
        if (!value->is_needed || s->is_cheap[k] || !(crosses || is_argument_of_cut(s, k)))
            continue;
        CiDtype dtype = ci_dtype_compute(value->op.dtype);
        if (s->is_invariant[k]) { /* filled once, so it must stay */
            CI_PUSH(c->ctx, s->slots, s->nslots, s->capslots, dtype);
            s->slot[k] = s->nslots - 1;
        } else {
            s->slot[k] = take_slot(c, s, lives, k, dtype);
        }
    }
}

/* A load of what the stage stores, at another element, makes lanes depend on each other for all a
 * compiler can know; and so does what data places. */
static bool
find_hazard(CiCpuEmitter *c, const CiCpuStage *s)
{
    for (int n = 0; n < s->stage->nnests; n++)
        if (ci_nest_is_serial(s->stage->nests[n]))
            return true;
    for (int k = 0; k < s->code->nvalues; k++) {
        const CiScalar *op = &s->code->values[k].op;
        for (int n = 0; n < s->stage->nnests && op->op == CI_OP_load; n++)
            if (s->stage->nests[n]->target == op->buffer &&
                may_meet(c, s, s->stage->nests[n], op->index))
                return true;
    }
    return false;
}

#define NARROW 8

/* As many lanes as a block of rows has, and some value of each is stored apart from the next's. */
static bool
find_narrow(const CiCpuEmitter *c, const CiCpuStage *s)
{
    const CiExpr *coef, *rest;
    bool is_far = false;
    if (!c->is_tree || s->lanes != CI_LANES_flat || s->lane_extent->high > NARROW)
        return false;
    for (int n = 0; n < s->stage->nnests; n++)
        is_far |=
            !ci_expr_split_linear(c->sym, s->stage->nests[n]->store, s->lane_var, &coef, &rest) ||
            coef->low < -1 || coef->high > 1;
    return is_far;
}

CiCpuStage *
ci_cpu_plan_stage(CiCpuEmitter *c, const CiStage *stage, CiLanes lanes)
{
    CiCpuStage *s = CI_NEW(c->ctx, CiCpuStage);
    s->stage = stage;
    s->code = ci_stage_code_new(c->ctx, c->kernel, stage);
    s->lanes = lanes;
    int count = s->code->nvalues + 1;
    s->is_invariant = CI_NEW_ARRAY(c->ctx, bool, count);
    s->is_cheap = CI_NEW_ARRAY(c->ctx, bool, count);
    s->is_settled = CI_NEW_ARRAY(c->ctx, bool, count);
    s->is_hidden = CI_NEW_ARRAY(c->ctx, bool, count);
    s->segment = CI_NEW_ARRAY(c->ctx, int, count);
    s->slot = CI_NEW_ARRAY(c->ctx, int, count);
    if (lanes != CI_LANES_none) {
        const CiKernelAxis *axis = lanes == CI_LANES_inner
                                       ? &stage->axes[stage->naxes - 1]
                                       : &c->kernel->outer[c->kernel->nouter - 1];
        s->lane_var = axis->var;
        s->lane_extent = extent_here(c, axis->extent);
    }
    if (c->is_tree && lanes == CI_LANES_none) {
        ci_cpu_plan_late(c, s);
        ci_cpu_plan_masks(s);
    }
    plan_folds(c, s);
    find_invariants(c, s);
    find_segments(s);
    s->is_fused_fold = lanes == CI_LANES_inner && can_fuse_folds(s);
    s->has_hazard = find_hazard(c, s);
    s->is_narrow = find_narrow(c, s);
    for (int k = 0; k < s->nfolds && needs_arrays(s); k++)
        s->is_cheap[s->folds[k].value] = false;
    find_slots(c, s);
    return s;
}

const CiExpr *
ci_cpu_row_length(CiCpuEmitter *c, int *lanes)
{
    const CiKernel *kernel = c->kernel;
    const CiStage *rows = NULL;
    for (int k = 0; k < kernel->nstages; k++) {
        const CiStage *stage = &kernel->stages[k];
        if (stage->naxes && rows)
            return NULL;
        rows = stage->naxes ? stage : rows;
    }
    if (!rows || rows->naxes != 1 || c->tile || kernel->split_extent || kernel->nouter == 0)
        return NULL;
    const CiCpuStage *s = ci_cpu_plan_stage(c, rows, CI_LANES_inner);
    c->nfolds -= s->nfolds; /* they get their names when they are printed */
    if (s->lane_extent->kind == CI_EXPR_const || !s->is_fused_fold)
        return NULL;
    *lanes = s->folds[0].lanes;
    return s->lane_extent->low <= *lanes && s->lane_extent->high >= *lanes ? s->lane_extent : NULL;
}
