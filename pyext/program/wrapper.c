/* Runs the Python wrapper that the compiler printed. Its text is compiled once, with the names
 * it uses: empty, part, as_strided, assert_size_stride, item, check, the kernels k<n> and the
 * library calls. No other source is ever run. */
#include "base/os.h"
#include "program/program.h"
#include "state/array.h"

static CxProgram *
program_of(PyObject *self)
{
    return (CxProgram *)(PyTuple_Check(self) ? PyTuple_GET_ITEM(self, 0) : self);
}

static PyObject *
wrapper_empty(PyObject *self, PyObject *args)
{
    CxProgram *p = program_of(self);
    PyObject *shape = NULL, *steps = NULL;
    const char *name = NULL;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    if (!PyArg_ParseTuple(args, "OOs:empty", &shape, &steps, &name))
        return NULL;
    CiDtype dtype = ci_dtype_find(name);
    int rank = cx_sizes_from(shape, sizes, CI_MAX_RANK);
    if (dtype == CI_DTYPE_none || rank < 0 || cx_sizes_from(steps, strides, CI_MAX_RANK) != rank)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "empty: wrong arguments");
    for (int k = 0; k < rank; k++)
        strides[k] *= ci_dtype_size(dtype);
    return cx_array_new(p->state, dtype, rank, sizes, strides);
}

/* A buffer within a memory pool, which it keeps alive. */
static PyObject *
wrapper_part(PyObject *self, PyObject *args)
{
    CxProgram *p = program_of(self);
    PyObject *pool = NULL, *shape = NULL, *steps = NULL;
    long long offset = 0;
    const char *name = NULL;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    if (!PyArg_ParseTuple(args, "O!LOOs:part", &PyArray_Type, &pool, &offset, &shape, &steps,
                          &name))
        return NULL;
    CiDtype dtype = ci_dtype_find(name);
    int rank = cx_sizes_from(shape, sizes, CI_MAX_RANK);
    if (dtype == CI_DTYPE_none || rank < 0 || cx_sizes_from(steps, strides, CI_MAX_RANK) != rank)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "part: wrong arguments");
    for (int k = 0; k < rank; k++)
        strides[k] *= ci_dtype_size(dtype);
    return cx_array_view(p->state, pool, dtype, rank, sizes, strides, offset, CX_WRITABLE);
}

static PyObject *
wrapper_as_strided(PyObject *self, PyObject *args)
{
    CxProgram *p = program_of(self);
    PyObject *base = NULL, *shape = NULL, *steps = NULL;
    long long offset = 0;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    if (!PyArg_ParseTuple(args, "O!LOO:as_strided", &PyArray_Type, &base, &offset, &shape, &steps))
        return NULL;
    CiDtype dtype = cx_dtype_of_descr(PyArray_DESCR((PyArrayObject *)base));
    int rank = cx_sizes_from(shape, sizes, CI_MAX_RANK);
    if (dtype == CI_DTYPE_none || rank < 0 || cx_sizes_from(steps, strides, CI_MAX_RANK) != rank)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_ValueError, "as_strided: wrong arguments");
    for (int k = 0; k < rank; k++)
        strides[k] *= ci_dtype_size(dtype);
    return cx_array_view(p->state, base, dtype, rank, sizes, strides, offset * ci_dtype_size(dtype),
                         CX_WRITABLE);
}

static PyObject *
wrapper_assert(PyObject *self, PyObject *args)
{
    PyObject *array = NULL, *shape = NULL, *steps = NULL;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];

    (void)self;
    if (!PyArg_ParseTuple(args, "O!OO:assert_size_stride", &PyArray_Type, &array, &shape, &steps))
        return NULL;
    PyArrayObject *a = (PyArrayObject *)array;
    int rank = cx_sizes_from(shape, sizes, CI_MAX_RANK);
    if (rank < 0 || cx_sizes_from(steps, strides, CI_MAX_RANK) != rank)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_ValueError, "assert_size_stride: wrong arguments");
    bool fits = rank == PyArray_NDIM(a);
    for (int k = 0; fits && k < rank; k++)
        fits = PyArray_DIM(a, k) == sizes[k] &&
               (sizes[k] <= 1 || PyArray_SIZE(a) == 0 ||
                PyArray_STRIDE(a, k) == strides[k] * PyArray_ITEMSIZE(a));
    if (!fits)
        return PyErr_Format(PyExc_AssertionError, "expected sizes %R and strides %R", shape, steps);
    Py_RETURN_NONE;
}

static CiDtype
dtype_of_number(PyObject *value)
{
    return PyFloat_Check(value)     ? CI_DTYPE_f64
           : PyComplex_Check(value) ? CI_DTYPE_c128
           : PyBool_Check(value)    ? CI_DTYPE_bool
                                    : CI_DTYPE_i64;
}

/* Name of the observer in the wrapper's namespace. */
#define OBSERVER "observer"

/* Calls the observer with (letter, number, began, ended) of the last line, in nanoseconds of
 * time.perf_counter_ns. */
static int
notify_observer(CxProgram *p, const char *letter, int number, int64_t began)
{
    PyObject *names = p->wrapper ? PyFunction_GetGlobals(p->wrapper) : NULL, *done = NULL;
    PyObject *observer = names ? Py_XNewRef(cx_dict_named(names, OBSERVER)) : NULL;

    if (observer == NULL)
        return 0;
    done = PyObject_CallFunction(observer, "siLL", letter, number, (long long)began,
                                 (long long)ci_os_time_ns());
    Py_DECREF(observer);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* k<n>(buffers…, scalars…, symbols…): runs kernel n; self is (program, n). */
static PyObject *
wrapper_kernel(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    CxProgram *p = program_of(self);
    int number = (int)PyLong_AsLong(PyTuple_GET_ITEM(self, 1));
    int nbuffers = ci_program_kernel_buffer_count(p->program, number),
        nscalars = ci_program_kernel_scalar_count(p->program, number);
    int nsymbols = ci_program_symbol_count(p->program);
    CiFault fault = {0};
    void **buffers = NULL;
    CiSlot *slots = NULL;
    int64_t *symbols = NULL;
    PyObject *result = NULL;

    if (nargs != nbuffers + nscalars + nsymbols)
        return PyErr_Format(PyExc_TypeError, "k%d takes %d operands, not %zd", number,
                            nbuffers + nscalars + nsymbols, nargs);
    buffers = PyMem_Calloc((size_t)nbuffers + 1, sizeof *buffers);
    slots = PyMem_Calloc((size_t)p->nscalars + 1, sizeof *slots);
    symbols = PyMem_Calloc((size_t)nsymbols + 1, sizeof *symbols);
    if (buffers == NULL || slots == NULL || symbols == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int k = 0; k < nbuffers; k++) {
        if (!PyArray_Check(args[k])) {
            PyErr_Format(PyExc_TypeError, "k%d: operand %d is no array", number, k);
            goto done;
        }
        buffers[k] = PyArray_DATA((PyArrayObject *)args[k]);
    }
    for (int k = 0; k < nscalars; k++) {
        PyObject *value = args[nbuffers + k];
        if (cx_slot_from(value, dtype_of_number(value),
                         &slots[ci_program_kernel_scalar_at(p->program, number, k)]) < 0)
            goto done;
    }
    for (int k = 0; k < nsymbols; k++) {
        symbols[k] = PyLong_AsLongLong(args[nbuffers + nscalars + k]);
        if (symbols[k] == -1 && PyErr_Occurred())
            goto done;
    }
    int64_t began = ci_os_time_ns();
    int32_t status = ci_program_launch(p->program, number, buffers, symbols, slots,
                                       (int)p->options.threads, &fault);
    if (status != 0)
        cx_raise_status(p->state, (CiStatus)status, NULL);
    else if (notify_observer(p, "k", number, began) == 0)
        result = Py_NewRef(Py_None);
done:
    PyMem_Free(buffers);
    PyMem_Free(slots);
    PyMem_Free(symbols);
    return result;
}

/* e<n>(operands…, result): makes library call n; self is (program, n). */
static PyObject *
wrapper_extern(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    enum { MOST = CX_MAX_OPERANDS + 1 };
    CxProgram *p = program_of(self);
    int number = (int)PyLong_AsLong(PyTuple_GET_ITEM(self, 1));
    const CiExtern *ext = ci_program_extern_at(p->program, number);
    void *operands[MOST];
    const int64_t *sizes[MOST], *strides[MOST];
    int64_t steps[MOST][CI_MAX_RANK];
    int ranks[MOST];
    CiDtype dtypes[MOST];

    if (nargs < 1 || nargs > MOST)
        return PyErr_Format(PyExc_TypeError,
                            "a library call takes its result and at most %d arrays",
                            CX_MAX_OPERANDS);
    for (Py_ssize_t k = 0; k < nargs; k++) {
        PyArrayObject *a = (PyArrayObject *)args[k];
        if (!PyArray_Check(args[k]) || PyArray_NDIM(a) > CI_MAX_RANK)
            return PyErr_Format(PyExc_TypeError, "operand %zd is no array that a program has", k);
        ranks[k] = PyArray_NDIM(a);
        dtypes[k] = cx_dtype_of_descr(PyArray_DESCR(a));
        sizes[k] = (const int64_t *)PyArray_DIMS(a);
        strides[k] = steps[k];
        for (int axis = 0; axis < ranks[k]; axis++)
            steps[k][axis] = PyArray_STRIDE(a, axis) / PyArray_ITEMSIZE(a);
        operands[k] = PyArray_DATA(a);
    }
    CiExternCall call = {.ext = ext,
                         .noperands = (int)nargs - 1,
                         .operands = operands,
                         .sizes = sizes,
                         .strides = strides,
                         .ranks = ranks,
                         .dtypes = dtypes,
                         .result = operands[nargs - 1]};
    int64_t began = ci_os_time_ns();
    int32_t status = ext->call(ext->data, &call);
    if (status != 0) {
        cx_raise_status(p->state, (CiStatus)status, NULL);
        return NULL;
    }
    if (notify_observer(p, "e", number, began) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
wrapper_item(PyObject *self, PyObject *array)
{
    (void)self;
    return PyObject_CallMethod(array, "item", NULL);
}

static PyObject *
wrapper_check(PyObject *self, PyObject *args)
{
    int holds = 0;
    const char *reason = NULL;

    if (!PyArg_ParseTuple(args, "ps:check", &holds, &reason))
        return NULL;
    if (!holds) {
        cx_raise_check(program_of(self)->state, reason);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef helpers[] = {
    {"empty", wrapper_empty, METH_VARARGS, NULL},
    {"part", wrapper_part, METH_VARARGS, NULL},
    {"as_strided", wrapper_as_strided, METH_VARARGS, NULL},
    {"assert_size_stride", wrapper_assert, METH_VARARGS, NULL},
    {"item", wrapper_item, METH_O, NULL},
    {"check", wrapper_check, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef kernel_def = {"kernel", (PyCFunction)(void (*)(void))wrapper_kernel,
                                 METH_FASTCALL, NULL};
static PyMethodDef extern_def = {"library_call", (PyCFunction)(void (*)(void))wrapper_extern,
                                 METH_FASTCALL, NULL};

static int
add_numbered(CxProgram *p, PyObject *names, const char *name, int number, PyMethodDef *def)
{
    PyObject *self = Py_BuildValue("(Oi)", (PyObject *)p, number),
             *function = self ? PyCFunction_New(def, self) : NULL;
    PyObject *key = function ? PyUnicode_FromFormat("%s%d", name, number) : NULL;
    int result = key ? PyDict_SetItem(names, key, function) : -1;
    Py_XDECREF(key);
    Py_XDECREF(function);
    Py_XDECREF(self);
    return result;
}

/* The functions refer to the program and the program to the wrapper: a cycle for the garbage
 * collector. */
static PyObject *
make_names(CxProgram *p)
{
    PyObject *names = PyDict_New();

    for (PyMethodDef *def = helpers; names != NULL && def->ml_name != NULL; def++) {
        PyObject *function = PyCFunction_New(def, (PyObject *)p);
        if (function == NULL || PyDict_SetItemString(names, def->ml_name, function) < 0)
            Py_CLEAR(names);
        Py_XDECREF(function);
    }
    for (int k = 0; names != NULL && k < ci_program_kernel_count(p->program); k++)
        if (ci_program_kernel_buffer_count(p->program, k) >= 0 &&
            add_numbered(p, names, "k", k, &kernel_def) < 0)
            Py_CLEAR(names);
    for (int k = 0; names != NULL && k < ci_program_extern_count(p->program); k++)
        if (add_numbered(p, names, ci_extern_print_name(ci_program_extern_at(p->program, k)), k,
                         &extern_def) < 0)
            Py_CLEAR(names);
    return names;
}

/* wrapper_names(): for code that runs the printed wrapper as a separate file. */
PyObject *
cx_program_wrapper_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    return make_names((CxProgram *)self);
}

int
cx_wrapper_open(CxProgram *p)
{
    PyObject *names = NULL, *text = cx_program_text(p, "wrapper"), *code = NULL, *done = NULL;
    const char *source = text ? PyUnicode_AsUTF8(text) : NULL;

    if (source != NULL && (names = make_names(p)) != NULL)
        code = Py_CompileString(source, "<cinductor wrapper>", Py_file_input);
    if (code != NULL)
        done = PyEval_EvalCode(code, names, names);
    if (done != NULL) {
        p->wrapper = Py_XNewRef(cx_dict_named(names, "call"));
        if (p->wrapper == NULL)
            cx_raise_status(p->state, CI_ERR_INTERNAL, "the printed wrapper has no function");
    }
    Py_XDECREF(done);
    Py_XDECREF(code);
    Py_XDECREF(names);
    Py_XDECREF(text);
    return p->wrapper == NULL ? -1 : 0;
}

int
cx_wrapper_run(CxRun *run)
{
    CxProgram *p = run->program;
    PyObject *wrapper = Py_NewRef(p->wrapper); /* removing the observer clears it */
    run->values =
        PyObject_Vectorcall(wrapper, run->input_objects, (size_t)p->graph->ninputs, NULL);
    Py_DECREF(wrapper);
    if (run->values == NULL)
        return -1;
    if (!PyTuple_Check(run->values) || PyTuple_GET_SIZE(run->values) != p->nreturns)
        return cx_raise_status(p->state, CI_ERR_INTERNAL,
                               "the printed wrapper returned something else");
    return 0;
}

/* Observes a program: its printed wrapper runs instead, so that each launch is a call. */
PyObject *
cx_program_observe(PyObject *self, PyObject *observer)
{
    CxProgram *p = (CxProgram *)self;

    if (ci_backend_has_memory(p->backend) || p->user_backend != NULL)
        Py_RETURN_FALSE;
    if (observer == Py_None && strcmp(p->options.wrapper, "python") != 0) {
        Py_CLEAR(p->wrapper);
        Py_RETURN_TRUE;
    }
    if (p->wrapper == NULL && cx_wrapper_open(p) < 0)
        return NULL;
    PyObject *names = PyFunction_GetGlobals(p->wrapper);
    if (observer != Py_None && PyDict_SetItemString(names, OBSERVER, observer) < 0)
        return NULL;
    if (observer == Py_None && PyDict_DelItemString(names, OBSERVER) < 0)
        PyErr_Clear(); /* there was no observer */
    Py_RETURN_TRUE;
}
