/* Shares pointers among accesses in lanes whose indices differ by a constant (proc_pointers.c).
 *
 * in0 + 8*c + 4 and in0 + 8*c + 12 are both a product and sums, which a C compiler merges only after a
 * dozen passes over all of them. With a pointer to in0 + 8*c, both are a constant offset in an
 * instruction from the start.
 *
 * A block declares a pointer if two of its accesses have it. Blocks inside of it use the pointer too.
 * Loops that are left to a C compiler declare none. */
#include "base/map.h"
#include "codegen/codegen.h"

typedef struct Pointer Pointer;
struct Pointer {
    CiPointer to;
    int accesses; /* of the block, from the statement on */
    int number;   /* 1 and more; 0: not declared */
    Pointer *next; /* with the same start in other memory, or outside */
};

typedef struct Sharing {
    CiBuild *b;
    CiPointerRule rule;
    CiMap *declared; /* start -> those of the blocks around the statement, innermost first */
} Sharing;

static Pointer *
find(const CiMap *pointers, CiPointer to)
{
    Pointer *pointer = ci_map_find(pointers, CI_KEY(to.start));
    while (pointer && !ci_pointer_is_same(pointer->to, to))
        pointer = pointer->next;
    return pointer;
}

static Pointer *
add(const Sharing *s, CiMap *pointers, CiPointer to, int number)
{
    Pointer *pointer = CI_NEW(s->b->ctx, Pointer);
    *pointer = (Pointer){.to = to, .number = number, .next = ci_map_find(pointers, CI_KEY(to.start))};
    ci_map_put(pointers, CI_KEY(to.start), pointer);
    return pointer;
}

static CiMap *
count_accesses(const Sharing *s, const CiStmts *block)
{
    CiMap *counted = ci_map_new(s->b->ctx);
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        CiPointer to = ci_stmt_pointer(&s->rule, stmt);
        if (!to.memory)
            continue;
        Pointer *pointer = find(counted, to);
        pointer = pointer ? pointer : add(s, counted, to, 0);
        pointer->accesses++;
    }
    return counted;
}

static void
mark(const Sharing *s, const CiMap *counted, CiStmt *stmt)
{
    CiPointer to = ci_stmt_pointer(&s->rule, stmt);
    if (!to.memory)
        return;
    Pointer *known = find(s->declared, to), *here = counted ? find(counted, to) : NULL;
    if (here && here->accesses-- >= 2 && !known) {
        here->number = ++s->b->proc->npointers;
        known = add(s, s->declared, to, here->number);
    }
    stmt->at.pointer = known ? known->number : 0;
}

static void
leave_block(const Sharing *s, const CiMap *counted)
{
    for (int k = 0; k < ci_map_count(counted); k++)
        for (const Pointer *pointer = ci_map_value_at(counted, k); pointer; pointer = pointer->next)
            if (pointer->number) {
                const Pointer *own = ci_map_find(s->declared, CI_KEY(pointer->to.start));
                ci_map_put(s->declared, CI_KEY(pointer->to.start), own->next);
            }
}

static void
share(const Sharing *s, CiStmts *block, bool is_left)
{
    CiMap *counted = is_left ? NULL : count_accesses(s, block);
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_loop_left = stmt->kind == CI_STMT_for && (stmt->run == CI_RUN_vector || stmt->run == CI_RUN_simd);
        mark(s, counted, stmt);
        share(s, &stmt->body, is_left || is_loop_left);
        share(s, &stmt->other, is_left);
    }
    if (counted)
        leave_block(s, counted);
}

void
ci_pointers(CiBuild *b)
{
    Sharing s = {b, ci_pointer_rule(b->ctx, b->sym, b->proc), ci_map_new(b->ctx)};
    share(&s, &b->proc->body, false);
}
