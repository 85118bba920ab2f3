/* Points -> blocks of threads. Those that need nothing of each other, nor have anything inside that
 * threads could share out, are threads, one point each, or as many neighbours as one access of
 * memory moves; others are blocks (blocks.c).
 *
 *   for i0<n vector {…}  ->  for b<ceildiv(n, 256) grid { for t<256 thread { if 256*b + t < n {…} }
 * }
 *
 * Loops one in the other share one number of points. Where a thread takes neighbours along the only
 * one of them, what is left at the end it takes one by one. */
#include "codegen/grid.h"

static CiDomain
find_points(const CiBuild *b)
{
    CiDomain points = {.body = b->proc->body};
    int most = b->proc->kernel ? b->proc->kernel->nouter : 0;
    while (points.count < most && points.count < CI_MAX_FOLD_AXES) {
        const CiStmt *loop = points.body.first;
        CI_REQUIRE(b->ctx, loop && loop->kind == CI_STMT_for && !loop->next);
        points.vars[points.count] = loop->vars[0];
        points.extents[points.count++] = loop->extents[0];
        points.body = loop->body;
    }
    return points;
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

/* A whole group, or what is left of one, point by point. */
static void
add_group_or_rest(CiBuild *b, const CiDomain *points, const CiExpr *number, int lanes)
{
    CiSym *sym = b->sym;
    const CiExpr *extent = points->extents[0], *width = ci_expr_const(sym, lanes),
                 *first = ci_expr_mul(sym, ci_build_named(b, number), width);
    CiStmt *choice =
        ci_build_test(b, CI_STMT_if, CI_COMPARE_less_equal, ci_expr_add(sym, first, width), extent);
    CiStmts *outside = ci_build_enter(b, &choice->body);
    ci_domain_add(b, points, &first, lanes);
    ci_build_enter(b, &choice->other);
    CiStmt *rest = ci_build_for(b, "r", ci_expr_sub(sym, extent, first), CI_RUN_serial);
    ci_build_enter(b, &rest->body);
    const CiExpr *at = ci_expr_add(sym, first, rest->vars[0]);
    ci_domain_add(b, points, &at, 1);
    ci_build_leave(b, outside);
}

static void
add_group(CiBuild *b, const CiDomain *points, const CiExpr *number, int lanes)
{
    const CiExpr *to[CI_MAX_FOLD_AXES], *count = ci_domain_count(b->sym, points, lanes);
    CiStmt *guard = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, number, count);
    CiStmts *outside = ci_build_enter(b, &guard->body);
    if (points->count)
        number = ci_build_bind(b, ci_build_index(b, number), count);
    ci_domain_decode(b, points, number, lanes, to);
    ci_domain_add(b, points, to, lanes);
    ci_build_leave(b, outside);
}

static void
make_threads(CiBuild *b, const CiFamily *family, CiDomain *points)
{
    CiSym *sym = b->sym;
    move_scratch(&points->body);
    int lanes = ci_domain_lanes(b, family, points);
    bool is_whole = ci_domain_is_whole(sym, points, lanes);
    const CiExpr *threads = ci_expr_const(sym, family->threads),
                 *count = is_whole
                              ? ci_domain_count(sym, points, lanes)
                              : ci_expr_ceildiv(sym, points->extents[0], ci_expr_const(sym, lanes));
    CiStmt *blocks = ci_build_for(b, "b", ci_expr_ceildiv(sym, count, threads), CI_RUN_grid);
    ci_build_enter(b, &blocks->body);
    CiStmt *thread = ci_build_for(b, "t", threads, CI_RUN_thread);
    ci_build_enter(b, &thread->body);
    const CiExpr *number =
        ci_expr_add(sym, ci_expr_mul(sym, blocks->vars[0], threads), thread->vars[0]);
    if (is_whole)
        add_group(b, points, number, lanes);
    else
        add_group_or_rest(b, points, number, lanes);
}

static bool
has_inside(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for || stmt->kind == CI_STMT_fold;
}

void
ci_grid(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    CiBuild b = {procs->ctx, procs->sym, proc, &proc->body, {0}};
    CiDomain points = find_points(&b);
    proc->body = (CiStmts){0};
    if (ci_stmts_have(&points.body, has_inside))
        ci_share_rows(&b, family, &points);
    else
        make_threads(&b, family, &points);
}
