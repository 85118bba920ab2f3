/* Builds kernels: source, disk cache, compiler, shared objects. Each translation unit of a program
 * has its own cache entry. Missing ones are compiled in parallel, with one thread waiting for each
 * compiler but the first.
 *
 * Everything that is opened is in a Build, which one function closes on success and on failure. A
 * unit is compiled under a context of its own, because a failure must not jump out of a thread. */
#define _GNU_SOURCE /* memfd_create */
#include "base/hash.h"
#include "base/os.h"
#include "device/cpu/compiler.h"
#include "device/cpu/cpu.h"
#include "device/cpu/build_notes.h"
#include "device/cpu/level.h"
#include "device/cpu/source.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Build Build;

typedef struct Unit {
    const Build *build;
    CiText source;
    bool is_linked[CI_LIBRARY_COUNT];
    char key[65];
    char path[4096]; /* of the shared object */
    CiBuildFolder folder;
    char trouble[512]; /* why it is not where it should be, or "" */
    int lock;          /* on its entry in the cache, or -1 */
    bool is_built;     /* by a compiler, for this build */
    int file;          /* of a copy in memory, or -1 */
    void *library;
    CiContext *ctx; /* of the compilation; NULL until then */
    CiStatus status;
} Unit;

struct Build {
    const CiKernels *kernels;
    const CiProcs *procs;
    const CiOptions *options;
    CiRuntime *runtime;
    CiBuildInfo *info;
    CiSystemCompiler compiler;
    bool is_fast;
    int nkernels, nunits;
    int *unit_of; /* by kernel id, as are these */
    const CiKernel **printed;
    CiLaunchExprs *launches;
    int64_t *lengths;
    Unit units[CI_CPU_MAX_UNITS];
    CiCpuBuildNotes *known; /* what the cache has of these kernels; NULL: nothing is known of them */
    CiCpuExecutable *executable;
};

/* ---- sources and keys ---- */

static void
find_key(CiContext *ctx, const Build *b, Unit *unit)
{
    uint8_t digest[32];
    CiSha256 hash;
    ci_cpu_hash_tools(ctx, &hash, &b->compiler, b->options);
    ci_sha256_add_source(&hash, unit->source.data);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, unit->key);
}

/* The unit of kernels that are in unit_of with this number. */
static void
emit_unit(CiContext *ctx, Build *b, int number)
{
    Unit *unit = &b->units[number];
    bool *is_wanted = CI_NEW_ARRAY(ctx, bool, b->nkernels + 1);
    for (int k = 0; k < b->nkernels; k++)
        is_wanted[k] = b->unit_of[k] == number;
    CiCpuUnit emitted = {is_wanted, b->printed, b->launches, b->lengths, unit->is_linked};
    unit->build = b;
    unit->source = ci_text_new(ctx);
    ci_cpu_emit_source(&unit->source, b->kernels, b->procs, b->options, &emitted);
}

/* All kernels in one unit; then, where that is long, shared out. A kernel that is like another has
 * no text, and goes where that one goes. */
static void
emit_units(CiContext *ctx, Build *b)
{
    b->procs = ci_cpu_lower(b->kernels, b->options);
    emit_unit(ctx, b, 0);
    const CiKernel **printed = CI_NEW_ARRAY(ctx, const CiKernel *, b->nkernels + 1);
    memcpy(printed, b->printed, sizeof *printed * (size_t)b->nkernels);
    b->nunits = ci_cpu_assign_units(b->lengths, b->nkernels, b->unit_of);
    for (int k = 0; k < b->nkernels; k++)
        if (printed[k])
            b->unit_of[k] = b->unit_of[printed[k]->id];
    for (int u = 0; u < b->nunits && b->nunits > 1; u++)
        emit_unit(ctx, b, u);
}

/* ---- what was built before ---- */

/* Where objects are kept, or NULL: not under a compiler that is not known. */
static CiCache *
cache_of(const Build *b)
{
    return b->options->cache && b->compiler.identity[0] ? b->runtime->cache : NULL;
}

/* Kernels by their ids, those in regions too. */
static void
list_kernel(void *arg, const CiKernel *kernel)
{
    const CiKernel **by_id = arg;
    by_id[kernel->id] = kernel;
}

static void
recall_launches(CiContext *ctx, void *arg)
{
    Build *b = arg;
    for (int k = 0; k < b->nkernels; k++) {
        CiTextIo f = ci_io_reader(ctx, b->kernels->loops->sym, b->known->kernels[k].launch);
        ci_launch_io(&f, &b->launches[k]);
    }
}

/* True where a note says what the kernels became, and all of that is in the cache: then no source
 * is made. */
static bool
recall_units(CiContext *ctx, Build *b)
{
    CiCache *cache = cache_of(b);
    b->known = cache ? ci_cpu_known_new(ctx, &b->compiler, b->kernels, b->options) : NULL;
    if (!b->known || !ci_cpu_known_read(cache, b->known) || ci_protect(ctx, recall_launches, b))
        return false;
    for (int u = 0; u < b->known->nunits; u++) {
        Unit *unit = &b->units[u];
        memcpy(unit->key, b->known->units[u], sizeof unit->key);
        if (!ci_cache_find(cache, unit->key, "so", unit->path, sizeof unit->path))
            return false;
    }
    const CiKernel **by_id = CI_NEW_ARRAY(ctx, const CiKernel *, b->nkernels + 1);
    ci_kernels_visit(b->kernels, list_kernel, by_id);
    for (int k = 0; k < b->nkernels; k++) {
        b->unit_of[k] = b->known->kernels[k].unit;
        b->printed[k] = by_id[b->known->kernels[k].printed];
    }
    b->nunits = b->known->nunits;
    b->info->from_cache = true;
    return true;
}

/* Records the units for later builds of the same kernels. */
static void
remember_units(CiContext *ctx, Build *b)
{
    CiCpuBuildNotes *known = b->known;
    bool has_space = known != NULL;
    for (int k = 0; has_space && k < b->nkernels; k++) {
        CiText text = ci_text_new(ctx);
        CiTextIo f = ci_io_printer(ctx, b->kernels->loops->sym, &text);
        ci_launch_io(&f, &b->launches[k]);
        known->kernels[k] = (CiCpuKnownKernel){.unit = b->printed[k] ? b->unit_of[k] : -1,
                                               .printed = b->printed[k] ? b->printed[k]->id : k};
        has_space = text.length < sizeof known->kernels[k].launch;
        memcpy(known->kernels[k].launch, text.data, has_space ? text.length : 0);
    }
    if (!has_space)
        return;
    known->nunits = b->nunits;
    for (int u = 0; u < b->nunits; u++)
        memcpy(known->units[u], b->units[u].key, sizeof known->units[u]);
    ci_cpu_known_write(cache_of(b), known);
}

/* ---- compiling ---- */

/* Longer than kernels take to compile. A process that has waited this long compiles the unit
 * itself. */
#define MAX_WAIT_S 20.0

/* True when another process has made the object meanwhile. */
static bool
wait_for_others(CiContext *ctx, Unit *unit)
{
    const Build *b = unit->build;
    CiCache *cache = cache_of(b);
    char path[sizeof unit->path];
    if (!cache)
        return false;
    CiLockStatus status =
        ci_cache_lock(cache, unit->key, "so", MAX_WAIT_S, b->runtime->should_stop_build,
                      b->runtime->should_stop_arg, &unit->lock, path, sizeof path);
    if (status == CI_LOCK_stopped)
        ci_fail(ctx, CI_ERR_INTERRUPTED, "interrupted while another process compiles");
    if (path[0])
        memcpy(unit->path, path, sizeof path);
    return path[0] != 0;
}

static void
give_lock(Unit *unit)
{
    if (unit->lock >= 0)
        ci_cache_unlock(cache_of(unit->build), unit->key, "so", unit->lock);
    unit->lock = -1;
}

/* Keeps the object that was built; where it cannot be kept it is loaded from where it is. */
static void
store_object(Unit *unit)
{
    CiCache *cache = cache_of(unit->build);
    void *payload = NULL;
    size_t size = 0;
    char stored[4096];
    if (!cache || ci_os_read(unit->path, &payload, &size))
        return;
    if (ci_cache_store(cache, unit->key, "so", payload, size, stored, sizeof stored)) {
        memcpy(unit->path, stored, sizeof stored);
        ci_compiler_remember(cache, ci_cpu_level(unit->build->options), &unit->build->compiler);
    }
    free(payload);
}

static void
compile_body(CiContext *ctx, void *arg)
{
    Unit *unit = arg;
    const Build *b = unit->build;
    if (b->runtime->should_stop_build && b->runtime->should_stop_build(b->runtime->should_stop_arg))
        ci_fail(ctx, CI_ERR_INTERRUPTED, "interrupted before the compiler starts");
    if (unit->lock < 0 && wait_for_others(ctx, unit))
        return;
    if (!ci_cache_build_folder(b->runtime->cache, cache_of(b) != NULL, unit->folder.root,
                               &unit->folder, unit->trouble, sizeof unit->trouble))
        ci_fail(ctx, CI_ERR_FOLDER, "there is no folder to build kernels in: %s", unit->trouble);
    unit->is_built = true;
    CiCompileJob job = {.compiler = &b->compiler,
                        .source = &unit->source,
                        .is_linked = unit->is_linked,
                        .level = ci_cpu_level(b->options),
                        .is_fast = b->is_fast,
                        .directory = unit->folder.path,
                        .timeout_s = (double)b->options->compile_timeout,
                        .should_stop = b->runtime->should_stop_build,
                        .should_stop_arg = b->runtime->should_stop_arg};
    ci_compiler_run(ctx, &job, unit->path, sizeof unit->path);
    store_object(unit);
}

/* True if the unit failed because its folder is not writable, and not because of the compiler. */
static bool
is_folders_fault(Unit *unit)
{
    int error = unit->status == CI_ERR_COMPILE && unit->folder.path[0]
                    ? ci_build_folder_trouble(&unit->folder)
                    : 0;
    if (error && !unit->trouble[0]) {
        snprintf(unit->trouble, sizeof unit->trouble, "%s", unit->folder.path);
        char *slash = strrchr(unit->trouble, '/');
        snprintf(slash, sizeof unit->trouble - (size_t)(slash - unit->trouble), ": %s",
                 strerror(error));
    }
    return error != 0;
}

/* Where a folder is full, or cannot be written to, the next one is tried. */
static void *
compile_unit(void *arg)
{
    Unit *unit = arg;
    while ((unit->status = ci_protect(unit->ctx, compile_body, unit)) != CI_OK &&
           is_folders_fault(unit)) {
        ci_build_folder_close(&unit->folder);
        unit->folder.root++;
    }
    if (unit->status == CI_OK && unit->trouble[0] && unit->build->runtime->cache)
        ci_cache_avoid(unit->build->runtime->cache, &unit->folder, unit->trouble);
    give_lock(unit);
    return NULL;
}

static _Noreturn void
fail_without_compiler(CiContext *ctx)
{
    ci_fail(ctx, CI_ERR_NO_COMPILER, "no C compiler was found: tried %s", ci_compiler_tried());
}

/* The source that a compiler has refused is kept, the latest one, where objects are. */
static _Noreturn void
fail_unit(CiContext *ctx, const Unit *unit)
{
    const CiCache *cache = unit->build->runtime->cache;
    const char *message = ci_context_message(unit->ctx);
    const char *folder = cache ? ci_cache_directory(cache) : "";
    char *path = ci_format(ctx, "%s/refused.c", folder);
    if (unit->status != CI_ERR_COMPILE || !*folder ||
        ci_os_write_atomic(path, unit->source.data, unit->source.length))
        ci_fail(ctx, unit->status, "%s", message);
    ci_fail(ctx, unit->status, "%s\n" CI_SOURCE_LINE "%s", message, path);
}

/* Returns when no thread works any more, whatever came of it. */
static void
compile_missing(CiContext *ctx, Build *b)
{
    pthread_t threads[CI_CPU_MAX_UNITS];
    Unit *missing[CI_CPU_MAX_UNITS];
    int count = 0, started = 0;
    for (int u = 0; u < b->nunits; u++) {
        Unit *unit = &b->units[u];
        CiCache *cache = cache_of(b);
        if (cache && ci_cache_find(cache, unit->key, "so", unit->path, sizeof unit->path))
            continue;
        if (!b->compiler.path[0])
            fail_without_compiler(ctx);
        unit->ctx = ci_context_open();
        if (!unit->ctx)
            ci_fail(ctx, CI_ERR_MEMORY, "no memory to compile in");
        missing[count++] = unit;
    }
    while (started < count - 1 &&
           pthread_create(&threads[started], NULL, compile_unit, missing[started + 1]) == 0)
        started++;
    for (int k = 0; k < count; k++)
        if (k == 0 || k > started)
            compile_unit(missing[k]);
    for (int k = 0; k < started; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k < count; k++)
        b->info->children += missing[k]->is_built;
    b->info->from_cache = b->info->children == 0;
    for (int k = 0; k < count; k++)
        if (missing[k]->status != CI_OK)
            fail_unit(ctx, missing[k]);
}

/* ---- loading ---- */

/* Loads a copy in memory, because a directory may forbid executing the files in it. */
static void *
load_from_memory(Unit *unit)
{
    void *payload = NULL;
    size_t size = 0;
    char path[64];
    if (ci_os_read(unit->path, &payload, &size))
        return NULL;
    unit->file = memfd_create("cinductor", MFD_CLOEXEC);
    bool is_written = unit->file >= 0 && write(unit->file, payload, size) == (ssize_t)size;
    free(payload);
    snprintf(path, sizeof path, "/proc/self/fd/%d", unit->file);
    return is_written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void
load_unit(CiContext *ctx, Unit *unit)
{
    unit->library = dlopen(unit->path, RTLD_NOW | RTLD_LOCAL);
    if (unit->library)
        return;
    char *reason = ci_format(ctx, "%s", dlerror());
    unit->library = load_from_memory(unit);
    if (!unit->library)
        ci_fail(ctx, CI_ERR_LOAD, "%s", reason);
}

static CiKernelFunction
find_function(CiContext *ctx, const Unit *unit, const char *name)
{
    CiKernelFunction function;
    void *symbol = dlsym(unit->library, name);
    if (!symbol)
        ci_fail(ctx, CI_ERR_LOAD, "%s has no %s", unit->path, name);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

typedef struct Filling {
    CiContext *ctx;
    const Build *b;
} Filling;

static void
fill_kernel(void *arg, const CiKernel *kernel)
{
    const Filling *filling = arg;
    const Build *b = filling->b;
    if (!ci_kernel_has_loops(kernel))
        return;
    const Unit *unit = &b->units[b->unit_of[kernel->id]];
    CiCpuKernel *own = &b->executable->kernels[kernel->id];
    const char *name = b->printed[kernel->id]->name;
    own->run = find_function(filling->ctx, unit, name);
    ci_cpu_set_launch(filling->ctx, own, kernel, &b->launches[kernel->id]);
    if (b->launches[kernel->id].of[CI_LAUNCH_finish_units])
        own->finish = find_function(filling->ctx, unit, ci_format(filling->ctx, "%s_finish", name));
}

static void
load(CiContext *ctx, Build *b)
{
    for (int u = 0; u < b->nunits; u++)
        load_unit(ctx, &b->units[u]);
    b->executable = calloc(1, sizeof *b->executable + sizeof(CiCpuKernel) * (size_t)b->nkernels);
    if (!b->executable)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for %d kernels", b->nkernels);
    b->executable->kernels = (CiCpuKernel *)(b->executable + 1);
    b->executable->nkernels = b->nkernels;
    b->executable->chunk_elements = b->kernels->machine->chunk_elements;
    Filling filling = {ctx, b};
    ci_kernels_visit(b->kernels, fill_kernel, &filling);
}

/* ---- all of it ---- */

/* Or the one that has filled the cache: what it made may be there. */
static void
find_compiler(CiContext *ctx, Build *b)
{
    if (ci_compiler_find(&b->compiler))
        ci_compiler_identify(ctx, b->runtime, &b->compiler, (double)b->options->compile_timeout);
    else if (!ci_compiler_find_offline(b->options->cache ? b->runtime->cache : NULL,
                                 ci_cpu_level(b->options), &b->compiler))
        fail_without_compiler(ctx);
}

static void
build_body(CiContext *ctx, void *arg)
{
    Build *b = arg;
    int64_t start = ci_os_time_ns();
    find_compiler(ctx, b);
    bool is_known = recall_units(ctx, b);
    if (!is_known)
        emit_units(ctx, b);
    int64_t emitted = ci_os_time_ns();
    for (int u = 0; u < b->nunits && !is_known; u++)
        find_key(ctx, b, &b->units[u]);
    if (!is_known)
        compile_missing(ctx, b);
    int64_t compiled = ci_os_time_ns();
    load(ctx, b);
    if (!is_known)
        remember_units(ctx, b);
    b->info->emit_ms = (double)(emitted - start) * 1e-6;
    b->info->compile_ms = (double)(compiled - emitted) * 1e-6;
    b->info->load_ms = (double)(ci_os_time_ns() - compiled) * 1e-6;
}

static void
close_unit(Unit *unit, bool has_failed)
{
    ci_build_folder_close(&unit->folder);
    if (unit->file >= 0)
        close(unit->file);
    if (has_failed && unit->library)
        dlclose(unit->library);
    if (unit->ctx)
        ci_context_close(unit->ctx);
}

CiExecutable *
ci_cpu_build(CiContext *ctx, const CiQueue *queue, const CiKernels *kernels,
             const CiOptions *options, CiBuildInfo *info)
{
    CiBuildInfo ignored;
    Build b = {.kernels = kernels, .options = options, .runtime = queue->runtime};
    b.info = info ? info : &ignored;
    b.is_fast = options->numerics && !strcmp(options->numerics, "fast");
    b.nkernels = ci_kernels_count(kernels);
    b.unit_of = CI_NEW_ARRAY(ctx, int, b.nkernels + 1);
    b.printed = CI_NEW_ARRAY(ctx, const CiKernel *, b.nkernels + 1);
    b.launches = CI_NEW_ARRAY(ctx, CiLaunchExprs, b.nkernels + 1);
    b.lengths = CI_NEW_ARRAY(ctx, int64_t, b.nkernels + 1);
    for (int u = 0; u < CI_CPU_MAX_UNITS; u++)
        b.units[u].file = b.units[u].lock = -1;
    *b.info = (CiBuildInfo){0};
    CiStatus status = ci_protect(ctx, build_body, &b);
    char *message = status ? ci_format(ctx, "%s", ci_context_message(ctx)) : NULL;
    for (int u = 0; u < CI_CPU_MAX_UNITS; u++)
        close_unit(&b.units[u], status != CI_OK);
    if (status != CI_OK) {
        if (b.executable)
            ci_cpu_close(&b.executable->base);
        ci_fail(ctx, status, "%s", message);
    }
    b.executable->base =
        (CiExecutable){.queue = *queue, .close = ci_cpu_close, .launch = ci_cpu_launch};
    for (int u = 0; u < b.nunits; u++)
        b.executable->libraries[b.executable->nlibraries++] = b.units[u].library;
    return &b.executable->base;
}

/* ---- source of the user's ---- */

typedef struct TextBuild {
    Build build;
    const char *source;
    CiCpuUserCode *code;
} TextBuild;

static void
text_body(CiContext *ctx, void *arg)
{
    TextBuild *t = arg;
    Build *b = &t->build;
    Unit *unit = &b->units[0];
    unit->build = b;
    unit->source = ci_text_new(ctx);
    ci_text_add_chars(&unit->source, t->source, strlen(t->source));
    for (int k = 0; k < CI_LIBRARY_COUNT; k++)
        unit->is_linked[k] = true;
    find_compiler(ctx, b);
    find_key(ctx, b, unit);
    compile_missing(ctx, b);
    load_unit(ctx, unit);
    void *symbol = dlsym(unit->library, "cinductor_kernel");
    if (!symbol)
        ci_fail(ctx, CI_ERR_LOAD, "%s has no cinductor_kernel", unit->path);
    memcpy(&t->code->function, &symbol, sizeof t->code->function);
    t->code->library = unit->library;
}

CiUserCode *
ci_cpu_build_text(CiContext *ctx, const CiQueue *queue, const char *source,
                  const CiOptions *options)
{
    CiBuildInfo info = {0};
    TextBuild *t = CI_NEW(ctx, TextBuild);
    CiCpuUserCode *code = calloc(1, sizeof *code);
    if (!code)
        ci_fail(ctx, CI_ERR_MEMORY, "no memory for a kernel");
    code->base = (CiUserCode){.run = ci_cpu_run_text, .close = ci_cpu_close_text};
    *t = (TextBuild){
        .build = {.options = options, .runtime = queue->runtime, .info = &info, .nunits = 1},
        .source = source,
        .code = code};
    t->build.units[0].file = t->build.units[0].lock = -1;
    CiStatus status = ci_protect(ctx, text_body, t);
    close_unit(&t->build.units[0], status != CI_OK);
    if (status) {
        free(code);
        ci_fail(ctx, status, "%s", ci_format(ctx, "%s", ci_context_message(ctx)));
    }
    return &code->base;
}
