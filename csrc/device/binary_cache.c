/* Binaries of kernels in the disk cache. */
#include "device/binary_cache.h"

#include "base/hash.h"
#include "base/os.h"
#include "base/version.h"

void
ci_binary_key(const char *const *texts, int ntexts, const char *source, char key[65])
{
    uint8_t digest[32];
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, "cinductor " CI_VERSION);
    for (int k = 0; k < ntexts; k++)
        ci_sha256_add_text(&hash, texts[k]);
    ci_sha256_add_source(&hash, source);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, key);
}

bool
ci_binary_read(CiCache *cache, const char *key, const char *extension, void **data, size_t *size)
{
    char path[4096];
    return cache && ci_cache_find(cache, key, extension, path, sizeof path) &&
           !ci_os_read(path, data, size);
}

void
ci_binary_write(CiCache *cache, const char *key, const char *extension, const void *data,
                size_t size)
{
    char path[4096];
    if (cache)
        (void)ci_cache_store(cache, key, extension, data, size, path, sizeof path);
}
