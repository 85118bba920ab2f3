/* Bounds of an expression in terms of older symbols: how large an array can get in a region whose
 * iterations define its size. Newer symbols are replaced by the ends of their ranges. An expression
 * that is not monotonic in such a symbol has no bound here. */
#include "sym/expr_private.h"

typedef struct Most {
    CiSym *sym;
    uint32_t before;
    CiMap *known[2]; /* bounds from below and from above, by number: operands are shared */
} Most;

static const CiExpr *bound(const Most *m, const CiExpr *e, bool most);

static bool
is_old(const Most *m, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (e->symbols[k]->id >= m->before)
            return false;
    return true;
}

static const CiExpr *
of_symbol(const Most *m, const CiExpr *e, bool most)
{
    if (most && e->limit != NULL) {
        const CiExpr *limit = bound(m, e->limit, true);
        return limit ? ci_expr_sub(m->sym, limit, ci_expr_const(m->sym, 1)) : NULL;
    }
    int64_t end = most ? e->high : e->low;
    return end == CI_INFINITY || end == CI_MINUS_INFINITY ? NULL : ci_expr_const(m->sym, end);
}

static const CiExpr *
of_linear(const Most *m, const CiExpr *e, bool most)
{
    const CiExpr *sum = ci_expr_const(m->sym, e->value);
    for (int k = 0; sum != NULL && k < e->nargs; k++) {
        const CiExpr *arg = bound(m, e->args[k], (e->coefs[k] > 0) == most);
        sum = arg ? ci_expr_add(m->sym, sum, ci_expr_scale(m->sym, arg, e->coefs[k])) : NULL;
    }
    return sum;
}

/* Of factors that are not negative. */
static const CiExpr *
of_product(const Most *m, const CiExpr *e, bool most)
{
    const CiExpr *product = ci_expr_const(m->sym, 1);
    for (int k = 0; product != NULL && k < e->nargs; k++) {
        const CiExpr *arg = e->args[k]->low < 0 ? NULL : bound(m, e->args[k], most);
        product = arg ? ci_expr_mul(m->sym, product, arg) : NULL;
    }
    return product;
}

/* A min is at most any of its parts that has a bound, a max at least any. */
static const CiExpr *
of_extreme(const Most *m, const CiExpr *e, bool most)
{
    bool is_min = e->kind == CI_EXPR_min;
    const CiExpr *best = NULL;

    for (int k = 0; k < e->nargs; k++) {
        const CiExpr *arg = bound(m, e->args[k], most);
        if (arg == NULL && is_min != most)
            return NULL;
        if (arg != NULL)
            best = best == NULL ? arg
                   : is_min     ? ci_expr_min(m->sym, best, arg)
                                : ci_expr_max(m->sym, best, arg);
    }
    return best;
}

static const CiExpr *
bound_of(const Most *m, const CiExpr *e, bool most)
{
    switch (e->kind) {
    case CI_EXPR_symbol:
        return of_symbol(m, e, most);
    case CI_EXPR_linear:
        return of_linear(m, e, most);
    case CI_EXPR_product:
        return of_product(m, e, most);
    case CI_EXPR_min:
    case CI_EXPR_max:
        return of_extreme(m, e, most);
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        break;
    case CI_EXPR_const:
        return e;
    }
    int64_t divisor;
    if (!ci_expr_is_const(e->args[1], &divisor) || divisor <= 0)
        return NULL;
    if (e->kind == CI_EXPR_mod)
        return ci_expr_const(m->sym, most ? divisor - 1 : 0);
    const CiExpr *arg = bound(m, e->args[0], most);
    return arg ? ci_expr_floordiv(m->sym, arg, e->args[1]) : NULL;
}

static const CiExpr *
bound(const Most *m, const CiExpr *e, bool most)
{
    if (is_old(m, e))
        return e;
    const CiExpr **known = ci_map_find(m->known[most], e->id);
    if (known == NULL) {
        known = CI_NEW(m->sym->ctx, const CiExpr *);
        *known = bound_of(m, e, most);
        ci_map_put(m->known[most], e->id, known);
    }
    return *known;
}

uint32_t
ci_sym_count(const CiSym *sym)
{
    return sym->next_id;
}

const CiExpr *
ci_expr_most(CiSym *sym, const CiExpr *e, uint32_t before)
{
    Most m = {sym, before, {NULL, NULL}};
    if (is_old(&m, e))
        return e;
    m.known[0] = ci_map_new(sym->ctx);
    m.known[1] = ci_map_new(sym->ctx);
    return bound(&m, e, true);
}
