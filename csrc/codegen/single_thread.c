/* Single-threaded statements of a block: a statement that stores to memory and cannot be divided
 * among the threads is executed by one thread only. Registers that no other statement uses become
 * registers of that thread. */
#include "codegen/blocks.h"

typedef struct Stored {
    CiBlocks *s;
    CiMap *inside; /* memory -> how many statements name it */
    CiMap *owned;
    const CiMemory **list;
    int count, capacity;
    bool is_memory, is_of_all; /* others see what it stores; all threads must do it */
} Stored;

static void
count_one(CiMap *map, const CiMemory *memory)
{
    if (memory)
        ci_map_put(map, CI_KEY(memory),
                   (void *)((uintptr_t)ci_map_find(map, CI_KEY(memory)) + (uintptr_t)1));
}

static void
count_touched(void *arg, const CiStmt *stmt)
{
    count_one(arg, stmt->at.memory);
    count_one(arg, stmt->cell);
    count_one(arg, stmt->kind == CI_STMT_swap ? stmt->memory : NULL);
    count_one(arg, stmt->partner);
    for (int k = 0; k < stmt->ninto; k++)
        count_one(arg, stmt->into[k]);
}

static void
note_register(Stored *f, const CiMemory *memory)
{
    bool is_known = !memory || memory->space != CI_SPACE_register;
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
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(f->owned, CI_KEY(stmt->memory), f);
    f->is_of_all |= stmt->kind == CI_STMT_swap || stmt->kind == CI_STMT_stop;
    f->is_memory |= is_store && stmt->at.memory->space != CI_SPACE_register;
    note_register(f, is_store ? stmt->at.memory : NULL);
    note_register(f, stmt->cell);
    for (int k = 0; k < stmt->ninto; k++)
        note_register(f, stmt->into[k]);
}

static Stored
stored_by(CiBlocks *s, CiStmt *stmt)
{
    CiContext *ctx = s->r.b.ctx;
    Stored found = {.s = s, .inside = ci_map_new(ctx), .owned = ci_map_new(ctx)};
    CiStmt alone = *stmt;
    CiStmts one = {&alone, &alone};
    alone.next = NULL;
    ci_stmts_visit(&one, find_stored, &found);
    return found;
}

static void
replace_memory(CiStmt *stmt, const CiMemory *from, CiMemory *to)
{
    stmt->at.memory = stmt->at.memory == from ? to : stmt->at.memory;
    stmt->cell = stmt->cell == from ? to : stmt->cell;
    for (int k = 0; k < stmt->ninto; k++)
        stmt->into[k] = stmt->into[k] == from ? to : stmt->into[k];
    for (CiStmt *inside = stmt->body.first; inside; inside = inside->next)
        replace_memory(inside, from, to);
    for (CiStmt *inside = stmt->other.first; inside; inside = inside->next)
        replace_memory(inside, from, to);
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
        replace_memory(stmt, memory,
                       ci_build_alloc(&s->r.b, ci_build_name(&s->r.b, "own"), memory->dtype, 1,
                                      CI_SPACE_register, memory->size));
        ci_map_put(s->dropped, CI_KEY(key), s);
    }
}

static void
run_alone(CiBlocks *s, CiStmt *stmt, const Stored *found)
{
    CiStmts *outside = ci_blocks_enter_threads(s);
    CiStmt *first = ci_build_test(&s->r.b, CI_STMT_if, CI_COMPARE_less, s->thread,
                                  ci_blocks_number(s, 1));
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
