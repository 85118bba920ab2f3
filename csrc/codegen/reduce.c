/* Folds -> loops over accumulators, in the orders of ir/loop.h. Each order is written once for all
 * reductions.
 *
 * There are `width` accumulators: the lanes of a vector, or, if the fold is inside a loop that runs
 * in lanes itself, elements of memory that are combined into a vector. The orders:
 *
 *   free     strips of accumulators over the last axis, in sequence over the others.
 *   serial   one accumulator.
 *   lanes    blocks of chains, closed into a binary counter; rows is the same with a width of 1.
 *   pairwise NumPy's: reduce_pairwise.c.
 *
 * Reductions with a free order may run in the same loops as ordered ones: they are not closed with
 * a block. */
#include "codegen/grid.h"
#include "codegen/reducer.h"
#include "codegen/reduction.h"
#include "codegen/split.h"

static bool
is_any_ordered(const CiReducer *r)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++]))
        if (ci_reduce_is_ordered(r, r->fold->ops[k], at))
            return true;
    return false;
}

static void
finish_free(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_halve(r, fold, at, count, values);
    values[0] = ci_reduce_plain_zero(r, values[0]);
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

static void
sum_block(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_halve(r, fold, at, count, values);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* ---- orders ---- */

/* Vector mathematics of a few elements costs as much as of one. */
static bool
is_written_out(const CiReducer *r)
{
    return r->b.machine->vector_bytes && r->extent->kind == CI_EXPR_const &&
           r->extent->value <= CI_SERIAL_LIMIT && !ci_stmts_have(&r->body, ci_stmt_is_math);
}

static void
finish_serial(CiReducer *r, CiOp fold, int at, int count)
{
    (void)fold, (void)count;
    int value = ci_build_load(&r->b, r->fold->into[at], ci_reduce_number(r, 0), 1);
    ci_build_store(&r->b, r->fold->into[at], ci_reduce_number(r, 0),
                   ci_reduce_plain_zero(r, value));
}

/* Loads the first element and combines the others with it in order, so that no identity is
 * needed. */
static void
add_in_order(CiReducer *r)
{
    const CiExpr *zero = ci_reduce_number(r, 0), *one = ci_reduce_number(r, 1);
    const int *lifted = ci_build_iteration(&r->b, &r->body, r->var, zero);
    ci_reduce_store(r, r->fold->into, r->fold->ninto, zero, lifted, NULL);
    CiStmt *loop = ci_build_for(&r->b, "r", ci_expr_sub(r->b.sym, r->extent, one),
                                is_written_out(r) ? CI_RUN_unroll : CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_reduce_step(r, ci_expr_add(r->b.sym, loop->vars[0], one), zero, 1, r->fold->into, NULL);
    ci_build_leave(&r->b, outside);
    ci_reduce_each(r, false, true, finish_serial);
}

static void
reduce_serial(CiReducer *r)
{
    if (r->extent->low > 0) {
        add_in_order(r);
        return;
    }
    CiStmt *choice =
        ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, ci_reduce_number(r, 0), r->extent);
    CiStmts *outside = ci_build_enter(&r->b, &choice->body);
    add_in_order(r);
    ci_build_enter(&r->b, &choice->other);
    ci_reduce_each(r, true, true, ci_reduce_start);
    ci_build_leave(&r->b, outside);
}

/* Adds the elements of a block, through strips if they are along several axes. */
static void
chains_of_block(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    const CiStmts body = r->body;
    const CiExpr *var = r->var;
    if (r->strips) {
        ci_reduce_fill_strips(r, first, count);
        first = ci_reduce_number(r, 0);
    }
    r->walk = ci_reduce_has_passes(r);
    ci_reduce_chains(r, first, count);
    if (r->walk) {
        ci_reduce_each(r, true, false, ci_reduce_transpose);
        r->walk = 2;
        ci_reduce_chains(r, first, count);
    }
    r->walk = 0;
    r->body = body;
    r->var = var;
}

/* Lanes of one set of accumulators. A thread of a GPU that reads along memory takes as many elements as one
 * access moves. */
static int
free_lanes(const CiReducer *r)
{
    int64_t extent = r->extent->high;
    CiDomain domain = {.vars = {r->var}, .extents = {r->extent}, .count = 1, .body = r->body};
    if (r->b.machine->threads && !r->is_in_lanes && !r->fold->count) {
        int lanes = ci_domain_lanes(&r->b, &domain);
        return ci_domain_is_whole(r->b.sym, &domain, lanes) ? lanes : 1;
    }
    int lanes = 1;
    while (lanes < r->b.machine->lanes && lanes < extent)
        lanes *= 2;
    return ci_reduce_lanes_inside(r, lanes);
}

/* Any order: all elements in one set of accumulators, along the last axis. */
static void
reduce_free(CiReducer *r)
{
    int64_t extent = r->extent->high;
    if (is_written_out(r) && r->fold->nvars == 1 && !r->fold->count) {
        reduce_serial(r);
        return;
    }
    r->lanes = r->width = free_lanes(r);
    for (int chains = r->b.machine->chains; r->lanes > 1 && chains > 1 && r->width < extent;
         chains /= 2)
        r->width *= 2;
    bool is_in_pieces = (r->fold->count && r->fold->nvars > 1) || ci_reduce_calls_ufunc(r);
    if (!is_in_pieces && ci_reduce_narrow(r))
        return;
    ci_reduce_alloc_accumulators(r);
    ci_reduce_each(r, true, true, ci_reduce_reset);
    if (is_in_pieces) {
        ci_reduce_in_pieces(r, ci_reduce_chains);
        ci_reduce_each(r, true, true, finish_free);
        return;
    }
    CiStmts *outside = r->b.to;
    for (int k = 0; k < r->fold->nvars - 1; k++) {
        CiStmt *loop = ci_build_loop(&r->b, r->fold->vars[k], r->fold->extents[k], CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
    }
    ci_reduce_chains(r, ci_reduce_number(r, 0), r->extent);
    ci_build_leave(&r->b, outside);
    ci_reduce_each(r, true, true, finish_free);
}

/* Full blocks, then what remains. */
static void
reduce_blocks(CiReducer *r)
{
    int64_t size = (int64_t)CI_BLOCK_CHAIN * r->width;
    const CiExpr *blocks = ci_expr_floordiv(r->b.sym, r->extent, ci_reduce_number(r, size)),
                 *done = ci_reduce_scaled(r, blocks, size),
                 *left = ci_expr_sub(r->b.sym, r->extent, done);
    CiStmts *outside = r->b.to;
    ci_reduce_alloc_strips(r, size);
    if (blocks->high > 0) {
        CiStmt *loop = ci_build_for(&r->b, "b", blocks, CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
        ci_reduce_each(r, true, false, ci_reduce_reset);
        chains_of_block(r, ci_reduce_scaled(r, loop->vars[0], size), ci_reduce_number(r, size));
        ci_reduce_each(r, true, false, sum_block);
        ci_counter_close(r, loop->vars[0]);
        ci_build_leave(&r->b, outside);
    }
    if (left->high > 0) {
        CiStmt *some =
            ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, ci_reduce_number(r, 0), left);
        ci_build_enter(&r->b, &some->body);
        ci_reduce_each(r, true, false, ci_reduce_reset);
        chains_of_block(r, done, left);
        ci_reduce_each(r, true, false, sum_block);
        ci_counter_close(r, blocks);
        ci_build_leave(&r->b, outside);
    }
}

static void
finish_block(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_halve(r, fold, at, count, values);
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

static void
reduce_one_block(CiReducer *r)
{
    ci_reduce_each(r, true, true, ci_reduce_reset);
    ci_reduce_alloc_strips(r, r->extent->high);
    chains_of_block(r, ci_reduce_number(r, 0), r->extent);
    ci_reduce_each(r, true, false, finish_block);
    ci_reduce_each(r, false, true, finish_free);
}

static void
reduce_long(CiReducer *r)
{
    r->lanes =
        r->b.machine->vector_bytes || r->is_in_lanes ? ci_reduce_lanes_inside(r, r->width) : r->width;
    ci_reduce_alloc_accumulators(r);
    if (r->extent->high <= (int64_t)CI_BLOCK_CHAIN * r->width) {
        reduce_one_block(r);
        return;
    }
    ci_counter_open(r);
    ci_reduce_each(r, false, true, ci_reduce_reset);
    reduce_blocks(r);
    ci_counter_join(r);
    ci_reduce_each(r, false, true, finish_free);
}

/* A few elements are folded one by one, in every order; how many the whole fold has decides. */
static void
reduce_ordered(CiReducer *r)
{
    if (r->fold->order.kind == CI_FOLD_serial || r->length->high <= CI_SERIAL_LIMIT) {
        reduce_serial(r);
        return;
    }
    r->width = r->fold->order.kind == CI_FOLD_rows ? 1 : ci_lane_count(r->fold->into[0]->dtype);
    if (r->length->low > CI_SERIAL_LIMIT) {
        reduce_long(r);
        return;
    }
    CiStmt *choice = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal, r->length,
                                   ci_reduce_number(r, CI_SERIAL_LIMIT));
    CiStmts *outside = ci_build_enter(&r->b, &choice->body);
    reduce_serial(r);
    ci_build_enter(&r->b, &choice->other);
    reduce_long(r);
    ci_build_leave(&r->b, outside);
}

/* The let that makes a value of a block. */
static const CiStmt *
find_let(const CiStmts *block, int value)
{
    const CiStmt *stmt = block->first;
    while (stmt && stmt->value != value)
        stmt = stmt->next;
    return stmt;
}

/* Each step multiplies and adds, and rounds once; what it begins with is 0. */
static void
reduce_fused(CiReducer *r)
{
    CiMemory *acc = r->fold->into[0];
    CiType type = ci_type_of(acc->dtype, 1);
    const CiExpr *zero = ci_reduce_number(r, 0);
    ci_build_store(&r->b, acc, zero, ci_build_const(&r->b, type, (CiConst){0}));
    CiStmt *loop = ci_build_for(&r->b, "r", r->extent, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    int product = ci_build_iteration(&r->b, &r->body, r->var, loop->vars[0])[0];
    const CiStmt *times = find_let(&loop->body, product);
    CI_REQUIRE(r->b.ctx, times && times->op == CI_OP_multiply);
    const int args[] = {times->args[0], times->args[1], ci_build_load(&r->b, acc, zero, 1)};
    ci_build_store(&r->b, acc, zero, ci_build_let(&r->b, type, CI_OP_fma, 3, args));
    ci_build_leave(&r->b, outside);
}

/* ---- the pass ---- */

static void
store_sums(CiReducer *r, CiOp fold, int at, int count)
{
    (void)fold;
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), r->lifted + at, NULL);
}

static void
combine_free(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_load(r, values, r->fold->into + at, count, ci_reduce_number(r, 0), 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, values, r->lifted + at);
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* The folded elements are sums of blocks: whole blocks are combined as in reduce_blocks. */
static void
reduce_sums(CiReducer *r)
{
    const CiExpr *zero = ci_reduce_number(r, 0);
    CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, r->extent);
    CiStmts *outside = ci_build_enter(&r->b, &some->other);
    ci_reduce_each(r, true, true, ci_reduce_start);
    ci_build_enter(&r->b, &some->body);
    ci_reduce_each(r, false, true, ci_reduce_start);
    ci_counter_open(r);
    CiStmt *loop = ci_build_for(&r->b, "b", r->extent, CI_RUN_serial);
    CiStmts *inside = ci_build_enter(&r->b, &loop->body);
    r->lifted = ci_build_iteration(&r->b, &r->body, r->var, loop->vars[0]);
    ci_reduce_each(r, true, false, store_sums);
    ci_reduce_each(r, false, true, combine_free);
    CiStmt *whole =
        ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, loop->vars[0], r->fold->blocks);
    CiStmts *around = ci_build_enter(&r->b, &whole->body);
    ci_counter_carry(r, loop->vars[0]);
    ci_build_leave(&r->b, around);
    ci_counter_push(r);
    ci_build_leave(&r->b, inside);
    ci_counter_join(r);
    ci_build_leave(&r->b, outside);
}

/* Threads of a block fold together, and lanes end together. */
static bool
is_search(const CiReducer *r)
{
    return !r->b.machine->threads && !r->is_in_lanes && ci_fold_is_search(r->fold) && (!r->fold->count || r->fold->nvars == 1);
}

static void
lower_fold(CiReducer *r)
{
    const CiStmt *fold = r->fold;
    int last = fold->nvars - 1;
    r->body = fold->body;
    r->var = fold->vars[last];
    r->strips = NULL;
    r->length = ci_expr_product_of(r->b.sym, fold->extents, fold->nvars);
    r->extent = fold->count ? fold->count : r->length;
    r->first = fold->count ? fold->from : ci_reduce_number(r, 0);
    if (fold->blocks) {
        reduce_sums(r);
        return;
    }
    if (fold->order.kind == CI_FOLD_fused) {
        if (last > 0)
            ci_reduce_flatten(r);
        reduce_fused(r);
        return;
    }
    if (fold->order.kind == CI_FOLD_pairwise && is_any_ordered(r)) {
        ci_reduce_pairwise(r);
        return;
    }
    if (fold->count && last == 0)
        ci_reduce_flatten(r);
    if (is_search(r)) {
        r->extent = fold->count ? fold->count : fold->extents[last];
        ci_reduce_search(r);
        return;
    }
    if (!is_any_ordered(r)) {
        r->extent = fold->count                ? fold->count
                    : ci_reduce_calls_ufunc(r) ? r->length
                                               : fold->extents[last];
        reduce_free(r);
        return;
    }
    if (last > 0)
        ci_reduce_flatten(r);
    reduce_ordered(r);
}

static void
lower(void *arg, CiStmt *stmt)
{
    CiReducer *r = arg;
    if (stmt->kind == CI_STMT_fold) {
        r->b.loc = stmt->loc;
        r->fold = stmt;
        lower_fold(r);
        return;
    }
    bool was_in_lanes = r->is_in_lanes;
    r->is_in_lanes |= stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector;
    ci_build_rewrite(&r->b, &stmt->body, lower, r);
    ci_build_rewrite(&r->b, &stmt->other, lower, r);
    r->is_in_lanes = was_in_lanes;
    ci_build_move(&r->b, stmt);
}

void
ci_reduce(CiBuild *b)
{
    CiReducer r = {.b = *b};
    ci_build_rewrite(&r.b, &b->proc->body, lower, &r);
}
