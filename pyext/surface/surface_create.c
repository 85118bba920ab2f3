/* The methods of Tracer that make arrays: filled, copied, joined, computed by a library call. */
#include "graph/methods.h"
#include "ir/layout.h"
#include "operation/ufunc.h"
#include "program/program.h"
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

typedef struct Layout {
    const CxTraced *x;
    const CiExpr *steps[CI_MAX_RANK]; /* |stride| */
    bool is_c, is_fortran;
} Layout;

static void
body_layout(CiContext *ctx, void *arg)
{
    Layout *l = arg;
    const CxTraced *x = l->x;
    CiSym *sym = x->tracer->sym;
    int64_t unit = (int64_t)ci_dtype_size(cx_dtype(x));
    int rank = cx_rank(x);

    (void)ctx;
    l->is_c = ci_layout_has_dense_steps(sym, rank, cx_sizes(x), cx_strides(x), unit, false);
    l->is_fortran = ci_layout_has_dense_steps(sym, rank, cx_sizes(x), cx_strides(x), unit, true);
    for (int k = 0; k < rank; k++) {
        const CiExpr *stride = cx_strides(x)[k];
        l->steps[k] = stride->low >= 0 ? stride : ci_expr_max(sym, stride, ci_expr_neg(sym, stride));
    }
}

/* Sorts the axes by |stride|, the largest outermost; ties keep C order. Guards comparisons that
 * depend on this call. */
static int
sort_axes(CxTracer *t, int rank, const CiExpr *const *steps, int8_t *order)
{
    int64_t values[CI_MAX_RANK];
    int status = 0;

    cx_size_samples(t, rank, steps, values);
    for (int k = 1; k < rank; k++) {
        int8_t axis = order[k];
        int place = k;
        for (; place > 0 && values[order[place - 1]] < values[axis]; place--)
            order[place] = order[place - 1];
        order[place] = axis;
    }
    for (int k = 1; k < rank && status >= 0; k++) {
        const CiExpr *outer = steps[order[k - 1]], *inner = steps[order[k]];
        if (cx_size_is_known(t, outer) && cx_size_is_known(t, inner))
            status = cx_size_decide(t, CI_REL_le, inner, outer);
    }
    return status < 0 ? -1 : 0;
}

/* The stride order of a copy that keeps the layout of x, like NumPy's PyArray_NewLikeArray: C or
 * Fortran order if x is contiguous in it, else that of its strides. order is C order on entry. */
static int
order_like(CxTraced *x, int8_t *order)
{
    Layout layout = {.x = x};
    int rank = cx_rank(x);

    if (cx_protect(x->tracer->state, x->tracer->sym_ctx, body_layout, &layout) < 0)
        return -1;
    if (layout.is_c)
        return 0;
    if (!layout.is_fortran)
        return sort_axes(x->tracer, rank, layout.steps, order);
    for (int k = 0; k < rank; k++)
        order[k] = (int8_t)(rank - 1 - k);
    return 0;
}

/* The stride order for order=; like: the array whose layout is kept, or NULL. */
static int
order_from(const char *text, CxTraced *like, int rank, int8_t *order)
{
    for (int k = 0; k < rank; k++)
        order[k] = (int8_t)(text[0] == 'F' ? rank - 1 - k : k);
    if (strchr("CFKA", text[0]) == NULL || text[0] == '\0') {
        PyErr_Format(PyExc_ValueError, "order must be one of 'C', 'F', 'A', or 'K' (got '%s')",
                     text);
        return -1;
    }
    return like != NULL && (text[0] == 'K' || text[0] == 'A') ? order_like(like, order) : 0;
}

PyObject *
cx_method_copy(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"x", "order", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *result = NULL;
    const char *order = "C";
    int8_t axes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|s:copy", names, &value, &order))
        return NULL;
    CxTraced *x = cx_lifted(t, value);
    if (x != NULL && order_from(order, x, cx_rank(x), axes) == 0)
        result = cx_traced_from_node(t, cx_build_copy(t, x, axes), CI_KIND_array);
    Py_XDECREF(x);
    return result;
}

/* Checks that the sizes of the axes that are not joined equal those of the first item. */
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

PyObject *
cx_method_concat(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *items = NULL, *fast = NULL, *result = NULL;
    CxTraced **owned = NULL;
    Py_ssize_t n = 0;
    int axis = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "Oi:concat", &items, &axis))
        return NULL;
    fast = PySequence_Fast(items, "a sequence is expected");
    if (fast == NULL)
        return NULL;
    n = PySequence_Fast_GET_SIZE(fast);
    owned = PyMem_Calloc((size_t)n + 1, sizeof *owned);
    if (owned == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t k = 0; k < n; k++)
        if ((owned[k] = cx_lifted(t, PySequence_Fast_GET_ITEM(fast, k))) == NULL)
            goto done;
    if (n == 0)
        PyErr_SetString(PyExc_ValueError, "need at least one array to concatenate");
    else if (fit_to_first(owned, n, axis < 0 ? axis + cx_rank(owned[0]) : axis) == 0)
        result = cx_traced_from_node(
            t, cx_build_concat(t, (int)n, owned, axis < 0 ? axis + cx_rank(owned[0]) : axis),
            CI_KIND_array);
done:
    for (Py_ssize_t k = 0; owned != NULL && k < n; k++)
        Py_XDECREF(owned[k]);
    PyMem_Free(owned);
    Py_DECREF(fast);
    return result;
}

static PyObject *
fill(PyObject *self, PyObject *args, PyObject *kwargs, bool has_value)
{
    static char *full_names[] = {"shape", "value", "dtype", "order", "like", NULL},
                *empty_names[] = {"shape", "dtype", "order", "like", NULL};
    CxTracer *t = (CxTracer *)self;
    PyObject *shape = NULL, *value = NULL, *type = NULL, *like = NULL, *result = NULL;
    const char *order = "C";
    const CiExpr *sizes[CI_MAX_RANK];
    int8_t axes[CI_MAX_RANK];
    char element[16] = {0};
    CiConst constant;

    CX_ENTRY();
    if (has_value ? !PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|sO:full", full_names, &shape,
                                                 &value, &type, &order, &like)
                  : !PyArg_ParseTupleAndKeywords(args, kwargs, "OO|sO:empty", empty_names, &shape,
                                                 &type, &order, &like))
        return NULL;
    CiDtype dtype = cx_dtype_of_object(t->state, type);
    int rank = dtype == CI_DTYPE_none ? -1 : cx_shape_from(t, shape, sizes);
    bool keeps = like != NULL && cx_is_traced(like);
    if (rank < 0 || order_from(order, keeps ? (CxTraced *)like : NULL, rank, axes) < 0)
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
    if (has_value && cx_is_traced(value)) { /* an empty array, which is then written */
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

PyObject *
cx_method_full(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return fill(self, args, kwargs, true);
}

PyObject *
cx_method_empty(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return fill(self, args, kwargs, false);
}

PyObject *
cx_method_iota(PyObject *self, PyObject *args)
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

/* Replaces the parts of complex numbers by these numbers; the call takes the part itself, so
 * that its strides are NumPy's. */
static int
take_whole(CxTraced **x, CiOp *part)
{
    CxView *view = (*x)->view;
    *part = CI_OP_none;
    if (view == NULL || (view->op != CI_OP_real && view->op != CI_OP_imag))
        return 0;
    (*x)->storage->refs++;
    if (view->parent != NULL)
        view->parent->refs++;
    PyObject *whole = cx_traced_new((*x)->tracer, (*x)->storage, view->parent);
    if (whole == NULL)
        return -1;
    *part = view->op;
    Py_SETREF(*x, (CxTraced *)whole);
    return 0;
}

static PyObject *
key_of_parts(const char *key, int count, const CiOp *parts)
{
    PyObject *text = PyUnicode_FromString(key);
    for (int k = 0; k < count && text != NULL; k++)
        if (parts[k] != CI_OP_none)
            Py_SETREF(text,
                      PyUnicode_FromFormat("%U, %s of operand %d", text, ci_op_name(parts[k]), k));
    return text;
}

PyObject *
cx_method_extern(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"name",  "key",       "callable", "operands",    "shape",
                            "dtype", "positions", "may_fail", "elementwise", NULL};
    int positions = -1, may_fail = 0, is_elementwise = 0;
    CxTracer *t = (CxTracer *)self;
    PyObject *callable = NULL, *operands = NULL, *shape = NULL, *type = NULL, *fast = NULL,
             *full = NULL, *result = NULL;
    const char *name = NULL, *key = NULL;
    CxTraced *owned[CX_MAX_OPERANDS] = {NULL};
    CiOp parts[CX_MAX_OPERANDS];
    const CiExpr *sizes[CI_MAX_RANK];

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ssOOOO|ipp:extern", names, &name, &key,
                                     &callable, &operands, &shape, &type, &positions, &may_fail,
                                     &is_elementwise))
        return NULL;
    fast = PySequence_Fast(operands, "a sequence of operands is expected");
    CiDtype dtype = fast == NULL ? CI_DTYPE_none : cx_dtype_of_object(t->state, type);
    int rank = dtype == CI_DTYPE_none ? -1 : cx_shape_from(t, shape, sizes);
    Py_ssize_t n = rank < 0 ? 0 : PySequence_Fast_GET_SIZE(fast);
    if (n > CX_MAX_OPERANDS) {
        PyErr_Format(PyExc_ValueError, "a library call takes at most %d operands",
                     CX_MAX_OPERANDS);
        rank = -1;
        n = 0;
    }
    for (int k = 0; k < CX_MAX_OPERANDS; k++)
        parts[k] = CI_OP_none;
    for (Py_ssize_t k = 0; k < n; k++)
        if ((owned[k] = cx_lifted(t, PySequence_Fast_GET_ITEM(fast, k))) == NULL ||
            take_whole(&owned[k], &parts[k]) < 0)
            goto done;
    full = rank < 0 ? NULL : key_of_parts(key, (int)n, parts);
    if (full != NULL) {
        const CiExtern *ext = cx_extern_find(t->state, name, PyUnicode_AsUTF8(full), callable,
                                             positions + 1, may_fail, parts);
        CiOp op = ci_op_find(name);
        if (op == CI_OP_none || ci_op_kind(op) != CI_OPKIND_extern)
            op = CI_OP_extern;
        if (ext != NULL)
            result = cx_traced_from_node(
                t, cx_build_extern(t, op, ext, dtype, (int)n, owned, rank, sizes, is_elementwise),
                CI_KIND_array);
    }
done:
    for (Py_ssize_t k = 0; k < n; k++)
        Py_XDECREF(owned[k]);
    Py_XDECREF(fast);
    Py_XDECREF(full);
    return result;
}
