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
#include "codegen/scan.h"

#include "codegen/grid.h"
#include "codegen/independence.h"
#include "codegen/reduction.h"

#define MAX_CELLS 4

typedef struct BlockScan {
    CiScan scan;              /* first: what the engine is given; a part is a thread's elements of a tile */
    int threads, lanes, each; /* elements of a thread in a tile, of which one access moves `lanes` */
    int64_t *bytes;
    const CiExpr *tile;       /* the first element of the tile */
    CiStmts lift;             /* yields the values that an element adds */
    CiMemory *totals[MAX_CELLS], *before[MAX_CELLS]; /* by thread: its total; those up to its own, combined */
    CiMemory *own[MAX_CELLS]; /* the thread's copy of a cell */
} BlockScan;

/* Adds code for the elements from `element` on, of which there are `lanes`. */
typedef void AddElement(BlockScan *s, const CiExpr *element, int lanes);

static const CiExpr *
number(const BlockScan *s, int64_t value)
{
    return ci_expr_const(s->scan.b.sym, value);
}

/* ---- which loops have this form ---- */

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
ci_block_scan_fits(const CiBuild *b, const CiStmt *loop)
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

/* ---- the elements of a thread ---- */

/* All `each` elements, `lanes` at a time. */
static void
add_groups(BlockScan *s, const CiExpr *first, AddElement *add)
{
    CiBuild *b = &s->scan.b;
    CiStmt *groups = ci_build_for(b, "e", number(s, s->each / s->lanes), CI_RUN_unroll);
    CiStmts *outside = ci_build_enter(b, &groups->body);
    add(s, ci_expr_add(b->sym, first, ci_expr_mul(b->sym, groups->vars[0], number(s, s->lanes))), s->lanes);
    ci_build_leave(b, outside);
}

/* One by one, as many as there are. */
static void
add_some(BlockScan *s, const CiExpr *first, AddElement *add)
{
    CiBuild *b = &s->scan.b;
    CiStmt *each = ci_build_for(b, "e", number(s, s->each), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &each->body);
    const CiExpr *element = ci_expr_add(b->sym, first, each->vars[0]);
    CiStmt *some = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, element, s->scan.loop->extents[0]);
    ci_build_enter(b, &some->body);
    add(s, element, 1);
    ci_build_leave(b, outside);
}

static void
add_neighbours(BlockScan *s, AddElement *add)
{
    CiBuild *b = &s->scan.b;
    const CiExpr *width = number(s, s->each), *length = s->scan.loop->extents[0],
                 *first = ci_expr_add(b->sym, s->tile, ci_expr_mul(b->sym, s->scan.part, width));
    CiStmt *all = ci_build_test(b, CI_STMT_if, CI_COMPARE_less_equal, ci_expr_add(b->sym, first, width), length);
    CiStmts *outside = ci_build_enter(b, &all->body);
    add_groups(s, first, add);
    if (!ci_sym_known_multiple_of(b->sym, length, width)) {
        ci_build_enter(b, &all->other);
        add_some(s, first, add);
    }
    ci_build_leave(b, outside);
}

static const int *
add_lanes(BlockScan *s, const CiStmts *body, const CiExpr *element, int lanes)
{
    CiAt at = {1, &s->scan.loop->vars[0], &element, s->scan.loop->vars[0], lanes, NULL, 1};
    return ci_build_at(&s->scan.b, body, &at);
}

/* Adds the elements to the thread's total. Position 1 means that the scan continues from the cell;
 * only position 0 would start a new total. */
static void
add_to_own(BlockScan *s, const CiExpr *element, int lanes)
{
    CiBuild *b = &s->scan.b;
    const int *values = add_lanes(s, &s->lift, element, lanes);
    for (int k = 0; k < s->scan.ncells; k++) {
        ci_build_let(b, ci_type_of(s->own[k]->dtype, lanes), s->scan.cells[k].scan, 1, &values[k]);
        b->to->last->cell = s->own[k];
        b->to->last->expr = number(s, 1);
    }
}

/* The loop's own body, with the thread's copies of the cells. */
static void
add_body(BlockScan *s, const CiExpr *element, int lanes)
{
    CiStmts made = {0}, *inside = ci_build_enter(&s->scan.b, &made);
    add_lanes(s, &s->scan.loop->body, element, lanes);
    ci_build_leave(&s->scan.b, inside);
    for (CiStmt *stmt = made.first; stmt; stmt = stmt->next)
        for (int k = 0; k < s->scan.ncells; k++)
            if (stmt->cell && stmt->cell == s->scan.cells[k].memory)
                stmt->cell = s->own[k];
    ci_build_move_all(&s->scan.b, &made);
}

/* ---- cells ---- */

static CiMemory *
add_memory(BlockScan *s, int k, const char *stem, CiSpace space, int64_t count)
{
    CiBuild *b = &s->scan.b;
    CiMemory *memory = ci_build_alloc(b, ci_build_name(b, stem), s->scan.cells[k].memory->dtype, 1, space,
                                      number(s, count));
    if (space == CI_SPACE_shared) {
        memory->offset = number(s, *s->bytes);
        *s->bytes += (count * ci_dtype_size(memory->dtype) + 15) / 16 * 16;
    }
    return memory;
}

static void
store_identity(BlockScan *s, int k, CiMemory *into)
{
    CiConst identity = ci_reduction_identity(s->scan.cells[k].fold, 0, into->dtype);
    int value = ci_build_const(&s->scan.b, ci_type_of(into->dtype, 1), identity);
    ci_build_store(&s->scan.b, into, number(s, 0), value);
}

/* early[to] = early[at] op late[then]. */
static void
combine(BlockScan *s, int k, CiMemory *early, const CiExpr *at, CiMemory *late, const CiExpr *then, const CiExpr *to)
{
    CiBuild *b = &s->scan.b;
    CiOp fold = s->scan.cells[k].fold;
    int value = ci_build_load(b, early, at, 1), other = ci_build_load(b, late, then, 1);
    ci_reduction_of(fold)->combine(b, fold, 1, &value, &other);
    ci_build_store(b, early, to, value);
}

/* Initializes a cell before the first element of the loop. */
static void
open_cell(BlockScan *s, int k)
{
    CiBuild *b = &s->scan.b;
    const CiCell *cell = &s->scan.cells[k];
    const CiExpr *zero = number(s, 0);
    if (cell->is_count)
        return;
    const CiExpr *position = ci_expr_substitute(b->sym, cell->position, 1, &s->scan.loop->vars[0], &zero);
    CiStmts *outside = b->to;
    if (position != zero)
        ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_equal, position, zero)->body);
    store_identity(s, k, cell->memory);
    ci_build_leave(b, outside);
}

/* ---- the policy ---- */

static void
enter(CiScan *scan)
{
    scan->part = ci_domain_enter_threads(&scan->b, ((BlockScan *)scan)->threads);
}

static CiMemory *const *
total(CiScan *scan)
{
    BlockScan *s = (BlockScan *)scan;
    for (int k = 0; k < scan->ncells; k++) {
        s->own[k] = add_memory(s, k, "own", CI_SPACE_register, 1);
        store_identity(s, k, s->own[k]);
    }
    add_neighbours(s, add_to_own);
    return s->own;
}

/* own = cell op before[part - 1]. */
static void
carry(CiScan *scan)
{
    BlockScan *s = (BlockScan *)scan;
    CiBuild *b = &scan->b;
    const CiExpr *zero = number(s, 0), *previous = ci_expr_sub(b->sym, scan->part, number(s, 1));
    for (int k = 0; k < scan->ncells; k++) {
        s->own[k] = add_memory(s, k, "own", CI_SPACE_register, 1);
        ci_build_store(b, s->own[k], zero, ci_build_load(b, scan->cells[k].memory, zero, 1));
        CiStmt *later = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, zero, scan->part);
        CiStmts *outside = ci_build_enter(b, &later->body);
        combine(s, k, s->own[k], zero, s->before[k], previous, zero);
        ci_build_leave(b, outside);
    }
}

static void
run(CiScan *scan)
{
    add_neighbours((BlockScan *)scan, add_body);
}

static const CiScanPolicy policy = {enter, total, carry, run};

/* before[t] = totals[0] op … op totals[t]. */
static void
combine_totals(BlockScan *s)
{
    CiBuild *b = &s->scan.b;
    CiStmts *outside = b->to;
    for (int k = 0; k < s->scan.ncells; k++) {
        const CiExpr *x, *y;
        ci_domain_enter_pairs(b, CI_RUN_prefix, s->threads, &x, &y);
        combine(s, k, s->totals[k], x, s->totals[k], y, y);
        ci_build_leave(b, outside);
    }
    const CiExpr *thread = ci_domain_enter_threads(b, s->threads);
    for (int k = 0; k < s->scan.ncells; k++)
        ci_build_store(b, s->before[k], thread, ci_build_load(b, s->totals[k], thread, 1));
    ci_build_leave(b, outside);
}

/* ---- the loop ---- */

int
ci_block_scan_lanes(const CiBuild *b, const CiStmt *loop)
{
    CiDomain domain = ci_domain_of(loop);
    return ci_domain_running_lanes(b, &domain);
}

void
ci_block_scan(CiBuild *b, int threads, int64_t *bytes, const CiStmt *loop)
{
    int lanes = ci_block_scan_lanes(b, loop);
    BlockScan block = {.scan = {.b = *b, .policy = &policy, .loop = loop},
                       .threads = threads,
                       .lanes = lanes,
                       .each = (int)(lanes > 1 ? CI_CHOOSE(b, scan_groups) * lanes : CI_CHOOSE(b, scan_neighbours)),
                       .bytes = bytes}, *s = &block;
    const CiExpr *zero = number(s, 0), *size = number(s, (int64_t)threads * s->each), *last = number(s, threads - 1);
    ci_scan_find_cells(&s->scan);
    s->lift = ci_scan_lift(&s->scan);
    for (int k = 0; k < s->scan.ncells; k++) {
        open_cell(s, k);
        s->totals[k] = add_memory(s, k, "parts", CI_SPACE_thread, threads);
        s->before[k] = add_memory(s, k, "before", CI_SPACE_shared, threads);
    }
    CiStmt *tiles = ci_build_for(&s->scan.b, "q", ci_expr_ceildiv(b->sym, loop->extents[0], size), CI_RUN_serial);
    ci_build_enter(&s->scan.b, &tiles->body);
    s->tile = ci_expr_mul(b->sym, tiles->vars[0], size);
    ci_scan_add_totals(&s->scan, s->totals);
    combine_totals(s);
    ci_scan_add_elements(&s->scan);
    for (int k = 0; k < s->scan.ncells; k++)
        combine(s, k, s->scan.cells[k].memory, zero, s->before[k], last, zero);
}
