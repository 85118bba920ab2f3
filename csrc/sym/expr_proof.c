/* Proofs without guards. a <= b is proved by finding a lower bound of b - a that is at least 0. The
 * interval is tried first; then some y in d = c*y + rest, where the sign of c is known, is replaced
 * by a bound.
 *
 * - symbol: low <= y <= high, or y <= limit - 1;
 *
 * - x // m, m > 0: x - m + 1 <= m*y <= x, after d is multiplied by m;
 *
 * - x % m: 0 <= y <= m - 1;
 *
 * - min, max: y is one of the args, and at most (at least) each of them.
 *
 * Then the search continues. Each step is valid at every point, so rest and c may contain y too.
 * The search is skipped if the difference is negative at a sample point (expr_points.c).
 * The search is bounded by depth, by fuel and by the number of terms, because sums may be long; with the searches
 * that building its sums begins, by the number of nodes. False means "not proved", never "disproved". */
#include "sym/expr_private.h"

#define MAX_DEPTH 10
#define MAX_FUEL 80
#define MAX_TERMS 2400 /* taken apart in one search */
#define MAX_NESTING 3
#define MAX_WORK 8000 /* nodes built in one search and in the searches inside it */

typedef struct Proof {
    CiSym *sym;
    const CiExpr *goal;
    int fuel, terms;
    bool proved;
} Proof;

static bool prove(Proof *proof, const CiExpr *d, int depth);

/* d = c*y + rest, one factor y taken out of each term that has it. */
static void
take_out(CiSym *sym, const CiExpr *d, const CiExpr *y, const CiExpr **c, const CiExpr **rest)
{
    *c = ci_expr_const(sym, 0);
    for (int k = 0; k < ci_expr_nterms(d); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(d, k, &coef), *others = ci_expr_const(sym, coef);
        bool taken = false;
        for (int j = 0; j < ci_expr_nfactors(atom); j++) {
            const CiExpr *f = ci_expr_factor(atom, j);
            if (f == y && !taken)
                taken = true;
            else
                others = ci_expr_mul(sym, others, f);
        }
        if (taken)
            *c = ci_expr_add(sym, *c, others);
    }
    *rest = ci_expr_sub(sym, d, ci_expr_mul(sym, *c, y));
}

/* c*bound + scale*rest >= 0 */
static bool
prove_with(Proof *proof, const CiExpr *c, const CiExpr *bound, const CiExpr *rest, int depth)
{
    CiSym *sym = proof->sym;
    return prove(proof, ci_expr_add(sym, ci_expr_mul(sym, c, bound), rest), depth);
}

static bool
by_symbol(Proof *proof, const CiExpr *y, const CiExpr *c, const CiExpr *rest, int depth)
{
    CiSym *sym = proof->sym;
    if (c->low >= 0)
        return y->low != CI_MINUS_INFINITY &&
               prove_with(proof, c, ci_expr_const(sym, y->low), rest, depth);
    if (y->limit && y->limit->kind != CI_EXPR_const) {
        const CiExpr *last = ci_expr_sub(sym, y->limit, ci_expr_const(sym, 1));
        if (prove_with(proof, c, last, rest, depth))
            return true;
    }
    return y->high != CI_INFINITY && prove_with(proof, c, ci_expr_const(sym, y->high), rest, depth);
}

static bool
by_floordiv(Proof *proof, const CiExpr *y, const CiExpr *c, const CiExpr *rest, int depth)
{
    CiSym *sym = proof->sym;
    const CiExpr *x = y->args[0], *m = y->args[1];
    if (m->low < 1)
        return false;
    if (c->low >= 0)
        x = ci_expr_add(sym, ci_expr_sub(sym, x, m), ci_expr_const(sym, 1));
    return prove_with(proof, c, x, ci_expr_mul(sym, m, rest), depth);
}

static bool
by_mod(Proof *proof, const CiExpr *y, const CiExpr *c, const CiExpr *rest, int depth)
{
    CiSym *sym = proof->sym;
    if (y->args[1]->low < 1)
        return false;
    const CiExpr *one = ci_expr_const(sym, 1);
    const CiExpr *bound = c->low >= 0 ? ci_expr_const(sym, 0) : ci_expr_sub(sym, y->args[1], one);
    return prove_with(proof, c, bound, rest, depth) ||
           (c->high <= 0 && y->args[0]->low >= 0 && prove_with(proof, c, y->args[0], rest, depth));
}

static bool
by_extremum(Proof *proof, const CiExpr *y, const CiExpr *c, const CiExpr *rest, int depth)
{
    /* One arg that bounds y from the right side is enough; otherwise each arg must, because y is
     * one. */
    bool one_is_enough = y->kind == CI_EXPR_min ? c->high <= 0 : c->low >= 0;
    for (int k = 0; k < y->nargs; k++)
        if (prove_with(proof, c, y->args[k], rest, depth) == one_is_enough)
            return one_is_enough;
    return !one_is_enough;
}

static bool
prove_by(Proof *proof, const CiExpr *d, const CiExpr *y, int depth)
{
    const CiExpr *c, *rest;
    take_out(proof->sym, d, y, &c, &rest);
    if (c->low < 0 && c->high > 0)
        return false;
    switch (y->kind) {
    case CI_EXPR_symbol:
        return by_symbol(proof, y, c, rest, depth);
    case CI_EXPR_floordiv:
        return by_floordiv(proof, y, c, rest, depth);
    case CI_EXPR_mod:
        return by_mod(proof, y, c, rest, depth);
    case CI_EXPR_min:
    case CI_EXPR_max:
        return by_extremum(proof, y, c, rest, depth);
    case CI_EXPR_const:
    case CI_EXPR_linear:
    case CI_EXPR_product:
        break;
    }
    return false;
}

/* The newest factor of d older than the one with id `before`. */
static const CiExpr *
next_factor(const CiExpr *d, uint32_t before)
{
    const CiExpr *best = NULL;
    for (int k = 0; k < ci_expr_nterms(d); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(d, k, &coef);
        for (int j = 0; j < ci_expr_nfactors(atom); j++) {
            const CiExpr *f = ci_expr_factor(atom, j);
            if (f->id < before && (!best || f->id > best->id))
                best = f;
        }
    }
    return best;
}

static bool
prove(Proof *proof, const CiExpr *d, int depth)
{
    if (d->low >= 0)
        return true;
    if (d->high < 0 || depth == 0 || proof->fuel <= 0 || proof->sym->work > proof->sym->most_work)
        return false;
    proof->fuel--;
    for (const CiExpr *y = next_factor(d, UINT32_MAX); y; y = next_factor(d, y->id)) {
        proof->terms -= ci_expr_nterms(d);
        if (proof->terms < 0)
            return false;
        if (prove_by(proof, d, y, depth - 1))
            return true;
    }
    return false;
}

/* A sum of independent symbols between constants: its interval is exact, there is nothing to find.
 */
static bool
is_decided_by_interval(const CiExpr *d)
{
    for (int k = 0; k < ci_expr_nterms(d); k++) {
        int64_t coef;
        const CiExpr *atom = ci_expr_term(d, k, &coef);
        if (atom->kind != CI_EXPR_symbol || (atom->limit && atom->limit->kind != CI_EXPR_const))
            return false;
    }
    return true;
}

static void
search(CiContext *ctx, void *arg)
{
    Proof *proof = arg;
    (void)ctx;
    proof->proved = prove(proof, proof->goal, MAX_DEPTH);
}

bool
ci_expr_is_nonnegative(CiSym *sym, const CiExpr *e)
{
    if (e->low >= 0 || e->high < 0 || is_decided_by_interval(e) || sym->proof_depth >= MAX_NESTING)
        return e->low >= 0;
    if (ci_expr_negative_at(sym, e) || ci_map_find(sym->unproved, e->id))
        return false;
    Proof proof = {sym, e, MAX_FUEL, MAX_TERMS, false};
    if (sym->proof_depth == 0)
        sym->most_work = sym->work + MAX_WORK;
    sym->proof_depth++;
    bool is_proved = ci_sym_attempt(sym, search, &proof) && proof.proved;
    sym->proof_depth--;
    if (!is_proved && sym->proof_depth == 0)
        ci_map_put(sym->unproved, e->id, sym);
    return is_proved;
}

typedef struct Question {
    CiSym *sym;
    const CiExpr *a, *b, *answer;
} Question;

static void
subtract(CiContext *ctx, void *arg)
{
    Question *question = arg;
    (void)ctx;
    question->answer = ci_expr_sub(question->sym, question->a, question->b);
}

const CiExpr *
ci_expr_difference(CiSym *sym, const CiExpr *a, const CiExpr *b, int64_t margin)
{
    Question first = {sym, a, b, NULL};
    if (!ci_sym_attempt(sym, subtract, &first) || margin == 0)
        return first.answer;
    Question second = {sym, first.answer, ci_expr_const(sym, margin), NULL};
    ci_sym_attempt(sym, subtract, &second);
    return second.answer;
}

bool
ci_sym_known_le(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (a == b || a->high <= b->low)
        return true;
    if (a->low > b->high)
        return false;
    const CiExpr *d = ci_expr_difference(sym, b, a, 0);
    return d && ci_expr_is_nonnegative(sym, d);
}

bool
ci_sym_known_lt(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (a->high < b->low)
        return true;
    if (a == b || a->low >= b->high)
        return false;
    const CiExpr *d = ci_expr_difference(sym, b, a, 1);
    return d && ci_expr_is_nonnegative(sym, d);
}

bool
ci_sym_known_eq(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (a == b)
        return true;
    return ci_sym_known_le(sym, a, b) && ci_sym_known_le(sym, b, a);
}

bool
ci_sym_known_ne(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (a == b)
        return false;
    const CiExpr *d = ci_expr_difference(sym, a, b, 0);
    if (d && d->kind == CI_EXPR_linear) {
        /* All coefficients multiples of g, the constant not: never 0. */
        uint64_t g = 0;
        for (int k = 0; k < d->nargs; k++) {
            uint64_t c = d->coefs[k] < 0 ? 0 - (uint64_t)d->coefs[k] : (uint64_t)d->coefs[k];
            while (c) {
                uint64_t rest = g % c;
                g = c;
                c = rest;
            }
        }
        uint64_t value = d->value < 0 ? 0 - (uint64_t)d->value : (uint64_t)d->value;
        if (value % g)
            return true;
    }
    return ci_sym_known_lt(sym, a, b) || ci_sym_known_lt(sym, b, a);
}

static void
take_remainder(CiContext *ctx, void *arg)
{
    Question *question = arg;
    const CiExpr *quotient;
    (void)ctx;
    if (question->b->kind == CI_EXPR_const)
        question->answer = ci_expr_mod(question->sym, question->a, question->b);
    else
        ci_expr_divide(question->sym, question->a, question->b, &quotient, &question->answer);
}

bool
ci_sym_known_multiple_of(CiSym *sym, const CiExpr *a, const CiExpr *b)
{
    if (ci_expr_equals_const(a, 0))
        return true;
    if (ci_expr_equals_const(b, 0))
        return false;
    Question question = {sym, a, b, NULL};
    return ci_sym_attempt(sym, take_remainder, &question) &&
           ci_expr_equals_const(question.answer, 0);
}
