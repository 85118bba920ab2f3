/* Proofs from facts, expressions known not to be negative where the question is asked: e >= 0
 * follows from e - fact >= 0. And proofs that two element numbers differ: by order, or digit by
 * digit, where m*q + r with |r| < m is 0 only when q and r both are.
 *
 * Most questions have the answer no, and a proof that does not exist is searched for long: what is
 * not so at one of a few points, made up within all ranges, is not searched for. */
#include "sym/expr_private.h"

#define MAX_FACTS 2  /* used in one proof */
#define MAX_DIGITS 3 /* taken off one difference */
#define POINTS 8

typedef struct Facts {
    CiSym *sym;
    int count;
    const CiExpr *const *facts;
    bool is_point[POINTS]; /* all facts hold there */
} Facts;

/* ---- points ---- */

static bool value_at(const CiExpr *e, int point, int64_t *value);

/* An end of the symbol's range, or something between; sizes are small and differ. */
static bool
symbol_at(const CiExpr *symbol, int point, int64_t *value)
{
    bool is_size = symbol->symbol_kind == CI_SYMBOL_size;
    int64_t low = symbol->low == CI_MINUS_INFINITY ? -4 : symbol->low, high = symbol->high;
    unsigned way =
        ((symbol->id + 1) * 2654435761u ^ ((unsigned)point + 1) * 2246822519u) * 3266489917u >> 12;
    if (symbol->limit && symbol->limit->kind != CI_EXPR_const) {
        if (!value_at(symbol->limit, point, &high))
            return false;
        high--;
    }
    if (high > low + 9)
        high = is_size ? low + 3 + way % 7 : low + 9;
    *value = is_size || way % 3 == 0 ? high : way % 3 == 1 ? low : low + (high - low) / 2;
    return low <= high;
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

/* False where the point is none: an empty range, or a number out of bounds. */
static bool
value_at(const CiExpr *e, int point, int64_t *value)
{
    int64_t x, all = e->value;
    bool is_linear = e->kind == CI_EXPR_linear;
    if (e->kind == CI_EXPR_symbol)
        return symbol_at(e, point, value);
    for (int k = 0; k < e->nargs; k++) {
        if (!value_at(e->args[k], point, &x))
            return false;
        if (is_linear &&
            (__builtin_mul_overflow(x, e->coefs[k], &x) || __builtin_add_overflow(all, x, &all)))
            return false;
        if (!is_linear && k == 0)
            all = x;
        else if (!is_linear && !combine(e->kind, all, x, &all))
            return false;
    }
    *value = all;
    return true;
}

static Facts
make_facts(CiSym *sym, int nfacts, const CiExpr *const *facts)
{
    Facts f = {.sym = sym, .count = nfacts, .facts = facts};
    for (int point = 0; point < POINTS; point++) {
        int64_t value;
        f.is_point[point] = true;
        for (int k = 0; k < nfacts; k++)
            f.is_point[point] &= value_at(facts[k], point, &value) && value >= 0;
    }
    return f;
}

static bool
is_refuted(const Facts *f, const CiExpr *e)
{
    int64_t value;
    for (int point = 0; point < POINTS; point++)
        if (f->is_point[point] && value_at(e, point, &value) && value < 0)
            return true;
    return false;
}

/* ---- proofs ---- */

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
is_nonnegative(const Facts *f, const CiExpr *e, int from, int depth)
{
    if (is_refuted(f, e))
        return false;
    if (ci_expr_is_nonnegative(f->sym, e))
        return true;
    for (int k = from; depth && e->high >= 0 && k < f->count; k++) {
        if (!ci_expr_shares_symbol(e, f->facts[k]))
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
        bool is_apart = is_nonzero(f, r, nstrides, strides, depth - 1) ||
                        is_nonzero(f, operation.first, nstrides, strides, depth - 1);
        if (is_apart && least && is_below(f, r, strides[k], 1) && is_below(f, least, r, 1))
            return true;
    }
    return false;
}

bool
ci_sym_known_apart(CiSym *sym, const CiExpr *a, const CiExpr *b, int nstrides,
                   const CiExpr *const *strides, int nfacts, const CiExpr *const *facts)
{
    Facts f = make_facts(sym, nfacts, facts);
    const CiExpr *d = a->high < b->low || a->low > b->high ? NULL : difference(sym, b, a);
    if (!d)
        return a->high < b->low || a->low > b->high;
    return is_nonzero(&f, d, nstrides, strides, MAX_DIGITS);
}
