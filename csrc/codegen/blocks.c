/* Rows -> blocks of threads, each of which has a point of its own and shares out what is inside:
 * elements of loops, and of folds, whose parts meet.
 *
 *   for i0<n parallel { fold sum into s over j<m {…}  for j<m vector {…} }  ->
 *   for b<n grid {
 *     for t<256 thread { a part of the fold into parts[t] }
 *     for x<256, y<256 meet { parts[x] and parts[y] in parts[x] }
 *     for t<256 thread { elements t, t + 256, … }
 *   }
 *
 * A thread takes neighbours, as many as one access moves, and what is left at the end of a row one
 * by one. What else a block has to do, its threads do all alike. */
#include "codegen/grid.h"
#include "codegen/reducer.h"
#include "codegen/reduction.h"

#define WARP 32
#define BLOCK 256         /* threads of small groups that share a block */
#define FULL (132 * 2048) /* threads that fill a large card */
#define COMFORT 49152     /* bytes of rows that a block takes without crowding others out */

typedef struct Blocks {
    CiReducer r;
    int threads;
    int64_t bytes; /* of shared memory, so far */
    int lanes;     /* of the loop or fold that is shared out now */
    CiDomain domain;
    const CiExpr *thread; /* its variable */
    CiMemory **parts;     /* per accumulator of a fold: an element for each thread */
    void (*add)(struct Blocks *s, const CiExpr *const *to, int lanes);
} Blocks;

static const CiExpr *
number(Blocks *s, int64_t value)
{
    return ci_expr_const(s->r.b.sym, value);
}

/* ---- what can be shared out ---- */

/* Each trip needs nothing of another. */
static bool
is_apart(const CiStmt *stmt)
{
    return !stmt->cell && stmt->kind != CI_STMT_call && stmt->kind != CI_STMT_apply &&
           (stmt->kind != CI_STMT_store || stmt->op == CI_OP_none);
}

static bool
is_bound(const CiStmt *stmt)
{
    return !is_apart(stmt);
}

static bool
is_shared_loop(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for && !ci_stmts_have(&stmt->body, is_bound);
}

static bool
is_shared(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_fold || is_shared_loop(stmt);
}

static CiDomain
domain_of(CiStmt *stmt)
{
    CiDomain d = {.body = stmt->body};
    if (stmt->kind == CI_STMT_fold) {
        d.count = stmt->nvars;
        for (int k = 0; k < stmt->nvars; k++) {
            d.vars[k] = stmt->vars[k];
            d.extents[k] = stmt->extents[k];
        }
        return d;
    }
    for (CiStmt *loop = stmt; loop && d.count < CI_MAX_FOLD_AXES;) {
        d.vars[d.count] = loop->vars[0];
        d.extents[d.count++] = loop->extents[0];
        d.body = loop->body;
        bool is_nest = loop->body.first == loop->body.last && is_shared_loop(loop->body.first);
        loop = is_nest ? loop->body.first : NULL;
    }
    return d;
}

/* ---- rounds ---- */

static void
add_at(Blocks *s, const CiExpr *element, int lanes)
{
    const CiExpr *to[CI_MAX_FOLD_AXES];
    ci_domain_decode(&s->r.b, &s->domain, element, lanes, to);
    s->add(s, to, lanes);
}

/* Rounds known beforehand are unrolled: what a thread keeps from one loop to another is in
 * registers then. */
static void
add_unrolled(Blocks *s, const CiExpr *count)
{
    CiBuild *b = &s->r.b;
    const CiExpr *threads = number(s, s->threads);
    int64_t trips = (count->high + s->threads - 1) / s->threads;
    CiStmt *rounds = ci_build_for(b, "r", number(s, trips), CI_RUN_unroll);
    CiStmts *outside = ci_build_enter(b, &rounds->body);
    const CiExpr *element =
        ci_expr_add(b->sym, ci_expr_mul(b->sym, rounds->vars[0], threads), s->thread);
    if (count->kind != CI_EXPR_const || count->value != trips * s->threads) {
        CiStmt *guard = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, element, count);
        ci_build_enter(b, &guard->body);
    }
    add_at(s, element, s->lanes);
    ci_build_leave(b, outside);
}

/* Of `count` elements, or groups of neighbours, this thread's; the first one is number `first`. */
static void
add_rounds(Blocks *s, const CiExpr *first, const CiExpr *count, int lanes)
{
    CiBuild *b = &s->r.b;
    const CiExpr *threads = number(s, s->threads), *left = ci_expr_sub(b->sym, count, s->thread),
                 *trips = ci_expr_floordiv(
                     b->sym, ci_expr_add(b->sym, left, number(s, s->threads - 1)), threads);
    CiStmt *rounds = ci_build_for(b, "r", trips, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &rounds->body);
    const CiExpr *element =
        ci_expr_add(b->sym, ci_expr_mul(b->sym, rounds->vars[0], threads), s->thread);
    add_at(s, ci_expr_add(b->sym, first, element), lanes);
    ci_build_leave(b, outside);
}

static void
add_whole(Blocks *s)
{
    const CiExpr *count = ci_domain_count(s->r.b.sym, &s->domain, s->lanes);
    if (ci_domain_unrolls(s->r.b.sym, &s->domain, s->lanes, s->threads))
        add_unrolled(s, count);
    else
        add_rounds(s, number(s, 0), count, s->lanes);
}

/* Less than a group of neighbours, at the end of the one axis. */
static void
add_rest(Blocks *s)
{
    CiSym *sym = s->r.b.sym;
    const CiExpr *width = number(s, s->lanes), *extent = s->domain.extents[0];
    if (ci_sym_known_multiple_of(sym, s->domain.extents[s->domain.count - 1], width))
        return;
    const CiExpr *done = ci_expr_mul(sym, ci_expr_floordiv(sym, extent, width), width);
    add_rounds(s, done, ci_expr_sub(sym, extent, done), 1);
}

static CiStmts *
enter_threads(Blocks *s)
{
    CiStmt *threads = ci_build_for(&s->r.b, "t", number(s, s->threads), CI_RUN_thread);
    s->thread = threads->vars[0];
    return ci_build_enter(&s->r.b, &threads->body);
}

/* ---- loops ---- */

static void
add_body(Blocks *s, const CiExpr *const *to, int lanes)
{
    ci_domain_add(&s->r.b, &s->domain, to, lanes);
}

static void
share_loop(Blocks *s)
{
    CiStmts *outside = enter_threads(s);
    s->add = add_body;
    add_whole(s);
    add_rest(s);
    ci_build_leave(&s->r.b, outside);
}

/* ---- folds ---- */

static void
add_step(Blocks *s, const CiExpr *const *to, int lanes)
{
    const CiDomain *d = &s->domain;
    CiAt at = {d->count, d->vars, to, d->vars[d->count - 1], lanes, NULL, 1};
    const int *lifted = ci_build_at(&s->r.b, &d->body, &at);
    ci_reduce_take(&s->r, lifted, number(s, 0), lanes, s->r.acc, NULL);
}

/* The lanes of a thread's accumulators become one. */
static void
close_lanes(CiReducer *r, CiOp fold, int at, int count)
{
    Blocks *s = (Blocks *)r;
    int values[CI_MAX_ACCUMULATORS];
    ci_reduce_halve(r, fold, at, count, values);
    ci_reduce_store(r, s->parts + at, count, s->thread, values, NULL);
}

static void
add_part(Blocks *s)
{
    CiReducer *r = &s->r;
    r->width = r->lanes = s->lanes;
    ci_reduce_alloc_accumulators(r);
    ci_reduce_each(r, true, true, ci_reduce_reset);
    s->add = add_step;
    add_whole(s);
    ci_reduce_each(r, true, true, close_lanes);
}

static void
step_into_parts(Blocks *s, const CiExpr *const *to, int lanes)
{
    const CiDomain *d = &s->domain;
    CiAt at = {d->count, d->vars, to, NULL, lanes, NULL, 1};
    const int *lifted = ci_build_at(&s->r.b, &d->body, &at);
    ci_reduce_take(&s->r, lifted, s->thread, lanes, s->parts, NULL);
}

static void
meet(CiReducer *r, CiOp fold, int at, int count)
{
    Blocks *s = (Blocks *)r;
    int early[CI_MAX_ACCUMULATORS], late[CI_MAX_ACCUMULATORS];
    const CiExpr *threads = number(s, s->threads);
    CiStmt *loop = ci_build_for(&r->b, "x", threads, CI_RUN_meet);
    const CiExpr *x = loop->vars[0],
                 *y = ci_expr_index(r->b.sym, ci_build_name(&r->b, "y"), threads);
    loop->vars = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 2);
    loop->extents = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 2);
    loop->vars[0] = x;
    loop->vars[1] = y;
    loop->extents[0] = loop->extents[1] = threads;
    loop->nvars = 2;
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_reduce_load(r, early, s->parts + at, count, x, 1);
    ci_reduce_load(r, late, s->parts + at, count, y, 1);
    ci_reduction_of(fold)->combine(&r->b, fold, 1, early, late);
    ci_reduce_store(r, s->parts + at, count, x, early, NULL);
    ci_build_leave(&r->b, outside);
}

static void
leave_result(CiReducer *r, CiOp fold, int at, int count)
{
    Blocks *s = (Blocks *)r;
    int values[CI_MAX_ACCUMULATORS];
    (void)fold;
    ci_reduce_load(r, values, s->parts + at, count, ci_reduce_number(r, 0), 1);
    values[0] = ci_reduce_plain_zero(r, values[0]);
    ci_reduce_store(r, r->fold->into + at, count, ci_reduce_number(r, 0), values, NULL);
}

static void
share_fold(Blocks *s, CiStmt *fold)
{
    CiReducer *r = &s->r;
    r->fold = fold;
    s->parts = CI_NEW_ARRAY(r->b.ctx, CiMemory *, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        s->parts[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, "parts"), fold->into[k]->dtype, 1,
                                     CI_SPACE_thread, number(s, s->threads));
    CiStmts *outside = enter_threads(s);
    add_part(s);
    s->add = step_into_parts;
    add_rest(s);
    ci_build_leave(&r->b, outside);
    ci_reduce_each(r, true, true, meet);
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

/* Groups of neighbours that a thread is given: the more, the fewer threads must meet, as long as
 * they fit in registers; short rows need the threads. Measured. */
static int
choose_threads(int64_t widest, int lanes, const CiExpr *count)
{
    int64_t each = widest < 1024 || lanes >= 8 ? 4 : 8,
            points = count->high == CI_INFINITY ? 1 << 20 : count->high,
            threads = power_of_two((widest + each - 1) / each),
            most = widest < 1024 * each ? 512 : 1024;
    threads = threads > most ? most : threads;
    while (threads < 1024 && threads < widest && threads * points < FULL)
        threads *= 2;
    return (int)threads;
}

/* Small ones that share a block of the card, as long as their rows leave room for others. */
static int
choose_together(int threads, int64_t bytes)
{
    int together = threads > WARP ? 1 : BLOCK / threads;
    while (together * bytes > COMFORT && together / 2 >= WARP / threads)
        together /= 2;
    return together;
}

static void
place_row(Blocks *s, CiMemory *memory)
{
    CI_REQUIRE(s->r.b.ctx, memory->size->kind == CI_EXPR_const);
    memory->space = CI_SPACE_shared;
    memory->offset = number(s, s->bytes);
    s->bytes += (memory->size->value * ci_dtype_size(memory->dtype) + 15) / 16 * 16;
}

static void
share(void *arg, CiStmt *stmt)
{
    Blocks *s = arg;
    if (is_shared(stmt)) {
        s->r.b.loc = stmt->loc;
        s->domain = domain_of(stmt);
        s->lanes = ci_domain_lanes(&s->r.b, s->r.family, &s->domain);
        if (stmt->kind == CI_STMT_fold)
            share_fold(s, stmt);
        else
            share_loop(s);
        return;
    }
    if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch)
        place_row(s, stmt->memory);
    ci_build_move(&s->r.b, stmt);
}

/* Groups of neighbours in what is shared out, at most, and lanes of such a group. */
static int64_t
find_widest(Blocks *s, const CiStmts *body, int *lanes)
{
    int64_t widest = 1;
    for (CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (!is_shared(stmt))
            continue;
        CiDomain d = domain_of(stmt);
        int taken = ci_domain_lanes(&s->r.b, s->r.family, &d);
        const CiExpr *count = ci_domain_count(s->r.b.sym, &d, 1);
        int64_t share = count->high == CI_INFINITY ? 1 << 20 : count->high / taken;
        *lanes = taken > *lanes ? taken : *lanes;
        widest = share > widest ? share : widest;
    }
    return widest;
}

void
ci_share_rows(CiBuild *b, const CiFamily *family, const CiDomain *points)
{
    CiSym *sym = b->sym;
    Blocks s = {.r = {.b = *b, .family = family}};
    const CiExpr *to[CI_MAX_FOLD_AXES], *count = ci_domain_count(sym, points, 1);
    int lanes = 1;
    int64_t widest = find_widest(&s, &points->body, &lanes);
    s.threads = choose_threads(widest, lanes, count);
    CiStmt *blocks = ci_build_for(&s.r.b, "b", count, CI_RUN_grid);
    ci_build_enter(&s.r.b, &blocks->body);
    ci_domain_decode(&s.r.b, points, blocks->vars[0], 1, to);
    CiAt at = {points->count, points->vars, to, NULL, 1, NULL, 0};
    ci_build_at(&s.r.b, &points->body, &at);
    ci_build_rewrite(&s.r.b, &blocks->body, share, &s);
    blocks->number = choose_together(s.threads, s.bytes);
}
