/* compile_graph: compiles a Builder or the text of a graph to a program, without running it. */
#include "program/builder.h"

typedef struct Source {
    const char *text;
    CiGraph *graph;
} Source;

static void
body_parse(CiContext *ctx, void *arg)
{
    Source *source = arg;
    source->graph = ci_graph_parse(ctx, source->text);
}

/* Returns the context and graph of a builder, which is then empty, or of a text. */
static CiContext *
take_source(CxState *state, PyObject *given, Source *source)
{
    CxBuilder *b = (CxBuilder *)given;
    if (PyUnicode_Check(given)) {
        CiContext *ctx = ci_context_open();
        source->text = PyUnicode_AsUTF8(given);
        if (ctx == NULL)
            PyErr_NoMemory();
        else if (source->text != NULL && cx_protect(state, ctx, body_parse, source) == 0)
            return ctx;
        if (ctx != NULL)
            ci_context_close(ctx);
        return NULL;
    }
    if (!Py_IS_TYPE(given, (PyTypeObject *)state->builder_type) || b->ctx == NULL) {
        PyErr_SetString(PyExc_TypeError, "compile_graph takes a text or a Builder that was not compiled yet");
        return NULL;
    }
    CiContext *ctx = b->ctx;
    source->graph = b->graph;
    b->ctx = NULL;
    return ctx;
}

PyObject *
cx_compile_graph(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "options", "device", "backend", NULL};
    CxState *state = PyModule_GetState(module);
    PyObject *given = NULL, *given_options = NULL;
    const char *device = "cpu", *name = "";
    Source source = {NULL, NULL};
    CxProgram *program = NULL;
    CiOptions options;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O!ss:compile_graph", names, &given,
                                     &PyDict_Type, &given_options, &device, &name))
        return NULL;
    const CiBackend *backend = ci_backend_find(state->runtime.registry, device, name);
    if (backend == NULL)
        return PyErr_Format(PyExc_ValueError, "no backend '%s' of device '%s'", name, device);
    PyObject *values = given_options ? PyDict_Copy(given_options) : PyDict_New();
    if (values == NULL)
        return NULL;
    CiContext *ctx = cx_options_fill(values, &options) < 0 ? NULL : take_source(state, given, &source);
    if (ctx != NULL && cx_find_externs(state, source.graph) >= 0)
        program = cx_program_compile(state, ctx, source.graph, &options, values, backend,
                                     state->passes, NULL, NULL);
    if (program == NULL && ctx != NULL)
        ci_context_close(ctx);
    Py_DECREF(values);
    return (PyObject *)program;
}
