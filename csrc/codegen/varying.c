/* Values that vary from lane to lane. A value varies if its index contains the lane variable or a
 * symbol that is bound to a varying value, or if one of its operands varies. Memory of the body
 * varies if a varying value is stored to it, and so do the loads from it. */
#include "codegen/varying.h"

bool
ci_index_varies(const CiVarying *v, const CiExpr *e)
{
    if (!e)
        return false;
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k] == v->lane_var || ci_map_find(v->symbols, CI_KEY(e->symbols[k])))
            return true;
    return false;
}

static void
note(CiVarying *v, CiMap *set, const void *member)
{
    if (!ci_map_find(set, CI_KEY(member))) {
        ci_map_put(set, CI_KEY(member), v);
        v->has_changed = true;
    }
}

bool
ci_stmt_uses_varying(const CiVarying *v, const CiStmt *stmt)
{
    bool varies = false;
    for (int a = 0; a < stmt->nargs; a++)
        varies |= v->values[stmt->args[a]];
    return varies || ci_index_varies(v, stmt->at.index);
}

/* All accumulators of a reduction vary if an operand does. Operands are at the end of the fold's body. */
static void
find_varying_fold(CiVarying *v, const CiStmt *fold)
{
    const CiStmt *yield = fold->body.last;
    for (int k = 0, from = 0; k < fold->nops && yield && yield->nargs == fold->ninto; k++) {
        int width = ci_fold_width(fold->ops[k]);
        bool varies = false;
        for (int a = from; a < from + width; a++)
            varies |= v->values[yield->args[a]];
        for (int a = from; a < from + width && varies; a++)
            if (ci_map_find(v->owned, CI_KEY(fold->into[a])))
                note(v, v->memories, fold->into[a]);
        from += width;
    }
}

static void
find_varying(void *arg, const CiStmt *stmt)
{
    CiVarying *v = arg;
    if (stmt->kind == CI_STMT_fold)
        find_varying_fold(v, stmt);
    bool varies =
        ci_stmt_uses_varying(v, stmt) || (stmt->op != CI_OP_bind && ci_index_varies(v, stmt->expr));
    if (stmt->at.memory && stmt->kind == CI_STMT_let)
        varies |= ci_map_find(v->memories, CI_KEY(stmt->at.memory)) != NULL;
    if (stmt->cell && !ci_map_find(v->owned, CI_KEY(stmt->cell))) {
        varies = true; /* it runs along the lanes */
    } else if (stmt->cell) {
        varies |= ci_map_find(v->memories, CI_KEY(stmt->cell)) != NULL;
        if (varies)
            note(v, v->memories, stmt->cell);
    }
    if (!varies)
        return;
    if (stmt->kind == CI_STMT_store && ci_map_find(v->owned, CI_KEY(stmt->at.memory)))
        note(v, v->memories, stmt->at.memory);
    if (stmt->op == CI_OP_bind)
        note(v, v->symbols, stmt->expr);
    if (stmt->value >= 0 && !v->values[stmt->value])
        v->values[stmt->value] = v->has_changed = true;
}

static void
find_owned(void *arg, const CiStmt *stmt)
{
    CiVarying *v = arg;
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(v->owned, CI_KEY(stmt->memory), v);
}

CiVarying
ci_vary(CiContext *ctx, const CiProc *proc, const CiStmts *body, const CiExpr *lane_var)
{
    CiVarying v = {lane_var,        CI_NEW_ARRAY(ctx, bool, proc->nvalues + 1),
                   ci_map_new(ctx), ci_map_new(ctx),
                   ci_map_new(ctx), true};
    ci_stmts_visit(body, find_owned, &v);
    while (lane_var && v.has_changed) {
        v.has_changed = false;
        ci_stmts_visit(body, find_varying, &v);
    }
    return v;
}

bool
ci_lanes_have_own_elements(CiSym *sym, const CiVarying *v, const CiStmt *store)
{
    const CiExpr *coef, *rest;
    return !store->is_atomic && v->lane_var && ci_expr_depends_on(store->at.index, v->lane_var) &&
           ci_expr_split_linear(sym, store->at.index, v->lane_var, &coef, &rest) &&
           ci_expr_equals_const(coef, 1) && !ci_index_varies(v, rest);
}

typedef struct Question {
    CiVarying varying;
    const char *why;
} Question;

static void
visit(void *arg, const CiStmt *stmt)
{
    Question *q = arg;
    const CiVarying *v = &q->varying;
    for (int k = 0; k < stmt->ntests; k++)
        if ((stmt->tests[k].compare >= CI_COMPARE_is && v->values[stmt->tests[k].value]) ||
            ci_index_varies(v, stmt->tests[k].left) || ci_index_varies(v, stmt->tests[k].right))
            q->why = "what is done differs from lane to lane";
    for (int k = 0; k < stmt->nvars; k++)
        if (ci_index_varies(v, stmt->extents[k]))
            q->why = "a loop inside is not as long in every lane";
    if (stmt->kind == CI_STMT_swap || stmt->kind == CI_STMT_barrier)
        q->why = "memory changes hands inside";
    if (stmt->kind == CI_STMT_alloc && ci_index_varies(v, stmt->memory->size))
        q->why = "memory inside is not as large in every lane";
}

const char *
ci_why_not_lanes(CiContext *ctx, const CiProc *proc, const CiStmts *body, const CiExpr *lane_var)
{
    Question q = {ci_vary(ctx, proc, body, lane_var), NULL};
    ci_stmts_visit(body, visit, &q);
    return q.why;
}

bool
ci_stmt_varies(const CiVarying *v, const CiStmt *stmt)
{
    if (stmt->kind == CI_STMT_let)
        return v->values[stmt->value];
    if (stmt->kind == CI_STMT_alloc)
        return ci_map_find(v->memories, CI_KEY(stmt->memory)) != NULL;
    if (stmt->kind == CI_STMT_store && stmt->op == CI_OP_none)
        return ci_stmt_uses_varying(v, stmt) ||
               ci_map_find(v->memories, CI_KEY(stmt->at.memory)) != NULL;
    return true;
}
