/* Finds the ICD loader and the devices that cinductor can use, and registers them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const CiToolkit *kit;
OpenCL cl;
Device devices[MAX_DEVICES], every;
int ndevices;
static CiCompiler compiler;

static bool
open_loader(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
#define CL(name)                                                                                   \
    if (!library || !(symbol = dlsym(library, "cl" #name)))                                        \
        return false;                                                                              \
    memcpy(&cl.name, &symbol, sizeof symbol);
    CL_TABLE
#undef CL
    return true;
}

#define ASK(id, what, out) (void)cl.GetDeviceInfo(id, what, sizeof(out), &(out), NULL)

/* NULL, or what results with NumPy's bits and addresses inside of blocks need and the device lacks. */
static const char *
why_not(cl_device_id id)
{
    char profile[32] = "";
    cl_device_fp_config f32 = 0, needed = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST |
                                          CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    cl_device_svm_capabilities memory = 0;
    ASK(id, CL_DEVICE_PROFILE, profile);
    ASK(id, CL_DEVICE_SINGLE_FP_CONFIG, f32);
    ASK(id, CL_DEVICE_SVM_CAPABILITIES, memory);
    return strcmp(profile, "FULL_PROFILE")                 ? "no full profile"
           : !(memory & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) ? "no shared virtual memory"
           : (f32 & needed) != needed                      ? "f32 that is not rounded as in IEEE 754"
                                                           : NULL;
}

#define LESS(field) every.field = device->field < every.field ? device->field : every.field

static void
note_device(const Device *device)
{
    if (ndevices++ == 0)
        every = *device;
    LESS(has_f64);
    LESS(has_atomic64);
    LESS(local_bytes);
    LESS(parameter_bytes);
    LESS(group);
}

/* The next device; false if no context or queue can be made. */
static bool
open_device(cl_device_id id)
{
    Device *device = &devices[ndevices];
    void *own;
    char driver[128] = "", name[128] = "", extensions[8192] = "";
    cl_int error;
    *device = (Device){.id = id};
    ASK(id, CL_DEVICE_NAME, name);
    ASK(id, CL_DRIVER_VERSION, driver);
    ASK(id, CL_DEVICE_EXTENSIONS, extensions);
    ASK(id, CL_DEVICE_GLOBAL_MEM_SIZE, device->memory);
    ASK(id, CL_DEVICE_LOCAL_MEM_SIZE, device->local_bytes);
    ASK(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, device->group);
    ASK(id, CL_DEVICE_MAX_PARAMETER_SIZE, device->parameter_bytes);
    ASK(id, CL_DEVICE_MAX_COMPUTE_UNITS, device->units);
    memcpy(device->name, name, sizeof name);
    snprintf(device->about, sizeof device->about, "%s, driver %s", name, driver);
    device->has_f64 = strstr(extensions, "cl_khr_fp64") != NULL;
    device->has_atomic64 = strstr(extensions, "cl_khr_int64_base_atomics") &&
                           strstr(extensions, "cl_khr_int64_extended_atomics");
    device->context = cl.CreateContext(NULL, 1, &id, NULL, NULL, &error);
    if (error || stream_open(&(CiQueue){.index = ndevices}, &own))
        return false;
    note_device(device);
    return true;
}

/* Opens the devices of a platform. The reasons for those that are not used are added to `why`. */
static void
open_platform(cl_platform_id platform, char *why, size_t capacity)
{
    cl_device_id found[MAX_DEVICES];
    cl_uint count = 0;
    if (cl.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, found, &count))
        return;
    for (cl_uint k = 0; k < count && k < MAX_DEVICES && ndevices < MAX_DEVICES; k++) {
        const char *reason = why_not(found[k]);
        size_t length = strlen(why);
        if (reason || !open_device(found[k]))
            snprintf(why + length, capacity - length, "; a device has %s",
                     reason ? reason : "no context");
    }
}

static PyObject *
connect_to(PyObject *module, PyObject *toolkit)
{
    cl_platform_id platforms[MAX_DEVICES];
    cl_uint count = 0;
    char why[1024] = "";
    (void)module;
    kit = PyCapsule_GetPointer(toolkit, "cinductor.CiToolkit");
    if (!kit)
        return NULL;
    if (kit->abi != CI_DEVICE_ABI)
        return PyErr_Format(PyExc_ImportError, "built for another version of cinductor");
    if (!open_loader())
        return PyErr_Format(PyExc_OSError, "no OpenCL 2.0: libOpenCL.so.1 is not found or too old");
    if (cl.GetPlatformIDs(MAX_DEVICES, platforms, &count))
        count = 0;
    for (cl_uint k = 0; k < count && k < MAX_DEVICES; k++)
        open_platform(platforms[k], why, sizeof why);
    if (!ndevices)
        return PyErr_Format(PyExc_OSError, "no device of OpenCL that cinductor can use%s", why);
    adapt_dialect();
    compiler = kit->gpu_compiler(&opencl_vendor);
    return Py_BuildValue("NN", PyCapsule_New((void *)&opencl_device, "cinductor.CiDevice", NULL),
                         PyCapsule_New(&compiler, "cinductor.CiCompiler", NULL));
}

/* Takes f64, atomic operations of 64 bits or local memory from the devices, for tests. */
static PyObject *
limit(PyObject *module, PyObject *arguments)
{
    int has_f64, has_atomic64;
    unsigned long long local_bytes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ppK", &has_f64, &has_atomic64, &local_bytes))
        return NULL;
    every.has_f64 = has_f64;
    every.has_atomic64 = has_atomic64;
    for (int k = 0; k < ndevices; k++)
        devices[k].local_bytes = local_bytes;
    adapt_dialect();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"connect", connect_to, METH_O, "The device and its compiler, as capsules."},
    {"limit", limit, METH_VARARGS, "Whether there is f64, 64-bit atomics; bytes of local memory."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_opencl", "Devices of OpenCL.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__opencl(void)
{
    return PyModule_Create(&definition);
}
