/* Attention for factors that are narrow floats: scores, weights and sums of a block of rows in registers.
 *
 *   for b<blocks grid {
 *     copies of the rows, and of the first keys and values
 *     for k<blocks of keys {
 *       synchronize, copies of the next keys and values
 *       multiply: scores of rows and keys
 *       for t<256 thread { scores, their maximum }
 *       for x<256, y<256 near by 4 { the maximum of a row }
 *       for t<256 thread { sums in the scale of the new maximum, weights, their sum }
 *       multiply: weights and values }
 *     for t<256 thread { the epilogue } }
 *
 * Sums are scaled to the largest maximum so far (Milakov, Gimelshein, Online normalizer calculation for
 * softmax, 2018; Dao, FlashAttention-2, 2023). A thread has rows r and r + 8 of its warp's 16, and of each 8
 * columns two, so a row is four threads'. Where scores are `where(i >= j, x, -inf)` of a row i and a key j,
 * blocks of keys that are excluded are left out, and blocks that are not have no test. */
#include "codegen/grid.h"
#include "kernels/gpu/tiles.h"

#include <math.h>

enum {
    LINE = CI_TILE_LINE,
    WARP = CI_WARP,
    ROWS = 128,     /* of a block */
    THREADS = 2 * ROWS,
    ROWS_OF_WARP = 16,
    STAGES = 2,
    GROUP = 4,      /* threads of a row */
    ALONG_LEFT = 1, /* bits of a `multiply` */
    ALONG_RIGHT = 2,
    ENDS = 4,
    SETS = 8,
    ROUNDS = 16
};

#define BINARY 1.4426950408889634 /* binary logarithm of e */

typedef struct Maker {
    CiBuild b;
    CiAttentionLoops loops;
    CiSymbols others; /* of axes but rows, keys and columns; where the block is */
    int heads, nkeys, columns; /* tiles along a head, keys of a block, columns of a tile */
    const CiExpr *first_row;
    CiTile row_tile, key_tile, value_tile;
    CiMemory *scores, *sums, *old[2], *new[2], *totals[2];
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

static const CiExpr *
blocks_of(Maker *m, const CiExpr *extent, int side)
{
    return ci_expr_ceildiv(m->b.sym, extent, number(m, side));
}

static const CiExpr *
enter(Maker *m, const char *stem, int64_t extent, CiRunMode run)
{
    CiStmt *loop = ci_build_for(&m->b, stem, number(m, extent), run);
    ci_build_enter(&m->b, &loop->body);
    return loop->vars[0];
}

/* ---- sizes, and where a block is ---- */

static void
choose_sizes(Maker *m)
{
    int64_t head = m->loops.head->high, columns = m->loops.column_extent->high;
    m->heads = (int)((head + LINE - 1) / LINE);
    m->columns = columns <= LINE ? LINE : columns <= 2 * LINE ? 2 * LINE : 4 * LINE;
    m->nkeys = (int)CI_CHOOSE(&m->b, attention_keys);
    m->nkeys = m->columns > LINE || m->heads > 1 || m->nkeys < 2 * LINE ? LINE : 2 * LINE;
}

/* Blocks with more keys start first: all that begin with the last rows, then those before. */
static void
enter_blocks(Maker *m)
{
    CiDomain blocks = {0};
    const CiExpr *to[CI_MAX_FOLD_AXES + 1], *rows = blocks_of(m, m->loops.row_extent, ROWS);
    int last = m->loops.npoints - 1, first = m->loops.has_limit;
    if (m->loops.has_limit)
        blocks.extents[blocks.count++] = rows;
    for (int k = 0; k < last; k++)
        blocks.extents[blocks.count++] = m->loops.points[k]->extents[0];
    if (!m->loops.has_limit)
        blocks.extents[blocks.count++] = rows;
    CiStmt *grid = ci_build_for(&m->b, "b", ci_domain_count(m->b.sym, &blocks, 1), CI_RUN_grid);
    ci_build_enter(&m->b, &grid->body);
    ci_domain_decode(&m->b, &blocks, grid->vars[0], 1, to);
    for (int k = 0; k < last; k++)
        ci_symbols_add(&m->others, m->loops.points[k]->vars[0], to[first + k]);
    const CiExpr *block = to[m->loops.has_limit ? 0 : last];
    if (m->loops.has_limit) {
        const CiExpr *turned = ci_expr_sub(m->b.sym, ci_expr_sub(m->b.sym, rows, number(m, 1)), block);
        block = ci_build_bind(&m->b, ci_build_index(&m->b, turned), rows);
    }
    m->first_row = times(m, block, ROWS);
}

static void
open_tiles(Maker *m)
{
    int64_t offset = 0;
    CiTile tile = {.dtype = m->loops.narrow, .threads = THREADS, .steps = LINE, .others = &m->others};
    m->row_tile = m->key_tile = m->value_tile = tile;
    m->row_tile.hole = &m->loops.rows;
    m->row_tile.side_var = m->loops.row_var;
    m->row_tile.side_extent = m->loops.row_extent;
    m->row_tile.side = ROWS;
    m->key_tile.hole = &m->loops.keys;
    m->key_tile.side_var = m->loops.key_var;
    m->key_tile.side_extent = m->loops.key_extent;
    m->key_tile.side = m->nkeys;
    m->row_tile.step_var = m->key_tile.step_var = m->loops.first->vars[0];
    m->row_tile.step_extent = m->key_tile.step_extent = m->loops.head;
    m->value_tile.hole = &m->loops.values;
    m->value_tile.side_var = m->loops.column_var;
    m->value_tile.side_extent = m->loops.column_extent;
    m->value_tile.side = m->columns;
    m->value_tile.step_var = m->loops.second->vars[0];
    m->value_tile.step_extent = m->loops.key_extent;
    m->value_tile.steps = m->nkeys;
    ci_tile_open(&m->b, &m->row_tile, "rows", m->heads, &offset);
    ci_tile_open(&m->b, &m->key_tile, "keys", STAGES * m->heads, &offset);
    ci_tile_open(&m->b, &m->value_tile, "values", STAGES * (m->nkeys / LINE), &offset);
}

static CiMemory *
alloc_sums(Maker *m, const char *stem, int each)
{
    return ci_build_alloc(&m->b, ci_build_name(&m->b, stem), CI_DTYPE_f32, 1, CI_SPACE_thread,
                          number(m, (int64_t)THREADS * each));
}

/* ---- values ---- */

static int
constant(Maker *m, double value)
{
    return ci_build_const(&m->b, ci_type_of(CI_DTYPE_f32, 1), ci_const_double(CI_DTYPE_f32, value));
}

static int
apply(Maker *m, CiOp op, int left, int right)
{
    const int args[] = {left, right};
    return ci_build_let(&m->b, ci_type_of(CI_DTYPE_f32, 1), op, right < 0 ? 1 : 2, args);
}

static int
choose(Maker *m, int condition, int yes, int no)
{
    const int args[] = {condition, yes, no};
    return ci_build_let(&m->b, ci_type_of(CI_DTYPE_f32, 1), CI_OP_where, 3, args);
}

/* The k-th element of a thread. */
static int
load_own(Maker *m, CiMemory *memory, const CiExpr *thread, const CiExpr *k)
{
    return ci_build_load(&m->b, memory, plus(m, thread, times(m, k, THREADS)), 1);
}

static void
store_own(Maker *m, CiMemory *memory, const CiExpr *thread, const CiExpr *k, int value)
{
    ci_build_store(&m->b, memory, plus(m, thread, times(m, k, THREADS)), value);
}

/* Where elements of a thread are: of each 8 columns two, in two rows. */
typedef struct Position {
    const CiExpr *thread, *row, *column; /* the first ones */
    const CiExpr *eight, *next;          /* loops: the columns of eight * 8 + column + next */
} Position;

static Position
enter_elements(Maker *m, const CiExpr *thread, int columns)
{
    Position p = {.thread = thread};
    const CiExpr *warp = ci_tile_part(&m->b, thread, WARP, false, THREADS / WARP),
                 *lane = ci_tile_part(&m->b, thread, WARP, true, WARP),
                 *row = ci_tile_part(&m->b, lane, GROUP, false, WARP / GROUP);
    p.row = plus(m, times(m, warp, ROWS_OF_WARP), row);
    p.column = times(m, ci_tile_part(&m->b, lane, GROUP, true, GROUP), 2);
    p.eight = enter(m, "c", columns / 8, CI_RUN_unroll);
    p.next = enter(m, "n", 2, CI_RUN_unroll);
    return p;
}

static const CiExpr *
which(Maker *m, const Position *p, int half)
{
    return plus(m, plus(m, times(m, p->eight, 4), number(m, 2 * half)), p->next);
}

static const CiExpr *
row_of(Maker *m, const Position *p, int half)
{
    return plus(m, plus(m, m->first_row, p->row), number(m, 8 * half));
}

static const CiExpr *
column_of(Maker *m, const Position *p)
{
    return plus(m, plus(m, times(m, p->eight, 8), p->column), p->next);
}

/* ---- copies and products ---- */

/* Of block number `block` of the keys, if there is one. */
static void
bring_keys(Maker *m, const CiExpr *block, const CiExpr *count)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *stage = ci_expr_mod(b->sym, block, number(m, STAGES)), *first = times(m, block, m->nkeys);
    if (!ci_sym_known_le(b->sym, plus(m, block, number(m, 1)), count))
        ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_less, block, count)->body);
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS);
    int parts = m->nkeys / LINE;
    for (int k = 0; k < m->heads; k++)
        ci_tile_bring(b, &m->key_tile, thread, times(m, plus(m, times(m, stage, m->heads), number(m, k)), ci_tile_size(&m->key_tile)),
                      first, number(m, (int64_t)k * LINE));
    for (int k = 0; k < parts; k++)
        ci_tile_bring(b, &m->value_tile, thread, times(m, plus(m, times(m, stage, parts), number(m, k)), ci_tile_size(&m->value_tile)),
                      number(m, 0), plus(m, first, number(m, (int64_t)k * LINE)));
    ci_build_leave(b, outside);
    ci_build_add(b, CI_STMT_commit);
}

static void
bring_rows(Maker *m)
{
    CiStmts *outside = m->b.to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS);
    for (int k = 0; k < m->heads; k++)
        ci_tile_bring(&m->b, &m->row_tile, thread, number(m, k * ci_tile_size(&m->row_tile)), m->first_row,
                      number(m, (int64_t)k * LINE));
    ci_build_leave(&m->b, outside);
}

static void
multiply(Maker *m, CiMemory *sums, CiMemory *left, const CiExpr *left_at, const CiTile *right, const CiExpr *right_at, int steps,
         int bits)
{
    CiStmt *stmt = ci_build_add(&m->b, CI_STMT_multiply);
    stmt->at = (CiAccess){.memory = sums, .index = number(m, 0)};
    stmt->in[0] = (CiAccess){.memory = left, .index = left_at};
    stmt->in[1] = (CiAccess){.memory = right->memory, .index = times(m, right_at, ci_tile_size(right))};
    stmt->nin = 2;
    stmt->expr = number(m, steps);
    stmt->limit = number(m, right->side);
    stmt->number = bits + (right->is_across ? ALONG_RIGHT : 0);
}

static void
multiply_keys(Maker *m, const CiExpr *stage)
{
    for (int k = 0; k < m->heads; k++) {
        int last = ENDS + (m->loops.is_rounded ? ROUNDS : 0),
            bits = (k == 0 ? SETS : 0) + (k == m->heads - 1 ? last : 0) + (m->row_tile.is_across ? ALONG_LEFT : 0);
        multiply(m, m->scores, m->row_tile.memory, number(m, k * ci_tile_size(&m->row_tile)), &m->key_tile,
                 plus(m, times(m, stage, m->heads), number(m, k)), LINE, bits);
    }
}

static void
multiply_values(Maker *m, const CiExpr *stage)
{
    multiply(m, m->sums, m->scores, number(m, 0), &m->value_tile, times(m, stage, m->nkeys / LINE), m->nkeys, ENDS);
}

/* ---- a block of keys ---- */

/* An index inside of the array, where an element beyond its end is computed and not used. */
static const CiExpr *
inside(Maker *m, const CiExpr *at, const CiExpr *extent, int side)
{
    return divides(m, side, extent) ? at : ci_expr_min(m->b.sym, at, ci_expr_sub(m->b.sym, extent, number(m, 1)));
}

/* The index of an element that differs from place to place. */
static int
score_at(Maker *m, CiHole *hole, const Position *p, int half, const CiExpr *first_key)
{
    CiBuild *b = &m->b;
    const CiExpr *key = plus(m, first_key, column_of(m, p));
    const CiExpr *row = inside(m, row_of(m, p, half), m->loops.row_extent, ROWS),
                 *there = inside(m, key, m->loops.key_extent, m->nkeys);
    CiAccess product = {.memory = m->scores, .index = plus(m, p->thread, times(m, which(m, p, half), THREADS))};
    int value = ci_attention_score(b, &m->loops, hole, row, there, product, m->others);
    if (divides(m, m->nkeys, m->loops.key_extent))
        return value;
    const int both[] = {ci_build_index(b, key), ci_build_index(b, m->loops.key_extent)};
    int is_there = ci_build_let(b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_less, 2, both);
    return choose(m, is_there, value, constant(m, -(double)INFINITY));
}

static void
make_scores(Maker *m, CiHole *hole, const CiExpr *thread, const CiExpr *first_key)
{
    CiStmts *outside = m->b.to;
    Position p = enter_elements(m, thread, m->nkeys);
    for (int half = 0; half < 2; half++)
        store_own(m, m->scores, thread, which(m, &p, half), score_at(m, hole, &p, half, first_key));
    ci_build_leave(&m->b, outside);
}

static void
find_tops(Maker *m, const CiExpr *block)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS), *zero = number(m, 0), *first_key = times(m, block, m->nkeys);
    CiStmts *here = b->to;
    if (m->loops.has_limit) {
        const CiExpr *least = plus(m, ci_expr_sub(b->sym, m->first_row, plus(m, first_key, number(m, m->nkeys - 1))), m->loops.ahead);
        CiStmt *test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less_equal, zero, least);
        ci_build_enter(b, &test->body);
        make_scores(m, &m->loops.open_score, thread, first_key);
        ci_build_enter(b, &test->other);
        make_scores(m, &m->loops.score, thread, first_key);
        ci_build_leave(b, here);
    } else {
        make_scores(m, &m->loops.score, thread, first_key);
    }
    for (int half = 0; half < 2; half++)
        store_own(m, m->new[half], thread, zero, load_own(m, m->old[half], thread, zero));
    Position p = enter_elements(m, thread, m->nkeys);
    for (int half = 0; half < 2; half++)
        store_own(m, m->new[half], thread, zero,
                  apply(m, CI_OP_maximum, load_own(m, m->new[half], thread, zero), load_own(m, m->scores, thread, which(m, &p, half))));
    ci_build_leave(b, outside);
}

/* Each thread of a row gets what the operation makes of all of theirs. */
static void
share(Maker *m, CiMemory *const *memories, CiOp op)
{
    CiBuild *b = &m->b;
    const CiExpr *x, *y;
    for (int half = 0; half < 2; half++) {
        CiStmts *outside = ci_domain_enter_pairs(b, CI_RUN_near, THREADS, &x, &y);
        int mine = ci_build_load(b, memories[half], x, 1), other = ci_build_load(b, memories[half], y, 1);
        ci_build_store(b, memories[half], x, apply(m, op, mine, other));
        ci_build_leave(b, outside);
        b->to->last->number = GROUP;
    }
}

/* Beside a maximum of -inf there is nothing: 0 instead, so that no element is -inf - -inf. */
static int
finite_top(Maker *m, const CiExpr *thread, int half)
{
    int top = load_own(m, m->new[half], thread, number(m, 0)), none = constant(m, -(double)INFINITY);
    const int both[] = {top, none};
    int is_none = ci_build_let(&m->b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_equal, 2, both);
    return choose(m, is_none, constant(m, 0.0), top);
}

/* exp(value - top), where `scaled` is the binary logarithm of exp(-top). */
static int
power_of(Maker *m, int value, int scaled)
{
    const int args[] = {value, constant(m, m->loops.scale * BINARY), scaled};
    return apply(m, CI_OP_rough_exp2, ci_build_let(&m->b, ci_type_of(CI_DTYPE_f32, 1), CI_OP_fma, 3, args), -1);
}

static void
make_weights(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS), *zero = number(m, 0);
    CiStmts *here = b->to;
    int tops[2], scales[2];
    for (int half = 0; half < 2; half++) {
        tops[half] = apply(m, CI_OP_multiply, finite_top(m, thread, half), constant(m, -m->loops.scale * BINARY));
        scales[half] = power_of(m, load_own(m, m->old[half], thread, zero), tops[half]);
        store_own(m, m->old[half], thread, zero, load_own(m, m->new[half], thread, zero));
        store_own(m, m->totals[half], thread, zero,
                  apply(m, CI_OP_multiply, load_own(m, m->totals[half], thread, zero), scales[half]));
    }
    Position p = enter_elements(m, thread, m->columns);
    for (int half = 0; half < 2; half++)
        store_own(m, m->sums, thread, which(m, &p, half),
                  apply(m, CI_OP_multiply, load_own(m, m->sums, thread, which(m, &p, half)), scales[half]));
    ci_build_leave(b, here);
    p = enter_elements(m, thread, m->nkeys);
    for (int half = 0; half < 2; half++) {
        int weight = power_of(m, load_own(m, m->scores, thread, which(m, &p, half)), tops[half]);
        store_own(m, m->scores, thread, which(m, &p, half), weight);
        store_own(m, m->totals[half], thread, zero, apply(m, CI_OP_add, load_own(m, m->totals[half], thread, zero), weight));
    }
    ci_build_leave(b, outside);
}

/* ---- all ---- */

static void
clear(Maker *m)
{
    CiStmts *outside = m->b.to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS), *zero = number(m, 0);
    int nothing = constant(m, 0.0), lowest = constant(m, -(double)INFINITY);
    for (int half = 0; half < 2; half++) {
        store_own(m, m->old[half], thread, zero, lowest);
        store_own(m, m->totals[half], thread, zero, nothing);
    }
    store_own(m, m->sums, thread, enter(m, "s", m->columns / 2, CI_RUN_unroll), nothing);
    ci_build_leave(&m->b, outside);
}

/* Blocks of keys that are not all excluded. */
static const CiExpr *
count_blocks(Maker *m)
{
    CiSym *sym = m->b.sym;
    const CiExpr *all = blocks_of(m, m->loops.key_extent, m->nkeys);
    if (!m->loops.has_limit)
        return all;
    const CiExpr *most = plus(m, plus(m, m->first_row, number(m, ROWS - 1 + m->nkeys)), m->loops.ahead);
    most = ci_expr_floordiv(sym, ci_expr_max(sym, most, number(m, 0)), number(m, m->nkeys));
    return ci_build_named(&m->b, ci_expr_min(sym, all, most));
}

static void
traverse_keys(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *count = count_blocks(m);
    bring_rows(m);
    bring_keys(m, number(m, 0), count);
    CiStmt *loop = ci_build_for(b, "k", count, CI_RUN_serial);
    const CiExpr *block = loop->vars[0], *stage = ci_expr_mod(b->sym, block, number(m, STAGES));
    ci_build_enter(b, &loop->body);
    ci_build_add(b, CI_STMT_synchronize)->number = 0;
    bring_keys(m, plus(m, block, number(m, 1)), count);
    multiply_keys(m, stage);
    find_tops(m, block);
    share(m, m->new, CI_OP_maximum);
    make_weights(m);
    multiply_values(m, stage);
    ci_build_leave(b, outside);
    ci_build_add(b, CI_STMT_synchronize)->number = 0;
}

static void
finish(Maker *m)
{
    CiBuild *b = &m->b;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS);
    Position p = enter_elements(m, thread, m->columns);
    CiStmts *here = b->to;
    for (int half = 0; half < 2; half++) {
        const CiExpr *row = row_of(m, &p, half), *column = column_of(m, &p);
        if (!divides(m, ROWS, m->loops.row_extent))
            ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_less, row, m->loops.row_extent)->body);
        if (!divides(m, m->columns, m->loops.column_extent))
            ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_less, column, m->loops.column_extent)->body);
        const CiExpr *position = plus(m, thread, times(m, which(m, &p, half), THREADS));
        CiAccess sum = {.memory = m->sums, .index = position}, total = {.memory = m->totals[half], .index = thread};
        ci_attention_put_after(b, &m->loops, row, column, sum, total, m->others);
        ci_build_leave(b, here);
    }
}

void
ci_attention_in_tiles(CiBuild *b)
{
    Maker m = {.b = *b};
    m.loops = ci_attention_split(b);
    choose_sizes(&m);
    b->proc->body = (CiStmts){0};
    m.b.to = &b->proc->body;
    enter_blocks(&m);
    open_tiles(&m);
    m.scores = alloc_sums(&m, "scores", m.nkeys / 2);
    m.sums = alloc_sums(&m, "sums", m.columns / 2);
    for (int half = 0; half < 2; half++) {
        m.old[half] = alloc_sums(&m, "old", 1);
        m.new[half] = alloc_sums(&m, "new", 1);
        m.totals[half] = alloc_sums(&m, "total", 1);
    }
    clear(&m);
    traverse_keys(&m);
    share(&m, m.totals, CI_OP_add);
    finish(&m);
}
