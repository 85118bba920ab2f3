/* Loops that unroll -> their trips one after another, so that registers are named by constants. */
#include "codegen/at.h"
#include "codegen/codegen.h"

static void
unroll(CiBuild *b, CiStmt *loop)
{
    for (int64_t trip = 0; trip < loop->extents[0]->value; trip++)
        ci_build_trip(b, &loop->body, loop->vars[0], ci_expr_const(b->sym, trip));
}

static void
unroll_block(CiBuild *b, CiStmts *block)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        unroll_block(b, &stmt->body);
        unroll_block(b, &stmt->other);
        if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_unroll) {
            CI_REQUIRE(b->ctx, stmt->extents[0]->kind == CI_EXPR_const);
            unroll(b, stmt);
        } else {
            ci_build_move(b, stmt);
        }
    }
    ci_build_leave(b, outside);
}

void
ci_unroll(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    (void)family;
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    unroll_block(&b, &proc->body);
}
