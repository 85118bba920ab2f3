/* Calls of Python's functions of numbers (math, float, int, round, bool) in the graph.
 *
 * Numbers are doubles, as in Python. Where Python would raise, a check precedes the result; if
 * it fails, Python's own function runs. If the values of all operands are known, Python computes
 * the value of the call during capture. */
#include "graph/methods.h"
#include "graph/size.h"
#include "value/python_int.h"

typedef enum Result { RESULT_plain, RESULT_finite, RESULT_real, RESULT_whole, RESULT_truth } Result;
typedef enum Looked { LOOKED_nothing, LOOKED_first, LOOKED_size } Looked;

typedef struct Row {
    const char *name;
    int nargs;
    CiOp op;
    Looked looked; /* the value compared with the bound; the check fails if it holds */
    CiOp comparison;
    double bound;
    Result result;
} Row;

#define NEVER LOOKED_nothing, CI_OP_none, 0.0
#define FAILS(value, comparison, bound) LOOKED_##value, CI_OP_##comparison, bound
#define CALL(name, operands, op, fails, result)                                                    \
    {#name, operands, CI_OP_##op, fails, RESULT_##result},
static const Row rows[] = {
#include "operation/math.def"
};
#undef NEVER
#undef FAILS

typedef struct Call {
    CxNumber number;
    const Row *row;
    CiOp op;
} Call;

static const Row *
find_row(const char *name)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(rows[k].name, name) == 0)
            return &rows[k];
    return NULL;
}

/* The operation that computes with the C library what another one computes with its own code. */
static CiOp
twin_of(CiOp op)
{
    switch (op) {
#define TWIN(name)                                                                                 \
    case CI_OP_##name:                                                                             \
        return CI_OP_scalar_##name;
#include "operation/math.def"
    default:
        return op;
    }
}

/* ---- the graph ---- */

static CiNode *
apply(Call *c, CiOp op, CiNode *a, CiNode *b)
{
    return cx_number_apply(&c->number, op, a, b);
}

static CiNode *
constant(Call *c, double value)
{
    return cx_number_constant(&c->number, CI_DTYPE_f64, value);
}

static CiNode *
cast(Call *c, CiNode *node, CiDtype dtype)
{
    const CxBuilding *at = &c->number.building;
    CiNode *made = ci_graph_cast(at->graph, node, dtype, at->loc);
    if (made == node) /* the argument keeps its kind */
        made = ci_graph_copy(at->graph, node, node->order, at->loc);
    return ci_node_set_kind(made, CI_KIND_python);
}

static CiNode *
operand(Call *c, int k)
{
    const CxNumber *n = &c->number;
    if (n->traced[k] == NULL)
        return constant(c, ci_const_cast(n->values[k], n->dtypes[k], CI_DTYPE_f64).re);
    return cast(c, cx_node(n->traced[k]), CI_DTYPE_f64);
}

static void
check(Call *c, CiNode *condition, const char *why)
{
    cx_number_check(&c->number, condition, why);
}

static void
check_domain(Call *c, CiNode *x)
{
    const Row *row = c->row;

    if (row->looked == LOOKED_nothing)
        return;
    CiNode *value = row->looked == LOOKED_size ? apply(c, CI_OP_absolute, x, NULL) : x;
    CiNode *fails = apply(c, row->comparison, value, constant(c, row->bound));
    check(c, apply(c, CI_OP_logical_not, fails, NULL), "a number outside a function's domain");
}

static CiNode *
finish(Call *c, CiNode *x, CiNode *y)
{
    switch (c->row->result) {
    case RESULT_plain:
        break;
    case RESULT_finite: /* an infinity that is not caused by an infinite operand */
        check(c,
              apply(c, CI_OP_logical_or, apply(c, CI_OP_isfinite, y, NULL),
                    apply(c, CI_OP_logical_not, apply(c, CI_OP_isfinite, x, NULL), NULL)),
              "a number out of range");
        break;
    case RESULT_real:
        check(c, apply(c, CI_OP_isfinite, y, NULL), "a number out of range");
        break;
    case RESULT_whole:
        check(c, apply(c, CI_OP_less, apply(c, CI_OP_absolute, y, NULL), constant(c, 0x1p63)),
              "an int of more than 64 bits");
        return cast(c, y, CI_DTYPE_i64);
    case RESULT_truth:
        return apply(c, CI_OP_not_equal, y, constant(c, 0.0));
    }
    return y;
}

static void
body_call(CiContext *ctx, void *arg)
{
    Call *c = arg;
    bool is_whole =
        c->row->result == RESULT_whole && ci_dtype_class(c->number.dtypes[0]) != CI_CLASS_float;

    (void)ctx;
    if (is_whole) {
        CiDtype dtype = c->number.dtypes[0] == CI_DTYPE_u64 ? CI_DTYPE_u64 : CI_DTYPE_i64;
        c->number.building.result = cast(c, cx_node(c->number.traced[0]), dtype);
        return;
    }
    CiNode *x = operand(c, 0), *y = c->row->nargs > 1 ? operand(c, 1) : NULL;
    check_domain(c, x);
    c->number.building.result = finish(c, x, apply(c, c->op, x, y));
}

/* ---- the call ---- */

/* Returns false if the graph cannot have this number. */
static bool
set_operand(Call *c, int k, PyObject *o)
{
    if (cx_is_traced(o)) {
        c->number.traced[k] = (CxTraced *)o;
        c->number.dtypes[k] = cx_dtype(c->number.traced[k]);
        return cx_rank(c->number.traced[k]) == 0 &&
               ci_dtype_class(c->number.dtypes[k]) != CI_CLASS_complex;
    }
    if (!PyFloat_CheckExact(o) && !PyLong_CheckExact(o))
        return false;
    double value = PyFloat_AsDouble(o);
    if (value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear(); /* Python raises it again */
        return false;
    }
    c->number.dtypes[k] = CI_DTYPE_f64;
    c->number.values[k] = (CiConst){0, value, 0.0};
    return true;
}

/* Calls Python's function if all operands are known; otherwise NULL without an exception. */
static PyObject *
known_value(PyObject *function, PyObject *args)
{
    Py_ssize_t nargs = PyTuple_GET_SIZE(args);
    PyObject *values[2];

    for (Py_ssize_t k = 0; k < nargs; k++) {
        PyObject *item = PyTuple_GET_ITEM(args, k);
        if (cx_is_traced(item) && !cx_is_python_kind(item))
            return NULL;
        if ((values[k] = cx_python_value(item)) == NULL)
            return NULL;
    }
    return PyObject_Vectorcall(function, values, (size_t)nargs, NULL);
}

static bool
has_check(const Call *c)
{
    return c->row->looked != LOOKED_nothing || c->row->result == RESULT_finite ||
           c->row->result == RESULT_real || c->row->result == RESULT_whole;
}

/* True if the checks accept the call that Python computed; they may refuse a call that Python
 * accepts. */
static bool
passes(const Call *c, PyObject *value)
{
    int overflow = 0;

    if (c->row->result == RESULT_real)
        return isfinite(PyFloat_AsDouble(value));
    if (c->row->result == RESULT_whole) {
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0 && number != LLONG_MIN;
    }
    return true;
}

/* Guards the values of the operands, because Python raised for them and this is part of the
 * call. */
static void
specialize(const Call *c)
{
    PyObject *exception = cx_take_exception();
    for (int k = 0; k < 2; k++)
        if (c->number.traced[k] != NULL && cx_tracer_specialize(c->number.traced[k]->storage) < 0)
            PyErr_Clear();
    cx_restore_exception(exception);
}

/* number(name, function, args): function(*args) for numbers, of which at least one is Traced, as
 * a Python number. NotImplemented if the graph has no such call, or if it needs a run-time check
 * where none is possible. */
PyObject *
cx_method_number(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    const char *name;
    PyObject *function, *items;
    Call c = {.row = NULL};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "sOO!:number", &name, &function, &PyTuple_Type, &items))
        return NULL;
    c.row = find_row(name);
    if (c.row == NULL || c.row->nargs != PyTuple_GET_SIZE(items))
        Py_RETURN_NOTIMPLEMENTED;
    c.op = c.row->op;
    if (cx_needs_routine(t, c.op, CI_DTYPE_f64, CI_KIND_python)) {
        c.op = twin_of(c.op);
        if (c.op == c.row->op)
            Py_RETURN_NOTIMPLEMENTED;
    }
    for (int k = 0; k < c.row->nargs; k++)
        if (!set_operand(&c, k, PyTuple_GET_ITEM(items, k)))
            Py_RETURN_NOTIMPLEMENTED;
    PyObject *value = known_value(function, items);
    if (value == NULL && PyErr_Occurred()) {
        specialize(&c);
        return NULL;
    }
    c.number.nargs = c.row->nargs;
    c.number.may_check = cx_may_check(t);
    bool fits = (!has_check(&c) || c.number.may_check) && (value == NULL || passes(&c, value));
    PyObject *result =
        fits ? cx_number_build(t, &c.number, body_call, value) : Py_NewRef(Py_NotImplemented);
    Py_XDECREF(value);
    return result;
}
