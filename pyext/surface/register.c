/* Devices from outside of the tree: register_device(device, compilers).
 *
 * A device is the path of a library that has a compiler, too (CiConnect), a capsule "cinductor.CiDevice", which
 * another extension makes from its CiDevice, or a Python object (object_device.c). Compilers of these are names of
 * CPU compilers, whose kernels then run on the memory of the device. */
#include "surface/register.h"

#include "device/toolkit.h"
#include "surface/object_device.h"

#include <dlfcn.h>

static const CiCompiler *
find_compiler(const CxState *state, PyObject *given)
{
    const char *name = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
    const CiBackend *backend = name ? ci_backend_find(state->runtime.registry, "cpu", name) : NULL;
    if (backend == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "a compiler is one of the processor's by name, not %R", given);
    return backend != NULL ? backend->compiler : NULL;
}

/* The device of a library, as a capsule, and its compiler. The library stays open. */
static PyObject *
connect_library(PyObject *path, const CiCompiler **compiler)
{
    const char *name = PyUnicode_AsUTF8(path);
    const CiDevice *device = NULL;
    void *library = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL,
         *symbol = library ? dlsym(library, "cinductor_connect") : NULL;
    CiConnect *connect;
    if (name == NULL)
        return NULL;
    memcpy(&connect, &symbol, sizeof symbol);
    const char *why = symbol ? connect(&ci_toolkit, &device, compiler) : dlerror();
    if (why == NULL)
        return PyCapsule_New((void *)(uintptr_t)device, CX_DEVICE_CAPSULE, NULL);
    return PyErr_Format(PyExc_OSError, "%s", why);
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
    if (PyUnicode_Check(given))
        count = (capsule = connect_library(given, &compilers[0])) != NULL;
    else
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
