/* Verdicts about functions on vectors, kept in the disk cache: what a test or a proof has shown of a
 * function with this build of NumPy and of the C library, on such a processor. Version numbers do not
 * tell builds apart, so a key contains the files of both libraries, and which of its loops NumPy has
 * chosen. */
#define _GNU_SOURCE /* dladdr */
#include "device/ufunc.h"

#include "base/hash.h"
#include "base/os.h"
#include "base/version.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef struct Note {
    int64_t points;  /* operands compared */
    int32_t variant; /* -1: none has NumPy's bits */
    int32_t unused;
} Note;

/* The file that contains a function: path, size and time of the last change. */
static void
add_library(CiSha256 *hash, uintptr_t function)
{
    Dl_info found;
    char path[PATH_MAX], text[PATH_MAX + 64];
    CiFileInfo info = {0};
    if (!dladdr((void *)function, &found) || ci_os_resolve(found.dli_fname, path, sizeof path))
        path[0] = 0;
    (void)ci_os_stat(path, &info);
    snprintf(text, sizeof text, "%s %lld %lld", path, (long long)info.size,
             (long long)info.mtime_ns);
    ci_sha256_add_text(hash, text);
}

/* Adds the features by which the C library selects its functions. */
static void
add_processor(CiSha256 *hash)
{
    const char *tunables = getenv("GLIBC_TUNABLES");
    uint32_t words[8] = {0};
#if defined(__x86_64__)
    uint32_t number;
    (void)__get_cpuid(1, &words[0], &number, &words[1], &words[2]);
    (void)__get_cpuid_count(7, 0, &words[3], &words[4], &words[5], &words[6]);
#endif
    ci_sha256_add(hash, words, sizeof words);
    ci_sha256_add_text(hash, tunables ? tunables : "");
}

void
ci_ufunc_verdicts_open(CiUfuncVerdicts *verdicts, CiCache *const *cache, CiUfuncLoop numpys)
{
    uint8_t digest[32];
    char own[128] = "";
    CiSha256 hash;
    verdicts->cache = cache;
    (void)ci_os_build_id(own, sizeof own);
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, "cinductor " CI_VERSION " vectors");
    ci_sha256_add_text(&hash, own);
    add_library(&hash, (uintptr_t)numpys.loop);
    add_library(&hash, (uintptr_t)cbrt);
    add_processor(&hash);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, verdicts->libraries);
}

static void
key_of(const CiUfuncVector *vector, char key[65])
{
    uint8_t digest[32];
    uintptr_t loop = (uintptr_t)vector->numpys.loop;
    CiAddresses library = ci_os_library((void (*)(void))loop);
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, vector->verdicts->libraries);
    ci_sha256_add_text(&hash, ci_op_name(vector->rows[0].op));
    ci_sha256_add_text(&hash, ci_dtype_name(vector->rows[0].dtype));
    loop -= library.begin;
    ci_sha256_add(&hash, &loop, sizeof loop);
    for (int k = 0; k < vector->nrows; k++)
        ci_sha256_add_text(&hash, vector->rows[k].source);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, key);
}

int64_t
ci_ufunc_decision_read(const CiUfuncVector *vector, int *variant)
{
    CiCache *cache = vector->verdicts ? *vector->verdicts->cache : NULL;
    char key[65];
    Note note;
    if (cache == NULL)
        return 0;
    key_of(vector, key);
    if (ci_cache_read_note(cache, key, &note, sizeof note) != sizeof note || note.points <= 0 ||
        note.variant < -1 || note.variant >= vector->nrows)
        return 0;
    *variant = note.variant;
    return note.points;
}

void
ci_ufunc_decision_write(const CiUfuncVector *vector, int variant, int64_t points)
{
    CiCache *cache = vector->verdicts ? *vector->verdicts->cache : NULL;
    Note note = {points, variant, 0};
    char key[65];
    if (cache == NULL)
        return;
    key_of(vector, key);
    ci_cache_write_note(cache, key, &note, sizeof note);
}
