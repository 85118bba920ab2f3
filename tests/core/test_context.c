/* Tests contexts: blocks of an arena, errors that unwind to ci_protect, and planted failures of
 * allocations. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ci_test.h"

TEST(blocks_are_zeroed_aligned_and_apart)
{
    char *last = NULL;
    for (size_t size = 0; size < 3000; size = size * 3 / 2 + 1) {
        char *block = ci_new(ctx, size);
        CHECK((uintptr_t)block % 16 == 0);
        CHECK(block != last);
        for (size_t i = 0; i < size; i++)
            CHECK(block[i] == 0);
        memset(block, 0xff, size);
        last = block;
    }
}

TEST(big_blocks_leave_the_open_chunk_alone)
{
    char *first = ci_new(ctx, 16);
    char *big = ci_new(ctx, 10 << 20);
    char *second = ci_new(ctx, 16);
    CHECK(second - first < 100 && second > first);
    big[(10 << 20) - 1] = 1;
}

TEST(many_blocks)
{
    for (int i = 0; i < 200000; i++)
        *CI_NEW(ctx, int) = i;
}

TEST(grow_keeps_the_old_block)
{
    int *old = CI_NEW_ARRAY(ctx, int, 4);
    for (int i = 0; i < 4; i++)
        old[i] = i + 1;
    int *wide = ci_grow(ctx, old, 4 * sizeof *old, 8 * sizeof *old);
    for (int i = 0; i < 8; i++)
        CHECK_INT(wide[i], i < 4 ? i + 1 : 0);
    CHECK_INT(old[3], 4);
    CHECK(ci_grow(ctx, NULL, 0, 8) != NULL);
}

TEST(push_grows)
{
    int *items = NULL, count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++)
        CI_PUSH(ctx, items, count, capacity, i * i);
    CHECK_INT(count, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK_INT(items[i], i * i);
}

TEST(format_short_and_long)
{
    CHECK_TEXT(ci_format(ctx, "%d-%s", 7, "x"), "7-x");
    char *text = ci_format(ctx, "%0*d", 5000, 1);
    CHECK_INT(strlen(text), 5000);
    CHECK_TEXT(ci_copy_text(ctx, "abcdef", 3), "abc");
    CHECK_TEXT(ci_copy_text(ctx, NULL, 0), "");
}

static void
fail_with_shape(CiContext *ctx, void *arg)
{
    ci_fail(ctx, CI_ERR_SHAPE, "axis %d", *(int *)arg);
}

static void
fail_twice(CiContext *ctx, void *arg)
{
    CHECK_FAILS(ctx, SHAPE, fail_with_shape, arg);
    CHECK_TEXT(ci_context_message(ctx), "axis 3");
    ci_fail(ctx, CI_ERR_INDEX, "again: %s", ci_context_message(ctx));
}

static void
fail_quietly(CiContext *ctx, void *arg)
{
    (void)arg;
    ci_fail(ctx, CI_ERR_LOAD, "%s", "");
}

TEST(failures_land_in_the_innermost_protect)
{
    int axis = 3;
    CHECK_TEXT(ci_context_message(ctx), "");
    CHECK_FAILS(ctx, INDEX, fail_twice, &axis);
    CHECK_TEXT(ci_context_message(ctx), "again: axis 3");
    CHECK_FAILS(ctx, LOAD, fail_quietly, NULL);
    CHECK_TEXT(ci_context_message(ctx), ci_status_text(CI_ERR_LOAD));
}

static void
ask_for_too_much(CiContext *ctx, void *arg)
{
    ci_new(ctx, *(size_t *)arg);
}

static void
require_nothing(CiContext *ctx, void *arg)
{
    CI_REQUIRE(ctx, arg != NULL);
}

TEST(sizes_that_cannot_be)
{
    size_t sizes[] = {SIZE_MAX, SIZE_MAX - 15, PTRDIFF_MAX, (size_t)-8};
    for (int i = 0; i < 4; i++)
        CHECK_FAILS(ctx, MEMORY, ask_for_too_much, &sizes[i]);
    CHECK_FAILS(ctx, INTERNAL, require_nothing, NULL);
    CHECK(strstr(ci_context_message(ctx), "arg != NULL") != NULL);
}

TEST(the_nth_allocation_fails_once)
{
    size_t size = 8;
    ci_context_fail_allocation(ctx, 3);
    ci_new(ctx, 8);
    ci_new(ctx, 8);
    CHECK_FAILS(ctx, MEMORY, ask_for_too_much, &size);
    CHECK(ci_protect(ctx, ask_for_too_much, &size) == CI_OK);
}

TEST(a_failure_without_a_landing_aborts_with_its_text)
{
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        int axis = 5;
        CiContext *other = ci_context_open();
        fail_with_shape(other, &axis);
    }
    close(pipes[1]);
    char text[256] = "";
    CHECK(read(pipes[0], text, sizeof text - 1) > 0);
    close(pipes[0]);
    int status;
    waitpid(child, &status, 0);
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    CHECK(strstr(text, "SHAPE: axis 5") != NULL);
}

TEST(statuses_have_names)
{
    CHECK_TEXT(ci_status_name(CI_OK), "OK");
    CHECK_TEXT(ci_status_name(CI_ERR_ZERO_DIVISION), "ZERO_DIVISION");
    for (int status = 0; status < CI_ERR_COUNT; status++)
        CHECK(*ci_status_text((CiStatus)status));
}
