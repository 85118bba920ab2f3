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
 * A factor that is an element of memory is copied asynchronously, in chunks of 8. Other ones are
 * computed, in chunks too. Elements beyond the end are 0. Blocks that run at the same time are a square
 * of the result, so that their tiles are in the L2 cache. */
#include "codegen/grid.h"
#include "kernels/kernels.h"

enum {
    CHUNK = 8,   /* elements that are neighbours in memory and in a tile */
    ATOM = 64,   /* elements of a line of a tile, 128 bytes */
    WARP = CI_WARP,
    ROWS_OF_WARP = 16,
    NEXT = 4,    /* columns of a thread in the epilogue */
    TOGETHER = 4 /* rows that a thread loads for at once there: more take longer to compile and not less to run */
};

/* One factor's tiles. */
typedef struct Side {
    const CiHole *hole;
    CiMemory *tile;
    const CiExpr *var, *extent, *first; /* of its rows or columns; where the block's begin */
    int side;       /* rows or columns of a tile */
    bool is_across; /* chunks are along these, not along steps */
    bool is_copied;
    int lanes;      /* elements that are computed at once */
} Side;

typedef struct Maker {
    CiBuild b;
    CiProductLoops loops;
    Side left, right;
    CiMemory *sums;
    const CiExpr *at[CI_MAX_FOLD_AXES]; /* of each axis, where the block is */
    int rows, columns, steps, stages, threads;
} Maker;

static const CiExpr *
number(Maker *m, int64_t value)
{
    return ci_expr_const(m->b.sym, value);
}

static const CiExpr *
plus(Maker *m, const CiExpr *a, const CiExpr *b)
{
    return ci_expr_add(m->b.sym, a, b);
}

static const CiExpr *
times(Maker *m, const CiExpr *a, int64_t by)
{
    return ci_expr_mul(m->b.sym, a, number(m, by));
}

/* e % count where is_rest, else e / count; a symbol below the limit. */
static const CiExpr *
part(Maker *m, const CiExpr *e, int64_t count, bool is_rest, int64_t limit)
{
    CiSym *sym = m->b.sym;
    const CiExpr *by = number(m, count);
    return ci_build_bind(&m->b, ci_build_index(&m->b, is_rest ? ci_expr_mod(sym, e, by) : ci_expr_floordiv(sym, e, by)),
                         number(m, limit));
}

static const CiExpr *
enter_threads(Maker *m)
{
    CiStmt *loop = ci_build_for(&m->b, "t", number(m, m->threads), CI_RUN_thread);
    ci_build_enter(&m->b, &loop->body);
    return loop->vars[0];
}

static bool
divides(Maker *m, int64_t by, const CiExpr *e)
{
    return ci_sym_known_multiple_of(m->b.sym, e, number(m, by));
}

/* ---- sizes ---- */

static int64_t
bytes_of(int rows, int columns, int steps, int stages)
{
    int64_t tiles = (int64_t)stages * steps * (rows + columns) * 2,
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
    m->steps = ATOM;
    for (size_t k = 0; k < sizeof tiles / sizeof *tiles; k++) {
        m->rows = tiles[k].rows;
        m->columns = tiles[k].columns;
        m->stages = tiles[k].stages;
        bool fits = bytes_of(m->rows, m->columns, m->steps, m->stages) <= machine->request_bytes &&
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
        if (k != loops->row_at && k != loops->column_at)
            m->at[k] = to[count++];
    m->left.first = times(m, plus(m, times(m, to[count], together), to[count + 2]), m->rows);
    m->right.first = times(m, to[count + 1], m->columns);
}

/* Symbols of the kernel's axes and of the step, and what they are here. */
static int
fill_symbols(Maker *m, const CiExpr *row, const CiExpr *column, const CiExpr *step,
             const CiExpr **from, const CiExpr **to)
{
    int count = m->loops.npoints;
    for (int k = 0; k < count; k++) {
        from[k] = m->loops.points[k]->vars[0];
        to[k] = k == m->loops.row_at ? row : k == m->loops.column_at ? column : m->at[k];
    }
    from[count] = m->loops.step;
    to[count] = step;
    return count + 1;
}

/* ---- tiles ---- */

static int64_t
tile_size(const Maker *m, const Side *s)
{
    return (int64_t)m->steps * s->side;
}

/* A value that is computed from index expressions, as a symbol below the limit. */
static const CiExpr *
exclusive_or(Maker *m, const CiExpr *a, const CiExpr *b, int64_t limit)
{
    const int both[] = {ci_build_index(&m->b, a), ci_build_index(&m->b, b)};
    return ci_build_bind(&m->b, ci_build_let(&m->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_bitwise_xor, 2, both), number(m, limit));
}

/* Where a chunk is in a tile: the lines of an atom are rotated against each other. */
static const CiExpr *
place_of_chunk(Maker *m, const CiExpr *chunk, const CiExpr *slow, const Side *s)
{
    CiSym *sym = m->b.sym;
    const CiExpr *eight = number(m, CHUNK);
    int64_t lines = s->is_across ? m->steps : s->side;
    const CiExpr *turned = exclusive_or(m, ci_expr_mod(sym, chunk, eight), ci_expr_mod(sym, slow, eight), CHUNK);
    return plus(m, plus(m, times(m, ci_expr_floordiv(sym, chunk, eight), ATOM * lines), times(m, slow, ATOM)),
                times(m, turned, CHUNK));
}

/* Elements are neighbours along the variable in a load of the body. */
static bool
reads_along(Maker *m, const CiHole *hole, const CiExpr *var)
{
    const CiExpr *coef, *rest;
    for (const CiStmt *stmt = hole->body.first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_load && ci_expr_split_linear(m->b.sym, stmt->at.index, var, &coef, &rest) &&
            ci_expr_equals_const(coef, 1))
            return true;
    return false;
}

/* The index at the first element of a chunk is a multiple of the chunk. */
static bool
has_aligned_chunks(Maker *m, const Side *s)
{
    const CiExpr *multiple, *index = s->hole->load->at.index, *fast = s->is_across ? s->var : m->loops.step;
    multiple = times(m, fast, CHUNK); /* any multiple */
    return divides(m, CHUNK, ci_expr_substitute(m->b.sym, index, 1, &fast, &multiple));
}

static void
open_side(Maker *m, Side *s, const char *stem, int64_t *offset)
{
    bool by_step = reads_along(m, s->hole, m->loops.step);
    s->is_across = !by_step && reads_along(m, s->hole, s->var);
    bool is_whole = divides(m, CHUNK, s->is_across ? s->extent : m->loops.length);
    s->lanes = is_whole && m->b.machine->access_bytes >= 16 ? CHUNK : 1;
    s->is_copied = s->lanes > 1 && s->hole->load && s->hole->load->at.memory->space == CI_SPACE_global &&
                   ci_hole_has_stride_one(&m->b, s->hole, s->is_across ? s->var : m->loops.step) &&
                   has_aligned_chunks(m, s);
    int64_t size = tile_size(m, s) * m->stages;
    s->tile = ci_build_alloc(&m->b, ci_build_name(&m->b, stem), m->loops.narrow, 1, CI_SPACE_shared, number(m, size));
    s->tile->offset = number(m, *offset);
    *offset += size * (int64_t)ci_dtype_size(m->loops.narrow);
}

/* Enters the branch in which an element is there; the other one is `other`. False if it always is. */
static CiStmt *
test_bounds(Maker *m, const Side *s, const CiExpr *here, const CiExpr *step)
{
    CiStmt *test = NULL;
    if (!divides(m, s->side, s->extent))
        test = ci_build_test(&m->b, CI_STMT_if, CI_COMPARE_less, here, s->extent);
    if (!divides(m, m->steps, m->loops.length) && test)
        ci_build_and(&m->b, test, CI_COMPARE_less, step, m->loops.length);
    else if (!divides(m, m->steps, m->loops.length))
        test = ci_build_test(&m->b, CI_STMT_if, CI_COMPARE_less, step, m->loops.length);
    return test;
}

static void
copy_chunk(Maker *m, const Side *s, const CiExpr *place, const CiExpr *index, bool is_there)
{
    CiStmt *copy = ci_build_add(&m->b, CI_STMT_copy);
    copy->at = (CiAccess){.memory = s->tile, .index = place};
    copy->in[0] = (CiAccess){.memory = s->hole->load->at.memory, .index = is_there ? index : number(m, 0)};
    copy->nin = 1;
    copy->expr = number(m, CHUNK);
    copy->live = is_there ? NULL : number(m, 0);
}

static void
store_elements(Maker *m, const Side *s, const CiExpr *place, int count, const CiExpr *const *from,
               const CiExpr *const *to, bool is_there)
{
    CiBuild *b = &m->b;
    int value;
    if (is_there) {
        CiAt at = {count, from, to, s->is_across ? s->var : m->loops.step, s->lanes, NULL, 1};
        value = ci_build_at(b, &s->hole->body, &at)[0];
    } else {
        value = ci_build_const(b, ci_type_of(m->loops.narrow, 1), (CiConst){0});
        if (s->lanes > 1)
            value = ci_build_let(b, ci_type_of(m->loops.narrow, s->lanes), CI_OP_splat, 1, &value);
    }
    ci_build_store(b, s->tile, place, value);
}

/* Elements from `fast` on along chunks, at `slow` of the other axis. */
static void
bring(Maker *m, const Side *s, const CiExpr *stage, const CiExpr *fast, const CiExpr *chunk, const CiExpr *rest,
      const CiExpr *slow, const CiExpr *first_step)
{
    CiBuild *b = &m->b;
    CiSym *sym = b->sym;
    const CiExpr *from[CI_MAX_FOLD_AXES + 1], *to[CI_MAX_FOLD_AXES + 1],
        *here = plus(m, s->first, s->is_across ? fast : slow),
        *step = plus(m, first_step, s->is_across ? slow : fast),
        *place = plus(m, plus(m, times(m, stage, tile_size(m, s)), place_of_chunk(m, chunk, slow, s)), rest);
    int count = fill_symbols(m, here, here, step, from, to);
    const CiExpr *index = s->is_copied ? ci_expr_substitute(sym, s->hole->load->at.index, count, from, to) : NULL;
    CiStmt *test = test_bounds(m, s, here, step);
    CiStmts *outside = b->to;
    for (int is_there = 1; is_there >= (test == NULL); is_there--) {
        if (test)
            ci_build_enter(b, is_there ? &test->body : &test->other);
        if (s->is_copied)
            copy_chunk(m, s, place, index, is_there);
        else
            store_elements(m, s, place, count, from, to, is_there);
    }
    ci_build_leave(b, outside);
}

/* A thread has the same place along chunks in all of its shares. */
static void
bring_side(Maker *m, const Side *s, const CiExpr *thread, const CiExpr *stage, const CiExpr *first_step)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    int fast_size = s->is_across ? s->side : m->steps, slow_size = s->is_across ? m->steps : s->side,
        groups = fast_size / s->lanes, rounds = groups * slow_size / m->threads, stride = m->threads / groups;
    const CiExpr *low = part(m, thread, groups, true, groups), *high = part(m, thread, groups, false, stride),
                 *fast = times(m, low, s->lanes), *chunk = low, *rest = number(m, 0);
    if (s->lanes == 1) {
        chunk = part(m, low, CHUNK, false, fast_size / CHUNK);
        rest = part(m, low, CHUNK, true, CHUNK);
    }
    CiStmt *loop = ci_build_for(b, "r", number(m, rounds), rounds <= 16 ? CI_RUN_unroll : CI_RUN_serial);
    ci_build_enter(b, &loop->body);
    bring(m, s, stage, fast, chunk, rest, plus(m, high, times(m, loop->vars[0], stride)), first_step);
    ci_build_leave(b, outside);
}

/* The copies of tile number `tile`, or what is there instead. */
static void
bring_tiles(Maker *m, const CiExpr *tile)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *stage = ci_expr_mod(b->sym, tile, number(m, m->stages)), *first_step = times(m, tile, m->steps);
    const CiExpr *tiles = tiles_of(m, m->loops.length, m->steps);
    if (!ci_sym_known_le(b->sym, plus(m, tile, number(m, 1)), tiles))
        ci_build_enter(b, &ci_build_test(b, CI_STMT_if, CI_COMPARE_less, tile, tiles)->body);
    const CiExpr *thread = enter_threads(m);
    bring_side(m, &m->left, thread, stage, first_step);
    bring_side(m, &m->right, thread, stage, first_step);
    ci_build_leave(b, outside);
    ci_build_add(b, CI_STMT_commit);
}

/* ---- sums ---- */

static CiAccess
tile_at(Maker *m, const Side *s, const CiExpr *stage)
{
    return (CiAccess){.memory = s->tile, .index = times(m, stage, tile_size(m, s))};
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
    CiStmt *loop = ci_build_for(b, "k", tiles_of(m, m->loops.length, m->steps), CI_RUN_serial);
    const CiExpr *stage = ci_expr_mod(b->sym, loop->vars[0], number(m, m->stages));
    ci_build_enter(b, &loop->body);
    wait_for_copies(m, ahead - 1);
    CiStmt *multiply = ci_build_add(b, CI_STMT_multiply);
    multiply->at = (CiAccess){.memory = m->sums, .index = number(m, 0)};
    multiply->in[0] = tile_at(m, &m->left, stage);
    multiply->in[1] = tile_at(m, &m->right, stage);
    multiply->nin = 2;
    multiply->expr = number(m, m->steps);
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
    const CiExpr *thread = enter_threads(m);
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
    const CiExpr *thread = enter_threads(m),
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
    const CiExpr *row = ci_expr_sub(sym, m->loops.row_var, m->left.first),
                 *column = ci_expr_sub(sym, m->loops.column_var, m->right.first);
    for (CiStmt *stmt = m->loops.behind.first; stmt; stmt = stmt->next)
        if (stmt->op == CI_OP_load && stmt->at.memory == m->loops.sum) {
            stmt->at.memory = result;
            stmt->at.index = plus(m, times(m, row, line), column);
        }
}

static void
finish(Maker *m, CiMemory *result, int line)
{
    CiBuild *b = &m->b;
    const CiExpr *from[CI_MAX_FOLD_AXES + 1], *to[CI_MAX_FOLD_AXES + 1], *thread = enter_threads(m);
    int lanes = divides(m, NEXT, m->loops.column_extent) && b->machine->access_bytes >= 16 ? NEXT : 1,
        groups = m->columns / lanes, stride = m->threads / groups, rounds = m->rows / stride;
    const CiExpr *column = plus(m, m->right.first, times(m, part(m, thread, groups, true, groups), lanes)),
                 *first = part(m, thread, groups, false, stride);
    int together = rounds < TOGETHER ? rounds : TOGETHER;
    CiStmt *far = ci_build_for(b, "r", number(m, rounds / together), CI_RUN_serial);
    ci_build_enter(b, &far->body);
    const CiExpr *near = enter_unrolled(m, "n", together),
                 *round = plus(m, times(m, far->vars[0], together), near),
                 *row = plus(m, plus(m, m->left.first, first), times(m, round, stride));
    CiStmt *test = NULL;
    if (!divides(m, m->rows, m->loops.row_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, row, m->loops.row_extent);
    if (!divides(m, m->columns, m->loops.column_extent) && test)
        ci_build_and(b, test, CI_COMPARE_less, column, m->loops.column_extent);
    else if (!divides(m, m->columns, m->loops.column_extent))
        test = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, column, m->loops.column_extent);
    if (test)
        ci_build_enter(b, &test->body);
    int count = fill_symbols(m, row, column, number(m, 0), from, to) - 1;
    read_sums_from(m, result, line);
    CiAt at = {count, from, to, m->loops.column_var, lanes, NULL, 1};
    ci_build_at(b, &m->loops.behind, &at);
}

void
ci_product_of_tiles(CiBuild *b, const CiProductLoops *loops)
{
    Maker m = {.b = *b, .loops = *loops};
    int64_t offset = 0;
    choose_tiles(&m);
    m.left = (Side){.hole = &m.loops.narrow_left, .var = m.loops.row_var, .extent = m.loops.row_extent, .side = m.rows};
    m.right = (Side){.hole = &m.loops.narrow_right, .var = m.loops.column_var, .extent = m.loops.column_extent, .side = m.columns};
    b->proc->body = (CiStmts){0};
    m.b.to = &b->proc->body;
    enter_blocks(&m);
    open_side(&m, &m.left, "left", &offset);
    open_side(&m, &m.right, "right", &offset);
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
