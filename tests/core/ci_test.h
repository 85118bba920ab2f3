/* C unit tests that run as pytest items. A test file includes this header once and becomes a
 * program: `--list` prints the names of its tests, a name runs that test, and no argument runs
 * all.
 *
 * Each test gets its own context inside ci_protect. A failed check is printed, and the test
 * continues. */
#ifndef CI_TEST_H
#define CI_TEST_H

#include <stdio.h>
#include <string.h>

#include "base/context.h"

typedef void CiTestBody(CiContext *ctx, void *arg);

typedef struct CiTest {
    const char *name;
    CiTestBody *body;
    struct CiTest *next;
} CiTest;

static CiTest *ci_tests;
static int ci_test_failures;

/* TEST(name) { ... ctx ... } */
#define TEST(test)                                                                                 \
    static void test(CiContext *ctx, void *arg);                                                   \
    __attribute__((constructor)) static void ci_register_##test(void)                              \
    {                                                                                              \
        static CiTest entry = {#test, test, NULL};                                                 \
        CiTest **last = &ci_tests;                                                                 \
        while (*last)                                                                              \
            last = &(*last)->next;                                                                 \
        *last = &entry;                                                                            \
    }                                                                                              \
    static void test(CiContext *ctx __attribute__((unused)), void *arg __attribute__((unused)))

#define CI_TEST_SAY(...)                                                                           \
    (ci_test_failures++, printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), puts(""))
#define CHECK(condition) ((condition) ? (void)0 : (void)CI_TEST_SAY("not so: %s", #condition))
#define CHECK_INT(got, expected)                                                                   \
    do {                                                                                           \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                      \
        if (got_ != expected_)                                                                     \
            CI_TEST_SAY("%s is %lld, not %lld", #got, got_, expected_);                            \
    } while (0)
#define CHECK_TEXT(got, expected)                                                                  \
    do {                                                                                           \
        const char *got_ = (got), *expected_ = (expected);                                         \
        if (strcmp(got_, expected_) != 0)                                                          \
            CI_TEST_SAY("%s is\n%s\nnot\n%s", #got, got_, expected_);                              \
    } while (0)
#define CHECK_FAILS(context, status, body, argument)                                               \
    CHECK_TEXT(ci_status_name(ci_protect((context), (body), (argument))), #status)

/* Runs body in fresh contexts, each with a later allocation failing, until no allocation fails.
 * After each failure the body must succeed in the same context. */
static inline void
ci_test_failing_allocations(CiTestBody *body, void *arg)
{
    for (long n = 1;; n++) {
        CiContext *ctx = ci_context_open();
        ci_context_fail_allocation(ctx, n);
        CiStatus status = ci_protect(ctx, body, arg);
        CHECK(status == CI_OK || status == CI_ERR_MEMORY);
        ci_context_fail_allocation(ctx, 0);
        CHECK(ci_protect(ctx, body, arg) == CI_OK);
        ci_context_close(ctx);
        if (status == CI_OK)
            return;
    }
}

int
main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    int found = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (CiTest *test = ci_tests; test; test = test->next) {
        if (strcmp(wanted, "--list") == 0)
            puts(test->name);
        else if (*wanted && strcmp(wanted, test->name) != 0)
            continue;
        found++;
        CiContext *ctx = strcmp(wanted, "--list") == 0 ? NULL : ci_context_open();
        if (ctx && ci_protect(ctx, test->body, NULL) != CI_OK)
            CI_TEST_SAY("%s failed: %s", test->name, ci_context_message(ctx));
        ci_context_close(ctx);
    }
    return found && !ci_test_failures ? 0 : 1;
}

#endif
