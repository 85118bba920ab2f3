/* Loops that run in vectors -> loops over strips of lanes.
 *
 * A strip is the loop's body instantiated at its first element; the lanes of the last one that lie
 * beyond the loop's end are not live. A body that cannot run in lanes runs serially.
 *
 * Where vectors fill registers, there are as many lanes as of the widest value, and the last strip
 * is separate, so that the others need no mask. A body without vector instructions is left to the C
 * compiler, except one with vector mathematics, which has no scalar form. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

typedef struct Vectorizer {
    CiBuild b;
    int nserial; /* loops around that run again and again within a unit */
} Vectorizer;

/* ---- strips ---- */

static void
add_strip(Vectorizer *v, const CiStmt *loop, const CiExpr *first, int lanes, const CiExpr *live,
          int parts)
{
    CiAt at = {1, &loop->vars[0], &first, loop->vars[0], lanes, live, parts};
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
    add_strip(v, loop, first, lanes, is_full ? NULL : ci_expr_sub(sym, extent, first), 1);
    ci_build_leave(&v->b, outside);
}

/* Counts the registers of rows of accumulators. */
static void
count_registers(void *arg, const CiStmt *stmt)
{
    if (stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_register && stmt->memory->size->high > 1)
        *(int64_t *)arg += stmt->memory->size->high;
}

/* Number of vectors that share the iterations of an inner loop and the cache lines that it reads; 1
 * if there is no inner loop. Their accumulators fit in registers. */
static int
choose_parts(const Vectorizer *v, const CiStmt *loop, int lanes)
{
    bool has_loop = ci_stmts_have(&loop->body, ci_stmt_is_loop);
    int64_t registers = 0;
    ci_stmts_visit(&loop->body, count_registers, &registers);
    int parts = has_loop && v->b.machine->chains > 1 ? v->b.machine->chains : 1;
    while (parts > 1 && (loop->extents[0]->high < (int64_t)parts * lanes ||
                         parts * registers > v->b.machine->vector_registers))
        parts /= 2;
    return parts;
}

/* Adds the loop over whole strips of `lanes` times `parts` elements. Returns the number of their elements. */
static const CiExpr *
add_whole_strips(Vectorizer *v, const CiStmt *loop, int lanes, int parts)
{
    CiSym *sym = v->b.sym;
    const CiExpr *width = ci_expr_const(sym, (int64_t)lanes * parts),
                 *whole = ci_expr_floordiv(sym, loop->extents[0], width);
    if (whole->high > 0) {
        CiStmt *strips = ci_build_for(&v->b, "q", whole, CI_RUN_serial);
        CiStmts *outside = ci_build_enter(&v->b, &strips->body);
        add_strip(v, loop, ci_expr_mul(sym, strips->vars[0], width), lanes, NULL, parts);
        ci_build_leave(&v->b, outside);
    }
    return ci_expr_mul(sym, whole, width);
}

/* Whole vectors, then what is left. */
static void
add_vectors(Vectorizer *v, const CiStmt *loop, int lanes)
{
    CiSym *sym = v->b.sym;
    const CiExpr *extent = loop->extents[0], *width = ci_expr_const(sym, lanes);
    int parts = choose_parts(v, loop, lanes);
    const CiExpr *first = add_whole_strips(v, loop, lanes, parts);
    CiStmts *outside = v->b.to;
    if (ci_sym_known_multiple_of(sym, extent, ci_expr_const(sym, (int64_t)lanes * parts)))
        return;
    if (parts > 1) {
        const CiExpr *left = ci_build_named(&v->b, ci_expr_sub(sym, extent, first));
        CiStmt *strips = ci_build_for(&v->b, "q", ci_expr_ceildiv(sym, left, width), CI_RUN_serial);
        ci_build_enter(&v->b, &strips->body);
        const CiExpr *done = ci_expr_mul(sym, strips->vars[0], width);
        add_strip(v, loop, ci_expr_add(sym, first, done), lanes,
                  ci_expr_min(sym, width, ci_expr_sub(sym, left, done)), 1);
    } else if (v->nserial > 0 && !ci_stmts_have(&loop->body, ci_stmt_is_math)) {
        /* A scalar loop: the elements may be read again a few cycles later, and a masked store delays such a load. */
        CiStmt *rest = ci_build_for(&v->b, "r", ci_expr_sub(sym, extent, first), CI_RUN_serial);
        ci_build_enter(&v->b, &rest->body);
        ci_build_iteration(&v->b, &loop->body, loop->vars[0], ci_expr_add(sym, first, rest->vars[0]));
    } else {
        CiStmt *rest = ci_build_test(&v->b, CI_STMT_if, CI_COMPARE_less, first, extent);
        ci_build_enter(&v->b, &rest->body);
        add_strip(v, loop, first, lanes, ci_expr_sub(sym, extent, first), 1);
    }
    ci_build_leave(&v->b, outside);
}

static void
vectorize(void *arg, CiStmt *stmt)
{
    Vectorizer *v = arg;
    bool is_vector = stmt->kind == CI_STMT_for && stmt->run == CI_RUN_vector;
    int lanes = is_vector ? ci_choose_lanes(&v->b, &stmt->body, stmt->vars[0],
                                            stmt->extents[0]->high)
                          : 1;
    if (lanes > 1) {
        if (v->b.machine->vector_bytes)
            add_vectors(v, stmt, lanes);
        else
            add_strips(v, stmt, lanes);
        return;
    }
    stmt->run = is_vector && lanes == 1 ? CI_RUN_serial : stmt->run;
    bool is_serial = ci_stmt_is_loop(stmt) && stmt->run != CI_RUN_parallel;
    v->nserial += is_serial;
    ci_build_rewrite(&v->b, &stmt->body, vectorize, v);
    ci_build_rewrite(&v->b, &stmt->other, vectorize, v);
    v->nserial -= is_serial;
    ci_build_move(&v->b, stmt);
}

void
ci_vector(CiBuild *b)
{
    Vectorizer v = {.b = *b};
    ci_build_rewrite(&v.b, &b->proc->body, vectorize, &v);
}
