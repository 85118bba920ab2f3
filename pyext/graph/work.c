/* Estimates how many elements a graph computes with the sizes of this call. Little work is not
 * worth a compile or a break. The estimate only selects how the graph is run. */
#include "graph/graph.h"

/* Elements that NumPy computes in the time of one scalar operation in a loop. */
enum { TRIPS_NODE = 10 };

typedef struct Work {
    CiContext *ctx;
    const CiGraph *graph;
    const CiShapeEnv *env; /* of the call; NULL: for any sizes */
    int64_t limit, total;
} Work;

static int64_t size_of(Work *w, const CiExpr *e);

/* The value of a symbol in this call, half of the iterations for a loop variable, or the
 * symbol's upper bound. */
static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    Work *w = arg;

    for (int k = 0; k < w->env->nsources; k++)
        if (strcmp(w->env->sources[k].symbol->name, symbol->name) == 0)
            return w->env->sources[k].hint;
    if (symbol->limit != NULL)
        return size_of(w, symbol->limit) / (symbol->symbol_kind == CI_SYMBOL_index ? 2 : 1);
    return symbol->high <= w->limit ? symbol->high : w->limit + 1;
}

static int64_t
size_of(Work *w, const CiExpr *e)
{
    int64_t size = w->env == NULL             ? e->high
                   : e->kind == CI_EXPR_const ? e->value
                                              : ci_expr_evaluate(w->ctx, e, value_of, w);
    return size < 0 ? 0 : size > w->limit ? w->limit + 1 : size;
}

static int64_t count_elements(Work *w, const CiBlock *block, int64_t own);

static bool
has_param(const CiBlock *block, const CiNode *node)
{
    for (int k = 0; k < block->nparams; k++)
        if (block->params[k] == node)
            return true;
    return false;
}

/* The number of iterations of a while is unknown, except if it counts them in a symbol with a
 * limit. */
static int64_t
trips_of(Work *w, const CiNode *region)
{
    if (region->op == CI_OP_if)
        return 1;
    if (region->op == CI_OP_for)
        return size_of(w, region->starts[0]);
    const CiBlock *body = region->blocks[region->nblocks - 1];
    for (int k = 0; k < body->nnodes; k++) {
        const CiNode *node = body->nodes[k];
        if (node->op == CI_OP_define && node->starts[0]->limit != NULL &&
            has_param(region->blocks[0], node->args[0]))
            return size_of(w, node->starts[0]->limit);
    }
    return w->limit + 1;
}

/* A node and what is inside it. */
static int64_t
count_node(Work *w, const CiNode *node, int64_t own)
{
    int64_t count = 1;

    for (int k = 0; k < node->rank && count <= w->limit; k++)
        count *= size_of(w, node->sizes[k]);
    for (int k = 0; k < node->nblocks && count <= w->limit; k++) {
        int64_t trips = trips_of(w, node);
        if (trips > 0)
            count += trips * count_elements(w, node->blocks[k], trips > 1 ? TRIPS_NODE : own);
    }
    return own + count;
}

static int64_t
count_elements(Work *w, const CiBlock *block, int64_t own)
{
    int64_t total = 0;

    for (int k = 0; k < block->nnodes && total <= w->limit; k++)
        total += count_node(w, block->nodes[k], own);
    return total > w->limit ? w->limit + 1 : total;
}

static void
body_count(CiContext *ctx, void *arg)
{
    Work *w = arg;
    w->ctx = ctx;
    w->total = count_elements(w, w->graph->body, 0);
}

bool
cx_graph_makes_at_most(const CiGraph *graph, int64_t limit)
{
    Work work = {.graph = graph, .limit = limit};
    body_count(NULL, &work);
    return work.total <= limit;
}

bool
cx_call_makes_at_most(CxTracer *t, int64_t limit)
{
    Work work = {.graph = t->graph, .env = t->env, .limit = limit};

    if (cx_protect(t->state, t->ctx, body_count, &work) < 0) { /* a size has no number here */
        PyErr_Clear();
        return false;
    }
    return work.total <= limit;
}
