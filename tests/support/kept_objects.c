/* A compiler for tests that keeps what it makes: the real one answers each text of kernels once, also for later
 * processes and runs. All that makes the text is done each time, and so are other uses of the compiler.
 *
 * REAL is the path of the real compiler, KEPT the folder. An object is named by a hash of the arguments, paths aside,
 * and of the text. conftest.py builds this for one state of the real compiler, and removes objects. */
#include "base/hash.h"
#include "base/os.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Job {
    const char *source, *out;
    int nsources;
    bool is_shared;
} Job;

static bool
ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);
    return length >= size && !strcmp(text + length - size, end);
}

/* True for a command that makes a library of one source. */
static bool
find_job(char **words, Job *job)
{
    for (; *words; words++) {
        job->is_shared |= !strcmp(*words, "-shared");
        if (ends_with(*words, ".c") || ends_with(*words, ".cpp")) {
            job->source = *words;
            job->nsources++;
        } else if (!strcmp(*words, "-o") && words[1]) {
            job->out = words[1];
        }
    }
    return job->is_shared && job->nsources == 1 && job->out;
}

/* False for a text that depends on other files. */
static bool
find_name(char **words, const Job *job, char *name, size_t capacity)
{
    void *text = NULL;
    size_t size = 0;
    uint8_t digest[32];
    char hex[65];
    CiSha256 hash;
    if (ci_os_read(job->source, &text, &size))
        return false;
    char *whole = realloc(text, size + 1);
    if (!whole)
        return false;
    whole[size] = 0;
    bool is_whole = !strstr(whole, "#include");
    ci_sha256_init(&hash);
    for (; *words; words++)
        if (*words != job->source && *words != job->out)
            ci_sha256_add_text(&hash, *words);
    ci_sha256_add_source(&hash, whole);
    ci_sha256_finish(&hash, digest);
    ci_sha256_hex(digest, hex);
    free(whole);
    return is_whole && snprintf(name, capacity, "%s/%s.so", KEPT, hex) < (int)capacity;
}

static bool
copy(const char *from, const char *to)
{
    void *data = NULL;
    size_t size = 0;
    bool is_copied = !ci_os_read(from, &data, &size) && !ci_os_write_atomic(to, data, size);
    free(data);
    return is_copied;
}

/* Runs the real compiler; its exit status, as a shell tells it. */
static int
compile(char **words)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execv(REAL, words);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int
main(int count, char **words)
{
    Job job = {0};
    char name[4096];
    (void)count;
    words[0] = REAL;
    if (!find_job(words + 1, &job) || !find_name(words + 1, &job, name, sizeof name)) {
        execv(REAL, words);
        return 127;
    }
    if (copy(name, job.out)) {
        ci_os_touch(name);
        return 0;
    }
    int status = compile(words);
    if (status == 0)
        copy(job.out, name);
    return status;
}
