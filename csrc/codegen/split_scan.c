/* A long scan or compress -> two procs, for a GPU, whose blocks do not wait for each other. The
 * blocks of the first store the total of each chunk. Those of the second reduce the totals of the
 * chunks before theirs, and run over a chunk each. */
#include "codegen/scan.h"
#include "codegen/split.h"

typedef struct SplitScan {
    CiScan scan; /* first: what the engine is given */
    CiMemory *partials[CI_MAX_CELLS];
} SplitScan;

static void
use_proc(SplitScan *split, CiProc *proc)
{
    CiScan *s = &split->scan;
    s->b.proc = proc;
    s->b.to = &proc->body;
    for (int k = 0; k < s->ncells; k++)
        split->partials[k] = ci_split_add_partial(&s->b, s->cells[k].memory->dtype, s->parts, k);
}

/* If there are chunks before this one: cell = partial[0] op … op partial[part - 1], by a fold that the
 * threads of the block divide among them. */
static void
carry_cell(CiScan *s, const CiCell *cell, CiMemory *partial)
{
    const CiExpr *zero = ci_expr_const(s->b.sym, 0);
    CiMemory *sum = ci_build_alloc(&s->b, ci_build_name(&s->b, "before"), cell->memory->dtype, 1,
                                   CI_SPACE_register, ci_expr_const(s->b.sym, 1));
    const CiExpr *before = ci_expr_index(s->b.sym, ci_build_name(&s->b, "b"), s->part);
    CiStmt *fold = ci_build_fold(&s->b, before, s->part, cell->fold, sum);
    fold->order.kind = CI_FOLD_lanes;
    CiStmts *outside = ci_build_enter(&s->b, &fold->body);
    int value = ci_build_load(&s->b, partial, fold->vars[0], 1);
    ci_build_yield(&s->b, &value, 1);
    ci_build_leave(&s->b, outside);
    CiStmt *later = ci_build_test(&s->b, CI_STMT_if, CI_COMPARE_less, zero, s->part);
    ci_build_enter(&s->b, &later->body);
    ci_build_store(&s->b, cell->memory, zero, ci_build_load(&s->b, sum, zero, 1));
    ci_build_leave(&s->b, outside);
}

static void
carry(CiScan *s)
{
    const SplitScan *split = (const SplitScan *)s;
    for (int k = 0; k < s->ncells; k++)
        carry_cell(s, &s->cells[k], split->partials[k]);
}

static const CiScanPolicy policy = {ci_scan_enter_chunk, ci_scan_total_of_chunk, carry, ci_scan_run_chunk};

void
ci_split_scan(CiBuild *b)
{
    SplitScan split = {.scan = {.b = *b, .policy = &policy}};
    ci_scan_begin_chunks(&split.scan);
    use_proc(&split, ci_split_new_finish(b->procs, b->proc));
    ci_scan_add_elements(&split.scan); /* copies the loop's body, whose values the totals take next */
    use_proc(&split, b->proc);
    ci_scan_add_totals(&split.scan, split.partials);
}
