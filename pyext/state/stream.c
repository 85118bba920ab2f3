/* Streams and events of devices. A stream made here is a handle of its device; a stream of
 * another package (CuPy, torch) is used but not closed. The current stream is a context
 * variable, so each thread has its own. */
#include "state/stream.h"

#include "state/docs.h"

typedef struct CxStream {
    PyObject_HEAD CiQueue queue;
    bool is_foreign;
} CxStream;

typedef struct CxEvent {
    PyObject_HEAD CiQueue queue; /* without a stream */
    void *event;
} CxEvent;

int
cx_streams_init(CxState *state, PyObject *module)
{
    state->stream_in_force = PyContextVar_New("cinductor.stream", Py_None);
    return state->stream_in_force == NULL
               ? -1
               : PyModule_AddObjectRef(module, "stream_in_force", state->stream_in_force);
}

int
cx_enter_stream(CxState *state, CiQueue *queue, PyObject **stream)
{
    PyObject *found = NULL;

    *stream = NULL;
    if (queue->backend->device->stream_open == NULL)
        return 0;
    if (PyContextVar_Get(state->stream_in_force, NULL, &found) < 0)
        return -1;
    if ((PyObject *)Py_TYPE(found) == state->stream_type) {
        const CxStream *in_force = (CxStream *)found;
        if (in_force->queue.backend->device == queue->backend->device &&
            in_force->queue.index == queue->index) {
            queue->stream = in_force->queue.stream;
            *stream = Py_NewRef(found);
        }
    }
    Py_DECREF(found);
    return 0;
}

static int
raise_if(PyObject *self, const CiQueue *queue, int32_t status)
{
    CxState *state = PyType_GetModuleState(Py_TYPE(self));
    return status == CI_OK ? 0 : cx_raise_device(state, queue, status);
}

#define WITHOUT_LOCK(status, call)                                                                 \
    do {                                                                                           \
        PyThreadState *saved_ = NULL;                                                              \
        CX_RELEASE(saved_);                                                                        \
        (status) = (call);                                                                         \
        CX_TAKE(saved_);                                                                           \
    } while (0)

/* ---- streams ---- */

static void
stream_dealloc(PyObject *self)
{
    CxStream *stream = (CxStream *)self;

    if (!stream->is_foreign && stream->queue.stream != NULL)
        stream->queue.backend->device->stream_close(&stream->queue, stream->queue.stream);
    cx_object_free(self);
}

static PyObject *
stream_synchronize(PyObject *self, PyObject *unused)
{
    const CiQueue *queue = &((CxStream *)self)->queue;
    int32_t status;

    (void)unused;
    CX_ENTRY();
    WITHOUT_LOCK(status, queue->backend->device->synchronize(queue));
    return cx_device_none(PyType_GetModuleState(Py_TYPE(self)), queue, status);
}

/* An event of the same device, or NULL with an exception. */
static CxEvent *
event_for(PyObject *self, PyObject *given)
{
    CxState *state = PyType_GetModuleState(Py_TYPE(self));
    const CiQueue *queue = &((CxStream *)self)->queue;

    if ((PyObject *)Py_TYPE(given) != state->event_type) {
        PyErr_Format(PyExc_TypeError, "an Event is expected, not %R", given);
        return NULL;
    }
    CxEvent *event = (CxEvent *)given;
    if (event->queue.backend->device == queue->backend->device &&
        event->queue.index == queue->index)
        return event;
    PyErr_Format(PyExc_ValueError, "an event of %s:%d for a stream of %s:%d",
                 event->queue.backend->device->name, event->queue.index,
                 queue->backend->device->name, queue->index);
    return NULL;
}

static PyObject *
call_for_event(PyObject *self, PyObject *given, int32_t (*call)(const CiQueue *queue, void *event))
{
    const CiQueue *queue = &((CxStream *)self)->queue;
    CxEvent *event = event_for(self, given);

    return event == NULL
               ? NULL
               : cx_device_none(PyType_GetModuleState(Py_TYPE(self)), queue, call(queue, event->event));
}

static PyObject *
stream_record(PyObject *self, PyObject *given)
{
    CX_ENTRY();
    return call_for_event(self, given, ((CxStream *)self)->queue.backend->device->event_record);
}

static PyObject *
stream_wait(PyObject *self, PyObject *given)
{
    CX_ENTRY();
    return call_for_event(self, given, ((CxStream *)self)->queue.backend->device->event_wait);
}

static PyObject *
device_text(const CiQueue *queue)
{
    const char *name = queue->backend->device->name;
    return queue->index ? PyUnicode_FromFormat("%s:%d", name, queue->index)
                        : PyUnicode_FromString(name);
}

static PyObject *
stream_device(PyObject *self, void *closure)
{
    (void)closure;
    return device_text(&((CxStream *)self)->queue);
}

static PyObject *
stream_handle(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromVoidPtr(((CxStream *)self)->queue.stream);
}

static PyMethodDef stream_type_methods[] = {
    CX_METHOD(Stream, synchronize, stream_synchronize, METH_NOARGS),
    CX_METHOD(Stream, record, stream_record, METH_O),
    CX_METHOD(Stream, wait, stream_wait, METH_O),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stream_getset[] = {
    CX_GETTER(Stream, device, stream_device, NULL, NULL),
    CX_GETTER(Stream, handle, stream_handle, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

CX_TYPE(cx_stream_spec, Stream, CxStream, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, stream_dealloc), {Py_tp_methods, stream_type_methods},
        {Py_tp_getset, stream_getset});

/* ---- events ---- */

static void
event_dealloc(PyObject *self)
{
    CxEvent *event = (CxEvent *)self;

    if (event->event != NULL)
        event->queue.backend->device->event_close(&event->queue, event->event);
    cx_object_free(self);
}

static PyObject *
event_synchronize(PyObject *self, PyObject *unused)
{
    const CxEvent *event = (CxEvent *)self;
    int32_t status;

    (void)unused;
    CX_ENTRY();
    WITHOUT_LOCK(status,
                 event->queue.backend->device->event_synchronize(&event->queue, event->event));
    return cx_device_none(PyType_GetModuleState(Py_TYPE(self)), &event->queue, status);
}

static PyObject *
event_elapsed(PyObject *self, PyObject *given)
{
    const CxEvent *first = (CxEvent *)self, *later = (CxEvent *)given;
    const CiDevice *device = first->queue.backend->device;
    double ms = 0;

    CX_ENTRY();
    if (Py_TYPE(given) != Py_TYPE(self))
        return PyErr_Format(PyExc_TypeError, "an Event is expected, not %R", given);
    if (device->event_elapsed == NULL || later->queue.backend->device != device)
        return PyErr_Format(PyExc_ValueError, "events of device '%s' are not timed", device->name);
    int32_t status = device->event_elapsed(&first->queue, first->event, later->event, &ms);
    return raise_if(self, &first->queue, status) < 0 ? NULL : PyFloat_FromDouble(ms);
}

static PyMethodDef event_type_methods[] = {
    CX_METHOD(Event, synchronize, event_synchronize, METH_NOARGS),
    CX_METHOD(Event, elapsed, event_elapsed, METH_O),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_event_spec, Event, CxEvent, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, event_dealloc), {Py_tp_methods, event_type_methods});

/* ---- functions of the module ---- */

static int
find_streams(CxState *state, const char *device, CiQueue *queue)
{
    if (cx_find_device(state, device, queue) < 0)
        return -1;
    if (queue->backend->device->stream_open != NULL)
        return 0;
    PyErr_Format(PyExc_ValueError, "device '%s' has no streams", device);
    return -1;
}

/* stream_open(device, handle): opens a new stream, or uses the handle of another package's
 * stream. */
static PyObject *
stream_open(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->stream_type;
    const char *device = NULL;
    PyObject *handle = NULL;
    CiQueue queue;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sO:stream_open", &device, &handle) ||
        find_streams(state, device, &queue) < 0)
        return NULL;
    CxStream *stream = (CxStream *)type->tp_alloc(type, 0);
    if (stream == NULL)
        return NULL;
    stream->queue = queue;
    stream->is_foreign = handle != Py_None;
    int32_t status = CI_OK;
    if (stream->is_foreign)
        stream->queue.stream = PyLong_AsVoidPtr(handle);
    else
        status = queue.backend->device->stream_open(&queue, &stream->queue.stream);
    if (PyErr_Occurred() || raise_if((PyObject *)stream, &queue, status) < 0)
        Py_CLEAR(stream);
    return (PyObject *)stream;
}

PyObject *
cx_event_new(CxState *state, const CiQueue *queue)
{
    PyTypeObject *type = (PyTypeObject *)state->event_type;
    CxEvent *event = (CxEvent *)type->tp_alloc(type, 0);

    if (event == NULL)
        return NULL;
    event->queue = *queue;
    event->queue.stream = NULL;
    int32_t status = queue->backend->device->event_open(queue, &event->event);
    if (raise_if((PyObject *)event, queue, status) < 0)
        Py_CLEAR(event);
    return (PyObject *)event;
}

void *
cx_event_of(PyObject *event)
{
    return ((CxEvent *)event)->event;
}

/* event_open(device) */
static PyObject *
event_open(PyObject *module, PyObject *name)
{
    CxState *state = PyModule_GetState(module);
    const char *device = PyUnicode_AsUTF8(name);
    CiQueue queue;

    CX_ENTRY();
    if (device == NULL || find_streams(state, device, &queue) < 0)
        return NULL;
    return cx_event_new(state, &queue);
}

PyMethodDef cx_stream_methods[] = {
    CX_FUNCTION(stream_open, stream_open, METH_VARARGS),
    CX_FUNCTION(event_open, event_open, METH_O),
    {NULL, NULL, 0, NULL},
};
