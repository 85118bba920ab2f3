/* How many lanes a body runs in. */
#include "codegen/instantiate.h"
#include "codegen/codegen.h"

#include "codegen/varying.h"

typedef struct Survey {
    const CiBuild *b;
    const CiExpr *lane_var;
    CiVarying varying;
    CiMap *owned; /* memory that the body allocates: each lane has its own */
    int widest;   /* bytes of a value that varies, or of elements that are stored */
    int stored;   /* bytes of the widest element that is stored */
    bool has_math, has_scratch, has_loop;
    bool computes; /* it does more than load, cast and store ints of at most 4 bytes */
    const char *why; /* there are no instructions for it */
} Survey;

static void
look_at_access(Survey *s, const CiAccess *at)
{
    const CiExpr *coef, *rest;
    if (!ci_expr_depends_on(at->index, s->lane_var))
        return;
    bool is_linear = ci_expr_split_linear(s->b->sym, at->index, s->lane_var, &coef, &rest);
    /* Nor can a compiler make vectors of a loop around loops. */
    if (!is_linear || (!s->has_loop && !ci_expr_equals_const(coef, 1)))
        s->why = "the elements are not contiguous";
}

static void
look_at_let(Survey *s, const CiStmt *let)
{
    const CiProc *proc = s->b->proc;
    int size = (int)ci_dtype_size(ci_dtype_compute(let->type.dtype));
    CiDtype operand =
        let->nargs ? proc->types[let->args[let->op == CI_OP_where]].dtype : let->type.dtype;
    s->has_math |= ci_op_kind(let->op) == CI_OPKIND_math;
    if (!s->varying.values[let->value])
        return;
    s->widest = size > s->widest ? size : s->widest;
    s->computes |= (let->op != CI_OP_load && let->op != CI_OP_cast) || size > 4 || !ci_dtype_is_integral(operand) ||
                   !ci_dtype_is_integral(let->type.dtype);
    const char *why = s->b->machine->why_not_vector(s->b->ctx, let->op, operand, let->type.dtype);
    s->why = why ? why : s->why;
    if (let->op == CI_OP_load)
        look_at_access(s, &let->at);
    if (let->op == CI_OP_bind)
        s->why = "data say where elements lie";
}

/* Records the widest element that is stored. A store of the same value in all lanes does not count.
 * A store that combines becomes a load, the operation and a store if each lane has its own element. */
static void
look_at_store(Survey *s, const CiStmt *store)
{
    CiDtype dtype = store->at.memory->dtype;
    int size = (int)ci_dtype_size(ci_dtype_compute(dtype));
    const char *why = store->op == CI_OP_none ? NULL
                      : ci_lanes_have_own_elements(s->b->sym, &s->varying, store)
                          ? s->b->machine->why_not_vector(s->b->ctx, store->op, dtype, dtype)
                          : "lanes come one after another";
    s->why = why ? why : s->why;
    look_at_access(s, &store->at);
    if (ci_expr_depends_on(store->at.index, s->lane_var)) {
        s->widest = size > s->widest ? size : s->widest;
        s->stored = size > s->stored ? size : s->stored;
    }
}

static void
look(void *arg, const CiStmt *stmt)
{
    Survey *s = arg;
    if (stmt->kind == CI_STMT_alloc)
        ci_map_put(s->owned, CI_KEY(stmt->memory), s);
    s->has_scratch |= stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch;
    if (!s->b->machine->why_not_vector)
        return;
    if (stmt->kind == CI_STMT_let)
        look_at_let(s, stmt);
    if (stmt->kind == CI_STMT_store)
        look_at_store(s, stmt);
    bool is_packed = stmt->kind == CI_STMT_call && s->b->machine->has_pack &&
                     s->b->machine->has_pack(stmt->at.memory->dtype);
    bool is_shared = stmt->cell && !is_packed && !ci_map_find(s->owned, CI_KEY(stmt->cell));
    if (is_shared)
        s->why = "lanes come one after another";
}

int
ci_choose_lanes(const CiBuild *b, const CiStmts *body,
                const CiExpr *lane_var, int64_t iterations)
{
    Survey s = {.b = b, .lane_var = lane_var, .owned = ci_map_new(b->ctx)};
    s.has_loop = ci_stmts_have(body, ci_stmt_is_loop);
    s.varying = ci_vary(b->ctx, b->proc, body, lane_var);
    ci_stmts_visit(body, look, &s);
    int64_t most = s.has_scratch ? b->machine->tiled_lanes : b->machine->lanes;
    if (ci_why_not_lanes(b->ctx, b->proc, body, lane_var))
        return 1;
    if (!b->machine->vector_bytes)
        return (int)(iterations < most ? iterations : most);
    if (!s.computes && !s.has_loop && s.stored > 0 && s.stored < s.widest)
        s.why = "the C compiler packs several vectors into one";
    if (s.why && !s.has_math)
        return 0;
    int lanes = b->machine->vector_bytes / (s.widest ? s.widest : 8);
    while (lanes > 1 && lanes / 2 >= iterations)
        lanes /= 2;
    return lanes < 1 ? 1 : lanes;
}
