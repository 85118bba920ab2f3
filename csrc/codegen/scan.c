/* Scans and compresses in parts (reduce, then scan):
 *
 *   total: what the elements of a part add to each cell.
 *   carry: the cells before a part, which are the totals of all parts before it, combined in order.
 *   run: the loop's body over the elements of the part.
 *
 * A policy says what a part is, and how a part gets its carry:
 *
 *   chained_scan.c: a part is a chunk. The chunk before it publishes the carry.
 *   split_scan.c: a part is a chunk. The carry is reduced from totals that another proc has stored.
 *   block_scan.c: a part is what one thread takes. The carry is combined from totals of the threads.
 *
 * Only for operations that may be reordered, so that the bits are those of a single loop. */
#include "codegen/scan.h"

#include "codegen/codegen.h"

int
ci_cell_operand(const CiStmt *stmt)
{
    return stmt->args[stmt->kind == CI_STMT_call];
}

void
ci_scan_find_cells(CiScan *s)
{
    for (const CiStmt *stmt = s->loop->body.first; stmt; stmt = stmt->next) {
        bool is_count = stmt->kind == CI_STMT_call;
        if (!stmt->cell)
            continue;
        CI_REQUIRE(s->b.ctx, s->ncells < CI_MAX_CELLS);
        s->cells[s->ncells++] = (CiCell){.memory = stmt->cell,
                                         .fold = is_count ? CI_OP_sum : ci_op_alike(stmt->op, CI_OPKIND_reduce),
                                         .scan = is_count ? CI_OP_cumsum : stmt->op,
                                         .value = ci_cell_operand(stmt),
                                         .is_count = is_count,
                                         .position = is_count ? NULL : stmt->expr};
    }
}

static void
yield_values(CiBuild *b, const CiScan *s)
{
    int values[CI_MAX_CELLS];
    for (int k = 0; k < s->ncells; k++) {
        values[k] = s->cells[k].value;
        if (s->cells[k].is_count)
            values[k] = ci_build_let(b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_cast, 1, &values[k]);
    }
    ci_build_yield(b, values, s->ncells);
}

CiStmts
ci_scan_lift(const CiScan *s)
{
    CiStmts lift = {0};
    CiBuild inside = s->b;
    bool *depends = CI_NEW_ARRAY(s->b.ctx, bool, s->b.proc->nvalues + 1); /* by value: on cells */
    inside.to = &lift;
    for (const CiStmt *stmt = s->loop->body.first; stmt; stmt = stmt->next) {
        if (stmt->kind != CI_STMT_let)
            continue;
        bool *own = &depends[stmt->value];
        *own = ci_stmt_is_running(stmt);
        for (int a = 0; a < stmt->nargs; a++)
            *own |= depends[stmt->args[a]];
        if (!*own)
            ci_build_copy(&inside, stmt);
    }
    yield_values(&inside, s);
    return lift;
}

/* ---- the algorithm ---- */

void
ci_scan_add_totals(CiScan *s, CiMemory *const *into)
{
    CiStmts *outside = s->b.to;
    s->policy->enter(s);
    CiMemory *const *totals = s->policy->total(s);
    for (int k = 0; k < s->ncells; k++)
        ci_build_store(&s->b, into[k], s->part, ci_build_load(&s->b, totals[k], ci_expr_const(s->b.sym, 0), 1));
    ci_build_leave(&s->b, outside);
}

void
ci_scan_add_elements(CiScan *s)
{
    CiStmts *outside = s->b.to;
    s->policy->enter(s);
    ci_build_move_all(&s->b, &s->before);
    s->policy->carry(s);
    s->policy->run(s);
    if (s->after.first) {
        const CiExpr *last = ci_expr_sub(s->b.sym, s->parts, ci_expr_const(s->b.sym, 1));
        ci_build_test(&s->b, CI_STMT_if, CI_COMPARE_equal, s->part, last)->body = s->after;
    }
    ci_build_leave(&s->b, outside);
}

/* ---- parts that are chunks ---- */

void
ci_scan_begin_chunks(CiScan *s)
{
    CiProc *proc = s->b.proc;
    CiBuild front = s->b;
    CiStmt *stmt = proc->body.first;
    front.to = &s->before;
    for (CiStmt *next; stmt && stmt->kind != CI_STMT_for; stmt = next) {
        next = stmt->next;
        ci_build_move(&front, stmt);
    }
    CI_REQUIRE(s->b.ctx, stmt);
    s->loop = stmt;
    s->after = (CiStmts){stmt->next, stmt->next ? proc->body.last : NULL};
    ci_scan_find_cells(s);
    s->parts = proc->head.chunks;
    s->part = ci_expr_index(s->b.sym, ci_build_name(&s->b, "c"), s->parts);
    proc->body = (CiStmts){0};
    s->b.to = &proc->body;
}

void
ci_scan_enter_chunk(CiScan *s)
{
    CiStmt *units = ci_build_loop(&s->b, s->part, s->parts, CI_RUN_parallel);
    ci_build_enter(&s->b, &units->body);
    const CiExpr *size = s->b.proc->head.chunk;
    s->first = ci_expr_mul(s->b.sym, s->part, size);
    s->count = ci_build_piece_count(&s->b, s->loop->extents[0], s->first, size);
}

CiMemory *const *
ci_scan_total_of_chunk(CiScan *s)
{
    CiMemory **into = CI_NEW_ARRAY(s->b.ctx, CiMemory *, s->ncells + 1);
    CiOp *ops = CI_NEW_ARRAY(s->b.ctx, CiOp, s->ncells + 1);
    for (int k = 0; k < s->ncells; k++) {
        ops[k] = s->cells[k].fold;
        into[k] = ci_build_alloc(&s->b, ci_build_name(&s->b, "part"), s->cells[k].memory->dtype, 1,
                                 CI_SPACE_register, ci_expr_const(s->b.sym, 1));
    }
    CiStmt *fold = ci_build_fold(&s->b, s->loop->vars[0], s->loop->extents[0], CI_OP_none, NULL);
    fold->order.kind = CI_FOLD_lanes;
    fold->ops = ops;
    fold->into = into;
    fold->nops = fold->ninto = s->ncells;
    fold->from = s->first;
    fold->count = s->count;
    fold->body = ci_scan_lift(s);
    return into;
}

void
ci_scan_run_chunk(CiScan *s)
{
    CiStmt *loop = ci_build_for(&s->b, "j", s->count, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(&s->b, &loop->body);
    ci_build_iteration(&s->b, &s->loop->body, s->loop->vars[0], ci_expr_add(s->b.sym, s->first, loop->vars[0]));
    ci_build_leave(&s->b, outside);
}
