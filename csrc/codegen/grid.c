/* Points -> threads and blocks. Independent points without inner work for several threads become
 * threads: each takes one point, or as many neighbours as one memory access moves. Other points
 * become blocks (blocks.c).
 *
 *   for i0<n vector {…}  ->  for b<ceildiv(n, 256) grid { for t<256 thread { if 256*b + t < n {…} }
 * }
 *
 * Nested loops share one number of points. If a thread takes neighbours along the only loop, it
 * takes the remainder at the end one by one. */
#include "codegen/grid.h"

#include "codegen/independence.h"
#include "codegen/instantiate.h"
#include "codegen/reducer.h"
#include "analysis/occupancy.h"

#include <string.h>

static bool
is_outer(const CiProc *proc, const CiStmt *loop)
{
    for (int k = 0; k < proc->head.naxes; k++)
        if (strcmp(proc->head.axes[k].var, loop->vars[0]->name) == 0)
            return true;
    return loop->run == CI_RUN_parallel;
}

/* Marks stores that the machine can combine atomically and that need no order, because integers
 * give the same bits in any order. */
static void
find_atomic(const CiMachine *machine, CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        const CiMemory *memory = stmt->at.memory;
        if (stmt->kind == CI_STMT_store && stmt->op != CI_OP_none &&
            memory->space == CI_SPACE_global)
            stmt->is_atomic = machine->has_atomic(stmt->op, memory->dtype);
        find_atomic(machine, &stmt->body);
        find_atomic(machine, &stmt->other);
    }
}

/* The only loop of a block, after its allocations, values and stores, if its iterations are points:
 * it is inside an outer loop, or it is the whole block; NULL if there is none. */
static CiStmt *
find_loop(const CiBuild *b, CiStmts *block, bool is_whole)
{
    CiStmt *loop = block->first;
    while (loop && (loop->kind == CI_STMT_alloc || loop->kind == CI_STMT_let ||
                    loop->kind == CI_STMT_store))
        loop = loop->next;
    bool is_all = is_whole && loop == block->first && !b->proc->head.is_tree;
    bool is_point = loop && loop->kind == CI_STMT_for && !loop->next &&
                    (is_outer(b->proc, loop) || is_all);
    if (!is_point || loop->run == CI_RUN_parallel || b->proc->head.is_tree)
        return is_point ? loop : NULL;
    bool is_disjoint = is_outer(b->proc, loop) ? ci_points_are_disjoint(b, loop)
                                            : ci_iterations_are_independent(b, loop);
    return is_disjoint ? loop : NULL;
}

/* Collects the perfectly nested point loops. Statements before a loop are moved into its body, so
 * that every point executes them. */
static CiDomain
find_points(const CiBuild *b)
{
    CiDomain points = {.body = b->proc->body};
    CiStmts before = {0};
    CiStmt *loop;
    while (points.count < CI_MAX_FOLD_AXES &&
           (loop = find_loop(b, &points.body, points.count == 0)) != NULL) {
        CiBuild moving = *b;
        moving.to = &before;
        for (CiStmt *next, *stmt = points.body.first; stmt != loop; stmt = next) {
            next = stmt->next;
            ci_build_move(&moving, stmt);
        }
        points.vars[points.count] = loop->vars[0];
        points.extents[points.count++] = loop->extents[0];
        points.body = loop->body;
    }
    if (before.first) {
        before.last->next = points.body.first;
        points.body.first = before.first;
        points.body.last = points.body.last ? points.body.last : before.last;
    }
    return points;
}

/* Moves the scratch memory of a point to the stack of its thread. */
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

/* The neighbours of one thread: `lanes` of them at once, or the last ones of the loop one by one. */
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

static bool
is_other(const CiStmt *stmt)
{
    return !ci_stmt_is_straight(stmt) || stmt->cell;
}

static void
add_bytes(void *arg, const CiStmt *stmt)
{
    int64_t *bytes = arg;
    if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_load && stmt->at.memory->space == CI_SPACE_global)
        *bytes += ci_dtype_size(stmt->at.memory->dtype);
}

/* True if rows are long enough to give a block a segment of one row. A thread with one point waits
 * for few bytes at a time; and if the row's length is no constant, the row of a point costs a
 * division. */
static bool
has_long_rows(const CiBuild *b, const CiDomain *points)
{
    const CiExpr *extent = points->count > 1 ? points->extents[points->count - 1] : NULL;
    int64_t bytes = 0;
    if (!extent || extent->low < CI_CHOOSE(b, segment_row) || ci_stmts_have(&points->body, is_other))
        return false;
    ci_stmts_visit(&points->body, add_bytes, &bytes);
    return extent->kind != CI_EXPR_const || bytes < CI_CHOOSE(b, segment_bytes);
}

/* Adds the points of one thread in a segment, each statement for all of them. first: the position of
 * the first point in its row. */
static void
add_together(CiBuild *b, const CiDomain *points, const CiExpr **to, const CiExpr *first, int threads)
{
    CiSym *sym = b->sym;
    int count = (int)CI_CHOOSE(b, row_segment);
    const CiExpr *part = ci_expr_index(sym, ci_build_name(b, "q"), ci_expr_const(sym, count)),
                 *zero = ci_expr_const(sym, 0);
    CiStmts one = {0};
    CiStmts *outside = ci_build_enter(b, &one);
    to[points->count - 1] =
        ci_expr_add(sym, first, ci_expr_mul(sym, part, ci_expr_const(sym, threads)));
    ci_domain_add(b, points, to, 1);
    ci_build_leave(b, outside);
    ci_build_jammed(b, &one, part, zero, count);
}

/* Gives each block a segment of one row, and each thread a few points of it. */
static void
make_segments(CiBuild *b, const CiDomain *points)
{
    CiSym *sym = b->sym;
    int last = points->count - 1, threads = b->machine->threads;
    int64_t count = CI_CHOOSE(b, row_segment);
    const CiExpr *to[CI_MAX_FOLD_AXES], *extent = points->extents[last],
                                        *size = ci_expr_const(sym, count * threads);
    CiDomain segments = *points;
    segments.extents[last] = ci_expr_ceildiv(sym, extent, size);
    CiStmt *blocks = ci_build_for(b, "b", ci_domain_count(sym, &segments, 1), CI_RUN_grid);
    ci_build_enter(b, &blocks->body);
    ci_domain_decode(b, &segments, blocks->vars[0], 1, to);
    const CiExpr *begin = ci_expr_mul(sym, to[last], size), *first = ci_expr_add(sym, begin, ci_domain_enter_threads(b, threads));
    CiStmt *choice =
        ci_build_test(b, CI_STMT_if, CI_COMPARE_less_equal, ci_expr_add(sym, begin, size), extent);
    CiStmts *outside = ci_build_enter(b, &choice->body);
    add_together(b, points, to, first, threads);
    ci_build_enter(b, &choice->other);
    CiStmt *each = ci_build_for(b, "r", ci_expr_const(sym, count), CI_RUN_serial);
    ci_build_enter(b, &each->body);
    const CiExpr *at =
        ci_expr_add(sym, first, ci_expr_mul(sym, each->vars[0], ci_expr_const(sym, threads)));
    CiStmt *guard = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, at, extent);
    ci_build_enter(b, &guard->body);
    to[last] = ci_build_bind(b, ci_build_index(b, at), extent);
    ci_domain_add(b, points, to, 1);
    ci_build_leave(b, outside);
}

/* Groups of points of each thread, at the distance of a block's threads. A thread that loads an element at an
 * index from memory waits twice, so it has several such loads under way. */
static int
rounds_of(const CiBuild *b, const CiDomain *points, const CiExpr *count)
{
    int64_t rounds = CI_CHOOSE(b, gather_rounds), threads = b->machine->threads;
    const CiExpr *part = ci_expr_const(b->sym, rounds * threads);
    bool has_rounds = ci_stmts_gather(&points->body) && !ci_stmts_have(&points->body, is_other) &&
                      count->low / rounds >= ci_occupancy_threads(b->machine) &&
                      ci_sym_known_multiple_of(b->sym, count, part);
    return has_rounds ? (int)rounds : 1;
}

static void
make_rounds(CiBuild *b, const CiDomain *points, const CiExpr *count, int lanes, int rounds)
{
    CiSym *sym = b->sym;
    const CiExpr *to[CI_MAX_FOLD_AXES], *threads = ci_expr_const(sym, b->machine->threads),
                                        *part = ci_expr_const(sym, (int64_t)rounds * b->machine->threads);
    CiStmt *blocks = ci_build_for(b, "b", ci_expr_floordiv(sym, count, part), CI_RUN_grid);
    ci_build_enter(b, &blocks->body);
    const CiExpr *thread = ci_domain_enter_threads(b, b->machine->threads);
    CiStmt *each = ci_build_for(b, "r", ci_expr_const(sym, rounds), CI_RUN_unroll);
    ci_build_enter(b, &each->body);
    const CiExpr *first = ci_expr_add(sym, ci_expr_mul(sym, blocks->vars[0], part), thread),
                 *number = ci_expr_add(sym, first, ci_expr_mul(sym, each->vars[0], threads));
    ci_domain_decode(b, points, ci_build_bind(b, ci_build_index(b, number), count), lanes, to);
    ci_domain_add(b, points, to, lanes);
}

static bool
has_inside(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for || stmt->kind == CI_STMT_fold;
}

static void
make_threads(CiBuild *b, CiDomain *points)
{
    CiSym *sym = b->sym;
    move_scratch(&points->body);
    int lanes = ci_domain_lanes(b, points);
    bool is_whole = ci_domain_is_whole(sym, points, lanes);
    bool is_long = ci_stmts_have(&points->body, has_inside);
    if (lanes == 1 && has_long_rows(b, points)) {
        make_segments(b, points);
        return;
    }
    bool are_many = ci_domain_count(sym, points, 1)->low >= ci_occupancy_threads(b->machine);
    const CiExpr *threads = ci_expr_const(sym, is_long && !are_many ? CI_CHOOSE(b, few_threads)
                                                                : b->machine->threads),
                 *count = is_whole
                              ? ci_domain_count(sym, points, lanes)
                              : ci_expr_ceildiv(sym, points->extents[0], ci_expr_const(sym, lanes));
    int rounds = is_whole && points->count ? rounds_of(b, points, count) : 1;
    if (rounds > 1) {
        make_rounds(b, points, count, lanes, rounds);
        return;
    }
    CiStmt *blocks = ci_build_for(b, "b", ci_expr_ceildiv(sym, count, threads), CI_RUN_grid);
    ci_build_enter(b, &blocks->body);
    const CiExpr *number = ci_expr_add(sym, ci_expr_mul(sym, blocks->vars[0], threads), ci_domain_enter_threads(b, (int)threads->value));
    if (is_whole)
        add_group(b, points, number, lanes);
    else
        add_group_or_rest(b, points, number, lanes);
}

void
ci_grid(CiBuild *b)
{
    CiProc *proc = b->proc;
    if (proc->head.kind) /* its template has made blocks */
        return;
    if (b->machine->has_atomic)
        find_atomic(b->machine, &proc->body);
    CiDomain points = find_points(b);
    proc->body = (CiStmts){0};
    bool is_across = !proc->head.is_tree && proc->head.has_lanes && !ci_domain_has_scratch(&points),
         is_shared = ci_share_histogram(b, &points);
    if (!is_shared)
        is_shared = is_across ? ci_share_columns(b, &points)
                              : ci_share_rows(b, &points);
    if (!is_shared)
        make_threads(b, &points);
}
