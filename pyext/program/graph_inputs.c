/* Describes the inputs of a graph given as text, so that arrays for a run can be made. */
#include "program/program.h"
#include "state/array.h"

typedef struct Look {
    CxState *state;
    const char *text;
    const CiGraph *graph;
    int input;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
} Look;

static void
body_parse(CiContext *ctx, void *arg)
{
    Look *look = arg;
    look->graph = ci_graph_parse(ctx, look->text);
}

/* The symbol's value in the captured call; 2 if it is not recorded. */
static int64_t
hint_of(void *arg, const CiExpr *symbol)
{
    const CiShapeEnv *env = ((Look *)arg)->graph->env;

    for (int k = 0; k < env->nsources; k++)
        if (env->sources[k].symbol == symbol && env->sources[k].hint != 0)
            return env->sources[k].hint;
    return 2;
}

static void
body_layout(CiContext *ctx, void *arg)
{
    Look *look = arg;
    const CiNode *node = look->graph->inputs[look->input];

    for (int k = 0; k < node->rank; k++) {
        look->sizes[k] = ci_expr_evaluate(ctx, node->sizes[k], hint_of, look);
        look->strides[k] =
            ci_expr_evaluate(ctx, look->graph->strides[look->input][k], hint_of, look);
    }
}

static PyObject *
input_of(Look *look, CiContext *ctx)
{
    static const char *const KINDS[] = {
        [CI_KIND_array] = "array", [CI_KIND_scalar] = "scalar", [CI_KIND_python] = "python"};
    const CiNode *node = look->graph->inputs[look->input];

    if (cx_protect(look->state, ctx, body_layout, look) < 0)
        return NULL;
    return Py_BuildValue("(sONN)", KINDS[node->kind], look->state->descrs[node->dtype],
                         cx_sizes_tuple(node->rank, look->sizes),
                         cx_sizes_tuple(node->rank, look->strides));
}

PyObject *
cx_graph_inputs(PyObject *module, PyObject *text)
{
    Look look = {.state = PyModule_GetState(module), .text = PyUnicode_AsUTF8(text)};
    CiContext *ctx = look.text != NULL ? ci_context_open() : NULL;
    PyObject *list = NULL;

    CX_ENTRY();
    if (ctx == NULL)
        return look.text != NULL ? PyErr_NoMemory() : NULL;
    if (cx_protect(look.state, ctx, body_parse, &look) == 0)
        list = PyList_New(look.graph->ninputs);
    for (; list != NULL && look.input < look.graph->ninputs; look.input++)
        cx_put_item(&list, look.input, input_of(&look, ctx));
    ci_context_close(ctx);
    return list;
}
