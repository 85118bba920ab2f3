/* Tests the disk cache: lookup, atomic stores, locks between processes, removal of old entries,
 * and folders that are not trusted. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "ci_test.h"
#include "host/cache.h"

static const char KEY[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static const char *
scratch(CiContext *ctx)
{
    char *path = ci_format(ctx, "%s/ci-cache-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    return path;
}

/* The warning, freed with the context. */
static const char *
warning(CiContext *ctx, CiCache *cache)
{
    char *text = ci_cache_take_warning(cache), *copy = ci_format(ctx, "%s", text ? text : "");
    free(text);
    return copy;
}

static CiCacheInfo
info_of(CiCache *cache)
{
    CiCacheInfo info;
    ci_cache_info(cache, &info);
    return info;
}

TEST(entries_are_found_again)
{
    const char *directory = scratch(ctx);
    char path[4096], again[4096];
    CiCache *cache = ci_cache_open(directory);
    CHECK(!ci_cache_find(cache, KEY, "so", path, sizeof path));
    CHECK(ci_cache_store(cache, KEY, "so", "payload", 7, path, sizeof path));
    CHECK(ci_cache_store(cache, KEY, "cubin", "", 0, path, sizeof path));
    ci_cache_close(cache);
    cache = ci_cache_open(directory);
    CHECK(ci_cache_find(cache, KEY, "so", again, sizeof again));
    CHECK(ci_cache_find(cache, KEY, "cubin", path, sizeof path) && strcmp(path, again) != 0);
    void *data;
    size_t size;
    CHECK_INT(ci_os_read(again, &data, &size), 0);
    CHECK(size == 7 + 48 && memcmp(data, "payload", 7) == 0);
    free(data);
    CiCacheInfo info = info_of(cache);
    CHECK(info.entries == 2 && info.bytes == 7 + 48 + 48 && info.hits == 2 && info.misses == 0);
    CHECK_TEXT(warning(ctx, cache), "");
    CHECK_INT(ci_cache_clear(cache), 2);
    CHECK_INT(info_of(cache).entries, 0);
    ci_cache_close(cache);
    CHECK(rmdir(directory) == 0);
}

TEST(damaged_entries_are_refused_and_removed)
{
    const char *directory = scratch(ctx);
    CiCache *cache = ci_cache_open(directory);
    char path[4096], other[4096], key[65];
    CHECK(ci_cache_store(cache, KEY, "so", "the payload of an entry", 23, path, sizeof path));
    void *whole;
    size_t size;
    CHECK_INT(ci_os_read(path, &whole, &size), 0);
    int rejected = 0;
    for (size_t cut = 0; cut < size; cut += 5, rejected++) {
        CHECK_INT(ci_os_write_atomic(path, whole, cut), 0);
        CHECK(!ci_cache_find(cache, KEY, "so", other, sizeof other));
        CHECK(access(path, F_OK) != 0);
    }
    for (size_t at = 0; at < size; at++, rejected++) {
        ((char *)whole)[at] ^= 0x10;
        CHECK_INT(ci_os_write_atomic(path, whole, size), 0);
        CHECK(!ci_cache_find(cache, KEY, "so", other, sizeof other));
        ((char *)whole)[at] ^= 0x10;
    }
    /* Another entry's file under this name. */
    memcpy(key, KEY, 65);
    key[0] = 'f';
    CHECK(ci_cache_store(cache, key, "so", "other", 5, other, sizeof other));
    CHECK(rename(other, path) == 0);
    CHECK(!ci_cache_find(cache, KEY, "so", other, sizeof other));
    rejected++;
    /* A symbolic link, and a file that others may write. */
    CHECK_INT(ci_os_write_atomic(ci_format(ctx, "%s/x", directory), whole, size), 0);
    CHECK(symlink(ci_format(ctx, "%s/x", directory), path) == 0);
    CHECK(!ci_cache_find(cache, KEY, "so", other, sizeof other));
    rejected++;
    CHECK_INT(ci_os_write_atomic(path, whole, size), 0);
    CHECK(ci_cache_find(cache, KEY, "so", other, sizeof other));
    chmod(path, 0666);
    CHECK(!ci_cache_find(cache, KEY, "so", other, sizeof other));
    rejected++;
    CHECK_INT(info_of(cache).rejected, rejected);
    CHECK(strstr(warning(ctx, cache), "damaged"));
    CHECK_TEXT(warning(ctx, cache), "");
    free(whole);
    ci_cache_close(cache);
    ci_folder_remove(directory);
}

TEST(names_that_are_not_keys)
{
    const char *directory = scratch(ctx), *bad[] = {"", "abc", "../../../etc/passwd", "a/b"};
    CiCache *cache = ci_cache_open(directory);
    char path[4096];
    for (int k = 0; k < 4; k++) {
        CHECK(!ci_cache_store(cache, bad[k], "so", "x", 1, path, sizeof path));
        CHECK(!ci_cache_store(cache, KEY, bad[k == 1 ? 2 : k], "x", 1, path, sizeof path));
        CHECK(!ci_cache_find(cache, bad[k], "so", path, sizeof path));
    }
    CHECK(!ci_cache_store(cache, KEY, "so", "x", 1, path, 10));
    /* Files that cinductor did not make are not removed. */
    const char *names[] = {"notes.txt", "build-mine", "cinductor-build-longer-name"};
    for (int k = 0; k < 3; k++)
        CHECK_INT(ci_os_write_atomic(ci_format(ctx, "%s/%s", directory, names[k]), "x", 1), 0);
    CHECK_INT(ci_cache_clear(cache), 0);
    for (int k = 0; k < 3; k++)
        CHECK(access(ci_format(ctx, "%s/%s", directory, names[k]), F_OK) == 0);
    ci_cache_close(cache);
    ci_folder_remove(directory);
}

/* A directory that cannot be trusted is refused with a reason, and another one works. */
static void
check_refused(CiContext *ctx, const char *directory, const char *reason)
{
    char path[4096];
    CiCache *cache = ci_cache_open(directory);
    const char *text = warning(ctx, cache);
    if (!strstr(text, reason))
        CI_TEST_SAY("%s: '%s' does not say '%s'", directory, text, reason);
    CHECK(strncmp(info_of(cache).directory, directory, strlen(directory)) != 0);
    CHECK(ci_cache_store(cache, KEY, "so", "x", 1, path, sizeof path));
    CHECK(ci_cache_find(cache, KEY, "so", path, sizeof path));
    ci_cache_clear(cache);
    ci_cache_close(cache);
}

TEST(refused_directories)
{
    const char *directory = scratch(ctx), *inner = ci_format(ctx, "%s/inner/cache", directory);
    setenv("TMPDIR", directory, 1);
    CHECK_INT(ci_os_make_directories(inner), 0);
    chmod(inner, 0777);
    check_refused(ctx, inner, "others can write to it");
    chmod(inner, 0700);
    chmod(ci_format(ctx, "%s/inner", directory), 0770);
    check_refused(ctx, inner, "others can write to it");
    const char *link = ci_format(ctx, "%s/link", directory);
    CHECK(symlink(inner, link) == 0);
    /* the permissions of the link's target count */
    check_refused(ctx, link, "others can write to it");
    chmod(ci_format(ctx, "%s/inner", directory), 0700);
    CHECK_INT(ci_os_write_atomic(ci_format(ctx, "%s/file", directory), "x", 1), 0);
    check_refused(ctx, ci_format(ctx, "%s/file", directory), "Not a directory");
    check_refused(ctx, "/proc/no/such/place", "No such file");
    CiCache *cache = ci_cache_open(link);
    CHECK_TEXT(warning(ctx, cache), "");
    CHECK(strstr(info_of(cache).directory, "/inner/cache"));
    ci_cache_close(cache);
    unsetenv("TMPDIR");
    ci_folder_remove(directory);
}

TEST(directories_from_the_environment)
{
    const char *directory = scratch(ctx);
    const char *names[] = {"CINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"};
    const char *tails[] = {"", "/cinductor", "/.cache/cinductor", ""};
    char real[4096];
    CHECK_INT(ci_os_resolve(directory, real, sizeof real), 0);
    for (int k = 0; k < 4; k++)
        setenv(names[k], ci_format(ctx, "%s/%d", directory, k), 1);
    for (int k = 0; k < 3; k++) {
        CiCache *cache = ci_cache_open(NULL);
        CHECK_TEXT(info_of(cache).directory, ci_format(ctx, "%s/%d%s", real, k, tails[k]));
        ci_cache_close(cache);
        unsetenv(names[k]);
    }
    CiCache *cache = ci_cache_open(NULL);
    CHECK(strncmp(info_of(cache).directory, ci_format(ctx, "%s/3/cinductor-", real),
                  strlen(real) + 13) == 0);
    CHECK_TEXT(warning(ctx, cache), "");
    ci_cache_close(cache);
    unsetenv("TMPDIR");
    ci_folder_remove(directory);
}

TEST(build_directories)
{
    const char *directory = scratch(ctx);
    CiCache *cache = ci_cache_open(directory);
    CiBuildFolder build = {0}, elsewhere = {0};
    char why[200] = "";
    CHECK(ci_cache_build_folder(cache, true, 0, &build, why, sizeof why));
    CHECK(strncmp(build.path, directory, strlen(directory)) == 0 && build.root == 0);
    CHECK_INT(ci_os_write_atomic(ci_format(ctx, "%s/a.c", build.path), "x", 1), 0);
    CHECK_INT(ci_os_make_directories(ci_format(ctx, "%s/deep/er", build.path)), 0);
    CHECK(symlink("/etc", ci_format(ctx, "%s/link", build.path)) == 0);
    const char *path = ci_format(ctx, "%s", build.path);
    ci_folder_sweep(directory); /* it has an owner */
    CHECK(access(path, F_OK) == 0);
    CHECK_INT(ci_build_folder_trouble(&build), 0);
    CHECK(ci_cache_build_folder(cache, false, 0, &elsewhere, why, sizeof why));
    CHECK(strncmp(elsewhere.path, directory, strlen(directory)) != 0 && elsewhere.root > 0);
    ci_build_folder_close(&elsewhere);
    ci_build_folder_close(&build);
    CHECK(access(path, F_OK) != 0 && access("/etc/passwd", F_OK) == 0);
    CHECK_TEXT(why, "");
    ci_cache_close(cache);
    CHECK(rmdir(directory) == 0);
}

TEST(what_the_dead_have_left)
{
    const char *directory = scratch(ctx), *kept = ci_format(ctx, "%s/notes.lock", directory);
    const char *half = ci_format(ctx, "%s/%s.so.tmp-aaaaaa", directory, KEY);
    if (fork() == 0) {
        CiCache *cache = ci_cache_open(directory);
        CiBuildFolder build = {0};
        char why[200] = "", path[4096];
        int lock;
        ci_cache_build_folder(cache, true, 0, &build, why, sizeof why);
        ci_os_write_atomic(ci_format(ctx, "%s/a.c", build.path), "x", 1);
        ci_cache_lock(cache, KEY, "so", 0, NULL, NULL, &lock, path, sizeof path);
        _exit(0);
    }
    wait(NULL);
    CHECK_INT(ci_os_write_atomic(half, "x", 1), 0);
    CHECK_INT(ci_os_write_atomic(kept, "x", 1), 0);
    ci_folder_sweep(directory);
    CHECK(access(half, F_OK) == 0); /* another process may be writing it */
    CHECK(utimensat(AT_FDCWD, half, (struct timespec[2]){{1, 0}, {1, 0}}, 0) == 0);
    ci_folder_sweep(directory);
    CHECK(access(half, F_OK) != 0);
    CHECK(unlink(kept) == 0 && rmdir(directory) == 0);
}

static bool
stop_at_once(void *arg)
{
    ++*(int *)arg;
    return true;
}

TEST(one_maker_of_an_entry)
{
    const char *directory = scratch(ctx);
    CiCache *cache = ci_cache_open(directory);
    char path[4096];
    int lock, other, asked = 0;
    CHECK(ci_cache_lock(cache, KEY, "so", 0, NULL, NULL, &lock, path, sizeof path) == CI_LOCK_taken);
    CHECK_TEXT(path, "");
    CHECK(ci_cache_lock(cache, KEY, "so", 0.01, NULL, NULL, &other, path, sizeof path) ==
          CI_LOCK_none);
    CHECK(ci_cache_lock(cache, KEY, "so", 10, stop_at_once, &asked, &other, path, sizeof path) ==
          CI_LOCK_stopped);
    CHECK_INT(asked, 1);
    ci_folder_sweep(directory); /* a process holds its lock */
    CHECK(ci_cache_lock(cache, KEY, "so", 0, NULL, NULL, &other, path, sizeof path) ==
          CI_LOCK_none);
    CHECK(ci_cache_store(cache, KEY, "so", "x", 1, path, sizeof path));
    ci_cache_unlock(cache, KEY, "so", lock);
    CHECK(ci_cache_lock(cache, KEY, "so", 0, NULL, NULL, &other, path, sizeof path) ==
          CI_LOCK_taken);
    CHECK(strstr(path, KEY)); /* the entry is found without waiting */
    CHECK_INT(ci_cache_clear(cache), 1);
    ci_cache_close(cache);
    CHECK(rmdir(directory) == 0);
}

TEST(places_that_are_not_trusted)
{
    const char *directory = scratch(ctx), *open_place = ci_format(ctx, "%s/open", directory);
    CiBuildFolder build = {0};
    char why[200] = "";
    CHECK_INT(ci_os_make_directories(open_place), 0);
    chmod(open_place, 0777);
    setenv("TMPDIR", open_place, 1);
    CiCache *cache = ci_cache_open("/proc/no/such/place");
    CHECK(strncmp(info_of(cache).directory, directory, strlen(directory)) != 0);
    CHECK(ci_cache_build_folder(cache, false, 0, &build, why, sizeof why));
    CHECK(strstr(why, "others can write to it"));
    CHECK(strncmp(build.path, directory, strlen(directory)) != 0);
    ci_build_folder_close(&build);
    ci_cache_close(cache);
    unsetenv("TMPDIR");
    CHECK(rmdir(open_place) == 0 && rmdir(directory) == 0);
}

TEST(a_directory_that_vanishes_or_fills)
{
    const char *directory = scratch(ctx);
    CiCache *cache = ci_cache_open(directory);
    char path[4096];
    CHECK(rmdir(directory) == 0);
    CHECK(ci_cache_store(cache, KEY, "so", "x", 1, path, sizeof path));
    CHECK(ci_cache_find(cache, KEY, "so", path, sizeof path));
    ci_cache_clear(cache);
    CHECK(rmdir(directory) == 0);
    CHECK_INT(ci_os_write_atomic(directory, "x", 1), 0); /* a file is in its place */
    CHECK(!ci_cache_store(cache, KEY, "so", "x", 1, path, sizeof path));
    CHECK(strstr(warning(ctx, cache), "nothing can be stored"));
    CHECK_INT(ci_cache_clear(cache), 0);
    unlink(directory);
    ci_cache_close(cache);
}

TEST(processes_store_and_find_at_once)
{
    const char *directory = scratch(ctx);
    for (int process = 0; process < 4; process++)
        if (fork() == 0) {
            CiCache *cache = ci_cache_open(directory);
            char path[4096], *payload = malloc(100000);
            bool good = true;
            memset(payload, process, 100000);
            for (int k = 0; k < 50; k++) {
                good &= ci_cache_store(cache, KEY, "so", payload, 100000, path, sizeof path);
                good &= ci_cache_find(cache, KEY, "so", path, sizeof path);
            }
            free(payload);
            ci_cache_close(cache);
            _exit(good ? 0 : 1);
        }
    for (int process = 0; process < 4; process++) {
        int status;
        wait(&status);
        CHECK_INT(status, 0);
    }
    ci_folder_remove(directory);
}
