/* Calls a program with torch tensors. Arguments go in by pointer; no Python code runs in
 * between. On a device, all work is queued on torch's current stream, and nothing waits for it.
 *
 * If the program does not accept the arguments (another type, dtype, rank or device, sizes that
 * its graph excludes), or a check fails, eager runs with the same arguments. No argument has
 * been written then. */
#include "foreign/tensor_private.h"
#include "state/array.h"

enum { DEVICE_HOST = 1 }; /* of DLPack */

/* ---- memory of a call ---- */

/* Reserves rows of `size` bytes; in the first pass base is NULL and only the sizes are added up. */
static void *
carve(char *base, size_t *at, int count, size_t size)
{
    void *row = base != NULL ? base + *at : NULL;
    *at += ((size_t)count * size + 15) / 16 * 16;
    return row;
}

static size_t
lay_out(CxTensorCall *call, const CxTensorProgram *t, char *base)
{
    int n = t->program->graph->ninputs, nbuffers = t->program->nbuffers;
    size_t at = (sizeof *call + 15) / 16 * 16;

    call->tensors = carve(base, &at, n, sizeof *call->tensors);
    call->objects = carve(base, &at, n, sizeof *call->objects);
    call->data = carve(base, &at, n, sizeof *call->data);
    call->sizes = carve(base, &at, n, sizeof *call->sizes);
    call->strides = carve(base, &at, n, sizeof *call->strides);
    call->copies = carve(base, &at, n, sizeof *call->copies);
    call->differs = carve(base, &at, n, sizeof *call->differs);
    call->is_read = carve(base, &at, n, sizeof *call->is_read);
    call->scalars = carve(base, &at, t->program->nscalars, sizeof *call->scalars);
    call->numbers = carve(base, &at, t->nnumbers, sizeof *call->numbers);
    call->buffers = carve(base, &at, nbuffers, sizeof *call->buffers);
    call->memory = carve(base, &at, nbuffers, sizeof *call->memory);
    call->has_layout = carve(base, &at, nbuffers, sizeof *call->has_layout);
    call->bases = carve(base, &at, t->program->nreturns, sizeof *call->bases);
    call->is_taken = carve(base, &at, t->program->nreturns, sizeof *call->is_taken);
    call->made = carve(base, &at, t->ngives, sizeof *call->made);
    call->given = carve(base, &at, t->ngives, sizeof *call->given);
    call->run.buffers = carve(base, &at, nbuffers, sizeof *call->run.buffers);
    return at;
}

static CxTensorCall *
open_call(CxTensorProgram *t)
{
    CxTensorCall measured;
    size_t size = lay_out(&measured, t, NULL);
    CxTensorCall *call = PyMem_Calloc(1, size);

    if (call == NULL)
        return (CxTensorCall *)PyErr_NoMemory();
    lay_out(call, t, (char *)call);
    call->program = t;
    call->shown = (CxCallSizes){t->program->graph, t->places, t->nplaces, call->sizes, call->strides,
                                call->scalars};
    call->run.program = t->program;
    call->run.inputs = call->data;
    call->run.sizes = call->sizes;
    call->run.input_objects = call->objects;
    call->run.scalars = call->scalars;
    call->run.new_result = cx_tensor_new_result;
    call->run.put_tensor = cx_tensor_put;
    call->run.drop = cx_tensor_drop;
    call->run.take = cx_tensor_take;
    call->run.give = cx_tensor_give;
    call->run.has_stream = t->dlpack != DEVICE_HOST;
    return call;
}

static void
close_call(CxTensorCall *call)
{
    cx_tensor_returns_close(call);
    cx_run_close(&call->run);
    cx_tensor_memory_close(call);
    for (int k = 0; k < call->run.program->graph->ninputs; k++) {
        if (call->copies[k] != NULL)
            call->program->torch->delete (call->copies[k]);
        Py_XDECREF(call->objects[k]);
    }
    for (int k = 0; k < call->program->ngives; k++)
        Py_XDECREF(call->given[k]);
    PyMem_Free(call);
}

/* ---- arguments: 1 if the program accepts them, 0 if not, -1 with an exception ---- */

static bool
is_plain(const CxTorch *torch, PyObject *object)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(torch->types); k++)
        if ((PyObject *)Py_TYPE(object) == PyTuple_GET_ITEM(torch->types, k))
            return true;
    return false;
}

static int
has_bit(PyObject *method, PyObject *tensor)
{
    PyObject *answer = PyObject_CallOneArg(method, tensor);
    int bit = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return bit;
}

/* Materialises a tensor that is lazily conjugated or negated. */
static int
resolve(CxTensorCall *call, int k, CiDtype dtype)
{
    static const char *const methods[] = {"resolve_conj", "resolve_neg"};
    const CxTorch *torch = call->program->torch;
    int conj = (dtype == CI_DTYPE_c64 || dtype == CI_DTYPE_c128) ? has_bit(torch->is_conj, call->objects[k]) : 0;
    int neg = conj >= 0 ? has_bit(torch->is_neg, call->objects[k]) : -1;

    if (conj < 0 || neg < 0)
        return -1;
    if (!conj && !neg)
        return 1;
    if (call->program->inputs[k].is_written)
        return 0;
    for (int m = 0; m < 2; m++) {
        PyObject *resolved = PyObject_CallMethod(call->objects[k], methods[m], NULL);
        if (resolved == NULL)
            return -1;
        Py_SETREF(call->objects[k], resolved);
    }
    return 1;
}

static bool
has_elements(const CxDlTensor *tensor)
{
    bool has = true;
    for (int k = 0; k < tensor->ndim; k++)
        has &= tensor->shape[k] > 0;
    return has;
}

static int
read_tensor(CxTensorCall *call, int k)
{
    static char nowhere[1];
    const CxTensorProgram *t = call->program;
    const CiNode *node = call->shown.graph->inputs[k];
    CxDlTensor *tensor = &call->tensors[k];
    int ready = is_plain(call->program->torch, call->objects[k]) ? resolve(call, k, node->dtype) : 0;

    if (ready <= 0)
        return ready;
    if (call->program->torch->view(call->objects[k], tensor) != 0) {
        PyErr_Clear(); /* eager raises its own exception */
        return 0;
    }
    if (tensor->device_type != t->dlpack || (t->dlpack != DEVICE_HOST && tensor->device_id != t->place.index) ||
        cx_dlpack_dtype(tensor) != node->dtype || tensor->ndim != node->rank || (tensor->strides == NULL && node->rank > 0))
        return 0;
    if (tensor->data == NULL && has_elements(tensor)) { /* eager would read it, and end the process */
        PyErr_Format(PyExc_RuntimeError,
                     "argument %d of a compiled graph has elements and no memory: its storage was resized to 0",
                     t->inputs[k].argument);
        return -1;
    }
    call->data[k] = tensor->data != NULL ? (char *)tensor->data + tensor->byte_offset : nowhere;
    call->sizes[k] = tensor->shape;
    call->strides[k] = tensor->strides;
    return 1;
}

/* The number in memory, as the slot of an input of that dtype has it. */
static bool
load_number(const void *data, CiDtype from, CiDtype dtype, CiSlot *slot)
{
    double real = 0;
    int64_t integer = 0;

    switch (from) {
#define LOAD(name, type, into)                                                                                \
    case CI_DTYPE_##name:                                                                                     \
        into = *(const type *)data;                                                                           \
        break;
        LOAD(f64, double, real)
        LOAD(f32, float, real)
        LOAD(i64, int64_t, integer)
        LOAD(i32, int32_t, integer)
        LOAD(i16, int16_t, integer)
        LOAD(i8, int8_t, integer)
        LOAD(u8, uint8_t, integer)
        LOAD(bool, uint8_t, integer)
#undef LOAD
    default:
        return false;
    }
    bool is_real = from == CI_DTYPE_f64 || from == CI_DTYPE_f32;
    if (is_real != (dtype == CI_DTYPE_f64))
        return false;
    if (is_real)
        slot->f = real;
    else
        slot->i = integer;
    return true;
}

/* A number: Python's, or the element of a tensor of the host, beside tensors of a device. */
static int
read_number(CxTensorCall *call, int k, CiSlot *slot)
{
    const CxTorch *torch = call->program->torch;
    CiDtype dtype = call->shown.graph->inputs[k]->dtype;
    CxDlTensor *tensor = &call->tensors[k];

    if (!is_plain(torch, call->objects[k]))
        return cx_slot_from(call->objects[k], dtype, slot) < 0 ? -1 : 1;
    if (torch->view(call->objects[k], tensor) != 0) {
        PyErr_Clear();
        return 0;
    }
    return tensor->device_type == DEVICE_HOST && tensor->ndim == 0 && tensor->data != NULL &&
           load_number((char *)tensor->data + tensor->byte_offset, cx_dlpack_dtype(tensor), dtype, slot);
}

/* Takes references to the arguments of these numbers before reading any, because torch releases the GIL and
 * another thread may change the list. */
static bool
keep_arguments(CxTensorCall *call, PyObject *arguments, int first, int end)
{
    const CxTensorProgram *t = call->program;

    if (PyList_GET_SIZE(arguments) < end - first)
        return false;
    for (int k = 0; k < call->shown.graph->ninputs; k++) {
        int argument = t->inputs[k].argument;
        if (t->inputs[k].constant != NULL && first == 0)
            call->objects[k] = Py_NewRef(t->inputs[k].constant);
        else if (t->inputs[k].constant == NULL && argument >= first && argument < end)
            call->objects[k] = Py_NewRef(PyList_GET_ITEM(arguments, argument - first));
    }
    for (int k = 0; k < t->ngives; k++) {
        int argument = t->gives[k].index;
        if (cx_give_is_of_argument(&t->gives[k]) && argument >= first && argument < end)
            call->given[k] = Py_NewRef(PyList_GET_ITEM(arguments, argument - first));
    }
    return true;
}

static bool
has_all(const CxTensorCall *call)
{
    bool has = true;
    for (int k = 0; k < call->shown.graph->ninputs; k++)
        has &= call->objects[k] != NULL;
    for (int k = 0; k < call->program->ngives; k++)
        has &= !cx_give_is_of_argument(&call->program->gives[k]) || call->given[k] != NULL;
    return has;
}

/* Reads those that are known, and not read yet. */
static int
read_arguments(CxTensorCall *call)
{
    int nscalars = 0, ready = 1;

    for (int k = 0; ready == 1 && k < call->shown.graph->ninputs; k++) {
        bool is_number = call->shown.graph->inputs[k]->kind == CI_KIND_python;
        int scalar = nscalars;
        nscalars += is_number;
        if (call->objects[k] == NULL || call->is_read[k])
            continue;
        call->is_read[k] = true;
        ready = is_number ? read_number(call, k, &call->scalars[scalar]) : read_tensor(call, k);
    }
    return ready;
}

/* The part of the graph on the host. After it, eager must not run the graph: it would do that part again. */
static int
run_host(CxTensorCall *call, PyObject *arguments)
{
    const CxTensorProgram *t = call->program;
    PyObject *some = PyList_New(t->nhost_arguments), *made = NULL;

    for (int k = 0; some != NULL && k < t->nhost_arguments; k++)
        PyList_SET_ITEM(some, k, Py_NewRef(PyList_GET_ITEM(arguments, t->host_arguments[k])));
    if (some != NULL)
        made = PyObject_CallOneArg(t->host, some);
    Py_XDECREF(some);
    int end = made != NULL ? t->nargs + (int)PyList_GET_SIZE(made) : 0;
    int ready = made == NULL ? -1 : keep_arguments(call, made, t->nargs, end) && has_all(call) ? read_arguments(call) : 0;
    Py_XDECREF(made);
    if (ready == 0)
        PyErr_SetString(PyExc_RuntimeError, "results of the host are not those that torch has described");
    return ready == 1 ? 1 : -1;
}

/* ---- sizes ---- */

static void
body_sizes(CiContext *ctx, void *arg)
{
    CxTensorCall *call = arg;
    const CxTensorProgram *t = call->program;
    int wrong;

    call->is_wanted = cx_call_sizes_fit(ctx, &call->shown, &wrong);
    for (int k = 0; call->is_wanted && k < call->shown.graph->ninputs; k++)
        call->differs[k] = cx_call_strides_differ(ctx, &call->shown, k);
    for (int k = 0; call->is_wanted && k < t->nnumbers; k++)
        call->numbers[k] = t->numbers[k]->kind == CI_EXPR_const
                               ? t->numbers[k]->value
                               : ci_expr_evaluate(ctx, t->numbers[k], cx_call_symbol, &call->shown);
}

typedef struct Strides {
    CxTensorCall *call;
    int input;
    int64_t strides[CI_MAX_RANK];
} Strides;

static void
body_strides(CiContext *ctx, void *arg)
{
    Strides *s = arg;
    const CiGraph *g = s->call->shown.graph;
    for (int axis = 0; axis < g->inputs[s->input]->rank; axis++)
        s->strides[axis] =
            ci_expr_evaluate(ctx, g->strides[s->input][axis], cx_call_symbol, &s->call->shown);
}

/* Copies an argument to the strides that the program expects. */
static int
make_copy(CxTensorCall *call, int k)
{
    const CxTensorProgram *t = call->program;
    const CiNode *node = call->shown.graph->inputs[k];
    Strides wanted = {.call = call, .input = k};

    if (t->inputs[k].is_written)
        return 0;
    if (cx_protect(t->program->state, t->program->ctx, body_strides, &wanted) < 0)
        return -1;
    CxHandle given = cx_torch_from_memory(t->torch, t->place, call->data[k], node->dtype, node->rank, call->sizes[k],
                                          call->strides[k]);
    bool made = given != NULL &&
                t->torch->empty_strided(node->rank, call->sizes[k], wanted.strides,
                                        t->torch->dtypes[node->dtype], t->place.type, t->place.index,
                                        &call->copies[k]) == 0 &&
                t->torch->copy(call->copies[k], given, 0) == 0 &&
                t->torch->data_of(call->copies[k], &call->data[k]) == 0;
    if (given != NULL)
        t->torch->delete (given);
    return made;
}

static int
check_sizes(CxTensorCall *call)
{
    CxProgram *p = call->run.program;
    int ready = cx_protect(p->state, p->ctx, body_sizes, call) < 0 ? -1 : call->is_wanted;

    for (int k = 0; ready == 1 && k < p->graph->ninputs; k++)
        if (call->differs[k])
            ready = make_copy(call, k);
    return ready;
}

/* ---- the call ---- */

static int
run(CxTensorCall *call)
{
    CxState *state = call->run.program->state;

    if (cx_program_run(&call->run) == 0)
        return 1;
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    if (!PyErr_ExceptionMatches(cx_exception(state, "CheckFailed")))
        return -1;
    if (call->program->host != NULL || call->has_dropped)
        return -1;
    PyErr_Clear();
    return 0;
}

PyObject *
cx_tensor_program_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    CxTensorProgram *t = (CxTensorProgram *)self;
    PyObject *made = NULL;

    CX_ENTRY();
    if (PyVectorcall_NARGS(nargs) != 1 || names != NULL || !PyList_Check(args[0]))
        return PyErr_Format(PyExc_TypeError, "a program of tensors takes one list");
    CxTensorCall *call = open_call(t);
    if (call == NULL)
        return NULL;
    call->list = args[0];
    int ready = keep_arguments(call, args[0], 0, t->nargs) ? read_arguments(call) : 0;
    if (ready == 1)
        ready = check_sizes(call);
    if (ready == 1 && t->host != NULL)
        ready = run_host(call, args[0]);
    if (ready == 1 && call->run.has_stream && t->torch->stream(t->dlpack, t->place.index, &call->run.stream) != 0)
        ready = -1;
    if (ready == 1)
        ready = run(call);
    if (ready == 1)
        made = cx_tensor_returns(call);
    close_call(call);
    if (ready == 0)
        return PyObject_CallOneArg(t->eager, args[0]);
    if (made != NULL && PyList_SetSlice(args[0], 0, PyList_GET_SIZE(args[0]), NULL) < 0)
        Py_CLEAR(made);
    return made;
}
