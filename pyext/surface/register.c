/* Devices from outside the tree: register_device(device, compilers).
 *
 * A device is a capsule "cinductor.CiDevice" that another extension made of its CiDevice, or an
 * object of Python whose methods are called here, each with the interpreter's lock. Compilers are
 * names of the processor's, whose kernels then run on what the device says its memory is, or
 * capsules "cinductor.CiCompiler". */
#include "surface/register.h"

#include "device/toolkit.h"
#include "state/device_array.h"

#define DEVICE_CAPSULE "cinductor.CiDevice"
#define COMPILER_CAPSULE "cinductor.CiCompiler"

/* ---- a device that is an object ---- */

static void
give_back(PyObject *exception)
{
    if (exception != NULL)
        cx_restore_exception(exception);
}

typedef struct ObjectDevice {
    CiDevice base; /* base.data: this */
    PyObject *object;
    char name[64], doc[256];
    char error[256]; /* of the last call that raised */
} ObjectDevice;

static ObjectDevice *
object_of(const CiQueue *queue)
{
    return queue->backend->device->data;
}

/* Keeps what a method raised, for last_error to tell. */
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

/* Calls a method; its result, or NULL after `failed`. Takes the arguments' reference. */
static PyObject *
ask(ObjectDevice *device, const char *method, PyObject *args, int32_t *status)
{
    PyObject *bound = args != NULL ? PyObject_GetAttrString(device->object, method) : NULL;
    PyObject *result = bound != NULL ? PyObject_CallObject(bound, args) : NULL;

    *status = result == NULL ? failed(device) : CI_OK;
    Py_XDECREF(bound);
    Py_XDECREF(args);
    return result;
}

static int32_t
tell(ObjectDevice *device, const char *method, PyObject *args)
{
    int32_t status;
    PyObject *result = ask(device, method, args, &status);
    Py_XDECREF(result);
    return status;
}

/* The same for a method that gives an address. */
static int32_t
ask_address(ObjectDevice *device, const char *method, PyObject *args, void **address)
{
    int32_t status;
    PyObject *result = ask(device, method, args, &status);

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
    (void)tell(object_of(queue), "release",
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
                         : tell(object_of(queue), method,
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

static int32_t
object_copy_out(const CiQueue *queue, void *host, const void *device, size_t size)
{
    return object_copy(queue, "copy_out", device, host, size, PyBUF_WRITE);
}

static int32_t
object_copy_across(const CiQueue *from, const CiQueue *to, void *there, const void *here,
                   size_t size)
{
    CX_CALLBACK_BEGIN();
    int32_t status =
        tell(object_of(to), "copy_across",
             Py_BuildValue("(iNiNnN)", to->index, PyLong_FromVoidPtr(there), from->index,
                           PyLong_FromVoidPtr((void *)(uintptr_t)here), (Py_ssize_t)size,
                           stream_of(to)));
    CX_CALLBACK_END();
    return status;
}

static int32_t
object_synchronize(const CiQueue *queue)
{
    CX_CALLBACK_BEGIN();
    int32_t status = tell(object_of(queue), "synchronize",
                          Py_BuildValue("(iN)", queue->index, stream_of(queue)));
    CX_CALLBACK_END();
    return status;
}

static int
object_count(const CiQueue *queue)
{
    CX_CALLBACK_BEGIN();
    int32_t status;
    PyObject *result = ask(object_of(queue), "count", PyTuple_New(0), &status);
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
        ask(object_of(queue), "properties", Py_BuildValue("(i)", queue->index), &status);
    *out = (CiDeviceProperties){.units = 1};
    if (result != NULL && !PyArg_ParseTuple(result, "sLi:properties", &name, &memory, &out->units))
        status = failed(object_of(queue));
    snprintf(out->name, sizeof out->name, "%s", name);
    out->memory = memory;
    Py_XDECREF(result);
    CX_CALLBACK_END();
    return status;
}

/* ---- its streams and events, where it has them ---- */

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

/* A method that takes a stream or an event, and the stream of the queue. */
static int32_t
tell_of(const CiQueue *queue, const char *method, void *what)
{
    CX_CALLBACK_BEGIN();
    PyObject *before = cx_take_exception();
    int32_t status =
        tell(object_of(queue), method,
             Py_BuildValue("(iNN)", queue->index, PyLong_FromVoidPtr(what), stream_of(queue)));
    give_back(before);
    CX_CALLBACK_END();
    return status;
}

static void
object_stream_close(const CiQueue *queue, void *stream)
{
    (void)tell_of(queue, "stream_close", stream);
}

static void
object_event_close(const CiQueue *queue, void *event)
{
    (void)tell_of(queue, "event_close", event);
}

static int32_t
object_event_record(const CiQueue *queue, void *event)
{
    return tell_of(queue, "event_record", event);
}

static int32_t
object_event_wait(const CiQueue *queue, void *event)
{
    return tell_of(queue, "event_wait", event);
}

static int32_t
object_event_synchronize(const CiQueue *queue, void *event)
{
    return tell_of(queue, "event_synchronize", event);
}

/* The kernel runs here, behind a method that may count, log or wait. */
static int32_t
object_launch(const CiQueue *queue, CiExecutable *executable, const CiLaunch *launch,
              CiFault *fault)
{
    CX_CALLBACK_BEGIN();
    int32_t status = tell(object_of(queue), "launch",
                          Py_BuildValue("(iiN)", queue->index, launch->kernel, stream_of(queue)));
    CX_CALLBACK_END();
    return status ? status : executable->launch(executable, launch, fault);
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

/* Copies the text of an attribute; false, with an exception, where there is none. */
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
    ObjectDevice *device = PyCapsule_GetPointer(capsule, DEVICE_CAPSULE);
    Py_XDECREF(device->object);
    PyMem_RawFree(device);
}

/* A capsule of a device whose functions are the object's methods. */
static PyObject *
wrap_object(PyObject *object)
{
    static const char *const needed[] = {"allocate", "release", "copy_in", "copy_out",
                                         "synchronize"};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        if (!has_method(object, needed[k]))
            return PyErr_Format(PyExc_TypeError, "a device has a method %s", needed[k]);
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
    if (has_method(object, "launch"))
        device->base.launch = object_launch;
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
    if (copy_text(object, "name", device->name, sizeof device->name) &&
        copy_text(object, "doc", device->doc, sizeof device->doc))
        capsule = PyCapsule_New(device, DEVICE_CAPSULE, free_object);
    if (capsule == NULL)
        PyMem_RawFree(device);
    else
        device->object = Py_NewRef(object);
    return capsule;
}

/* ---- registering ---- */

static const CiCompiler *
find_compiler(const CxState *state, PyObject *given)
{
    if (PyCapsule_CheckExact(given))
        return PyCapsule_GetPointer(given, COMPILER_CAPSULE);
    const char *name = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
    const CiBackend *backend = name ? ci_backend_find(state->runtime.registry, "cpu", name) : NULL;
    if (backend == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "a compiler is one of the processor's by name, or a capsule " COMPILER_CAPSULE
                     ", not %R",
                     given);
    return backend != NULL ? backend->compiler : NULL;
}

/* register_device(device, compilers): its name. */
PyObject *
cx_register_device(PyObject *module, PyObject *args)
{
    enum { MOST = 8 };
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *names = NULL, *capsule = NULL, *result = NULL;
    const CiCompiler *compilers[MOST];
    char why[512];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO!:register_device", &given, &PyTuple_Type, &names))
        return NULL;
    int count = (int)PyTuple_GET_SIZE(names);
    if (count > MOST)
        return PyErr_Format(PyExc_ValueError, "at most %d compilers", (int)MOST);
    for (int k = 0; k < count; k++)
        if ((compilers[k] = find_compiler(state, PyTuple_GET_ITEM(names, k))) == NULL)
            return NULL;
    capsule = PyCapsule_CheckExact(given) ? Py_NewRef(given) : wrap_object(given);
    const CiDevice *device = capsule ? PyCapsule_GetPointer(capsule, DEVICE_CAPSULE) : NULL;
    if (device == NULL || PyList_Append(state->registered, capsule) < 0 ||
        PyList_Append(state->registered, names) < 0)
        goto done;
    if (ci_registry_add(state->runtime.registry, device, compilers, count, why, sizeof why))
        PyErr_SetString(PyExc_ValueError, why);
    else
        result = PyUnicode_FromString(device->name);
done:
    Py_XDECREF(capsule);
    return result;
}

PyObject *
cx_toolkit(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyCapsule_New((void *)(uintptr_t)&ci_toolkit, "cinductor.CiToolkit", NULL);
}
