/* NVRTC: CUDA C++ to cubin in this process, through the disk cache. Needs no GPU.
 *
 * The library is searched in the order of cost: already loaded, in the caller's path, by the
 * loader's names, in the toolkit's folders. Its handle is never closed, because other code may use
 * it. Loading takes as long as the rest of a warm first call, and a cache key needs only the
 * version. A cache entry therefore records the version together with the library's file, which must
 * be unchanged. */
#define _GNU_SOURCE /* dladdr */
#include "base/hash.h"
#include "base/os.h"
#include "base/version.h"
#include "device/binary_cache.h"
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_SHOWN 2000

typedef struct NvrtcProgram *Program;

#define NVRTC_TABLE                                                                                \
    NVRTC(version, nvrtcVersion, (int *major, int *minor))                                         \
    NVRTC(create, nvrtcCreateProgram,                                                              \
          (Program * program, const char *source, const char *name, int nheaders,                  \
           const char *const *headers, const char *const *names))                                  \
    NVRTC(destroy, nvrtcDestroyProgram, (Program * program))                                       \
    NVRTC(compile, nvrtcCompileProgram,                                                            \
          (Program program, int noptions, const char *const *options))                             \
    NVRTC(log_size, nvrtcGetProgramLogSize, (Program program, size_t * size))                      \
    NVRTC(log, nvrtcGetProgramLog, (Program program, char *log))                                   \
    NVRTC(cubin_size, nvrtcGetCUBINSize, (Program program, size_t * size))                         \
    NVRTC(cubin, nvrtcGetCUBIN, (Program program, char *cubin))

typedef struct Nvrtc {
#define NVRTC(field, symbol, parameters) int(*field) parameters;
    NVRTC_TABLE
#undef NVRTC
} Nvrtc;

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
enum { NAME_COUNT = (int)(sizeof names / sizeof *names) };

/* ---- finding ---- */

static void *
open_in(const char *folder, const char *below, int flags)
{
    char path[4096];
    void *library = NULL;
    for (int k = 0; k < NAME_COUNT && !library; k++) {
        int length = snprintf(path, sizeof path, "%s%s/%s", folder, below, names[k]);
        if (length > 0 && length < (int)sizeof path)
            library = dlopen(path, flags);
    }
    return library;
}

static void *
open_named(int flags)
{
    void *library = NULL;
    for (int k = 0; k < NAME_COUNT && !library; k++)
        library = dlopen(names[k], flags);
    return library;
}

static void *
open_toolkit(void)
{
    static const char *const variables[] = {"CUDA_PATH", "CUDA_HOME"};
    void *library = NULL;
    for (int k = 0; k < 2 && !library; k++) {
        const char *folder = getenv(variables[k]);
        if (folder && *folder)
            library = open_in(folder, "/lib64", RTLD_NOW | RTLD_LOCAL);
    }
    return library ? library : open_in("/usr/local/cuda", "/lib64", RTLD_NOW | RTLD_LOCAL);
}

static void *
open_library(const char *where)
{
    void *library = open_named(RTLD_NOW | RTLD_NOLOAD);
    if (!library && where && *where)
        library = dlopen(where, RTLD_NOW | RTLD_LOCAL);
    if (!library && where && *where)
        library = open_in(where, "", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = open_named(RTLD_NOW | RTLD_LOCAL);
    return library ? library : open_toolkit();
}

static const char *
open_nvrtc(Nvrtc *nvrtc, const char *where, char *out, size_t capacity)
{
    static const CiOsFunction functions[] = {
#define NVRTC(field, name, parameters) {#name, offsetof(Nvrtc, field)},
        NVRTC_TABLE
#undef NVRTC
    };
    void *library = open_library(where);
    if (!library) {
        snprintf(out, capacity,
                 "no NVRTC: tried %s%sthe loader, $CUDA_PATH, $CUDA_HOME, /usr/local/cuda "
                 "(the extra cinductor[cuda] brings it)",
                 where ? where : "", where && *where ? ", " : "");
        return out;
    }
    const char *missing = ci_os_find_functions(library, functions, CI_OS_COUNT(functions), nvrtc);
    if (missing) {
        snprintf(out, capacity, "NVRTC is too old: no %s", missing);
        return out;
    }
    return NULL;
}

/* A file of one of the names is in the folder. */
static bool
is_in(const char *folder)
{
    char path[4096];
    CiFileInfo info;
    for (int k = 0; folder && *folder && k < NAME_COUNT; k++) {
        int length = snprintf(path, sizeof path, "%s/%s", folder, names[k]);
        if (length > 0 && length < (int)sizeof path && !ci_os_stat(path, &info))
            return true;
    }
    return false;
}

const char *
ci_cuda_why_no_nvrtc(const char *where, char *out, size_t capacity)
{
    Nvrtc nvrtc;
    return is_in(where) ? NULL : open_nvrtc(&nvrtc, where, out, capacity);
}

/* ---- which one has filled the cache ---- */

typedef struct Note {
    int32_t major, minor;
    int64_t size, mtime_ns;
    char path[1024];
} Note;

/* By where it is looked for. */
static void
note_key(const char *where, char out[65])
{
    const char *const positions[] = {where, getenv("CUDA_PATH"), getenv("CUDA_HOME"),
                                  getenv("LD_LIBRARY_PATH")};
    uint8_t digest[32];
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, "cinductor " CI_VERSION " nvrtc");
    for (size_t k = 0; k < sizeof positions / sizeof *positions; k++)
        ci_sha256_add_text(&hash, positions[k] ? positions[k] : "");
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, out);
}

static bool
recall(CiCache *cache, const char *where, int *major, int *minor)
{
    Note note;
    CiFileInfo info;
    char key[65];
    note_key(where, key);
    if (!cache || ci_cache_read_note(cache, key, &note, sizeof note) != sizeof note)
        return false;
    note.path[sizeof note.path - 1] = 0;
    *major = note.major;
    *minor = note.minor;
    return !ci_os_stat(note.path, &info) && info.size == note.size &&
           info.mtime_ns == note.mtime_ns;
}

static void
remember(CiCache *cache, const char *where, const Nvrtc *nvrtc, int major, int minor)
{
    Note note, before;
    Dl_info found;
    CiFileInfo info;
    char key[65];
    void *symbol;
    memset(&note, 0, sizeof note);
    memcpy(&symbol, &nvrtc->version, sizeof symbol);
    if (!cache || !dladdr(symbol, &found) || !found.dli_fname ||
        ci_os_resolve(found.dli_fname, note.path, sizeof note.path) || ci_os_stat(note.path, &info))
        return;
    note.major = major;
    note.minor = minor;
    note.size = info.size;
    note.mtime_ns = info.mtime_ns;
    note_key(where, key);
    if (ci_cache_read_note(cache, key, &before, sizeof before) != sizeof before ||
        memcmp(&before, &note, sizeof note) != 0)
        ci_cache_write_note(cache, key, &note, sizeof note);
}

/* ---- compiling ---- */

#define MAX_TEXTS 6

/* The options and the version decide the binary. */
static void
find_key(const CiCudaCompile *job, int major, int minor, const char *const *options, int noptions,
         char key[65])
{
    char version[64];
    const char *texts[MAX_TEXTS] = {version};
    snprintf(version, sizeof version, "nvrtc %d.%d", major, minor);
    for (int k = 0; k < noptions; k++)
        texts[k + 1] = options[k];
    ci_binary_key(texts, noptions + 1, job->source, key);
}

static bool
take_from_cache(CiCudaCompile *job, const char *key)
{
    job->from_cache = ci_binary_read(job->cache, key, "cubin", &job->cubin, &job->size);
    return job->from_cache;
}

static CiStatus
fail_with_log(CiCudaCompile *job, const Nvrtc *nvrtc, Program program, int result)
{
    size_t size = 0;
    char *log = NULL;
    if (!nvrtc->log_size(program, &size) && size > 1)
        log = calloc(1, size + 1);
    if (log)
        (void)nvrtc->log(program, log);
    snprintf(job->message, sizeof job->message, "NVRTC answered %d\n%.*s", result, LOG_SHOWN,
             log ? log : "");
    free(log);
    return CI_ERR_COMPILE;
}

static CiStatus
take_cubin(CiCudaCompile *job, const Nvrtc *nvrtc, Program program)
{
    int result = nvrtc->cubin_size(program, &job->size);
    if (result || !job->size) {
        snprintf(job->message, sizeof job->message, "NVRTC made no cubin (%d)", result);
        return CI_ERR_COMPILE;
    }
    job->cubin = malloc(job->size);
    if (!job->cubin)
        return CI_ERR_MEMORY;
    return nvrtc->cubin(program, job->cubin) ? CI_ERR_COMPILE : CI_OK;
}

static CiStatus
compile(CiCudaCompile *job, const Nvrtc *nvrtc, const char *const *options, int noptions)
{
    Program program = NULL;
    int result = nvrtc->create(&program, job->source, "kernels.cu", 0, NULL, NULL);
    if (result) {
        snprintf(job->message, sizeof job->message, "NVRTC could not start (%d)", result);
        return CI_ERR_COMPILE;
    }
    result = nvrtc->compile(program, noptions, options);
    CiStatus status =
        result ? fail_with_log(job, nvrtc, program, result) : take_cubin(job, nvrtc, program);
    (void)nvrtc->destroy(&program);
    return status;
}

CiStatus
ci_cuda_compile(CiCudaCompile *job)
{
    Nvrtc nvrtc;
    char architecture[64], key[65];
    const char *options[4] = {architecture, "--std=c++17", "--disable-warnings"};
    int noptions = 3, major = 0, minor = 0;
    bool has_own = job->capability == 90 && strstr(job->source, "ci_wgmma"); /* instructions of this architecture alone */
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%s", job->capability, has_own ? "a" : "");
    if (!job->is_fast)
        options[noptions++] = "--fmad=false";
    if (recall(job->cache, job->where, &major, &minor)) {
        find_key(job, major, minor, options, noptions, key);
        if (take_from_cache(job, key))
            return CI_OK;
    }
    if (open_nvrtc(&nvrtc, job->where, job->message, sizeof job->message))
        return CI_ERR_NO_COMPILER;
    (void)nvrtc.version(&major, &minor);
    remember(job->cache, job->where, &nvrtc, major, minor);
    find_key(job, major, minor, options, noptions, key);
    if (take_from_cache(job, key))
        return CI_OK;
    CiStatus status = compile(job, &nvrtc, options, noptions);
    if (status) {
        free(job->cubin);
        job->cubin = NULL;
    } else {
        ci_binary_write(job->cache, key, "cubin", job->cubin, job->size);
    }
    return status;
}
