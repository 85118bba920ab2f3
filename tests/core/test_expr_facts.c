/* Tests proofs from facts: a relation that is proved must hold at every point of small ranges
 * that satisfies the facts. */
#include "ci_test.h"
#include "sym/expr.h"

typedef struct World {
    CiSym *sym;
    const CiExpr *s, *t, *i, *o, *extent;
    uint64_t state;
    int64_t values[4]; /* of s, t, i, o */
} World;

static int
pick(World *w, int below)
{
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return (int)((w->state >> 20) % (uint64_t)below);
}

static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    const World *w = arg;
    return w->values[symbol == w->s ? 0 : symbol == w->t ? 1 : symbol == w->i ? 2 : 3];
}

/* A loop t<s around, and in it two points i and o of one axis. */
static void
make_world(CiContext *ctx, World *w)
{
    w->sym = ci_sym_new(ctx);
    w->s = ci_expr_symbol(w->sym, "s0", CI_SYMBOL_size, 0, CI_INFINITY);
    w->t = ci_expr_index(w->sym, "t0", w->s);
    int shape = pick(w, 4);
    const CiExpr *less = ci_expr_const(w->sym, pick(w, 2));
    w->extent = shape == 0   ? ci_expr_const(w->sym, 1 + pick(w, 3))
                : shape == 1 ? ci_expr_sub(w->sym, w->s, less)
                : shape == 2 ? ci_expr_sub(w->sym, ci_expr_sub(w->sym, w->s, w->t), less)
                             : ci_expr_add(w->sym, w->t, less);
    w->i = ci_expr_index(w->sym, "i0", w->extent);
    w->o = ci_expr_index(w->sym, "o0", w->extent);
}

static const CiExpr *
make_element(World *w, const CiExpr *point)
{
    CiSym *sym = w->sym;
    const CiExpr *terms[] = {point, w->t, ci_expr_const(sym, 1), w->s};
    const CiExpr *e = ci_expr_const(sym, pick(w, 3) - 1);
    for (int k = 0; k < 4; k++) {
        int coef = pick(w, 4) - (k > 0);
        const CiExpr *term = pick(w, 2) ? ci_expr_mul(sym, w->s, terms[k]) : terms[k];
        e = ci_expr_add(sym, e, ci_expr_mul(sym, ci_expr_const(sym, coef), term));
    }
    return e;
}

/* Calls check with every assignment in the ranges. */
static void
visit_points(CiContext *ctx, World *w, const CiExpr *a, const CiExpr *b,
             bool (*check)(int64_t a, int64_t b))
{
    for (int64_t s = 0; s < 6; s++)
        for (int64_t t = 0; t < s; t++) {
            w->values[0] = s;
            w->values[1] = t;
            int64_t extent = ci_expr_evaluate(ctx, w->extent, value_of, w);
            for (int64_t i = 0; i < extent; i++)
                for (int64_t o = 0; o < extent; o++) {
                    w->values[2] = i;
                    w->values[3] = o;
                    CHECK(check(ci_expr_evaluate(ctx, a, value_of, w),
                                ci_expr_evaluate(ctx, b, value_of, w)));
                }
        }
}

static bool
differ(int64_t a, int64_t b)
{
    return a != b;
}

static bool
is_ordered(int64_t a, int64_t b)
{
    return a <= b;
}

TEST(what_is_proved_from_facts_holds)
{
    int napart = 0, nordered = 0;
    for (int round = 0; round < 4000 && !ci_test_failures; round++) {
        World w = {.state = (uint64_t)round * 2654435761u + 88172645463325252u};
        make_world(ctx, &w);
        const CiExpr *one = ci_expr_const(w.sym, 1);
        const CiExpr *a = make_element(&w, w.i), *b = make_element(&w, w.o);
        const CiExpr *facts[] = {ci_expr_sub(w.sym, w.s, one), ci_expr_sub(w.sym, w.extent, one)};
        const CiExpr *strides[] = {w.s, ci_expr_const(w.sym, 1 + pick(&w, 3))};
        if (ci_sym_known_disjoint(w.sym, a, b, 2, strides, 2, facts)) {
            napart++;
            visit_points(ctx, &w, a, b, differ);
        }
        if (ci_sym_known_le_given(w.sym, a, b, 2, facts)) {
            nordered++;
            visit_points(ctx, &w, a, b, is_ordered);
        }
    }
    CHECK(napart > 400 && nordered > 100);
}
