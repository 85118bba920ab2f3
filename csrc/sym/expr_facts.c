/* Proofs from facts, which are expressions known to be at least 0: e >= 0 follows from e - fact >=
 * 0. And proofs that two element numbers differ: by order, or digit by digit, where m*q + r with
 * |r| < m is 0 only if q and r both are.
 *
 * A query that is false at a sample point where all facts hold (expr_points.c) is not searched for. */
#include "sym/expr_private.h"

#define MAX_FACTS 2  /* used in one proof */
#define MAX_DIGITS 3 /* taken off one difference */

typedef struct Facts {
    CiSym *sym;
    int count;
    const CiExpr *const *facts;
    unsigned points; /* where all facts hold, one bit each */
} Facts;

static Facts
make_facts(CiSym *sym, int nfacts, const CiExpr *const *facts)
{
    Facts f = {sym, nfacts, facts, (1u << CI_SAMPLE_POINTS) - 1};
    for (int k = 0; k < nfacts; k++)
        f.points &= ci_expr_known_at(sym, facts[k]) & ~ci_expr_negative_at(sym, facts[k]);
    return f;
}

static bool
is_refuted(const Facts *f, const CiExpr *e)
{
    return (f->points & ci_expr_negative_at(f->sym, e)) != 0;
}

/* ---- proofs ---- */

static bool
is_nonnegative(const Facts *f, const CiExpr *e, int from, int depth)
{
    if (is_refuted(f, e))
        return false;
    if (ci_expr_is_nonnegative(f->sym, e))
        return true;
    for (int k = from; depth && e->high >= 0 && k < f->count; k++) {
        if (!ci_expr_shares_symbol(e, f->facts[k]))
            continue;
        const CiExpr *rest = ci_expr_difference(f->sym, e, f->facts[k], 0);
        if (rest && is_nonnegative(f, rest, k, depth - 1))
            return true;
    }
    return false;
}

/* a + margin <= b */
static bool
is_below(const Facts *f, const CiExpr *a, const CiExpr *b, int64_t margin)
{
    const CiExpr *d = ci_expr_difference(f->sym, b, a, margin);
    return d && is_nonnegative(f, d, 0, MAX_FACTS);
}

bool
ci_sym_known_le_given(CiSym *sym, const CiExpr *a, const CiExpr *b, int nfacts,
                      const CiExpr *const *facts)
{
    Facts f = make_facts(sym, nfacts, facts);
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

typedef struct Division {
    CiSym *sym;
    const CiExpr *a, *b, *quotient, *remainder;
} Division;

static void
divide(CiContext *ctx, void *arg)
{
    Division *d = arg;
    (void)ctx;
    if (d->b->kind != CI_EXPR_const) {
        ci_expr_divide(d->sym, d->a, d->b, &d->quotient, &d->remainder);
        return;
    }
    d->quotient = quotient_by_const(d->sym, d->a, d->b->value);
    d->remainder = ci_expr_sub(d->sym, d->a, ci_expr_mul(d->sym, d->b, d->quotient));
}

static bool
is_nonzero(const Facts *f, const CiExpr *d, int nstrides, const CiExpr *const *strides, int depth)
{
    const CiExpr *zero = ci_expr_const(f->sym, 0);
    if (is_below(f, zero, d, 1) || is_below(f, d, zero, 1))
        return true;
    for (int k = 0; depth && k < nstrides; k++) {
        Division division = {.sym = f->sym, .a = d, .b = strides[k]};
        bool is_stride = strides[k]->low >= 0 && !ci_expr_equals_const(strides[k], 1) &&
                         !ci_expr_equals_const(strides[k], 0);
        if (!is_stride || !ci_sym_attempt(f->sym, divide, &division) ||
            ci_expr_equals_const(division.quotient, 0))
            continue;
        const CiExpr *r = division.remainder,
                     *least = ci_expr_difference(f->sym, zero, strides[k], 0);
        bool is_disjoint = is_nonzero(f, r, nstrides, strides, depth - 1) ||
                        is_nonzero(f, division.quotient, nstrides, strides, depth - 1);
        if (is_disjoint && least && is_below(f, r, strides[k], 1) && is_below(f, least, r, 1))
            return true;
    }
    return false;
}

bool
ci_sym_known_disjoint(CiSym *sym, const CiExpr *a, const CiExpr *b, int nstrides,
                   const CiExpr *const *strides, int nfacts, const CiExpr *const *facts)
{
    Facts f = make_facts(sym, nfacts, facts);
    const CiExpr *d =
        a->high < b->low || a->low > b->high ? NULL : ci_expr_difference(sym, b, a, 0);
    if (!d)
        return a->high < b->low || a->low > b->high;
    return is_nonzero(&f, d, nstrides, strides, MAX_DIGITS);
}
