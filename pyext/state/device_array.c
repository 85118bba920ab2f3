/* Arrays in the memory of a device; those of the CPU are ordinary ndarrays. Capture and replay see the others as
 * ndarrays whose data pointer is a device address; they only read shape, dtype and strides.
 *
 * The base of such an array is the owner of the memory, which also distinguishes it from a host array. No such
 * array may reach code that reads elements: the package keeps them inside Array, and a function called with them
 * never falls back to NumPy. */
#include "state/stream.h"

#include "state/array.h"
#include "state/docs.h"

static void
memory_dealloc(PyObject *self)
{
    CxDeviceMemory *memory = (CxDeviceMemory *)self;

    if (memory->block != NULL && memory->owner == NULL)
        ci_device_release(&memory->queue, memory->block, memory->size);
    Py_XDECREF(memory->owner);
    Py_XDECREF(memory->stream);
    cx_object_free(self);
}

CX_TYPE(cx_device_memory_spec, DeviceMemory, CxDeviceMemory, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, memory_dealloc));

CxDeviceMemory *
cx_device_memory_of(const CxState *state, PyObject *array)
{
    while (PyArray_Check(array)) {
        PyObject *base = PyArray_BASE((PyArrayObject *)array);
        if (base == NULL)
            return NULL;
        if ((PyObject *)Py_TYPE(base) == state->device_memory_type)
            return (CxDeviceMemory *)base;
        array = base;
    }
    return NULL;
}

bool
cx_is_device_array(const CxState *state, PyObject *array)
{
    return cx_device_memory_of(state, array) != NULL;
}

bool
cx_is_host_array(const CxState *state, PyObject *array)
{
    return PyArray_CheckExact(array) && !cx_is_device_array(state, array) &&
           cx_dtype_of_descr(PyArray_DESCR((PyArrayObject *)array)) != CI_DTYPE_none;
}

bool
cx_is_handle(const CxState *state, PyObject *array)
{
    return cx_is_device_array(state, array) || cx_is_host_array(state, array);
}

int
cx_device_number(const CxState *state, const CiOptions *options, PyObject *value)
{
    const CxDeviceMemory *memory =
        cx_has_devices(options) && value != NULL ? cx_device_memory_of(state, value) : NULL;
    return memory != NULL ? memory->queue.index : 0;
}

int
cx_check_device_input(const CxState *state, const CiOptions *options, PyObject *value, int device)
{
    const CxDeviceMemory *memory = cx_device_memory_of(state, value);
    int index = cx_has_devices(options) ? device : (int)options->device_index;

    if (memory != NULL && memory->queue.index == index)
        return 0;
    if (memory != NULL) {
        PyErr_Format(PyExc_TypeError, "an array of %s:%d where one of %s:%d was expected",
                     memory->queue.backend->device->name, memory->queue.index,
                     memory->queue.backend->device->name, index);
        return -1;
    }
    PyErr_Format(PyExc_TypeError,
                 "%s of the host together with arrays of a device: copy it with to_device, or "
                 "pass a Python number",
                 PyArray_Check(value) ? "an array" : "a NumPy scalar");
    return -1;
}

int
cx_device_order(CxState *state, const CiQueue *first, const CiQueue *later)
{
    int32_t status = first->stream == later->stream ? CI_OK : ci_device_order(first, later);
    return status == CI_OK ? 0 : cx_raise_device(state, later, status);
}

int
cx_device_memory_use(CxState *state, CxDeviceMemory *memory, const CiQueue *queue,
                     PyObject *stream)
{
    if (memory->queue.stream == queue->stream)
        return 0;
    if (cx_device_order(state, &memory->queue, queue) < 0)
        return -1;
    memory->queue.stream = queue->stream;
    Py_XINCREF(stream);
    Py_XSETREF(memory->stream, stream);
    return 0;
}

/* An array whose base is the memory; steals both references. */
static PyObject *
array_of(CxDeviceMemory *memory, void *data, PyArray_Descr *descr, int rank, const int64_t *sizes,
         const int64_t *strides)
{
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, (const npy_intp *)sizes,
                             (const npy_intp *)strides, data, NPY_ARRAY_WRITEABLE, NULL);
    if (array == NULL) {
        Py_DECREF(memory);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, (PyObject *)memory) < 0)
        Py_CLEAR(array);
    return array;
}

static CxDeviceMemory *
new_memory(CxState *state, const CiQueue *queue, PyObject *stream)
{
    PyTypeObject *type = (PyTypeObject *)state->device_memory_type;
    CxDeviceMemory *memory = (CxDeviceMemory *)type->tp_alloc(type, 0);

    if (memory == NULL)
        return NULL;
    memory->queue = *queue;
    memory->stream = Py_XNewRef(stream);
    return memory;
}

PyObject *
cx_device_array_over(CxState *state, const CiQueue *queue, PyObject *stream, PyObject *owner,
                     void *data, PyArray_Descr *descr, int rank, const int64_t *sizes,
                     const int64_t *strides)
{
    CxDeviceMemory *memory = new_memory(state, queue, stream);

    if (memory == NULL) {
        Py_DECREF(descr);
        return NULL;
    }
    memory->owner = Py_NewRef(owner);
    memory->block = data;
    return array_of(memory, data, descr, rank, sizes, strides);
}

PyObject *
cx_device_array_new(CxState *state, const CiQueue *queue, PyObject *stream, CiDtype dtype, int rank,
                    const int64_t *sizes, const int64_t *strides)
{
    PyArray_Descr *descr = cx_descr(state, dtype);
    CxDeviceMemory *memory = new_memory(state, queue, stream);

    if (memory == NULL)
        return NULL;
    memory->size = (size_t)cx_count(rank, sizes) * (size_t)ci_dtype_size(dtype);
    int32_t status = ci_device_allocate(queue, memory->size, &memory->block);
    if (status != CI_OK) {
        cx_raise_device(state, queue, status);
        Py_DECREF(memory);
        return NULL;
    }
    Py_INCREF(descr);
    return array_of(memory, memory->block, descr, rank, sizes, strides);
}

/* ---- functions of the module ---- */

/* device_array(array, device): copies an array to the device, in the same stride order. A copy for the
 * CPU is an ordinary array. */
static PyObject *
device_array(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyArrayObject *given = NULL, *dense = NULL;
    PyObject *array = NULL, *stream = NULL;
    PyThreadState *saved = NULL;
    const char *device = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!s:device_array", &PyArray_Type, &given, &device))
        return NULL;
    CiQueue queue;
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR(given));
    if (cx_find_device(state, device, &queue) < 0)
        return NULL;
    bool is_host = queue.backend->device == ci_host_device();
    if (is_host && queue.index != 0)
        return PyErr_Format(PyExc_ValueError, "there is no device '%s': the host is one", device);
    if (!is_host && cx_find_memory(state, device, &queue) < 0)
        return NULL;
    if (dtype == CI_DTYPE_none)
        return PyErr_Format(PyExc_TypeError, "a device cannot hold an array of dtype %R",
                            PyArray_DESCR(given));
    dense = (PyArrayObject *)PyArray_NewCopy(given, NPY_KEEPORDER);
    if (dense == NULL || is_host)
        return (PyObject *)dense;
    if (cx_enter_stream(state, &queue, &stream) == 0)
        array = cx_device_array_new(state, &queue, stream, dtype, PyArray_NDIM(dense),
                                    (const int64_t *)PyArray_DIMS(dense),
                                    (const int64_t *)PyArray_STRIDES(dense));
    if (array != NULL) {
        CX_RELEASE(saved);
        int32_t status =
            queue.backend->device->copy_in(&queue, PyArray_DATA((PyArrayObject *)array),
                                           PyArray_DATA(dense), (size_t)PyArray_NBYTES(dense));
        CX_TAKE(saved);
        if (status != CI_OK) {
            cx_raise_device(state, &queue, status);
            Py_CLEAR(array);
        }
    }
    Py_DECREF(dense);
    Py_XDECREF(stream);
    return array;
}

/* Copies the bytes from the first to the last element to a host array; also returns the offset
 * of the first element. */
static PyObject *
copy_extent(CxState *state, CxDeviceMemory *memory, PyArrayObject *array, int64_t *offset)
{
    char *low = NULL, *high = NULL;
    PyThreadState *saved = NULL;

    cx_array_extent((PyObject *)array, &low, &high);
    npy_intp size = (npy_intp)(high - low);
    PyObject *bytes = PyArray_SimpleNew(1, &size, NPY_UINT8);
    if (bytes == NULL)
        return NULL;
    CX_RELEASE(saved);
    int32_t status = memory->queue.backend->device->copy_out(
        &memory->queue, PyArray_DATA((PyArrayObject *)bytes), low, (size_t)size);
    CX_TAKE(saved);
    if (status != CI_OK) {
        cx_raise_device(state, &memory->queue, status);
        Py_CLEAR(bytes);
    }
    *offset = PyArray_BYTES(array) - low;
    return bytes;
}

PyObject *
cx_device_host_copy(CxState *state, PyObject *array)
{
    CxDeviceMemory *memory = cx_device_memory_of(state, array);
    int64_t offset = 0;

    if (cx_is_host_array(state, array))
        return PyArray_NewCopy((PyArrayObject *)array, NPY_KEEPORDER);
    if (memory == NULL)
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    PyArrayObject *a = (PyArrayObject *)array;
    PyArray_Descr *descr = PyArray_DESCR(a);
    if (PyArray_SIZE(a) == 0) {
        Py_INCREF(descr);
        return PyArray_Zeros(PyArray_NDIM(a), PyArray_DIMS(a), descr, 0);
    }
    PyObject *bytes = copy_extent(state, memory, a, &offset);
    if (bytes == NULL)
        return NULL;
    Py_INCREF(descr);
    PyObject *view = PyArray_NewFromDescr(
        &PyArray_Type, descr, PyArray_NDIM(a), PyArray_DIMS(a), PyArray_STRIDES(a),
        PyArray_BYTES((PyArrayObject *)bytes) + offset, NPY_ARRAY_WRITEABLE, NULL);
    if (view == NULL) {
        Py_DECREF(bytes);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)view, bytes) < 0)
        Py_CLEAR(view);
    return view;
}

/* device_numpy(array): copies an Array's handle to a new ordinary array. */
static PyObject *
device_numpy(PyObject *module, PyObject *array)
{
    CX_ENTRY();
    return cx_device_host_copy(PyModule_GetState(module), array);
}

/* device_update(array, copy): copies back the contents of an array from device_numpy, after they
 * were written to. */
static PyObject *
device_update(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyArrayObject *array = NULL, *copy = NULL;
    PyThreadState *saved = NULL;
    char *low = NULL, *high = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!:device_update", &PyArray_Type, &array, &PyArray_Type, &copy))
        return NULL;
    CxDeviceMemory *memory = cx_device_memory_of(state, (PyObject *)array);
    PyArrayObject *bytes = (PyArrayObject *)PyArray_BASE(copy);
    if (PyArray_SIZE(array) == 0)
        Py_RETURN_NONE;
    cx_array_extent((PyObject *)array, &low, &high);
    if (memory == NULL || bytes == NULL || !PyArray_Check((PyObject *)bytes) ||
        PyArray_NBYTES(bytes) != high - low)
        return PyErr_Format(PyExc_TypeError, "an array of a device and its copy are expected");
    CX_RELEASE(saved);
    int32_t status = memory->queue.backend->device->copy_in(
        &memory->queue, low, PyArray_DATA(bytes), (size_t)(high - low));
    CX_TAKE(saved);
    return cx_device_none(state, &memory->queue, status);
}

/* is_device_array(array) */
static PyObject *
is_device_array(PyObject *module, PyObject *array)
{
    return PyBool_FromLong(cx_is_device_array(PyModule_GetState(module), array));
}

/* device_synchronize(device): waits for all launches. */
static PyObject *
device_synchronize(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    PyThreadState *saved = NULL;
    const char *device = PyUnicode_AsUTF8(name);
    CiQueue queue;

    CX_ENTRY();
    if (device == NULL || cx_find_device(state, device, &queue) < 0)
        return NULL;
    if (queue.backend->device->synchronize == NULL) /* nothing there is asynchronous */
        Py_RETURN_NONE;
    CX_RELEASE(saved);
    int32_t status = ci_device_wait(&queue);
    CX_TAKE(saved);
    return cx_device_none(state, &queue, status);
}

/* device_of(array): for example ("cuda", 1). */
static PyObject *
device_of(PyObject *module, PyObject *array)
{
    const CxState *state = PyModule_GetState(module);
    const CxDeviceMemory *memory = cx_device_memory_of(state, array);
    if (cx_is_host_array(state, array))
        return Py_BuildValue("(si)", ci_host_device()->name, 0);
    if (memory == NULL)
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    return Py_BuildValue("(si)", memory->queue.backend->device->name, memory->queue.index);
}

/* device_count(name): the number of such devices in the machine. */
static PyObject *
device_count(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    const char *device = PyUnicode_AsUTF8(name);
    CiQueue queue;
    int count = 1;

    CX_ENTRY();
    if (device == NULL || cx_find_device(state, device, &queue) < 0)
        return NULL;
    if (queue.backend->device->count != NULL)
        count = queue.backend->device->count(&queue);
    return PyErr_Occurred() ? NULL : PyLong_FromLong(count);
}

/* device_open("cuda:1"): starts the initialisation for which the first use would wait. */
static PyObject *
device_open(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    const char *device = PyUnicode_AsUTF8(name);
    PyThreadState *saved = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (device == NULL || cx_find_device(state, device, &queue) < 0)
        return NULL;
    if (queue.backend->device->count != NULL) {
        CX_RELEASE(saved);
        (void)queue.backend->device->count(&queue);
        CX_TAKE(saved);
    }
    Py_RETURN_NONE;
}

/* device_properties("cuda:1"): (name, memory, capability, units, identity) */
static PyObject *
device_properties(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    const char *device = PyUnicode_AsUTF8(name);
    CiDeviceProperties is = {.units = 0};
    CiQueue queue;

    CX_ENTRY();
    if (device == NULL || cx_find_device(state, device, &queue) < 0)
        return NULL;
    if (queue.backend->device->properties != NULL) {
        int32_t status = queue.backend->device->properties(&queue, &is);
        if (status != CI_OK) {
            cx_raise_device(state, &queue, status);
            return NULL;
        }
    }
    return Py_BuildValue("(sLiiy#)", is.name, (long long)is.memory, is.capability, is.units,
                         (const char *)is.identity, (Py_ssize_t)sizeof is.identity);
}

PyMethodDef cx_device_methods[] = {
    CX_FUNCTION(device_of, device_of, METH_O),
    CX_FUNCTION(device_count, device_count, METH_O),
    CX_FUNCTION(device_open, device_open, METH_O),
    CX_FUNCTION(device_properties, device_properties, METH_O),
    CX_FUNCTION(device_array, device_array, METH_VARARGS),
    CX_FUNCTION(device_numpy, device_numpy, METH_O),
    CX_FUNCTION(device_update, device_update, METH_VARARGS),
    CX_FUNCTION(is_device_array, is_device_array, METH_O),
    CX_FUNCTION(device_synchronize, device_synchronize, METH_O),
    {NULL, NULL, 0, NULL},
};
