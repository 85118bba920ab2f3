/* Unroll and jam for scans of rows: a step depends only on the previous step of its own row, so the
 * steps of several rows overlap.
 *
 *   for i<n parallel { alloc c  for j<m vector { cumsum in c } }  ->
 *   for i<n parallel runs r {
 *     for g<r//4 { alloc c, d, e, f  for j<m vector { cumsum in c, in d, in e, in f } }
 *     for q<r%4 { alloc c  for j<m vector { cumsum in c } } }
 *
 * The first iteration of each such loop is also peeled, so that the other iterations need no test
 * for a previous element. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

/* ---- which loops have this form ---- */

static bool
is_other(const CiStmt *stmt)
{
    return !ci_stmt_is_straight(stmt);
}

/* True for a loop over lanes that consists of values and stores, some of which scan along it. */
static bool
runs(const CiStmt *loop)
{
    return loop->kind == CI_STMT_for && loop->run == CI_RUN_vector && loop->nvars == 1 &&
           ci_stmts_have(&loop->body, ci_stmt_is_running) &&
           !ci_stmts_have(&loop->body, is_other) &&
           !ci_stmts_have(&loop->body, ci_stmt_is_math) &&
           !ci_stmts_have(&loop->body, ci_stmt_is_ufunc);
}

/* Finds the innermost loop over units, if a unit is one row; else NULL. */
static CiStmt *
find_rows(const CiProc *proc)
{
    CiStmt *rows = NULL;
    for (CiStmt *stmt = proc->body.first; stmt && stmt->run == CI_RUN_parallel && !stmt->next;
         stmt = stmt->body.first)
        rows = stmt->kind == CI_STMT_for ? stmt : rows;
    if (!rows || rows->runs || rows->nvars != 1)
        return NULL;
    CiStmt *last = rows->body.first;
    while (last && last->kind == CI_STMT_alloc && last->memory->space == CI_SPACE_register)
        last = last->next;
    return last && !last->next && runs(last) ? rows : NULL;
}

/* ---- rows ---- */

static void
jam(CiBuild *b, CiStmt *rows)
{
    CiSym *sym = b->sym;
    const CiExpr *first = rows->vars[0];
    int few = (int)CI_CHOOSE(b, scanned_rows);
    CiStmts body = rows->body;
    rows->body = (CiStmts){0};
    rows->runs = ci_expr_index(sym, ci_build_name(b, "m"),
                               ci_expr_add(sym, rows->extents[0], ci_expr_const(sym, 1)));
    CiStmts *outside = ci_build_enter(b, &rows->body);
    CiGroups groups = ci_build_groups(b, "g", rows->runs, few);
    ci_build_jammed(b, &body, first, ci_expr_add(sym, first, groups.first), few);
    ci_build_leave(b, groups.outside);
    CiGroups left = ci_build_left(b, "q", rows->runs, groups.done);
    ci_build_iteration(b, &body, first, ci_expr_add(sym, first, left.first));
    ci_build_leave(b, outside);
}

/* ---- peeling of first iterations ---- */

static void
peel(void *arg, CiStmt *stmt)
{
    CiBuild *b = arg;
    CiSym *sym = b->sym;
    if (!runs(stmt)) {
        ci_build_rewrite(b, &stmt->body, peel, b);
        ci_build_rewrite(b, &stmt->other, peel, b);
        ci_build_move(b, stmt);
        return;
    }
    const CiExpr *extent = stmt->extents[0], *zero = ci_expr_const(sym, 0),
                 *one = ci_expr_const(sym, 1);
    CiStmts *outside = b->to;
    if (extent->low <= 0) {
        CiStmt *some = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, zero, extent);
        ci_build_enter(b, &some->body);
    }
    ci_build_iteration(b, &stmt->body, stmt->vars[0], zero);
    CiStmt *others = ci_build_for(b, "j", ci_expr_sub(sym, extent, one), stmt->run);
    ci_build_enter(b, &others->body);
    ci_build_iteration(b, &stmt->body, stmt->vars[0], ci_expr_add(sym, others->vars[0], one));
    ci_build_leave(b, outside);
}

void
ci_jam(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiStmt *rows = find_rows(proc);
    if (rows)
        jam(b, rows);
    ci_build_rewrite(b, &proc->body, peel, b);
}
