/* Evaluates, during capture, conditions that only depend on the number of the iteration: their
 * truth in each iteration of a `for`. */
#include "graph/methods.h"
#include "region/region.h"

enum { MAX_DEPTH = 64 };

typedef struct Truths {
    const CiExpr *index;
    CiNode *condition;
    int64_t iteration, count;
    bool is_known;
    char *found; /* the truth in each iteration */
} Truths;

static int64_t
value_of(void *arg, const CiExpr *symbol)
{
    Truths *t = arg;
    t->is_known &= strcmp(symbol->name, t->index->name) == 0;
    return t->iteration;
}

static bool
is_whole_number(const CiNode *node)
{
    return node->rank == 0 && (node->dtype == CI_DTYPE_i64 || node->dtype == CI_DTYPE_bool);
}

static int64_t node_value(CiContext *ctx, Truths *t, const CiNode *node, int depth);

static int64_t
operator_value(CiContext *ctx, Truths *t, const CiNode *node, int depth)
{
    int64_t a = node_value(ctx, t, node->args[0], depth + 1);
    int64_t b = node->nargs > 1 ? node_value(ctx, t, node->args[1], depth + 1) : 0;

    switch (node->op) {
    case CI_OP_equal:
        return a == b;
    case CI_OP_not_equal:
        return a != b;
    case CI_OP_less:
        return a < b;
    case CI_OP_less_equal:
        return a <= b;
    case CI_OP_greater:
        return a > b;
    case CI_OP_greater_equal:
        return a >= b;
    case CI_OP_logical_and:
        return a && b;
    case CI_OP_logical_or:
        return a || b;
    case CI_OP_logical_not:
        return !a;
    case CI_OP_cast:
        return node->dtype == CI_DTYPE_bool ? a != 0 : a;
    case CI_OP_where:
        return a ? b : node_value(ctx, t, node->args[2], depth + 1);
    default:
        t->is_known = false;
        return 0;
    }
}

/* The value of an `if`'s result is that of the block that is taken. */
static int64_t
result_value(CiContext *ctx, Truths *t, const CiNode *node, int depth)
{
    const CiNode *region = node->args[0];

    t->is_known &= region->op == CI_OP_if;
    if (!t->is_known)
        return 0;
    const CiBlock *taken = region->blocks[!node_value(ctx, t, region->args[0], depth + 1)];
    return node_value(ctx, t, taken->results[node->index], depth + 1);
}

/* The node's value in the iteration; `is_known` is false if it depends on data. */
static int64_t
node_value(CiContext *ctx, Truths *t, const CiNode *node, int depth)
{
    if (!t->is_known || depth > MAX_DEPTH || !is_whole_number(node)) {
        t->is_known = false;
        return 0;
    }
    if (node->op == CI_OP_const)
        return node->value.i;
    if (node->op == CI_OP_expr)
        return ci_expr_evaluate(ctx, node->starts[0], value_of, t);
    if (node->op == CI_OP_result)
        return result_value(ctx, t, node, depth);
    if (node->nargs == 0) {
        t->is_known = false;
        return 0;
    }
    return operator_value(ctx, t, node, depth);
}

static void
body_truths(CiContext *ctx, void *arg)
{
    Truths *t = arg;
    for (t->iteration = 0; t->is_known && t->iteration < t->count; t->iteration++)
        t->found[t->iteration] = node_value(ctx, t, t->condition, 0) != 0;
}

static PyObject *
truth_list(const Truths *t)
{
    PyObject *list = PyList_New((Py_ssize_t)t->count);
    for (int64_t k = 0; list != NULL && k < t->count; k++)
        PyList_SET_ITEM(list, (Py_ssize_t)k, PyBool_FromLong(t->found[k]));
    return list;
}

/* truths(condition, count): the truth of a condition in each iteration of a `for`, as a list;
 * None if it depends on more than the number of the iteration. */
PyObject *
cx_block_truths(PyObject *self, PyObject *args)
{
    const CxBlock *b = (const CxBlock *)self;
    CxTracer *tracer = b->tracer;
    PyObject *condition = NULL, *result = NULL;
    long long count = 0;
    Truths t = {.is_known = true, .index = b->index};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OL:truths", &condition, &count))
        return NULL;
    t.condition = cx_region_node(tracer, condition);
    if (t.condition == NULL)
        return NULL;
    if (t.index == NULL || count < 0)
        Py_RETURN_NONE;
    t.count = count;
    t.found = PyMem_Malloc((size_t)count + 1);
    if (t.found == NULL)
        return PyErr_NoMemory();
    if (cx_protect(tracer->state, tracer->ctx, body_truths, &t) == 0)
        result = t.is_known ? truth_list(&t) : Py_NewRef(Py_None);
    PyMem_Free(t.found);
    return result;
}
