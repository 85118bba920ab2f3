/* Marks loops over lanes that are left to a C compiler and whose iterations are independent. The
 * printer tells the compiler, which cannot prove it of arrays that it knows nothing of:
 *
 *   for j<n vector { … }  ->  for j<n simd { … }
 *
 * Each store must be to an element of its iteration. */
#include "codegen/codegen.h"
#include "codegen/independence.h"

typedef struct Stores {
    const CiStmt *loop;
    bool are_own;
} Stores;

static void
look_at_store(void *arg, const CiStmt *stmt)
{
    Stores *stores = arg;
    if (stmt->kind == CI_STMT_store && stmt->at.memory->space != CI_SPACE_register)
        stores->are_own &= ci_expr_depends_on(stmt->at.index, stores->loop->vars[0]);
}

static void
mark(void *arg, CiStmt *stmt)
{
    CiBuild *b = arg;
    ci_build_rewrite(b, &stmt->body, mark, b);
    ci_build_rewrite(b, &stmt->other, mark, b);
    if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector) {
        Stores stores = {stmt, true};
        ci_stmts_visit(&stmt->body, look_at_store, &stores);
        if (stores.are_own && ci_iterations_are_independent(b, stmt))
            stmt->run = CI_RUN_simd;
    }
    ci_build_move(b, stmt);
}

void
ci_simd(CiBuild *b)
{
    ci_build_rewrite(b, &b->proc->body, mark, b);
}
