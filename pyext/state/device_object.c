/* The base class of cinductor.Array: an object with a handle, which is an ndarray in the memory of
 * a device, or an ordinary one: an array of the CPU. */
#include "state/device_array.h"
#include "state/docs.h"

#include <structmember.h>

/* For the module's own class, from which others are derived. */
static CxState *
state_of(PyTypeObject *type)
{
    for (; type != NULL; type = type->tp_base) {
        CxState *state = PyType_GetModuleState(type);
        if (state != NULL)
            return state;
        PyErr_Clear();
    }
    return NULL;
}

/* The Array with this handle, borrowed; NULL without an exception if there is none. */
static CxDeviceArray *
find_array(const CxState *state, PyObject *key)
{
    PyObject *address = PyDict_GetItemWithError(state->arrays, key);
    return address != NULL ? PyLong_AsVoidPtr(address) : NULL;
}

/* A new array with the handle, or the one that has it already; steals the handle. */
static PyObject *
array_with(CxState *state, PyTypeObject *type, PyObject *handle)
{
    PyObject *key = PyLong_FromVoidPtr(handle), *address = NULL;
    CxDeviceArray *array = key != NULL ? find_array(state, key) : NULL;

    if (array != NULL && Py_TYPE(array) == type) {
        Py_INCREF(array);
        Py_DECREF(handle);
    } else if (key == NULL || PyErr_Occurred() ||
               (array = (CxDeviceArray *)type->tp_alloc(type, 0)) == NULL) {
        Py_DECREF(handle);
    } else {
        array->handle = handle;
        array->state = state;
        address = PyLong_FromVoidPtr(array);
        if (address == NULL || PyDict_SetItem(state->arrays, key, address) < 0)
            Py_CLEAR(array);
    }
    Py_XDECREF(address);
    Py_XDECREF(key);
    return (PyObject *)array;
}

/* Removes a dying array from those that are found by their handles. No other thread runs before, which could find
 * it. */
static void
forget_array(CxDeviceArray *array)
{
    CxAside aside = cx_set_aside();
    const CxState *state = array->state;
    PyObject *key = state != NULL && state->arrays != NULL ? PyLong_FromVoidPtr(array->handle) : NULL;

    if (key != NULL && find_array(state, key) == array)
        (void)PyDict_DelItem(state->arrays, key);
    Py_XDECREF(key);
    PyErr_Clear();
    cx_put_back(aside);
}

static PyObject *
object_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *handle = NULL;
    CxState *state = state_of(type);

    if (state == NULL || !PyArg_ParseTuple(args, "O:Array", &handle))
        return NULL;
    if (!cx_is_handle(state, handle) || (kwargs != NULL && PyDict_GET_SIZE(kwargs)))
        return PyErr_Format(PyExc_TypeError, "an Array is made by cinductor.to_device");
    return array_with(state, type, Py_NewRef(handle));
}

PyObject *
cx_device_array_object(CxState *state, PyObject *handle)
{
    return array_with(state, (PyTypeObject *)state->array_type, handle);
}

PyObject *
cx_device_result(CxState *state, PyObject *value)
{
    bool can_be = value != NULL && state->array_type != NULL;
    return can_be && cx_is_device_array(state, value) ? cx_device_array_object(state, value) : value;
}

static int
object_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((CxDeviceArray *)self)->handle);
    return 0;
}

static int
object_clear(PyObject *self)
{
    (void)self; /* the collector does not follow an ndarray's references */
    return 0;
}

static void
object_dealloc(PyObject *self)
{
    CxDeviceArray *array = (CxDeviceArray *)self;

    PyObject_GC_UnTrack(self);
    forget_array(array);
    if (array->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(array->handle);
    cx_object_free(self);
}

static PyMemberDef object_members[] = {
    CX_MEMBER(DeviceArray, _handle, T_OBJECT_EX, CxDeviceArray, handle, READONLY),
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CxDeviceArray, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_device_object_spec, DeviceArray, CxDeviceArray, Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        CX_SLOT(Py_tp_new, object_new), CX_SLOT(Py_tp_dealloc, object_dealloc),
        CX_SLOT(Py_tp_traverse, object_traverse), CX_SLOT(Py_tp_clear, object_clear),
        {Py_tp_members, object_members});

/* set_array_type(Array, leave): the class of result arrays. */
PyObject *
cx_set_array_type(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *type = NULL, *leave = NULL;

    if (!PyArg_ParseTuple(args, "O!O:set_array_type", &PyType_Type, &type, &leave))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)state->device_object_type))
        return PyErr_Format(PyExc_TypeError, "a class derived from DeviceArray is expected");
    if (state->arrays == NULL && (state->arrays = PyDict_New()) == NULL)
        return NULL;
    Py_XSETREF(state->array_type, Py_NewRef(type));
    Py_XSETREF(state->array_leave, Py_NewRef(leave));
    Py_RETURN_NONE;
}
