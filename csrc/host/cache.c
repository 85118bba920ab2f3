/* Invariant: a file in the directory under an entry's name is a whole entry or will be
 * refused. The directory is trusted once, when it is opened (folder.h). Entries are checked each
 * time. */
#define _GNU_SOURCE
#include "host/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/os.h"

#define MAGIC "CIENTRY1"

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
    atomic_int first_root; /* where builds begin to look for a folder */
    atomic_bool has_swept;
    _Atomic int64_t hits, misses, stores, rejected;
    char *_Atomic warning;
    atomic_uint reported; /* of each kind once: bits of Trouble */
};

static void __attribute__((format(printf, 3, 4)))
warn(CiCache *cache, Trouble trouble, const char *format, ...)
{
    char *text = NULL, *none = NULL;
    va_list args;
    if (atomic_fetch_or(&cache->reported, trouble) & trouble)
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

/* Uses a folder. Returns why it cannot be used, else NULL. */
static const char *
try_directory(CiCache *cache, const char *path)
{
    char resolved[CI_FOLDER_PATH];
    const char *reason = ci_folder_why_not(path, false, resolved);
    if (!reason)
        strcpy(cache->directory, resolved);
    return reason;
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
    char place[PATH_MAX], other[PATH_MAX], reason[256];
    if (!cache)
        return NULL;
    if (!path && find_directory(place, sizeof place))
        path = place;
    const char *root, *why = path ? try_directory(cache, path) : NULL;
    if (path && !why)
        return cache;
    snprintf(reason, sizeof reason, "%s", why ? why : "");
    for (int k = 0; !*cache->directory && (root = ci_folder_temporary(k)) != NULL; k++) {
        char resolved[CI_FOLDER_PATH];
        snprintf(other, sizeof other, "%s/cinductor-%u", root, (unsigned)geteuid());
        bool is_there = access(root, F_OK) == 0;
        if (!is_there || !ci_folder_why_not(root, true, resolved)) /* else nothing is made there */
            try_directory(cache, other);
    }
    if (!*cache->directory)
        warn(cache, TROUBLE_folder,
             "no folder can be used as disk cache; set CINDUCTOR_CACHE_DIR to one of your own");
    else if (path)
        warn(cache, TROUBLE_folder,
             "the disk cache in %s is not used: %s; %s is used instead (CINDUCTOR_CACHE_DIR names another)",
             path, reason, cache->directory);
    return cache;
}

void
ci_cache_close(CiCache *cache)
{
    if (!cache)
        return;
    free(atomic_load(&cache->warning));
    free(cache);
}

static bool
is_word(const char *text)
{
    size_t length = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz");
    return length > 0 && length <= 16 && text[length] == 0;
}

/* The path of an entry in out; false when the names cannot be ones of an entry or nothing is kept.
 */
static bool
entry_path(const CiCache *cache, const char *key, const char *extension, char *out, size_t capacity)
{
    if (!*cache->directory || !ci_folder_is_key(key, strlen(key)) || !is_word(extension))
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
    if (!error)
        (void)ci_os_touch(path); /* entries used longest ago are removed first */
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

static int
write_entry(CiCache *cache, const char *path, const char *key, const char *extension,
            const void *payload, size_t size)
{
    Trailer trailer = make_trailer(key, extension, payload, size);
    char *whole = malloc(size + sizeof trailer);
    if (!whole)
        return ENOMEM;
    if (size)
        memcpy(whole, payload, size);
    memcpy(whole + size, &trailer, sizeof trailer);
    int error = ci_os_write_atomic(path, whole, size + sizeof trailer);
    /* Someone may have removed the directory under a running program. */
    if (error == ENOENT && !ci_os_make_directories(cache->directory))
        error = ci_os_write_atomic(path, whole, size + sizeof trailer);
    free(whole);
    return error;
}

bool
ci_cache_store(CiCache *cache, const char *key_hex, const char *extension, const void *payload,
               size_t size, char *out, size_t capacity)
{
    if (!entry_path(cache, key_hex, extension, out, capacity))
        return false;
    int error = write_entry(cache, out, key_hex, extension, payload, size);
    if (error)
        warn(cache, TROUBLE_store,
             "nothing can be stored in the disk cache %s: %s; free some space, or set "
             "CINDUCTOR_CACHE_DIR to "
             "another folder",
             cache->directory, strerror(error));
    else
        atomic_fetch_add(&cache->stores, 1);
    return !error;
}

/* ---- notes, and what was captured ---- */

static const char *const NOTES[] = {[CI_CACHE_note] = "note", [CI_CACHE_units] = "units"};
#define CALL "call"

bool
ci_cache_read_call(CiCache *cache, const char *key_hex, void **data, size_t *size)
{
    char path[PATH_MAX];
    if (!entry_path(cache, key_hex, CALL, path, sizeof path) || check_entry(path, key_hex, CALL) ||
        ci_os_read(path, data, size))
        return false;
    *size -= sizeof(Trailer);
    return true;
}

bool
ci_cache_has_call(const CiCache *cache, const char *key_hex)
{
    char path[PATH_MAX];
    return entry_path(cache, key_hex, CALL, path, sizeof path) && access(path, R_OK) == 0;
}

size_t
ci_cache_read_note(const CiCache *cache, CiCacheNote kind, const char *key_hex, void *out, size_t capacity)
{
    char path[PATH_MAX];
    void *data = NULL;
    size_t size = 0;
    if (!entry_path(cache, key_hex, NOTES[kind], path, sizeof path) ||
        check_entry(path, key_hex, NOTES[kind]) || ci_os_read(path, &data, &size))
        return 0;
    size -= sizeof(Trailer);
    if (size <= capacity)
        memcpy(out, data, size);
    free(data);
    return size <= capacity ? size : 0;
}

static void
write_small(CiCache *cache, const char *key_hex, const char *extension, const void *payload,
            size_t size)
{
    char path[PATH_MAX];
    if (entry_path(cache, key_hex, extension, path, sizeof path))
        (void)write_entry(cache, path, key_hex, extension, payload, size);
}

void
ci_cache_write_note(CiCache *cache, CiCacheNote kind, const char *key_hex, const void *payload, size_t size)
{
    write_small(cache, key_hex, NOTES[kind], payload, size);
}

void
ci_cache_write_call(CiCache *cache, const char *key_hex, const void *payload, size_t size)
{
    write_small(cache, key_hex, CALL, payload, size);
}

/* ---- building ---- */

static bool
lock_path(const CiCache *cache, const char *key, const char *extension, char *out, size_t capacity)
{
    char entry[PATH_MAX];
    if (!entry_path(cache, key, extension, entry, sizeof entry))
        return false;
    int length = snprintf(out, capacity, "%s.lock", entry);
    return length >= 0 && (size_t)length < capacity;
}

CiLockStatus
ci_cache_lock(CiCache *cache, const char *key_hex, const char *extension, double timeout_s,
              bool (*should_stop)(void *arg), void *arg, int *lock, char *out, size_t capacity)
{
    char path[PATH_MAX];
    *out = 0;
    if (!lock_path(cache, key_hex, extension, path, sizeof path))
        return CI_LOCK_none;
    CiLockStatus status = ci_lock_take(path, timeout_s, should_stop, arg, lock);
    if (status != CI_LOCK_stopped && entry_path(cache, key_hex, extension, out, capacity) &&
        !check_entry(out, key_hex, extension)) {
        if (status == CI_LOCK_taken)
            ci_lock_give(path, *lock);
        atomic_fetch_add(&cache->hits, 1);
        return CI_LOCK_taken;
    }
    *out = 0;
    return status;
}

void
ci_cache_unlock(CiCache *cache, const char *key_hex, const char *extension, int lock)
{
    char path[PATH_MAX];
    if (lock_path(cache, key_hex, extension, path, sizeof path))
        ci_lock_give(path, lock);
}

bool
ci_cache_build_folder(CiCache *cache, bool is_kept, int root, CiBuildFolder *folder, char *why,
                      size_t capacity)
{
    int first = cache ? atomic_load(&cache->first_root) : 0;
    bool opens = ci_build_folder_open(folder, cache && is_kept ? cache->directory : "",
                                      root > first ? root : first, why, capacity);
    if (!opens || !cache || atomic_exchange(&cache->has_swept, true))
        return opens;
    ci_folder_sweep(cache->directory);
    if (folder->root) {
        char *slash = strrchr(folder->path, '/');
        *slash = 0;
        ci_folder_sweep(folder->path);
        *slash = '/';
    }
    return true;
}

void
ci_cache_avoid(CiCache *cache, const CiBuildFolder *folder, const char *why)
{
    atomic_store(&cache->first_root, folder->root);
    warn(cache, TROUBLE_store,
         "no kernels can be built in %s; %s is used instead (free some space there, or set "
         "CINDUCTOR_CACHE_DIR to another folder)",
         why, ci_folder_temporary(folder->root - 1));
}

/* ---- what is there ---- */

static bool
is_entry(const char *name)
{
    size_t length = strcspn(name, ".");
    return ci_folder_is_key(name, length) && name[length] == '.' && is_word(name + length + 1);
}

static bool
is_of(const char *name, const char *extension)
{
    return !strcmp(strrchr(name, '.') + 1, extension);
}

/* Compiled code, and nothing that is told of it. */
static bool
is_code(const char *name)
{
    return !is_of(name, NOTES[CI_CACHE_note]) && !is_of(name, NOTES[CI_CACHE_units]) && !is_of(name, CALL);
}

static void
count_entry(void *arg, const char *path, const char *name)
{
    CiCacheInfo *info = arg;
    CiFileInfo file;
    if (!is_entry(name) || ci_os_stat(path, &file) || !file.is_regular)
        return;
    if (!is_code(name)) {
        info->notes += is_of(name, NOTES[CI_CACHE_note]);
        return;
    }
    info->entries++;
    info->bytes += file.size;
}

const char *
ci_cache_directory(const CiCache *cache)
{
    return cache->directory;
}

int64_t
ci_cache_stores(const CiCache *cache)
{
    return atomic_load(&cache->stores);
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
    ci_folder_each(cache->directory, count_entry, info);
}

static void
clear_entry(void *arg, const char *path, const char *name)
{
    int64_t *removed = arg;
    if (is_entry(name) && unlink(path) == 0)
        *removed += is_code(name);
}

int64_t
ci_cache_clear(CiCache *cache)
{
    int64_t removed = 0;
    ci_folder_each(cache->directory, clear_entry, &removed);
    ci_folder_sweep(cache->directory);
    return removed;
}
