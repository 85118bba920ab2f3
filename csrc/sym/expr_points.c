/* The values of expressions at a few sample points within all ranges. An expression that is negative at one of them is not
 * proved to be at least 0 by any search, and most queries are false: searching for a proof that does not exist takes long. */
#include "sym/expr_private.h"

#define POINTS CI_SAMPLE_POINTS
#define LARGE 5 /* the first point of large sizes */

/* The values of an expression at the sample points. A point that is outside a range, or overflows,
 * has no bit. */
typedef struct Points {
    int64_t at[POINTS];
    unsigned known;
} Points;

static const Points *points_of(CiSym *sym, const CiExpr *e);

/* An end of the symbol's range, or something between; at two points the upper end of each, so that no loop is empty there.
 * Sizes differ. They are small at most points, and large at the last few. */
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
        bool is_large = point >= LARGE;
        int64_t most = is_large ? 9999 : 9;
        if (high > low + most)
            high = !is_size ? low + most : is_large ? low + 1000 + way % 5000 : low + 3 + way % 7;
        p->at[point] = is_size || way % 3 == 0 || point % LARGE == 0 ? high : way % 3 == 1 ? low : low + (high - low) / 2;
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
        *out = a % b + (a % b < 0 ? b : 0);
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

unsigned
ci_expr_known_at(CiSym *sym, const CiExpr *e)
{
    return points_of(sym, e)->known;
}

unsigned
ci_expr_negative_at(CiSym *sym, const CiExpr *e)
{
    const Points *p = points_of(sym, e);
    unsigned negative = 0;
    for (int point = 0; point < POINTS; point++)
        negative |= (unsigned)(p->at[point] < 0) << point;
    return negative & p->known;
}
