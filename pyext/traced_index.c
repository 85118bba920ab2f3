/* Basic indexing: ints, slices, None and Ellipsis make a view; an index of ints alone makes a NumPy
 * scalar. What is wrong is asked of NumPy on an array of the same shape, so that the exception is
 * its own; other indices are the surface's. */
#include "pyext.h"

typedef struct Index {
    int rank; /* axes of the array; then axes of the result */
    int64_t starts[CI_MAX_RANK], steps[CI_MAX_RANK], counts[CI_MAX_RANK];
    bool is_dropped[CI_MAX_RANK];
    int result_rank;
    int source[CI_MAX_RANK]; /* per axis of the result: axis of the array, -1 for a new one */
    bool is_scalar;          /* ints for all axes and nothing else */
} Index;

enum { INDEX_basic, INDEX_other, INDEX_wrong };

static bool
is_int(PyObject *item)
{
    if (PyBool_Check(item) || PyArray_IsScalar(item, Bool) || PyArray_Check(item) ||
        cx_is_traced(item) || PySequence_Check(item))
        return false;
    return PyLong_Check(item) || PyIndex_Check(item);
}

static int
parse_int(Index *index, int axis, int64_t size, PyObject *item)
{
    Py_ssize_t at = PyNumber_AsSsize_t(item, NULL);
    if (at == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return INDEX_wrong;
    }
    if (at < -size || at >= size)
        return INDEX_wrong;
    index->starts[axis] = at < 0 ? at + size : at;
    index->steps[axis] = 1;
    index->counts[axis] = 1;
    index->is_dropped[axis] = true;
    return INDEX_basic;
}

static int
parse_slice(Index *index, int axis, int64_t size, PyObject *item)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return INDEX_wrong;
    }
    index->counts[axis] = PySlice_AdjustIndices((Py_ssize_t)size, &start, &stop, step);
    index->starts[axis] = start;
    index->steps[axis] = step;
    /* An empty slice may start anywhere; the core wants an element's place. */
    if (index->counts[axis] == 0) {
        index->starts[axis] = 0;
        index->steps[axis] = 1;
    }
    index->source[index->result_rank++] = axis;
    return INDEX_basic;
}

static void
take_whole_axes(Index *index, int *axis, int until, const int64_t *sizes)
{
    for (; *axis < until; (*axis)++) {
        index->starts[*axis] = 0;
        index->steps[*axis] = 1;
        index->counts[*axis] = sizes[*axis];
        index->source[index->result_rank++] = *axis;
    }
}

static int
parse(CxTraced *x, PyObject *const *items, Py_ssize_t n, Index *index)
{
    const int64_t *sizes = cx_sizes(x);
    int axis = 0, used = 0, nones = 0, ellipses = 0;

    memset(index, 0, sizeof *index);
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
is_whole(const Index *index, const int64_t *sizes)
{
    for (int k = 0; k < index->rank; k++)
        if (index->starts[k] != 0 || index->steps[k] != 1 || index->counts[k] != sizes[k])
            return false;
    return true;
}

/* The slice, then the axes dropped and added; strides as NumPy gives them (0 for new axes). */
static PyObject *
make_view(CxTraced *x, const Index *index)
{
    CxTraced *sliced = NULL;
    PyObject *result = NULL;
    bool is_same_axes = index->result_rank == index->rank;

    for (int k = 0; is_same_axes && k < index->rank; k++)
        is_same_axes = index->source[k] == k;
    if (is_same_axes || !is_whole(index, cx_sizes(x)))
        sliced = (CxTraced *)cx_make_slice(x, index->starts, index->steps, index->counts);
    else
        sliced = (CxTraced *)Py_NewRef(x);
    if (sliced == NULL || is_same_axes)
        return (PyObject *)sliced;
    CxView *v = cx_view_new(sliced, CI_OP_reshape, index->result_rank);
    if (v != NULL) {
        for (int k = 0; k < index->result_rank; k++) {
            int axis = index->source[k];
            v->sizes[k] = axis < 0 ? 1 : cx_sizes(sliced)[axis];
            v->strides[k] = axis < 0 ? 0 : cx_strides(sliced)[axis];
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
    PyObject *dummy = cx_array_dummy(x->tracer->state, cx_dtype(x), cx_rank(x), cx_sizes(x));
    PyObject *item = dummy ? PyObject_GetItem(dummy, key) : NULL;
    Py_XDECREF(dummy);
    if (item != NULL) {
        Py_DECREF(item);
        PyErr_SetString(PyExc_IndexError, "the index is not accepted here");
    }
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
        (real = cx_traced_concrete(x)) == NULL || (real_args = cx_concrete_tree(args)) == NULL)
        goto done;
    if (value == NULL)
        result = cx_tracer_wrap(x->tracer, PyObject_GetItem(real, PyTuple_GET_ITEM(real_args, 0)));
    else if (PyObject_SetItem(real, PyTuple_GET_ITEM(real_args, 0),
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

PyObject *
cx_subscript(PyObject *self, PyObject *key)
{
    CxTraced *x = (CxTraced *)self;
    Index index;

    CX_ENTRY();
    if (x->view == NULL && x->storage->kind == CI_KIND_python)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not subscriptable",
                            Py_TYPE(x->storage->value)->tp_name);
    switch (parse_key(x, key, &index)) {
    case INDEX_basic:
        break;
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

int
cx_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    CxTraced *x = (CxTraced *)self;
    Index index;

    CX_ENTRY();
    if (value == NULL) {
        PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
        return -1;
    }
    if (x->view == NULL && x->storage->kind != CI_KIND_array) {
        PyErr_Format(PyExc_TypeError, "'%s' object does not support item assignment",
                     x->storage->kind == CI_KIND_python
                         ? Py_TYPE(x->storage->value)->tp_name
                         : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name);
        return -1;
    }
    int status = parse_key(x, key, &index);
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
    int result =
        view ? cx_assign_value((CxTraced *)view, value, "assignment destination is read-only") : -1;
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
                         ? Py_TYPE(x->storage->value)->tp_name
                         : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name);
        return -1;
    }
    if (cx_rank(x) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of unsized object");
        return -1;
    }
    return (Py_ssize_t)cx_sizes(x)[0];
}

PyObject *
cx_item(PyObject *self, Py_ssize_t i)
{
    PyObject *key = PyLong_FromSsize_t(i);
    PyObject *result = key ? cx_subscript(self, key) : NULL;
    Py_XDECREF(key);
    return result;
}

/* Rows unroll when they are few; many are a break, and so is the data of a long vector. */
PyObject *
cx_iterate(PyObject *self)
{
    enum { MAX_UNROLLED = 256 };
    CxTraced *x = (CxTraced *)self;

    CX_ENTRY();
    if (x->view == NULL && x->storage->kind != CI_KIND_array)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not iterable",
                            x->storage->kind == CI_KIND_python
                                ? Py_TYPE(x->storage->value)->tp_name
                                : cx_descr(x->tracer->state, x->storage->dtype)->typeobj->tp_name);
    if (cx_rank(x) == 0)
        return PyErr_Format(PyExc_TypeError, "iteration over a 0-d array");
    if (cx_sizes(x)[0] <= MAX_UNROLLED)
        return PySeqIter_New(self);
    PyObject *real = cx_traced_demand(x, "iteration");
    PyObject *result = real ? PyObject_GetIter(real) : NULL;
    Py_XDECREF(real);
    return result;
}
