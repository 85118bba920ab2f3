/* Scans of rows, a few rows at a time: a step waits for the one before it in its own row alone, so
 * that steps of several rows overlap (unroll and jam).
 *
 *   for i<n parallel { alloc c  for j<m vector { cumsum in c } }  ->
 *   for i<n parallel runs r {
 *     for g<r//4 { alloc c, d, e, f  for j<m vector { cumsum in c, in d, in e, in f } }
 *     for q<r%4 { alloc c  for j<m vector { cumsum in c } } }
 *
 * And of each loop that runs the first trip stands in front of the others: these have something
 * before them, and need not ask.
 *
 * On a card a block takes a few rows at a time where an element is read for its own row and for the
 * next one, or nearly: then it is read once for both, by the thread that has it. */
#include "codegen/at.h"
#include "codegen/codegen.h"

/* Rows: more of them, a power of two apart in memory, would drive each other out of near cache. */
#define ROWS 4
/* Of a block: rows left, values of one thread, and elements between two that one line of cache has. */
#define LEAST_GROUPS 512
#define MOST_VALUES 160
#define NEAR 8

/* ---- what has this form ---- */

static bool
is_other(const CiStmt *stmt)
{
    bool is_register =
        stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_register;
    return stmt->kind != CI_STMT_let && !is_register &&
           (stmt->kind != CI_STMT_store || stmt->op != CI_OP_none || stmt->is_in_order);
}

/* A loop of values and stores alone, some of which run along it. */
static bool
runs(const CiStmt *loop)
{
    return loop->kind == CI_STMT_for && loop->run == CI_RUN_vector && loop->nvars == 1 &&
           ci_stmts_have(&loop->body, ci_stmt_is_running) &&
           !ci_stmts_have(&loop->body, is_other) &&
           !ci_stmts_have(&loop->body, ci_stmt_is_math) &&
           !ci_stmts_have(&loop->body, ci_stmt_is_ufunc);
}

/* The innermost loop over units, where one is a row. */
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
    const CiExpr *first = rows->vars[0], *few = ci_expr_const(sym, ROWS);
    CiStmts body = rows->body;
    rows->body = (CiStmts){0};
    rows->runs = ci_expr_index(sym, ci_build_name(b, "m"),
                               ci_expr_add(sym, rows->extents[0], ci_expr_const(sym, 1)));
    CiStmts *outside = ci_build_enter(b, &rows->body);
    CiStmts *inside = b->to;
    const CiExpr *groups = ci_expr_floordiv(sym, rows->runs, few),
                 *done = ci_expr_mul(sym, groups, few);
    CiStmt *group = ci_build_for(b, "g", groups, CI_RUN_serial);
    ci_build_enter(b, &group->body);
    const CiExpr *at = ci_expr_add(sym, first, ci_expr_mul(sym, group->vars[0], few));
    CiAt together = {1, &first, &at, first, 1, NULL, ROWS};
    ci_build_at(b, &body, &together);
    ci_build_enter(b, inside);
    CiStmt *rest = ci_build_for(b, "q", ci_expr_sub(sym, rows->runs, done), CI_RUN_serial);
    ci_build_enter(b, &rest->body);
    ci_build_trip(b, &body, first,
                  ci_expr_add(sym, first, ci_expr_add(sym, done, rest->vars[0])));
    ci_build_leave(b, outside);
}

/* ---- first trips ---- */

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
    ci_build_trip(b, &stmt->body, stmt->vars[0], zero);
    CiStmt *others = ci_build_for(b, "j", ci_expr_sub(sym, extent, one), stmt->run);
    ci_build_enter(b, &others->body);
    ci_build_trip(b, &stmt->body, stmt->vars[0], ci_expr_add(sym, others->vars[0], one));
    ci_build_leave(b, outside);
}

/* ---- rows of a block ---- */

typedef struct Near {
    CiSym *sym;
    const CiStmts *block; /* where both loads stand */
    const CiExpr *row;
    const CiStmt *load;
    int values, rows; /* of the longest loop; that touch what others do */
    bool has_other;
} Near;

/* Another load of that memory some whole rows away, or nearly. */
static void
look_for_near(void *arg, const CiStmt *stmt)
{
    Near *n = arg;
    const CiExpr *coef, *rest;
    int64_t distance, row;
    if (stmt->kind != CI_STMT_let || stmt->at.memory != n->load->at.memory || stmt == n->load ||
        !ci_expr_is_const(ci_expr_sub(n->sym, stmt->at.index, n->load->at.index), &distance) ||
        !ci_expr_split_linear(n->sym, stmt->at.index, n->row, &coef, &rest) ||
        !ci_expr_is_const(coef, &row))
        return;
    for (int k = 1; k < ROWS; k++)
        if (row > NEAR && distance >= k * row - NEAR && distance <= k * row + NEAR)
            n->rows++;
}

static void
look_at_value(void *arg, const CiStmt *stmt)
{
    Near *n = arg;
    bool is_loop = stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector;
    int count = 0;
    for (const CiStmt *inside = stmt->body.first; is_loop && inside; inside = inside->next)
        count++;
    n->values = count > n->values ? count : n->values;
    n->has_other |= is_other(stmt) && !is_loop;
    if (stmt->kind != CI_STMT_let || stmt->op != CI_OP_load || !stmt->at.memory->is_const)
        return;
    n->load = stmt;
    ci_stmts_visit(n->block, look_for_near, n);
}

/* How many rows of a block share what they read; 1: none. */
static int
count_near_rows(CiBuild *b, const CiStmt *rows)
{
    Near n = {.sym = b->sym, .block = &rows->body, .row = rows->vars[0]};
    ci_stmts_visit(&rows->body, look_at_value, &n);
    int count = n.values * ROWS <= MOST_VALUES ? ROWS : ROWS / 2;
    bool is_whole =
        ci_sym_known_multiple_of(b->sym, rows->extents[0], ci_expr_const(b->sym, count));
    bool is_worth = n.rows && !n.has_other && n.values * count <= MOST_VALUES &&
                    rows->extents[0]->low >= LEAST_GROUPS * count;
    return is_worth && is_whole ? count : 1;
}

static void
jam_block(CiBuild *b)
{
    CiStmt *rows = b->proc->body.first;
    if (!rows || rows->next || rows->kind != CI_STMT_for || rows->run != CI_RUN_parallel ||
        rows->nvars != 1 || !ci_stmts_have(&rows->body, ci_stmt_is_loop))
        return;
    int count = count_near_rows(b, rows);
    if (count == 1)
        return;
    const CiExpr *few = ci_expr_const(b->sym, count), *first = rows->vars[0];
    b->proc->body = (CiStmts){0};
    CiStmt *groups =
        ci_build_for(b, "g", ci_expr_floordiv(b->sym, rows->extents[0], few), CI_RUN_parallel);
    CiStmts *outside = ci_build_enter(b, &groups->body);
    const CiExpr *at = ci_expr_mul(b->sym, groups->vars[0], few);
    ci_build_at(b, &rows->body, &(CiAt){1, &first, &at, first, 1, NULL, count});
    ci_build_leave(b, outside);
}

void
ci_jam(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    if (family->threads) {
        jam_block(&b);
        return;
    }
    CiStmt *rows = find_rows(proc);
    if (rows)
        jam(&b, rows);
    ci_build_rewrite(&b, &proc->body, peel, &b);
}
