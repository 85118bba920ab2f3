/* What pairwise folds add up at once: a block of at most 16 L elements through L accumulators,
 * which are lanes, or two blocks side by side. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"

/* ---- sizes ---- */

int
ci_pairwise_lanes(CiDtype dtype)
{
    return ci_dtype_class(dtype) == CI_CLASS_complex ? 4 : 8;
}

const CiExpr *
ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count)
{
    const CiExpr *two = ci_expr_const(sym, 2), *eight = ci_expr_const(sym, 8);
    bool is_complex = ci_dtype_class(dtype) == CI_CLASS_complex;
    const CiExpr *half = is_complex ? count : ci_expr_floordiv(sym, count, two);
    half = ci_expr_mul(sym, ci_expr_floordiv(sym, half, eight), eight);
    return is_complex ? ci_expr_floordiv(sym, half, two) : half;
}

/* ---- accumulators ---- */

static int64_t
block_size(const CiReducer *r)
{
    return (int64_t)CI_PAIRWISE_LENGTH * r->width;
}

/* Elements that are added up without a walk through the tree. */
int64_t
ci_block_most_at_once(const CiReducer *r)
{
    return r->others ? 2 * block_size(r) : block_size(r);
}

static void
empty_sums(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = ci_reduce_identity(r, fold, k, r->sums[at + k], 1);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* Neighbours meet: ((0 + 1) + (2 + 3)) + …, of `count` vectors from number `row` on. */
static void
join_neighbours(CiReducer *r, CiOp fold, int at, int row, int count, int *values)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    if (count > 1) {
        int late[CI_MAX_ACCUMULATORS];
        join_neighbours(r, fold, at, row, count / 2, values);
        join_neighbours(r, fold, at, row + count / 2, count / 2, late);
        reduction->combine(&r->b, fold, 1, values, late);
        return;
    }
    ci_reduce_load(r, values, r->acc + at, reduction->count, ci_reduce_number(r, row), r->lanes);
    for (int lanes = r->lanes / 2; lanes > 0; lanes /= 2) {
        int odd[CI_MAX_ACCUMULATORS];
        for (int k = 0; k < reduction->count; k++) {
            CiType type = ci_type_of(r->b.proc->types[values[k]].dtype, lanes);
            odd[k] = ci_build_let(&r->b, type, CI_OP_odd, 1, &values[k]);
            values[k] = ci_build_let(&r->b, type, CI_OP_even, 1, &values[k]);
        }
        reduction->combine(&r->b, fold, lanes, values, odd);
    }
}

static void
join_accumulators(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    join_neighbours(r, fold, at, 0, r->width / r->lanes, values);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* One element more, behind those that the sums hold. */
static void
add_element(CiReducer *r, const int *lifted)
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        const CiReduction *reduction = ci_reduction_of(fold);
        CiMemory **to = ci_reduce_is_ordered(r, fold, at) ? r->sums : r->fold->into;
        int values[CI_MAX_ACCUMULATORS];
        ci_reduce_load(r, values, to + at, reduction->count, ci_reduce_number(r, 0), 1);
        reduction->step(&r->b, fold, 1, values, lifted + at);
        ci_reduce_store(r, to + at, reduction->count, ci_reduce_number(r, 0), values, NULL);
        at += reduction->count;
    }
}

/* ---- vectors with more lanes than accumulators ---- */

/* Lanes of one operation's values, as many of them at a time as there are accumulators, in order.
 */
static void
add_lanes(CiReducer *r, CiOp fold, int at, const int *lifted, int lanes)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    const CiExpr *zero = ci_reduce_number(r, 0);
    int values[CI_MAX_ACCUMULATORS];
    if (lanes == r->lanes) {
        ci_reduce_load(r, values, r->acc + at, reduction->count, zero, lanes);
        reduction->step(&r->b, fold, lanes, values, lifted);
        ci_reduce_store(r, r->acc + at, reduction->count, zero, values, NULL);
        return;
    }
    for (int half = 0; half < 2; half++) {
        for (int k = 0; k < reduction->count; k++) {
            CiType type = ci_type_of(r->b.proc->types[lifted[k]].dtype, lanes / 2);
            values[k] = ci_build_let(&r->b, type, half ? CI_OP_high : CI_OP_low, 1, &lifted[k]);
        }
        add_lanes(r, fold, at, values, lanes / 2);
    }
}

static void
add_values(CiReducer *r, const int *lifted, int lanes)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++]))
        add_lanes(r, r->fold->ops[k], at, lifted + at, lanes);
}

static const int *
lift(CiReducer *r, const CiExpr *first, const CiExpr *live)
{
    CiAt at = {1, &r->var, &first, r->var, r->wide, live, 1};
    return ci_build_at(&r->b, &r->body, &at);
}

/* The next elements for all accumulators. */
static void
add_trip(CiReducer *r, const CiExpr *first)
{
    if (r->wide > r->width)
        add_values(r, lift(r, first, NULL), r->wide);
    else
        ci_reduce_chain(r, first, NULL);
}

/* ---- what is left of a vector ---- */

static const int *
read_rest(CiReducer *r, CiMemory *const *rest, const CiExpr *at)
{
    int *values = CI_NEW_ARRAY(r->b.ctx, int, r->fold->ninto + 1);
    for (int k = 0; k < r->fold->ninto; k++)
        values[k] = ci_build_load(&r->b, rest[k], at, 1);
    return values;
}

/* Mathematics of some elements costs as much as of one, and some may go into accumulators yet: they
 * are brought together in memory. How many of them have gone. */
static const CiExpr *
lift_rest(CiReducer *r, const CiExpr *first, const CiExpr *left, CiMemory ***rest)
{
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_reduce_number(r, 0), *width = ci_reduce_number(r, r->width);
    const CiExpr *gone =
        r->wide > r->width ? ci_expr_mul(sym, ci_expr_floordiv(sym, left, width), width) : zero;
    ci_reduce_alloc(r, rest, "rest", 1, CI_SPACE_stack, r->wide);
    CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, left);
    CiStmts *outside = ci_build_enter(&r->b, &some->body);
    const int *lifted = lift(r, first, left);
    for (int k = 0; k < r->fold->ninto; k++) {
        ci_build_store(&r->b, (*rest)[k], zero, lifted[k]);
        r->b.to->last->live = left;
    }
    for (int done = 0; done + r->width < r->wide; done += r->width) {
        CiStmt *whole = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal,
                                      ci_reduce_number(r, done + r->width), left);
        CiStmts *around = ci_build_enter(&r->b, &whole->body);
        int *values = CI_NEW_ARRAY(r->b.ctx, int, r->fold->ninto + 1);
        for (int k = 0; k < r->fold->ninto; k++)
            values[k] = ci_build_load(&r->b, (*rest)[k], ci_reduce_number(r, done), r->width);
        add_values(r, values, r->width);
        ci_build_leave(&r->b, around);
    }
    ci_build_leave(&r->b, outside);
    return gone;
}

static bool
lifts_rest(const CiReducer *r)
{
    return r->wide > r->width || (r->wide == r->width && ci_stmts_have(&r->body, ci_stmt_is_math));
}

static void
add_one_by_one(CiReducer *r, const CiExpr *first, const CiExpr *left, const CiExpr *gone,
               CiMemory *const *rest)
{
    CiSym *sym = r->b.sym;
    const CiExpr *count = ci_expr_sub(sym, left, gone);
    CiStmts *outside = r->b.to;
    if (count->high <= 0)
        return;
    bool is_known = count->kind == CI_EXPR_const && r->family->vector_bytes;
    CiStmt *loop = ci_build_for(&r->b, "r", count, is_known ? CI_RUN_unroll : CI_RUN_serial);
    ci_build_enter(&r->b, &loop->body);
    const CiExpr *at = ci_expr_add(sym, gone, loop->vars[0]);
    add_element(r, rest ? read_rest(r, rest, at)
                        : ci_build_trip(&r->b, &r->body, r->var, ci_expr_add(sym, first, at)));
    ci_build_leave(&r->b, outside);
}

/* ---- blocks ---- */

/* `count` elements from number `first` on, behind the `before` that accumulators hold, and all of
 * them into the sums: whole vectors, the accumulators, what is left. */
static void
add_elements(CiReducer *r, const CiExpr *first, const CiExpr *count, const CiExpr *before)
{
    CiSym *sym = r->b.sym;
    const CiExpr *span = ci_reduce_number(r, r->wide > r->width ? r->wide : r->width),
                 *width = ci_reduce_number(r, r->width), *zero = ci_reduce_number(r, 0);
    const CiExpr *trips = ci_expr_floordiv(sym, count, span);
    const CiExpr *done = ci_expr_mul(sym, trips, span);
    const CiExpr *behind = ci_expr_add(sym, first, done), *left = ci_expr_sub(sym, count, done),
                 *gone = zero;
    const CiExpr *all = ci_expr_add(sym, before, count);
    CiMemory **rest = NULL;
    if (trips->high > 0) {
        CiStmt *loop = ci_build_for(&r->b, "c", trips, CI_RUN_serial);
        CiStmts *around = ci_build_enter(&r->b, &loop->body);
        add_trip(r, ci_expr_add(sym, first, ci_expr_mul(sym, loop->vars[0], span)));
        ci_build_leave(&r->b, around);
    }
    if (left->high > 0 && lifts_rest(r))
        gone = lift_rest(r, behind, left, &rest);
    if (all->low < r->width)
        ci_reduce_each(r, true, false, empty_sums);
    if (all->high >= r->width) {
        CiStmts *outside = r->b.to;
        if (all->low < r->width) {
            CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal, width, all);
            ci_build_enter(&r->b, &some->body);
        }
        ci_reduce_each(r, true, false, join_accumulators);
        ci_build_leave(&r->b, outside);
    }
    add_one_by_one(r, behind, left, gone, rest);
}

/* ---- two blocks at a time ---- */

static void
swap_accumulators(CiReducer *r)
{
    CiMemory **acc = r->acc;
    r->acc = r->others;
    r->others = acc;
}

/* Vectors of the left block, where there is one, and as many of the right one. */
static void
add_both(CiReducer *r, const CiExpr *first, const CiExpr *half)
{
    CiSym *sym = r->b.sym;
    const CiExpr *width = ci_reduce_number(r, r->width);
    CiStmt *loop = ci_build_for(&r->b, "c", ci_expr_floordiv(sym, half, width), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *left = ci_expr_add(sym, first, ci_expr_mul(sym, loop->vars[0], width));
    ci_reduce_chain(r, left, NULL);
    swap_accumulators(r);
    ci_reduce_chain(r, ci_expr_add(sym, left, half), NULL);
    swap_accumulators(r);
    ci_build_leave(&r->b, outside);
}

static void
join_left(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
    join_neighbours(r, fold, at, 0, r->width / r->lanes, values);
    ci_reduce_load(r, late, r->sums + at, count, ci_reduce_number(r, 0), 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, values, late);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* P of `count` elements from number `first` on, which are one block or two: chains of two blocks do
 * not wait for each other. One block is the right one. */
static void
add_pair(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_reduce_number(r, 0), *one = ci_reduce_number(r, 1),
                 *excess = ci_expr_sub(sym, count, ci_reduce_number(r, block_size(r)));
    const CiExpr *is_long = ci_expr_min(sym, one, ci_expr_max(sym, zero, excess)),
                 *half = ci_pairwise_half(sym, r->fold->into[0]->dtype, count);
    half = ci_build_named(&r->b, ci_expr_mul(sym, is_long, half));
    ci_reduce_each(r, true, false, ci_reduce_reset);
    swap_accumulators(r);
    ci_reduce_each(r, true, false, ci_reduce_reset);
    swap_accumulators(r);
    add_both(r, first, half);
    const CiExpr *done = ci_expr_mul(sym, half, ci_reduce_number(r, 2));
    swap_accumulators(r);
    add_elements(r, ci_expr_add(sym, first, done),
                 ci_build_named(&r->b, ci_expr_sub(sym, count, done)), half);
    swap_accumulators(r);
    if (half->high <= 0)
        return;
    CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, half);
    CiStmts *outside = ci_build_enter(&r->b, &some->body);
    ci_reduce_each(r, true, false, join_left);
    ci_build_leave(&r->b, outside);
}

/* P of as many elements as are added up at once. */
void
ci_block_add(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    const CiStmts body = r->body;
    const CiExpr *var = r->var;
    if (r->strips)
        first = ci_build_named(&r->b, ci_reduce_through_window(r, first, count));
    if (r->others) {
        add_pair(r, first, count);
    } else {
        ci_reduce_each(r, true, false, ci_reduce_reset);
        add_elements(r, first, count, ci_reduce_number(r, 0));
    }
    r->body = body;
    r->var = var;
}
