/* Elementary functions -> calls of NumPy's ufunc loops, one strip of elements at a time.
 *
 * A loop over lanes that computes such values is strip-mined, and its body is cut into groups of
 * statements between the calls. Each group is a loop over the strip; a value that one group
 * computes and another reads gets memory for one strip. Loops and branches of the body that are the
 * same in all lanes are cut in the same way. So are the points of a unit loop, if they contain
 * loops and compute such a value after them: the points of one thread form strips. In all other
 * cases a strip is one element.
 *
 *   for i<n vector {                    for s<ceildiv(n, 1024) serial {
 *     %0 = load x[i]                      apply numpy_exp y[0] of x[1024*s] for [count]
 *     %1 = numpy_exp %0            ->     for j<count vector {
 *     %2 = add %1, %1                       %1 = load y[j]
 *     store z[i] = %2                       %2 = add %1, %1
 *   }                                       store z[1024*s + j] = %2
 *                                         }
 *                                       } */
#include "codegen/strips.h"

#include "codegen/instantiate.h"

#include <string.h>

/* ---- statements of a group ---- */

static const CiExpr *
number(const CiStripper *s, int64_t value)
{
    return ci_expr_const(s->b.sym, value);
}

static const CiExpr *
here(CiStripper *s)
{
    return ci_expr_add(s->b.sym, s->first, s->group.var);
}

static const CiExpr *
substitute(CiStripper *s, const CiExpr *e)
{
    const CiStripGroup *g = &s->group;
    const CiExpr *to = here(s);
    e = ci_expr_substitute(s->b.sym, e, 1, &s->var, &to);
    return g->nsymbols ? ci_expr_substitute(s->b.sym, e, g->nsymbols, g->from, g->to) : e;
}

static void
open_group(CiStripper *s, int number_of_it)
{
    CiStripGroup *g = &s->group;
    if (g->number)
        return;
    *g = (CiStripGroup){.number = number_of_it};
    g->var = ci_expr_index(s->b.sym, ci_build_name(&s->b, "j"), s->count);
    g->local = CI_NEW_ARRAY(s->b.ctx, int, s->b.proc->nvalues + 1);
    g->from = CI_NEW_ARRAY(s->b.ctx, const CiExpr *, s->nbound + 1);
    g->to = CI_NEW_ARRAY(s->b.ctx, const CiExpr *, s->nbound + 1);
}

static bool
has_own_lanes(const CiStmt *stmt)
{
    return ci_stmt_is_loop(stmt) || stmt->type.lanes > 1;
}

static void
close_group(CiStripper *s)
{
    bool is_sequential = s->is_of_points && ci_stmts_have(&s->group.body, has_own_lanes);
    if (s->group.number && s->group.body.first)
        ci_build_loop(&s->b, s->group.var, s->count, is_sequential ? CI_RUN_serial : CI_RUN_vector)
            ->body = s->group.body;
    s->group.number = 0;
}

/* A value as this group sees it: loaded from its strip if another group computed it. */
static int
value_here(CiStripper *s, int value)
{
    if (!s->memory_of[value] || s->made_in[value] == s->group.number)
        return value;
    if (!s->group.local[value])
        s->group.local[value] = ci_build_load(&s->b, s->memory_of[value], s->group.var, 1) + 1;
    return s->group.local[value] - 1;
}

static bool
is_bound_here(const CiStripGroup *g, const CiExpr *symbol)
{
    for (int k = 0; k < g->nsymbols; k++)
        if (g->from[k] == symbol)
            return true;
    return false;
}

static void
bind_here(CiStripper *s, const CiExpr *e)
{
    CiStripGroup *g = &s->group;
    for (int k = 0; e && k < e->nsymbols; k++) {
        const CiStmt *bind = ci_map_find(s->bound, CI_KEY(e->symbols[k]));
        if (!bind || !s->memory_of[bind->args[0]] || s->made_in[bind->value] == g->number ||
            is_bound_here(g, bind->expr))
            continue;
        const CiExpr *limit = substitute(s, bind->limit);
        int value = value_here(s, bind->args[0]);
        g->to[g->nsymbols] = ci_build_bind(&s->b, value, limit);
        g->from[g->nsymbols++] = bind->expr;
    }
}

/* Loads the operands that other groups computed, before the statement. */
static void
bring(void *arg, const CiStmt *stmt)
{
    CiStripper *s = arg;
    for (int a = 0; a < stmt->nargs; a++)
        value_here(s, stmt->args[a]);
    bind_here(s, stmt->at.index);
    bind_here(s, stmt->op == CI_OP_bind ? NULL : stmt->expr);
}

static void
lengthen(CiStripper *s, CiAccess *at)
{
    CiMemory *longer = at->memory ? ci_map_find(s->longer, CI_KEY(at->memory)) : NULL;
    if (!longer)
        return;
    at->memory = longer;
    at->index =
        ci_expr_add(s->b.sym, ci_expr_mul(s->b.sym, at->index, number(s, s->length)), s->group.var);
}

static void
replace_expr(void *arg, const CiExpr **e)
{
    *e = substitute(arg, *e);
}

static void
strip_stmt(void *arg, CiStmt *stmt)
{
    CiStripper *s = arg;
    for (int a = 0; a < stmt->nargs; a++)
        stmt->args[a] = value_here(s, stmt->args[a]);
    ci_stmt_each_expr(stmt, replace_expr, s);
    lengthen(s, &stmt->at);
    ci_build_rewrite(&s->b, &stmt->body, strip_stmt, s);
    ci_build_rewrite(&s->b, &stmt->other, strip_stmt, s);
    ci_build_move(&s->b, stmt);
    if (stmt->value >= 0 && s->crosses[stmt->value])
        ci_build_store(&s->b, s->memory_of[stmt->value], s->group.var, stmt->value);
}

static void
put_in_group(CiStripper *s, CiStmt *stmt)
{
    open_group(s, ci_strip_group(s, stmt));
    CiStmts *outside = ci_build_enter(&s->b, &s->group.body);
    ci_stmt_visit(stmt, bring, s);
    strip_stmt(s, stmt);
    ci_build_leave(&s->b, outside);
}

/* ---- calls ---- */

static CiMemory *
new_memory(CiStripper *s, const char *stem, CiDtype dtype, int64_t size)
{
    return ci_build_alloc(&s->b, ci_build_name(&s->b, stem), dtype, 1, CI_SPACE_stack,
                          number(s, size));
}

static CiAccess
at_first(CiStripper *s, const CiStmt *stmt)
{
    return (CiAccess){.memory = stmt->at.memory,
                      .index = ci_expr_substitute(s->b.sym, stmt->at.index, 1, &s->var, &s->first)};
}

static CiAccess
operand_of(CiStripper *s, int value)
{
    const CiStmt *let = s->lets[value];
    if (!s->varying.values[value]) { /* one for all of them */
        CiMemory *one = new_memory(s, "one", s->b.proc->types[value].dtype, 1);
        ci_build_store(&s->b, one, number(s, 0), value);
        return (CiAccess){.memory = one, .index = number(s, 0), .stride = number(s, 0)};
    }
    if (s->memory_of[value])
        return (CiAccess){.memory = s->memory_of[value], .index = number(s, 0)};
    const CiExpr *step;
    ci_strip_is_line(s, let, &step);
    CiAccess at = at_first(s, let);
    at.stride = ci_expr_equals_const(step, 1) ? NULL : step;
    return at;
}

static void
add_call(CiStripper *s, const CiStmt *let)
{
    CiAccess in[2];
    for (int a = 0; a < let->nargs; a++)
        in[a] = operand_of(s, let->args[a]);
    CiStmt *call = ci_build_add(&s->b, CI_STMT_apply);
    call->op = let->op;
    call->at = s->store[let->value]
                   ? at_first(s, s->store[let->value])
                   : (CiAccess){.memory = s->memory_of[let->value], .index = number(s, 0)};
    memcpy(call->in, in, sizeof *in * (size_t)let->nargs);
    call->nin = let->nargs;
    call->expr = s->count;
}

/* ---- where there are no lanes ---- */

/* The operation that calls the C library's function, if NumPy's loop calls it for each element; else none. */
static CiOp
by_library(const CiStmt *let)
{
    bool is_hypot = let->op == CI_OP_numpy_hypot && let->type.dtype != CI_DTYPE_f16;
    return is_hypot ? CI_OP_scalar_hypot : CI_OP_none;
}

static void
call_for_one(CiStripper *s, CiStmt *let)
{
    if (by_library(let) != CI_OP_none) {
        let->op = by_library(let);
        ci_build_move(&s->b, let);
        return;
    }
    const CiExpr *zero = number(s, 0);
    CiAccess in[2];
    for (int a = 0; a < let->nargs; a++) {
        CiDtype dtype = s->b.proc->types[let->args[a]].dtype;
        in[a] = (CiAccess){.memory = new_memory(s, "one", dtype, 1), .index = zero};
        ci_build_store(&s->b, in[a].memory, zero, let->args[a]);
    }
    CiMemory *out = new_memory(s, "one", let->type.dtype, 1);
    CiStmt *call = ci_build_add(&s->b, CI_STMT_apply);
    call->op = let->op;
    call->at = (CiAccess){.memory = out, .index = zero};
    memcpy(call->in, in, sizeof *in * (size_t)let->nargs);
    call->nin = let->nargs;
    call->expr = number(s, 1);
    let->op = CI_OP_load;
    let->nargs = 0;
    let->at = call->at;
    ci_build_move(&s->b, let);
}

/* ---- cutting ---- */

static void cut_block(CiStripper *s, CiStmts *block);

static void
cut_alloc(CiStripper *s, CiStmt *alloc)
{
    const CiMemory *old = alloc->memory;
    if ((intptr_t)ci_map_find(s->owners, CI_KEY(old)) > 0) {
        put_in_group(s, alloc);
        return;
    }
    const CiExpr *size = ci_expr_mul(s->b.sym, old->size, number(s, s->length));
    CiMemory *made =
        ci_build_alloc(&s->b, ci_build_name(&s->b, old->name), old->dtype, 1,
                       old->space == CI_SPACE_register ? CI_SPACE_stack : old->space, size);
    made->buffer = old->buffer;
    made->offset = old->offset;
    ci_map_put(s->longer, CI_KEY(old), made);
}

static bool
is_dropped(const CiStripper *s, const CiStmt *stmt)
{
    return (stmt->value >= 0 && s->is_in_place[stmt->value]) ||
           ci_map_find(s->dropped, CI_KEY(stmt)) != NULL;
}

static void
cut(void *arg, CiStmt *stmt)
{
    CiStripper *s = arg;
    if (is_dropped(s, stmt))
        return;
    if (ci_stmt_is_ufunc(stmt) && !s->varying.values[stmt->value]) {
        call_for_one(s, stmt);
    } else if (ci_strip_is_cut(s, stmt)) {
        close_group(s);
        if (ci_stmt_is_ufunc(stmt)) {
            add_call(s, stmt);
            return;
        }
        cut_block(s, &stmt->body);
        cut_block(s, &stmt->other);
        ci_build_move(&s->b, stmt);
    } else if (stmt->kind == CI_STMT_alloc && ci_strip_is_of_lanes(s, stmt)) {
        cut_alloc(s, stmt);
    } else if (ci_strip_is_of_lanes(s, stmt)) {
        put_in_group(s, stmt);
    } else {
        if (ci_strip_ends_group(s, stmt))
            close_group(s);
        ci_build_move(&s->b, stmt);
    }
}

/* ci_build_rewrite, and the last group's end. */
static void
cut_block(CiStripper *s, CiStmts *block)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&s->b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        cut(s, stmt);
    }
    close_group(s);
    ci_build_leave(&s->b, outside);
}

static void
look(void *arg, const CiStmt *stmt)
{
    bool *has_scratch = arg;
    *has_scratch |= stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch;
}

/* Strips stay in near cache, all of them; rows of scratch are as many as a tile has lanes. */
static int64_t
choose_length(const CiStripper *s, const CiStmt *loop)
{
    bool has_scratch = false;
    int count = 1;
    int64_t length = s->b.machine->strip, extent = loop->extents[0]->high;
    for (int k = 0; k < s->b.proc->nvalues; k++)
        count += s->crosses[k];
    if (count == 1 && ci_map_count(s->owners) == 0) /* what is read and written is all in place */
        return extent > 0 ? extent : 1;
    while (length > CI_CHOOSE(&s->b, least_strip) &&
           length * 8 * count > CI_CHOOSE(&s->b, strip_bytes))
        length /= 2;
    ci_stmts_visit(&loop->body, look, &has_scratch);
    if (has_scratch && length > s->b.machine->tiled_lanes)
        length = s->b.machine->tiled_lanes;
    return length < extent ? length : extent > 0 ? extent : 1;
}

static void
cut_loop(CiStripper *s, CiStmt *loop)
{
    const CiExpr *extent = loop->extents[0];
    int nvalues = s->b.proc->nvalues;
    s->length = choose_length(s, loop);
    for (int k = 0; k < nvalues; k++)
        if (s->crosses[k])
            s->memory_of[k] = new_memory(s, "strip", s->b.proc->types[k].dtype, s->length);
    CiPiece strip = {number(s, 0), extent, s->b.to};
    if (extent->high > s->length)
        strip = ci_build_pieces(&s->b, "s", extent, number(s, s->length), CI_RUN_serial);
    s->first = strip.first;
    s->count = strip.count;
    CiStmts body = loop->body;
    cut_block(s, &body);
    ci_build_move_all(&s->b, &body);
    ci_build_leave(&s->b, strip.outside);
}

/* The last of loops of units one in the other, if it is one of points. */
static CiStmt *
find_points(CiStmt *units)
{
    CiStmt *next = units;
    while (next && !next->next && next->kind == CI_STMT_for && next->run == CI_RUN_parallel) {
        units = next;
        next = next->body.first;
    }
    return units->run == CI_RUN_parallel && !units->runs ? units : NULL;
}

static bool
cut_points(CiStripper *s, CiStmt *units)
{
    CiStmts one = {units, units};
    CiStmt *points = units->kind == CI_STMT_for ? find_points(units) : NULL;
    if (!points || !ci_strip_survey_points(s, points))
        return false;
    CiStmt *loop = ci_build_run_together(&s->b, points, CI_RUN_serial);
    CI_REQUIRE(s->b.ctx, ci_strip_survey_points(s, loop));
    points->body = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&s->b, &points->body);
    cut_loop(s, loop);
    ci_build_leave(&s->b, outside);
    ci_build_move_all(&s->b, &one);
    return true;
}

static void
strip(void *arg, CiStmt *stmt)
{
    CiStripper *s = arg;
    bool is_loop = stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector &&
                   ci_stmts_have(&stmt->body, ci_stmt_is_ufunc);
    s->b.loc = stmt->loc;
    if (cut_points(s, stmt))
        return;
    if (is_loop && ci_strip_survey(s, stmt)) {
        cut_loop(s, stmt);
        return;
    }
    if (ci_stmt_is_ufunc(stmt)) {
        call_for_one(s, stmt);
        return;
    }
    if (is_loop)
        stmt->run = CI_RUN_serial;
    ci_build_rewrite(&s->b, &stmt->body, strip, s);
    ci_build_rewrite(&s->b, &stmt->other, strip, s);
    ci_build_move(&s->b, stmt);
}

void
ci_strips(CiBuild *b)
{
    CiProc *proc = b->proc;
    CiStripper s = {.b = *b};
    if (ci_stmts_have(&proc->body, ci_stmt_is_ufunc))
        ci_build_rewrite(&s.b, &proc->body, strip, &s);
}
