/* Compares ten thousand random expressions with direct evaluation. Each expression is built
 * twice: by the building functions, which simplify, and as a tree that is evaluated as it was
 * written. At random points within the ranges and limits of the symbols, both must give the same
 * value, the value must be in the interval, and every relation that counts as known must hold. */
#include "ci_test.h"
#include "sym/expr.h"

enum { NSYMBOLS = 10, POINTS = 24, EXPRESSIONS = 10000 };

typedef struct Tree {
    char op; /* 'c' const, 'v' symbol, + - * / % < > */
    int64_t value;
    struct Tree *left, *right;
    const CiExpr *expr;
} Tree;

typedef struct Fuzz {
    CiContext *ctx;
    CiSym *sym;
    const CiExpr *symbols[NSYMBOLS];
    int64_t values[NSYMBOLS];
    uint64_t state;
} Fuzz;

static int64_t
draw(Fuzz *fuzz, int64_t low, int64_t high)
{
    fuzz->state ^= fuzz->state << 13;
    fuzz->state ^= fuzz->state >> 7;
    fuzz->state ^= fuzz->state << 17;
    return low + (int64_t)((fuzz->state >> 11) % (uint64_t)(high - low + 1));
}

static Fuzz
open_fuzz(CiContext *ctx, uint64_t seed)
{
    Fuzz fuzz = {
        .ctx = ctx, .sym = ci_sym_new(ctx), .state = seed * 2654435761u + 88172645463325252u};
    CiSym *sym = fuzz.sym;
    fuzz.symbols[0] = ci_expr_symbol(sym, "s0", CI_SYMBOL_size, 0, CI_INFINITY);
    fuzz.symbols[1] = ci_expr_symbol(sym, "s1", CI_SYMBOL_size, 1, CI_INFINITY);
    fuzz.symbols[2] = ci_expr_symbol(sym, "s2", CI_SYMBOL_size, 2, 9);
    fuzz.symbols[3] = ci_expr_symbol(sym, "z", CI_SYMBOL_argument, CI_MINUS_INFINITY, CI_INFINITY);
    fuzz.symbols[4] = ci_expr_index(sym, "i0", ci_expr_const(sym, 6));
    fuzz.symbols[5] = ci_expr_index(sym, "i1", ci_expr_const(sym, 4));
    fuzz.symbols[6] = ci_expr_index(sym, "i2", fuzz.symbols[0]);
    fuzz.symbols[7] = ci_expr_index(sym, "i3", fuzz.symbols[1]);
    fuzz.symbols[8] = ci_expr_index(sym, "i4", fuzz.symbols[2]);
    const CiExpr *one = ci_expr_const(sym, 1);
    fuzz.symbols[9] = ci_expr_index(sym, "r0", ci_expr_add(sym, fuzz.symbols[1], one));
    return fuzz;
}

/* Draws a point where every loop runs, so a size that bounds a loop is at least 1. */
static void
draw_point(Fuzz *fuzz)
{
    int64_t *v = fuzz->values;
    v[0] = draw(fuzz, 1, 7);
    v[1] = draw(fuzz, 1, 7);
    v[2] = draw(fuzz, 2, 9);
    v[3] = draw(fuzz, -40, 40);
    v[4] = draw(fuzz, 0, 5);
    v[5] = draw(fuzz, 0, 3);
    v[6] = draw(fuzz, 0, v[0] - 1);
    v[7] = draw(fuzz, 0, v[1] - 1);
    v[8] = draw(fuzz, 0, v[2] - 1);
    v[9] = draw(fuzz, 0, v[1]);
}

static Tree *
leaf(Fuzz *fuzz)
{
    static const int64_t CONSTS[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, -1, -2, -3, -4, -6};
    Tree *tree = CI_NEW(fuzz->ctx, Tree);
    tree->op = draw(fuzz, 0, 2) ? 'v' : 'c';
    tree->value = draw(fuzz, 0, tree->op == 'v' ? NSYMBOLS - 1 : 13);
    if (tree->op == 'c')
        tree->value = CONSTS[tree->value];
    tree->expr =
        tree->op == 'v' ? fuzz->symbols[tree->value] : ci_expr_const(fuzz->sym, tree->value);
    return tree;
}

static const CiExpr *
build(CiSym *sym, char op, const CiExpr *a, const CiExpr *b)
{
    switch (op) {
    case '+':
        return ci_expr_add(sym, a, b);
    case '-':
        return ci_expr_sub(sym, a, b);
    case '*':
        return ci_expr_mul(sym, a, b);
    case '/':
        return ci_expr_floordiv(sym, a, b);
    case '%':
        return ci_expr_mod(sym, a, b);
    case '<':
        return ci_expr_min(sym, a, b);
    default:
        return ci_expr_max(sym, a, b);
    }
}

/* m*(x//m) + x%m and a*i + j are typical of index arithmetic, so they are drawn more often than
 * others. */
static Tree *
grow(Fuzz *fuzz, int depth)
{
    if (depth == 0 || draw(fuzz, 0, 5) == 0)
        return leaf(fuzz);
    Tree *tree = CI_NEW(fuzz->ctx, Tree);
    tree->left = grow(fuzz, depth - 1);
    tree->right = draw(fuzz, 0, 1) ? leaf(fuzz) : grow(fuzz, depth - 1);
    tree->op = "++-**//%%<>"[draw(fuzz, 0, 10)];
    if ((tree->op == '/' || tree->op == '%') && ci_expr_equals_const(tree->right->expr, 0))
        tree->op = '+';
    tree->expr = build(fuzz->sym, tree->op, tree->left->expr, tree->right->expr);
    if (draw(fuzz, 0, 5) || (tree->op != '/' && tree->op != '%'))
        return tree;
    Tree *rest = CI_NEW(fuzz->ctx, Tree), *scaled = CI_NEW(fuzz->ctx, Tree),
         *sum = CI_NEW(fuzz->ctx, Tree);
    Tree *quotient = tree->op == '/' ? tree : rest, *mod = tree->op == '/' ? rest : tree;
    *rest = *tree;
    rest->op = tree->op == '/' ? '%' : '/';
    *scaled = (Tree){.op = '*', .left = quotient, .right = tree->right};
    *sum = (Tree){.op = '+', .left = scaled, .right = mod};
    rest->expr = build(fuzz->sym, rest->op, rest->left->expr, rest->right->expr);
    scaled->expr = build(fuzz->sym, '*', quotient->expr, tree->right->expr);
    sum->expr = build(fuzz->sym, '+', scaled->expr, mod->expr);
    return sum;
}

/* False if the tree divides by zero. */
static bool
evaluate(const Fuzz *fuzz, const Tree *tree, int64_t *out)
{
    int64_t a, b;
    *out = tree->op == 'v' ? fuzz->values[tree->value] : tree->value;
    if (tree->op == 'v' || tree->op == 'c')
        return true;
    if (!evaluate(fuzz, tree->left, &a) || !evaluate(fuzz, tree->right, &b))
        return false;
    if ((tree->op == '/' || tree->op == '%') && b == 0)
        return false;
    int64_t quotient = 0;
    if (b)
        quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
    switch (tree->op) {
    case '+':
        *out = a + b;
        break;
    case '-':
        *out = a - b;
        break;
    case '*':
        *out = a * b;
        break;
    case '/':
        *out = quotient;
        break;
    case '%':
        *out = a - quotient * b;
        break;
    case '<':
        *out = a < b ? a : b;
        break;
    default:
        *out = a > b ? a : b;
    }
    return *out > -((int64_t)1 << 55) && *out < (int64_t)1 << 55;
}

static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    Fuzz *fuzz = arg;
    for (int k = 0; k < NSYMBOLS; k++)
        if (fuzz->symbols[k] == symbol)
            return fuzz->values[k];
    return 0;
}

static void
check_point(Fuzz *fuzz, const Tree *tree, const char *text)
{
    int64_t expected;
    draw_point(fuzz);
    if (!evaluate(fuzz, tree, &expected))
        return;
    const CiExpr *e = tree->expr;
    int64_t got = ci_expr_evaluate(fuzz->ctx, e, value_of, fuzz);
    if (got != expected)
        CI_TEST_SAY("%s is %lld, not %lld", text, (long long)got, (long long)expected);
    if (got < e->low || got > e->high)
        CI_TEST_SAY("%s is %lld, outside [%lld, %lld]", text, (long long)got, (long long)e->low,
                    (long long)e->high);
}

static const char *
print(CiContext *ctx, const CiExpr *e)
{
    CiText text = ci_text_new(ctx);
    ci_expr_print(&text, e, CI_STYLE_text);
    return text.data;
}

static void
check_round_trip(Fuzz *fuzz, const CiExpr *e, const char *text)
{
    CiLexer lex;
    ci_lexer_init(&lex, fuzz->ctx, text);
    const CiExpr *back = ci_expr_parse(fuzz->sym, &lex);
    if (back != e)
        CI_TEST_SAY("%s reads back as %s", text, print(fuzz->ctx, back));
}

TEST(values_ranges_and_texts)
{
    for (int seed = 1; seed <= EXPRESSIONS; seed++) {
        CiContext *inner = ci_context_open();
        Fuzz fuzz = open_fuzz(inner, (uint64_t)seed);
        Tree *tree = grow(&fuzz, (int)draw(&fuzz, 1, 4));
        const char *text = print(inner, tree->expr);
        for (int k = 0; k < POINTS; k++)
            check_point(&fuzz, tree, text);
        check_round_trip(&fuzz, tree->expr, text);
        CiSym *other = ci_sym_new(inner);
        for (int k = 0; k < NSYMBOLS; k++)
            ci_expr_copy(other, fuzz.symbols[k]);
        CHECK_TEXT(print(inner, ci_expr_copy(other, tree->expr)), text);
        ci_context_close(inner);
    }
}

TEST(what_is_known_is_so)
{
    int known = 0;
    for (int seed = 1; seed <= EXPRESSIONS; seed++) {
        CiContext *inner = ci_context_open();
        Fuzz fuzz = open_fuzz(inner, (uint64_t)seed + 1000003);
        Tree *a = grow(&fuzz, (int)draw(&fuzz, 1, 3)), *b = grow(&fuzz, (int)draw(&fuzz, 1, 3));
        bool eq = ci_sym_known_eq(fuzz.sym, a->expr, b->expr),
             ne = ci_sym_known_ne(fuzz.sym, a->expr, b->expr);
        bool le = ci_sym_known_le(fuzz.sym, a->expr, b->expr),
             lt = ci_sym_known_lt(fuzz.sym, a->expr, b->expr);
        bool multiple = ci_sym_known_multiple_of(fuzz.sym, a->expr, b->expr);
        known += eq + ne + le + lt + multiple;
        for (int k = 0; k < POINTS; k++) {
            int64_t x, y;
            draw_point(&fuzz);
            if (!evaluate(&fuzz, a, &x) || !evaluate(&fuzz, b, &y))
                continue;
            bool wrong = (eq && x != y) || (ne && x == y) || (le && x > y) || (lt && x >= y) ||
                         (multiple && y && x % y);
            if (wrong)
                CI_TEST_SAY("%s and %s at %lld and %lld: eq %d ne %d le %d lt %d multiple %d",
                            print(inner, a->expr), print(inner, b->expr), (long long)x,
                            (long long)y, eq, ne, le, lt, multiple);
        }
        ci_context_close(inner);
    }
    CHECK(known > EXPRESSIONS / 4);
}

typedef struct Substitution {
    Fuzz *fuzz;
    const CiExpr *e, *by, *result;
} Substitution;

static void
substitute(CiContext *ctx, void *arg)
{
    Substitution *it = arg;
    (void)ctx;
    it->result = ci_expr_substitute(it->fuzz->sym, it->e, 1, &it->fuzz->symbols[3], &it->by);
}

/* Substituting then evaluating is evaluating at the substituted values. */
TEST(substitution_commutes_with_evaluation)
{
    for (int seed = 1; seed <= EXPRESSIONS / 4; seed++) {
        CiContext *inner = ci_context_open();
        Fuzz fuzz = open_fuzz(inner, (uint64_t)seed + 2000003);
        Tree *tree = grow(&fuzz, 3), *by = grow(&fuzz, 2);
        Substitution it = {&fuzz, tree->expr, by->expr, NULL};
        /* The substituted expression may make a divisor the constant 0: it is refused, and there
         * is no value. */
        bool refused = ci_protect(inner, substitute, &it) == CI_ERR_VALUE;
        for (int k = 0; k < POINTS && !refused; k++) {
            int64_t inner_value, expected;
            draw_point(&fuzz);
            Fuzz moved = fuzz;
            if (!evaluate(&fuzz, by, &inner_value))
                continue;
            moved.values[3] = inner_value;
            if (evaluate(&moved, tree, &expected))
                CHECK_INT(ci_expr_evaluate(inner, it.result, value_of, &fuzz), expected);
        }
        ci_context_close(inner);
    }
}

/* All chains of three divisions or remainders by small constants, with a shift between. */
TEST(chains_of_constant_divisions)
{
    static const int64_t DIVISORS[] = {-4, -3, 2, 3, 4, 6, 8, 12};
    Fuzz fuzz = open_fuzz(ctx, 7);
    for (int code = 0; code < 8 * 8 * 8 * 8 * 3; code++) {
        int64_t by[3] = {DIVISORS[code & 7], DIVISORS[code >> 3 & 7], DIVISORS[code >> 6 & 7]},
                shift = code >> 12;
        const CiExpr *e = fuzz.symbols[3];
        for (int k = 0; k < 3; k++) {
            e = build(fuzz.sym, code >> (9 + k) & 1 ? '/' : '%', e, ci_expr_const(fuzz.sym, by[k]));
            e = ci_expr_add(fuzz.sym,
                            ci_expr_mul(fuzz.sym, e, ci_expr_const(fuzz.sym, k == 1 ? 2 : 1)),
                            ci_expr_const(fuzz.sym, k == 0 ? shift : 0));
        }
        for (int64_t z = -30; z <= 30; z++) {
            int64_t expected = z;
            for (int k = 0; k < 3; k++) {
                int64_t quotient =
                    expected / by[k] - (expected % by[k] != 0 && (expected < 0) != (by[k] < 0));
                expected = code >> (9 + k) & 1 ? quotient : expected - quotient * by[k];
                expected = expected * (k == 1 ? 2 : 1) + (k == 0 ? shift : 0);
            }
            fuzz.values[3] = z;
            if (ci_expr_evaluate(ctx, e, value_of, &fuzz) != expected)
                CI_TEST_SAY("%s at %lld is not %lld", print(ctx, e), (long long)z,
                            (long long)expected);
        }
    }
}
