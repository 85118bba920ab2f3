/* The base class of cinductor.Array: an object with a handle, which is an ndarray in device
 * memory. */
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

static PyObject *
object_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *handle = NULL;
    CxState *state = state_of(type);

    if (state == NULL || !PyArg_ParseTuple(args, "O:Array", &handle))
        return NULL;
    if (!cx_is_device_array(state, handle) || (kwargs != NULL && PyDict_GET_SIZE(kwargs)))
        return PyErr_Format(PyExc_TypeError, "an Array is made by cinductor.to_device");
    CxDeviceArray *array = (CxDeviceArray *)type->tp_alloc(type, 0);
    if (array != NULL)
        array->handle = Py_NewRef(handle);
    return (PyObject *)array;
}

PyObject *
cx_device_array_object(CxState *state, PyObject *handle)
{
    PyTypeObject *type = (PyTypeObject *)state->array_type;
    CxDeviceArray *array = (CxDeviceArray *)type->tp_alloc(type, 0);

    if (array == NULL)
        Py_DECREF(handle);
    else
        array->handle = handle;
    return (PyObject *)array;
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
    (void)self; /* a handle has no references to other objects */
    return 0;
}

static void
object_dealloc(PyObject *self)
{
    CxDeviceArray *array = (CxDeviceArray *)self;

    PyObject_GC_UnTrack(self);
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
    Py_XSETREF(state->array_type, Py_NewRef(type));
    Py_XSETREF(state->array_leave, Py_NewRef(leave));
    Py_RETURN_NONE;
}
