/* Finds where the symbols of a pending graph get their values when it runs: an axis of an array
 * that it reads or, if no array has the size, an additional int input. */
#include "base/map.h"
#include "graph/size.h"

typedef struct Resolve {
    CxTracer *tracer;
    const char *hidden; /* a symbol that no input defines */
} Resolve;

static bool
find_input(const CiGraph *g, CiSymbolSource *source)
{
    for (int k = 0; k < g->ninputs; k++)
        for (int axis = 0; axis < g->inputs[k]->rank; axis++)
            if (g->inputs[k]->sizes[axis] == source->symbol) {
                source->input = k;
                source->axis = axis;
                return true;
            }
    return false;
}

static bool
find_int(const CxTracer *t, CiSymbolSource *source)
{
    for (int k = 0; k < t->ninputs; k++)
        if (cx_symbol_number(t, t->inputs[k]) >= 0 &&
            strcmp(t->inputs[k]->expr->name, source->symbol->name) == 0) {
            source->input = k;
            source->axis = -1;
            return true;
        }
    return false;
}

static void
body_resolve(CiContext *ctx, void *arg)
{
    Resolve *r = arg;
    CiGraph *g = r->tracer->graph;
    CiShapeEnv *env = g->env;
    CiMap *used = ci_graph_symbols(g);

    (void)ctx;
    for (int k = 0; k < env->nsources && r->hidden == NULL; k++) {
        CiSymbolSource *source = &env->sources[k];
        if (ci_map_find(used, CI_KEY(source->symbol)) && !find_input(g, source) &&
            !find_int(r->tracer, source))
            r->hidden = source->symbol->name;
    }
}

/* Removes the sources of symbols that the graph does not use. */
static void
body_forget(CiContext *ctx, void *arg)
{
    CiShapeEnv *env = ((Resolve *)arg)->tracer->graph->env;
    int count = 0;

    (void)ctx;
    for (int k = 0; k < env->nsources; k++)
        if (env->sources[k].input >= 0)
            env->sources[count++] = env->sources[k];
    env->nsources = count;
}

static void
body_guards(CiContext *ctx, void *arg)
{
    CxTracer *t = ((Resolve *)arg)->tracer;

    for (int k = 0; k < t->graph->env->nguards; k++) {
        const CiShapeGuard *guard = &t->graph->env->guards[k];
        ci_shape_guard(ctx, t->env, guard->relation, ci_expr_copy(t->sym, guard->left),
                       ci_expr_copy(t->sym, guard->right), guard->loc);
    }
}

int
cx_symbol_number(const CxTracer *t, const CxStorage *input)
{
    for (int k = 0; input->expr != NULL && k < t->env->nsources; k++)
        if (t->env->sources[k].symbol == input->expr)
            return k;
    return -1;
}

static int
add_int(CxTracer *t, const char *name)
{
    int number = 0;
    while (strcmp(t->env->sources[number].symbol->name, name) != 0)
        number++;
    const CiSymbolSource *source = &t->env->sources[number];
    PyObject *traced = cx_traced_int(t, source->symbol);
    CxStorage *s = traced ? ((CxTraced *)traced)->storage : NULL;
    if (s != NULL && s->value == NULL) /* nothing may be decided by it, but the program gets it */
        s->value = PyLong_FromLongLong(source->hint);
    int result = s != NULL && s->value != NULL ? cx_build_input(s) : -1;
    Py_XDECREF(traced);
    return result;
}

int
cx_symbols_resolve(CxTracer *t)
{
    Resolve r = {t, NULL};

    if (t->graph->env->nsources == 0)
        return 0;
    do {
        r.hidden = NULL;
        if (cx_protect(t->state, t->ctx, body_resolve, &r) < 0 ||
            (r.hidden != NULL && add_int(t, r.hidden) < 0))
            return -1;
    } while (r.hidden != NULL);
    if (cx_protect(t->state, t->sym_ctx, body_guards, &r) < 0)
        return -1;
    return cx_protect(t->state, t->ctx, body_forget, &r);
}

typedef struct Learn {
    CxTracer *tracer;
    const CiExpr *symbol;
    int64_t value;
} Learn;

static void
body_learn(CiContext *ctx, void *arg)
{
    Learn *l = arg;
    CiShapeEnv *env = l->tracer->env;
    CiSymbolSource source = {l->symbol, -1, -1, l->value, false};
    CI_PUSH(ctx, env->sources, env->nsources, env->capsources, source);
}

static int
learn(CxTracer *t, const CiExpr *e, int64_t value)
{
    Learn job = {t, e, value};
    if (e->kind != CI_EXPR_symbol || cx_size_is_known(t, e))
        return 0;
    return cx_protect(t->state, t->sym_ctx, body_learn, &job);
}

int
cx_symbols_learn(CxStorage *s)
{
    CxTracer *t = s->tracer;

    if (s->expr != NULL && PyLong_CheckExact(s->value))
        return learn(t, s->expr, PyLong_AsLongLong(s->value));
    for (int k = 0; s->kind == CI_KIND_array && k < s->rank; k++)
        if (learn(t, s->sizes[k], PyArray_DIM((PyArrayObject *)s->value, k)) < 0)
            return -1;
    return 0;
}
