/* Ndarrays whose data pointer is a device address: only shape, dtype and strides may be read. */
#ifndef CX_DEVICE_ARRAY_H
#define CX_DEVICE_ARRAY_H

#include "state/state.h"

/* A block of device memory. It belongs to the stream that used it last; another stream that uses
 * it waits for that one. */
typedef struct CxDeviceMemory {
    PyObject_HEAD CiQueue
        queue; /* its runtime is in the module's state, which the type holds */
    void *block;
    size_t size;
    PyObject *stream; /* the object of queue.stream; NULL for the device's default stream */
    PyObject *owner;  /* the owner of imported memory, else NULL */
} CxDeviceMemory;

/* The base class of cinductor.Array; its handle is an ndarray in device memory, or of the host. */
typedef struct CxDeviceArray {
    PyObject_HEAD PyObject *handle, *weakrefs;
    CxState *state; /* the module's, which the type keeps */
} CxDeviceArray;

extern PyType_Spec cx_device_object_spec;
/* The cinductor.Array of this handle, created if there is none. Steals the handle. */
PyObject *cx_device_array_object(CxState *state, PyObject *handle);
/* The value, or the Array of a handle on a device; steals the value, which may be NULL. */
PyObject *cx_device_result(CxState *state, PyObject *value);
PyObject *cx_set_array_type(PyObject *module, PyObject *args);
extern PyType_Spec cx_device_memory_spec;
extern PyMethodDef cx_device_methods[], cx_device_memory_methods[];
bool cx_is_device_array(const CxState *state, PyObject *array);
/* True for an ndarray of a dtype that devices have, whose data pointer is not a device address. */
bool cx_is_host_array(const CxState *state, PyObject *array);
/* True for an array that may be the handle of an Array. */
bool cx_is_handle(const CxState *state, PyObject *array);
/* The owner of an array's memory if that is on a device, borrowed; else NULL. */
CxDeviceMemory *cx_device_memory_of(const CxState *state, PyObject *array);
/* A new ordinary array with the elements of a handle. */
PyObject *cx_device_host_copy(CxState *state, PyObject *array);
/* Orders later work of the queue's stream after the work of other streams on the memory. stream:
 * the object of the queue's stream, or NULL. */
int cx_device_memory_use(CxState *state, CxDeviceMemory *memory, const CiQueue *queue,
                         PyObject *stream);
/* Lets later work of the second stream wait for the earlier work of the first. */
int cx_device_order(CxState *state, const CiQueue *first, const CiQueue *later);
/* An array over imported memory, which keeps its owner alive. The queue's stream may use it at
 * once. Steals the dtype. */
PyObject *cx_device_array_over(CxState *state, const CiQueue *queue, PyObject *stream,
                               PyObject *owner, void *data, PyArray_Descr *descr, int rank,
                               const int64_t *sizes, const int64_t *strides);
PyObject *cx_device_array_new(CxState *state, const CiQueue *queue, PyObject *stream, CiDtype dtype,
                              int rank, const int64_t *sizes, const int64_t *strides);
/* True if programs with these options run on device arrays without copies. */
static inline bool
cx_is_on_device(const CiOptions *options, const CiBackend *backend)
{
    return options->device_arrays && ci_backend_has_memory(backend);
}
/* True if the arrays of such a program may be on several devices of this kind. */
static inline bool
cx_has_devices(const CiOptions *options)
{
    return options->device_index < 0;
}
/* The number of an array's device in programs with these options; 0 for a host array. */
int cx_device_number(const CxState *state, const CiOptions *options, PyObject *value);
/* -1 with an exception if a program with these options cannot read the input on that device: a
 * kernel never accesses memory of another device. */
int cx_check_device_input(const CxState *state, const CiOptions *options, PyObject *value,
                          int device);
/* -1 with the device's message. */
int cx_raise_device(CxState *state, const CiQueue *queue, int32_t status);
/* None, or NULL with the exception. */
static inline PyObject *
cx_device_none(CxState *state, const CiQueue *queue, int32_t status)
{
    return status != CI_OK && cx_raise_device(state, queue, status) < 0 ? NULL : Py_NewRef(Py_None);
}
/* The queue of "cuda" or "cuda:1", without a stream; -1 with a ValueError if there is none. */
int cx_find_device(CxState *state, const char *text, CiQueue *queue);
/* Like cx_find_device, for a device with its own memory. text NULL: an exception is set already. */
int cx_find_memory(CxState *state, const char *text, CiQueue *queue);
/* The device on which programs with these options run. */
CiQueue cx_queue(CxState *state, const CiOptions *options, const CiBackend *backend);

#endif
