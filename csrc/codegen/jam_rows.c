/* Unroll and jam for rows that read the same elements: a thread block of a GPU takes a few neighbouring
 * rows. An element that several of these rows read is loaded once, by the thread that uses it. Folds of the
 * rows become one fold with a reduction for each row.
 *
 *   for i<n parallel { for j<m vector { x[m*i + j] + x[m*i + m + j] } }  ->
 *   for g<n//4 parallel { for j<m vector { the same for 4*g, 4*g + 1, 4*g + 2, 4*g + 3 } } */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"
#include "codegen/varying.h"

static bool
prevents_jam(const CiStmt *stmt)
{
    bool is_loop = stmt->kind == CI_STMT_for && stmt->run != CI_RUN_parallel,
         is_fold = stmt->kind == CI_STMT_fold && !stmt->count && !stmt->blocks &&
                   stmt->order.kind != CI_FOLD_fused,
         is_own = stmt->kind == CI_STMT_alloc && (stmt->memory->space == CI_SPACE_register ||
                                                  stmt->memory->space == CI_SPACE_scratch),
         is_plain = stmt->kind == CI_STMT_store && stmt->op == CI_OP_none && !stmt->is_in_order;
    bool is_value = stmt->kind == CI_STMT_let && !ci_stmt_is_running(stmt);
    return !is_value && !is_loop && !is_fold && !is_own && !is_plain && stmt->kind != CI_STMT_yield;
}

typedef struct Jam {
    const CiBuild *b;
    const CiStmts *block; /* the body of the loop over rows */
    const CiExpr *row;    /* its variable */
    const CiStmt *load;   /* the load that others are compared with */
    int values;           /* statements of the longest inner loop */
    int rows;             /* loads of elements that another row loads too */
    bool is_prevented;    /* by a statement that cannot be repeated for several rows */
} Jam;

/* Counts another load of the memory that is nearly a whole number of rows away. */
static void
look_for_near_load(void *arg, const CiStmt *stmt)
{
    Jam *n = arg;
    const CiExpr *coef, *rest;
    int64_t distance, row;
    if (stmt->kind != CI_STMT_let || stmt->at.memory != n->load->at.memory || stmt == n->load ||
        !ci_expr_is_const(ci_expr_sub(n->b->sym, stmt->at.index, n->load->at.index), &distance) ||
        !ci_expr_split_linear(n->b->sym, stmt->at.index, n->row, &coef, &rest) ||
        !ci_expr_is_const(coef, &row))
        return;
    int64_t line = CI_CHOOSE(n->b, line_elements);
    for (int k = 1; k < CI_CHOOSE(n->b, jammed_rows); k++)
        if (row > line && distance >= k * row - line && distance <= k * row + line)
            n->rows++;
}

static bool
is_inner_loop(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_fold || (stmt->kind == CI_STMT_for && stmt->run != CI_RUN_parallel);
}

static void
look_at_stmt(void *arg, const CiStmt *stmt)
{
    Jam *n = arg;
    int count = 0;
    for (const CiStmt *inside = stmt->body.first; is_inner_loop(stmt) && inside; inside = inside->next)
        count++;
    n->values = count > n->values ? count : n->values;
    n->is_prevented |= prevents_jam(stmt);
    if (stmt->kind != CI_STMT_let || stmt->op != CI_OP_load || !stmt->at.memory->is_const)
        return;
    n->load = stmt;
    ci_stmts_visit(n->block, look_for_near_load, n);
}

/* Counts loads of a reduction inside a loop that depend on both variables but not on the row: every row reads the same
 * table, which has more elements than the row. */
static void
look_for_tables(Jam *n, const CiStmts *block, const CiStmt *loop)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_inner = loop && stmt->kind == CI_STMT_fold;
        for (const CiStmt *load = stmt->body.first; is_inner && load; load = load->next)
            if (load->kind == CI_STMT_let && load->op == CI_OP_load && load->at.memory->is_const &&
                ci_expr_depends_on(load->at.index, loop->vars[0]) &&
                ci_expr_depends_on(load->at.index, stmt->vars[stmt->nvars - 1]) &&
                !ci_expr_depends_on(load->at.index, n->row))
                n->rows++;
        look_for_tables(n, &stmt->body, stmt->kind == CI_STMT_for ? stmt : loop);
    }
}

/* The number of rows that a thread block takes; 1 if rows share too little. */
static int
count_jammed_rows(CiBuild *b, const CiStmt *rows)
{
    Jam n = {.b = b, .block = &rows->body, .row = rows->vars[0]};
    ci_stmts_visit(&rows->body, look_at_stmt, &n);
    look_for_tables(&n, &rows->body, NULL);
    int64_t most = CI_CHOOSE(b, jammed_values), rows_of_block = CI_CHOOSE(b, jammed_rows);
    int count = (int)(n.values * rows_of_block <= most ? rows_of_block : (rows_of_block + 1) / 2);
    bool is_whole =
        ci_sym_known_multiple_of(b->sym, rows->extents[0], ci_expr_const(b->sym, count));
    bool is_worth = n.rows && !n.is_prevented && n.values * count <= most &&
                    rows->extents[0]->low >= CI_CHOOSE(b, jammed_blocks) * count &&
                    !ci_why_not_lanes(b->ctx, b->proc, &rows->body, rows->vars[0]);
    return is_worth && is_whole ? count : 1;
}

void
ci_jam_rows(CiBuild *b)
{
    CiStmt *rows = b->proc->body.first;
    if (!rows || rows->next || rows->kind != CI_STMT_for || rows->run != CI_RUN_parallel ||
        rows->nvars != 1 || !ci_stmts_have(&rows->body, ci_stmt_is_loop))
        return;
    int count = count_jammed_rows(b, rows);
    if (count == 1)
        return;
    const CiExpr *few = ci_expr_const(b->sym, count), *first = rows->vars[0];
    b->proc->body = (CiStmts){0};
    CiStmt *groups =
        ci_build_for(b, "g", ci_expr_floordiv(b->sym, rows->extents[0], few), CI_RUN_parallel);
    CiStmts *outside = ci_build_enter(b, &groups->body);
    const CiExpr *at = ci_expr_mul(b->sym, groups->vars[0], few);
    ci_build_jammed(b, &rows->body, first, at, count);
    ci_build_leave(b, outside);
}
