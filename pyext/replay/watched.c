/* Runs the original function while a tool records the lines that run: a trace function
 * (sys.settrace), or a tool of sys.monitoring that receives line events. Coverage tools and
 * debuggers do so, and a kernel runs no lines.
 *
 * A capture runs the lines of both branches of an `if`, so it would report lines that did not
 * run. The check compares versions, in C, because a profiler would see a call of Python. From 3.13
 * on sys.monitoring has a version that changes with the tools' events. */
#include "replay/watched.h"

#if PY_VERSION_HEX >= 0x030D0000
static int
version_of(CxState *state, PyObject *code, uint64_t *version)
{
    enum { EVENT_BITS = 8 }; /* of the eval breaker; the version is stored above them */
    (void)state, (void)code;
    *version = (uint64_t)(PyThreadState_Get()->eval_breaker >> EVENT_BITS);
    return 0;
}
#elif PY_VERSION_HEX >= 0x030C0000
/* Adds an int that a function of sys.monitoring returns to a hash (FNV-1a). Steals it. */
static int
add_events(PyObject *events, uint64_t *hash)
{
    unsigned long bits = events == NULL ? (unsigned long)-1 : PyLong_AsUnsignedLong(events);

    Py_XDECREF(events);
    *hash = (*hash ^ bits) * UINT64_C(0x100000001B3);
    return PyErr_Occurred() ? -1 : 0;
}

/* The events that a tool takes, of all code and of this code. */
static int
add_tool(PyObject *monitoring, int tool, PyObject *code, uint64_t *hash)
{
    if (add_events(PyObject_CallMethod(monitoring, "get_events", "i", tool), hash) < 0)
        return -1;
    if (code == NULL)
        return 0;
    return add_events(PyObject_CallMethod(monitoring, "get_local_events", "iO", tool, code), hash);
}

/* A hash of the events that tools take: 3.12 shows no version. It is 0 if there is no tool. */
static int
version_of(CxState *state, PyObject *code, uint64_t *version)
{
    enum { TOOLS = 6 };
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */

    *version = 0;
    if (monitoring == NULL)
        return 0;
    if (state->get_tool == NULL)
        state->get_tool = PyObject_GetAttrString(monitoring, "get_tool");
    for (int tool = 0; tool < TOOLS; tool++) {
        PyObject *number = state->get_tool ? PyLong_FromLong(tool) : NULL;
        PyObject *name = number ? PyObject_CallOneArg(state->get_tool, number) : NULL;
        bool is_used = name != Py_None;
        Py_XDECREF(number);
        Py_XDECREF(name);
        *version += is_used ? (uint64_t)tool + 1 : 0;
        if (name == NULL || (is_used && add_tool(monitoring, tool, code, version) < 0))
            return -1;
    }
    return 0;
}
#else
static int
version_of(CxState *state, PyObject *code, uint64_t *version)
{
    (void)state, (void)code;
    *version = 0;
    return 0;
}
#endif

/* Calls a method of the job that returns a bool; -1 with an exception. */
static int
call_miss(PyObject *miss, const char *method)
{
    PyObject *job = PyMethod_Check(miss) ? PyMethod_GET_SELF(miss) : NULL;
    PyObject *answer = job ? PyObject_CallMethod(job, method, NULL) : Py_NewRef(Py_False);
    int truth = answer ? PyObject_IsTrue(answer) : -1;

    Py_XDECREF(answer);
    return truth;
}

int
cx_is_watched(CxState *state, CxWatched *watched, PyObject *code, PyObject *miss)
{
    uint64_t version;

    if (version_of(state, code, &version) < 0)
        return -1;
    if (version != watched->version) {
        int answer = call_miss(miss, "is_watched");
        if (answer < 0)
            return -1;
        watched->is_watched = answer != 0;
        watched->version = version;
    }
    if (PyThreadState_Get()->c_tracefunc == NULL && !watched->is_watched)
        return 0;
    if (!watched->is_noted && call_miss(miss, "note_watched") < 0)
        return -1;
    watched->is_noted = true;
    return 1;
}
