/* Loops that run in vectors -> loops over strips of lanes.
 *
 * A strip is the loop's body instantiated at its first element; the lanes of the last one that lie
 * beyond the loop's end are not live. A body that cannot run in lanes runs serially.
 *
 * Where vectors fill registers, there are as many lanes as of the widest value, and the last strip
 * stands apart, so that others need no mask. A body that no instructions have a form for is left as
 * it is, for a compiler to make vectors of; but vector mathematics has no form for one value. */
#include "codegen/at.h"
#include "codegen/codegen.h"

typedef struct Vectorizer {
    CiBuild b;
    const CiFamily *family;
} Vectorizer;

/* ---- how many lanes ---- */

typedef struct Survey {
    const Vectorizer *v;
    const CiExpr *lane_var;
    const bool *varies;
    int widest; /* bytes of a value that varies */
    bool has_math, has_scratch;
    const char *why; /* there are no instructions for it */
} Survey;

static void
look_at_access(Survey *s, const CiAccess *at)
{
    const CiExpr *coef, *rest;
    bool is_same = !ci_expr_depends_on(at->index, s->lane_var);
    if (!is_same && (!ci_expr_split_linear(s->v->b.sym, at->index, s->lane_var, &coef, &rest) ||
                     !ci_expr_equals_const(coef, 1)))
        s->why = "elements do not lie side by side";
}

static void
look_at_let(Survey *s, const CiStmt *let)
{
    const CiProc *proc = s->v->b.proc;
    int size = (int)ci_dtype_size(ci_dtype_compute(let->type.dtype));
    CiDtype operand =
        let->nargs ? proc->types[let->args[let->op == CI_OP_where]].dtype : let->type.dtype;
    s->has_math |= ci_op_kind(let->op) == CI_OPKIND_math;
    if (!s->varies[let->value])
        return;
    s->widest = size > s->widest ? size : s->widest;
    const char *why = s->v->family->why_not_vector(s->v->b.ctx, let->op, operand, let->type.dtype);
    s->why = why ? why : s->why;
    if (let->op == CI_OP_load)
        look_at_access(s, &let->at);
    if (let->op == CI_OP_bind || let->op == CI_OP_index)
        s->why = let->op == CI_OP_bind ? "data say where elements lie" : s->why;
}

static void
look(void *arg, const CiStmt *stmt)
{
    Survey *s = arg;
    s->has_scratch |= stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch;
    if (!s->v->family->why_not_vector)
        return;
    if (stmt->kind == CI_STMT_let)
        look_at_let(s, stmt);
    if (stmt->kind == CI_STMT_store)
        look_at_access(s, &stmt->at);
    if (stmt->cell || (stmt->kind == CI_STMT_store && stmt->op != CI_OP_none))
        s->why = "lanes come one after another";
}

/* 1: serially; 0: left to a compiler. */
static int
choose_lanes(const Vectorizer *v, const CiStmt *loop)
{
    int64_t trips = loop->extents[0]->high;
    Survey s = {.v = v, .lane_var = loop->vars[0]};
    s.varies = ci_find_varying(v->b.ctx, v->b.proc, &loop->body, loop->vars[0]);
    ci_stmts_visit(&loop->body, look, &s);
    int64_t most = s.has_scratch ? v->family->tiled_lanes : v->family->lanes;
    if (ci_why_not_lanes(v->b.ctx, v->b.proc, &loop->body, loop->vars[0]))
        return 1;
    if (!v->family->vector_bytes)
        return (int)(trips < most ? trips : most);
    if (s.why && !s.has_math)
        return 0;
    int lanes = v->family->vector_bytes / (s.widest ? s.widest : 8);
    while (lanes > 1 && lanes / 2 >= trips)
        lanes /= 2;
    return lanes < 1 ? 1 : lanes;
}

/* ---- strips ---- */

static void
add_strip(Vectorizer *v, const CiStmt *loop, const CiExpr *first, int lanes, const CiExpr *live)
{
    CiAt at = {1, &loop->vars[0], &first, loop->vars[0], lanes, live};
    ci_build_at(&v->b, &loop->body, &at);
}

static void
add_strips(Vectorizer *v, const CiStmt *loop, int lanes)
{
    CiSym *sym = v->b.sym;
    const CiExpr *extent = loop->extents[0], *width = ci_expr_const(sym, lanes),
                 *first = ci_expr_const(sym, 0);
    CiStmts *outside = v->b.to;
    if (extent->high > lanes) {
        CiStmt *strips =
            ci_build_for(&v->b, "q", ci_expr_ceildiv(sym, extent, width), CI_RUN_serial);
        first = ci_expr_mul(sym, strips->vars[0], width);
        ci_build_enter(&v->b, &strips->body);
    }
    bool is_full =
        ci_sym_known_multiple_of(sym, extent, width) && (extent->high > lanes || extent->low > 0);
    add_strip(v, loop, first, lanes, is_full ? NULL : ci_expr_sub(sym, extent, first));
    ci_build_leave(&v->b, outside);
}

/* Whole vectors, then what is left. */
static void
add_vectors(Vectorizer *v, const CiStmt *loop, int lanes)
{
    CiSym *sym = v->b.sym;
    const CiExpr *extent = loop->extents[0], *width = ci_expr_const(sym, lanes),
                 *whole = ci_expr_floordiv(sym, extent, width),
                 *first = ci_expr_mul(sym, whole, width);
    CiStmts *outside = v->b.to;
    if (whole->high == 1 && whole->low == 1) {
        add_strip(v, loop, ci_expr_const(sym, 0), lanes, NULL);
    } else if (whole->high > 0) {
        CiStmt *strips = ci_build_for(&v->b, "q", whole, CI_RUN_serial);
        ci_build_enter(&v->b, &strips->body);
        add_strip(v, loop, ci_expr_mul(sym, strips->vars[0], width), lanes, NULL);
        ci_build_leave(&v->b, outside);
    }
    if (ci_sym_known_multiple_of(sym, extent, width))
        return;
    if (!ci_sym_known_lt(sym, first, extent)) {
        CiStmt *rest = ci_build_test(&v->b, CI_STMT_if, CI_COMPARE_less, first, extent);
        ci_build_enter(&v->b, &rest->body);
    }
    add_strip(v, loop, first, lanes, ci_expr_sub(sym, extent, first));
    ci_build_leave(&v->b, outside);
}

static void
vectorize_block(Vectorizer *v, CiStmts *block)
{
    CiStmt *next, *stmt = block->first;
    *block = (CiStmts){0};
    CiStmts *outside = ci_build_enter(&v->b, block);
    for (; stmt; stmt = next) {
        next = stmt->next;
        bool is_vector = stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector;
        int lanes = is_vector ? choose_lanes(v, stmt) : 1;
        if (lanes > 1 && v->family->vector_bytes) {
            add_vectors(v, stmt, lanes);
            continue;
        }
        if (lanes > 1) {
            add_strips(v, stmt, lanes);
            continue;
        }
        stmt->run = is_vector && lanes == 1 ? CI_RUN_serial : stmt->run;
        vectorize_block(v, &stmt->body);
        vectorize_block(v, &stmt->other);
        ci_build_move(&v->b, stmt);
    }
    ci_build_leave(&v->b, outside);
}

void
ci_vector(CiProcs *procs, CiProc *proc, const CiFamily *family)
{
    Vectorizer v = {{procs->ctx, procs->sym, proc, NULL, {0}}, family};
    vectorize_block(&v, &proc->body);
}
