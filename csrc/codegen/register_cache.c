/* Keeps elements in registers if a thread accesses the same elements in several loops of its block.
 * Rows that no other thread reads become registers of the thread; an element that is loaded twice
 * is loaded once.
 *
 * An access has slot r of a thread if its lanes are the elements base + lanes*(threads*r + t): r
 * counts unrolled rounds, and base is the same for all threads. */
#include "base/map.h"
#include "codegen/codegen.h"

typedef struct Location {
    const CiExpr *base;
    const CiExpr *round; /* a number, or the variable of a loop that unrolls */
    const CiExpr *guard; /* places of the row are below; NULL: all are there */
    int64_t rounds;
    int lanes;
} Location;

typedef struct InRegister {
    const CiMemory *memory;
    Location location;
    int uses, loops; /* of it; loops over threads that use it */
    const CiStmt *last_loop;
    CiMemory *into;
    bool is_filled;
} InRegister;

typedef struct RegisterCache {
    CiBuild b;
    int threads;
    /* where a statement stands */
    const CiStmt *loop, *round;
    const CiExpr *guard;
    int nother;  /* loops and branches around it in which a thread might not get to it */
    CiMap *lost; /* memory that is touched at other places */
    CiMap *stored;
    InRegister *list;
    int count, capacity;
    int64_t registers;
} RegisterCache;

/* ---- places ---- */

static const CiExpr *
without(const RegisterCache *s, const CiExpr *e, const CiExpr *var, int64_t coefficient)
{
    return ci_expr_sub(s->b.sym, e,
                       ci_expr_mul(s->b.sym, var, ci_expr_const(s->b.sym, coefficient)));
}

static bool
find_location(const RegisterCache *s, const CiStmt *stmt, Location *location)
{
    bool is_let = stmt->kind == CI_STMT_let;
    if (!is_let && stmt->kind != CI_STMT_store)
        return false;
    int value = is_let ? stmt->value : stmt->args[0];
    int lanes = s->b.proc->types[value].lanes;
    if (!s->loop || s->nother || stmt->at.stride || stmt->live ||
        (!is_let && stmt->op != CI_OP_none))
        return false;
    const CiExpr *thread = s->loop->vars[0], *base = without(s, stmt->at.index, thread, lanes);
    *location = (Location){.guard = s->guard, .rounds = 1, .lanes = lanes};
    location->round = s->round ? s->round->vars[0] : ci_expr_const(s->b.sym, 0);
    if (s->round) {
        location->rounds = s->round->extents[0]->value;
        base = without(s, base, location->round, (int64_t)lanes * s->threads);
    }
    location->base = base;
    return !ci_expr_depends_on(base, thread) &&
           (!s->round || !ci_expr_depends_on(base, location->round));
}

static bool
is_same(const Location *a, const Location *b)
{
    return a->base == b->base && a->rounds == b->rounds && a->lanes == b->lanes &&
           a->guard == b->guard;
}

static InRegister *
find_register(RegisterCache *s, const CiMemory *memory, const Location *location)
{
    for (int k = 0; k < s->count; k++)
        if (s->list[k].memory == memory && is_same(&s->list[k].location, location))
            return &s->list[k];
    return NULL;
}

/* ---- walking ---- */

static void walk(RegisterCache *s, CiStmts *block, void (*visit)(RegisterCache *s, CiStmt *stmt));

static void
walk_inside(RegisterCache *s, CiStmt *stmt, void (*visit)(RegisterCache *s, CiStmt *stmt))
{
    const RegisterCache around = *s;
    bool is_round =
        stmt->kind == CI_STMT_for && stmt->run == CI_RUN_unroll && !s->round && !s->guard;
    bool is_guard = stmt->kind == CI_STMT_if && stmt->ntests == 1 && !stmt->other.first &&
                    stmt->tests[0].compare == CI_COMPARE_less && !s->guard;
    if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_thread)
        s->loop = stmt;
    else if (s->loop && is_round)
        s->round = stmt;
    else if (s->loop && is_guard)
        s->guard = stmt->tests[0].right;
    else if (stmt->run != CI_RUN_grid)
        s->nother++;
    walk(s, &stmt->body, visit);
    walk(s, &stmt->other, visit);
    s->loop = around.loop;
    s->round = around.round;
    s->guard = around.guard;
    s->nother = around.nother;
}

static void
walk(RegisterCache *s, CiStmts *block, void (*visit)(RegisterCache *s, CiStmt *stmt))
{
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->at.memory)
            visit(s, stmt);
        if (stmt->body.first || stmt->other.first)
            walk_inside(s, stmt, visit);
    }
}

static void
note_stored(void *arg, CiMemory **memory, CiTouch touch)
{
    RegisterCache *s = arg;
    if (ci_touch_stores(touch))
        ci_map_put(s->stored, CI_KEY(*memory), s);
}

static void
note_stores(void *arg, const CiStmt *stmt)
{
    ci_stmt_each_memory(stmt, note_stored, arg);
}

static void
note_location(RegisterCache *s, CiStmt *stmt)
{
    const CiMemory *memory = stmt->at.memory;
    if (!memory)
        return;
    bool is_row = memory->space == CI_SPACE_shared,
         is_input = memory->space == CI_SPACE_global && !ci_map_find(s->stored, CI_KEY(memory));
    Location location;
    if (!is_row && !is_input)
        return;
    if (!find_location(s, stmt, &location)) {
        ci_map_put(s->lost, CI_KEY(memory), s);
        return;
    }
    InRegister *kept = find_register(s, memory, &location);
    if (!kept) {
        const InRegister made = {.memory = memory, .location = location};
        CI_PUSH(s->b.ctx, s->list, s->count, s->capacity, made);
        kept = &s->list[s->count - 1];
    }
    kept->uses++;
    kept->loops += kept->last_loop != s->loop;
    kept->last_loop = s->loop;
}

/* ---- choices ---- */

static int64_t
registers_of(const InRegister *kept)
{
    return kept->location.rounds *
           ((kept->location.lanes * ci_dtype_size(ci_dtype_compute(kept->memory->dtype)) + 3) / 4);
}

/* A row has no other place than its registers. */
static bool
is_wanted(const RegisterCache *s, const InRegister *kept)
{
    int locations = 0;
    for (int k = 0; k < s->count; k++)
        locations += s->list[k].memory == kept->memory;
    if (kept->memory->space == CI_SPACE_shared)
        return locations == 1 && !ci_map_find(s->lost, CI_KEY(kept->memory));
    return kept->loops > 1;
}

static void
choose(RegisterCache *s, CiSpace space)
{
    for (int k = 0; k < s->count; k++) {
        InRegister *kept = &s->list[k];
        if (kept->memory->space != space || !is_wanted(s, kept) ||
            registers_of(kept) > s->registers)
            continue;
        s->registers -= registers_of(kept);
        kept->into = ci_build_alloc(&s->b, ci_build_name(&s->b, "kept"), kept->memory->dtype,
                                    kept->location.lanes, CI_SPACE_thread,
                                    ci_expr_const(s->b.sym, kept->location.rounds * s->threads));
    }
}

/* ---- the new statements ---- */

static const CiExpr *
own_element(const RegisterCache *s, const Location *location)
{
    CiSym *sym = s->b.sym;
    return ci_expr_add(sym, ci_expr_mul(sym, location->round, ci_expr_const(sym, s->threads)),
                       s->loop->vars[0]);
}

/* Stores the loaded value in a register, directly after the load. */
static void
fill(RegisterCache *s, CiStmt *load, const InRegister *kept, const Location *location)
{
    CiStmts one = {0};
    CiStmts *outside = ci_build_enter(&s->b, &one);
    ci_build_store(&s->b, kept->into, own_element(s, location), load->value);
    ci_build_leave(&s->b, outside);
    one.first->next = load->next;
    load->next = one.first;
}

static void
redirect(RegisterCache *s, CiStmt *stmt)
{
    Location location;
    InRegister *kept = stmt->at.memory && find_location(s, stmt, &location)
                     ? find_register(s, stmt->at.memory, &location)
                     : NULL;
    if (!kept || !kept->into)
        return;
    if (kept->memory->space == CI_SPACE_global && !kept->is_filled) {
        kept->is_filled = true;
        fill(s, stmt, kept, &location);
        return;
    }
    stmt->at.memory = kept->into;
    stmt->at.index = own_element(s, &location);
}

static void
drop_row(void *arg, CiStmt *stmt)
{
    RegisterCache *s = arg;
    for (int k = 0; k < s->count; k++)
        if (stmt->kind == CI_STMT_alloc && stmt->memory == s->list[k].memory && s->list[k].into)
            return;
    ci_build_move(&s->b, stmt);
}

/* Runs the pass. Registers are allocated after the statements before the first loop over
 * threads. */
void
ci_keep(CiBuild *b)
{
    RegisterCache s = {.b = *b};
    CiStmt *blocks = b->proc->body.first;
    while (blocks && blocks->run != CI_RUN_grid)
        blocks = blocks->next;
    for (CiStmt *stmt = blocks ? blocks->body.first : NULL; stmt && !s.threads; stmt = stmt->next)
        if (stmt->kind == CI_STMT_for && stmt->run == CI_RUN_thread)
            s.threads = (int)stmt->extents[0]->value;
    if (!s.threads)
        return;
    s.lost = ci_map_new(b->ctx);
    s.stored = ci_map_new(b->ctx);
    s.registers = s.threads >= 1024 ? 40 : s.threads >= 512 ? 72 : 96;
    ci_stmts_visit(&blocks->body, note_stores, &s);
    walk(&s, &blocks->body, note_location);
    CiStmts body = blocks->body;
    blocks->body = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&s.b, &blocks->body);
    choose(&s, CI_SPACE_shared);
    choose(&s, CI_SPACE_global);
    ci_build_move_all(&s.b, &body);
    ci_build_leave(&s.b, outside);
    walk(&s, &blocks->body, redirect);
    ci_build_rewrite(&s.b, &blocks->body, drop_row, &s);
}
