/* The guard of an array: finds where an array differs, and describes it. */
#include "replay/guards_private.h"
#include "state/array.h"

bool
cx_extent_fits(const CxExtent *extent, int64_t found, int64_t *table)
{
    if (extent->expr == NULL)
        return found == extent->constant;
    if (extent->is_definition)
        table[extent->number] = found;
    return true;
}

/* The axis that has one element now although the program is for any number, or -1. Its stride
 * does not tell its place in the stride order, and results of the array would be in C order. */
static int
axis_of_one(const CxCheck *c, const npy_intp *dims)
{
    int found = -1;
    for (int k = 0; k < c->rank; k++) {
        if (dims[k] == 0)
            return -1;
        if (dims[k] == 1 && c->sizes[k].expr != NULL)
            found = k;
    }
    return found;
}

/* True if strides are compared. A new empty array, and its views, have strides of 0 in NumPy. */
bool
cx_check_compares_strides(const CxCheck *c, PyArrayObject *a)
{
    if (c->shows_strides)
        return c->count >= 0 || !cx_is_new_and_empty(a);
    return c->looks_at_strides && PyArray_SIZE(a) != 0;
}

static int
test_flags(const CxCheck *c, PyArrayObject *a)
{
    int others = (PyArray_FLAGS(a) & c->flags) ^ c->wanted;
    return others == 0                    ? AGREES
           : others & NPY_ARRAY_WRITEABLE ? OTHER_WRITABLE
           : others & NPY_ARRAY_ALIGNED   ? OTHER_ALIGNED
                                          : OTHER_LAYOUT;
}

static int
test_strides(const CxCheck *c, const npy_intp *dims, const npy_intp *strides, int64_t *table)
{
    for (int k = 0; k < c->rank; k++) {
        bool matters = dims[k] > 1 || c->shows_strides;
        if (c->strides[k].expr == NULL && strides[k] != c->strides[k].constant && matters)
            return OTHER_LAYOUT;
        if (c->strides[k].is_definition)
            table[c->strides[k].shown] = dims[k] > 1 ? strides[k] : 0;
    }
    return AGREES;
}

int
cx_check_test_array(const CxCheck *c, PyObject *value, int64_t *table)
{
    PyArrayObject *a = (PyArrayObject *)value;
    if (!PyArray_CheckExact(value))
        return OTHER_CLASS;
    if (PyArray_NDIM(a) != c->rank)
        return OTHER_RANK;
    if (PyArray_DESCR(a) != c->descr && !PyArray_EquivTypes(PyArray_DESCR(a), c->descr))
        return OTHER_DTYPE;
    const npy_intp *dims = PyArray_DIMS(a);
    for (int k = 0; k < c->rank; k++)
        if (!cx_extent_fits(&c->sizes[k], dims[k], table))
            return OTHER_SIZE + k;
    if ((PyArray_FLAGS(a) & c->flags) != c->wanted)
        return test_flags(c, a);
    if (c->is_permuted && axis_of_one(c, dims) >= 0)
        return ONE_ELEMENT + axis_of_one(c, dims);
    if (!cx_check_compares_strides(c, a))
        return AGREES;
    return test_strides(c, dims, PyArray_STRIDES(a), table);
}

PyObject *
cx_text_extent(const CxGuards *g, const CxExtent *extent, const char *defined)
{
    if (extent->expr == NULL)
        return PyUnicode_FromFormat("%lld", (long long)extent->constant);
    if (extent->is_definition && extent->expr->kind == CI_EXPR_symbol)
        return PyUnicode_FromString(defined);
    return cx_text_expr(g, extent->expr);
}

static PyObject *
extents_text(const CxGuards *g, int rank, const CxExtent *extents)
{
    PyObject *comma = PyUnicode_FromString(", "), *parts = PyList_New(0), *inner = NULL,
             *text = NULL;
    for (int k = 0; parts != NULL && k < rank; k++)
        cx_add_item(&parts, cx_text_extent(g, &extents[k], "any"));
    if (comma != NULL && parts != NULL && (inner = PyUnicode_Join(comma, parts)) != NULL)
        text = PyUnicode_FromFormat(rank == 1 ? "(%U,)" : "(%U)", inner);
    Py_XDECREF(comma);
    Py_XDECREF(parts);
    Py_XDECREF(inner);
    return text;
}

static PyObject *
layout_text(const CxGuards *g, const CxCheck *c)
{
    if (c->looks_at_strides) {
        PyObject *strides = extents_text(g, c->rank, c->strides);
        PyObject *text = strides ? PyUnicode_FromFormat("strides %U", strides) : NULL;
        Py_XDECREF(strides);
        return text;
    }
    return PyUnicode_FromString(c->flags & NPY_ARRAY_C_CONTIGUOUS ? "contiguous"
                                                                  : "contiguous in Fortran order");
}

PyObject *
cx_text_array(const CxGuards *g, const CxCheck *c)
{
    PyObject *shape = extents_text(g, c->rank, c->sizes), *layout = layout_text(g, c), *text = NULL;
    if (shape != NULL && layout != NULL)
        text = PyUnicode_FromFormat("an array of %S, shape %U, %U%s%s", c->descr, shape, layout,
                                    c->wanted & NPY_ARRAY_WRITEABLE ? ", writable" : "",
                                    c->wanted & NPY_ARRAY_ALIGNED ? "" : ", not aligned");
    Py_XDECREF(shape);
    Py_XDECREF(layout);
    return text;
}

static PyObject *
strides_of(PyArrayObject *a)
{
    PyObject *strides = cx_sizes_tuple(PyArray_NDIM(a), (const int64_t *)PyArray_STRIDES(a));
    PyObject *text = strides ? PyUnicode_FromFormat("strides %R", strides) : NULL;
    Py_XDECREF(strides);
    return text;
}

static PyObject *
truth(bool value)
{
    return PyUnicode_FromString(value ? "True" : "False");
}

/* The actual size; if it should equal others, also their size. */
static PyObject *
size_found(const CxExtent *wanted, npy_intp found, const int64_t *table)
{
    if (wanted->expr == NULL || table == NULL)
        return PyUnicode_FromFormat("%zd", (Py_ssize_t)found);
    return PyUnicode_FromFormat("%zd and not %lld", (Py_ssize_t)found,
                                (long long)table[wanted->number]);
}

PyObject *
cx_text_array_failure(const CxGuards *g, const CxCheck *c, int where, PyArrayObject *a,
                      PyObject *name, const int64_t *table)
{
    PyObject *what = NULL, *before = NULL, *now = NULL;
    int axis = where >= OTHER_SIZE ? where - OTHER_SIZE : where - ONE_ELEMENT;

    if (where >= ONE_ELEMENT) {
        what = PyUnicode_FromFormat("%U.shape[%d]", name, axis);
        before = where >= OTHER_SIZE ? cx_text_extent(g, &c->sizes[axis], "any")
                                     : PyUnicode_FromString("more than 1");
        now = size_found(&c->sizes[axis], PyArray_DIM(a, axis), where >= OTHER_SIZE ? table : NULL);
    } else if (where == OTHER_RANK) {
        what = PyUnicode_FromFormat("%U.ndim", name);
        before = PyUnicode_FromFormat("%d", c->rank);
        now = PyUnicode_FromFormat("%d", PyArray_NDIM(a));
    } else if (where == OTHER_DTYPE) {
        what = PyUnicode_FromFormat("%U.dtype", name);
        before = PyUnicode_FromFormat("%S", c->descr);
        now = PyUnicode_FromFormat("%S", PyArray_DESCR(a));
    } else if (where == OTHER_LAYOUT) {
        what = PyUnicode_FromFormat("%U.layout", name);
        before = layout_text(g, c);
        now = strides_of(a);
    } else {
        bool is_writable = where == OTHER_WRITABLE;
        int flag = is_writable ? NPY_ARRAY_WRITEABLE : NPY_ARRAY_ALIGNED;
        what = PyUnicode_FromFormat("%U.flags.%s", name, is_writable ? "writeable" : "aligned");
        before = truth(c->wanted & flag);
        now = truth(PyArray_FLAGS(a) & flag);
    }
    return cx_text_was_is(what, before, cx_text_place(g, NULL), now);
}
