/* Strides as a specialization remembers them: a class of layouts instead of numbers. A dense array
 * of any size has the strides that its symbolic sizes imply; a subarray of a larger array has
 * those that sizes and paddings imply.
 *
 * The padding of an axis is the memory between the end of everything inside it and its next step.
 * If the padding is one step of the inner axis, the two axes could be merged, and no padding is
 * recorded. */
#include "state/array.h"

/* Sorts axes from the innermost out: by stride, and for equal strides the later axis first, like
 * NumPy's dense arrays with axes of size 1. Insertion sort, because n is small. */
static void
sort_axes(int rank, const npy_intp *strides, int *axes)
{
    for (int k = 0; k < rank; k++) {
        int at = k;
        npy_intp stride = Py_ABS(strides[rank - 1 - k]);
        for (; at > 0 && Py_ABS(strides[axes[at - 1]]) > stride; at--)
            axes[at] = axes[at - 1];
        axes[at] = rank - 1 - k;
    }
}

bool
cx_is_new_and_empty(PyArrayObject *array)
{
    for (int k = 0; k < PyArray_NDIM(array); k++)
        if (PyArray_STRIDE(array, k) != 0)
            return false;
    return PyArray_SIZE(array) == 0;
}

void
cx_layout_paddings(PyArrayObject *array, int64_t *paddings)
{
    int rank = PyArray_NDIM(array), axes[NPY_MAXDIMS];
    int64_t itemsize = PyArray_ITEMSIZE(array), span = itemsize, dense = itemsize;

    sort_axes(rank, PyArray_STRIDES(array), axes);
    for (int k = 0; k < rank; k++) {
        int64_t size = PyArray_DIM(array, axes[k]), stride = Py_ABS(PyArray_STRIDE(array, axes[k]));
        int64_t padding = stride - span;
        bool has_padding = size > 1 && stride != dense && padding >= 0 && padding % itemsize == 0;
        paddings[axes[k]] = has_padding && PyArray_SIZE(array) != 0 ? padding / itemsize : -1;
        if (stride != 0 && size > 1)
            dense = stride * size;
        span += stride * (size - 1);
    }
}

/* True if axes overlap in memory. Common factors of their strides and sizes are then chance, and
 * the stride order could differ for other sizes. */
static bool
steps_overlap(PyArrayObject *array, const int *axes)
{
    int64_t span = PyArray_ITEMSIZE(array);

    for (int k = 0; k < PyArray_NDIM(array); k++) {
        int64_t size = PyArray_DIM(array, axes[k]), stride = Py_ABS(PyArray_STRIDE(array, axes[k]));
        if (size > 1 && stride != 0 && stride < span)
            return true;
        span += stride * (size - 1);
    }
    return false;
}

void
cx_layout_strides(CiSym *sym, PyArrayObject *array, const CiExpr *const *sizes,
                  const CiExpr *const *paddings, const CiExpr **strides)
{
    int rank = PyArray_NDIM(array), axes[NPY_MAXDIMS];
    int64_t dense = PyArray_ITEMSIZE(array), found[NPY_MAXDIMS];
    const CiExpr *itemsize = ci_expr_const(sym, dense), *span = itemsize, *next = itemsize;
    bool is_new = cx_is_new_and_empty(array), inner_varies = false;

    cx_layout_paddings(array, found);
    sort_axes(rank, PyArray_STRIDES(array), axes);
    bool overlaps = PyArray_SIZE(array) != 0 && steps_overlap(array, axes);
    for (int k = 0; k < rank; k++) {
        int axis = axes[k];
        int64_t size = PyArray_DIM(array, axis), stride = PyArray_STRIDE(array, axis);
        bool is_given = paddings != NULL && paddings[axis] != NULL;
        const CiExpr *step = ci_expr_const(sym, Py_ABS(stride));
        if (is_given)
            step = ci_expr_add(sym, span, ci_expr_mul(sym, paddings[axis], itemsize));
        else if (is_new || (Py_ABS(stride) == dense && !overlaps))
            step = next;
        else if (found[axis] >= 0 && !overlaps && (found[axis] == 0 || inner_varies))
            step = ci_expr_add(sym, span, ci_expr_const(sym, found[axis] * PyArray_ITEMSIZE(array)));
        /* Outer steps vary, too; otherwise the order would be unknown. */
        inner_varies |= step->kind != CI_EXPR_const;
        strides[axis] = stride < 0 ? ci_expr_neg(sym, step) : step;
        if (is_new || (stride != 0 && size != 1)) {
            next = ci_expr_mul(sym, step, sizes[axis]);
            span = ci_expr_sub(sym, next, ci_expr_sub(sym, step, span));
            dense = Py_ABS(stride) * size;
        }
    }
}
