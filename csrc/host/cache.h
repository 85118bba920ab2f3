/* The disk cache: content-addressed, one file an entry, written by temp file and rename, checked on
 * every load. A key is the SHA-256 of whatever the entry depends on. An entry is the payload
 * followed by a trailer (payload size, SHA-256 of the entry's name and payload, magic), so that a
 * shared object can be loaded straight from its file. Ownership and mode of the whole path are
 * checked when the cache is opened: a directory that others can write is refused and a private one
 * used instead. Never an error: a cache that cannot be used gives misses and one warning text. */
#ifndef CI_HOST_CACHE_H
#define CI_HOST_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CiCache CiCache;

typedef struct CiCacheInfo {
    char directory[4096];
    int64_t entries, bytes, hits, misses, stores, rejected;
} CiCacheInfo;

/* path NULL: $CINDUCTOR_CACHE_DIR, else $XDG_CACHE_HOME/cinductor, else ~/.cache/cinductor, else a
 * private temporary directory. Returns NULL only without memory. Threads may share a cache. */
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
/* A fresh private directory for a build; removed by ci_cache_scratch_close. */
int ci_cache_scratch_open(CiCache *cache, char *out, size_t capacity);
void ci_cache_scratch_close(const char *directory);
/* Lives as long as the cache; "" when no directory could be used. */
const char *ci_cache_directory(const CiCache *cache);
void ci_cache_info(CiCache *cache, CiCacheInfo *info);
int64_t ci_cache_clear(CiCache *cache); /* entries removed */

#endif
