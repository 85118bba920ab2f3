/* The block of a pairwise fold: at most 16 L elements through L accumulators, which are lanes. The
 * four blocks of a subtree with four blocks are computed together. */
#include "codegen/reducer.h"

#include "codegen/reduction.h"

#define MAX_LANES 8 /* of ci_pairwise_lanes */

/* ---- sizes ---- */

int
ci_pairwise_lanes(CiDtype dtype)
{
    return ci_dtype_class(dtype) == CI_CLASS_complex ? 4 : 8;
}

const CiExpr *
ci_pairwise_half(CiSym *sym, CiDtype dtype, const CiExpr *count)
{
    const CiExpr *two = ci_expr_const(sym, 2), *eight = ci_expr_const(sym, 8);
    bool is_complex = ci_dtype_class(dtype) == CI_CLASS_complex;
    const CiExpr *half = is_complex ? count : ci_expr_floordiv(sym, count, two);
    half = ci_expr_mul(sym, ci_expr_floordiv(sym, half, eight), eight);
    return is_complex ? ci_expr_floordiv(sym, half, two) : half;
}

static int64_t
block_size(const CiReducer *r)
{
    return (int64_t)CI_PAIRWISE_LENGTH * r->width;
}

/* Elements whose tree has four blocks of whole vectors: n vectors are halved twice, the right half
 * is the longer one, and a half of more than a block has two. */
static int64_t
four_least(const CiReducer *r)
{
    return (2 * CI_PAIRWISE_LENGTH + 2) * r->width;
}

int64_t
ci_block_most_at_once(const CiReducer *r)
{
    return r->chains[1] ? CI_CHAINS * block_size(r) : block_size(r);
}

bool
ci_block_is_whole(const CiReducer *r, const CiExpr *count)
{
    bool is_four = r->chains[1] && count->kind == CI_EXPR_const && count->low >= four_least(r) &&
                   count->low <= CI_CHAINS * block_size(r) && count->low % r->width == 0;
    return is_four || count->high <= block_size(r);
}

void
ci_block_exit(CiReducer *r, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_less_equal, count,
                  ci_reduce_number(r, block_size(r)));
    if (!r->chains[1])
        return;
    CiStmt *four = ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_less_equal, count,
                                 ci_reduce_number(r, CI_CHAINS * block_size(r)));
    ci_build_and(&r->b, four, CI_COMPARE_less_equal, ci_reduce_number(r, four_least(r)), count);
    ci_build_and(&r->b, four, CI_COMPARE_equal,
                 ci_expr_mod(sym, count, ci_reduce_number(r, r->width)), ci_reduce_number(r, 0));
}

/* ---- accumulators ---- */

static void
empty_sums(CiReducer *r, CiOp fold, int at, int count)
{
    int values[CI_MAX_ACCUMULATORS];
    for (int k = 0; k < count; k++)
        values[k] = ci_reduce_identity(r, fold, k, r->sums[at + k], 1);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), values, NULL);
}

/* Neighbours meet: ((0 + 1) + (2 + 3)) + …, of all lanes of so many vectors; the first is the sum.
 */
static void
join_neighbours(CiReducer *r, CiOp fold, int nvectors, int (*vectors)[CI_MAX_ACCUMULATORS])
{
    const CiReduction *reduction = ci_reduction_of(fold);
    for (int lanes = r->lanes; nvectors > 1 || lanes > 1;) {
        bool is_one = nvectors == 1;
        lanes /= is_one ? 2 : 1;
        nvectors = is_one ? 1 : nvectors / 2;
        for (int v = 0; v < nvectors; v++) {
            int late[CI_MAX_ACCUMULATORS];
            for (int k = 0; k < reduction->count; k++) {
                int pair[] = {vectors[is_one ? 0 : 2 * v][k], vectors[is_one ? 0 : 2 * v + 1][k]};
                CiType type = ci_type_of(r->b.proc->types[pair[0]].dtype, lanes);
                CiOp even = is_one ? CI_OP_even : CI_OP_evens,
                     odd = is_one ? CI_OP_odd : CI_OP_odds;
                bool has_lanes = is_one || lanes > 1;
                late[k] = has_lanes ? ci_build_let(&r->b, type, odd, 2 - is_one, pair) : pair[1];
                vectors[v][k] =
                    has_lanes ? ci_build_let(&r->b, type, even, 2 - is_one, pair) : pair[0];
            }
            reduction->combine(&r->b, fold, lanes, vectors[v], late);
        }
    }
}

static void
load_accumulators(CiReducer *r, CiOp fold, CiMemory *const *acc,
                  int (*vectors)[CI_MAX_ACCUMULATORS])
{
    for (int row = 0; row < r->width / r->lanes; row++)
        ci_reduce_load(r, vectors[row], acc, ci_reduction_of(fold)->count, ci_reduce_number(r, row),
                       r->lanes);
}

static void
join_accumulators(CiReducer *r, CiOp fold, int at, int count)
{
    int vectors[MAX_LANES][CI_MAX_ACCUMULATORS];
    load_accumulators(r, fold, r->acc + at, vectors);
    join_neighbours(r, fold, r->width / r->lanes, vectors);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), vectors[0], NULL);
}

/* Adds one more element, after those that the sums contain. */
static void
add_element(CiReducer *r, const int *lifted)
{
    for (int k = 0, at = 0; k < r->fold->nops; k++) {
        CiOp fold = r->fold->ops[k];
        const CiReduction *reduction = ci_reduction_of(fold);
        CiMemory **to = ci_reduce_is_ordered(r, fold, at) ? r->sums : r->fold->into;
        int values[CI_MAX_ACCUMULATORS];
        ci_reduce_load(r, values, to + at, reduction->count, ci_reduce_number(r, 0), 1);
        reduction->step(&r->b, fold, 1, values, lifted + at);
        ci_reduce_store(r, to + at, reduction->count, ci_reduce_number(r, 0), values, NULL);
        at += reduction->count;
    }
}

/* ---- vectors with more lanes than accumulators ---- */

/* Lanes of one operation's values, as many of them at a time as there are accumulators, in order.
 */
static void
add_lanes(CiReducer *r, CiOp fold, int at, const int *lifted, int lanes)
{
    const CiReduction *reduction = ci_reduction_of(fold);
    const CiExpr *zero = ci_reduce_number(r, 0);
    int values[CI_MAX_ACCUMULATORS];
    if (lanes == r->lanes) {
        ci_reduce_load(r, values, r->acc + at, reduction->count, zero, lanes);
        reduction->step(&r->b, fold, lanes, values, lifted);
        ci_reduce_store(r, r->acc + at, reduction->count, zero, values, NULL);
        return;
    }
    for (int half = 0; half < 2; half++) {
        for (int k = 0; k < reduction->count; k++) {
            CiType type = ci_type_of(r->b.proc->types[lifted[k]].dtype, lanes / 2);
            values[k] = ci_build_let(&r->b, type, half ? CI_OP_high : CI_OP_low, 1, &lifted[k]);
        }
        add_lanes(r, fold, at, values, lanes / 2);
    }
}

static void
add_values(CiReducer *r, const int *lifted, int lanes)
{
    for (int k = 0, at = 0; k < r->fold->nops; at += ci_fold_width(r->fold->ops[k++]))
        add_lanes(r, r->fold->ops[k], at, lifted + at, lanes);
}

static const int *
lift(CiReducer *r, const CiExpr *first, const CiExpr *live)
{
    CiAt at = {1, &r->var, &first, r->var, r->wide, live, 1};
    return ci_build_at(&r->b, &r->body, &at);
}

/* The next elements for all accumulators. */
static void
add_one_iteration(CiReducer *r, const CiExpr *first)
{
    if (r->wide > r->width)
        add_values(r, lift(r, first, NULL), r->wide);
    else
        ci_reduce_chain(r, first, NULL);
}

/* ---- what is left of a vector ---- */

static const int *
read_rest(CiReducer *r, CiMemory *const *rest, const CiExpr *at)
{
    int *values = CI_NEW_ARRAY(r->b.ctx, int, r->fold->ninto + 1);
    for (int k = 0; k < r->fold->ninto; k++)
        values[k] = ci_build_load(&r->b, rest[k], at, 1);
    return values;
}

/* Mathematics of some elements costs as much as of one, and some may go into accumulators yet: they
 * are brought together in memory. How many of them have gone. */
static const CiExpr *
lift_rest(CiReducer *r, const CiExpr *first, const CiExpr *left, CiMemory ***rest)
{
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_reduce_number(r, 0), *width = ci_reduce_number(r, r->width);
    const CiExpr *gone =
        r->wide > r->width ? ci_expr_mul(sym, ci_expr_floordiv(sym, left, width), width) : zero;
    ci_reduce_alloc(r, rest, "rest", 1, CI_SPACE_stack, r->wide);
    CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, left);
    CiStmts *outside = ci_build_enter(&r->b, &some->body);
    const int *lifted = lift(r, first, left);
    for (int k = 0; k < r->fold->ninto; k++) {
        ci_build_store(&r->b, (*rest)[k], zero, lifted[k]);
        r->b.to->last->live = left;
    }
    for (int done = 0; done + r->width < r->wide; done += r->width) {
        CiStmt *whole = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal,
                                      ci_reduce_number(r, done + r->width), left);
        CiStmts *around = ci_build_enter(&r->b, &whole->body);
        int *values = CI_NEW_ARRAY(r->b.ctx, int, r->fold->ninto + 1);
        for (int k = 0; k < r->fold->ninto; k++)
            values[k] = ci_build_load(&r->b, (*rest)[k], ci_reduce_number(r, done), r->width);
        add_values(r, values, r->width);
        ci_build_leave(&r->b, around);
    }
    ci_build_leave(&r->b, outside);
    return gone;
}

static bool
lifts_rest(const CiReducer *r)
{
    return r->wide > r->width || (r->wide == r->width && ci_stmts_have(&r->body, ci_stmt_is_math));
}

static void
add_one_by_one(CiReducer *r, const CiExpr *first, const CiExpr *left, const CiExpr *gone,
               CiMemory *const *rest)
{
    CiSym *sym = r->b.sym;
    const CiExpr *count = ci_expr_sub(sym, left, gone);
    CiStmts *outside = r->b.to;
    if (count->high <= 0)
        return;
    bool is_known = count->kind == CI_EXPR_const && r->b.machine->vector_bytes;
    CiStmt *loop = ci_build_for(&r->b, "r", count, is_known ? CI_RUN_unroll : CI_RUN_serial);
    ci_build_enter(&r->b, &loop->body);
    const CiExpr *at = ci_expr_add(sym, gone, loop->vars[0]);
    add_element(r, rest ? read_rest(r, rest, at)
                        : ci_build_iteration(&r->b, &r->body, r->var, ci_expr_add(sym, first, at)));
    ci_build_leave(&r->b, outside);
}

/* ---- blocks ---- */

/* `count` elements from number `first` on into the sums: whole vectors, the accumulators, what is
 * left. */
static void
add_block(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    const CiExpr *span = ci_reduce_number(r, r->wide > r->width ? r->wide : r->width),
                 *width = ci_reduce_number(r, r->width), *zero = ci_reduce_number(r, 0);
    const CiExpr *iterations = ci_expr_floordiv(sym, count, span);
    const CiExpr *done = ci_expr_mul(sym, iterations, span);
    const CiExpr *behind = ci_expr_add(sym, first, done), *left = ci_expr_sub(sym, count, done),
                 *gone = zero;
    CiMemory **rest = NULL;
    ci_reduce_each(r, true, false, ci_reduce_reset);
    if (iterations->high > 0) {
        CiStmt *loop = ci_build_for(&r->b, "c", iterations, CI_RUN_serial);
        CiStmts *around = ci_build_enter(&r->b, &loop->body);
        add_one_iteration(r, ci_expr_add(sym, first, ci_expr_mul(sym, loop->vars[0], span)));
        ci_build_leave(&r->b, around);
    }
    if (left->high > 0 && lifts_rest(r))
        gone = lift_rest(r, behind, left, &rest);
    if (count->low < r->width)
        ci_reduce_each(r, true, false, empty_sums);
    if (count->high >= r->width) {
        CiStmts *outside = r->b.to;
        if (count->low < r->width) {
            CiStmt *some = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal, width, count);
            ci_build_enter(&r->b, &some->body);
        }
        ci_reduce_each(r, true, false, join_accumulators);
        ci_build_leave(&r->b, outside);
    }
    add_one_by_one(r, behind, left, gone, rest);
}

/* ---- four blocks ---- */

static void
join_four(CiReducer *r, CiOp fold, int at, int count)
{
    int vectors[CI_CHAINS * MAX_LANES][CI_MAX_ACCUMULATORS];
    int rows = r->width / r->lanes;
    for (int k = 0; k < CI_CHAINS; k++)
        load_accumulators(r, fold, r->chains[k] + at, vectors + k * rows);
    join_neighbours(r, fold, CI_CHAINS * rows, vectors);
    ci_reduce_store(r, r->sums + at, count, ci_reduce_number(r, 0), vectors[0], NULL);
}

typedef struct Fetch {
    CiReducer *r;
    const CiExpr *first; /* of the iteration */
} Fetch;

/* True if the fold ends before a prefetch of elements that far ahead would pay off: another part of the row reads them. */
static bool
ends_before(const CiReducer *r, int64_t elements)
{
    const CiExpr *count = r->fold->count;
    return count && count->kind == CI_EXPR_const && count->low <= 2 * elements;
}

const CiExpr *
ci_build_far_row(const CiBuild *b, const CiAccess *at, const CiExpr *var)
{
    const CiExpr *step, *rest;
    bool is_far = at->memory->space == CI_SPACE_global && at->memory->is_const &&
                  at->memory->size->high > CI_CHOOSE(b, far_elements) &&
                  ci_expr_split_linear(b->sym, at->index, var, &step, &rest) &&
                  ci_expr_equals_const(step, 1);
    return is_far ? rest : NULL;
}

/* Prefetches the elements that a later iteration of four vectors loads from a buffer. Loads of
 * whole cache lines are left to the hardware prefetcher. */
static void
fetch(void *arg, const CiStmt *stmt)
{
    const Fetch *f = arg;
    CiReducer *r = f->r;
    CiSym *sym = r->b.sym;
    const CiExpr *rest =
        stmt->op == CI_OP_load ? ci_build_far_row(&r->b, &stmt->at, r->var) : NULL;
    int64_t ahead = CI_CHOOSE(&r->b, prefetch_bytes);
    int size = rest ? ci_dtype_size(stmt->at.memory->dtype) : 1, row = r->lanes * size;
    if (!rest || ends_before(r, ahead / size))
        return;
    for (int from = 0; row < CI_CACHE_LINE && from < CI_CHAINS * r->width * size;
         from += CI_CACHE_LINE) {
        const CiExpr *at = ci_expr_add(sym, f->first, ci_reduce_number(r, (ahead + from) / size));
        ci_build_add(&r->b, CI_STMT_prefetch)->at =
            (CiAccess){.memory = stmt->at.memory, .index = ci_expr_add(sym, rest, at)};
    }
}

static void
fetch_ahead(CiReducer *r, const CiExpr *first)
{
    Fetch f = {r, first};
    ci_stmts_visit(&r->body, fetch, &f);
}

/* Whole vectors of each of the blocks, as many as the first has. */
static void
add_rows(CiReducer *r, const CiExpr *const *starts, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    CiStmt *loop = ci_build_for(&r->b, "c", count, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *row = ci_reduce_scaled(r, loop->vars[0], r->width);
    fetch_ahead(r, ci_expr_add(sym, starts[0], ci_reduce_scaled(r, row, CI_CHAINS)));
    for (int k = 0; k < CI_CHAINS; k++) {
        r->acc = r->chains[k];
        ci_reduce_chain(r, ci_expr_add(sym, starts[k], row), NULL);
    }
    ci_build_leave(&r->b, outside);
}

/* Adds the four blocks of a tree of n vectors: the first has n/4 vectors, and each of the others
 * may have one more unless n is a multiple of 4. Which of them has is not guarded by a branch, because
 * that could not be predicted: the vector is masked. The lanes of the blocks are joined. */
static void
add_four(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    int64_t w = r->width;
    const CiExpr *quarter = ci_expr_floordiv(sym, count, ci_reduce_number(r, 4 * w)),
                 *half = ci_expr_floordiv(sym, count, ci_reduce_number(r, 2 * w)),
                 *late = ci_expr_floordiv(sym, ci_expr_add(sym, count, ci_reduce_number(r, w)),
                                          ci_reduce_number(r, 4 * w));
    quarter = ci_build_named(&r->b, quarter);
    const CiExpr *begins[] = {ci_reduce_number(r, 0), quarter, half, ci_expr_add(sym, half, late),
                              ci_expr_floordiv(sym, count, ci_reduce_number(r, w))},
                 *starts[CI_CHAINS];
    for (int k = 0; k < CI_CHAINS; k++) {
        r->acc = r->chains[k];
        ci_reduce_each(r, true, false, ci_reduce_reset);
        starts[k] = ci_expr_add(sym, first, ci_reduce_scaled(r, begins[k], w));
    }
    add_rows(r, starts, quarter);
    const CiExpr *done = ci_reduce_scaled(r, quarter, w);
    CiStmt *uneven = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, ci_reduce_number(r, 0),
                                   ci_expr_mod(sym, count, ci_reduce_number(r, 4 * w)));
    CiStmts *outside = ci_build_enter(&r->b, &uneven->body);
    for (int k = 1; k < CI_CHAINS; k++) {
        const CiExpr *all = ci_expr_sub(sym, begins[k + 1], begins[k]),
                     *more = ci_build_named(&r->b, ci_expr_sub(sym, all, quarter));
        r->acc = r->chains[k];
        ci_reduce_chain(r, ci_expr_add(sym, starts[k], done), ci_reduce_scaled(r, more, w));
    }
    ci_build_leave(&r->b, outside);
    r->acc = r->chains[0];
    ci_reduce_each(r, true, false, join_four);
}

/* P of as many elements as are added up at once. */
void
ci_block_add(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    const CiStmts body = r->body;
    const CiExpr *var = r->var;
    const CiExpr *block = ci_reduce_number(r, block_size(r));
    CiStmts *outside = r->b.to;
    if (r->strips)
        first = ci_build_named(&r->b, ci_reduce_through_window(r, first, count));
    if (count->high <= block_size(r)) {
        add_block(r, first, count);
    } else if (count->kind == CI_EXPR_const) {
        add_four(r, first, count);
    } else {
        CiStmt *choice = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less_equal, count, block);
        ci_build_enter(&r->b, &choice->body);
        add_block(r, first, ci_build_named(&r->b, ci_expr_min(r->b.sym, count, block)));
        ci_build_enter(&r->b, &choice->other);
        add_four(r, first, count);
        ci_build_leave(&r->b, outside);
    }
    r->body = body;
    r->var = var;
}
