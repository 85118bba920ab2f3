/* Makes regions from closed blocks, and inspects the blocks and values for that. */
#include "region/region.h"
#include "graph/methods.h"

enum { MAX_BLOCKS = 2 };

typedef struct Build {
    CxBuilding at;
    CiOp op;
    int nargs, nblocks;
    CiNode **args;
    CiBlock *blocks[MAX_BLOCKS];
    const CiExpr *extent, *index;
} Build;

static void
body_region(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiSym *sym = b->at.graph->sym;

    (void)ctx;
    const CiExpr *trip_count = b->extent ? ci_expr_copy(sym, b->extent) : NULL;
    const CiExpr *index = b->index ? ci_expr_copy(sym, b->index) : NULL;
    ci_graph_region(b->at.graph, b->op, b->nargs, b->args, trip_count, index, b->nblocks, b->blocks,
                    b->at.loc);
}

/* The results: the last nodes of the block. */
static PyObject *
results_of(CxTracer *t, const Build *b, PyObject *kinds)
{
    const CiBlock *at = t->graph->at, *last = b->blocks[b->nblocks - 1];
    PyObject *list = PyList_New(0);

    for (int k = at->nnodes - last->nresults; list != NULL && k < at->nnodes; k++) {
        int kind = cx_kind_from(PyTuple_GET_ITEM(kinds, k - at->nnodes + last->nresults));
        if (kind >
            CI_KIND_array) /* a NumPy scalar that was an input of a run is an array there */
            ci_node_set_kind(at->nodes[k], (CiKind)kind);
        cx_add_item(&list, kind < 0 ? NULL : cx_traced_from_node(t, at->nodes[k], (CiKind)kind));
    }
    return list;
}

static int
fill_blocks(Build *b, CxTracer *t, PyObject *blocks)
{
    b->nblocks = (int)PyTuple_GET_SIZE(blocks);
    if (b->nblocks < 1 || b->nblocks > MAX_BLOCKS) {
        cx_misuse(t->state, "a region has one block or two");
        return -1;
    }
    for (int k = 0; k < b->nblocks; k++) {
        CxBlock *block = (CxBlock *)PyTuple_GET_ITEM(blocks, k);
        if (!Py_IS_TYPE((PyObject *)block, (PyTypeObject *)t->state->block_type) ||
            block->is_open || !cx_block_is_usable(block)) {
            if (!PyErr_Occurred())
                cx_misuse(t->state, "a region is made of closed blocks");
            return -1;
        }
        b->blocks[k] = block->block;
    }
    return 0;
}

/* region(op, blocks, entries, kinds): makes the region; returns its results, of these kinds. */
PyObject *
cx_method_region(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    Build b = {.nargs = 0};
    PyObject *tuple = NULL, *entries = NULL, *kinds = NULL, *result = NULL;
    const char *name = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sO!O!O!:region", &name, &PyTuple_Type, &tuple, &PyTuple_Type,
                          &entries, &PyTuple_Type, &kinds))
        return NULL;
    b.op = ci_op_find(name);
    if (b.op != CI_OP_for && b.op != CI_OP_while && b.op != CI_OP_if)
        return cx_misuse(t->state, "no region is called '%s'", name);
    if (fill_blocks(&b, t, tuple) < 0)
        return NULL;
    const CxBlock *body = (const CxBlock *)PyTuple_GET_ITEM(tuple, 0);
    b.extent = body->extent;
    b.index = body->index;
    if ((b.op == CI_OP_for) != (b.index != NULL))
        return cx_misuse(t->state, "the body of a for has an index");
    b.nargs = (int)PyTuple_GET_SIZE(entries);
    b.args = PyMem_Calloc((size_t)b.nargs + 1, sizeof *b.args);
    if (b.args == NULL)
        return PyErr_NoMemory();
    for (int k = 0; k < b.nargs; k++) {
        PyObject *entry = PyTuple_GET_ITEM(entries, k);
        if (!cx_is_traced(entry)) {
            cx_misuse(t->state, "entries are Traced values");
            goto done;
        }
        if (cx_traced_prepare((CxTraced *)entry) < 0)
            goto done;
        b.args[k] = cx_node((CxTraced *)entry);
    }
    if (PyTuple_GET_SIZE(kinds) != b.blocks[b.nblocks - 1]->nresults)
        cx_misuse(t->state, "a region has as many kinds as results");
    else if (cx_build_run(t, body_region, &b.at) == 0)
        result = results_of(t, &b, kinds);
done:
    PyMem_Free(b.args);
    return result;
}

/* set_version(value): makes the value the current version of the array's memory. */
PyObject *
cx_traced_set_version(PyObject *self, PyObject *value)
{
    CxTraced *x = (CxTraced *)self;

    CX_ENTRY();
    if (!cx_is_traced(value) || x->view != NULL)
        return cx_misuse(x->tracer->state, "set_version() is of a whole array, and takes a Traced one");
    if (cx_traced_prepare(x) < 0 || cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    if (cx_storage_set_version(x->storage, cx_node((CxTraced *)value)) < 0)
        return NULL;
    Py_RETURN_NONE;
}

typedef struct Select {
    CxBuilding at;
    CiNode *args[3];
    CiKind kind;
} Select;

static void
body_select(CiContext *ctx, void *arg)
{
    Select *s = arg;
    (void)ctx;
    CiNode *node = ci_graph_pointwise(s->at.graph, CI_OP_where, 3, s->args, s->at.loc);
    s->at.result = ci_node_set_kind(node, s->kind);
}

/* select(condition, a, b, kind): selects one of two scalars of one dtype. */
PyObject *
cx_method_select(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *items[3], *name = NULL;
    Select s = {.kind = CI_KIND_array};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOOO:select", &items[0], &items[1], &items[2], &name))
        return NULL;
    int kind = cx_kind_from(name);
    if (kind < 0)
        return NULL;
    for (int k = 0; k < 3; k++)
        if (!cx_is_traced(items[k]) || cx_rank((CxTraced *)items[k]) != 0)
            return cx_misuse(t->state, "select() takes Traced numbers");
        else if (cx_traced_prepare((CxTraced *)items[k]) < 0)
            return NULL;
    for (int k = 0; k < 3; k++)
        s.args[k] = cx_node((CxTraced *)items[k]);
    s.kind = (CiKind)kind;
    return cx_traced_from_node(t, cx_build_custom(t, body_select, &s.at), s.kind);
}
