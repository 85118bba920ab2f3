/* Blocks: opened, built into by the code that runs next, and closed. A block whose nodes may be
 * computed needlessly is spliced into the surrounding block; region.c makes regions of the
 * others. */
#include "graph/methods.h"
#include "program/program.h"
#include "region/region.h"
#include "state/array.h"
#include "state/docs.h"
#include "value/index.h"
#include "value/python_number.h"

typedef struct Build {
    CxBuilding at;
    CiBlock *block;
    CiNode *node, *like;
    CiDtype dtype;
    CiKind kind;
} Build;

static int
run(CxTracer *tracer, void (*body)(CiContext *, void *), Build *b)
{
    return cx_build_run(tracer, body, &b->at);
}

static void
enter(CxBlock *b)
{
    CxTracer *t = b->tracer;
    b->is_open = true;
    b->around = t->innermost;
    t->innermost = b;
    t->nblocks++;
    (void)ci_graph_enter(t->graph, b->block);
}

/* The block around it is built next; if it dies while a block in it is open, after that one. keeps: see block_close. */
static void
leave(CxBlock *b, bool keeps)
{
    CxTracer *t = b->tracer;
    CxBlock *inner = NULL, *at = t->innermost;
    bool is_current = b->epoch == t->epoch && t->graph != NULL;

    for (; at != b; at = at->around)
        inner = at;
    *(inner != NULL ? &inner->around : &t->innermost) = b->around;
    b->is_open = false;
    t->nblocks--;
    if (inner != NULL) {
        inner->outer = b->outer;
        inner->nopen = b->nopen;
    } else if (is_current) {
        t->nopen = keeps ? t->nopen : b->nopen;
        (void)ci_graph_enter(t->graph, b->outer);
    }
}

static void
block_dealloc(PyObject *self)
{
    CxBlock *b = (CxBlock *)self;

    if (b->is_open)
        leave(b, false);
    PyMem_Free(b->owned);
    PyMem_Free(b->scopes);
    Py_XDECREF(b->tracer);
    cx_object_free(self);
}

static void
body_block(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->block = ci_graph_block(b->at.graph);
}

PyObject *
cx_method_block(PyObject *self, PyObject *unused)
{
    CxTracer *t = (CxTracer *)self;
    Build build = {.block = NULL};
    (void)unused;

    CX_ENTRY();
    if (run(t, body_block, &build) < 0)
        return NULL;
    CxBlock *b = PyObject_New(CxBlock, (PyTypeObject *)t->state->block_type);
    if (b == NULL)
        return NULL;
    b->tracer = (CxTracer *)Py_NewRef(t);
    b->block = build.block;
    b->epoch = t->epoch;
    b->nexprs = ci_sym_count(t->sym);
    b->nopen = t->nopen;
    b->is_open = false;
    b->extent = b->index = NULL;
    b->owned = NULL;
    b->nheld = b->capheld = 0;
    b->scopes = NULL;
    b->nscopes = 0;
    b->outer = t->graph->at;
    if (cx_dominance_begin(t) < 0) {
        Py_DECREF(b);
        return NULL;
    }
    enter(b);
    return (PyObject *)b;
}

static int
keep_scopes(CxBlock *b)
{
    int count = b->tracer->nopen - b->nopen;
    size_t size = sizeof *b->scopes * (size_t)count;
    unsigned *kept = PyMem_Realloc(b->scopes, size + 1);

    if (kept == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(kept, b->tracer->open + b->nopen, size);
    b->scopes = kept;
    b->nscopes = count;
    return 0;
}

static int
close_block(CxBlock *b, bool keeps)
{
    CxTracer *t = b->tracer;

    if (b->epoch == t->epoch && keep_scopes(b) < 0)
        return -1;
    leave(b, keeps);
    return 0;
}

int
cx_blocks_unwind(CxTracer *tracer, int count)
{
    while (tracer->nblocks > count)
        if (close_block(tracer->innermost, false) < 0)
            return -1;
    return 0;
}

/* close(keeps=False): closes the block. With keeps, its values may be used in the block opened
 * next, until a rollback to an earlier mark: the body of a while uses values of its condition. */
static PyObject *
block_close(PyObject *self, PyObject *args)
{
    CxBlock *b = (CxBlock *)self;
    int keeps = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "|p:close", &keeps))
        return NULL;
    if (b->is_open && b != b->tracer->innermost)
        return cx_misuse(b->tracer->state, "blocks are closed in order");
    if (b->is_open && close_block(b, keeps != 0) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* reopen(): opens the block again. Its nodes may be used again if no other scope was begun
 * since; held values may always be used. */
static PyObject *
block_reopen(PyObject *self, PyObject *unused)
{
    CxBlock *b = (CxBlock *)self;
    CxTracer *t = b->tracer;
    (void)unused;

    CX_ENTRY();
    if (b->is_open || !cx_block_is_usable(b) || t->graph->at != b->outer)
        return cx_misuse(t->state, "a block is opened again in the block around it");
    b->nopen = t->nopen;
    if (cx_dominance_again(t, b->scopes, b->nscopes) < 0 || cx_dominance_begin(t) < 0)
        return NULL;
    enter(b);
    Py_RETURN_NONE;
}

static void
body_splice(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiBlock *into = b->at.graph->at;
    for (int k = 0; k < b->block->nnodes; k++)
        CI_PUSH(ctx, into->nodes, into->nnodes, into->capnodes, b->block->nodes[k]);
    b->block->nnodes = 0;
}

/* splice(): moves the nodes of a closed block into the surrounding block. */
static PyObject *
block_splice(PyObject *self, PyObject *unused)
{
    CxBlock *b = (CxBlock *)self;
    Build build = {.block = b->block};
    (void)unused;

    CX_ENTRY();
    if (!cx_block_is_usable(b) || b->is_open || b->tracer->graph->at != b->outer)
        return cx_misuse(b->tracer->state, "a closed block is spliced into the block around it");
    if (run(b->tracer, body_splice, &build) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* live_out(value): holds the current value and returns its number, which stays valid when the
 * block is closed. */
static PyObject *
block_live_out(PyObject *self, PyObject *value)
{
    CxBlock *b = (CxBlock *)self;

    CX_ENTRY();
    if (!cx_is_traced(value) || !b->is_open)
        return cx_misuse(b->tracer->state, "an open block holds Traced values");
    if (cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    if (b->nheld == b->capheld) {
        int capacity = b->capheld ? 2 * b->capheld : 8;
        CiNode **grown = PyMem_Realloc(b->owned, sizeof *grown * (size_t)capacity);
        if (grown == NULL)
            return PyErr_NoMemory();
        b->owned = grown;
        b->capheld = capacity;
    }
    b->owned[b->nheld] = cx_node((CxTraced *)value);
    return PyLong_FromLong(b->nheld++);
}

/* value(k): the held value, for use in the block that this one was spliced into. */
static PyObject *
block_value(PyObject *self, PyObject *number)
{
    CxBlock *b = (CxBlock *)self;
    PyObject *pair = PyTuple_Pack(2, self, number);
    CiNode *node = pair ? cx_region_node(b->tracer, pair) : NULL;
    Py_XDECREF(pair);
    return node ? cx_traced_from_node(b->tracer, node, node->kind) : NULL;
}

/* True if a symbol is only defined inside the block. */
static bool
is_of_block(const CxBlock *b, const CiExpr *symbol)
{
    const CiExpr *known = ci_sym_find_symbol(b->tracer->sym, symbol->name);
    return known == NULL || known->id >= b->nexprs;
}

static void
body_blank(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiNode *like = b->like;
    const CiConst zero = {0, 0.0, 0.0};

    (void)ctx;
    if (like->rank != 0 || like->kind == CI_KIND_array)
        b->at.result = ci_graph_empty(b->at.graph, like->dtype, like->rank, like->sizes,
                                      like->order, b->at.loc);
    else
        b->at.result = ci_graph_const(b->at.graph, like->dtype, like->kind, zero, b->at.loc);
}

/* undefined(k): a placeholder of the held value's type whose contents are never read. None if
 * its sizes are only known inside. */
static PyObject *
block_undefined(PyObject *self, PyObject *number)
{
    CxBlock *b = (CxBlock *)self;
    Build build = {.block = b->block};
    PyObject *pair = PyTuple_Pack(2, self, number);
    CiNode *like = pair ? cx_region_node(b->tracer, pair) : NULL;

    Py_XDECREF(pair);
    if (like == NULL)
        return NULL;
    for (int k = 0; k < like->rank; k++)
        for (int j = 0; j < like->sizes[k]->nsymbols; j++)
            if (is_of_block(b, like->sizes[k]->symbols[j]))
                Py_RETURN_NONE;
    build.like = like;
    if (run(b->tracer, body_blank, &build) < 0)
        return NULL;
    return cx_traced_from_node(b->tracer, build.at.result, like->kind);
}

static void
body_param(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->at.result = b->like == NULL
                       ? ci_graph_param(b->at.graph, b->block, b->dtype, b->kind, 0, NULL, NULL)
                       : ci_graph_param(b->at.graph, b->block, b->like->dtype, b->like->kind,
                                        b->like->rank, b->like->sizes, b->like->order);
}

int
cx_kind_from(PyObject *name)
{
    static const char *const names[] = {"array", "scalar", "python"};
    for (int k = 0; name != NULL && PyUnicode_Check(name) && k < 3; k++)
        if (PyUnicode_CompareWithASCIIString(name, names[k]) == 0)
            return k;
    PyErr_SetString(PyExc_ValueError, "a kind is 'array', 'scalar' or 'python'");
    return -1;
}

/* param(like) or param(dtype, kind): adds a parameter to the block and returns it. */
static PyObject *
block_param(PyObject *self, PyObject *args)
{
    CxBlock *b = (CxBlock *)self;
    PyObject *like = NULL, *kind = NULL;
    Build build = {.block = b->block};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O|O:param", &like, &kind) || !cx_block_is_usable(b))
        return NULL;
    if (kind == NULL && cx_is_traced(like)) {
        if (cx_traced_prepare((CxTraced *)like) < 0)
            return NULL;
        build.like = cx_node((CxTraced *)like);
        build.kind = cx_kind((CxTraced *)like);
    } else {
        int named = cx_kind_from(kind);
        build.dtype = named < 0 ? CI_DTYPE_none : cx_dtype_of_object(b->tracer->state, like);
        build.kind = (CiKind)named;
        if (build.dtype == CI_DTYPE_none)
            return NULL;
    }
    if (run(b->tracer, body_param, &build) < 0)
        return NULL;
    return cx_traced_from_node(b->tracer, build.at.result, build.kind);
}

/* ---- iteration counts ---- index(extent): the loop variable in [0, extent), which is the
 * block's first parameter. */

typedef struct Iteration {
    CxTracer *tracer;
    const CiExpr *extent, *index;
} Iteration;

static void
body_index_symbol(CiContext *ctx, void *arg)
{
    Iteration *iteration = arg;
    const char *name = ci_format(ctx, "t%u", iteration->tracer->last_segment);
    iteration->index = ci_expr_index(iteration->tracer->sym, name, iteration->extent);
}

static void
body_index_param(CiContext *ctx, void *arg)
{
    const Build *b = arg;
    (void)ctx;
    (void)ci_graph_param(b->at.graph, b->block, CI_DTYPE_i64, CI_KIND_python, 0, NULL, NULL);
}

static PyObject *
block_index(PyObject *self, PyObject *extent)
{
    CxBlock *b = (CxBlock *)self;
    CxTracer *t = b->tracer;
    Build build = {.block = b->block};
    Iteration iteration = {.tracer = t};

    CX_ENTRY();
    if (!cx_block_is_usable(b) || (iteration.extent = cx_size_from(t, extent)) == NULL ||
        cx_protect(t->state, t->sym_ctx, body_index_symbol, &iteration) < 0 ||
        run(t, body_index_param, &build) < 0)
        return NULL;
    b->extent = iteration.extent;
    b->index = iteration.index;
    return cx_traced_int(t, b->index);
}

/* bind(array): adds a parameter that becomes the version of the array's memory. */
static PyObject *
block_bind(PyObject *self, PyObject *value)
{
    CxBlock *b = (CxBlock *)self;
    Build build = {.block = b->block};

    CX_ENTRY();
    if (!cx_is_traced(value) || ((CxTraced *)value)->view != NULL || !cx_block_is_usable(b))
        return cx_misuse(b->tracer->state, "bind() takes a whole Traced array");
    CxTraced *x = (CxTraced *)value;
    if (cx_traced_prepare(x) < 0)
        return NULL;
    build.like = cx_node(x);
    if (run(b->tracer, body_param, &build) < 0)
        return NULL;
    if (cx_storage_set_version(x->storage, build.at.result) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static void
body_result(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiNode *like = b->like;
    CiNode *node = b->node;

    (void)ctx;
    if (like != NULL && node->rank == like->rank && node->rank != 0 &&
        memcmp(like->order, node->order, (size_t)node->rank) != 0)
        node = ci_graph_copy(b->at.graph, node, like->order, b->at.loc);
    ci_graph_block_result(b->at.graph, b->block, node);
}

/* result(value, like=None): adds a result; like gives the stride order. */
static PyObject *
block_result(PyObject *self, PyObject *args)
{
    CxBlock *b = (CxBlock *)self;
    PyObject *value = NULL, *like = Py_None;
    Build build = {.block = b->block};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "O|O:result", &value, &like) || !cx_block_is_usable(b))
        return NULL;
    if ((build.node = cx_region_node(b->tracer, value)) == NULL ||
        (like != Py_None && (build.like = cx_region_node(b->tracer, like)) == NULL))
        return NULL;
    if (run(b->tracer, body_result, &build) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- queries ---- */

/* True for a Python number that is computed by the same operation as NumPy's. */
static bool
is_either_way(const CiNode *node)
{
    CxTagged when = cx_tagged_when(node->op);
    CiDtype of = when == CX_TAGGED_never ? CI_DTYPE_none : node->args[0]->dtype;
    return (when == CX_TAGGED_alike || when == CX_TAGGED_compared) &&
           (of == CI_DTYPE_f64 || of == CI_DTYPE_c128);
}

/* The text of the block's nodes, to compare with another run of the same source. */
static PyObject *
get_trace(PyObject *self, void *closure)
{
    CxBlock *b = (CxBlock *)self;
    PyObject *list = PyList_New(0);
    (void)closure;

    for (int k = 0; list != NULL && b->epoch == b->tracer->epoch && k < b->block->nnodes; k++) {
        const CiNode *node = b->block->nodes[k];
        if (node->op == CI_OP_check || (cx_node_is_quiet(node) && !is_either_way(node)))
            continue;
        PyObject *item = PyLong_FromLong((long)node->op * CI_DTYPE_COUNT * 2 + (long)node->dtype);
        cx_add_item(&list, item);
    }
    return list;
}

/* True if the node may be computed needlessly: it has one element and cannot fail. */
static bool
is_harmless(const CiNode *node)
{
    CiOpKind kind = ci_op_kind(node->op);
    if (node->op == CI_OP_const || node->op == CI_OP_cast)
        return node->rank == 0;
    if (kind == CI_OPKIND_view) {
        if (node->op == CI_OP_window &&
            !ci_expr_is_const(node->args[0]->sizes[node->axes[0]], NULL))
            return false;
        for (int k = 0; node->op == CI_OP_slice && k < node->args[0]->rank; k++)
            if (!ci_expr_is_const(node->starts[k], NULL))
                return false;
        return true;
    }
    return node->rank == 0 && (kind == CI_OPKIND_pointwise || node->op == CI_OP_where);
}

static PyObject *
get_is_harmless(PyObject *self, void *closure)
{
    CxBlock *b = (CxBlock *)self;
    bool result = b->epoch == b->tracer->epoch && b->block->nparams == 0;
    (void)closure;

    for (int k = 0; result && k < b->block->nnodes; k++)
        result = is_harmless(b->block->nodes[k]);
    return PyBool_FromLong(result);
}

static PyObject *
get_has_effects(PyObject *self, void *closure)
{
    CxBlock *b = (CxBlock *)self;
    (void)closure;
    return PyBool_FromLong(b->epoch == b->tracer->epoch && cx_block_has_effects(b->block));
}

static int
count_nodes(const CiBlock *block, bool works)
{
    int count = 0;
    for (int k = 0; k < block->nnodes; k++) {
        const CiNode *node = block->nodes[k];
        count += !works || cx_node_works(node);
        for (int b = 0; b < node->nblocks; b++)
            count += count_nodes(node->blocks[b], works);
    }
    return count;
}

static PyObject *
get_count(PyObject *self, void *closure)
{
    CxBlock *b = (CxBlock *)self;
    bool is_there = b->epoch == b->tracer->epoch;
    return PyLong_FromLong(is_there ? count_nodes(b->block, closure != NULL) : 0);
}

static PyMethodDef block_methods[] = {
    CX_METHOD(Block, param, block_param, METH_VARARGS),
    CX_METHOD(Block, bind, block_bind, METH_O),
    CX_METHOD(Block, result, block_result, METH_VARARGS),
    CX_METHOD(Block, close, block_close, METH_VARARGS),
    CX_METHOD(Block, reopen, block_reopen, METH_NOARGS),
    CX_METHOD(Block, splice, block_splice, METH_NOARGS),
    CX_METHOD(Block, live_out, block_live_out, METH_O),
    CX_METHOD(Block, value, block_value, METH_O),
    CX_METHOD(Block, index, block_index, METH_O),
    CX_METHOD(Block, undefined, block_undefined, METH_O),
    CX_METHOD(Block, last_value, cx_block_last_value, METH_O),
    CX_METHOD(Block, truths, cx_block_truths, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef block_getset[] = {
    CX_GETTER(Block, trace, get_trace, NULL, NULL),
    CX_GETTER(Block, is_harmless, get_is_harmless, NULL, NULL),
    CX_GETTER(Block, has_effects, get_has_effects, NULL, NULL),
    CX_GETTER(Block, nodes, get_count, NULL, NULL),
    CX_GETTER(Block, work, get_count, NULL, (void *)1),
    {NULL, NULL, NULL, NULL, NULL},
};

CX_TYPE(cx_block_spec, Block, CxBlock, Py_TPFLAGS_DISALLOW_INSTANTIATION,
        CX_SLOT(Py_tp_dealloc, block_dealloc), CX_SLOT(Py_tp_methods, block_methods),
        CX_SLOT(Py_tp_getset, block_getset));
