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
    CiSym *sym = b->sym;
    const CiExpr *extent = loop->extents[0], *iterations = ci_expr_const(sym, factor);
    CiStmts body = loop->body;
    loop->body = (CiStmts){0};
    loop->run = CI_RUN_parallel;
    loop->extents[0] = ci_expr_ceildiv(sym, extent, iterations);
    const CiExpr *var = loop->vars[0],
                 *unit = ci_expr_index(sym, ci_build_name(b, "u"), loop->extents[0]);
    loop->vars[0] = unit;
    CiStmts *outside = ci_build_enter(b, &loop->body);
    const CiExpr *first = ci_expr_const(sym, 0), *count = extent;
    if (extent->high > factor) {
        first = ci_expr_mul(sym, unit, iterations);
        count = ci_build_named(b, ci_expr_min(sym, iterations, ci_expr_sub(sym, extent, first)));
    }
    CiStmt *inner = ci_build_for(b, "j", count, CI_RUN_vector);
    ci_build_enter(b, &inner->body);
    const CiExpr *at = ci_expr_add(sym, first, inner->vars[0]);
    ci_build_iteration(b, &body, var, at);
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
