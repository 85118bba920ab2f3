/* The disk cache: content-addressed, one file an entry, written by temp file and rename, checked on
 * every load.
 *
 * A key is the SHA-256 of whatever the entry depends on. An entry is the payload followed by a
 * trailer (payload size, SHA-256 of the entry's name and payload, magic), so that a shared object
 * can be loaded straight from its file. Ownership and mode of the whole path are checked when the
 * cache is opened: a directory that others can write is refused and a private one used instead,
 * where there is a place for one. Never an error: a cache that cannot be used gives misses and one
 * warning text. */
#ifndef CI_HOST_CACHE_H
#define CI_HOST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/folder.h"

typedef struct CiCache CiCache;

typedef struct CiCacheInfo {
    char directory[4096];
    int64_t entries, bytes, notes, hits, misses, stores, rejected;
} CiCacheInfo;

/* path NULL: $CINDUCTOR_CACHE_DIR, else $XDG_CACHE_HOME/cinductor, else ~/.cache/cinductor, else
 * this user's own cinductor-<uid> among what is temporary. Returns NULL only without memory. Threads
 * may share a cache. */
CiCache *ci_cache_open(const char *path);
void ci_cache_close(CiCache *cache);
/* The text of the first thing that went wrong and has not been taken yet, or NULL; caller frees. */
char *ci_cache_take_warning(CiCache *cache);
/* Path of a verified entry in out, or false (missing, truncated, altered: removed and counted).
 * extension is "so", "cubin". */
bool ci_cache_find(CiCache *cache, const char *key_hex, const char *extension, char *out,
                   size_t capacity);
/* Stores payload; true and its path when it is there afterwards. */
bool ci_cache_store(CiCache *cache, const char *key_hex, const char *extension, const void *payload,
                    size_t size, char *out, size_t capacity);
typedef enum CiCacheNote {
    CI_CACHE_note,
    CI_CACHE_units /* the list of entries that a program's kernels were built into */
} CiCacheNote;
/* A note of what entries are, which is none itself: small, written without a word where it cannot be.
 * The size of one that is there, whole and fits; else 0. */
size_t ci_cache_read_note(const CiCache *cache, CiCacheNote kind, const char *key_hex, void *out, size_t capacity);
void ci_cache_write_note(CiCache *cache, CiCacheNote kind, const char *key_hex, const void *payload, size_t size);
/* The text of a saved capture, of any length: true and the text, which the caller frees. */
bool ci_cache_read_call(CiCache *cache, const char *key_hex, void **data, size_t *size);
bool ci_cache_has_call(const CiCache *cache, const char *key_hex);
void ci_cache_write_call(CiCache *cache, const char *key_hex, const void *payload, size_t size);
/* Ensures that only one thread of one process makes an entry at a time. CI_LOCK_taken comes with
 * the entry's path in out if another process has stored it meanwhile, else with *lock, which must
 * be released. After a long wait without a lock the caller makes the entry anyway. */
CiLockStatus ci_cache_lock(CiCache *cache, const char *key_hex, const char *extension,
                           double timeout_s, bool (*should_stop)(void *arg), void *arg, int *lock,
                           char *out, size_t capacity);
void ci_cache_unlock(CiCache *cache, const char *key_hex, const char *extension, int lock);
/* A private folder for a build, which ci_build_folder_close removes: in the cache's directory where
 * is_kept and it can be written, else among what is temporary. False: there is no place, and why
 * tells the reason. cache may be NULL. */
bool ci_cache_build_folder(CiCache *cache, bool is_kept, int root, CiBuildFolder *folder, char *why,
                           size_t capacity);
/* Later builds avoid this folder's place and those before it, because of `why`. */
void ci_cache_avoid(CiCache *cache, const CiBuildFolder *folder, const char *why);
/* Lives as long as the cache; "" when no directory could be used. */
const char *ci_cache_directory(const CiCache *cache);
int64_t ci_cache_stores(const CiCache *cache); /* kernels that this process has stored */
void ci_cache_info(CiCache *cache, CiCacheInfo *info);
int64_t ci_cache_clear(CiCache *cache); /* entries removed */

#endif
