/* Proofs from facts, expressions known not to be negative where the question is asked: e >= 0
 * follows from e - fact >= 0. And proofs that two element numbers differ: by order, or digit by
 * digit, where m*q + r with |r| < m is 0 only when q and r both are. */
#include "sym/expr_private.h"

#define MAX_FACTS 3  /* used in one proof */
#define MAX_DIGITS 3 /* taken off one difference */

typedef struct Facts {
    CiSym *sym;
    int count;
    const CiExpr *const *facts;
} Facts;

typedef struct Operation {
    CiSym *sym;
    const CiExpr *a, *b, *first, *second;
} Operation;

static void
subtract(CiContext *ctx, void *arg)
{
    Operation *operation = arg;
    (void)ctx;
    operation->first = ci_expr_sub(operation->sym, operation->a, operation->b);
}

/* NULL when a constant overflows. */
static const CiExpr *
difference(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    Operation operation = {.sym = sym, .a = a, .b = b};
    return ci_sym_attempt(sym, subtract, &operation) ? operation.first : NULL;
}

static bool
shares_symbol(const CiExpr *a, const CiExpr *b)
{
    for (int k = 0; k < a->nsymbols; k++)
        if (ci_expr_depends_on(b, a->symbols[k]))
            return true;
    return false;
}

static bool
is_nonnegative(const Facts *f, const CiExpr *e, int from, int depth)
{
    if (ci_expr_is_nonnegative(f->sym, e))
        return true;
    for (int k = from; depth && e->high >= 0 && k < f->count; k++) {
        if (!shares_symbol(e, f->facts[k]))
            continue;
        const CiExpr *rest = difference(f->sym, e, f->facts[k]);
        if (rest && is_nonnegative(f, rest, k, depth - 1))
            return true;
    }
    return false;
}

/* a + margin <= b */
static bool
is_below(const Facts *f, const CiExpr *a, const CiExpr *b, int64_t margin)
{
    const CiExpr *d = difference(f->sym, b, a);
    d = d ? difference(f->sym, d, ci_expr_const(f->sym, margin)) : NULL;
    return d && is_nonnegative(f, d, 0, MAX_FACTS);
}

bool
ci_sym_known_le_given(CiSym *sym, const CiExpr *a, const CiExpr *b, int nfacts,
                      const CiExpr *const *facts)
{
    Facts f = {sym, nfacts, facts};
    return a == b || a->high <= b->low || is_below(&f, a, b, 0);
}

/* By a constant each coefficient is divided, rounded to zero. */
static const CiExpr *
quotient_by_const(CiSym *sym, const CiExpr *e, int64_t m)
{
    const CiExpr *quotient = ci_expr_const(sym, ci_expr_value(e) / m);
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(e, k, &coef);
        quotient = ci_expr_add(sym, quotient, ci_expr_scale(sym, atom, coef / m));
    }
    return quotient;
}

static void
divide(CiContext *ctx, void *arg)
{
    Operation *operation = arg;
    CiSym *sym = operation->sym;
    (void)ctx;
    if (operation->b->kind != CI_EXPR_const) {
        ci_expr_divide(sym, operation->a, operation->b, &operation->first, &operation->second);
        return;
    }
    operation->first = quotient_by_const(sym, operation->a, operation->b->value);
    operation->second =
        ci_expr_sub(sym, operation->a, ci_expr_mul(sym, operation->b, operation->first));
}

static bool
is_nonzero(const Facts *f, const CiExpr *d, int nstrides, const CiExpr *const *strides, int depth)
{
    const CiExpr *zero = ci_expr_const(f->sym, 0);
    if (is_below(f, zero, d, 1) || is_below(f, d, zero, 1))
        return true;
    for (int k = 0; depth && k < nstrides; k++) {
        Operation operation = {.sym = f->sym, .a = d, .b = strides[k]};
        bool is_stride = strides[k]->low >= 0 && !ci_expr_equals_const(strides[k], 1) &&
                         !ci_expr_equals_const(strides[k], 0);
        if (!is_stride || !ci_sym_attempt(f->sym, divide, &operation) ||
            ci_expr_equals_const(operation.first, 0))
            continue;
        const CiExpr *r = operation.second, *least = difference(f->sym, zero, strides[k]);
        if (!least || !is_below(f, r, strides[k], 1) || !is_below(f, least, r, 1))
            continue;
        if (is_nonzero(f, r, nstrides, strides, depth - 1) ||
            is_nonzero(f, operation.first, nstrides, strides, depth - 1))
            return true;
    }
    return false;
}

bool
ci_sym_known_apart(CiSym *sym, const CiExpr *a, const CiExpr *b, int nstrides,
                   const CiExpr *const *strides, int nfacts, const CiExpr *const *facts)
{
    Facts f = {sym, nfacts, facts};
    const CiExpr *d = a->high < b->low || a->low > b->high ? NULL : difference(sym, b, a);
    if (!d)
        return a->high < b->low || a->low > b->high;
    return is_nonzero(&f, d, nstrides, strides, MAX_DIGITS);
}
