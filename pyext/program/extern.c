/* Library calls: wraps a Python callable as a CiExtern of the core, which does not know about
 * Python. A call takes the GIL, unless it can be made directly (direct.h). Calls with the same
 * (name, key) share one CiExtern. */
#include "program/direct.h"
#include "program/program.h"
#include "program/user_code.h"
#include "state/torch_functions.h"

/* An array over an operand. part: CI_OP_real or CI_OP_imag for a part of complex numbers, which
 * is strided; or none. */
static PyObject *
operand_array(CxState *state, CiDtype dtype, CiOp part, int rank, const int64_t *sizes,
              const int64_t *strides, void *data, bool is_writable)
{
    int64_t bytes[CI_MAX_RANK];
    CiDtype real = part == CI_OP_none ? dtype : ci_dtype_real(dtype);
    PyArray_Descr *descr = cx_descr(state, real);

    for (int k = 0; k < rank; k++)
        bytes[k] = strides[k] * ci_dtype_size(dtype);
    if (part == CI_OP_imag)
        data = (char *)data + ci_dtype_size(real);
    Py_INCREF(descr);
    return PyArray_NewFromDescr(&PyArray_Type, descr, rank, (const npy_intp *)sizes,
                                (const npy_intp *)bytes, data,
                                is_writable ? NPY_ARRAY_WRITEABLE : 0, NULL);
}

typedef struct Callee {
    CxState *state;
    PyObject *callable;
    CiOp parts[CX_MAX_OPERANDS + 1]; /* the parts it takes of its operands */
    bool is_of_numpy; /* a function of NumPy, which changes no operand and keeps no array */
    PyObject *functions;  /* of torch, if it takes tensors; or NULL: it takes arrays */
    const CxTorch *torch; /* the same */
    CxDirect direct;
} Callee;

/* The result buffer of the run that the call should fill, if `made` can be used as it is; else
 * -1. */
static int
find_result(const CxRun *run, const CiExternCall *call, PyArrayObject *made)
{
    for (int k = 0; k < run->program->nbuffers; k++) {
        PyArrayObject *buffer = (PyArrayObject *)run->buffers[k];
        if (buffer == NULL || PyArray_DATA(buffer) != call->result)
            continue;
        int rank = PyArray_NDIM(buffer);
        size_t bytes = (size_t)rank * sizeof(npy_intp);
        bool is_same = PyArray_NDIM(made) == rank &&
                       memcmp(PyArray_DIMS(made), PyArray_DIMS(buffer), bytes) == 0 &&
                       memcmp(PyArray_STRIDES(made), PyArray_STRIDES(buffer), bytes) == 0;
        return is_same && PyArray_EquivTypes(PyArray_DESCR(made), PyArray_DESCR(buffer)) ? k : -1;
    }
    return -1;
}

/* Takes the object that a callee returned. An array without other references becomes the result
 * itself, if the result leaves the program; otherwise it is copied. None means that the callee
 * has filled the buffer. */
static int32_t
take_result(const CiExternCall *call, PyObject *made, PyObject *out)
{
    PyArrayObject *array = (PyArrayObject *)made;
    bool is_own = call->arg != NULL && call->other_result != NULL && PyArray_CheckExact(made) &&
                  Py_REFCNT(made) == 1 && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) &&
                  PyArray_ISBEHAVED(array);
    int k = is_own ? find_result(call->arg, call, array) : -1;

    if (k >= 0) {
        Py_SETREF(((CxRun *)call->arg)->buffers[k], Py_NewRef(made));
        *call->other_result = PyArray_DATA(array);
        return 0;
    }
    return made == Py_None || PyArray_CopyObject((PyArrayObject *)out, made) == 0 ? 0 : CI_ERR_PYTHON;
}

/* Tensors over the operands and the result, in a list. */
static PyObject *
tensors_of(const Callee *callee, const CiExternCall *call)
{
    CxHandle handles[CX_MAX_OPERANDS + 1] = {NULL};
    CxTorchDevice place = cx_torch_device(callee->torch, call->queue);
    int n = call->noperands, made = 0;
    PyObject *tensors = NULL;

    for (; made <= n; made++) {
        CxTorchTensor *make = made < n ? cx_torch_operand : cx_torch_from_memory;
        void *memory = made < n ? call->operands[made] : call->result;
        handles[made] = make(callee->torch, place, memory, call->dtypes[made], call->ranks[made],
                             call->sizes[made], call->strides[made]);
        if (handles[made] == NULL)
            break;
    }
    if (made <= n)
        PyErr_Format(PyExc_RuntimeError, "torch makes no tensor of operand %d of %s", made, call->ext->name);
    else
        tensors = cx_torch_wrap(callee->torch, handles, made);
    for (int k = 0; k < made; k++)
        if (handles[k] != NULL)
            callee->torch->delete (handles[k]);
    return tensors;
}

/* Calls a function of tensors, on the host or on a device. */
static int32_t
call_with_tensors(const Callee *callee, const CiExternCall *call)
{
    CX_CALLBACK_BEGIN();
    if (call->arg != NULL)
        cx_generators_close(&((CxRun *)call->arg)->generators);
    PyObject *tensors = tensors_of(callee, call), *arguments = NULL, *result = NULL;
    if (tensors != NULL)
        arguments = PyList_AsTuple(tensors);
    if (arguments != NULL)
        result = PyObject_CallObject(callee->callable, arguments);
    Py_XDECREF(tensors);
    Py_XDECREF(arguments);
    int32_t status = result != NULL ? 0 : CI_ERR_PYTHON;
    Py_XDECREF(result);
    CX_CALLBACK_END();
    return status;
}

static int32_t
call_library(void *data, const CiExternCall *call)
{
    const Callee *callee = data;
    PyObject *args[CX_MAX_OPERANDS + 1] = {NULL}, *result = NULL, *before = NULL;
    int n = call->noperands;
    int32_t status = CI_ERR_PYTHON;

    if (callee->direct.run != NULL && callee->direct.run(&callee->direct, call))
        return 0;
    if (callee->torch != NULL)
        return call_with_tensors(callee, call);
    CX_CALLBACK_BEGIN();
    /* Python may wait for another thread, which may wait for a generator that this run holds. */
    if (call->arg != NULL)
        cx_generators_close(&((CxRun *)call->arg)->generators);
    for (int k = 0; k <= n; k++) {
        void *memory = k < n ? call->operands[k] : call->result;
        args[k] = operand_array(callee->state, call->dtypes[k], callee->parts[k], call->ranks[k],
                                call->sizes[k], call->strides[k], memory,
                                k == n || callee->is_of_numpy);
        if (args[k] == NULL)
            goto done;
    }
    if (callee->is_of_numpy && call->other_result != NULL &&
        cx_warm_enter(callee->state, call->dtypes[n], call->ranks[n], call->sizes[n], &before) < 0)
        goto done;
    result = call->quiet == 0
                 ? PyObject_Vectorcall(callee->callable, args, (size_t)n + 1, NULL)
                 : cx_call_quietly(callee->state, call->quiet, callee->callable, args, n + 1);
    if (cx_warm_leave(before) < 0)
        Py_CLEAR(result);
    if (result != NULL)
        status = take_result(call, result, args[n]);
done:
    Py_XDECREF(result);
    for (int k = 0; k <= n; k++)
        Py_XDECREF(args[k]);
    CX_CALLBACK_END();
    return status;
}

static bool
call_anywhere(void *data, const CiExternCall *call)
{
    const Callee *callee = data;
    return callee->direct.run_anywhere(&callee->direct, call);
}

static int32_t
call_on(void *data, const CiExternCall *call)
{
    const Callee *callee = data;
    return callee->torch != NULL ? call_library(data, call)
                                 : cx_user_code_call(callee->state, callee->callable, call);
}

/* Does nothing: the table of externs keeps each as long as the module, and programs do not
 * outlive it. */
static void
keep(void *data)
{
    (void)data;
}

static void
free_extern(PyObject *capsule)
{
    CiExtern *ext = PyCapsule_GetPointer(capsule, NULL);
    Callee *callee = ext->data;
    Py_DECREF(callee->callable);
    Py_XDECREF(callee->functions);
    PyMem_Free((void *)(uintptr_t)ext->name);
    PyMem_Free((void *)(uintptr_t)ext->key);
    PyMem_Free(callee);
    PyMem_Free(ext);
}

static bool
set_parts(Callee *callee, const CiOp *parts)
{
    bool has_parts = false;
    for (int k = 0; k <= CX_MAX_OPERANDS; k++) {
        callee->parts[k] = parts != NULL && k < CX_MAX_OPERANDS ? parts[k] : CI_OP_none;
        has_parts |= callee->parts[k] != CI_OP_none;
    }
    return has_parts;
}

/* Finds a way to make the call without Python: by its name, or by the callable's torch_call. */
static int
set_direct(CxState *state, Callee *callee, const char *name, const char *key)
{
    PyObject *torch_call = PyObject_GetAttrString(callee->callable, "torch_call");
    int result = 0;

    if (torch_call == NULL)
        PyErr_Clear();
    cx_direct_init(state, &callee->direct, name);
    cx_direct_reduce_init(state, &callee->direct, name, key);
    if (torch_call != NULL && torch_call != Py_None)
        result = PyTuple_Check(torch_call) && PyTuple_GET_SIZE(torch_call) == 3
                     ? cx_direct_aten_init(&callee->direct, torch_call)
                     : cx_direct_torch_init(&callee->direct, torch_call);
    Py_XDECREF(torch_call);
    return result;
}

static int
set_torch(Callee *callee)
{
    PyObject *functions = PyObject_GetAttrString(callee->callable, "torch_functions");

    if (functions == NULL)
        PyErr_Clear();
    if (functions == NULL || functions == Py_None) {
        Py_XDECREF(functions);
        return 0;
    }
    callee->functions = functions;
    callee->torch = cx_torch_of(functions);
    return callee->torch != NULL ? 0 : -1;
}

static PyObject *
new_capsule(CxState *state, const char *name, const char *key, PyObject *callable,
            int position_axis, bool may_fail, const CiOp *parts)
{
    CiExtern *ext = PyMem_Calloc(1, sizeof *ext);
    Callee *callee = PyMem_Calloc(1, sizeof *callee);
    char *own_name = cx_copy_text(name), *own_key = cx_copy_text(key);
    PyObject *capsule = NULL;

    if (ext != NULL && callee != NULL && own_name != NULL && own_key != NULL) {
        *callee = (Callee){.state = state,
                           .callable = Py_NewRef(callable),
                           .is_of_numpy = PyObject_HasAttrString(callable, "is_of_numpy")};
        bool launches = PyObject_HasAttrString(callable, "launch_on");
        bool has_failed = set_torch(callee) < 0 ||
                          (!set_parts(callee, parts) && set_direct(state, callee, name, key) < 0);
        *ext = (CiExtern){.name = own_name,
                          .key = own_key,
                          .call = call_library,
                          .call_anywhere =
                              callee->direct.run_anywhere != NULL ? call_anywhere : NULL,
                          .data = callee,
                          .retain = keep,
                          .release = keep,
                          .position_axis = position_axis,
                          .may_fail = may_fail,
                          .calls_back = callee->direct.run == NULL && callee->direct.run_anywhere == NULL && callee->torch == NULL,
                          .call_on = launches || callee->torch != NULL ? call_on : NULL,
                          .takes_strides = callee->torch != NULL};
        capsule = has_failed ? NULL : PyCapsule_New(ext, NULL, free_extern);
        if (capsule != NULL)
            return capsule;
        Py_DECREF(callable);
        Py_XDECREF(callee->functions);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(own_name);
    PyMem_Free(own_key);
    PyMem_Free(callee);
    PyMem_Free(ext);
    return NULL;
}

const CiExtern *
cx_extern_find(CxState *state, const char *name, const char *key, PyObject *callable,
               int position_axis, bool may_fail, const CiOp *parts)
{
    PyObject *pair = Py_BuildValue("(ss)", name, key), *capsule = NULL;
    const CiExtern *ext = NULL;
    int failed = 0;

    if (pair == NULL)
        return NULL;
    capsule = Py_XNewRef(cx_dict_find(state->externs, pair, &failed));
    if (capsule == NULL && !failed) {
        capsule = new_capsule(state, name, key, callable, position_axis, may_fail, parts);
        if (capsule != NULL && PyDict_SetItem(state->externs, pair, capsule) < 0)
            Py_CLEAR(capsule);
    }
    if (capsule != NULL)
        ext = PyCapsule_GetPointer(capsule, NULL);
    Py_XDECREF(capsule);
    Py_DECREF(pair);
    return ext;
}

/* Reads the operations by which the call takes parts of operands, from their numbers. */
static int
read_parts(PyObject *numbers, CiOp *parts)
{
    Py_ssize_t n = PyTuple_GET_SIZE(numbers);

    for (int k = 0; k < CX_MAX_OPERANDS; k++) {
        long number = k < n ? PyLong_AsLong(PyTuple_GET_ITEM(numbers, k)) : CI_OP_none;
        if (number == -1 && PyErr_Occurred())
            return -1;
        parts[k] = (CiOp)number;
        if (n > CX_MAX_OPERANDS ||
            (number != CI_OP_none && number != CI_OP_real && number != CI_OP_imag)) {
            PyErr_SetString(PyExc_ValueError, "no parts of operands are these");
            return -1;
        }
    }
    return 0;
}

/* add_extern(name, key, call, position_axis=0, may_fail=False, parts=()): registers a library
 * call under its name and key. */
PyObject *
cx_add_extern(PyObject *module, PyObject *args)
{
    const char *name = NULL, *key = NULL;
    PyObject *call = NULL, *numbers = NULL;
    int position_axis = 0, may_fail = 0;
    CiOp parts[CX_MAX_OPERANDS];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "ssO|ipO!:add_extern", &name, &key, &call, &position_axis,
                          &may_fail, &PyTuple_Type, &numbers) ||
        (numbers != NULL && read_parts(numbers, parts) < 0) ||
        cx_extern_find(PyModule_GetState(module), name, key, call, position_axis, may_fail,
                       numbers != NULL ? parts : NULL) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- library calls of graphs given as text ---- */

static const CiExtern *
find_known(CxState *state, const CiExtern *read, int *failed)
{
    PyObject *pair = Py_BuildValue("(ss)", read->name, read->key), *capsule = NULL;

    *failed = pair == NULL;
    if (pair != NULL)
        capsule = cx_dict_find(state->externs, pair, failed);
    Py_XDECREF(pair);
    return capsule != NULL ? PyCapsule_GetPointer(capsule, NULL) : NULL;
}

/* True if all of them are registered; -1 with an exception. */
static int
find_in(CxState *state, CiBlock *block, const CiExtern *products)
{
    int are_known = 1, failed = 0;

    for (int k = 0; k < block->nnodes && are_known >= 0; k++) {
        CiNode *node = block->nodes[k];
        if (ci_op_kind(node->op) == CI_OPKIND_extern) {
            const CiExtern *found =
                node->op == CI_OP_matmul ? products : find_known(state, node->ext, &failed);
            node->ext = found != NULL ? found : node->ext;
            are_known = failed ? -1 : found != NULL ? are_known : 0;
        }
        for (int b = 0; b < node->nblocks && are_known >= 0; b++) {
            int inside = find_in(state, node->blocks[b], products);
            are_known = inside == 1 ? are_known : inside;
        }
    }
    return are_known;
}

int
cx_find_externs(CxState *state, CiGraph *graph)
{
    const CiExtern *products =
        cx_extern_find(state, "matmul", "", state->ufuncs[CI_OP_matmul], 0, false, NULL);

    return products == NULL ? -1 : find_in(state, graph->body, products);
}

static PyObject *
tuple_of(const CiExtern *ext)
{
    const Callee *callee = ext->data;
    PyObject *parts = PyTuple_New(CX_MAX_OPERANDS);

    for (int k = 0; parts != NULL && k < CX_MAX_OPERANDS; k++)
        cx_put_item(&parts, k, PyLong_FromLong(callee->parts[k]));
    return parts == NULL ? NULL
                         : Py_BuildValue("(ssOiiN)", ext->name, ext->key, callee->callable,
                                         ext->position_axis, (int)ext->may_fail, parts);
}

static int
list_one(CxState *state, const CiExtern *read, PyObject *list)
{
    int failed = 0;
    const CiExtern *ext = find_known(state, read, &failed);
    PyObject *one = ext != NULL ? tuple_of(ext) : NULL;
    int is_there = one != NULL ? PySequence_Contains(list, one) : failed || ext != NULL ? -1 : 1;

    if (is_there == 0)
        is_there = PyList_Append(list, one);
    Py_XDECREF(one);
    return is_there < 0 ? -1 : 0;
}

/* Appends the library calls that the list does not have yet. */
static int
list_in(CxState *state, const CiBlock *block, PyObject *list)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        if (ci_op_kind(node->op) == CI_OPKIND_extern && node->op != CI_OP_matmul &&
            list_one(state, node->ext, list) < 0)
            return -1;
        for (int b = 0; b < node->nblocks; b++)
            if (list_in(state, node->blocks[b], list) < 0)
                return -1;
    }
    return 0;
}

PyObject *
cx_program_library_calls(PyObject *program, PyObject *unused)
{
    const CxProgram *p = (const CxProgram *)program;
    PyObject *list = PyList_New(0);

    (void)unused;
    if (list != NULL && p != NULL && list_in(p->state, p->graph->body, list) < 0)
        Py_CLEAR(list);
    return list;
}
