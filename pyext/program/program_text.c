/* Compiles a graph in a context of its own. Also makes the texts of a program's levels, which
 * are produced on request. */
#include "program/passes.h"
#include "program/program.h"
#include "state/device_array.h"

typedef struct CopyJob {
    const CiGraph *from;
    CiGraph *to;
} CopyJob;

static void
body_copy_graph(CiContext *ctx, void *arg)
{
    CopyJob *job = arg;
    job->to = ci_graph_copy_to(ctx, job->from);
}

CiGraph *
cx_graph_copy(CxState *state, CiContext *ctx, const CiGraph *graph)
{
    CopyJob job = {graph, NULL};
    return cx_protect(state, ctx, body_copy_graph, &job) < 0 ? NULL : job.to;
}

int
cx_program_make(CxState *state, const CiGraph *graph, const CiOptions *options,
                const CiBackend *backend, PyObject *passes, const CiTextInput *given,
                void (*dump)(void *, const char *, const char *),
                void (*planned)(void *, const struct CiProgramPlan *), void *arg, CiRequest *request)
{
    CiContext *ctx = ci_context_open();
    PyThreadState *saved = NULL;
    CxPasses extras = {0};
    PyObject *observer = dump == NULL ? Py_XNewRef(state->pass_observer) : NULL;
    int result = -1;

    if (ctx == NULL) {
        Py_XDECREF(observer);
        PyErr_NoMemory();
        return -1;
    }
    CiGraph *copy = cx_graph_copy(state, ctx, graph);
    if (copy == NULL || cx_passes_open(state, &extras, passes, options) < 0)
        goto done;
    *request = (CiRequest){.graph = copy,
                           .given = given,
                           .options = options,
                           .queue = cx_queue(state, options, backend),
                           .host_arrays = !cx_is_on_device(options, backend),
                           .dump = dump,
                           .dump_arg = arg,
                           .planned = planned,
                           .planned_arg = arg,
                           .extras = extras.extras,
                           .nextras = extras.count,
                           .observe = observer != NULL ? cx_pass_observed : NULL,
                           .observe_arg = observer};
    CX_RELEASE(saved);
    CiStatus status = ci_compile(request);
    CX_TAKE(saved);
    if (status != CI_OK)
        cx_raise_status(state, status, ci_context_message(ctx));
    else
        result = 0;
    cx_passes_explain(&extras);
done:
    request->extras = NULL; /* they are used up */
    cx_passes_close(&extras);
    Py_XDECREF(observer);
    ci_context_close(ctx);
    return result;
}

/* Called without the lock. */
static void
keep_text(void *arg, const char *level, const char *text)
{
    CX_CALLBACK_BEGIN();
    PyObject *value = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (value == NULL || PyDict_SetItemString(arg, level, value) < 0)
        PyErr_Clear(); /* text() then reports that it is missing */
    Py_XDECREF(value);
    CX_CALLBACK_END();
}

PyObject *
cx_program_text(CxProgram *p, const char *level)
{
    CiRequest request;
    PyObject *text = cx_dict_named(p->texts, level);

    if (text == NULL && p->graph != NULL && PyDict_GET_SIZE(p->texts) == 0) {
        if (cx_program_make(p->state, p->graph, &p->options, p->backend, p->passes, NULL, keep_text,
                            NULL, p->texts, &request) < 0)
            return NULL;
        cx_program_free(request.program);
        text = cx_dict_named(p->texts, level);
    }
    if (text == NULL && (strcmp(level, "source") == 0 || strcmp(level, "procs") == 0))
        return PyUnicode_FromString("");
    if (text == NULL)
        return PyErr_Format(PyExc_ValueError, "there is no text of level '%s'", level);
    return Py_NewRef(text);
}

/* ---- properties ---- */

PyObject *
cx_program_backend(PyObject *self, void *closure)
{
    CxProgram *p = (CxProgram *)self;
    (void)closure;
    if (p->user_backend != NULL)
        return PyUnicode_FromFormat("cpu:%U", PyTuple_GET_ITEM(p->user_backend, 0));
    return PyUnicode_FromFormat("%s:%s", p->backend->device->name,
                                p->is_former ? "stencil" : p->backend->compiler->name);
}

static int
add_approximate(PyObject *names, CxState *state, const CiBlock *block)
{
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        bool is_function =
            ci_op_is_function(node->op) || ci_op_kind(node->op) == CI_OPKIND_composite;
        for (int b = 0; b < node->nblocks; b++)
            if (add_approximate(names, state, node->blocks[b]) < 0)
                return -1;
        if (!is_function || ci_op_is_exact(node->op, node->args[0]->dtype))
            continue;
        PyObject *name = PyUnicode_FromFormat("%s of %S", ci_op_name(node->op),
                                              state->descrs[node->args[0]->dtype]);
        int status = name ? PySet_Add(names, name) : -1;
        Py_XDECREF(name);
        if (status < 0)
            return -1;
    }
    return 0;
}

PyObject *
cx_program_approximate(PyObject *self, void *closure)
{
    CxProgram *p = (CxProgram *)self;
    CxState *state = PyType_GetModuleState(Py_TYPE(self));
    PyObject *names = PySet_New(NULL), *list = NULL;

    (void)closure;
    if (names != NULL && add_approximate(names, state, p->graph->body) == 0)
        list = PySequence_List(names);
    if (list != NULL && PyList_Sort(list) < 0)
        Py_CLEAR(list);
    Py_XDECREF(names);
    return list;
}
