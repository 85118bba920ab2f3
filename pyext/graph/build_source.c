/* Builds nodes of the pending graph that have no operands: numbers, sizes, filled arrays, and
 * inputs. */
#include "graph/storage.h"
#include "state/device_array.h"

typedef struct Build {
    CxBuilding at;
    CxTracer *tracer;
    CiDtype dtype;
    CiKind kind;
    const CxStorage *storage;
    int rank, axis;
    const CiExpr *const *sizes;
    const int8_t *order;
    const CiConst *value;
} Build;

static CiNode *
run(CxTracer *tracer, void (*body)(CiContext *, void *), Build *b)
{
    b->tracer = tracer;
    return cx_build_custom(tracer, body, &b->at);
}

static void
body_const(CiContext *ctx, void *arg)
{
    Build *b = arg;
    (void)ctx;
    b->at.result = ci_graph_const(b->at.graph, b->dtype, b->kind, *b->value, b->at.loc);
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
    b->at.result = ci_graph_expr(b->at.graph, cx_graph_expr(b->tracer, b->sizes[0]), b->at.loc);
}

CiNode *
cx_build_expr(CxTracer *tracer, const CiExpr *e)
{
    Build b = {.sizes = &e};
    return run(tracer, body_expr, &b);
}

static void
body_fill(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiExpr **sizes = cx_graph_exprs(b->tracer, b->rank, b->sizes);

    (void)ctx;
    if (b->value == NULL) {
        b->at.result = ci_graph_empty(b->at.graph, b->dtype, b->rank, sizes, b->order, b->at.loc);
        return;
    }
    CiNode *value = ci_graph_const(b->at.graph, b->dtype, CI_KIND_array, *b->value, b->at.loc);
    value = ci_graph_expand(b->at.graph, value, b->rank, sizes, b->at.loc);
    b->at.result = ci_graph_copy(b->at.graph, value, b->order, b->at.loc);
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
    b->at.result = ci_graph_iota(b->at.graph, b->rank, cx_graph_exprs(b->tracer, b->rank, b->sizes),
                                 b->axis, b->at.loc);
}

CiNode *
cx_build_iota(CxTracer *tracer, int rank, const CiExpr *const *sizes, int axis)
{
    Build b = {.rank = rank, .sizes = sizes, .axis = axis};
    return run(tracer, body_iota, &b);
}

/* Converts bytes to elements: an input's strides are multiples of the element's size. */
static const CiExpr *
element_stride(Build *b, const CiExpr *stride, int itemsize)
{
    return ci_expr_floordiv(b->at.graph->sym, cx_graph_expr(b->tracer, stride),
                            ci_expr_const(b->at.graph->sym, itemsize));
}

static void
body_input(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CxStorage *s = b->storage;
    const CiExpr *strides[CI_MAX_RANK];

    (void)ctx;
    for (int k = 0; k < s->rank; k++)
        strides[k] = element_stride(b, s->strides[k], ci_dtype_size(s->dtype));
    /* A NumPy scalar enters as the 0-d array that holds it. */
    CiKind kind = s->kind == CI_KIND_python ? CI_KIND_python : CI_KIND_array;
    b->at.result = ci_graph_input(b->at.graph, s->dtype, kind, s->rank,
                                  cx_graph_exprs(b->tracer, s->rank, s->sizes), strides);
    b->at.result->device = cx_device_number(b->tracer->state, &b->tracer->options, s->value);
}

static int
make_space(CxTracer *tracer)
{
    if (tracer->ninputs < tracer->capinputs)
        return 0;
    int capacity = tracer->capinputs ? 2 * tracer->capinputs : 8;
    CxStorage **grown = PyMem_Realloc(tracer->inputs, sizeof *grown * (size_t)capacity);
    if (grown == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    tracer->inputs = grown;
    tracer->capinputs = capacity;
    return 0;
}

int
cx_build_input(CxStorage *s)
{
    CxTracer *tracer = s->tracer;
    Build b = {.storage = s};

    if (make_space(tracer) < 0 || cx_graph_open(tracer) < 0)
        return -1;
    CiNode *node = run(tracer, body_input, &b);
    if (node == NULL || cx_storage_set_input(s, node) < 0)
        return -1;
    s->refs++;
    tracer->inputs[tracer->ninputs++] = s;
    return 0;
}
