/* Store-to-load forwarding: a load of a register is replaced by the value that was last stored
 * there, if it is known. Stores and values without a user are removed.
 *
 * A register element is known from a store of all its lanes to the end of the block. A branch or a
 * loop that stores to the memory makes it unknown, in the case of a loop from before its first
 * iteration. Constants, vectors of constants and indices are created once for a block and the
 * blocks inside it. */
#include "codegen/codegen.h"

#include "base/map.h"

#include <string.h>

typedef struct Known {
    const CiMemory *memory;
    const CiExpr *index;
    int value;
} Known;

/* A let whose value hangs on nothing that changes. */
typedef struct Said {
    const CiStmt *let;
    int operand; /* of a splat, else -1 */
} Said;

typedef struct Forwarder {
    CiBuild b;
    Said *said;
    int nsaid, capsaid;
    bool *is_constant; /* per value */
    int *same; /* per value: the one that stands for it, or itself */
    int *uses; /* per value */
    Known *known;
    int nknown, capknown;
    CiMap *used; /* memories that more than stores use */
    bool has_changed;
} Forwarder;

/* ---- what is known ---- */

static void
forget(Forwarder *f, const CiMemory *memory)
{
    int count = 0;
    for (int k = 0; k < f->nknown; k++)
        if (f->known[k].memory != memory)
            f->known[count++] = f->known[k];
    f->nknown = count;
}

static void
forget_stored(void *arg, CiMemory **memory, CiTouch touch)
{
    if (ci_touch_stores(touch))
        forget(arg, *memory);
}

static void
forget_written(void *arg, const CiStmt *stmt)
{
    ci_stmt_each_memory(stmt, forget_stored, arg);
}

static const Known *
find(const Forwarder *f, const CiAccess *at)
{
    for (int k = 0; k < f->nknown; k++)
        if (f->known[k].memory == at->memory && f->known[k].index == at->index)
            return &f->known[k];
    return NULL;
}

static void
note_store(Forwarder *f, const CiStmt *store)
{
    const CiMemory *memory = store->at.memory;
    CiType type = f->b.proc->types[store->args[0]];
    bool is_whole = memory->space == CI_SPACE_register && store->op == CI_OP_none && !store->live &&
                    store->at.index->kind == CI_EXPR_const && type.dtype == memory->dtype &&
                    type.lanes == memory->lanes;
    int kept = 0;
    for (int k = 0; k < f->nknown; k++) /* elements of other numbers stay what they are */
        if (f->known[k].memory != memory ||
            (store->at.index->kind == CI_EXPR_const && f->known[k].index != store->at.index))
            f->known[kept++] = f->known[k];
    f->nknown = kept;
    if (!is_whole)
        return;
    Known known = {memory, store->at.index, store->args[0]};
    CI_PUSH(f->b.ctx, f->known, f->nknown, f->capknown, known);
}

/* ---- what is said again ---- */

static bool
is_alike(const Said *said, const CiStmt *let, int operand)
{
    return said->let->op == let->op && said->operand == operand &&
           said->let->type.dtype == let->type.dtype && said->let->type.lanes == let->type.lanes &&
           said->let->expr == let->expr &&
           memcmp(&said->let->constant, &let->constant, sizeof let->constant) == 0;
}

/* One that says what another has said here or around: that one stands for it. A splat of a constant
 * is whole, for lanes that are not live mean nothing. */
static bool
is_said(Forwarder *f, CiStmt *let)
{
    bool is_splat = let->op == CI_OP_splat && f->is_constant[let->args[0]],
         is_index = let->op == CI_OP_index && let->type.lanes == 1;
    if (let->kind != CI_STMT_let || (let->op != CI_OP_const && !is_splat && !is_index))
        return false;
    int operand = is_splat ? let->args[0] : -1;
    f->is_constant[let->value] = let->op == CI_OP_const;
    if (is_splat)
        let->live = NULL;
    for (int k = f->nsaid - 1; k >= 0; k--)
        if (is_alike(&f->said[k], let, operand)) {
            f->same[let->value] = f->said[k].let->value;
            return true;
        }
    Said said = {let, operand};
    CI_PUSH(f->b.ctx, f->said, f->nsaid, f->capsaid, said);
    return false;
}

/* ---- forwarding ---- */

static void
rename_values(Forwarder *f, CiStmt *stmt)
{
    for (int a = 0; a < stmt->nargs; a++)
        stmt->args[a] = f->same[stmt->args[a]];
    for (int k = 0; k < stmt->ntests; k++)
        if (stmt->tests[k].compare >= CI_COMPARE_is)
            stmt->tests[k].value = f->same[stmt->tests[k].value];
}

static void forward_one(void *arg, CiStmt *stmt);

static void
forward_inside(Forwarder *f, CiStmts *block)
{
    int count = f->nknown, nsaid = f->nsaid;
    Known *known = CI_NEW_ARRAY(f->b.ctx, Known, count + 1);
    if (count)
        memcpy(known, f->known, sizeof *known * (size_t)count);
    ci_build_rewrite(&f->b, block, forward_one, f);
    if (count)
        memcpy(f->known, known, sizeof *known * (size_t)count);
    f->nknown = count;
    f->nsaid = nsaid;
}

static void
forward_one(void *arg, CiStmt *stmt)
{
    Forwarder *f = arg;
    rename_values(f, stmt);
    bool is_load = stmt->kind == CI_STMT_let && stmt->op == CI_OP_load;
    const Known *known = is_load ? find(f, &stmt->at) : NULL;
    if (known) {
        f->same[stmt->value] = known->value;
        return;
    }
    if (is_said(f, stmt))
        return;
    if (ci_stmt_is_loop(stmt)) {
        ci_stmts_visit(&stmt->body, forget_written, f);
        forward_inside(f, &stmt->body);
    } else if (stmt->kind == CI_STMT_if) {
        forward_inside(f, &stmt->body);
        forward_inside(f, &stmt->other);
        ci_stmts_visit(&stmt->body, forget_written, f);
        ci_stmts_visit(&stmt->other, forget_written, f);
    } else if (stmt->kind == CI_STMT_store) {
        note_store(f, stmt);
    } else {
        forget_written(f, stmt);
    }
    ci_build_move(&f->b, stmt);
}

/* ---- unused stores and values ---- */

static void
note_used(void *arg, CiMemory **memory, CiTouch touch)
{
    Forwarder *f = arg;
    if (touch != CI_TOUCH_allocs)
        ci_map_put(f->used, CI_KEY(*memory), f);
}

/* Only stores are dropped with their memory: any other statement needs it. */
static void
note_uses(void *arg, const CiStmt *stmt)
{
    if (stmt->kind != CI_STMT_store)
        ci_stmt_each_memory(stmt, note_used, arg);
}

static bool
is_used(const Forwarder *f, const CiStmt *stmt)
{
    const CiMemory *memory = stmt->kind == CI_STMT_alloc   ? stmt->memory
                             : stmt->kind == CI_STMT_store ? stmt->at.memory
                                                           : NULL;
    if (memory && memory->space == CI_SPACE_register)
        return ci_map_find(f->used, CI_KEY(memory)) != NULL;
    if (stmt->kind == CI_STMT_let && stmt->op != CI_OP_bind && !stmt->cell)
        return f->uses[stmt->value] > 0;
    return true;
}

static void
drop_unused(void *arg, CiStmt *stmt)
{
    Forwarder *f = arg;
    ci_build_rewrite(&f->b, &stmt->body, drop_unused, f);
    ci_build_rewrite(&f->b, &stmt->other, drop_unused, f);
    if (is_used(f, stmt))
        ci_build_move(&f->b, stmt);
    else
        f->has_changed = true;
}

void
ci_forward(CiBuild *b)
{
    CiProc *proc = b->proc;
    Forwarder f = {.b = *b};
    f.same = CI_NEW_ARRAY(b->ctx, int, proc->nvalues + 1);
    f.is_constant = CI_NEW_ARRAY(b->ctx, bool, proc->nvalues + 1);
    for (int k = 0; k < proc->nvalues; k++)
        f.same[k] = k;
    ci_build_rewrite(&f.b, &proc->body, forward_one, &f);
    do {
        f.has_changed = false;
        f.uses = CI_NEW_ARRAY(b->ctx, int, proc->nvalues + 1);
        f.used = ci_map_new(b->ctx);
        ci_stmts_count_uses(&proc->body, f.uses);
        ci_stmts_visit(&proc->body, note_uses, &f);
        ci_build_rewrite(&f.b, &proc->body, drop_unused, &f);
    } while (f.has_changed);
}
