/* Pointers that accesses share: `load m[8*c + 4] pointer 1` loads from pointer 1, which points to m[8*c].
 * The first access of a block that has a pointer which no block around it has declares it there.
 *
 * Invariant: a pointer is within its memory, because the elements accessed through it are at or after
 * it. A prefetch may be out of bounds, so its pointer is a number. */
#include "base/map.h"
#include "ir/proc_private.h"

static void
note_swap(void *arg, const CiStmt *stmt)
{
    if (stmt->kind != CI_STMT_swap)
        return;
    ci_map_put(arg, CI_KEY(stmt->memory), stmt->memory);
    ci_map_put(arg, CI_KEY(stmt->partner), stmt->partner);
}

CiPointerRule
ci_pointer_rule(CiContext *ctx, CiSym *sym, const CiProc *proc)
{
    CiPointerRule rule = {sym, proc, ci_proc_lane_symbols(ctx, proc), ci_map_new(ctx)};
    ci_stmts_visit(&proc->body, note_swap, rule.swapped);
    return rule;
}

const CiExpr *
ci_pointer_start(CiSym *sym, const CiExpr *index, int64_t *offset)
{
    *offset = index->kind == CI_EXPR_linear && index->value > 0 ? index->value : 0;
    return *offset ? ci_expr_sub(sym, index, ci_expr_const(sym, *offset)) : index;
}

/* Swapped memory moves. Accesses of one element have no pointers: C compilers optimize loops over single
 * elements by their indices. */
CiPointer
ci_stmt_pointer(const CiPointerRule *rule, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    bool is_load = stmt->kind == CI_STMT_let && stmt->op == CI_OP_load, is_store = stmt->kind == CI_STMT_store,
         is_ahead = stmt->kind == CI_STMT_prefetch,
         is_access = is_ahead || ((is_load || is_store) && ci_stmt_is_in_lanes(rule->proc, stmt));
    int64_t offset;
    if (!memory || !is_access || memory->space != CI_SPACE_global || ci_expr_is_const(stmt->at.index, NULL) ||
        ci_expr_has_lanes(rule->lane_symbols, stmt->at.index) || ci_map_find(rule->swapped, CI_KEY(memory)))
        return (CiPointer){0};
    const CiExpr *start = ci_pointer_start(rule->sym, stmt->at.index, &offset);
    return start->low < 0 ? (CiPointer){0} : (CiPointer){memory, start, is_ahead};
}

bool
ci_pointer_is_same(CiPointer a, CiPointer b)
{
    return a.memory == b.memory && a.start == b.start && a.is_ahead == b.is_ahead;
}

/* ---- verifier ---- */

typedef struct PointerVerifier {
    CiProcVerifier *v;
    CiPointerRule rule;
    CiPointer *pointers; /* by number */
} PointerVerifier;

static void
verify_pointer(void *arg, const CiStmt *stmt)
{
    PointerVerifier *p = arg;
    for (int k = 0; k < stmt->nin; k++)
        if (stmt->in[k].pointer)
            ci_proc_fail(p->v, stmt, "an operand has a pointer");
    if (!stmt->at.pointer)
        return;
    CiPointer to = ci_stmt_pointer(&p->rule, stmt), *known = &p->pointers[stmt->at.pointer];
    if (!to.memory)
        ci_proc_fail(p->v, stmt, "the access has no pointer");
    if (known->memory && !ci_pointer_is_same(*known, to))
        ci_proc_fail(p->v, stmt, "its pointer points to another element");
    *known = to;
}

void
ci_proc_verify_pointers(CiProcVerifier *v)
{
    CiPointer *pointers = CI_NEW_ARRAY(v->ctx, CiPointer, v->proc->npointers + 1);
    PointerVerifier p = {v, ci_pointer_rule(v->ctx, v->sym, v->proc), pointers};
    ci_stmts_visit(&v->proc->body, verify_pointer, &p);
}
