/* Tests the lexer of the text forms: tokens, numbers, strings, positions, and errors. */
#include <math.h>

#include "base/lexer.h"
#include "ci_test.h"

TEST(tokens)
{
    CiLexer lex;
    ci_lexer_init(&lex, ctx,
                  "graph f(x1: f32[12]) -> %3 # all this\n @ 1..4 <= // \"a\\n\\x41\\\"\"");
    CHECK(lex.kind == CI_TOKEN_name && strcmp(lex.string, "graph") == 0);
    ci_lexer_expect(&lex, "graph");
    CHECK_TEXT(ci_lexer_expect_name(&lex), "f");
    ci_lexer_expect(&lex, "(");
    CHECK_TEXT(ci_lexer_expect_name(&lex), "x1");
    CHECK(!ci_lexer_accept(&lex, "::") && ci_lexer_accept(&lex, ":"));
    ci_lexer_expect(&lex, "f32");
    ci_lexer_expect(&lex, "[");
    CHECK_INT(ci_lexer_expect_int(&lex), 12);
    ci_lexer_expect(&lex, "]");
    ci_lexer_expect(&lex, ")");
    ci_lexer_expect(&lex, "->");
    ci_lexer_expect(&lex, "%");
    CHECK_INT(ci_lexer_expect_int(&lex), 3);
    CHECK_INT(lex.line, 2);
    ci_lexer_expect(&lex, "@");
    CHECK(lex.kind == CI_TOKEN_int && lex.int_value == 1);
    ci_lexer_next(&lex);
    ci_lexer_expect(&lex, "..");
    ci_lexer_expect(&lex, "4");
    ci_lexer_expect(&lex, "<=");
    ci_lexer_expect(&lex, "//");
    CHECK(lex.kind == CI_TOKEN_string && !ci_lexer_is(&lex, "\"a\\n\\x41\\\"\""));
    CHECK_TEXT(lex.string, "a\nA\"");
    ci_lexer_next(&lex);
    CHECK(lex.kind == CI_TOKEN_end && !ci_lexer_is(&lex, ""));
    ci_lexer_next(&lex);
    CHECK(lex.kind == CI_TOKEN_end);
}

TEST(numbers)
{
    CiLexer lex;
    ci_lexer_init(&lex, ctx,
                  "1.5 1e-3 inf nan 0x1.8p+1 0xff 2. -9223372036854775808 18446744073709551615");
    double expected[] = {1.5, 1e-3, INFINITY};
    for (int i = 0; i < 3; i++, ci_lexer_next(&lex))
        CHECK(lex.kind == CI_TOKEN_float && lex.float_value == expected[i]);
    CHECK(lex.kind == CI_TOKEN_float && isnan(lex.float_value));
    ci_lexer_next(&lex);
    CHECK(lex.kind == CI_TOKEN_float && lex.float_value == 3.0);
    ci_lexer_next(&lex);
    CHECK_INT(ci_lexer_expect_int(&lex), 255);
    CHECK(lex.kind == CI_TOKEN_float && lex.float_value == 2.0);
    ci_lexer_next(&lex);
    CHECK(ci_lexer_expect_int(&lex) == INT64_MIN);
    CHECK(lex.kind == CI_TOKEN_int && (uint64_t)lex.int_value == UINT64_MAX);
}

static void
read_all_as_ints(CiContext *ctx, void *arg)
{
    CiLexer lex;
    ci_lexer_init(&lex, ctx, arg);
    while (lex.kind != CI_TOKEN_end)
        ci_lexer_expect_int(&lex);
}

TEST(errors_show_the_place)
{
    CHECK_FAILS(ctx, SYNTAX, read_all_as_ints, "1 2\n  3 foo 4\n5");
    CHECK_TEXT(ci_context_message(ctx),
               "line 2, column 5: an integer is expected here, not 'foo'\n    3 foo 4\n      ^");
    char *bad[] = {"1 x",
                   "\"abc",
                   "\"abc\n\"",
                   "\"\\q\"",
                   "\"\\x0\"",
                   "\"\\x00\"",
                   "12ab",
                   "0x",
                   "18446744073709551616",
                   "9223372036854775808",
                   "- 9223372036854775809",
                   "-"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_FAILS(ctx, SYNTAX, read_all_as_ints, bad[i]);
    char *far = ci_new(ctx, 3001);
    memset(far, '1', 3000);
    for (int i = 0; i < 3000; i += 2)
        far[i] = ' ';
    far[2001] = '?';
    CHECK_FAILS(ctx, SYNTAX, read_all_as_ints, far);
    CHECK(strstr(ci_context_message(ctx), "column 2002") && strlen(ci_context_message(ctx)) < 400);
}

TEST(every_allocation_may_fail)
{
    ci_test_failing_allocations(read_all_as_ints, "1 2 -3 # \n 4");
}
