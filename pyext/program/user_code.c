/* Kernels written by the user: compiles the source, and runs the units of its grid on arrays of
 * its device. The caller has compared dtypes, sizes and layouts with the declaration of the
 * kernel. */
#include "program/user_code.h"
#include "state/array.h"
#include "state/docs.h"
#include "state/stream.h"

typedef struct UserCode {
    PyObject_HEAD CxState *state;
    CiQueue queue; /* without a stream */
    CiUserCode *code;
} UserCode;

typedef struct Build {
    const CiQueue *queue;
    const CiOptions *options;
    const char *source;
    CiUserCode *code;
} Build;

static void
body_build(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiBackend *backend = b->queue->backend;

    if (backend->compiler->build_text == NULL)
        ci_fail(ctx, CI_ERR_UNSUPPORTED, "device '%s' takes no kernels of the user's",
                backend->device->name);
    b->code = backend->compiler->build_text(ctx, b->queue, b->source, b->options);
}

/* Without the GIL, because it runs a compiler. */
static int
build(CxState *state, Build *b)
{
    CiContext *ctx = ci_context_open();
    PyThreadState *saved = NULL;

    if (ctx == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    CX_RELEASE(saved);
    CiStatus status = ci_protect(ctx, body_build, b);
    CX_TAKE(saved);
    if (status != CI_OK)
        cx_raise_status(state, status, ci_context_message(ctx));
    ci_context_close(ctx);
    return status == CI_OK ? 0 : -1;
}

/* user_code(source, options, device): compiles the source; returns its function
 * cinductor_kernel. */
PyObject *
cx_user_code(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->user_code_type;
    PyObject *values = NULL;
    const char *device = NULL;
    CiOptions options;
    CiQueue queue;
    Build b = {.queue = &queue, .options = &options};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sO!s:user_code", &b.source, &PyDict_Type, &values, &device) ||
        cx_options_fill(values, &options) < 0 || cx_find_device(state, device, &queue) < 0 ||
        build(state, &b) < 0)
        return NULL;
    UserCode *made = (UserCode *)type->tp_alloc(type, 0);
    if (made == NULL) {
        b.code->close(b.code);
        return NULL;
    }
    made->state = state;
    made->queue = queue;
    made->code = b.code;
    return (PyObject *)made;
}

/* ---- running ---- */

enum { MOST = CX_MAX_OPERANDS + 1, MAX_SIZES = 64 };

typedef struct Launch {
    int nbuffers, nsizes, threads;
    PyObject *objects[MOST]; /* borrowed */
    void *buffers[MOST];
    int64_t sizes[MAX_SIZES];
    long long units;
} Launch;

static int
fill_launch(const UserCode *u, Launch *l, PyObject *arrays, PyObject *sizes)
{
    bool is_on_device = ci_backend_has_memory(u->queue.backend);

    l->nbuffers = (int)PyTuple_GET_SIZE(arrays);
    if (l->nbuffers > MOST) {
        PyErr_Format(PyExc_ValueError, "at most %d arrays", (int)MOST);
        return -1;
    }
    for (int k = 0; k < l->nbuffers; k++) {
        l->objects[k] = PyTuple_GET_ITEM(arrays, k);
        if (!PyArray_Check(l->objects[k]) ||
            cx_is_device_array(u->state, l->objects[k]) != is_on_device) {
            PyErr_Format(PyExc_TypeError, "operand %d is no array of the kernel's device", k);
            return -1;
        }
        l->buffers[k] = PyArray_DATA((PyArrayObject *)l->objects[k]);
    }
    l->nsizes = cx_sizes_from(sizes, l->sizes, MAX_SIZES);
    return l->nsizes < 0 ? -1 : 0;
}

/* run(arrays, sizes, units, threads) */
static PyObject *
user_code_run(PyObject *self, PyObject *args)
{
    UserCode *u = (UserCode *)self;
    PyObject *arrays = NULL, *sizes = NULL, *stream = NULL;
    CiQueue queue = u->queue;
    Launch l = {0};
    PyThreadState *saved = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!Li:run", &PyTuple_Type, &arrays, &PyTuple_Type, &sizes,
                          &l.units, &l.threads) ||
        fill_launch(u, &l, arrays, sizes) < 0)
        return NULL;
    if (ci_backend_has_memory(queue.backend) &&
        cx_device_enter(u->state, &queue, &stream, l.objects, l.nbuffers) < 0) {
        Py_XDECREF(stream);
        return NULL;
    }
    CX_RELEASE(saved);
    int32_t status = u->code->run(u->code, &queue, l.nbuffers, l.buffers, l.nsizes, l.sizes,
                                  l.units, l.threads);
    CX_TAKE(saved);
    Py_XDECREF(stream);
    return cx_device_none(u->state, &queue, status);
}

/* ---- as a library call ---- */

typedef struct DeviceCall {
    const CiQueue *queue;
    const CiExternCall *call;
    UserCode *code; /* owned */
    Launch l;
    int nreads;
    bool is_result[MOST];
    void *temporary[MOST]; /* memory for results that are not wanted */
    size_t bytes[MOST];
} DeviceCall;

static PyObject *
shapes_of(const CiExternCall *call)
{
    PyObject *shapes = PyTuple_New(call->noperands);

    for (int k = 0; shapes != NULL && k < call->noperands; k++) {
        PyObject *shape = PyTuple_New(call->ranks[k]);
        for (int d = 0; shape != NULL && d < call->ranks[k]; d++)
            cx_put_item(&shape, d, PyLong_FromLongLong(call->sizes[k][d]));
        cx_put_item(&shapes, k, shape);
    }
    return shapes;
}

static int
read_answer(CxState *state, DeviceCall *d, PyObject *answer)
{
    PyObject *code, *sizes, *wanted;

    if (!PyArg_ParseTuple(answer, "O!O!LiO!", state->user_code_type, &code, &PyTuple_Type, &sizes,
                          &d->l.units, &d->nreads, &PyTuple_Type, &wanted))
        return -1;
    if (d->nreads + PyTuple_GET_SIZE(wanted) != d->call->noperands) {
        PyErr_SetString(PyExc_ValueError, "launch_on says other operands than there are");
        return -1;
    }
    for (int k = 0; k < PyTuple_GET_SIZE(wanted); k++)
        d->is_result[d->nreads + k] = PyTuple_GET_ITEM(wanted, k) == Py_True;
    d->l.nsizes = cx_sizes_from(sizes, d->l.sizes, MAX_SIZES);
    if (d->l.nsizes < 0)
        return -1;
    d->code = (UserCode *)Py_NewRef(code);
    return 0;
}

static int
call_python(CxState *state, DeviceCall *d, PyObject *callable)
{
    PyObject *shapes = shapes_of(d->call), *answer = NULL;

    if (shapes != NULL)
        answer = PyObject_CallMethod(callable, "launch_on", "iN", d->queue->index, shapes);
    int failed = answer == NULL || read_answer(state, d, answer) < 0;
    Py_XDECREF(answer);
    return failed ? -1 : 0;
}

/* Allocates the memory that the kernel writes: the result's, or temporary memory, with the
 * former contents. */
static int32_t
take_memory(DeviceCall *d)
{
    char *at = d->call->result;
    int32_t status = CI_OK;

    d->l.nbuffers = d->call->noperands;
    for (int k = 0; k < d->l.nbuffers && status == CI_OK; k++) {
        d->l.buffers[k] = d->call->operands[k];
        d->bytes[k] = (size_t)ci_dtype_size(d->call->dtypes[k]);
        for (int axis = 0; axis < d->call->ranks[k]; axis++)
            d->bytes[k] *= (size_t)d->call->sizes[k][axis];
        if (k < d->nreads)
            continue;
        if (d->is_result[k]) {
            d->l.buffers[k] = at;
            at += d->bytes[k];
        } else {
            status = ci_device_allocate(d->queue, d->bytes[k], &d->temporary[k]);
            d->l.buffers[k] = d->temporary[k];
        }
        if (status == CI_OK && d->bytes[k] > 0)
            status = ci_device_copy_across(d->queue, d->queue, d->l.buffers[k],
                                           d->call->operands[k], d->bytes[k]);
    }
    return status;
}

static void
forget(UserCode *code)
{
    CX_CALLBACK_BEGIN();
    Py_DECREF(code);
    CX_CALLBACK_END();
}

int32_t
cx_user_code_call(CxState *state, PyObject *callable, const CiExternCall *call)
{
    const CiQueue *queue = call->queue;
    DeviceCall d = {.queue = queue, .call = call};

    CX_CALLBACK_BEGIN();
    int failed = call_python(state, &d, callable);
    CX_CALLBACK_END();
    if (failed)
        return CI_ERR_PYTHON;
    int32_t status = take_memory(&d);
    if (status == CI_OK)
        status = d.code->code->run(d.code->code, queue, d.l.nbuffers, d.l.buffers, d.l.nsizes,
                                   d.l.sizes, d.l.units, 0);
    for (int k = 0; k < d.l.nbuffers; k++)
        if (d.temporary[k] != NULL)
            ci_device_release(queue, d.temporary[k], d.bytes[k]);
    forget(d.code);
    return status;
}

static void
user_code_dealloc(PyObject *self)
{
    CiUserCode *code = ((UserCode *)self)->code;

    code->close(code);
    cx_object_free(self);
}

static PyMethodDef user_code_methods[] = {
    CX_METHOD(UserCode, run, user_code_run, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_user_code_spec, UserCode, UserCode, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, user_code_dealloc), CX_SLOT(Py_tp_methods, user_code_methods));
