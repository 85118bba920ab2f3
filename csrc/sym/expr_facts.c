/* Proofs from facts, which are expressions known to be at least 0: e >= 0 follows from e - fact >=
 * 0. And proofs that two element numbers differ: by order, or digit by digit, where m*q + r with
 * |r| < m is 0 only if q and r both are.
 *
 * Most queries are false, and searching for a proof that does not exist takes long. So a query is
 * first evaluated at a few sample points within all ranges; if it is false at one, there is no
 * search. */
#include "sym/expr_private.h"

#define MAX_FACTS 2  /* used in one proof */
#define MAX_DIGITS 3 /* taken off one difference */
#define POINTS 8

typedef struct Facts {
    CiSym *sym;
    int count;
    const CiExpr *const *facts;
    unsigned points; /* where all facts hold, one bit each */
} Facts;

/* ---- points ---- */

/* The values of an expression at the sample points. A point that is outside a range, or overflows,
 * has no bit. */
typedef struct Points {
    int64_t at[POINTS];
    unsigned known;
} Points;

static const Points *points_of(CiSym *sym, const CiExpr *e);

/* An end of the symbol's range, or something between; sizes are small and differ. */
static void
place_symbol(CiSym *sym, const CiExpr *symbol, Points *p)
{
    bool is_size = symbol->symbol_kind == CI_SYMBOL_size;
    bool is_limited = symbol->limit && symbol->limit->kind != CI_EXPR_const;
    const Points *limit = is_limited ? points_of(sym, symbol->limit) : NULL;
    int64_t low = symbol->low == CI_MINUS_INFINITY ? -4 : symbol->low;
    for (unsigned point = 0; point < POINTS; point++) {
        int64_t high = symbol->high;
        unsigned way =
            ((symbol->id + 1) * 2654435761u ^ (point + 1) * 2246822519u) * 3266489917u >> 12;
        if (limit && !(limit->known >> point & 1))
            continue;
        if (limit)
            high = limit->at[point] - 1;
        if (high > low + 9)
            high = is_size ? low + 3 + way % 7 : low + 9;
        p->at[point] = is_size || way % 3 == 0 ? high : way % 3 == 1 ? low : low + (high - low) / 2;
        p->known |= (unsigned)(low <= high) << point;
    }
}

static bool
combine(CiExprKind kind, int64_t a, int64_t b, int64_t *out)
{
    switch (kind) {
    case CI_EXPR_product:
        return !__builtin_mul_overflow(a, b, out);
    case CI_EXPR_floordiv:
    case CI_EXPR_mod:
        if (b <= 0)
            return false;
        *out = ci_floor_mod(a, b);
        if (kind == CI_EXPR_floordiv)
            *out = (a - *out) / b;
        return true;
    default:
        *out = (a < b) == (kind == CI_EXPR_min) ? a : b;
        return true;
    }
}

static bool
add_term(int64_t all, int64_t coef, int64_t x, int64_t *out)
{
    return !__builtin_mul_overflow(x, coef, &x) && !__builtin_add_overflow(all, x, out);
}

static void
place_operation(CiSym *sym, const CiExpr *e, Points *p)
{
    bool is_linear = e->kind == CI_EXPR_linear;
    p->known = (1u << POINTS) - 1;
    for (int k = 0; k < e->nargs; k++) {
        const Points *arg = points_of(sym, e->args[k]);
        p->known &= arg->known;
        for (int point = 0; point < POINTS; point++) {
            int64_t x = arg->at[point], *all = &p->at[point];
            bool is_known = p->known >> point & 1;
            if (is_known && is_linear)
                is_known = add_term(k ? *all : e->value, e->coefs[k], x, all);
            else if (is_known && k)
                is_known = combine(e->kind, *all, x, all);
            else
                *all = x;
            p->known &= ~((unsigned)!is_known << point);
        }
    }
}

/* Expressions share what they are made of, and are asked for again and again: each is computed
 * once. */
static const Points *
points_of(CiSym *sym, const CiExpr *e)
{
    Points *p = ci_map_find(sym->points, e->id);
    if (p)
        return p;
    p = CI_NEW(sym->ctx, Points);
    if (e->kind == CI_EXPR_symbol)
        place_symbol(sym, e, p);
    else if (e->kind != CI_EXPR_const)
        place_operation(sym, e, p);
    else
        p->known = (1u << POINTS) - 1;
    for (int point = 0; e->kind == CI_EXPR_const && point < POINTS; point++)
        p->at[point] = e->value;
    ci_map_put(sym->points, e->id, p);
    return p;
}

static unsigned
negative_at(CiSym *sym, const CiExpr *e)
{
    const Points *p = points_of(sym, e);
    unsigned negative = 0;
    for (int point = 0; point < POINTS; point++)
        negative |= (unsigned)(p->at[point] < 0) << point;
    return negative & p->known;
}

static Facts
make_facts(CiSym *sym, int nfacts, const CiExpr *const *facts)
{
    Facts f = {sym, nfacts, facts, (1u << POINTS) - 1};
    for (int k = 0; k < nfacts; k++)
        f.points &= points_of(sym, facts[k])->known & ~negative_at(sym, facts[k]);
    return f;
}

static bool
is_refuted(const Facts *f, const CiExpr *e)
{
    return (f->points & negative_at(f->sym, e)) != 0;
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
        bool is_apart = is_nonzero(f, r, nstrides, strides, depth - 1) ||
                        is_nonzero(f, division.quotient, nstrides, strides, depth - 1);
        if (is_apart && least && is_below(f, r, strides[k], 1) && is_below(f, least, r, 1))
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
