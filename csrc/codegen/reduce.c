/* Folds -> loops over accumulators, in the orders of ir/loop.h: each is written once, for whatever
 * its reductions are.
 *
 * `width` accumulators stand side by side: lanes of a vector, or, where the fold is inside a loop
 * that runs in lanes itself, elements of memory, a vector of which is made then. A fold is
 *   free     strips of accumulators over the last axis, one after another over the others
 *   serial   one accumulator
 *   lanes    blocks of chains, closed into a binary counter; rows is the same with a width of 1
 * Reductions whose order is free may run beside others: they are not closed with a block. */
#include "codegen/at.h"
#include "codegen/codegen.h"
#include "codegen/reduction.h"

#define MOST_LEVELS 48

typedef struct Reducer {
    CiBuild b;
    const CiFamily *family;
    bool is_in_lanes; /* of a loop around */
    const CiStmt *fold;
    CiStmts body; /* over `var` alone */
    const CiExpr *var, *extent;
    int width, lanes; /* of accumulators; of a vector of them: the width, or 1 */
    CiMemory **acc;   /* per accumulator, width / lanes vectors */
    CiMemory **sums;  /* of those whose order is told: of the block that is closed */
    CiMemory **pending, *depth;
} Reducer;

static const CiExpr *
number(Reducer *r, int64_t value)
{
    return ci_expr_const(r->b.sym, value);
}

static const CiExpr *
scaled(Reducer *r, const CiExpr *e, int64_t by)
{
    return ci_expr_mul(r->b.sym, e, number(r, by));
}

/* at: of its first accumulator. */
static bool
is_ordered(const Reducer *r, CiOp fold, int at)
{
    return !ci_op_is_order_free(fold, r->fold->into[at]->dtype);
}

static bool
is_any_ordered(const Reducer *r)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++]))
        if (is_ordered(r, r->fold->ops[k], at))
            return true;
    return false;
}

/* ---- values of accumulators ---- */

static int
identity_value(Reducer *r, CiOp fold, int k, const CiMemory *into, int lanes)
{
    CiDtype dtype = into->dtype;
    int value = ci_build_const(&r->b, ci_type_of(dtype, 1), ci_reduction_identity(fold, k, dtype));
    if (lanes > 1)
        value = ci_build_let(&r->b, ci_type_of(dtype, lanes), CI_OP_splat, 1, &value);
    return value;
}

static void
load_all(Reducer *r, int *values, CiMemory *const *from, int count, const CiExpr *at, int lanes)
{
    for (int k = 0; k < count; k++)
        values[k] = ci_build_load(&r->b, from[k], at, lanes);
}

static void
store_all(Reducer *r, CiMemory *const *to, int count, const CiExpr *at, const int *values,
          const CiExpr *live)
{
    for (int k = 0; k < count; k++) {
        ci_build_store(&r->b, to[k], at, values[k]);
        r->b.to->last->live = live;
    }
}

/* Calls emit for each reduction that is asked for, with the number of its first accumulator. */
static void
each_reduction(Reducer *r, bool ordered, bool free_ones,
               void (*emit)(Reducer *r, CiOp fold, int at, int count))
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        int count = ci_fold_width(fold);
        if (is_ordered(r, fold, at) ? ordered : free_ones)
            emit(r, fold, at, count);
        at += count;
    }
}

static CiStmt *
rows_loop(Reducer *r, int count)
{
    return ci_build_for(&r->b, "w", number(r, count), CI_RUN_serial);
}

static void
reset(Reducer *r, CiOp fold, int at, int count)
{
    int rows = r->width / r->lanes, values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = identity_value(r, fold, k, r->fold->into[at + k], r->lanes);
    CiStmts *outside = r->b.to;
    const CiExpr *row = number(r, 0);
    if (rows > 1) {
        CiStmt *loop = rows_loop(r, rows);
        ci_build_enter(&r->b, &loop->body);
        row = loop->vars[0];
    }
    store_all(r, r->acc + at, count, row, values, NULL);
    ci_build_leave(&r->b, outside);
}

/* ---- steps ---- */

/* Values from `first` on, one in each lane, into accumulators in `row`. */
static void
step(Reducer *r, const CiExpr *first, const CiExpr *row, int lanes, CiMemory *const *acc,
     const CiExpr *live)
{
    CiAt at = {1, &r->var, &first, r->var, lanes, live};
    const int *lifted = ci_build_at(&r->b, &r->body, &at);
    for (int k = 0, from = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        const CiReduction *reduction = ci_reduction_of(fold);
        int values[CI_MAX_ACCUMULATORS];
        load_all(r, values, acc + from, reduction->count, row, lanes);
        reduction->step(&r->b, fold, lanes, values, lifted + from);
        store_all(r, acc + from, reduction->count, row, values, live);
        from += reduction->count;
    }
}

/* The accumulators' next values, one for each: from `first` on, as far as there are `left`. */
static void
chain(Reducer *r, const CiExpr *first, const CiExpr *left)
{
    int rows = r->width / r->lanes;
    CiStmts *outside = r->b.to;
    const CiExpr *row = number(r, 0);
    if (rows > 1) {
        CiStmt *loop = rows_loop(r, rows);
        ci_build_enter(&r->b, &loop->body);
        row = loop->vars[0];
        first = ci_expr_add(r->b.sym, first, row);
    }
    if (left && r->lanes == 1) {
        CiStmt *guard = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, row, left);
        ci_build_enter(&r->b, &guard->body);
    }
    step(r, first, row, r->lanes, r->acc, r->lanes > 1 ? left : NULL);
    ci_build_leave(&r->b, outside);
}

/* ---- many into one ---- */

static void
halve_rows(Reducer *r, CiOp fold, int at, int count)
{
    for (int rows = r->width / r->lanes / 2; rows > 0; rows /= 2) {
        CiStmt *loop = rows_loop(r, rows);
        CiStmts *outside = ci_build_enter(&r->b, &loop->body);
        int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
        const CiExpr *other = ci_expr_add(r->b.sym, loop->vars[0], number(r, rows));
        load_all(r, early, r->acc + at, count, loop->vars[0], r->lanes);
        load_all(r, late, r->acc + at, count, other, r->lanes);
        ci_reduction_of(fold)->combine(&r->b, fold, r->lanes, early, late);
        store_all(r, r->acc + at, count, loop->vars[0], early, NULL);
        ci_build_leave(&r->b, outside);
    }
}

/* Accumulators fold pairwise; what comes of them is left in values. */
static void
halve(Reducer *r, CiOp fold, int at, int count, int *values)
{
    halve_rows(r, fold, at, count);
    load_all(r, values, r->acc + at, count, number(r, 0), r->lanes);
    for (int lanes = r->lanes / 2; lanes > 0; lanes /= 2) {
        int late[CI_MAX_ACCUMULATORS];
        for (int k = 0; k < count; k++) {
            CiType type = ci_type_of(r->b.proc->types[values[k]].dtype, lanes);
            late[k] = ci_build_let(&r->b, type, CI_OP_high, 1, &values[k]);
            values[k] = ci_build_let(&r->b, type, CI_OP_low, 1, &values[k]);
        }
        ci_reduction_of(fold)->combine(&r->b, fold, lanes, values, late);
    }
}

/* A zero of an extreme is +0, in whatever order zeros came. */
static int
plain_zero(Reducer *r, int value)
{
    CiDtype dtype = r->b.proc->types[value].dtype;
    if (dtype != CI_DTYPE_f32 && dtype != CI_DTYPE_f64)
        return value;
    int zero = ci_build_const(&r->b, ci_type_of(dtype, 1), ci_const_double(dtype, 0.0)),
        args[] = {value, zero};
    return ci_build_let(&r->b, ci_type_of(dtype, 1), CI_OP_add, 2, args);
}

static void
finish_free(Reducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    halve(r, fold, at, count, values);
    values[0] = plain_zero(r, values[0]);
    store_all(r, r->fold->into + at, count, number(r, 0), values, NULL);
}

/* ---- the binary counter of blocks ---- */

static const CiExpr *
pop(Reducer *r)
{
    const CiExpr *zero = number(r, 0);
    int one = ci_build_index(&r->b, number(r, 1)),
        args[] = {ci_build_load(&r->b, r->depth, zero, 1), one};
    int below = ci_build_let(&r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_subtract, 2, args);
    ci_build_store(&r->b, r->depth, zero, below);
    return ci_build_bind(&r->b, below, number(r, MOST_LEVELS));
}

static void
push(Reducer *r, CiOp fold, int at, int count)
{
    (void)fold;
    int values[CI_MAX_ACCUMULATORS];
    const CiExpr *zero = number(r, 0);
    const CiExpr *top =
        ci_build_bind(&r->b, ci_build_load(&r->b, r->depth, zero, 1), number(r, MOST_LEVELS));
    load_all(r, values, r->sums + at, count, zero, 1);
    store_all(r, r->pending + at, count, top, values, NULL);
}

/* What is pending came earlier. */
static void
merge(Reducer *r, const CiExpr *top)
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        int count = ci_fold_width(fold), early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
        if (is_ordered(r, fold, at)) {
            load_all(r, early, r->pending + at, count, top, 1);
            load_all(r, late, r->sums + at, count, number(r, 0), 1);
            ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
            store_all(r, r->sums + at, count, number(r, 0), early, NULL);
        }
        at += count;
    }
}

static void
sum_block(Reducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    halve(r, fold, at, count, values);
    store_all(r, r->sums + at, count, number(r, 0), values, NULL);
}

/* Block number k is full: as many neighbours of its size are as k has ones at its end. */
static void
close_block(Reducer *r, const CiExpr *block)
{
    const CiExpr *zero = number(r, 0);
    each_reduction(r, true, false, sum_block);
    CiMemory *carry = ci_build_alloc(&r->b, ci_build_name(&r->b, "carry"), CI_DTYPE_i64, 1,
                                     CI_SPACE_register, number(r, 1));
    ci_build_store(&r->b, carry, zero, ci_build_index(&r->b, block));
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *left = ci_build_bind(&r->b, ci_build_load(&r->b, carry, zero, 1),
                                       ci_expr_add(r->b.sym, r->extent, number(r, 1)));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_equal, ci_expr_mod(r->b.sym, left, number(r, 2)),
                  zero);
    merge(r, pop(r));
    ci_build_store(&r->b, carry, zero,
                   ci_build_index(&r->b, ci_expr_floordiv(r->b.sym, left, number(r, 2))));
    ci_build_leave(&r->b, outside);
    each_reduction(r, true, false, push);
    int args[] = {ci_build_load(&r->b, r->depth, zero, 1), ci_build_index(&r->b, number(r, 1))};
    ci_build_store(&r->b, r->depth, zero,
                   ci_build_let(&r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_add, 2, args));
}

static void
leave_sums(Reducer *r, CiOp fold, int at, int count)
{
    (void)fold;
    int values[CI_MAX_ACCUMULATORS];
    load_all(r, values, r->sums + at, count, number(r, 0), 1);
    store_all(r, r->fold->into + at, count, number(r, 0), values, NULL);
}

/* The latest first: x = earlier op x. Begins from the only one, or from the top. */
static void
join_blocks(Reducer *r)
{
    const CiExpr *zero = number(r, 0), *top = pop(r);
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++])) {
        int count = ci_fold_width(r->fold->ops[k]), values[CI_MAX_ACCUMULATORS];
        if (!is_ordered(r, r->fold->ops[k], at))
            continue;
        load_all(r, values, r->pending + at, count, top, 1);
        store_all(r, r->sums + at, count, zero, values, NULL);
    }
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *depth =
        ci_build_bind(&r->b, ci_build_load(&r->b, r->depth, zero, 1), number(r, MOST_LEVELS));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_equal, depth, zero);
    merge(r, pop(r));
    ci_build_leave(&r->b, outside);
    each_reduction(r, true, false, leave_sums);
}

/* ---- orders ---- */

static void
alloc_each(Reducer *r, CiMemory ***to, const char *stem, int lanes, CiSpace space, int64_t size)
{
    *to = CI_NEW_ARRAY(r->b.ctx, CiMemory *, r->fold->ninto + 1);
    for (int k = 0; k < r->fold->ninto; k++)
        (*to)[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, stem), r->fold->into[k]->dtype, lanes,
                                  space, number(r, size));
}

static void
alloc_accumulators(Reducer *r)
{
    int rows = r->width / r->lanes;
    alloc_each(r, &r->acc, "lanes", r->lanes, rows > 1 ? CI_SPACE_stack : CI_SPACE_register, rows);
}

/* Chains of accumulators from element `first` on, as many elements as there are. */
static void
chains(Reducer *r, const CiExpr *first, const CiExpr *count)
{
    CiStmts *outside = r->b.to;
    const CiExpr *from = number(r, 0);
    bool is_one = count->high <= r->width;
    if (!is_one) {
        const CiExpr *trips = ci_expr_ceildiv(r->b.sym, count, number(r, r->width));
        CiStmt *loop = ci_build_for(&r->b, "c", trips, CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
        from = scaled(r, loop->vars[0], r->width);
    }
    bool is_full = ci_sym_known_multiple_of(r->b.sym, count, number(r, r->width)) &&
                   (!is_one || count->low > 0);
    chain(r, ci_expr_add(r->b.sym, first, from),
          is_full ? NULL : ci_expr_sub(r->b.sym, count, from));
    ci_build_leave(&r->b, outside);
}

/* Any order: all elements in one set of accumulators, along the last axis. */
static void
reduce_free(Reducer *r)
{
    int most = r->is_in_lanes ? 1 : r->family->lanes;
    r->width = 1;
    while (r->width < most && r->width < r->extent->high)
        r->width *= 2;
    r->lanes = r->width;
    alloc_accumulators(r);
    each_reduction(r, true, true, reset);
    CiStmts *outside = r->b.to;
    for (int k = 0; k < r->fold->nvars - 1; k++) {
        CiStmt *loop = ci_build_loop(&r->b, r->fold->vars[k], r->fold->extents[k], CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
    }
    chains(r, number(r, 0), r->extent);
    ci_build_leave(&r->b, outside);
    each_reduction(r, true, true, finish_free);
}

static void
start_into(Reducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = identity_value(r, fold, k, r->fold->into[at + k], 1);
    if (ci_op_combine(fold) == CI_OP_add) /* a sum of nothing is +0, though it begins from -0 */
        values[0] = ci_build_const(&r->b, ci_type_of(r->fold->into[at]->dtype, 1), (CiConst){0});
    store_all(r, r->fold->into + at, count, number(r, 0), values, NULL);
}

static void
finish_serial(Reducer *r, CiOp fold, int at, int count)
{
    (void)fold, (void)count;
    int value = ci_build_load(&r->b, r->fold->into[at], number(r, 0), 1);
    ci_build_store(&r->b, r->fold->into[at], number(r, 0), plain_zero(r, value));
}

/* The first element, and one after another to it: so nothing is asked of an identity. */
static void
add_in_turn(Reducer *r)
{
    const CiExpr *zero = number(r, 0), *one = number(r, 1);
    CiAt first = {1, &r->var, &zero, NULL, 1, NULL};
    const int *lifted = ci_build_at(&r->b, &r->body, &first);
    store_all(r, r->fold->into, r->fold->ninto, zero, lifted, NULL);
    CiStmt *loop = ci_build_for(&r->b, "r", ci_expr_sub(r->b.sym, r->extent, one), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    step(r, ci_expr_add(r->b.sym, loop->vars[0], one), zero, 1, r->fold->into, NULL);
    ci_build_leave(&r->b, outside);
    each_reduction(r, false, true, finish_serial);
}

static void
reduce_serial(Reducer *r)
{
    if (r->extent->low > 0) {
        add_in_turn(r);
        return;
    }
    CiStmt *choice = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, number(r, 0), r->extent);
    CiStmts *outside = ci_build_enter(&r->b, &choice->body);
    add_in_turn(r);
    ci_build_enter(&r->b, &choice->other);
    each_reduction(r, true, true, start_into);
    ci_build_leave(&r->b, outside);
}

/* Full blocks, then what remains. */
static void
reduce_blocks(Reducer *r)
{
    int64_t size = (int64_t)CI_BLOCK_CHAIN * r->width;
    const CiExpr *blocks = ci_expr_floordiv(r->b.sym, r->extent, number(r, size)),
                 *done = scaled(r, blocks, size), *left = ci_expr_sub(r->b.sym, r->extent, done);
    CiStmts *outside = r->b.to;
    if (blocks->high > 0) {
        CiStmt *loop = ci_build_for(&r->b, "b", blocks, CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
        each_reduction(r, true, false, reset);
        chains(r, scaled(r, loop->vars[0], size), number(r, size));
        close_block(r, loop->vars[0]);
        ci_build_leave(&r->b, outside);
    }
    if (left->high > 0) {
        CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, number(r, 0), left);
        ci_build_enter(&r->b, &some->body);
        each_reduction(r, true, false, reset);
        chains(r, done, left);
        close_block(r, blocks);
        ci_build_leave(&r->b, outside);
    }
}

static void
alloc_counter(Reducer *r)
{
    r->depth = ci_build_alloc(&r->b, ci_build_name(&r->b, "depth"), CI_DTYPE_i64, 1,
                              CI_SPACE_register, number(r, 1));
    ci_build_store(&r->b, r->depth, number(r, 0), ci_build_index(&r->b, number(r, 0)));
    alloc_each(r, &r->sums, "sum", 1, CI_SPACE_register, 1);
    alloc_each(r, &r->pending, "pending", 1, CI_SPACE_stack, MOST_LEVELS);
}

static void
reduce_long(Reducer *r)
{
    r->lanes = r->is_in_lanes ? 1 : r->width;
    alloc_accumulators(r);
    alloc_counter(r);
    each_reduction(r, false, true, reset);
    reduce_blocks(r);
    join_blocks(r);
    each_reduction(r, false, true, finish_free);
}

/* A few elements are folded one by one, in every order. */
static void
reduce_ordered(Reducer *r)
{
    if (r->fold->order == CI_FOLD_serial || r->extent->high <= CI_SERIAL_LIMIT) {
        reduce_serial(r);
        return;
    }
    r->width = r->fold->order == CI_FOLD_rows ? 1 : ci_lane_count(r->fold->into[0]->dtype);
    if (r->extent->low > CI_SERIAL_LIMIT) {
        reduce_long(r);
        return;
    }
    CiStmt *choice = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal, r->extent,
                                   number(r, CI_SERIAL_LIMIT));
    CiStmts *outside = ci_build_enter(&r->b, &choice->body);
    reduce_serial(r);
    ci_build_enter(&r->b, &choice->other);
    reduce_long(r);
    ci_build_leave(&r->b, outside);
}

/* ---- folds over several axes ---- */

/* One variable that counts the points of all of them. */
static void
flatten(Reducer *r)
{
    const CiStmt *fold = r->fold;
    const CiExpr *to[CI_MAX_FOLD_AXES];
    r->body = (CiStmts){0};
    r->extent = ci_expr_product_of(r->b.sym, fold->extents, fold->nvars);
    r->var = ci_expr_index(r->b.sym, ci_build_name(&r->b, "p"), r->extent);
    const CiExpr *rest = r->var;
    for (int k = fold->nvars - 1; k >= 0; k--) {
        to[k] = k ? ci_expr_mod(r->b.sym, rest, fold->extents[k]) : rest;
        rest = ci_expr_floordiv(r->b.sym, rest, fold->extents[k]);
    }
    CiAt at = {fold->nvars, fold->vars, to, NULL, 1, NULL};
    CiStmts *outside = ci_build_enter(&r->b, &r->body);
    const int *lifted = ci_build_at(&r->b, &fold->body, &at);
    CiStmt *yield = ci_build_add(&r->b, CI_STMT_yield);
    yield->args = CI_NEW_ARRAY(r->b.ctx, int, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        yield->args[k] = lifted[k];
    yield->nargs = fold->ninto;
    ci_build_leave(&r->b, outside);
}

static void
lower_fold(Reducer *r)
{
    int last = r->fold->nvars - 1;
    r->body = r->fold->body;
    r->var = r->fold->vars[last];
    r->extent = r->fold->extents[last];
    if (!is_any_ordered(r)) {
        reduce_free(r);
        return;
    }
    if (last > 0)
        flatten(r);
    reduce_ordered(r);
}

/* ---- the pass ---- */

static void
lower_block(Reducer *r, CiStmts *block)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&r->b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        if (stmt->kind == CI_STMT_fold) {
            r->b.loc = stmt->loc;
            r->fold = stmt;
            lower_fold(r);
            continue;
        }
        bool was_in_lanes = r->is_in_lanes;
        r->is_in_lanes |= stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector;
        lower_block(r, &stmt->body);
        lower_block(r, &stmt->other);
        r->is_in_lanes = was_in_lanes;
        ci_build_move(&r->b, stmt);
    }
    ci_build_leave(&r->b, outside);
}

void
ci_reduce(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    Reducer r = {.b = {procs->ctx, procs->sym, proc, NULL, {0}}, .family = family};
    lower_block(&r, &proc->body);
}
