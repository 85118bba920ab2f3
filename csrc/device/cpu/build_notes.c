/* Cache entries that map the text of kernels, with the options and tools, to the library that was built from them. */
#include "device/cpu/build_notes.h"

#include "base/os.h"
#include "base/version.h"
#include "device/cpu/level.h"

#include <stddef.h>
#include <string.h>

void
ci_cpu_hash_tools(CiContext *ctx, CiSha256 *hash, const CiSystemCompiler *compiler,
                  const CiOptions *options)
{
    const char *word = compiler->words;
    bool is_fast = options->numerics && !strcmp(options->numerics, "fast");
    ci_sha256_init(hash);
    ci_sha256_add_text(hash, "cinductor " CI_VERSION " c");
    ci_sha256_add_text(hash, ci_format(ctx, "glibc %s%s", ci_cpu_libc_version(),
                                       ci_cpu_has_routines(options) ? ", libmvec" : ""));
    ci_sha256_add_text(hash, compiler->identity);
    for (int k = 0; k < compiler->nwords; k++, word += strlen(word) + 1)
        ci_sha256_add_text(hash, word);
    ci_sha256_add_text(hash, ci_compiler_flags_text(ctx, ci_cpu_level(options), is_fast));
}

/* Hashes all options, because it is not known here which of them a pass reads. */
static void
hash_options(CiSha256 *hash, const CiOptions *options)
{
#define ADD_bool(name) ci_sha256_add(hash, &options->name, sizeof options->name);
#define ADD_int(name) ci_sha256_add(hash, &options->name, sizeof options->name);
#define ADD_text(name) ci_sha256_add_text(hash, options->name ? options->name : "");
#define ADD_levels(name) ADD_text(name)
#define ADD_passes(name) ADD_text(name)
#define ADD_choices(name) ADD_text(name)
#define ADD_joins(name) ADD_text(name)
#define OPTION(name, type, value, allowed, env, doc) ADD_##type(name)
#include "base/options.def"
#undef OPTION
}

/* Hashes the kernels' text. The machine is not part of it: it follows from options and tools. */
static void
hash_kernels(CiSha256 *hash, const CiKernels *kernels)
{
    CiText text = ci_text_new(kernels->loops->ctx);
    ci_kernels_print(&text, kernels);
    ci_sha256_add_text(hash, text.data);
}

CiCpuBuildNotes *
ci_cpu_known_new(CiContext *ctx, const CiSystemCompiler *compiler, const CiKernels *kernels,
                 const CiOptions *options)
{
    char code[129];
    uint8_t digest[32];
    CiSha256 hash;
    int nkernels = ci_kernels_count(kernels);
    if (nkernels > CI_CPU_MAX_KNOWN || kernels->given_source || options->verify ||
        !ci_os_build_id(code, sizeof code))
        return NULL;
    CiCpuBuildNotes *known = CI_NEW(ctx, CiCpuBuildNotes);
    ci_cpu_hash_tools(ctx, &hash, compiler, options);
    ci_sha256_add_text(&hash, "units of kernels");
    ci_sha256_add_text(&hash, code);
    hash_options(&hash, options);
    hash_kernels(&hash, kernels);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, known->key);
    known->nkernels = nkernels;
    return known;
}

static bool
is_whole(const CiCpuBuildNotes *read, const CiCpuBuildNotes *requested)
{
    bool is_it = !memcmp(read->key, requested->key, sizeof read->key) &&
                 read->nkernels == requested->nkernels && read->nunits >= 0 &&
                 read->nunits <= CI_CPU_MAX_UNITS;
    for (int u = 0; is_it && u < read->nunits; u++)
        is_it = strnlen(read->units[u], sizeof read->units[u]) == sizeof read->units[u] - 1;
    for (int k = 0; is_it && k < read->nkernels; k++)
        is_it = read->kernels[k].unit < read->nunits && read->kernels[k].printed >= 0 &&
                read->kernels[k].printed < read->nkernels && !read->kernels[k].launch[sizeof read->kernels[k].launch - 1];
    return is_it;
}

size_t
ci_cpu_known_size(const CiCpuBuildNotes *known)
{
    return offsetof(CiCpuBuildNotes, kernels) + sizeof *known->kernels * (size_t)known->nkernels;
}

bool
ci_cpu_known_read(CiCache *cache, CiCpuBuildNotes *known)
{
    CiCpuBuildNotes read;
    size_t size = ci_cache_read_note(cache, CI_CACHE_units, known->key, &read, sizeof read);
    if (size != ci_cpu_known_size(known) || !is_whole(&read, known))
        return false;
    *known = read;
    return true;
}

void
ci_cpu_known_write(CiCache *cache, const CiCpuBuildNotes *known)
{
    ci_cache_write_note(cache, CI_CACHE_units, known->key, known, ci_cpu_known_size(known));
}
