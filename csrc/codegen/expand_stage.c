/* Stages -> statements: loops over the points of a stage, folds over its other axes, and inside the
 * values of its code.
 *
 * A stage is one nest of loops for its folds of each shape, the first of which does what else it
 * has to do. Nests of a stage run one after another at the level above, so that loops of their own
 * for some of them are right too. */
#include "codegen/expand_private.h"
#include "codegen/reduction.h"
#include "codegen/stage_code.h"

#include <string.h>

/* The nests of a stage that share loops, and what those loops compute. */
typedef struct Group {
    const CiStage *stage;
    CiStageCode *code;
    const CiNest **folds;
    int *fold_results;
    int nfolds;
    int depth;       /* axes that are loops; the others are folded over */
    bool is_first;   /* has the stage's other nests too */
    bool *is_needed; /* of the code's values, here */
    int *values;     /* as the proc numbers them; -1 where not needed */
} Group;

/* ---- values ---- */

static int
cast_to(CiExpander *x, int value, CiDtype dtype)
{
    if (x->b.proc->types[value].dtype == dtype)
        return value;
    return ci_build_let(&x->b, ci_type_of(dtype, 1), CI_OP_cast, 1, &value);
}

/* A scalar that is passed may be asked for in another type. */
static int
add_load(CiExpander *x, const CiScalar *op)
{
    CiMemory *memory = ci_expand_memory(x, op->buffer);
    return cast_to(x, ci_build_load(&x->b, memory, ci_expand_place(x, op->buffer, op->index), 1),
                   op->dtype);
}

static int
add_let(CiExpander *x, const Group *group, const CiValue *value)
{
    const CiScalar *op = &value->op;
    int args[CI_MAX_OPERANDS] = {0};
    CiType type = ci_type_of(op->dtype, 1);
    for (int a = 0; a < op->nargs; a++)
        args[a] = group->values[op->args[a]];
    if (op->op == CI_OP_load)
        return add_load(x, op);
    if (op->op == CI_OP_index)
        return ci_build_index(&x->b, op->index);
    if (op->op == CI_OP_const)
        return ci_build_const(&x->b, type, op->value);
    if (op->op == CI_OP_place || op->op == CI_OP_pack || op->op == CI_OP_copy)
        return args[0];
    for (int a = 0; a < op->nargs; a++) /* one that is not read may not have been made */
        if (args[a] < 0)
            args[a] = ci_build_const(
                &x->b, ci_type_of(group->code->values[op->args[a]].op.dtype, 1), (CiConst){0});
    int made = ci_build_let(&x->b, type, op->op, op->nargs, args);
    if (op->op == CI_OP_bind) {
        x->b.to->last->expr = op->index;
        x->b.to->last->limit = op->index->limit;
    }
    if (ci_op_kind(op->op) == CI_OPKIND_scan) {
        const CiStage *stage = group->stage;
        x->b.to->last->cell = ci_map_find(x->cells, CI_KEY(stage->nests[value->nest]));
        x->b.to->last->expr = stage->axes[stage->naxes - 1].var;
    }
    return made;
}

/* ---- stages ---- */

static bool
is_folded_here(const Group *group, const CiNest *nest)
{
    for (int k = 0; k < group->nfolds; k++)
        if (group->folds[k] == nest)
            return true;
    return false;
}

static void
mark(Group *group, int value)
{
    const CiScalar *op = &group->code->values[value].op;
    if (group->is_needed[value] || !group->code->values[value].is_needed)
        return;
    group->is_needed[value] = true;
    for (int a = 0; a < op->nargs; a++)
        if (ci_op_reads(op->op, group->code->values[op->args[0]].op.dtype, a))
            mark(group, op->args[a]);
}

static bool
is_stored_here(CiExpander *x, const Group *group, const CiNest *nest)
{
    const CiPlacement *placement = ci_kernel_find_placement(x->leaf, nest->target);
    return group->is_first && !ci_nest_is_fold(nest) &&
           !(placement && placement->stored == CI_STORED_register);
}

static void
add_pack(CiExpander *x, const CiNest *nest, const Group *group, const CiScalar *op)
{
    const CiExpr *coef, *rest;
    CiMemory *cell = ci_map_find(x->cells, CI_KEY(nest));
    if (!ci_expr_split_linear(x->b.sym, nest->store, op->index, &coef, &rest))
        ci_fail(x->b.ctx, CI_ERR_INTERNAL, "the offset of compressed elements is no multiple of their count");
    CiStmt *call = ci_build_add(&x->b, CI_STMT_call);
    call->intrinsic = CI_INTRINSIC_pack;
    call->args = CI_NEW_ARRAY(x->b.ctx, int, 2);
    call->args[0] = cast_to(x, group->values[op->args[0]], nest->target->dtype);
    call->args[1] = group->values[op->args[1]];
    call->nargs = 2;
    call->type = ci_type_of(nest->target->dtype, 1);
    call->at =
        (CiAccess){.memory = ci_expand_memory(x, nest->target), .index = rest, .stride = coef};
    call->cell = cell;
    call->limit = op->index->limit;
}

static void
add_store(CiExpander *x, const CiNest *nest, const Group *group, int result)
{
    const CiScalar *op = &group->code->values[result].op;
    if (op->op == CI_OP_pack) {
        add_pack(x, nest, group, op);
        return;
    }
    int value = cast_to(x, group->values[result], nest->target->dtype);
    ci_build_store(&x->b, ci_expand_memory(x, nest->target),
                   ci_expand_place(x, nest->target, nest->store), value);
    if (nest->is_combined)
        x->b.to->last->op = nest->combine;
    x->b.to->last->is_in_order = !nest->is_combined && ci_nest_is_serial(nest);
    x->b.to->last->is_atomic = ci_nest_places_alike(nest);
}

/* A value is made where it stands in the code, a store follows the values that it needs. */
static void
add_body(CiExpander *x, Group *group)
{
    const CiStageCode *code = group->code;
    int made = 0;
    for (int n = 0; n < group->stage->nnests; n++) {
        const CiNest *nest = group->stage->nests[n];
        for (; made <= code->results[n]; made++)
            if (group->is_needed[made])
                group->values[made] = add_let(x, group, &code->values[made]);
        if (is_stored_here(x, group, nest))
            add_store(x, nest, group, code->results[n]);
    }
}

static const CiExpr *
find_position(CiExpander *x, const Group *group)
{
    const CiExpr *position = ci_expand_number(x, 0);
    for (int k = group->depth; k < group->stage->naxes; k++) {
        const CiKernelAxis *axis = &group->stage->axes[k];
        position = ci_expr_mul(x->b.sym, position, axis->extent);
        position = ci_expr_add(x->b.sym, position, axis->var);
    }
    return position;
}

/* A position is as wide as the value beside it, where all of them fit: what is chosen in lanes is
 * chosen for both. */
static CiDtype
position_dtype(CiExpander *x, const Group *group, CiDtype value)
{
    const CiStage *stage = group->stage;
    const CiExpr *count = ci_expr_const(x->b.sym, 1);
    for (int k = group->depth; k < stage->naxes; k++)
        count = ci_expr_mul(x->b.sym, count, stage->axes[k].extent);
    bool is_narrow = ci_dtype_size(ci_dtype_compute(value)) <= 4 && count->high <= INT32_MAX;
    return is_narrow ? CI_DTYPE_i32 : CI_DTYPE_i64;
}

static int
add_position(CiExpander *x, const Group *group, CiDtype value)
{
    int made = ci_build_index(&x->b, find_position(x, group));
    CiStmt *let = x->b.to->last;
    let->type.dtype = x->b.proc->types[made].dtype = position_dtype(x, group, value);
    return made;
}

/* The accumulators of one element alone: how many. */
static int
lift(CiExpander *x, const Group *group, int k, int *lifted)
{
    const CiReduction *reduction = ci_reduction_of(group->folds[k]->fold);
    CiDtype dtype = group->code->values[group->fold_results[k]].op.dtype;
    int element = cast_to(x, group->values[group->fold_results[k]], ci_dtype_sum(dtype));
    if (reduction->lift) {
        reduction->lift(&x->b, element, lifted);
        return reduction->count;
    }
    lifted[0] = element;
    if (reduction->count == 2)
        lifted[1] = add_position(x, group, dtype);
    return reduction->count;
}

static CiDtype
accumulator_dtype(CiExpander *x, const Group *group, int k, int number)
{
    CiDtype dtype = group->code->values[group->fold_results[k]].op.dtype;
    bool is_position = number > 0 && !ci_reduction_of(group->folds[k]->fold)->lift;
    return is_position ? position_dtype(x, group, dtype) : ci_dtype_sum(dtype);
}

static void
add_yield(CiExpander *x, const Group *group)
{
    int *args = CI_NEW_ARRAY(x->b.ctx, int, CI_MAX_ACCUMULATORS * group->nfolds + 1), count = 0;
    for (int k = 0; k < group->nfolds; k++)
        count += lift(x, group, k, args + count);
    CiStmt *yield = ci_build_add(&x->b, CI_STMT_yield);
    yield->args = args;
    yield->nargs = count;
}

static CiStmt *
add_fold(CiExpander *x, const Group *group)
{
    const CiStage *stage = group->stage;
    int count = stage->naxes - group->depth;
    CiMemory **into = CI_NEW_ARRAY(x->b.ctx, CiMemory *, CI_MAX_ACCUMULATORS * group->nfolds + 1);
    CiOp *ops = CI_NEW_ARRAY(x->b.ctx, CiOp, group->nfolds + 1);
    int ninto = 0;
    for (int k = 0; k < group->nfolds; k++) {
        ops[k] = group->folds[k]->fold;
        bool has_place = !ci_reduction_of(ops[k])->lift;
        for (int w = 0; w < ci_fold_width(ops[k]); w++)
            into[ninto++] =
                ci_build_alloc(&x->b, ci_build_name(&x->b, w && has_place ? "place" : "acc"),
                               accumulator_dtype(x, group, k, w), 1, CI_SPACE_register,
                               ci_expand_number(x, 1));
    }
    CiStmt *fold = ci_build_add(&x->b, CI_STMT_fold);
    fold->vars = CI_NEW_ARRAY(x->b.ctx, const CiExpr *, count + 1);
    fold->extents = CI_NEW_ARRAY(x->b.ctx, const CiExpr *, count + 1);
    for (int k = 0; k < count; k++) {
        fold->vars[k] = stage->axes[group->depth + k].var;
        fold->extents[k] = stage->axes[group->depth + k].extent;
    }
    fold->nvars = count;
    fold->order = group->folds[0]->order;
    fold->ops = ops;
    fold->nops = group->nfolds;
    fold->into = into;
    fold->ninto = ninto;
    return fold;
}

/* The results of folds, at their elements. */
static void
store_folds(CiExpander *x, const Group *group, const CiStmt *fold)
{
    int at = 0;
    for (int k = 0; k < group->nfolds; k++) {
        const CiNest *nest = group->folds[k];
        at += ci_fold_width(nest->fold);
        int value = ci_build_load(&x->b, fold->into[at - 1], ci_expand_number(x, 0), 1);
        ci_build_store(&x->b, ci_expand_memory(x, nest->target),
                       ci_expand_place(x, nest->target, nest->store),
                       cast_to(x, value, nest->target->dtype));
        if (nest->is_combined)
            x->b.to->last->op = nest->combine;
    }
}

/* The cell of a scan is allocated outside the loop that scans. */
static void
open_scans(CiExpander *x, const Group *group)
{
    const CiStageCode *code = group->code;
    for (int k = 0; k < code->nvalues; k++) {
        const CiScalar *op = &code->values[k].op;
        if (ci_op_kind(op->op) != CI_OPKIND_scan || !group->is_needed[k])
            continue;
        CI_REQUIRE(x->b.ctx, group->depth >= group->stage->naxes - 1 && group->stage->naxes > 0);
        CiMemory *cell = ci_build_alloc(&x->b, ci_build_name(&x->b, "running"), op->dtype, 1,
                                        CI_SPACE_register, ci_expand_number(x, 1));
        ci_map_put(x->cells, CI_KEY(group->stage->nests[code->values[k].nest]), cell);
    }
}

static void
find_needed(CiExpander *x, Group *group)
{
    group->is_needed = CI_NEW_ARRAY(x->b.ctx, bool, group->code->nvalues + 1);
    group->values = CI_NEW_ARRAY(x->b.ctx, int, group->code->nvalues + 1);
    for (int k = 0; k < group->code->nvalues; k++)
        group->values[k] = -1;
    for (int n = 0; n < group->stage->nnests; n++)
        if (is_folded_here(group, group->stage->nests[n]) ||
            is_stored_here(x, group, group->stage->nests[n]))
            mark(group, group->code->results[n]);
}

static void
add_group(CiExpander *x, Group *group)
{
    const CiStage *stage = group->stage;
    CiStmts *outside = x->b.to;
    find_needed(x, group);
    for (int k = 0; k < group->depth; k++) {
        if (k == stage->naxes - 1)
            open_scans(x, group);
        CiStmt *loop = ci_build_loop(&x->b, stage->axes[k].var, stage->axes[k].extent,
                                     ci_expand_run_mode(&stage->axes[k]));
        ci_build_enter(&x->b, &loop->body);
    }
    if (group->nfolds) {
        if (group->depth < stage->naxes)
            open_scans(x, group);
        CiStmt *fold = add_fold(x, group);
        CiStmts *around = ci_build_enter(&x->b, &fold->body);
        add_body(x, group);
        add_yield(x, group);
        ci_build_leave(&x->b, around);
        store_folds(x, group, fold);
    } else {
        add_body(x, group);
    }
    ci_build_leave(&x->b, outside);
}

/* ---- groups ---- */

/* One loop can do both: where the order is the nest's, both have it, and as many lanes. */
static bool
fold_alike(const Group *group, const CiNest *nest, CiDtype dtype)
{
    for (int k = 0; k < group->nfolds; k++) {
        CiDtype other = group->code->values[group->fold_results[k]].op.dtype;
        bool is_free = ci_op_is_order_free(nest->fold, ci_dtype_sum(dtype)) ||
                       ci_op_is_order_free(group->folds[k]->fold, ci_dtype_sum(other));
        if (!is_free && (!ci_fold_order_equal(nest->order, group->folds[k]->order) ||
                         ci_lane_count(dtype) != ci_lane_count(other)))
            return false;
    }
    return true;
}

/* Folds whose order is told come first: their order is the group's. */
static void
add_to_group(Group *group, const CiNest *nest, int result)
{
    CiDtype dtype = ci_dtype_sum(group->code->values[result].op.dtype);
    int at = ci_op_is_order_free(nest->fold, dtype) ? group->nfolds : 0;
    memmove(group->folds + at + 1, group->folds + at,
            sizeof *group->folds * (size_t)(group->nfolds - at));
    memmove(group->fold_results + at + 1, group->fold_results + at,
            sizeof *group->fold_results * (size_t)(group->nfolds - at));
    group->folds[at] = nest;
    group->fold_results[at] = result;
    group->nfolds++;
}

static Group *
new_group(CiExpander *x, const CiStage *stage, CiStageCode *code, int depth)
{
    Group *group = CI_NEW(x->b.ctx, Group);
    group->stage = stage;
    group->code = code;
    group->depth = depth;
    group->folds = CI_NEW_ARRAY(x->b.ctx, const CiNest *, stage->nnests + 1);
    group->fold_results = CI_NEW_ARRAY(x->b.ctx, int, stage->nnests + 1);
    return group;
}

void
ci_expand_stage(CiExpander *x, const CiStage *stage)
{
    CiStageCode *code = ci_stage_code_new(x->b.ctx, x->leaf, stage);
    Group **groups = CI_NEW_ARRAY(x->b.ctx, Group *, stage->nnests + 1);
    int count = 0;
    for (int n = 0; n < stage->nnests; n++) {
        const CiNest *nest = stage->nests[n];
        int depth = nest->npoint - x->leaf->nouter, at = 0;
        if (!ci_nest_is_fold(nest))
            continue;
        CiDtype dtype = code->values[code->results[n]].op.dtype;
        while (at < count && (groups[at]->depth != depth || !fold_alike(groups[at], nest, dtype)))
            at++;
        if (at == count)
            groups[count++] = new_group(x, stage, code, depth);
        add_to_group(groups[at], nest, code->results[n]);
    }
    if (!count)
        groups[count++] = new_group(x, stage, code, stage->naxes);
    groups[0]->is_first = true;
    for (int k = 0; k < count; k++)
        add_group(x, groups[k]);
}
