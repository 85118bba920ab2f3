/* Trips that need nothing of each other: of what several of them touch each stores elements of its
 * own, and reads no other's. Loops of a stage store an element once, unless a store says that it is
 * in order; loops of a tree's regions say nothing of the kind, and count as ordered. */
#include "codegen/apart.h"

typedef struct Apart {
    CiContext *ctx;
    const CiStmts *body;
    CiMap *owned; /* memory that each trip has for itself */
    const CiStmt *store;
    bool are_points; /* of a kernel: none touches what another stores */
    bool is_bound;
} Apart;

static void
note_owned(void *arg, const CiStmt *stmt)
{
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(arg, CI_KEY(stmt->memory), arg);
}

static bool
is_owned(const Apart *a, const CiMemory *memory)
{
    return ci_map_find(a->owned, CI_KEY(memory)) != NULL;
}

static void
meet(void *arg, const CiStmt *stmt)
{
    Apart *a = arg;
    a->is_bound |= stmt->at.memory == a->store->at.memory && stmt->at.index != a->store->at.index;
}

static void
look(void *arg, const CiStmt *stmt)
{
    Apart *a = arg;
    switch (stmt->kind) {
    case CI_STMT_let:
        a->is_bound |= stmt->cell && !is_owned(a, stmt->cell);
        break;
    case CI_STMT_fold:
        for (int k = 0; k < stmt->ninto; k++)
            a->is_bound |= !is_owned(a, stmt->into[k]);
        break;
    case CI_STMT_store:
        if (is_owned(a, stmt->at.memory))
            return;
        a->is_bound |= (stmt->op != CI_OP_none && !stmt->is_atomic) || stmt->is_in_order ||
                       stmt->at.memory->space == CI_SPACE_register;
        a->store = stmt;
        if (!a->are_points)
            ci_stmts_visit(a->body, meet, a);
        break;
    case CI_STMT_alloc:
    case CI_STMT_for:
    case CI_STMT_if:
    case CI_STMT_yield:
        break;
    default:
        a->is_bound = true;
    }
}

static bool
are_apart(CiContext *ctx, const CiStmts *body, bool are_points)
{
    Apart a = {.ctx = ctx, .body = body, .owned = ci_map_new(ctx), .are_points = are_points};
    ci_stmts_visit(body, note_owned, a.owned);
    ci_stmts_visit(body, look, &a);
    return !a.is_bound;
}

bool
ci_trips_are_apart(CiContext *ctx, const CiStmts *body)
{
    return are_apart(ctx, body, false);
}

bool
ci_points_are_apart(CiContext *ctx, const CiStmts *body)
{
    return are_apart(ctx, body, true);
}

static void
note_regions(CiMap *vars, const CiLoopTree *tree)
{
    for (int k = 0; k < tree->count; k++) {
        const CiTreeNode *node = &tree->nodes[k];
        if (node->region && node->region->var)
            ci_map_put(vars, CI_KEY(node->region->var), vars);
        note_regions(vars, &node->body);
        note_regions(vars, &node->other);
    }
}

CiMap *
ci_find_ordered_loops(CiContext *ctx, const CiProc *proc)
{
    CiMap *vars = ci_map_new(ctx);
    const CiLoopTree *tree = proc->kernel ? ci_kernel_tree(proc->kernel) : NULL;
    if (tree)
        note_regions(vars, tree);
    return vars;
}
