/* Unrolls loops over registers, so that registers are named by constants. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

static void
unroll(void *arg, CiStmt *stmt)
{
    CiBuild *b = arg;
    ci_build_rewrite(b, &stmt->body, unroll, b);
    ci_build_rewrite(b, &stmt->other, unroll, b);
    if (stmt->kind != CI_STMT_for || stmt->run != CI_RUN_unroll) {
        ci_build_move(b, stmt);
        return;
    }
    CI_REQUIRE(b->ctx, stmt->extents[0]->kind == CI_EXPR_const);
    for (int64_t iteration = 0; iteration < stmt->extents[0]->value; iteration++)
        ci_build_iteration(b, &stmt->body, stmt->vars[0], ci_expr_const(b->sym, iteration));
}

void
ci_unroll(CiBuild *b)
{
    ci_build_rewrite(b, &b->proc->body, unroll, b);
}
