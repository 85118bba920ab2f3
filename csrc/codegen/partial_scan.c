/* Scans and compresses that run in chunks: computes the total of a chunk, and emits the loop over its
 * elements.
 *
 * Only for operations that may be reordered, so that the bits are those of a single loop. */
#include "codegen/split.h"

static const CiExpr *
number(CiRunner *r, int64_t value)
{
    return ci_expr_const(r->b.sym, value);
}

int
ci_cell_operand(const CiStmt *stmt)
{
    return stmt->args[stmt->kind == CI_STMT_call];
}

int
ci_cells_find(CiContext *ctx, const CiStmts *body, CiCell *cells)
{
    int ncells = 0;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        bool is_count = stmt->kind == CI_STMT_call;
        if (!stmt->cell)
            continue;
        CI_REQUIRE(ctx, ncells < CI_MAX_CELLS);
        cells[ncells++] = (CiCell){.memory = stmt->cell,
                                   .fold = is_count ? CI_OP_sum : ci_op_alike(stmt->op, CI_OPKIND_reduce),
                                   .scan = is_count ? CI_OP_cumsum : stmt->op,
                                   .value = ci_cell_operand(stmt),
                                   .is_count = is_count,
                                   .position = is_count ? NULL : stmt->expr};
    }
    return ncells;
}

static void
yield_values(CiBuild *b, const CiCell *cells, int ncells)
{
    int values[CI_MAX_CELLS];
    for (int k = 0; k < ncells; k++) {
        values[k] = cells[k].value;
        if (cells[k].is_count)
            values[k] = ci_build_let(b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_cast, 1, &values[k]);
    }
    ci_build_yield(b, values, ncells);
}

CiStmts
ci_cells_lift(const CiBuild *b, const CiStmts *body, const CiCell *cells, int ncells)
{
    CiStmts lift = {0};
    CiBuild inside = *b;
    bool *depends = CI_NEW_ARRAY(b->ctx, bool, b->proc->nvalues + 1); /* by value: on cells */
    inside.to = &lift;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (stmt->kind != CI_STMT_let)
            continue;
        bool *own = &depends[stmt->value];
        *own = ci_stmt_is_running(stmt);
        for (int a = 0; a < stmt->nargs; a++)
            *own |= depends[stmt->args[a]];
        if (!*own)
            ci_build_copy(&inside, stmt);
    }
    yield_values(&inside, cells, ncells);
    return lift;
}

CiRunner
ci_running_find(const CiBuild *b)
{
    CiRunner r = {.b = *b, .chunks = b->proc->head.chunks};
    for (CiStmt *stmt = b->proc->body.first; stmt && !r.loop; stmt = stmt->next)
        if (stmt->kind == CI_STMT_for)
            r.loop = stmt;
    CI_REQUIRE(b->ctx, r.loop);
    r.ncells = ci_cells_find(b->ctx, &r.loop->body, r.cells);
    r.chunk = ci_expr_index(b->sym, ci_build_name(&r.b, "c"), r.chunks);
    return r;
}

void
ci_running_begin_chunk(CiRunner *r)
{
    r->b.to = &r->b.proc->body;
    CiStmt *units = ci_build_loop(&r->b, r->chunk, r->chunks, CI_RUN_parallel);
    ci_build_enter(&r->b, &units->body);
    const CiExpr *size = r->b.proc->head.chunk;
    r->first = ci_expr_mul(r->b.sym, r->chunk, size);
    r->count = ci_build_piece_count(&r->b, r->loop->extents[0], r->first, size);
}

/* ---- what a part adds ---- */

CiMemory **
ci_running_add_totals(CiRunner *r)
{
    CiMemory **into = CI_NEW_ARRAY(r->b.ctx, CiMemory *, r->ncells + 1);
    for (int k = 0; k < r->ncells; k++)
        into[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, "part"), r->cells[k].memory->dtype, 1,
                                 CI_SPACE_register, number(r, 1));
    CiStmt *fold = ci_build_add(&r->b, CI_STMT_fold);
    fold->vars = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->extents = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->vars[0] = r->loop->vars[0];
    fold->extents[0] = r->loop->extents[0];
    fold->nvars = 1;
    fold->order.kind = CI_FOLD_lanes;
    fold->ops = CI_NEW_ARRAY(r->b.ctx, CiOp, r->ncells + 1);
    for (int k = 0; k < r->ncells; k++)
        fold->ops[k] = r->cells[k].fold;
    fold->into = into;
    fold->nops = fold->ninto = r->ncells;
    fold->from = r->first;
    fold->count = r->count;
    fold->body = ci_cells_lift(&r->b, &r->loop->body, r->cells, r->ncells);
    return into;
}

/* ---- the part's elements ---- */

CiStmts
ci_running_move_front(CiRunner *r, CiStmts *whole)
{
    CiStmts rest = {r->loop->next, r->loop->next ? whole->last : NULL};
    for (CiStmt *next, *stmt = whole->first; stmt != r->loop; stmt = next) {
        next = stmt->next;
        ci_build_move(&r->b, stmt);
    }
    return rest;
}

void
ci_running_pass(CiRunner *r)
{
    CiStmt *loop = ci_build_for(&r->b, "j", r->count, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_build_iteration(&r->b, &r->loop->body, r->loop->vars[0],
                       ci_expr_add(r->b.sym, r->first, loop->vars[0]));
    ci_build_leave(&r->b, outside);
}

void
ci_running_end(CiRunner *r, CiStmts rest)
{
    if (!rest.first)
        return;
    CiStmt *last = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_equal, r->chunk,
                                 ci_expr_sub(r->b.sym, r->chunks, number(r, 1)));
    last->body = rest;
}
