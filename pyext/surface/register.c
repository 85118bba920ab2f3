/* Devices from outside of the tree: register_device(device, compilers).
 *
 * A device is a capsule "cinductor.CiDevice", which another extension makes from its CiDevice,
 * or a Python object (object_device.c). Compilers are names of CPU compilers, whose kernels then
 * run on the memory of the device, or capsules "cinductor.CiCompiler". */
#include "surface/register.h"

#include "device/toolkit.h"
#include "surface/object_device.h"

#define COMPILER_CAPSULE "cinductor.CiCompiler"

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

/* register_device(device, compilers): returns its name. */
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
    capsule = PyCapsule_CheckExact(given) ? Py_NewRef(given) : cx_device_of_object(given);
    const CiDevice *device = capsule ? PyCapsule_GetPointer(capsule, CX_DEVICE_CAPSULE) : NULL;
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
