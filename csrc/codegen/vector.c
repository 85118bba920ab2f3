/* Loops that run in vectors -> loops over strips of lanes.
 *
 * A strip is the loop's body instantiated at its first element; the lanes of the last one that lie
 * beyond the loop's end are not live. A body that cannot run in lanes runs serially. */
#include "codegen/at.h"
#include "codegen/codegen.h"

typedef struct Vectorizer {
    CiBuild b;
    const CiFamily *family;
} Vectorizer;

static void
find_scratch(void *arg, const CiStmt *stmt)
{
    bool *has_scratch = arg;
    *has_scratch |= stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch;
}

static int
choose_lanes(const Vectorizer *v, const CiStmt *loop)
{
    bool has_scratch = false;
    ci_stmts_visit(&loop->body, find_scratch, &has_scratch);
    int64_t most = has_scratch ? v->family->tiled_lanes : v->family->lanes;
    return (int)(loop->extents[0]->high < most ? loop->extents[0]->high : most);
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
    const CiExpr *left = ci_expr_sub(sym, extent, first);
    CiAt at = {1, &loop->vars[0], &first, loop->vars[0], lanes, is_full ? NULL : left};
    ci_build_at(&v->b, &loop->body, &at);
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
        if (lanes > 1 && !ci_why_not_lanes(v->b.ctx, v->b.proc, &stmt->body, stmt->vars[0])) {
            add_strips(v, stmt, lanes);
            continue;
        }
        stmt->run = is_vector ? CI_RUN_serial : stmt->run;
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
