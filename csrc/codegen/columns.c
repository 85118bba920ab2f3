/* Points that are contiguous in memory, with folds and loops over strided elements -> blocks of a
 * few dozen neighbouring points. Each point has a group of the block's threads: thread t is number
 * t / P of the group of point t % P, so that neighbouring threads access neighbouring elements.
 *
 *   for i0<n vector { fold sum into s over r0<m {…} … }  ->
 *   for b<ceildiv(n, 32) grid {
 *     for t<512 thread { rows t/32, t/32 + 16, … of point 32*b + t%32 into parts[t] }
 *     for x<512, y<512 reduce across 32 { parts[x] and parts[y] in parts[x] }
 *     for t<512 thread { if t < 32 { the remaining statements of point 32*b + t } }
 *   }
 *
 * The memory of each point is stored in shared memory. */
#include "base/map.h"
#include "codegen/independence.h"
#include "codegen/grid.h"
#include "codegen/reducer.h"
#include "codegen/reduction.h"
#include "analysis/occupancy.h"

typedef struct Columns {
    CiReducer r;
    const CiDomain *points;
    const CiExpr *count; /* of points */
    int together, group;
    int64_t bytes, part_bytes;
    CiMap *memories;                               /* of a point -> of all points of a block */
    CiDomain domain;                               /* of the loop or fold that is being divided */
    const CiExpr *block, *position, *number;          /* number of the block; of the point in it; of the point */
    void (*add)(struct Columns *c, const CiExpr *const *to);
} Columns;

static const CiExpr *
number_of(Columns *c, int64_t value)
{
    return ci_expr_const(c->r.b.sym, value);
}

/* ---- which points have this form ---- */

typedef struct Survey {
    const CiBuild *b;
    int64_t longest, row_bytes, part_bytes;
    bool has_fold, is_other;
} Survey;

static bool
is_loop(const CiStmt *stmt)
{
    return ci_stmt_is_loop(stmt) || stmt->kind == CI_STMT_fold;
}

static const CiExpr *
count_of(const CiBuild *b, const CiStmt *stmt)
{
    return stmt->count ? stmt->count : ci_expr_product_of(b->sym, stmt->extents, stmt->nvars);
}

static void
look(Survey *s, const CiStmt *stmt)
{
    bool is_shared =
        is_loop(stmt) && stmt->kind != CI_STMT_loop && ci_iterations_are_independent(s->b, stmt);
    s->is_other |= is_loop(stmt) && !is_shared;
    s->is_other |= ci_stmts_have(&stmt->other, is_loop) ||
                   (!is_loop(stmt) && ci_stmts_have(&stmt->body, is_loop));
    s->is_other |= stmt->kind == CI_STMT_call || stmt->kind == CI_STMT_stop || stmt->cell;
    if (stmt->kind == CI_STMT_alloc && stmt->memory->size->kind == CI_EXPR_const)
        s->row_bytes += (stmt->memory->size->value + 1) * ci_dtype_size(stmt->memory->dtype);
    else
        s->is_other |= stmt->kind == CI_STMT_alloc;
    if (!is_shared)
        return;
    int64_t count = ci_occupancy_points(count_of(s->b, stmt));
    s->has_fold |= stmt->kind == CI_STMT_fold;
    s->longest = count > s->longest ? count : s->longest;
    for (int k = 0; k < stmt->ninto; k++)
        s->part_bytes += ci_dtype_size(ci_dtype_compute(stmt->into[k]->dtype));
}

/* Chooses the points of a block and the threads of a group. Few points and long columns have the largest groups. */
static void
choose_shape(Columns *c, const Survey *s)
{
    const CiMachine *machine = c->r.b.machine;
    int64_t points = ci_occupancy_points(c->count);
    int64_t most_bytes = ci_choice(machine, CI_CHOICE_column_bytes);
    int side = (int)ci_choice(machine, CI_CHOICE_fold_points);
    c->together = side;
    while (c->together > 1 && c->together / 2 >= points)
        c->together /= 2;
    while (c->together > ci_choice(machine, CI_CHOICE_sector_points) && !s->has_fold && !ci_fill_has_blocks(machine, points / c->together))
        c->together /= 2;
    while (c->together > 1 && c->together * s->row_bytes > most_bytes)
        c->together /= 2;
    int most = (int)ci_choice(machine, CI_CHOICE_most_threads) / c->together;
    c->group = (int)ci_choice(machine, CI_CHOICE_short_threads) / c->together < side ? 16 : 32;
    while (c->group < most && c->group < s->longest &&
           (!ci_fill_has_threads(machine, points, c->group) || c->group * c->together < ci_choice(machine, CI_CHOICE_group_threads)))
        c->group *= 2;
    while (c->group > 2 &&
           c->together * (s->row_bytes + (int64_t)c->group * s->part_bytes) > most_bytes)
        c->group /= 2;
}

/* ---- threads ---- */

static const CiExpr *
bound(Columns *c, const CiExpr *e, int64_t limit)
{
    return limit == 1 ? number_of(c, 0)
                      : ci_build_bind(&c->r.b, ci_build_index(&c->r.b, e), number_of(c, limit));
}

/* Enters the point at a position of the block, if there is one. */
static void
enter_point(Columns *c, const CiExpr *position)
{
    CiBuild *b = &c->r.b;
    const CiExpr *together = number_of(c, c->together),
                 *number = ci_expr_add(b->sym, ci_expr_mul(b->sym, c->block, together), position);
    c->position = position;
    if (!ci_sym_known_multiple_of(b->sym, c->count, together)) {
        CiStmt *guard = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, number, c->count);
        ci_build_enter(b, &guard->body);
    }
    c->number = ci_build_bind(b, ci_build_index(b, number), c->count);
}

/* ---- statements of a point ---- */

/* Redirects an access of a point's own memory to the point's slot in the memory of the whole
 * block. */
static void
redirect(Columns *c, CiStmt *stmt)
{
    CiSym *sym = c->r.b.sym;
    CiMemory *all = stmt->at.memory ? ci_map_find(c->memories, CI_KEY(stmt->at.memory)) : NULL;
    if (all) {
        const CiExpr *row = ci_expr_mul(sym, stmt->at.index, number_of(c, c->together));
        stmt->at.memory = all;
        stmt->at.index = ci_expr_add(sym, row, c->position);
    }
    for (CiStmt *inside = stmt->body.first; inside; inside = inside->next)
        redirect(c, inside);
    for (CiStmt *inside = stmt->other.first; inside; inside = inside->next)
        redirect(c, inside);
}

/* Adds the statements for this point; in a domain at the element `to`, or for that many rows from there on.
 * Returns the values that they yield. */
static const int *
add_at(Columns *c, const CiStmts *body, const CiDomain *domain, const CiExpr *const *to, int rows)
{
    const CiExpr *from[2 * CI_MAX_FOLD_AXES], *here[2 * CI_MAX_FOLD_AXES];
    CiStmts made = {0};
    int count = c->points->count;
    CiStmts *outside = ci_build_enter(&c->r.b, &made);
    ci_domain_decode(&c->r.b, c->points, c->number, 1, here);
    for (int k = 0; k < count; k++)
        from[k] = c->points->vars[k];
    for (int k = 0; domain && k < domain->count; k++, count++) {
        from[count] = domain->vars[k];
        here[count] = to[k];
    }
    CiAt at = {count, from, here, rows > 1 ? domain->vars[0] : NULL, 1, NULL, domain ? rows : 0};
    const int *values = ci_build_at(&c->r.b, body, &at);
    for (CiStmt *stmt = made.first; stmt; stmt = stmt->next)
        redirect(c, stmt);
    ci_build_leave(&c->r.b, outside);
    ci_build_move_all(&c->r.b, &made);
    return values;
}

/* ---- rounds ---- */

/* Sets `to` to the element of the loop or fold that this thread takes in a round. */
static void
decode_round(Columns *c, const CiStmt *stmt, const CiExpr *round, const CiExpr *member,
             const CiExpr *const *here, const CiExpr **to)
{
    CiSym *sym = c->r.b.sym;
    const CiExpr *row =
        ci_expr_add(sym, ci_expr_mul(sym, round, number_of(c, c->group)), member);
    if (stmt->count)
        row = ci_expr_add(sym, row,
                          ci_expr_substitute(sym, stmt->from, c->points->count, c->points->vars, here));
    ci_domain_decode(&c->r.b, &c->domain, row, 1, to);
}

/* Runs several rounds of a fold at once, from registers. Returns the number of rounds that are done. */
static const CiExpr *
add_registers(Columns *c, const CiStmt *stmt, const CiExpr *rounds, const CiExpr *member,
              const CiExpr *const *here)
{
    CiBuild *b = &c->r.b;
    const CiExpr *to[CI_MAX_FOLD_AXES];
    CiRegisterRow registers = {.count = (int)CI_CHOOSE(b, column_rows), .lanes = 1};
    CiGroups groups = ci_build_groups(b, "r", rounds, registers.count);
    for (int k = 0; k < registers.count; k++) {
        decode_round(c, stmt, ci_expr_add(b->sym, groups.first, number_of(c, k)), member, here, to);
        registers.lifted[k] = add_at(c, &c->domain.body, &c->domain, to, 1);
    }
    ci_reduce_registers(&c->r, &registers, number_of(c, 0));
    ci_build_leave(b, groups.outside);
    return groups.done;
}

static bool
is_other(const CiStmt *stmt)
{
    return (stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_store) || stmt->cell || stmt->op == CI_OP_bind;
}

/* Takes neighbouring rows of a loop at once, so that a thread issues their loads before it waits for the first
 * one. Returns the number of rows that are left. */
static const CiExpr *
add_neighbours(Columns *c, const CiExpr *count, const CiExpr *member)
{
    CiBuild *b = &c->r.b;
    const CiExpr *registers = number_of(c, CI_CHOOSE(b, column_rows)), *whole = ci_expr_floordiv(b->sym, count,
                                                                                                 registers);
    CiStmt *loop = ci_build_for(
        b, "r", ci_expr_ceildiv(b->sym, ci_expr_sub(b->sym, whole, member), number_of(c, c->group)),
        CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &loop->body);
    const CiExpr *group = ci_expr_mul(b->sym, loop->vars[0], number_of(c, c->group)),
                 *row = ci_expr_mul(b->sym, ci_expr_add(b->sym, group, member), registers);
    add_at(c, &c->domain.body, &c->domain, &row, (int)registers->value);
    ci_build_leave(b, outside);
    return ci_expr_sub(b->sym, count, ci_expr_mul(b->sym, whole, registers));
}

static void
add_rounds(Columns *c, const CiStmt *stmt, const CiExpr *member)
{
    CiBuild *b = &c->r.b;
    const CiExpr *to[CI_MAX_FOLD_AXES], *here[CI_MAX_FOLD_AXES], *group = number_of(c, c->group);
    ci_domain_decode(b, c->points, c->number, 1, here);
    const CiExpr *count =
        ci_expr_substitute(b->sym, count_of(b, stmt), c->points->count, c->points->vars, here);
    count = ci_build_named(b, count);
    const CiExpr *all, *done = number_of(c, 0), *first = done;
    bool is_row = stmt->kind == CI_STMT_for && stmt->nvars == 1 && !ci_stmts_have(&stmt->body, is_other);
    if (is_row && count->low >= CI_CHOOSE(b, column_rows) * c->group) {
        const CiExpr *left = add_neighbours(c, count, member);
        if (ci_expr_equals_const(left, 0))
            return;
        first = ci_expr_sub(b->sym, count, left);
        count = left;
    }
    all = ci_expr_ceildiv(b->sym, ci_expr_sub(b->sym, count, member), group);
    if (stmt->kind == CI_STMT_fold && c->r.is_in_registers && all->high >= CI_CHOOSE(b, column_rows)) {
        all = ci_build_named(b, all);
        done = add_registers(c, stmt, all, member, here);
    }
    const CiExpr *rest = ci_expr_sub(b->sym, all, done);
    if (ci_expr_equals_const(rest, 0))
        return;
    CiStmt *rounds = ci_build_for(b, "r", rest, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &rounds->body);
    decode_round(c, stmt, ci_expr_add(b->sym, done, rounds->vars[0]), ci_expr_add(b->sym, first, member), here, to);
    c->add(c, to);
    ci_build_leave(b, outside);
}

static void
enter_group(Columns *c, const CiExpr **member)
{
    const CiExpr *together = number_of(c, c->together), *thread = c->r.thread;
    const CiExpr *position = bound(c, ci_expr_mod(c->r.b.sym, thread, together), c->together);
    *member = bound(c, ci_expr_floordiv(c->r.b.sym, thread, together), c->group);
    enter_point(c, position);
}

static void
add_body(Columns *c, const CiExpr *const *to)
{
    add_at(c, &c->domain.body, &c->domain, to, 1);
}

static void
share_loop(Columns *c, const CiStmt *loop)
{
    const CiExpr *member;
    CiStmts *outside = c->r.b.to;
    c->r.thread = ci_domain_enter_threads(&c->r.b, c->r.threads);
    enter_group(c, &member);
    c->add = add_body;
    add_rounds(c, loop, member);
    ci_build_leave(&c->r.b, outside);
}

/* ---- folds ---- */

static void
add_step(Columns *c, const CiExpr *const *to)
{
    CiRegisterRow registers = {{add_at(c, &c->domain.body, &c->domain, to, 1)}, 1, 1};
    ci_reduce_registers(&c->r, &registers, number_of(c, 0));
}

static void
leave_part(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_load(r, values, r->acc + at, count, ci_reduce_number(r, 0), 1);
    ci_reduce_store(r, r->partials + at, count, r->thread, values, NULL);
}

static void
leave_result(CiReducer *r, CiOp fold, int at, int count)
{
    Columns *c = (Columns *)r;
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_result(r, values, at, count, r->thread);
    for (int k = 0; k < count; k++) {
        CiMemory *into = ci_map_find(c->memories, CI_KEY(r->fold->into[at + k]));
        ci_build_store(&r->b, into, c->position, values[k]);
    }
}

static void
share_fold(Columns *c, const CiStmt *fold)
{
    CiReducer *r = &c->r;
    const CiExpr *member;
    ci_reduce_alloc_partials(r, fold);
    CiStmts *outside = r->b.to;
    r->thread = ci_domain_enter_threads(&r->b, r->threads);
    r->width = r->lanes = 1;
    r->is_in_registers = !r->b.proc->is_finish && ci_registers_help(fold);
    ci_reduce_alloc_accumulators(r);
    ci_reduce_each(r, true, true, ci_reduce_reset);
    CiStmts *all = r->b.to;
    enter_group(c, &member);
    c->add = add_step;
    add_rounds(c, fold, member);
    ci_build_leave(&r->b, all);
    ci_reduce_each(r, true, true, leave_part);
    ci_build_leave(&r->b, outside);
    ci_reduce_threads(r);
}

/* ---- statements of the first thread of each group ---- */

static void
add_alone(Columns *c, const CiStmt *fold, const CiStmts *run)
{
    CiStmts *outside = c->r.b.to;
    c->r.thread = ci_domain_enter_threads(&c->r.b, c->r.threads);
    CiStmt *first =
        ci_build_test(&c->r.b, CI_STMT_if, CI_COMPARE_less, c->r.thread, number_of(c, c->together));
    ci_build_enter(&c->r.b, &first->body);
    enter_point(c, c->r.thread);
    if (fold)
        ci_reduce_each(&c->r, true, true, leave_result);
    if (run->first)
        add_at(c, run, NULL, NULL, 1);
    ci_build_leave(&c->r.b, outside);
}

static void
add_statements(Columns *c)
{
    const CiStmt *fold = NULL;
    CiStmts run = {0};
    CiBuild gather = c->r.b;
    gather.to = &run;
    for (CiStmt *next, *stmt = c->points->body.first; stmt; stmt = next) {
        next = stmt->next;
        if (stmt->kind == CI_STMT_alloc)
            continue;
        if (!is_loop(stmt)) {
            ci_build_move(&gather, stmt);
            continue;
        }
        if (fold || run.first)
            add_alone(c, fold, &run);
        run = (CiStmts){0};
        c->domain = ci_domain_of(stmt);
        fold = stmt->kind == CI_STMT_fold ? stmt : NULL;
        if (fold)
            share_fold(c, stmt);
        else
            share_loop(c, stmt);
    }
    if (fold || run.first)
        add_alone(c, fold, &run);
}

static void
place_memories(Columns *c)
{
    for (const CiStmt *stmt = c->points->body.first; stmt; stmt = stmt->next) {
        if (stmt->kind != CI_STMT_alloc)
            continue;
        int64_t count = stmt->memory->size->value * c->together;
        CiMemory *all =
            ci_build_alloc(&c->r.b, ci_build_name(&c->r.b, stmt->memory->name), stmt->memory->dtype,
                           1, CI_SPACE_shared, number_of(c, count));
        all->buffer = stmt->memory->buffer;
        all->offset = number_of(c, c->bytes);
        c->bytes += (count * ci_dtype_size(all->dtype) + 15) / 16 * 16;
        ci_map_put(c->memories, CI_KEY(stmt->memory), all);
    }
}

bool
ci_share_columns(CiBuild *b, const CiDomain *points)
{
    CiSym *sym = b->sym;
    Survey s = {.b = b};
    Columns c = {.r = {.b = *b},
                 .points = points,
                 .count = ci_domain_count(sym, points, 1),
                 .memories = ci_map_new(b->ctx)};
    for (const CiStmt *stmt = points->body.first; stmt; stmt = stmt->next)
        look(&s, stmt);
    bool is_worth_it = s.has_fold || !ci_fill_has_threads(b->machine, ci_occupancy_points(c.count), 1);
    if (s.is_other || s.longest < CI_CHOOSE(b, long_column) || !points->count || !is_worth_it)
        return false;
    choose_shape(&c, &s);
    c.r.threads = c.together * c.group;
    c.r.apart = c.together;
    CiStmt *blocks = ci_build_for(
        &c.r.b, "b", ci_expr_ceildiv(sym, c.count, number_of(&c, c.together)), CI_RUN_grid);
    ci_build_enter(&c.r.b, &blocks->body);
    c.block = blocks->vars[0];
    place_memories(&c);
    add_statements(&c);
    return true;
}
