/* Library calls: a Python callable as the core's CiExtern. The core never learns that it is Python;
 * a call takes the lock itself, unless it can be made directly. The same (name, key) is the same
 * call, so each pair is kept once.
 */
#include "program/direct.h"
#include "program/program.h"

/* part: CI_OP_real or CI_OP_imag of complex numbers, which lies where they do; or none. */
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
    CiOp parts[CX_MOST_OPERANDS + 1]; /* that it takes of its operands */
    CxDirect direct;
} Callee;

static int32_t
call_library(void *data, const CiExternCall *call)
{
    const Callee *callee = data;
    PyObject *args[CX_MOST_OPERANDS + 1] = {NULL}, *result = NULL;
    int n = call->noperands;
    int32_t status = CI_ERR_PYTHON;

    if (callee->direct.run != NULL && callee->direct.run(&callee->direct, call))
        return 0;
    CX_CALLBACK_BEGIN();
    if (call->arg != NULL) /* Python may wait for another thread, and that for a generator */
        cx_generators_close(&((CxRun *)call->arg)->generators);
    for (int k = 0; k <= n; k++) {
        void *memory = k < n ? call->operands[k] : call->result;
        args[k] = operand_array(callee->state, call->dtypes[k], callee->parts[k], call->ranks[k],
                                call->sizes[k], call->strides[k], memory, k == n);
        if (args[k] == NULL)
            goto done;
    }
    result = PyObject_Vectorcall(callee->callable, args, (size_t)n + 1, NULL);
    if (result != NULL)
        status = 0;
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

/* The table of externs keeps each for as long as the module lives, and programs do not outlive it.
 */
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
    PyMem_Free((void *)(uintptr_t)ext->name);
    PyMem_Free((void *)(uintptr_t)ext->key);
    PyMem_Free(callee);
    PyMem_Free(ext);
}

static char *
copy_of(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = PyMem_Malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

static bool
set_parts(Callee *callee, const CiOp *parts)
{
    bool has_parts = false;
    for (int k = 0; k <= CX_MOST_OPERANDS; k++) {
        callee->parts[k] = parts != NULL && k < CX_MOST_OPERANDS ? parts[k] : CI_OP_none;
        has_parts |= callee->parts[k] != CI_OP_none;
    }
    return has_parts;
}

static PyObject *
new_capsule(CxState *state, const char *name, const char *key, PyObject *callable,
            int position_axis, bool may_fail, const CiOp *parts)
{
    CiExtern *ext = PyMem_Calloc(1, sizeof *ext);
    Callee *callee = PyMem_Calloc(1, sizeof *callee);
    char *own_name = copy_of(name), *own_key = copy_of(key);
    PyObject *capsule = NULL;

    if (ext != NULL && callee != NULL && own_name != NULL && own_key != NULL) {
        *callee = (Callee){.state = state, .callable = Py_NewRef(callable)};
        if (!set_parts(callee, parts))
            cx_direct_init(state, &callee->direct, name);
        *ext = (CiExtern){.name = own_name,
                          .key = own_key,
                          .call = call_library,
                          .call_anywhere =
                              callee->direct.run_anywhere != NULL ? call_anywhere : NULL,
                          .data = callee,
                          .retain = keep,
                          .release = keep,
                          .position_axis = position_axis,
                          .may_fail = may_fail};
        capsule = PyCapsule_New(ext, NULL, free_extern);
        if (capsule != NULL)
            return capsule;
        Py_DECREF(callable);
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

/* add_extern(name, key, call): that library call is known by its name and key. */
PyObject *
cx_add_extern(PyObject *module, PyObject *args)
{
    const char *name = NULL, *key = NULL;
    PyObject *call = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "ssO:add_extern", &name, &key, &call) ||
        cx_extern_find(PyModule_GetState(module), name, key, call, 0, false, NULL) == NULL)
        return NULL;
    Py_RETURN_NONE;
}

bool
cx_are_products(CiBlock *block, const CiExtern *products)
{
    for (int k = 0; k < block->nnodes; k++) {
        CiNode *node = block->nodes[k];
        if (ci_op_kind(node->op) == CI_OPKIND_extern && node->op != CI_OP_matmul)
            return false;
        if (node->op == CI_OP_matmul && products != NULL)
            node->ext = products;
        for (int b = 0; b < node->nblocks; b++)
            if (!cx_are_products(node->blocks[b], products))
                return false;
    }
    return true;
}

int
cx_find_products(CxState *state, CiGraph *graph)
{
    const CiExtern *products =
        cx_extern_find(state, "matmul", "", state->ufuncs[CI_OP_matmul], 0, false, NULL);

    return products == NULL ? -1 : cx_are_products(graph->body, products);
}
