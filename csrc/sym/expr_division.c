/* Floor division, remainder, minimum and maximum.
 *
 * Each rewriting here is exact for all integers with Python's floor semantics, given the ranges and
 * limits of the symbols:
 *
 * - (m*q + r) // m = q + r//m, and (m*q + r) % m = r % m;
 * - k*m <= r < (k+1)*m: r//m = k, and r % m = r - k*m;
 * - 0 <= y < g, g divides m: (g*x + y) // m = x // (m/g), and (g*x + y) % m = g*(x % (m/g)) + y;
 * - a, b > 0: (x//a + k) // b = (x + k*a) // (a*b), and (x % (a*b)) // a = (x//a) % b;
 * - m divides c*k: c*(x % k) % m = c*x % m;
 * - (-x) // m = -((x + m - 1) // m), so that both ways to round up are one. */
#include "sym/expr_private.h"

static int64_t
gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}

static const CiExpr *
divide_node(CiSym *sym, CiExprKind kind, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *args[2] = {a, b};
    return ci_expr_node(sym, kind, 2, args);
}

/* e = m*quotient + rest with coefs of rest smaller than m in size and its value in [0, m). */
static const CiExpr *
take_multiples(CiSym *sym, const CiExpr *e, int64_t m, const CiExpr **rest)
{
    int64_t value = ci_expr_value(e), low = ci_floor_mod(value, m);
    const CiExpr *quotient = ci_expr_const(sym, ci_checked_floordiv(sym->ctx, value, m));
    *rest = ci_expr_const(sym, low);
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(e, k, &coef);
        quotient = ci_expr_add(sym, quotient, ci_expr_scale(sym, atom, coef / m));
        *rest = ci_expr_add(sym, *rest, ci_expr_scale(sym, atom, coef % m));
    }
    return quotient;
}

/* e = g*x + y for the largest g > 1 dividing m with 0 <= y < g; 0 when there is none. */
static int64_t
split_small_part(CiSym *sym, const CiExpr *e, int64_t m, const CiExpr **x, const CiExpr **y)
{
    int64_t best = 0;
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef, g;
        ci_expr_term(e, k, &coef);
        g = gcd(coef, m);
        /* For n terms the gcds are few, and n is small: slow on purpose. */
        if (g <= 1 || g <= best)
            continue;
        const CiExpr *small = ci_expr_const(sym, ci_floor_mod(ci_expr_value(e), g));
        for (int j = 0; j < ci_expr_nterms(e); j++) {
            const CiExpr *atom = ci_expr_term(e, j, &coef);
            if (coef % g)
                small = ci_expr_add(sym, small, ci_expr_scale(sym, atom, coef));
        }
        if (small->low < 0 || small->high >= g)
            continue;
        const CiExpr *none;
        best = g;
        *y = small;
        *x = take_multiples(sym, ci_expr_sub(sym, e, small), g, &none);
    }
    return best;
}

/* Coefs that are multiples of m are gone from e. */
static const CiExpr *
floordiv_rest(CiSym *sym, const CiExpr *e, int64_t m)
{
    const CiExpr *divisor = ci_expr_const(sym, m), *x, *y;
    CiBounds range = ci_bounds_floordiv(ci_bounds_of(e), ci_bounds_of(divisor));
    if (ci_bounds_is_point(range))
        return ci_expr_const(sym, range.low);
    int64_t g = split_small_part(sym, e, m, &x, &y), coef, product, shift;
    if (g)
        return ci_expr_floordiv(sym, x, ci_expr_const(sym, m / g));
    const CiExpr *first = ci_expr_term(e, 0, &coef);
    if (ci_expr_nterms(e) == 1 && coef == 1 && first->kind == CI_EXPR_floordiv &&
        ci_expr_is_const(first->args[1], &product) && product > 0 &&
        !__builtin_mul_overflow(ci_expr_value(e), product, &shift) &&
        !__builtin_mul_overflow(m, product, &product)) {
        const CiExpr *inner = ci_expr_add(sym, first->args[0], ci_expr_const(sym, shift));
        return ci_expr_floordiv(sym, inner, ci_expr_const(sym, product));
    }
    if (e->kind == CI_EXPR_mod && ci_expr_is_const(e->args[1], &product) && product > 0 &&
        product % m == 0)
        return ci_expr_mod(sym, ci_expr_floordiv(sym, e->args[0], divisor),
                           ci_expr_const(sym, product / m));
    if (e->kind == CI_EXPR_linear)
        coef = e->coefs[ci_expr_first_printed(e)];
    if (coef < 0) {
        const CiExpr *flipped = ci_expr_sub(sym, ci_expr_const(sym, m - 1), e);
        return ci_expr_neg(sym, ci_expr_floordiv(sym, flipped, divisor));
    }
    return divide_node(sym, CI_EXPR_floordiv, e, divisor);
}

/* Replaces c*(x % k) by c*x where m divides c*k, all over the terms of e. */
static const CiExpr *
drop_inner_mods(CiSym *sym, const CiExpr *e, int64_t m)
{
    const CiExpr *out = e;
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef, inner;
        const CiExpr *atom = ci_expr_term(e, k, &coef);
        if (atom->kind != CI_EXPR_mod || !ci_expr_is_const(atom->args[1], &inner))
            continue;
        if (!__builtin_mul_overflow(coef, inner, &inner) && inner % m == 0)
            out = ci_expr_add(sym, out,
                              ci_expr_scale(sym, ci_expr_sub(sym, atom->args[0], atom), coef));
    }
    return out;
}

/* m > 1 */
static const CiExpr *
mod_by_const(CiSym *sym, const CiExpr *e, int64_t m)
{
    const CiExpr *rest, *x, *y, *divisor = ci_expr_const(sym, m);
    take_multiples(sym, e, m, &rest);
    CiBounds range = ci_bounds_floordiv(ci_bounds_of(rest), ci_bounds_of(divisor));
    if (ci_bounds_is_point(range))
        return ci_expr_add(sym, rest, ci_expr_const(sym, ci_checked_mul(sym->ctx, -range.low, m)));
    const CiExpr *plain = drop_inner_mods(sym, rest, m);
    if (plain != rest)
        return mod_by_const(sym, plain, m);
    int64_t g = split_small_part(sym, rest, m, &x, &y);
    if (g) {
        const CiExpr *high = ci_expr_mod(sym, x, ci_expr_const(sym, m / g));
        return ci_expr_add(sym, ci_expr_scale(sym, high, g), y);
    }
    return divide_node(sym, CI_EXPR_mod, rest, divisor);
}

/* For a divisor that is not const: 0 <= r < b or -b <= r < 0 proved gives *shift, 0 or -1. */
static bool
find_shift(CiSym *sym, const CiExpr *r, const CiExpr *b, int *shift)
{
    const CiExpr *one = ci_expr_const(sym, 1);
    for (*shift = 0; *shift >= -1; --*shift) {
        const CiExpr *above = *shift ? ci_expr_add(sym, r, b) : r;
        if (ci_expr_is_nonnegative(sym, above) &&
            ci_expr_is_nonnegative(sym, ci_expr_sub(sym, ci_expr_sub(sym, b, one), above)))
            return true;
    }
    return false;
}

static const CiExpr *
floordiv_by_expr(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *quotient, *rest;
    int shift;
    bool nonzero = b->low > 0 || b->high < 0;
    if (a == b && nonzero)
        return ci_expr_const(sym, 1);
    ci_expr_divide(sym, a, b, &quotient, &rest);
    if (find_shift(sym, rest, b, &shift))
        return ci_expr_add(sym, quotient, ci_expr_const(sym, shift));
    if (!nonzero)
        return divide_node(sym, CI_EXPR_floordiv, a, b);
    if (b->low > 0 && rest->kind == CI_EXPR_floordiv && rest->args[1]->low > 0) {
        const CiExpr *both = ci_expr_mul(sym, rest->args[1], b);
        return ci_expr_add(sym, quotient, ci_expr_floordiv(sym, rest->args[0], both));
    }
    return ci_expr_add(sym, quotient, divide_node(sym, CI_EXPR_floordiv, rest, b));
}

static const CiExpr *
mod_by_expr(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *quotient, *rest;
    int shift;
    bool nonzero = b->low > 0 || b->high < 0;
    ci_expr_divide(sym, a, b, &quotient, &rest);
    if (ci_expr_equals_const(rest, 0) && nonzero)
        return rest;
    if (find_shift(sym, rest, b, &shift))
        return shift ? ci_expr_add(sym, rest, b) : rest;
    return divide_node(sym, CI_EXPR_mod, nonzero ? rest : a, b);
}

static const CiExpr *
floordiv(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    int64_t x, m;
    if (!ci_expr_is_const(b, &m))
        return floordiv_by_expr(sym, a, b);
    if (m == 1)
        return a;
    if (ci_expr_is_const(a, &x))
        return ci_expr_const(sym, ci_checked_floordiv(sym->ctx, x, m));
    if (m == INT64_MIN)
        return divide_node(sym, CI_EXPR_floordiv, a, b);
    if (m < 0)
        return ci_expr_floordiv(sym, ci_expr_neg(sym, a), ci_expr_const(sym, -m));
    const CiExpr *rest, *quotient = take_multiples(sym, a, m, &rest);
    return ci_expr_add(sym, quotient, floordiv_rest(sym, rest, m));
}

static const CiExpr *
mod(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    int64_t x, m;
    if (!ci_expr_is_const(b, &m))
        return mod_by_expr(sym, a, b);
    if (m == 1 || m == -1)
        return ci_expr_const(sym, 0);
    if (ci_expr_is_const(a, &x))
        return ci_expr_const(sym, ci_floor_mod(x, m));
    if (m == INT64_MIN)
        return divide_node(sym, CI_EXPR_mod, a, b);
    if (m < 0)
        return ci_expr_neg(sym, ci_expr_mod(sym, ci_expr_neg(sym, a), ci_expr_const(sym, -m)));
    return mod_by_const(sym, a, m);
}

static uint64_t
key_of(const CiExpr *a, const CiExpr *b)
{
    return (uint64_t)a->id << 32 | b->id;
}

typedef struct Division {
    CiSym *sym;
    CiExprKind kind;
    const CiExpr *a, *b, *result;
} Division;

static void
divide(CiContext *ctx, void *arg)
{
    Division *it = arg;
    (void)ctx;
    it->result = (it->kind == CI_EXPR_floordiv ? floordiv : mod)(it->sym, it->a, it->b);
}

/* Both are remembered: they are asked for again by every recombination, and a result that a proof
 * too deep to be made has left unsimplified stays the one result. Where simplifying would overflow
 * a constant, the plain form stands. */
static const CiExpr *
remembered(CiSym *sym, CiMap *memo, CiExprKind kind, const CiExpr *a, const CiExpr *b)
{
    if (ci_expr_equals_const(b, 0))
        ci_fail(sym->ctx, CI_ERR_VALUE, "a size or an index is divided by zero");
    uint64_t key = key_of(a, b);
    const CiExpr *known = ci_map_find(memo, key);
    if (known)
        return known;
    Division it = {sym, kind, a, b, NULL};
    if (!ci_sym_attempt(sym, divide, &it)) {
        if (a->kind == CI_EXPR_const && b->kind == CI_EXPR_const)
            ci_fail(sym->ctx, CI_ERR_UNSUPPORTED, "%s", ci_context_message(sym->ctx));
        it.result = divide_node(sym, kind, a, b);
    }
    ci_map_put(memo, key, (void *)it.result);
    return it.result;
}

const CiExpr *
ci_expr_floordiv(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return remembered(sym, sym->quotients, CI_EXPR_floordiv, a, b);
}

const CiExpr *
ci_expr_mod(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return remembered(sym, sym->remainders, CI_EXPR_mod, a, b);
}

const CiExpr *
ci_expr_ceildiv(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return ci_expr_neg(sym, ci_expr_floordiv(sym, ci_expr_neg(sym, a), b));
}

/* a is never needed beside b in a min (or a max). */
static bool
is_dominated(CiSym *sym, CiExprKind kind, const CiExpr *a, const CiExpr *b)
{
    return kind == CI_EXPR_min ? ci_sym_known_le(sym, b, a) : ci_sym_known_le(sym, a, b);
}

/* Adds e to the args kept so far, in order of id, unless one of them makes it needless. */
static int
keep(CiSym *sym, CiExprKind kind, const CiExpr **kept, int count, const CiExpr *e)
{
    for (int k = 0; k < count; k++)
        if (is_dominated(sym, kind, e, kept[k]))
            return count;
    int left = 0;
    for (int k = 0; k < count; k++)
        if (!is_dominated(sym, kind, kept[k], e))
            kept[left++] = kept[k];
    int at = left;
    for (; at > 0 && kept[at - 1]->id > e->id; at--)
        kept[at] = kept[at - 1];
    kept[at] = e;
    return left + 1;
}

/* The min (or max) that e is, or is a constant away from; NULL where there is none. So that
 * max(max(x, 0) - 1, 0) is max(x - 1, 0), as a slice of a slice is a slice. */
static const CiExpr *
extremum_in(CiExprKind kind, const CiExpr *e)
{
    if (e->kind == CI_EXPR_linear && e->nargs == 1 && e->coefs[0] == 1)
        e = e->args[0];
    return e->kind == kind ? e : NULL;
}

static const CiExpr *
extremum(CiSym *sym, CiExprKind kind, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *sides[2] = {a, b}, *inner[2] = {extremum_in(kind, a), extremum_in(kind, b)};
    int capacity = (inner[0] ? inner[0]->nargs : 1) + (inner[1] ? inner[1]->nargs : 1), count = 0;
    const CiExpr *few[16], **kept = capacity <= 16 ? few : CI_NEW_ARRAY(sym->ctx, const CiExpr *, capacity);
    for (int s = 0; s < 2; s++) {
        const CiExpr *more = sides[s]->kind == kind ? NULL : ci_expr_const(sym, sides[s]->value);
        if (inner[s] == NULL)
            count = keep(sym, kind, kept, count, sides[s]);
        for (int k = 0; inner[s] != NULL && k < inner[s]->nargs; k++) {
            const CiExpr *arg = inner[s]->args[k];
            count = keep(sym, kind, kept, count, more ? ci_expr_add(sym, arg, more) : arg);
        }
    }
    return count == 1 ? kept[0] : ci_expr_node(sym, kind, count, kept);
}

/* Remembered as quotients are: each pair of args is a proof, and a chain of slices is rebuilt at
 * each step. */
static const CiExpr *
remembered_extremum(CiSym *sym, CiMap *memo, CiExprKind kind, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *known = ci_map_find(memo, key_of(a, b));
    if (!known) {
        known = extremum(sym, kind, a, b);
        ci_map_put(memo, key_of(a, b), (void *)known);
    }
    return known;
}

const CiExpr *
ci_expr_min(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return remembered_extremum(sym, sym->minima, CI_EXPR_min, a, b);
}

const CiExpr *
ci_expr_max(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    return remembered_extremum(sym, sym->maxima, CI_EXPR_max, a, b);
}

const CiExpr *
ci_expr_quotient(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *quotient, *rest;
    ci_expr_divide(sym, a, b, &quotient, &rest);
    return ci_expr_equals_const(rest, 0) ? quotient : ci_expr_floordiv(sym, a, b);
}
