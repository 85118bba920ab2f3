/* Asynchronous copies to the host. They go to memory that the device accesses directly; an event
 * marks their completion. */
#include "state/stream.h"

#include "state/array.h"
#include "state/docs.h"

typedef struct HostBlock {
    CiQueue queue;
    void *block;
    size_t size;
    PyObject *event; /* of the copy */
} HostBlock;

#define HOST_BLOCK "cinductor.host_block"

/* Waits first, because a copy to the block may be in flight. Other threads run meanwhile: the device may wait for
 * what they give it. */
static void
free_host_block(PyObject *capsule)
{
    HostBlock *host = PyCapsule_GetPointer(capsule, HOST_BLOCK);
    const CiDevice *device = host->queue.backend->device;
    PyThreadState *saved = NULL;

    CX_RELEASE(saved);
    (void)device->event_synchronize(&host->queue, cx_event_of(host->event));
    CX_TAKE(saved);
    device->host_release(&host->queue, host->block, host->size);
    Py_DECREF(host->event);
    PyMem_Free(host);
}

/* The capsule of a block for copies from the memory; steals the event if it succeeds. */
static PyObject *
new_host_block(CxState *state, const CxDeviceMemory *memory, size_t size, PyObject *event)
{
    HostBlock *host = PyMem_Calloc(1, sizeof *host);
    if (host == NULL)
        return PyErr_NoMemory();
    *host = (HostBlock){.queue = memory->queue, .size = size, .event = event};
    int32_t status = host->queue.backend->device->host_allocate(&host->queue, size, &host->block);
    if (status != CI_OK) {
        cx_raise_device(state, &host->queue, status);
        PyMem_Free(host);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(host, HOST_BLOCK, free_host_block);
    if (capsule == NULL) {
        host->queue.backend->device->host_release(&host->queue, host->block, size);
        PyMem_Free(host);
    }
    return capsule;
}

/* Enqueues the copy and the event on the stream that used the memory last. */
static int
start_copy(CxState *state, CxDeviceMemory *memory, const HostBlock *host, const void *from)
{
    const CiDevice *device = memory->queue.backend->device;
    int32_t status = device->copy_out_start(&memory->queue, host->block, from, host->size);

    if (status == CI_OK)
        status = device->event_record(&memory->queue, cx_event_of(host->event));
    if (status != CI_OK) /* it may have started, and there is no event for its end */
        (void)device->synchronize(&memory->queue);
    return status == CI_OK ? 0 : cx_raise_device(state, &memory->queue, status);
}

static PyObject *
bytes_over(PyObject *capsule, const HostBlock *host)
{
    npy_intp size = (npy_intp)host->size;
    PyObject *bytes = PyArray_SimpleNewFromData(1, &size, NPY_UINT8, host->block);

    if (bytes == NULL) {
        Py_DECREF(capsule);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)bytes, capsule) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

/* device_start_copy(array) -> (bytes, offset, event): starts to copy the bytes from the first to
 * the last element; they may be read after the event. offset is that of the first element. None
 * if the device has no such copies (the CPU has none), or there is nothing to copy. */
static PyObject *
device_start_copy(PyObject *module, PyObject *array)
{
    CxState *state = PyModule_GetState(module);
    CxDeviceMemory *memory = cx_device_memory_of(state, array);
    char *low = NULL, *high = NULL;

    CX_ENTRY();
    if (cx_is_host_array(state, array))
        Py_RETURN_NONE;
    if (memory == NULL)
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    cx_array_extent(array, &low, &high);
    if (memory->queue.backend->device->copy_out_start == NULL || low == high)
        Py_RETURN_NONE;
    PyObject *event = cx_event_new(state, &memory->queue);
    if (event == NULL)
        return NULL;
    PyObject *capsule = new_host_block(state, memory, (size_t)(high - low), event);
    if (capsule == NULL) {
        Py_DECREF(event);
        return NULL;
    }
    const HostBlock *host = PyCapsule_GetPointer(capsule, HOST_BLOCK);
    if (start_copy(state, memory, host, low) < 0) {
        Py_DECREF(capsule);
        return NULL;
    }
    PyObject *bytes = bytes_over(capsule, host);
    if (bytes == NULL)
        return NULL;
    return Py_BuildValue("(NnO)", bytes,
                         (Py_ssize_t)(PyArray_BYTES((PyArrayObject *)array) - low), event);
}

PyMethodDef cx_host_copy_methods[] = {
    CX_FUNCTION(device_start_copy, device_start_copy, METH_O),
    {NULL, NULL, 0, NULL},
};
