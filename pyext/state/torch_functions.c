/* Finds the functions of the installed torch. */
#include "state/torch_functions.h"

#include "state/docs.h"

#include <dlfcn.h>

#define NAME "cinductor.torch_functions"

/* DLPackExchangeAPI, as of version 1 of DLPack. */
typedef struct ExchangeTable {
    uint32_t major, minor;
    void *older;
    void *allocate, *managed_from, *managed_to;
    int (*view)(void *object, CxDlTensor *out);
    int (*stream)(int32_t type, int32_t index, void **stream);
} ExchangeTable;

static bool
find(const CxTorch *torch, const char *name, void *function)
{
    void *found = dlsym(torch->library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* Finds torch's number of each dtype; those that it lacks stay negative. */
static void
find_dtypes(CxTorch *torch)
{
    static const char *const names[CI_DTYPE_COUNT] = {
        [CI_DTYPE_bool] = "bool",     [CI_DTYPE_i8] = "int8",       [CI_DTYPE_i16] = "int16",
        [CI_DTYPE_i32] = "int32",     [CI_DTYPE_i64] = "int64",     [CI_DTYPE_u8] = "uint8",
        [CI_DTYPE_u16] = "uint16",    [CI_DTYPE_u32] = "uint32",    [CI_DTYPE_u64] = "uint64",
        [CI_DTYPE_f16] = "float16",   [CI_DTYPE_bf16] = "bfloat16", [CI_DTYPE_f32] = "float32",
        [CI_DTYPE_f64] = "float64",   [CI_DTYPE_c64] = "complex64", [CI_DTYPE_c128] = "complex128"};
    for (int d = 0; d < CI_DTYPE_COUNT; d++) {
        char name[64] = "";
        int32_t (*number)(void) = NULL;
        if (names[d] != NULL)
            snprintf(name, sizeof name, "aoti_torch_dtype_%s", names[d]);
        torch->dtypes[d] = name[0] != '\0' && find(torch, name, &number) ? number() : -1;
    }
}

static bool
find_all(CxTorch *torch)
{
    return find(torch, "aoti_torch_empty_strided", &torch->empty_strided) &&
           find(torch, "aoti_torch_create_tensor_from_blob_v2", &torch->from_memory) &&
           find(torch, "aoti_torch__reinterpret_tensor", &torch->reinterpret) &&
           find(torch, "aoti_torch_view_dtype", &torch->view_dtype) &&
           find(torch, "aoti_torch_clone_preserve_strides", &torch->clone) &&
           find(torch, "aoti_torch_copy_", &torch->copy) &&
           find(torch, "aoti_torch_get_data_ptr", &torch->data_of) &&
           find(torch, "aoti_torch_get_dim", &torch->rank_of) &&
           find(torch, "aoti_torch_get_sizes", &torch->sizes_of) &&
           find(torch, "aoti_torch_get_strides", &torch->strides_of) &&
           find(torch, "aoti_torch_get_dtype", &torch->dtype_of) &&
           find(torch, "aoti_torch_new_uninitialized_tensor", &torch->new_undefined) &&
           find(torch, "aoti_torch_delete_tensor_object", &torch->delete);
}

static void
find_devices(CxTorch *torch)
{
    int32_t (*number)(void) = NULL;
    torch->cuda = find(torch, "aoti_torch_device_type_cuda", &number) ? number() : -1;
}

/* Calls of the dispatcher take the ABI version of the loaded library. */
static void
find_dispatcher(CxTorch *torch)
{
    uint64_t (*version)(void) = NULL;
    bool has_all = find(torch, "aoti_torch_abi_version", &version) &&
                   find(torch, "torch_new_list_reserve_size", &torch->new_list) &&
                   find(torch, "torch_list_push_back", &torch->push) &&
                   find(torch, "torch_delete_list", &torch->delete_list) &&
                   (find(torch, "torch_new_stable_ivalue", &torch->new_value) ||
                    (find(torch, "_ZnwmRKSt9nothrow_t", &torch->new_object) &&
                     find(torch, "_ZSt7nothrow", &torch->nothrow))) &&
                   find(torch, "torch_call_dispatcher", &torch->dispatch);
    torch->version = has_all ? version() : 0;
    if (!has_all)
        torch->dispatch = NULL;
}

/* The library stays open: those of its functions that are found are called until the process ends. */
static void
free_functions(PyObject *capsule)
{
    CxTorch *torch = PyCapsule_GetPointer(capsule, NAME);
    Py_XDECREF(torch->types);
    Py_XDECREF(torch->is_conj);
    Py_XDECREF(torch->is_neg);
    Py_XDECREF(torch->wrap);
    PyMem_Free(torch);
}

/* torch_functions(library, exchange, types, is_conj, is_neg, wrap): the functions that
 * TensorProgram needs, or None if this torch lacks one. library: the path of torch's C++
 * library, which is loaded. */
static PyObject *
torch_functions(PyObject *module, PyObject *args)
{
    const char *path = NULL;
    PyObject *exchange = NULL, *types = NULL, *is_conj = NULL, *is_neg = NULL, *wrap = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sOO!OOO:torch_functions", &path, &exchange, &PyTuple_Type, &types,
                          &is_conj, &is_neg, &wrap))
        return NULL;
    const ExchangeTable *table = PyCapsule_GetPointer(exchange, "dlpack_exchange_api");
    if (table == NULL)
        return NULL;
    CxTorch *torch = PyMem_Calloc(1, sizeof *torch);
    if (torch == NULL)
        return PyErr_NoMemory();
    torch->state = PyModule_GetState(module);
    torch->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (table->major != 1 || table->view == NULL || table->stream == NULL || torch->library == NULL ||
        !find_all(torch)) {
        PyMem_Free(torch);
        Py_RETURN_NONE;
    }
    find_dtypes(torch);
    find_devices(torch);
    find_dispatcher(torch);
    torch->view = table->view;
    torch->stream = table->stream;
    torch->types = Py_NewRef(types);
    torch->is_conj = Py_NewRef(is_conj);
    torch->is_neg = Py_NewRef(is_neg);
    torch->wrap = Py_NewRef(wrap);
    PyObject *capsule = PyCapsule_New(torch, NAME, free_functions);
    if (capsule == NULL)
        PyMem_Free(torch); /* out of memory: the references stay */
    return capsule;
}

PyMethodDef cx_torch_methods[] = {
    CX_FUNCTION(torch_functions, torch_functions, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

const CxTorch *
cx_torch_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NAME);
}

/* torch's strides are not negative: for others its functions end the process. */
static bool
has_reversed(int rank, const int64_t *strides)
{
    for (int axis = 0; axis < rank; axis++)
        if (strides[axis] < 0)
            return true;
    return false;
}

uint64_t *
cx_torch_new_value(const CxTorch *torch)
{
    uint64_t *made = NULL;

    if (torch->new_value == NULL)
        return torch->new_object(sizeof *made, torch->nothrow);
    return torch->new_value(&made) == 0 ? made : NULL;
}

CxTorchDevice
cx_torch_device(const CxTorch *torch, const CiQueue *queue)
{
    bool is_host = queue == NULL || !ci_backend_has_memory(queue->backend);
    return is_host ? (CxTorchDevice){0, 0} : (CxTorchDevice){torch->cuda, queue->index};
}

PyObject *
cx_torch_wrap(const CxTorch *torch, CxHandle *handles, int count)
{
    PyObject *capsules = PyList_New(0), *tensors = NULL;

    for (int k = 0; capsules != NULL && k < count; k++) {
        PyObject *one = handles[k] != NULL ? PyCapsule_New(handles[k], NULL, NULL) : NULL;
        if (handles[k] != NULL && (one == NULL || PyList_Append(capsules, one) < 0))
            Py_CLEAR(capsules);
        Py_XDECREF(one);
    }
    if (capsules == NULL || PyList_GET_SIZE(capsules) == 0)
        return capsules;
    tensors = PyObject_CallOneArg(torch->wrap, capsules);
    Py_DECREF(capsules);
    if (tensors != NULL || !PyErr_ExceptionMatches(PyExc_TypeError))
        memset(handles, 0, sizeof *handles * (size_t)count);
    return tensors;
}

bool
cx_torch_has_layout(const CxTorch *torch, CxHandle tensor, CiDtype dtype, int rank, const int64_t *sizes,
                    const int64_t *strides)
{
    int64_t its_rank = -1, *its_sizes = NULL, *its_strides = NULL;
    int32_t its_dtype = -1;

    if (torch->rank_of(tensor, &its_rank) != 0 || its_rank != rank || torch->sizes_of(tensor, &its_sizes) != 0 ||
        torch->strides_of(tensor, &its_strides) != 0 || torch->dtype_of(tensor, &its_dtype) != 0 ||
        its_dtype != torch->dtypes[dtype])
        return false;
    for (int k = 0; k < rank; k++)
        if (its_sizes[k] != sizes[k] || (strides != NULL && sizes[k] != 1 && its_strides[k] != strides[k]))
            return false;
    return true;
}

CxHandle
cx_torch_from_memory(const CxTorch *torch, CxTorchDevice place, void *data, CiDtype dtype, int rank,
                     const int64_t *sizes, const int64_t *strides)
{
    CxHandle made = NULL;

    for (int axis = 0; axis < rank; axis++)
        if (sizes[axis] == 0 && place.type != 0)
            data = NULL; /* torch asks a GPU's driver about other addresses; on the CPU it refuses NULL */
    if (torch->dtypes[dtype] < 0 || has_reversed(rank, strides) ||
        torch->from_memory(data, rank, sizes, strides, 0, torch->dtypes[dtype], place.type, place.index, &made,
                           0, NULL, 0) != 0)
        return NULL;
    return made;
}

/* Copies elements to dense memory in C order, and returns the end of the copy. */
static char *
copy_elements(char *into, const char *from, size_t size, int rank, const int64_t *sizes, const int64_t *strides)
{
    if (rank == 0) {
        memcpy(into, from, size);
        return into + size;
    }
    for (int64_t k = 0; k < sizes[0]; k++)
        into = copy_elements(into, from + k * strides[0] * (int64_t)size, size, rank - 1, sizes + 1, strides + 1);
    return into;
}

CxHandle
cx_torch_operand(const CxTorch *torch, CxTorchDevice place, void *data, CiDtype dtype, int rank,
                 const int64_t *sizes, const int64_t *strides)
{
    int64_t dense[CI_MAX_RANK], step = 1;
    CxHandle copy = NULL;
    void *memory;

    if (torch->dtypes[dtype] < 0 || !has_reversed(rank, strides))
        return cx_torch_from_memory(torch, place, data, dtype, rank, sizes, strides);
    if (place.type != 0)
        return NULL;
    for (int axis = rank - 1; axis >= 0; axis--) {
        dense[axis] = step;
        step *= sizes[axis];
    }
    if (torch->empty_strided(rank, sizes, dense, torch->dtypes[dtype], 0, 0, &copy) != 0)
        return NULL;
    if (torch->data_of(copy, &memory) == 0)
        copy_elements(memory, data, (size_t)ci_dtype_size(dtype), rank, sizes, strides);
    return copy;
}
