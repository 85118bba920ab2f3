/* Invariant: a removed file or folder has a name that only cinductor uses, belongs to this user,
 * and is not locked by a living process. The user may have set the cache to a folder with other
 * contents, and temporary folders are shared by all users. */
#define _GNU_SOURCE
#include "host/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "host/child.h"

#define BUILD "cinductor-build-"
#define LOCK_SUFFIX ".lock"
#define HALF_WRITTEN ".tmp-"
#define STALE_S 3600      /* where no lock tells that the owner is gone */
#define HALF_WRITTEN_S 60 /* they are there for milliseconds, and bear no lock */
#define TRIES 8
#define PROBE ((size_t)1 << 20)
#define LONGEST_NAP_MS 16

/* ---- trust ---- */

static const char *
why_not_trusted(const char *path, bool is_own)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return "it is not a directory";
    if (st.st_uid != geteuid() && (is_own || st.st_uid != 0))
        return "it belongs to another user";
    if ((st.st_mode & 022) && (is_own || !(st.st_mode & S_ISVTX)))
        return "others can write to it";
    return NULL;
}

const char *
ci_folder_why_not(const char *path, bool is_shared, char *resolved)
{
    int error = is_shared ? 0 : ci_os_make_directories(path);
    if (!error)
        error = ci_os_resolve(path, resolved, CI_FOLDER_PATH - 256);
    if (error)
        return strerror(error);
    for (char *at = resolved + 1;; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        const char *reason = why_not_trusted(resolved, kept == 0 && !is_shared);
        *at = kept;
        if (reason)
            return reason;
        if (kept == 0)
            return access(resolved, W_OK | X_OK) != 0 ? strerror(errno) : NULL;
    }
}

const char *
ci_folder_temporary(int number)
{
    static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm"};
    const char *requested = getenv("TMPDIR");
    if (number == 0 && requested && *requested == '/')
        return requested;
    number -= requested && *requested == '/';
    return number < (int)(sizeof places / sizeof *places) ? places[number] : NULL;
}

/* ---- removing ---- */

void
ci_folder_each(const char *directory,
               void (*visit)(void *arg, const char *path, const char *name), void *arg)
{
    DIR *handle = *directory ? opendir(directory) : NULL;
    for (struct dirent *entry; handle && (entry = readdir(handle));) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!dots && length >= 0 && (size_t)length < sizeof path)
            visit(arg, path, entry->d_name);
    }
    if (handle)
        closedir(handle);
}

/* A build's folder is flat but for what a compiler may leave. */
static void
remove_all(void *arg, const char *path, const char *name)
{
    CiFileInfo info;
    (void)name;
    (void)arg;
    if (ci_os_stat(path, &info))
        return;
    if (info.is_directory) {
        ci_folder_each(path, remove_all, NULL);
        rmdir(path);
    } else {
        unlink(path);
    }
}

void
ci_folder_remove(const char *directory)
{
    remove_all(NULL, directory, "");
}

/* ---- locks ---- */

/* The file is still the one that the path names. */
static bool
is_linked(int fd, const char *path)
{
    struct stat own, there;
    return fstat(fd, &own) == 0 && lstat(path, &there) == 0 && own.st_ino == there.st_ino &&
           own.st_dev == there.st_dev;
}

static int
try_lock(int fd)
{
    while (flock(fd, LOCK_EX | LOCK_NB) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* 0 with the lock; EWOULDBLOCK: somebody has it, or had it; another errno: there are none here. */
static int
attempt(const char *path, int *lock)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno == EWOULDBLOCK ? EIO : errno;
    int error = try_lock(fd);
    if (!error && !is_linked(fd, path))
        error = EWOULDBLOCK;
    if (error && error != EWOULDBLOCK)
        unlink(path);
    if (error)
        close(fd);
    else
        *lock = fd;
    return error;
}

CiLockStatus
ci_lock_take(const char *path, double timeout_s, bool (*should_stop)(void *arg), void *arg,
             int *lock)
{
    int64_t began = ci_os_time_ns(), requested = began;
    int error, nap_ms = 1;
    while ((error = attempt(path, lock)) == EWOULDBLOCK) {
        int64_t now = ci_os_time_ns();
        if ((double)(now - began) * 1e-9 > timeout_s)
            return CI_LOCK_none;
        if (now - requested >= (int64_t)CI_POLL_MS * 1000000) {
            requested = now;
            if (should_stop && should_stop(arg))
                return CI_LOCK_stopped;
        }
        nanosleep(&(struct timespec){.tv_nsec = nap_ms * 1000000L}, NULL);
        nap_ms = nap_ms < LONGEST_NAP_MS ? 2 * nap_ms : nap_ms;
    }
    return error ? CI_LOCK_none : CI_LOCK_taken;
}

/* Unlocked by name, not by closing alone: a child forked meanwhile may hold the descriptor. */
void
ci_lock_give(const char *path, int lock)
{
    unlink(path);
    flock(lock, LOCK_UN);
    close(lock);
}

/* ---- folders of builds ---- */

/* Between its making and its lock a sweep may have taken the folder for one of the dead. */
static int
open_in(CiBuildFolder *folder, const char *root)
{
    for (int k = 0; k < TRIES; k++) {
        snprintf(folder->path, sizeof folder->path, "%s/" BUILD "XXXXXX", root);
        if (!mkdtemp(folder->path)) {
            /* Someone may have removed the root under a running program. */
            if (errno == ENOENT && !ci_os_make_directories(root))
                continue;
            return errno;
        }
        folder->lock = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = folder->lock < 0 ? errno : try_lock(folder->lock);
        if (folder->lock >= 0 && error != EWOULDBLOCK && is_linked(folder->lock, folder->path))
            return 0;
        if (folder->lock >= 0)
            close(folder->lock);
        else if (error != ENOENT) {
            rmdir(folder->path);
            return error;
        }
    }
    return EBUSY;
}

bool
ci_build_folder_open(CiBuildFolder *folder, const char *first, int root, char *why, size_t capacity)
{
    for (;; root++) {
        char resolved[CI_FOLDER_PATH];
        const char *place = root ? ci_folder_temporary(root - 1) : first, *reason = NULL;
        if (!place)
            break;
        if (!*place)
            continue;
        if (root)
            reason = ci_folder_why_not(place, true, resolved);
        else
            snprintf(resolved, sizeof resolved, "%s", place);
        int error = reason ? 0 : open_in(folder, resolved);
        folder->root = root;
        if (!reason && !error)
            return true;
        if (!*why)
            snprintf(why, capacity, "%s: %s", place, reason ? reason : strerror(error));
    }
    folder->path[0] = 0;
    return false;
}

void
ci_build_folder_close(CiBuildFolder *folder)
{
    if (!folder->path[0])
        return;
    ci_folder_remove(folder->path);
    flock(folder->lock, LOCK_UN);
    close(folder->lock);
    folder->path[0] = 0;
}

int
ci_build_folder_trouble(const CiBuildFolder *folder)
{
    char path[CI_FOLDER_PATH + 16], *zeros = calloc(1, PROBE);
    snprintf(path, sizeof path, "%s/probe", folder->path);
    int error = zeros ? ci_os_write_atomic(path, zeros, PROBE) : 0;
    unlink(path);
    free(zeros);
    return error;
}

/* ---- sweeping ---- */

bool
ci_folder_is_key(const char *text, size_t length)
{
    return length == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool
ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

/* Removes a file or a folder unless it is locked. */
static void
remove_unlocked(const char *path, int64_t age_s)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    int error = try_lock(fd);
    if (is_linked(fd, path) && (!error || (error != EWOULDBLOCK && age_s > STALE_S)))
        ci_folder_remove(path);
    close(fd);
}

static void
sweep_entry(void *arg, const char *path, const char *name)
{
    bool is_build = strncmp(name, BUILD, strlen(BUILD)) == 0 && strlen(name) == strlen(BUILD) + 6;
    bool has_key = ci_folder_is_key(name, strcspn(name, "."));
    const char *mark = has_key ? strstr(name, HALF_WRITTEN) : NULL;
    bool is_half_written = mark && strlen(mark) == strlen(HALF_WRITTEN) + 6;
    bool is_lock = has_key && ends_with(name, LOCK_SUFFIX);
    CiFileInfo info;
    (void)arg;
    if ((!is_build && !is_half_written && !is_lock) || ci_os_stat(path, &info) ||
        info.uid != geteuid())
        return;
    int64_t age_s = (int64_t)time(NULL) - info.mtime_ns / 1000000000;
    if (is_half_written && age_s > HALF_WRITTEN_S)
        unlink(path);
    else if (is_lock ? info.is_regular : is_build && info.is_directory)
        remove_unlocked(path, age_s);
}

void
ci_folder_sweep(const char *directory)
{
    ci_folder_each(directory, sweep_entry, NULL);
}
