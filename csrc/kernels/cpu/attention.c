/* Attention on a processor: scores, weights and results of a few rows stay in cache.
 *
 *   for t<ceildiv(rows, 32) parallel {
 *     queries = the rows, step by step
 *     for b<blocks of keys {
 *       for i<tiles of keys { scores = sums in registers of keys * queries }
 *       for r<32 vector { scores, their maximum, weights, their sum }
 *       for i<tiles of columns { results = results * scale + sums in registers of values * weights } }
 *     for r<32, c<columns { the epilogue } }
 *
 * Lanes are rows: keys and values are read as they lie, one number for all rows, and maxima and sums
 * are those of lanes. Results are scaled to the largest maximum so far (Milakov, Gimelshein, Online
 * normalizer calculation for softmax, 2018; Dao, FlashAttention-2, 2023). If the program divides
 * weights by their sum first, weights are divided by the number of keys, and results by the sum of
 * those at the end: nothing overflows that did not. Rows beyond the end repeat the last one. */
#include "kernels/kernels.h"

#include <math.h>

#define MAX_KEY_STRIDE 512 /* elements between two keys up to which they are read as they lie */

typedef struct Maker {
    CiBuild b;
    CiAttentionLoops loops;
    CiDtype dtype;
    int lanes, vectors, tile, nkeys; /* of the rows; rows of a tile of registers; keys of a block */
    int share;                       /* a weight is multiplied by it; -1: by nothing */
    const CiExpr *used;              /* elements of the scratch */
    const CiExpr *first_row, *nrows, *first_key, *keys_here;
    const CiExpr *at[CI_PRODUCT_ROWS]; /* keys or columns of a tile */
    CiMemory *queries, *scores, *results, *tops, *scales, *totals;
    CiMemory *keys, *values; /* copies; NULL: they are read as they lie */
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

static int
width(const Maker *m)
{
    return m->lanes * m->vectors;
}

static const CiExpr *
enter(Maker *m, const char *stem, const CiExpr *extent, CiRunMode run)
{
    CiStmt *loop = ci_build_for(&m->b, stem, extent, run);
    ci_build_enter(&m->b, &loop->body);
    return loop->vars[0];
}

/* ---- values ---- */

static int
constant(Maker *m, double value)
{
    return ci_build_const(&m->b, ci_type_of(m->dtype, 1), ci_const_double(m->dtype, value));
}

static int
apply(Maker *m, CiOp op, int left, int right)
{
    const int args[] = {left, right};
    return ci_build_let(&m->b, ci_type_of(m->dtype, 1), op, right < 0 ? 1 : 2, args);
}

/* Beside a maximum of -inf there is nothing: 0 instead, so that no weight is exp(-inf - -inf). */
static int
finite_top(Maker *m, int top)
{
    const int both[] = {top, constant(m, -(double)INFINITY)};
    const int choice[] = {ci_build_let(&m->b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_equal, 2, both), constant(m, 0.0), top};
    return ci_build_let(&m->b, ci_type_of(m->dtype, 1), CI_OP_where, 3, choice);
}

static int
power_of(Maker *m, int value, int top)
{
    return apply(m, CI_OP_exp, apply(m, CI_OP_subtract, value, top), -1);
}

static CiMemory *
alloc_cell(Maker *m, const char *stem, int value)
{
    CiMemory *cell = ci_build_alloc(&m->b, ci_build_name(&m->b, stem), m->dtype, 1, CI_SPACE_register, number(m, 1));
    ci_build_store(&m->b, cell, number(m, 0), value);
    return cell;
}

static int
load(Maker *m, CiMemory *memory, const CiExpr *at)
{
    return ci_build_load(&m->b, memory, at, 1);
}

/* ---- sizes and memory ---- */

static void
choose_sizes(Maker *m)
{
    int64_t rows = m->loops.row_extent->high, keys = CI_CHOOSE(&m->b, attention_keys);
    m->dtype = m->loops.narrow;
    m->lanes = m->b.machine->vector_bytes / (int)ci_dtype_size(m->dtype);
    while (m->lanes > 2 && m->lanes / 2 >= rows)
        m->lanes /= 2;
    m->vectors = rows > m->lanes ? 2 : 1;
    m->tile = ci_register_rows(m->b.machine);
    m->nkeys = (int)(keys > m->tile ? keys / m->tile * m->tile : keys);
}

/* In scratch, after what is used. */
static CiMemory *
alloc_scratch(Maker *m, const char *stem, const CiExpr *size)
{
    CiMemory *memory = ci_build_alloc(&m->b, ci_build_name(&m->b, stem), m->dtype, 1, CI_SPACE_scratch, size);
    memory->offset = times(m, m->used, (int64_t)ci_dtype_size(m->dtype));
    m->used = plus(m, m->used, size);
    return memory;
}

/* Rows of this unit: where they begin, and how many. */
static void
cut_rows(Maker *m)
{
    CiStmt *loop = m->loops.points[m->loops.npoints - 1];
    loop->body = (CiStmts){0};
    ci_build_enter(&m->b, &loop->body);
    CiPiece rows = ci_build_tiles(&m->b, "t", loop, width(m));
    m->first_row = rows.first;
    m->nrows = rows.count;
}

/* A factor that is computed, or whose keys are far from each other, is copied. */
static bool
is_read_as_it_lies(Maker *m, const CiHole *hole, const CiExpr *key, const CiExpr *other)
{
    const CiExpr *coef, *rest;
    int64_t stride;
    if (!hole->load || hole->load->at.memory->dtype != m->dtype)
        return false;
    return !ci_hole_has_stride_one(&m->b, hole, other) ||
           (ci_expr_split_linear(m->b.sym, hole->load->at.index, key, &coef, &rest) && ci_expr_is_const(coef, &stride) &&
            stride >= -MAX_KEY_STRIDE && stride <= MAX_KEY_STRIDE);
}

static void
open_memory(Maker *m)
{
    const CiExpr *head = m->loops.head, *columns = m->loops.column_extent;
    m->queries = alloc_scratch(m, "queries", times(m, head, width(m)));
    m->results = alloc_scratch(m, "results", times(m, plus(m, columns, number(m, CI_PRODUCT_ROWS)), width(m)));
    m->scores = alloc_scratch(m, "scores", number(m, (int64_t)(m->nkeys + CI_PRODUCT_ROWS) * width(m)));
    m->tops = alloc_scratch(m, "tops", number(m, width(m)));
    m->scales = alloc_scratch(m, "scales", number(m, width(m)));
    m->totals = alloc_scratch(m, "totals", number(m, width(m)));
    if (!is_read_as_it_lies(m, &m->loops.keys, m->loops.key_var, m->loops.first->vars[0]))
        m->keys = alloc_scratch(m, "keys", times(m, head, m->nkeys));
    if (!is_read_as_it_lies(m, &m->loops.values, m->loops.second->vars[0], m->loops.column_var))
        m->values = alloc_scratch(m, "values", times(m, columns, m->nkeys));
}

static void
open_rows(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    CiPanel panel = {&m->loops.rows, m->loops.row_var, m->loops.first->vars[0], m->loops.head, m->lanes, m->vectors, m->queries};
    ci_panel_fill(b, &panel, number(m, 0), m->first_row, m->nrows);
    const CiExpr *r = enter(m, "r", number(m, width(m)), CI_RUN_vector);
    ci_build_store(b, m->tops, r, constant(m, -(double)INFINITY));
    ci_build_store(b, m->totals, r, constant(m, 0.0));
    ci_build_leave(b, outside);
    r = enter(m, "r", times(m, plus(m, m->loops.column_extent, number(m, CI_PRODUCT_ROWS)), width(m)), CI_RUN_vector);
    ci_build_store(b, m->results, r, constant(m, 0.0));
    ci_build_leave(b, outside);
    m->share = -1;
    if (m->loops.has_quotients) {
        const int keys = ci_build_index(b, m->loops.key_extent);
        m->share = apply(m, CI_OP_divide, constant(m, 1.0), ci_build_let(b, ci_type_of(m->dtype, 1), CI_OP_cast, 1, &keys));
    }
}

/* ---- a block of keys ---- */

/* Of keys, and of the other axis of the factor. */
static void
copy_block(Maker *m, CiMemory *copy, const CiHole *hole, const CiExpr *key_var, const CiExpr *other_var, const CiExpr *extent)
{
    CiStmts *outside = m->b.to;
    if (!copy)
        return;
    const CiExpr *key = enter(m, "k", m->keys_here, CI_RUN_serial), *other = enter(m, "c", extent, CI_RUN_vector);
    const CiFactorAt where = {key_var, plus(m, m->first_key, key), other_var, other};
    ci_build_store(&m->b, copy, plus(m, ci_expr_mul(m->b.sym, key, extent), other), ci_factor_at(&m->b, hole, &where, 1));
    ci_build_leave(&m->b, outside);
}

static int
key_at(void *maker, int row, const CiExpr *step)
{
    Maker *m = maker;
    if (m->keys)
        return load(m, m->keys, plus(m, ci_expr_mul(m->b.sym, m->at[row], m->loops.head), step));
    const CiFactorAt where = {m->loops.key_var, plus(m, m->first_key, m->at[row]), m->loops.first->vars[0], step};
    return ci_factor_at(&m->b, &m->loops.keys, &where, 1);
}

static int
query_at(void *maker, int vector, const CiExpr *step)
{
    Maker *m = maker;
    return ci_build_load(&m->b, m->queries, plus(m, times(m, step, width(m)), number(m, vector * m->lanes)), m->lanes);
}

static int
value_at(void *maker, int row, const CiExpr *step)
{
    Maker *m = maker;
    if (m->values)
        return load(m, m->values, plus(m, ci_expr_mul(m->b.sym, step, m->loops.column_extent), m->at[row]));
    const CiFactorAt where = {m->loops.second->vars[0], plus(m, m->first_key, step), m->loops.column_var, m->at[row]};
    return ci_factor_at(&m->b, &m->loops.values, &where, 1);
}

static int
weight_at(void *maker, int vector, const CiExpr *step)
{
    Maker *m = maker;
    return ci_build_load(&m->b, m->scores, plus(m, times(m, step, width(m)), number(m, vector * m->lanes)), m->lanes);
}

/* A tile of rows, of which those beyond the end are the last one again. */
static const CiExpr *
enter_tile(Maker *m, CiRegisterTile *tile, const CiExpr *extent, int most)
{
    tile->rows = ci_register_rows_of(extent, most);
    const CiExpr *i = enter(m, "i", ci_expr_ceildiv(m->b.sym, extent, number(m, tile->rows)), CI_RUN_serial);
    for (int r = 0; r < tile->rows; r++) {
        const CiExpr *at = plus(m, times(m, i, tile->rows), number(m, r));
        if (!divides(m, tile->rows, extent))
            at = ci_expr_min(m->b.sym, at, ci_expr_sub(m->b.sym, extent, number(m, 1)));
        m->at[r] = ci_build_named(&m->b, at);
    }
    return i;
}

static const CiExpr *
position_of(Maker *m, const CiRegisterTile *tile, const CiExpr *i, int row, int vector)
{
    return plus(m, times(m, i, (int64_t)tile->rows * width(m)), number(m, row * width(m) + vector * m->lanes));
}

static void
multiply_keys(Maker *m)
{
    CiStmts *outside = m->b.to;
    CiRegisterTile tile = {m->dtype, 0, m->vectors, m->lanes, m, key_at, query_at, {NULL}};
    const CiExpr *i = enter_tile(m, &tile, m->keys_here, m->tile);
    ci_register_tile_add_up(&m->b, &tile, m->loops.head);
    for (int k = 0; k < tile.rows * m->vectors; k++)
        ci_build_store(&m->b, m->scores, position_of(m, &tile, i, k / m->vectors, k % m->vectors),
                       ci_register_tile_sum(&m->b, &tile, k / m->vectors, k % m->vectors));
    ci_build_leave(&m->b, outside);
}

static void
multiply_values(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    CiRegisterTile tile = {m->dtype, 0, m->vectors, m->lanes, m, value_at, weight_at, {NULL}};
    const CiExpr *i = enter_tile(m, &tile, m->loops.column_extent, m->tile);
    ci_register_tile_add_up(b, &tile, m->keys_here);
    for (int v = 0; v < m->vectors; v++) {
        int scale = ci_build_load(b, m->scales, number(m, v * m->lanes), m->lanes);
        for (int r = 0; r < tile.rows; r++) {
            const CiExpr *position = position_of(m, &tile, i, r, v);
            const int args[] = {ci_build_load(b, m->results, position, m->lanes), scale, ci_register_tile_sum(b, &tile, r, v)};
            ci_build_store(b, m->results, position, ci_build_let(b, ci_type_of(m->dtype, m->lanes), CI_OP_fma, 3,
                                                                 args));
        }
    }
    ci_build_leave(b, outside);
}

static const CiExpr *
score_position(Maker *m, const CiExpr *key, const CiExpr *row)
{
    return plus(m, times(m, key, width(m)), row);
}

/* The program's score, and the largest one. */
static void
find_top(Maker *m, const CiExpr *row, CiMemory *top)
{
    CiStmts *outside = m->b.to;
    const CiExpr *key = enter(m, "k", m->keys_here, CI_RUN_serial), *position = score_position(m, key, row), *zero = number(m, 0);
    CiAccess product = {.memory = m->scores, .index = position};
    int score = ci_attention_score(&m->b, &m->loops, &m->loops.score, plus(m, m->first_row, row), plus(m, m->first_key, key),
                                   product, (CiSymbols){.count = 0});
    ci_build_store(&m->b, m->scores, position, score);
    ci_build_store(&m->b, top, zero, apply(m, CI_OP_maximum, load(m, top, zero), score));
    ci_build_leave(&m->b, outside);
}

static void
add_weights(Maker *m, const CiExpr *row, int top, CiMemory *total)
{
    CiStmts *outside = m->b.to;
    const CiExpr *key = enter(m, "k", m->keys_here, CI_RUN_serial), *position = score_position(m, key, row), *zero = number(m, 0);
    int weight = power_of(m, load(m, m->scores, position), top);
    if (m->share >= 0)
        weight = apply(m, CI_OP_multiply, weight, m->share);
    ci_build_store(&m->b, m->scores, position, weight);
    ci_build_store(&m->b, total, zero, apply(m, CI_OP_add, load(m, total, zero), weight));
    ci_build_leave(&m->b, outside);
}

/* Rows beyond the last one are copies of it. */
static void
repeat_last(Maker *m)
{
    CiStmts *outside = m->b.to;
    const CiExpr *rest = ci_expr_sub(m->b.sym, number(m, width(m)), m->nrows),
                 *last = ci_expr_sub(m->b.sym, m->nrows, number(m, 1));
    if (rest->high <= 0)
        return;
    const CiExpr *r = enter(m, "r", rest, CI_RUN_serial);
    CiStmts *inside = m->b.to;
    ci_build_store(&m->b, m->scales, plus(m, m->nrows, r), load(m, m->scales, last));
    const CiExpr *key = enter(m, "k", m->keys_here, CI_RUN_serial);
    ci_build_store(&m->b, m->scores, score_position(m, key, plus(m, m->nrows, r)), load(m, m->scores, score_position(m, key, last)));
    ci_build_leave(&m->b, inside);
    ci_build_leave(&m->b, outside);
}

static void
make_weights(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *row = enter(m, "r", m->nrows, CI_RUN_vector), *zero = number(m, 0);
    CiMemory *top = alloc_cell(m, "top", load(m, m->tops, row));
    find_top(m, row, top);
    int largest = load(m, top, zero), finite = finite_top(m, largest), scale = power_of(m, load(m, m->tops, row), finite);
    ci_build_store(b, m->scales, row, scale);
    ci_build_store(b, m->tops, row, largest);
    CiMemory *total = alloc_cell(m, "total", apply(m, CI_OP_multiply, load(m, m->totals, row), scale));
    add_weights(m, row, finite, total);
    ci_build_store(b, m->totals, row, load(m, total, zero));
    ci_build_leave(b, outside);
    repeat_last(m);
}

static void
traverse_keys(Maker *m)
{
    CiBuild *b = &m->b;
    CiPiece block = ci_build_pieces(b, "b", m->loops.key_extent, number(m, m->nkeys), CI_RUN_serial);
    m->first_key = block.first;
    m->keys_here = block.count;
    copy_block(m, m->keys, &m->loops.keys, m->loops.key_var, m->loops.first->vars[0], m->loops.head);
    copy_block(m, m->values, &m->loops.values, m->loops.second->vars[0], m->loops.column_var, m->loops.column_extent);
    multiply_keys(m);
    make_weights(m);
    multiply_values(m);
    ci_build_leave(b, block.outside);
}

/* ---- the end ---- */

/* Results by the sum of their weights, and that sum as the program has it. */
static void
divide(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    if (!m->loops.has_quotients)
        return;
    const CiExpr *column = enter(m, "c", m->loops.column_extent, CI_RUN_serial), *row = enter(m, "r", m->nrows, CI_RUN_vector);
    ci_build_store(b, m->results, score_position(m, column, row),
                   apply(m, CI_OP_divide, load(m, m->results, score_position(m, column, row)),
                         load(m, m->totals, row)));
    ci_build_leave(b, outside);
    row = enter(m, "r", m->nrows, CI_RUN_vector);
    ci_build_store(b, m->totals, row, apply(m, CI_OP_divide, load(m, m->totals, row), m->share));
    ci_build_leave(b, outside);
}

static void
finish(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    divide(m);
    const CiExpr *row = enter(m, "r", m->nrows, CI_RUN_serial), *column = enter(m, "c", m->loops.column_extent, CI_RUN_vector);
    CiAccess result = {.memory = m->results, .index = score_position(m, column, row)}, total = {.memory = m->totals, .index = row};
    ci_attention_put_after(b, &m->loops, plus(m, m->first_row, row), column, result, total, (CiSymbols){.count = 0});
    ci_build_leave(b, outside);
}

void
ci_attention_in_registers(CiBuild *b)
{
    Maker m = {.b = *b};
    m.loops = ci_attention_split(b);
    m.used = number(&m, 0);
    choose_sizes(&m);
    cut_rows(&m);
    open_memory(&m);
    open_rows(&m);
    traverse_keys(&m);
    finish(&m);
}
