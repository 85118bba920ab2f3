/* A matrix product for GPUs: tiles of both factors in shared memory.
 *
 *   for b<blocks grid {
 *     for k<ceildiv(steps, 16) {
 *       for t<256 thread { of rows and steps: a sixteenth of the left tile, of the right tile }
 *       for t<256 thread { for s<16 { sums of 4 rows and 4 columns += left * right } }
 *     }
 *     for t<256 thread { the epilogue, at 4 rows and 4 columns } }
 *
 * Thread t has rows t/16, t/16 + 16, … and columns t%16, t%16 + 16, …: neighbouring threads access
 * neighbouring elements. A tile is stored step by step, with one element of padding per step, so
 * that strided stores go to different banks. Elements beyond the end count as 0. */
#include "codegen/grid.h"
#include "kernels/kernels.h"

#define THREADS 256
#define ACROSS 16                                  /* threads along columns, and along rows */
#define MAX_EACH 4                                /* rows of a thread, and columns, at most */

typedef struct Maker {
    CiBuild b;
    CiProductLoops loops;
    CiDtype dtype;
    CiDomain blocks; /* axes of the kernel, those of rows and columns in tiles */
    const CiExpr *at[CI_MAX_FOLD_AXES]; /* of each, where a thread is */
    const CiExpr *first_row, *first_column;
    CiMemory *left, *right, *sums;
    int side, steps; /* rows and columns of a block; steps of a tile */
    int line;        /* elements of a step in shared memory: a step more would be in the same bank */
    int each;        /* rows of a thread, and columns */
} Maker;

#define BUILDER Maker
#include "codegen/arithmetic.def"

static const CiExpr *
bound(Maker *m, const CiExpr *e, int64_t limit)
{
    return ci_build_bind(&m->b, ci_build_index(&m->b, e), number(m, limit));
}

/* ---- blocks ---- */

static void
find_blocks(Maker *m)
{
    for (int k = 0; k < m->loops.npoints; k++) {
        bool is_tiled = k == m->loops.row_at || k == m->loops.column_at;
        const CiExpr *extent = m->loops.points[k]->extents[0];
        m->blocks.extents[k] =
            is_tiled ? ci_expr_ceildiv(m->b.sym, extent, number(m, m->side)) : extent;
        m->blocks.vars[k] = m->loops.points[k]->vars[0];
    }
    m->blocks.count = m->loops.npoints;
}

/* Where this block is: each thread finds out. */
static void
find_location(Maker *m, const CiExpr *block)
{
    ci_domain_decode(&m->b, &m->blocks, block, 1, m->at);
    m->first_row = times(m, m->at[m->loops.row_at], m->side);
    m->first_column = times(m, m->at[m->loops.column_at], m->side);
}

/* Symbols of the kernel's axes, and of the step unless it is NULL, and what they are here. */
static CiSymbols
symbols_at(const Maker *m, const CiExpr *row, const CiExpr *column, const CiExpr *step)
{
    CiSymbols symbols = {.count = 0};
    for (int k = 0; k < m->blocks.count; k++)
        ci_symbols_add(&symbols, m->blocks.vars[k],
                       k == m->loops.row_at      ? row
                       : k == m->loops.column_at ? column
                                                 : m->at[k]);
    if (step)
        ci_symbols_add(&symbols, m->loops.step, step);
    return symbols;
}

/* ---- tiles ---- */

/* One element of a tile: of a factor at a row or column `along`, and a step. */
static void
bring(Maker *m, const CiHole *hole, CiMemory *tile, const CiExpr *along, const CiExpr *first,
      const CiExpr *extent, const CiExpr *step, const CiExpr *first_step)
{
    CiBuild *b = &m->b;
    const CiExpr *position = plus(m, times(m, step, m->line), along), *here = plus(m, first, along),
                 *when = plus(m, first_step, step);
    CiStmt *is_there = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, here, extent);
    ci_build_and(b, is_there, CI_COMPARE_less, when, m->loops.length);
    CiStmts *outside = ci_build_enter(b, &is_there->body);
    CiSymbols symbols = symbols_at(m, here, here, when);
    ci_build_store(b, tile, position, ci_build_with(b, &hole->body, &symbols)[0]);
    ci_build_enter(b, &is_there->other);
    ci_build_store(b, tile, position, ci_build_const(b, ci_type_of(m->dtype, 1), (CiConst){0}));
    ci_build_leave(b, outside);
}

/* Neighbours in memory are brought by neighbours. */
static void
bring_share(Maker *m, const CiHole *hole, CiMemory *tile, const CiExpr *var, const CiExpr *first,
            const CiExpr *extent, const CiExpr *thread, const CiExpr *first_step)
{
    CiSym *sym = m->b.sym;
    bool is_by_step = ci_hole_has_stride_one(&m->b, hole, m->loops.step) && !ci_hole_has_stride_one(&m->b, hole, var);
    int fast = is_by_step ? m->steps : m->side;
    for (int k = 0; k < m->side * m->steps / THREADS; k++) {
        const CiExpr *element = plus(m, thread, number(m, (int64_t)k * THREADS)),
                     *low = bound(m, ci_expr_mod(sym, element, number(m, fast)), fast),
                     *high = bound(m, ci_expr_floordiv(sym, element, number(m, fast)),
                                   m->side * m->steps / fast);
        bring(m, hole, tile, is_by_step ? high : low, first, extent, is_by_step ? low : high,
              first_step);
    }
}

static CiMemory *
alloc_tile(Maker *m, const char *stem, int64_t offset)
{
    CiMemory *tile = ci_build_alloc(&m->b, ci_build_name(&m->b, stem), m->dtype, 1, CI_SPACE_shared,
                                    number(m, m->steps * m->line));
    tile->offset = number(m, offset);
    return tile;
}

/* ---- sums ---- */

static const CiExpr *
sum_at(Maker *m, const CiExpr *thread, const CiExpr *which)
{
    return plus(m, thread, times(m, which, THREADS));
}

static void
add_step(Maker *m, const CiExpr *thread, const CiExpr *row, const CiExpr *column,
         const CiExpr *step)
{
    CiBuild *b = &m->b;
    const CiExpr *line = times(m, step, m->line);
    int left[MAX_EACH], right[MAX_EACH];
    for (int k = 0; k < m->each; k++) {
        const CiExpr *far = plus(m, line, number(m, k * ACROSS));
        left[k] = ci_build_load(b, m->left, plus(m, far, row), 1);
        right[k] = ci_build_load(b, m->right, plus(m, far, column), 1);
    }
    for (int r = 0; r < m->each; r++)
        for (int c = 0; c < m->each; c++) {
            const CiExpr *at = sum_at(m, thread, number(m, r * m->each + c));
            const int args[] = {left[r], right[c], ci_build_load(b, m->sums, at, 1)};
            ci_build_store(b, m->sums, at,
                           ci_build_let(b, ci_type_of(m->dtype, 1), CI_OP_fma, 3, args));
        }
}

/* The first row of a thread, its first column. */
static void
find_thread(Maker *m, const CiExpr *thread, const CiExpr **row, const CiExpr **column)
{
    CiSym *sym = m->b.sym;
    *row = bound(m, ci_expr_floordiv(sym, thread, number(m, ACROSS)), ACROSS);
    *column = bound(m, ci_expr_mod(sym, thread, number(m, ACROSS)), ACROSS);
}

static void
add_tiles(Maker *m)
{
    CiBuild *b = &m->b;
    CiStmts *outside = b->to;
    const CiExpr *row, *column,
        *tiles = ci_expr_ceildiv(b->sym, m->loops.length, number(m, m->steps));
    CiStmt *loop = ci_build_for(b, "k", tiles, CI_RUN_serial);
    CiStmts *inside = &loop->body;
    ci_build_enter(b, inside);
    const CiExpr *first_step = times(m, loop->vars[0], m->steps), *thread = ci_domain_enter_threads(&m->b, THREADS);
    bring_share(m, &m->loops.left, m->left, m->loops.row_var, m->first_row, m->loops.row_extent,
                thread, first_step);
    bring_share(m, &m->loops.right, m->right, m->loops.column_var, m->first_column,
                m->loops.column_extent, thread, first_step);
    ci_build_enter(b, inside);
    thread = ci_domain_enter_threads(&m->b, THREADS);
    find_thread(m, thread, &row, &column);
    CiStmt *steps = ci_build_for(b, "s", number(m, m->steps), CI_RUN_unroll);
    ci_build_enter(b, &steps->body);
    add_step(m, thread, row, column, steps->vars[0]);
    ci_build_leave(b, outside);
}

static void
clear(Maker *m)
{
    CiStmts *outside = m->b.to;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS);
    int nothing = ci_build_const(&m->b, ci_type_of(m->dtype, 1), (CiConst){0});
    for (int k = 0; k < m->each * m->each; k++)
        ci_build_store(&m->b, m->sums, sum_at(m, thread, number(m, k)), nothing);
    ci_build_leave(&m->b, outside);
}

static void
finish(Maker *m)
{
    CiBuild *b = &m->b;
    const CiExpr *row, *column;
    const CiExpr *thread = ci_domain_enter_threads(&m->b, THREADS);
    find_thread(m, thread, &row, &column);
    CiStmt *down = ci_build_for(b, "r", number(m, m->each), CI_RUN_unroll);
    ci_build_enter(b, &down->body);
    CiStmt *along = ci_build_for(b, "c", number(m, m->each), CI_RUN_unroll);
    ci_build_enter(b, &along->body);
    row = plus(m, plus(m, m->first_row, row), times(m, down->vars[0], ACROSS));
    column = plus(m, plus(m, m->first_column, column), times(m, along->vars[0], ACROSS));
    CiStmt *is_there = ci_build_test(b, CI_STMT_if, CI_COMPARE_less, row, m->loops.row_extent);
    ci_build_and(b, is_there, CI_COMPARE_less, column, m->loops.column_extent);
    ci_build_enter(b, &is_there->body);
    CiSymbols symbols = symbols_at(m, row, column, NULL);
    const CiExpr *which = plus(m, times(m, down->vars[0], m->each), along->vars[0]);
    ci_product_put_after(b, &m->loops, m->sums, sum_at(m, thread, which), &symbols);
}

void
ci_product_in_shared_memory(CiBuild *b)
{
    Maker m = {.b = *b, .loops = ci_product_split(b)};
    if (m.loops.narrow != CI_DTYPE_f32 && b->machine->tensor_dtypes & CI_DTYPE_BIT(m.loops.narrow)) {
        ci_product_of_tiles(b, &m.loops);
        return;
    }
    int64_t side = CI_CHOOSE(b, tile_side), steps = CI_CHOOSE(b, tile_steps);
    m.side = side < ACROSS ? ACROSS : (int)side;
    m.steps = steps < ACROSS ? ACROSS : (int)steps;
    m.line = m.side + 1;
    m.each = m.side / ACROSS;
    m.dtype = m.loops.sum->dtype;
    b->proc->body = (CiStmts){0};
    find_blocks(&m);
    m.b.to = &b->proc->body;
    CiStmt *grid = ci_build_for(&m.b, "b", ci_domain_count(b->sym, &m.blocks, 1), CI_RUN_grid);
    CiStmts *inside = &grid->body;
    ci_build_enter(&m.b, inside);
    m.left = alloc_tile(&m, "left", 0);
    m.right = alloc_tile(&m, "right", m.steps * m.line * (int64_t)ci_dtype_size(m.dtype));
    m.sums = ci_build_alloc(&m.b, ci_build_name(&m.b, "sums"), m.dtype, 1, CI_SPACE_thread,
                            number(&m, THREADS * m.each * m.each));
    find_location(&m, grid->vars[0]);
    clear(&m);
    add_tiles(&m);
    finish(&m);
}
