/* Calls of ATen's operators through torch's dispatcher, from C, on the memory of the program. The lock is not
 * held. What an operator has several results of stays in the run until the program has taken each.
 *
 * A plan is the operator's arguments in order, each a tuple of a kind and a value:
 *     (WORD, int)      itself, as 64 bits
 *     (TENSOR, k)      operand k
 *     (SIZE, k)        the int in operand k
 *     (SOME, one)      an optional argument that is given
 *     (LIST, [one, ...])
 *     (UNDEFINED, 0)   no tensor
 * An error leaves the call to Python, which raises it. */
#include "program/direct.h"
#include "program/program.h"
#include "state/torch_functions.h"

#define NAME "cinductor.aten_call"

enum { MAX_ARGUMENTS = 32, MAX_RESULTS = 8 }; /* of an operator that is called here */

typedef enum Kind { WORD, TENSOR, SIZE, SOME, LIST, UNDEFINED } Kind;

/* In prefix order: a SOME is followed by one, a LIST by `word` others. */
typedef struct Part {
    Kind kind;
    uint64_t word; /* or the operand's number, or how many */
} Part;

struct CxAtenCall {
    const CxTorch *torch;
    char *name, *overload;
    Part *parts;
    int nparts, narguments, nresults;
};

struct CxStash {
    const CxAtenCall *call;
    CxStash *next;
    CxHandle results[MAX_RESULTS];
};

/* ---- a plan ---- */

static int
add_part(CxAtenCall *call, PyObject *one)
{
    int kind;
    PyObject *value;

    if (!PyTuple_Check(one))
        return PyErr_Format(PyExc_TypeError, "an argument of a call is a tuple"), -1;
    if (!PyArg_ParseTuple(one, "iO", &kind, &value))
        return -1;
    if (kind < WORD || kind > UNDEFINED || (kind == LIST && !PyList_Check(value)))
        return PyErr_Format(PyExc_ValueError, "a call has no argument of kind %d with that value", kind), -1;
    Part *grown = PyMem_Realloc(call->parts, sizeof *grown * (size_t)(call->nparts + 1));
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    call->parts = grown;
    Part *part = &grown[call->nparts++];
    *part = (Part){.kind = (Kind)kind};
    if (kind == SOME)
        return add_part(call, value);
    if (kind == LIST) {
        int status = 0;
        part->word = (uint64_t)PyList_GET_SIZE(value);
        for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(value); k++)
            status = add_part(call, PyList_GET_ITEM(value, k));
        return status;
    }
    part->word = PyLong_AsUnsignedLongLongMask(value);
    return PyErr_Occurred() ? -1 : 0;
}

static void
free_call(CxAtenCall *call)
{
    PyMem_Free(call->name);
    PyMem_Free(call->overload);
    PyMem_Free(call->parts);
    PyMem_Free(call);
}

static void
free_capsule(PyObject *capsule)
{
    free_call(PyCapsule_GetPointer(capsule, NAME));
}

/* aten_call(functions, name, overload, arguments, nresults): a call by torch's dispatcher, which the results of
 * it share; None where this torch has no such dispatcher. */
PyObject *
cx_aten_call(PyObject *module, PyObject *args)
{
    PyObject *functions, *arguments;
    const char *name, *overload;
    int nresults;

    CX_ENTRY();
    (void)module;
    if (!PyArg_ParseTuple(args, "OssO!i:aten_call", &functions, &name, &overload, &PyList_Type, &arguments,
                          &nresults))
        return NULL;
    const CxTorch *torch = cx_torch_of(functions);
    if (torch == NULL)
        return NULL;
    if (torch->dispatch == NULL || PyList_GET_SIZE(arguments) > MAX_ARGUMENTS || nresults > MAX_RESULTS)
        Py_RETURN_NONE;
    CxAtenCall *call = PyMem_Calloc(1, sizeof *call);
    if (call == NULL)
        return PyErr_NoMemory();
    *call = (CxAtenCall){.torch = torch, .name = cx_copy_text(name), .overload = cx_copy_text(overload),
                         .narguments = (int)PyList_GET_SIZE(arguments), .nresults = nresults};
    int status = call->name != NULL && call->overload != NULL ? 0 : -1;
    for (int k = 0; status == 0 && k < call->narguments; k++)
        status = add_part(call, PyList_GET_ITEM(arguments, k));
    PyObject *capsule = status == 0 ? PyCapsule_New(call, NAME, free_capsule) : NULL;
    if (capsule == NULL)
        free_call(call);
    return capsule != NULL || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* ---- arguments ---- */

typedef struct Building {
    const CxAtenCall *plan;
    const CiExternCall *call;
    int at;
} Building;

static CxHandle
operand(const CxAtenCall *plan, const CiExternCall *call, uint64_t k)
{
    if (k >= (uint64_t)call->noperands)
        return NULL;
    return cx_torch_operand(plan->torch, cx_torch_device(plan->torch, call->queue), call->operands[k],
                            call->dtypes[k], call->ranks[k], call->sizes[k], call->strides[k]);
}

static bool build(Building *b, uint64_t *value);

static bool
build_list(Building *b, uint64_t count, uint64_t *value)
{
    const CxTorch *torch = b->plan->torch;
    void *list;

    if (torch->new_list((size_t)count, &list) != 0)
        return false;
    for (uint64_t k = 0; k < count; k++) {
        uint64_t one;
        if (!build(b, &one) || torch->push(list, one) != 0) {
            torch->delete_list(list);
            return false;
        }
    }
    memcpy(value, &list, sizeof list);
    return true;
}

static bool
build(Building *b, uint64_t *value)
{
    const Part *part = &b->plan->parts[b->at++];
    CxHandle tensor;
    uint64_t *some;

    switch (part->kind) {
    case WORD:
        *value = part->word;
        return true;
    case TENSOR:
        tensor = operand(b->plan, b->call, part->word);
        memcpy(value, &tensor, sizeof tensor);
        return tensor != NULL;
    case SIZE:
        if (part->word >= (uint64_t)b->call->noperands || cx_torch_device(b->plan->torch, b->call->queue).type != 0)
            return false;
        memcpy(value, b->call->operands[part->word], sizeof *value);
        return true;
    case SOME:
        some = cx_torch_new_value(b->plan->torch);
        if (some == NULL)
            return false;
        memcpy(value, &some, sizeof some);
        return build(b, some);
    case LIST:
        return build_list(b, part->word, value);
    case UNDEFINED:
        if (b->plan->torch->new_undefined(&tensor) != 0)
            return false;
        memcpy(value, &tensor, sizeof tensor);
        return true;
    }
    return false;
}

/* ---- results ---- */

static void
drop(const CxTorch *torch, CxHandle *tensor)
{
    if (*tensor != NULL)
        torch->delete (*tensor);
    *tensor = NULL;
}

/* True if the memory is a part of an operand's, which the program may reuse. */
static bool
is_of_operand(const CiExternCall *call, const char *data)
{
    for (int k = 0; k < call->noperands; k++) {
        int64_t first = 0, last = ci_dtype_size(call->dtypes[k]) - 1;
        for (int axis = 0; axis < call->ranks[k]; axis++) {
            int64_t reach = (call->sizes[k][axis] - 1) * call->strides[k][axis] * ci_dtype_size(call->dtypes[k]);
            first += reach < 0 ? reach : 0;
            last += reach > 0 ? reach : 0;
        }
        const char *operand = call->operands[k];
        if (data >= operand + first && data <= operand + last)
            return true;
    }
    return false;
}

/* The result of a run becomes the tensor itself, if it lies as the result has to. */
static bool
put_result(const CxTorch *torch, const CiExternCall *call, CxHandle *made)
{
    enum { ALIGNMENT = 64 };
    CxRun *run = call->arg;
    int n = call->noperands;
    void *data = NULL;

    if (call->other_result == NULL || run->put_tensor == NULL || ci_extern_count(call, n) == 0 ||
        !cx_torch_has_layout(torch, *made, call->dtypes[n], call->ranks[n], call->sizes[n], call->strides[n]) ||
        torch->data_of(*made, &data) != 0 || (uintptr_t)data % ALIGNMENT != 0 || is_of_operand(call, data) ||
        !run->put_tensor(run, call->result, *made, data))
        return false;
    *call->other_result = data;
    *made = NULL;
    return true;
}

/* Gives the result of the call the elements of the tensor, which is given up. */
static bool
deliver(const CxTorch *torch, const CiExternCall *call, CxHandle *made)
{
    int n = call->noperands;

    if (*made == NULL ||
        !cx_torch_has_layout(torch, *made, call->dtypes[n], call->ranks[n], call->sizes[n], NULL))
        return false;
    if (put_result(torch, call, made))
        return true;
    CxHandle out = cx_torch_from_memory(torch, cx_torch_device(torch, call->queue), call->result,
                                        call->dtypes[n], call->ranks[n], call->sizes[n], call->strides[n]);
    bool is_done = out != NULL && torch->copy(out, *made, 0) == 0;
    drop(torch, &out);
    drop(torch, made);
    return is_done;
}

static CxStash **
find_stash(CxRun *run, const CxAtenCall *call)
{
    CxStash **at = &run->stash;
    while (*at != NULL && (*at)->call != call)
        at = &(*at)->next;
    return at;
}

static void
free_stash(CxStash *stash)
{
    for (int k = 0; k < MAX_RESULTS; k++)
        drop(stash->call->torch, &stash->results[k]);
    PyMem_RawFree(stash);
}

void
cx_stash_close(CxRun *run)
{
    while (run->stash != NULL) {
        CxStash *stash = run->stash;
        run->stash = stash->next;
        free_stash(stash);
    }
}

/* Keeps what a call has made, but for the result that is delivered. */
static bool
keep_results(CxRun *run, const CxAtenCall *call, const CxHandle *results)
{
    CxStash **at = find_stash(run, call), *stash = *at;

    if (stash == NULL)
        stash = PyMem_RawCalloc(1, sizeof *stash);
    if (stash == NULL)
        return false;
    for (int k = 0; *at != NULL && k < MAX_RESULTS; k++)
        drop(call->torch, &stash->results[k]);
    *at = stash;
    stash->call = call;
    memcpy(stash->results, results, sizeof *results * (size_t)call->nresults);
    return true;
}

static bool
run_first(const CxDirect *direct, const CiExternCall *call)
{
    const CxAtenCall *plan = direct->aten;
    uint64_t stack[MAX_ARGUMENTS] = {0};
    CxHandle results[MAX_RESULTS] = {NULL};
    Building b = {plan, call, 0};

    if (call->arg == NULL)
        return false;
    for (int k = 0; k < plan->narguments; k++)
        if (!build(&b, &stack[k]))
            return false; /* what was built is lost: there is no memory, or torch has another ABI */
    if (plan->torch->dispatch(plan->name, plan->overload, stack, plan->torch->version) != 0)
        return false;
    for (int k = 0; k < plan->nresults; k++)
        memcpy(&results[k], &stack[k], sizeof results[k]);
    bool is_done = plan->nresults == 0 || deliver(plan->torch, call, &results[direct->result]);
    if (is_done && (plan->nresults <= 1 || keep_results(call->arg, plan, results)))
        return true;
    for (int k = 0; k < plan->nresults; k++)
        drop(plan->torch, &results[k]);
    return false;
}

static bool
run_other(const CxDirect *direct, const CiExternCall *call)
{
    CxStash *stash = call->arg != NULL ? *find_stash(call->arg, direct->aten) : NULL;
    return stash != NULL && deliver(direct->torch, call, &stash->results[direct->result]);
}

int
cx_direct_aten_init(CxDirect *direct, PyObject *torch_call)
{
    PyObject *capsule;
    int is_first;

    if (!PyArg_ParseTuple(torch_call, "Oip", &capsule, &direct->result, &is_first))
        return -1;
    direct->aten = PyCapsule_GetPointer(capsule, NAME);
    if (direct->aten == NULL)
        return -1;
    if (direct->result < 0 || (direct->result > 0 && direct->result >= direct->aten->nresults)) {
        PyErr_Format(PyExc_ValueError, "%s has no result %d", direct->aten->name, direct->result);
        return -1;
    }
    direct->torch = direct->aten->torch;
    direct->run = is_first ? run_first : run_other;
    return 0;
}
