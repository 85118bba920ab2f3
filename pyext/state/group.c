/* Groups of devices that do collectives together. */
#include "device/collective.h"
#include "state/docs.h"
#include "state/stream.h"

/* The queue of a device that has collectives; -1 with an exception. */
static int
find_member(CxState *state, const char *device, CiQueue *queue)
{
    if (cx_find_device(state, device, queue) < 0)
        return -1;
    if (queue->backend->device->group_open != NULL)
        return 0;
    PyErr_Format(PyExc_ValueError, "device '%s' has no collectives", device);
    return -1;
}

/* group_check(device) */
static PyObject *
group_check(PyObject *module, PyObject *device)
{
    const char *text = PyUnicode_AsUTF8(device);
    CiQueue queue;

    CX_ENTRY();
    if (text == NULL || find_member(PyModule_GetState(module), text, &queue) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* group_name(device) -> bytes */
static PyObject *
group_name(PyObject *module, PyObject *device)
{
    CxState *state = PyModule_GetState(module);
    const char *text = PyUnicode_AsUTF8(device);
    CiGroupName name = {{0}};
    PyThreadState *saved = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (text == NULL || find_member(state, text, &queue) < 0)
        return NULL;
    CX_RELEASE(saved);
    int32_t status = queue.backend->device->group_name(&queue, &name);
    CX_TAKE(saved);
    if (status != CI_OK) {
        cx_raise_device(state, &queue, status);
        return NULL;
    }
    return PyBytes_FromStringAndSize(name.bytes, (Py_ssize_t)sizeof name.bytes);
}

/* group_open(device, name, unique, rank, count, timeout) */
static PyObject *
group_open(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    const char *device = NULL, *name = NULL, *bytes = NULL;
    Py_ssize_t length = 0;
    int rank = 0, count = 0;
    double timeout = 0;
    CiGroupName unique;
    PyThreadState *saved = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "ssy#iid:group_open", &device, &name, &bytes, &length, &rank, &count,
                          &timeout) ||
        find_member(state, device, &queue) < 0)
        return NULL;
    if (length != (Py_ssize_t)sizeof unique.bytes || !(timeout > 0 && timeout < 1e9)) {
        PyErr_SetString(PyExc_ValueError, "wanted: a name from group_name, and seconds above 0");
        return NULL;
    }
    memcpy(unique.bytes, bytes, sizeof unique.bytes);
    CX_RELEASE(saved);
    int32_t status = ci_group_open(&queue, name, &unique, rank, count, timeout < 1e-3 ? 1 : (int64_t)(timeout * 1e3));
    CX_TAKE(saved);
    if (status != CI_ERR_VALUE)
        return cx_device_none(state, &queue, status);
    return PyErr_Format(PyExc_ValueError,
                        "device '%s' cannot become member %d of %d of group '%s': it is a member already, or the "
                        "name or the number is not accepted",
                        device, rank, count, name);
}

/* group_close(device, name) */
static PyObject *
group_close(PyObject *module, PyObject *args)
{
    const char *device = NULL, *name = NULL;
    PyThreadState *saved = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "ss:group_close", &device, &name) ||
        find_member(PyModule_GetState(module), device, &queue) < 0)
        return NULL;
    CX_RELEASE(saved);
    ci_group_close(&queue, name);
    CX_TAKE(saved);
    Py_RETURN_NONE;
}

PyMethodDef cx_group_methods[] = {
    CX_FUNCTION(group_check, group_check, METH_O),
    CX_FUNCTION(group_name, group_name, METH_O),
    CX_FUNCTION(group_open, group_open, METH_VARARGS),
    CX_FUNCTION(group_close, group_close, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
