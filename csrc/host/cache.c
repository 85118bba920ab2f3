/* Invariant: what stands in the directory under an entry's name is a whole entry or will be
 * refused. The directory is trusted once, when it is opened: every folder on its resolved path
 * belongs to this user or to root and cannot be written by others (or is sticky, as /tmp is, and so
 * keeps others from renaming what is ours). Entries are checked each time. */
#define _GNU_SOURCE
#include "host/cache.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/os.h"

#define MAGIC "CIENTRY1"
#define SCRATCH "cinductor-build-"
#define STALE_S 3600

typedef struct Trailer {
    uint8_t size[8]; /* little-endian */
    uint8_t digest[32];
    char magic[8];
} Trailer;

typedef enum Trouble {
    TROUBLE_folder = 1,
    TROUBLE_entry = 2,
    TROUBLE_store = 4,
} Trouble;

struct CiCache {
    char directory[PATH_MAX]; /* "" when there is none */
    pid_t remove_at_close;    /* the process that owns a throw-away directory, or 0 */
    _Atomic int64_t hits, misses, stores, rejected;
    char *_Atomic warning;
    atomic_uint told; /* of each kind once: bits of Trouble */
};

static void __attribute__((format(printf, 3, 4)))
warn(CiCache *cache, Trouble trouble, const char *format, ...)
{
    char *text = NULL, *none = NULL;
    va_list args;
    if (atomic_fetch_or(&cache->told, trouble) & trouble)
        return;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length >= 0 && !atomic_compare_exchange_strong(&cache->warning, &none, text))
        free(text);
}

char *
ci_cache_take_warning(CiCache *cache)
{
    return atomic_exchange(&cache->warning, NULL);
}

/* NULL, or why the folder cannot be trusted; last says that it is the cache itself. */
static const char *
why_not_trusted(const char *path, bool last)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return "it is not a directory";
    if (st.st_uid != geteuid() && (last || st.st_uid != 0))
        return "it belongs to another user";
    if ((st.st_mode & 022) && (last || !(st.st_mode & S_ISVTX)))
        return "others can write to it";
    return NULL;
}

static const char *
why_not_usable(const char *path, char *resolved)
{
    int error = ci_os_make_directories(path);
    if (!error)
        error = ci_os_resolve(path, resolved, PATH_MAX - 256);
    if (error)
        return strerror(error);
    for (char *at = resolved + 1;; at++) {
        if (*at != '/' && *at != 0)
            continue;
        char kept = *at;
        *at = 0;
        const char *reason = why_not_trusted(resolved, kept == 0);
        *at = kept;
        if (reason || kept == 0)
            return reason;
    }
}

static bool
try_directory(CiCache *cache, const char *path, bool asked_for)
{
    char resolved[PATH_MAX];
    const char *reason = why_not_usable(path, resolved);
    if (!reason && access(resolved, W_OK | X_OK) != 0)
        reason = strerror(errno);
    if (!reason)
        strcpy(cache->directory, resolved);
    else if (asked_for)
        warn(
            cache, TROUBLE_folder,
            "the disk cache in %s is not used: %s; set CINDUCTOR_CACHE_DIR to a folder of your own",
            path, reason);
    return !reason;
}

static const char *
temporary_root(void)
{
    const char *root = getenv("TMPDIR");
    return root && *root == '/' ? root : "/tmp";
}

/* The place that the environment names; false when it names none. */
static bool
find_directory(char *out, size_t capacity)
{
    const char *path = getenv("CINDUCTOR_CACHE_DIR"), *tail = "";
    if (!path || !*path) {
        path = getenv("XDG_CACHE_HOME");
        tail = "/cinductor";
    }
    if (*tail && (!path || *path != '/')) {
        path = getenv("HOME");
        tail = "/.cache/cinductor";
    }
    if (!path || !*path || (*tail && *path != '/'))
        return false;
    int length = snprintf(out, capacity, "%s%s", path, tail);
    return length >= 0 && (size_t)length < capacity;
}

CiCache *
ci_cache_open(const char *path)
{
    CiCache *cache = calloc(1, sizeof *cache);
    char place[PATH_MAX];
    if (!cache)
        return NULL;
    if (!path && find_directory(place, sizeof place))
        path = place;
    if (path && try_directory(cache, path, true))
        return cache;
    snprintf(place, sizeof place, "%s/cinductor-%u", temporary_root(), (unsigned)geteuid());
    if (try_directory(cache, place, false))
        return cache;
    snprintf(place, sizeof place, "%s/cinductor-XXXXXX", temporary_root());
    if (mkdtemp(place)) {
        strcpy(cache->directory, place);
        cache->remove_at_close = getpid();
    } else {
        warn(cache, TROUBLE_folder,
             "no folder can be used as disk cache (%s: %s); set CINDUCTOR_CACHE_DIR to one of your "
             "own",
             temporary_root(), strerror(errno));
    }
    return cache;
}

void
ci_cache_close(CiCache *cache)
{
    if (!cache)
        return;
    if (cache->remove_at_close == getpid())
        ci_cache_scratch_close(cache->directory);
    free(atomic_load(&cache->warning));
    free(cache);
}

static bool
is_word(const char *text)
{
    size_t length = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");
    return length > 0 && length <= 16 && text[length] == 0;
}

static bool
is_key(const char *text, size_t length)
{
    return length == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* The path of an entry in out; false when the names cannot be ones of an entry or nothing is kept.
 */
static bool
entry_path(const CiCache *cache, const char *key, const char *extension, char *out, size_t capacity)
{
    if (!*cache->directory || !is_key(key, strlen(key)) || !is_word(extension))
        return false;
    int length = snprintf(out, capacity, "%s/%s.%s", cache->directory, key, extension);
    return length >= 0 && (size_t)length < capacity;
}

/* The entry's name is hashed with it, so that one entry cannot stand in for another. */
static Trailer
make_trailer(const char *key, const char *extension, const void *payload, size_t size)
{
    Trailer trailer;
    CiSha256 hash;
    for (int i = 0; i < 8; i++)
        trailer.size[i] = (uint8_t)((uint64_t)size >> (8 * i));
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, key);
    ci_sha256_add_text(&hash, extension);
    ci_sha256_add(&hash, payload, size);
    ci_sha256_finish(&hash, trailer.digest);
    memcpy(trailer.magic, MAGIC, sizeof trailer.magic);
    return trailer;
}

/* 0, ENOENT, or another errno for an entry that is there and no good. */
static int
check_entry(const char *path, const char *key, const char *extension)
{
    CiFileInfo info;
    void *data;
    size_t size;
    int error = ci_os_stat(path, &info);
    if (error)
        return error;
    if (!info.is_regular || info.uid != geteuid() || (info.mode & 022))
        return EPERM;
    error = ci_os_read(path, &data, &size);
    if (error)
        return error;
    error = EBADMSG;
    if (size >= sizeof(Trailer)) {
        Trailer expected = make_trailer(key, extension, data, size - sizeof(Trailer));
        if (memcmp((char *)data + size - sizeof(Trailer), &expected, sizeof expected) == 0)
            error = 0;
    }
    free(data);
    return error;
}

bool
ci_cache_find(CiCache *cache, const char *key_hex, const char *extension, char *out,
              size_t capacity)
{
    int error = entry_path(cache, key_hex, extension, out, capacity)
                    ? check_entry(out, key_hex, extension)
                    : ENOENT;
    if (!error) {
        atomic_fetch_add(&cache->hits, 1);
        return true;
    }
    if (error != ENOENT) {
        atomic_fetch_add(&cache->rejected, 1);
        warn(cache, TROUBLE_entry,
             "the entry %s of the disk cache is damaged (%s); it is made again, there is nothing "
             "to do",
             out, strerror(error));
        unlink(out);
    }
    atomic_fetch_add(&cache->misses, 1);
    return false;
}

bool
ci_cache_store(CiCache *cache, const char *key_hex, const char *extension, const void *payload,
               size_t size, char *out, size_t capacity)
{
    if (!entry_path(cache, key_hex, extension, out, capacity))
        return false;
    Trailer trailer = make_trailer(key_hex, extension, payload, size);
    char *whole = malloc(size + sizeof trailer);
    int error = whole ? 0 : ENOMEM;
    if (whole) {
        if (size)
            memcpy(whole, payload, size);
        memcpy(whole + size, &trailer, sizeof trailer);
        error = ci_os_write_atomic(out, whole, size + sizeof trailer);
        /* Someone may have removed the directory under a running program. */
        if (error == ENOENT && !ci_os_make_directories(cache->directory))
            error = ci_os_write_atomic(out, whole, size + sizeof trailer);
        free(whole);
    }
    if (error)
        warn(cache, TROUBLE_store,
             "nothing can be stored in the disk cache %s: %s; make room, or set "
             "CINDUCTOR_CACHE_DIR to "
             "another folder",
             cache->directory, strerror(error));
    else
        atomic_fetch_add(&cache->stores, 1);
    return !error;
}

int
ci_cache_scratch_open(CiCache *cache, char *out, size_t capacity)
{
    const char *roots[] = {cache->directory, temporary_root()};
    int error = ENOENT;
    for (int k = 0; k < 2; k++) {
        int length = *roots[k] ? snprintf(out, capacity, "%s/" SCRATCH "XXXXXX", roots[k]) : -1;
        if (length < 0 || (size_t)length >= capacity)
            continue;
        if (mkdtemp(out))
            return 0;
        error = errno;
    }
    return error;
}

/* Calls visit for each entry of a directory but . and .. */
static void
each_entry(const char *directory, void (*visit)(void *arg, const char *path, const char *name),
           void *arg)
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

/* A build directory is flat but for what a compiler may leave; links are removed, never followed.
 */
static void
remove_all(void *arg, const char *path, const char *name)
{
    CiFileInfo info;
    (void)name;
    (void)arg;
    if (ci_os_stat(path, &info))
        return;
    if (info.is_directory) {
        each_entry(path, remove_all, NULL);
        rmdir(path);
    } else {
        unlink(path);
    }
}

void
ci_cache_scratch_close(const char *directory)
{
    remove_all(NULL, directory, "");
}

static bool
is_entry(const char *name)
{
    size_t length = strcspn(name, ".");
    return is_key(name, length) && name[length] == '.' && is_word(name + length + 1);
}

static void
count_entry(void *arg, const char *path, const char *name)
{
    CiCacheInfo *info = arg;
    CiFileInfo file;
    if (!is_entry(name) || ci_os_stat(path, &file) || !file.is_regular)
        return;
    info->entries++;
    info->bytes += file.size;
}

const char *
ci_cache_directory(const CiCache *cache)
{
    return cache->directory;
}

void
ci_cache_info(CiCache *cache, CiCacheInfo *info)
{
    memset(info, 0, sizeof *info);
    snprintf(info->directory, sizeof info->directory, "%s", cache->directory);
    info->hits = atomic_load(&cache->hits);
    info->misses = atomic_load(&cache->misses);
    info->stores = atomic_load(&cache->stores);
    info->rejected = atomic_load(&cache->rejected);
    each_entry(cache->directory, count_entry, info);
}

/* Half-done work of a process that died: by names that nobody else gives, for the user may have
 * pointed the cache at a folder of his own. */
static bool
is_left_over(const char *name)
{
    bool build =
        strncmp(name, SCRATCH, strlen(SCRATCH)) == 0 && strlen(name) == strlen(SCRATCH) + 6;
    const char *mark = strstr(name, ".tmp-");
    return build || (mark && is_key(name, strcspn(name, ".")) && strlen(mark) == 11);
}

static void
clear_entry(void *arg, const char *path, const char *name)
{
    int64_t *removed = arg;
    CiFileInfo file;
    if (is_entry(name))
        *removed += unlink(path) == 0;
    else if (is_left_over(name) && !ci_os_stat(path, &file) &&
             time(NULL) - file.mtime_ns / 1000000000 > STALE_S)
        remove_all(NULL, path, name);
}

int64_t
ci_cache_clear(CiCache *cache)
{
    int64_t removed = 0;
    each_entry(cache->directory, clear_entry, &removed);
    return removed;
}
