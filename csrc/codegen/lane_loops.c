/* Makes loops over lanes for machines whose threads have no vector registers: marks accesses that
 * move all lanes at once, and neighbouring statements that one loop executes (proc_lane_loops.c).
 *
 *   %1: f32x4 = load a[4*t]             %1: f32x4 = load a[4*t] aligned
 *   %2: f32x4 = sqrt %1          ->     %2: f32x4 = sqrt %1 joined
 *   store b[4*t] = %2                   store b[4*t] aligned = %2 joined
 *
 * A load of a[4*t + 1] that is in one loop with aligned loads of a[4*t] and a[4*t + 4] has their lanes (shifted). */
#include "base/map.h"
#include "codegen/codegen.h"

/* The last statement of the loop that begins at `first`. A loop ends with a statement in lanes. */
static CiStmt *
end_of_loop(const CiBuild *b, CiStmt *first)
{
    CiStmt *last = first;
    for (CiStmt *stmt = first->next; stmt && ci_lane_loop_takes(b->proc, first, stmt); stmt = stmt->next)
        if (ci_stmt_is_in_lanes(b->proc, stmt))
            last = stmt;
    return last;
}

static void
mark_block(CiBuild *b, const CiMap *lane_symbols, CiStmts *block)
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        stmt->at.is_aligned = ci_stmt_may_be_aligned(b->sym, b->proc, lane_symbols, stmt);
        mark_block(b, lane_symbols, &stmt->body);
        mark_block(b, lane_symbols, &stmt->other);
    }
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        CiStmt *last = ci_stmt_is_in_lanes(b->proc, stmt) ? end_of_loop(b, stmt) : stmt;
        for (; stmt != last; stmt = stmt->next)
            stmt->next->in_lane_loop = true;
    }
    const CiStmt *first = NULL;
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        first = stmt->in_lane_loop ? first : stmt;
        stmt->at.is_shifted = ci_lane_loop_shift(b->sym, lane_symbols, first, stmt).late;
    }
}

void
ci_lane_loops(CiBuild *b)
{
    mark_block(b, ci_proc_lane_symbols(b->ctx, b->proc), &b->proc->body);
}
