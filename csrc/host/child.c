/* A child gets a process group of its own, so that killing it kills what it started (a compiler
 * driver starts the compiler). Its input goes through a socket, for writing to a pipe that the
 * child closed would raise SIGPIPE here. Whatever happens, the child is dead and reaped at return.
 */
#define _GNU_SOURCE
#include "host/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"

#define MAX_OUTPUT ((size_t)64 << 10)

extern char **environ;

typedef struct Child {
    pid_t pid;
    int to, from; /* our ends, -1 when closed */
    const char *input, *temporary;
    size_t left;
    CiChildResult *result;
    size_t length;
    int status;
    bool reaped;
} Child;

static void
close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The environment with another TMPDIR; free() frees all of it. NULL without memory. */
static char **
environment_with(const char *temporary)
{
    size_t count = 0, size = sizeof "TMPDIR=" + strlen(temporary);
    while (environ[count])
        count++;
    char **all = malloc(sizeof *all * (count + 2) + size);
    if (!all)
        return NULL;
    char *own = (char *)(all + count + 2);
    memcpy(own, "TMPDIR=", 7);
    memcpy(own + 7, temporary, size - 7);
    all[0] = own;
    size_t used = 1;
    for (size_t k = 0; k < count; k++)
        if (strncmp(environ[k], "TMPDIR=", 7) != 0)
            all[used++] = environ[k];
    all[used] = NULL;
    return all;
}

static int
spawn_with(Child *child, const char *const *argv, int input, int output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        error = posix_spawn_file_actions_adddup2(&actions, input, 0);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&actions, output, 1);
        if (!error)
            error = posix_spawn_file_actions_adddup2(&actions, output, 2);
        char **own = child->temporary ? environment_with(child->temporary) : NULL;
        if (!error)
            error = posix_spawn(&child->pid, argv[0], &actions, &attributes, (char *const *)argv,
                                own ? own : environ);
        free(own);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A descriptor of 0, 1 or 2 (the host closed its own) would be lost by the dup2s above. */
static int
lift(int *fd)
{
    if (*fd > 2)
        return 0;
    int higher = fcntl(*fd, F_DUPFD_CLOEXEC, 3);
    if (higher < 0)
        return errno;
    close(*fd);
    *fd = higher;
    return 0;
}

static int
start(Child *child, const char *const *argv)
{
    int ends[2] = {-1, -1}, output[2] = {-1, -1}, error = 0;
    if (child->left ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0
                    : (ends[1] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
        error = errno;
    else if (pipe2(output, O_CLOEXEC) != 0)
        error = errno;
    if (!error)
        error = lift(&ends[1]);
    if (!error)
        error = lift(&output[1]);
    if (!error)
        error = spawn_with(child, argv, ends[1], output[1]);
    close_end(&ends[1]);
    close_end(&output[1]);
    child->to = ends[0];
    child->from = output[0];
    if (!error && child->to >= 0)
        fcntl(child->to, F_SETFL, O_NONBLOCK);
    if (!error)
        fcntl(child->from, F_SETFL, O_NONBLOCK);
    return error;
}

/* Takes what there is; what is beyond the limit is read and forgotten. */
static void
drain(Child *child)
{
    char bytes[4096];
    while (child->from >= 0) {
        ssize_t got = read(child->from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            close_end(&child->from);
            return;
        }
        size_t space = MAX_OUTPUT - child->length, take = (size_t)got < space ? (size_t)got : space;
        memcpy(child->result->output + child->length, bytes, take);
        child->length += take;
    }
}

static void
feed(Child *child)
{
    ssize_t put = child->left ? send(child->to, child->input, child->left, MSG_NOSIGNAL) : 0;
    if (put < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    if (put > 0) {
        child->input += put;
        child->left -= (size_t)put;
    }
    if (put < 0 || child->left == 0)
        close_end(&child->to);
}

static int
reap(Child *child, int flags)
{
    pid_t got;
    do
        got = waitpid(child->pid, &child->status, flags);
    while (got < 0 && errno == EINTR);
    child->reaped = got != 0;
    return got < 0 ? errno : 0;
}

/* Waits for something to happen, at most ms. */
static void
wait_for(Child *child, int ms)
{
    struct pollfd ends[2] = {{.fd = child->from, .events = POLLIN},
                             {.fd = child->to, .events = POLLOUT}};
    poll(ends, 2, ms);
    if (child->to >= 0 && ends[1].revents)
        feed(child);
    if (child->from >= 0 && ends[0].revents)
        drain(child);
}

/* Until the child has ended, in one way or another. Its end is seen by the end of its output; one
 * that has closed that, or left it to a grandchild, is asked for again and again. */
static int
attend(Child *child, double timeout_s, bool (*should_stop)(void *arg), void *arg)
{
    int64_t start = ci_os_time_ns(), requested = start;
    int error = 0;
    while (!child->reaped && !error) {
        wait_for(child, child->from >= 0 ? CI_POLL_MS : 1);
        int64_t now = ci_os_time_ns();
        bool is_due = now - requested >= (int64_t)CI_POLL_MS * 1000000;
        if (is_due || child->from < 0)
            error = reap(child, WNOHANG);
        if (child->reaped)
            break;
        if (timeout_s > 0 && (double)(now - start) * 1e-9 > timeout_s)
            child->result->timed_out = true;
        else if (is_due && should_stop && should_stop(arg))
            child->result->interrupted = true;
        if (child->result->timed_out || child->result->interrupted) {
            kill(-child->pid, SIGKILL);
            error = reap(child, 0);
        }
        requested = is_due ? now : requested;
    }
    return error;
}

static int
run_child(Child *child, const char *const *argv, double timeout_s, bool (*should_stop)(void *arg),
          void *arg)
{
    CiChildResult *result = child->result;
    *result = (CiChildResult){.output = malloc(MAX_OUTPUT + 1)};
    if (!result->output)
        return ENOMEM;
    int error = start(child, argv);
    if (!error)
        error = attend(child, timeout_s, should_stop, arg);
    drain(child);
    close_end(&child->to);
    close_end(&child->from);
    result->output[child->length] = 0;
    result->exit_code =
        WIFSIGNALED(child->status) ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
    if (error) {
        free(result->output);
        result->output = NULL;
    }
    return error;
}

int
ci_child_run(const char *const *argv, const char *input, size_t input_size, double timeout_s,
             bool (*should_stop)(void *arg), void *arg, CiChildResult *result)
{
    Child child = {
        .to = -1, .from = -1, .input = input, .left = input ? input_size : 0, .result = result};
    return run_child(&child, argv, timeout_s, should_stop, arg);
}

int
ci_child_run_in(const char *const *argv, const char *temporary, double timeout_s,
                bool (*should_stop)(void *arg), void *arg, CiChildResult *result)
{
    Child child = {.to = -1, .from = -1, .temporary = temporary, .result = result};
    return run_child(&child, argv, timeout_s, should_stop, arg);
}
