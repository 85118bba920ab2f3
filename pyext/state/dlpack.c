/* Exports and imports DLPack tensors, in the structs of version 1.0 and of earlier versions
 * (dmlc.github.io/dlpack).
 *
 * An exported capsule holds the array. An imported tensor is held by a capsule of cinductor's,
 * which calls the producer's deleter when the last array over that memory is gone. */
#include "state/dlpack.h"

#include "state/array.h"
#include "state/docs.h"

typedef CxDlTensor Tensor;

typedef struct Managed Managed;
struct Managed {
    Tensor tensor;
    void *context;
    void (*deleter)(Managed *self);
};

typedef struct Versioned Versioned;
struct Versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(Versioned *self);
    uint64_t flags;
    Tensor tensor;
};

enum { FLAG_read_only = 1 };
enum { CODE_int, CODE_uint, CODE_float, CODE_bfloat = 4, CODE_complex, CODE_bool };

#define PLAIN "dltensor"
#define VERSIONED "dltensor_versioned"
#define OWNED "cinductor.owned_tensor"
#define OWNED_VERSIONED "cinductor.owned_tensor_versioned"

static const uint8_t codes[CI_DTYPE_COUNT] = {
    [CI_DTYPE_bool] = CODE_bool, [CI_DTYPE_u8] = CODE_uint,     [CI_DTYPE_u16] = CODE_uint,
    [CI_DTYPE_u32] = CODE_uint,  [CI_DTYPE_u64] = CODE_uint,    [CI_DTYPE_f16] = CODE_float,
    [CI_DTYPE_f32] = CODE_float, [CI_DTYPE_f64] = CODE_float,   [CI_DTYPE_c64] = CODE_complex,
    [CI_DTYPE_bf16] = CODE_bfloat, [CI_DTYPE_c128] = CODE_complex,
};

CiDtype
cx_dlpack_dtype(const CxDlTensor *tensor)
{
    for (int d = 0; d < CI_DTYPE_COUNT; d++)
        if (tensor->lanes == 1 && codes[d] == tensor->code &&
            8 * ci_dtype_size((CiDtype)d) == tensor->bits)
            return (CiDtype)d;
    return CI_DTYPE_none;
}

/* ---- export ---- */

/* The contents of both kinds of capsule, and the array that owns the memory. */
typedef struct Given {
    union {
        Managed plain;
        Versioned versioned;
    } as;
    PyObject *array;
    int64_t numbers[2 * CI_MAX_RANK];
} Given;

/* A consumer may free it after Python has ended. There is no GIL to take then, so the memory is
 * not freed. */
static void
delete_given(Given *given)
{
    if (!Py_IsInitialized())
        return;
    CX_CALLBACK_BEGIN();
    Py_DECREF(given->array);
    PyMem_RawFree(given);
    CX_CALLBACK_END();
}

static void
delete_plain(Managed *self)
{
    delete_given(self->context);
}

static void
delete_versioned(Versioned *self)
{
    delete_given(self->context);
}

/* Frees a capsule that was not consumed. */
static void
drop_plain(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, PLAIN))
        delete_plain(PyCapsule_GetPointer(capsule, PLAIN));
}

static void
drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED))
        delete_versioned(PyCapsule_GetPointer(capsule, VERSIONED));
}

static void
fill_tensor(Given *given, Tensor *tensor, const CxDeviceMemory *memory, CiDtype dtype)
{
    PyArrayObject *array = (PyArrayObject *)given->array;
    int rank = PyArray_NDIM(array), size = ci_dtype_size(dtype);

    for (int k = 0; k < rank; k++) {
        given->numbers[k] = PyArray_DIM(array, k);
        given->numbers[rank + k] = PyArray_STRIDE(array, k) / size;
    }
    *tensor = (Tensor){.data = PyArray_DATA(array),
                       .device_type = memory->queue.backend->device->dlpack,
                       .device_id = memory->queue.index,
                       .ndim = rank,
                       .code = codes[dtype],
                       .bits = (uint8_t)(8 * size),
                       .lanes = 1,
                       .shape = given->numbers,
                       .strides = given->numbers + rank};
}

/* The consumer's stream, by DLPack's numbers for CUDA: 1 is the default stream; -1 means that it
 * synchronises itself. */
static int
order_for(CxState *state, CxDeviceMemory *memory, PyObject *stream)
{
    CiQueue queue = memory->queue;
    long long number = stream == Py_None ? 1 : PyLong_AsLongLong(stream);

    if (number == -1)
        return PyErr_Occurred() ? -1 : 0;
    queue.stream = number == 1 ? NULL : (void *)(uintptr_t)number;
    if (queue.backend->device->stream_open == NULL)
        return 0;
    return cx_device_order(state, &memory->queue, &queue);
}

/* dlpack_give(array, stream, is_versioned): a capsule. BufferError if DLPack cannot describe the
 * array. */
static PyObject *
dlpack_give(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *array = NULL, *stream = NULL;
    int is_versioned = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOp:dlpack_give", &array, &stream, &is_versioned))
        return NULL;
    CxDeviceMemory *memory = cx_device_memory_of(state, array);
    if (memory == NULL)
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR((PyArrayObject *)array));
    if (memory->queue.backend->device->dlpack == 0 || dtype == CI_DTYPE_none)
        return PyErr_Format(PyExc_BufferError, "DLPack has no number for device '%s'",
                            memory->queue.backend->device->name);
    if (order_for(state, memory, stream) < 0)
        return NULL;
    Given *given = PyMem_RawCalloc(1, sizeof *given);
    if (given == NULL)
        return PyErr_NoMemory();
    given->array = Py_NewRef(array);
    fill_tensor(given, is_versioned ? &given->as.versioned.tensor : &given->as.plain.tensor, memory,
                dtype);
    if (is_versioned) {
        given->as.versioned.major = 1;
        given->as.versioned.context = given;
        given->as.versioned.deleter = delete_versioned;
    } else {
        given->as.plain.context = given;
        given->as.plain.deleter = delete_plain;
    }
    PyObject *capsule = is_versioned ? PyCapsule_New(&given->as.versioned, VERSIONED, drop_versioned)
                                     : PyCapsule_New(&given->as.plain, PLAIN, drop_plain);
    if (capsule == NULL)
        delete_given(given);
    return capsule;
}

/* ---- import ---- */

static void
drop_owned(PyObject *capsule)
{
    Managed *managed = PyCapsule_GetPointer(capsule, OWNED);
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

static void
drop_owned_versioned(PyObject *capsule)
{
    Versioned *managed = PyCapsule_GetPointer(capsule, OWNED_VERSIONED);
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

/* Takes the tensor of a capsule, with the object that frees it. */
static PyObject *
take_over(PyObject *capsule, Tensor **tensor)
{
    PyObject *owner = NULL;

    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        Versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        if (managed->major != 1)
            return PyErr_Format(PyExc_BufferError, "a tensor of DLPack %u; 1 and 0 are understood",
                                managed->major);
        if (managed->flags & FLAG_read_only)
            return PyErr_Format(PyExc_BufferError, "a tensor that is read-only");
        *tensor = &managed->tensor;
        owner = PyCapsule_New(managed, OWNED_VERSIONED, drop_owned_versioned);
        if (owner != NULL && PyCapsule_SetName(capsule, "used_" VERSIONED) < 0)
            Py_CLEAR(owner);
    } else {
        Managed *managed = PyCapsule_GetPointer(capsule, PLAIN);
        if (managed == NULL)
            return NULL;
        *tensor = &managed->tensor;
        owner = PyCapsule_New(managed, OWNED, drop_owned);
        if (owner != NULL && PyCapsule_SetName(capsule, "used_" PLAIN) < 0)
            Py_CLEAR(owner);
    }
    return owner;
}

/* The device with this number in DLPack. */
static const CiBackend *
find_backend(const CxState *state, int32_t number)
{
    const CiRegistry *registry = state->runtime.registry;
    for (int k = 0; k < ci_backend_count(registry); k++) {
        const CiBackend *backend = ci_backend_at(registry, k);
        if (backend->device->dlpack == number && ci_backend_has_memory(backend))
            return backend;
    }
    return NULL;
}

static PyObject *
array_over(CxState *state, const Tensor *tensor, PyObject *owner)
{
    const CiBackend *backend = find_backend(state, tensor->device_type);
    CiDtype dtype = cx_dlpack_dtype(tensor);
    int64_t strides[CI_MAX_RANK], step = 1;
    PyObject *stream = NULL;

    if (backend == NULL)
        return PyErr_Format(PyExc_BufferError, "memory of no device that is here (DLPack's number %d)",
                            (int)tensor->device_type);
    if (dtype == CI_DTYPE_none || tensor->ndim > CI_MAX_RANK)
        return PyErr_Format(PyExc_BufferError, "a dtype (DLPack's %d, %d bits) or rank that is not known",
                            (int)tensor->code, (int)tensor->bits);
    for (int k = tensor->ndim - 1; k >= 0; k--) {
        strides[k] = (tensor->strides ? tensor->strides[k] : step) * ci_dtype_size(dtype);
        step *= tensor->shape[k];
    }
    CiQueue queue = {.backend = backend, .runtime = &state->runtime, .index = tensor->device_id};
    if (cx_enter_stream(state, &queue, &stream) < 0)
        return NULL;
    PyArray_Descr *descr = cx_descr(state, dtype);
    Py_INCREF(descr);
    PyObject *array = cx_device_array_over(state, &queue, stream, owner,
                                           (char *)tensor->data + tensor->byte_offset, descr,
                                           tensor->ndim, tensor->shape, strides);
    Py_XDECREF(stream);
    return array;
}

/* dlpack_take(capsule): an array over the tensor's memory. */
static PyObject *
dlpack_take(PyObject *module, PyObject *capsule)
{
    Tensor *tensor = NULL;

    CX_ENTRY();
    PyObject *owner = take_over(capsule, &tensor);
    if (owner == NULL)
        return NULL;
    PyObject *array = array_over(PyModule_GetState(module), tensor, owner);
    Py_DECREF(owner);
    return array;
}

/* dlpack_device(array): (type, index) */
static PyObject *
dlpack_device(PyObject *module, PyObject *array)
{
    const CxState *state = PyModule_GetState(module);
    const CxDeviceMemory *memory = cx_device_memory_of(state, array);
    if (cx_is_host_array(state, array))
        return Py_BuildValue("(ii)", ci_host_device()->dlpack, 0);
    if (memory == NULL)
        return PyErr_Format(PyExc_TypeError, "an array of a device is expected");
    return Py_BuildValue("(ii)", memory->queue.backend->device->dlpack, memory->queue.index);
}

PyMethodDef cx_dlpack_methods[] = {
    CX_FUNCTION(dlpack_give, dlpack_give, METH_VARARGS),
    CX_FUNCTION(dlpack_take, dlpack_take, METH_O),
    CX_FUNCTION(dlpack_device, dlpack_device, METH_O),
    {NULL, NULL, 0, NULL},
};
