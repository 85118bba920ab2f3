/* Accumulators of folds: their memory, initial values, the step for one element, and the
 * combination of several into one. */
#include "codegen/reducer.h"

#include "codegen/grid.h"
#include "codegen/reduction.h"

/* The few accumulators of this order are registers, whatever stands in their lanes. */
static bool
has_registers(const CiReducer *r)
{
    return r->fold->order.kind == CI_FOLD_pairwise && r->b.machine->vector_bytes;
}

void
ci_reduce_alloc_accumulators(CiReducer *r)
{
    int rows = r->width / r->lanes;
    bool is_memory = rows > 1 && r->lanes == 1 && !has_registers(r);
    ci_reduce_alloc(r, &r->acc, "lanes", r->lanes, is_memory ? CI_SPACE_stack : CI_SPACE_register,
                    rows);
}

/* Lanes of the fold's own, at most so many. */
int
ci_reduce_lanes_inside(const CiReducer *r, int most)
{
    if (r->is_in_lanes)
        return 1;
    int lanes = ci_choose_lanes(&r->b, &r->body, r->var, most);
    return lanes < 1 ? 1 : lanes;
}

/* ---- values of accumulators ---- */

int
ci_reduce_identity(CiReducer *r, CiOp fold, int k, const CiMemory *into, int lanes)
{
    CiDtype dtype = into->dtype;
    int value = ci_build_const(&r->b, ci_type_of(dtype, 1), ci_reduction_identity(fold, k, dtype));
    if (lanes > 1)
        value = ci_build_let(&r->b, ci_type_of(dtype, lanes), CI_OP_splat, 1, &value);
    return value;
}

/* Enters a loop over rows of accumulators, if there are several. Returns the block around it. */
static CiStmts *
enter_rows(CiReducer *r, const CiExpr *count, const CiExpr **row)
{
    CiRunMode run = r->lanes > 1 || has_registers(r) ? CI_RUN_unroll
                    : r->is_in_lanes                 ? CI_RUN_serial
                                                     : CI_RUN_vector;
    *row = ci_reduce_number(r, 0);
    if (ci_expr_equals_const(count, 1))
        return r->b.to;
    CiStmt *loop = ci_build_for(&r->b, "w", count, run);
    if (count->high > 1) /* a loop of at most one iteration is a test: its row is 0 */
        *row = loop->vars[0];
    return ci_build_enter(&r->b, &loop->body);
}

void
ci_reduce_reset(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = ci_reduce_identity(r, fold, k, r->fold->into[at + k], r->lanes);
    const CiExpr *row;
    CiStmts *outside = enter_rows(r, ci_reduce_number(r, r->width / r->lanes), &row);
    ci_reduce_store(r, r->acc + at, count, row, values, NULL);
    ci_build_leave(&r->b, outside);
}

/* ---- steps ---- */

static void
step(CiReducer *r, CiOp fold, int lanes, int *values, const int *lifted)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    if (r->walk == 2)
        reduction->again(&r->b, lanes, values, lifted);
    else if (r->walk == 1 && reduction->begin)
        reduction->begin(&r->b, lanes, values, lifted);
    else
        reduction->step(&r->b, fold, lanes, values, lifted);
}

void
ci_reduce_take(CiReducer *r, const int *lifted, const CiExpr *row, int lanes, CiMemory *const *acc,
               const CiExpr *live)
{
    for (int k = 0, from = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        const CiReduction *reduction = ci_reduction_of(fold);
        int values[CI_MAX_ACCUMULATORS];
        if (r->walk != 2 || reduction->again) {
            ci_reduce_load(r, values, acc + from, reduction->count, row, lanes);
            step(r, fold, lanes, values, lifted + from);
            ci_reduce_store(r, acc + from, reduction->count, row, values, live);
        }
        from += reduction->count;
    }
}

/* Values from `first` on, one in each lane, into accumulators in `row`. */
void
ci_reduce_step(CiReducer *r, const CiExpr *first, const CiExpr *row, int lanes,
               CiMemory *const *acc, const CiExpr *live)
{
    const CiExpr *from[] = {r->var, r->vector}, *to[] = {first, NULL};
    if (r->vector)
        to[1] = ci_expr_floordiv(r->b.sym, ci_expr_sub(r->b.sym, first, r->chunk),
                                 ci_reduce_number(r, lanes));
    CiAt at = {r->vector ? 2 : 1, from, to, r->var, lanes, live, 1};
    ci_reduce_take(r, ci_build_at(&r->b, &r->body, &at), row, lanes, acc, live);
}

/* The accumulators' next values, one for each: from `first` on, as far as there are `left`. */
void
ci_reduce_chain(CiReducer *r, const CiExpr *first, const CiExpr *left)
{
    const CiExpr *row, *rows = ci_reduce_number(r, r->width / r->lanes), *live = NULL;
    if (left && r->lanes == 1)
        rows = ci_expr_min(r->b.sym, rows, left);
    CiStmts *outside = enter_rows(r, rows, &row);
    const CiExpr *done = ci_reduce_scaled(r, row, r->lanes);
    if (left && r->lanes > 1) {
        live = ci_expr_sub(r->b.sym, left, done);
        if (r->width > r->lanes)
            live = ci_expr_min(r->b.sym, live, ci_reduce_number(r, r->lanes));
        if (r->width > r->lanes) {
            CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, done, left);
            ci_build_enter(&r->b, &some->body);
        }
    }
    ci_reduce_step(r, ci_expr_add(r->b.sym, first, done), row, r->lanes, r->acc, live);
    ci_build_leave(&r->b, outside);
}

/* Chains of accumulators from element `first` on, `count` elements, which are one after another. */
static void
full_chains(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    const CiExpr *iterations = ci_expr_floordiv(r->b.sym, count, ci_reduce_number(r, r->width));
    if (iterations->high <= 0)
        return;
    CiStmt *loop = ci_build_for(&r->b, "c", iterations, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_reduce_chain(r, ci_expr_add(r->b.sym, first, ci_reduce_scaled(r, loop->vars[0], r->width)),
                    NULL);
    ci_build_leave(&r->b, outside);
}

/* Vectors that fill registers: whole chains, then what is left of one. */
static void
chains_and_rest(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    const CiExpr *done =
        ci_reduce_scaled(r, ci_expr_floordiv(sym, count, ci_reduce_number(r, r->width)), r->width);
    full_chains(r, first, count);
    if (ci_sym_known_multiple_of(sym, count, ci_reduce_number(r, r->width)))
        return;
    const CiExpr *left = ci_build_named(&r->b, ci_expr_sub(sym, count, done)),
                 *start = ci_expr_add(sym, first, done);
    CiStmts *outside = r->b.to;
    if (r->width == r->lanes) {
        CiStmt *some =
            ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, ci_reduce_number(r, 0), left);
        ci_build_enter(&r->b, &some->body);
    }
    ci_reduce_chain(r, start, left);
    ci_build_leave(&r->b, outside);
}

static void
chains_in_lanes(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiStmts *outside = r->b.to;
    const CiExpr *from = ci_reduce_number(r, 0);
    bool is_one = count->high <= r->width;
    if (count->high <= 0)
        return;
    if (!is_one) {
        const CiExpr *iterations = ci_expr_ceildiv(r->b.sym, count, ci_reduce_number(r, r->width));
        CiStmt *loop = ci_build_for(&r->b, "c", iterations, CI_RUN_serial);
        ci_build_enter(&r->b, &loop->body);
        from = ci_reduce_scaled(r, loop->vars[0], r->width);
    }
    bool is_full = ci_sym_known_multiple_of(r->b.sym, count, ci_reduce_number(r, r->width)) &&
                   (!is_one || count->low > 0);
    ci_reduce_chain(r, ci_expr_add(r->b.sym, first, from),
                    is_full ? NULL : ci_expr_sub(r->b.sym, count, from));
    ci_build_leave(&r->b, outside);
}

void
ci_reduce_chains(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    if (r->b.machine->vector_bytes)
        chains_and_rest(r, first, count);
    else
        chains_in_lanes(r, first, count);
}

/* True if some reduction has a cheaper two-pass form and the body contains no math function. A math
 * function would be computed twice, which costs more than the second pass saves. */
bool
ci_reduce_has_passes(const CiReducer *r)
{
    bool has = false;
    for (int k = 0; k < r->fold->nops; k++)
        has |= ci_reduction_of(r->fold->ops[k])->again != NULL;
    return has && r->b.machine->vector_bytes && !ci_stmts_have(&r->body, ci_stmt_is_math);
}

void
ci_reduce_transpose(CiReducer *r, CiOp fold, int at, int count)
{
    const CiExpr *row;
    int values[CI_MAX_ACCUMULATORS];
    if (!ci_reduction_of(fold)->turn)
        return;
    CiStmts *outside = enter_rows(r, ci_reduce_number(r, r->width / r->lanes), &row);
    ci_reduce_load(r, values, r->acc + at, count, row, r->lanes);
    ci_reduction_of(fold)->turn(&r->b, r->lanes, values);
    ci_reduce_store(r, r->acc + at, count, row, values, NULL);
    ci_build_leave(&r->b, outside);
}

/* ---- many into one ---- */

void
ci_reduce_halve_rows(CiReducer *r, CiOp fold, int at, int count)
{
    for (int rows = r->width / r->lanes / 2; rows > 0; rows /= 2) {
        const CiExpr *row;
        CiStmts *outside = enter_rows(r, ci_reduce_number(r, rows), &row);
        int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
        const CiExpr *other = ci_expr_add(r->b.sym, row, ci_reduce_number(r, rows));
        ci_reduce_load(r, early, r->acc + at, count, row, r->lanes);
        ci_reduce_load(r, late, r->acc + at, count, other, r->lanes);
        ci_reduction_of(fold)->combine(&r->b, fold, r->lanes, early, late);
        ci_reduce_store(r, r->acc + at, count, row, early, NULL);
        ci_build_leave(&r->b, outside);
    }
}

void
ci_reduce_halve_lanes(CiReducer *r, CiOp fold, int count, int *values)
{
    for (int lanes = r->b.proc->types[values[0]].lanes / 2; lanes > 0; lanes /= 2) {
        int late[CI_MAX_ACCUMULATORS];
        for (int k = 0; k < count; k++) {
            CiType type = ci_type_of(r->b.proc->types[values[k]].dtype, lanes);
            late[k] = ci_build_let(&r->b, type, CI_OP_high, 1, &values[k]);
            values[k] = ci_build_let(&r->b, type, CI_OP_low, 1, &values[k]);
        }
        ci_reduction_of(fold)->combine(&r->b, fold, lanes, values, late);
    }
}

/* Accumulators fold pairwise; what comes of them is left in values. */
void
ci_reduce_halve(CiReducer *r, CiOp fold, int at, int count, int *values)
{
    ci_reduce_halve_rows(r, fold, at, count);
    ci_reduce_load(r, values, r->acc + at, count, ci_reduce_number(r, 0), r->lanes);
    ci_reduce_halve_lanes(r, fold, count, values);
}

/* A zero of an extreme is +0, in whatever order zeros came. */
int
ci_reduce_plain_zero(CiReducer *r, int value)
{
    CiDtype dtype = r->b.proc->types[value].dtype;
    if (dtype != CI_DTYPE_f32 && dtype != CI_DTYPE_f64)
        return value;
    int zero = ci_build_const(&r->b, ci_type_of(dtype, 1), ci_const_double(dtype, 0.0)),
        args[] = {value, zero};
    return ci_build_let(&r->b, ci_type_of(dtype, 1), CI_OP_add, 2, args);
}

void
ci_reduce_start(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = ci_reduce_identity(r, fold, k, r->fold->into[at + k], 1);
    if (ci_op_combine(fold) == CI_OP_add) /* a sum of nothing is +0, though it begins from -0 */
        values[0] = ci_build_const(&r->b, ci_type_of(r->fold->into[at]->dtype, 1),
                                   ci_reduction_of_nothing(fold, 0, r->fold->into[at]->dtype));
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

void
ci_reduce_alloc_partials(CiReducer *r, const CiStmt *fold)
{
    r->fold = fold;
    r->partials = CI_NEW_ARRAY(r->b.ctx, CiMemory *, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        r->partials[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, "parts"), fold->into[k]->dtype, 1, CI_SPACE_thread,
                                        ci_reduce_number(r, r->threads));
}

static void
reduce_pairs(CiReducer *r, CiOp fold, int at, int count)
{
    int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
    CiMemory *const *partials = r->partials + at;
    const CiExpr *x, *y;
    CiStmts *outside = ci_domain_enter_pairs(&r->b, CI_RUN_reduce, r->threads, &x, &y);
    outside->last->number = r->apart > 1 ? r->apart : 0;
    ci_reduce_load(r, early, partials, count, x, 1);
    ci_reduce_load(r, late, partials, count, y, 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
    ci_reduce_store(r, partials, count, x, early, NULL);
    ci_build_leave(&r->b, outside);
}

void
ci_reduce_threads(CiReducer *r)
{
    ci_reduce_each(r, true, true, reduce_pairs);
}

void
ci_reduce_result(CiReducer *r, int *values, int at, int count, const CiExpr *thread)
{
    ci_reduce_load(r, values, r->partials + at, count, thread, 1);
    values[0] = ci_reduce_plain_zero(r, values[0]);
}
