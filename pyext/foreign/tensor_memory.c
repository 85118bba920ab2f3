/* Memory of a call with tensors: values between the steps of the program are in tensors of torch, all of a device, and large ones
 * of the host, so that its allocator has all memory. A library call may put the tensor that it has made in the place of one. Torch frees
 * a tensor in the order of the current stream, where the call's work is. */
#include "foreign/tensor_private.h"

static CxTensorBlock *
find_block(const CxTensorCall *call, const void *data)
{
    for (int k = call->nblocks - 1; k >= 0; k--)
        if (call->blocks[k].data == data)
            return &call->blocks[k];
    return NULL;
}

static bool
grow(CxTensorCall *call)
{
    if (call->nblocks < call->capblocks)
        return true;
    int capacity = 2 * call->capblocks + 8;
    CxTensorBlock *grown = PyMem_RawRealloc(call->blocks, sizeof *grown * (size_t)capacity);
    if (grown == NULL)
        return false;
    call->blocks = grown;
    call->capblocks = capacity;
    return true;
}

int32_t
cx_tensor_take(void *arg, size_t bytes, void **block)
{
    CxTensorCall *call = arg;
    const CxTensorProgram *t = call->program;
    int64_t size = bytes > 0 ? (int64_t)bytes : 1, stride = 1;
    CxTensorBlock made = {NULL, NULL};

    if (!grow(call) || t->torch->empty_strided(1, &size, &stride, t->torch->dtypes[CI_DTYPE_u8], t->place.type,
                                               t->place.index, &made.tensor) != 0)
        return CI_ERR_MEMORY;
    if (t->torch->data_of(made.tensor, &made.data) != 0) {
        t->torch->delete (made.tensor);
        return CI_ERR_MEMORY;
    }
    call->blocks[call->nblocks++] = made;
    *block = made.data;
    return CI_OK;
}

void
cx_tensor_give(void *arg, void *block)
{
    CxTensorCall *call = arg;
    CxTensorBlock *found = find_block(call, block);

    if (found == NULL)
        return;
    call->program->torch->delete (found->tensor);
    *found = call->blocks[--call->nblocks];
}

/* A result that leaves the call must have the strides that torch was promised, for axes of one element, too. */
static bool
has_same_strides(const CxTorch *torch, CxHandle a, CxHandle b)
{
    int64_t rank = 0, *first = NULL, *second = NULL;

    return torch->rank_of(a, &rank) == 0 && torch->strides_of(a, &first) == 0 &&
           torch->strides_of(b, &second) == 0 && memcmp(first, second, sizeof *first * (size_t)rank) == 0;
}

bool
cx_tensor_put(void *arg, void *block, CxHandle tensor, void *data)
{
    CxTensorCall *call = arg;
    const CxTorch *torch = call->program->torch;
    CxTensorBlock *found = find_block(call, block);

    if (found != NULL) {
        torch->delete (found->tensor);
        *found = (CxTensorBlock){data, tensor};
        return true;
    }
    for (int k = 0; k < call->run.program->nbuffers; k++)
        if (call->buffers[k] != NULL && call->memory[k] == block) {
            if (!has_same_strides(torch, call->buffers[k], tensor))
                return false;
            torch->delete (call->buffers[k]);
            call->buffers[k] = tensor;
            call->memory[k] = data;
            return true;
        }
    return false;
}

/* Torch frees the memory at once, unless there is another reference. */
void
cx_tensor_drop(void *arg, int input)
{
    CxTensorCall *call = arg;
    const CxTensorProgram *t = call->program;
    bool is_released = call->run.released != NULL;

    if (t->inputs[input].constant != NULL)
        return;
    if (is_released)
        CX_TAKE(call->run.released);
    call->has_dropped = true;
    if (call->copies[input] != NULL)
        t->torch->delete (call->copies[input]);
    call->copies[input] = NULL;
    int argument = t->inputs[input].argument;
    if (argument < t->nargs && argument < PyList_GET_SIZE(call->list))
        PyList_SetItem(call->list, argument, Py_NewRef(Py_None));
    Py_CLEAR(call->objects[input]);
    if (is_released)
        CX_RELEASE(call->run.released);
}

void
cx_tensor_memory_close(CxTensorCall *call)
{
    for (int k = 0; k < call->nblocks; k++)
        call->program->torch->delete (call->blocks[k].tensor);
    PyMem_RawFree(call->blocks);
}
