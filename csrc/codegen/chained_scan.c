/* Chained scan (StreamScan: Yan, Long, Zhang, PPoPP 2013): a long loop that scans or compresses ->
 * parts, each of which waits until the previous part has published its running prefix.
 *
 * If the prefix is published when a part starts, the part runs over its elements once and publishes
 * its own prefix at the end. Otherwise the part first computes its total, which also brings its
 * elements into cache, and keeps the total; then it waits, publishes prefix + total for the next
 * part, and runs. So a single thread reads every element once. A part that has waited too long is
 * restarted with its total known. If computing totals is much cheaper than running, every part
 * computes its total first, so that no part waits for another one to run. */
#include "codegen/split.h"
#include "analysis/choices.h"

typedef struct Chain {
    CiRunner r;
    CiMemory *running_prefix[CI_MAX_CELLS]; /* from part to part, for each cell: the first element */
    CiMemory *totals[CI_MAX_CELLS]; /* by part: what it adds, where that is known */
    CiMemory *known;                 /* by part: whether it is */
    CiMemory *ends[CI_MAX_CELLS];   /* compresses: stores go before this; else NULL */
} Chain;

static const CiExpr *
zero(Chain *c)
{
    return ci_expr_const(c->r.b.sym, 0);
}

static CiStmt *
find_pack(Chain *c, const CiCell *cell)
{
    CiStmt *pack = c->r.loop->body.first;
    while (pack->kind != CI_STMT_call || pack->cell != cell->memory)
        pack = pack->next;
    return pack;
}

static void
add_memories(Chain *c)
{
    CiBuild *b = &c->r.b;
    const CiExpr *one = ci_expr_const(b->sym, 1);
    for (int k = 0; k < c->r.ncells; k++) {
        const CiCell *cell = &c->r.cells[k];
        c->running_prefix[k] = ci_split_add_partial(b, cell->memory->dtype, c->r.chunks, 2 * k);
        c->totals[k] = ci_split_add_partial(b, cell->memory->dtype, c->r.chunks, 2 * k + 1);
        if (cell->is_count)
            c->ends[k] = ci_build_alloc(b, ci_build_name(b, "end"), CI_DTYPE_i64, 1,
                                        CI_SPACE_register, one);
    }
    c->known = ci_split_add_partial(b, CI_DTYPE_bool, c->r.chunks, 2 * c->r.ncells);
}

/* A cell starts from the published prefix. */
static int
begin_cell(Chain *c, int k)
{
    int base = ci_build_load(&c->r.b, c->running_prefix[k], zero(c), 1);
    ci_build_store(&c->r.b, c->r.cells[k].memory, zero(c), base);
    return base;
}

/* The elements that a compress has space for. */
static const CiExpr *
capacity(Chain *c, const CiCell *cell)
{
    return ci_expr_extent(c->r.b.sym, find_pack(c, cell)->limit);
}

/* Its turn has come: what is packed ends where there is no more room. */
static void
begin_in_order(Chain *c)
{
    CiBuild *b = &c->r.b;
    for (int k = 0; k < c->r.ncells; k++) {
        const CiCell *cell = &c->r.cells[k];
        begin_cell(c, k);
        if (cell->is_count)
            ci_build_store(b, c->ends[k], zero(c), ci_build_index(b, capacity(c, cell)));
    }
}

static void
find_totals(Chain *c)
{
    CiBuild *b = &c->r.b;
    int is_known = ci_build_load(b, c->known, c->r.chunk, 1);
    CiStmt *test = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is_not, is_known);
    CiStmts *outside = ci_build_enter(b, &test->body);
    CiMemory **totals = ci_running_add_totals(&c->r);
    for (int k = 0; k < c->r.ncells; k++)
        ci_build_store(b, c->totals[k], c->r.chunk, ci_build_load(b, totals[k], zero(c), 1));
    int yes = ci_build_const(b, ci_type_of(CI_DTYPE_bool, 1), (CiConst){.i = 1});
    ci_build_store(b, c->known, c->r.chunk, yes);
    ci_build_leave(b, outside);
}

/* Starts a part before its predecessor has run: computes its totals, waits for the prefix and
 * publishes prefix + total. The output of a compress ends where that of the next part begins, or at
 * the end of its capacity. */
static void
begin_early(Chain *c)
{
    CiBuild *b = &c->r.b;
    find_totals(c);
    ci_build_add(b, CI_STMT_wait)->expr = c->r.chunk;
    for (int k = 0; k < c->r.ncells; k++) {
        const CiCell *cell = &c->r.cells[k];
        CiType type = ci_type_of(cell->memory->dtype, 1);
        const int args[] = {begin_cell(c, k), ci_build_load(b, c->totals[k], c->r.chunk, 1)};
        int next = ci_build_let(b, type, ci_op_combine(cell->fold), 2, args);
        ci_build_store(b, c->running_prefix[k], zero(c), next);
        if (!cell->is_count)
            continue;
        const int ends[] = {next, ci_build_index(b, capacity(c, cell))};
        ci_build_store(b, c->ends[k], zero(c), ci_build_let(b, type, CI_OP_minimum, 2, ends));
    }
    ci_build_add(b, CI_STMT_publish)->expr = c->r.chunk;
}

static void
limit_packs(Chain *c)
{
    CiBuild *b = &c->r.b;
    for (int k = 0; k < c->r.ncells; k++) {
        if (!c->ends[k])
            continue;
        const CiCell *cell = &c->r.cells[k];
        CiStmt *pack = find_pack(c, cell);
        const CiExpr *most = ci_expr_add(b->sym, capacity(c, cell), ci_expr_const(b->sym, 1));
        pack->limit = ci_build_bind(b, ci_build_load(b, c->ends[k], zero(c), 1), most);
    }
}

static void
hand_on(Chain *c)
{
    CiBuild *b = &c->r.b;
    for (int k = 0; k < c->r.ncells; k++)
        ci_build_store(b, c->running_prefix[k], zero(c),
                       ci_build_load(b, c->r.cells[k].memory, zero(c), 1));
    ci_build_add(b, CI_STMT_publish)->expr = c->r.chunk;
}

/* ---- what asking costs ---- */

static int64_t
bytes_of(const CiStmt *stmt)
{
    return stmt->at.memory && stmt->at.memory->space == CI_SPACE_global
               ? ci_dtype_size(stmt->at.memory->dtype)
               : 0;
}

/* Bytes of an element that are read to know what it adds. */
static int64_t
bytes_asked(Chain *c)
{
    bool *is_needed = CI_NEW_ARRAY(c->r.b.ctx, bool, c->r.b.proc->nvalues + 1);
    const CiStmt **stmts = NULL;
    int count = 0, capacity = 0;
    int64_t bytes = 0;
    for (int k = 0; k < c->r.ncells; k++)
        is_needed[c->r.cells[k].value] = true;
    for (const CiStmt *stmt = c->r.loop->body.first; stmt; stmt = stmt->next)
        CI_PUSH(c->r.b.ctx, stmts, count, capacity, stmt);
    while (count-- > 0) {
        const CiStmt *let = stmts[count];
        if (let->value < 0 || !is_needed[let->value])
            continue;
        for (int a = 0; a < let->nargs; a++)
            is_needed[let->args[a]] = true;
        bytes += bytes_of(let);
    }
    return bytes;
}

/* Of what counts, which begins with 0. */
static bool
is_cheap(Chain *c)
{
    int64_t bytes = 0;
    for (int k = 0; k < c->r.ncells; k++)
        if (!c->r.cells[k].is_count)
            return false;
    for (const CiStmt *stmt = c->r.loop->body.first; stmt; stmt = stmt->next)
        bytes += bytes_of(stmt);
    return CI_CHOOSE(&c->r.b, chain_byte_ratio) * bytes_asked(c) <= bytes;
}

/* ---- parts ---- */

/* The value that says whether the part's turn has come; -1 where that is not asked. */
static int
begin(Chain *c)
{
    CiBuild *b = &c->r.b;
    if (is_cheap(c)) {
        begin_early(c);
        return -1;
    }
    int is_called = ci_build_let(b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_turn, 0, NULL);
    b->to->last->expr = c->r.chunk;
    CiStmt *turn = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is, is_called);
    CiStmts *outside = ci_build_enter(b, &turn->body);
    begin_in_order(c);
    ci_build_enter(b, &turn->other);
    begin_early(c);
    ci_build_leave(b, outside);
    return is_called;
}

void
ci_chain(CiBuild *build)
{
    CiProc *proc = build->proc;
    if (!proc->head.is_chained)
        return;
    Chain chain = {.r = ci_running_find(build)}, *c = &chain;
    CiBuild *b = &c->r.b;
    CiStmts whole = proc->body;
    proc->body = (CiStmts){0};
    ci_running_begin_chunk(&c->r);
    CiStmts rest = ci_running_move_front(&c->r, &whole);
    add_memories(c);
    int is_called = begin(c);
    limit_packs(c);
    ci_running_pass(&c->r);
    if (is_called >= 0) {
        CiStmt *turn = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is, is_called);
        CiStmts *outside = ci_build_enter(b, &turn->body);
        hand_on(c);
        ci_build_leave(b, outside);
    }
    ci_running_end(&c->r, rest);
}
