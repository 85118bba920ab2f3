/* The C backend: source, disk cache, compiler, shared object. A program's kernels are one
 * translation unit.
 *
 * Whatever is opened while building lives in a Build, closed by the one function that both ways out
 * pass. */
#define _GNU_SOURCE /* memfd_create */
#include "device/cpu/cpu.h"

#include "base/hash.h"
#include "base/os.h"
#include "device/cpu/compiler.h"
#include "device/cpu/emit_cpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PACKAGE_VERSION "0.1.0"

static const char *
why_not_available(const CiOptions *options, char *out, size_t capacity)
{
    CiCompiler compiler;
    (void)options;
    void *library = ci_cpu_math_open();
    if (!library) {
        snprintf(
            out, capacity,
            "the C library has no vector mathematics (libmvec of glibc 2.35 or newer on x86-64)");
        return out;
    }
    dlclose(library);
    if (!ci_compiler_find(&compiler)) {
        snprintf(out, capacity, "no C compiler: tried %s", ci_compiler_tried());
        return out;
    }
    return NULL;
}

static void
fill_target(CiTarget *target, const CiOptions *options)
{
    ci_cpu_fill_target(target, options);
    target->backend = "c";
}

static void
emit(CiText *out, const CiKernels *kernels, const CiOptions *options)
{
    ci_cpu_emit_source(out, kernels, options, NULL);
}

/* ---- build ---- */

typedef struct Build {
    const CiKernels *kernels;
    const CiOptions *options;
    CiRuntime *runtime;
    CiBuildInfo *info;
    int nkernels;
    int64_t *partial_bytes;
    char key[65];
    char path[4096];      /* of the shared object */
    char directory[4096]; /* "" when none is open */
    bool directory_is_private;
    int file; /* of a copy in memory, or -1 */
    void *library;
    CiCpuExecutable *executable;
} Build;

static int
highest_id(const CiKernels *kernels)
{
    int highest = -1;
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        highest = kernel->id > highest ? kernel->id : highest;
        for (int side = 0; side < 2 && kernel->region; side++) {
            int inner = kernel->inner[side] ? highest_id(kernel->inner[side]) : -1;
            highest = inner > highest ? inner : highest;
        }
    }
    return highest;
}

static void
find_key(CiContext *ctx, Build *b, const CiText *source, const CiCompiler *compiler,
         const char *flags)
{
    uint8_t digest[32];
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, "cinductor " PACKAGE_VERSION " c");
    ci_sha256_add_text(&hash, ci_format(ctx, "glibc %s", ci_cpu_libc_version()));
    ci_sha256_add_text(&hash, compiler->identity);
    const char *word = compiler->words;
    for (int k = 0; k < compiler->nwords; k++, word += strlen(word) + 1)
        ci_sha256_add_text(&hash, word);
    ci_sha256_add_text(&hash, flags);
    ci_sha256_add_text(&hash, source->data);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, b->key);
}

static void
open_directory(CiContext *ctx, Build *b)
{
    if (b->runtime->cache &&
        !ci_cache_scratch_open(b->runtime->cache, b->directory, sizeof b->directory))
        return;
    const char *base = getenv("TMPDIR");
    snprintf(b->directory, sizeof b->directory, "%s/cinductor-XXXXXX",
             base && *base ? base : "/tmp");
    b->directory_is_private = true;
    if (!mkdtemp(b->directory)) {
        int error = errno;
        b->directory[0] = 0;
        ci_fail(ctx, CI_ERR_IO, "no directory to compile in: %s", strerror(error));
    }
}

static void
remove_private_directory(const char *directory)
{
    static const char *const names[] = {"kernel.c", "kernel.so"};
    char path[4200];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[k]);
        unlink(path);
    }
    rmdir(directory);
}

/* Keeps the object that was built; where it cannot be kept it is loaded from where it is. */
static void
store_object(Build *b)
{
    void *payload = NULL;
    size_t size = 0;
    char stored[4096];
    if (!b->runtime->cache || ci_os_read(b->path, &payload, &size))
        return;
    if (ci_cache_store(b->runtime->cache, b->key, "so", payload, size, stored, sizeof stored))
        memcpy(b->path, stored, sizeof stored);
    free(payload);
}

static void
compile(CiContext *ctx, Build *b, const CiText *source, const CiCompiler *compiler)
{
    open_directory(ctx, b);
    CiCompileJob job = {.compiler = compiler,
                        .source = source,
                        .level = ci_cpu_level(b->options),
                        .is_fast = b->options->numerics && !strcmp(b->options->numerics, "fast"),
                        .directory = b->directory,
                        .should_stop = b->runtime->should_stop_build,
                        .should_stop_arg = b->runtime->should_stop_arg};
    ci_compiler_run(ctx, &job, b->path, sizeof b->path);
    b->info->children = 1;
    store_object(b);
}

/* A directory may forbid running what lies in it: then a copy in memory is loaded. */
static void *
load_from_memory(Build *b)
{
    void *payload = NULL;
    size_t size = 0;
    char path[64];
    if (ci_os_read(b->path, &payload, &size))
        return NULL;
    b->file = memfd_create("cinductor", MFD_CLOEXEC);
    bool is_written = b->file >= 0 && write(b->file, payload, size) == (ssize_t)size;
    free(payload);
    snprintf(path, sizeof path, "/proc/self/fd/%d", b->file);
    return is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static CiKernelFunction
find_function(CiContext *ctx, const Build *b, const char *name)
{
    CiKernelFunction function;
    void *symbol = dlsym(b->library, name);
    if (!symbol)
        ci_fail(ctx, CI_ERR_LOAD, "%s has no %s", b->path, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static void
fill_kernels(CiContext *ctx, const Build *b, const CiKernels *kernels)
{
    for (int k = 0; k < kernels->nkernels; k++) {
        const CiKernel *kernel = kernels->kernels[k];
        for (int side = 0; side < 2 && kernel->region; side++)
            if (kernel->inner[side])
                fill_kernels(ctx, b, kernel->inner[side]);
        if (kernel->ext || kernel->region)
            continue;
        CiCpuKernel *own = &b->executable->kernels[kernel->id];
        own->run = find_function(ctx, b, kernel->name);
        own->partial_bytes = b->partial_bytes[kernel->id];
        if (kernel->split_extent)
            own->finish = find_function(ctx, b, ci_format(ctx, "%s_finish", kernel->name));
    }
}

static void
load(CiContext *ctx, Build *b)
{
    size_t kernels = sizeof(CiCpuKernel) * (size_t)b->nkernels;
    b->library = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
    if (!b->library) {
        char *reason = ci_format(ctx, "%s", dlerror());
        b->library = load_from_memory(b);
        if (!b->library)
            ci_fail(ctx, CI_ERR_LOAD, "%s", reason);
    }
    b->executable = calloc(1, sizeof *b->executable + kernels);
    if (!b->executable)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for %d kernels", b->nkernels);
    b->executable->kernels = (CiCpuKernel *)(b->executable + 1);
    b->executable->nkernels = b->nkernels;
    b->executable->chunk_elements = b->kernels->target->chunk_elements;
    fill_kernels(ctx, b, b->kernels);
}

static void
build_body(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiCompiler compiler;
    int64_t start = ci_os_time_ns();
    CiText source = ci_text_new(ctx);
    ci_cpu_emit_source(&source, b->kernels, b->options, b->partial_bytes);
    int64_t emitted = ci_os_time_ns();
    if (!ci_compiler_find(&compiler))
        ci_fail(ctx, CI_ERR_NO_COMPILER, "no C compiler was found: tried %s", ci_compiler_tried());
    bool is_fast = b->options->numerics && !strcmp(b->options->numerics, "fast");
    find_key(ctx, b, &source, &compiler,
             ci_compiler_flags_text(ctx, ci_cpu_level(b->options), is_fast));
    b->info->from_cache = b->runtime->cache &&
                          ci_cache_find(b->runtime->cache, b->key, "so", b->path, sizeof b->path);
    if (!b->info->from_cache)
        compile(ctx, b, &source, &compiler);
    int64_t compiled = ci_os_time_ns();
    load(ctx, b);
    b->info->emit_ms = (double)(emitted - start) * 1e-6;
    b->info->compile_ms = (double)(compiled - emitted) * 1e-6;
    b->info->load_ms = (double)(ci_os_time_ns() - compiled) * 1e-6;
}

static void
close_build(Build *b, bool has_failed)
{
    if (b->directory[0] && b->directory_is_private)
        remove_private_directory(b->directory);
    else if (b->directory[0])
        ci_cache_scratch_close(b->directory);
    if (b->file >= 0)
        close(b->file);
    if (!has_failed)
        return;
    if (b->library)
        dlclose(b->library);
    free(b->executable);
}

extern const CiBackend ci_backend_cpu_c;

static CiExecutable *
build(CiContext *ctx, const CiKernels *kernels, const CiOptions *options, CiRuntime *runtime,
      CiBuildInfo *info)
{
    CiBuildInfo ignored;
    Build b = {.kernels = kernels,
               .options = options,
               .runtime = runtime,
               .info = info ? info : &ignored,
               .file = -1};
    b.nkernels = highest_id(kernels) + 1;
    b.partial_bytes = CI_NEW_ARRAY(ctx, int64_t, b.nkernels + 1);
    *b.info = (CiBuildInfo){0};
    CiStatus status = ci_protect(ctx, build_body, &b);
    close_build(&b, status != CI_OK);
    if (status != CI_OK)
        ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
    b.executable->base = (CiExecutable){&ci_backend_cpu_c, runtime};
    b.executable->library = b.library;
    return &b.executable->base;
}

static void
close_executable(CiExecutable *executable)
{
    CiCpuExecutable *cpu = (CiCpuExecutable *)executable;
    dlclose(cpu->library);
    free(cpu);
}

const CiBackend ci_backend_cpu_c = {
    .device = "cpu",
    .name = "c",
    .doc = "C source, the system's C compiler, vector mathematics of the C library",
    .why_not_available = why_not_available,
    .fill_target = fill_target,
    .emit = emit,
    .build = build,
    .close = close_executable,
    .launch = ci_cpu_launch,
};
