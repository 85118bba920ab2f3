/* Folds over the rows and the columns of a table, in one pass.
 *
 *   for c<8 parallel {                    a subtree of the columns
 *     for j<512 vector { columns = 0 }
 *     for g<n//4 {
 *       for r<4 { partial = fold of the row's part }
 *       for j<512 vector { columns = columns + 4 rows } }
 *     the remaining rows }
 *   for t<n//512 parallel { for r<512 vector { row = fold of its partials } }
 *
 * A few rows at a time: the elements that their own folds have read are in cache when the columns
 * use them. */
#include "kernels/kernels.h"

#include "codegen/reduction.h"
#include "codegen/split.h"

typedef struct Walk {
    CiSplitter s;
    CiStmts loops;                /* over points, as they stood */
    const CiExpr *first, *count;  /* columns of this unit */
} Walk;

#define BUILDER Walk
#define SYM(m) (m)->s.b.sym
#include "codegen/arithmetic.def"

static CiStmt *
fold_in(Walk *w, const CiStmt *loop)
{
    CiStmt *stmt = loop->body.first;
    while (stmt && stmt->kind != CI_STMT_fold)
        stmt = stmt->next;
    CI_REQUIRE(w->s.b.ctx, stmt);
    return stmt;
}

static bool
is_of_rows(Walk *w, const CiStmt *loop)
{
    return fold_in(w, loop)->order.ninner > 0;
}

static CiStmt *
first_of_rows(Walk *w)
{
    CiStmt *loop = w->loops.first;
    while (!is_of_rows(w, loop))
        loop = loop->next;
    return loop;
}

/* ---- rows ---- */

static void
sum_up(void *arg, CiStmt *stmt)
{
    Walk *w = arg;
    if (stmt->kind != CI_STMT_fold) {
        ci_build_move(&w->s.b, stmt);
        return;
    }
    ci_split_fold_sums(&w->s, stmt);
    w->s.npartials += stmt->ninto;
}

/* Of a row nothing else is done by a unit. */
static void
take_part(void *arg, CiStmt *stmt)
{
    Walk *w = arg;
    if (stmt->kind != CI_STMT_fold)
        return;
    ci_split_fold_chunk(&w->s, stmt, w->first, w->count);
    w->s.npartials += stmt->ninto;
}

/* Copies the statements of a row; `rewrite` emits the replacement of each statement. */
static CiStmts
rows_again(Walk *w, void (*rewrite)(void *arg, CiStmt *stmt))
{
    CiBuild *b = &w->s.b;
    CiAt same = {.lanes = 1};
    CiStmts all = {0};
    w->s.npartials = 0;
    CiStmts *outside = ci_build_enter(b, &all);
    for (const CiStmt *loop = w->loops.first; loop; loop = loop->next) {
        CiStmts body = {0};
        if (!is_of_rows(w, loop))
            continue;
        ci_build_enter(b, &body);
        ci_build_at(b, &loop->body, &same);
        ci_build_rewrite(b, &body, rewrite, w);
        ci_build_enter(b, &all);
        ci_build_move_all(b, &body);
    }
    ci_build_leave(b, outside);
    return all;
}

static void
finish_rows(Walk *w, const CiProc *proc)
{
    CiBuild *b = &w->s.b;
    const CiExpr *row = first_of_rows(w)->vars[0];
    b->proc = ci_split_new_finish(b->procs, proc);
    b->to = &b->proc->body;
    CiPiece tile = ci_build_pieces(b, "t", first_of_rows(w)->extents[0], number(w, CI_MARGINS_ROWS), CI_RUN_parallel);
    CiStmts body = rows_again(w, sum_up);
    CiStmt *lanes = ci_build_for(b, "r", tile.count, CI_RUN_vector);
    ci_build_enter(b, &lanes->body);
    ci_build_iteration(b, &body, row, plus(w, tile.first, lanes->vars[0]));
}

/* Prefetches the elements that a load takes from the row: the hardware does not predict this
 * access. */
static void
fetch(Walk *w, const CiStmt *fold, const CiStmt *load, const CiExpr *row_var, const CiExpr *row)
{
    CiBuild *b = &w->s.b;
    const CiMemory *memory = load->at.memory;
    const CiExpr *rest = ci_build_far_row(b, &load->at, fold->vars[0]),
                 *across = number(w, CI_CACHE_LINE / (int64_t)ci_dtype_size(memory->dtype));
    if (!rest)
        return;
    CiStmt *lines = ci_build_for(b, "f", ci_expr_ceildiv(b->sym, w->count, across), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &lines->body);
    const CiExpr *at = plus(w, w->first, ci_expr_mul(b->sym, lines->vars[0], across)),
                 *begin = ci_expr_substitute(b->sym, rest, 1, &row_var, &row);
    ci_build_add(b, CI_STMT_prefetch)->at =
        (CiAccess){.memory = load->at.memory, .index = plus(w, begin, at)};
    ci_build_leave(b, outside);
}

/* A row's part in the units' memory, before it is its turn. */
static void
fetch_row(Walk *w, const CiExpr *row)
{
    for (const CiStmt *loop = w->loops.first; loop; loop = loop->next) {
        const CiStmt *fold = fold_in(w, loop);
        for (const CiStmt *stmt = fold->body.first; stmt && is_of_rows(w, loop); stmt = stmt->next)
            if (stmt->op == CI_OP_load)
                fetch(w, fold, stmt, loop->vars[0], row);
    }
}

/* ---- columns ---- */

/* Calls act for each store of a fold's result, with the number of the fold. */
static void
each_store(Walk *w, const CiStmt *loop, const CiExpr *column,
           void (*act)(Walk *w, CiMemory *memory, const CiExpr *at, int *values, int k),
           int *values)
{
    int k = 0;
    for (const CiStmt *stmt = loop->body.first; stmt; stmt = stmt->next)
        if (stmt->kind == CI_STMT_store)
            act(w, stmt->at.memory,
                ci_expr_substitute(w->s.b.sym, stmt->at.index, 1, &loop->vars[0], &column), values,
                k++);
    CI_REQUIRE(w->s.b.ctx, k == fold_in(w, loop)->nops);
}

static void
load_column(Walk *w, CiMemory *memory, const CiExpr *at, int *values, int k)
{
    values[k] = ci_build_load(&w->s.b, memory, at, 1);
}

static void
store_column(Walk *w, CiMemory *memory, const CiExpr *at, int *values, int k)
{
    ci_build_store(&w->s.b, memory, at, values[k]);
}

/* Into a loop over the columns of the unit; its column in *column. */
static CiStmts *
enter_columns(Walk *w, const CiExpr **column)
{
    CiStmt *lanes = ci_build_for(&w->s.b, "j", w->count, CI_RUN_vector);
    *column = plus(w, w->first, lanes->vars[0]);
    return ci_build_enter(&w->s.b, &lanes->body);
}

static void
begin_columns(Walk *w, const CiStmt *loop)
{
    CiBuild *b = &w->s.b;
    const CiStmt *fold = fold_in(w, loop);
    const CiExpr *column;
    int *values = CI_NEW_ARRAY(b->ctx, int, fold->nops + 1);
    CiStmts *outside = enter_columns(w, &column);
    for (int k = 0; k < fold->nops; k++) {
        CiDtype dtype = fold->into[k]->dtype;
        values[k] = ci_build_const(b, ci_type_of(dtype, 1),
                                   ci_reduction_of_nothing(fold->ops[k], 0, dtype));
    }
    each_store(w, loop, column, store_column, values);
    ci_build_leave(b, outside);
}

static void
add_to_columns(Walk *w, const CiStmt *loop, const CiExpr *first, int count)
{
    CiBuild *b = &w->s.b;
    const CiStmt *fold = fold_in(w, loop);
    const CiExpr *column;
    int *values = CI_NEW_ARRAY(b->ctx, int, fold->nops + 1);
    CiStmts *outside = enter_columns(w, &column);
    each_store(w, loop, column, load_column, values);
    for (int r = 0; r < count; r++) {
        const CiExpr *from[] = {loop->vars[0], fold->vars[0]},
                     *to[] = {column, plus(w, first, number(w, r))};
        CiAt at = {2, from, to, NULL, 1, NULL, 1};
        const int *lifted = ci_build_at(b, &fold->body, &at);
        for (int k = 0; k < fold->nops; k++)
            ci_reduction_of(fold->ops[k])->step(b, fold->ops[k], 1, &values[k], &lifted[k]);
    }
    each_store(w, loop, column, store_column, values);
    ci_build_leave(b, outside);
}

/* ---- units ---- */

static void
each_column_loop(Walk *w, const CiExpr *first, int count)
{
    for (const CiStmt *loop = w->loops.first; loop; loop = loop->next)
        if (!is_of_rows(w, loop) && count)
            add_to_columns(w, loop, first, count);
        else if (!is_of_rows(w, loop))
            begin_columns(w, loop);
}

/* `groups` times a few rows, from row `from` on. */
static void
traverse_rows(Walk *w, const CiStmts *body, int64_t from, int64_t groups, int count)
{
    CiBuild *b = &w->s.b;
    const CiExpr *row = first_of_rows(w)->vars[0];
    if (!groups)
        return;
    CiStmt *group = ci_build_for(b, "g", number(w, groups), CI_RUN_serial);
    CiStmts *outside = ci_build_enter(b, &group->body);
    const CiExpr *first =
        plus(w, ci_expr_mul(b->sym, group->vars[0], number(w, count)), number(w, from));
    CiStmt *rows = ci_build_for(b, "r", number(w, count), CI_RUN_serial);
    CiStmts *inside = ci_build_enter(b, &rows->body);
    fetch_row(w, plus(w, plus(w, first, rows->vars[0]), number(w, count)));
    ci_build_iteration(b, body, row, plus(w, first, rows->vars[0]));
    ci_build_leave(b, inside);
    each_column_loop(w, first, count);
    ci_build_leave(b, outside);
}

void
ci_margins_in_one_pass(CiBuild *b)
{
    CiProc *proc = b->proc;
    Walk w = {.s = {.b = *b, .chunks = proc->head.chunks}, .loops = proc->body};
    CiStmt *rows = first_of_rows(&w);
    w.s.loops[w.s.nloops++] = rows;
    w.s.chunk = ci_expr_index(b->sym, ci_build_name(&w.s.b, "c"), w.s.chunks);
    finish_rows(&w, proc);
    proc->body = (CiStmts){0};
    w.s.b.proc = proc;
    w.s.b.to = &proc->body;
    CiStmt *units = ci_build_loop(&w.s.b, w.s.chunk, w.s.chunks, CI_RUN_parallel);
    ci_build_enter(&w.s.b, &units->body);
    w.count = ci_split_chunk_of(&w.s, fold_in(&w, rows), &w.first);
    CiStmts body = rows_again(&w, take_part);
    int64_t height = rows->extents[0]->low, rows_at_once = CI_CHOOSE(b, margin_jam),
            groups = height / rows_at_once;
    each_column_loop(&w, NULL, 0);
    traverse_rows(&w, &body, 0, groups, (int)rows_at_once);
    traverse_rows(&w, &body, groups * rows_at_once, height % rows_at_once, 1);
}
