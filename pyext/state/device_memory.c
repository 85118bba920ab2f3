/* Functions of the module about device memory: the amount in use, its limit, and arrays over
 * memory that another package owns. */
#include "state/stream.h"

#include "state/array.h"
#include "state/docs.h"

int
cx_device_enter(CxState *state, CiQueue *queue, PyObject **stream, PyObject *const *objects,
                int count)
{
    if (!ci_backend_has_memory(queue->backend))
        return 0;
    if (cx_enter_stream(state, queue, stream) < 0)
        return -1;
    for (int k = 0; k < count; k++) {
        CxDeviceMemory *memory =
            objects[k] != NULL ? cx_device_memory_of(state, objects[k]) : NULL;
        if (memory != NULL && memory->queue.index == queue->index &&
            cx_device_memory_use(state, memory, queue, *stream) < 0)
            return -1;
    }
    return 0;
}

/* memory_use(device): a dict of numbers */
static PyObject *
memory_use(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    size_t reserved, left = 0, all = 0;
    CiMemoryUse use;
    CiQueue queue;

    CX_ENTRY();
    if (cx_find_memory(state, PyUnicode_AsUTF8(name), &queue) < 0)
        return NULL;
    const CiDevice *device = queue.backend->device;
    ci_memory_use(&queue, &use);
    reserved = (size_t)use.allocated;
    int32_t status = device->reserved != NULL ? device->reserved(&queue, &reserved) : CI_OK;
    if (status == CI_OK && device->memory_left != NULL)
        status = device->memory_left(&queue, &left, &all);
    if (status != CI_OK) {
        cx_raise_device(state, &queue, status);
        return NULL;
    }
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:n,s:n,s:n,s:L}", "allocated",
                         (long long)use.allocated, "peak", (long long)use.peak, "blocks",
                         (long long)use.blocks, "allocations", (long long)use.allocations,
                         "retries", (long long)use.retries, "reserved", (Py_ssize_t)reserved,
                         "left", (Py_ssize_t)left, "total", (Py_ssize_t)all, "limit",
                         (long long)use.limit);
}

/* memory_forget_peak(device) */
static PyObject *
memory_forget_peak(PyObject *module, PyObject *name)
{
    CiQueue queue;

    CX_ENTRY();
    if (cx_find_memory(PyModule_GetState(module), PyUnicode_AsUTF8(name), &queue) < 0)
        return NULL;
    ci_memory_forget_peak(&queue);
    Py_RETURN_NONE;
}

/* memory_bound(device, limit, keep): in bytes. 0 means no limit; -1 leaves the amount of cached
 * memory unchanged. */
static PyObject *
memory_bound(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    const char *device = NULL;
    long long limit = 0, keep = -1;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sLL:memory_bound", &device, &limit, &keep) ||
        cx_find_memory(state, device, &queue) < 0)
        return NULL;
    int32_t status = ci_memory_bound(&queue, limit, keep);
    return cx_device_none(state, &queue, status);
}

/* memory_give_back(device): frees cached memory. */
static PyObject *
memory_give_back(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    CiQueue queue;

    CX_ENTRY();
    if (cx_find_memory(state, PyUnicode_AsUTF8(name), &queue) < 0)
        return NULL;
    int32_t status = ci_memory_give_back(&queue);
    return cx_device_none(state, &queue, status);
}

/* device_over(owner, device, address, like, stream): an array over memory of the owner. like: an
 * array with the dtype, shape and strides, whose elements are not read; stream: its work comes
 * first, or None. */
static PyObject *
device_over(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *owner = NULL, *address = NULL, *theirs = NULL, *stream = NULL;
    PyArrayObject *like = NULL;
    const char *device = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OsOO!O:device_over", &owner, &device, &address, &PyArray_Type,
                          &like, &theirs))
        return NULL;
    if (cx_find_memory(state, device, &queue) < 0)
        return NULL;
    CiQueue first = queue;
    first.stream = theirs != Py_None ? PyLong_AsVoidPtr(theirs) : NULL;
    void *data = PyLong_AsVoidPtr(address);
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR(like));
    if (PyErr_Occurred())
        return NULL;
    if (dtype == CI_DTYPE_none)
        return PyErr_Format(PyExc_TypeError, "a device cannot hold an array of dtype %R",
                            PyArray_DESCR(like));
    if (cx_enter_stream(state, &queue, &stream) < 0)
        return NULL;
    PyObject *array = NULL;
    if (theirs == Py_None || queue.backend->device->stream_open == NULL ||
        cx_device_order(state, &first, &queue) == 0) {
        PyArray_Descr *descr = cx_descr(state, dtype);
        Py_INCREF(descr);
        array = cx_device_array_over(state, &queue, stream, owner, data, descr, PyArray_NDIM(like),
                                     (const int64_t *)PyArray_DIMS(like),
                                     (const int64_t *)PyArray_STRIDES(like));
    }
    Py_XDECREF(stream);
    return array;
}

PyMethodDef cx_device_memory_methods[] = {
    CX_FUNCTION(memory_use, memory_use, METH_O),
    CX_FUNCTION(memory_forget_peak, memory_forget_peak, METH_O),
    CX_FUNCTION(memory_bound, memory_bound, METH_VARARGS),
    CX_FUNCTION(memory_give_back, memory_give_back, METH_O),
    CX_FUNCTION(device_over, device_over, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
