/* The pending graph. It is opened by the first node and built inside of ci_protect, where no
 * Python object may be touched. */
#include "graph/graph.h"

/* Declares the tracer's symbols and their values in the graph; the inputs that define them are
 * found last. */
static void
body_symbols(CiContext *ctx, void *arg)
{
    CxTracer *t = arg;
    CiShapeEnv *env = t->graph->env;

    for (int k = 0; k < t->env->nsources; k++) {
        CiSymbolSource source = t->env->sources[k];
        bool is_there = false;
        source.symbol = ci_expr_copy(t->graph->sym, source.symbol);
        source.input = -1;
        for (int j = 0; j < env->nsources; j++)
            is_there |= env->sources[j].symbol == source.symbol;
        if (!is_there)
            CI_PUSH(ctx, env->sources, env->nsources, env->capsources, source);
    }
}

/* Opens the graph for a body. */
static int
begin(CxTracer *tracer, CxBuilding *b)
{
    if (tracer->is_busy) {
        cx_raise_status(tracer->state, CI_ERR_UNSUPPORTED,
                        "a traced value was used while its graph was running");
        return -1;
    }
    if (tracer->ctx == NULL && cx_graph_open(tracer) < 0)
        return -1;
    if (cx_graph_is_full(tracer)) {
        cx_raise_status(tracer->state, CI_ERR_UNSUPPORTED, "the graph has too many nodes");
        return -1;
    }
    if (tracer->graph->env->nsources < tracer->env->nsources &&
        cx_protect(tracer->state, tracer->ctx, body_symbols, tracer) < 0)
        return -1;
    b->graph = tracer->graph;
    b->loc = cx_location(tracer);
    return 0;
}

int
cx_build_run(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building)
{
    if (begin(tracer, building) < 0)
        return -1;
    return cx_protect(tracer->state, tracer->ctx, body, building);
}

CiNode *
cx_build_custom(CxTracer *tracer, void (*body)(CiContext *, void *), CxBuilding *building)
{
    return cx_build_run(tracer, body, building) < 0 ? NULL : building->result;
}

typedef struct Open {
    const char *name;
    CiGraph *graph;
} Open;

static void
body_open(CiContext *ctx, void *arg)
{
    Open *open = arg;
    open->graph = ci_graph_new(ctx, open->name);
}

int
cx_graph_open(CxTracer *tracer)
{
    Open open = {PyUnicode_AsUTF8(tracer->name), NULL};

    if (open.name == NULL)
        return -1;
    if (tracer->ctx != NULL)
        return 0;
    if (tracer->is_finished) {
        cx_raise_status(tracer->state, CI_ERR_UNSUPPORTED,
                        "a traced value was used after the call it belongs to");
        return -1;
    }
    tracer->ctx = ci_context_open();
    if (tracer->ctx == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (cx_protect(tracer->state, tracer->ctx, body_open, &open) < 0) {
        ci_context_close(tracer->ctx);
        tracer->ctx = NULL;
        return -1;
    }
    tracer->graph = open.graph;
    return 0;
}

/* Sets whether the code is the user's. Its file name is kept as long as the module, because
 * source locations refer to it. */
static int
look_at_code(CxTracer *tracer, PyCodeObject *code)
{
    CxState *state = tracer->state;
    int failed = 0;

    Py_XSETREF(tracer->cell, Py_NewRef(code));
    tracer->cell_is_user = true;
    tracer->cell_file = "";
    if (!PyUnicode_Check(code->co_filename))
        return 0;
    PyObject *kept = cx_dict_find(state->files, code->co_filename, &failed);
    if (kept == NULL && !failed) {
        kept = PyUnicode_EncodeFSDefault(code->co_filename);
        failed = kept == NULL || PyDict_SetItem(state->files, code->co_filename, kept) < 0;
        Py_XDECREF(kept); /* the dict has it */
    }
    if (!failed)
        tracer->cell_file = PyBytes_AS_STRING(kept);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tracer->skip); k++) {
        PyObject *skip = PyTuple_GET_ITEM(tracer->skip, k);
        if (PyUnicode_Check(skip) && PyUnicode_GET_LENGTH(skip) > 0 &&
            PyUnicode_Tailmatch(code->co_filename, skip, 0, PY_SSIZE_T_MAX, -1) == 1)
            tracer->cell_is_user = false;
    }
    PyErr_Clear();
    return 0;
}

bool
cx_code_is_users(CxTracer *tracer, PyCodeObject *code)
{
    if ((PyObject *)code != tracer->cell)
        look_at_code(tracer, code);
    return tracer->cell_is_user;
}

CiLoc
cx_location(CxTracer *tracer)
{
    CiLoc loc = {.file = "", .quiet = tracer->quiet & 0xFFFF, .call = tracer->call & 0xFFFF};
    bool is_found = false, is_inside = tracer->code == NULL;
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)cx_frame());

    while (frame != NULL && !(is_found && is_inside)) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        is_inside |= (PyObject *)code == tracer->code;
        if (!is_found && cx_code_is_users(tracer, code)) {
            loc.file = tracer->cell_file;
            loc.line = PyFrame_GetLineNumber(frame);
            is_found = true;
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    if (!is_inside && tracer->last_line > 0) {
        loc.file = tracer->last_file;
        loc.line = tracer->last_line;
    }
    tracer->last_file = loc.file;
    tracer->last_line = loc.line;
    return loc;
}

/* Value that a data-dependent symbol had when an earlier graph ran, or NULL if this graph
 * defines it. */
static const CiExpr *
known_value(const CxTracer *t, const CiExpr *symbol)
{
    for (int k = 0; symbol->symbol_kind == CI_SYMBOL_unbacked && k < t->env->nsources; k++)
        if (t->env->sources[k].symbol == symbol)
            return ci_expr_const(t->graph->sym, t->env->sources[k].hint);
    return NULL;
}

/* A size as the graph writes it: in its own CiSym, with values defined by earlier graphs as
 * constants. */
const CiExpr *
cx_graph_expr(CxTracer *t, const CiExpr *e)
{
    CiSym *sym = t->graph->sym;
    const CiExpr *out = ci_expr_copy(sym, e);

    for (int k = 0; k < e->nsymbols; k++) {
        const CiExpr *value = known_value(t, e->symbols[k]);
        if (value == NULL)
            continue;
        const CiExpr *symbol = ci_expr_copy(sym, e->symbols[k]);
        out = ci_expr_substitute(sym, out, 1, &symbol, &value);
    }
    return out;
}

/* Ends building: the tracer makes no graph from here on. */
void
cx_tracer_end(CxTracer *t)
{
    if (!t->is_finished)
        t->state->compiling--;
    t->is_finished = true;
    Py_CLEAR(t->on_break); /* it must not be raised for values that outlive the capture */
    Py_CLEAR(t->on_concretize);
    PyDict_Clear(t->by_id);
}

/* True if the node only computes Python numbers, or computes nothing. */
bool
cx_node_is_quiet(const CiNode *node)
{
    return node->op == CI_OP_const || node->op == CI_OP_cast || node->op == CI_OP_expr ||
           (node->kind == CI_KIND_python && ci_op_kind(node->op) != CI_OPKIND_region);
}

bool
cx_node_works(const CiNode *node)
{
    return !cx_node_is_quiet(node) && !ci_node_is_view(node);
}

const CiExpr **
cx_graph_exprs(CxTracer *t, int count, const CiExpr *const *exprs)
{
    const CiExpr **out = CI_NEW_ARRAY(t->graph->ctx, const CiExpr *, count ? count : 1);
    for (int k = 0; k < count; k++)
        out[k] = cx_graph_expr(t, exprs[k]);
    return out;
}
