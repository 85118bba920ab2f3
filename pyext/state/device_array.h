/* Ndarrays whose data pointer is an address of a device: only shape, dtype and strides may be
 * looked at. */
#ifndef CX_DEVICE_ARRAY_H
#define CX_DEVICE_ARRAY_H

#include "state/state.h"

/* A block of a device's memory, and in which order it is used: it belongs to the stream that used
 * it last, and another that uses it waits for that one. */
typedef struct CxDeviceMemory {
    PyObject_HEAD CiQueue
        queue; /* its runtime lives in the module's state, and the type holds that */
    void *block;
    size_t size;
    PyObject *stream; /* the object of queue.stream; NULL: the device's own */
    PyObject *owner;  /* of memory that is somebody else's, else NULL */
} CxDeviceMemory;

/* The base of cinductor.Array; its handle is an ndarray whose memory is a device's. */
typedef struct CxDeviceArray {
    PyObject_HEAD PyObject *handle, *weakrefs;
} CxDeviceArray;

extern PyType_Spec cx_device_object_spec;
/* A cinductor.Array; takes the handle's reference. */
PyObject *cx_device_array_object(CxState *state, PyObject *handle);
PyObject *cx_set_array_type(PyObject *module, PyObject *args);
extern PyType_Spec cx_device_memory_spec;
extern PyMethodDef cx_device_methods[], cx_device_memory_methods[];
bool cx_is_device_array(const CxState *state, PyObject *array);
/* The owner of an array's memory when that is a device's, borrowed, or NULL. */
CxDeviceMemory *cx_device_memory_of(const CxState *state, PyObject *array);
/* What the queue's stream is given from now on comes after what others still do with the memory.
 * stream: the object of the queue's stream, or NULL. */
int cx_device_memory_use(CxState *state, CxDeviceMemory *memory, const CiQueue *queue,
                         PyObject *stream);
/* Work that the later queue's stream gets from now on waits for the work of the first one's. */
int cx_device_order(CxState *state, const CiQueue *first, const CiQueue *later);
/* An array over memory of somebody else's, who stays as long as it does; the queue's stream may use
 * it at once. Takes the description's reference. */
PyObject *cx_device_array_over(CxState *state, const CiQueue *queue, PyObject *stream,
                               PyObject *owner, void *data, PyArray_Descr *descr, int rank,
                               const int64_t *sizes, const int64_t *strides);
PyObject *cx_device_array_new(CxState *state, const CiQueue *queue, PyObject *stream, CiDtype dtype,
                              int rank, const int64_t *sizes, const int64_t *strides);
/* Programs of these options run on arrays of the device, without copies. */
static inline bool
cx_is_on_device(const CiOptions *options, const CiBackend *backend)
{
    return options->device_arrays && ci_backend_has_memory(backend);
}
/* Arrays of such a program live on devices of any index, which is then their device's number. */
static inline bool
cx_has_devices(const CiOptions *options)
{
    return options->device_index < 0;
}
/* The number, in programs of these options, of the device that an array lives on; 0 of the host's. */
int cx_device_number(const CxState *state, const CiOptions *options, PyObject *value);
/* -1, with an exception, for an input that a program of these options cannot read as one of that
 * device: a kernel never runs with memory of another. */
int cx_check_device_input(const CxState *state, const CiOptions *options, PyObject *value,
                          int device);
/* -1, with what the device said. */
int cx_raise_device(CxState *state, const CiQueue *queue, int32_t status);
/* The queue of "cuda" or "cuda:1", without a stream; -1, with a ValueError, where there is none. */
int cx_find_device(CxState *state, const char *text, CiQueue *queue);
/* The same of one with memory of its own. text NULL: an exception is set already. */
int cx_find_memory(CxState *state, const char *text, CiQueue *queue);
/* The device that programs of these options run on. */
CiQueue cx_queue(CxState *state, const CiOptions *options, const CiBackend *backend);

#endif
