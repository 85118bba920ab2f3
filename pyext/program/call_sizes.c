/* Compares the sizes of one call with a graph's types of its inputs. A program trusts these
 * types when it reads its inputs, so a call with other sizes must not reach it. */
#include "program/call_sizes.h"

static int
add_size_source(CxSizeSource *places, int count, const CiExpr *symbol, int input, int axis)
{
    /* One axis is enough for a size; every int is checked. */
    for (int k = 0; k < count && axis >= 0; k++)
        if (places[k].symbol == symbol)
            return count;
    places[count] = (CxSizeSource){symbol, input, axis};
    return count + 1;
}

/* The index, among scalars, of an input that is a Python number. */
static int
scalar_of(const CiGraph *graph, int input)
{
    int number = 0;
    for (int k = 0; k < input; k++)
        number += graph->inputs[k]->kind == CI_KIND_python;
    return number;
}

int
cx_size_sources_find(const CiGraph *graph, CxSizeSource **places)
{
    int count = 0;
    size_t most = (size_t)graph->env->nsources + 1;

    for (int k = 0; k < graph->ninputs; k++)
        most += (size_t)graph->inputs[k]->rank;
    *places = PyMem_Calloc(most, sizeof **places);
    if (*places == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int k = 0; k < graph->ninputs; k++)
        for (int axis = 0; axis < graph->inputs[k]->rank; axis++)
            if (graph->inputs[k]->sizes[axis]->kind == CI_EXPR_symbol)
                count = add_size_source(*places, count, graph->inputs[k]->sizes[axis], k, axis);
    for (int k = 0; k < graph->env->nsources; k++) {
        const CiSymbolSource *source = &graph->env->sources[k];
        if (source->axis < 0 && !source->is_unbacked)
            count = add_size_source(*places, count, source->symbol, scalar_of(graph, source->input), -1);
    }
    return count;
}

static int64_t
value_at(const CxCallSizes *call, const CxSizeSource *place)
{
    return place->axis < 0 ? call->scalars[place->input].i : call->sizes[place->input][place->axis];
}

int64_t
cx_call_symbol(void *arg, const CiExpr *symbol)
{
    const CxCallSizes *call = arg;
    for (int k = 0; k < call->nplaces; k++)
        if (call->places[k].symbol == symbol)
            return value_at(call, &call->places[k]);
    ci_fail(call->graph->ctx, CI_ERR_VALUE, "no input shows the value of %s", symbol->name);
}

static int64_t
evaluate(CiContext *ctx, const CxCallSizes *call, const CiExpr *e)
{
    return e->kind == CI_EXPR_const ? e->value
                                    : ci_expr_evaluate(ctx, e, cx_call_symbol, (void *)(uintptr_t)call);
}

/* True if each occurrence of a symbol has the same value, in the symbol's range. */
static bool
size_sources_agree(const CxCallSizes *call)
{
    for (int k = 0; k < call->nplaces; k++) {
        const CxSizeSource *place = &call->places[k];
        int64_t value = value_at(call, place);
        if (value < place->symbol->low || value > place->symbol->high ||
            value != cx_call_symbol((void *)(uintptr_t)call, place->symbol))
            return false;
    }
    return true;
}

bool
cx_call_sizes_fit(CiContext *ctx, const CxCallSizes *call, int *wrong)
{
    const CiGraph *g = call->graph;

    *wrong = -1;
    for (int k = 0; k < g->ninputs; k++)
        for (int axis = 0; axis < g->inputs[k]->rank; axis++)
            if (call->sizes[k][axis] != evaluate(ctx, call, g->inputs[k]->sizes[axis])) {
                *wrong = k;
                return false;
            }
    if (!size_sources_agree(call))
        return false;
    for (int k = 0; k < g->env->nguards; k++) {
        const CiShapeGuard *guard = &g->env->guards[k];
        if (!ci_relation_is_true(guard->relation, evaluate(ctx, call, guard->left),
                                 evaluate(ctx, call, guard->right)))
            return false;
    }
    return true;
}

bool
cx_call_strides_differ(CiContext *ctx, const CxCallSizes *call, int input)
{
    const CiGraph *g = call->graph;
    bool differ = false;

    for (int axis = 0; axis < g->inputs[input]->rank; axis++) {
        int64_t size = call->sizes[input][axis];
        if (size == 0)
            return false;
        differ |= size > 1 && call->strides[input][axis] != evaluate(ctx, call, g->strides[input][axis]);
    }
    return differ;
}

/* ---- guards as Python objects ---- */

typedef struct Shown {
    const CiShapeGuard *guard;
    CiText left, right;
} Shown;

static void
body_print(CiContext *ctx, void *arg)
{
    Shown *shown = arg;
    shown->left = ci_text_new(ctx);
    shown->right = ci_text_new(ctx);
    ci_expr_print(&shown->left, shown->guard->left, CI_STYLE_text);
    ci_expr_print(&shown->right, shown->guard->right, CI_STYLE_text);
}

PyObject *
cx_program_guards(PyObject *self, void *closure)
{
    static const char *const RELATIONS[] = {
        [CI_REL_eq] = "==", [CI_REL_ne] = "!=", [CI_REL_le] = "<=", [CI_REL_lt] = "<"};
    CxProgram *p = (CxProgram *)self;
    const CiShapeEnv *env = p->graph->env;
    PyObject *tuple = PyTuple_New(env->nguards);

    (void)closure;
    for (int k = 0; tuple != NULL && k < env->nguards; k++) {
        Shown shown = {.guard = &env->guards[k]};
        PyObject *one = cx_protect(p->state, p->ctx, body_print, &shown) < 0
                            ? NULL
                            : Py_BuildValue("(sssi)", RELATIONS[shown.guard->relation],
                                            shown.left.data, shown.right.data, shown.guard->loc.line);
        cx_put_item(&tuple, k, one);
    }
    return tuple;
}
