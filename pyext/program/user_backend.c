/* Runs programs by a function of the user: a backend of `register_backend` makes it of the program's graph. In: the
 * program's inputs. Out: a tuple with an array for each result of the graph, in the layout that the graph says. */
#include "program/program.h"
#include "state/array.h"

int
cx_user_backend_open(CxProgram *p, PyObject *backend)
{
    PyObject *name = NULL, *maker = NULL, *text = NULL, *function = NULL;

    if (!PyArg_ParseTuple(backend, "UO:user_backend", &name, &maker))
        return -1;
    if (p->may_stop) {
        PyObject *type = cx_exception(p->state, "Unsupported");
        PyErr_Format(type, "backend %R gets no graph that checks data (indices that data decide)", name);
        return -1;
    }
    text = cx_program_text(p, "graph");
    if (text != NULL)
        function = PyObject_CallOneArg(maker, text);
    if (function != NULL)
        p->user_backend = Py_BuildValue("OO", name, function);
    Py_XDECREF(text);
    Py_XDECREF(function);
    return p->user_backend == NULL ? -1 : 0;
}

/* True if the array has the sizes, and with `with_strides` the strides, of a return. */
static bool
has_layout(PyArrayObject *array, const CiReturn *r, bool with_strides)
{
    bool fits = PyArray_NDIM(array) == r->rank;

    for (int k = 0; fits && k < r->rank; k++) {
        bool is_free = !with_strides || r->sizes[k] <= 1 || PyArray_SIZE(array) == 0;
        fits = PyArray_DIM(array, k) == r->sizes[k] &&
               (is_free || PyArray_STRIDE(array, k) == r->strides[k] * PyArray_ITEMSIZE(array));
    }
    return fits;
}

/* Raises BackendCompilerFailed(name, ValueError(text)); takes the reference of text. */
static void
raise_failed(const CxProgram *p, PyObject *text)
{
    PyObject *module = text != NULL ? PyImport_ImportModule("cinductor.errors") : NULL;
    PyObject *type = module != NULL ? PyObject_GetAttrString(module, "BackendCompilerFailed") : NULL;
    PyObject *inner = type != NULL ? PyObject_CallOneArg(PyExc_ValueError, text) : NULL;
    PyObject *error = inner != NULL ? PyObject_CallFunctionObjArgs(type, PyTuple_GET_ITEM(p->user_backend, 0), inner, NULL) : NULL;

    if (error != NULL)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(inner);
    Py_XDECREF(type);
    Py_XDECREF(module);
    Py_XDECREF(text);
}

static void
refuse(CxRun *run, int position, PyArrayObject *array, const CiReturn *r)
{
    CxProgram *p = run->program;
    PyObject *shape = PyTuple_New(r->rank);

    for (int k = 0; shape != NULL && k < r->rank; k++)
        PyTuple_SET_ITEM(shape, k, PyLong_FromLongLong(r->sizes[k]));
    PyObject *got = shape != NULL ? PyObject_GetAttrString((PyObject *)array, "shape") : NULL;
    if (got != NULL)
        raise_failed(p, PyUnicode_FromFormat("result %d is %S of shape %S; the graph has %S of shape %S",
                                             position, PyArray_DESCR(array), got,
                                             p->state->descrs[r->dtype], shape));
    Py_XDECREF(shape);
    Py_XDECREF(got);
}

/* One result in the layout of the return: the array itself, or a copy of it. */
static PyObject *
placed(CxRun *run, int position, PyObject *value)
{
    CxProgram *p = run->program;
    const CxReturn *back = &p->returns[position];
    CiReturn r;
    int64_t storage[2 * CI_MAX_RANK], strides[CI_MAX_RANK];

    ci_program_return_at(p->program, position, run->symbols, storage, &r);
    PyArrayObject *array = (PyArrayObject *)value;
    if (cx_dtype_of_descr(PyArray_DESCR(array)) != r.dtype || !has_layout(array, &r, false)) {
        refuse(run, position, array, &r);
        return NULL;
    }
    if (back->is_shared || has_layout(array, &r, true)) /* a shared one is copied later */
        return Py_NewRef(value);
    for (int k = 0; k < r.rank; k++)
        strides[k] = r.strides[k] * (int64_t)ci_dtype_size(r.dtype);
    PyObject *copy = cx_array_new(p->state, r.dtype, r.rank, r.sizes, strides);
    if (copy != NULL && PyArray_CopyInto((PyArrayObject *)copy, array) < 0)
        Py_CLEAR(copy);
    return copy;
}

int
cx_user_backend_run(CxRun *run)
{
    CxProgram *p = run->program;
    CiCall call = {.inputs = run->inputs, .sizes = run->sizes, .scalars = run->scalars};
    PyObject *made;

    ci_program_symbols(p->program, &call, run->symbols); /* the function may reshape an input */
    made = PyObject_Vectorcall(PyTuple_GET_ITEM(p->user_backend, 1), run->input_objects,
                               (size_t)p->graph->ninputs, NULL);
    if (made != NULL && PyTuple_GET_SIZE(made) == p->nreturns)
        run->values = PyTuple_New(p->nreturns);
    else if (made != NULL)
        raise_failed(p, PyUnicode_FromFormat("%zd results; the graph has %d", PyTuple_GET_SIZE(made), p->nreturns));
    for (int k = 0; run->values != NULL && k < p->nreturns; k++)
        cx_put_item(&run->values, k, placed(run, k, PyTuple_GET_ITEM(made, k)));
    Py_XDECREF(made);
    return run->values == NULL ? -1 : 0;
}
