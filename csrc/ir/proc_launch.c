/* The numbers of a launch, read off the procs of a kernel, and their text: `units 8*s0; scratch_bytes 64;`. */
#include "ir/proc.h"

const char *const ci_launch_names[CI_LAUNCH_COUNT] = {
#define LAUNCH(name) #name,
#include "ir/proc.def"
};

const CiStmt *
ci_stmts_find_loop(const CiStmts *block, CiRunMode run)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_it = stmt->kind == CI_STMT_for && stmt->run == run;
        const CiStmt *inside = is_it ? stmt : ci_stmts_find_loop(&stmt->body, run);
        inside = inside ? inside : ci_stmts_find_loop(&stmt->other, run);
        if (inside)
            return inside;
    }
    return NULL;
}

/* Blocks of a GPU, or the units of parallel loops, which share one number where one is all that is in the other. */
static const CiExpr *
count_units(CiSym *sym, const CiProc *proc)
{
    const CiStmt *grid = ci_stmts_find_loop(&proc->body, CI_RUN_grid),
                 *loop = ci_stmts_find_loop(&proc->body, CI_RUN_parallel);
    const CiExpr *units = ci_expr_const(sym, 1);
    if (grid)
        return ci_expr_ceildiv(sym, grid->extents[0], ci_expr_const(sym, grid->number > 1 ? grid->number : 1));
    for (int k = 0; loop && loop->kind == CI_STMT_for && loop->run == CI_RUN_parallel && k < CI_MAX_FOLD_AXES; k++) {
        units = ci_expr_mul(sym, units, loop->extents[0]);
        loop = loop->body.first == loop->body.last ? loop->body.first : NULL;
    }
    return units;
}

typedef struct Scratch {
    CiSym *sym;
    const CiExpr *bytes;
} Scratch;

/* Whole lines of a cache, to the end of what is allocated last. */
static void
add_scratch(void *arg, const CiStmt *stmt)
{
    Scratch *s = arg;
    const CiMemory *memory = stmt->memory;
    if (stmt->kind != CI_STMT_alloc || memory->space != CI_SPACE_scratch)
        return;
    const CiExpr *line = ci_expr_const(s->sym, 64),
                 *element = ci_expr_const(s->sym, (int64_t)ci_dtype_size(memory->dtype) * memory->lanes),
                 *bytes = ci_expr_mul(s->sym, memory->size, element),
                 *end = memory->offset ? ci_expr_add(s->sym, memory->offset, bytes) : bytes;
    s->bytes = ci_expr_max(s->sym, s->bytes, ci_expr_mul(s->sym, ci_expr_ceildiv(s->sym, end, line), line));
}

static const CiExpr *
count_partials(CiSym *sym, const CiProc *proc)
{
    const CiExpr *bytes = ci_expr_const(sym, 0), *step = ci_expr_const(sym, CI_PARTIAL_STEP);
    for (int k = 0; k < proc->nparams; k++)
        if (proc->params[k]->space == CI_SPACE_partials)
            bytes = ci_expr_add(sym, bytes, ci_expr_mul(sym, proc->params[k]->size, step));
    return bytes;
}

CiLaunchExprs
ci_procs_launch(const CiProcs *procs, const char *kernel)
{
    CiSym *sym = procs->sym;
    Scratch scratch = {sym, ci_expr_const(sym, 0)};
    const CiExpr *partials = scratch.bytes;
    CiLaunchExprs made = {{NULL}};
    for (int is_finish = 0; is_finish < 2; is_finish++) {
        const CiProc *proc = ci_procs_find(procs, kernel, is_finish);
        if (!proc)
            continue;
        made.of[is_finish ? CI_LAUNCH_finish_units : CI_LAUNCH_units] = count_units(sym, proc);
        partials = ci_expr_max(sym, partials, count_partials(sym, proc));
        ci_stmts_visit(&proc->body, add_scratch, &scratch);
    }
    made.of[CI_LAUNCH_scratch_bytes] = ci_expr_equals_const(scratch.bytes, 0) ? NULL : scratch.bytes;
    made.of[CI_LAUNCH_partial_bytes] = ci_expr_equals_const(partials, 0) ? NULL : partials;
    return made;
}

void
ci_launch_io(CiTextIo *f, CiLaunchExprs *launch)
{
    for (int k = 0; k < CI_LAUNCH_COUNT; k++)
        ci_io_if(f, ci_format(f->ctx, "%s ", ci_launch_names[k]), &launch->of[k], ";");
}
