/* Estimates the time of a graph in NumPy with the sizes of this call. Little work is not worth a compile or a
 * break. The estimate only selects how the graph is run. */
#include <math.h>

#include "graph/graph.h"
#include "ir/plain.h"
#include "program/call_sizes.h"

typedef struct Work {
    CiSizes sizes;
    CiContext *ctx;
    const CiGraph *graph;
    const CiShapeEnv *env;   /* of the call that is captured; NULL: for any sizes */
    const CxCallSizes *call; /* of a run, or NULL */
    double unknown_size;
    bool has_guessed;      /* the latest size depends on a number that only the data has */
    bool is_least;         /* such numbers are assumed to be 1 */
    double seconds;
} Work;

static int64_t size_of(Work *w, const CiExpr *e);

/* The assumed value of an unknown size: half of the longest axis of the arguments. */
static double
likely_size(Work *w)
{
    enum { LEAST = 8 };
    double most = LEAST;

    if (w->is_least)
        return 1;
    for (int k = 0; k < w->graph->ninputs; k++)
        for (int axis = 0; axis < w->graph->inputs[k]->rank; axis++)
            most = fmax(most, (double)size_of(w, w->graph->inputs[k]->sizes[axis]));
    return fmax(most / 2, LEAST);
}

/* The value of a symbol in this call, or when it was captured; half of the iterations for a loop variable, or the
 * symbol's upper bound. */
static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    Work *w = arg;

    for (int k = 0; w->call != NULL && k < w->call->nplaces; k++)
        if (w->call->places[k].symbol == symbol)
            return cx_call_symbol((void *)(uintptr_t)w->call, symbol);
    for (int k = 0; k < w->env->nsources; k++)
        if (strcmp(w->env->sources[k].symbol->name, symbol->name) == 0)
            return w->env->sources[k].hint;
    if (symbol->limit != NULL)
        return size_of(w, symbol->limit) / (symbol->symbol_kind == CI_SYMBOL_index ? 2 : 1);
    w->has_guessed |= symbol->high == CI_INFINITY;
    return symbol->high == CI_INFINITY ? (int64_t)w->unknown_size : symbol->high;
}

static int64_t
size_of(Work *w, const CiExpr *e)
{
    w->has_guessed = false;
    int64_t size = w->env == NULL             ? e->high
                   : e->kind == CI_EXPR_const ? e->value
                                              : ci_expr_evaluate(w->ctx, e, value_of, w);
    if (size <= 0 && w->has_guessed) /* a difference of two guesses says nothing */
        size = (int64_t)w->unknown_size;
    return size < 0 ? 0 : size;
}

static double
as_number(const CiSizes *sizes, const CiExpr *e)
{
    return (double)size_of((Work *)sizes, e);
}

static void
body_estimate(CiContext *ctx, void *arg)
{
    Work *w = arg;
    w->ctx = ctx;
    if (w->env != NULL)
        w->unknown_size = likely_size(w);
    if (w->call == NULL && w->env != NULL)
        w->sizes.unknown_iterations = w->unknown_size;
    w->seconds = ci_plain_seconds(w->graph, &w->sizes);
}

double
cx_graph_seconds(const CiGraph *graph)
{
    Work work = {.sizes = {.of = as_number, .unknown_iterations = HUGE_VAL}, .graph = graph};
    body_estimate(NULL, &work);
    return work.seconds;
}

double
cx_call_seconds(CxTracer *t, CxEstimate what)
{
    Work work = {.sizes = {.of = as_number,
                           .counted = what == CX_OWN         ? CI_COUNT_operations
                                      : what == CX_CALLBACKS ? CI_COUNT_callbacks
                                                             : CI_COUNT_calls},
                 .graph = t->graph,
                 .env = t->env,
                 .unknown_size = 16,
                 .is_least = what == CX_LEAST};

    if (cx_protect(t->state, t->ctx, body_estimate, &work) < 0) { /* a size has no number here */
        PyErr_Clear();
        return HUGE_VAL;
    }
    return work.seconds;
}

double
cx_run_seconds(const CxProgram *program, const int64_t *const *sizes, const CiSlot *scalars)
{
    CxSizeSource *places = NULL;
    CxCallSizes call = {.graph = program->graph, .sizes = sizes, .scalars = scalars};
    Work work = {.sizes = {.of = as_number, .unknown_iterations = HUGE_VAL},
                 .graph = program->graph,
                 .env = program->graph->env,
                 .call = &call,
                 .unknown_size = 16};

    call.nplaces = cx_size_sources_find(program->graph, &places);
    call.places = places;
    bool is_found = call.nplaces >= 0 && cx_protect(program->state, program->ctx, body_estimate, &work) == 0;
    PyMem_Free(places);
    if (!is_found)
        PyErr_Clear();
    return is_found ? work.seconds : HUGE_VAL;
}
