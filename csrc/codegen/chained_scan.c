/* Chained scan (StreamScan: Yan, Long, Zhang, PPoPP 2013): a long loop that scans or compresses ->
 * parts, each of which waits until the previous part has published its running prefix.
 *
 * If the prefix is published when a part starts, the part runs over its elements once and publishes
 * its own prefix at the end. Otherwise the part first computes its total, which also brings its
 * elements into cache, and keeps the total; then it waits, publishes prefix + total for the next
 * part, and runs. So a single thread reads every element once. A part that has waited too long is
 * restarted with its total known. If computing totals is much cheaper than running, every part
 * computes its total first, so that no part waits for another one to run. */
#include "codegen/scan.h"
#include "codegen/split.h"

typedef struct ChainedScan {
    CiScan scan;               /* first: what the engine is given */
    CiMemory *running_prefix[CI_MAX_CELLS]; /* the cells that a part starts from: one element, which each part replaces */
    CiMemory *totals[CI_MAX_CELLS]; /* by part: what it adds to the cell, if it is known */
    CiMemory *known;           /* by part: true if its totals are known */
    CiMemory *ends[CI_MAX_CELLS]; /* of a compress: stores go before this; else NULL */
    int is_called;             /* the value that says that the part's prefix is published; -1: it always waits */
} ChainedScan;

static const CiExpr *
zero(const CiScan *s)
{
    return ci_expr_const(s->b.sym, 0);
}

static CiStmt *
find_compress(const CiScan *s, const CiCell *cell)
{
    CiStmt *stmt = s->loop->body.first;
    while (stmt->kind != CI_STMT_call || stmt->cell != cell->memory)
        stmt = stmt->next;
    return stmt;
}

static void
add_memories(ChainedScan *c)
{
    CiScan *s = &c->scan;
    for (int k = 0; k < s->ncells; k++) {
        CiDtype dtype = s->cells[k].memory->dtype;
        c->running_prefix[k] = ci_split_add_partial(&s->b, dtype, s->parts, 2 * k);
        c->totals[k] = ci_split_add_partial(&s->b, dtype, s->parts, 2 * k + 1);
        if (s->cells[k].is_count)
            c->ends[k] = ci_build_alloc(&s->b, ci_build_name(&s->b, "end"), CI_DTYPE_i64, 1, CI_SPACE_register,
                                        ci_expr_const(s->b.sym, 1));
    }
    c->known = ci_split_add_partial(&s->b, CI_DTYPE_bool, s->parts, 2 * s->ncells);
}

/* A cell starts from the published prefix. */
static int
begin_cell(ChainedScan *c, int k)
{
    CiScan *s = &c->scan;
    int base = ci_build_load(&s->b, c->running_prefix[k], zero(s), 1);
    ci_build_store(&s->b, s->cells[k].memory, zero(s), base);
    return base;
}

/* The elements that a compress has space for. */
static const CiExpr *
capacity(const CiScan *s, const CiCell *cell)
{
    return ci_expr_extent(s->b.sym, find_compress(s, cell)->limit);
}

/* The prefix is published: the output of a compress ends at the end of its capacity. */
static void
begin_in_order(ChainedScan *c)
{
    CiScan *s = &c->scan;
    for (int k = 0; k < s->ncells; k++) {
        begin_cell(c, k);
        if (c->ends[k])
            ci_build_store(&s->b, c->ends[k], zero(s), ci_build_index(&s->b, capacity(s, &s->cells[k])));
    }
}

static void
find_totals(ChainedScan *c)
{
    CiScan *s = &c->scan;
    CiBuild *b = &s->b;
    int is_known = ci_build_load(b, c->known, s->part, 1);
    CiStmt *test = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is_not, is_known);
    CiStmts *outside = ci_build_enter(b, &test->body);
    CiMemory *const *totals = s->policy->total(s);
    for (int k = 0; k < s->ncells; k++)
        ci_build_store(b, c->totals[k], s->part, ci_build_load(b, totals[k], zero(s), 1));
    int yes = ci_build_const(b, ci_type_of(CI_DTYPE_bool, 1), (CiConst){.i = 1});
    ci_build_store(b, c->known, s->part, yes);
    ci_build_leave(b, outside);
}

/* Starts a part before its predecessor has run: computes its totals, waits for the prefix and
 * publishes prefix + total. The output of a compress ends where that of the next part begins, or at
 * the end of its capacity. */
static void
begin_early(ChainedScan *c)
{
    CiScan *s = &c->scan;
    CiBuild *b = &s->b;
    find_totals(c);
    ci_build_add(b, CI_STMT_wait)->expr = s->part;
    for (int k = 0; k < s->ncells; k++) {
        const CiCell *cell = &s->cells[k];
        CiType type = ci_type_of(cell->memory->dtype, 1);
        const int args[] = {begin_cell(c, k), ci_build_load(b, c->totals[k], s->part, 1)};
        int next = ci_build_let(b, type, ci_op_combine(cell->fold), 2, args);
        ci_build_store(b, c->running_prefix[k], zero(s), next);
        if (!c->ends[k])
            continue;
        const int ends[] = {next, ci_build_index(b, capacity(s, cell))};
        ci_build_store(b, c->ends[k], zero(s), ci_build_let(b, type, CI_OP_minimum, 2, ends));
    }
    ci_build_add(b, CI_STMT_publish)->expr = s->part;
}

static void
limit_compresses(ChainedScan *c)
{
    CiScan *s = &c->scan;
    for (int k = 0; k < s->ncells; k++) {
        const CiCell *cell = &s->cells[k];
        if (!c->ends[k])
            continue;
        const CiExpr *most = ci_expr_add(s->b.sym, capacity(s, cell), ci_expr_const(s->b.sym, 1));
        find_compress(s, cell)->limit = ci_build_bind(&s->b, ci_build_load(&s->b, c->ends[k], zero(s), 1), most);
    }
}

/* ---- the policy ---- */

static void
carry(CiScan *s)
{
    ChainedScan *c = (ChainedScan *)s;
    CiBuild *b = &s->b;
    c->is_called = -1;
    add_memories(c);
    if (b->proc->head.totals_first) {
        begin_early(c);
    } else {
        c->is_called = ci_build_let(b, ci_type_of(CI_DTYPE_bool, 1), CI_OP_turn, 0, NULL);
        b->to->last->expr = s->part;
        CiStmt *turn = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is, c->is_called);
        CiStmts *outside = ci_build_enter(b, &turn->body);
        begin_in_order(c);
        ci_build_enter(b, &turn->other);
        begin_early(c);
        ci_build_leave(b, outside);
    }
    limit_compresses(c);
}

/* A part that did not know its total publishes the cells that it ends with. */
static void
run(CiScan *s)
{
    const ChainedScan *c = (const ChainedScan *)s;
    CiBuild *b = &s->b;
    ci_scan_run_chunk(s);
    if (c->is_called < 0)
        return;
    CiStmt *turn = ci_build_compare(b, CI_STMT_if, CI_COMPARE_is, c->is_called);
    CiStmts *outside = ci_build_enter(b, &turn->body);
    for (int k = 0; k < s->ncells; k++)
        ci_build_store(b, c->running_prefix[k], zero(s), ci_build_load(b, s->cells[k].memory, zero(s), 1));
    ci_build_add(b, CI_STMT_publish)->expr = s->part;
    ci_build_leave(b, outside);
}

static const CiScanPolicy policy = {ci_scan_enter_chunk, ci_scan_total_of_chunk, carry, run};

void
ci_chain(CiBuild *b)
{
    ChainedScan chain = {.scan = {.b = *b, .policy = &policy}};
    if (!b->proc->head.is_chained)
        return;
    ci_scan_begin_chunks(&chain.scan);
    ci_scan_add_elements(&chain.scan);
}
