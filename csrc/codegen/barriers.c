/* What threads of a block have stored, others see behind a barrier: one stands in front of each
 * statement of a block that touches what another has stored since the last one, or stores what
 * another may still read. Of each statement it counts what memory it touches, not which element. */
#include "codegen/codegen.h"

#include <string.h>

typedef struct Touched {
    const CiMemory **loaded, **stored;
    int nloaded, caploaded, nstored, capstored;
} Touched;

typedef struct Barriers {
    CiBuild b;
    Touched since; /* the last barrier */
} Barriers;

typedef struct Look {
    CiContext *ctx;
    Touched *touched;
} Look;

static bool
holds(const CiMemory *const *list, int count, const CiMemory *memory)
{
    for (int k = 0; k < count; k++)
        if (list[k] == memory)
            return true;
    return false;
}

static void
note_memory(Look *look, const CiMemory *memory, bool is_store, bool reads)
{
    Touched *t = look->touched;
    if (!memory || (memory->space != CI_SPACE_global && memory->space != CI_SPACE_shared))
        return;
    if (is_store && !holds(t->stored, t->nstored, memory))
        CI_PUSH(look->ctx, t->stored, t->nstored, t->capstored, memory);
    if (reads && !holds(t->loaded, t->nloaded, memory))
        CI_PUSH(look->ctx, t->loaded, t->nloaded, t->caploaded, memory);
}

/* Where memories change places, each counts as the other. */
static void
note(void *arg, const CiStmt *stmt)
{
    Look *look = arg;
    bool is_store = stmt->kind != CI_STMT_let, is_swap = stmt->kind == CI_STMT_swap;
    note_memory(look, stmt->at.memory, is_store, !is_store || stmt->op != CI_OP_none);
    note_memory(look, stmt->cell, true, true);
    for (int k = 0; k < stmt->ninto; k++)
        note_memory(look, stmt->into[k], true, false);
    note_memory(look, is_swap ? stmt->memory : NULL, true, true);
    note_memory(look, is_swap ? stmt->partner : NULL, true, true);
}

static void
note_all(Barriers *s, const CiStmt *stmt, Touched *touched)
{
    CiStmt alone = *stmt;
    CiStmts one = {&alone, &alone};
    Look look = {s->b.ctx, touched};
    alone.next = NULL;
    ci_stmts_visit(&one, note, &look);
}

static bool
meet(const CiMemory *const *list, int count, const Touched *other)
{
    for (int k = 0; k < count; k++)
        if (holds(other->stored, other->nstored, list[k]) ||
            holds(other->loaded, other->nloaded, list[k]))
            return true;
    return false;
}

static void place(void *arg, CiStmt *stmt);

/* What comes after either way has come after both. */
static void
place_inside(Barriers *s, CiStmt *stmt)
{
    bool is_loop = ci_stmt_is_loop(stmt);
    if (is_loop) /* a trip comes after another */
        note_all(s, stmt, &s->since);
    Touched before = s->since, after = {0};
    ci_build_rewrite(&s->b, &stmt->body, place, s);
    note_all(s, stmt, &after);
    s->since = before;
    ci_build_rewrite(&s->b, &stmt->other, place, s);
    s->since = before;
    note_all(s, stmt, &s->since);
    ci_build_move(&s->b, stmt);
}

/* Nothing is touched; what was of the one is now of the other. */
static void
place_swap(Barriers *s, CiStmt *stmt)
{
    Touched *t = &s->since;
    bool is_stored = holds(t->stored, t->nstored, stmt->memory) ||
                     holds(t->stored, t->nstored, stmt->partner),
         is_loaded = holds(t->loaded, t->nloaded, stmt->memory) ||
                     holds(t->loaded, t->nloaded, stmt->partner);
    Look look = {s->b.ctx, t};
    note_memory(&look, stmt->memory, is_stored, is_loaded);
    note_memory(&look, stmt->partner, is_stored, is_loaded);
    ci_build_move(&s->b, stmt);
}

static void
place(void *arg, CiStmt *stmt)
{
    Barriers *s = arg;
    if (stmt->kind == CI_STMT_swap) {
        place_swap(s, stmt);
        return;
    }
    bool is_block = stmt->kind == CI_STMT_loop || stmt->kind == CI_STMT_if ||
                    (stmt->kind == CI_STMT_for && stmt->run != CI_RUN_thread);
    Touched here = {0};
    note_all(s, stmt, &here);
    if (is_block) {
        place_inside(s, stmt);
        return;
    }
    if (meet(s->since.stored, s->since.nstored, &here) ||
        meet(here.stored, here.nstored, &s->since)) {
        ci_build_add(&s->b, CI_STMT_barrier);
        s->since = (Touched){0};
    }
    note_all(s, stmt, &s->since);
    ci_build_move(&s->b, stmt);
}

void
ci_barriers(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    (void)family;
    Barriers s = {.b = {procs->ctx, procs->sym, proc, NULL, {0}}};
    CiStmt *blocks = proc->body.first;
    if (blocks && blocks->run == CI_RUN_grid)
        ci_build_rewrite(&s.b, &blocks->body, place, &s);
}
