/* Fingerprint of the compiler, for keys of the disk cache.
 *
 * For gcc or clang it is the path, size and modification time of the executable. Any other program
 * may be a wrapper (a script, ccache, env), which does not change when the real compiler does. Such
 * a program is run once per runtime with --version and -###. The output names the target and the
 * real compiler, whose file is examined, as are the programs that a script names. If the program
 * does not understand these options, it has no fingerprint and its output is not cached. */
#include "device/cpu/compiler.h"

#include "base/hash.h"
#include "base/os.h"
#include "host/child.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SCRIPTS 4    /* one within another */
#define MAX_PROGRAMS 64  /* of scripts that are looked at */
#define MAX_SCRIPT 65536 /* bytes */

typedef struct Answer Answer;
struct Answer {
    Answer *next;
    char question[65], identity[65];
};

typedef struct Memory {
    CiDeviceState base;
    _Atomic(Answer *) answers;
} Memory;

/* ---- what was answered before ---- */

static void
shut(CiDeviceState *state)
{
    Memory *memory = (Memory *)state;
    for (Answer *answer = atomic_load(&memory->answers), *next; answer; answer = next) {
        next = answer->next;
        free(answer);
    }
    free(memory);
}

static Memory *
memory_of(CiRuntime *runtime)
{
    CiDeviceState *first = atomic_load(&runtime->states);
    Memory *own = NULL;
    do {
        for (CiDeviceState *state = first; state; state = state->next)
            if (state->shut == shut) {
                free(own);
                return (Memory *)state;
            }
        if (!own && !(own = calloc(1, sizeof *own)))
            return NULL;
        own->base = (CiDeviceState){shut, first};
    } while (!atomic_compare_exchange_weak(&runtime->states, &first, &own->base));
    return own;
}

static const Answer *
find_answer(Memory *memory, const char *question)
{
    for (Answer *answer = memory ? atomic_load(&memory->answers) : NULL; answer;
         answer = answer->next)
        if (!strcmp(answer->question, question))
            return answer;
    return NULL;
}

static void
keep_answer(Memory *memory, const char *question, const char *identity)
{
    Answer *answer = memory ? calloc(1, sizeof *answer) : NULL;
    if (!answer)
        return;
    memcpy(answer->question, question, sizeof answer->question);
    memcpy(answer->identity, identity, sizeof answer->identity);
    answer->next = atomic_load(&memory->answers);
    while (!atomic_compare_exchange_weak(&memory->answers, &answer->next, answer))
        ;
}

/* ---- asking ---- */

static bool
is_executable_format(const char *path)
{
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_elf = fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, "\177ELF", 4);
    if (fd >= 0)
        close(fd);
    return is_elf;
}

/* gcc or clang, with what may stand around the name: x86_64-linux-gnu-gcc-12. */
static bool
is_compiler_itself(const char *path)
{
    static const char *const names[] = {"gcc", "clang"};
    char resolved[4096];
    if (ci_os_resolve(path, resolved, sizeof resolved) || !is_executable_format(resolved))
        return false;
    const char *name = strrchr(resolved, '/') + 1;
    size_t length = strlen(name);
    while (length && (isdigit((unsigned char)name[length - 1]) || name[length - 1] == '.'))
        length--;
    length -= length && length < strlen(name) && name[length - 1] == '-';
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t size = strlen(names[k]);
        if (length >= size && !memcmp(name + length - size, names[k], size) &&
            (length == size || name[length - size - 1] == '-'))
            return true;
    }
    return false;
}

static void
finish(CiSha256 *hash, char out[65])
{
    uint8_t digest[32];
    ci_sha256_finish(hash, digest);
    ci_sha256_hex(digest, out);
}

/* False when there is no such file. */
static bool
add_stamp(CiSha256 *hash, const char *path)
{
    char resolved[4096], stamp[64];
    CiFileInfo info;
    if (ci_os_resolve(path, resolved, sizeof resolved) || ci_os_stat(resolved, &info) ||
        !info.is_regular)
        return false;
    snprintf(stamp, sizeof stamp, "%lld %lld", (long long)info.size, (long long)info.mtime_ns);
    ci_sha256_add_text(hash, stamp);
    return true;
}

/* The next word of text, or NULL; *text is advanced past it. */
static const char *
next_word(const char **text, char *out, size_t capacity)
{
    static const char between[] = " \t\n\"'`$(){}[];|&<>=#!";
    for (;;) {
        const char *at = *text + strspn(*text, between);
        size_t length = strcspn(at, between);
        *text = at + length;
        if (length == 0)
            return NULL;
        if (length >= capacity)
            continue;
        memcpy(out, at, length);
        out[length] = 0;
        return out;
    }
}

/* The files that the answer names: the compiler proper is one. False when there is none. */
static bool
add_files(CiSha256 *hash, const char *text)
{
    bool is_any = false;
    char word[4096];
    while (next_word(&text, word, sizeof word))
        if (*word == '/')
            is_any |= add_stamp(hash, word);
    return is_any;
}

/* The programs that a script names, and those that they name when they are scripts. */
static void
add_script(CiSha256 *hash, const char *path, int depth, int *left)
{
    char word[4096], program[4096];
    void *data = NULL;
    size_t size = 0;
    if (depth == 0 || is_executable_format(path) || ci_os_read(path, &data, &size))
        return;
    const char *text = data;
    while (size < MAX_SCRIPT && *left > 0 && next_word(&text, word, sizeof word))
        if (!ci_os_find_program(word, program, sizeof program) && add_stamp(hash, program)) {
            --*left;
            add_script(hash, program, depth - 1, left);
        }
    free(data);
}

/* Adds what the compiler answers, and sets *names_files when it names some; false when that is no
 * answer. */
static bool
run_query(CiContext *ctx, CiRuntime *runtime, const CiSystemCompiler *compiler,
          const char *const *question, double timeout_s, CiSha256 *hash, bool *names_files)
{
    const char *words[CI_CPU_MAX_WORDS], *word = compiler->words;
    int count = 0;
    words[count++] = compiler->path;
    for (int k = 0; k < compiler->nwords; k++, word += strlen(word) + 1)
        words[count++] = word;
    while (*question)
        words[count++] = *question++;
    words[count] = NULL;
    CiChildResult result = {0};
    if (ci_child_run(words, NULL, 0, timeout_s, runtime->should_stop_build,
                     runtime->should_stop_arg, &result))
        return false; /* a later compile reports the reason */
    ci_sha256_add_text(hash, result.output);
    *names_files = add_files(hash, result.output);
    free(result.output);
    if (result.interrupted)
        ci_fail(ctx, CI_ERR_INTERRUPTED, "interrupted while asking %s what it is", compiler->path);
    if (result.timed_out)
        ci_fail(ctx, CI_ERR_COMPILE, "%s %s: no answer within compile_timeout", compiler->path,
                words[count - 1]);
    return result.exit_code == 0;
}

static void
ask_all(CiContext *ctx, CiRuntime *runtime, CiSystemCompiler *compiler, double timeout_s)
{
    static const char *const version[] = {"--version", NULL};
    static const char *const run[] = {"-###", "-fsyntax-only", "-x", "c", "/dev/null", NULL};
    CiSha256 hash;
    int left = MAX_PROGRAMS;
    bool names_files = false;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, compiler->stamp);
    add_script(&hash, compiler->path, MAX_SCRIPTS, &left);
    if (run_query(ctx, runtime, compiler, version, timeout_s, &hash, &names_files) &&
        run_query(ctx, runtime, compiler, run, timeout_s, &hash, &names_files) && names_files)
        finish(&hash, compiler->identity);
}

void
ci_compiler_identify(CiContext *ctx, CiRuntime *runtime, CiSystemCompiler *compiler,
                     double timeout_s)
{
    char question[65];
    const char *word = compiler->words;
    CiSha256 hash;
    ci_sha256_init(&hash);
    ci_sha256_add_text(&hash, compiler->path);
    ci_sha256_add_text(&hash, compiler->stamp);
    for (int k = 0; k < compiler->nwords; k++, word += strlen(word) + 1)
        ci_sha256_add_text(&hash, word);
    finish(&hash, question);
    if (is_compiler_itself(compiler->path)) {
        memcpy(compiler->identity, question, sizeof question);
        return;
    }
    Memory *memory = memory_of(runtime);
    const Answer *known = find_answer(memory, question);
    if (known) {
        memcpy(compiler->identity, known->identity, sizeof known->identity);
        return;
    }
    ask_all(ctx, runtime, compiler, timeout_s);
    keep_answer(memory, question, compiler->identity);
}
