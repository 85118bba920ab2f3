/* The methods of a Builder. Arguments are read inside of cx_protect, so that an invalid argument
 * ends the call like an invalid node. */
#include "program/builder.h"
#include "state/array.h"

#include "ir/text_common.h"

/* ---- reading arguments ---- */

/* Leaves the protected body; a Python exception is set. */
static _Noreturn void
leave(CiContext *ctx)
{
    ci_fail(ctx, CI_ERR_PYTHON, "%s", "");
}

static int64_t
int_from(CiContext *ctx, PyObject *object)
{
    int64_t value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred())
        leave(ctx);
    return value;
}

static const char *
text_from(CiContext *ctx, PyObject *object)
{
    const char *text = PyUnicode_AsUTF8(object);
    if (text == NULL)
        leave(ctx);
    return text;
}

static CiNode *
value_at(CxBuilder *b, PyObject *number)
{
    int64_t at = int_from(b->ctx, number);
    if (at < 0 || at >= b->nvalues)
        ci_fail(b->ctx, CI_ERR_VALUE, "the builder has no value %lld", (long long)at);
    return b->values[at];
}

const CiExpr *
cx_expr_from(const CiGraph *graph, PyObject *object)
{
    CiLexer lex;
    if (PyLong_Check(object))
        return ci_expr_const(graph->sym, int_from(graph->ctx, object));
    ci_lexer_init(&lex, graph->ctx, text_from(graph->ctx, object));
    const CiExpr *size = ci_expr_parse(graph->sym, &lex);
    if (lex.kind != CI_TOKEN_end)
        ci_lexer_fail(&lex, "unexpected text after a size");
    return size;
}

/* The length of a tuple or list; fails for anything else. */
static Py_ssize_t
length_of(CiContext *ctx, PyObject *sequence)
{
    if (PyTuple_Check(sequence) || PyList_Check(sequence))
        return PySequence_Fast_GET_SIZE(sequence);
    ci_fail(ctx, CI_ERR_VALUE, "expected a tuple or a list, got %s", Py_TYPE(sequence)->tp_name);
}

static const CiExpr *const *
sizes_from(CxBuilder *b, PyObject *sequence, int *count)
{
    Py_ssize_t n = length_of(b->ctx, sequence);
    const CiExpr **sizes = CI_NEW_ARRAY(b->ctx, const CiExpr *, n + 1);
    for (Py_ssize_t k = 0; k < n; k++)
        sizes[k] = cx_expr_from(b->graph, PySequence_Fast_GET_ITEM(sequence, k));
    *count = (int)n;
    return sizes;
}

static CiNode **
values_from(CxBuilder *b, PyObject *sequence, int *count)
{
    Py_ssize_t n = length_of(b->ctx, sequence);
    CiNode **values = CI_NEW_ARRAY(b->ctx, CiNode *, n + 1);
    for (Py_ssize_t k = 0; k < n; k++)
        values[k] = value_at(b, PySequence_Fast_GET_ITEM(sequence, k));
    *count = (int)n;
    return values;
}

static CiLoc
loc_from(const CxBuilderCall *call)
{
    CiContext *ctx = call->builder->ctx;
    return (CiLoc){.file = call->file ? ci_intern(ctx, call->file) : "", .line = call->line};
}

/* Numbers the value that a method made. */
static void
keep_value(CxBuilderCall *call, CiNode *node)
{
    CxBuilder *b = call->builder;
    call->number = b->nvalues;
    CI_PUSH(b->ctx, b->values, b->nvalues, b->capvalues, node);
}

/* ---- bodies ---- */

void
cx_builder_symbol(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    (void)ctx;
    ci_graph_parse_symbol(call->builder->graph, call->type);
}

void
cx_builder_input(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    (void)ctx;
    keep_value(call, ci_graph_parse_input(call->builder->graph, call->type));
}

static void
take_type(CxBuilderCall *call, CiNode *like)
{
    CxBuilder *b = call->builder;
    CiTextType type = {.kind = CI_KIND_array};
    if (call->type == NULL)
        return;
    CiTextIo form = ci_io_reader(b->ctx, b->graph->sym, call->type);
    ci_io_type(&form, &type);
    like->dtype = type.dtype;
    like->kind = type.kind;
    like->rank = type.rank;
    like->sizes = type.sizes;
    like->order = type.has_order ? type.order : NULL;
}

static void
take_attributes(CxBuilderCall *call, CiNode *like)
{
    CxBuilder *b = call->builder;
    int count = 0;
    if (call->axes != NULL) {
        Py_ssize_t n = length_of(b->ctx, call->axes);
        int *axes = CI_NEW_ARRAY(b->ctx, int, n + 1);
        for (Py_ssize_t k = 0; k < n; k++)
            axes[k] = (int)int_from(b->ctx, PySequence_Fast_GET_ITEM(call->axes, k));
        like->axes = axes;
        like->naxes = (int)n;
    }
    if (call->starts != NULL)
        like->starts = sizes_from(b, call->starts, &count);
    if (call->steps != NULL)
        like->steps = sizes_from(b, call->steps, &count);
    if (call->combine != NULL) {
        like->combine = ci_op_find(call->combine);
        like->is_combined = true;
    }
    like->is_distinct = call->distinct != 0;
}

static void
take_extern(CxBuilderCall *call, CiNode *like)
{
    CiContext *ctx = call->builder->ctx;
    CiExtern *ext = CI_NEW(ctx, CiExtern);
    ext->name = call->name ? ci_intern(ctx, call->name) : ci_op_name(like->op);
    ext->key = call->value ? ci_intern(ctx, text_from(ctx, call->value)) : "";
    like->ext = ext;
}

void
cx_builder_node(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiNode like = {.op = ci_op_find(call->op), .loc = loc_from(call)};

    if (like.op == CI_OP_none)
        ci_fail(ctx, CI_ERR_VALUE, "no operation is called '%s'", call->op);
    like.args = values_from(b, call->args, &like.nargs);
    take_type(call, &like);
    take_attributes(call, &like);
    if (ci_op_kind(like.op) == CI_OPKIND_extern)
        take_extern(call, &like);
    const char *why = ci_node_why_not(ctx, &like);
    if (why != NULL)
        ci_fail(ctx, CI_ERR_VALUE, "%s", why);
    CiNode *node = ci_graph_add(b->graph, &like);
    if (like.order != NULL && !ci_node_is_view(node) && node->op != CI_OP_assign &&
        node->op != CI_OP_scatter)
        node->order = like.order;
    keep_value(call, node);
}

void
cx_builder_const(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CiNode like = {.op = CI_OP_const, .loc = loc_from(call)};
    Py_complex number = {0, 0};

    take_type(call, &like);
    if (like.rank != 0)
        ci_fail(ctx, CI_ERR_SHAPE, "a constant has rank 0");
    if (ci_dtype_is_integral(like.dtype)) {
        like.value.i = like.dtype == CI_DTYPE_u64 ? (int64_t)PyLong_AsUnsignedLongLong(call->value)
                                                  : PyLong_AsLongLong(call->value);
    } else {
        number = PyComplex_AsCComplex(call->value);
        like.value = ci_const_cast((CiConst){.re = number.real, .im = number.imag}, CI_DTYPE_c128,
                                   like.dtype);
    }
    if (PyErr_Occurred())
        leave(ctx);
    keep_value(call, ci_graph_add(call->builder->graph, &like));
}

void
cx_builder_expr(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    (void)ctx;
    keep_value(call, ci_graph_expr(call->builder->graph, cx_expr_from(call->builder->graph, call->value),
                                    loc_from(call)));
}

void
cx_builder_check(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    ci_graph_check(call->builder->graph, value_at(call->builder, call->value),
                   ci_intern(ctx, call->name), loc_from(call));
}

/* define(value, "u0 in [0, s0)"): makes the value the value of the symbol. */
void
cx_builder_define(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiNode *value = value_at(b, call->value);
    const CiExpr *limit = NULL;
    CiTextIo form = ci_io_reader(ctx, b->graph->sym, call->type);
    const CiExpr *symbol = ci_io_bounded(&form, NULL, &limit);
    keep_value(call, ci_graph_define(b->graph, value, symbol, symbol->low, symbol->limit, loc_from(call)));
}

void
cx_builder_write(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiNode *input = value_at(b, call->args);
    if (input->op != CI_OP_input)
        ci_fail(ctx, CI_ERR_VALUE, "only an input can be written");
    ci_graph_write(b->graph, input, value_at(b, call->value));
}

void
cx_builder_results(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    int count;
    CiNode **values = values_from(b, call->args, &count);
    (void)ctx;
    for (int k = 0; k < count; k++)
        ci_graph_block_result(b->graph, b->graph->at, values[k]);
}

/* Begins a new block and returns its number. */
void
cx_builder_block(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiBlock *block = ci_graph_block(b->graph);
    call->number = b->nblocks;
    CI_PUSH(ctx, b->blocks, b->nblocks, b->capblocks, block);
    ci_graph_enter(b->graph, block);
}

static CiBlock *
block_at(CxBuilder *b, int64_t number)
{
    if (number < -1 || number >= b->nblocks)
        ci_fail(b->ctx, CI_ERR_VALUE, "the builder has no block %lld", (long long)number);
    return number < 0 ? b->graph->body : b->blocks[number];
}

void
cx_builder_enter(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    (void)ctx;
    ci_graph_enter(call->builder->graph, block_at(call->builder, call->number));
}

void
cx_builder_param(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiNode like = {0};
    (void)ctx;
    take_type(call, &like);
    keep_value(call, ci_graph_param(b->graph, b->graph->at, like.dtype, like.kind, like.rank,
                                     like.sizes, like.order));
}

/* region("for", args, blocks, extent, "t0"): builds a region; returns the number of its first
 * result. */
void
cx_builder_region(CiContext *ctx, void *arg)
{
    CxBuilderCall *call = arg;
    CxBuilder *b = call->builder;
    CiGraph *g = b->graph;
    CiBlock *blocks[2] = {NULL, NULL};
    const CiExpr *trip_count = NULL, *induction = NULL;
    CiOp op = ci_op_find(call->op);
    int nargs, nblocks = (int)length_of(ctx, call->blocks), wanted = op == CI_OP_for ? 1 : 2;

    if (ci_op_kind(op) != CI_OPKIND_region || nblocks != wanted)
        ci_fail(ctx, CI_ERR_VALUE, "a region is a for, a while or an if with its blocks");
    for (int k = 0; k < nblocks; k++)
        blocks[k] = block_at(b, int_from(ctx, PySequence_Fast_GET_ITEM(call->blocks, k)));
    if (op == CI_OP_for) {
        trip_count = cx_expr_from(b->graph, call->value);
        induction = ci_expr_index(g->sym, ci_intern(ctx, call->name), trip_count);
    }
    CiNode **args = values_from(b, call->args, &nargs);
    ci_graph_region(g, op, nargs, args, trip_count, induction, nblocks, blocks, loc_from(call));
    int count = blocks[nblocks - 1]->nresults, first = b->nvalues;
    for (int k = 0; k < count; k++)
        keep_value(call, g->at->nodes[g->at->nnodes - count + k]);
    call->number = first;
}
