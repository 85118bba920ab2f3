/* Tests the wrappers of operating-system calls: files, folders, programs on the path, and time.
 * Refusals are errno values. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "ci_test.h"

static const char *
scratch(CiContext *ctx)
{
    char *path = ci_format(ctx, "%s/ci-os-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    return path;
}

TEST(written_files_read_back)
{
    const char *directory = scratch(ctx), *path = ci_format(ctx, "%s/a", directory);
    size_t sizes[] = {0, 1, 100000};
    char *bytes = ci_new(ctx, 100000);
    memset(bytes, 7, 100000);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(ci_os_write_atomic(path, bytes, sizes[i]), 0);
        void *data;
        size_t size;
        CHECK_INT(ci_os_read(path, &data, &size), 0);
        CHECK(size == sizes[i] && memcmp(data, bytes, size) == 0);
        free(data);
        CiFileInfo info;
        CHECK_INT(ci_os_stat(path, &info), 0);
        CHECK(info.is_regular && info.mode == 0600 && info.uid == getuid());
        CHECK(info.size == (int64_t)sizes[i] && info.mtime_ns > 0);
    }
    unlink(path);
    CHECK(rmdir(directory) == 0); /* no temporary file is left behind */
}

TEST(refusals_are_errnos)
{
    const char *directory = scratch(ctx), *pipe = ci_format(ctx, "%s/pipe", directory);
    const char *link = ci_format(ctx, "%s/link", directory);
    void *data;
    size_t size;
    CiFileInfo info;
    CHECK_INT(ci_os_read("/nowhere/at/all", &data, &size), ENOENT);
    CHECK_INT(ci_os_read(directory, &data, &size), EISDIR);
    CHECK(mkfifo(pipe, 0600) == 0);
    CHECK_INT(ci_os_read(pipe, &data, &size), EINVAL);
    CHECK(symlink(pipe, link) == 0);
    CHECK(ci_os_stat(link, &info) == 0 && !info.is_regular);
    CHECK_INT(ci_os_write_atomic("/nowhere/at/all", "x", 1), ENOENT);
    CHECK_INT(ci_os_write_atomic(directory, "x", 1), EISDIR);
    char *longest = ci_new(ctx, 5001);
    memset(longest, 'a', 5000);
    CHECK_INT(ci_os_write_atomic(longest, "x", 1), ENAMETOOLONG);
    CHECK_INT(ci_os_make_directories(longest), ENAMETOOLONG);
    CHECK_INT(ci_os_make_directories(""), ENOENT);
    unlink(pipe), unlink(link);
    CHECK(rmdir(directory) == 0);
}

TEST(directories)
{
    const char *directory = scratch(ctx), *deep = ci_format(ctx, "%s/a/b//c/", directory);
    CiFileInfo info;
    CHECK_INT(ci_os_make_directories(deep), 0);
    CHECK_INT(ci_os_make_directories(deep), 0);
    CHECK(ci_os_stat(ci_format(ctx, "%s/a/b/c", directory), &info) == 0);
    CHECK(info.is_directory && info.mode == 0700);
    CHECK_INT(ci_os_write_atomic(ci_format(ctx, "%s/file", directory), "x", 1), 0);
    CHECK_INT(ci_os_make_directories(ci_format(ctx, "%s/file", directory)), ENOTDIR);
    CHECK_INT(ci_os_make_directories(ci_format(ctx, "%s/file/x", directory)), ENOTDIR);
    char out[4096], small[4];
    CHECK_INT(ci_os_resolve(ci_format(ctx, "%s/a/../a/b/c", directory), out, sizeof out), 0);
    CHECK(strstr(out, "/a/b/c") && !strstr(out, ".."));
    CHECK_INT(ci_os_resolve(deep, small, sizeof small), ENAMETOOLONG);
    CHECK_INT(ci_os_resolve("/nowhere/at/all", out, sizeof out), ENOENT);
    unlink(ci_format(ctx, "%s/file", directory));
    const char *parts[] = {"/a/b/c", "/a/b", "/a", ""};
    for (int i = 0; i < 4; i++)
        CHECK(rmdir(ci_format(ctx, "%s%s", directory, parts[i])) == 0);
}

TEST(programs)
{
    char out[4096];
    CHECK_INT(ci_os_find_program("sh", out, sizeof out), 0);
    CHECK(out[0] == '/' && strcmp(out + strlen(out) - 3, "/sh") == 0);
    CHECK_INT(ci_os_find_program("no-such-program-at-all", out, sizeof out), ENOENT);
    CHECK_INT(ci_os_find_program("", out, sizeof out), ENOENT);
    CHECK_INT(ci_os_find_program("/bin/sh", out, sizeof out), 0);
    /* a link, as ccache installs for compilers, is not resolved */
    CHECK(strcmp(out, "/bin/sh") == 0);
    CHECK(chdir("/bin") == 0);
    CHECK_INT(ci_os_find_program("./sh", out, sizeof out), 0);
    CHECK(strcmp(out + strlen(out) - 5, "/./sh") == 0 && out[0] == '/');
    CHECK_INT(ci_os_find_program("/etc/passwd", out, sizeof out), ENOENT);
    setenv("PATH", ".:::/bin:/usr/bin:", 1);
    CHECK_INT(ci_os_find_program("sh", out, sizeof out), 0);
    setenv("PATH", "", 1);
    CHECK_INT(ci_os_find_program("sh", out, sizeof out), ENOENT);
}

TEST(time_goes_forward)
{
    int64_t start = ci_os_time_ns();
    usleep(2000);
    CHECK(ci_os_time_ns() - start >= 1000000);
}
