/* Compiles the text of a graph and runs it on real arrays, for tests and tools. */
#include "program/call_sizes.h"
#include "state/array.h"

#include "base/os.h"

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

/* The arguments as the graph's inputs. */
typedef struct Inputs {
    PyObject **objects; /* owned */
    void **data;
    const int64_t **sizes, **strides; /* strides in elements, owned */
    CiSlot *scalars;
    CxSizeSource *places;
    CxCallSizes shown;
    bool sizes_fit;
    int wrong; /* the first input that does not have the graph's type, or -1 */
} Inputs;

/* Checks that the arrays have the sizes and strides of the graph's inputs. */
static void
body_check(CiContext *ctx, void *arg)
{
    Inputs *in = arg;
    in->sizes_fit = cx_call_sizes_fit(ctx, &in->shown, &in->wrong);
    for (int k = 0; in->sizes_fit && k < in->shown.graph->ninputs && in->wrong < 0; k++)
        if (cx_call_strides_differ(ctx, &in->shown, k))
            in->wrong = k;
}

/* An array's strides in elements. A stride that is not a multiple of the element size never
 * equals the graph's. */
static int64_t *
strides_of(PyArrayObject *array)
{
    int rank = PyArray_NDIM(array);
    int64_t *strides = PyMem_Calloc((size_t)rank + 1, sizeof *strides), size = PyArray_ITEMSIZE(array);
    for (int k = 0; strides != NULL && k < rank; k++)
        strides[k] = PyArray_STRIDE(array, k) % size == 0 ? PyArray_STRIDE(array, k) / size : INT64_MIN;
    return strides != NULL ? strides : (int64_t *)PyErr_NoMemory();
}

static int
check_inputs(CxProgram *program, Inputs *in)
{
    int nplaces = in->wrong < 0 ? cx_size_sources_find(program->graph, &in->places) : 0;
    in->shown = (CxCallSizes){program->graph, in->places, nplaces, in->sizes, in->strides, in->scalars};
    if (in->wrong < 0 && (nplaces < 0 || cx_protect(program->state, program->ctx, body_check, in) < 0))
        return -1;
    if (in->wrong >= 0)
        PyErr_Format(PyExc_ValueError, "input %d is not the array that the graph says", in->wrong);
    else if (!in->sizes_fit)
        PyErr_SetString(PyExc_ValueError, "the inputs have sizes that the graph's guards exclude");
    return in->wrong < 0 && in->sizes_fit ? 0 : -1;
}

static int
fill_inputs(CxProgram *program, PyObject *values, Inputs *in)
{
    const CiGraph *graph = program->graph;
    int nscalars = 0;

    in->wrong = -1;
    for (int k = 0; k < graph->ninputs; k++) {
        const CiNode *node = graph->inputs[k];
        PyObject *value = PySequence_Fast_GET_ITEM(values, k);
        if (node->kind != CI_KIND_array) {
            in->objects[k] = Py_NewRef(value);
            if (cx_slot_from(value, node->dtype, &in->scalars[nscalars++]) < 0)
                return -1;
            continue;
        }
        in->objects[k] = PyArray_FROM_O(value);
        if (in->objects[k] == NULL)
            return -1;
        PyArrayObject *a = (PyArrayObject *)in->objects[k];
        in->data[k] = PyArray_DATA(a);
        in->sizes[k] = (const int64_t *)PyArray_DIMS(a);
        in->strides[k] = strides_of(a);
        if (in->strides[k] == NULL)
            return -1;
        if (cx_dtype_of_descr(PyArray_DESCR(a)) != node->dtype || PyArray_NDIM(a) != node->rank ||
            !PyArray_ISALIGNED(a)) {
            in->wrong = k;
            break;
        }
    }
    return check_inputs(program, in);
}

static PyObject *
run_program(CxProgram *program, PyObject *values)
{
    size_t n = (size_t)program->graph->ninputs + 1, nbuffers = (size_t)program->nbuffers + 1;
    PyObject *result = NULL;
    Inputs in = {.objects = PyMem_Calloc(n, sizeof *in.objects),
                 .data = PyMem_Calloc(n, sizeof *in.data),
                 .sizes = PyMem_Calloc(n, sizeof *in.sizes),
                 .strides = PyMem_Calloc(n, sizeof *in.strides),
                 .scalars = PyMem_Calloc(n, sizeof *in.scalars)};
    CxRun run = {.program = program,
                 .inputs = in.data,
                 .sizes = in.sizes,
                 .input_objects = in.objects,
                 .scalars = in.scalars,
                 .buffers = PyMem_Calloc(nbuffers, sizeof *run.buffers),
                 .slots = PyMem_Calloc(nbuffers, sizeof *run.slots)};

    if (!in.objects || !in.data || !in.sizes || !in.strides || !in.scalars || !run.buffers || !run.slots) {
        PyErr_NoMemory();
        goto done;
    }
    if (fill_inputs(program, values, &in) < 0 || cx_program_run(&run) < 0)
        goto done;
    result = PyList_New(program->nreturns);
    for (int k = 0; result != NULL && k < program->nreturns; k++)
        cx_put_item(&result, k, cx_run_value(&run, k, program->returns[k].layout.kind));
done:
    if (run.buffers != NULL)
        cx_run_close(&run);
    for (size_t k = 0; in.objects != NULL && k + 1 < n; k++)
        Py_XDECREF(in.objects[k]);
    for (size_t k = 0; in.strides != NULL && k + 1 < n; k++)
        PyMem_Free((void *)(uintptr_t)in.strides[k]);
    PyMem_Free((void *)in.strides);
    PyMem_Free(in.places);
    PyMem_Free(run.buffers);
    PyMem_Free(run.slots);
    PyMem_Free(in.data);
    PyMem_Free((void *)in.sizes);
    PyMem_Free(in.objects);
    PyMem_Free(in.scalars);
    return result;
}

/* The minimum of seconds over the runs; -1 with an exception. */
static double
time_program(CxProgram *program, PyObject *values, int runs)
{
    double least = -1;
    for (int k = 0; k < runs; k++) {
        int64_t start = ci_os_time_ns();
        PyObject *result = run_program(program, values);
        double seconds = (double)(ci_os_time_ns() - start) * 1e-9;
        if (result == NULL)
            return -1;
        Py_DECREF(result);
        least = k == 0 || seconds < least ? seconds : least;
    }
    return least;
}

PyObject *
cx_compile_text(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "inputs", "options", "device", "backend",
                            "runs", "level",  "given",   NULL};
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *given_options = NULL, *options_dict = NULL, *inputs = NULL,
             *values = NULL, *answer = NULL;
    const char *device = "cpu", *backend_name = "";
    CiTextInput level = {"", ""};
    Parse parse = {NULL, NULL};
    int runs = 0;
    CiOptions options;
    CiContext *ctx = NULL;
    CxProgram *program = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|$O!ssiss:compile_text", names, &parse.text,
                                     &given, &PyDict_Type, &given_options, &device, &backend_name,
                                     &runs, &level.level, &level.text))
        return NULL;
    const CiBackend *backend = ci_backend_find(state->runtime.registry, device, backend_name);
    if (backend == NULL)
        return PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", backend_name,
                            device);
    options_dict = given_options ? PyDict_Copy(given_options) : PyDict_New();
    inputs = PySequence_Fast(given, "inputs is a sequence");
    if (options_dict == NULL || inputs == NULL || cx_options_fill(options_dict, &options) < 0)
        goto done;
    options.device_arrays = false; /* the inputs are in host memory */
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
    /* Library calls that are not found fail when they are called. */
    if (cx_find_externs(state, parse.graph) < 0)
        goto done;
    program = cx_program_compile(state, ctx, parse.graph, &options, options_dict, backend,
                                 state->passes, *level.level ? &level : NULL, NULL);
    if (program == NULL)
        goto done;
    ctx = NULL;
    values = run_program(program, inputs);
    if (values != NULL && runs > 0) {
        double least = time_program(program, inputs, runs);
        if (least >= 0)
            answer = Py_BuildValue("(OOd)", values, (PyObject *)program, least);
    } else if (values != NULL) {
        answer = PyTuple_Pack(2, values, (PyObject *)program);
    }
done:
    if (ctx != NULL)
        ci_context_close(ctx);
    Py_XDECREF(options_dict);
    Py_XDECREF(inputs);
    Py_XDECREF(values);
    Py_XDECREF(program);
    return answer;
}

/* run_program(program, inputs): runs it and returns its results. Inputs may be written. */
PyObject *
cx_run_program(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *program = NULL, *given = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O:run_program", (PyTypeObject *)state->program_type, &program,
                          &given))
        return NULL;
    PyObject *inputs = PySequence_Fast(given, "inputs is a sequence"), *values = NULL;
    int wanted = ((CxProgram *)program)->graph->ninputs;
    if (inputs != NULL && PySequence_Fast_GET_SIZE(inputs) != wanted)
        PyErr_Format(PyExc_ValueError, "the graph takes %d inputs", wanted);
    else if (inputs != NULL)
        values = run_program((CxProgram *)program, inputs);
    Py_XDECREF(inputs);
    return values;
}

static void
body_copy(CiContext *ctx, void *arg)
{
    Parse *copy = arg;
    copy->graph = ci_graph_copy_to(ctx, copy->graph);
}

/* recompile(program, options, backend, rows): compiles the captured graph again with these
 * options. `rows` are passes that precede those of the program. */
PyObject *
cx_recompile(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *values = NULL, *rows = NULL, *made = NULL;
    const char *name = NULL;
    CiOptions options;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O!O!sO!:recompile", (PyTypeObject *)state->program_type, &given,
                          &PyDict_Type, &values, &name, &PyTuple_Type, &rows))
        return NULL;
    CxProgram *from = (CxProgram *)given;
    const CiBackend *backend =
        ci_backend_find(state->runtime.registry, from->backend->device->name, name);
    if (backend == NULL)
        return PyErr_Format(PyExc_ValueError, "no backend '%s'", name);
    PyObject *copy = PyDict_Copy(values);
    PyObject *passes = from->passes ? PySequence_Concat(rows, from->passes) : Py_NewRef(rows);
    CiContext *ctx = ci_context_open();
    Parse job = {NULL, from->graph};
    if (ctx == NULL)
        PyErr_NoMemory();
    else if (copy != NULL && passes != NULL &&
             cx_options_fill(copy, &options) == 0 && cx_protect(state, ctx, body_copy, &job) == 0)
        made = (PyObject *)cx_program_compile(state, ctx, job.graph, &options, copy, backend,
                                              passes, NULL, NULL);
    if (made == NULL && ctx != NULL)
        ci_context_close(ctx);
    Py_XDECREF(passes);
    Py_XDECREF(copy);
    return made;
}
