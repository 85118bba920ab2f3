/* The methods of Tracer that build a graph for NumPy's surface. No promotion here: dtypes are as
 * given. */
#include "array.h"
#include "build.h"
#include "methods.h"
#include "size.h"
#include "ufunc.h"

static CxTraced *
lifted(CxTracer *t, PyObject *value)
{
    return (CxTraced *)cx_tracer_lift(t, value, CI_DTYPE_none, false);
}

static int
order_from(const char *text, CxTraced *like, int rank, int8_t *order)
{
    int64_t strides[CI_MAX_RANK], sizes[CI_MAX_RANK];

    for (int k = 0; k < rank; k++)
        order[k] = (int8_t)(text[0] == 'F' ? rank - 1 - k : k);
    bool keeps = (text[0] == 'K' || text[0] == 'A') && like != NULL;
    if (keeps) {
        cx_size_samples(like->tracer, rank, cx_sizes(like), sizes);
        cx_size_samples(like->tracer, rank, cx_strides(like), strides);
    }
    if (keeps) /* stable: ties and single elements keep C order */
        for (int k = 1; k < rank; k++)
            for (int j = k; j > 0; j--) {
                int a = order[j - 1], b = order[j];
                if (sizes[a] == 1 || sizes[b] == 1 || llabs(strides[a]) >= llabs(strides[b]))
                    break;
                order[j - 1] = (int8_t)b;
                order[j] = (int8_t)a;
            }
    if (strchr("CFKA", text[0]) == NULL || text[0] == '\0') {
        PyErr_Format(PyExc_ValueError, "order must be one of 'C', 'F', 'A', or 'K' (got '%s')",
                     text);
        return -1;
    }
    return 0;
}

static PyObject *
method_lift(PyObject *self, PyObject *args, PyObject *kwargs)
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

static PyObject *
method_note_break(PyObject *self, PyObject *reason)
{
    CX_ENTRY();
    if (cx_tracer_break((CxTracer *)self, "%S", reason) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
method_note_effect(PyObject *self, PyObject *reason)
{
    CxTracer *t = (CxTracer *)self;

    CX_ENTRY();
    /* What may still have to be done again by the function itself comes first. */
    if (cx_has_checks(t) && cx_tracer_flush(t, NULL, 0, true) < 0)
        return NULL;
    if (cx_tracer_note(t, reason) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *
method_flush(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    if (cx_tracer_flush((CxTracer *)self, NULL, 0, true) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* For whoever gives a trace up: an exception may keep the tracer alive for long. */
static PyObject *
method_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    cx_tracer_end((CxTracer *)self);
    Py_RETURN_NONE;
}

static PyObject *
method_specialized(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyList_GetSlice(((CxTracer *)self)->specialized, 0, PY_SSIZE_T_MAX);
}

/* Operands of one dtype: numbers take the dtype of the Traced ones. */
static PyObject *
method_apply(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    CxOperand operands[4] = {{0}};
    CxTraced *held[4] = {NULL};
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
        held[k] = (CxTraced *)cx_tracer_lift(t, item, like, false);
        if (held[k] == NULL)
            goto done;
        has_array |= held[k]->view != NULL || held[k]->storage->kind == CI_KIND_array;
        operands[k].traced = held[k];
        operands[k].want = cx_dtype(held[k]);
    }
    CiNode *node = cx_build_pointwise(t, op, nargs, operands, CI_DTYPE_none,
                                      has_array ? CI_KIND_array : CI_KIND_scalar);
    result = cx_traced_from_node(t, node, has_array ? CI_KIND_array : CI_KIND_scalar);
done:
    for (int k = 0; k < nargs; k++)
        Py_XDECREF(held[k]);
    return result;
}

static PyObject *
method_cast(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *type = NULL, *result = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:cast", &value, &type))
        return NULL;
    CiDtype dtype = cx_dtype_of_object(t->state, type);
    CxTraced *x = dtype == CI_DTYPE_none ? NULL : lifted(t, value);
    if (x != NULL) {
        CiKind kind =
            x->view == NULL && x->storage->kind != CI_KIND_array ? CI_KIND_scalar : CI_KIND_array;
        result = cx_traced_from_node(t, cx_build_cast(t, x, dtype, kind), kind);
    }
    Py_XDECREF(x);
    return result;
}

static PyObject *
method_ufunc(PyObject *self, PyObject *args)
{
    PyObject *ufunc = NULL, *operands = NULL, *kwargs = NULL, *tuple = NULL, *result = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOO!:ufunc", &ufunc, &operands, &PyDict_Type, &kwargs))
        return NULL;
    tuple = PySequence_Tuple(operands);
    if (tuple != NULL)
        result = cx_ufunc_general((CxTracer *)self, ufunc, tuple, kwargs);
    Py_XDECREF(tuple);
    return result;
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
    CxTraced *x = lifted(t, value);
    int naxes = x == NULL ? -1 : cx_normalize_axes(axis, cx_rank(x), axes);
    if (naxes >= 0)
        result = cx_traced_from_node(t, cx_build_fold(t, op, x, naxes, axes), CI_KIND_array);
    Py_XDECREF(x);
    return result;
}

static PyObject *
method_reduce(PyObject *self, PyObject *args)
{
    return fold(self, args, "sOO:reduce", CI_OPKIND_reduce, CI_OPKIND_argreduce);
}

static PyObject *
method_scan(PyObject *self, PyObject *args)
{
    return fold(self, args, "sOO:scan", CI_OPKIND_scan, CI_OPKIND_scan);
}

static PyObject *
method_permute(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *order = NULL, *result = NULL;
    int64_t given[CI_MAX_RANK];
    int axes[CI_MAX_RANK];
    bool seen[CI_MAX_RANK] = {false};

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:permute", &value, &order))
        return NULL;
    int n = cx_axes_from(order, given, CI_MAX_RANK);
    CxTraced *x = n < 0 ? NULL : lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    if (n != cx_rank(x)) {
        PyErr_SetString(PyExc_ValueError, "axes don't match array");
        goto done;
    }
    for (int k = 0; k < n; k++) {
        int64_t axis = given[k] < 0 ? given[k] + n : given[k];
        if (axis < 0 || axis >= n || seen[axis]) {
            PyErr_SetString(PyExc_ValueError, axis >= 0 && axis < n ? "repeated axis in transpose"
                                                                    : "axes don't match array");
            goto done;
        }
        seen[axis] = true;
        axes[k] = (int)axis;
    }
    result = cx_make_permute(x, axes);
done:
    Py_DECREF(x);
    return result;
}

static PyObject *
reshape_or_expand(PyObject *self, PyObject *args,
                  PyObject *(*make)(CxTraced *, int, const CiExpr *const *))
{
    PyObject *value = NULL, *shape = NULL, *result = NULL;
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO", &value, &shape))
        return NULL;
    int rank = cx_shape_from((CxTracer *)self, shape, sizes);
    CxTraced *x = rank < 0 ? NULL : lifted((CxTracer *)self, value);
    if (x != NULL)
        result = make(x, rank, sizes);
    Py_XDECREF(x);
    return result;
}

static PyObject *
method_reshape(PyObject *self, PyObject *args)
{
    return reshape_or_expand(self, args, cx_make_reshape);
}

static PyObject *
method_expand(PyObject *self, PyObject *args)
{
    return reshape_or_expand(self, args, cx_make_expand);
}

static PyObject *
method_slice(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *lists[3] = {NULL}, *result = NULL;
    const CiExpr *numbers[3][CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOOO:slice", &value, &lists[0], &lists[1], &lists[2]))
        return NULL;
    CxTraced *x = lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    for (int k = 0; k < 3; k++) {
        int n = cx_shape_from((CxTracer *)self, lists[k], numbers[k]);
        if (n >= 0 && n != cx_rank(x))
            PyErr_SetString(PyExc_ValueError, "one start, step and size per axis are expected");
        if (n != cx_rank(x))
            goto done;
    }
    result = cx_make_slice(x, numbers[0], numbers[1], numbers[2]);
done:
    Py_DECREF(x);
    return result;
}

static PyObject *
method_diagonal(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *shift = NULL, *result = NULL;
    int axis1 = 0, axis2 = 1;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OiiO:diagonal", &value, &axis1, &axis2, &shift))
        return NULL;
    const CiExpr *offset = cx_size_from((CxTracer *)self, shift);
    CxTraced *x = offset == NULL ? NULL : lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    int rank = cx_rank(x);
    axis1 += axis1 < 0 ? rank : 0;
    axis2 += axis2 < 0 ? rank : 0;
    if (axis1 == axis2 || axis1 < 0 || axis2 < 0 || axis1 >= rank || axis2 >= rank)
        PyErr_SetString(PyExc_ValueError, axis1 == axis2 ? "axis1 and axis2 cannot be the same"
                                                         : "axis is out of bounds");
    else
        result = cx_make_diagonal(x, axis1, axis2, offset);
    Py_DECREF(x);
    return result;
}

static PyObject *
method_window(PyObject *self, PyObject *args)
{
    PyObject *value = NULL, *length = NULL, *result = NULL;
    int axis = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OiO:window", &value, &axis, &length))
        return NULL;
    const CiExpr *size = cx_size_from((CxTracer *)self, length);
    CxTraced *x = size == NULL ? NULL : lifted((CxTracer *)self, value);
    if (x == NULL)
        return NULL;
    if (axis < 0 || axis >= cx_rank(x) || cx_rank(x) + 1 > CI_MAX_RANK)
        PyErr_SetString(PyExc_ValueError, "axis is out of bounds, or too many axes");
    else
        result = cx_make_window(x, axis, size);
    Py_DECREF(x);
    return result;
}

static PyObject *
method_copy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "order", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *result = NULL;
    const char *order = "C";
    int8_t axes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s:copy", names, &value, &order))
        return NULL;
    CxTraced *x = lifted(t, value);
    if (x != NULL && order_from(order, x, cx_rank(x), axes) == 0)
        result = cx_traced_from_node(t, cx_build_copy(t, x, axes), CI_KIND_array);
    Py_XDECREF(x);
    return result;
}

static PyObject *
method_assign(PyObject *self, PyObject *args)
{
    PyObject *target = NULL, *value = NULL;

    (void)self;
    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:assign", &target, &value))
        return NULL;
    if (!cx_is_traced(target))
        return PyErr_Format(PyExc_TypeError, "assign() writes to a Traced array");
    if (cx_assign_value((CxTraced *)target, value, "assignment destination is read-only") < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The sizes of the axes that are not joined are those of the first. */
static int
fit_to_first(CxTraced **items, Py_ssize_t n, int axis)
{
    for (Py_ssize_t k = 1; k < n; k++) {
        const CiExpr *sizes[CI_MAX_RANK];
        int rank = cx_rank(items[k]);
        if (rank != cx_rank(items[0]))
            return 0; /* the graph refuses it */
        for (int d = 0; d < rank; d++) {
            sizes[d] = cx_sizes(items[k])[d];
            const CiExpr *first = cx_sizes(items[0])[d];
            if (d == axis || sizes[d] == first)
                continue;
            if (cx_size_join(items[0]->tracer, first, sizes[d]) != NULL)
                sizes[d] = first;
            else if (PyErr_Occurred())
                return -1;
        }
        CxTraced *fitted = cx_size_fit(items[k], rank, sizes);
        if (fitted == NULL)
            return -1;
        Py_SETREF(items[k], fitted);
    }
    return 0;
}

static PyObject *
method_concat(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *items = NULL, *fast = NULL, *result = NULL;
    CxTraced **held = NULL;
    Py_ssize_t n = 0;
    int axis = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "Oi:concat", &items, &axis))
        return NULL;
    fast = PySequence_Fast(items, "a sequence is expected");
    if (fast == NULL)
        return NULL;
    n = PySequence_Fast_GET_SIZE(fast);
    held = PyMem_Calloc((size_t)n + 1, sizeof *held);
    if (held == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t k = 0; k < n; k++)
        if ((held[k] = lifted(t, PySequence_Fast_GET_ITEM(fast, k))) == NULL)
            goto done;
    if (n == 0)
        PyErr_SetString(PyExc_ValueError, "need at least one array to concatenate");
    else if (fit_to_first(held, n, axis < 0 ? axis + cx_rank(held[0]) : axis) == 0)
        result = cx_traced_from_node(
            t, cx_build_concat(t, (int)n, held, axis < 0 ? axis + cx_rank(held[0]) : axis),
            CI_KIND_array);
done:
    for (Py_ssize_t k = 0; held != NULL && k < n; k++)
        Py_XDECREF(held[k]);
    PyMem_Free(held);
    Py_DECREF(fast);
    return result;
}

static PyObject *
fill(PyObject *self, PyObject *args, PyObject *kwargs, bool has_value)
{
    static char *full_names[] = {"shape", "value", "dtype", "order", NULL},
                *empty_names[] = {"shape", "dtype", "order", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *shape = NULL, *value = NULL, *type = NULL, *result = NULL;
    const char *order = "C";
    const CiExpr *sizes[CI_MAX_RANK];
    int8_t axes[CI_MAX_RANK];
    char element[16] = {0};
    CiConst constant;

    CX_ENTRY();
    if (has_value ? !PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|s:full", full_names, &shape,
                                                 &value, &type, &order)
                  : !PyArg_ParseTupleAndKeywords(args, kwargs, "OO|s:empty", empty_names, &shape,
                                                 &type, &order))
        return NULL;
    CiDtype dtype = cx_dtype_of_object(t->state, type);
    int rank = dtype == CI_DTYPE_none ? -1 : cx_shape_from(t, shape, sizes);
    if (rank < 0 || order_from(order, NULL, rank, axes) < 0)
        return NULL;
    for (int k = 0; k < rank; k++) {
        int fits = sizes[k]->low >= 0 ? 1
                                      : cx_size_require(t, CI_REL_le, t->zero, sizes[k],
                                                        "a size that may be negative");
        if (fits == 0)
            PyErr_SetString(PyExc_ValueError, "negative dimensions are not allowed");
        if (fits != 1)
            return NULL;
    }
    if (has_value && cx_is_traced(value)) { /* an empty array, then written */
        result =
            cx_traced_from_node(t, cx_build_fill(t, dtype, rank, sizes, axes, NULL), CI_KIND_array);
        if (result != NULL && cx_assign_value((CxTraced *)result, value, "") < 0)
            Py_CLEAR(result);
        return result;
    }
    if (has_value) {
        if (PyArray_Pack(cx_descr(t->state, dtype), element, value) < 0)
            return NULL;
        constant = ci_const_load(dtype, element);
    }
    return cx_traced_from_node(
        t, cx_build_fill(t, dtype, rank, sizes, axes, has_value ? &constant : NULL), CI_KIND_array);
}

static PyObject *
method_full(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return fill(self, args, kwargs, true);
}

static PyObject *
method_empty(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return fill(self, args, kwargs, false);
}

static PyObject *
method_iota(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *shape = NULL;
    const CiExpr *sizes[CI_MAX_RANK];
    int axis = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "Oi:iota", &shape, &axis))
        return NULL;
    int rank = cx_shape_from(t, shape, sizes);
    return rank < 0 ? NULL
                    : cx_traced_from_node(t, cx_build_iota(t, rank, sizes, axis), CI_KIND_array);
}

static PyObject *
method_extern(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",  "key",   "callable",  "operands",
                            "shape", "dtype", "positions", NULL};
    int positions = -1;
    CxTracer *t = (CxTracer *)self;
    PyObject *callable = NULL, *operands = NULL, *shape = NULL, *type = NULL, *fast = NULL,
             *result = NULL;
    const char *name = NULL, *key = NULL;
    CxTraced *held[16] = {NULL};
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ssOOOO|i:extern", names, &name, &key, &callable,
                                     &operands, &shape, &type, &positions))
        return NULL;
    fast = PySequence_Fast(operands, "a sequence of operands is expected");
    CiDtype dtype = fast == NULL ? CI_DTYPE_none : cx_dtype_of_object(t->state, type);
    int rank = dtype == CI_DTYPE_none ? -1 : cx_shape_from(t, shape, sizes);
    Py_ssize_t n = rank < 0 ? 0 : PySequence_Fast_GET_SIZE(fast);
    if (n > 16) {
        PyErr_SetString(PyExc_ValueError, "a library call takes at most 16 operands");
        rank = -1;
        n = 0;
    }
    for (Py_ssize_t k = 0; k < n; k++)
        if ((held[k] = lifted(t, PySequence_Fast_GET_ITEM(fast, k))) == NULL)
            goto done;
    if (rank >= 0) {
        const CiExtern *ext = cx_extern_find(t->state, name, key, callable, positions + 1);
        CiOp op = ci_op_find(name);
        if (op == CI_OP_none || ci_op_kind(op) != CI_OPKIND_extern)
            op = CI_OP_extern;
        if (ext != NULL)
            result = cx_traced_from_node(
                t, cx_build_extern(t, op, ext, dtype, (int)n, held, rank, sizes), CI_KIND_array);
    }
done:
    for (Py_ssize_t k = 0; k < n; k++)
        Py_XDECREF(held[k]);
    Py_XDECREF(fast);
    return result;
}

static PyObject *
method_as_scalar(PyObject *self, PyObject *value)
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

#define METHOD(name, flags)                                                                        \
    {                                                                                              \
#name, (PyCFunction)(void (*)(void))method_##name, flags, NULL                             \
    }

PyMethodDef cx_tracer_methods[] = {
    {"array", (PyCFunction)(void (*)(void))cx_tracer_array_method, METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"scalar", (PyCFunction)(void (*)(void))cx_tracer_scalar_method, METH_VARARGS | METH_KEYWORDS,
     NULL},
    METHOD(specialized, METH_NOARGS),
    {"symbol", (PyCFunction)(void (*)(void))cx_tracer_symbol, METH_VARARGS | METH_KEYWORDS, NULL},
    {"assume", (PyCFunction)(void (*)(void))cx_tracer_assume, METH_VARARGS | METH_KEYWORDS, NULL},
    {"forget", cx_tracer_forget, METH_O, NULL},
    {"layout", cx_tracer_layout, METH_O, NULL},
    {"shape_guards", cx_tracer_shape_guards, METH_NOARGS, NULL},
    METHOD(lift, METH_VARARGS | METH_KEYWORDS),
    {"number", cx_tracer_number, METH_VARARGS, NULL},
    METHOD(note_break, METH_O),
    METHOD(note_effect, METH_O),
    METHOD(flush, METH_NOARGS),
    METHOD(close, METH_NOARGS),
    METHOD(apply, METH_VARARGS),
    METHOD(cast, METH_VARARGS),
    METHOD(ufunc, METH_VARARGS),
    METHOD(reduce, METH_VARARGS),
    METHOD(scan, METH_VARARGS),
    METHOD(permute, METH_VARARGS),
    METHOD(reshape, METH_VARARGS),
    METHOD(slice, METH_VARARGS),
    METHOD(expand, METH_VARARGS),
    METHOD(diagonal, METH_VARARGS),
    METHOD(window, METH_VARARGS),
    {"broadcast", (PyCFunction)(void (*)(void))cx_tracer_broadcast, METH_O, NULL},
    {"size_min", (PyCFunction)(void (*)(void))cx_tracer_size_min, METH_VARARGS, NULL},
    {"size_max", (PyCFunction)(void (*)(void))cx_tracer_size_max, METH_VARARGS, NULL},
    METHOD(copy, METH_VARARGS | METH_KEYWORDS),
    METHOD(assign, METH_VARARGS),
    METHOD(concat, METH_VARARGS),
    METHOD(full, METH_VARARGS | METH_KEYWORDS),
    METHOD(empty, METH_VARARGS | METH_KEYWORDS),
    METHOD(iota, METH_VARARGS),
    METHOD(extern, METH_VARARGS | METH_KEYWORDS),
    METHOD(as_scalar, METH_O),
    {"mark", cx_tracer_mark, METH_NOARGS, NULL},
    {"restore", cx_tracer_restore, METH_O, NULL},
    {"written", cx_tracer_written, METH_O, NULL},
    {"block", cx_tracer_block, METH_NOARGS, NULL},
    {"region", cx_tracer_region, METH_VARARGS, NULL},
    {"set_version", cx_tracer_set_version, METH_VARARGS, NULL},
    {"mixed", cx_tracer_mixed, METH_VARARGS, NULL},
    {"select", cx_tracer_select, METH_VARARGS, NULL},
    {"check", cx_tracer_check, METH_VARARGS, NULL},
    {"is_before", cx_tracer_is_before, METH_VARARGS, NULL},
    {"work_since", cx_tracer_work_since, METH_O, NULL},
    {"prepare", cx_tracer_prepare, METH_O, NULL},
    {"settled", cx_tracer_settled, METH_O, NULL},
    {"as_python", cx_tracer_as_python, METH_O, NULL},
    {"is_fixed", cx_tracer_is_fixed, METH_O, NULL},
    {"at_least", cx_tracer_at_least, METH_VARARGS, NULL},
    {"is_positive", cx_tracer_is_positive, METH_O, NULL},
    {"forget_guards", cx_tracer_forget_guards, METH_O, NULL},
    {"usually_positive", cx_tracer_usually_positive, METH_O, NULL},
    {"define", cx_tracer_define, METH_VARARGS, NULL},
    {"fitted", cx_tracer_fitted, METH_VARARGS, NULL},
    {"last_value", cx_tracer_last_value, METH_VARARGS, NULL},
    {"most", cx_tracer_most, METH_VARARGS, NULL},
    {"truths", cx_tracer_truths, METH_VARARGS, NULL},
    {"varying", cx_tracer_varying, METH_VARARGS, NULL},
    {"blank", cx_tracer_blank, METH_VARARGS, NULL},
    {"detached", cx_tracer_detached, METH_O, NULL},
    {"same_type", cx_tracer_same_type, METH_VARARGS, NULL},
    {"gather", (PyCFunction)(void (*)(void))cx_tracer_gather, METH_VARARGS | METH_KEYWORDS, NULL},
    {"scatter", (PyCFunction)(void (*)(void))cx_tracer_scatter, METH_VARARGS | METH_KEYWORDS, NULL},
    {"compress", cx_tracer_compress, METH_VARARGS, NULL},
    {"may_check", cx_tracer_may_check, METH_NOARGS, NULL},
    {"undo", cx_tracer_undo, METH_NOARGS, NULL},
    {"finish", (PyCFunction)(void (*)(void))cx_tracer_finish, METH_VARARGS | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};
