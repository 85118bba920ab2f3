/* Tests symbolic expressions: canonical forms, intervals, divisibility, substitution, and
 * evaluation. */
#include "ci_test.h"
#include "ir/layout.h"
#include "sym/expr.h"

static CiSym *
open_sym(CiContext *ctx)
{
    CiSym *sym = ci_sym_new(ctx);
    for (int k = 0; k < 3; k++)
        ci_expr_symbol(sym, ci_format(ctx, "s%d", k), CI_SYMBOL_size, 0, CI_INFINITY);
    for (int k = 0; k < 3; k++)
        ci_expr_symbol(sym, ci_format(ctx, "p%d", k), CI_SYMBOL_size, 1, CI_INFINITY);
    int64_t extents[] = {128, 8, 6};
    for (int k = 0; k < 3; k++)
        ci_expr_index(sym, ci_format(ctx, "i%d", k), ci_expr_const(sym, extents[k]));
    ci_expr_index(sym, "r0", ci_expr_const(sym, 64));
    for (int k = 0; k < 3; k++)
        ci_expr_index(sym, ci_format(ctx, "j%d", k),
                      ci_sym_find_symbol(sym, ci_format(ctx, "s%d", k)));
    ci_expr_symbol(sym, "z", CI_SYMBOL_argument, CI_MINUS_INFINITY, CI_INFINITY);
    return sym;
}

static const CiExpr *
read(CiContext *ctx, CiSym *sym, const char *text)
{
    CiLexer lex;
    ci_lexer_init(&lex, ctx, text);
    const CiExpr *e = ci_expr_parse(sym, &lex);
    CHECK(lex.kind == CI_TOKEN_end);
    return e;
}

static const char *
show(CiContext *ctx, const CiExpr *e, CiExprStyle style)
{
    CiText text = ci_text_new(ctx);
    ci_expr_print(&text, e, style);
    return text.data;
}

#define CHECK_EXPR(source, expected)                                                               \
    CHECK_TEXT(show(ctx, read(ctx, sym, source), CI_STYLE_text), expected)

TEST(equal_means_the_same_pointer)
{
    CiSym *sym = open_sym(ctx);
    const char *pairs[][2] = {
        {"i0 + i1", "i1 + i0"},
        {"2*(i0 + 3)", "6 + i0*2"},
        {"(s0 + 1)*(s1 + 2)", "s0*s1 + s1 + 2*s0 + 2"},
        {"s0*s1*s0", "s0*s0*s1"},
        {"i0 - i0", "0"},
        {"-(s0 - s1)", "s1 - s0"},
        {"min(s0, s1, 4)", "min(4, min(s1, s0))"},
        {"max(3, max(s0, 5))", "max(5, s0)"},
        {"max(max(s0 - 2, 0) - 1, 0)", "max(s0 - 3, 0)"},
        {"max(s1, max(s0, 5) - 1)", "max(4, s1, s0 - 1)"},
        {"min(min(s0, 7) + 2, s1)", "min(9, s1, s0 + 2)"},
        {"max(min(s0, 7) + 2, s1)", "max(s1, min(7, s0) + 2)"},
        {"(s0 + 7)//4", "(s0 + 3)//4 + 1"},
        {"-((-s0)//4)", "(s0 + 3)//4"},
        {"s0 // -4", "(-s0)//4"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
        CHECK_TEXT(show(ctx, read(ctx, sym, pairs[k][0]), CI_STYLE_text),
                   show(ctx, read(ctx, sym, pairs[k][1]), CI_STYLE_text));
    CHECK(read(ctx, sym, "i0*64 + r0") == read(ctx, sym, "r0 + 32*(2*i0)"));
}

TEST(divisions_simplify)
{
    CiSym *sym = open_sym(ctx);
    CHECK_EXPR("(64*i0 + r0)//64", "i0");
    CHECK_EXPR("(64*i0 + r0)%64", "r0");
    CHECK_EXPR("(64*i0 + r0)//128", "i0//2");
    CHECK_EXPR("(64*i0 + r0)%128", "64*(i0 % 2) + r0");
    CHECK_EXPR("(s0*j1 + j0)//s0", "j1");
    CHECK_EXPR("(s0*j1 + j0)%s0", "j0");
    CHECK_EXPR("(s0*j1 + s0 - 1 - j0)//s0", "j1");
    CHECK_EXPR("(s0*j1 + s0 - 1 - j0)%s0", "-j0 + s0 - 1");
    CHECK_EXPR("(s0*s1*i0 + s1*j0 + j1)//(s0*s1)", "i0");
    CHECK_EXPR("((s0*s1*i0 + s1*j0 + j1)//s1)%s0", "j0");
    CHECK_EXPR("(z//4)//8", "z//32");
    CHECK_EXPR("(z//4 + 1)//8", "(z + 4)//32");
    CHECK_EXPR("(z%32)//8", "(z//8) % 4");
    CHECK_EXPR("(z%32)%8", "z % 8");
    CHECK_EXPR("(z%32 + s0)%8", "(s0 + z) % 8");
    CHECK_EXPR("i1//8", "0");
    CHECK_EXPR("i1%8", "i1");
    CHECK_EXPR("s0//s0", "s0//s0");
    CHECK_EXPR("p0//p0", "1");
    CHECK_EXPR("(p0*z)//p0", "z");
    CHECK_EXPR("(p0*z)%p0", "0");
    CHECK_EXPR("j0//s0", "0");
    CHECK_EXPR("j0%s0", "j0");
    CHECK_EXPR("(z//p0)//p1", "z//(p0*p1)");
}

TEST(remainders_recombine)
{
    CiSym *sym = open_sym(ctx);
    CHECK_EXPR("8*(z//8) + z%8", "z");
    CHECK_EXPR("s0*(z//s0) + z%s0", "z");
    CHECK_EXPR("24*(z//24) + 6*((z//6)%4) + z%6", "z");
    CHECK_EXPR("6*((z//6)%4) + z%6", "z % 24");
    CHECK_EXPR("3*(8*(z//8) + z%8) + i0", "i0 + 3*z");
    CHECK_EXPR("(s0+1)*(z//(s0+1)) + z%(s0+1)", "z");
    CHECK_EXPR("s1*((z//s1)%s0) + z%s1", "s1*((z//s1) % s0) + z % s1");
    CHECK_EXPR("p1*((z//p1)%p0) + z%p1", "z % (p0*p1)");
    /* Reshapes there and back. */
    CHECK_EXPR("8*((4*i2 + i1%4)//8) + (4*i2 + i1%4)%8", "i1 % 4 + 4*i2");
    CHECK_EXPR("5*((7*i0 + i2)//5) + (7*i0 + i2)%5", "7*i0 + i2");
    CHECK_EXPR("s1*((s0*j0 + i0)//s1) + (s0*j0 + i0)%s1", "i0 + s0*j0");
}

TEST(extrema_fold)
{
    CiSym *sym = open_sym(ctx);
    CHECK_EXPR("min(i0, 200)", "i0");
    CHECK_EXPR("max(i0, 200)", "200");
    CHECK_EXPR("min(s0, s0 + 1)", "s0");
    CHECK_EXPR("max(j0, s0)", "s0");
    CHECK_EXPR("min(j0 + 1, s0)", "j0 + 1");
    CHECK_EXPR("max(min(s0, 4), s0)", "s0");
    CHECK_EXPR("min(s0, 4, 9, s1)", "min(s0, s1, 4)");
}

TEST(printing)
{
    CiSym *sym = open_sym(ctx);
    CHECK_EXPR("r0 + 64*i0", "64*i0 + r0");
    CHECK_EXPR("i0*s0 - 4*(z//4) - 1", "s0*i0 - 4*(z//4) - 1");
    CHECK_EXPR("-i0 - s0*i1", "-i0 - s0*i1");
    CHECK_EXPR("-9223372036854775807 - 1", "-9223372036854775808");
    CHECK_TEXT(show(ctx, read(ctx, sym, "(s0 + 3)//4 + s1 % 8"), CI_STYLE_c),
               "(s0 + 3)/4 + s1 % 8");
    CHECK_TEXT(show(ctx, read(ctx, sym, "2*(z//4) + z%(s0+8)"), CI_STYLE_c),
               "ci_mod(z, s0 + 8) + 2*ci_floordiv(z, 4)");
    CHECK_TEXT(show(ctx, read(ctx, sym, "-(z//4)"), CI_STYLE_c), "-ci_floordiv(z, 4)");
    CHECK_TEXT(show(ctx, read(ctx, sym, "min(s0, s1, 4)"), CI_STYLE_c),
               "(s0 <= s1 && s0 <= 4 ? s0 : s1 <= 4 ? s1 : 4)");
    CHECK_TEXT(show(ctx, read(ctx, sym, "s0*3000000000"), CI_STYLE_c), "3000000000LL*s0");
    CHECK_TEXT(show(ctx, read(ctx, sym, "-9223372036854775808"), CI_STYLE_c),
               "(-9223372036854775807LL - 1)");
    CHECK_TEXT(show(ctx, read(ctx, sym, "max(z//3, -1)"), CI_STYLE_python), "max(z//3, -1)");
}

TEST(the_text_does_not_depend_on_what_was_built_before)
{
    CiSym *sym = open_sym(ctx), *other = open_sym(ctx);
    read(ctx, other, "z//7 + s2//3 + (s1*s0)%5 + min(s2, s1) + s1//4");
    const char *text = "s1*i0 + (s1//2 - (s1//4) + 255)//256 + s2//3 + (s0*s1) % 5 + z//7 + min(s1, s2)";
    const char *first = show(ctx, read(ctx, sym, text), CI_STYLE_text);
    CHECK_TEXT(show(ctx, read(ctx, other, text), CI_STYLE_text), first);
    CHECK_TEXT(show(ctx, read(ctx, other, first), CI_STYLE_text), first);
}

TEST(index_symbols_of_one_name)
{
    CiSym *sym = ci_sym_new(ctx);
    const CiExpr *a = ci_expr_index(sym, "i0", ci_expr_const(sym, 4));
    const CiExpr *b = ci_expr_index(sym, "i0", ci_expr_const(sym, 8));
    CHECK(a != b && a->high == 3 && b->high == 7 && ci_sym_find_symbol(sym, "i0") == b);
    CHECK(ci_expr_index(sym, "i0", ci_expr_const(sym, 4)) == a &&
          ci_sym_find_symbol(sym, "i0") == a);
    CHECK_TEXT(show(ctx, ci_expr_add(sym, a, b), CI_STYLE_text), "i0 + i0");
    CHECK(ci_sym_find_symbol(sym, "nothing") == NULL);
    CHECK(ci_expr_index(sym, "e", ci_expr_const(sym, 0))->high == 0);
}

TEST(known_relations)
{
    CiSym *sym = open_sym(ctx);
    struct {
        const char *a, *b, *relations; /* of e n m l L: eq ne multiple le lt */
    } rows[] = {
        {"s0", "s0", "eml"},
        {"j0", "s0", "nlL"},
        {"j0 + 1", "s0", "l"},
        {"s0", "j0", "n"},
        {"s1*j0 + j1", "s0*s1", "nlL"},
        {"s0", "s0*p0", "l"},
        {"4*i0 + 3", "8*i1", "n"},
        {"12*s0", "4", "nm"},
        {"s0*s1", "s1", "m"},
        {"i0", "4", ""},
        {"0", "s0", "ml"},
        {"z%p0", "p0", "nlL"},
        {"4*((s0 + 3)//4)", "s0 + 3", "l"},
        {"s0", "4*((s0 + 3)//4)", "l"},
        {"min(s0, s1)", "s1", "l"},
        {"s0", "max(s1, s0 + 1)", "nlL"},
        {"min(s0, s1)", "max(s0, s1)", "l"},
        {"s0//4", "s0", "l"},
        {"z", "s0", ""},
        {"64*i0 + r0", "8192", "nlL"},
        {"p0*p1", "0", "n"},
        {"s0*s0", "-1", "nm"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const CiExpr *a = read(ctx, sym, rows[k].a), *b = read(ctx, sym, rows[k].b);
        const char *got = ci_format(
            ctx, "%s%s%s%s%s", ci_sym_known_eq(sym, a, b) ? "e" : "",
            ci_sym_known_ne(sym, a, b) ? "n" : "", ci_sym_known_multiple_of(sym, a, b) ? "m" : "",
            ci_sym_known_le(sym, a, b) ? "l" : "", ci_sym_known_lt(sym, a, b) ? "L" : "");
        CHECK_TEXT(ci_format(ctx, "%s ? %s: %s", rows[k].a, rows[k].b, got),
                   ci_format(ctx, "%s ? %s: %s", rows[k].a, rows[k].b, rows[k].relations));
    }
}

TEST(splitting_and_substitution)
{
    CiSym *sym = open_sym(ctx);
    const CiExpr *coef, *rest, *i0 = ci_sym_find_symbol(sym, "i0"),
                               *i1 = ci_sym_find_symbol(sym, "i1");
    CHECK(ci_expr_split_linear(sym, read(ctx, sym, "s0*i0 + 3*i0 + i1//4 + 5"), i0, &coef, &rest));
    CHECK(coef == read(ctx, sym, "s0 + 3") && rest == read(ctx, sym, "i1//4 + 5"));
    CHECK(!ci_expr_split_linear(sym, read(ctx, sym, "i0//4 + i0"), i0, &coef, &rest));
    CHECK(!ci_expr_split_linear(sym, read(ctx, sym, "i0*i0"), i0, &coef, &rest));
    CHECK(ci_expr_split_linear(sym, i1, i0, &coef, &rest) && ci_expr_equals_const(coef, 0) &&
          rest == i1);
    CHECK(ci_expr_split_linear(sym, i0, i0, &coef, &rest) && ci_expr_equals_const(coef, 1));
    const CiExpr *from[] = {i0, i1}, *to[] = {i1, i0};
    CHECK(ci_expr_substitute(sym, read(ctx, sym, "8*i0 + i1//3"), 2, from, to) ==
          read(ctx, sym, "8*i1 + i0//3"));
    to[0] = read(ctx, sym, "64*i2 + r0");
    CHECK(ci_expr_substitute(sym, read(ctx, sym, "i0//64"), 1, from, to) == read(ctx, sym, "i2"));
    from[0] = read(ctx, sym, "z//4");
    CHECK(ci_expr_substitute(sym, read(ctx, sym, "min(z//4 + 1, 7)"), 1, from, to) ==
          read(ctx, sym, "min(64*i2 + r0 + 1, 7)"));
    CHECK(ci_expr_depends_on(read(ctx, sym, "min(i0//4, s0)"), i0) && !ci_expr_depends_on(i1, i0));
    CHECK(read(ctx, sym, "(s0 + 1)*(s0 + 1)") == read(ctx, sym, "s0*s0 + 2*s0 + 1"));
    CHECK(ci_expr_ceildiv(sym, read(ctx, sym, "s0"), ci_expr_const(sym, 4)) ==
          read(ctx, sym, "(s0 + 3)//4"));
}

TEST(copies_go_to_another_arena)
{
    CiSym *sym = open_sym(ctx);
    const CiExpr *e = read(ctx, sym, "min(s0*j0 + (z + 3)//4, s1 % 8) + max(i0, 9)*2");
    CiContext *other = ci_context_open();
    CiSym *into = ci_sym_new(other);
    const CiExpr *copy = ci_expr_copy(into, e);
    CHECK_TEXT(show(ctx, copy, CI_STYLE_text), show(ctx, e, CI_STYLE_text));
    CHECK(ci_expr_copy(into, e) == copy && ci_expr_copy(sym, copy) == e);
    ci_context_close(other);
}

typedef struct Case {
    CiSym *sym;
    const char *text;
} Case;

static void
read_case(CiContext *ctx, void *arg)
{
    Case *it = arg;
    CiLexer lex;
    ci_lexer_init(&lex, ctx, it->text);
    ci_expr_parse(it->sym, &lex);
    ci_lexer_expect(&lex, "end");
}

static int64_t
three(void *arg, const CiExpr *symbol)
{
    (void)arg;
    return symbol->name[0] == 's' ? 0 : 3;
}

static void
evaluate_case(CiContext *ctx, void *arg)
{
    Case *it = arg;
    ci_expr_evaluate(ctx, read(ctx, it->sym, it->text), three, NULL);
}

static void
redeclare(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_expr_symbol(arg, "s0", CI_SYMBOL_unbacked, 0, CI_INFINITY);
}

TEST(refusals)
{
    Case it = {open_sym(ctx), ""};
    const char *bad[] = {"", "x", "(i0", "min(i0", "i0 +", "1.5", "i0 / 4", "min i0"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        it.text = bad[k];
        CHECK_FAILS(ctx, SYNTAX, read_case, &it);
    }
    const char *wrong[] = {"i0//0", "i0 % 0"};
    for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        it.text = wrong[k];
        CHECK_FAILS(ctx, VALUE, read_case, &it);
    }
    const char *large[] = {"9223372036854775807 + 1", "9223372036854775807*2",
                           "-9223372036854775808 // -1", "4*i0*9223372036854775807"};
    for (size_t k = 0; k < sizeof large / sizeof large[0]; k++) {
        it.text = large[k];
        CHECK_FAILS(ctx, UNSUPPORTED, read_case, &it);
    }
    char *deep = ci_new(ctx, 100001);
    memset(deep, '(', 100000);
    it.text = deep;
    CHECK_FAILS(ctx, SYNTAX, read_case, &it);
    it.text = "i0//s0";
    CHECK_FAILS(ctx, ZERO_DIVISION, evaluate_case, &it);
    it.text = "z*z*z*9223372036854775807";
    CHECK_FAILS(ctx, UNSUPPORTED, evaluate_case, &it);
    CHECK_FAILS(ctx, VALUE, redeclare, it.sym);
}

static void
build_many(CiContext *ctx, void *arg)
{
    (void)arg;
    CiSym *sym = open_sym(ctx);
    const CiExpr *e =
        read(ctx, sym, "min((s1*j0 + j1)//s1, 4*(z//4) + z%4, (z%32)//8) + s0*(z//s0)");
    const CiExpr *from[] = {ci_sym_find_symbol(sym, "z")}, *to[] = {ci_sym_find_symbol(sym, "j2")};
    ci_expr_copy(ci_sym_new(ctx), ci_expr_substitute(sym, e, 1, from, to));
    CHECK(ci_sym_known_lt(sym, read(ctx, sym, "s1*j0 + j1"), read(ctx, sym, "s0*s1")));
}

TEST(every_allocation_may_fail)
{
    ci_test_failing_allocations(build_many, NULL);
}

TEST(overflow_in_a_proof_is_no_error)
{
    CiSym *sym = open_sym(ctx);
    const CiExpr *low = read(ctx, sym, "z - 9223372036854775807"),
                 *high = read(ctx, sym, "z + 9223372036854775807");
    CHECK(!ci_sym_known_lt(sym, high, low) && !ci_sym_known_eq(sym, high, low));
    const CiExpr *e = read(ctx, sym, "4611686018427387904*(z % 8)");
    CHECK_TEXT(show(ctx, ci_expr_add(sym, e, read(ctx, sym, "s0")), CI_STYLE_text),
               "s0 + 4611686018427387904*(z % 8)");
    CHECK(ci_expr_const(sym, INT64_MAX)->high == INT64_MAX);
    CHECK_EXPR("min(s0, 9223372036854775807)", "s0");
}

/* Each divisor holds all remainders before it. */
TEST(sums_of_nested_remainders_take_few_nodes)
{
    CiSym *sym = open_sym(ctx);
    const CiExpr *size = read(ctx, sym, "s0"), *z = read(ctx, sym, "z"), *one = ci_expr_const(sym, 1);
    const CiExpr *e = size;
    for (int k = 0; k < 18; k++) {
        uint32_t before = ci_sym_count(sym);
        e = ci_expr_sub(sym, e, ci_expr_floordiv(sym, e, ci_expr_const(sym, 2 + k % 3)));
        e = ci_expr_add(sym, e, ci_expr_mod(sym, z, ci_expr_add(sym, e, one)));
        CHECK(ci_sym_count(sym) - before < 9000);
    }
}

/* Each step uses the one before twice, so as a tree the last one has 2**60 operands. */
TEST(shared_operands_are_visited_once)
{
    CiSym *sym = open_sym(ctx);
    uint32_t before = ci_sym_count(sym);
    const CiExpr *size = ci_expr_unbacked(sym, "u0", 0, read(ctx, sym, "s0")), *three = ci_expr_const(sym, 3);
    const CiExpr *e = ci_expr_min(sym, size, read(ctx, sym, "s1")), *strides[2], *sizes[2];
    for (int k = 0; k < 60; k++)
        e = ci_expr_sub(sym, e, ci_expr_floordiv(sym, e, three));
    CHECK(ci_expr_magnitude(e, 1e4) >= 1e4);
    ci_expr_most(sym, e, before);
    strides[0] = e;
    strides[1] = read(ctx, sym, "s2");
    sizes[0] = sizes[1] = size;
    CHECK(ci_layout_order_of_strides(ctx, sym, 2, sizes, strides) != NULL);
}
