/* Chooses the widths of masks (proc_masks.c) for machines with vector registers, so that masks are
 * seldom converted:
 *
 *   %2: boolx8 = less %0, %1     ->     %2: bool32x8 = less %0, %1
 *
 * Memory of bools in lanes has the widest mask that is stored to it. An operation whose lanes are
 * computed one by one makes bytes. */
#include "codegen/codegen.h"

static void
choose_mask(const CiBuild *b, CiStmt *let)
{
    CiProc *proc = b->proc;
    bool is_computed = let->nargs && !ci_stmt_moves_masks(let);
    CiDtype operand = is_computed ? proc->types[let->args[0]].dtype : CI_DTYPE_bool;
    bool is_vector = !is_computed || !b->machine->why_not_vector ||
                     !b->machine->why_not_vector(b->ctx, let->op, operand, CI_DTYPE_bool);
    let->type.mask = is_vector ? ci_stmt_mask(proc, let) : 0;
    proc->types[let->value] = let->type;
}

static void
choose_masks(const CiBuild *b, CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == CI_STMT_let && stmt->type.dtype == CI_DTYPE_bool && stmt->type.lanes > 1)
            choose_mask(b, stmt);
        CiMemory *memory = stmt->kind == CI_STMT_store ? stmt->at.memory : NULL;
        if (memory && ci_memory_may_have_masks(memory)) {
            int mask = b->proc->types[stmt->args[0]].mask;
            memory->mask = mask > memory->mask ? mask : memory->mask;
        }
        choose_masks(b, &stmt->body);
        choose_masks(b, &stmt->other);
    }
}

void
ci_masks(CiBuild *b)
{
    enum { ROUNDS = 2 }; /* a store after a load widens the memory */
    for (int round = 0; round < ROUNDS; round++)
        choose_masks(b, &b->proc->body);
}
