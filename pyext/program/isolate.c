/* The option isolate: a program is compiled in a child process first. If the child dies or does not end, the
 * program is not compiled, with an error that says why; this process goes on.
 *
 * Otherwise it is compiled here, too: the compiler does the same, and finds the kernels in the disk cache. Hooks
 * of os.register_at_fork run, because the child runs Python; one that fails, hangs or ends the child is like a
 * compiler that does. */
#include "program/program.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

static _Noreturn void
compile_in_child(CxProgram *p)
{
    CiRequest request;

    setpgid(0, 0);
    PyOS_AfterFork_Child();
    bool is_made = cx_program_make(p->state, p->graph, &p->options, p->backend, p->passes, NULL, NULL,
                                   NULL, NULL, &request) == 0;
    _exit(is_made ? 0 : 1); /* this process finds the error itself */
}

enum { INTERRUPTED = -1, KILLED = -2, UNKNOWN = -3 };

/* Waits until the child ends, an exception comes, or time is over. Returns the child's status, or INTERRUPTED with an
 * exception, KILLED, or UNKNOWN if the system does not tell. */
static int
wait_for(pid_t child, double seconds)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int64_t until = ci_os_time_ns() + (int64_t)(1e9 * seconds);
    int status = 0, found = 0, interrupted = 0;

    for (int k = 1; found == 0; k++) {
        Py_BEGIN_ALLOW_THREADS
        nanosleep(&pause, NULL);
        found = waitpid(child, &status, WNOHANG);
        Py_END_ALLOW_THREADS
        found = found < 0 && errno == EINTR ? 0 : found;
        interrupted = k % 16 == 0 && PyErr_CheckSignals() < 0;
        if (found == 0 && (interrupted || ci_os_time_ns() > until)) {
            kill(-child, SIGKILL);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return interrupted ? INTERRUPTED : KILLED;
        }
    }
    return found < 0 ? UNKNOWN : status;
}

int
cx_isolate(CxProgram *p)
{
    PyObject *error = cx_exception(p->state, "InternalError");

    if (!p->options.isolate || ci_backend_has_memory(p->backend))
        return 0;
    PyOS_BeforeFork();
    pid_t child = fork();
    if (child == 0)
        compile_in_child(p);
    int why = errno; /* hooks may change it */
    PyOS_AfterFork_Parent();
    if (child < 0) {
        errno = why;
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    int status = wait_for(child, (double)p->options.compile_timeout);
    if (status == UNKNOWN)
        PyErr_SetString(error, "how the process that compiles it ended is unknown, because SIGCHLD is ignored, or its handler "
                               "has waited for that process");
    else if (status == KILLED)
        PyErr_Format(error, "the process that compiles it has not ended within compile_timeout, %ld s",
                     (long)p->options.compile_timeout);
    else if (status > 0 && WIFSIGNALED(status))
        PyErr_Format(error, "the process that compiles it was ended by signal %d", WTERMSIG(status));
    return PyErr_Occurred() ? -1 : 0;
}
