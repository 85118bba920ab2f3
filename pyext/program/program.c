/* The type Program: a compiled graph, and how it runs. */
#include <fenv.h>
#include <math.h>

#include "ir/plain.h"
#include "program/call_sizes.h"
#include "state/array.h"
#include "state/docs.h"
#include "state/stream.h"

/* True if the program may run on the host when the device cannot run it. */
static bool
can_run_on_host(CxState *state, const CiOptions *options, const CiBackend *backend)
{
    return ci_backend_has_memory(backend) && !cx_is_on_device(options, backend) &&
           (PyErr_ExceptionMatches(cx_exception(state, "Unsupported")) ||
            PyErr_ExceptionMatches(cx_exception(state, "FasterOnHost")));
}

/* The text of the current exception, which is cleared. */
static PyObject *
take_message(void)
{
    PyObject *error = cx_take_exception();
    PyObject *text = error != NULL ? PyObject_Str(error) : NULL;

    Py_XDECREF(error);
    return text;
}

static CxProgram *
new_program(CxState *state, CiGraph *graph, const CiOptions *options, PyObject *option_values,
            const CiBackend *backend, PyObject *passes)
{
    PyTypeObject *type = (PyTypeObject *)state->program_type;
    CxProgram *p = (CxProgram *)type->tp_alloc(type, 0);

    if (p == NULL)
        return NULL;
    p->state = state;
    p->passes = Py_XNewRef(passes);
    p->option_values = Py_NewRef(option_values);
    p->options = *options;
    p->backend = backend;
    p->writes = graph->nwrites != 0;
    p->may_stop = cx_block_has_checks(graph->body);
    p->graph = graph;
    for (int k = 0; k < graph->ninputs; k++)
        p->nscalars += graph->inputs[k]->kind == CI_KIND_python;
    p->texts = PyDict_New();
    if (p->texts == NULL)
        Py_CLEAR(p);
    return p;
}

static int
build(CxProgram *p, const CiTextInput *given, PyObject *info)
{
    CxState *state = p->state;
    CiRequest request;
    if (given == NULL && cx_isolate(p) < 0)
        return -1;
    int made = cx_program_make(state, p->graph, &p->options, p->backend, p->passes, given, NULL,
                               NULL, NULL, &request);

    if (made < 0 && can_run_on_host(state, &p->options, p->backend)) {
        p->why_host = take_message();
        p->backend = ci_backend_find(state->runtime.registry, "cpu", NULL);
        made = p->why_host == NULL ? -1
                                   : cx_program_make(state, p->graph, &p->options, p->backend,
                                                     p->passes, given, NULL, NULL, NULL, &request);
    }
    if (made < 0)
        return -1;
    if (cx_program_take(p, &request, info) < 0)
        return -1;
    return strcmp(p->options.wrapper, "python") == 0 ? cx_wrapper_open(p) : 0;
}

CxProgram *
cx_program_compile(CxState *state, CiContext *ctx, CiGraph *graph, const CiOptions *options,
                   PyObject *option_values, const CiBackend *backend, PyObject *passes,
                   const CiTextInput *given, PyObject *info)
{
    CxProgram *p = new_program(state, graph, options, option_values, backend, passes);

    if (p != NULL && build(p, given, info) < 0) {
        p->graph = NULL;
        Py_CLEAR(p);
    }
    if (p != NULL)
        p->ctx = ctx; /* last, because after a failure the context still belongs to the caller */
    return p;
}

CxProgram *
cx_program_defer(CxState *state, const CiGraph *graph, const CiOptions *options,
                 PyObject *option_values, const CiBackend *backend, PyObject *key)
{
    CiContext *ctx = ci_context_open();
    CiGraph *copy = ctx != NULL ? cx_graph_copy(state, ctx, graph) : (CiGraph *)PyErr_NoMemory();
    CxProgram *p = NULL;

    if (copy != NULL)
        p = new_program(state, copy, options, option_values, backend, state->passes);
    if (p == NULL) {
        if (ctx != NULL)
            ci_context_close(ctx);
        return NULL;
    }
    p->ctx = ctx;
    p->key = Py_NewRef(key);
    return p;
}

/* ---- running ---- */

/* Corrects the strides of axes with one element. A program for many sizes uses the stride order
 * for several elements, but NumPy's sort of axes leaves axes of one element in C order. A
 * C-contiguous result needs this, too. */
static void
place_ones(int rank, const int64_t *sizes, int64_t itemsize, int64_t *strides)
{
    int64_t dense[CI_MAX_RANK];
    bool is_c = true;

    for (int k = rank - 1; k >= 0; k--) {
        dense[k] = k == rank - 1 ? itemsize : dense[k + 1] * sizes[k + 1];
        is_c &= sizes[k] == 1 || strides[k] == dense[k];
    }
    if (is_c)
        memcpy(strides, dense, sizeof *strides * (size_t)rank);
}

static void *
new_result(void *arg, int number, const CiResultBuffer *buffer)
{
    CxRun *run = arg;
    CxProgram *p = run->program;
    const CxShape *shape = run->shapes && run->shapes[number].is_set ? &run->shapes[number] : NULL;
    int64_t strides[CI_MAX_RANK], capacity[2 * CI_MAX_RANK];

    if (p->is_scalar[number])
        return &run->slots[number];
    if (run->released != NULL)
        CX_TAKE(run->released);
    for (int k = 0; shape == NULL && k < buffer->rank; k++)
        strides[k] = buffer->strides[k] * ci_dtype_size(buffer->dtype);
    if (shape == NULL && ci_program_symbol_count(p->program) > 0)
        place_ones(buffer->rank, buffer->sizes, (int64_t)ci_dtype_size(buffer->dtype), strides);
    int rank = shape ? shape->rank : buffer->rank;
    const int64_t *sizes =
        shape ? cx_layout_of(2 * rank, shape->layout, shape->numbers, run->table, capacity)
              : buffer->sizes;
    const int64_t *steps = shape ? sizes + rank : strides;
    PyObject *array =
        cx_is_on_device(&p->options, p->backend)
            ? cx_device_array_new(p->state, &run->queues[buffer->device],
                                  run->streams[buffer->device], buffer->dtype, rank, sizes, steps)
            : cx_array_new(p->state, buffer->dtype, rank, sizes, steps);
    run->buffers[number] = array;
    return array ? PyArray_DATA((PyArrayObject *)array) : NULL;
}

static void *
new_result_unlocked(void *arg, int number, const CiResultBuffer *buffer)
{
    CxRun *run = arg;
    void *memory = new_result(arg, number, buffer);
    if (run->released == NULL)
        CX_RELEASE(run->released);
    return memory;
}

/* Converts the CPU's float flags to NumPy's bits. */
static unsigned
numpy_flags(unsigned flags)
{
    return (flags & FE_DIVBYZERO ? CX_FLAG_divide : 0u) |
           (flags & FE_OVERFLOW ? CX_FLAG_overflow : 0u) |
           (flags & FE_UNDERFLOW ? CX_FLAG_underflow : 0u) |
           (flags & FE_INVALID ? CX_FLAG_invalid : 0u);
}

/* Makes space for the values of the program's symbols in this run, which the run fills. */
static int
make_symbols(CxRun *run)
{
    int n = ci_program_symbol_count(run->program->program);

    if (run->symbols != run->few_symbols)
        PyMem_Free(run->symbols);
    run->symbols = run->few_symbols;
    if (n > CX_FEW_SYMBOLS && (run->symbols = PyMem_Calloc((size_t)n, sizeof(int64_t))) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

/* True if keeping the GIL for this run is cheaper than releasing it. */
static bool
is_short(const CxRun *run)
{
    const CxProgram *p = run->program;
    int nscalars = 0;

    if (!p->is_symbolic || p->small == 0)
        return p->work < RELEASE_WORK;
    for (int k = 0; k < p->graph->ninputs; k++) {
        const CiNode *input = p->graph->inputs[k];
        if (input->kind == CI_KIND_python) {
            int64_t value = run->scalars[nscalars++].i;
            if (input->dtype == CI_DTYPE_i64 && (value > p->small || value < -p->small))
                return false;
        }
        for (int axis = 0; axis < input->rank; axis++)
            if (input->sizes[axis]->kind != CI_EXPR_const && run->sizes[k][axis] > p->small)
                return false;
    }
    return true;
}

/* Runs without the GIL. Another thread may then reshape an argument, or resize one that seems to
 * have no other reference. So sizes are read before, and references to the arguments are held. */
static int32_t
run_released(CxRun *run, CiCall *call)
{
    CxProgram *p = run->program;

    ci_program_symbols(p->program, call, run->symbols);
    call->has_symbols = true;
    if (run->new_result == NULL)
        call->new_result = new_result_unlocked;
    for (int k = 0; run->drop == NULL && k < p->graph->ninputs; k++)
        Py_XINCREF(run->input_objects[k]);
    CX_RELEASE(run->released);
    int32_t status = ci_program_run(p->program, call);
    if (run->released != NULL)
        CX_TAKE(run->released);
    for (int k = 0; run->drop == NULL && k < p->graph->ninputs; k++)
        Py_XDECREF(run->input_objects[k]);
    return status;
}

/* Puts the call on its streams, after the work of other streams on its arguments. */
static int
enter_devices(CxRun *run, void **streams)
{
    CxProgram *p = run->program;
    int count = ci_program_device_count(p->program);

    for (int k = 0; k < count; k++) {
        run->queues[k] = p->queue;
        run->queues[k].index += k;
        streams[k] = run->queues[k].stream = run->stream;
        if (run->has_stream)
            continue;
        if (cx_device_enter(p->state, &run->queues[k], &run->streams[k], run->input_objects,
                            p->graph->ninputs) < 0)
            return -1;
        streams[k] = run->queues[k].stream;
    }
    return 0;
}

/* True if memory for the plan could not be allocated. A device with its own memory has its own
 * status codes. */
static bool
is_without_memory(const CxProgram *p, int32_t status, const char *message)
{
    return message[0] != '\0' && !ci_backend_has_memory(p->queue.backend) &&
           (status == CI_ERR_MEMORY ||
            (status == CI_ERR_PYTHON && PyErr_ExceptionMatches(PyExc_MemoryError)));
}

int
cx_program_run(CxRun *run)
{
    CxProgram *p = run->program;
    char message[1024];
    CiCall call = {.inputs = run->inputs,
                   .sizes = run->sizes,
                   .scalars = run->scalars,
                   .new_result = run->new_result ? run->new_result : new_result,
                   .take = run->take,
                   .give = run->give,
                   .drop = run->drop,
                   .arg = run,
                   .message = message, .message_size = sizeof message,
                   .max_threads = (int)p->options.threads};

    if (p->wrapper != NULL)
        return cx_wrapper_run(run);
    void *streams[CI_MAX_DEVICES];
    if (make_symbols(run) < 0)
        return -1;
    if (p->user_backend != NULL)
        return cx_user_backend_run(run);
    if (enter_devices(run, streams) < 0)
        return -1;
    call.symbols = run->symbols;
    call.streams = streams;
    int32_t status = is_short(run) ? ci_program_run(p->program, &call) : run_released(run, &call);
    cx_generators_close(&run->generators);
    /* Float flags are not raised there. */
    bool is_on_device = cx_is_on_device(&p->options, p->backend);
    run->float_flags = call.float_flags && !is_on_device ? numpy_flags(call.float_flags) : 0;
    if (status == CI_ERR_CHECK)
        return cx_raise_check(p->state, call.reason);
    if (status == CI_ERR_ASSERT)
        return cx_raise_status(p->state, status, message);
    if (is_without_memory(p, status, message)) {
        PyErr_Clear();
        return cx_raise_status(p->state, CI_ERR_MEMORY, message);
    }
    if (status != CI_OK)
        return cx_raise_device(p->state, &run->queues[0], status);
    return call.unrecorded ? cx_warn("a program is launched, and not replayed any more: %s", call.unrecorded)
                           : 0;
}

void
cx_run_close(CxRun *run)
{
    for (int k = 0; run->buffers != NULL && k < run->program->nbuffers; k++)
        Py_CLEAR(run->buffers[k]);
    for (int k = 0; k < ci_program_device_count(run->program->program); k++)
        Py_CLEAR(run->streams[k]);
    Py_CLEAR(run->values);
    cx_stash_close(run);
    if (run->symbols != run->few_symbols)
        PyMem_Free(run->symbols);
    run->symbols = NULL;
}

/* ---- the type ---- */

static void
program_dealloc(PyObject *self)
{
    CxProgram *p = (CxProgram *)self;

    PyObject_GC_UnTrack(self);
    cx_program_take_out(p);
    Py_XDECREF(p->wrapper);
    Py_XDECREF(p->on_paid);
    Py_XDECREF(p->user_backend);
    Py_XDECREF(p->texts);
    Py_XDECREF(p->passes);
    Py_XDECREF(p->option_values);
    Py_XDECREF(p->why_host);
    if (p->former != NULL)
        cx_program_free(p->former);
    if (p->program != NULL)
        cx_program_free(p->program);
    if (p->ctx != NULL)
        ci_context_close(p->ctx);
    PyMem_Free(p->returns);
    PyMem_Free(p->is_scalar);
    cx_object_free(self);
}

static int
program_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxProgram *p = (CxProgram *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->wrapper);
    Py_VISIT(p->on_paid);
    Py_VISIT(p->user_backend);
    Py_VISIT(p->texts);
    Py_VISIT(p->passes);
    return 0;
}

static int
program_clear(PyObject *self)
{
    CxProgram *p = (CxProgram *)self;
    Py_CLEAR(p->wrapper);
    Py_CLEAR(p->on_paid);
    Py_CLEAR(p->user_backend);
    Py_CLEAR(p->texts);
    Py_CLEAR(p->passes);
    return 0;
}

static PyObject *
program_text(PyObject *self, PyObject *args)
{
    const char *level = NULL;
    CX_ENTRY();
    return PyArg_ParseTuple(args, "s:text", &level) ? cx_program_text((CxProgram *)self, level)
                                                    : NULL;
}

/* Other threads run meanwhile. */
static PyObject *
program_build(PyObject *self, PyObject *unused)
{
    CxProgram *p = (CxProgram *)self;
    PyObject *info = PyDict_New();

    (void)unused;
    CX_ENTRY();
    if (p->is_former && info != NULL && cx_program_replace(p, info) < 0)
        Py_CLEAR(info);
    if (p->program != NULL || info == NULL)
        return info;
    if (build(p, NULL, info) < 0 || (p->key != NULL && cx_program_put(p, p->key) < 0))
        Py_CLEAR(info);
    return info;
}

static PyMethodDef program_methods[] = {
    CX_METHOD(Program, build, program_build, METH_NOARGS),
    CX_METHOD(Program, copy_stencils, cx_program_copy_stencils, METH_VARARGS),
    CX_METHOD(Program, text, program_text, METH_VARARGS),
    CX_METHOD(Program, observe, cx_program_observe, METH_O),
    CX_METHOD(Program, library_calls, cx_program_library_calls, METH_NOARGS),
    CX_METHOD(Program, wrapper_names, cx_program_wrapper_names, METH_NOARGS),
    {NULL, NULL, 0, NULL},
};

static PyMemberDef program_members[] = {
    CX_MEMBER(Program, kernels, T_INT, CxProgram, kernels, READONLY),
    CX_MEMBER(Program, why_host, T_OBJECT, CxProgram, why_host, READONLY),
    CX_MEMBER(Program, externs, T_INT, CxProgram, externs, READONLY),
    CX_MEMBER(Program, writes, T_BOOL, CxProgram, writes, READONLY),
    CX_MEMBER(Program, is_symbolic, T_BOOL, CxProgram, is_symbolic, READONLY),
    CX_MEMBER(Program, option_values, T_OBJECT, CxProgram, option_values, READONLY),
    {NULL, 0, 0, 0, NULL},
};

static PyObject *
program_is_built(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((CxProgram *)self)->program != NULL);
}

static PyObject *
program_owed(PyObject *self, void *closure)
{
    const CxProgram *p = (const CxProgram *)self;

    (void)closure;
    if (!p->is_former)
        Py_RETURN_NONE;
    return PyFloat_FromDouble(p->on_paid != NULL ? fmax(p->rent - p->spent, 0) : 0);
}

static PyGetSetDef program_getset[] = {
    CX_GETTER(Program, owed, program_owed, NULL, NULL),
    CX_GETTER(Program, is_built, program_is_built, NULL, NULL),
    CX_GETTER(Program, backend, cx_program_backend, NULL, NULL),
    CX_GETTER(Program, approximate, cx_program_approximate, NULL, NULL),
    CX_GETTER(Program, guards, cx_program_guards, NULL, NULL),
    CX_GETTER(Program, recordings, cx_program_recordings, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};

CX_TYPE(cx_program_spec, Program, CxProgram, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, program_dealloc), CX_SLOT(Py_tp_traverse, program_traverse),
        CX_SLOT(Py_tp_clear, program_clear), CX_SLOT(Py_tp_methods, program_methods),
        CX_SLOT(Py_tp_members, program_members), CX_SLOT(Py_tp_getset, program_getset));

static bool
is_check(const CiNode *node)
{
    bool is_one = node->op == CI_OP_check || node->op == CI_OP_define;
    return is_one || (node->ext != NULL && node->ext->may_fail);
}

/* True for a library call that draws from a generator, may raise, or is a collective. */
static bool
has_effect(const CiNode *node)
{
    return is_check(node) || ci_op_has(node->op, CI_FACT_effect);
}

static bool
has_any(const CiBlock *block, bool (*is_one)(const CiNode *))
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        if (is_one(node))
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (has_any(node->blocks[b], is_one))
                return true;
    }
    return false;
}

bool
cx_block_has_checks(const CiBlock *block)
{
    return has_any(block, is_check);
}

bool
cx_block_has_effects(const CiBlock *block)
{
    return has_any(block, has_effect);
}

const int64_t *
cx_layout_of(int count, const int64_t *layout, const int *numbers, const int64_t *table,
             int64_t *capacity)
{
    if (numbers == NULL)
        return layout;
    for (int k = 0; k < count; k++)
        capacity[k] = numbers[k] < 0 ? layout[k] : table[numbers[k]];
    return capacity;
}
