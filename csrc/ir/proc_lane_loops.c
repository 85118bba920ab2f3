/* Loops over lanes: neighbouring statements that one loop executes lane by lane, on machines whose
 * threads have no vector registers. The first statement of a loop has no mark, the others have
 * `in_lane_loop`. Accesses that move all lanes at once (`is_aligned`) come before or after the loop,
 * and so do values of one lane, before it. A load that is not aligned may have the lanes of two that
 * are (`is_shifted`).
 *
 * Invariant: a loop does not read its own stores, and does not store to an element that an earlier
 * lane reads later. So the lanes may run in sequence. */
#include "base/map.h"
#include "ir/proc_private.h"

static CiType
type_of(const CiProc *proc, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_store ? proc->types[stmt->args[0]] : stmt->type;
}

bool
ci_stmt_is_in_lanes(const CiProc *proc, const CiStmt *stmt)
{
    bool is_known = stmt->kind == CI_STMT_let || stmt->kind == CI_STMT_store || stmt->kind == CI_STMT_call;
    return is_known && type_of(proc, stmt).lanes > 1;
}

bool
ci_stmt_is_half(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let && (stmt->op == CI_OP_low || stmt->op == CI_OP_high);
}

static void
note_lane_symbol(void *arg, const CiStmt *stmt)
{
    if (stmt->op == CI_OP_bind && stmt->type.lanes > 1)
        ci_map_put(arg, CI_KEY(stmt->expr), (void *)(uintptr_t)stmt);
}

CiMap *
ci_proc_lane_symbols(CiContext *ctx, const CiProc *proc)
{
    CiMap *symbols = ci_map_new(ctx);
    ci_stmts_visit(&proc->body, note_lane_symbol, symbols);
    return symbols;
}

bool
ci_expr_has_lanes(const CiMap *lane_symbols, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (ci_map_find(lane_symbols, CI_KEY(e->symbols[k])))
            return true;
    return false;
}

bool
ci_stmt_may_be_aligned(CiSym *sym, const CiProc *proc, const CiMap *lane_symbols, const CiStmt *stmt)
{
    const CiAccess *at = &stmt->at;
    bool is_store = stmt->kind == CI_STMT_store && stmt->op == CI_OP_none,
         is_access = at->memory && (stmt->kind == CI_STMT_let || is_store);
    return is_access && at->memory->space == CI_SPACE_global && ci_stmt_is_in_lanes(proc, stmt) && !at->stride &&
           !ci_expr_has_lanes(lane_symbols, at->index) &&
           ci_sym_known_multiple_of(sym, at->index, ci_expr_const(sym, type_of(proc, stmt).lanes));
}

/* Registers belong to a thread and a lane. */
static bool
may_conflict(const CiStmt *first, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    if (!memory || memory->lanes > 1)
        return false;
    for (const CiStmt *other = first; other != stmt; other = other->next) {
        bool are_stored = stmt->kind == CI_STMT_store && !(stmt->at.is_aligned && other->at.is_aligned);
        if (other->at.memory == memory && (other->kind == CI_STMT_store || are_stored))
            return true;
    }
    return false;
}

bool
ci_lane_loop_takes(const CiProc *proc, const CiStmt *first, const CiStmt *stmt)
{
    bool is_one = stmt->kind == CI_STMT_let && stmt->type.lanes == 1 && !stmt->cell,
         is_in_lanes = ci_stmt_is_in_lanes(proc, stmt) && type_of(proc, stmt).lanes == type_of(proc, first).lanes;
    return (is_one || is_in_lanes) && !ci_stmt_is_half(stmt) && !may_conflict(first, stmt);
}

/* The aligned load of the loop whose first lane is `distance` elements before that of the load; NULL if there
 * is none. */
static const CiStmt *
find_aligned(CiSym *sym, const CiStmt *first, const CiStmt *load, int distance)
{
    const CiExpr *from = ci_expr_sub(sym, load->at.index, ci_expr_const(sym, distance));
    for (const CiStmt *stmt = first; stmt && (stmt == first || stmt->in_lane_loop); stmt = stmt->next)
        if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_load && stmt->at.is_aligned && stmt->at.index == from &&
            stmt->at.memory == load->at.memory && stmt->type.lanes == load->type.lanes)
            return stmt;
    return NULL;
}

CiShift
ci_lane_loop_shift(CiSym *sym, const CiMap *lane_symbols, const CiStmt *first, const CiStmt *load)
{
    const CiAccess *at = &load->at;
    int lanes = load->type.lanes;
    bool may_shift = load->kind == CI_STMT_let && load->op == CI_OP_load && lanes > 1 && !at->is_aligned && !at->stride &&
                     at->memory->space == CI_SPACE_global && !ci_expr_has_lanes(lane_symbols, at->index);
    for (int distance = 1; may_shift && distance < lanes; distance++) {
        const CiStmt *early = find_aligned(sym, first, load, distance),
                     *late = early ? find_aligned(sym, first, load, distance - lanes) : NULL;
        if (late)
            return (CiShift){early, late, distance};
    }
    return (CiShift){0};
}

/* ---- verifier ---- */

typedef struct LaneVerifier {
    CiProcVerifier *v;
    const CiMap *lane_symbols;
} LaneVerifier;

static void
verify_block(const LaneVerifier *l, const CiStmts *block)
{
    CiProcVerifier *v = l->v;
    const CiStmt *first = NULL;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->at.is_aligned && !ci_stmt_may_be_aligned(v->sym, v->proc, l->lane_symbols, stmt))
            ci_proc_fail(v, stmt, "its lanes are not aligned");
        bool fits = first && ci_stmt_is_in_lanes(v->proc, first) && ci_lane_loop_takes(v->proc, first, stmt);
        if (stmt->in_lane_loop && !fits)
            ci_proc_fail(v, stmt, "the loop over lanes before it cannot execute it");
        first = stmt->in_lane_loop ? first : stmt;
        if (stmt->at.is_shifted && !ci_lane_loop_shift(v->sym, l->lane_symbols, first, stmt).late)
            ci_proc_fail(v, stmt, "no two aligned loads have its lanes");
        verify_block(l, &stmt->body);
        verify_block(l, &stmt->other);
    }
}

void
ci_proc_verify_lane_loops(CiProcVerifier *v)
{
    verify_block(&(LaneVerifier){v, ci_proc_lane_symbols(v->ctx, v->proc)}, &v->proc->body);
}
