/* Indexing by data: gather, scatter and compress as methods of Tracer.
 *
 * Indices are wrapped and checked while the graph is built. A length that depends on data becomes
 * a symbol of the tracer. The surface (numpy/) expresses NumPy's functions by these methods. */
#include "graph/methods.h"
#include "ir/layout.h"
#include "value/index.h"

typedef struct Indirect {
    CxBuilding building;
    CxTracer *tracer;
    CxTraced *target, *value;
    CxTraced *indices[CI_MAX_INDICES];
    CiNode *count; /* number of elements that a mask selects, if it has not been counted before */
    int naxes, axes[CI_MAX_INDICES];
    CiOp combine;
    bool is_distinct, is_inside; /* is_inside: the indices are known to be in range */
    bool is_plain;               /* the result is in C order */
} Indirect;

/* ---- what all share ---- */

static int
prepare(const Indirect *job)
{
    for (int round = 0; round < 2; round++) { /* preparing one operand may run the other's graph */
        if (cx_traced_prepare(job->target) < 0 ||
            (job->value != NULL && cx_traced_prepare(job->value) < 0))
            return -1;
        for (int k = 0; k < job->naxes; k++)
            if (cx_traced_prepare(job->indices[k]) < 0)
                return -1;
    }
    return 0;
}

static CiNode *
build(Indirect *job, void (*body)(CiContext *ctx, void *arg))
{
    job->building.result = NULL;
    return prepare(job) < 0 ? NULL : cx_build_custom(job->tracer, body, &job->building);
}

/* Neither a node nor an exception: an index would need a check that is not possible here. */
static PyObject *
traced_or_refused(CxTracer *t, CiNode *node)
{
    if (node == NULL && !PyErr_Occurred())
        Py_RETURN_NOTIMPLEMENTED;
    return cx_traced_from_node(t, node, CI_KIND_array);
}

static void
close_job(Indirect *job)
{
    Py_XDECREF(job->target);
    Py_XDECREF(job->value);
    for (int k = 0; k < job->naxes; k++)
        Py_XDECREF(job->indices[k]);
}

static CxTraced *
lift(CxTracer *t, PyObject *value)
{
    return cx_lifted(t, value);
}

/* Reads axes and indices, one for each; axes ascend. */
static int
take_indices(Indirect *job, PyObject *axes, PyObject *indices)
{
    int64_t given[CI_MAX_INDICES];
    int n = cx_axes_from(axes, given, CI_MAX_INDICES);
    PyObject *fast = n < 0 ? NULL : PySequence_Fast(indices, "indices are a sequence");

    if (fast == NULL)
        return -1;
    if (n == 0 || PySequence_Fast_GET_SIZE(fast) != n) {
        cx_misuse(job->tracer->state, "one index for each axis is expected");
        Py_DECREF(fast);
        return -1;
    }
    for (; job->naxes < n; job->naxes++) {
        int k = job->naxes;
        job->axes[k] = (int)given[k];
        job->indices[k] = lift(job->tracer, PySequence_Fast_GET_ITEM(fast, k));
        if (job->indices[k] == NULL)
            break;
    }
    Py_DECREF(fast);
    if (job->naxes < n)
        return -1;
    for (int k = 0; k < n; k++)
        if (job->axes[k] < 0 || job->axes[k] >= cx_rank(job->target) ||
            (k > 0 && job->axes[k] <= job->axes[k - 1])) {
            cx_misuse(job->tracer->state, "axes ascend, and are axes of the array");
            return -1;
        }
    return 0;
}

/* Returns false if an index needs a check where none is possible. */
static bool
wrap_indices(const Indirect *job, const CiNode *a, CiNode **wrapped)
{
    for (int k = 0; k < job->naxes; k++) {
        if (job->is_inside) {
            wrapped[k] = ci_graph_cast(job->building.graph, cx_node(job->indices[k]), CI_DTYPE_i64,
                                       job->building.loc);
            continue;
        }
        wrapped[k] = ci_graph_wrap_index(job->building.graph, cx_node(job->indices[k]),
                                         a->sizes[job->axes[k]], cx_may_check(job->tracer),
                                         job->building.loc);
        if (wrapped[k] == NULL)
            return false;
    }
    return true;
}

/* ---- gather ---- */

/* The layout of NumPy's result: the axes of the indices outside, inside them those of the array
 * in memory order. If one element remains for each index, the result is laid out like the indices. */
static const int8_t *
gathered_order(const Indirect *job, const CiNode *a)
{
    CiContext *ctx = job->building.graph->ctx;
    int8_t *order = CI_NEW_ARRAY(ctx, int8_t, 2 * CI_MAX_RANK);
    CiNode *indices[CI_MAX_INDICES];
    int nindex = 0, count = 0;

    for (int k = 0; k < job->naxes; k++) {
        indices[k] = cx_node(job->indices[k]);
        nindex = indices[k]->rank > nindex ? indices[k]->rank : nindex;
    }
    const int8_t *outer = ci_layout_broadcast_order(ctx, nindex, job->naxes, indices);
    bool is_alike = true;
    for (int k = 0, i = 0; k < a->rank; k++) {
        bool is_indexed = i < job->naxes && job->axes[i] == k;
        i += is_indexed;
        is_alike &= is_indexed || ci_expr_equals_const(a->sizes[k], 1);
    }
    for (int k = 0; k < nindex; k++)
        order[count++] = (int8_t)(job->axes[0] + (is_alike ? outer[k] : k));
    for (int k = 0; k < a->rank; k++) {
        int axis = a->order[k], before = 0;
        bool is_indexed = false;
        for (int i = 0; i < job->naxes; i++) {
            is_indexed |= job->axes[i] == axis;
            before += job->axes[i] < axis;
        }
        if (!is_indexed)
            order[count++] = (int8_t)(axis - before + (before ? nindex : 0));
    }
    return order;
}

static void
body_gather(CiContext *ctx, void *arg)
{
    Indirect *job = arg;
    CiNode *a = cx_node(job->target), *wrapped[CI_MAX_INDICES];

    (void)ctx;
    if (!wrap_indices(job, a, wrapped))
        return;
    job->building.result =
        ci_graph_gather(job->building.graph, a, job->naxes, job->axes, wrapped,
                        job->is_plain ? NULL : gathered_order(job, a), job->building.loc);
}

PyObject *
cx_method_gather(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "axes", "indices", "plain", NULL};
    CxTracer *t = (CxTracer *)self;
    Indirect job = {.tracer = t};
    PyObject *value = NULL, *axes = NULL, *indices = NULL, *result = NULL;
    int plain = 0;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|p:gather", names, &value, &axes, &indices,
                                     &plain))
        return NULL;
    job.is_plain = plain != 0;
    job.target = lift(t, value);
    if (job.target != NULL && take_indices(&job, axes, indices) == 0)
        result = traced_or_refused(t, build(&job, body_gather));
    close_job(&job);
    return result;
}

/* ---- scatter ---- */

static void
body_scatter(CiContext *ctx, void *arg)
{
    Indirect *job = arg;
    CiGraph *g = job->building.graph;
    CiNode *view = cx_node(job->target), *wrapped[CI_MAX_INDICES];
    CiNode *value = ci_graph_cast(g, cx_node(job->value), view->dtype, job->building.loc);

    (void)ctx;
    if (!wrap_indices(job, view, wrapped))
        return;
    job->building.result =
        ci_graph_scatter(g, job->target->storage->node, view, value, job->naxes, job->axes, wrapped,
                         job->combine, job->is_distinct, job->building.loc);
}

PyObject *
cx_method_scatter(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"target",  "axes",     "indices", "value",
                            "combine", "distinct", "inside",  NULL};
    CxTracer *t = (CxTracer *)self;
    Indirect job = {.tracer = t, .combine = CI_OP_none};
    PyObject *target = NULL, *axes = NULL, *indices = NULL, *value = NULL, *result = NULL;
    const char *combine = NULL;
    int distinct = 0, inside = 0;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO|zpp:scatter", names, &target, &axes,
                                     &indices, &value, &combine, &distinct, &inside))
        return NULL;
    if (!cx_is_traced(target))
        return cx_misuse(t->state, "scatter() writes to a Traced array");
    job.target = (CxTraced *)Py_NewRef(target);
    job.is_distinct = distinct != 0;
    job.is_inside = inside != 0;
    if (combine != NULL && (job.combine = ci_op_find(combine)) == CI_OP_none) {
        cx_misuse(t->state, "no operation '%s'", combine);
        goto done;
    }
    int status = cx_write_prepare(job.target, CX_ASSIGNED_READONLY);
    if (status > 0)
        result = Py_NewRef(Py_NotImplemented);
    if (status != 0 || take_indices(&job, axes, indices) < 0)
        goto done;
    job.value = (CxTraced *)cx_tracer_lift(t, value, cx_dtype(job.target), false);
    CiNode *node = job.value ? build(&job, body_scatter) : NULL;
    if (node == NULL) {
        result = job.value == NULL || PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
        goto done;
    }
    if (cx_storage_set_version(job.target->storage, node) == 0)
        result = Py_NewRef(Py_None);
done:
    close_job(&job);
    return result;
}

/* ---- compress ---- */

static CiNode *
count_true(Indirect *job, CiNode *mask)
{
    CiGraph *g = job->building.graph;
    int axis = 0;
    return ci_graph_reduce(g, CI_OP_sum, ci_graph_cast(g, mask, CI_DTYPE_i64, job->building.loc), 1,
                           &axis, job->building.loc);
}

enum { SAME_DEPTH = 6 };

/* True if two nodes compute the same value by the same expression: `x[x > 0] = y[x > 0]`. */
static bool
is_same_value(const CiNode *a, const CiNode *b, int depth)
{
    CiOpKind kind = ci_op_kind(a->op);
    bool is_pure = kind == CI_OPKIND_pointwise || ci_op_is_function(a->op) ||
                   kind == CI_OPKIND_reduce || kind == CI_OPKIND_view || a->op == CI_OP_cast ||
                   a->op == CI_OP_const || a->op == CI_OP_where || a->op == CI_OP_iota;
    if (a == b)
        return true;
    if (depth > SAME_DEPTH || !is_pure || a->op != b->op || a->dtype != b->dtype ||
        a->rank != b->rank || a->nargs != b->nargs || a->naxes != b->naxes)
        return false;
    if (a->op == CI_OP_const)
        return ci_const_equal(a->dtype, a->value, b->value);
    bool is_same = a->naxes == 0 || memcmp(a->axes, b->axes, sizeof(int) * (size_t)a->naxes) == 0;
    for (int k = 0; is_same && k < a->rank; k++)
        is_same = a->sizes[k] == b->sizes[k] && (!a->steps || a->steps[k] == b->steps[k]);
    for (int k = 0; is_same && k < ci_node_nstarts(a); k++)
        is_same = a->starts[k] == b->starts[k];
    for (int k = 0; is_same && k < a->nargs; k++)
        is_same = is_same_value(a->args[k], b->args[k], depth + 1);
    return is_same;
}

/* Finds the symbol of a mask that was counted before in this block, so that each mask has one
 * symbol. */
static const CiNode *
find_count(const CiBlock *block, const CiNode *mask)
{
    for (int k = block->nnodes - 1; k >= 0; k--) {
        const CiNode *node = block->nodes[k];
        if (node->op == CI_OP_define && node->args[0]->op == CI_OP_sum &&
            node->args[0]->args[0]->op == CI_OP_cast &&
            is_same_value(node->args[0]->args[0]->args[0], mask, 0))
            return node;
    }
    return NULL;
}

static void
body_compress(CiContext *ctx, void *arg)
{
    Indirect *job = arg;
    CiGraph *g = job->building.graph;
    CiNode *a = cx_node(job->target), *mask = cx_node(job->value);
    const CiNode *known = find_count(g->at, mask);
    const CiExpr *limit = ci_expr_add(g->sym, mask->sizes[0], ci_expr_const(g->sym, 1)), *size;

    if (known != NULL) {
        size = known->starts[0];
    } else {
        CiNode *count = count_true(job, mask);
        size = ci_expr_unbacked(g->sym, ci_format(ctx, "u%d", job->tracer->nsymbols++), 0, limit);
        job->count = ci_graph_define(g, count, size, 0, limit, job->building.loc);
    }
    job->building.result = ci_graph_compress(g, a, mask, size, job->building.loc);
}

/* Keeps the count of selected elements, because Python may ask for it after the elements are
 * gone. */
static int
keep_count(const Indirect *job, const CxTraced *selected)
{
    CxStorage *symbol = cx_storage_from_node(job->tracer, job->count, CI_KIND_python);
    if (symbol == NULL)
        return -1;
    symbol->expr = selected->storage->sizes[0];
    return cx_defined_add(job->tracer, symbol, symbol, NULL, false);
}

PyObject *
cx_method_compress(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    Indirect job = {.tracer = t};
    PyObject *value = NULL, *mask = NULL, *result = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:compress", &value, &mask))
        return NULL;
    job.target = lift(t, value);
    job.value = job.target ? lift(t, mask) : NULL;
    if (job.value == NULL)
        goto done;
    if (cx_rank(job.value) != 1 || cx_dtype(job.value) != CI_DTYPE_bool) {
        cx_misuse(t->state, "a mask of one axis is expected");
        goto done;
    }
    result = cx_traced_from_node(t, build(&job, body_compress), CI_KIND_array);
    if (result != NULL && job.count != NULL && keep_count(&job, (CxTraced *)result) < 0)
        Py_CLEAR(result);
done:
    close_job(&job);
    return result;
}

PyObject *
cx_method_may_check(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(cx_may_check((CxTracer *)self));
}
