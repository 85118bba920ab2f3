/* Domains: neighbours that a thread takes at once, numbers of points and back. */
#include "codegen/grid.h"

#include "analysis/access.h"
#include "codegen/instantiate.h"
#include "codegen/varying.h"

#define MAX_LANES 16 /* of bytes: an access has as many */
#define MAX_STEP ((int64_t)1 << 40)

CiDomain
ci_domain_of(const CiStmt *stmt)
{
    CiDomain d = {.count = stmt->nvars, .body = stmt->body};
    for (int k = 0; k < stmt->nvars; k++) {
        d.vars[k] = stmt->vars[k];
        d.extents[k] = stmt->extents[k];
    }
    return d;
}

/* ---- neighbours of one thread ---- */

typedef struct Neighbours {
    CiSym *sym;
    const CiStmts *body;
    const CiExpr *var;
    const bool *varies; /* by value: it differs from neighbour to neighbour */
    const CiAccess *stored; /* the store that accesses are compared with */
    int widest;         /* bytes of the widest element that is accessed */
    int lanes;          /* neighbours that a thread would take */
    bool may_run;       /* lanes run in order, so scans and compresses are possible */
    bool is_single;     /* a thread cannot take several neighbours */
    int store_cost;     /* of one element, in loads */
    int moves, others;  /* accesses that would move all lanes at once; the cost of those that would be one for each lane */
} Neighbours;

/* Sets is_single unless the access is too far from the store for two neighbours to touch the same
 * element, if one thread takes both. */
static void
check_distance(void *arg, const CiStmt *stmt)
{
    Neighbours *n = arg;
    const CiExpr *coef, *rest;
    int64_t step;
    if (stmt->at.memory != n->stored->memory || stmt->at.index == n->stored->index)
        return;
    bool is_known = ci_expr_split_linear(n->sym, stmt->at.index, n->var, &coef, &rest) &&
                    ci_expr_is_const(coef, &step) && step < MAX_STEP && step > -MAX_STEP;
    n->is_single |= !is_known || !ci_is_beyond_reach(n->sym, stmt->at.index, n->stored->index,
                                                     MAX_LANES * (step < 0 ? -step : step) - 1);
}

static void
look_at_access(Neighbours *n, const CiAccess *at, bool is_store)
{
    const CiExpr *coef, *rest;
    if (at->memory->space != CI_SPACE_global ||
        !ci_expr_split_linear(n->sym, at->index, n->var, &coef, &rest) ||
        !ci_expr_equals_const(coef, 1))
        return;
    int size = ci_dtype_size(at->memory->dtype);
    n->widest = size > n->widest ? size : n->widest;
    bool moves = ci_sym_known_multiple_of(n->sym, rest, ci_expr_const(n->sym, n->lanes));
    n->moves += moves;
    n->others += moves ? 0 : is_store ? n->store_cost : 1;
}

static void
look_at_stmt(void *arg, const CiStmt *stmt)
{
    Neighbours *n = arg;
    bool is_store = stmt->kind == CI_STMT_store, is_pack = stmt->kind == CI_STMT_call;
    n->is_single |= stmt->kind != CI_STMT_let && stmt->kind != CI_STMT_alloc &&
                   stmt->kind != CI_STMT_yield && !is_store && !(is_pack && n->may_run);
    n->is_single |= stmt->kind == CI_STMT_alloc && stmt->memory->space != CI_SPACE_register;
    n->is_single |= (stmt->op == CI_OP_bind && n->varies[stmt->value]) || (stmt->cell && !n->may_run) ||
                   (is_store && stmt->op != CI_OP_none);
    if (stmt->at.memory && !is_pack)
        look_at_access(n, &stmt->at, is_store);
    if (!is_store)
        return;
    n->stored = &stmt->at;
    ci_stmts_visit(n->body, check_distance, n);
}

bool
ci_domain_is_whole(CiSym *sym, const CiDomain *domain, int lanes)
{
    return !domain->count || ci_sym_known_multiple_of(sym, domain->extents[domain->count - 1],
                                                      ci_expr_const(sym, lanes));
}

/* The neighbours that a thread takes: as many as fill an access of the widest element, if most accesses are contiguous
 * and aligned. Other accesses become one for each neighbour, and those of a warp are then strided. */
static int
find_lanes(const CiBuild *b, const CiDomain *domain, bool may_run)
{
    int last = domain->count - 1;
    if (last < 0)
        return 1;
    Neighbours n = {.sym = b->sym,
                    .body = &domain->body,
                    .var = domain->vars[last],
                    .varies = ci_vary(b->ctx, b->proc, &domain->body, domain->vars[last]).values,
                    .lanes = 1,
                    .may_run = may_run,
                    .store_cost = (int)CI_CHOOSE(b, store_cost)};
    ci_stmts_visit(&domain->body, look_at_stmt, &n);
    if (n.is_single || !n.widest)
        return 1;
    for (n.lanes = b->machine->access_bytes / n.widest; n.lanes > 1; n.lanes /= 2) {
        n.moves = n.others = 0;
        ci_stmts_visit(&domain->body, look_at_stmt, &n);
        if (n.moves > n.others && domain->extents[last]->high >= n.lanes &&
            (last == 0 || ci_domain_is_whole(n.sym, domain, n.lanes)))
            return n.lanes;
    }
    return 1;
}

int
ci_domain_lanes(const CiBuild *b, const CiDomain *domain)
{
    return find_lanes(b, domain, false);
}

int
ci_domain_running_lanes(const CiBuild *b, const CiDomain *domain)
{
    return find_lanes(b, domain, true);
}

/* ---- points ---- */

const CiExpr *
ci_domain_count(CiSym *sym, const CiDomain *domain, int lanes)
{
    const CiExpr *count = ci_expr_const(sym, 1);
    for (int k = 0; k < domain->count; k++) {
        bool is_last = k == domain->count - 1;
        const CiExpr *extent = domain->extents[k];
        count = ci_expr_mul(sym, count,
                            is_last ? ci_expr_floordiv(sym, extent, ci_expr_const(sym, lanes))
                                    : extent);
    }
    return count;
}

static const CiExpr *
name_below(CiBuild *b, const CiExpr *e, const CiExpr *limit)
{
    bool is_plain = e->kind == CI_EXPR_const || e->kind == CI_EXPR_symbol;
    return is_plain ? e : ci_build_bind(b, ci_build_index(b, e), limit);
}

void
ci_domain_decode(CiBuild *b, const CiDomain *domain, const CiExpr *number, int lanes,
                 const CiExpr **to)
{
    CiSym *sym = b->sym;
    const CiExpr *rest = number, *width = ci_expr_const(sym, lanes);
    if (domain->count > 1)
        rest = name_below(b, number, ci_domain_count(sym, domain, lanes));
    for (int k = domain->count - 1; k >= 0; k--) {
        bool is_last = k == domain->count - 1;
        const CiExpr *extent = domain->extents[k];
        extent = is_last ? ci_expr_floordiv(sym, extent, width) : extent;
        const CiExpr *at = k ? name_below(b, ci_expr_mod(sym, rest, extent), extent) : rest;
        to[k] = is_last ? ci_expr_mul(sym, at, width) : at;
        if (k > 0)
            rest = ci_build_named(b, ci_expr_floordiv(sym, rest, extent));
    }
}

void
ci_domain_add(CiBuild *b, const CiDomain *domain, const CiExpr *const *to, int lanes)
{
    CiAt at = {
        domain->count, domain->vars, to, domain->count ? domain->vars[domain->count - 1] : NULL,
        lanes,         NULL,         0};
    ci_build_at(b, &domain->body, &at);
}

/* True if a choice made for the largest value of `e` is also good for the smallest. */
static bool
is_narrow(const CiExpr *e)
{
    return e->low > 0 && e->high < CI_INFINITY && e->high / 4 <= e->low;
}

bool
ci_domain_unrolls(const CiBuild *b, const CiDomain *domain, int lanes, int threads)
{
    const CiExpr *count = ci_domain_count(b->sym, domain, lanes);
    return ci_domain_is_whole(b->sym, domain, lanes) && is_narrow(count) &&
           (count->high + threads - 1) / threads <= CI_CHOOSE(b, unrolled_rounds);
}

const CiExpr *
ci_domain_enter_threads(CiBuild *b, int threads)
{
    CiStmt *loop = ci_build_for(b, "t", ci_expr_const(b->sym, threads), CI_RUN_thread);
    ci_build_enter(b, &loop->body);
    return loop->vars[0];
}

CiStmts *
ci_domain_enter_pairs(CiBuild *b, CiRunMode run, int threads, const CiExpr **x, const CiExpr **y)
{
    const CiExpr *extent = ci_expr_const(b->sym, threads);
    CiStmt *loop = ci_build_for(b, "x", extent, run);
    *x = loop->vars[0];
    *y = ci_expr_index(b->sym, ci_build_name(b, "y"), extent);
    loop->vars = CI_NEW_ARRAY(b->ctx, const CiExpr *, 2);
    loop->extents = CI_NEW_ARRAY(b->ctx, const CiExpr *, 2);
    loop->vars[0] = *x;
    loop->vars[1] = *y;
    loop->extents[0] = loop->extents[1] = extent;
    loop->nvars = 2;
    return ci_build_enter(b, &loop->body);
}

/* ---- shared memory ---- */

static bool
has_scratch(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_alloc && stmt->memory->space == CI_SPACE_scratch;
}

bool
ci_domain_has_scratch(const CiDomain *domain)
{
    return ci_stmts_have(&domain->body, has_scratch);
}
