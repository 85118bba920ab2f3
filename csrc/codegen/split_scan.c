/* A long scan or compress -> two procs, for a GPU, whose blocks do not wait for each other. The
 * blocks of the first compute the total of each part. Those of the second run over a part each and
 * start from the totals of the parts before it. */
#include "codegen/split.h"

static CiMemory *
add_partial(CiRunner *r, int cell)
{
    return ci_split_add_partial(&r->b, r->cells[cell].memory->dtype, r->chunks, cell);
}

static void
make_chunks(CiRunner *r, CiProc *proc)
{
    const CiExpr *zero = ci_expr_const(r->b.sym, 0);
    proc->body = (CiStmts){0};
    r->b.proc = proc;
    ci_running_begin_chunk(r);
    CiMemory **totals = ci_running_add_totals(r);
    for (int k = 0; k < r->ncells; k++)
        ci_build_store(&r->b, add_partial(r, k), r->chunk, ci_build_load(&r->b, totals[k], zero, 1));
}

/* If there are parts before this one: cell = partial[0] op … op partial[part - 1], by a fold that the
 * threads of the block divide among them. */
static void
begin_cell(CiRunner *r, const CiCell *cell, CiMemory *partial)
{
    const CiExpr *zero = ci_expr_const(r->b.sym, 0);
    CiMemory *sum = ci_build_alloc(&r->b, ci_build_name(&r->b, "before"), cell->memory->dtype, 1,
                                   CI_SPACE_register, ci_expr_const(r->b.sym, 1));
    const CiExpr *before = ci_expr_index(r->b.sym, ci_build_name(&r->b, "b"), r->chunk);
    CiStmt *fold = ci_build_fold(&r->b, before, r->chunk, cell->fold, sum);
    fold->order.kind = CI_FOLD_lanes;
    CiStmts *outside = ci_build_enter(&r->b, &fold->body);
    int value = ci_build_load(&r->b, partial, fold->vars[0], 1);
    ci_build_yield(&r->b, &value, 1);
    ci_build_leave(&r->b, outside);
    CiStmt *later = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, r->chunk);
    ci_build_enter(&r->b, &later->body);
    ci_build_store(&r->b, cell->memory, zero, ci_build_load(&r->b, sum, zero, 1));
    ci_build_leave(&r->b, outside);
}

static void
make_finish(CiRunner *r, const CiProc *proc)
{
    CiStmts whole = proc->body;
    CiMemory *partials[CI_MAX_CELLS];
    r->b.proc = ci_split_new_finish(r->b.procs, proc);
    ci_running_begin_chunk(r);
    for (int k = 0; k < r->ncells; k++)
        partials[k] = add_partial(r, k);
    CiStmts rest = ci_running_move_front(r, &whole);
    for (int k = 0; k < r->ncells; k++)
        begin_cell(r, &r->cells[k], partials[k]);
    ci_running_pass(r);
    ci_running_end(r, rest);
}

void
ci_split_running(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiRunner r = ci_running_find(b);
    make_finish(&r, proc); /* copies the loop's body, whose values the parts take next */
    make_chunks(&r, proc);
}
