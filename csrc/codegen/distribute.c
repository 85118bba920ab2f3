/* Parallel loops -> work units.
 *
 * A loop over lanes at the bottom of parallel loops is distributed too: in units of the number of
 * iterations that its kernel gives. The last unit is shorter. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

#include <string.h>

static CiStmt *
find_shared_lanes(const CiProc *proc)
{
    CiStmt *loop = proc->body.first;
    while (loop && loop->kind == CI_STMT_for && loop->run == CI_RUN_parallel)
        loop = loop->body.first;
    bool is_one = loop && loop->kind == CI_STMT_for && loop->run == CI_RUN_vector;
    return is_one && !loop->next ? loop : NULL;
}

/* for i<n vector {…}  ->  for u<ceildiv(n, factor) parallel { for j<min(factor, n - factor*u)
 * vector {…} } */
static void
share_out(CiBuild *b, CiStmt *loop, int factor)
{
    CiStmts body = loop->body;
    const CiExpr *var = loop->vars[0];
    loop->body = (CiStmts){0};
    CiStmts *outside = ci_build_enter(b, &loop->body);
    CiPiece tile = ci_build_tiles(b, "u", loop, factor);
    CiStmt *inner = ci_build_for(b, "j", tile.count, CI_RUN_vector);
    ci_build_enter(b, &inner->body);
    ci_build_iteration(b, &body, var, ci_expr_add(b->sym, tile.first, inner->vars[0]));
    ci_build_leave(b, outside);
}

void
ci_map(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiStmt *loop = find_shared_lanes(proc);
    const CiProcHead *head = &proc->head;
    if (loop && head->has_lanes)
        share_out(b, loop, head->axes[head->naxes - 1].tile);
}
