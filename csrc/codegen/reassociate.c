/* Reassociates integer min and max so that the loop-carried operand is applied last.
 *
 *   min(min(a, b), c)  ->  min(a, min(b, c))     a: loaded from a register that the loop stores
 *
 * The dependence from one iteration to the next is then one operation long instead of two. */
#include "codegen/codegen.h"

#include "base/map.h"

typedef struct LoopCarriedOperand {
    CiBuild b;
    CiMap *carried; /* registers from outside of the loop that it stores */
    bool *is_carried;  /* per value */
    int *uses;
    const CiStmt **defined;
} LoopCarriedOperand;

/* ---- what waits ---- */

static void
note_store(void *arg, const CiStmt *stmt)
{
    LoopCarriedOperand *l = arg;
    if (stmt->kind == CI_STMT_store && stmt->at.memory->space == CI_SPACE_register)
        ci_map_put(l->carried, CI_KEY(stmt->at.memory), l);
}

static void
leave_out_own(void *arg, const CiStmt *stmt)
{
    LoopCarriedOperand *l = arg;
    if (stmt->kind == CI_STMT_alloc && ci_map_find(l->carried, CI_KEY(stmt->memory)))
        ci_map_put(l->carried, CI_KEY(stmt->memory), NULL);
}

static void
note_value(LoopCarriedOperand *l, const CiStmt *let)
{
    l->defined[let->value] = let;
    l->is_carried[let->value] =
        let->op == CI_OP_load && ci_map_find(l->carried, CI_KEY(let->at.memory));
    for (int a = 0; a < let->nargs; a++)
        l->is_carried[let->value] |= l->is_carried[let->args[a]];
}

/* ---- chains ---- */

static bool
is_choice(const CiStmt *let)
{
    return let && (let->op == CI_OP_minimum || let->op == CI_OP_maximum) && let->type.lanes == 1 &&
           ci_dtype_is_integral(let->type.dtype) && ci_dtype_size(let->type.dtype) >= 4;
}

/* op(op(late, early), other) becomes op(late, op(early, other)); the first choice is not used then.
 */
static void
reassociate_chain(LoopCarriedOperand *l, CiStmt *let)
{
    for (int side = 0; side < 2; side++) {
        const CiStmt *chain = l->defined[let->args[side]];
        int other = let->args[!side];
        if (!is_choice(chain) || chain->op != let->op || l->is_carried[other] ||
            l->uses[chain->value] != 1)
            continue;
        int late = l->is_carried[chain->args[0]] ? 0 : 1;
        if (!l->is_carried[chain->args[late]] || l->is_carried[chain->args[!late]])
            continue;
        const int early[] = {chain->args[!late], other};
        int made = ci_build_let(&l->b, let->type, let->op, 2, early);
        let->args[0] = chain->args[late];
        let->args[1] = made;
        return;
    }
}

static void
turn(void *arg, CiStmt *stmt)
{
    LoopCarriedOperand *l = arg;
    l->b.loc = stmt->loc;
    if (stmt->kind == CI_STMT_let && is_choice(stmt))
        reassociate_chain(l, stmt);
    ci_build_move(&l->b, stmt);
    if (stmt->kind == CI_STMT_let)
        note_value(l, stmt);
}

/* Chains in loops that hold no other. */
static void
reassociate_loops(LoopCarriedOperand *l, CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        reassociate_loops(l, &stmt->body);
        reassociate_loops(l, &stmt->other);
        if (!ci_stmt_is_loop(stmt))
            continue;
        l->carried = ci_map_new(l->b.ctx);
        ci_stmts_visit(&stmt->body, note_store, l);
        ci_stmts_visit(&stmt->body, leave_out_own, l);
        ci_build_rewrite(&l->b, &stmt->body, turn, l);
    }
}

void
ci_reassociate(CiBuild *b)
{
    CiProc *proc = b->proc;
    enum { GROWTH = 2 }; /* a choice makes another */
    size_t count = (size_t)proc->nvalues * GROWTH + 1;
    LoopCarriedOperand l = {.b = *b,
                   .is_carried = CI_NEW_ARRAY(b->ctx, bool, count),
                   .uses = CI_NEW_ARRAY(b->ctx, int, count),
                   .defined = CI_NEW_ARRAY(b->ctx, const CiStmt *, count)};
    ci_stmts_count_uses(&proc->body, l.uses);
    reassociate_loops(&l, &proc->body);
}
