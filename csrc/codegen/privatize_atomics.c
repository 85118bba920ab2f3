/* Privatized atomics: if many points update few elements, each block combines its points in shared
 * memory first, and adds its result to global memory afterwards.
 *
 *   for b<n grid { for t<256 thread { … store add m[at] = %1 atomic } }  ->
 *   for b<n/64 grid {
 *     alloc tally: i64[1024] shared
 *     for t<256 thread { tally's elements, the identity in each }
 *     for t<256 thread { for r<64 serial { … store add tally[at] = %1 atomic } }
 *     for t<256 thread { store add m[…] = tally's elements, atomic }
 *   }
 *
 * Contention costs little in shared memory, and global memory is updated once per block and
 * element. As for any atomic store, the operation must not depend on order. If the size is
 * symbolic, a fixed number of elements is allocated; a call with more elements combines in global
 * memory as before. */
#include "codegen/grid.h"

typedef struct Histogram {
    CiBuild *b;
    const CiDomain *points;
    int threads;
    CiStmt *store; /* the only one that combines */
    int nstores;
    CiMemory *memory, *own;
    int ntouched;  /* statements that name the memory */
    int64_t capacity;  /* elements of a block's own */
    const CiExpr *first; /* point of the block */
    CiOp fold;
} Histogram;

static const CiExpr *
number(const Histogram *y, int64_t value)
{
    return ci_expr_const(y->b->sym, value);
}

static void
find_store(Histogram *y, CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->is_atomic && stmt->op != CI_OP_none) {
            y->store = stmt;
            y->nstores++;
        }
        find_store(y, &stmt->body);
        find_store(y, &stmt->other);
    }
}

static void
count_touched(void *arg, const CiStmt *stmt)
{
    Histogram *y = arg;
    y->ntouched += stmt->at.memory == y->memory || stmt->cell == y->memory;
}

static CiOp
fold_of(const CiStmt *store)
{
    for (int op = 0; op < CI_OP_COUNT; op++)
        if (ci_op_kind((CiOp)op) == CI_OPKIND_reduce && ci_op_combine((CiOp)op) == store->op)
            return (CiOp)op;
    return CI_OP_none;
}

static int64_t
rounds_of(const Histogram *y)
{
    const CiExpr *size = y->memory->size;
    int64_t elements = size->kind == CI_EXPR_const ? size->value : CI_CHOOSE(y->b, histogram_size),
            rounds = CI_CHOOSE(y->b, histogram_points) * elements / y->threads;
    int64_t least = CI_CHOOSE(y->b, histogram_rounds);
    return rounds > least ? rounds : least;
}

static bool
is_worth_it(Histogram *y, CiDomain *points)
{
    find_store(y, &points->body);
    if (y->nstores != 1 || ci_domain_has_scratch(points))
        return false;
    y->memory = y->store->at.memory;
    y->fold = fold_of(y->store);
    ci_stmts_visit(&points->body, count_touched, y);
    const CiExpr *size = y->memory->size;
    y->capacity = CI_CHOOSE(y->b, histogram_bytes) / ci_dtype_size(y->memory->dtype);
    if (y->ntouched != 1 || y->fold == CI_OP_none || y->memory->first || size->low > y->capacity)
        return false;
    y->capacity = size->high < y->capacity ? size->high : y->capacity;
    return ci_domain_count(y->b->sym, points, 1)->high >= CI_CHOOSE(y->b, histogram_blocks) * y->threads * rounds_of(y);
}

/* Enters a loop over rounds, in each of which a thread takes one of `count` items, if there is one left. */
static const CiExpr *
enter_rounds(Histogram *y, const CiExpr *first, int64_t rounds, const CiExpr *count)
{
    CiSym *sym = y->b->sym;
    CiStmt *loop = ci_build_for(y->b, "r", number(y, rounds), CI_RUN_serial);
    ci_build_enter(y->b, &loop->body);
    const CiExpr *at =
        ci_expr_add(sym, first, ci_expr_mul(sym, loop->vars[0], number(y, y->threads)));
    CiStmt *guard = ci_build_test(y->b, CI_STMT_if, CI_COMPARE_less, at, count);
    ci_build_enter(y->b, &guard->body);
    return at;
}

static const CiExpr *
enter_elements(Histogram *y)
{
    const CiExpr *thread = ci_domain_enter_threads(y->b, y->threads);
    return enter_rounds(y, thread, (y->capacity + y->threads - 1) / y->threads, y->memory->size);
}

static void
begin(Histogram *y)
{
    CiStmts *outside = y->b->to;
    CiDtype dtype = y->memory->dtype;
    const CiExpr *element = enter_elements(y);
    ci_build_store(y->b, y->own, element,
                   ci_build_const(y->b, ci_type_of(dtype, 1), ci_op_identity(y->fold, dtype)));
    ci_build_leave(y->b, outside);
}

static void
add_points(Histogram *y, CiMemory *into)
{
    CiSym *sym = y->b->sym;
    CiStmts *outside = y->b->to;
    const CiExpr *to[CI_MAX_FOLD_AXES], *count = ci_domain_count(sym, y->points, 1);
    const CiExpr *thread = ci_domain_enter_threads(y->b, y->threads);
    const CiExpr *point =
        enter_rounds(y, ci_expr_add(sym, y->first, thread), rounds_of(y), count);
    if (y->points->count > 1)
        point = ci_build_bind(y->b, ci_build_index(y->b, point), count);
    ci_domain_decode(y->b, y->points, point, 1, to);
    y->store->at.memory = into;
    ci_domain_add(y->b, y->points, to, 1);
    ci_build_leave(y->b, outside);
}

static void
end(Histogram *y)
{
    CiStmts *outside = y->b->to;
    const CiExpr *element = enter_elements(y);
    ci_build_store(y->b, y->memory, element, ci_build_load(y->b, y->own, element, 1));
    y->b->to->last->op = y->store->op;
    y->b->to->last->is_atomic = true;
    ci_build_leave(y->b, outside);
}

static void
add_block(Histogram *y)
{
    CiMemory *memory = y->memory;
    CiStmts *block = y->b->to;
    y->own = ci_build_alloc(y->b, ci_build_name(y->b, "tally"), memory->dtype, 1, CI_SPACE_shared,
                            number(y, y->capacity));
    y->own->offset = number(y, 0);
    CiStmt *choice = NULL;
    if (memory->size->high > y->capacity) {
        choice = ci_build_test(y->b, CI_STMT_if, CI_COMPARE_less_equal, memory->size,
                               number(y, y->capacity));
        ci_build_enter(y->b, &choice->body);
    }
    begin(y);
    add_points(y, y->own);
    end(y);
    if (choice) {
        ci_build_enter(y->b, &choice->other);
        add_points(y, memory);
    }
    ci_build_leave(y->b, block);
}

bool
ci_share_histogram(CiBuild *b, CiDomain *points)
{
    Histogram histogram = {.b = b, .points = points, .threads = b->machine->threads}, *y = &histogram;
    if (!is_worth_it(y, points))
        return false;
    const CiExpr *count = ci_domain_count(b->sym, points, 1),
                 *width = number(y, rounds_of(y) * y->threads);
    CiStmt *blocks = ci_build_for(b, "b", ci_expr_ceildiv(b->sym, count, width), CI_RUN_grid);
    ci_build_enter(b, &blocks->body);
    y->first = ci_expr_mul(b->sym, blocks->vars[0], width);
    add_block(y);
    return true;
}
