/* Counts, delays and failures of the dummy, and what Python sets them by. */
#include "_testing.h"

#include <pthread.h>

static const char *const call_names[] = {
#define CALL(name) #name,
    CALLS(CALL)
#undef CALL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counts[CALL_COUNT], lives[LIVE_COUNT];
static int delay_us, failing = -1; /* the CALL_... that fails from now on */
static long until_failure = -1;    /* number of calls until one fails; -1: none fails */

int32_t
testing_call(Call call)
{
    bool is_memory = call == CALL_allocate || call == CALL_share_allocate;
    pthread_mutex_lock(&lock);
    counts[call]++;
    bool fails = (int)call == failing || until_failure == 0;
    until_failure -= until_failure >= 0;
    pthread_mutex_unlock(&lock);
    return !fails ? CI_OK : is_memory ? CI_ERR_MEMORY : CI_ERR_DEVICE;
}

const char *
testing_name(Call call)
{
    return call_names[call];
}

void
testing_lives(Live what, int by)
{
    pthread_mutex_lock(&lock);
    lives[what] += by;
    pthread_mutex_unlock(&lock);
}

int
testing_delay(void)
{
    pthread_mutex_lock(&lock);
    int us = delay_us;
    pthread_mutex_unlock(&lock);
    return us;
}

static PyObject *
get_counts(PyObject *module, PyObject *unused)
{
    PyObject *dict = Py_BuildValue("{s:l,s:l,s:l}", "live", lives[LIVE_blocks], "handles",
                                   lives[LIVE_handles], "recordings", lives[LIVE_recordings]);
    (void)module, (void)unused;
    for (int k = 0; dict && k < CALL_COUNT; k++) {
        PyObject *value = PyLong_FromLong(counts[k]);
        if (!value || PyDict_SetItemString(dict, call_names[k], value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
set_delay(PyObject *module, PyObject *us)
{
    (void)module;
    delay_us = (int)PyLong_AsLong(us);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *
set_failing(PyObject *module, PyObject *name)
{
    const char *text = name == Py_None ? "" : PyUnicode_AsUTF8(name);
    (void)module;
    failing = -1;
    for (int k = 0; text && k < CALL_COUNT; k++)
        if (!strcmp(call_names[k], text))
            failing = k;
    return text ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
set_failing_after(PyObject *module, PyObject *calls)
{
    (void)module;
    pthread_mutex_lock(&lock);
    until_failure = PyLong_AsLong(calls);
    pthread_mutex_unlock(&lock);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef testing_methods[] = {
    {"counts", get_counts, METH_NOARGS, "Calls of each function; blocks, streams and events, and recordings, that live."},
    {"set_delay", set_delay, METH_O, "Microseconds before each task of a stream."},
    {"set_failing", set_failing, METH_O, "The function that fails from now on, or None."},
    {"set_failing_after", set_failing_after, METH_O,
     "This many calls succeed, and the next one fails; -1: all succeed."},
    {NULL, NULL, 0, NULL},
};
