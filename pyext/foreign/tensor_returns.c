/* The values that a call with tensors returns: results in memory of torch's own allocator, and parts of them. */
#include "foreign/tensor_private.h"

/* Where a tensor without elements is said to lie. */
static char nowhere[1];

/* ---- result buffers ---- */

static bool
is_layout(int rank, const int64_t *sizes, const int64_t *strides, const int64_t *wanted)
{
    for (int k = 0; k < rank; k++)
        if (sizes[k] != wanted[k] || (sizes[k] > 1 && strides[k] != wanted[rank + k]))
            return false;
    return true;
}

/* The strides that torch gives a tensor without elements: those of extents of at least 1. */
static const int64_t *
strides_of_empty(const CiResultBuffer *buffer, int64_t *strides)
{
    int64_t step = 1, elements = 1;

    for (int axis = buffer->rank - 1; axis >= 0; axis--) {
        strides[axis] = step;
        step *= buffer->sizes[axis] > 1 ? buffer->sizes[axis] : 1;
        elements *= buffer->sizes[axis];
    }
    return elements == 0 ? strides : buffer->strides;
}

/* With the strides that torch has promised where they only differ along axes of one element. */
void *
cx_tensor_new_result(void *arg, int number, const CiResultBuffer *buffer)
{
    CxTensorCall *call = arg;
    const CxTorch *torch = call->program->torch;
    int owner = call->program->owners[number];
    int64_t empty[CI_MAX_RANK];
    const int64_t *strides = strides_of_empty(buffer, empty);

    if (owner >= 0) {
        const int64_t *wanted = call->numbers + call->program->gives[owner].at;
        call->has_layout[number] = is_layout(buffer->rank, buffer->sizes, strides, wanted);
        if (call->has_layout[number])
            strides = wanted + buffer->rank;
    }
    if (torch->empty_strided(buffer->rank, buffer->sizes, strides, torch->dtypes[buffer->dtype],
                             call->program->place.type, call->program->place.index,
                             &call->buffers[number]) != 0 ||
        torch->data_of(call->buffers[number], &call->memory[number]) != 0)
        return NULL;
    return call->memory[number] != NULL ? call->memory[number] : nowhere;
}

/* ---- returns of the program ---- */

/* The memory that a return is a view of. */
static void *
memory_of(const CxTensorCall *call, const CiReturn *r)
{
    const CiGraph *graph = call->run.program->graph;

    if (r->result_buffer >= 0)
        return call->memory[r->result_buffer];
    if (graph->inputs[r->input]->kind != CI_KIND_python)
        return call->data[r->input];
    int number = 0;
    for (int k = 0; k < r->input; k++)
        number += graph->inputs[k]->kind == CI_KIND_python;
    return &call->scalars[number];
}

/* A tensor of its own of a return that shares its memory with something else. */
static CxHandle
copy_of(const CxTensorCall *call, const CiReturn *r)
{
    const CxTorch *torch = call->program->torch;
    char *data = memory_of(call, r);
    CxHandle copy = NULL;

    data = data != NULL ? data + r->offset * ci_dtype_size(r->dtype) : nowhere;
    bool is_number = r->result_buffer < 0 && call->run.program->graph->inputs[r->input]->kind == CI_KIND_python;
    CxTorchDevice place = is_number ? (CxTorchDevice){0, 0} : call->program->place;
    CxHandle view = cx_torch_from_memory(torch, place, data, r->dtype, r->rank, r->sizes, r->strides);
    if (view == NULL || torch->clone(view, &copy) != 0)
        copy = NULL;
    if (view != NULL)
        torch->delete (view);
    return copy;
}

/* The tensor of a return, and its layout. */
static CxHandle
base_of(CxTensorCall *call, int position, int64_t *storage, CiReturn *r)
{
    const CxReturn *back = &call->run.program->returns[position];
    CxHandle *base = &call->bases[position];

    *r = back->layout;
    if (r->sizes == NULL)
        ci_program_return_at(call->run.program->program, position, call->run.symbols, storage, r);
    if (*base == NULL && back->is_shared)
        *base = copy_of(call, r);
    else if (*base == NULL) {
        *base = call->buffers[r->result_buffer];
        call->buffers[r->result_buffer] = NULL;
    }
    return *base;
}

/* True if the base is already the tensor that a give asks for. */
static bool
is_as_requested(const CxTensorCall *call, const CxGive *give, const CiReturn *r)
{
    const int64_t *wanted = call->numbers + give->at;
    size_t row = sizeof *wanted * (size_t)give->rank;
    bool has_layout = r->result_buffer >= 0 && !call->run.program->returns[give->index].is_shared &&
                      call->has_layout[r->result_buffer] &&
                      call->program->owners[r->result_buffer] == give - call->program->gives;

    return give->rank == r->rank && give->dtype == r->dtype && wanted[2 * give->rank] == 0 &&
           (has_layout || (memcmp(wanted, r->sizes, row) == 0 &&
                           memcmp(wanted + give->rank, r->strides, row) == 0));
}

/* The memory of a dense tensor from its start on, in one axis of another dtype. */
static CxHandle
seen_as(const CxTorch *torch, CxHandle base, const CiReturn *r, CiDtype dtype)
{
    int64_t size = 1, stride = 1;
    CxHandle flat = NULL, made = NULL;

    for (int k = 0; k < r->rank; k++)
        size *= r->sizes[k];
    if (torch->reinterpret(base, 1, &size, &stride, 0, &flat) != 0)
        return NULL;
    if (torch->view_dtype(flat, torch->dtypes[dtype], &made) != 0)
        made = NULL;
    torch->delete (flat);
    return made;
}

static int
make_part(const CxTensorCall *call, const CxGive *give, CxHandle base, const CiReturn *r, CxHandle *made)
{
    const CxTorch *torch = call->program->torch;
    const int64_t *wanted = call->numbers + give->at;
    CxHandle other = give->dtype != r->dtype ? seen_as(torch, base, r, give->dtype) : NULL;

    if (give->dtype != r->dtype && other == NULL)
        return -1;
    int status = torch->reinterpret(other != NULL ? other : base, give->rank, wanted, wanted + give->rank,
                                    wanted[2 * give->rank], made);
    if (other != NULL)
        torch->delete (other);
    return status;
}

/* The tensor of one give, which belongs to call->made then. */
static int
make_tensor(CxTensorCall *call, int number)
{
    const CxGive *give = &call->program->gives[number];
    int64_t storage[2 * CI_MAX_RANK];
    CiReturn r;
    CxHandle base = base_of(call, give->index, storage, &r);

    if (base == NULL)
        return -1;
    if (!call->is_taken[give->index] && (give->kind != CX_GIVE_part || is_as_requested(call, give, &r))) {
        call->is_taken[give->index] = true;
        call->made[number] = base;
        return 0;
    }
    if (give->kind != CX_GIVE_part)
        return call->program->torch->reinterpret(base, r.rank, r.sizes, r.strides, 0, &call->made[number]);
    return make_part(call, give, base, &r, &call->made[number]);
}

/* ---- the list ---- */

/* Tensors of Python of all that were made. */
static PyObject *
wrap(CxTensorCall *call)
{
    return cx_torch_wrap(call->program->torch, call->made, call->program->ngives);
}

static PyObject *
tuple_of(const int64_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int k = 0; tuple != NULL && k < count; k++)
        cx_put_item(&tuple, k, PyLong_FromLongLong(numbers[k]));
    return tuple;
}

/* Strides over the memory of an argument, without its gradient. */
static PyObject *
view_of(PyObject *argument, const int64_t *numbers, int rank)
{
    PyObject *offset = PyObject_CallMethod(argument, "storage_offset", NULL);
    PyObject *alone = PyObject_CallMethod(argument, "detach", NULL);
    PyObject *sizes = tuple_of(numbers, rank), *strides = tuple_of(numbers + rank, rank), *made = NULL;

    if (offset != NULL && alone != NULL && sizes != NULL && strides != NULL)
        made = PyObject_CallMethod(alone, "as_strided", "OOL", sizes, strides,
                                   PyLong_AsLongLong(offset) + numbers[2 * rank]);
    Py_XDECREF(offset);
    Py_XDECREF(alone);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return made;
}

static PyObject *
give_one(CxTensorCall *call, int number, PyObject *tensors, Py_ssize_t *next)
{
    const CxGive *give = &call->program->gives[number];
    switch (give->kind) {
    case CX_GIVE_argument:
        return Py_NewRef(call->given[number]);
    case CX_GIVE_view:
        return view_of(call->given[number], call->numbers + give->at, give->rank);
    case CX_GIVE_number:
        return PyObject_CallMethod(PyList_GET_ITEM(tensors, (*next)++), "item", NULL);
    case CX_GIVE_size:
        return PyLong_FromLongLong(call->numbers[give->at]);
    case CX_GIVE_constant:
        return Py_NewRef(give->constant);
    default:
        return Py_NewRef(PyList_GET_ITEM(tensors, (*next)++));
    }
}

PyObject *
cx_tensor_returns(CxTensorCall *call)
{
    const CxTensorProgram *t = call->program;
    Py_ssize_t next = 0;

    for (int k = 0; k < t->ngives; k++)
        if (t->gives[k].kind <= CX_GIVE_part && make_tensor(call, k) != 0)
            return PyErr_NoMemory();
    PyObject *tensors = wrap(call), *list = tensors != NULL ? PyList_New(t->ngives) : NULL;
    for (int k = 0; list != NULL && k < t->ngives; k++)
        cx_put_item(&list, k, give_one(call, k, tensors, &next));
    Py_XDECREF(tensors);
    return list;
}

static void
drop(const CxTorch *torch, CxHandle tensor)
{
    if (tensor != NULL)
        torch->delete (tensor);
}

void
cx_tensor_returns_close(CxTensorCall *call)
{
    const CxTorch *torch = call->program->torch;

    for (int k = 0; k < call->run.program->nbuffers; k++)
        drop(torch, call->buffers[k]);
    for (int k = 0; k < call->run.program->nreturns; k++)
        if (!call->is_taken[k])
            drop(torch, call->bases[k]);
    for (int k = 0; k < call->program->ngives; k++)
        drop(torch, call->made[k]);
}
