/* Dead store elimination: removes a store if a later one of the same block overwrites its elements
 * and nothing reads the memory between them:
 *
 *   store y[i] = %1                    %2: f32 = load x[i]
 *   %2: f32 = load x[i]         ->     %3: f32 = add %1, %2
 *   %3: f32 = add %1, %2               store y[i] = %3
 *   store y[i] = %3
 *
 * Statements that update one array several times (`y += a; y += b`) leave such stores once their
 * loops are fused. Statements other than lets and plain stores, blocks inside a block included,
 * count as reads of everything. */
#include "codegen/codegen.h"

#include "base/map.h"

typedef struct Eliminator {
    CiBuild b;
    CiStmt **pending; /* stores that nothing has read since */
    int npending, cappending;
    CiMap *dead;
} Eliminator;

static bool
is_plain_store(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_store && stmt->op == CI_OP_none && !stmt->is_in_order &&
           !stmt->is_atomic;
}

/* True if the later store writes every element that the earlier one does. */
static bool
overwrites(const Eliminator *e, const CiStmt *later, const CiStmt *earlier)
{
    const CiType *types = e->b.proc->types;
    return later->at.memory == earlier->at.memory && later->at.index == earlier->at.index &&
           later->at.stride == earlier->at.stride && (!later->live || later->live == earlier->live) &&
           types[later->args[0]].lanes == types[earlier->args[0]].lanes;
}

static void
forget(Eliminator *e, const CiMemory *memory)
{
    int count = 0;
    for (int k = 0; k < e->npending; k++)
        if (e->pending[k]->at.memory != memory)
            e->pending[count++] = e->pending[k];
    e->npending = count;
}

static void
note_store(Eliminator *e, CiStmt *store)
{
    int count = 0;
    for (int k = 0; k < e->npending; k++) {
        if (overwrites(e, store, e->pending[k]))
            ci_map_put(e->dead, CI_KEY(e->pending[k]), e);
        else
            e->pending[count++] = e->pending[k];
    }
    e->npending = count;
    CI_PUSH(e->b.ctx, e->pending, e->npending, e->cappending, store);
}

static void
find_dead(Eliminator *e, const CiStmts *block)
{
    e->npending = 0;
    for (CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_load = stmt->kind == CI_STMT_let && stmt->at.memory;
        if (is_plain_store(stmt)) {
            note_store(e, stmt);
        } else if (is_load) {
            forget(e, stmt->at.memory);
        } else if (stmt->kind != CI_STMT_let || stmt->cell) {
            e->npending = 0;
        }
    }
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        find_dead(e, &stmt->body);
        find_dead(e, &stmt->other);
    }
}

static void
drop_dead(void *arg, CiStmt *stmt)
{
    Eliminator *e = arg;
    if (ci_map_find(e->dead, CI_KEY(stmt)))
        return;
    ci_build_rewrite(&e->b, &stmt->body, drop_dead, e);
    ci_build_rewrite(&e->b, &stmt->other, drop_dead, e);
    ci_build_move(&e->b, stmt);
}

void
ci_dead_stores(CiBuild *b)
{
    CiProc *proc = b->proc;
    Eliminator e = {.b = *b,
                    .dead = ci_map_new(b->ctx)};
    find_dead(&e, &proc->body);
    if (ci_map_count(e.dead))
        ci_build_rewrite(&e.b, &proc->body, drop_dead, &e);
}
