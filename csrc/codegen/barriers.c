/* Inserts barriers between statements of a thread block. A barrier precedes each statement that
 * accesses elements stored by another thread since the last barrier, or that overwrites elements
 * another thread may still read.
 *
 * Accesses are compared by memory, not by element. The exception is memory that is never read: two
 * stores conflict only if they may touch the same element. */
#include "codegen/codegen.h"

#include "analysis/access.h"

#include <string.h>

/* A memory, or `lanes` of its elements from `index` on. */
typedef struct Location {
    const CiMemory *memory;
    const CiExpr *index; /* NULL: any element */
    int lanes;
} Location;

typedef struct Touched {
    const CiMemory **loaded;
    Location *stored;
    int nloaded, caploaded, nstored, capstored;
} Touched;

typedef struct Barriers {
    CiBuild b;
    const CiStmt *blocks; /* the loop over thread blocks */
    Touched since;        /* accesses since the last barrier */
} Barriers;

typedef struct Look {
    const CiBuild *b;
    Touched *touched;
} Look;

static bool
is_loaded(const Touched *t, const CiMemory *memory)
{
    for (int k = 0; k < t->nloaded; k++)
        if (t->loaded[k] == memory)
            return true;
    return false;
}

static bool
is_stored(const Touched *t, const CiMemory *memory)
{
    for (int k = 0; k < t->nstored; k++)
        if (t->stored[k].memory == memory)
            return true;
    return false;
}

static void
note_stored(Look *look, Location place)
{
    Touched *t = look->touched;
    for (int k = 0; k < t->nstored; k++)
        if (t->stored[k].memory == place.memory && t->stored[k].index == place.index &&
            t->stored[k].lanes == place.lanes)
            return;
    CI_PUSH(look->b->ctx, t->stored, t->nstored, t->capstored, place);
}

static void
note_memory(Look *look, const CiMemory *memory, bool is_store, bool reads)
{
    Touched *t = look->touched;
    if (!memory || (memory->space != CI_SPACE_global && memory->space != CI_SPACE_shared))
        return;
    if (is_store)
        note_stored(look, (Location){memory, NULL, 0});
    if (reads && !is_loaded(t, memory))
        CI_PUSH(look->b->ctx, t->loaded, t->nloaded, t->caploaded, memory);
}

static void
note_touch(void *arg, CiMemory **memory, CiTouch touch)
{
    note_memory(arg, *memory, ci_touch_stores(touch), ci_touch_loads(touch));
}

/* A swap updates both of its memories. */
static void
note(void *arg, const CiStmt *stmt)
{
    Look *look = arg;
    if (stmt->kind == CI_STMT_copy) /* `synchronize` orders it */
        return;
    bool is_plain = stmt->kind == CI_STMT_store && stmt->op == CI_OP_none && !stmt->at.stride &&
                    stmt->at.memory->space == CI_SPACE_global;
    if (is_plain)
        note_stored(look, (Location){stmt->at.memory, stmt->at.index,
                                  look->b->proc->types[stmt->args[0]].lanes});
    else
        ci_stmt_each_memory(stmt, note_touch, look);
}

static void
note_all(Barriers *s, const CiStmt *stmt, Touched *touched)
{
    Look look = {&s->b, touched};
    ci_stmt_visit(stmt, note, &look);
}

/* True if the two accesses touch different elements for any two threads and iterations of a block:
 * they have no varying symbol in common but the block's index. */
static bool
have_no_overlap(const Barriers *s, const Location *a, const Location *b)
{
    if (!a->index || !b->index)
        return false;
    for (int k = 0; k < a->index->nsymbols; k++) {
        const CiExpr *symbol = a->index->symbols[k];
        bool is_of_block = symbol == s->blocks->vars[0] || symbol->symbol_kind != CI_SYMBOL_index;
        if (!is_of_block && ci_expr_depends_on(b->index, symbol))
            return false;
    }
    return ci_runs_are_disjoint(s->b.sym, a->index, a->lanes, b->index, b->lanes);
}

static bool
may_conflict(const Barriers *s, const Touched *a, const Touched *b)
{
    for (int k = 0; k < a->nstored; k++) {
        const CiMemory *memory = a->stored[k].memory;
        if (is_loaded(b, memory))
            return true;
        bool is_read = is_loaded(a, memory);
        for (int n = 0; n < b->nstored; n++)
            if (b->stored[n].memory == memory &&
                (is_read || !have_no_overlap(s, &a->stored[k], &b->stored[n])))
                return true;
    }
    return false;
}

static void place(void *arg, CiStmt *stmt);

/* The statements after a branch come after both of its arms. */
static void
place_inside(Barriers *s, CiStmt *stmt)
{
    bool is_loop = ci_stmt_is_loop(stmt);
    if (is_loop) /* the accesses of the previous iteration precede those of the next one */
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

/* A swap accesses no element. After it, each of the two memories has the accesses of both. */
static void
place_swap(Barriers *s, CiStmt *stmt)
{
    Touched *t = &s->since;
    bool stores = is_stored(t, stmt->memory) || is_stored(t, stmt->partner),
         loads = is_loaded(t, stmt->memory) || is_loaded(t, stmt->partner);
    Look look = {&s->b, t};
    note_memory(&look, stmt->memory, stores, loads);
    note_memory(&look, stmt->partner, stores, loads);
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
    if (stmt->kind == CI_STMT_synchronize) {
        s->since = (Touched){0};
        ci_build_move(&s->b, stmt);
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
    if (may_conflict(s, &s->since, &here) || may_conflict(s, &here, &s->since)) {
        ci_build_add(&s->b, CI_STMT_barrier);
        s->since = (Touched){0};
    }
    note_all(s, stmt, &s->since);
    ci_build_move(&s->b, stmt);
}

void
ci_barriers(CiBuild *b)
{
    CiStmt *blocks = b->proc->body.first;
    Barriers s = {.b = *b, .blocks = blocks};
    if (blocks && blocks->run == CI_RUN_grid)
        ci_build_rewrite(&s.b, &blocks->body, place, &s);
}
