/* The type TensorProgram: a program, and the mapping between its inputs and results and torch's
 * arguments and outputs. */
#include "foreign/tensor_private.h"
#include "foreign/tensor_program.h"
#include "program/builder.h"
#include "state/docs.h"

#include <structmember.h>

/* ---- inputs ---- */

static int
read_inputs(CxTensorProgram *t, PyObject *inputs)
{
    const CiGraph *graph = t->program->graph;
    int n = (int)PyList_GET_SIZE(inputs);

    if (n != graph->ninputs) {
        PyErr_Format(PyExc_ValueError, "the graph takes %d inputs, not %d", graph->ninputs, n);
        return -1;
    }
    for (int k = 0; k < n; k++) {
        PyObject *one = PyList_GET_ITEM(inputs, k);
        t->inputs[k].argument = PyLong_Check(one) ? (int)PyLong_AsLong(one) : -1;
        if (PyErr_Occurred() || (PyLong_Check(one) && t->inputs[k].argument < 0)) {
            PyErr_SetString(PyExc_ValueError, "an input is the number of an argument or a tensor");
            return -1;
        }
        if (t->inputs[k].argument < 0)
            t->inputs[k].constant = Py_NewRef(one);
        for (int w = 0; w < graph->nwrites; w++)
            t->inputs[k].is_written |= graph->writes[w].input == graph->inputs[k];
    }
    return 0;
}

/* ---- what a call returns ---- */

typedef struct ReadNumber {
    CxTensorProgram *program;
    PyObject *size;
    int at;
} ReadNumber;

static void
body_number(CiContext *ctx, void *arg)
{
    ReadNumber *read = arg;
    CxTensorProgram *t = read->program;
    const CiExpr *e = cx_expr_from(t->program->graph, read->size);

    for (int k = 0; k < e->nsymbols; k++) {
        bool is_shown = false;
        for (int p = 0; p < t->nplaces; p++)
            is_shown |= t->places[p].symbol == e->symbols[k];
        if (!is_shown)
            ci_fail(ctx, CI_ERR_VALUE, "no input shows the value of %s", e->symbols[k]->name);
    }
    t->numbers[read->at] = e;
}

static int
add_number(CxTensorProgram *t, PyObject *size)
{
    const CiExpr **grown = PyMem_Realloc(t->numbers, sizeof *grown * (size_t)(t->nnumbers + 1));
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    t->numbers = grown;
    ReadNumber read = {t, size, t->nnumbers};
    if (cx_protect(t->program->state, t->program->ctx, body_number, &read) < 0)
        return -1;
    t->nnumbers++;
    return 0;
}

static int
add_numbers(CxTensorProgram *t, PyObject *sizes)
{
    PyObject *fast = PySequence_Fast(sizes, "sizes are a sequence");
    int result = fast != NULL ? 0 : -1;
    for (Py_ssize_t k = 0; result == 0 && k < PySequence_Fast_GET_SIZE(fast); k++)
        result = add_number(t, PySequence_Fast_GET_ITEM(fast, k));
    Py_XDECREF(fast);
    return result;
}

/* ("part", index, sizes, strides, offset, dtype) over a return of the program, or "view" over an argument. */
static int
read_part(CxTensorProgram *t, PyObject *one, CxGive *give)
{
    PyObject *sizes, *strides, *offset;
    const char *kind, *dtype;

    if (!PyArg_ParseTuple(one, "siOOOs", &kind, &give->index, &sizes, &strides, &offset, &dtype) ||
        add_numbers(t, sizes) < 0)
        return -1;
    give->rank = t->nnumbers - give->at;
    if (add_numbers(t, strides) < 0 || add_number(t, offset) < 0)
        return -1;
    if (give->rank > CI_MAX_RANK || t->nnumbers - give->at != 2 * give->rank + 1) {
        PyErr_SetString(PyExc_ValueError, "a part has a stride for each size");
        return -1;
    }
    give->dtype = ci_dtype_find(dtype);
    if (give->dtype == CI_DTYPE_none || t->torch->dtypes[give->dtype] < 0) {
        PyErr_Format(PyExc_ValueError, "torch has no dtype %s", dtype);
        return -1;
    }
    return 0;
}

static int
read_give(CxTensorProgram *t, PyObject *one, CxGive *give)
{
    static const char *const kinds[] = {"number", "result", "part", "input", "view", "size", "constant"};
    const char *kind = PyTuple_Check(one) && PyTuple_GET_SIZE(one) >= 2
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(one, 0))
                           : NULL;
    int number = 0;

    while (kind != NULL && number <= CX_GIVE_constant && strcmp(kinds[number], kind) != 0)
        number++;
    if (kind == NULL || number > CX_GIVE_constant) {
        PyErr_SetString(PyExc_ValueError, "what a call returns is a tuple of a kind and its values");
        return -1;
    }
    PyObject *value = PyTuple_GET_ITEM(one, 1);
    *give = (CxGive){.kind = (CxGiveKind)number, .at = t->nnumbers};
    if (give->kind == CX_GIVE_size)
        return add_number(t, value);
    if (give->kind == CX_GIVE_constant)
        give->constant = Py_NewRef(value);
    else if (give->kind == CX_GIVE_part || give->kind == CX_GIVE_view ? read_part(t, one, give) < 0
                 : (give->index = (int)PyLong_AsLong(value), PyErr_Occurred() != NULL))
        return -1;
    int limit = give->kind <= CX_GIVE_part ? t->program->nreturns : INT_MAX;
    if (give->index < 0 || give->index >= limit) {
        PyErr_Format(PyExc_ValueError, "the program has no return %d", give->index);
        return -1;
    }
    return 0;
}

/* A result buffer gets the layout of the first view of it, if that view covers all of it. */
static void
find_owners(CxTensorProgram *t)
{
    for (int k = 0; k < t->program->nbuffers; k++)
        t->owners[k] = -1;
    for (int k = 0; k < t->ngives; k++) {
        const CxGive *give = &t->gives[k];
        if (give->kind != CX_GIVE_part)
            continue;
        const CxReturn *back = &t->program->returns[give->index];
        if (!back->is_shared && back->layout.rank == give->rank && back->layout.dtype == give->dtype && t->owners[back->layout.result_buffer] < 0 &&
            ci_expr_equals_const(t->numbers[give->at + 2 * give->rank], 0))
            t->owners[back->layout.result_buffer] = k;
    }
}

static int
read_gives(CxTensorProgram *t, PyObject *gives)
{
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(gives); k++, t->ngives++)
        if (read_give(t, PyList_GET_ITEM(gives, k), &t->gives[k]) < 0) {
            t->ngives++; /* so that the references in it are released with the others */
            return -1;
        }
    find_owners(t);
    return 0;
}

/* ---- the type ---- */

/* Refuses dtypes for which torch has no number, because no tensor has them. */
static int
check_dtypes(const CxTensorProgram *t)
{
    for (int k = 0; k < t->program->nreturns; k++)
        if (t->torch->dtypes[t->program->returns[k].layout.dtype] < 0) {
            PyErr_Format(PyExc_ValueError, "return %d is of a dtype that torch has no number of", k);
            return -1;
        }
    return 0;
}

static int
fill(CxTensorProgram *t, PyObject *inputs, PyObject *gives)
{
    size_t ninputs = (size_t)PyList_GET_SIZE(inputs) + 1, ngives = (size_t)PyList_GET_SIZE(gives) + 1;

    t->inputs = PyMem_Calloc(ninputs, sizeof *t->inputs);
    t->gives = PyMem_Calloc(ngives, sizeof *t->gives);
    t->owners = PyMem_Calloc((size_t)t->program->nbuffers + 1, sizeof *t->owners);
    if (t->inputs == NULL || t->gives == NULL || t->owners == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    t->nplaces = cx_size_sources_find(t->program->graph, &t->places);
    return t->nplaces < 0 || read_inputs(t, inputs) < 0 || read_gives(t, gives) < 0 ? -1 : check_dtypes(t);
}

/* True if torch has tensors of the program's device, whose memory is the program's. */
static bool
has_tensors(const CxTorch *torch, const CxProgram *program)
{
    enum { CUDA = 2 }; /* of DLPack */
    const CiDevice *device = program->queue.backend->device;

    if (!ci_backend_has_memory(program->queue.backend))
        return !program->options.device_arrays;
    return program->options.device_arrays && device->dlpack == CUDA && torch->cuda >= 0 &&
           ci_program_device_count(program->program) == 1;
}

/* Reads the part of the graph on the host: (its program, the arguments that it takes, the number of all). */
static int
read_host(CxTensorProgram *t, PyObject *host)
{
    PyObject *program, *arguments;

    if (host == Py_None)
        return 0;
    if (!PyArg_ParseTuple(host, "O!O!i", Py_TYPE(t), &program, &PyList_Type, &arguments, &t->nargs))
        return -1;
    t->host = Py_NewRef(program);
    t->nhost_arguments = (int)PyList_GET_SIZE(arguments);
    t->host_arguments = PyMem_Calloc((size_t)t->nhost_arguments + 1, sizeof *t->host_arguments);
    if (t->host_arguments == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < t->nhost_arguments; k++) {
        t->host_arguments[k] = (int)PyLong_AsLong(PyList_GET_ITEM(arguments, k));
        if (!PyErr_Occurred() && (t->host_arguments[k] < 0 || t->host_arguments[k] >= t->nargs))
            PyErr_Format(PyExc_ValueError, "a call has no argument %d", t->host_arguments[k]);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* The number of arguments, unless results of a part on the host follow them. */
static int
count_arguments(const CxTensorProgram *t)
{
    int count = 0;

    for (int k = 0; k < t->program->graph->ninputs; k++)
        if (t->inputs[k].argument >= count)
            count = t->inputs[k].argument + 1;
    for (int k = 0; k < t->ngives; k++)
        if (cx_give_is_of_argument(&t->gives[k]) && t->gives[k].index >= count)
            count = t->gives[k].index + 1;
    return count;
}

/* TensorProgram(program, functions, inputs, returns, eager, host=None) */
static PyObject *
tensor_program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *program, *functions, *inputs, *gives, *eager, *host = Py_None;

    CX_ENTRY();
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOO!O!O|O:TensorProgram", &program, &functions, &PyList_Type, &inputs,
                          &PyList_Type, &gives, &eager, &host))
        return NULL;
    const CxTorch *torch = cx_torch_of(functions);
    if (torch == NULL)
        return NULL;
    if (!Py_IS_TYPE(program, (PyTypeObject *)torch->state->program_type) ||
        ((CxProgram *)program)->wrapper != NULL || ((CxProgram *)program)->program == NULL ||
        !has_tensors(torch, (CxProgram *)program))
        return PyErr_Format(PyExc_TypeError,
                            "tensors are for a Program that C runs, of the host or with arrays of CUDA");
    CxTensorProgram *t = (CxTensorProgram *)type->tp_alloc(type, 0);
    if (t == NULL)
        return NULL;
    t->place = cx_torch_device(torch, &((CxProgram *)program)->queue);
    t->dlpack = t->place.type == 0 ? 1 : ((CxProgram *)program)->queue.backend->device->dlpack;
    t->vectorcall = cx_tensor_program_call;
    t->program = (CxProgram *)Py_NewRef(program);
    t->functions = Py_NewRef(functions);
    t->torch = torch;
    t->eager = Py_NewRef(eager);
    int status = fill(t, inputs, gives);
    if (status == 0) {
        t->nargs = count_arguments(t);
        status = read_host(t, host);
    }
    if (status < 0)
        Py_CLEAR(t);
    return (PyObject *)t;
}

static int
tensor_program_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxTensorProgram *t = (CxTensorProgram *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->program);
    Py_VISIT(t->functions);
    Py_VISIT(t->eager);
    Py_VISIT(t->host);
    for (int k = 0; t->inputs != NULL && t->program != NULL && k < t->program->graph->ninputs; k++)
        Py_VISIT(t->inputs[k].constant);
    for (int k = 0; k < t->ngives; k++)
        Py_VISIT(t->gives[k].constant);
    return 0;
}

static int
tensor_program_clear(PyObject *self)
{
    CxTensorProgram *t = (CxTensorProgram *)self;
    Py_CLEAR(t->eager);
    Py_CLEAR(t->host);
    return 0;
}

static void
tensor_program_dealloc(PyObject *self)
{
    CxTensorProgram *t = (CxTensorProgram *)self;

    PyObject_GC_UnTrack(self);
    for (int k = 0; t->inputs != NULL && k < t->program->graph->ninputs; k++)
        Py_XDECREF(t->inputs[k].constant);
    for (int k = 0; k < t->ngives; k++)
        Py_XDECREF(t->gives[k].constant);
    PyMem_Free(t->inputs);
    PyMem_Free(t->gives);
    PyMem_Free(t->numbers);
    PyMem_Free(t->owners);
    PyMem_Free(t->places);
    PyMem_Free(t->host_arguments);
    Py_XDECREF(t->eager);
    Py_XDECREF(t->host);
    Py_XDECREF(t->functions);
    Py_XDECREF(t->program);
    cx_object_free(self);
}

static PyMemberDef tensor_program_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CxTensorProgram, vectorcall), READONLY, NULL},
    CX_MEMBER(TensorProgram, program, T_OBJECT, CxTensorProgram, program, READONLY),
    {NULL, 0, 0, 0, NULL},
};

CX_TYPE(cx_tensor_program_spec, TensorProgram, CxTensorProgram,
        Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
        CX_SLOT(Py_tp_new, tensor_program_new), CX_SLOT(Py_tp_dealloc, tensor_program_dealloc),
        CX_SLOT(Py_tp_traverse, tensor_program_traverse),
        CX_SLOT(Py_tp_clear, tensor_program_clear), CX_SLOT(Py_tp_members, tensor_program_members),
        CX_SLOT(Py_tp_call, PyVectorcall_Call));
