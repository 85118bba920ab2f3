/* A matrix product for CPUs: sums in registers.
 *
 *   for t<ceildiv(rows, 48) parallel { for u<ceildiv(columns, 64) parallel {
 *     panel = the right factor of these columns
 *     for i<8 { for p<4 {
 *       for k<steps { sums += left[i, k] * panel[p, k] }
 *       tile = sums
 *       for r<6 { for c<16 vector { the epilogue } } } } } }
 *
 * A unit is some rows and columns of the result. The right factor is packed into a panel of scratch
 * memory, a few vectors of columns at a time, step by step. A left factor that is not a plain load
 * is computed into a stripe of a few rows. A few rows and vectors of sums stay in registers during
 * all steps. They are then stored to a tile on the stack, which the epilogue reads along its
 * columns. Rows and columns beyond the end repeat the last ones, so that no access is out of bounds
 * and no additional overflow occurs; their results are not used. */
#include "kernels/kernels.h"

#define MAX_ROWS 6 /* of sums, with two vectors in each: with the factors they fill 16 registers */

typedef struct Maker {
    CiBuild b;
    CiProductLoops loops;
    CiDtype dtype;
    int rows, lanes, vectors; /* of a tile of sums */
    const CiExpr *first_row, *first_column, *nrows, *ncolumns; /* of the unit */
    CiMemory *panel, *stripe; /* NULL: the factor is read as it lies */
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

static int
width(const Maker *m)
{
    return m->lanes * m->vectors;
}

/* ---- sizes ---- */

/* Rows of a tile of which fewest are none of the result's. */
static int
choose_rows(const CiExpr *extent, int most)
{
    int best = most;
    int64_t count;
    if (!ci_expr_is_const(extent, &count))
        return most;
    if (count <= most)
        return count > 0 ? (int)count : 1;
    for (int rows = most - 1; rows >= most - 2; rows--)
        if ((count + rows - 1) / rows * rows < (count + best - 1) / best * best)
            best = rows;
    return best;
}

static void
choose_sizes(Maker *m)
{
    int64_t columns = m->loops.column_extent->high;
    m->dtype = m->loops.sum->dtype;
    m->lanes = m->b.machine->vector_bytes / (int)ci_dtype_size(m->dtype);
    while (m->lanes > 2 && m->lanes / 2 >= columns)
        m->lanes /= 2;
    m->vectors = columns > m->lanes ? 2 : 1;
    m->rows =
        choose_rows(m->loops.row_extent, m->vectors == 1 ? CI_PRODUCT_ROWS : MAX_ROWS);
}

/* Iterations of an axis that are one unit's. */
static int
tile_of(const Maker *m, int axis)
{
    return m->b.proc->head.axes[axis].tile;
}

static int
panel_columns(const Maker *m)
{
    return ci_product_panel(m->loops.column_extent, tile_of(m, m->loops.column_at));
}

/* for i<n  ->  for t<ceildiv(n, factor): where a unit begins, and how many it has. */
static const CiExpr *
cut(Maker *m, CiStmt *loop, int factor, const CiExpr **count)
{
    CiSym *sym = m->b.sym;
    const CiExpr *extent = loop->extents[0],
                 *tiles = ci_expr_ceildiv(sym, extent, number(m, factor)),
                 *tile = ci_expr_index(sym, ci_build_name(&m->b, "t"), tiles);
    loop->extents[0] = tiles;
    loop->vars[0] = tile;
    loop->run = CI_RUN_parallel;
    *count = extent;
    if (extent->high <= factor)
        return number(m, 0);
    const CiExpr *first = times(m, tile, factor);
    *count = ci_sym_known_multiple_of(sym, extent, number(m, factor))
                 ? number(m, factor)
                 : ci_build_named(&m->b, ci_expr_min(sym, number(m, factor),
                                                     ci_expr_sub(sym, extent, first)));
    return first;
}

/* The number of rows or columns of a tile that exist. */
static const CiExpr *
count_here(Maker *m, const CiExpr *count, const CiExpr *tile, int size)
{
    if (ci_sym_known_multiple_of(m->b.sym, count, number(m, size)))
        return number(m, size);
    return ci_build_named(&m->b,
                          ci_expr_min(m->b.sym, number(m, size),
                                      ci_expr_sub(m->b.sym, count, times(m, tile, size))));
}

/* ---- factors ---- */

/* The value of a factor at a row or column and a step; lanes are columns. */
static int
factor_at(Maker *m, const CiHole *hole, const CiExpr *var, const CiExpr *at, const CiExpr *step,
          int lanes)
{
    const CiExpr *from[] = {var, m->loops.step}, *to[] = {at, step};
    CiAt instance = {2, from, to, lanes > 1 ? var : NULL, lanes, NULL, 1};
    return ci_build_at(&m->b, &hole->body, &instance)[0];
}

/* True if the factor is read in place: the panel would be filled about as often as it is read, or
 * the factor is in the nearest cache anyway. */
static bool
is_read_as_it_lies(Maker *m)
{
    int64_t bytes = (int64_t)ci_dtype_size(m->dtype), length = m->loops.length->high,
            columns = m->loops.column_extent->high;
    int64_t cached = CI_CHOOSE(&m->b, product_cached);
    bool is_small = length < cached && columns < cached && length * columns * bytes <= cached;
    return ci_hole_has_stride_one(&m->b, &m->loops.right, m->loops.column_var) &&
           ci_sym_known_multiple_of(m->b.sym, m->loops.column_extent, number(m, width(m))) &&
           (is_small || m->loops.row_extent->high <= 2 * m->rows);
}

static CiMemory *
alloc_scratch(Maker *m, const char *stem, int64_t each, int64_t from)
{
    CiMemory *memory = ci_build_alloc(&m->b, ci_build_name(&m->b, stem), m->dtype, 1,
                                      CI_SPACE_scratch, times(m, m->loops.length, each));
    memory->offset = times(m, m->loops.length, from * (int64_t)ci_dtype_size(m->dtype));
    return memory;
}

/* Columns of one step into the panel: those that there are, and the last one again. */
static void
fill_step(Maker *m, const CiExpr *base, const CiExpr *first, const CiExpr *here, const CiExpr *step)
{
    CiBuild *b = &m->b;
    const CiExpr *rest = ci_expr_sub(b->sym, number(m, width(m)), here);
    base = plus(m, base, times(m, step, width(m)));
    CiStmt *along = ci_build_for(b, "c", here, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(b, &along->body);
    const CiExpr *column = plus(m, first, along->vars[0]);
    int value = factor_at(m, &m->loops.right, m->loops.column_var, column, step, 1);
    ci_build_store(b, m->panel, plus(m, base, along->vars[0]), value);
    ci_build_leave(b, outside);
    if (rest->high <= 0)
        return;
    const CiExpr *last = plus(m, first, ci_expr_sub(b->sym, here, number(m, 1)));
    CiStmt *behind = ci_build_for(b, "c", rest, CI_RUN_serial);
    ci_build_enter(b, &behind->body);
    value = factor_at(m, &m->loops.right, m->loops.column_var, last, step, 1);
    ci_build_store(b, m->panel, plus(m, plus(m, base, here), behind->vars[0]), value);
    ci_build_leave(b, outside);
}

/* As many steps as a vector has lanes, read along them and turned in registers. */
static void
fill_turned(Maker *m, const CiExpr *base, const CiExpr *const *columns, const CiExpr *step)
{
    CiBuild *b = &m->b;
    int values[CI_TURN_LANES];
    const CiExpr *from[] = {m->loops.column_var, m->loops.step};
    for (int v = 0; v < m->vectors; v++) {
        for (int k = 0; k < m->lanes; k++) {
            const CiExpr *to[] = {columns[v * m->lanes + k], step},
                         *index = ci_expr_substitute(b->sym, m->loops.right.load->at.index, 2, from,
                                                     to);
            values[k] = ci_build_load(b, m->loops.right.load->at.memory, index, m->lanes);
        }
        ci_build_turn(b, ci_type_of(m->dtype, m->lanes), values);
        for (int k = 0; k < m->lanes; k++)
            ci_build_store(b, m->panel,
                           plus(m, plus(m, base, times(m, step, width(m))),
                                number(m, width(m) * k + m->lanes * v)),
                           values[k]);
    }
}

static void
fill_across(Maker *m, const CiExpr *base, const CiExpr *first, const CiExpr *here)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *columns[2 * CI_TURN_LANES], *lanes = number(m, m->lanes),
                 *most = ci_expr_sub(b->sym, here, number(m, 1)),
                 *squares = ci_expr_floordiv(b->sym, m->loops.length, lanes),
                 *done = times(m, squares, m->lanes);
    for (int k = 0; k < width(m); k++)
        columns[k] =
            ci_build_named(b, plus(m, first, ci_expr_min(b->sym, number(m, k), most)));
    CiStmt *loop = ci_build_for(b, "k", squares, CI_RUN_serial);
    ci_build_enter(b, &loop->body);
    fill_turned(m, base, columns, times(m, loop->vars[0], m->lanes));
    ci_build_leave(b, outside);
    CiStmt *rest =
        ci_build_for(b, "k", ci_expr_sub(b->sym, m->loops.length, done), CI_RUN_serial);
    ci_build_enter(b, &rest->body);
    fill_step(m, base, first, here, plus(m, done, rest->vars[0]));
    ci_build_leave(b, outside);
}

static void
fill_panel(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    bool is_across = ci_hole_has_stride_one(&m->b, &m->loops.right, m->loops.step) &&
                     !ci_hole_has_stride_one(&m->b, &m->loops.right, m->loops.column_var) && m->lanes > 1 &&
                     m->loops.right.load->at.memory->dtype == m->dtype;
    m->panel = alloc_scratch(m, "panel", panel_columns(m), 0);
    CiStmt *each = ci_build_for(
        b, "p", ci_expr_ceildiv(b->sym, m->ncolumns, number(m, width(m))), CI_RUN_serial);
    ci_build_enter(b, &each->body);
    const CiExpr *p = each->vars[0], *here = count_here(m, m->ncolumns, p, width(m)),
                 *base = ci_expr_mul(b->sym, times(m, p, width(m)), m->loops.length),
                 *first = plus(m, m->first_column, times(m, p, width(m)));
    if (is_across) {
        fill_across(m, base, first, here);
    } else {
        CiStmt *loop = ci_build_for(b, "k", m->loops.length, CI_RUN_serial);
        ci_build_enter(b, &loop->body);
        fill_step(m, base, first, here, loop->vars[0]);
    }
    ci_build_leave(b, outside);
}

/* The row of the result, the last one again beyond it. */
static const CiExpr *
row_at(Maker *m, const CiExpr *tile, const CiExpr *row)
{
    const CiExpr *at = plus(m, times(m, tile, m->rows), row);
    if (!ci_sym_known_multiple_of(m->b.sym, m->nrows, number(m, m->rows)))
        at = ci_expr_min(m->b.sym, at, ci_expr_sub(m->b.sym, m->nrows, number(m, 1)));
    return plus(m, m->first_row, at);
}

static void
fill_stripe(Maker *m, const CiExpr *tile)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    m->stripe = alloc_scratch(m, "stripe", m->rows, panel_columns(m));
    CiStmt *down = ci_build_for(b, "r", number(m, m->rows), CI_RUN_serial);
    ci_build_enter(b, &down->body);
    const CiExpr *row = ci_build_named(b, row_at(m, tile, down->vars[0]));
    CiStmt *along = ci_build_for(b, "k", m->loops.length, CI_RUN_vector);
    ci_build_enter(b, &along->body);
    int value = factor_at(m, &m->loops.left, m->loops.row_var, row, along->vars[0], 1);
    ci_build_store(b, m->stripe,
                   plus(m, ci_expr_mul(b->sym, down->vars[0], m->loops.length), along->vars[0]),
                   value);
    ci_build_leave(b, outside);
}

/* ---- sums ---- */

static int
splat(Maker *m, int value)
{
    return m->lanes == 1 ? value
                         : ci_build_let(&m->b, ci_type_of(m->dtype, m->lanes), CI_OP_splat, 1,
                                        &value);
}

static int
left_at(Maker *m, const CiExpr *row, int number_of_row, const CiExpr *step)
{
    if (!m->stripe)
        return factor_at(m, &m->loops.left, m->loops.row_var, row, step, 1);
    return ci_build_load(&m->b, m->stripe, plus(m, times(m, m->loops.length, number_of_row), step),
                         1);
}

static int
right_at(Maker *m, const CiExpr *p, int vector, const CiExpr *step)
{
    const CiExpr *column = plus(m, times(m, p, width(m)), number(m, vector * m->lanes));
    if (!m->panel)
        return factor_at(m, &m->loops.right, m->loops.column_var,
                         plus(m, m->first_column, column), step, m->lanes);
    const CiExpr *base = ci_expr_mul(m->b.sym, times(m, p, width(m)), m->loops.length);
    return ci_build_load(
        &m->b, m->panel,
        plus(m, plus(m, base, times(m, step, width(m))), number(m, vector * m->lanes)), m->lanes);
}

static void
add_step(Maker *m, CiMemory *const *sums, const CiExpr *const *rows, const CiExpr *p,
         const CiExpr *step)
{
    const CiExpr *zero = number(m, 0);
    int right[2];
    for (int v = 0; v < m->vectors; v++)
        right[v] = right_at(m, p, v, step);
    for (int r = 0; r < m->rows; r++) {
        int left = splat(m, left_at(m, rows[r], r, step));
        for (int v = 0; v < m->vectors; v++) {
            CiMemory *sum = sums[r * m->vectors + v];
            const int args[] = {left, right[v], ci_build_load(&m->b, sum, zero, m->lanes)};
            ci_build_store(&m->b, sum, zero,
                           ci_build_let(&m->b, ci_type_of(m->dtype, m->lanes), CI_OP_fma, 3, args));
        }
    }
}

/* The sums of a tile, in memory. */
static CiMemory *
add_up(Maker *m, const CiExpr *tile, const CiExpr *p)
{
    CiBuild *b = &m->b;
    CiMemory *sums[2 * CI_PRODUCT_ROWS];
    const CiExpr *rows[CI_PRODUCT_ROWS], *zero = number(m, 0);
    int nothing = splat(m, ci_build_const(b, ci_type_of(m->dtype, 1), (CiConst){0}));
    for (int r = 0; r < m->rows && !m->stripe; r++)
        rows[r] = ci_build_named(b, row_at(m, tile, number(m, r)));
    for (int k = 0; k < m->rows * m->vectors; k++) {
        sums[k] = ci_build_alloc(b, ci_build_name(b, "sum"), m->dtype, m->lanes, CI_SPACE_register,
                                 number(m, 1));
        ci_build_store(b, sums[k], zero, nothing);
    }
    CiStmt *loop = ci_build_for(b, "k", m->loops.length, CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &loop->body);
    add_step(m, sums, rows, p, loop->vars[0]);
    ci_build_leave(b, outside);
    CiMemory *to = ci_build_alloc(b, ci_build_name(b, "tile"), m->dtype, 1, CI_SPACE_stack,
                                  number(m, m->rows * width(m)));
    for (int k = 0; k < m->rows * m->vectors; k++)
        ci_build_store(b, to, number(m, k * m->lanes), ci_build_load(b, sums[k], zero, m->lanes));
    return to;
}

static void
finish_tile(Maker *m, CiMemory *sums, const CiExpr *tile, const CiExpr *p)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *rows = count_here(m, m->nrows, tile, m->rows),
                 *columns = count_here(m, m->ncolumns, p, width(m)),
                 *first_row = plus(m, m->first_row, times(m, tile, m->rows)),
                 *first_column = plus(m, m->first_column, times(m, p, width(m)));
    CiStmt *down = ci_build_for(b, "r", rows, CI_RUN_serial);
    ci_build_enter(b, &down->body);
    CiStmt *along = ci_build_for(b, "c", columns, CI_RUN_vector);
    ci_build_enter(b, &along->body);
    const CiExpr *place = plus(m, times(m, down->vars[0], width(m)), along->vars[0]);
    CiSymbols symbols = {.count = 0};
    ci_symbols_add(&symbols, m->loops.row_var, plus(m, first_row, down->vars[0]));
    ci_symbols_add(&symbols, m->loops.column_var, plus(m, first_column, along->vars[0]));
    ci_product_put_behind(b, &m->loops, sums, place, &symbols);
    ci_build_leave(b, outside);
}

void
ci_product_in_registers(CiBuild *b)
{
    Maker m = {.b = *b, .loops = ci_product_take_apart(b)};
    CiSym *sym = b->sym;
    choose_sizes(&m);
    ci_build_enter(&m.b, m.loops.inside);
    m.first_row = cut(&m, m.loops.row, tile_of(&m, m.loops.row_at), &m.nrows);
    m.first_column = cut(&m, m.loops.column, tile_of(&m, m.loops.column_at), &m.ncolumns);
    if (!is_read_as_it_lies(&m))
        fill_panel(&m);
    CiStmt *down = ci_build_for(&m.b, "i", ci_expr_ceildiv(sym, m.nrows, number(&m, m.rows)),
                                CI_RUN_serial);
    ci_build_enter(&m.b, &down->body);
    if (!m.loops.left.load)
        fill_stripe(&m, down->vars[0]);
    CiStmt *along = ci_build_for(&m.b, "p", ci_expr_ceildiv(sym, m.ncolumns, number(&m, width(&m))),
                                 CI_RUN_serial);
    ci_build_enter(&m.b, &along->body);
    finish_tile(&m, add_up(&m, down->vars[0], along->vars[0]), down->vars[0], along->vars[0]);
}
