/* A device implemented by a Python object: its functions are methods, each called with the GIL
 * held. An exception is kept until it is asked for by last_error. If the object supports
 * recordings, launches are stored here, and a replay makes them after the object's own replay. */
#include "surface/object_device.h"

#include "device/device.h"
#include "state/device_array.h"

#include <pthread.h>

static void
give_back(PyObject *exception)
{
    if (exception != NULL)
        cx_restore_exception(exception);
}

/* A recorded launch, with its own copy of the arrays. */
typedef struct Taken Taken;
struct Taken {
    Taken *next;
    CiExecutable *executable;
    CiLaunch launch;
};

typedef struct ObjectRecording ObjectRecording;
struct ObjectRecording {
    ObjectRecording *next;
    void *stream; /* returned by record_begin */
    void *made;   /* returned by record_end */
    Taken *first, *last;
};

typedef struct ObjectDevice {
    CiDevice base; /* base.data points to this struct */
    PyObject *object;
    char name[64], doc[256];
    char error[256]; /* of the last call that raised */
    bool has_launch;
    pthread_mutex_t lock;    /* protects the following fields */
    ObjectRecording *taking; /* recordings that are being made */
    /* Status of a replay that failed after it had started; the next wait returns it. */
    int32_t late;
} ObjectDevice;

static ObjectDevice *
object_of(const CiQueue *queue)
{
    return queue->backend->device->data;
}

/* Keeps the exception that a method raised, for last_error. */
static int32_t
failed(ObjectDevice *device)
{
    bool is_memory = PyErr_ExceptionMatches(PyExc_MemoryError);
    PyObject *error = cx_take_exception();
    PyObject *text = error != NULL ? PyObject_Repr(error) : NULL;
    const char *chars = text != NULL ? PyUnicode_AsUTF8(text) : NULL;

    snprintf(device->error, sizeof device->error, "%s", chars != NULL ? chars : "an exception");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(error);
    return is_memory ? CI_ERR_MEMORY : CI_ERR_DEVICE;
}

/* Calls a method; returns its result, or NULL after `failed`. Steals the arguments. */
static PyObject *
call_method(ObjectDevice *device, const char *method, PyObject *args, int32_t *status)
{
    PyObject *bound = args != NULL ? PyObject_GetAttrString(device->object, method) : NULL;
    PyObject *result = bound != NULL ? PyObject_CallObject(bound, args) : NULL;

    *status = result == NULL ? failed(device) : CI_OK;
    Py_XDECREF(bound);
    Py_XDECREF(args);
    return result;
}

static int32_t
notify(ObjectDevice *device, const char *method, PyObject *args)
{
    int32_t status;
    PyObject *result = call_method(device, method, args, &status);
    Py_XDECREF(result);
    return status;
}

/* Like the function above, for a method that returns an address. */
static int32_t
ask_address(ObjectDevice *device, const char *method, PyObject *args, void **address)
{
    int32_t status;
    PyObject *result = call_method(device, method, args, &status);

    *address = result != NULL ? PyLong_AsVoidPtr(result) : NULL;
    if (PyErr_Occurred())
        status = failed(device);
    Py_XDECREF(result);
    return status;
}

static PyObject *
stream_of(const CiQueue *queue)
{
    return queue->stream != NULL ? PyLong_FromVoidPtr(queue->stream) : Py_NewRef(Py_None);
}

static int32_t
object_allocate(const CiQueue *queue, size_t size, void **block)
{
    CX_CALLBACK_BEGIN();
    PyObject *args = Py_BuildValue("(inN)", queue->index, (Py_ssize_t)size, stream_of(queue));
    int32_t status = ask_address(object_of(queue), "allocate", args, block);
    CX_CALLBACK_END();
    return status;
}

static void
object_release(const CiQueue *queue, void *block, size_t size)
{
    CX_CALLBACK_BEGIN();
    PyObject *before = cx_take_exception();
    (void)notify(object_of(queue), "release",
                 Py_BuildValue("(iNnN)", queue->index, PyLong_FromVoidPtr(block), (Py_ssize_t)size,
                               stream_of(queue)));
    give_back(before);
    CX_CALLBACK_END();
}

static int32_t
object_copy(const CiQueue *queue, const char *method, const void *device, const void *host,
            size_t size, int flags)
{
    CX_CALLBACK_BEGIN();
    PyObject *view = PyMemoryView_FromMemory((char *)(uintptr_t)host, (Py_ssize_t)size, flags);
    int32_t status = view == NULL
                         ? failed(object_of(queue))
                         : notify(object_of(queue), method,
                                  Py_BuildValue("(iNNN)", queue->index,
                                                PyLong_FromVoidPtr((void *)(uintptr_t)device), view,
                                                stream_of(queue)));
    CX_CALLBACK_END();
    return status;
}

static int32_t
object_copy_in(const CiQueue *queue, void *device, const void *host, size_t size)
{
    return object_copy(queue, "copy_in", device, host, size, PyBUF_READ);
}

/* Reports the failure of a replay, once. */
static int32_t
take_late(const CiQueue *queue)
{
    ObjectDevice *device = object_of(queue);
    pthread_mutex_lock(&device->lock);
    int32_t status = device->late;
    device->late = CI_OK;
    pthread_mutex_unlock(&device->lock);
    return status;
}

static int32_t
object_copy_out(const CiQueue *queue, void *host, const void *device, size_t size)
{
    int32_t late = take_late(queue),
            status = object_copy(queue, "copy_out", device, host, size, PyBUF_WRITE);
    return late ? late : status;
}

static int32_t
object_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                   size_t size)
{
    CX_CALLBACK_BEGIN();
    int32_t status =
        notify(object_of(to), "copy_across",
               Py_BuildValue("(iNiNnN)", to->index, PyLong_FromVoidPtr(there), from->index,
                             PyLong_FromVoidPtr((void *)(uintptr_t)here), (Py_ssize_t)size,
                             stream_of(to)));
    CX_CALLBACK_END();
    return status;
}

static int32_t
object_synchronize(const CiQueue *queue)
{
    int32_t late = take_late(queue);
    CX_CALLBACK_BEGIN();
    int32_t status = notify(object_of(queue), "synchronize",
                            Py_BuildValue("(iN)", queue->index, stream_of(queue)));
    CX_CALLBACK_END();
    return late ? late : status;
}

static int
object_count(const CiQueue *queue)
{
    CX_CALLBACK_BEGIN();
    int32_t status;
    PyObject *result = call_method(object_of(queue), "count", PyTuple_New(0), &status);
    long count = result != NULL ? PyLong_AsLong(result) : 0;
    PyErr_Clear();
    Py_XDECREF(result);
    CX_CALLBACK_END();
    return count > 0 ? (int)count : 0;
}

static int32_t
object_properties(const CiQueue *queue, CiDeviceProperties *out)
{
    CX_CALLBACK_BEGIN();
    const char *name = "";
    long long memory = 0;
    int32_t status;
    PyObject *result =
        call_method(object_of(queue), "properties", Py_BuildValue("(i)", queue->index), &status);
    *out = (CiDeviceProperties){.units = 1};
    if (result != NULL && !PyArg_ParseTuple(result, "sLi:properties", &name, &memory, &out->units))
        status = failed(object_of(queue));
    snprintf(out->name, sizeof out->name, "%s", name);
    out->memory = memory;
    Py_XDECREF(result);
    CX_CALLBACK_END();
    return status;
}

/* ---- streams and events, if it has them ---- */

static int32_t
object_stream_open(const CiQueue *queue, void **stream)
{
    CX_CALLBACK_BEGIN();
    int32_t status =
        ask_address(object_of(queue), "stream_open", Py_BuildValue("(i)", queue->index), stream);
    CX_CALLBACK_END();
    return status;
}

static int32_t
object_event_open(const CiQueue *queue, void **event)
{
    CX_CALLBACK_BEGIN();
    int32_t status =
        ask_address(object_of(queue), "event_open", Py_BuildValue("(i)", queue->index), event);
    CX_CALLBACK_END();
    return status;
}

/* Calls a method with a stream or an event, and the stream of the queue. */
static int32_t
call_hook(const CiQueue *queue, const char *method, void *what)
{
    CX_CALLBACK_BEGIN();
    PyObject *before = cx_take_exception();
    int32_t status =
        notify(object_of(queue), method,
               Py_BuildValue("(iNN)", queue->index, PyLong_FromVoidPtr(what), stream_of(queue)));
    give_back(before);
    CX_CALLBACK_END();
    return status;
}

static void
object_stream_close(const CiQueue *queue, void *stream)
{
    (void)call_hook(queue, "stream_close", stream);
}

static void
object_event_close(const CiQueue *queue, void *event)
{
    (void)call_hook(queue, "event_close", event);
}

static int32_t
object_event_record(const CiQueue *queue, void *event)
{
    return call_hook(queue, "event_record", event);
}

static int32_t
object_event_wait(const CiQueue *queue, void *event)
{
    return call_hook(queue, "event_wait", event);
}

static int32_t
object_event_synchronize(const CiQueue *queue, void *event)
{
    return call_hook(queue, "event_synchronize", event);
}

/* ---- recordings, if it makes them: launches are stored here, and made by a replay ---- */

/* The recording of this thread to which launches on that stream go; NULL: they are made at once. */
static ObjectRecording *
find_taking(ObjectDevice *device, const void *stream)
{
    pthread_mutex_lock(&device->lock);
    ObjectRecording *found = stream != NULL ? device->taking : NULL;
    while (found != NULL && found->stream != stream)
        found = found->next;
    pthread_mutex_unlock(&device->lock);
    return found;
}

static void
free_recording(ObjectRecording *recording)
{
    for (Taken *next, *taken = recording->first; taken != NULL; taken = next) {
        next = taken->next;
        PyMem_RawFree(taken);
    }
    PyMem_RawFree(recording);
}

static int32_t
take_down(ObjectDevice *device, ObjectRecording *recording, CiExecutable *executable,
          const CiLaunch *launch)
{
    size_t buffers = sizeof(void *) * (size_t)launch->nbuffers,
           sizes = sizeof(int64_t) * (size_t)launch->nsizes,
           scalars = sizeof(CiSlot) * (size_t)launch->nscalars;
    if (launch->may_fail) {
        snprintf(device->error, sizeof device->error, "a kernel with checks is not recorded");
        return CI_ERR_DEVICE;
    }
    Taken *taken = PyMem_RawCalloc(1, sizeof *taken + scalars + buffers + sizes);
    if (taken == NULL)
        return CI_ERR_MEMORY;
    CiSlot *own = (CiSlot *)(taken + 1);
    void **addresses = (void **)(own + launch->nscalars);
    int64_t *numbers = (int64_t *)(addresses + launch->nbuffers);
    memcpy(own, launch->scalars, scalars);
    memcpy(addresses, launch->buffers, buffers);
    memcpy(numbers, launch->sizes, sizes);
    taken->executable = executable;
    taken->launch = *launch;
    taken->launch.scalars = own;
    taken->launch.buffers = addresses;
    taken->launch.sizes = numbers;
    taken->launch.is_on_pool = true; /* a replay in progress is not cancelled */
    if (recording->last != NULL)
        recording->last->next = taken;
    else
        recording->first = taken;
    recording->last = taken;
    return CI_OK;
}

static int32_t
object_record_begin(const CiQueue *queue, void **stream)
{
    ObjectDevice *device = object_of(queue);
    ObjectRecording *recording = PyMem_RawCalloc(1, sizeof *recording);
    if (recording == NULL)
        return CI_ERR_MEMORY;
    CX_CALLBACK_BEGIN();
    int32_t status = ask_address(device, "record_begin",
                                 Py_BuildValue("(iN)", queue->index, stream_of(queue)), stream);
    CX_CALLBACK_END();
    if (!status && (*stream == NULL || find_taking(device, *stream) != NULL)) {
        snprintf(device->error, sizeof device->error, "record_begin gave a stream that is no new one");
        status = CI_ERR_DEVICE;
    }
    if (status) {
        free_recording(recording);
        return status;
    }
    recording->stream = *stream;
    pthread_mutex_lock(&device->lock);
    recording->next = device->taking;
    device->taking = recording;
    pthread_mutex_unlock(&device->lock);
    return CI_OK;
}

static int32_t
object_record_end(const CiQueue *queue, void *stream, void **recording)
{
    ObjectDevice *device = object_of(queue);
    ObjectRecording *ended = find_taking(device, stream);
    pthread_mutex_lock(&device->lock);
    ObjectRecording **at = &device->taking;
    while (*at != ended)
        at = &(*at)->next;
    *at = ended->next;
    pthread_mutex_unlock(&device->lock);
    CX_CALLBACK_BEGIN();
    int32_t status =
        ask_address(device, "record_end",
                    Py_BuildValue("(iN)", queue->index, PyLong_FromVoidPtr(stream)), &ended->made);
    CX_CALLBACK_END();
    *recording = status ? NULL : ended;
    if (status)
        free_recording(ended);
    return status;
}

/* If a kernel fails, earlier ones have already run, so the launches must not be made again. */
static int32_t
object_replay(const CiQueue *queue, void *what)
{
    ObjectDevice *device = object_of(queue);
    const ObjectRecording *recording = what;
    CiFault fault = {0};
    CX_CALLBACK_BEGIN();
    int32_t status = notify(device, "replay",
                            Py_BuildValue("(iNN)", queue->index, PyLong_FromVoidPtr(recording->made),
                                          stream_of(queue)));
    CX_CALLBACK_END();
    if (status)
        return status;
    for (const Taken *taken = recording->first; taken != NULL && !status; taken = taken->next)
        status = taken->executable->launch(taken->executable, &taken->launch, &fault);
    if (status) {
        pthread_mutex_lock(&device->lock);
        device->late = status;
        pthread_mutex_unlock(&device->lock);
    }
    return CI_OK;
}

static void
object_record_close(const CiQueue *queue, void *what)
{
    ObjectRecording *recording = what;
    CX_CALLBACK_BEGIN();
    PyObject *before = cx_take_exception();
    (void)notify(object_of(queue), "record_close",
                 Py_BuildValue("(iN)", queue->index, PyLong_FromVoidPtr(recording->made)));
    give_back(before);
    CX_CALLBACK_END();
    free_recording(recording);
}

/* Runs the kernel here, after a method that may count, log or wait. */
static int32_t
object_launch(const CiQueue *queue, CiExecutable *executable, const CiLaunch *launch,
              CiFault *fault)
{
    ObjectDevice *device = object_of(queue);
    const CiQueue on = {queue->backend, queue->runtime, queue->index, launch->stream};
    ObjectRecording *recording = find_taking(device, launch->stream);
    int32_t status = CI_OK;
    if (device->has_launch) {
        CX_CALLBACK_BEGIN();
        status = notify(device, "launch",
                        Py_BuildValue("(iiN)", queue->index, launch->kernel, stream_of(&on)));
        CX_CALLBACK_END();
    }
    if (status)
        return status;
    return recording != NULL ? take_down(device, recording, executable, launch)
                             : executable->launch(executable, launch, fault);
}

static const char *
object_last_error(const CiQueue *queue, char *out, size_t capacity)
{
    const ObjectDevice *device = object_of(queue);
    if (!device->error[0])
        return NULL;
    snprintf(out, capacity, "%s", device->error);
    return out;
}

static bool
has_method(PyObject *object, const char *name)
{
    PyObject *method = PyObject_GetAttrString(object, name);
    bool is_there = method != NULL && PyCallable_Check(method);

    PyErr_Clear();
    Py_XDECREF(method);
    return is_there;
}

/* Copies the text of an attribute; false with an exception if there is none. */
static bool
copy_text(PyObject *object, const char *attribute, char *out, size_t capacity)
{
    PyObject *value = PyObject_GetAttrString(object, attribute);
    const char *text = value != NULL && PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : NULL;

    if (text == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "a device's %s is a str", attribute);
    if (text != NULL)
        snprintf(out, capacity, "%s", text);
    Py_XDECREF(value);
    return text != NULL;
}

static void
free_object(PyObject *capsule)
{
    ObjectDevice *device = PyCapsule_GetPointer(capsule, CX_DEVICE_CAPSULE);
    Py_XDECREF(device->object);
    pthread_mutex_destroy(&device->lock);
    PyMem_RawFree(device);
}

/* True if the object has all methods that recordings need, false if none; else an exception. */
static bool
records_whole(PyObject *object)
{
    static const char *const methods[] = {"record_begin", "record_end", "replay", "record_close"};
    int count = 0, all = (int)(sizeof methods / sizeof *methods);
    const char *missing = NULL;
    for (int k = 0; k < all; k++) {
        bool is_there = has_method(object, methods[k]);
        count += is_there;
        missing = is_there ? missing : methods[k];
    }
    if (count > 0 && missing != NULL)
        PyErr_Format(PyExc_TypeError, "a device that records has a method %s", missing);
    return count == 0 || missing == NULL;
}

PyObject *
cx_device_of_object(PyObject *object)
{
    static const char *const needed[] = {"allocate", "release", "copy_in", "copy_out",
                                         "synchronize"};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        if (!has_method(object, needed[k]))
            return PyErr_Format(PyExc_TypeError, "a device has a method %s", needed[k]);
    if (!records_whole(object))
        return NULL;
    ObjectDevice *device = PyMem_RawCalloc(1, sizeof *device);
    if (device == NULL)
        return PyErr_NoMemory();
    device->base = (CiDevice){.abi = CI_DEVICE_ABI,
                              .name = device->name,
                              .doc = device->doc,
                              .data = device,
                              .count = has_method(object, "count") ? object_count : NULL,
                              .allocate = object_allocate,
                              .release = object_release,
                              .copy_in = object_copy_in,
                              .copy_out = object_copy_out,
                              .synchronize = object_synchronize,
                              .last_error = object_last_error};
    if (has_method(object, "properties"))
        device->base.properties = object_properties;
    bool records = has_method(object, "record_begin");
    device->has_launch = has_method(object, "launch");
    if (device->has_launch || records)
        device->base.launch = object_launch;
    if (records) {
        device->base.record_begin = object_record_begin;
        device->base.record_end = object_record_end;
        device->base.replay = object_replay;
        device->base.record_close = object_record_close;
    }
    if (has_method(object, "copy_across"))
        device->base.copy_across = object_copy_across;
    if (has_method(object, "stream_open")) {
        device->base.stream_open = object_stream_open;
        device->base.stream_close = object_stream_close;
        device->base.event_open = object_event_open;
        device->base.event_close = object_event_close;
        device->base.event_record = object_event_record;
        device->base.event_wait = object_event_wait;
        device->base.event_synchronize = object_event_synchronize;
    }
    PyObject *capsule = NULL;
    pthread_mutex_init(&device->lock, NULL);
    if (copy_text(object, "name", device->name, sizeof device->name) &&
        copy_text(object, "doc", device->doc, sizeof device->doc))
        capsule = PyCapsule_New(device, CX_DEVICE_CAPSULE, free_object);
    if (capsule == NULL) {
        pthread_mutex_destroy(&device->lock);
        PyMem_RawFree(device);
    } else {
        device->object = Py_NewRef(object);
    }
    return capsule;
}
