/* Decides which index expressions get a name in the source, and before which statement it is declared. Operands are
 * shared, so a source without names would double with each expression that uses the one before twice.
 *
 * A long expression is named before the first statement that has it, in the block of that statement, if all its
 * symbols are declared there. The names stay valid to the end of the block. */
#include "target/emit.h"

typedef struct List {
    const CiExpr **items;
    int count, capacity;
} List;

typedef struct Namer {
    CiContext *ctx;
    const CiProc *proc;
    CiMap *names;      /* statement -> its List */
    List symbols;      /* that are declared before the statement */
    List named;        /* likewise */
    const CiStmt *stmt; /* the one that gets the names */
    bool *is_index;    /* by value: it is an index that the kernel computes */
    const CiExpr *const *unprinted; /* the operand of the statement that the source does not have; NULL: none */
} Namer;

static bool
has(const List *list, const CiExpr *e)
{
    for (int k = list->count - 1; k >= 0; k--)
        if (list->items[k] == e)
            return true;
    return false;
}

static void
add(Namer *n, List *list, const CiExpr *e)
{
    CI_PUSH(n->ctx, list->items, list->count, list->capacity, e);
}

static bool
is_in_scope(const Namer *n, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (!has(&n->symbols, e->symbols[k]))
            return false;
    return true;
}

/* Operands first: the value of a name is printed with the names before it. */
static void
name_operands(Namer *n, const CiExpr *e)
{
    if (!e->has_long || has(&n->named, e))
        return;
    for (int k = 0; k < e->nargs; k++)
        name_operands(n, e->args[k]);
    if (!ci_expr_is_long(e) || !is_in_scope(n, e))
        return;
    List *list = ci_map_find(n->names, CI_KEY(n->stmt));
    if (!list) {
        list = CI_NEW(n->ctx, List);
        ci_map_put(n->names, CI_KEY(n->stmt), list);
    }
    add(n, list, e);
    add(n, &n->named, e);
}

/* An expression that the proc takes precomputed is printed as that argument. */
static void
look_at(void *arg, const CiExpr **e)
{
    Namer *n = arg;
    if (*e && e != n->unprinted && (*e)->has_long && ci_emit_size_number(n->proc, *e) < 0)
        name_operands(n, *e);
}

static void
look_at_memory(void *arg, CiMemory **memory, CiTouch touch)
{
    if (touch != CI_TOUCH_allocs)
        return;
    look_at(arg, &(*memory)->size);
    look_at(arg, &(*memory)->offset);
}

/* True for a bind whose limit is not tested: an index that the kernel computes itself is below it. */
static bool
is_below_limit(const Namer *n, const CiStmt *stmt)
{
    return stmt->op == CI_OP_bind && (stmt->expr->low < 0 || n->is_index[stmt->args[0]]);
}

/* Loops over units that are nested perfectly are printed as one, which decodes the variables of all. */
static bool
joins_units(const CiStmt *loop)
{
    const CiStmt *inner = loop->body.first;
    return loop->run == CI_RUN_parallel && inner && inner == loop->body.last && inner->run == CI_RUN_parallel;
}

/* of_loop: the loop that declares the names of the statement, as it is printed with it; NULL: there is none. */
static void
name_block(Namer *n, const CiStmts *block, const CiStmt *of_loop)
{
    int nsymbols = n->symbols.count, nnamed = n->named.count;
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        int outside = n->symbols.count;
        n->stmt = of_loop ? of_loop : stmt;
        n->unprinted = is_below_limit(n, stmt) ? (const CiExpr *const *)&stmt->limit : NULL;
        if (stmt->value >= 0)
            n->is_index[stmt->value] = stmt->op == CI_OP_index;
        ci_stmt_each_expr(stmt, look_at, n);
        ci_stmt_each_memory(stmt, look_at_memory, n);
        for (int k = 0; k < stmt->nvars; k++)
            add(n, &n->symbols, stmt->vars[k]);
        if (stmt->runs)
            add(n, &n->symbols, stmt->runs);
        name_block(n, &stmt->body, joins_units(stmt) ? n->stmt : NULL);
        name_block(n, &stmt->other, NULL);
        n->symbols.count = outside;
        if (stmt->kind == CI_STMT_let && stmt->op == CI_OP_bind && stmt->type.lanes == 1) /* in lanes it declares no variable */
            add(n, &n->symbols, stmt->expr);
    }
    n->symbols.count = nsymbols;
    n->named.count = nnamed;
}

void
ci_emit_name_indices(CiEmitter *e)
{
    Namer n = {.ctx = e->ctx, .proc = e->proc, .names = ci_map_new(e->ctx),
               .is_index = CI_NEW_ARRAY(e->ctx, bool, e->proc->nvalues + 1)};
    for (int k = 0; k < e->proc->nsizes; k++)
        add(&n, &n.symbols, e->proc->sizes[k]);
    name_block(&n, &e->proc->body, NULL);
    e->names_of = n.names;
}

void
ci_emit_declare_names(CiEmitter *e, CiText *out, const CiStmt *stmt)
{
    const List *list = ci_map_find(e->names_of, CI_KEY(stmt));
    for (int k = 0; list && k < list->count; k++) {
        CiText name = ci_text_new(e->ctx);
        e->long_names.declarations = out;
        (void)ci_emit_name_of(e, &name, list->items[k]);
    }
    e->long_names.declarations = NULL; /* printing an index declares no name */
}
