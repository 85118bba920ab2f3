/* A long loop that counts or accumulates as it goes -> two procs: units that find what each part
 * adds, and units that do a part each, beginning with what those before it have added.
 *
 * Only where operations may be done in any order, so that the bits are those of one loop. */
#include "codegen/split.h"

#define MOST_CELLS 16

/* What is carried from element to element. */
typedef struct Cell {
    CiMemory *memory;
    CiOp fold; /* sum of cumsum; of a pack, which counts */
    int value; /* what an element adds: that of a scan, the mask of a pack */
    bool is_count;
} Cell;

typedef struct Runner {
    CiBuild b;
    const CiKernel *kernel;
    CiStmt *loop;
    const CiExpr *parts, *part;
    Cell cells[MOST_CELLS];
    int ncells;
    bool has_blocks; /* of threads */
} Runner;

static const CiExpr *
number(Runner *r, int64_t value)
{
    return ci_expr_const(r->b.sym, value);
}

/* ---- what runs ---- */

static void
find_cells(Runner *r)
{
    for (const CiStmt *stmt = r->loop->body.first; stmt; stmt = stmt->next) {
        bool is_pack = stmt->kind == CI_STMT_call;
        if (!stmt->cell)
            continue;
        CI_REQUIRE(r->b.ctx, r->ncells < MOST_CELLS);
        r->cells[r->ncells++] =
            (Cell){stmt->cell, is_pack ? CI_OP_sum : ci_op_alike(stmt->op, CI_OPKIND_reduce),
                   stmt->args[is_pack ? 1 : 0], is_pack};
    }
}

/* ---- parts ---- */

/* Values that do not depend on what runs. */
static CiStmts
take_values(Runner *r)
{
    CiStmts made = {0};
    bool *runs = CI_NEW_ARRAY(r->b.ctx, bool, r->b.proc->nvalues + 1);
    CiStmts *outside = ci_build_enter(&r->b, &made);
    for (const CiStmt *stmt = r->loop->body.first; stmt; stmt = stmt->next) {
        if (stmt->kind != CI_STMT_let)
            continue;
        bool depends = ci_stmt_is_running(stmt);
        for (int a = 0; a < stmt->nargs; a++)
            depends |= runs[stmt->args[a]];
        runs[stmt->value] = depends;
        if (depends)
            continue;
        CiStmt *copy = CI_NEW(r->b.ctx, CiStmt);
        *copy = *stmt;
        ci_build_move(&r->b, copy);
    }
    ci_build_leave(&r->b, outside);
    return made;
}

static void
add_yield(Runner *r, CiStmts *body)
{
    CiStmts *outside = ci_build_enter(&r->b, body);
    int values[MOST_CELLS];
    for (int k = 0; k < r->ncells; k++) {
        values[k] = r->cells[k].value;
        if (r->cells[k].is_count)
            values[k] = ci_build_let(&r->b, ci_type_of(CI_DTYPE_i64, 1), CI_OP_cast, 1, &values[k]);
    }
    ci_build_yield(&r->b, values, r->ncells);
    ci_build_leave(&r->b, outside);
}

/* How many elements this part has. */
static const CiExpr *
count_here(Runner *r, const CiExpr *first)
{
    return ci_build_named(&r->b, ci_expr_min(r->b.sym, r->kernel->split_extent,
                                             ci_expr_sub(r->b.sym, r->loop->extents[0], first)));
}

static void
add_fold(Runner *r, CiMemory **into, const CiExpr *first, const CiExpr *count)
{
    CiStmt *fold = ci_build_add(&r->b, CI_STMT_fold);
    fold->vars = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->extents = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->vars[0] = r->loop->vars[0];
    fold->extents[0] = r->loop->extents[0];
    fold->nvars = 1;
    fold->order.kind = CI_FOLD_lanes;
    fold->ops = CI_NEW_ARRAY(r->b.ctx, CiOp, r->ncells + 1);
    for (int k = 0; k < r->ncells; k++)
        fold->ops[k] = r->cells[k].fold;
    fold->into = into;
    fold->nops = fold->ninto = r->ncells;
    fold->from = first;
    fold->count = count;
    fold->body = take_values(r);
    add_yield(r, &fold->body);
}

static CiMemory *
add_partial(Runner *r, int cell)
{
    return ci_split_add_partial(&r->b, r->cells[cell].memory->dtype, r->parts, cell);
}

static void
make_parts(Runner *r, CiProc *proc)
{
    CiMemory **into = CI_NEW_ARRAY(r->b.ctx, CiMemory *, r->ncells + 1);
    proc->body = (CiStmts){0};
    r->b.proc = proc;
    r->b.to = &proc->body;
    CiStmt *units = ci_build_loop(&r->b, r->part, r->parts, CI_RUN_parallel);
    ci_build_enter(&r->b, &units->body);
    const CiExpr *first = ci_expr_mul(r->b.sym, r->part, r->kernel->split_extent),
                 *count = count_here(r, first);
    for (int k = 0; k < r->ncells; k++)
        into[k] = ci_build_alloc(&r->b, ci_build_name(&r->b, "part"), r->cells[k].memory->dtype, 1,
                                 CI_SPACE_register, number(r, 1));
    add_fold(r, into, first, count);
    for (int k = 0; k < r->ncells; k++)
        ci_build_store(&r->b, add_partial(r, k), r->part,
                       ci_build_load(&r->b, into[k], number(r, 0), 1));
}

/* ---- what they begin with ---- */

/* cell = partial[0] op … op partial[part - 1], where there are parts before this one. */
static void
begin_cell(Runner *r, const Cell *cell, CiMemory *partial)
{
    CiMemory *memory = cell->memory;
    const CiExpr *zero = number(r, 0), *one = number(r, 1);
    CiStmt *later = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, r->part);
    CiStmts *outside = ci_build_enter(&r->b, &later->body);
    ci_build_store(&r->b, memory, zero, ci_build_load(&r->b, partial, zero, 1));
    CiStmt *loop = ci_build_for(&r->b, "b", ci_expr_sub(r->b.sym, r->part, one), CI_RUN_serial);
    ci_build_enter(&r->b, &loop->body);
    const int args[] = {
        ci_build_load(&r->b, memory, zero, 1),
        ci_build_load(&r->b, partial, ci_expr_add(r->b.sym, loop->vars[0], one), 1)};
    ci_build_store(
        &r->b, memory, zero,
        ci_build_let(&r->b, ci_type_of(memory->dtype, 1), ci_op_combine(cell->fold), 2, args));
    ci_build_leave(&r->b, outside);
}

/* The same as a fold, for machines whose threads share one out. */
static void
begin_cell_by_fold(Runner *r, const Cell *cell, CiMemory *partial)
{
    const CiExpr *zero = number(r, 0);
    CiMemory *sum = ci_build_alloc(&r->b, ci_build_name(&r->b, "before"), cell->memory->dtype, 1,
                                   CI_SPACE_register, number(r, 1));
    CiStmt *fold = ci_build_add(&r->b, CI_STMT_fold);
    fold->vars = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->extents = CI_NEW_ARRAY(r->b.ctx, const CiExpr *, 1);
    fold->ops = CI_NEW_ARRAY(r->b.ctx, CiOp, 1);
    fold->into = CI_NEW_ARRAY(r->b.ctx, CiMemory *, 1);
    fold->vars[0] = ci_expr_index(r->b.sym, ci_build_name(&r->b, "b"), r->part);
    fold->extents[0] = r->part;
    fold->ops[0] = cell->fold;
    fold->into[0] = sum;
    fold->nvars = fold->nops = fold->ninto = 1;
    fold->order.kind = CI_FOLD_lanes;
    CiStmts *outside = ci_build_enter(&r->b, &fold->body);
    int value = ci_build_load(&r->b, partial, fold->vars[0], 1);
    ci_build_yield(&r->b, &value, 1);
    ci_build_leave(&r->b, outside);
    CiStmt *later = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_less, zero, r->part);
    ci_build_enter(&r->b, &later->body);
    ci_build_store(&r->b, cell->memory, zero, ci_build_load(&r->b, sum, zero, 1));
    ci_build_leave(&r->b, outside);
}

static CiStmts
cut_behind(CiStmts *block, CiStmt *last)
{
    CiStmts rest = {last->next, last->next ? block->last : NULL};
    last->next = NULL;
    block->last = last;
    return rest;
}

/* What is packed here ends where that of the next part begins, or where there is no more room. */
static void
end_pack(Runner *r, const CiStmts *body, const Cell *cell, CiMemory *partial)
{
    CiStmt *pack = body->first;
    while (pack && (pack->kind != CI_STMT_call || pack->cell != cell->memory))
        pack = pack->next;
    if (!pack)
        return;
    const int args[] = {ci_build_load(&r->b, cell->memory, number(r, 0), 1),
                        ci_build_load(&r->b, partial, r->part, 1)};
    CiType type = ci_type_of(cell->memory->dtype, 1);
    const int ends[] = {ci_build_let(&r->b, type, CI_OP_add, 2, args),
                        ci_build_index(&r->b, pack->limit)};
    pack->limit = ci_build_bind(&r->b, ci_build_let(&r->b, type, CI_OP_minimum, 2, ends),
                                ci_expr_add(r->b.sym, pack->limit, number(r, 1)));
}

/* Cells and what stands before the loop; the loop over this part's elements; and behind it, in the
 * last part alone, what ends it. */
static void
make_finish(Runner *r, CiProcs *procs, const CiProc *proc)
{
    CiStmts whole = proc->body;
    CiProc *finish = ci_split_new_finish(procs, proc);
    r->b.proc = finish;
    r->b.to = &finish->body;
    CiStmt *units = ci_build_loop(&r->b, r->part, r->parts, CI_RUN_parallel);
    ci_build_enter(&r->b, &units->body);
    CiMemory *partials[MOST_CELLS];
    for (int k = 0; k < r->ncells; k++)
        partials[k] = add_partial(r, k);
    const CiExpr *first = ci_expr_mul(r->b.sym, r->part, r->kernel->split_extent),
                 *count = count_here(r, first);
    CiStmts rest = cut_behind(&whole, r->loop);
    for (CiStmt *next, *stmt = whole.first; stmt != r->loop; stmt = next) {
        next = stmt->next;
        ci_build_move(&r->b, stmt);
    }
    for (int k = 0; k < r->ncells; k++)
        (r->has_blocks ? begin_cell_by_fold : begin_cell)(r, &r->cells[k], partials[k]);
    for (int k = 0; k < r->ncells && !r->has_blocks; k++)
        end_pack(r, &r->loop->body, &r->cells[k], partials[k]);
    CiStmt *loop = ci_build_for(&r->b, "j", count, CI_RUN_vector);
    CiStmts *outside = ci_build_enter(&r->b, &loop->body);
    ci_build_trip(&r->b, &r->loop->body, r->loop->vars[0],
                  ci_expr_add(r->b.sym, first, loop->vars[0]));
    ci_build_leave(&r->b, outside);
    if (!rest.first)
        return;
    CiStmt *last = ci_build_test(&r->b, CI_STMT_if, CI_COMPARE_equal, r->part,
                                 ci_expr_sub(r->b.sym, r->parts, number(r, 1)));
    last->body = rest;
}

void
ci_split_running(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    Runner r = {.b = {procs->ctx, procs->sym, proc, &proc->body, {0}},
                .kernel = proc->kernel,
                .has_blocks = family->threads > 0};
    for (CiStmt *stmt = proc->body.first; stmt && !r.loop; stmt = stmt->next)
        if (stmt->kind == CI_STMT_for)
            r.loop = stmt;
    CI_REQUIRE(procs->ctx, r.loop);
    find_cells(&r);
    r.parts = ci_expr_ceildiv(procs->sym, r.loop->extents[0], r.kernel->split_extent);
    r.part = ci_expr_index(procs->sym, ci_build_name(&r.b, "c"), r.parts);
    make_finish(&r, procs, proc); /* copies the loop's body, whose values the parts take next */
    make_parts(&r, proc);
}
