/* Instantiates a body in lanes.
 *
 * varying.c finds what varies from lane to lane; statements are copied one by one. The coefficient
 * of the lane variable in an index is the stride of the access, whether or not the index names bound
 * symbols too. In an index that is not linear the lane variable becomes a bound symbol itself. */
#include "codegen/instantiate.h"

#include "codegen/varying.h"

#include <string.h>

typedef struct Copier {
    CiBuild *b;
    const CiAt *at;
    CiVarying varying;
    int *values;               /* old number -> new, or itself where it is not the body's */
    CiMap *memories;           /* old -> new, of those that the body allocates */
    const CiExpr **from, **to; /* symbols of the body, and what they are in the copy */
    int count, capacity;
    const CiExpr *lane; /* the lane's number as a bound symbol, once it is needed */
    int *yield;
    struct Copier *parts; /* of vectors side by side, the first of which copies for all of them */
    int nparts, part;     /* this one's number */
} Copier;

/* ---- copies ---- */

static void
replace_symbol(Copier *c, const CiExpr *from, const CiExpr *to)
{
    if (c->count == c->capacity) {
        size_t old = sizeof *c->from * (size_t)c->capacity;
        c->capacity = c->capacity ? 2 * c->capacity : 8;
        c->from = ci_grow(c->b->ctx, c->from, old, sizeof *c->from * (size_t)c->capacity);
        c->to = ci_grow(c->b->ctx, c->to, old, sizeof *c->to * (size_t)c->capacity);
    }
    c->from[c->count] = from;
    c->to[c->count++] = to;
}

static const CiExpr *
substitute(Copier *c, const CiExpr *e)
{
    return e ? ci_expr_substitute(c->b->sym, e, c->count, c->from, c->to) : NULL;
}

static bool
is_vector(const Copier *c)
{
    return c->at->lane_var && c->at->lanes > 1;
}

/* The lane's number, for indices that are not linear in it. */
static const CiExpr *
lane_symbol(Copier *c)
{
    if (!c->lane) {
        int number =
            ci_build_let(c->b, ci_type_of(CI_DTYPE_i64, c->at->lanes), CI_OP_iota, 0, NULL);
        c->b->to->last->expr = ci_expr_const(c->b->sym, 0);
        c->lane = ci_build_bind(c->b, number, ci_expr_const(c->b->sym, c->at->lanes));
    }
    return c->lane;
}

/* The value of the k-th symbol in this part. */
static const CiExpr *
symbol_here(const Copier *c, int k)
{
    const CiExpr *to = c->at->to[k];
    if (c->at->from[k] != c->at->lane_var || !c->part)
        return to;
    return ci_expr_add(c->b->sym, to, ci_expr_const(c->b->sym, (int64_t)c->part * c->at->lanes));
}

static const CiExpr *
lane_first(const Copier *c)
{
    for (int k = 0; k < c->at->count; k++)
        if (c->at->from[k] == c->at->lane_var)
            return symbol_here(c, k);
    return NULL;
}

/* e with the lane's number as a bound symbol. */
static const CiExpr *
at_lane(Copier *c, const CiExpr *e)
{
    const CiExpr *lane_var = c->at->lane_var,
                 *to = ci_expr_add(c->b->sym, lane_first(c), lane_symbol(c));
    return substitute(c, ci_expr_substitute(c->b->sym, e, 1, &lane_var, &to));
}

static bool
names_bound_lanes(const Copier *c, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (ci_map_find(c->varying.symbols, CI_KEY(e->symbols[k])))
            return true;
    return false;
}

/* Returns e with the first lane's value of the lane variable. *stride: by how much e grows from lane
 * to lane because of that variable alone; NULL if there are no lanes. Bound symbols have a value in
 * each lane, and their share of e is in these values. If e is not linear in the lane variable, the
 * variable becomes such a symbol, and the stride is 0. */
static const CiExpr *
index_at(Copier *c, const CiExpr *e, const CiExpr **stride)
{
    const CiExpr *coef, *rest, *lane_var = c->at->lane_var;
    *stride = is_vector(c) ? ci_expr_const(c->b->sym, 0) : NULL;
    if (!is_vector(c) || !ci_expr_depends_on(e, lane_var))
        return substitute(c, e);
    if (!ci_expr_split_linear(c->b->sym, e, lane_var, &coef, &rest) ||
        ci_index_varies(&c->varying, coef))
        return at_lane(c, e);
    *stride = substitute(c, coef);
    return substitute(c, e);
}

static int
splat(Copier *c, int value)
{
    CiType type = c->b->proc->types[value];
    if (!is_vector(c) || type.lanes > 1)
        return value;
    type.lanes = c->at->lanes;
    int made = ci_build_let(c->b, type, CI_OP_splat, 1, &value);
    c->b->to->last->live = c->at->live;
    return made;
}

/* An operand, with a value for each lane where is_wide. */
static int
operand(Copier *c, int old, bool is_wide)
{
    return is_wide ? splat(c, c->values[old]) : c->values[old];
}

static CiMemory *
memory_of(const Copier *c, CiMemory *memory)
{
    CiMemory *own = memory ? ci_map_find(c->memories, CI_KEY(memory)) : NULL;
    return own ? own : memory;
}

static CiStmt *
add_let(Copier *c, const CiStmt *stmt, bool is_wide)
{
    int args[CI_MAX_OPERANDS];
    CiType type = stmt->type;
    for (int a = 0; a < stmt->nargs; a++)
        args[a] = operand(c, stmt->args[a], is_wide);
    type.lanes = is_wide ? c->at->lanes : type.lanes;
    c->values[stmt->value] = ci_build_let(c->b, type, stmt->op, stmt->nargs, args);
    CiStmt *made = c->b->to->last;
    made->live = is_wide ? c->at->live : substitute(c, stmt->live);
    made->constant = stmt->constant;
    return made;
}

/* A scan whose cell has one lane per lane runs in each lane: the first iteration initializes the
 * cell, later ones add to it. */
static void
copy_running(Copier *c, const CiStmt *stmt)
{
    CiMemory *cell = memory_of(c, stmt->cell);
    const CiExpr *zero = ci_expr_const(c->b->sym, 0), *stride;
    const CiExpr *position = index_at(c, stmt->expr, &stride);
    if (cell->lanes == 1) { /* along the lanes, or of a loop inside that is the same in all */
        CiStmt *made = add_let(c, stmt, is_vector(c) && cell == stmt->cell);
        made->cell = cell;
        made->expr = position;
        return;
    }
    int value = operand(c, stmt->args[0], true);
    CiStmt *choice = ci_build_test(c->b, CI_STMT_if, CI_COMPARE_equal, position, zero);
    CiStmts *outside = ci_build_enter(c->b, &choice->body);
    ci_build_store(c->b, cell, zero, value);
    ci_build_enter(c->b, &choice->other);
    int args[] = {ci_build_load(c->b, cell, zero, cell->lanes), value};
    ci_build_store(
        c->b, cell, zero,
        ci_build_let(c->b, ci_type_of(cell->dtype, cell->lanes), ci_op_combine(stmt->op), 2, args));
    ci_build_leave(c->b, outside);
    c->values[stmt->value] = ci_build_load(c->b, cell, zero, cell->lanes);
}

/* The access of a copy. In lanes, a stride of 1 is left out unless the index has lanes of its own. */
static void
copy_access(Copier *c, CiStmt *made, const CiStmt *stmt, const CiExpr *index, const CiExpr *stride,
            bool is_wide)
{
    made->at = stmt->at;
    made->at.memory = memory_of(c, stmt->at.memory);
    made->at.index = index;
    made->is_atomic = stmt->is_atomic;
    if (!is_wide || made->at.memory->lanes > 1)
        made->at.stride = substitute(c, stmt->at.stride);
    else if (ci_expr_equals_const(stride, 1) && !names_bound_lanes(c, stmt->at.index))
        made->at.stride = NULL;
    else
        made->at.stride = stride;
}

static void
copy_load(Copier *c, const CiStmt *stmt, bool is_wide)
{
    const CiExpr *stride, *index = index_at(c, stmt->at.index, &stride);
    copy_access(c, add_let(c, stmt, is_wide), stmt, index, stride, is_wide);
}

static void
copy_index(Copier *c, const CiStmt *stmt, bool is_wide)
{
    const CiExpr *stride, *e = index_at(c, stmt->expr, &stride);
    bool counts = is_wide && ci_expr_equals_const(stride, 1);
    if (is_wide && !counts && !ci_expr_equals_const(stride, 0))
        e = at_lane(c, stmt->expr);
    CiStmt *made = add_let(c, stmt, is_wide);
    made->op = counts ? CI_OP_iota : stmt->op;
    made->expr = e;
}

static void
copy_let(Copier *c, const CiStmt *stmt)
{
    bool is_wide = is_vector(c) && c->varying.values[stmt->value];
    if (stmt->op == CI_OP_load) {
        copy_load(c, stmt, is_wide);
    } else if (stmt->op == CI_OP_index || stmt->op == CI_OP_iota) {
        copy_index(c, stmt, is_wide);
    } else if (ci_stmt_is_running(stmt)) {
        copy_running(c, stmt);
    } else if (stmt->op == CI_OP_bind) {
        CiStmt *made = add_let(c, stmt, is_wide);
        made->limit = substitute(c, stmt->limit);
        made->expr = made->limit ? ci_expr_index(c->b->sym, ci_build_name(c->b, "at"), made->limit)
                                 : stmt->expr;
        replace_symbol(c, stmt->expr, made->expr);
    } else {
        add_let(c, stmt, is_wide)->expr = substitute(c, stmt->expr);
    }
}

static bool
can_combine(const Copier *c, const CiStmt *store)
{
    const CiMachine *machine = c->b->machine;
    CiDtype dtype = store->at.memory->dtype;
    return machine->why_not_vector && ci_lanes_have_own_elements(c->b->sym, &c->varying, store) &&
           !machine->why_not_vector(c->b->ctx, store->op, dtype, dtype);
}

/* The value that a store in lanes leaves: combined with the loaded elements if each lane has its own. */
static int
combined_value(Copier *c, const CiStmt *stmt, const CiExpr *index, int value)
{
    CiMemory *memory = memory_of(c, stmt->at.memory);
    int args[] = {ci_build_load(c->b, memory, index, c->at->lanes), value};
    c->b->to->last->live = c->at->live;
    int made = ci_build_let(c->b, ci_type_of(memory->dtype, c->at->lanes), stmt->op, 2, args);
    c->b->to->last->live = c->at->live;
    return made;
}

/* A store of what varies, or where it varies, has lanes; one that combines has them always. */
static void
copy_store(Copier *c, const CiStmt *stmt)
{
    const CiExpr *stride, *index = index_at(c, stmt->at.index, &stride);
    CiMemory *memory = memory_of(c, stmt->at.memory);
    bool is_wide = is_vector(c) && (ci_stmt_uses_varying(&c->varying, stmt) || memory->lanes > 1 ||
                                    stmt->op != CI_OP_none);
    int value = operand(c, stmt->args[0], is_wide);
    bool is_own = is_wide && stmt->op != CI_OP_none && can_combine(c, stmt);
    if (is_own)
        value = combined_value(c, stmt, index, value);
    ci_build_store(c->b, memory, index, value);
    CiStmt *made = c->b->to->last;
    copy_access(c, made, stmt, index, stride, is_wide);
    made->op = is_own ? CI_OP_none : stmt->op;
    made->is_in_order = stmt->is_in_order;
    made->live = is_wide ? c->at->live : substitute(c, stmt->live);
    if (is_wide && memory != stmt->at.memory) /* of the lanes' own: what others hold is theirs */
        made->live = NULL;
}

static void
replace_expr(void *arg, const CiExpr **e)
{
    *e = substitute(arg, *e);
}

static void
replace_memory(void *arg, CiMemory **memory, CiTouch touch)
{
    (void)touch;
    *memory = memory_of(arg, *memory);
}

/* A copy without its blocks, whose operands are those of this part. */
static CiStmt *
copy_operands(Copier *c, const CiStmt *stmt)
{
    int *args = CI_NEW_ARRAY(c->b->ctx, int, stmt->nargs + 1);
    for (int a = 0; a < stmt->nargs; a++)
        args[a] = operand(c, stmt->args[a], is_vector(c));
    CiStmt *made = ci_build_copy(c->b, stmt);
    for (int a = 0; a < stmt->nargs; a++)
        made->args[a] = args[a];
    for (int k = 0; k < stmt->ntests; k++)
        if (stmt->tests[k].compare >= CI_COMPARE_is)
            made->tests[k].value = c->values[stmt->tests[k].value];
    ci_stmt_each_memory(made, replace_memory, c);
    ci_stmt_each_expr(made, replace_expr, c);
    return made;
}

static void
copy_call(Copier *c, const CiStmt *stmt)
{
    CiStmt *made = copy_operands(c, stmt);
    if (!is_vector(c))
        return;
    made->live = c->at->live;
    made->type.lanes = c->at->lanes;
}

/* An apply is the same in all lanes. */
static void
copy_apply(Copier *c, const CiStmt *stmt)
{
    CI_REQUIRE(c->b->ctx, !is_vector(c));
    copy_operands(c, stmt);
}

static void
copy_alloc(Copier *c, const CiStmt *stmt)
{
    const CiMemory *old = stmt->memory;
    bool is_wide = is_vector(c) && ci_map_find(c->varying.memories, CI_KEY(old));
    CiMemory *memory =
        ci_build_alloc(c->b, ci_build_name(c->b, old->name), old->dtype,
                       is_wide ? c->at->lanes : old->lanes, old->space, substitute(c, old->size));
    memory->buffer = old->buffer;
    memory->offset = substitute(c, old->offset);
    if (old->offset && c->part > 0) { /* after the parts before it */
        CiDtype item = memory->lanes > 1 ? ci_dtype_compute(old->dtype) : old->dtype;
        int64_t bytes = (int64_t)c->part * memory->lanes * (int64_t)ci_dtype_size(item);
        memory->offset =
            ci_expr_add(c->b->sym, memory->offset,
                        ci_expr_mul(c->b->sym, memory->size, ci_expr_const(c->b->sym, bytes)));
    }
    ci_map_put(c->memories, CI_KEY(old), memory);
}

static void copy_all(Copier *c, const CiStmts *stmts);

static void
copy_block(Copier *c, const CiStmts *from, CiStmts *to)
{
    CiStmts *outside = ci_build_enter(c->b, to);
    const CiExpr **lanes = CI_NEW_ARRAY(c->b->ctx, const CiExpr *, c->nparts + 1);
    for (int k = 0; k < c->nparts; k++)
        lanes[k] = c->parts[k].lane;
    copy_all(c, from);
    for (int k = 0; k < c->nparts; k++) /* what a block has made is seen in it alone */
        c->parts[k].lane = lanes[k];
    ci_build_leave(c->b, outside);
}

/* Loops, branches and what leaves them. A variable whose extent changes is another. */
static void
copy_control(Copier *c, const CiStmt *stmt)
{
    CiStmt *made = copy_operands(c, stmt);
    for (int k = 0; k < stmt->nvars; k++) {
        made->vars[k] = ci_expr_index(c->b->sym, stmt->vars[k]->name, made->extents[k]);
        for (int part = 0; part < c->nparts && made->vars[k] != stmt->vars[k]; part++)
            replace_symbol(&c->parts[part], stmt->vars[k], made->vars[k]);
    }
    copy_block(c, &stmt->body, &made->body);
    copy_block(c, &stmt->other, &made->other);
}

/* The reductions of a part: all of the first one's, of others those that differ from it. */
static void
copy_reductions(const Copier *c, const CiStmt *stmt, CiStmt *made, CiStmt *yield)
{
    for (int k = 0, from = 0; k < stmt->nops; k++) {
        int width = ci_fold_width(stmt->ops[k]);
        bool varies = false;
        for (int a = from; a < from + width; a++)
            varies |= ci_map_find(c->varying.memories, CI_KEY(stmt->into[a])) != NULL;
        for (int a = from; a < from + width && (varies || !c->part); a++) {
            made->into[made->ninto++] = memory_of(c, stmt->into[a]);
            yield->args[yield->nargs++] = c->yield[a];
        }
        if (varies || !c->part)
            made->ops[made->nops++] = stmt->ops[k];
        from += width;
    }
}

/* Its yield is its own, and no lane of the loop's is one of the fold's. Parts are reductions of one fold. */
static void
copy_fold(Copier *c, const CiStmt *stmt)
{
    CI_REQUIRE(c->b->ctx, !is_vector(c));
    copy_control(c, stmt);
    CiStmt *made = c->b->to->last;
    made->into = CI_NEW_ARRAY(c->b->ctx, CiMemory *, c->nparts * stmt->ninto + 1);
    made->ops = CI_NEW_ARRAY(c->b->ctx, CiOp, c->nparts * stmt->nops + 1);
    made->nops = made->ninto = 0;
    CiStmts *outside = ci_build_enter(c->b, &made->body);
    CiStmt *yield = ci_build_add(c->b, CI_STMT_yield);
    yield->args = CI_NEW_ARRAY(c->b->ctx, int, c->nparts * stmt->ninto + 1);
    for (int part = 0; part < c->nparts; part++)
        copy_reductions(&c->parts[part], stmt, made, yield);
    ci_build_leave(c->b, outside);
}

static void
copy_one(Copier *c, const CiStmt *stmt)
{
    switch (stmt->kind) {
    case CI_STMT_let:
        copy_let(c, stmt);
        break;
    case CI_STMT_store:
        copy_store(c, stmt);
        break;
    case CI_STMT_alloc:
        copy_alloc(c, stmt);
        break;
    case CI_STMT_call:
        copy_call(c, stmt);
        break;
    case CI_STMT_apply:
        copy_apply(c, stmt);
        break;
    case CI_STMT_fold:
        copy_fold(c, stmt);
        break;
    case CI_STMT_yield:
        c->yield = CI_NEW_ARRAY(c->b->ctx, int, stmt->nargs + 1);
        for (int a = 0; a < stmt->nargs; a++)
            c->yield[a] = operand(c, stmt->args[a], true);
        break;
    default:
        copy_control(c, stmt);
    }
}

static bool
is_control(CiStmtKind kind)
{
    return kind != CI_STMT_let && kind != CI_STMT_store && kind != CI_STMT_alloc &&
           kind != CI_STMT_call && kind != CI_STMT_apply && kind != CI_STMT_yield;
}

/* Gives every part the value or memory that the first part has made. */
static void
share(Copier *c, const CiStmt *stmt)
{
    const Copier *first = &c->parts[0];
    if (stmt->value >= 0)
        c->values[stmt->value] = first->values[stmt->value];
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(c->memories, CI_KEY(stmt->memory), memory_of(first, stmt->memory));
    if (stmt->op == CI_OP_bind)
        replace_symbol(c, stmt->expr, first->to[first->count - 1]);
}

static void
copy_all(Copier *c, const CiStmts *stmts)
{
    CiLoc loc = c->b->loc;
    for (const CiStmt *stmt = stmts->first; stmt; stmt = stmt->next) {
        c->b->loc = stmt->loc;
        copy_one(c, stmt);
        for (int k = 1; k < c->nparts && !is_control(stmt->kind); k++) {
            if (ci_stmt_varies(&c->varying, stmt))
                copy_one(&c->parts[k], stmt);
            else
                share(&c->parts[k], stmt);
        }
    }
    c->b->loc = loc;
}

const int *
ci_build_at(CiBuild *b, const CiStmts *body, const CiAt *at)
{
    int nparts = at->parts > 1 ? at->parts : 1, count = b->proc->nvalues;
    Copier *parts = CI_NEW_ARRAY(b->ctx, Copier, nparts);
    CiVarying varying = ci_vary(b->ctx, b->proc, body, at->lanes > 1 || nparts > 1 ? at->lane_var : NULL);
    for (int part = 0; part < nparts; part++) {
        Copier *c = &parts[part];
        *c = (Copier){.b = b,
                      .at = at,
                      .memories = ci_map_new(b->ctx),
                      .varying = varying,
                      .parts = parts,
                      .nparts = nparts,
                      .part = part,
                      .values = CI_NEW_ARRAY(b->ctx, int, count + 1)};
        for (int k = 0; k < count; k++)
            c->values[k] = k; /* of values made outside of the body */
        for (int k = 0; k < at->count; k++)
            replace_symbol(c, at->from[k], symbol_here(c, k));
    }
    copy_all(&parts[0], body);
    return parts[0].yield;
}

const int *
ci_build_iteration(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *at)
{
    CiAt iteration = {.count = 1, .from = &var, .to = &at, .lanes = 1};
    return ci_build_at(b, body, &iteration);
}

void
ci_build_jammed(CiBuild *b, const CiStmts *body, const CiExpr *var, const CiExpr *first, int count)
{
    ci_build_at(b, body, &(CiAt){1, &var, &first, var, 1, NULL, count});
}

CiGroups
ci_build_groups(CiBuild *b, const char *stem, const CiExpr *count, int64_t size)
{
    const CiExpr *width = ci_expr_const(b->sym, size), *groups = ci_expr_floordiv(b->sym, count, width);
    CiStmt *loop = ci_build_for(b, stem, groups, CI_RUN_serial);
    return (CiGroups){ci_expr_mul(b->sym, loop->vars[0], width), ci_expr_mul(b->sym, groups, width),
                      ci_build_enter(b, &loop->body)};
}

CiGroups
ci_build_left(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *done)
{
    CiStmt *loop = ci_build_for(b, stem, ci_expr_sub(b->sym, count, done), CI_RUN_serial);
    return (CiGroups){ci_expr_add(b->sym, done, loop->vars[0]), count, ci_build_enter(b, &loop->body)};
}

const CiExpr *
ci_build_piece_count(CiBuild *b, const CiExpr *count, const CiExpr *first, const CiExpr *size)
{
    if (ci_sym_known_multiple_of(b->sym, count, size))
        return size;
    return ci_build_named(b, ci_expr_min(b->sym, size, ci_expr_sub(b->sym, count, first)));
}

CiPiece
ci_build_pieces(CiBuild *b, const char *stem, const CiExpr *count, const CiExpr *size, CiRunMode run)
{
    CiStmt *loop = ci_build_for(b, stem, ci_expr_ceildiv(b->sym, count, size), run);
    CiStmts *outside = ci_build_enter(b, &loop->body);
    const CiExpr *first = ci_expr_mul(b->sym, loop->vars[0], size);
    return (CiPiece){first, ci_build_piece_count(b, count, first, size), outside};
}

CiPiece
ci_build_tiles(CiBuild *b, const char *stem, CiStmt *loop, int64_t size)
{
    CiSym *sym = b->sym;
    const CiExpr *extent = loop->extents[0], *each = ci_expr_const(sym, size), *tiles = ci_expr_ceildiv(sym, extent, each),
                 *tile = ci_expr_index(sym, ci_build_name(b, stem), tiles);
    loop->extents[0] = tiles;
    loop->vars[0] = tile;
    loop->run = CI_RUN_parallel;
    if (extent->high <= size)
        return (CiPiece){ci_expr_const(sym, 0), extent, b->to};
    const CiExpr *first = ci_expr_mul(sym, tile, each);
    return (CiPiece){first, ci_build_piece_count(b, extent, first, each), b->to};
}

CiStmt *
ci_build_run_together(CiBuild *b, CiStmt *points, CiRunMode run)
{
    CiSym *sym = b->sym;
    const CiExpr *first = points->vars[0];
    CiStmts body = points->body;
    points->body = (CiStmts){0};
    points->runs = ci_expr_index(sym, ci_build_name(b, "m"),
                                 ci_expr_add(sym, points->extents[0], ci_expr_const(sym, 1)));
    CiStmts *outside = ci_build_enter(b, &points->body);
    CiStmt *loop = ci_build_for(b, "j", points->runs, run);
    ci_build_enter(b, &loop->body);
    ci_build_iteration(b, &body, first, ci_expr_add(sym, first, loop->vars[0]));
    ci_build_leave(b, outside);
    return loop;
}
