/* Single-threaded statements of a block: a statement that stores to memory and cannot be divided
 * among the threads is executed by one thread only. Registers that no other statement uses become
 * registers of that thread. */
#include "codegen/blocks.h"

typedef struct Stored {
    CiBlocks *s;
    CiMap *inside; /* memory -> number of statements that access it */
    CiMap *owned;  /* memory that the statement allocates */
    const CiMemory **list; /* registers that it stores */
    int count, capacity;
    bool is_memory, is_of_all; /* it stores memory that others see; every thread must run it */
} Stored;

static void
count_one(void *map, CiMemory **memory, CiTouch touch)
{
    uintptr_t count = (uintptr_t)ci_map_find(map, CI_KEY(*memory));
    if (touch != CI_TOUCH_allocs)
        ci_map_put(map, CI_KEY(*memory), (void *)(count + 1));
}

static void
count_touched(void *arg, const CiStmt *stmt)
{
    ci_stmt_each_memory(stmt, count_one, arg);
}

static void
note_stored(void *arg, CiMemory **stored, CiTouch touch)
{
    Stored *f = arg;
    const CiMemory *memory = *stored;
    if (touch == CI_TOUCH_allocs)
        ci_map_put(f->owned, CI_KEY(memory), f);
    bool is_known = !ci_touch_stores(touch) || memory->space != CI_SPACE_register;
    for (int k = 0; k < f->count; k++)
        is_known |= f->list[k] == memory;
    if (!is_known)
        CI_PUSH(f->s->r.b.ctx, f->list, f->count, f->capacity, memory);
}

static void
find_stored(void *arg, const CiStmt *stmt)
{
    Stored *f = arg;
    bool is_store = stmt->kind == CI_STMT_store || stmt->kind == CI_STMT_call;
    count_touched(f->inside, stmt);
    f->is_of_all |= stmt->kind == CI_STMT_swap || stmt->kind == CI_STMT_stop;
    f->is_memory |= is_store && stmt->at.memory->space != CI_SPACE_register;
    ci_stmt_each_memory(stmt, note_stored, f);
}

static Stored
stored_by(CiBlocks *s, CiStmt *stmt)
{
    CiContext *ctx = s->r.b.ctx;
    Stored found = {.s = s, .inside = ci_map_new(ctx), .owned = ci_map_new(ctx)};
    ci_stmt_visit(stmt, find_stored, &found);
    return found;
}

typedef struct Renaming {
    const CiMemory *from;
    CiMemory *to;
} Renaming;

static void
rename_memory(void *arg, CiMemory **memory, CiTouch touch)
{
    const Renaming *renaming = arg;
    (void)touch;
    *memory = *memory == renaming->from ? renaming->to : *memory;
}

static void
rename_in(void *arg, const CiStmt *stmt)
{
    ci_stmt_each_memory(stmt, rename_memory, arg);
}

void
ci_blocks_place(CiBlocks *s, CiMemory *memory)
{
    CI_REQUIRE(s->r.b.ctx, memory->size->kind == CI_EXPR_const);
    memory->space = CI_SPACE_shared;
    memory->offset = ci_blocks_number(s, s->bytes);
    s->bytes += (memory->size->value * ci_dtype_size(memory->dtype) + 15) / 16 * 16;
}

/* Registers that only this statement uses become the thread's own. Memory that other statements use
 * stays visible to all threads. */
static void
take_registers(CiBlocks *s, CiStmt *stmt, const Stored *found)
{
    for (int k = 0; k < found->count; k++) {
        CiMemory *memory = (CiMemory *)(uintptr_t)found->list[k];
        const void *key = memory;
        if (ci_map_find(found->owned, CI_KEY(key)))
            continue;
        if (ci_map_find(found->inside, CI_KEY(key)) != ci_map_find(s->touched, CI_KEY(key))) {
            ci_blocks_place(s, memory);
            continue;
        }
        Renaming own = {memory, ci_build_alloc(&s->r.b, ci_build_name(&s->r.b, "own"), memory->dtype,
                                               1, CI_SPACE_register, memory->size)};
        ci_stmt_visit(stmt, rename_in, &own);
        ci_map_put(s->dropped, CI_KEY(key), s);
    }
}

static void
run_alone(CiBlocks *s, CiStmt *stmt, const Stored *found)
{
    CiStmts *outside = s->r.b.to;
    const CiExpr *thread = ci_domain_enter_threads(&s->r.b, s->r.threads);
    CiStmt *first = ci_build_test(&s->r.b, CI_STMT_if, CI_COMPARE_less, thread, ci_blocks_number(s, 1));
    ci_build_enter(&s->r.b, &first->body);
    take_registers(s, stmt, found);
    ci_build_move(&s->r.b, stmt);
    ci_build_leave(&s->r.b, outside);
}

void
ci_blocks_run(CiBlocks *s, CiStmt *stmt)
{
    Stored found = stored_by(s, stmt);
    if (!found.is_of_all && (found.is_memory || stmt->kind == CI_STMT_fold))
        run_alone(s, stmt, &found);
    else
        ci_build_move(&s->r.b, stmt);
}

void
ci_blocks_count(CiBlocks *s, const CiStmts *body)
{
    ci_stmts_visit(body, count_touched, s->touched);
}

static void
drop(void *arg, CiStmt *stmt)
{
    CiBlocks *s = arg;
    if (stmt->kind == CI_STMT_alloc && ci_map_find(s->dropped, CI_KEY(stmt->memory)))
        return;
    ci_build_rewrite(&s->r.b, &stmt->body, drop, s);
    ci_build_rewrite(&s->r.b, &stmt->other, drop, s);
    ci_build_move(&s->r.b, stmt);
}

void
ci_blocks_drop(CiBlocks *s, CiStmts *body)
{
    ci_build_rewrite(&s->r.b, body, drop, s);
}
