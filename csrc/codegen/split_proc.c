/* Parts that all split procs have: the second proc (`finish`), and the partial results that the work
 * units of the first proc store for it. */
#include "codegen/split.h"

CiProc *
ci_split_new_finish(CiProcs *procs, const CiProc *proc)
{
    CiContext *ctx = procs->ctx;
    CiProc *finish = ci_procs_add(procs, ci_format(ctx, "%s_finish", proc->name));
    const char *name = finish->name;
    *finish = *proc;
    finish->name = name;
    finish->head.kernel = proc->name;
    finish->is_finish = true;
    finish->body = (CiStmts){0};
    finish->params = NULL;
    finish->types = NULL;
    finish->nparams = finish->capparams = finish->nvalues = finish->capvalues = 0;
    for (int k = 0; k < proc->nparams; k++)
        CI_PUSH(ctx, finish->params, finish->nparams, finish->capparams, proc->params[k]);
    for (int k = 0; k < proc->nvalues; k++)
        CI_PUSH(ctx, finish->types, finish->nvalues, finish->capvalues, proc->types[k]);
    return finish;
}

CiMemory *
ci_split_add_partial(CiBuild *b, CiDtype dtype, const CiExpr *positions, int number)
{
    const CiExpr *step = ci_expr_const(b->sym, (int64_t)CI_PARTIAL_STEP * number);
    CiMemory memory = {.name = ci_format(b->ctx, "partial_%d", number),
                       .dtype = dtype,
                       .lanes = 1,
                       .space = CI_SPACE_partials,
                       .size = positions,
                       .offset = ci_expr_mul(b->sym, positions, step)};
    return ci_proc_add_param(b->ctx, b->proc, memory);
}
