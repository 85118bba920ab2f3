/* The system's C compiler as a child process: no shell, absolute paths, everything it needs in its
 * arguments.
 *
 * Each flag keeps every IEEE value: no-math-errno makes sqrt one instruction, no-trapping-math lets
 * floor and comparisons be vectors, wrapv keeps integer overflow defined, ffp-contract=off keeps
 * a*b + c in two roundings. */
#include "device/cpu/compiler.h"

#include "base/os.h"
#include "host/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 2000

/* Vectors are explicit in the source and functions request optimization themselves, so -O1 is
 * enough. Two flags are added. Without caller-saves, values that live across a call of vector
 * mathematics would stay in memory all their life. Without expensive-optimizations, the upper
 * halves of registers are not cleared before NumPy's loops are called, and some of these then take
 * ten times as long. */
static const char *const flags[] = {
    "-O1",
    "-std=gnu11",
    "-fcaller-saves",
    "-fexpensive-optimizations",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fPIC",
    "-fno-strict-aliasing",
    "-fopenmp-simd",
    "-shared",
    "-nostdlib",
    "-pipe",
    "-fno-asynchronous-unwind-tables",
    "-w",
    "--param=vect-epilogues-nomask=0", /* remainders of loops one by one: a tenth less to compile */
    /* Remainders of known length stay loops where straight code would be long: a tenth less again,
     * and what is compiled depends less on what a length leaves over. */
    "--param=max-completely-peeled-insns=48",
};
enum { FLAG_COUNT = (int)(sizeof flags / sizeof *flags) };

/* Ended by NULL. */
static const char *const level_flags[CI_CPU_LEVEL_COUNT][CI_CPU_LEVEL_FLAGS + 1] = {
#define LEVEL(id, bytes, registers, name, instructions, ...) {__VA_ARGS__},
#include "device/cpu/levels.def"
};

static const char *const libraries[CI_LIBRARY_COUNT] = {
#define LIBRARY(name, argument) [CI_LIBRARY_##name] = argument,
#include "target/intrinsics.def"
};

/* ---- finding ---- */

static void
describe(CiSystemCompiler *compiler)
{
    char resolved[4096];
    CiFileInfo info = {0};
    if (ci_os_resolve(compiler->path, resolved, sizeof resolved))
        snprintf(resolved, sizeof resolved, "%s", compiler->path);
    (void)ci_os_stat(resolved, &info);
    snprintf(compiler->stamp, sizeof compiler->stamp, "%s %lld %lld", resolved,
             (long long)info.size, (long long)info.mtime_ns);
}

/* The program is the first word; the others go before our own arguments. */
static bool
find_from_variable(CiSystemCompiler *compiler, const char *variable)
{
    const char *at = variable + strspn(variable, " \t");
    size_t length = strcspn(at, " \t"), used = 0;
    char program[4096];
    if (length == 0 || length >= sizeof program)
        return false;
    memcpy(program, at, length);
    program[length] = 0;
    for (at += length; *(at += strspn(at, " \t")); at += length) {
        length = strcspn(at, " \t");
        if (used + length + 1 > sizeof compiler->words || compiler->nwords == CI_CPU_MAX_WORDS / 2)
            return false;
        memcpy(compiler->words + used, at, length);
        compiler->words[used + length] = 0;
        used += length + 1;
        compiler->nwords++;
    }
    return ci_os_find_program(program, compiler->path, sizeof compiler->path) == 0;
}

bool
ci_compiler_find(CiSystemCompiler *compiler)
{
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *variable = getenv("CC");
    memset(compiler, 0, sizeof *compiler);
    bool is_found = variable && find_from_variable(compiler, variable);
    if (!is_found)
        compiler->nwords = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names && !is_found; k++)
        is_found = ci_os_find_program(names[k], compiler->path, sizeof compiler->path) == 0;
    if (is_found)
        describe(compiler);
    return is_found;
}

const char *
ci_compiler_tried(void)
{
    return "$CC, cc, gcc, clang";
}

/* ---- running ---- */

const char *
ci_compiler_flags_text(CiContext *ctx, CiCpuLevel level, bool is_fast)
{
    CiText text = ci_text_new(ctx);
    for (int k = 0; k < FLAG_COUNT; k++)
        ci_text_add(&text, k ? " %s" : "%s", flags[k]);
    for (const char *const *own = level_flags[level]; *own; own++)
        if (**own)
            ci_text_add(&text, " %s", *own);
    ci_text_add(&text, "%s", is_fast ? " -ffp-contract=fast" : "");
    return text.data;
}

typedef struct Command {
    const char *words[CI_CPU_MAX_WORDS];
    int count;
} Command;

static void
add_word(Command *command, const char *word)
{
    command->words[command->count++] = word;
}

static void
build_command(Command *command, const CiCompileJob *job, const char *source_path, const char *out)
{
    const char *word = job->compiler->words;
    add_word(command, job->compiler->path);
    for (int k = 0; k < job->compiler->nwords; k++, word += strlen(word) + 1)
        add_word(command, word);
    for (int k = 0; k < FLAG_COUNT; k++)
        add_word(command, flags[k]);
    for (const char *const *own = level_flags[job->level]; *own; own++)
        if (**own)
            add_word(command, *own);
    if (job->is_fast)
        add_word(command, "-ffp-contract=fast");
    add_word(command, source_path);
    add_word(command, "-o");
    add_word(command, out);
    for (int k = 0; k < CI_LIBRARY_COUNT; k++)
        if (job->is_linked[k] && libraries[k][0])
            add_word(command, libraries[k]);
}

/* The first line of the output that names an error, or the first line. */
static const char *
first_error(const char *output)
{
    const char *at = strstr(output, "error:");

    while (at != NULL && at > output && at[-1] != '\n')
        at--;
    return at != NULL ? at : output;
}

/* The lines of the message: what happened, the command, and what the compiler printed. */
static _Noreturn void
fail_compile(CiContext *ctx, const Command *command, const char *output, int exit_code)
{
    const char *message = first_error(output);
    CiText text = ci_text_new(ctx);
    for (int k = 0; k < command->count; k++)
        ci_text_add(&text, k ? " %s" : "%s", command->words[k]);
    size_t length = strlen(output);
    ci_fail(ctx, CI_ERR_COMPILE, "the C compiler failed (exit code %d): %.*s\n%s\n%.*s%s", exit_code,
            (int)strcspn(message, "\n"), message, text.data,
            length > MESSAGE_BYTES ? MESSAGE_BYTES : (int)length, output,
            length > MESSAGE_BYTES ? "\n..." : "");
}

void
ci_compiler_run(CiContext *ctx, const CiCompileJob *job, char *out, size_t capacity)
{
    char *source_path = ci_format(ctx, "%s/kernel.c", job->directory);
    Command command = {.count = 0};
    CiChildResult result = {0};
    snprintf(out, capacity, "%s/kernel.so", job->directory);
    int error = ci_os_write_atomic(source_path, job->source->data, job->source->length);
    if (error)
        ci_fail(ctx, CI_ERR_COMPILE, "%s cannot be written: %s", source_path, strerror(error));
    build_command(&command, job, source_path, out);
    error = ci_child_run_in(command.words, job->directory, job->timeout_s, job->should_stop,
                            job->should_stop_arg, &result);
    if (error)
        ci_fail(ctx, CI_ERR_COMPILE, "%s could not be started: %s", command.words[0],
                strerror(error));
    char *output = ci_copy_text(ctx, result.output ? result.output : "",
                                result.output ? strlen(result.output) : 0);
    free(result.output);
    if (result.interrupted)
        ci_fail(ctx, CI_ERR_INTERRUPTED, "interrupted while compiling");
    if (result.timed_out)
        fail_compile(ctx, &command, "no answer within compile_timeout", result.exit_code);
    if (result.exit_code)
        fail_compile(ctx, &command, output, result.exit_code);
}
