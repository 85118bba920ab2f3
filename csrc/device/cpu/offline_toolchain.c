/* Records which compiler has filled the disk cache, in an entry next to the kernels. A kernel's key
 * contains the compiler's fingerprint and the words of $CC; a machine with the cache but without
 * the compiler reads both here. */
#include "device/cpu/compiler.h"

#include "base/hash.h"
#include "base/version.h"

#include <string.h>

/* The recorded entry: fingerprint and words of $CC, as in the compiler's struct. */
typedef struct Note {
    char identity[65];
    char words[1024];
    int32_t nwords;
} Note;

static void
note_key(CiCpuLevel level, char out[65])
{
    uint8_t digest[32];
    char number = (char)('0' + (int)level);
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, "cinductor " CI_VERSION " compiler");
    ci_sha256_add_text(&hash, ci_cpu_libc_version());
    ci_sha256_add(&hash, &number, 1);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, out);
}

void
ci_compiler_remember(CiCache *cache, CiCpuLevel level, const CiSystemCompiler *compiler)
{
    Note note = {.nwords = compiler->nwords}, before;
    char key[65];
    if (!cache)
        return;
    note_key(level, key);
    memcpy(note.identity, compiler->identity, sizeof note.identity);
    memcpy(note.words, compiler->words, sizeof note.words);
    if (ci_cache_read_note(cache, CI_CACHE_note, key, &before, sizeof before) != sizeof before ||
        memcmp(&before, &note, sizeof note) != 0)
        ci_cache_write_note(cache, CI_CACHE_note, key, &note, sizeof note);
}

bool
ci_compiler_find_offline(CiCache *cache, CiCpuLevel level, CiSystemCompiler *compiler)
{
    Note note;
    char key[65];
    memset(compiler, 0, sizeof *compiler);
    note_key(level, key);
    if (!cache || ci_cache_read_note(cache, CI_CACHE_note, key, &note, sizeof note) != sizeof note ||
        note.nwords < 0 || note.nwords > CI_CPU_MAX_WORDS / 2)
        return false;
    memcpy(compiler->identity, note.identity, sizeof note.identity);
    memcpy(compiler->words, note.words, sizeof note.words);
    compiler->identity[sizeof note.identity - 1] = 0;
    compiler->words[sizeof note.words - 1] = 0;
    compiler->nwords = note.nwords;
    return true;
}
