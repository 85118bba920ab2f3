/* Scans and compresses on the threads of a block (Blelloch, Prefix Sums and Their Applications,
 * 1990). The loop is tiled, and each thread takes a few neighbouring elements of the tile. It
 * computes their total; a prefix over the threads follows; then the thread runs over its elements
 * again, starting from the prefix.
 *
 *   for j<n { … %3 = cumsum %2 in s from [j] … }  ->
 *   for q<ceildiv(n, 1024) serial {
 *     for t<256 thread { the total of elements 1024*q + 4*t, …, into parts[t] }
 *     for x<256, y<256 prefix { parts[x] and parts[y] in parts[y] }
 *     for t<256 thread { before[t] = parts[t] }
 *     for t<256 thread { the elements, in a cell that begins with s and before[t - 1] }
 *     s and before[255] in s
 *   } */
#include "codegen/scans.h"

#include "codegen/independence.h"
#include "codegen/instantiate.h"
#include "codegen/reduction.h"
#include "codegen/split.h"

#define MAX_CELLS 4

typedef struct Scan {
    CiBuild *b;
    int threads, lanes, each; /* neighbours of a thread, of which one access moves so many */
    int64_t *bytes;
    const CiStmt *loop;
    CiStmts lift; /* what yields the values that elements add */
    CiCell cells[CI_MAX_CELLS];
    int ncells;
    const CiExpr *thread, *first; /* element of this thread in this tile */
} Scan;

static const CiExpr *
number(const Scan *s, int64_t value)
{
    return ci_expr_const(s->b->sym, value);
}

/* ---- what has this form ---- */

static void
count_target(void *arg, const CiStmt *stmt)
{
    const void **found = arg;
    if (stmt->at.memory == found[0])
        found[1] = found[1] ? arg : found[0];
}

/* True if no other statement of the loop accesses the target of the compress. */
static bool
is_alone(const CiStmts *body, const CiMemory *memory)
{
    const void *found[2] = {memory, NULL};
    ci_stmts_visit(body, count_target, found);
    return found[1] == memory;
}

static bool
has_one_end(const CiBuild *b, const CiStmt *loop, const CiStmt *stmt)
{
    const CiExpr *coef, *rest;
    return stmt->kind == CI_STMT_call ||
           (ci_expr_split_linear(b->sym, stmt->expr, loop->vars[0], &coef, &rest) &&
            ci_expr_equals_const(coef, 1));
}

/* The rest of the body, without scans and compresses: its iterations must be independent. */
static CiStmts
without_running(const CiBuild *b, const CiStmts *body)
{
    CiStmts rest = {0};
    CiBuild gather = *b;
    gather.to = &rest;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (stmt->kind != CI_STMT_call)
            ci_build_copy(&gather, stmt)->cell = NULL;
    }
    return rest;
}

bool
ci_scan_fits(const CiBuild *b, const CiStmt *loop)
{
    int ncells = 0;
    bool *runs = CI_NEW_ARRAY(b->ctx, bool, b->proc->nvalues + 1); /* by value: depends on cells */
    for (const CiStmt *stmt = loop->body.first; stmt; stmt = stmt->next) {
        bool is_let = stmt->kind == CI_STMT_let, depends = ci_stmt_is_running(stmt);
        if (!is_let && stmt->kind != CI_STMT_store && stmt->kind != CI_STMT_call)
            return false;
        if (stmt->cell && (++ncells > MAX_CELLS || stmt->cell->space != CI_SPACE_register ||
                           runs[ci_cell_operand(stmt)] || !has_one_end(b, loop, stmt)))
            return false;
        if (stmt->kind == CI_STMT_call && !is_alone(&loop->body, stmt->at.memory))
            return false;
        for (int a = 0; a < stmt->nargs; a++)
            depends |= runs[stmt->args[a]];
        if (is_let)
            runs[stmt->value] = depends;
    }
    CiStmt rest = *loop;
    rest.body = without_running(b, &loop->body);
    return ncells > 0 && ci_iterations_are_independent(b, &rest);
}

/* ---- tiles ---- */

/* Of neighbours that are all there, group after group. */
static void
add_groups(Scan *s, const CiExpr *first, void (*add)(Scan *s, const CiExpr *element))
{
    CiSym *sym = s->b->sym;
    const CiExpr *each = number(s, s->each / s->lanes);
    CiStmt *groups = ci_build_for(s->b, "e", each, CI_RUN_unroll);
    CiStmts *outside = ci_build_enter(s->b, &groups->body);
    add(s, ci_expr_add(sym, first, ci_expr_mul(sym, groups->vars[0], number(s, s->lanes))));
    ci_build_leave(s->b, outside);
}

/* One by one, as many as there are. */
static void
add_some(Scan *s, const CiExpr *first, void (*add)(Scan *s, const CiExpr *element))
{
    int lanes = s->lanes;
    CiStmt *each = ci_build_for(s->b, "e", number(s, s->each), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(s->b, &each->body);
    const CiExpr *element = ci_expr_add(s->b->sym, first, each->vars[0]);
    CiStmt *some = ci_build_test(s->b, CI_STMT_if, CI_COMPARE_less, element, s->loop->extents[0]);
    ci_build_enter(s->b, &some->body);
    s->lanes = 1;
    add(s, element);
    s->lanes = lanes;
    ci_build_leave(s->b, outside);
}

/* This thread's neighbours. */
static void
add_neighbours(Scan *s, void (*add)(Scan *s, const CiExpr *element))
{
    CiSym *sym = s->b->sym;
    const CiExpr *width = number(s, s->each),
                 *first = ci_expr_add(sym, s->first, ci_expr_mul(sym, s->thread, width));
    CiStmt *all = ci_build_test(s->b, CI_STMT_if, CI_COMPARE_less_equal,
                                ci_expr_add(sym, first, width), s->loop->extents[0]);
    CiStmts *outside = ci_build_enter(s->b, &all->body);
    add_groups(s, first, add);
    if (!ci_sym_known_multiple_of(sym, s->loop->extents[0], width)) {
        ci_build_enter(s->b, &all->other);
        add_some(s, first, add);
    }
    ci_build_leave(s->b, outside);
}

static int
combine(Scan *s, const CiCell *cell, int early, int late)
{
    ci_reduction_of(cell->fold)->combine(s->b, cell->fold, 1, &early, &late);
    return early;
}

static void
store_identity(Scan *s, const CiCell *cell, CiMemory *into)
{
    CiDtype dtype = into->dtype;
    CiConst identity = ci_reduction_identity(cell->fold, 0, dtype);
    ci_build_store(s->b, into, number(s, 0), ci_build_const(s->b, ci_type_of(dtype, 1), identity));
}

static CiMemory *
add_memory(Scan *s, const CiCell *cell, const char *stem, CiSpace space, int64_t count)
{
    CiMemory *memory = ci_build_alloc(s->b, ci_build_name(s->b, stem), cell->memory->dtype, 1,
                                      space, number(s, count));
    if (space == CI_SPACE_shared) {
        memory->offset = number(s, *s->bytes);
        *s->bytes += (count * ci_dtype_size(memory->dtype) + 15) / 16 * 16;
    }
    return memory;
}

static void
add_lanes(Scan *s, const CiStmts *body, const CiExpr *element, const int **yielded)
{
    CiAt at = {1, &s->loop->vars[0], &element, s->loop->vars[0], s->lanes, NULL, 1};
    const int *values = ci_build_at(s->b, body, &at);
    if (yielded)
        *yielded = values;
}

/* Adds an element's lanes to the thread's own total. Position 1 means that the scan continues from
 * the cell; only position 0 would start a new total. */
static void
add_to_own(Scan *s, const CiExpr *element)
{
    const int *values;
    add_lanes(s, &s->lift, element, &values);
    for (int k = 0; k < s->ncells; k++) {
        const CiCell *cell = &s->cells[k];
        ci_build_let(s->b, ci_type_of(cell->own->dtype, s->lanes), cell->scan, 1, &values[k]);
        s->b->to->last->cell = cell->own;
        s->b->to->last->expr = number(s, 1);
    }
}

static void
find_parts(Scan *s)
{
    const CiExpr *zero = number(s, 0);
    CiStmts *outside = s->b->to;
    s->thread = ci_domain_enter_threads(s->b, s->threads);
    for (int k = 0; k < s->ncells; k++) {
        s->cells[k].own = add_memory(s, &s->cells[k], "own", CI_SPACE_register, 1);
        store_identity(s, &s->cells[k], s->cells[k].own);
    }
    add_neighbours(s, add_to_own);
    for (int k = 0; k < s->ncells; k++)
        ci_build_store(s->b, s->cells[k].partials, s->thread,
                       ci_build_load(s->b, s->cells[k].own, zero, 1));
    ci_build_leave(s->b, outside);
}

static void
combine_threads(Scan *s, const CiCell *cell)
{
    const CiExpr *x, *y;
    CiStmts *outside = ci_domain_enter_pairs(s->b, CI_RUN_prefix, s->threads, &x, &y);
    int early = ci_build_load(s->b, cell->partials, x, 1),
        late = ci_build_load(s->b, cell->partials, y, 1);
    ci_build_store(s->b, cell->partials, y, combine(s, cell, early, late));
    ci_build_leave(s->b, outside);
}

static void
publish_partials(Scan *s)
{
    CiStmts *outside = s->b->to;
    s->thread = ci_domain_enter_threads(s->b, s->threads);
    for (int k = 0; k < s->ncells; k++)
        ci_build_store(s->b, s->cells[k].before, s->thread,
                       ci_build_load(s->b, s->cells[k].partials, s->thread, 1));
    ci_build_leave(s->b, outside);
}

static void
begin_own(Scan *s, CiCell *cell)
{
    CiSym *sym = s->b->sym;
    const CiExpr *zero = number(s, 0), *one = number(s, 1);
    cell->own = add_memory(s, cell, "own", CI_SPACE_register, 1);
    ci_build_store(s->b, cell->own, zero, ci_build_load(s->b, cell->memory, zero, 1));
    CiStmt *later = ci_build_test(s->b, CI_STMT_if, CI_COMPARE_less, zero, s->thread);
    CiStmts *outside = ci_build_enter(s->b, &later->body);
    int early = ci_build_load(s->b, cell->own, zero, 1),
        late = ci_build_load(s->b, cell->before, ci_expr_sub(sym, s->thread, one), 1);
    ci_build_store(s->b, cell->own, zero, combine(s, cell, early, late));
    ci_build_leave(s->b, outside);
}

/* The loop's own body, in the thread's own cells. */
static void
add_body(Scan *s, const CiExpr *element)
{
    CiStmts made = {0}, *inside = ci_build_enter(s->b, &made);
    add_lanes(s, &s->loop->body, element, NULL);
    ci_build_leave(s->b, inside);
    for (CiStmt *stmt = made.first; stmt; stmt = stmt->next)
        for (int k = 0; k < s->ncells; k++)
            if (stmt->cell && stmt->cell == s->cells[k].memory)
                stmt->cell = s->cells[k].own;
    ci_build_move_all(s->b, &made);
}

static void
add_elements(Scan *s)
{
    CiStmts *outside = s->b->to;
    s->thread = ci_domain_enter_threads(s->b, s->threads);
    for (int k = 0; k < s->ncells; k++)
        begin_own(s, &s->cells[k]);
    add_neighbours(s, add_body);
    ci_build_leave(s->b, outside);
}

/* Initializes a cell before the first element of the loop. */
static void
open_cell(Scan *s, const CiCell *cell)
{
    const CiExpr *zero = number(s, 0);
    if (cell->is_count)
        return;
    const CiExpr *position =
        ci_expr_substitute(s->b->sym, cell->position, 1, &s->loop->vars[0], &zero);
    CiStmts *outside = s->b->to;
    if (position != zero) {
        CiStmt *is_first = ci_build_test(s->b, CI_STMT_if, CI_COMPARE_equal, position, zero);
        ci_build_enter(s->b, &is_first->body);
    }
    store_identity(s, cell, cell->memory);
    ci_build_leave(s->b, outside);
}

int
ci_scan_lanes(const CiBuild *b, const CiStmt *loop)
{
    CiDomain domain = ci_domain_of(loop);
    return ci_domain_running_lanes(b, &domain);
}

void
ci_scan_share(CiBuild *b, int threads, int64_t *bytes, const CiStmt *loop)
{
    Scan scan = {.b = b, .threads = threads, .bytes = bytes, .loop = loop}, *s = &scan;
    s->lanes = ci_scan_lanes(b, loop);
    s->each = (int)(s->lanes > 1 ? CI_CHOOSE(b, scan_groups) * s->lanes : CI_CHOOSE(b, scan_neighbours));
    const CiExpr *zero = number(s, 0), *tile = number(s, (int64_t)threads * s->each),
                 *last = number(s, threads - 1);
    s->ncells = ci_cells_find(s->b->ctx, &s->loop->body, s->cells);
    s->lift = ci_cells_lift(s->b, &s->loop->body, s->cells, s->ncells);
    for (int k = 0; k < s->ncells; k++) {
        open_cell(s, &s->cells[k]);
        s->cells[k].partials = add_memory(s, &s->cells[k], "parts", CI_SPACE_thread, threads);
        s->cells[k].before = add_memory(s, &s->cells[k], "before", CI_SPACE_shared, threads);
    }
    CiStmt *tiles =
        ci_build_for(b, "q", ci_expr_ceildiv(b->sym, loop->extents[0], tile), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &tiles->body);
    s->first = ci_expr_mul(b->sym, tiles->vars[0], tile);
    find_parts(s);
    for (int k = 0; k < s->ncells; k++)
        combine_threads(s, &s->cells[k]);
    publish_partials(s);
    add_elements(s);
    for (int k = 0; k < s->ncells; k++) {
        const CiCell *cell = &s->cells[k];
        int early = ci_build_load(b, cell->memory, zero, 1),
            late = ci_build_load(b, cell->before, last, 1);
        ci_build_store(b, cell->memory, zero, combine(s, cell, early, late));
    }
    ci_build_leave(b, outside);
}
