/* Gives values nodes in the pending graph: as inputs, as constants, or as views of a value that
 * has a node. Also finds values that are in the way of a write. */
#include "state/array.h"
#include "value/build.h"

static bool
overlaps(PyObject *a, PyObject *b)
{
    char *alow, *ahigh, *blow, *bhigh;
    if (!PyArray_Check(a) || !PyArray_Check(b))
        return false;
    cx_array_extent(a, &alow, &ahigh);
    cx_array_extent(b, &blow, &bhigh);
    return alow < bhigh && blow < ahigh;
}

/* True for other memory of the pending graph that a write to s would change, or that a pending
 * write changes under s. */
static bool
is_tangled(CxTracer *tracer, const CxStorage *s, bool is_write)
{
    for (int k = 0; k < tracer->ninputs; k++) {
        const CxStorage *other = tracer->inputs[k];
        if (other != s && other->kind == CI_KIND_array && (is_write || other->is_written) &&
            overlaps(s->value, other->value))
            return true;
    }
    return false;
}

/* Adds a number that never changes as a constant. */
static int
add_constant(CxTracer *tracer, CxStorage *s)
{
    CiConst value;
    if (cx_const_of(tracer->state, s->value, s->dtype, &value) < 0)
        return -1;
    CiNode *node = cx_build_const(tracer, s->dtype, s->kind, value);
    if (node == NULL)
        return -1;
    return cx_storage_set_node(s, node);
}

/* Records that a value cannot be found by later calls, so Python must make it in each call. */
static int
note_unknown(CxTracer *tracer)
{
    PyObject *reason = PyUnicode_FromString("a value that Python made in the call");
    int result = reason ? cx_tracer_note(tracer, reason) : -1;
    Py_XDECREF(reason);
    return result;
}

static int
add_input(CxStorage *s)
{
    CxTracer *tracer = s->tracer;

    if (s->value == NULL) {
        cx_raise_status(tracer->state, CI_ERR_INTERNAL,
                        "the value was lost when an earlier run failed or ended");
        return -1;
    }
    if (s->kind == CI_KIND_array && is_tangled(tracer, s, false) &&
        cx_tracer_break(tracer, "arguments share memory that is written") < 0)
        return -1;
    if (s->source < 0 && s->expr == NULL && !tracer->needs_python && note_unknown(tracer) < 0)
        return -1;
    return cx_build_input(s);
}

/* Checks that the graph can represent the number that Python computed. */
static int
check_width(const CxStorage *s)
{
    CiConst value;
    bool is_int = s->kind == CI_KIND_python && s->value != NULL && PyLong_CheckExact(s->value);

    if (!is_int || cx_const_of(s->tracer->state, s->value, s->dtype, &value) == 0)
        return 0;
    cx_raise_status(s->tracer->state, CI_ERR_UNSUPPORTED, "a Python int of more than 64 bits");
    return -1;
}

/* Gives a storage without a node one in the pending graph. */
static int
enter(CxStorage *s)
{
    CxTracer *tracer = s->tracer;

    if (check_width(s) < 0)
        return -1;
    if (s->source == CX_SOURCE_constant)
        return add_constant(tracer, s);
    if (s->expr == NULL && s->epoch == tracer->epoch)
        return cx_region_break(tracer, "a value made in a branch or loop body is used outside");
    if (s->expr == NULL)
        return add_input(s);
    CiNode *node = cx_build_expr(tracer, s->expr);
    return node == NULL ? -1 : cx_storage_set_node(s, node);
}

typedef struct Making {
    CxBuilding at;
    CxTraced *traced;
} Making;

static CiNode *
view_node(Making *m, CxView *v, CiNode *from)
{
    CxTracer *t = m->traced->tracer;
    CiGraph *g = m->at.graph;
    CiLoc loc = m->at.loc;
    int below = from->rank;

    switch (v->op) {
    case CI_OP_permute:
        return ci_graph_permute(g, from, v->axes, loc);
    case CI_OP_reshape:
        return ci_graph_reshape(g, from, v->rank, cx_graph_exprs(t, v->rank, v->sizes), loc);
    case CI_OP_slice:
        return ci_graph_slice(g, from, cx_graph_exprs(t, below, v->starts),
                              cx_graph_exprs(t, below, v->steps),
                              cx_graph_exprs(t, v->rank, v->sizes), loc);
    case CI_OP_expand:
        return ci_graph_expand(g, from, v->rank, cx_graph_exprs(t, v->rank, v->sizes), loc);
    case CI_OP_diagonal:
        return ci_graph_diagonal(g, from, v->axes[0], v->axes[1], cx_graph_expr(t, v->starts[0]),
                                 cx_graph_expr(t, v->sizes[v->rank - 1]), loc);
    case CI_OP_window:
        return ci_graph_window(g, from, v->axes[0], cx_graph_expr(t, v->sizes[v->rank - 1]), loc);
    default: /* real, imag */
        return ci_graph_pointwise(g, v->op, 1, &from, loc);
    }
}

static void
make_view(Making *m, CxView *v)
{
    const CxStorage *s = m->traced->storage;
    CiNode *from = s->node;

    if (v->epoch == s->epoch && v->version == s->version &&
        cx_dominance_is_open(s->tracer, v->scope))
        return;
    if (v->parent != NULL) {
        make_view(m, v->parent);
        from = v->parent->node;
    }
    v->node = view_node(m, v, from);
    v->epoch = s->epoch;
    v->version = s->version;
    v->scope = cx_dominance_now(s->tracer);
}

static void
body_view(CiContext *ctx, void *arg)
{
    Making *m = arg;
    (void)ctx;
    make_view(m, m->traced->view);
}

static int
prepare_view(CxTraced *traced)
{
    Making making = {.traced = traced};
    return cx_build_run(traced->tracer, body_view, &making.at);
}

int
cx_traced_prepare(CxTraced *t)
{
    CxTracer *tracer = t->tracer;

    if (cx_is_current(t))
        return 0;
    if (tracer->is_busy) {
        cx_raise_status(tracer->state, CI_ERR_UNSUPPORTED,
                        "a traced value was used while its graph was running");
        return -1;
    }
    if (!cx_storage_is_current(t->storage) && enter(t->storage) < 0)
        return -1;
    return t->view != NULL ? prepare_view(t) : 0;
}

/* Checks that target is an array that may be written; the message is NumPy's for this kind of write. 1: it is a
 * broadcast view, so NumPy must write it. */
int
cx_check_writable(const CxTraced *target, const char *message)
{
    if (cx_kind(target) != CI_KIND_array) {
        PyErr_SetString(PyExc_TypeError, "a number has no elements to write to");
        return -1;
    }
    if (cx_access(target) != CX_READONLY)
        return 0;
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

int
cx_write_prepare(CxTraced *target, const char *readonly_message)
{
    CxStorage *s = target->storage;
    CxTracer *tracer = target->tracer;

    if (cx_check_writable(target, readonly_message) < 0)
        return -1;
    if (cx_access(target) != CX_WRITABLE)
        return cx_tracer_break(tracer, "a write through .real or .imag") < 0 ? -1 : 1;
    if (cx_traced_prepare(target) < 0)
        return -1;
    if (s->value != NULL && !s->is_written && is_tangled(tracer, s, true))
        return cx_tracer_break(tracer, "a write to memory that another array shares") < 0 ? -1 : 1;
    return 0;
}
