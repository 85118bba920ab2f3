/* Verifies units that wait for the one before.
 *
 * Units of a parallel loop start in order, so the predecessor has started; it must publish, or end
 * the kernel. So on every path a unit waits once, unless its turn has already come, and publishes
 * once after that. Memory that units pass on is accessed only between the two; memory that belongs
 * to a unit is accessed at the element of its number. A wait may end the unit, which is then
 * restarted: before the wait, nothing is stored that others can see. */
#include "base/map.h"
#include "ir/proc_private.h"

typedef enum Stand { STAND_before, STAND_inside, STAND_after } Stand;

/* Two ways go through a unit: its turn had not come when it asked, or it had. A unit that never
 * asks goes the first. */
typedef struct Tickets {
    CiProcVerifier *v;
    const CiExpr *unit;
    int is_called;          /* the value of its question, or -1 */
    int nblocks, nloops; /* around, those of the unit's own loop left out */
    CiMap *own, *handed_on; /* memories that units share */
    Stand ways[2];
    bool is_open[2]; /* ways that come to where we are */
} Tickets;

static bool
takes_tickets(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_wait || stmt->kind == CI_STMT_publish ||
           (stmt->kind == CI_STMT_let && stmt->op == CI_OP_turn);
}

static void
require(Tickets *t, const CiStmt *stmt, bool holds, const char *why)
{
    if (!holds)
        ci_proc_fail(t->v, stmt, why);
}

static void
step(Tickets *t, const CiStmt *stmt, Stand from, Stand to, const char *why)
{
    require(t, stmt, stmt->expr == t->unit, "a turn is of another unit");
    for (int way = 0; way < 2; way++) {
        require(t, stmt, !t->is_open[way] || t->ways[way] == from, why);
        t->ways[way] = t->is_open[way] ? to : t->ways[way];
    }
}

static void
note_query(Tickets *t, const CiStmt *let)
{
    bool is_first = t->is_called < 0 && !t->nblocks && t->ways[0] == STAND_before;
    require(t, let, is_first && let->expr == t->unit, "a unit asks once whether its turn has come");
    t->is_called = let->value;
    t->ways[1] = STAND_inside;
}

/* Of memory that units share each element is one unit's own, or all of it is handed on. */
static void
require_inside(Tickets *t, const CiStmt *stmt)
{
    bool is_own = stmt->at.index == t->unit;
    CiMap *others = is_own ? t->handed_on : t->own;
    ci_map_put(is_own ? t->own : t->handed_on, CI_KEY(stmt->at.memory), t);
    require(t, stmt, !ci_map_find(others, CI_KEY(stmt->at.memory)),
            "what is a unit's own is handed on");
    if (is_own)
        return;
    for (int way = 0; way < 2; way++)
        require(t, stmt, !t->is_open[way] || t->ways[way] == STAND_inside,
                "what units hand on is touched out of turn");
}

/* A unit that waits may be restarted. */
static void
require_after_wait(Tickets *t, const CiStmt *stmt)
{
    for (int way = 0; way < 2; way++)
        require(t, stmt, !t->is_open[way] || t->ways[way] != STAND_before,
                "a unit stores before it waits");
}

static void walk(Tickets *t, const CiStmts *block);

/* One branch is a way's own, or what is done is the same in both. */
static void
walk_if(Tickets *t, const CiStmt *stmt)
{
    const Tickets outside = *t;
    const CiCondition *test = &stmt->tests[0];
    bool is_asked = stmt->ntests == 1 && test->compare >= CI_COMPARE_is && t->is_called >= 0 &&
                    test->value == t->is_called;
    if (is_asked)
        t->is_open[test->compare == CI_COMPARE_is ? 0 : 1] = false;
    walk(t, &stmt->body);
    const Tickets after = *t;
    for (int way = 0; way < 2; way++) {
        bool is_closed = is_asked && !t->is_open[way];
        t->is_open[way] = outside.is_open[way] && (!is_asked || is_closed);
        t->ways[way] = outside.ways[way];
    }
    walk(t, &stmt->other);
    for (int way = 0; way < 2; way++) {
        bool is_alike = is_asked || after.ways[way] == t->ways[way];
        require(t, stmt, is_alike, "a unit takes its turn in one branch alone");
        t->ways[way] = after.is_open[way] ? after.ways[way] : t->ways[way];
        t->is_open[way] = outside.is_open[way];
    }
}

static void
walk_loop(Tickets *t, const CiStmt *stmt)
{
    const Tickets outside = *t;
    walk(t, &stmt->body);
    for (int way = 0; way < 2; way++)
        require(t, stmt, t->ways[way] == outside.ways[way], "a unit takes its turn in a loop");
}

static void
walk_one(Tickets *t, const CiStmt *stmt)
{
    CiSpace space = stmt->at.memory ? stmt->at.memory->space : CI_SPACE_register;
    if (space == CI_SPACE_partials)
        require_inside(t, stmt);
    if (space == CI_SPACE_global && stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_prefetch)
        require_after_wait(t, stmt);
    if (stmt->kind == CI_STMT_wait)
        step(t, stmt, STAND_before, STAND_inside, "a unit waits that need not");
    else if (stmt->kind == CI_STMT_publish)
        step(t, stmt, STAND_inside, STAND_after, "a unit publishes out of turn");
    else if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_turn)
        note_query(t, stmt);
    else if (stmt->kind == CI_STMT_if)
        walk_if(t, stmt);
    else if (stmt->kind == CI_STMT_exit)
        require(t, stmt, t->nloops > 0, "a unit is left before it publishes");
    else if (stmt->body.first)
        walk_loop(t, stmt);
}

static void
walk(Tickets *t, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_loop = ci_stmt_is_loop(stmt) || stmt->kind == CI_STMT_fold;
        bool has_block = is_loop || stmt->kind == CI_STMT_if;
        t->nloops += is_loop;
        t->nblocks += has_block;
        walk_one(t, stmt);
        t->nloops -= is_loop;
        t->nblocks -= has_block;
    }
}

void
ci_proc_verify_turns(CiProcVerifier *v)
{
    const CiStmts *all = &v->proc->body;
    if (!ci_stmts_have(all, takes_tickets))
        return;
    const CiStmt *units = all->first;
    Tickets t = {.v = v, .is_called = -1, .is_open = {true, true}};
    t.own = ci_map_new(v->ctx);
    t.handed_on = ci_map_new(v->ctx);
    bool is_one = units && !units->next && units->kind == CI_STMT_for &&
                  units->run == CI_RUN_parallel && !units->runs && units->nvars == 1;
    require(&t, units, is_one, "units that wait are iterations of no loop that begins them in order");
    t.unit = units->vars[0];
    walk(&t, &units->body);
    for (int way = 0; way < 2; way++)
        require(&t, units, t.ways[way] == STAND_after, "a unit never publishes");
}
