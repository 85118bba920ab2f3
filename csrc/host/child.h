/* Child processes: posix_spawn without a shell, output collected, a poll hook so that Ctrl-C ends
 * the wait and the child. */
#ifndef CI_HOST_CHILD_H
#define CI_HOST_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* The milliseconds between two questions whether to stop, of a wait for a child or for the lock of
 * another process. A process that ends has left its builds after that and the end of the child. */
#define CI_POLL_MS 50

typedef struct CiChildResult {
    int exit_code; /* 128 + signal when killed */
    char *output;  /* stdout and stderr together, malloc'ed, NUL-terminated, at most 64 KiB */
    bool interrupted, timed_out;
} CiChildResult;

/* argv is NULL-terminated, argv[0] an absolute path. Input text (may be NULL) goes to stdin.
 * should_stop is asked every CI_POLL_MS (may be NULL). Returns 0 or an errno when it could not start. */
int ci_child_run(const char *const *argv, const char *input, size_t input_size, double timeout_s,
                 bool (*should_stop)(void *arg), void *arg, CiChildResult *result);
/* Runs a child without input, with TMPDIR set to `temporary`, where files of a killed child
 * remain. */
int ci_child_run_in(const char *const *argv, const char *temporary, double timeout_s,
                    bool (*should_stop)(void *arg), void *arg, CiChildResult *result);

#endif
