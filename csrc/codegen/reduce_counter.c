/* The binary counter of blocks: block number k is combined with as many earlier sums of its own
 * size as k has trailing ones. The order is that of a tree for any length. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"

#define MAX_LEVELS 48

/* ---- what accumulators hold ---- */

/* at: of its first accumulator. */
bool
ci_reduce_is_ordered(const CiReducer *r, CiOp fold, int at)
{
    return !r->b.machine->has_own_order && !ci_op_is_order_free(fold, r->fold->into[at]->dtype);
}

void
ci_reduce_load(CiReducer *r, int *values, CiMemory *const *from, int count, const CiExpr *at,
               int lanes)
{
    for (int k = 0; k < count; k++)
        values[k] = ci_build_load(&r->b, from[k], at, lanes);
}

void
ci_reduce_store(CiReducer *r, CiMemory *const *to, int count, const CiExpr *at, const int *values,
                const CiExpr *live)
{
    for (int k = 0; k < count; k++) {
        ci_build_store(&r->b, to[k], at, values[k]);
        r->b.to->last->live = live;
    }
}

void
ci_reduce_alloc(CiReducer *r, CiMemory ***to, const char *stem, int lanes, CiSpace space,
                int64_t size)
{
    *to = CI_NEW_ARRAY(r->b.ctx, CiMemory *, r->fold->ninto + 1);
    for (int k = 0; k < r->fold->ninto; k++)
        (*to)[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, stem), r->fold->into[k]->dtype, lanes,
                                  space, ci_reduce_number(r, size));
}

/* Calls emit for each reduction that is asked for, with the number of its first accumulator. */
void
ci_reduce_each(CiReducer *r, bool ordered, bool free_ones,
               void (*emit)(CiReducer *r, CiOp fold, int at, int count))
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        int count = ci_fold_width(fold);
        if (ci_reduce_is_ordered(r, fold, at) ? ordered : free_ones)
            emit(r, fold, at, count);
        at += count;
    }
}

/* ---- the counter ---- */

static const CiExpr *
pop(CiReducer *r)
{
    const CiExpr *zero = ci_reduce_number(r, 0);
    int one = ci_build_index(&r->b, ci_reduce_number(r, 1)),
        args[] = {ci_build_load(&r->b, r->depth, zero, 1), one};
    int below = ci_build_let(&r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_subtract, 2, args);
    ci_build_store(&r->b, r->depth, zero, below);
    return ci_build_bind(&r->b, below, ci_reduce_number(r, MAX_LEVELS));
}

static void
push(CiReducer *r, CiOp fold, int at, int count)
{
    (void)fold;
    int values[CI_MAX_ACCUMULATORS];
    const CiExpr *zero = ci_reduce_number(r, 0);
    const CiExpr *top = ci_build_bind(&r->b, ci_build_load(&r->b, r->depth, zero, 1),
                                      ci_reduce_number(r, MAX_LEVELS));
    ci_reduce_load(r, values, r->sums + at, count, zero, 1);
    ci_reduce_store(r, r->pending + at, count, top, values, NULL);
}

/* Combines pending sums with the current one. Pending sums are the left operands because their
 * elements are earlier. */
void
ci_counter_merge(CiReducer *r, const CiExpr *top)
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        int count = ci_fold_width(fold), early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
        if (ci_reduce_is_ordered(r, fold, at)) {
            ci_reduce_load(r, early, r->pending + at, count, top, 1);
            ci_reduce_load(r, late, r->sums + at, count, ci_reduce_number(r, 0), 1);
            ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
            ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), early, NULL);
        }
        at += count;
    }
}

/* Block number k is full: as many neighbours of its size are as k has ones at its end. */
void
ci_counter_carry(CiReducer *r, const CiExpr *block)
{
    const CiExpr *zero = ci_reduce_number(r, 0);
    CiMemory *carry = ci_build_alloc(&r->b, ci_build_name(&r->b, "carry"), CI_DTYPE_i64, 1,
                                     CI_SPACE_register, ci_reduce_number(r, 1));
    ci_build_store(&r->b, carry, zero, ci_build_index(&r->b, block));
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *left = ci_build_bind(&r->b, ci_build_load(&r->b, carry, zero, 1),
                                       ci_expr_add(r->b.sym, r->extent, ci_reduce_number(r, 1)));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_equal,
                  ci_expr_mod(r->b.sym, left, ci_reduce_number(r, 2)), zero);
    ci_counter_merge(r, pop(r));
    ci_build_store(&r->b, carry, zero,
                   ci_build_index(&r->b, ci_expr_floordiv(r->b.sym, left, ci_reduce_number(r, 2))));
    ci_build_leave(&r->b, outside);
}

/* The sums become the latest of what is pending. */
void
ci_counter_push(CiReducer *r)
{
    const CiExpr *zero = ci_reduce_number(r, 0);
    ci_reduce_each(r, true, false, push);
    int args[] = {ci_build_load(&r->b, r->depth, zero, 1),
                  ci_build_index(&r->b, ci_reduce_number(r, 1))};
    ci_build_store(&r->b, r->depth, zero,
                   ci_build_let(&r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_add, 2, args));
}

void
ci_counter_close(CiReducer *r, const CiExpr *block)
{
    ci_counter_carry(r, block);
    ci_counter_push(r);
}

static void
leave_sums(CiReducer *r, CiOp fold, int at, int count)
{
    (void)fold;
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_load(r, values, r->sums + at, count, ci_reduce_number(r, 0), 1);
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* The latest first: x = earlier op x. Begins from the only one, or from the top. */
void
ci_counter_join(CiReducer *r)
{
    const CiExpr *zero = ci_reduce_number(r, 0), *top = pop(r);
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++])) {
        int count = ci_fold_width(r->fold->ops[k]), values[CI_MAX_ACCUMULATORS];
        if (!ci_reduce_is_ordered(r, r->fold->ops[k], at))
            continue;
        ci_reduce_load(r, values, r->pending + at, count, top, 1);
        ci_reduce_store(r, r->sums + at, count, zero, values, NULL);
    }
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *depth = ci_build_bind(&r->b, ci_build_load(&r->b, r->depth, zero, 1),
                                        ci_reduce_number(r, MAX_LEVELS));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_equal, depth, zero);
    ci_counter_merge(r, pop(r));
    ci_build_leave(&r->b, outside);
    ci_reduce_each(r, true, false, leave_sums);
}

void
ci_counter_open(CiReducer *r)
{
    r->depth = ci_build_alloc(&r->b, ci_build_name(&r->b, "depth"), CI_DTYPE_i64, 1,
                              CI_SPACE_register, ci_reduce_number(r, 1));
    ci_build_store(&r->b, r->depth, ci_reduce_number(r, 0),
                   ci_build_index(&r->b, ci_reduce_number(r, 0)));
    ci_reduce_alloc(r, &r->sums, "sum", 1, CI_SPACE_register, 1);
    ci_reduce_alloc(r, &r->pending, "pending", 1, CI_SPACE_stack, MAX_LEVELS);
}
