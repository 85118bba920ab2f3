/* The graph's builder, called through ci_protect: one struct for what all calls take, one body for
 * each. No Python object is touched inside a body. Every operand has been prepared: cx_node gives
 * its node. */
#include "build.h"

typedef struct Build {
    CxTracer *tracer;
    CiGraph *graph;
    CiLoc loc;
    CiNode *result;
    CiOp op;
    CiDtype dtype;
    CiKind kind;
    int nargs;
    const CxOperand *operands;
    CxTraced *const *args;
    CxTraced *target;
    CxStorage *storage;
    int rank, naxes;
    const CiExpr *const *sizes;
    const int *axes;
    const int8_t *order;
    const CiConst *value;
    const CiExtern *ext;
    const char *text;
} Build;

/* The graph knows the tracer's symbols and their values; which inputs show them is found last. */
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

/* Opens what a body builds into. */
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
    if (tracer->graph->env->nsources < tracer->env->nsources && !tracer->is_static &&
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

static CiNode *
run(CxTracer *tracer, void (*body)(CiContext *, void *), Build *b)
{
    CxBuilding building;

    if (begin(tracer, &building) < 0)
        return NULL;
    b->tracer = tracer;
    b->graph = building.graph;
    b->loc = building.loc;
    return cx_protect(tracer->state, tracer->ctx, body, b) < 0 ? NULL : b->result;
}

static void
body_open(CiContext *ctx, void *arg)
{
    Build *b = arg;
    b->tracer->graph = ci_graph_new(ctx, b->text);
}

int
cx_graph_open(CxTracer *tracer)
{
    Build b = {.tracer = tracer, .text = PyUnicode_AsUTF8(tracer->name)};

    if (b.text == NULL)
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
    if (cx_protect(tracer->state, tracer->ctx, body_open, &b) < 0) {
        ci_context_close(tracer->ctx);
        tracer->ctx = NULL;
        return -1;
    }
    return 0;
}

/* Is this code the user's? Its file's name is kept as long as the module, for locations point to
 * it. */
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
        kept = code->co_filename;
        failed = PyDict_SetItem(state->files, kept, kept) < 0;
    }
    const char *file = failed ? NULL : PyUnicode_AsUTF8(kept);
    if (file == NULL) {
        PyErr_Clear();
        return 0;
    }
    tracer->cell_file = file;
    if (tracer->skip != NULL) {
        Py_ssize_t length = 0;
        const char *skip = PyUnicode_AsUTF8AndSize(tracer->skip, &length);
        if (skip != NULL && length > 0 && strncmp(file, skip, (size_t)length) == 0)
            tracer->cell_is_user = false;
    }
    return 0;
}

CiLoc
cx_location(CxTracer *tracer)
{
    CiLoc loc = {"", 0};
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)cx_frame());

    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if ((PyObject *)code != tracer->cell)
            look_at_code(tracer, code);
        Py_DECREF(code);
        if (tracer->cell_is_user) {
            loc.file = tracer->cell_file;
            loc.line = PyFrame_GetLineNumber(frame);
            break;
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return loc;
}

/* A size as the graph has it: its own expression, or the number it is once graphs have run. */
const CiExpr *
cx_graph_expr(CxTracer *t, const CiExpr *e)
{
    CiSym *sym = t->graph->sym;
    if (e->kind == CI_EXPR_const)
        return ci_expr_const(sym, e->value);
    const CiExpr *copy = ci_expr_copy(sym, e);
    for (int k = 0; t->is_static && k < t->env->nsources; k++) {
        const CiExpr *symbol = ci_expr_copy(sym, t->env->sources[k].symbol),
                     *value = ci_expr_const(sym, t->env->sources[k].hint);
        copy = ci_expr_substitute(sym, copy, 1, &symbol, &value);
    }
    return copy;
}

static const CiExpr *
graph_expr(Build *b, const CiExpr *e)
{
    return cx_graph_expr(b->tracer, e);
}

static const CiExpr **
exprs(Build *b, int count, const CiExpr *const *sizes)
{
    const CiExpr **out = CI_NEW_ARRAY(b->graph->ctx, const CiExpr *, count ? count : 1);
    for (int k = 0; k < count; k++)
        out[k] = graph_expr(b, sizes[k]);
    return out;
}

static CiNode *
operand_node(Build *b, const CxOperand *o)
{
    if (o->traced == NULL)
        return ci_graph_const(b->graph, o->want, o->kind, o->value, b->loc);
    CiNode *node = cx_node(o->traced);
    return node->dtype == o->want ? node : ci_graph_cast(b->graph, node, o->want, b->loc);
}

static void
body_pointwise(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiNode *nodes[4];

    (void)ctx;
    for (int k = 0; k < b->nargs; k++)
        nodes[k] = operand_node(b, &b->operands[k]);
    CiNode *node = ci_graph_pointwise(b->graph, b->op, b->nargs, nodes, b->loc);
    if (b->dtype != CI_DTYPE_none)
        node = ci_graph_cast(b->graph, node, b->dtype, b->loc);
    b->result = ci_node_set_kind(node, b->kind);
}

CiNode *
cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                   CiKind kind)
{
    Build b = {.op = op, .nargs = nargs, .operands = args, .dtype = out, .kind = kind};
    for (int k = 0; k < nargs; k++)
        if (args[k].traced != NULL && cx_traced_prepare(args[k].traced) < 0)
            return NULL;
    /* Preparing one operand may have flushed another's graph away. */
    for (int k = 0; k < nargs; k++)
        if (args[k].traced != NULL && !cx_is_current(args[k].traced) &&
            cx_traced_prepare(args[k].traced) < 0)
            return NULL;
    return run(tracer, body_pointwise, &b);
}

static void
body_cast(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiNode *node = cx_node(b->target);
    CiNode *cast = ci_graph_cast(b->graph, node, b->dtype, b->loc);

    (void)ctx;
    if (cast == node) /* a new value, as astype makes one */
        cast = ci_graph_copy(b->graph, node, node->order, b->loc);
    b->result = ci_node_set_kind(cast, b->kind);
}

CiNode *
cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind)
{
    Build b = {.target = a, .dtype = dtype, .kind = kind};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_cast, &b);
}

static void
body_const(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_const(b->graph, b->dtype, b->kind, *b->value, b->loc);
}

CiNode *
cx_build_const(CxTracer *tracer, CiDtype dtype, CiKind kind, CiConst value)
{
    Build b = {.dtype = dtype, .kind = kind, .value = &value};
    return run(tracer, body_const, &b);
}

static void
body_expr(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_expr(b->graph, graph_expr(b, b->sizes[0]), b->loc);
}

CiNode *
cx_build_expr(CxTracer *tracer, const CiExpr *e)
{
    Build b = {.sizes = &e};
    return run(tracer, body_expr, &b);
}

static void
body_define(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiExpr *symbol = ci_expr_copy(b->graph->sym, b->sizes[0]);
    CiNode *value = ci_graph_cast(b->graph, cx_node(b->target), CI_DTYPE_i64, b->loc);

    (void)ctx;
    b->result = ci_graph_define(b->graph, value, symbol, symbol->low, symbol->limit, b->loc);
}

CiNode *
cx_build_define(CxTracer *tracer, CxTraced *value, const CiExpr *symbol)
{
    Build b = {.target = value, .sizes = &symbol};
    return cx_traced_prepare(value) < 0 ? NULL : run(tracer, body_define, &b);
}

static void
body_check(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_check(b->graph, cx_node(b->target), b->text, b->loc);
}

CiNode *
cx_build_check(CxTracer *tracer, CxTraced *condition, const char *why)
{
    Build b = {.target = condition, .text = why};
    return cx_traced_prepare(condition) < 0 ? NULL : run(tracer, body_check, &b);
}

static void
body_fold(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    if (ci_op_kind(b->op) == CI_OPKIND_scan)
        b->result = ci_graph_scan(b->graph, b->op, cx_node(b->target), b->axes[0], b->loc);
    else
        b->result = ci_graph_reduce(b->graph, b->op, cx_node(b->target), b->naxes, b->axes, b->loc);
}

CiNode *
cx_build_fold(CxTracer *tracer, CiOp op, CxTraced *a, int naxes, const int *axes)
{
    Build b = {.op = op, .target = a, .naxes = naxes, .axes = axes};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_fold, &b);
}

static void
body_copy(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_copy(b->graph, cx_node(b->target), b->order, b->loc);
}

CiNode *
cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order)
{
    Build b = {.target = a, .order = order};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_copy, &b);
}

static void
body_fill(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiExpr **sizes = exprs(b, b->rank, b->sizes);

    (void)ctx;
    if (b->value == NULL) {
        b->result = ci_graph_empty(b->graph, b->dtype, b->rank, sizes, b->order, b->loc);
        return;
    }
    CiNode *value = ci_graph_const(b->graph, b->dtype, CI_KIND_array, *b->value, b->loc);
    value = ci_graph_expand(b->graph, value, b->rank, sizes, b->loc);
    b->result = ci_graph_copy(b->graph, value, b->order, b->loc);
}

CiNode *
cx_build_fill(CxTracer *tracer, CiDtype dtype, int rank, const CiExpr *const *sizes,
              const int8_t *order, const CiConst *value)
{
    Build b = {.dtype = dtype, .rank = rank, .sizes = sizes, .order = order, .value = value};
    return run(tracer, body_fill, &b);
}

static void
body_iota(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_iota(b->graph, b->rank, exprs(b, b->rank, b->sizes), b->axes[0], b->loc);
}

CiNode *
cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis)
{
    Build b = {.rank = rank, .sizes = sizes, .axes = &axis};
    return run(tracer, body_iota, &b);
}

static CiNode **
arg_nodes(Build *b)
{
    CiNode **nodes = CI_NEW_ARRAY(b->graph->ctx, CiNode *, b->nargs ? b->nargs : 1);
    for (int k = 0; k < b->nargs; k++)
        nodes[k] = cx_node(b->args[k]);
    return nodes;
}

static int
prepare_all(int nargs, CxTraced *const *args)
{
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < nargs; k++)
            if (cx_traced_prepare(args[k]) < 0)
                return -1;
    return 0;
}

static void
body_concat(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_concat(b->graph, b->nargs, arg_nodes(b), b->axes[0], b->loc);
}

CiNode *
cx_build_concat(CxTracer *tracer, int nargs, CxTraced *const *args, int axis)
{
    Build b = {.nargs = nargs, .args = args, .axes = &axis};
    return prepare_all(nargs, args) < 0 ? NULL : run(tracer, body_concat, &b);
}

static void
body_extern(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->result = ci_graph_extern(b->graph, b->op, b->ext, b->dtype, b->nargs, arg_nodes(b), b->rank,
                                exprs(b, b->rank, b->sizes), b->loc);
}

CiNode *
cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                CxTraced *const *args, int rank, const CiExpr *const *sizes)
{
    Build b = {.op = op,
               .ext = ext,
               .dtype = dtype,
               .nargs = nargs,
               .args = args,
               .rank = rank,
               .sizes = sizes};
    return prepare_all(nargs, args) < 0 ? NULL : run(tracer, body_extern, &b);
}

static void
body_assign(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CxTraced *t = b->target;
    CiNode *value = operand_node(b, b->operands);
    CiNode *view = cx_node(t);

    (void)ctx;
    if (value->rank != view->rank)
        value = ci_graph_expand(b->graph, value, view->rank, view->sizes, b->loc);
    b->result = ci_graph_assign(b->graph, t->storage->node, view, value, b->loc);
}

int
cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value)
{
    Build b = {.target = target, .operands = value};
    for (int round = 0; round < 2; round++) /* preparing one may flush the other's graph away */
        if (cx_traced_prepare(target) < 0 ||
            (value->traced != NULL && cx_traced_prepare(value->traced) < 0))
            return -1;
    CiNode *node = run(tracer, body_assign, &b);
    if (node == NULL)
        return -1;
    cx_storage_set_version(target->storage, node);
    return 0;
}

/* Bytes to elements: an input's strides are multiples of the element's size. */
static const CiExpr *
element_stride(Build *b, const CiExpr *stride, int itemsize)
{
    return ci_expr_floordiv(b->graph->sym, graph_expr(b, stride),
                            ci_expr_const(b->graph->sym, itemsize));
}

static void
body_input(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CxStorage *s = b->storage;
    const CiExpr *strides[CI_MAX_RANK];

    (void)ctx;
    for (int k = 0; k < s->rank; k++)
        strides[k] = element_stride(b, s->strides[k], ci_dtype_size(s->dtype));
    /* A NumPy scalar enters as the 0-d array that holds it. */
    CiKind kind = s->kind == CI_KIND_python ? CI_KIND_python : CI_KIND_array;
    b->result =
        ci_graph_input(b->graph, s->dtype, kind, s->rank, exprs(b, s->rank, s->sizes), strides);
}

CiNode *
cx_build_input(CxTracer *tracer, CxStorage *storage)
{
    Build b = {.storage = storage};
    return run(tracer, body_input, &b);
}

static CiNode *
view_node(Build *b, CxView *v, CiNode *from)
{
    CiGraph *g = b->graph;
    int below = from->rank;

    switch (v->op) {
    case CI_OP_permute:
        return ci_graph_permute(g, from, v->axes, b->loc);
    case CI_OP_reshape:
        return ci_graph_reshape(g, from, v->rank, exprs(b, v->rank, v->sizes), b->loc);
    case CI_OP_slice:
        return ci_graph_slice(g, from, exprs(b, below, v->starts), exprs(b, below, v->steps),
                              exprs(b, v->rank, v->sizes), b->loc);
    case CI_OP_expand:
        return ci_graph_expand(g, from, v->rank, exprs(b, v->rank, v->sizes), b->loc);
    case CI_OP_diagonal:
        return ci_graph_diagonal(g, from, v->axes[0], v->axes[1], graph_expr(b, v->starts[0]),
                                 graph_expr(b, v->sizes[v->rank - 1]), b->loc);
    case CI_OP_window:
        return ci_graph_window(g, from, v->axes[0], graph_expr(b, v->sizes[v->rank - 1]), b->loc);
    default: /* real, imag */
        return ci_graph_pointwise(g, v->op, 1, &from, b->loc);
    }
}

static void
make_view(Build *b, CxView *v)
{
    CxStorage *s = b->storage;
    CiNode *from = s->node;

    if (v->epoch == s->epoch && v->version == s->version &&
        cx_stretch_is_open(b->tracer, v->stretch))
        return;
    if (v->parent != NULL) {
        make_view(b, v->parent);
        from = v->parent->node;
    }
    v->node = view_node(b, v, from);
    v->epoch = s->epoch;
    v->version = s->version;
    v->stretch = cx_stretch_now(b->tracer);
}

static void
body_view(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    make_view(b, b->target->view);
    b->result = b->target->view->node;
}

int
cx_build_view(CxTracer *tracer, CxTraced *traced)
{
    Build b = {.target = traced, .storage = traced->storage};
    return run(tracer, body_view, &b) == NULL ? -1 : 0;
}
