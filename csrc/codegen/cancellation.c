/* Cancellation points in long-running loops.
 *
 * `poll [n]` adds n to a counter, and checks for cancellation after some tens of thousands. A loop
 * that contains loops, or has a large body, polls at the end of each iteration. Any other loop is
 * split into chunks and polls after each chunk, because a call in its body would make the C
 * compiler forget what it knows about memory. Loops over work units do not poll: the launcher
 * checks between units. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

#include "base/map.h"

typedef struct CancellationPass {
    CiBuild b;
    CiMap *inner; /* symbols that are defined in blocks inside the iteration */
} CancellationPass;

/* ---- the work of one iteration ---- */

static void
note_inner(void *arg, const CiStmt *stmt)
{
    CancellationPass *p = arg;
    for (int k = 0; k < stmt->nvars; k++)
        ci_map_put(p->inner, CI_KEY(stmt->vars[k]), p);
    if (stmt->op == CI_OP_bind)
        ci_map_put(p->inner, CI_KEY(stmt->expr), p);
}

static bool
is_seen_after(const CancellationPass *p, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (ci_map_find(p->inner, CI_KEY(e->symbols[k])))
            return false;
    return true;
}

static bool
is_counted(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for && stmt->run == CI_RUN_serial;
}

static bool is_short(CancellationPass *p, const CiStmt *loop);

/* Number of elements that an iteration works on. Loops that poll count their own. */
static const CiExpr *
work_of(CancellationPass *p, const CiStmts *body)
{
    CiSym *sym = p->b.sym;
    const CiExpr *work = ci_expr_const(sym, 0);
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (stmt->kind == CI_STMT_loop || (is_counted(stmt) && !is_short(p, stmt)))
            continue;
        const CiExpr *inside = ci_expr_add(sym, work_of(p, &stmt->body), work_of(p, &stmt->other));
        for (int k = 0; k < stmt->nvars; k++) {
            bool is_seen = is_seen_after(p, stmt->extents[k]);
            const CiExpr *extent = is_seen ? stmt->extents[k] : ci_expr_const(sym, CI_CHOOSE(&p->b, polled_iteration));
            inside = k ? inside : ci_expr_max(sym, inside, ci_expr_const(sym, 1));
            inside = ci_expr_mul(sym, inside, extent);
        }
        work = ci_expr_add(sym, work, inside);
    }
    return work;
}

/* True for a loop whose iterations run in order. */
static bool
is_serial(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_loop || is_counted(stmt);
}

/* True for a loop with little work and few iterations: the loop around it counts them. */
static bool
is_short(CancellationPass *p, const CiStmt *loop)
{
    return !ci_stmts_have(&loop->body, is_serial) && loop->extents[0]->high <= CI_POLL_ITERATIONS &&
           work_of(p, &loop->body)->high <= CI_CHOOSE(&p->b, polled_iteration);
}

/* ---- loops ---- */

static void
add_poll(CancellationPass *p, const CiExpr *turns)
{
    ci_build_add(&p->b, CI_STMT_poll)->expr = turns;
}

/* for t<n {…}  ->  for c<ceildiv(n, CI_POLL_ITERATIONS) { for t<min(CI_POLL_ITERATIONS, n - CI_POLL_ITERATIONS*c)
 * {…}  poll } */
static void
run_in_pieces(CancellationPass *p, CiStmt *loop)
{
    CiSym *sym = p->b.sym;
    CiPiece piece = ci_build_pieces(&p->b, "c", loop->extents[0], ci_expr_const(sym, CI_POLL_ITERATIONS), CI_RUN_serial);
    CiStmt *inner = ci_build_for(&p->b, "t", piece.count, loop->run);
    CiStmts *around = ci_build_enter(&p->b, &inner->body);
    ci_build_iteration(&p->b, &loop->body, loop->vars[0], ci_expr_add(sym, piece.first, inner->vars[0]));
    ci_build_leave(&p->b, around);
    add_poll(p, piece.count);
    ci_build_leave(&p->b, piece.outside);
}

static void
count_exits(void *arg, const CiStmt *stmt)
{
    *(int *)arg += stmt->kind == CI_STMT_exit;
}

/* The exit that ends the loop, one among its statements; else NULL. */
static CiStmt *
find_exit(const CiStmts *body)
{
    int count = 0;
    CiStmt *found = NULL;
    ci_stmts_visit(body, count_exits, &count);
    for (CiStmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->kind == CI_STMT_exit)
            found = stmt;
    return count == 1 ? found : NULL;
}

/* loop { A  exit if c  B }  ->  loop { for t<CI_POLL_ITERATIONS { A  more = not c  exit if c  B }  exit
 * if not more poll } */
static void
loop_iterations(CancellationPass *p, CiStmt *loop, const CiStmt *leave)
{
    CiSym *sym = p->b.sym;
    const CiExpr *zero = ci_expr_const(sym, 0), *turns = ci_expr_const(sym, CI_POLL_ITERATIONS);
    CiType type = ci_type_of(CI_DTYPE_bool, 1);
    CiMemory *more = ci_build_alloc(&p->b, ci_build_name(&p->b, "more"), CI_DTYPE_bool, 1,
                                    CI_SPACE_register, ci_expr_const(sym, 1));
    CiStmt *whole = ci_build_add(&p->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&p->b, &whole->body);
    ci_build_store(&p->b, more, zero, ci_build_const(&p->b, type, (CiConst){.i = 1}));
    CiStmt *piece = ci_build_for(&p->b, "t", turns, CI_RUN_serial);
    CiStmts *around = ci_build_enter(&p->b, &piece->body);
    for (CiStmt *next, *stmt = loop->body.first; stmt; stmt = next) {
        next = stmt->next;
        if (stmt != leave) {
            ci_build_move(&p->b, stmt);
            continue;
        }
        CiStmt *choice = ci_build_add(&p->b, CI_STMT_if);
        choice->tests = leave->tests;
        choice->ntests = leave->ntests;
        CiStmts *here = ci_build_enter(&p->b, &choice->body);
        ci_build_store(&p->b, more, zero, ci_build_const(&p->b, type, (CiConst){0}));
        ci_build_add(&p->b, CI_STMT_exit);
        ci_build_leave(&p->b, here);
    }
    ci_build_leave(&p->b, around);
    ci_build_compare(&p->b, CI_STMT_exit, CI_COMPARE_is_not, ci_build_load(&p->b, more, zero, 1));
    add_poll(p, turns);
    ci_build_leave(&p->b, outside);
}

static void poll_stmt(void *arg, CiStmt *stmt);

static void
poll_each_iteration(CancellationPass *p, CiStmt *loop, const CiExpr *work)
{
    CiStmts *outside = ci_build_enter(&p->b, &loop->body);
    add_poll(p, ci_expr_add(p->b.sym, work, ci_expr_const(p->b.sym, 1)));
    ci_build_leave(&p->b, outside);
}

static void
poll_loop(CancellationPass *p, CiStmt *loop)
{
    p->inner = ci_map_new(p->b.ctx);
    for (const CiStmt *stmt = loop->body.first; stmt; stmt = stmt->next) {
        for (int k = 0; k < stmt->nvars; k++)
            ci_map_put(p->inner, CI_KEY(stmt->vars[k]), p);
        ci_stmts_visit(&stmt->body, note_inner, p);
        ci_stmts_visit(&stmt->other, note_inner, p);
    }
    const CiExpr *work = work_of(p, &loop->body);
    const CiStmt *leave = find_exit(&loop->body);
    bool is_leaf = !ci_stmts_have(&loop->body, is_serial) && work->high <= CI_CHOOSE(&p->b, polled_iteration);
    ci_build_rewrite(&p->b, &loop->body, poll_stmt, p);
    if (is_leaf && loop->kind == CI_STMT_for && loop->extents[0]->high > CI_POLL_ITERATIONS) {
        run_in_pieces(p, loop);
    } else if (is_leaf && loop->kind == CI_STMT_loop && leave) {
        loop_iterations(p, loop, leave);
    } else {
        if (!is_leaf)
            poll_each_iteration(p, loop, work);
        ci_build_move(&p->b, loop);
    }
}

/* True for a long loop over lanes that is the whole kernel and is not divided into units. */
static bool
is_whole_work(const CancellationPass *p, const CiStmt *stmt)
{
    return !p->b.proc->head.has_lanes && p->b.to == &p->b.proc->body &&
           stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector && stmt->extents[0]->high > CI_CHOOSE(&p->b, polled_work);
}

static void
poll_stmt(void *arg, CiStmt *stmt)
{
    CancellationPass *p = arg;
    bool has_lanes =
        stmt->kind == CI_STMT_fold || (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector);
    if (is_serial(stmt)) {
        poll_loop(p, stmt);
    } else if (is_whole_work(p, stmt)) {
        run_in_pieces(p, stmt);
    } else {
        if (!has_lanes) { /* which end together */
            ci_build_rewrite(&p->b, &stmt->body, poll_stmt, p);
            ci_build_rewrite(&p->b, &stmt->other, poll_stmt, p);
        }
        ci_build_move(&p->b, stmt);
    }
}

void
ci_poll(CiBuild *b)
{
    CancellationPass p = {.b = *b};
    ci_build_rewrite(&p.b, &b->proc->body, poll_stmt, &p);
}
