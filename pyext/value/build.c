/* Builds nodes of the pending graph that have operands: one struct for the arguments of all
 * calls, and one body for each. Operands are prepared before a body runs; cx_node returns their
 * nodes. */
#include "value/build.h"

#include "ir/layout.h"

typedef struct Build {
    CxBuilding at;
    CxTracer *tracer;
    CiOp op;
    CiDtype dtype;
    CiKind kind;
    int nargs;
    const CxOperand *operands;
    CxTraced *const *args;
    CxTraced *target;
    int rank, naxes;
    const CiExpr *const *sizes;
    const int *axes;
    const int8_t *order;
    const CiExtern *ext;
    const char *text;
    const CiPairwise *pairwise;
    bool is_elementwise;
} Build;

static CiNode *
run(CxTracer *tracer, void (*body)(CiContext *, void *), Build *b)
{
    b->tracer = tracer;
    return cx_build_custom(tracer, body, &b->at);
}

/* The cast of an operand. Where an axis repeats one element, the element is cast and repeated: then
 * the axis has no say in the layout of the result, as in NumPy, which looks at operands before it
 * casts them. */
static CiNode *
cast_operand(const Build *b, CiNode *x, CiDtype dtype)
{
    CiGraph *g = b->at.graph;
    const CiExpr *zero = ci_expr_const(g->sym, 0), *one = ci_expr_const(g->sym, 1);
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK], *sizes[CI_MAX_RANK];
    bool repeats = false;

    for (int k = 0; k < x->rank; k++) {
        bool is_still = x->strides != NULL && ci_expr_equals_const(x->strides[k], 0) &&
                        ci_sym_known_lt(g->sym, one, x->sizes[k]);
        starts[k] = zero;
        steps[k] = one;
        sizes[k] = is_still ? one : x->sizes[k];
        repeats |= is_still;
    }
    if (!repeats)
        return ci_graph_cast(g, x, dtype, b->at.loc);
    CiNode *part = ci_graph_slice(g, x, starts, steps, sizes, b->at.loc);
    part = ci_graph_cast(g, part, dtype, b->at.loc);
    return ci_graph_expand(g, part, x->rank, x->sizes, b->at.loc);
}

static CiNode *
operand_node(Build *b, const CxOperand *o)
{
    if (o->traced == NULL)
        return ci_graph_const(b->at.graph, o->want, o->kind, o->value, b->at.loc);
    CiNode *node = cx_node(o->traced);
    return node->dtype == o->want ? node : cast_operand(b, node, o->want);
}

static void
body_pointwise(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiNode *nodes[4];

    (void)ctx;
    for (int k = 0; k < b->nargs; k++)
        nodes[k] = operand_node(b, &b->operands[k]);
    CiNode *node = ci_graph_pointwise(b->at.graph, b->op, b->nargs, nodes, b->at.loc);
    if (b->dtype != CI_DTYPE_none)
        node = ci_graph_cast(b->at.graph, node, b->dtype, b->at.loc);
    b->at.result = ci_node_set_kind(node, b->kind);
}

CiNode *
cx_build_pointwise(CxTracer *tracer, CiOp op, int nargs, const CxOperand *args, CiDtype out,
                   CiKind kind)
{
    Build b = {.op = op, .nargs = nargs, .operands = args, .dtype = out, .kind = kind};
    for (int k = 0; k < nargs; k++)
        if (args[k].traced != NULL && cx_traced_prepare(args[k].traced) < 0)
            return NULL;
    /* Preparing one operand may have run the other's graph. */
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
    CiNode *cast = ci_graph_cast(b->at.graph, node, b->dtype, b->at.loc);

    (void)ctx;
    if (cast == node) /* a new node, as astype makes a copy */
        cast = ci_graph_copy(b->at.graph, node, node->order, b->at.loc);
    b->at.result = ci_node_set_kind(cast, b->kind);
}

CiNode *
cx_build_cast(CxTracer *tracer, CxTraced *a, CiDtype dtype, CiKind kind)
{
    Build b = {.target = a, .dtype = dtype, .kind = kind};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_cast, &b);
}

static void
body_define(CiContext *ctx, void *arg)
{
    Build *b = arg;
    const CiExpr *symbol = ci_expr_copy(b->at.graph->sym, b->sizes[0]);
    CiNode *value = ci_graph_cast(b->at.graph, cx_node(b->target), CI_DTYPE_i64, b->at.loc);

    (void)ctx;
    b->at.result =
        ci_graph_define(b->at.graph, value, symbol, symbol->low, symbol->limit, b->at.loc);
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
    b->at.result = ci_graph_check(b->at.graph, cx_node(b->target), b->text, b->at.loc);
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
        b->at.result = ci_graph_scan(b->at.graph, b->op, cx_node(b->target), b->axes[0], b->at.loc);
    else
        b->at.result =
            ci_graph_reduce(b->at.graph, b->op, cx_node(b->target), b->naxes, b->axes, b->at.loc);
}

/* Copies it to the graph's memory, with the graph's sizes. */
static const CiPairwise *
keep_pairwise(CiContext *ctx, Build *b)
{
    CiPairwise *kept = CI_NEW(b->at.graph->ctx, CiPairwise);
    int *axes = CI_NEW_ARRAY(b->at.graph->ctx, int, b->naxes + 1);

    (void)ctx;
    memcpy(axes, b->pairwise->axes, sizeof *axes * (size_t)b->naxes);
    *kept = *b->pairwise;
    kept->axes = axes;
    if (kept->chunk != NULL)
        kept->chunk = ci_expr_copy(b->at.graph->sym, kept->chunk);
    if (kept->alone != NULL)
        kept->alone = ci_expr_copy(b->at.graph->sym, kept->alone);
    return kept;
}

static void
body_pairwise(CiContext *ctx, void *arg)
{
    Build *b = arg;

    body_fold(ctx, arg);
    b->at.result->pairwise = keep_pairwise(ctx, b);
}

CiNode *
cx_build_pairwise(CxTracer *tracer, CiOp op, CxTraced *a, int naxes, const int *axes,
                  const CiPairwise *pairwise)
{
    Build b = {.op = op, .target = a, .naxes = naxes, .axes = axes, .pairwise = pairwise};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_pairwise, &b);
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
    b->at.result = ci_graph_copy(b->at.graph, cx_node(b->target), b->order, b->at.loc);
}

CiNode *
cx_build_copy(CxTracer *tracer, CxTraced *a, const int8_t *order)
{
    Build b = {.target = a, .order = order};
    return cx_traced_prepare(a) < 0 ? NULL : run(tracer, body_copy, &b);
}

static CiNode **
arg_nodes(Build *b)
{
    CiNode **nodes = CI_NEW_ARRAY(b->at.graph->ctx, CiNode *, b->nargs ? b->nargs : 1);
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
    b->at.result = ci_graph_concat(b->at.graph, b->nargs, arg_nodes(b), b->axes[0], b->at.loc);
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
    b->at.result =
        ci_graph_extern(b->at.graph, b->op, b->ext, b->dtype, b->nargs, arg_nodes(b), b->rank,
                        cx_graph_exprs(b->tracer, b->rank, b->sizes), b->at.loc);
    if (b->is_elementwise)
        b->at.result->order = ci_layout_broadcast_order(b->at.graph->ctx, b->rank, b->nargs,
                                                        b->at.result->args);
}

CiNode *
cx_build_extern(CxTracer *tracer, CiOp op, const CiExtern *ext, CiDtype dtype, int nargs,
                CxTraced *const *args, int rank, const CiExpr *const *sizes, bool is_elementwise)
{
    Build b = {.op = op,
               .ext = ext,
               .dtype = dtype,
               .nargs = nargs,
               .args = args,
               .rank = rank,
               .sizes = sizes,
               .is_elementwise = is_elementwise};
    return prepare_all(nargs, args) < 0 ? NULL : run(tracer, body_extern, &b);
}

/* A factor, broadcast along the axes before its matrix. */
static CiNode *
stack_of(Build *b, CiNode *node)
{
    CiGraph *g = b->at.graph;
    const CiExpr **sizes = cx_graph_exprs(b->tracer, b->rank, b->sizes);
    for (int k = 1; k <= 2; k++)
        sizes[b->rank - k] = node->sizes[node->rank - k];
    return b->rank > 2 ? ci_graph_expand(g, node, b->rank, sizes, b->at.loc) : node;
}

static void
body_product(CiContext *ctx, void *arg)
{
    Build *b = arg;
    CiNode **nodes = arg_nodes(b);
    (void)ctx;
    CiNode *left = stack_of(b, nodes[0]), *right = stack_of(b, nodes[1]);
    b->at.result = ci_graph_product(b->at.graph, left, right, b->at.loc);
}

CiNode *
cx_build_product(CxTracer *tracer, CxTraced *const *args, int rank, const CiExpr *const *sizes)
{
    Build b = {.nargs = 2, .args = args, .rank = rank, .sizes = sizes};
    return prepare_all(2, args) < 0 ? NULL : run(tracer, body_product, &b);
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
        value = ci_graph_expand(b->at.graph, value, view->rank, view->sizes, b->at.loc);
    b->at.result = ci_graph_assign(b->at.graph, t->storage->node, view, value, b->at.loc);
}

int
cx_build_assign(CxTracer *tracer, CxTraced *target, const CxOperand *value)
{
    Build b = {.target = target, .operands = value};
    for (int round = 0; round < 2; round++) /* preparing one operand may run the other's graph */
        if (cx_traced_prepare(target) < 0 ||
            (value->traced != NULL && cx_traced_prepare(value->traced) < 0))
            return -1;
    CiNode *node = run(tracer, body_assign, &b);
    return node == NULL ? -1 : cx_storage_set_version(target->storage, node);
}
