/* Adds a variant of a loop nest for short rows, if the length of rows is not known at compile time.
 * In the variant each lane has a row of its own, and runs over its elements in order.
 *
 *   for points {                 ->  if row <= short_row { for points vector { for row {…} } }
 *     for row vector {…}             else { for points { for row vector {…} } }
 *   }
 */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef struct Versioner {
    CiBuild b;
    const CiExpr *length; /* of a short row: a symbol of known range */
} Versioner;

/* Units stay as many as of other rows, also where there are as many points as a row has elements. */
static void
shorten(Versioner *v, CiStmts *block)
{
    const CiExpr *row = v->b.proc->head.row;
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        for (int k = 0; k < stmt->nvars; k++)
            if (stmt->extents[k] == row && stmt->run != CI_RUN_parallel)
                stmt->extents[k] = v->length;
        if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector)
            stmt->run = CI_RUN_serial;
        if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch) {
            const CiExpr *size = ci_expr_substitute(v->b.sym, stmt->memory->size, 1, &row, &v->length);
            stmt->memory->space = CI_SPACE_stack;
            stmt->memory->offset = NULL;
            stmt->memory->size = ci_expr_const(v->b.sym, size->high);
        }
        shorten(v, &stmt->body);
        shorten(v, &stmt->other);
    }
}

static void
make_short(Versioner *v, const CiStmts *nest)
{
    const CiProcHead *head = &v->b.proc->head;
    int length = ci_build_index(&v->b, head->row);
    v->length = ci_build_bind(&v->b, length, ci_expr_const(v->b.sym, head->short_row + 1));
    CiStmts copy = {0};
    CiAt same = {.lanes = 1};
    CiStmts *outside = ci_build_enter(&v->b, &copy);
    ci_build_at(&v->b, nest, &same);
    ci_build_leave(&v->b, outside);
    shorten(v, &copy);
    CiStmt *points = copy.first;
    while (points->body.first->kind == CI_STMT_for && points->body.first->run == CI_RUN_parallel)
        points = points->body.first;
    ci_build_run_together(&v->b, points, CI_RUN_vector);
    ci_build_move_all(&v->b, &copy);
}

void
ci_version(CiBuild *b)
{
    CiProc *proc = b->proc;
    Versioner v = {.b = *b};
    if (!proc->head.row || proc->head.chunks)
        return;
    CiStmts nest = proc->body;
    proc->body = (CiStmts){0};
    CiStmt *choice = ci_build_test(&v.b, CI_STMT_if, CI_COMPARE_less_equal, proc->head.row,
                                   ci_expr_const(b->sym, proc->head.short_row));
    CiStmts *outside = ci_build_enter(&v.b, &choice->body);
    make_short(&v, &nest);
    ci_build_leave(&v.b, outside);
    choice->other = nest;
}
