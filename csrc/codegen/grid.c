/* Points that need nothing of each other -> blocks of threads, one point each, or as many
 * neighbours as one access of memory moves.
 *
 *   for i0<n vector {…}  ->  for b<ceildiv(n, 256) grid { for t<256 thread { if 256*b + t < n {…} }
 * }
 *
 * Loops one in the other share one number of points. Where a thread takes neighbours along the last
 * of them, what is left at the end it takes one by one; of several loops the last one must be made
 * of whole groups of neighbours. */
#include "codegen/at.h"
#include "codegen/codegen.h"

typedef struct Points {
    CiBuild b;
    const CiFamily *family;
    CiStmt *loops[CI_MAX_FOLD_AXES]; /* outer ones first */
    int count;
    CiStmts body;
} Points;

/* ---- neighbours of one thread ---- */

typedef struct Neighbours {
    CiSym *sym;
    const CiStmts *body;
    const CiExpr *var;
    const CiAccess *stored;
    int widest, lanes; /* bytes of an element; asked for */
    bool is_apart;     /* no thread may do several at once */
    bool has_any;      /* some access would move so many */
} Neighbours;

static void
look_for_store(void *arg, const CiStmt *stmt)
{
    Neighbours *n = arg;
    if (stmt->at.memory == n->stored->memory && stmt->at.index != n->stored->index)
        n->is_apart = true;
}

static void
look_at_access(Neighbours *n, const CiAccess *at)
{
    const CiExpr *coef, *rest;
    if (at->memory->space != CI_SPACE_global ||
        !ci_expr_split_linear(n->sym, at->index, n->var, &coef, &rest) ||
        !ci_expr_equals_const(coef, 1))
        return;
    int size = ci_dtype_size(at->memory->dtype);
    n->widest = size > n->widest ? size : n->widest;
    n->has_any |= ci_sym_known_multiple_of(n->sym, rest, ci_expr_const(n->sym, n->lanes));
}

static void
look(void *arg, const CiStmt *stmt)
{
    Neighbours *n = arg;
    bool is_store = stmt->kind == CI_STMT_store;
    n->is_apart |= stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_alloc && !is_store;
    n->is_apart |= stmt->kind == CI_STMT_alloc && stmt->memory->space != CI_SPACE_register;
    n->is_apart |= stmt->op == CI_OP_bind || stmt->cell || (is_store && stmt->op != CI_OP_none);
    if (stmt->at.memory)
        look_at_access(n, &stmt->at);
    if (!is_store)
        return;
    n->stored = &stmt->at;
    ci_stmts_visit(n->body, look_for_store, n);
}

/* As many as make an access of the widest element, where one is contiguous and aligned. */
static int
choose_lanes(const Points *p)
{
    const CiStmt *last = p->count ? p->loops[p->count - 1] : NULL;
    if (!last)
        return 1;
    Neighbours n = {.sym = p->b.sym, .body = &p->body, .var = last->vars[0], .lanes = 1};
    ci_stmts_visit(&p->body, look, &n);
    if (n.is_apart || !n.widest)
        return 1;
    for (n.lanes = p->family->access_bytes / n.widest; n.lanes > 1; n.lanes /= 2) {
        const CiExpr *extent = last->extents[0];
        bool is_whole = ci_sym_known_multiple_of(n.sym, extent, ci_expr_const(n.sym, n.lanes));
        n.has_any = false;
        ci_stmts_visit(&p->body, look, &n);
        if (n.has_any && extent->high >= n.lanes && (is_whole || p->count == 1))
            return n.lanes;
    }
    return 1;
}

/* ---- points ---- */

static void
find_points(Points *p)
{
    int most = p->b.proc->kernel ? p->b.proc->kernel->nouter : 0;
    p->body = p->b.proc->body;
    while (p->count < most && p->count < CI_MAX_FOLD_AXES) {
        CiStmt *loop = p->body.first;
        CI_REQUIRE(p->b.ctx, loop && loop->kind == CI_STMT_for && !loop->next);
        p->loops[p->count++] = loop;
        p->body = loop->body;
    }
}

/* What a point has for itself lies on the stack of its thread. */
static void
move_scratch(CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch) {
            stmt->memory->space = CI_SPACE_stack;
            stmt->memory->offset = NULL;
        }
        move_scratch(&stmt->body);
        move_scratch(&stmt->other);
    }
}

static const CiExpr *
name_below(CiBuild *b, const CiExpr *e, const CiExpr *limit)
{
    return e->kind == CI_EXPR_const ? e : ci_build_bind(b, ci_build_index(b, e), limit);
}

/* The variables of the loops at point number `number`, of groups of so many neighbours. */
static void
decode(Points *p, const CiExpr *number, int lanes, const CiExpr **to)
{
    CiSym *sym = p->b.sym;
    const CiExpr *rest = number, *width = ci_expr_const(sym, lanes);
    for (int k = p->count - 1; k >= 0; k--) {
        bool is_last = k == p->count - 1;
        const CiExpr *extent = p->loops[k]->extents[0];
        extent = is_last ? ci_expr_floordiv(sym, extent, width) : extent;
        const CiExpr *at = k ? name_below(&p->b, ci_expr_mod(sym, rest, extent), extent) : rest;
        to[k] = is_last ? ci_expr_mul(sym, at, width) : at;
        if (k > 0)
            rest = ci_build_named(&p->b, ci_expr_floordiv(sym, rest, extent));
    }
}

static void
add_points(Points *p, const CiExpr *const *to, int lanes)
{
    const CiExpr *from[CI_MAX_FOLD_AXES];
    for (int k = 0; k < p->count; k++)
        from[k] = p->loops[k]->vars[0];
    CiAt at = {p->count, from, to, p->count ? from[p->count - 1] : NULL, lanes, NULL, 0};
    ci_build_at(&p->b, &p->body, &at);
}

/* A whole group, or what is left of one, point by point. */
static void
add_group_or_rest(Points *p, const CiExpr *number, int lanes)
{
    CiSym *sym = p->b.sym;
    const CiExpr *extent = p->loops[0]->extents[0], *width = ci_expr_const(sym, lanes),
                 *first = ci_expr_mul(sym, ci_build_named(&p->b, number), width);
    CiStmt *choice = ci_build_test(&p->b, CI_STMT_if, CI_COMPARE_less_equal,
                                   ci_expr_add(sym, first, width), extent);
    CiStmts *outside = ci_build_enter(&p->b, &choice->body);
    add_points(p, &first, lanes);
    ci_build_enter(&p->b, &choice->other);
    CiStmt *rest = ci_build_for(&p->b, "r", ci_expr_sub(sym, extent, first), CI_RUN_serial);
    ci_build_enter(&p->b, &rest->body);
    const CiExpr *at = ci_expr_add(sym, first, rest->vars[0]);
    add_points(p, &at, 1);
    ci_build_leave(&p->b, outside);
}

static void
add_group(Points *p, const CiExpr *number, const CiExpr *count, int lanes)
{
    const CiExpr *to[CI_MAX_FOLD_AXES];
    CiStmt *guard = ci_build_test(&p->b, CI_STMT_if, CI_COMPARE_less, number, count);
    CiStmts *outside = ci_build_enter(&p->b, &guard->body);
    decode(p, name_below(&p->b, number, count), lanes, to);
    add_points(p, to, lanes);
    ci_build_leave(&p->b, outside);
}

void
ci_grid(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    CiSym *sym = procs->sym;
    Points p = {.b = {procs->ctx, sym, proc, &proc->body, {0}}, .family = family};
    find_points(&p);
    move_scratch(&p.body);
    proc->body = (CiStmts){0};
    int lanes = choose_lanes(&p);
    const CiExpr *count = ci_expr_const(sym, 1), *width = ci_expr_const(sym, lanes),
                 *threads = ci_expr_const(sym, family->threads);
    for (int k = 0; k < p.count; k++) {
        const CiExpr *extent = p.loops[k]->extents[0];
        count =
            ci_expr_mul(sym, count, k < p.count - 1 ? extent : ci_expr_ceildiv(sym, extent, width));
    }
    CiStmt *blocks = ci_build_for(&p.b, "b", ci_expr_ceildiv(sym, count, threads), CI_RUN_grid);
    ci_build_enter(&p.b, &blocks->body);
    CiStmt *thread = ci_build_for(&p.b, "t", threads, CI_RUN_thread);
    ci_build_enter(&p.b, &thread->body);
    const CiExpr *number =
        ci_expr_add(sym, ci_expr_mul(sym, blocks->vars[0], threads), thread->vars[0]);
    bool is_whole =
        !p.count || ci_sym_known_multiple_of(sym, p.loops[p.count - 1]->extents[0], width);
    if (is_whole)
        add_group(&p, number, count, lanes);
    else
        add_group_or_rest(&p, number, lanes);
}
