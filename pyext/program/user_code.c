/* Kernels that the user has written in C: source -> an object that runs units of their grid on arrays.
 * Who calls has compared dtypes, sizes and layouts with what the source was made for. */
#include "program/user_code.h"
#include "state/array.h"

#include "device/cpu/cpu.h"

typedef struct UserCode {
    PyObject_HEAD CxState *state;
    CiUserCode code;
} UserCode;

typedef struct Build {
    CiRuntime *runtime;
    const CiOptions *options;
    const char *source;
    CiUserCode code;
} Build;

static void
body_build(CiContext *ctx, void *arg)
{
    Build *b = arg;
    ci_cpu_build_text(ctx, b->runtime, b->options, b->source, "cinductor_kernel", &b->code);
}

/* Without the lock, for a compiler runs. */
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

/* user_code(source, options): its function cinductor_kernel. */
PyObject *
cx_user_code(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->user_code_type;
    PyObject *values = NULL;
    CiOptions options;
    Build b = {.runtime = &state->runtime, .options = &options};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sO!:user_code", &b.source, &PyDict_Type, &values) ||
        cx_options_fill(values, &options) < 0 || build(state, &b) < 0)
        return NULL;
    UserCode *made = (UserCode *)type->tp_alloc(type, 0);
    if (made == NULL) {
        ci_cpu_close_text(&b.code);
        return NULL;
    }
    made->state = state;
    made->code = b.code;
    return (PyObject *)made;
}

/* ---- running ---- */

enum { MOST = CX_MOST_OPERANDS + 1, MOST_SIZES = 64, UNITS_OF_A_CHUNK = 256 };

typedef struct Launch {
    const CiUserCode *code;
    void *buffers[MOST];
    int64_t sizes[MOST_SIZES];
    int64_t units;
} Launch;

static int32_t
run_chunk(void *arg, int64_t chunk)
{
    const Launch *l = arg;
    int64_t begin = chunk * UNITS_OF_A_CHUNK, end = begin + UNITS_OF_A_CHUNK;
    return l->code->run(l->buffers, l->sizes, begin, end < l->units ? end : l->units);
}

static int
fill_launch(Launch *l, PyObject *arrays, PyObject *sizes)
{
    Py_ssize_t count = PyTuple_GET_SIZE(arrays);

    if (count > MOST) {
        PyErr_Format(PyExc_ValueError, "at most %d arrays", (int)MOST);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *array = PyTuple_GET_ITEM(arrays, k);
        if (!PyArray_Check(array)) {
            PyErr_Format(PyExc_TypeError, "operand %zd is no array", k);
            return -1;
        }
        l->buffers[k] = PyArray_DATA((PyArrayObject *)array);
    }
    return cx_sizes_from(sizes, l->sizes, MOST_SIZES) < 0 ? -1 : 0;
}

/* run(arrays, sizes, units, threads) */
static PyObject *
user_code_run(PyObject *self, PyObject *args)
{
    UserCode *u = (UserCode *)self;
    PyObject *arrays = NULL, *sizes = NULL;
    Launch l = {.code = &u->code};
    PyThreadState *saved = NULL;
    int threads = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!Li:run", &PyTuple_Type, &arrays, &PyTuple_Type, &sizes,
                          (long long *)&l.units, &threads) ||
        fill_launch(&l, arrays, sizes) < 0)
        return NULL;
    CX_RELEASE(saved);
    int32_t status = ci_pool_run(u->state->runtime.pool,
                                 (l.units + UNITS_OF_A_CHUNK - 1) / UNITS_OF_A_CHUNK, threads,
                                 run_chunk, &l);
    CX_TAKE(saved);
    return PyLong_FromLong(status);
}

static void
user_code_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ci_cpu_close_text(&((UserCode *)self)->code);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef user_code_methods[] = {
    {"run", user_code_run, METH_VARARGS,
     "run(arrays, sizes, units, threads): runs that many units; what the function answers."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot user_code_slots[] = {
    CX_SLOT(Py_tp_dealloc, user_code_dealloc),
    CX_SLOT(Py_tp_methods, user_code_methods),
    {Py_tp_doc, "A function that the user has written in C."},
    {0, NULL},
};

PyType_Spec cx_user_code_spec = {
    "cinductor._core.UserCode",
    sizeof(UserCode),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    user_code_slots,
};
