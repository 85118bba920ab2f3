/* Independence of loop iterations: each iteration stores elements of its own and reads no element that another
 * iteration stores.
 *
 * Two accesses of one body touch different elements if their distance is larger than the range that all iterations
 * span. Otherwise analysis/access.h compares the elements of one iteration with those of another one. Loops of a
 * stage store each element once, unless a store is marked as ordered. Loops of a tree's regions are marked
 * themselves. */
#include "codegen/independence.h"

#include "base/map.h"
#include "analysis/access.h"

#define MAX_STEP ((int64_t)1 << 30)

typedef struct Iterations {
    const CiBuild *b;
    const CiStmt *loop;
    CiMap *owned;       /* memory that each iteration has for itself */
    CiMap *vars;        /* variables of the loop and of loops in it */
    CiMap *bound;       /* symbols that get their value from data in it */
    const CiStmt *store; /* the store that accesses are compared with */
    bool are_points;    /* iterations are points of a kernel, whose stores are known to be disjoint */
    bool has_conflict;  /* iterations may depend on each other */
} Iterations;

static void
note_declared(void *arg, const CiStmt *stmt)
{
    Iterations *a = arg;
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(a->owned, CI_KEY(stmt->memory), a);
    if (stmt->op == CI_OP_bind)
        ci_map_put(a->bound, CI_KEY(stmt->expr), a);
    for (int k = 0; k < stmt->nvars; k++)
        ci_map_put(a->vars, CI_KEY(stmt->vars[k]), a);
}

static bool
is_owned(const Iterations *a, const CiMemory *memory)
{
    return ci_map_find(a->owned, CI_KEY(memory)) != NULL;
}

/* Number of elements between the first and the last one that an access reaches over all iterations,
 * inner loops included; INT64_MAX if unknown. */
typedef struct Reach {
    CiSym *sym;
    const CiExpr *index;
    int64_t count;
} Reach;

static void
add_reach(void *arg, const CiStmt *stmt)
{
    Reach *r = arg;
    const CiExpr *coef, *rest;
    int64_t step;
    if (stmt->op == CI_OP_bind && ci_expr_depends_on(r->index, stmt->expr))
        r->count = INT64_MAX;
    for (int k = 0; k < stmt->nvars; k++) {
        if (!ci_expr_depends_on(r->index, stmt->vars[k]))
            continue;
        bool is_known = ci_expr_split_linear(r->sym, r->index, stmt->vars[k], &coef, &rest) &&
                        ci_expr_is_const(coef, &step) && step > -MAX_STEP && step < MAX_STEP &&
                        stmt->extents[k]->high < MAX_STEP && r->count < INT64_MAX / 2;
        step = step < 0 ? -step : step;
        r->count = is_known ? r->count + step * (stmt->extents[k]->high - 1) : INT64_MAX;
    }
}

/* True if two elements of one iteration are further apart than all iterations reach. */
static bool
is_out_of_reach(const Iterations *a, const CiExpr *one, const CiExpr *other)
{
    Reach reach = {a->b->sym, one, 0};
    add_reach(&reach, a->loop);
    ci_stmts_visit(&a->loop->body, add_reach, &reach);
    return ci_is_beyond_reach(a->b->sym, one, other, reach.count);
}

/* True if an element of an array is not the stored one of another iteration. */
static bool
differs_at_other_point(const Iterations *a, const CiAccess *at)
{
    const CiExpr **changing = CI_NEW_ARRAY(a->b->ctx, const CiExpr *, at->index->nsymbols + 1);
    int count = 0;
    for (int k = 0; k < at->index->nsymbols; k++) {
        const CiExpr *symbol = at->index->symbols[k];
        if (ci_map_find(a->bound, CI_KEY(symbol)))
            return false;
        if (ci_map_find(a->vars, CI_KEY(symbol)))
            changing[count++] = symbol;
    }
    const CiExpr *index = ci_at_other_point(a->b->ctx, a->b->sym, at->index, count, changing);
    return ci_elements_are_disjoint(a->b->sym, NULL, a->store->at.index, index, NULL);
}

static void
compare(void *arg, const CiStmt *stmt)
{
    Iterations *a = arg;
    a->has_conflict |= stmt->at.memory == a->store->at.memory && stmt->at.index != a->store->at.index &&
                   !is_out_of_reach(a, stmt->at.index, a->store->at.index) && !differs_at_other_point(a, &stmt->at);
}

static void
look_at_stmt(void *arg, const CiStmt *stmt)
{
    Iterations *a = arg;
    switch (stmt->kind) {
    case CI_STMT_let:
        a->has_conflict |= stmt->cell && !is_owned(a, stmt->cell);
        break;
    case CI_STMT_fold:
        for (int k = 0; k < stmt->ninto; k++)
            a->has_conflict |= !is_owned(a, stmt->into[k]);
        break;
    case CI_STMT_store:
        if (is_owned(a, stmt->at.memory))
            return;
        a->has_conflict |= (stmt->op != CI_OP_none && !stmt->is_atomic) || stmt->is_in_order ||
                       stmt->at.memory->space == CI_SPACE_register;
        a->store = stmt;
        if (!a->are_points)
            ci_stmts_visit(&a->loop->body, compare, a);
        break;
    case CI_STMT_alloc:
    case CI_STMT_for:
    case CI_STMT_if:
    case CI_STMT_yield:
        break;
    default:
        a->has_conflict = true;
    }
}

static bool
have_no_overlap(const CiBuild *b, const CiStmt *loop, bool are_points)
{
    Iterations a = {.b = b,
                    .loop = loop,
                    .owned = ci_map_new(b->ctx),
                    .vars = ci_map_new(b->ctx),
                    .bound = ci_map_new(b->ctx),
                    .are_points = are_points};
    ci_stmt_visit(loop, note_declared, &a);
    ci_stmts_visit(&loop->body, look_at_stmt, &a);
    return !a.has_conflict;
}

bool
ci_iterations_are_independent(const CiBuild *b, const CiStmt *loop)
{
    return have_no_overlap(b, loop, false);
}

bool
ci_points_are_disjoint(const CiBuild *b, const CiStmt *loop)
{
    return have_no_overlap(b, loop, true);
}
