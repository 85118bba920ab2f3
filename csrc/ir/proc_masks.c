/* Masks: bools in lanes whose lanes have several bytes, with all bits set where the bool is true
 * (`bool32x8`). A comparison in vector registers computes a mask as wide as its operands. Other bools
 * have one byte per lane, which is 0 or 1 (`boolx8`). */
#include "ir/proc_private.h"

int
ci_stmt_operand_bytes(const CiProc *proc, const CiStmt *let)
{
    CiDtype operand = proc->types[let->args[0]].dtype;
    int bytes = 1;
    if (operand != CI_DTYPE_bool)
        return (int)ci_dtype_size(ci_dtype_compute(operand));
    for (int k = 0; k < let->nargs; k++)
        bytes = proc->types[let->args[k]].mask > bytes ? proc->types[let->args[k]].mask : bytes;
    return bytes;
}

bool
ci_stmt_moves_masks(const CiStmt *let)
{
    return let->op == CI_OP_load || let->op == CI_OP_splat || ci_op_kind(let->op) == CI_OPKIND_lanes;
}

int
ci_stmt_mask(const CiProc *proc, const CiStmt *let)
{
    if (let->type.dtype != CI_DTYPE_bool || let->type.lanes == 1)
        return 0;
    if (let->op == CI_OP_load)
        return let->at.memory->mask;
    if (!let->nargs || let->op == CI_OP_splat || ci_stmt_is_running(let))
        return 0;
    int first = proc->types[let->args[0]].mask;
    bool is_same = let->op == CI_OP_cast && proc->types[let->args[0]].dtype == CI_DTYPE_bool;
    return is_same || ci_stmt_moves_masks(let) ? first : ci_stmt_operand_bytes(proc, let);
}

bool
ci_memory_may_have_masks(const CiMemory *memory)
{
    return memory->dtype == CI_DTYPE_bool && memory->lanes > 1 && memory->space != CI_SPACE_scratch;
}

static void
verify_mask(void *arg, const CiStmt *stmt)
{
    CiProcVerifier *v = arg;
    const CiMemory *memory = stmt->kind == CI_STMT_alloc ? stmt->memory : NULL;
    if (memory && memory->mask && !ci_memory_may_have_masks(memory))
        ci_proc_fail(v, stmt, "its elements are no masks");
    if (stmt->kind != CI_STMT_let)
        return;
    int mask = ci_stmt_mask(v->proc, stmt);
    bool may_be_bytes = !ci_stmt_moves_masks(stmt) && !stmt->type.mask;
    if (stmt->type.mask != mask && !may_be_bytes)
        ci_proc_fail(v, stmt, "the operands make a mask of another width");
}

void
ci_proc_verify_masks(CiProcVerifier *v)
{
    for (int k = 0; k < v->proc->nparams; k++)
        if (v->proc->params[k]->mask)
            ci_proc_fail(v, NULL, "a parameter has no masks");
    ci_stmts_visit(&v->proc->body, verify_mask, v);
}
