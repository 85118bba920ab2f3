/* Finds the groups of a loop that is cut into strips, and the values that cross from one group to
 * another. */
#include "codegen/strips.h"

/* ---- groups ---- */

int
ci_strip_group(const CiStripper *s, const CiStmt *stmt)
{
    return (int)(intptr_t)ci_map_find(s->groups, CI_KEY(stmt));
}

typedef struct Search {
    const CiStripper *s;
    bool is_found;
} Search;

/* A call, or a store that is one for all lanes. */
static void
search(void *arg, const CiStmt *stmt)
{
    Search *found = arg;
    bool is_same = stmt->kind == CI_STMT_store && !ci_stmt_varies(&found->s->varying, stmt);
    found->is_found |= is_same || ci_stmt_is_ufunc(stmt);
}

/* True if the statement belongs to no group. */
bool
ci_strip_is_cut(const CiStripper *s, const CiStmt *stmt)
{
    Search found = {s, false};
    if (ci_stmt_is_ufunc(stmt))
        return s->varying.values[stmt->value];
    ci_stmts_visit(&stmt->body, search, &found);
    ci_stmts_visit(&stmt->other, search, &found);
    return found.is_found;
}

bool
ci_strip_is_of_lanes(const CiStripper *s, const CiStmt *stmt)
{
    return ci_stmt_varies(&s->varying, stmt) && stmt->kind != CI_STMT_exit &&
           stmt->kind != CI_STMT_stop && stmt->kind != CI_STMT_poll;
}

/* True for a statement that is the same in all lanes and may be moved before an open group, because
 * no lane's store changes what it reads. */
static bool
is_plain(const CiStripper *s, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    bool is_safe = stmt->op != CI_OP_load || memory->is_const ||
                   memory->space == CI_SPACE_register || memory->space == CI_SPACE_argument ||
                   ci_map_find(s->varying.owned, CI_KEY(memory));
    return stmt->kind == CI_STMT_alloc || (stmt->kind == CI_STMT_let && !stmt->cell && is_safe);
}

bool
ci_strip_ends_group(const CiStripper *s, const CiStmt *stmt)
{
    return !ci_strip_is_of_lanes(s, stmt) && !is_plain(s, stmt);
}

typedef struct Numbering {
    CiStripper *s;
    int number;
} Numbering;

static void
use_memory(void *arg, CiMemory **memory, CiTouch touch)
{
    Numbering *n = arg;
    CiStripper *s = n->s;
    (void)touch;
    if (!ci_map_find(s->varying.owned, CI_KEY(*memory)))
        return;
    intptr_t known = (intptr_t)ci_map_find(s->owners, CI_KEY(*memory));
    intptr_t owner = !known || known == n->number ? n->number : -1;
    ci_map_put(s->owners, CI_KEY(*memory), (void *)owner);
}

static void
number_stmt(void *arg, const CiStmt *stmt)
{
    Numbering *n = arg;
    ci_map_put(n->s->groups, CI_KEY(stmt), (void *)(intptr_t)n->number);
    if (stmt->value >= 0)
        n->s->made_in[stmt->value] = n->number;
    ci_stmt_each_memory(stmt, use_memory, n);
    if (stmt->at.memory) {
        intptr_t known = (intptr_t)ci_map_find(n->s->accesses, CI_KEY(stmt->at.memory));
        ci_map_put(n->s->accesses, CI_KEY(stmt->at.memory), (void *)(known + 1));
    }
}

/* A block's statements come to the group that is open where they stand. */
static void
number_block(CiStripper *s, const CiStmts *block)
{
    s->ngroups++;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        Numbering n = {s, s->ngroups};
        if (stmt->value >= 0)
            s->lets[stmt->value] = stmt;
        if (stmt->op == CI_OP_bind)
            ci_map_put(s->bound, CI_KEY(stmt->expr), (void *)(uintptr_t)stmt);
        s->nbound += stmt->op == CI_OP_bind;
        if (!ci_strip_is_cut(s, stmt)) {
            n.number = s->ngroups += ci_strip_ends_group(s, stmt);
            ci_stmt_visit(stmt, number_stmt, &n);
            continue;
        }
        n.number = ++s->ngroups;
        number_stmt(&n, stmt);
        number_block(s, &stmt->body);
        number_block(s, &stmt->other);
        s->ngroups++;
    }
}

/* ---- what crosses ---- */

bool
ci_strip_is_line(const CiStripper *s, const CiStmt *stmt, const CiExpr **step)
{
    const CiExpr *rest;
    const CiMemory *memory = stmt->at.memory;
    return !stmt->live && !stmt->at.stride && memory->lanes == 1 &&
           (memory->space == CI_SPACE_global || memory->space == CI_SPACE_stack) &&
           ci_expr_split_linear(s->b.sym, stmt->at.index, s->var, step, &rest) &&
           !ci_index_varies(&s->varying, *step) && !ci_index_varies(&s->varying, rest);
}

/* Backwards, and float16 with gaps, NumPy's loops compute by other instructions, of other bits. */
static bool
is_any_loops_step(const CiExpr *step, CiDtype dtype)
{
    return dtype == CI_DTYPE_f16 ? ci_expr_equals_const(step, 1) : step->low >= 0;
}

static bool
is_read_in_place(const CiStripper *s, int value)
{
    const CiStmt *let = s->lets[value];
    const CiExpr *step;
    return s->uses[value] == 1 && s->varying.values[value] && let && let->op == CI_OP_load &&
           let->at.memory->is_const && ci_strip_is_line(s, let, &step) &&
           is_any_loops_step(step, let->type.dtype);
}

/* The store of a call's results, if nothing else is done with them, nor with what they go to. */
static void
find_store(void *arg, const CiStmt *stmt)
{
    CiStripper *s = arg;
    const CiExpr *step;
    if (stmt->kind != CI_STMT_store || stmt->op != CI_OP_none)
        return;
    const CiStmt *let = s->lets[stmt->args[0]];
    intptr_t accesses = (intptr_t)ci_map_find(s->accesses, CI_KEY(stmt->at.memory));
    if (!let || !ci_stmt_is_ufunc(let) || !s->varying.values[let->value] ||
        s->uses[let->value] != 1 || accesses != 1 ||
        ci_map_find(s->varying.owned, CI_KEY(stmt->at.memory)) ||
        !ci_strip_is_line(s, stmt, &step) || !ci_expr_equals_const(step, 1) ||
        stmt->at.memory->dtype != let->type.dtype)
        return;
    s->store[let->value] = stmt;
    ci_map_put(s->dropped, CI_KEY(stmt), s);
}

static void
cross(CiStripper *s, int value, int number)
{
    if (s->varying.values[value] && s->made_in[value] && s->made_in[value] != number)
        s->crosses[value] = true;
}

/* A symbol crosses as the value that it is bound to: printed code has no other name for it. */
static void
cross_symbols(CiStripper *s, const CiExpr *e, int number)
{
    for (int k = 0; e && k < e->nsymbols; k++) {
        const CiStmt *bind = ci_map_find(s->bound, CI_KEY(e->symbols[k]));
        if (bind && s->made_in[bind->value] != number)
            cross(s, bind->args[0], number);
    }
}

static void
find_crossing(void *arg, const CiStmt *stmt)
{
    CiStripper *s = arg;
    int number = ci_strip_group(s, stmt);
    bool is_call = ci_strip_is_cut(s, stmt) && ci_stmt_is_ufunc(stmt);
    if (ci_map_find(s->dropped, CI_KEY(stmt)))
        return;
    for (int a = 0; a < stmt->nargs; a++) {
        s->is_in_place[stmt->args[a]] |= is_call && is_read_in_place(s, stmt->args[a]);
        if (!s->is_in_place[stmt->args[a]])
            cross(s, stmt->args[a], number);
    }
    if (is_call)
        s->crosses[stmt->value] = !s->store[stmt->value];
    cross_symbols(s, stmt->at.index, number);
    cross_symbols(s, stmt->op == CI_OP_bind ? NULL : stmt->expr, number);
}

/* Finds statements that prevent strips: scans and calls that carry a value per lane from one
 * iteration to the next, and symbols that have no other name. */
static void
doubt(void *arg, const CiStmt *stmt)
{
    Search *d = arg;
    const CiStripper *s = d->s;
    bool is_owned = stmt->cell && ci_map_find(s->varying.owned, CI_KEY(stmt->cell));
    intptr_t owner = is_owned ? (intptr_t)ci_map_find(s->owners, CI_KEY(stmt->cell)) : 0;
    d->is_found |=
        owner < 0 || (stmt->op == CI_OP_bind && s->varying.values[stmt->value] && !stmt->limit);
}

static bool
can_be_cut(const CiStripper *s, const CiStmts *body)
{
    Search d = {s, false};
    ci_stmts_visit(body, doubt, &d);
    return !d.is_found;
}

/* Records the group of each value, and the values that another group reads. */
static void
survey(CiStripper *s, const CiStmt *loop)
{
    CiContext *ctx = s->b.ctx;
    int nvalues = s->b.proc->nvalues + 1;
    s->var = loop->vars[0];
    s->varying = ci_vary(ctx, s->b.proc, &loop->body, s->var);
    s->ngroups = s->nbound = 0;
    s->groups = ci_map_new(ctx);
    s->bound = ci_map_new(ctx);
    s->owners = ci_map_new(ctx);
    s->longer = ci_map_new(ctx);
    s->dropped = ci_map_new(ctx);
    s->accesses = ci_map_new(ctx);
    s->made_in = CI_NEW_ARRAY(ctx, int, nvalues);
    s->uses = CI_NEW_ARRAY(ctx, int, nvalues);
    s->lets = CI_NEW_ARRAY(ctx, const CiStmt *, nvalues);
    s->store = CI_NEW_ARRAY(ctx, const CiStmt *, nvalues);
    s->crosses = CI_NEW_ARRAY(ctx, bool, nvalues);
    s->is_in_place = CI_NEW_ARRAY(ctx, bool, nvalues);
    s->memory_of = CI_NEW_ARRAY(ctx, CiMemory *, nvalues);
    s->group.number = 0;
    ci_stmts_count_uses(&loop->body, s->uses);
    number_block(s, &loop->body);
    ci_stmts_visit(&loop->body, find_store, s);
    ci_stmts_visit(&loop->body, find_crossing, s);
}

bool
ci_strip_survey(CiStripper *s, const CiStmt *loop)
{
    survey(s, loop);
    s->is_of_points = false;
    return !ci_why_not_lanes(s->b.ctx, s->b.proc, &loop->body, s->var) &&
           can_be_cut(s, &loop->body);
}

/* ---- points ---- */

static bool
is_far(const CiStripper *s, int value, const CiStmt *user)
{
    return s->varying.values[value] && s->made_in[value] &&
           s->made_in[value] != ci_strip_group(s, user);
}

static bool
names_far_symbols(const CiStripper *s, const CiExpr *e, const CiStmt *user)
{
    for (int k = 0; e && k < e->nsymbols; k++) {
        const CiStmt *bind = ci_map_find(s->bound, CI_KEY(e->symbols[k]));
        if (bind && is_far(s, bind->value, user))
            return true;
    }
    return false;
}

/* Finds statements that prevent strips of points. Some cannot occur among lanes: tests and loops
 * that depend on another group's values, and vectors that cross. The others are memory that is
 * passed on and memory that several groups use. */
static void
doubt_points(void *arg, const CiStmt *stmt)
{
    Search *d = arg;
    const CiStripper *s = d->s;
    bool is_shared =
        stmt->kind == CI_STMT_alloc && (intptr_t)ci_map_find(s->owners, CI_KEY(stmt->memory)) < 0;
    bool is_wide = stmt->value >= 0 && s->crosses[stmt->value] && stmt->type.lanes > 1;
    bool is_far_size =
        stmt->kind == CI_STMT_alloc && names_far_symbols(s, stmt->memory->size, stmt);
    d->is_found |= stmt->kind == CI_STMT_swap || stmt->kind == CI_STMT_barrier || is_shared ||
                   is_wide || is_far_size;
    for (int k = 0; k < stmt->ntests; k++) {
        const CiCondition *test = &stmt->tests[k];
        bool is_value = test->compare >= CI_COMPARE_is;
        d->is_found |= is_value ? is_far(s, test->value, stmt)
                                : names_far_symbols(s, test->left, stmt) ||
                                      names_far_symbols(s, test->right, stmt);
    }
    for (int k = 0; k < stmt->nvars; k++)
        d->is_found |= names_far_symbols(s, stmt->extents[k], stmt);
}

/* Each call that varies stands in the body itself, and there is one. */
static bool
has_calls_of_its_own(const CiStripper *s, const CiStmts *body)
{
    int count = 0;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (ci_stmts_have(&stmt->body, ci_stmt_is_ufunc) ||
            ci_stmts_have(&stmt->other, ci_stmt_is_ufunc))
            return false;
        count += ci_stmt_is_ufunc(stmt) && s->varying.values[stmt->value];
    }
    return count > 0;
}

bool
ci_strip_survey_points(CiStripper *s, const CiStmt *loop)
{
    Search d = {s, false};
    if (!ci_stmts_have(&loop->body, ci_stmt_is_ufunc))
        return false;
    survey(s, loop);
    s->is_of_points = true;
    ci_stmts_visit(&loop->body, doubt_points, &d);
    return !d.is_found && has_calls_of_its_own(s, &loop->body) && can_be_cut(s, &loop->body);
}
