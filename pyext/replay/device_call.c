/* A function that was called with device arrays has a device variant, which takes and returns the
 * arrays' handles (python/cinductor/arrays/calls.py). This file passes calls with known kinds of
 * arguments to it: arrays become handles.
 *
 * Programs on a device return arrays. Those of the CPU return handles, which are ordinary arrays, and
 * NumPy's scalars; both become arrays here. */
#include "replay/device_call.h"

/* Finds the devices of the arguments; false if the call is not handled here. */
static bool
describe(const CxState *state, PyObject *const *args, Py_ssize_t count, CxDeviceVariant *out)
{
    out->device = NULL;
    out->count = (int)count;
    if (count > CX_MAX_DEVICE_ARGUMENTS)
        return false;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyTypeObject *type = Py_TYPE(args[k]);
        out->where[k] = -1;
        if ((PyObject *)type == state->array_type) {
            const CxDeviceMemory *memory =
                cx_device_memory_of(state, ((CxDeviceArray *)args[k])->handle);
            const CiDevice *device =
                memory != NULL ? memory->queue.backend->device : ci_host_device();
            int index = memory != NULL ? memory->queue.index : 0;
            if (index >= CI_MAX_DEVICES || (out->device != NULL && out->device != device))
                return false;
            out->device = device;
            out->where[k] = (int8_t)index;
        } else if (type != &PyFloat_Type && type != &PyLong_Type && type != &PyBool_Type &&
                   type != &PyComplex_Type && type != &PyUnicode_Type && args[k] != Py_None)
            return false;
    }
    return out->device != NULL;
}

static const CxDeviceVariant *
find(const CxDeviceVariants *variants, const CxDeviceVariant *like)
{
    for (int k = 0; k < variants->count; k++) {
        const CxDeviceVariant *variant = &variants->variants[k];
        if (variant->device == like->device && variant->count == like->count &&
            memcmp(variant->where, like->where, (size_t)like->count) == 0)
            return variant;
    }
    return NULL;
}

int
cx_device_variants_note(const CxState *state, CxDeviceVariants *variants, PyObject *args)
{
    PyObject *function = NULL, *call = NULL;
    CxDeviceVariant made;

    if (!PyArg_ParseTuple(args, "OO!:note_device_variant", &function, &PyTuple_Type, &call))
        return -1;
    if (function == Py_None)
        cx_device_variants_clear(variants);
    if (!describe(state, PySequence_Fast_ITEMS(call), PyTuple_GET_SIZE(call), &made) ||
        find(variants, &made) != NULL)
        return 0;
    made.function = Py_NewRef(function);
    PyObject *last = NULL;
    if (variants->count == CX_MAX_DEVICE_VARIANTS)
        last = variants->variants[--variants->count].function;
    memmove(variants->variants + 1, variants->variants, sizeof made * (size_t)variants->count);
    variants->variants[0] = made;
    variants->count++;
    Py_XDECREF(last);
    return 0;
}

void
cx_device_variants_clear(CxDeviceVariants *variants)
{
    while (variants->count > 0)
        Py_DECREF(variants->variants[--variants->count].function);
}

int
cx_device_variants_visit(const CxDeviceVariants *variants, visitproc visit, void *arg)
{
    for (int k = 0; k < variants->count; k++)
        Py_VISIT(variants->variants[k].function);
    return 0;
}

/* True for a value that is no array and contains none. */
static bool
is_plain(PyObject *value)
{
    return value == Py_None || PyFloat_CheckExact(value) || PyLong_CheckExact(value) ||
           PyBool_Check(value) || PyUnicode_CheckExact(value);
}

/* Converts a value of a result on the CPU. NULL without an exception if Python must do it. */
static PyObject *
array_of(CxState *state, PyObject *value)
{
    if (is_plain(value))
        return Py_NewRef(value);
    PyObject *handle =
        PyArray_IsScalar(value, Generic) ? PyArray_FromScalar(value, NULL) : Py_NewRef(value);
    if (handle != NULL && cx_is_host_array(state, handle))
        return cx_device_array_object(state, handle);
    Py_XDECREF(handle);
    return NULL;
}

static PyObject *
tuple_of(CxState *state, PyObject *result)
{
    Py_ssize_t length = PyTuple_GET_SIZE(result);
    PyObject *made = PyTuple_New(length);
    for (Py_ssize_t k = 0; made != NULL && k < length; k++)
        cx_put_item(&made, k, array_of(state, PyTuple_GET_ITEM(result, k)));
    return made;
}

/* Replaces the CPU's handles in the result by arrays: an array or a tuple of arrays here, everything
 * else in Python. */
static PyObject *
leave(CxState *state, PyObject *result)
{
    PyObject *made = PyTuple_CheckExact(result) ? tuple_of(state, result) : array_of(state, result);
    return made != NULL || PyErr_Occurred() ? made : PyObject_CallOneArg(state->array_leave, result);
}

/* True for exceptions that Python converts or handles; no argument has been changed. */
static bool
is_for_python(CxState *state)
{
    return PyErr_ExceptionMatches(cx_exception(state, "CheckFailed")) ||
           PyErr_ExceptionMatches(cx_exception(state, "FasterOnHost"));
}

/* Completes the current exception, so that the caller sees it like one of the function's own. */
static void
say_more(PyObject *miss, PyObject *const *args, Py_ssize_t count)
{
    PyObject *job = PyMethod_Check(miss) ? PyMethod_GET_SELF(miss) : NULL, *said = NULL;
    PyObject *error = cx_take_exception(), *bound = PyTuple_New(count);

    for (Py_ssize_t k = 0; bound != NULL && k < count; k++)
        PyTuple_SET_ITEM(bound, k, Py_NewRef(args[k]));
    if (job != NULL && bound != NULL)
        said = PyObject_CallMethod(job, "leave", "OO", error, bound);
    PyErr_Clear();
    Py_XDECREF(said);
    Py_XDECREF(bound);
    cx_restore_exception(error);
}

int
cx_device_variants_call(CxState *state, const CxDeviceVariants *variants, PyObject *miss, PyObject *const *args,
              Py_ssize_t count, PyObject **result)
{
    PyObject *handles[CX_MAX_DEVICE_ARGUMENTS];
    CxDeviceVariant like;

    if (variants->count == 0 || state->is_exact || !describe(state, args, count, &like))
        return 0;
    const CxDeviceVariant *found = find(variants, &like);
    if (found == NULL)
        return 0;
    PyObject *function = Py_NewRef(found->function);
    for (Py_ssize_t k = 0; k < count; k++)
        handles[k] = like.where[k] >= 0 ? ((CxDeviceArray *)args[k])->handle : args[k];
    PyObject *value = PyObject_Vectorcall(function, handles, (size_t)count, NULL);
    Py_DECREF(function);
    *result = NULL;
    if (value == NULL && is_for_python(state)) {
        PyErr_Clear();
        return 0;
    }
    if (value == NULL)
        say_more(miss, args, count);
    else if (like.device != ci_host_device())
        *result = Py_NewRef(value);
    else
        *result = leave(state, value);
    Py_XDECREF(value);
    return 1;
}
