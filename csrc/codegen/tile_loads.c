/* Tiled loads: data that is strided along the loop over lanes is transposed while it is loaded.
 *
 *   for i<n parallel { for j<m vector { … load x[i + n*j] … } }
 *
 * uses one element of each cache line. A tile of i and j uses whole lines: vectors are loaded along
 * i, transposed in registers, and stored on the stack as rows of the tile, which the body reads
 * along j. Edge elements are moved one by one. If a block has threads, they share the tile and move
 * its elements themselves: neighbouring threads along i when loading, along j after a barrier.
 * A body of vector instructions alone runs once for each square of vectors. Its tile is that square, which the C
 * compiler leaves in registers.
 *
 *   for i<n parallel { for j<m vector { fold k<l { … x[l*j + k] } } }
 *
 * The rows of a fold that each j reads, the same for every i, are transposed likewise, once for the i of a tile. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef struct Tiler {
    CiBuild b;
    CiStmt *loops[CI_MAX_FOLD_AXES]; /* outer to inner; the last one runs in lanes */
    int count, crossed;              /* number of loops; index of the tile's other loop */
    int height, width, pitch;        /* points of a tile; distance of its rows in memory */
    const CiExpr *along, *across;    /* variables of what is read: contiguous; in lanes */
    const CiExpr *rows, *columns;    /* extents of the current tile */
    const CiExpr *first_row, *first_column;
    const CiExpr *row, *column; /* the point of the body, within the tile */
} Tiler;

#define BUILDER Tiler
#include "codegen/arithmetic.def"

/* ---- which loads ---- */

static bool
is_crossed(Tiler *t, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let && stmt->op == CI_OP_load && stmt->at.memory->is_const &&
           stmt->at.memory->space == CI_SPACE_global && ci_expr_has_stride(t->b.sym, stmt->at.index, t->along, 1) &&
           !ci_expr_has_stride(t->b.sym, stmt->at.index, t->across, 0) &&
           !ci_expr_has_stride(t->b.sym, stmt->at.index, t->across, 1);
}

/* ---- turning ---- */

/* The element of x at a row and a column of the tile. */
static const CiExpr *
source_index(Tiler *t, const CiExpr *index, const CiExpr *row, const CiExpr *column)
{
    const CiExpr *from[] = {t->along, t->across},
                 *to[] = {plus(t, t->first_row, row), plus(t, t->first_column, column)};
    return ci_expr_substitute(t->b.sym, index, 2, from, to);
}

static const CiExpr *
tile_index(Tiler *t, const CiExpr *row, const CiExpr *column)
{
    return plus(t, times(t, row, t->pitch), column);
}

static void
transpose_square(Tiler *t, const CiAccess *from, CiMemory *tile, const CiExpr *row, const CiExpr *column,
                 int lanes)
{
    CiType type = ci_type_of(tile->dtype, lanes);
    int values[CI_TRANSPOSE_LANES];
    for (int k = 0; k < lanes; k++)
        values[k] =
            ci_build_load(&t->b, from->memory,
                          source_index(t, from->index, row, plus(t, column, number(t, k))), lanes);
    ci_build_transpose(&t->b, type, values);
    for (int k = 0; k < lanes; k++)
        ci_build_store(&t->b, tile, tile_index(t, plus(t, row, number(t, k)), column), values[k]);
}

/* Elements [first_row, rows) x [first_column, columns), one by one. */
static void
move_rest(Tiler *t, const CiAccess *from, CiMemory *tile, const CiExpr *first_row,
          const CiExpr *first_column, const CiExpr *columns)
{
    CiSym *sym = t->b.sym;
    CiStmts *outside = t->b.to;
    if (ci_sym_known_eq(sym, first_row, t->rows) || ci_sym_known_eq(sym, first_column, columns))
        return;
    CiStmt *across =
        ci_build_for(&t->b, "c", ci_expr_sub(sym, columns, first_column), CI_RUN_serial);
    ci_build_enter(&t->b, &across->body);
    CiStmt *along = ci_build_for(&t->b, "r", ci_expr_sub(sym, t->rows, first_row), CI_RUN_serial);
    ci_build_enter(&t->b, &along->body);
    const CiExpr *row = plus(t, first_row, along->vars[0]),
                 *column = plus(t, first_column, across->vars[0]);
    int value = ci_build_load(&t->b, from->memory, source_index(t, from->index, row, column), 1);
    ci_build_store(&t->b, tile, tile_index(t, row, column), value);
    ci_build_leave(&t->b, outside);
}

/* True if vectors of the dtype are moved without conversion. */
static bool
has_vectors(CiDtype dtype)
{
    return ci_dtype_class(dtype) != CI_CLASS_complex && ci_dtype_compute(dtype) == dtype;
}

/* The side of squares that are transposed in registers; 1: none are. */
static int
side_of(const Tiler *t, CiDtype dtype)
{
    int lanes = t->b.machine->vector_bytes / (int)ci_dtype_size(dtype);
    if (lanes < 2 || !has_vectors(dtype))
        return 1;
    return lanes < CI_TRANSPOSE_LANES ? lanes : CI_TRANSPOSE_LANES;
}

static void
fill(Tiler *t, const CiAccess *from, CiMemory *tile)
{
    CiSym *sym = t->b.sym;
    int lanes = side_of(t, tile->dtype);
    CiStmts *outside = t->b.to;
    if (lanes == 1) {
        move_rest(t, from, tile, number(t, 0), number(t, 0), t->columns);
        return;
    }
    const CiExpr *squares_down = ci_expr_floordiv(sym, t->rows, number(t, lanes)),
                 *squares = ci_expr_floordiv(sym, t->columns, number(t, lanes));
    /* Along the lines of few rows of x: rows a power of two apart push each other out of cache. */
    CiStmt *right = ci_build_for(&t->b, "c", squares, CI_RUN_serial);
    ci_build_enter(&t->b, &right->body);
    CiStmt *down = ci_build_for(&t->b, "r", squares_down, CI_RUN_serial);
    ci_build_enter(&t->b, &down->body);
    transpose_square(t, from, tile, times(t, down->vars[0], lanes), times(t, right->vars[0], lanes),
                     lanes);
    ci_build_leave(&t->b, outside);
    const CiExpr *rows = times(t, squares_down, lanes), *columns = times(t, squares, lanes);
    move_rest(t, from, tile, number(t, 0), columns, t->columns);
    move_rest(t, from, tile, rows, number(t, 0), columns);
}

/* Loads of a block that lie across read a tile of `rows` rows; loads that are alike the same one. */
static void
stage_loads(Tiler *t, const CiStmts *block, int64_t rows)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (!is_crossed(t, stmt))
            continue;
        const CiAccess from = stmt->at;
        CiMemory *tile = ci_build_alloc(&t->b, ci_build_name(&t->b, "tile"), from.memory->dtype, 1,
                                        t->b.machine->threads ? CI_SPACE_scratch : CI_SPACE_stack,
                                        number(t, rows * t->pitch));
        fill(t, &from, tile);
        for (CiStmt *other = stmt; other; other = other->next) {
            if (other->at.memory != from.memory || other->at.index != from.index)
                continue;
            other->at.memory = tile;
            other->at.index = tile_index(t, t->row, t->column);
        }
    }
}

static bool
folds_rows(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_fold && stmt->nvars == 1 && !stmt->count &&
           stmt->extents[0]->kind == CI_EXPR_const;
}

/* Loads of a fold read a tile of whole rows. */
static void
stage_rows(Tiler *t, const CiStmt *fold)
{
    t->along = t->row = fold->vars[0];
    t->first_row = number(t, 0);
    t->rows = fold->extents[0];
    stage_loads(t, &fold->body, fold->extents[0]->value);
}

/* ---- bodies ---- */

/* The body at a point of the tile. */
static void
add_body(Tiler *t, const CiStmts *body, const CiExpr *row, const CiExpr *column)
{
    const CiExpr *vars[] = {t->along, t->across},
                 *at[] = {plus(t, t->first_row, row), plus(t, t->first_column, column)};
    CiAt instance = {2, vars, at, NULL, 1, NULL, 1};
    ci_build_at(&t->b, body, &instance);
}

/* The body for all points of the tile, in lanes along its rows. */
static void
add_rows(Tiler *t, const CiStmts *body, CiRunMode run)
{
    CiStmts *outside = t->b.to;
    CiStmt *down = ci_build_loop(&t->b, t->row, t->rows, run);
    ci_build_enter(&t->b, &down->body);
    CiStmt *right = ci_build_loop(&t->b, t->column, t->columns, CI_RUN_vector);
    ci_build_enter(&t->b, &right->body);
    add_body(t, body, t->row, t->column);
    ci_build_leave(&t->b, outside);
}

/* The body for [first_row, rows) x [first_column, columns), along the lines of what is read. */
static void
add_points(Tiler *t, const CiStmts *body, const CiExpr *first_row, const CiExpr *first_column, const CiExpr *columns)
{
    CiSym *sym = t->b.sym;
    CiStmts *outside = t->b.to;
    if (ci_sym_known_eq(sym, first_row, t->rows) || ci_sym_known_eq(sym, first_column, columns))
        return;
    CiStmt *right = ci_build_for(&t->b, "c", ci_expr_sub(sym, columns, first_column), CI_RUN_serial);
    ci_build_enter(&t->b, &right->body);
    CiStmt *down = ci_build_for(&t->b, "r", ci_expr_sub(sym, t->rows, first_row), CI_RUN_serial);
    ci_build_enter(&t->b, &down->body);
    add_body(t, body, plus(t, first_row, down->vars[0]), plus(t, first_column, right->vars[0]));
    ci_build_leave(&t->b, outside);
}

static bool
is_no_instruction(const CiStmt *stmt)
{
    return (stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_store) || ci_stmt_is_math(stmt);
}

/* The lanes of a body whose transposed loads, from `stmt` on, are contiguous. */
static int
lanes_from(Tiler *t, const CiStmts *body, CiStmt *stmt, int side)
{
    while (stmt && !is_crossed(t, stmt))
        stmt = stmt->next;
    if (!stmt)
        return ci_choose_lanes(&t->b, body, t->across, side);
    const CiExpr *index = stmt->at.index;
    stmt->at.index = t->across;
    int lanes = lanes_from(t, body, stmt->next, side);
    stmt->at.index = index;
    return lanes;
}

/* The side of the squares for which a body is computed; 1: it has other statements than vector instructions, or reads
 * transposed elements of several sizes. */
static int
side_of_squares(Tiler *t, const CiStmts *body)
{
    int side = 1;
    if (t->b.machine->threads || ci_stmts_have(body, is_no_instruction))
        return 1;
    for (const CiStmt *stmt = body->first; stmt; stmt = stmt->next) {
        int own = is_crossed(t, stmt) ? side_of(t, stmt->at.memory->dtype) : side;
        if (own == 1 && is_crossed(t, stmt))
            return 1;
        if (side > 1 && own != side)
            return 1;
        side = own;
    }
    return lanes_from(t, body, body->first, side) > 1 ? side : 1;
}

/* Square by square, along the lines of few rows of x as in `fill`; then the points of the edges. */
static void
add_squares(Tiler *t, CiStmts *body, int side)
{
    CiSym *sym = t->b.sym;
    CiStmts *outside = t->b.to;
    const CiExpr *squares = ci_expr_floordiv(sym, t->columns, number(t, side)),
                 *squares_down = ci_expr_floordiv(sym, t->rows, number(t, side));
    const CiExpr *columns = times(t, squares, side);
    add_points(t, body, number(t, 0), columns, t->columns);
    add_points(t, body, times(t, squares_down, side), number(t, 0), columns);
    CiStmt *right = ci_build_for(&t->b, "c", squares, CI_RUN_serial);
    ci_build_enter(&t->b, &right->body);
    CiStmt *down = ci_build_for(&t->b, "r", squares_down, CI_RUN_serial);
    ci_build_enter(&t->b, &down->body);
    t->first_row = plus(t, t->first_row, times(t, down->vars[0], side));
    t->first_column = plus(t, t->first_column, times(t, right->vars[0], side));
    t->rows = t->columns = number(t, side);
    t->row = ci_expr_index(sym, ci_build_name(&t->b, "r"), t->rows);
    t->column = ci_expr_index(sym, ci_build_name(&t->b, "c"), t->columns);
    t->pitch = side;
    stage_loads(t, body, side);
    add_rows(t, body, CI_RUN_unroll);
    ci_build_leave(&t->b, outside);
}

/* ---- loops ---- */

/* for i<n  ->  for t<ceildiv(n, size), and the first of them in this tile. */
static const CiExpr *
cut(Tiler *t, CiStmt *loop, int size)
{
    const CiExpr *extent = loop->extents[0], *iterations = number(t, size);
    const CiExpr *tiles = ci_expr_ceildiv(t->b.sym, extent, iterations),
                 *tile = ci_expr_index(t->b.sym, ci_build_name(&t->b, "t"), tiles);
    loop->extents[0] = tiles;
    loop->vars[0] = tile;
    loop->run = CI_RUN_parallel;
    return times(t, tile, size);
}

static const CiExpr *
count_here(Tiler *t, const CiExpr *extent, const CiExpr *first, int size)
{
    const CiExpr *most = number(t, size);
    if (ci_sym_known_multiple_of(t->b.sym, extent, most))
        return most;
    return ci_build_named(&t->b, ci_expr_min(t->b.sym, most, ci_expr_sub(t->b.sym, extent, first)));
}

static void
make_tiles(Tiler *t)
{
    CiStmt *outer = t->loops[t->crossed], *last = t->loops[t->count - 1];
    const CiExpr *vars[] = {outer->vars[0], last->vars[0]},
                 *extents[] = {outer->extents[0], last->extents[0]};
    const CiExpr *first_row = cut(t, outer, t->height);
    t->first_row = first_row;
    t->first_column = cut(t, last, t->width);
    CiStmts body = last->body;
    last->body = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&t->b, &last->body);
    const CiExpr *rows = count_here(t, extents[0], first_row, t->height);
    t->rows = rows;
    t->columns = count_here(t, extents[1], t->first_column, t->width);
    const CiExpr *row = ci_expr_index(t->b.sym, ci_build_name(&t->b, "r"), rows);
    t->row = row;
    t->column = ci_expr_index(t->b.sym, ci_build_name(&t->b, "c"), t->columns);
    t->along = vars[0];
    t->across = vars[1];
    int side = side_of_squares(t, &body);
    if (side > 1) {
        add_squares(t, &body, side);
        ci_build_leave(&t->b, outside);
        return;
    }
    stage_loads(t, &body, t->height);
    for (const CiStmt *stmt = body.first; stmt; stmt = stmt->next)
        if (folds_rows(stmt))
            stage_rows(t, stmt);
    t->along = vars[0];
    t->first_row = first_row;
    t->row = row;
    t->rows = rows;
    add_rows(t, &body, CI_RUN_serial);
    ci_build_leave(&t->b, outside);
}

void
ci_stage_in(CiBuild *b)
{
    CiProc *proc = b->proc;
    Tiler t = {.b = *b, .crossed = -1};
    const CiProcHead *head = &proc->head;
    if (head->kind)
        return;
    for (CiStmt *stmt = proc->body.first; stmt && stmt->kind == CI_STMT_for;
         stmt = stmt->body.first)
        if (t.count < CI_MAX_FOLD_AXES)
            t.loops[t.count++] = stmt;
    for (int k = 0; k < head->naxes - 1 && k < t.count; k++)
        if (head->axes[k].tile)
            t.crossed = k;
    if (t.crossed < 0)
        return;
    t.height = head->axes[t.crossed].tile;
    t.width = head->axes[head->naxes - 1].tile;
    t.pitch = t.width + (b->machine->threads > 0); /* threads down a column ask different banks */
    make_tiles(&t);
}
