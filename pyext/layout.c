/* Strides as a specialization remembers them: by class rather than by number, so that a dense array
 * of any size has the strides that the symbolic sizes say. */
#include "array.h"

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
cx_layout_strides(CiSym *sym, PyArrayObject *array, const CiExpr *const *sizes,
                  const CiExpr *const *given, const CiExpr **strides)
{
    int rank = PyArray_NDIM(array), axes[NPY_MAXDIMS];
    int64_t itemsize = PyArray_ITEMSIZE(array), dense = itemsize;
    const CiExpr *step = ci_expr_const(sym, itemsize);
    bool is_empty = PyArray_SIZE(array) == 0;

    sort_axes(rank, PyArray_STRIDES(array), axes);
    for (int k = 0; k < rank; k++) {
        int axis = is_empty ? rank - 1 - k : axes[k];
        int64_t size = PyArray_DIM(array, axis), stride = PyArray_STRIDE(array, axis);
        if (given != NULL && given[axis] != NULL) {
            strides[axis] = ci_expr_mul(sym, given[axis], ci_expr_const(sym, itemsize));
        } else if (stride == dense || is_empty) {
            strides[axis] = step;
        } else if (stride == -dense) { /* dense, and read from its end */
            strides[axis] = ci_expr_neg(sym, step);
        } else {
            strides[axis] = ci_expr_const(sym, stride);
            if (stride == 0 || size == 1)
                continue;
            step = ci_expr_const(sym, Py_ABS(stride));
        }
        step = ci_expr_mul(sym, step, sizes[axis]);
        dense = Py_ABS(stride) * size;
    }
}
