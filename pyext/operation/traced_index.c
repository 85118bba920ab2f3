/* Basic indexing: ints, slices, None and Ellipsis make a view; ints alone make a NumPy scalar.
 * For an invalid index, NumPy indexes an array of the same shape, so that it raises its own
 * exception. Other indices are handled by the surface. */
#include "operation/traced.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

typedef struct Index {
    CxTracer *tracer;
    int rank; /* number of axes of the array; then of the result */
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK], *counts[CI_MAX_RANK];
    int result_rank;
    /* Per axis of the result: the axis of the array, or -1 for a new one. */
    int source[CI_MAX_RANK];
    bool is_scalar;          /* ints for all axes and nothing else */
} Index;

enum { INDEX_error = -1, INDEX_basic, INDEX_other, INDEX_wrong };

/* True if NumPy accepts the number as an int. Data-dependent ones that may not be symbols are
 * forced. */
static bool
is_traced_int(const CxTraced *x)
{
    return cx_is_size(x) ||
           (x->view == NULL && x->storage->kind != CI_KIND_array &&
            ci_dtype_is_integral(x->storage->dtype) && x->storage->dtype != CI_DTYPE_bool);
}

static bool
is_int(PyObject *item)
{
    if (cx_is_traced(item))
        return is_traced_int((CxTraced *)item);
    if (PyBool_Check(item) || PyArray_IsScalar(item, Bool) || PyArray_Check(item) ||
        PySequence_Check(item))
        return false;
    return PyLong_Check(item) || PyIndex_Check(item);
}

static int
parse_int(Index *index, int axis, const CiExpr *size, PyObject *item)
{
    CxTracer *t = index->tracer;
    const CiExpr *start = NULL;

    index->steps[axis] = index->counts[axis] = t->one;
    if (cx_is_data_int(item)) {
        index->starts[axis] = cx_index_define((CxTraced *)item, size, false);
        return index->starts[axis] == NULL ? INDEX_error : INDEX_basic;
    }
    if (cx_is_traced(item) || size->kind != CI_EXPR_const) {
        const CiExpr *at = cx_size_from(t, item);
        int status = at == NULL ? -1 : cx_index_wrap(t, at, size, &index->starts[axis]);
        return status < 0 ? INDEX_error : status == 0 ? INDEX_wrong : INDEX_basic;
    }
    Py_ssize_t at = PyNumber_AsSsize_t(item, NULL);
    if (at == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return INDEX_wrong;
    }
    if (at < -size->value || at >= size->value)
        return INDEX_wrong;
    start = cx_size_const(t, at < 0 ? at + size->value : at);
    index->starts[axis] = start;
    return start == NULL ? INDEX_error : INDEX_basic;
}

static int
parse_slice(Index *index, int axis, const CiExpr *size, PyObject *item)
{
    CxTracer *t = index->tracer;
    PySliceObject *slice = (PySliceObject *)item;
    Py_ssize_t start, stop, step;

    index->source[index->result_rank++] = axis;
    if (size->kind != CI_EXPR_const || cx_is_traced(slice->start) || cx_is_traced(slice->stop) ||
        cx_is_traced(slice->step)) {
        const CiExpr *out[3];
        int status = cx_index_slice(t, slice, size, out);
        index->starts[axis] = out[0];
        index->steps[axis] = out[1];
        index->counts[axis] = out[2];
        return status < 0 ? INDEX_error : status == 0 ? INDEX_wrong : INDEX_basic;
    }
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return INDEX_wrong;
    }
    int64_t three[3];
    const CiExpr *exprs[3];
    three[2] = PySlice_AdjustIndices((Py_ssize_t)size->value, &start, &stop, step);
    /* An empty slice may start anywhere, but the core requires a valid position. */
    three[0] = three[2] == 0 ? 0 : start;
    three[1] = three[2] == 0 ? 1 : step;
    if (cx_size_consts(t, 3, three, exprs) < 0)
        return INDEX_error;
    index->starts[axis] = exprs[0];
    index->steps[axis] = exprs[1];
    index->counts[axis] = exprs[2];
    return INDEX_basic;
}

static void
take_whole_axes(Index *index, int *axis, int until, const CiExpr *const *sizes)
{
    for (; *axis < until; (*axis)++) {
        index->starts[*axis] = index->tracer->zero;
        index->steps[*axis] = index->tracer->one;
        index->counts[*axis] = sizes[*axis];
        index->source[index->result_rank++] = *axis;
    }
}

static int
parse(CxTraced *x, PyObject *const *items, Py_ssize_t n, Index *index)
{
    const CiExpr *const *sizes = cx_sizes(x);
    int axis = 0, used = 0, nones = 0, ellipses = 0;

    index->tracer = x->tracer;
    index->result_rank = 0;
    index->rank = cx_rank(x);
    index->is_scalar = true;
    for (Py_ssize_t k = 0; k < n; k++) {
        ellipses += items[k] == Py_Ellipsis;
        nones += items[k] == Py_None;
        if (items[k] != Py_Ellipsis && items[k] != Py_None && !PySlice_Check(items[k]) &&
            !is_int(items[k]))
            return INDEX_other;
        used += items[k] != Py_Ellipsis && items[k] != Py_None;
    }
    if (ellipses > 1 || used > index->rank || index->rank - used + nones > CI_MAX_RANK)
        return INDEX_wrong;
    if (index->rank + nones > CI_MAX_RANK)
        return INDEX_other;
    for (Py_ssize_t k = 0; k < n; k++) {
        int status = INDEX_basic;
        if (items[k] == Py_None)
            index->source[index->result_rank++] = -1;
        else if (items[k] == Py_Ellipsis)
            take_whole_axes(index, &axis, axis + index->rank - used, sizes);
        else if (PySlice_Check(items[k]))
            status = parse_slice(index, axis, sizes[axis], items[k]), axis++;
        else
            status = parse_int(index, axis, sizes[axis], items[k]), axis++;
        if (status != INDEX_basic)
            return status;
        index->is_scalar &= is_int(items[k]);
    }
    index->is_scalar &= axis == index->rank;
    take_whole_axes(index, &axis, index->rank, sizes);
    return INDEX_basic;
}

static int
parse_key(CxTraced *x, PyObject *key, Index *index)
{
    if (PyTuple_Check(key))
        return parse(x, ((PyTupleObject *)key)->ob_item, PyTuple_GET_SIZE(key), index);
    return parse(x, &key, 1, index);
}

static bool
is_whole(const Index *index, const CiExpr *const *sizes)
{
    const CxTracer *t = index->tracer;
    for (int k = 0; k < index->rank; k++)
        if (index->starts[k] != t->zero || index->steps[k] != t->one ||
            index->counts[k] != sizes[k])
            return false;
    return true;
}

/* The slice, then dropped and added axes; NumPy's strides (0 for new axes). */
static PyObject *
make_view(CxTraced *x, const Index *index)
{
    CxTraced *sliced = NULL;
    PyObject *result = NULL;
    bool is_same_axes = index->result_rank == index->rank;

    for (int k = 0; is_same_axes && k < index->rank; k++)
        is_same_axes = index->source[k] == k;
    /* A NumPy scalar has no memory, so the slice is of an array made from it. */
    if (is_same_axes || !is_whole(index, cx_sizes(x)) || cx_kind(x) != CI_KIND_array)
        sliced = (CxTraced *)cx_make_slice(x, index->starts, index->steps, index->counts);
    else
        sliced = (CxTraced *)Py_NewRef(x);
    if (sliced == NULL || is_same_axes)
        return (PyObject *)sliced;
    CxView *v = cx_view_new(sliced, CI_OP_reshape, index->result_rank);
    if (v != NULL) {
        for (int k = 0; k < index->result_rank; k++) {
            int axis = index->source[k];
            v->sizes[k] = axis < 0 ? x->tracer->one : cx_sizes(sliced)[axis];
            v->strides[k] = axis < 0 ? x->tracer->zero : cx_strides(sliced)[axis];
        }
        sliced->storage->refs++;
        result = cx_traced_new(sliced->tracer, sliced->storage, v);
    }
    Py_DECREF(sliced);
    return result;
}

/* NumPy's exception for this key. */
static void
raise_for(CxTraced *x, PyObject *key)
{
    PyObject *dummy = cx_size_dummy(x), *real = dummy ? cx_materialise_tree(key) : NULL;
    PyObject *item = real ? PyObject_GetItem(dummy, real) : NULL;
    bool is_scalar = x->view == NULL && x->storage->kind == CI_KIND_scalar;
    Py_XDECREF(real);
    Py_XDECREF(dummy);
    if (item != NULL || (real != NULL && is_scalar))
        PyErr_SetString(PyExc_IndexError, is_scalar ? "invalid index to scalar variable."
                                                    : "the index is not accepted here");
    Py_XDECREF(item);
}

/* Another kind of index: the surface's handler, else the real array. */
static PyObject *
other_index(CxTraced *x, PyObject *name, PyObject *key, PyObject *value)
{
    CxState *state = x->tracer->state;
    PyObject *args = value ? PyTuple_Pack(2, key, value) : PyTuple_Pack(1, key),
             *kwargs = PyDict_New();
    PyObject *real = NULL, *real_args = NULL, *result = NULL;
    int failed = 0;

    if (args == NULL || kwargs == NULL)
        goto done;
    PyObject *handler = state->methods ? cx_dict_find(state->methods, name, &failed) : NULL;
    if (failed)
        goto done;
    if (handler != NULL) {
        result = PyObject_CallFunctionObjArgs(handler, (PyObject *)x->tracer, (PyObject *)x, args,
                                              kwargs, NULL);
        if (result != Py_NotImplemented)
            goto done;
        Py_CLEAR(result);
    }
    if (cx_tracer_break(x->tracer, value ? "a write at an array, list or bool index"
                                         : "an array, list or bool index") < 0 ||
        (real = cx_traced_materialise(x)) == NULL ||
        (real_args = cx_materialise_tree(args)) == NULL)
        goto done;
    if (value == NULL)
        result =
            cx_tracer_wrap(x->tracer, PyObject_GetItem(real, PyTuple_GET_ITEM(real_args, 0)),
                           (CxGiven){{NULL}, {NULL}});
    else if (cx_storage_keep(x->storage) == 0 &&
             PyObject_SetItem(real, PyTuple_GET_ITEM(real_args, 0),
                              PyTuple_GET_ITEM(real_args, 1)) == 0)
        result = Py_NewRef(Py_None);
done:
    Py_XDECREF(real);
    Py_XDECREF(real_args);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

static PyObject *
scalar_of(PyObject *view)
{
    if (view == NULL)
        return NULL;
    CxTraced *x = (CxTraced *)view;
    PyObject *result = cx_traced_from_node(
        x->tracer, cx_build_cast(x->tracer, x, cx_dtype(x), CI_KIND_scalar), CI_KIND_scalar);
    Py_DECREF(view);
    return result;
}

static PyObject *
subscript(PyObject *self, PyObject *key)
{
    CxTraced *x = (CxTraced *)self;
    Index index;

    if (x->view == NULL && x->storage->kind == CI_KIND_python)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not subscriptable",
                            cx_python_class(x->storage)->tp_name);
    switch (parse_key(x, key, &index)) {
    case INDEX_basic:
        break;
    case INDEX_error:
        return NULL;
    case INDEX_wrong:
        raise_for(x, key);
        return NULL;
    default:
        return other_index(x, x->tracer->state->str___getitem__, key, NULL);
    }
    if (x->view == NULL && x->storage->kind == CI_KIND_scalar && index.is_scalar)
        return Py_NewRef(self);
    PyObject *view = make_view(x, &index);
    return index.is_scalar ? scalar_of(view) : view;
}

PyObject *
cx_subscript(PyObject *self, PyObject *key)
{
    CxTraced *x = (CxTraced *)self;
    PyObject *real_key = NULL;

    CX_ENTRY();
    PyObject *result = subscript(self, key);
    if (result != NULL || !x->tracer->needs_python || !cx_is_refused(x->tracer, false))
        return result;
    PyObject *real = cx_traced_concretize(x, "an index");
    if (real != NULL && (real_key = cx_materialise_tree(key)) != NULL)
        result = cx_tracer_wrap(x->tracer, PyObject_GetItem(real, real_key), (CxGiven){{NULL}, {NULL}});
    Py_XDECREF(real_key);
    Py_XDECREF(real);
    return result;
}

/* True if NumPy accepts an array as one element. For an array of one element this depends on
 * NumPy's version. */
static bool
is_element(CxTraced *view, PyObject *value)
{
    if (!cx_is_traced(value) || cx_rank((CxTraced *)value) == 0)
        return true;
    PyObject *into = cx_size_dummy(view), *from = into ? cx_size_dummy((CxTraced *)value) : NULL,
             *key = from ? PyTuple_New(0) : NULL;
    bool fits = key != NULL && PyObject_SetItem(into, key, from) == 0;
    Py_XDECREF(key);
    Py_XDECREF(from);
    Py_XDECREF(into);
    return fits;
}

int
cx_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    CxTraced *x = (CxTraced *)self;
    Index index;

    CX_ENTRY();
    if (x->view == NULL && x->storage->kind != CI_KIND_array) {
        PyErr_Format(PyExc_TypeError, "'%s' object does not support item %s",
                     x->storage->kind == CI_KIND_python
                         ? cx_python_class(x->storage)->tp_name
                         : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name,
                     value != NULL ? "assignment" : "deletion");
        return -1;
    }
    if (value == NULL) {
        PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
        return -1;
    }
    if (cx_check_writable(x, CX_ASSIGNED_READONLY) < 0)
        return -1;
    int status = x->tracer->has_fallen_back ? INDEX_other : parse_key(x, key, &index);
    if (status == INDEX_error)
        return -1;
    if (status == INDEX_wrong) {
        raise_for(x, key);
        return -1;
    }
    if (status == INDEX_other) {
        PyObject *done = other_index(x, x->tracer->state->str___setitem__, key, value);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    PyObject *view = make_view(x, &index);
    bool fits = view != NULL && (!index.is_scalar || is_element((CxTraced *)view, value));
    int result = fits ? cx_assign_value((CxTraced *)view, value, CX_ASSIGNED_READONLY) : -1;
    Py_XDECREF(view);
    return result;
}

Py_ssize_t
cx_length(PyObject *self)
{
    CxTraced *x = (CxTraced *)self;

    if (x->view == NULL && x->storage->kind != CI_KIND_array) {
        PyErr_Format(PyExc_TypeError, "object of type '%s' has no len()",
                     x->storage->kind == CI_KIND_python
                         ? cx_python_class(x->storage)->tp_name
                         : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name);
        return -1;
    }
    if (cx_rank(x) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of unsized object");
        return -1;
    }
    return cx_size_concretize(x->tracer, cx_sizes(x)[0], "len()");
}

PyObject *
cx_item(PyObject *self, Py_ssize_t i)
{
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *result = key ? cx_subscript(self, key) : NULL;
    Py_XDECREF(key);
    return result;
}

/* Iteration over few rows is unrolled; over many rows, or a long vector, it is a break. */
PyObject *
cx_iterate(PyObject *self)
{
    enum { MAX_UNROLLED = 256 };
    CxTraced *x = (CxTraced *)self;

    CX_ENTRY();
    if (x->view == NULL && x->storage->kind != CI_KIND_array)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not iterable",
                            x->storage->kind == CI_KIND_python
                                ? cx_python_class(x->storage)->tp_name
                                : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name);
    if (cx_rank(x) == 0)
        return PyErr_Format(PyExc_TypeError, "iteration over a 0-d array");
    const CiExpr *size = cx_sizes(x)[0];
    int64_t rows = size->kind == CI_EXPR_const
                       ? size->value
                       : cx_size_concretize(x->tracer, size, "iteration over an array");
    if (rows < 0)
        return NULL;
    if (rows <= MAX_UNROLLED)
        return PySeqIter_New(self);
    PyObject *real = cx_traced_concretize(x, "iteration");
    PyObject *result = real ? PyObject_GetIter(real) : NULL;
    Py_XDECREF(real);
    return result;
}
