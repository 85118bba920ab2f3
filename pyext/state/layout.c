/* Strides as a specialization remembers them: by class rather than by number, so that a dense array
 * of any size has the strides that the symbolic sizes say, and one that is part of a larger array
 * those that the sizes and gaps say. The gap of an axis is what lies in memory between the end of
 * all that is inside of it and its next step. */
#include "state/array.h"

/* Axes from the innermost out: by stride, and of equal strides the later axis first, as NumPy's
 * dense arrays with axes of size 1 are. Slow on purpose: n is small. */
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

void
cx_layout_gaps(PyArrayObject *array, int64_t *gaps)
{
    int rank = PyArray_NDIM(array), axes[NPY_MAXDIMS];
    int64_t itemsize = PyArray_ITEMSIZE(array), span = itemsize;
    bool is_empty = PyArray_SIZE(array) == 0;

    sort_axes(rank, PyArray_STRIDES(array), axes);
    for (int k = 0; k < rank; k++) {
        int64_t size = PyArray_DIM(array, axes[k]), stride = Py_ABS(PyArray_STRIDE(array, axes[k]));
        int64_t gap = stride - span;
        bool has_gap = !is_empty && size > 1 && gap >= 0 && gap % itemsize == 0;
        gaps[axes[k]] = is_empty || gap == 0 ? 0 : has_gap ? gap / itemsize : -1;
        span += stride * (size - 1);
    }
}

void
cx_layout_strides(CiSym *sym, PyArrayObject *array, const CiExpr *const *sizes,
                  const CiExpr *const *gaps, const CiExpr **strides)
{
    int rank = PyArray_NDIM(array), axes[NPY_MAXDIMS];
    int64_t found[NPY_MAXDIMS];
    const CiExpr *itemsize = ci_expr_const(sym, PyArray_ITEMSIZE(array)), *span = itemsize;
    bool is_empty = PyArray_SIZE(array) == 0;

    cx_layout_gaps(array, found);
    sort_axes(rank, PyArray_STRIDES(array), axes);
    for (int k = 0; k < rank; k++) {
        int axis = is_empty ? rank - 1 - k : axes[k];
        int64_t stride = PyArray_STRIDE(array, axis);
        bool is_dense = found[axis] == 0, is_given = gaps != NULL && gaps[axis] != NULL;
        const CiExpr *gap = ci_expr_const(sym, 0), *step = span;
        if (is_given)
            gap = ci_expr_mul(sym, gaps[axis], itemsize);
        else if (!is_dense)
            gap = ci_expr_sub(sym, ci_expr_const(sym, Py_ABS(stride)), span);
        step = ci_expr_add(sym, span, gap);
        strides[axis] = stride < 0 && !is_empty ? ci_expr_neg(sym, step) : step;
        if (stride != 0 && PyArray_DIM(array, axis) != 1)
            span = ci_expr_sub(sym, ci_expr_mul(sym, step, sizes[axis]), gap);
    }
}
