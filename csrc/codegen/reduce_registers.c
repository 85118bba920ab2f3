/* Two passes over elements that a thread has in registers: the first computes the mean or maximum
 * of all of them, the second the sum. A division, or an exponential that rescales, is then computed
 * once for all of them, and their result is combined with the thread's earlier elements as one
 * partial result. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"

bool
ci_registers_help(const CiStmt *fold)
{
    for (int k = 0; k < fold->nops; k++)
        if (ci_reduction_of(fold->ops[k])->again)
            return true;
    return false;
}

bool
ci_stmts_gather(const CiStmts *stmts)
{
    bool has_loaded = false;
    for (const CiStmt *stmt = stmts->first; stmt; stmt = stmt->next) {
        if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_bind && has_loaded)
            return true;
        has_loaded |= stmt->kind == CI_STMT_let && stmt->op == CI_OP_load;
    }
    return false;
}

static bool
is_in_registers(const CiReducer *r, CiOp fold)
{
    return r->is_in_registers && ci_reduction_of(fold)->again;
}

/* Number of lanes of the accumulators: 1 for a reduction that takes all lanes at once. */
int
ci_register_lanes(const CiReducer *r, CiOp fold, int lanes)
{
    return is_in_registers(r, fold) ? 1 : lanes;
}

void
ci_registers_alloc_accumulators(CiReducer *r, int lanes)
{
    r->acc = CI_NEW_ARRAY(r->b.ctx, CiMemory *, r->fold->ninto + 1);
    for (int k = 0, at = 0; k < r->fold->nops; k++)
        for (int end = at + ci_fold_width(r->fold->ops[k]); at < end; at++)
            r->acc[at] = ci_build_alloc(&r->b, ci_build_name(&r->b, "lanes"),
                                        r->fold->into[at]->dtype,
                                        ci_register_lanes(r, r->fold->ops[k], lanes), CI_SPACE_register,
                                        ci_reduce_number(r, 1));
}

/* Replaces a vector by the lower half of its lanes and returns the upper half. */
static int
cut(CiReducer *r, int lanes, int *value)
{
    CiType half = ci_type_of(r->b.proc->types[*value].dtype, lanes / 2);
    int high = ci_build_let(&r->b, half, CI_OP_high, 1, value);
    *value = ci_build_let(&r->b, half, CI_OP_low, 1, value);
    return high;
}

/* The first pass: the mean or maximum. */
static void
begin(CiReducer *r, CiOp fold, int at, const CiRegisterRow *registers, int *all)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    int high[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < reduction->count; k++)
        all[k] = ci_reduce_identity(r, fold, k, r->fold->into[at + k], registers->lanes);
    for (int k = 0; k < registers->count; k++)
        reduction->begin(&r->b, registers->lanes, all, registers->lifted[k] + at);
    for (int lanes = registers->lanes; lanes > 1; lanes /= 2) {
        for (int k = 0; k < reduction->count; k++)
            high[k] = cut(r, lanes, &all[k]);
        reduction->begin(&r->b, lanes / 2, all, high);
    }
    if (reduction->turn)
        reduction->turn(&r->b, 1, all);
}

/* The second pass, which only adds to the last accumulator. */
static void
again(CiReducer *r, CiOp fold, int at, const CiRegisterRow *registers, int *all)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    int wide[CI_MAX_ACCUMULATORS], last = reduction->count - 1;
    for (int k = 0; k < last; k++) {
        CiType type = ci_type_of(r->b.proc->types[all[k]].dtype, registers->lanes);
        wide[k] = registers->lanes > 1 ? ci_build_let(&r->b, type, CI_OP_splat, 1, &all[k]) : all[k];
    }
    wide[last] = ci_reduce_identity(r, fold, last, r->fold->into[at + last], registers->lanes);
    for (int k = 0; k < registers->count; k++)
        reduction->again(&r->b, registers->lanes, wide, registers->lifted[k] + at);
    for (int lanes = registers->lanes; lanes > 1; lanes /= 2) {
        int high = cut(r, lanes, &wide[last]), both[] = {wide[last], high};
        wide[last] = ci_build_let(&r->b, r->b.proc->types[high], CI_OP_add, 2, both);
    }
    all[last] = wide[last];
}

void
ci_reduce_registers(CiReducer *r, const CiRegisterRow *registers, const CiExpr *row)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++])) {
        CiOp fold = r->fold->ops[k];
        const CiReduction *reduction = ci_reduction_of(fold);
        int values[CI_MAX_ACCUMULATORS], all[CI_MAX_ACCUMULATORS],
            lanes = ci_register_lanes(r, fold, registers->lanes);
        if (is_in_registers(r, fold)) {
            begin(r, fold, at, registers, all);
            again(r, fold, at, registers, all);
        }
        ci_reduce_load(r, values, r->acc + at, reduction->count, row, lanes);
        if (is_in_registers(r, fold))
            reduction->combine(&r->b, fold, 1, values, all);
        for (int i = 0; i < registers->count && !is_in_registers(r, fold); i++)
            reduction->step(&r->b, fold, lanes, values, registers->lifted[i] + at);
        ci_reduce_store(r, r->acc + at, reduction->count, row, values, NULL);
    }
}
