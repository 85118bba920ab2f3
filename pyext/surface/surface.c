/* The methods of Tracer by which NumPy's surface builds a graph. They do no promotion: dtypes
 * are used as given. */
#include "graph/methods.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "state/docs.h"
#include "value/build.h"
#include "value/index.h"

PyObject *
cx_method_lift(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"value", "like", "constant", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *like = Py_None;
    int constant = 0;
    CiDtype dtype = CI_DTYPE_none;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|Op:lift", names, &value, &like, &constant))
        return NULL;
    if (like != Py_None && (dtype = cx_dtype_of_object(t->state, like)) == CI_DTYPE_none)
        return NULL;
    return cx_tracer_lift(t, value, dtype, constant != 0);
}

PyObject *
cx_method_note_break(PyObject *self, PyObject *reason)
{
    CX_ENTRY();
    if (cx_tracer_break((CxTracer *)self, "%S", reason) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *
cx_method_note_effect(PyObject *self, PyObject *reason)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    /* Operations with checks come first, because the original function may still repeat them. */
    if (cx_has_checks(t) && cx_tracer_flush(t, NULL, 0, true) < 0)
        return NULL;
    if (cx_tracer_note(t, reason) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *
cx_method_flush(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    if (cx_tracer_flush((CxTracer *)self, NULL, 0, true) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Closes an abandoned trace, because an exception may keep the tracer alive for long. */
PyObject *
cx_method_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    cx_tracer_end((CxTracer *)self);
    Py_RETURN_NONE;
}

/* Checks, where they depend on data, that operands have equal sizes, and gives equal sizes one
 * expression. Other differences are left to the code that builds the node. */
static int
fit_operands(CxTracer *t, int n, CxTraced **owned)
{
    const CiExpr *sizes[CI_MAX_RANK];
    int rank = 0;

    for (int k = 0; k < n; k++)
        if (!cx_broadcast_into(t, &rank, sizes, cx_rank(owned[k]), cx_sizes(owned[k])))
            return PyErr_Occurred() ? -1 : 0;
    for (int k = 0; k < n; k++) {
        CxTraced *fitted = cx_rank(owned[k]) > 0 ? cx_size_fit(owned[k], rank, sizes) : NULL;
        if (fitted != NULL)
            Py_SETREF(owned[k], fitted);
        else if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* Operands have one dtype: numbers take the dtype of the Traced ones. */
PyObject *
cx_method_apply(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    CxOperand operands[4] = {{0}};
    CxTraced *owned[4] = {NULL};
    PyObject *result = NULL;
    int nargs = (int)PyTuple_GET_SIZE(args) - 1;
    CiDtype dtype = CI_DTYPE_none;
    bool has_array = false;

    CX_ENTRY();
    const char *name = nargs >= 0 ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 0)) : NULL;
    if (name == NULL || nargs < 1 || nargs > 4)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_TypeError, "apply(op, *args) takes one to four operands");
    CiOp op = ci_op_find(name);
    if (op == CI_OP_none || (ci_op_arity(op) >= 0 && ci_op_arity(op) != nargs && op != CI_OP_where))
        return PyErr_Format(PyExc_ValueError, "no operation '%s' of %d operands", name, nargs);
    for (int k = op == CI_OP_where; k < nargs; k++) {
        PyObject *item = PyTuple_GET_ITEM(args, k + 1);
        if (dtype == CI_DTYPE_none && cx_is_traced(item))
            dtype = cx_dtype((CxTraced *)item);
    }
    for (int k = 0; k < nargs; k++) {
        bool is_condition = op == CI_OP_where && k == 0;
        PyObject *item = PyTuple_GET_ITEM(args, k + 1);
        CiDtype like = cx_is_traced(item) ? CI_DTYPE_none : is_condition ? CI_DTYPE_bool : dtype;
        owned[k] = (CxTraced *)cx_tracer_lift(t, item, like, false);
        if (owned[k] == NULL)
            goto done;
        has_array |= owned[k]->view != NULL || owned[k]->storage->kind == CI_KIND_array;
    }
    if (fit_operands(t, nargs, owned) < 0)
        goto done;
    for (int k = 0; k < nargs; k++) {
        operands[k].traced = owned[k];
        operands[k].want = cx_dtype(owned[k]);
    }
    CiNode *node = cx_build_pointwise(t, op, nargs, operands, CI_DTYPE_none,
                                      has_array ? CI_KIND_array : CI_KIND_scalar);
    result = cx_traced_from_node(t, node, has_array ? CI_KIND_array : CI_KIND_scalar);
done:
    for (int k = 0; k < nargs; k++)
        Py_XDECREF(owned[k]);
    return result;
}

PyObject *
cx_method_cast(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *type = NULL, *result = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:cast", &value, &type))
        return NULL;
    CiDtype dtype = cx_dtype_of_object(t->state, type);
    CxTraced *x = dtype == CI_DTYPE_none ? NULL : cx_lifted(t, value);
    int fits = x == NULL ? -1 : cx_python_number_fits(x, dtype);
    if (fits == 0) /* NumPy raises its own exception */
        PyErr_SetString(PyExc_OverflowError, "a number that may be out of bounds");
    if (fits > 0) {
        CiKind kind =
            x->view == NULL && x->storage->kind != CI_KIND_array ? CI_KIND_scalar : CI_KIND_array;
        result = cx_traced_from_node(t, cx_build_cast(t, x, dtype, kind), kind);
    }
    Py_XDECREF(x);
    return result;
}

/* fits(x, dtype) -> bool */
PyObject *
cx_method_fits(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *type = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:fits", &value, &type))
        return NULL;
    CiDtype dtype = cx_dtype_of_object(t->state, type);
    CxTraced *x = dtype == CI_DTYPE_none ? NULL : cx_lifted(t, value);
    int fits = x == NULL ? -1 : cx_numbers_fit(x, dtype);
    Py_XDECREF(x);
    return fits < 0 ? NULL : PyBool_FromLong(fits);
}

static PyObject *
fold(PyObject *self, PyObject *args, const char *format, CiOpKind first, CiOpKind second)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *axis = NULL, *result = NULL;
    const char *name = NULL;
    int axes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, format, &name, &value, &axis))
        return NULL;
    CiOp op = ci_op_find(name);
    if (op == CI_OP_none || (ci_op_kind(op) != first && ci_op_kind(op) != second))
        return PyErr_Format(PyExc_ValueError, "'%s' is no such operation", name);
    CxTraced *x = cx_lifted(t, value);
    int naxes = x == NULL ? -1 : cx_normalize_axes(axis, cx_rank(x), axes);
    if (naxes >= 0)
        result = cx_traced_from_node(t, cx_build_fold(t, op, x, naxes, axes), CI_KIND_array);
    Py_XDECREF(x);
    return result;
}

PyObject *
cx_method_reduce(PyObject *self, PyObject *args)
{
    return fold(self, args, "sOO:reduce", CI_OPKIND_reduce, CI_OPKIND_argreduce);
}

PyObject *
cx_method_scan(PyObject *self, PyObject *args)
{
    return fold(self, args, "sOO:scan", CI_OPKIND_scan, CI_OPKIND_scan);
}

PyObject *
cx_method_assign(PyObject *self, PyObject *args)
{
    PyObject *target = NULL, *value = NULL;

    (void)self;
    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:assign", &target, &value))
        return NULL;
    if (!cx_is_traced(target))
        return PyErr_Format(PyExc_TypeError, "assign() writes to a Traced array");
    if (cx_assign_value((CxTraced *)target, value, CX_ASSIGNED_READONLY) < 0)
        return NULL;
    Py_RETURN_NONE;
}

PyObject *
cx_method_as_scalar(PyObject *self, PyObject *value)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    if (!cx_is_traced(value) || cx_rank((CxTraced *)value) != 0)
        return PyErr_Format(PyExc_TypeError, "as_scalar() takes a 0-d Traced value");
    CxTraced *x = (CxTraced *)value;
    if (x->view == NULL && x->storage->kind == CI_KIND_scalar)
        return Py_NewRef(value);
    if (x->view == NULL && x->storage->value == NULL && cx_is_current(x))
        return cx_traced_from_node(t, cx_node(x), CI_KIND_scalar);
    return cx_traced_from_node(t, cx_build_cast(t, x, cx_dtype(x), CI_KIND_scalar), CI_KIND_scalar);
}

#define WITH(name, flags) CX_METHOD(Tracer, name, cx_method_##name, flags),
#define ARGS(name) WITH(name, METH_VARARGS)
#define KEYS(name)                                                                                 \
    CX_METHOD(Tracer, name, CX_KEYWORDS(cx_method_##name), METH_VARARGS | METH_KEYWORDS),
#define ONE(name) WITH(name, METH_O)
#define NONE(name) WITH(name, METH_NOARGS)

PyMethodDef cx_tracer_methods[] = {
#include "graph/methods.def"
    {NULL, NULL, 0, NULL},
};
