/* Tests child processes: input, output, exit status, time limits, failures to start, and
 * inherited descriptors. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os.h"
#include "ci_test.h"
#include "host/child.h"

static CiChildResult
shell(const char *script, const char *input, double timeout_s)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    CiChildResult result;
    CHECK_INT(ci_child_run(argv, input, input ? strlen(input) : 0, timeout_s, NULL, NULL, &result),
              0);
    return result;
}

TEST(output_and_exit_codes)
{
    CiChildResult result = shell("echo out; echo err >&2; exit 3", NULL, 10);
    CHECK_TEXT(result.output, "out\nerr\n");
    CHECK_INT(result.exit_code, 3);
    CHECK(!result.interrupted && !result.timed_out);
    free(result.output);
    result = shell("kill -SEGV $$", NULL, 10);
    CHECK_INT(result.exit_code, 128 + SIGSEGV);
    free(result.output);
}

TEST(input)
{
    CiChildResult result = shell("cat", "some\ntext", 10);
    CHECK_TEXT(result.output, "some\ntext");
    free(result.output);
    result = shell("cat; echo end", NULL, 10);
    CHECK_TEXT(result.output, "end\n");
    free(result.output);
    size_t size = 1 << 20;
    char *big = ci_new(ctx, size + 1);
    memset(big, 'x', size);
    result = shell("wc -c", big, 10);
    CHECK_INT(atoi(result.output), size);
    free(result.output);
    result = shell("exec <&-; echo deaf", big, 10); /* no SIGPIPE */
    CHECK_TEXT(result.output, "deaf\n");
    CHECK_INT(result.exit_code, 0);
    free(result.output);
}

TEST(long_output_is_cut)
{
    CiChildResult result = shell("yes | head -c 300000; exit 5", NULL, 10);
    CHECK_INT(strlen(result.output), 64 << 10);
    CHECK_INT(result.exit_code, 5);
    free(result.output);
}

TEST(timeouts_kill_grandchildren_too)
{
    int64_t start = ci_os_time_ns();
    CiChildResult result = shell("echo begun; sleep 30 | sleep 30; echo over", NULL, 0.2);
    CHECK(result.timed_out && !result.interrupted);
    CHECK_TEXT(result.output, "begun\n");
    CHECK_INT(result.exit_code, 128 + SIGKILL);
    CHECK(ci_os_time_ns() - start < 10000000000);
    free(result.output);
}

static bool
stop_at_third(void *arg)
{
    return ++*(int *)arg == 3;
}

TEST(stopping)
{
    const char *argv[] = {"/bin/sh", "-c", "sleep 30", NULL};
    CiChildResult result;
    int asked = 0;
    int64_t start = ci_os_time_ns();
    CHECK_INT(ci_child_run(argv, NULL, 0, 0, stop_at_third, &asked, &result), 0);
    CHECK(result.interrupted && !result.timed_out && asked == 3);
    int64_t took = ci_os_time_ns() - start;
    CHECK(took > 2000000 * CI_POLL_MS && took < 10000000000);
    CHECK(2 * CI_POLL_MS <= 100); /* milliseconds in which an ending process has left its builds */
    free(result.output);
}

TEST(a_child_that_closes_its_output_or_leaves_it_to_another)
{
    CiChildResult result = shell("exec >&- 2>&-; sleep 0.1; exit 4", NULL, 10);
    CHECK_INT(result.exit_code, 4);
    free(result.output);
    int64_t start = ci_os_time_ns();
    result = shell("sleep 5 & echo gone; exit 6", NULL, 20);
    CHECK_INT(result.exit_code, 6);
    CHECK_TEXT(result.output, "gone\n");
    CHECK(ci_os_time_ns() - start < 4000000000);
    free(result.output);
}

TEST(programs_that_cannot_start)
{
    const char *argv[] = {"/no/such/program", NULL};
    CiChildResult result;
    CHECK_INT(ci_child_run(argv, NULL, 0, 1, NULL, NULL, &result), ENOENT);
    CHECK(result.output == NULL);
    argv[0] = "/etc/passwd";
    CHECK_INT(ci_child_run(argv, "x", 1, 1, NULL, NULL, &result), EACCES);
}

TEST(descriptors_do_not_leak)
{
    int before = dup(0);
    close(before);
    for (int k = 0; k < 50; k++)
        free(shell("true", k % 2 ? "x" : NULL, 10).output);
    int after = dup(0);
    close(after);
    CHECK_INT(after, before);
    /* The child has only the descriptors that popen gives it, whatever this process inherited. */
    const char *count = "ls /proc/self/fd | wc -l";
    char *inside = shell(count, NULL, 10).output;
    FILE *plain = popen(count, "r");
    int expected = 0;
    CHECK(fscanf(plain, "%d", &expected) == 1);
    pclose(plain);
    CHECK(atoi(inside) <= expected);
    free(inside);
}
