/* A graph from its text, compiled and run on real arrays: for tests and tools. */
#include "pyext.h"

typedef struct Parse {
    const char *text;
    CiGraph *graph;
} Parse;

static void
body_parse(CiContext *ctx, void *arg)
{
    Parse *parse = arg;
    parse->graph = ci_graph_parse(ctx, parse->text);
}

/* The arguments as the graph's inputs; objects owns what it holds. */
static int
fill_inputs(CxState *state, const CiGraph *graph, PyObject *values, void **inputs,
            PyObject **objects, CiSlot *scalars)
{
    int nscalars = 0;

    for (int k = 0; k < graph->ninputs; k++) {
        const CiNode *node = graph->inputs[k];
        PyObject *value = PySequence_Fast_GET_ITEM(values, k);
        if (node->kind == CI_KIND_python) {
            objects[k] = Py_NewRef(value);
            if (cx_slot_from(value, node->dtype, &scalars[nscalars++]) < 0)
                return -1;
            continue;
        }
        objects[k] = PyArray_FROM_O(value);
        if (objects[k] == NULL)
            return -1;
        PyArrayObject *a = (PyArrayObject *)objects[k];
        bool fits = cx_dtype_of_descr(PyArray_DESCR(a)) == node->dtype &&
                    PyArray_NDIM(a) == node->rank && PyArray_ISALIGNED(a);
        for (int axis = 0; fits && axis < node->rank; axis++) {
            int64_t size = 0, stride = 0;
            fits = ci_expr_is_const(node->sizes[axis], &size) &&
                   ci_expr_is_const(graph->strides[k][axis], &stride) &&
                   PyArray_DIM(a, axis) == size &&
                   (size <= 1 || PyArray_STRIDE(a, axis) == stride * PyArray_ITEMSIZE(a));
        }
        if (!fits) {
            PyErr_Format(PyExc_ValueError, "input %d is not the array that the graph says", k);
            return -1;
        }
        inputs[k] = PyArray_DATA(a);
    }
    (void)state;
    return 0;
}

static PyObject *
run_program(CxProgram *program, PyObject *values)
{
    size_t n = (size_t)program->graph->ninputs + 1, nbuffers = (size_t)program->nbuffers + 1;
    void **inputs = PyMem_Calloc(n, sizeof *inputs);
    PyObject **objects = PyMem_Calloc(n, sizeof *objects), *result = NULL;
    CiSlot *scalars = PyMem_Calloc(n, sizeof *scalars);
    CxRun run = {
        .program = program, .inputs = inputs, .input_objects = objects, .scalars = scalars};

    run.buffers = PyMem_Calloc(nbuffers, sizeof *run.buffers);
    run.slots = PyMem_Calloc(nbuffers, sizeof *run.slots);
    if (!inputs || !objects || !scalars || !run.buffers || !run.slots) {
        PyErr_NoMemory();
        goto done;
    }
    if (fill_inputs(program->state, program->graph, values, inputs, objects, scalars) < 0 ||
        cx_program_run(&run) < 0)
        goto done;
    result = PyList_New(program->nreturns);
    for (int k = 0; result != NULL && k < program->nreturns; k++) {
        PyObject *value = cx_run_value(&run, k, program->returns[k].layout.kind);
        if (value == NULL)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, k, value);
    }
done:
    if (run.buffers != NULL)
        cx_run_close(&run);
    for (size_t k = 0; objects != NULL && k + 1 < n; k++)
        Py_XDECREF(objects[k]);
    PyMem_Free(run.buffers);
    PyMem_Free(run.slots);
    PyMem_Free(inputs);
    PyMem_Free(objects);
    PyMem_Free(scalars);
    return result;
}

PyObject *
cx_compile_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "inputs", "options", "device", "backend", NULL};
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *given_options = NULL, *options_dict = NULL, *inputs = NULL,
             *values = NULL, *pair = NULL;
    const char *device = "cpu", *backend_name = "";
    Parse parse = {NULL, NULL};
    CiOptions options;
    CiContext *ctx = NULL;
    CxProgram *program = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|$O!ss:compile_text", names, &parse.text,
                                     &given, &PyDict_Type, &given_options, &device, &backend_name))
        return NULL;
    const CiBackend *backend = ci_backend_find(device, backend_name);
    if (backend == NULL)
        return PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", backend_name,
                            device);
    options_dict = given_options ? PyDict_Copy(given_options) : PyDict_New();
    inputs = PySequence_Fast(given, "inputs is a sequence");
    if (options_dict == NULL || inputs == NULL || cx_options_fill(options_dict, &options) < 0)
        goto done;
    options.device_arrays = false; /* inputs here are the host's */
    ctx = ci_context_open();
    if (ctx == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    if (cx_protect(state, ctx, body_parse, &parse) < 0)
        goto done;
    if (PySequence_Fast_GET_SIZE(inputs) != parse.graph->ninputs) {
        PyErr_Format(PyExc_ValueError, "the graph takes %d inputs, not %zd", parse.graph->ninputs,
                     PySequence_Fast_GET_SIZE(inputs));
        goto done;
    }
    program = cx_program_compile(state, ctx, parse.graph, &options, options_dict, backend, NULL);
    if (program == NULL)
        goto done;
    ctx = NULL;
    values = run_program(program, inputs);
    if (values != NULL)
        pair = PyTuple_Pack(2, values, (PyObject *)program);
done:
    if (ctx != NULL)
        ci_context_close(ctx);
    Py_XDECREF(options_dict);
    Py_XDECREF(inputs);
    Py_XDECREF(values);
    Py_XDECREF(program);
    return pair;
}
