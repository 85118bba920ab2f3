/* Folds over several axes: their points are numbered in C order.
 *
 * The indices of a point are computed from its number by division. If a whole block of points is
 * folded, iterating along the last axis is cheaper, a piece of a row at a time. The values are
 * gathered in a strip of memory first. */
#include "codegen/reducer.h"

/* The indices of point number `rest`. An axis without elements has no points, so its index is never
 * used. */
static void
split_number(CiReducer *r, const CiExpr *rest, const CiExpr **to, bool is_named)
{
    const CiStmt *fold = r->fold;
    CiSym *sym = r->b.sym;
    for (int k = fold->nvars - 1; k >= 0; k--) {
        const CiExpr *size = fold->extents[k];
        bool divides = k && !ci_expr_equals_const(size, 0);
        to[k] = divides ? ci_expr_mod(sym, rest, size) : rest;
        rest = divides ? ci_expr_floordiv(sym, rest, size) : rest;
        if (is_named) {
            to[k] = ci_build_named(&r->b, to[k]);
            rest = k ? ci_build_named(&r->b, rest) : rest;
        }
    }
}

/* One variable that counts the points of all of them, the first of which is number `first`. */
void
ci_reduce_flatten(CiReducer *r)
{
    const CiStmt *fold = r->fold;
    const CiExpr *to[CI_MAX_FOLD_AXES];
    r->body = (CiStmts){0};
    r->var = ci_expr_index(r->b.sym, ci_build_name(&r->b, "p"), r->extent);
    split_number(r, ci_expr_add(r->b.sym, r->first, r->var), to, false);
    CiAt at = {fold->nvars, fold->vars, to, NULL, 1, NULL, 1};
    CiStmts *outside = ci_build_enter(&r->b, &r->body);
    const int *lifted = ci_build_at(&r->b, &fold->body, &at);
    ci_build_yield(&r->b, lifted, fold->ninto);
    ci_build_leave(&r->b, outside);
}

bool
ci_reduce_calls_ufunc(const CiReducer *r)
{
    return r->b.machine->strip && !r->is_in_lanes && ci_stmts_have(&r->fold->body, ci_stmt_is_ufunc);
}

void
ci_reduce_alloc_strips(CiReducer *r, int64_t size)
{
    const CiStmt *fold = r->fold;
    r->strips = NULL;
    if (r->is_in_lanes || (fold->nvars == 1 && !ci_reduce_calls_ufunc(r)))
        return;
    r->strips = CI_NEW_ARRAY(r->b.ctx, CiMemory *, fold->ninto + 1);
    for (int k = 0; k < fold->ninto; k++)
        r->strips[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, "strip"), fold->into[k]->dtype, 1,
                                      CI_SPACE_stack, ci_expr_const(r->b.sym, size));
}

/* Copies `count` points of one row, from number `from` on, into the strips from `position` on. */
static void
fill_line(CiReducer *r, const CiExpr **to, const CiExpr *position, const CiExpr *count)
{
    const CiStmt *fold = r->fold;
    CiSym *sym = r->b.sym;
    int last = fold->nvars - 1;
    CiStmt *loop = ci_build_for(&r->b, "j", count, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    to[last] = ci_expr_add(sym, to[last], loop->vars[0]);
    CiAt at = {fold->nvars, fold->vars, to, NULL, 1, NULL, 1};
    const int *lifted = ci_build_at(&r->b, &fold->body, &at);
    position = ci_expr_add(sym, position, loop->vars[0]);
    for (int k = 0; k < fold->ninto; k++)
        ci_build_store(&r->b, r->strips[k], position, lifted[k]);
    ci_build_leave(&r->b, outside);
}

/* The piece of a row that begins at point number `from`, and ends before `end`: how many points. */
static const CiExpr *
fill_piece(CiReducer *r, const CiExpr *from, const CiExpr *first, const CiExpr *end)
{
    const CiStmt *fold = r->fold;
    CiSym *sym = r->b.sym;
    const CiExpr *to[CI_MAX_FOLD_AXES];
    int last = fold->nvars - 1;
    split_number(r, from, to, true);
    const CiExpr *count =
        ci_build_named(&r->b, ci_expr_min(sym, ci_expr_sub(sym, fold->extents[last], to[last]),
                                          ci_expr_sub(sym, end, from)));
    fill_line(r, to, ci_expr_sub(sym, from, first), count);
    return count;
}

/* The body from now on. */
static void
read_strips(CiReducer *r, const CiExpr *count)
{
    r->body = (CiStmts){0};
    r->var = ci_expr_index(r->b.sym, ci_build_name(&r->b, "p"), count);
    CiStmts *outside = ci_build_enter(&r->b, &r->body);
    int *values = CI_NEW_ARRAY(r->b.ctx, int, r->fold->ninto + 1);
    for (int k = 0; k < r->fold->ninto; k++)
        values[k] = ci_build_load(&r->b, r->strips[k], r->var, 1);
    ci_build_yield(&r->b, values, r->fold->ninto);
    ci_build_leave(&r->b, outside);
}

/* Fills the strips, whose first point is `first`, with the points from `begin` to `end`. */
static void
fill_range(CiReducer *r, const CiExpr *first, const CiExpr *begin, const CiExpr *end)
{
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_expr_const(sym, 0);
    if (r->fold->nvars == 1) {
        const CiExpr *to[] = {begin};
        fill_line(r, to, ci_expr_sub(sym, begin, first), ci_expr_sub(sym, end, begin));
        return;
    }
    CiMemory *done = ci_build_alloc(&r->b, ci_build_name(&r->b, "done"), CI_DTYPE_i64, 1,
                                    CI_SPACE_register, ci_expr_const(sym, 1));
    ci_build_store(&r->b, done, zero, ci_build_index(&r->b, begin));
    CiStmt *loop = ci_build_add(&r->b, CI_STMT_loop);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    const CiExpr *from = ci_build_bind(&r->b, ci_build_load(&r->b, done, zero, 1),
                                       ci_expr_add(sym, r->length, ci_expr_const(sym, 1)));
    ci_build_test(&r->b, CI_STMT_exit, CI_COMPARE_less_equal, end, from);
    const CiExpr *more = fill_piece(r, from, first, end);
    ci_build_store(&r->b, done, zero, ci_build_index(&r->b, ci_expr_add(sym, from, more)));
    ci_build_leave(&r->b, outside);
}

void
ci_reduce_fill_strips(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    first = ci_expr_add(r->b.sym, r->first, first);
    fill_range(r, first, first, ci_expr_add(r->b.sym, first, count));
    read_strips(r, count);
}

/* ---- many at once ---- */

static CiMemory *
new_number(CiReducer *r, const char *stem)
{
    CiMemory *made = ci_build_alloc(&r->b, ci_build_name(&r->b, stem), CI_DTYPE_i64, 1,
                                    CI_SPACE_register, ci_expr_const(r->b.sym, 1));
    const CiExpr *zero = ci_expr_const(r->b.sym, 0);
    ci_build_store(&r->b, made, zero, ci_build_index(&r->b, zero));
    return made;
}

/* Elements that are one axis at a time: several blocks of a pairwise order. */
enum { WINDOW = 1024 };

/* Returns true if it has all elements. */
static bool
alloc_window(CiReducer *r)
{
    int64_t most = r->extent->high;
    ci_reduce_alloc_strips(r, most > WINDOW ? WINDOW : most > 0 ? most : 1);
    return most <= WINDOW;
}

void
ci_reduce_open_window(CiReducer *r)
{
    (void)alloc_window(r);
    if (r->strips) {
        r->from = new_number(r, "from");
        r->end = new_number(r, "end");
    }
}

static bool
is_store(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_store;
}

/* Moves the points from `first` to `end`, which the window already has, to its beginning. */
static void
keep_rest(CiReducer *r, const CiExpr *first, const CiExpr *end, const CiExpr *most)
{
    CiSym *sym = r->b.sym;
    const CiExpr *from =
        ci_build_bind(&r->b, ci_build_load(&r->b, r->from, ci_expr_const(sym, 0), 1), most);
    const CiExpr *gap = ci_build_named(&r->b, ci_expr_sub(sym, first, from));
    CiStmt *loop =
        ci_build_for(&r->b, "j", ci_build_named(&r->b, ci_expr_sub(sym, end, first)), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    for (int k = 0; k < r->fold->ninto; k++) {
        int value = ci_build_load(&r->b, r->strips[k], ci_expr_add(sym, gap, loop->vars[0]), 1);
        ci_build_store(&r->b, r->strips[k], loop->vars[0], value);
    }
    ci_build_leave(&r->b, outside);
}

const CiExpr *
ci_reduce_through_window(CiReducer *r, const CiExpr *first, const CiExpr *count)
{
    CiSym *sym = r->b.sym;
    const CiExpr *zero = ci_expr_const(sym, 0), *one = ci_expr_const(sym, 1),
                 *most = ci_expr_add(sym, r->extent, one);
    const CiExpr *end = ci_build_bind(&r->b, ci_build_load(&r->b, r->end, zero, 1), most);
    CiStmt *more =
        ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, end, ci_expr_add(sym, first, count));
    CiStmts *outside = ci_build_enter(&r->b, &more->body);
    const CiExpr *width = ci_build_named(
        &r->b, ci_expr_min(sym, ci_expr_const(sym, WINDOW), ci_expr_sub(sym, r->extent, first)));
    bool is_once = ci_stmts_have(&r->fold->body, is_store); /* it may read what it writes */
    if (is_once)
        keep_rest(r, first, end, most);
    const CiExpr *whole = ci_expr_add(sym, r->first, first);
    fill_range(r, whole, is_once ? ci_expr_add(sym, r->first, end) : whole,
               ci_expr_add(sym, whole, width));
    ci_build_store(&r->b, r->from, zero, ci_build_index(&r->b, first));
    ci_build_store(&r->b, r->end, zero, ci_build_index(&r->b, ci_expr_add(sym, first, width)));
    ci_build_leave(&r->b, outside);
    const CiExpr *from = ci_build_bind(&r->b, ci_build_load(&r->b, r->from, zero, 1), most);
    read_strips(r, r->strips[0]->size);
    return ci_expr_sub(sym, first, from);
}

void
ci_reduce_in_pieces(CiReducer *r,
                    void (*add)(CiReducer *r, const CiExpr *first, const CiExpr *count))
{
    const CiExpr *zero = ci_reduce_number(r, 0), *var = r->var;
    const CiStmts body = r->body;
    CiPiece piece = {zero, r->extent, r->b.to};
    if (!alloc_window(r))
        piece = ci_build_pieces(&r->b, "b", r->extent, ci_reduce_number(r, WINDOW), CI_RUN_serial);
    ci_reduce_fill_strips(r, piece.first, piece.count);
    add(r, zero, piece.count);
    r->body = body;
    r->var = var;
    ci_build_leave(&r->b, piece.outside);
}
