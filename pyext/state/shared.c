/* Device memory shared between processes. A block, made here or opened, is owned by a capsule,
 * which is the owner of arrays over it (device_array.h). */
#include "state/stream.h"

#include "state/array.h"
#include "state/docs.h"

typedef struct SharedBlock {
    CiQueue queue; /* without a stream */
    void *block;
    size_t size;
    bool is_opened; /* made by another process */
} SharedBlock;

#define SHARED_BLOCK "cinductor.shared_block"

/* No array of this process uses it any more, but work of a stream may. */
static void
free_shared_block(PyObject *capsule)
{
    SharedBlock *shared = PyCapsule_GetPointer(capsule, SHARED_BLOCK);
    PyThreadState *saved = NULL;

    CX_RELEASE(saved);
    ci_device_unshare(&shared->queue, shared->block, shared->size, shared->is_opened);
    CX_TAKE(saved);
    PyMem_Free(shared);
}

/* The queue of a device that can share memory; -1 with an exception. */
static int
find_sharing(CxState *state, const char *text, CiQueue *queue)
{
    if (cx_find_memory(state, text, queue) < 0)
        return -1;
    if (queue->backend->device->share_allocate != NULL)
        return 0;
    PyErr_Format(PyExc_ValueError, "device '%s' has no memory that other processes can open", text);
    return -1;
}

/* The capsule of a block that `take` allocates or opens. */
static PyObject *
new_shared_block(CxState *state, const CiQueue *queue, size_t size, const CiShareName *name,
                 SharedBlock **out)
{
    const CiDevice *device = queue->backend->device;
    SharedBlock *shared = PyMem_Calloc(1, sizeof *shared);
    PyThreadState *saved = NULL;

    if (shared == NULL)
        return PyErr_NoMemory();
    *shared = (SharedBlock){.queue = *queue, .size = size, .is_opened = name != NULL};
    CX_RELEASE(saved);
    int32_t status = name != NULL
                         ? device->share_open(queue, name, &shared->block, &shared->size)
                         : ci_device_share(queue, size, &shared->block);
    CX_TAKE(saved);
    PyObject *capsule =
        status == CI_OK ? PyCapsule_New(shared, SHARED_BLOCK, free_shared_block) : NULL;
    *out = shared;
    if (capsule != NULL)
        return capsule;
    if (status != CI_OK)
        cx_raise_device(state, queue, status);
    PyMem_Free(shared);
    return NULL;
}

/* device_shared(like, device): an uninitialised array with like's dtype, shape and stride order. */
static PyObject *
device_shared(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyArrayObject *like = NULL;
    PyObject *stream = NULL;
    const char *device = NULL;
    SharedBlock *shared = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!s:device_shared", &PyArray_Type, &like, &device) ||
        find_sharing(state, device, &queue) < 0)
        return NULL;
    PyArrayObject *dense =
        (PyArrayObject *)PyArray_NewLikeArray(like, NPY_KEEPORDER, NULL, 0);
    if (dense == NULL)
        return NULL;
    PyObject *array = NULL, *capsule = NULL;
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR(like));
    if (dtype == CI_DTYPE_none)
        PyErr_Format(PyExc_TypeError, "a device cannot hold an array of dtype %R", PyArray_DESCR(like));
    else
        capsule =
            new_shared_block(state, &queue, (size_t)PyArray_NBYTES(dense), NULL, &shared);
    if (capsule != NULL && cx_enter_stream(state, &queue, &stream) == 0) {
        PyArray_Descr *descr = cx_descr(state, dtype);
        Py_INCREF(descr);
        array = cx_device_array_over(state, &queue, stream, capsule, shared->block, descr,
                                     PyArray_NDIM(dense), (const int64_t *)PyArray_DIMS(dense),
                                     (const int64_t *)PyArray_STRIDES(dense));
    }
    Py_XDECREF(capsule);
    Py_XDECREF(stream);
    Py_DECREF(dense);
    return array;
}

/* share_name(array) -> (name, offset): a name by which others open the block, and the offset of
 * the first element. Waits for the array's kernels. */
static PyObject *
share_name(PyObject *module, PyObject *array)
{
    CxState *state = PyModule_GetState(module);
    CxDeviceMemory *memory = cx_device_memory_of(state, array);
    PyThreadState *saved = NULL;
    CiShareName name;

    CX_ENTRY();
    if (memory == NULL && !cx_is_host_array(state, array))
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    SharedBlock *shared = memory != NULL && memory->owner != NULL && PyCapsule_IsValid(memory->owner, SHARED_BLOCK)
                              ? PyCapsule_GetPointer(memory->owner, SHARED_BLOCK)
                              : NULL;
    if (shared == NULL)
        return PyErr_Format(PyExc_ValueError, "the array's memory is not for other processes to open: "
                                              "to_device(array, shared=True) makes a copy whose is");
    if (shared->is_opened)
        return PyErr_Format(PyExc_ValueError, "the array's memory is another process's to share");
    const CiDevice *device = memory->queue.backend->device;
    CX_RELEASE(saved);
    int32_t status = device->synchronize(&memory->queue);
    if (status == CI_OK)
        status = device->share_name(&memory->queue, shared->block, &name);
    CX_TAKE(saved);
    if (status != CI_OK) {
        cx_raise_device(state, &memory->queue, status);
        return NULL;
    }
    int64_t offset = PyArray_BYTES((PyArrayObject *)array) - (char *)shared->block;
    return Py_BuildValue("(y#L)", name.bytes, (Py_ssize_t)sizeof name.bytes, (long long)offset);
}

/* share_open(device, name) -> (owner, address, size): opens a block of another process; the
 * owner closes it. */
static PyObject *
share_open(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    const char *device = NULL, *bytes = NULL;
    Py_ssize_t length = 0;
    SharedBlock *shared = NULL;
    CiShareName name;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sy#:share_open", &device, &bytes, &length) ||
        find_sharing(state, device, &queue) < 0)
        return NULL;
    if (length != (Py_ssize_t)sizeof name.bytes)
        return PyErr_Format(PyExc_ValueError, "a name of %zd bytes, not %zd", length,
                            (Py_ssize_t)sizeof name.bytes);
    memcpy(name.bytes, bytes, sizeof name.bytes);
    PyObject *capsule = new_shared_block(state, &queue, 0, &name, &shared);
    if (capsule == NULL)
        return NULL;
    return Py_BuildValue("(NNn)", capsule, PyLong_FromVoidPtr(shared->block),
                         (Py_ssize_t)shared->size);
}

PyMethodDef cx_shared_methods[] = {
    CX_FUNCTION(device_shared, device_shared, METH_VARARGS),
    CX_FUNCTION(share_name, share_name, METH_O),
    CX_FUNCTION(share_open, share_open, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
