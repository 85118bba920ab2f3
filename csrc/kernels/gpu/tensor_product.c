/* A matrix product of halves or of bfloat16 with sums of f32: tiles of both factors in shared memory,
 * multiplied by the GPU's instructions for tiles.
 *
 *   for b<blocks grid {
 *     copies of the first tiles
 *     for k<ceildiv(steps, 64) {
 *       synchronize, multiply of tile k, copies of the tile that is used two turns later }
 *     synchronize
 *     for t<256 thread { sums to shared memory }
 *     for t<256 thread { the epilogue, at 4 neighbouring columns } }
 *
 * Blocks that run at the same time are a square of the result, so that their tiles are in the L2 cache. */
#include "codegen/grid.h"
#include "kernels/gpu/tiles.h"

enum {
    CHUNK = CI_TILE_CHUNK,
    WARP = CI_WARP,
    ROWS_OF_WARP = 16,
    NEXT = 4,    /* columns of a thread in the epilogue */
    TOGETHER = 4 /* rows that a thread loads for at once there: more take longer to compile and not less to run */
};

typedef struct Maker {
    CiBuild b;
    CiProductLoops loops;
    CiTile left, right;
    CiMemory *sums;
    CiSymbols others; /* of axes but rows and columns; where the block is */
    const CiExpr *first_row, *first_column;
    int rows, columns, stages, threads;
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

/* e % count if is_rest, else e / count; a symbol below the limit. */
static const CiExpr *
part(Maker *m, const CiExpr *e, int64_t count, bool is_rest, int64_t limit)
{
    return ci_tile_part(&m->b, e, count, is_rest, limit);
}

/* ---- sizes ---- */

static int64_t
bytes_of(int rows, int columns, int stages)
{
    int64_t tiles = (int64_t)stages * CI_TILE_LINE * (rows + columns) * 2,
            result = (int64_t)rows * (columns + CHUNK) * 4;
    return tiles > result ? tiles : result;
}

static int64_t
count_of(int64_t extent, int side)
{
    return (extent + side - 1) / side;
}

/* The largest tiles of which there is one for each multiprocessor; the smallest, if there are not. */
static void
choose_tiles(Maker *m)
{
    static const struct {
        int rows, columns, stages;
    } tiles[] = {{128, 256, 4}, {256, 128, 4}, {128, 128, 4}, {128, 64, 4}, {64, 64, 4}};
    const CiMachine *machine = m->b.machine;
    int64_t rows = m->loops.row_extent->high, columns = m->loops.column_extent->high, others = 1;
    for (int k = 0; k < m->loops.npoints; k++)
        if (k != m->loops.row_at && k != m->loops.column_at && m->loops.points[k]->extents[0]->low > others)
            others = m->loops.points[k]->extents[0]->low;
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) {
        m->rows = tiles[k].rows;
        m->columns = tiles[k].columns;
        m->stages = tiles[k].stages;
        bool fits = bytes_of(m->rows, m->columns, m->stages) <= machine->request_bytes &&
                    m->columns <= CI_CHOOSE(&m->b, tensor_columns) && rows > m->rows / 2 && columns > m->columns / 2;
        bool fills = rows == CI_INFINITY || columns == CI_INFINITY ||
                     count_of(rows, m->rows) * count_of(columns, m->columns) * others >=
                         CI_CHOOSE(&m->b, multiprocessors);
        if (fits && fills)
            break;
    }
    m->threads = 2 * m->rows;
}

/* ---- where a block is ---- */

/* Rows of tiles that are neighbours in the order of blocks. */
static int
rows_together(Maker *m, const CiExpr *rows)
{
    int together = 16;
    while (together > 1 && !divides(m, together, rows))
        together /= 2;
    return together;
}

static const CiExpr *
tiles_of(Maker *m, const CiExpr *extent, int side)
{
    return ci_expr_ceildiv(m->b.sym, extent, number(m, side));
}

/* Enters the loop over blocks. */
static void
enter_blocks(Maker *m)
{
    CiProductLoops *loops = &m->loops;
    CiDomain blocks = {0};
    const CiExpr *to[CI_MAX_FOLD_AXES + 1], *rows = tiles_of(m, loops->row_extent, m->rows);
    int together = rows_together(m, rows), count = 0;
    for (int k = 0; k < loops->npoints; k++)
        if (k != loops->row_at && k != loops->column_at)
            blocks.extents[blocks.count++] = loops->points[k]->extents[0];
    blocks.extents[blocks.count++] = ci_expr_floordiv(m->b.sym, rows, number(m, together));
    blocks.extents[blocks.count++] = tiles_of(m, loops->column_extent, m->columns);
    blocks.extents[blocks.count++] = number(m, together);
    CiStmt *grid = ci_build_for(&m->b, "b", ci_domain_count(m->b.sym, &blocks, 1), CI_RUN_grid);
    ci_build_enter(&m->b, &grid->body);
    ci_domain_decode(&m->b, &blocks, grid->vars[0], 1, to);
    for (int k = 0; k < loops->npoints; k++)
        if (k != loops->row_at && k != loops->column_at) {
            ci_symbols_add(&m->others, loops->points[k]->vars[0], to[count]);
            count++;
        }
    m->first_row = times(m, plus(m, times(m, to[count], together), to[count + 2]), m->rows);
    m->first_column = times(m, to[count + 1], m->columns);
}

/* ---- tiles ---- */

static void
open_tile(Maker *m, bool is_left, int64_t *offset)
{
    CiProductLoops *loops = &m->loops;
    CiTile *tile = is_left ? &m->left : &m->right;
    *tile = (CiTile){.hole = is_left ? &loops->narrow_left : &loops->narrow_right,
                     .dtype = loops->narrow,
                     .side_var = is_left ? loops->row_var : loops->column_var,
                     .step_var = loops->step,
                     .side_extent = is_left ? loops->row_extent : loops->column_extent,
                     .step_extent = loops->length,
                     .side = is_left ? m->rows : m->columns,
                     .threads = m->threads,
                     .steps = CI_TILE_LINE,
                     .others = &m->others};
    ci_tile_open(&m->b, tile, is_left ? "left" : "right", m->stages, offset);
}

/* The copies of tile number `tile`, or what is there instead. */
static void
bring_tiles(Maker *m, const CiExpr *tile)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *stage = ci_expr_mod(b->sym, tile, number(m, m->stages)), *first_step = times(m, tile, CI_TILE_LINE);
    const CiExpr *tiles = tiles_of(m, m->loops.length, CI_TILE_LINE);
    if (!ci_sym_known_le(b->sym, plus(m, tile, number(m, 1)), tiles))
        ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_less, tile, tiles)->body);
    const CiExpr *thread = ci_domain_enter_threads(&m->b, m->threads);
    ci_tile_bring(b, &m->left, thread, times(m, stage, ci_tile_size(&m->left)), m->first_row, first_step);
    ci_tile_bring(b, &m->right, thread, times(m, stage, ci_tile_size(&m->right)), m->first_column, first_step);
    ci_build_leave(b, outside);
    ci_build_add(b, CI_STMT_commit);
}

/* ---- sums ---- */

static CiAccess
tile_at(Maker *m, const CiTile *tile, const CiExpr *stage)
{
    return (CiAccess){.memory = tile->memory, .index = times(m, stage, ci_tile_size(tile))};
}

static void
wait_for_copies(Maker *m, int batches)
{
    ci_build_add(&m->b, CI_STMT_synchronize)->number = batches;
}

static void
add_tiles(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    int ahead = m->stages - 2;
    for (int tile = 0; tile < ahead; tile++)
        bring_tiles(m, number(m, tile));
    CiStmt *loop = ci_build_for(b, "k", tiles_of(m, m->loops.length, CI_TILE_LINE), CI_RUN_serial);
    const CiExpr *stage = ci_expr_mod(b->sym, loop->vars[0], number(m, m->stages));
    ci_build_enter(b, &loop->body);
    wait_for_copies(m, ahead - 1);
    CiStmt *multiply = ci_build_add(b, CI_STMT_multiply);
    multiply->at = (CiAccess){.memory = m->sums, .index = number(m, 0)};
    multiply->in[0] = tile_at(m, &m->left, stage);
    multiply->in[1] = tile_at(m, &m->right, stage);
    multiply->nin = 2;
    multiply->expr = number(m, CI_TILE_LINE);
    multiply->limit = number(m, m->columns);
    multiply->number = m->left.is_across + 2 * m->right.is_across;
    bring_tiles(m, plus(m, loop->vars[0], number(m, ahead)));
    ci_build_leave(b, outside);
    wait_for_copies(m, 0);
}

static const CiExpr *
enter_unrolled(Maker *m, const char *stem, int count)
{
    CiStmt *loop = ci_build_for(&m->b, stem, number(m, count), CI_RUN_unroll);
    ci_build_enter(&m->b, &loop->body);
    return loop->vars[0];
}

static void
clear(Maker *m)
{
    CiStmts *outside = m->b.to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, m->threads);
    int nothing = ci_build_const(&m->b, ci_type_of(CI_DTYPE_f32, 1), (CiConst){0});
    const CiExpr *k = enter_unrolled(m, "s", m->columns / 2);
    ci_build_store(&m->b, m->sums, plus(m, thread, times(m, k, m->threads)), nothing);
    ci_build_leave(&m->b, outside);
}

/* A thread has rows r and r + 8 of its warp's, and of each 8 columns two. */
static void
spread(Maker *m, CiMemory *result, int line)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, m->threads),
                 *warp = part(m, thread, WARP, false, m->threads / WARP),
                 *row = part(m, part(m, thread, WARP, true, WARP), 4, false, 8),
                 *pair = part(m, thread, 4, true, 4);
    const CiExpr *eight = enter_unrolled(m, "c", m->columns / 8), *half = enter_unrolled(m, "h", 2),
                 *next = enter_unrolled(m, "n", 2);
    const CiExpr *which = plus(m, plus(m, times(m, eight, 4), times(m, half, 2)), next);
    row = plus(m, plus(m, times(m, warp, ROWS_OF_WARP), row), times(m, half, 8));
    const CiExpr *column = plus(m, plus(m, times(m, eight, 8), times(m, pair, 2)), next);
    int sum = ci_build_load(b, m->sums, plus(m, thread, times(m, which, m->threads)), 1);
    ci_build_store(b, result, plus(m, times(m, row, line), column), sum);
    ci_build_leave(b, outside);
}

/* The sum of a row and a column is in the result. */
static void
read_sums_from(Maker *m, CiMemory *result, int line)
{
    CiSym *sym = m->b.sym;
    const CiExpr *row = ci_expr_sub(sym, m->loops.row_var, m->first_row),
                 *column = ci_expr_sub(sym, m->loops.column_var, m->first_column);
    ci_read_from(&m->loops.behind, m->loops.sum, result, plus(m, times(m, row, line), column));
}

static void
finish(Maker *m, CiMemory *result, int line)
{
    CiBuild *b = &m->b;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, m->threads);
    int lanes = divides(m, NEXT, m->loops.column_extent) && b->machine->access_bytes >= 16 ? NEXT : 1,
        groups = m->columns / lanes, stride = m->threads / groups, rounds = m->rows / stride;
    const CiExpr *column = plus(m, m->first_column, times(m, part(m, thread, groups, true, groups), lanes)),
                 *first = part(m, thread, groups, false, stride);
    int together = rounds < TOGETHER ? rounds : TOGETHER;
    CiStmt *far = ci_build_for(b, "r", number(m, rounds / together), CI_RUN_serial);
    ci_build_enter(b, &far->body);
    const CiExpr *near = enter_unrolled(m, "n", together),
                 *round = plus(m, times(m, far->vars[0], together), near),
                 *row = plus(m, plus(m, m->first_row, first), times(m, round, stride));
    CiStmt *test = NULL;
    if (!divides(m, m->rows, m->loops.row_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, row, m->loops.row_extent);
    if (!divides(m, m->columns, m->loops.column_extent) && test)
        ci_build_and(b, test, CI_COMPARE_less, column, m->loops.column_extent);
    else if (!divides(m, m->columns, m->loops.column_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, column, m->loops.column_extent);
    if (test)
        ci_build_enter(b, &test->body);
    CiSymbols symbols = m->others;
    ci_symbols_add(&symbols, m->loops.row_var, row);
    ci_symbols_add(&symbols, m->loops.column_var, column);
    read_sums_from(m, result, line);
    CiAt at = {symbols.count, symbols.from, symbols.to, m->loops.column_var, lanes, NULL, 1};
    ci_build_at(b, &m->loops.behind, &at);
}

void
ci_product_of_tiles(CiBuild *b, const CiProductLoops *loops)
{
    Maker m = {.b = *b, .loops = *loops};
    int64_t offset = 0;
    choose_tiles(&m);
    b->proc->body = (CiStmts){0};
    m.b.to = &b->proc->body;
    enter_blocks(&m);
    open_tile(&m, true, &offset);
    open_tile(&m, false, &offset);
    int line = m.columns + CHUNK;
    CiMemory *result = ci_build_alloc(&m.b, ci_build_name(&m.b, "result"), CI_DTYPE_f32, 1, CI_SPACE_shared, number(&m, (int64_t)m.rows * line));
    result->offset = number(&m, 0);
    m.sums = ci_build_alloc(&m.b, ci_build_name(&m.b, "sums"), CI_DTYPE_f32, 1, CI_SPACE_thread,
                            number(&m, (int64_t)m.rows * m.columns));
    clear(&m);
    add_tiles(&m);
    spread(&m, result, line);
    finish(&m, result, line);
}
