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

typedef struct Maker {
    CiBuild b;
    CiProductLoops loops;
    CiDtype dtype;
    int rows, lanes, vectors; /* of a tile of sums */
    const CiExpr *first_row, *first_column, *nrows, *ncolumns; /* of the unit */
    CiMemory *panel, *stripe; /* NULL: the factor is read as it lies */
    const CiExpr *rows_here[CI_PRODUCT_ROWS], *slice; /* of the tile: its rows, its columns in the panel */
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

static int
width(const Maker *m)
{
    return m->lanes * m->vectors;
}

/* ---- sizes ---- */

static void
choose_sizes(Maker *m)
{
    int64_t columns = m->loops.column_extent->high;
    m->dtype = m->loops.sum->dtype;
    m->lanes = m->b.machine->vector_bytes / (int)ci_dtype_size(m->dtype);
    while (m->lanes > 2 && m->lanes / 2 >= columns)
        m->lanes /= 2;
    m->vectors = columns > m->lanes ? 2 : 1;
    m->rows = ci_register_rows_of(m->loops.row_extent,
                                  m->vectors == 1 ? CI_PRODUCT_ROWS : ci_register_rows(m->b.machine));
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

/* The number of rows or columns of a tile that exist. */
static const CiExpr *
count_here(Maker *m, const CiExpr *count, const CiExpr *tile, int size)
{
    return ci_build_piece_count(&m->b, count, times(m, tile, size), number(m, size));
}

/* ---- factors ---- */

/* The value of a factor at a row or column and a step; lanes are columns. */
static int
factor_at(Maker *m, const CiHole *hole, const CiExpr *var, const CiExpr *at, const CiExpr *step,
          int lanes)
{
    const CiFactorAt where = {var, at, m->loops.step, step};
    return ci_factor_at(&m->b, hole, &where, lanes);
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

static void
fill_panel(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    m->panel = alloc_scratch(m, "panel", panel_columns(m), 0);
    CiPanel panel = {&m->loops.right, m->loops.column_var, m->loops.step, m->loops.length, m->lanes, m->vectors, m->panel};
    CiStmt *each = ci_build_for(
        b, "p", ci_expr_ceildiv(b->sym, m->ncolumns, number(m, width(m))), CI_RUN_serial);
    ci_build_enter(b, &each->body);
    const CiExpr *p = each->vars[0], *here = count_here(m, m->ncolumns, p, width(m)),
                 *base = ci_expr_mul(b->sym, times(m, p, width(m)), m->loops.length);
    ci_panel_fill(b, &panel, base, plus(m, m->first_column, times(m, p, width(m))), here);
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
left_at(void *maker, int row, const CiExpr *step)
{
    Maker *m = maker;
    if (!m->stripe)
        return factor_at(m, &m->loops.left, m->loops.row_var, m->rows_here[row], step, 1);
    return ci_build_load(&m->b, m->stripe, plus(m, times(m, m->loops.length, row), step), 1);
}

static int
right_at(void *maker, int vector, const CiExpr *step)
{
    Maker *m = maker;
    const CiExpr *column = plus(m, times(m, m->slice, width(m)), number(m, vector * m->lanes));
    if (!m->panel)
        return factor_at(m, &m->loops.right, m->loops.column_var,
                         plus(m, m->first_column, column), step, m->lanes);
    const CiExpr *base = ci_expr_mul(m->b.sym, times(m, m->slice, width(m)), m->loops.length);
    return ci_build_load(
        &m->b, m->panel,
        plus(m, plus(m, base, times(m, step, width(m))), number(m, vector * m->lanes)), m->lanes);
}

/* The sums of a tile, in memory. */
static CiMemory *
add_up(Maker *m, const CiExpr *tile, const CiExpr *p)
{
    CiBuild *b = &m->b;
    CiRegisterTile sums = {m->dtype, m->rows, m->vectors, m->lanes, m, left_at, right_at, {NULL}};
    m->slice = p;
    for (int r = 0; r < m->rows && !m->stripe; r++)
        m->rows_here[r] = ci_build_named(b, row_at(m, tile, number(m, r)));
    ci_register_tile_add_up(b, &sums, m->loops.length);
    CiMemory *to = ci_build_alloc(b, ci_build_name(b, "tile"), m->dtype, 1, CI_SPACE_stack,
                                  number(m, m->rows * width(m)));
    for (int k = 0; k < m->rows * m->vectors; k++)
        ci_build_store(b, to, number(m, k * m->lanes),
                       ci_register_tile_sum(b, &sums, k / m->vectors, k % m->vectors));
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
    const CiExpr *position = plus(m, times(m, down->vars[0], width(m)), along->vars[0]);
    CiSymbols symbols = {.count = 0};
    ci_symbols_add(&symbols, m->loops.row_var, plus(m, first_row, down->vars[0]));
    ci_symbols_add(&symbols, m->loops.column_var, plus(m, first_column, along->vars[0]));
    ci_product_put_after(b, &m->loops, sums, position, &symbols);
    ci_build_leave(b, outside);
}

void
ci_product_in_registers(CiBuild *b)
{
    Maker m = {.b = *b, .loops = ci_product_split(b)};
    CiSym *sym = b->sym;
    choose_sizes(&m);
    ci_build_enter(&m.b, m.loops.inside);
    CiPiece rows = ci_build_tiles(&m.b, "t", m.loops.row, tile_of(&m, m.loops.row_at)),
            columns = ci_build_tiles(&m.b, "t", m.loops.column, tile_of(&m, m.loops.column_at));
    m.first_row = rows.first;
    m.nrows = rows.count;
    m.first_column = columns.first;
    m.ncolumns = columns.count;
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
