/* The type Builder: makes a graph from Python, node by node, with inference of types and sizes.
 *
 * A value is named by its number, which every method that makes one returns. Types, symbols and
 * sizes are written as in the text of a graph (docs/ir.md); a size may also be an int.
 * compile_graph() compiles the graph without running it and empties the builder. */
#include "program/builder.h"
#include "state/docs.h"

#include "ir/text_common.h"

/* ---- methods ---- */

static PyObject *
run_body(PyObject *self, void (*body)(CiContext *, void *), CxBuilderCall *call)
{
    CxBuilder *b = (CxBuilder *)self;
    call->builder = b;
    if (b->ctx == NULL)
        return PyErr_Format(PyExc_ValueError, "the builder's graph has been compiled");
    return cx_protect(b->state, b->ctx, body, call) < 0 ? NULL : PyLong_FromLong(call->number);
}

static PyObject *
builder_symbol(PyObject *self, PyObject *text)
{
    CxBuilderCall call = {.type = PyUnicode_AsUTF8(text)};
    return call.type == NULL ? NULL : run_body(self, cx_builder_symbol, &call);
}

static PyObject *
builder_input(PyObject *self, PyObject *text)
{
    CxBuilderCall call = {.type = PyUnicode_AsUTF8(text)};
    return call.type == NULL ? NULL : run_body(self, cx_builder_input, &call);
}

static PyObject *
builder_node(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"op",      "args", "type", "axes", "starts", "steps", "combine",
                            "distinct", "name", "key",  "file", "line",   NULL};
    CxBuilderCall a = {.number = -1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|z$OOOzpzOzi:node", names, &a.op, &a.args,
                                     &a.type, &a.axes, &a.starts, &a.steps, &a.combine, &a.distinct,
                                     &a.name, &a.value, &a.file, &a.line))
        return NULL;
    return run_body(self, cx_builder_node, &a);
}

static PyObject *
builder_const(PyObject *self, PyObject *args)
{
    CxBuilderCall a = {.number = -1};
    return PyArg_ParseTuple(args, "sO:const", &a.type, &a.value) ? run_body(self, cx_builder_const, &a)
                                                                 : NULL;
}

static PyObject *
builder_expr(PyObject *self, PyObject *size)
{
    CxBuilderCall a = {.value = size};
    return run_body(self, cx_builder_expr, &a);
}

static PyObject *
builder_check(PyObject *self, PyObject *args)
{
    CxBuilderCall a = {.number = -1};
    return PyArg_ParseTuple(args, "Os|zi:check", &a.value, &a.name, &a.file, &a.line)
               ? run_body(self, cx_builder_check, &a)
               : NULL;
}

static PyObject *
builder_define(PyObject *self, PyObject *args)
{
    CxBuilderCall a = {.number = -1};
    return PyArg_ParseTuple(args, "Os|zi:define", &a.value, &a.type, &a.file, &a.line)
               ? run_body(self, cx_builder_define, &a)
               : NULL;
}

static PyObject *
builder_write(PyObject *self, PyObject *args)
{
    CxBuilderCall a = {.number = -1};
    return PyArg_ParseTuple(args, "OO:write", &a.args, &a.value) ? run_body(self, cx_builder_write, &a)
                                                                 : NULL;
}

static PyObject *
builder_results(PyObject *self, PyObject *values)
{
    CxBuilderCall a = {.args = values};
    return run_body(self, cx_builder_results, &a);
}

static PyObject *
builder_block(PyObject *self, PyObject *unused)
{
    CxBuilderCall a = {.number = -1};
    (void)unused;
    return run_body(self, cx_builder_block, &a);
}

static PyObject *
builder_enter(PyObject *self, PyObject *number)
{
    CxBuilderCall a = {.number = (int)PyLong_AsLong(number)};
    return PyErr_Occurred() ? NULL : run_body(self, cx_builder_enter, &a);
}

static PyObject *
builder_param(PyObject *self, PyObject *text)
{
    CxBuilderCall a = {.type = PyUnicode_AsUTF8(text)};
    return a.type == NULL ? NULL : run_body(self, cx_builder_param, &a);
}

static PyObject *
builder_region(PyObject *self, PyObject *args)
{
    CxBuilderCall a = {.number = -1};
    return PyArg_ParseTuple(args, "sOO|Oszi:region", &a.op, &a.args, &a.blocks, &a.value, &a.name,
                            &a.file, &a.line)
               ? run_body(self, cx_builder_region, &a)
               : NULL;
}

/* The numbers of nodes, values and guards, to which a caller that gives up a node can return. */
static PyObject *
builder_position(PyObject *self, PyObject *unused)
{
    CxBuilder *b = (CxBuilder *)self;
    (void)unused;
    if (b->ctx == NULL)
        return PyErr_Format(PyExc_ValueError, "the builder's graph has been compiled");
    return Py_BuildValue("(iii)", b->graph->at->nnodes, b->nvalues, b->graph->env->nguards);
}

static PyObject *
builder_rewind(PyObject *self, PyObject *args)
{
    CxBuilder *b = (CxBuilder *)self;
    int nnodes, nvalues, nguards;

    if (!PyArg_ParseTuple(args, "(iii):rewind", &nnodes, &nvalues, &nguards))
        return NULL;
    if (b->ctx == NULL || nnodes > b->graph->at->nnodes || nvalues > b->nvalues ||
        nguards > b->graph->env->nguards || nnodes < 0 || nvalues < 0 || nguards < 0)
        return PyErr_Format(PyExc_ValueError, "the builder has no such position");
    b->graph->at->nnodes = nnodes;
    b->nvalues = nvalues;
    b->graph->env->nguards = nguards;
    Py_RETURN_NONE;
}

typedef struct Print {
    CiGraph *graph;
    CiNode *node; /* or NULL for the whole graph */
    CiText text;
} Print;

static void
body_print(CiContext *ctx, void *arg)
{
    Print *print = arg;
    const CiNode *node = print->node;
    print->text = ci_text_new(ctx);
    if (node == NULL) {
        ci_graph_print(&print->text, print->graph);
        return;
    }
    CiTextIo form = ci_io_printer(ctx, print->graph->sym, &print->text);
    CiTextType type = {.kind = node->kind, .dtype = node->dtype, .rank = node->rank, .sizes = node->sizes, .order = node->order};
    ci_io_type(&form, &type);
}

static PyObject *
print_text(CxBuilder *b, CiNode *node)
{
    Print print = {b->graph, node, {0}};
    return cx_protect(b->state, b->ctx, body_print, &print) < 0
               ? NULL
               : PyUnicode_FromString(print.text.data);
}

static PyObject *
builder_text(PyObject *self, PyObject *unused)
{
    CxBuilder *b = (CxBuilder *)self;
    (void)unused;
    return b->ctx != NULL ? print_text(b, NULL)
                          : PyErr_Format(PyExc_ValueError, "the builder's graph has been compiled");
}

static PyObject *
builder_type(PyObject *self, PyObject *number)
{
    CxBuilder *b = (CxBuilder *)self;
    long at = PyLong_AsLong(number);
    if (PyErr_Occurred())
        return NULL;
    if (b->ctx == NULL || at < 0 || at >= b->nvalues)
        return PyErr_Format(PyExc_ValueError, "the builder has no value %ld", at);
    return print_text(b, b->values[at]);
}

/* ---- the type ---- */

typedef struct New {
    const char *name;
    CiGraph *graph;
} New;

static void
body_new(CiContext *ctx, void *arg)
{
    New *new = arg;
    new->graph = ci_graph_new(ctx, ci_intern(ctx, new->name));
}

static PyObject *
builder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name", NULL};
    New new = {"", NULL};

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s:Builder", names, &new.name))
        return NULL;
    CxBuilder *b = (CxBuilder *)type->tp_alloc(type, 0);
    if (b == NULL)
        return NULL;
    b->state = PyType_GetModuleState(type);
    b->ctx = b->state == NULL ? NULL : ci_context_open();
    if (b->ctx == NULL || cx_protect(b->state, b->ctx, body_new, &new) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_DECREF(b);
        return NULL;
    }
    b->graph = new.graph;
    return (PyObject *)b;
}

static void
builder_dealloc(PyObject *self)
{
    CxBuilder *b = (CxBuilder *)self;
    if (b->ctx != NULL)
        ci_context_close(b->ctx);
    cx_object_free(self);
}

static PyMethodDef builder_methods[] = {
    CX_METHOD(Builder, symbol, builder_symbol, METH_O),
    CX_METHOD(Builder, input, builder_input, METH_O),
    CX_METHOD(Builder, node, CX_KEYWORDS(builder_node), METH_VARARGS | METH_KEYWORDS),
    CX_METHOD(Builder, const, builder_const, METH_VARARGS),
    CX_METHOD(Builder, expr, builder_expr, METH_O),
    CX_METHOD(Builder, check, builder_check, METH_VARARGS),
    CX_METHOD(Builder, define, builder_define, METH_VARARGS),
    CX_METHOD(Builder, write, builder_write, METH_VARARGS),
    CX_METHOD(Builder, results, builder_results, METH_O),
    CX_METHOD(Builder, block, builder_block, METH_NOARGS),
    CX_METHOD(Builder, enter, builder_enter, METH_O),
    CX_METHOD(Builder, param, builder_param, METH_O),
    CX_METHOD(Builder, region, builder_region, METH_VARARGS),
    CX_METHOD(Builder, position, builder_position, METH_NOARGS),
    CX_METHOD(Builder, rewind, builder_rewind, METH_VARARGS),
    CX_METHOD(Builder, text, builder_text, METH_NOARGS),
    CX_METHOD(Builder, type, builder_type, METH_O),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_builder_spec, Builder, CxBuilder, 0,
        CX_SLOT(Py_tp_new, builder_new), CX_SLOT(Py_tp_dealloc, builder_dealloc),
        CX_SLOT(Py_tp_methods, builder_methods));
