/* Polynomials: division with remainder by a symbolic divisor, and putting quotients and remainders
 * back together. Both look at an expression as a sum of coef * product of factors. */
#include "sym/expr_private.h"

#define STEPS 32

/* Degree first, then ids from the last factor: an order that multiplication keeps. */
static int
compare_monomials(const CiExpr *a, const CiExpr *b)
{
    int n = ci_expr_nfactors(a), m = ci_expr_nfactors(b);
    if (n != m)
        return n < m ? -1 : 1;
    for (int k = n - 1; k >= 0; k--) {
        uint32_t x = ci_expr_factor(a, k)->id, y = ci_expr_factor(b, k)->id;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* a / b as a product of factors, NULL when b has a factor that a has not. */
static const CiExpr *
divide_monomial(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    const CiExpr *out = ci_expr_const(sym, 1);
    int at = 0, m = ci_expr_nfactors(b);
    if (ci_expr_nfactors(a) < m)
        return NULL;
    for (int k = 0; k < ci_expr_nfactors(a); k++) {
        if (at < m && ci_expr_factor(a, k) == ci_expr_factor(b, at))
            at++;
        else
            out = ci_expr_mul(sym, out, ci_expr_factor(a, k));
    }
    return at == m ? out : NULL;
}

static const CiExpr *
leading_term(const CiExpr *e, int64_t *coef)
{
    const CiExpr *best = ci_expr_term(e, 0, coef);
    for (int k = 1; k < ci_expr_nterms(e); k++) {
        int64_t other;
        const CiExpr *atom = ci_expr_term(e, k, &other);
        if (compare_monomials(atom, best) > 0) {
            best = atom;
            *coef = other;
        }
    }
    return best;
}

/* The greatest term of e that coef*lead divides, divided by it; NULL when there is none. */
static const CiExpr *
next_step(CiSym *sym, const CiExpr *e, const CiExpr *lead, int64_t lead_coef)
{
    const CiExpr *best = NULL, *step = NULL;
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(e, k, &coef);
        if ((lead_coef == -1 && coef == INT64_MIN) || coef % lead_coef ||
            (best && compare_monomials(atom, best) < 0))
            continue;
        const CiExpr *rest = divide_monomial(sym, atom, lead);
        if (rest) {
            best = atom;
            step = ci_expr_scale(sym, rest, coef / lead_coef);
        }
    }
    return step;
}

void
ci_expr_divide(CiSym *sym, const CiExpr *a, const CiExpr *b, const CiExpr **quotient,
               const CiExpr **remainder)
{
    int64_t lead_coef;
    const CiExpr *lead = leading_term(b, &lead_coef);
    *quotient = ci_expr_const(sym, 0);
    *remainder = a;
    for (int k = 0; k < STEPS; k++) {
        const CiExpr *step = next_step(sym, *remainder, lead, lead_coef);
        if (!step)
            return;
        *quotient = ci_expr_add(sym, *quotient, step);
        *remainder = ci_expr_sub(sym, *remainder, ci_expr_mul(sym, step, b));
    }
}

static int64_t
coef_of(const CiExpr *e, const CiExpr *atom)
{
    int64_t coef;
    for (int k = 0; k < ci_expr_nterms(e); k++)
        if (ci_expr_term(e, k, &coef) == atom)
            return coef;
    return 0;
}

/* Every term of part stands in e with the same coefficient. */
static bool
has_terms(const CiExpr *e, const CiExpr *part)
{
    for (int k = 0; k < ci_expr_nterms(part); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(part, k, &coef);
        if (coef_of(e, atom) != coef)
            return false;
    }
    return ci_expr_nterms(part) > 0;
}

/* cofactor * (x % m), where cofactor is a number times a product: the way a term holds a mod. */
typedef struct ModTerm {
    const CiExpr *cofactor, *x, *m;
} ModTerm;

static bool
next_mod(CiSym *sym, const CiExpr *e, int *term, int *factor, ModTerm *out)
{
    for (; *term < ci_expr_nterms(e); ++*term, *factor = 0) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(e, *term, &coef);
        while (*factor < ci_expr_nfactors(atom)) {
            const CiExpr *f = ci_expr_factor(atom, (*factor)++);
            if (f->kind != CI_EXPR_mod)
                continue;
            out->cofactor = ci_expr_scale(sym, divide_monomial(sym, atom, f), coef);
            out->x = f->args[0];
            out->m = f->args[1];
            return true;
        }
    }
    return false;
}

/* c*m*(q % b) + c*(x % m) -> c*(x % (m*b)) where q = x//m; NULL when e has no such pair. */
static const CiExpr *
merge_mods(CiSym *sym, const CiExpr *e, const ModTerm *low, const CiExpr *q)
{
    ModTerm high;
    for (int term = 0, factor = 0; next_mod(sym, e, &term, &factor, &high);) {
        if (high.x != q || low->m->low < 1 || high.m->low < 1 ||
            high.cofactor != ci_expr_mul(sym, low->cofactor, low->m))
            continue;
        const CiExpr *both = ci_expr_mod(sym, low->x, ci_expr_mul(sym, low->m, high.m));
        const CiExpr *old_high = ci_expr_mul(sym, high.cofactor, ci_expr_mod(sym, q, high.m));
        const CiExpr *old_low = ci_expr_mul(sym, low->cofactor, ci_expr_mod(sym, low->x, low->m));
        const CiExpr *rest = ci_expr_sub(sym, ci_expr_sub(sym, e, old_high), old_low);
        return ci_expr_add(sym, rest, ci_expr_mul(sym, low->cofactor, both));
    }
    return NULL;
}

/* True if terms of e may be a multiple of q: if q is no sum and no product, it is a factor of each of them. */
static bool
may_contain(const CiExpr *e, const CiExpr *q)
{
    if (q->kind == CI_EXPR_const || q->kind == CI_EXPR_linear || q->kind == CI_EXPR_product)
        return true;
    for (int k = 0; k < ci_expr_nterms(e); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(e, k, &coef);
        for (int j = 0; j < ci_expr_nfactors(atom); j++)
            if (ci_expr_factor(atom, j) == q)
                return true;
    }
    return false;
}

typedef struct Recombination {
    CiSym *sym;
    const CiExpr *linear, *result;
} Recombination;

static void
recombine(CiContext *ctx, void *arg)
{
    Recombination *it = arg;
    CiSym *sym = it->sym;
    ModTerm low;
    (void)ctx;
    for (int term = 0, factor = 0;
         !it->result && next_mod(sym, it->linear, &term, &factor, &low);) {
        const CiExpr *q = ci_expr_floordiv(sym, low.x, low.m);
        if (!may_contain(it->linear, q)) { /* the divisors hold remainders, too: products of them are many */
            it->result = merge_mods(sym, it->linear, &low, q);
            continue;
        }
        const CiExpr *whole = ci_expr_mul(sym, ci_expr_mul(sym, low.cofactor, low.m), q);
        const CiExpr *terms = ci_expr_sub(sym, whole, ci_expr_const(sym, ci_expr_value(whole)));
        if (has_terms(it->linear, terms)) {
            const CiExpr *mod = ci_expr_mul(sym, low.cofactor, ci_expr_mod(sym, low.x, low.m));
            const CiExpr *rest = ci_expr_sub(sym, ci_expr_sub(sym, it->linear, whole), mod);
            it->result = ci_expr_add(sym, rest, ci_expr_mul(sym, low.cofactor, low.x));
        } else {
            it->result = merge_mods(sym, it->linear, &low, q);
        }
    }
}

const CiExpr *
ci_expr_recombine(CiSym *sym, const CiExpr *linear)
{
    Recombination it = {sym, linear, NULL};
    return ci_sym_attempt(sym, recombine, &it) ? it.result : NULL;
}
