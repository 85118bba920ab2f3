/* Maps rows to blocks of threads. A block has one point, and its threads share the elements of inner loops and
 * of folds, whose partial results are combined.
 *
 *   for i0<n parallel { fold sum into s over j<m {…}  for j<m vector {…} }  ->
 *   for b<n grid {
 *     for t<256 thread { a part of the fold into parts[t] }
 *     for x<256, y<256 reduce { parts[x] and parts[y] in parts[x] }
 *     for t<256 thread { elements t, t + 256, … }
 *   }
 *
 * A thread takes as many neighbours as one access moves, and the elements that remain at the end of a row one
 * by one. All other statements are executed by every thread of the block. */
#include "codegen/blocks.h"

#include "codegen/independence.h"
#include "codegen/reduction.h"
#include "codegen/scan.h"
#include "analysis/occupancy.h"

/* ---- loops and folds that the threads share ---- */

static bool
is_shared_loop(const CiBlocks *s, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for && !stmt->is_in_order &&
           ci_iterations_are_independent(&s->r.b, stmt);
}

static bool
is_scan(const CiBlocks *s, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for && !stmt->is_in_order &&
           stmt->extents[0]->high >= CI_CHOOSE(&s->r.b, long_scan) && ci_block_scan_fits(&s->r.b, stmt);
}

static bool
is_shared(const CiBlocks *s, const CiStmt *stmt)
{
    return is_shared_loop(s, stmt) || is_scan(s, stmt) ||
           (stmt->kind == CI_STMT_fold && ci_iterations_are_independent(&s->r.b, stmt));
}

static CiDomain
domain_of(const CiBlocks *s, const CiStmt *stmt)
{
    CiDomain d = {.body = stmt->body};
    if (stmt->kind == CI_STMT_fold)
        return ci_domain_of(stmt);
    for (const CiStmt *loop = stmt; loop && d.count < CI_MAX_FOLD_AXES;) {
        d.vars[d.count] = loop->vars[0];
        d.extents[d.count++] = loop->extents[0];
        d.body = loop->body;
        bool is_nest = loop->body.first == loop->body.last && is_shared_loop(s, loop->body.first);
        loop = is_nest ? loop->body.first : NULL;
    }
    return d;
}

/* ---- rounds ---- */

static void
add_at(CiBlocks *s, const CiExpr *element, int lanes)
{
    const CiExpr *to[CI_MAX_FOLD_AXES];
    ci_domain_decode(&s->r.b, &s->domain, element, lanes, to);
    s->add(s, to, lanes);
}

/* Unrolls rounds whose number is known, so that elements which a thread keeps from one loop to another are
 * in registers. */
static void
add_unrolled(CiBlocks *s, const CiExpr *first, const CiExpr *count)
{
    CiBuild *b = &s->r.b;
    const CiExpr *threads = ci_blocks_number(s, s->r.threads);
    int64_t iterations = (count->high + s->r.threads - 1) / s->r.threads;
    CiStmt *rounds = ci_build_for(b, "r", ci_blocks_number(s, iterations), CI_RUN_unroll);
    CiStmts *outside = ci_build_enter(b, &rounds->body);
    const CiExpr *element =
        ci_expr_add(b->sym, ci_expr_mul(b->sym, rounds->vars[0], threads), s->r.thread);
    if (count->kind != CI_EXPR_const || count->value != iterations * s->r.threads) {
        CiStmt *guard = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, element, count);
        ci_build_enter(b, &guard->body);
    }
    add_at(s, ci_expr_add(b->sym, first, element), s->lanes);
    ci_build_leave(b, outside);
}

/* True if the count of a chunk is known, and so small that its rounds are unrolled. */
static bool
is_short_chunk(const CiBlocks *s, const CiExpr *count)
{
    return s->count && count->kind == CI_EXPR_const &&
           count->value <= CI_CHOOSE(&s->r.b, unrolled_rounds) * s->r.threads;
}

/* Adds the elements (or groups of neighbours) that this thread takes of `count` from number `first` on. */
static void
add_rounds(CiBlocks *s, const CiExpr *first, const CiExpr *count, int lanes)
{
    CiBuild *b = &s->r.b;
    if (count->high <= 0)
        return;
    count = ci_build_named(b, count);
    const CiExpr *threads = ci_blocks_number(s, s->r.threads),
                 *iterations = ci_expr_ceildiv(b->sym, ci_expr_sub(b->sym, count, s->r.thread), threads);
    CiStmt *rounds = ci_build_for(b, "r", iterations, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &rounds->body);
    const CiExpr *element =
        ci_expr_add(b->sym, ci_expr_mul(b->sym, rounds->vars[0], threads), s->r.thread);
    add_at(s, ci_expr_add(b->sym, first, element), lanes);
    ci_build_leave(b, outside);
}

static const int *
lift_at(CiBlocks *s, const CiExpr *const *to, int lanes)
{
    const CiDomain *d = &s->domain;
    CiAt at = {d->count, d->vars, to, d->vars[d->count - 1], lanes, NULL, 1};
    return ci_build_at(&s->r.b, &d->body, &at);
}

/* Takes several groups of neighbours at once, from registers, while there are enough of them for all threads.
 * Returns the number of groups that are done. */
static const CiExpr *
add_registers(CiBlocks *s, const CiExpr *first, const CiExpr *count)
{
    CiBuild *b = &s->r.b;
    CiRegisterRow registers = {.count = s->registers, .lanes = s->lanes};
    const CiExpr *to[CI_MAX_FOLD_AXES];
    CiGroups rounds = ci_build_groups(b, "r", count, (int64_t)s->registers * s->r.threads);
    const CiExpr *group = ci_expr_add(b->sym, rounds.first, ci_expr_add(b->sym, first, s->r.thread));
    for (int k = 0; k < s->registers; k++) {
        const CiExpr *later = ci_blocks_number(s, (int64_t)k * s->r.threads);
        ci_domain_decode(b, &s->domain, ci_expr_add(b->sym, group, later), s->lanes, to);
        registers.lifted[k] = lift_at(s, to, s->lanes);
    }
    ci_reduce_registers(&s->r, &registers, ci_blocks_number(s, 0));
    ci_build_leave(b, rounds.outside);
    return rounds.done;
}

/* The number of whole groups of neighbours. */
static const CiExpr *
count_whole(CiBlocks *s)
{
    CiSym *sym = s->r.b.sym;
    return s->count ? ci_expr_floordiv(sym, s->count, ci_blocks_number(s, s->lanes))
                    : ci_domain_count(sym, &s->domain, s->lanes);
}

static void
add_whole(CiBlocks *s)
{
    CiSym *sym = s->r.b.sym;
    const CiExpr *count = count_whole(s), *first = s->count ? s->from : ci_blocks_number(s, 0);
    first = ci_expr_floordiv(sym, first, ci_blocks_number(s, s->lanes));
    if (is_short_chunk(s, count) ||
        (!s->count && ci_domain_unrolls(&s->r.b, &s->domain, s->lanes, s->r.threads))) {
        add_unrolled(s, first, count);
        return;
    }
    const CiExpr *done = s->registers > 1 ? add_registers(s, first, count) : ci_blocks_number(s, 0);
    add_rounds(s, ci_expr_add(sym, first, done), ci_expr_sub(sym, count, done), s->lanes);
}

/* Adds the elements after the last whole group of neighbours. */
static void
add_rest(CiBlocks *s)
{
    CiSym *sym = s->r.b.sym;
    const CiExpr *width = ci_blocks_number(s, s->lanes),
                 *all = s->count ? s->count : s->domain.extents[s->domain.count - 1];
    if (ci_sym_known_multiple_of(sym, all, width))
        return;
    const CiExpr *done = ci_expr_mul(sym, count_whole(s), width),
                 *first = s->count ? ci_expr_add(sym, s->from, done) : done;
    add_rounds(s, first, ci_expr_sub(sym, all, done), 1);
}

/* ---- loops ---- */

static void
add_body(CiBlocks *s, const CiExpr *const *to, int lanes)
{
    ci_domain_add(&s->r.b, &s->domain, to, lanes);
}

static void
share_loop(CiBlocks *s)
{
    CiStmts *outside = s->r.b.to;
    s->r.thread = ci_domain_enter_threads(&s->r.b, s->r.threads);
    s->add = add_body;
    s->registers = 1;
    add_whole(s);
    add_rest(s);
    ci_build_leave(&s->r.b, outside);
}

/* ---- folds ---- */

static void
add_step(CiBlocks *s, const CiExpr *const *to, int lanes)
{
    CiRegisterRow registers = {{lift_at(s, to, lanes)}, 1, lanes};
    ci_reduce_registers(&s->r, &registers, ci_blocks_number(s, 0));
}

/* Combines the lanes of a thread's accumulators, and stores the partial result of the thread. */
static void
close_lanes(CiReducer *r, CiOp fold, int at, int count)
{
    CiBlocks *s = (CiBlocks *)r;
    int values[CI_MAX_ACCUMULATORS];
    r->width = r->lanes = ci_register_lanes(r, fold, s->lanes);
    ci_reduce_halve(r, fold, at, count, values);
    ci_reduce_store(r, s->r.partials + at, count, s->r.thread, values, NULL);
}

static void
open_lanes(CiReducer *r, CiOp fold, int at, int count)
{
    const CiBlocks *s = (const CiBlocks *)r;
    r->width = r->lanes = ci_register_lanes(r, fold, s->lanes);
    ci_reduce_reset(r, fold, at, count);
}

/* Bytes of registers of the widest element that an iteration of the fold computes. */
static int
widest_element(const CiStmt *fold)
{
    int widest = 4;
    for (const CiStmt *stmt = fold->body.first; stmt; stmt = stmt->next)
        if (stmt->kind == CI_STMT_let && ci_dtype_size(stmt->type.dtype) > widest)
            widest = ci_dtype_size(stmt->type.dtype);
    return widest;
}

static void
add_part(CiBlocks *s)
{
    CiReducer *r = &s->r;
    int kept = (int)CI_CHOOSE(&r->b, kept_bytes) / s->lanes;
    r->is_in_registers = !r->b.proc->is_finish && ci_registers_help(r->fold);
    s->registers = r->is_in_registers                 ? kept / ci_dtype_size(r->fold->into[0]->dtype)
              : ci_stmts_gather(&r->fold->body) ? kept / widest_element(r->fold)
                                         : 1;
    s->registers = s->registers < 1 ? 1 : s->registers;
    ci_registers_alloc_accumulators(r, s->lanes);
    ci_reduce_each(r, true, true, open_lanes);
    s->add = add_step;
    add_whole(s);
    ci_reduce_each(r, true, true, close_lanes);
}

static void
step_into_parts(CiBlocks *s, const CiExpr *const *to, int lanes)
{
    const CiDomain *d = &s->domain;
    CiAt at = {d->count, d->vars, to, NULL, lanes, NULL, 1};
    const int *lifted = ci_build_at(&s->r.b, &d->body, &at);
    ci_reduce_take(&s->r, lifted, s->r.thread, lanes, s->r.partials, NULL);
}

static void
leave_result(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_result(r, values, at, count, ci_reduce_number(r, 0));
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

static void
share_fold(CiBlocks *s, CiStmt *fold)
{
    CiReducer *r = &s->r;
    ci_reduce_alloc_partials(r, fold);
    CiStmts *outside = r->b.to;
    r->thread = ci_domain_enter_threads(&r->b, r->threads);
    add_part(s);
    s->add = step_into_parts;
    add_rest(s);
    ci_build_leave(&r->b, outside);
    ci_reduce_threads(r);
    ci_reduce_each(r, true, true, leave_result);
}

/* ---- blocks ---- */

static int64_t
power_of_two(int64_t least)
{
    int64_t power = 1;
    while (power < least && power < (1 << 20))
        power *= 2;
    return power;
}

/* Threads of a block. If a thread takes more groups of neighbours, fewer partial results are combined, but the groups
 * must fit in registers, and short rows need the threads. The numbers are measured. */
static int
choose_threads(const CiMachine *machine, int64_t widest, int lanes, const CiExpr *count)
{
    int64_t each = widest < 1024 || lanes >= 8 ? 4 : 8,
            points = ci_occupancy_points(count),
            threads = power_of_two((widest + each - 1) / each),
            whole = ci_choice(machine, CI_CHOICE_most_threads),
            most = widest < 1024 * each ? ci_choice(machine, CI_CHOICE_short_threads) : whole;
    threads = threads > most ? most : threads;
    while (threads < whole && threads < widest && !ci_fill_has_threads(machine, points, threads))
        threads *= 2;
    return (int)threads;
}

/* Number of small points that share one thread block of the GPU, as long as their rows leave shared
 * memory for other blocks. The threads of such a point wait for each other alone, so they are of one
 * warp. */
static int
choose_together(const CiMachine *machine, int threads, int64_t bytes, const CiExpr *count)
{
    int64_t least = ci_choice(machine, CI_CHOICE_group_threads) / threads;
    int together = threads > machine->warp ? 1 : (int)ci_choice(machine, CI_CHOICE_block_threads) / threads;
    while (together > 1 && together / 2 >= count->high)
        together /= 2;
    while (together * bytes > machine->shared_bytes && together / 2 >= least)
        together /= 2;
    return together;
}

/* ---- statements of a block ---- */

/* The largest number of groups of neighbours in a loop or fold that is shared. Sets the lanes of such a group. */
static int64_t
find_widest(const CiBlocks *s, const CiStmts *body, int *lanes)
{
    int64_t widest = 0, inside;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (!is_shared(s, stmt)) {
            inside = find_widest(s, &stmt->body, lanes);
            widest = inside > widest ? inside : widest;
            inside = find_widest(s, &stmt->other, lanes);
            widest = inside > widest ? inside : widest;
            continue;
        }
        CiDomain d = domain_of(s, stmt);
        int taken = is_scan(s, stmt) ? ci_block_scan_lanes(&s->r.b, stmt)
                                     : ci_domain_lanes(&s->r.b, &d);
        const CiExpr *count = stmt->count ? stmt->count : ci_domain_count(s->r.b.sym, &d, 1);
        inside = count->high == CI_INFINITY ? ci_occupancy_points(count) : count->high / taken;
        *lanes = taken > *lanes ? taken : *lanes;
        widest = inside > widest ? inside : widest;
    }
    return widest;
}

static bool
has_shared(const CiBlocks *s, const CiStmt *stmt)
{
    int lanes = 1;
    return find_widest(s, &stmt->body, &lanes) >= s->least ||
           find_widest(s, &stmt->other, &lanes) >= s->least;
}

static void
share_one(CiBlocks *s, CiStmt *stmt)
{
    if (is_scan(s, stmt)) {
        ci_block_scan(&s->r.b, s->r.threads, &s->bytes, stmt);
        return;
    }
    s->domain = domain_of(s, stmt);
    s->from = stmt->from;
    s->count = stmt->count;
    s->lanes = ci_domain_lanes(&s->r.b, &s->domain);
    if (stmt->kind == CI_STMT_fold)
        share_fold(s, stmt);
    else
        share_loop(s);
}

static void share(void *arg, CiStmt *stmt);

/* Every thread executes the statement, except the loops and folds inside it that are shared. */
static void
share_inside(CiBlocks *s, CiStmt *stmt)
{
    ci_build_rewrite(&s->r.b, &stmt->body, share, s);
    ci_build_rewrite(&s->r.b, &stmt->other, share, s);
    ci_build_move(&s->r.b, stmt);
}

static void
share(void *arg, CiStmt *stmt)
{
    CiBlocks *s = arg;
    bool is_loop = ci_stmt_is_loop(stmt) || stmt->kind == CI_STMT_fold;
    s->r.b.loc = stmt->loc;
    if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch)
        ci_blocks_place(s, stmt->memory);
    if (is_shared(s, stmt)) {
        share_one(s, stmt);
        return;
    }
    if (has_shared(s, stmt) || stmt->kind == CI_STMT_if) {
        share_inside(s, stmt);
        return;
    }
    if (is_loop)
        ci_blocks_run(s, stmt);
    else
        ci_build_move(&s->r.b, stmt);
}

/* True for a reduction of a chunk of its elements. */
static bool
is_part(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_fold && stmt->count;
}

static bool
is_in_registers(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_fold && ci_registers_help(stmt);
}

/* Number of threads per point. Smaller blocks let other blocks run while threads wait for memory,
 * or for each other where synchronization is expensive. A warp runs an iteration of a tree, because its threads
 * synchronize at little cost. */
static int
threads_for(const CiBlocks *s, int64_t widest, int lanes, const CiDomain *points)
{
    const CiBuild *b = &s->r.b;
    if (ci_stmts_have(&points->body, is_part) ||
        (widest > CI_CHOOSE(b, kept_groups) && ci_stmts_have(&points->body, is_in_registers)))
        return (int)CI_CHOOSE(b, chunk_threads);
    if (b->proc->head.is_tree)
        return (int)(points->count || widest < CI_CHOOSE(b, long_tree_row) ? CI_CHOOSE(b, group_threads)
                                                                       : CI_CHOOSE(b, block_threads));
    return choose_threads(s->r.b.machine, widest, lanes, ci_domain_count(b->sym, points, 1));
}

bool
ci_share_rows(CiBuild *b, const CiDomain *points)
{
    CiSym *sym = b->sym;
    CiBlocks s = {.r = {.b = *b}, .least = b->proc->head.is_tree ? (int)CI_CHOOSE(b, tree_row) : 2};
    const CiExpr *to[CI_MAX_FOLD_AXES];
    int lanes = 1;
    s.touched = ci_map_new(b->ctx);
    s.dropped = ci_map_new(b->ctx);
    int64_t widest = find_widest(&s, &points->body, &lanes);
    if (widest < s.least && !ci_domain_has_scratch(points))
        return false;
    s.r.threads = threads_for(&s, widest, lanes, points);
    const CiExpr *count = ci_domain_count(sym, points, 1);
    CiStmt *blocks = points->count == 1 ? ci_build_loop(&s.r.b, points->vars[0], count, CI_RUN_grid)
                                        : ci_build_for(&s.r.b, "b", count, CI_RUN_grid);
    ci_build_enter(&s.r.b, &blocks->body);
    if (points->count > 1) {
        ci_domain_decode(&s.r.b, points, blocks->vars[0], 1, to);
        CiAt at = {points->count, points->vars, to, NULL, 1, NULL, 0};
        ci_build_at(&s.r.b, &points->body, &at);
    } else {
        ci_build_move_all(&s.r.b, &points->body);
    }
    ci_blocks_count(&s, &blocks->body);
    ci_build_rewrite(&s.r.b, &blocks->body, share, &s);
    ci_blocks_drop(&s, &blocks->body);
    blocks->number = choose_together(b->machine, s.r.threads, s.bytes, count);
    return true;
}
