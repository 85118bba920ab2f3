/* Loop interchange (Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001): moves
 * loops down columns out of a loop over lanes. Memory is then read row by row instead of a few
 * columns at a time with a stride of a page.
 *
 *   for j<n vector { A  for r<m serial { B }  C }  ->
 *   for j<n vector { A }
 *   for g<m//4 serial { for j<n vector { B B B B } }  for q<m%4 serial { for j<n vector { B } }
 *   for j<n vector { C }
 *
 * Registers of a lane are stored on the stack between two pieces, one element per lane, and are in
 * registers within a piece. This is why four rows are taken at a time. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

#include "base/map.h"

#define MAX_REGISTERS 8 /* of a lane */

typedef struct Register {
    CiMemory *memory; /* of one lane */
    CiMemory *all;    /* the array on the stack that has an element for each lane */
    bool is_stored;   /* by an earlier piece, so that the array has its values */
} Register;

typedef struct Interchange {
    CiBuild b;
    const CiStmt *lanes; /* the loop over lanes, which is moved inside */
    Register registers[MAX_REGISTERS];
    int nregisters;
} Interchange;

/* ---- which loops ---- */

static bool
is_value_or_store(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_let || (stmt->kind == CI_STMT_store && !stmt->is_in_order);
}

static bool
prevents_interchange(const CiStmt *stmt)
{
    return !is_value_or_store(stmt) || stmt->cell || stmt->op == CI_OP_bind || ci_stmt_is_ufunc(stmt);
}

static bool
is_register(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_register &&
           ci_expr_equals_const(stmt->memory->size, 1) && stmt->memory->lanes == 1;
}

/* True if the loads are contiguous in the lanes and strided from one iteration to the next. */
static bool
reads_columns(Interchange *x, const CiStmt *loop)
{
    CiSym *sym = x->b.sym;
    const CiExpr *across, *down, *rest;
    bool has_any = false;
    for (const CiStmt *stmt = loop->body.first; stmt; stmt = stmt->next) {
        if (stmt->op != CI_OP_load || stmt->at.memory->space != CI_SPACE_global)
            continue;
        if (!ci_expr_split_linear(sym, stmt->at.index, x->lanes->vars[0], &across, &rest) ||
            !ci_expr_split_linear(sym, rest, loop->vars[0], &down, &rest))
            return false;
        has_any |= ci_expr_equals_const(across, 1) && down->high >= CI_CHOOSE(&x->b, turned_rows);
    }
    return has_any;
}

static bool
is_row_loop(Interchange *x, const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_for && stmt->run == CI_RUN_serial && stmt->nvars == 1 &&
           stmt->extents[0]->high >= CI_CHOOSE(&x->b, turned_rows) &&
           !ci_expr_depends_on(stmt->extents[0], x->lanes->vars[0]) &&
           !ci_stmts_have(&stmt->body, prevents_interchange) && !ci_stmts_have(&stmt->body, ci_stmt_is_math) &&
           reads_columns(x, stmt);
}

static void
note_defined(void *arg, const CiStmt *stmt)
{
    bool *is_defined = arg;
    if (stmt->value >= 0)
        is_defined[stmt->value] = true;
}

typedef struct Uses {
    const bool *is_defined;
    bool has_any;
} Uses;

static void
note_use(void *arg, const CiStmt *stmt)
{
    Uses *uses = arg;
    for (int a = 0; a < stmt->nargs; a++)
        uses->has_any |= uses->is_defined[stmt->args[a]];
}

/* True if the piece uses a value that is marked: one that an earlier piece defines. */
static bool
uses_values_of(const CiStmts *piece, const bool *is_defined)
{
    Uses uses = {is_defined, false};
    ci_stmts_visit(piece, note_use, &uses);
    return uses.has_any;
}

/* Sets the piece that begins at `from`: a loop over rows alone, or the statements up to the next such loop. Returns
 * the statement after it. */
static CiStmt *
next_piece(Interchange *x, CiStmt *from, CiStmts *piece)
{
    CiStmt *end = from->next;
    piece->first = piece->last = from;
    if (is_row_loop(x, from))
        return end;
    while (end && !is_row_loop(x, end)) {
        piece->last = end;
        end = end->next;
    }
    return end;
}

/* Calls act for each piece, as a block of its own, until it returns false; then returns false. */
static bool
each_piece(Interchange *x, CiStmts *body, bool (*act)(Interchange *x, CiStmts *piece, void *arg),
           void *arg)
{
    for (CiStmt *from = body->first; from;) {
        CiStmts piece;
        CiStmt *next = next_piece(x, from, &piece), *link = piece.last->next;
        piece.last->next = NULL;
        bool goes_on = act(x, &piece, arg);
        piece.last->next = link;
        if (!goes_on)
            return false;
        from = next;
    }
    return true;
}

static bool
is_independent(Interchange *x, CiStmts *piece, void *arg)
{
    (void)x;
    if (uses_values_of(piece, arg))
        return false;
    ci_stmts_visit(piece, note_defined, arg);
    return true;
}

static bool
may_interchange(Interchange *x)
{
    const CiStmt *loop = x->lanes;
    bool has_loop = false;
    if (loop->extents[0]->high > CI_CHOOSE(&x->b, turned_lanes) || loop->nvars != 1)
        return false;
    x->nregisters = 0;
    for (CiStmt *stmt = loop->body.first; stmt; stmt = stmt->next) {
        has_loop |= is_row_loop(x, stmt);
        if (is_register(stmt) && x->nregisters < MAX_REGISTERS)
            x->registers[x->nregisters++] = (Register){.memory = stmt->memory};
        else if (!is_row_loop(x, stmt) && (!is_value_or_store(stmt) || stmt->op == CI_OP_bind || stmt->cell))
            return false;
    }
    CiStmts body = loop->body;
    return has_loop && each_piece(x, &body, is_independent,
                                  CI_NEW_ARRAY(x->b.ctx, bool, x->b.proc->nvalues + 1));
}

/* ---- pieces ---- */

/* Emits the piece for one lane: loads the registers from the arrays that hold them for all lanes,
 * and stores them back. */
static void
fill_lane(Interchange *x, const CiStmts *piece, const CiExpr *var, const CiExpr *const *iterations,
          int count)
{
    CiBuild *b = &x->b;
    const CiExpr *zero = ci_expr_const(b->sym, 0), *lane = x->lanes->vars[0];
    for (int k = 0; k < x->nregisters; k++) {
        CiTouched touched = ci_stmts_touch(piece, x->registers[k].memory);
        if (!touched.is_loaded && !touched.is_stored)
            continue;
        ci_build_add(b, CI_STMT_alloc)->memory = x->registers[k].memory;
        if (x->registers[k].is_stored)
            ci_build_store(b, x->registers[k].memory, zero,
                           ci_build_load(b, x->registers[k].all, lane, 1));
    }
    for (int k = 0; k < count; k++)
        ci_build_iteration(b, piece, var, iterations[k]);
    for (int k = 0; k < x->nregisters; k++)
        if (ci_stmts_touch(piece, x->registers[k].memory).is_stored)
            ci_build_store(b, x->registers[k].all, lane,
                           ci_build_load(b, x->registers[k].memory, zero, 1));
}

static void
add_lanes(Interchange *x, const CiStmts *piece, const CiExpr *var, const CiExpr *const *iterations,
          int count)
{
    CiBuild *b = &x->b;
    CiStmts one = {0};
    CiStmts *outside = ci_build_enter(b, &one);
    fill_lane(x, piece, var, iterations, count);
    ci_build_enter(b, outside);
    CiStmt *loop = ci_build_for(b, "j", x->lanes->extents[0], CI_RUN_vector);
    ci_build_enter(b, &loop->body);
    ci_build_iteration(b, &one, x->lanes->vars[0], loop->vars[0]);
    ci_build_leave(b, outside);
}

static void
add_row_loop(Interchange *x, const CiStmt *down)
{
    CiBuild *b = &x->b;
    int count = (int)CI_CHOOSE(b, turned_jam);
    const CiExpr **iterations = CI_NEW_ARRAY(b->ctx, const CiExpr *, count);
    CiGroups groups = ci_build_groups(b, "g", down->extents[0], count);
    for (int k = 0; k < count; k++)
        iterations[k] = ci_expr_add(b->sym, groups.first, ci_expr_const(b->sym, k));
    add_lanes(x, &down->body, down->vars[0], iterations, count);
    ci_build_leave(b, groups.outside);
    CiGroups left = ci_build_left(b, "q", down->extents[0], groups.done);
    add_lanes(x, &down->body, down->vars[0], &left.first, 1);
    ci_build_leave(b, left.outside);
}

static bool
add_piece(Interchange *x, CiStmts *piece, void *arg)
{
    (void)arg;
    const CiStmt *first = piece->first;
    CiStmts plain = {0};
    if (is_row_loop(x, first)) {
        add_row_loop(x, first);
    } else {
        CiStmts *outside = ci_build_enter(&x->b, &plain);
        for (CiStmt *stmt = piece->first; stmt; stmt = stmt->next) {
            if (stmt->kind != CI_STMT_alloc)
                ci_build_copy(&x->b, stmt);
        }
        ci_build_leave(&x->b, outside);
        const CiExpr *here = x->lanes->vars[0];
        if (plain.first)
            add_lanes(x, &plain, here, &here, 1);
        piece = &plain;
    }
    for (int k = 0; k < x->nregisters; k++)
        x->registers[k].is_stored |= ci_stmts_touch(piece, x->registers[k].memory).is_stored;
    return true;
}

static void
interchange_stmt(void *arg, CiStmt *stmt)
{
    Interchange *x = arg;
    x->lanes = stmt;
    if (stmt->kind != CI_STMT_for || stmt->run != CI_RUN_vector || !may_interchange(x)) {
        ci_build_rewrite(&x->b, &stmt->body, interchange_stmt, x);
        ci_build_rewrite(&x->b, &stmt->other, interchange_stmt, x);
        ci_build_move(&x->b, stmt);
        return;
    }
    for (int k = 0; k < x->nregisters; k++)
        x->registers[k].all = ci_build_alloc(&x->b, ci_build_name(&x->b, "column"),
                                             x->registers[k].memory->dtype, 1, CI_SPACE_stack,
                                             ci_expr_const(x->b.sym, stmt->extents[0]->high));
    each_piece(x, &stmt->body, add_piece, NULL);
}

void
ci_interchange_columns(CiBuild *b)
{
    Interchange x = {.b = *b};
    ci_build_rewrite(&x.b, &b->proc->body, interchange_stmt, &x);
}
