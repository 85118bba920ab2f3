/* Views of traced arrays: their shapes, strides and offsets are NumPy's, computed here, so that a
 * view can be made of the real array later; their nodes are made when they are needed. */
#include "pyext.h"

/* What a view can be taken of: a NumPy scalar becomes an array first, as in NumPy. */
static CxTraced *
array_of(CxTraced *x)
{
    if (x->view != NULL || x->storage->kind == CI_KIND_array)
        return (CxTraced *)Py_NewRef(x);
    return (CxTraced *)cx_traced_from_node(
        x->tracer, cx_build_cast(x->tracer, x, cx_dtype(x), CI_KIND_array), CI_KIND_array);
}

static PyObject *
finish_view(CxTraced *x, CxView *view)
{
    x->storage->refs++;
    return cx_traced_new(x->tracer, x->storage, view);
}

/* Opens and closes a maker of views: x is an array from here on. */
#define VIEW_BEGIN(x)                                                                              \
    PyObject *result = NULL;                                                                       \
    (x) = array_of(x);                                                                             \
    if ((x) == NULL)                                                                               \
    return NULL
#define VIEW_END(x)                                                                                \
    Py_DECREF(x);                                                                                  \
    return result

PyObject *
cx_make_permute(CxTraced *x, const int *axes)
{
    VIEW_BEGIN(x);
    int rank = cx_rank(x);
    CxView *v = cx_view_new(x, CI_OP_permute, rank);
    if (v != NULL) {
        for (int k = 0; k < rank; k++) {
            v->axes[k] = axes[k];
            v->sizes[k] = cx_sizes(x)[axes[k]];
            v->strides[k] = cx_strides(x)[axes[k]];
        }
        result = finish_view(x, v);
    }
    VIEW_END(x);
}

static PyObject *
reshape_view(CxTraced *x, int rank, const int64_t *sizes)
{
    int64_t strides[CI_MAX_RANK];

    if (!cx_reshape_strides(cx_rank(x), cx_sizes(x), cx_strides(x), rank, sizes,
                            ci_dtype_size(cx_dtype(x)), strides))
        return NULL;
    CxView *v = cx_view_new(x, CI_OP_reshape, rank);
    if (v == NULL)
        return NULL;
    for (int k = 0; k < rank; k++) {
        v->sizes[k] = sizes[k];
        v->strides[k] = strides[k];
    }
    return finish_view(x, v);
}

PyObject *
cx_make_reshape(CxTraced *x, int rank, const int64_t *asked)
{
    int64_t sizes[CI_MAX_RANK], known = 1;
    int unknown = -1;
    VIEW_BEGIN(x);
    int64_t count = cx_count(cx_rank(x), cx_sizes(x));

    for (int k = 0; k < rank; k++) {
        sizes[k] = asked[k];
        if (asked[k] < 0 && unknown >= 0) {
            PyErr_SetString(PyExc_ValueError, "can only specify one unknown dimension");
            Py_DECREF(x);
            return NULL;
        }
        if (asked[k] < 0)
            unknown = k;
        else
            known *= asked[k];
    }
    if (unknown >= 0 && known != 0 && count % known == 0)
        sizes[unknown] = count / known;
    if (unknown >= 0 ? known == 0 || count % known != 0 : known != count) {
        PyObject *real = cx_array_dummy(x->tracer->state, cx_dtype(x), cx_rank(x), cx_sizes(x));
        PyArray_Dims dims = {(npy_intp *)(uintptr_t)asked, rank};
        result =
            real ? PyArray_Newshape((PyArrayObject *)real, &dims, NPY_CORDER) : NULL; /* raises */
        Py_XDECREF(real);
        Py_CLEAR(result);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "cannot reshape an array into this shape");
    } else {
        result = reshape_view(x, rank, sizes);
        if (result == NULL && !PyErr_Occurred()) { /* NumPy copies: another storage */
            CxTraced *copy = (CxTraced *)cx_traced_from_node(
                x->tracer, cx_build_copy(x->tracer, x, NULL), CI_KIND_array);
            result = copy ? reshape_view(copy, rank, sizes) : NULL;
            Py_XDECREF(copy);
        }
    }
    VIEW_END(x);
}

PyObject *
cx_make_slice(CxTraced *x, const int64_t *starts, const int64_t *steps, const int64_t *sizes)
{
    VIEW_BEGIN(x);
    int rank = cx_rank(x);
    CxView *v = cx_view_new(x, CI_OP_slice, rank);
    if (v != NULL) {
        for (int k = 0; k < rank; k++) {
            v->starts[k] = starts[k];
            v->steps[k] = steps[k];
            v->sizes[k] = sizes[k];
            v->strides[k] = cx_strides(x)[k] * steps[k];
            if (cx_sizes(x)[k] != 0)
                v->offset += cx_strides(x)[k] * starts[k];
        }
        result = finish_view(x, v);
    }
    VIEW_END(x);
}

PyObject *
cx_make_expand(CxTraced *x, int rank, const int64_t *sizes)
{
    VIEW_BEGIN(x);
    int own = cx_rank(x), lead = rank - own;
    bool fits = lead >= 0;

    for (int k = 0; fits && k < own; k++)
        fits = cx_sizes(x)[k] == 1 || cx_sizes(x)[k] == sizes[lead + k];
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "input operand has more dimensions than allowed by the "
                                          "axis remapping, or does not broadcast");
        Py_DECREF(x);
        return NULL;
    }
    CxView *v = cx_view_new(x, CI_OP_expand, rank);
    if (v != NULL) {
        for (int k = 0; k < rank; k++) {
            bool repeats = k < lead || cx_sizes(x)[k - lead] != sizes[k];
            v->sizes[k] = sizes[k];
            v->strides[k] = repeats ? 0 : cx_strides(x)[k - lead];
        }
        v->is_readonly = true;
        result = finish_view(x, v);
    }
    VIEW_END(x);
}

PyObject *
cx_make_diagonal(CxTraced *x, int axis1, int axis2, int64_t offset)
{
    VIEW_BEGIN(x);
    int rank = cx_rank(x), at = 0;
    CxView *v = cx_view_new(x, CI_OP_diagonal, rank - 1);
    if (v != NULL) {
        int64_t rows = cx_sizes(x)[axis1] + (offset < 0 ? offset : 0),
                columns = cx_sizes(x)[axis2] - (offset > 0 ? offset : 0);
        int64_t size = rows < columns ? rows : columns;
        for (int k = 0; k < rank; k++)
            if (k != axis1 && k != axis2) {
                v->sizes[at] = cx_sizes(x)[k];
                v->strides[at++] = cx_strides(x)[k];
            }
        v->sizes[at] = size > 0 ? size : 0;
        v->strides[at] = cx_strides(x)[axis1] + cx_strides(x)[axis2];
        if (size > 0)
            v->offset +=
                offset < 0 ? -offset * cx_strides(x)[axis1] : offset * cx_strides(x)[axis2];
        v->axes[0] = axis1;
        v->axes[1] = axis2;
        v->starts[0] = offset;
        v->is_readonly = true;
        result = finish_view(x, v);
    }
    VIEW_END(x);
}

PyObject *
cx_make_part(CxTraced *x, bool imaginary)
{
    CiDtype dtype = cx_dtype(x), part = ci_dtype_real(dtype);
    int rank = cx_rank(x);
    bool is_scalar = x->view == NULL && x->storage->kind != CI_KIND_array;
    PyObject *result = NULL;

    if (part == dtype && !imaginary)
        return Py_NewRef(x);
    if (part == dtype) {
        CiConst zero = {0, 0.0, 0.0};
        if (is_scalar)
            return cx_traced_from_node(x->tracer,
                                       cx_build_const(x->tracer, dtype, x->storage->kind, zero),
                                       x->storage->kind);
        result = cx_traced_from_node(
            x->tracer, cx_build_fill(x->tracer, dtype, rank, cx_sizes(x), NULL, &zero),
            CI_KIND_array);
        if (result != NULL)
            ((CxTraced *)result)->storage->is_readonly = true;
        return result;
    }
    if (is_scalar) {
        CxOperand operand = {.traced = x, .want = dtype};
        CiOp op = imaginary ? CI_OP_imag : CI_OP_real;
        return cx_traced_from_node(
            x->tracer,
            cx_build_pointwise(x->tracer, op, 1, &operand, CI_DTYPE_none, CI_KIND_scalar),
            CI_KIND_scalar);
    }
    CxView *v = cx_view_new(x, imaginary ? CI_OP_imag : CI_OP_real, rank);
    if (v == NULL)
        return NULL;
    for (int k = 0; k < rank; k++) {
        v->sizes[k] = cx_sizes(x)[k];
        v->strides[k] = cx_strides(x)[k];
    }
    v->offset += imaginary ? ci_dtype_size(part) : 0;
    v->dtype = part;
    v->is_opaque = true;
    return finish_view(x, v);
}
