/* Coverage tools and debuggers record the lines that run. A kernel runs no lines, and a capture
 * runs the lines of both branches of an `if`. So the original function runs while a trace
 * function is set (sys.settrace) or a tool of sys.monitoring receives line events. The check is
 * one comparison: sys.monitoring has a version that changes with the tools' events. */
#include "replay/watched.h"

#if PY_VERSION_HEX >= 0x030D0000
static int
version_of(CxState *state, uint64_t *version)
{
    enum { EVENT_BITS = 8 }; /* of the eval breaker; the version is stored above them */
    (void)state;
    *version = (uint64_t)(PyThreadState_Get()->eval_breaker >> EVENT_BITS);
    return 0;
}
#elif PY_VERSION_HEX >= 0x030C0000
/* The version that code gets when it begins to run. */
static int
version_of(CxState *state, uint64_t *version)
{
    PyObject *done = state->nothing ? PyObject_CallNoArgs(state->nothing) : NULL;

    *version = 0;
    if (done == NULL)
        return state->nothing ? -1 : 0;
    Py_DECREF(done);
    *version = ((PyCodeObject *)PyFunction_GET_CODE(state->nothing))->_co_instrumentation_version;
    return 0;
}
#else
static int
version_of(CxState *state, uint64_t *version)
{
    (void)state;
    *version = 0;
    return 0;
}
#endif

/* Calls a method of the job that returns a bool; -1 with an exception. */
static int
ask(PyObject *miss, const char *method)
{
    PyObject *job = PyMethod_Check(miss) ? PyMethod_GET_SELF(miss) : NULL;
    PyObject *answer = job ? PyObject_CallMethod(job, method, NULL) : Py_NewRef(Py_False);
    int truth = answer ? PyObject_IsTrue(answer) : -1;

    Py_XDECREF(answer);
    return truth;
}

int
cx_is_watched(CxState *state, CxWatched *watched, PyObject *miss)
{
    uint64_t version;

    if (version_of(state, &version) < 0)
        return -1;
    if (version != watched->version) {
        int answer = ask(miss, "is_watched");
        if (answer < 0)
            return -1;
        watched->is_watched = answer != 0;
        watched->version = version;
    }
    if (PyThreadState_Get()->c_tracefunc == NULL && !watched->is_watched)
        return 0;
    if (!watched->is_told && ask(miss, "note_watched") < 0)
        return -1;
    watched->is_told = true;
    return 1;
}
