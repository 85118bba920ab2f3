/* Views of traced arrays. Shapes, strides and offsets follow NumPy's rules and are computed
 * here, so that the same view can later be made of the real array. Their nodes are made when
 * they are needed. */
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

#include "ir/layout.h"

/* The value as an array: a NumPy scalar becomes an array first, as in NumPy. */
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

/* Begin and end of a function that makes a view: x is an array in between. */
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

typedef struct ViewJob {
    CxTraced *x;
    CxView *view;
    int rank;
    const CiExpr *const *sizes, *const *starts, *const *steps;
    const CiExpr **strides;
    bool is_view;
} ViewJob;

static int
run_job(ViewJob *job, void (*body)(CiContext *, void *))
{
    return cx_protect(job->x->tracer->state, job->x->tracer->sym_ctx, body, job);
}

static void
body_reshape(CiContext *ctx, void *arg)
{
    ViewJob *job = arg;
    CxTraced *x = job->x;
    const CiExpr *unit = ci_expr_const(x->tracer->sym, ci_dtype_size(cx_dtype(x)));

    (void)ctx;
    job->is_view = ci_layout_reshape(x->tracer->sym, cx_rank(x), cx_sizes(x), cx_strides(x),
                                     job->rank, job->sizes, unit, job->strides);
}

/* Strides of the same memory under another shape; 0 if NumPy would copy. */
static int
reshape_strides(CxTraced *x, int rank, const CiExpr *const *sizes, const CiExpr **strides)
{
    ViewJob job = {.x = x, .rank = rank, .sizes = sizes, .strides = strides};
    int64_t old_sizes[CI_MAX_RANK], old_strides[CI_MAX_RANK], new_sizes[CI_MAX_RANK],
        new_strides[CI_MAX_RANK];

    if (cx_sizes_are_const(cx_rank(x), cx_sizes(x), old_sizes) &&
        cx_sizes_are_const(cx_rank(x), cx_strides(x), old_strides) &&
        cx_sizes_are_const(rank, sizes, new_sizes)) {
        if (!cx_reshape_strides(cx_rank(x), old_sizes, old_strides, rank, new_sizes,
                                ci_dtype_size(cx_dtype(x)), new_strides))
            return 0;
        return cx_size_consts(x->tracer, rank, new_strides, strides) < 0 ? -1 : 1;
    }
    return run_job(&job, body_reshape) < 0 ? -1 : job.is_view;
}

static PyObject *
view_with_strides(CxTraced *x, int rank, const CiExpr *const *sizes, const CiExpr *const *strides)
{
    CxView *v = cx_view_new(x, CI_OP_reshape, rank);
    if (v == NULL)
        return NULL;
    for (int k = 0; k < rank; k++) {
        v->sizes[k] = sizes[k];
        v->strides[k] = strides[k];
    }
    return finish_view(x, v);
}

/* NULL without an exception if NumPy would copy. */
static PyObject *
reshape_view(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    const CiExpr *strides[CI_MAX_RANK];
    bool is_view = reshape_strides(x, rank, sizes, strides) > 0;
    return is_view ? view_with_strides(x, rank, sizes, strides) : NULL;
}

/* Raises NumPy's exception for this shape. */
static void
raise_reshape(CxTraced *x, int rank, const CiExpr *const *requested)
{
    int64_t sizes[CI_MAX_RANK];
    PyObject *real = cx_size_dummy(x), *result = NULL;

    PyArray_Dims dims = {(npy_intp *)sizes, rank};
    if (real != NULL && cx_size_shown(x->tracer, rank, requested, sizes) == 0)
        result = PyArray_Newshape((PyArrayObject *)real, &dims, NPY_CORDER);
    Py_XDECREF(real);
    Py_XDECREF(result);
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "cannot reshape an array into this shape");
}

typedef struct Quotient {
    CiSym *sym;
    const CiExpr *of, *by, *result;
} Quotient;

static void
body_quotient(CiContext *ctx, void *arg)
{
    Quotient *q = arg;
    (void)ctx;
    q->result = ci_expr_quotient(q->sym, q->of, q->by);
}

/* of // by for a `by` that is not 0, whatever its range: a*b // a is b. */
static const CiExpr *
quotient_of(CxTracer *t, const CiExpr *of, const CiExpr *by)
{
    Quotient q = {.sym = t->sym, .of = of, .by = by};
    return cx_protect(t->state, t->sym_ctx, body_quotient, &q) < 0 ? NULL : q.result;
}

/* Completes the requested shape with its one unknown size. 0: it does not fit. */
static int
reshape_sizes(CxTraced *x, int rank, const CiExpr *const *requested, const CiExpr **sizes)
{
    CxTracer *t = x->tracer;
    const CiExpr *count = cx_size_count(t, cx_rank(x), cx_sizes(x)), *known = t->one;
    int unknown = -1;

    for (int k = 0; k < rank; k++) {
        int is_negative = cx_size_decide(t, CI_REL_lt, requested[k], t->zero);
        if (is_negative < 0)
            return -1;
        sizes[k] = requested[k];
        if (is_negative == 1 && unknown >= 0) {
            PyErr_SetString(PyExc_ValueError, "can only specify one unknown dimension");
            return -1;
        }
        if (is_negative == 1)
            unknown = k;
        else if ((known = cx_size_make(t, CI_OP_multiply, known, requested[k])) == NULL)
            return -1;
    }
    if (count == NULL)
        return -1;
    if (unknown < 0)
        return cx_size_join(t, count, known) != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
    int fits = cx_size_require(t, CI_REL_ne, known, t->zero, "a size that -1 stands for");
    if (fits <= 0)
        return fits;
    if ((sizes[unknown] = quotient_of(t, count, known)) == NULL ||
        (known = cx_size_make(t, CI_OP_multiply, known, sizes[unknown])) == NULL)
        return -1;
    return cx_size_join(t, count, known) != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Multiplies further sizes on the smaller side until both products are equal, each comparison
 * under a guard, and moves both positions past the sizes used. 1; CX_OPEN; -1. */
static int
join_products(CxTracer *t, int rank, const CiExpr *const *sizes, int *new, int nold,
              const CiExpr *const *olds, int *old)
{
    const CiExpr *ours = sizes[(*new)++], *theirs = olds[(*old)++];
    int is_equal;

    while ((is_equal = cx_size_decide(t, CI_REL_eq, ours, theirs)) == 0) {
        int is_less = cx_size_decide(t, CI_REL_lt, ours, theirs);
        if (is_less < 0)
            return -1;
        if (is_less == CX_OPEN || (is_less ? *new == rank : *old == nold))
            return CX_OPEN;
        ours = is_less ? cx_size_make(t, CI_OP_multiply, ours, sizes[(*new)++]) : ours;
        theirs = is_less ? theirs : cx_size_make(t, CI_OP_multiply, theirs, olds[(*old)++]);
        if (ours == NULL || theirs == NULL)
            return -1;
    }
    return is_equal;
}

/* Matches old axes with new axes; open relations are decided by the sizes of this call, because
 * NumPy makes a view if they match. 1: some axes match one to one, and their new sizes are now
 * written like the old ones. */
static int
meet_axes(CxTraced *x, int rank, const CiExpr **sizes)
{
    const CiExpr *const *olds = cx_sizes(x);
    int nold = cx_rank(x), is_found = 0;

    for (int new = 0, old = 0; new < rank && old < nold;) {
        int both = new + old, status = join_products(x->tracer, rank, sizes, &new, nold, olds, &old);
        if (status != 1)
            return status < 0 ? -1 : is_found;
        if (new + old == both + 2 && sizes[new - 1] != olds[old - 1]) {
            sizes[new - 1] = olds[old - 1];
            is_found = 1;
        }
    }
    return is_found;
}

/* Flattens x to a row whose length is the product of the new sizes, because the graph cannot
 * prove that the number of elements is equal. */
static CxTraced *
fit_count(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    CxTracer *t = x->tracer;
    const CiExpr *count = cx_size_count(t, cx_rank(x), cx_sizes(x)),
                 *want = count ? cx_size_count(t, rank, sizes) : NULL;

    if (want == NULL)
        return NULL;
    if (count == want || (cx_size_is_known(t, count) && cx_size_is_known(t, want)))
        return (CxTraced *)Py_NewRef(x);
    CxTraced *row = (CxTraced *)(cx_rank(x) == 1 ? Py_NewRef(x) : reshape_view(x, 1, &count));
    if (row == NULL)
        return PyErr_Occurred() ? NULL : (CxTraced *)Py_NewRef(x);
    CxTraced *fitted = cx_size_fit(row, 1, &want);
    Py_DECREF(row);
    return fitted;
}

/* Marks axes that have one element as such, because their position in memory does not matter. */
static CxTraced *
with_known_ones(CxTraced *x)
{
    CxTracer *t = x->tracer;
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK], *own[CI_MAX_RANK];
    bool is_same = true;

    for (int k = 0; k < cx_rank(x); k++) {
        const CiExpr *size = cx_sizes(x)[k];
        int is_one = size->kind == CI_EXPR_const ? 0 : cx_size_decide(t, CI_REL_eq, size, t->one);
        if (is_one < 0 && is_one != CX_OPEN)
            return NULL;
        starts[k] = t->zero;
        steps[k] = t->one;
        own[k] = is_one == 1 ? t->one : size;
        is_same &= is_one != 1;
    }
    return (CxTraced *)(is_same ? Py_NewRef(x) : cx_make_slice(x, starts, steps, own));
}

/* NumPy's _attempt_nocopy_reshape for the sizes of this call, each comparison under a guard: the
 * proofs of reshape_view are not enough to say that NumPy copies. 1: it copies. 0 with an exception:
 * it makes a view, whose strides the graph cannot prove; or sizes that data decide leave it open. */
static int
is_copied(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    CxTracer *t = x->tracer;
    const CiExpr *olds[CI_MAX_RANK], *strides[CI_MAX_RANK];
    int nold = 0, old = 0, new = 0, is_equal = 1;

    for (int k = 0; k < cx_rank(x); k++)
        if (cx_sizes(x)[k] != t->one) {
            olds[nold] = cx_sizes(x)[k];
            strides[nold++] = cx_strides(x)[k];
        }
    while (is_equal == 1 && old < nold && new < rank) {
        int first = old;
        is_equal = join_products(t, rank, sizes, &new, nold, olds, &old);
        for (int k = first; is_equal == 1 && k + 1 < old; k++) {
            const CiExpr *step = cx_size_make(t, CI_OP_multiply, olds[k + 1], strides[k + 1]);
            is_equal = step == NULL ? -1 : cx_size_decide(t, CI_REL_eq, strides[k], step);
        }
    }
    if (is_equal == 0)
        return 1;
    if (is_equal > 0)
        PyErr_SetString(PyExc_ValueError, is_equal == CX_OPEN
                                              ? "a reshape that may be a view or a copy"
                                              : "a reshape that is a view at these sizes");
    return is_equal < 0 ? -1 : 0;
}

/* NumPy copies, so the result is a new storage. */
static PyObject *
reshape_copy(CxTraced *x, int rank, const CiExpr *const *requested, const CiExpr *const *sizes)
{
    CxTraced *known = with_known_ones(x), *copy = NULL;
    PyObject *result = NULL;

    if (known == x && is_copied(x, rank, sizes) == 1)
        copy = (CxTraced *)cx_traced_from_node(x->tracer, cx_build_copy(x->tracer, x, NULL),
                                               CI_KIND_array);
    else if (known != NULL && known != x)
        result = cx_make_reshape(known, rank, requested);
    if (copy != NULL)
        result = reshape_view(copy, rank, sizes);
    Py_XDECREF(copy);
    Py_XDECREF(known);
    return result;
}

PyObject *
cx_make_reshape(CxTraced *given, int rank, const CiExpr *const *requested)
{
    const CiExpr *sizes[CI_MAX_RANK];
    VIEW_BEGIN(given);
    bool is_same = rank == cx_rank(given) &&
                   memcmp(requested, cx_sizes(given), sizeof *requested * (size_t)rank) == 0;
    int fits = is_same ? 0 : reshape_sizes(given, rank, requested, sizes);
    CxTraced *x = fits > 0 ? fit_count(given, rank, sizes) : NULL;

    if (is_same) /* its strides stay, also those of axes with one element */
        result = view_with_strides(given, rank, cx_sizes(given), cx_strides(given));
    else if (fits == 0)
        raise_reshape(given, rank, requested);
    if (x != NULL) {
        result = reshape_view(x, rank, sizes);
        if (result == NULL && !PyErr_Occurred() && rank > 1 && meet_axes(x, rank, sizes) > 0)
            result = reshape_view(x, rank, sizes);
        if (result == NULL && !PyErr_Occurred())
            result = reshape_copy(x, rank, requested, sizes);
        Py_DECREF(x);
    }
    VIEW_END(given);
}

static void
body_slice(CiContext *ctx, void *arg)
{
    ViewJob *job = arg;
    CxTraced *x = job->x;
    CxView *v = job->view;
    CiSym *sym = x->tracer->sym;

    (void)ctx;
    for (int k = 0; k < v->rank; k++) {
        const CiExpr *stride = cx_strides(x)[k];
        v->starts[k] = job->starts[k];
        v->steps[k] = job->steps[k];
        v->sizes[k] = job->sizes[k];
        v->strides[k] = ci_expr_mul(sym, stride, job->steps[k]);
        if (!ci_expr_equals_const(cx_sizes(x)[k], 0))
            v->offset = ci_expr_add(sym, v->offset, ci_expr_mul(sym, stride, job->starts[k]));
    }
}

/* Finishes the view; steals it. */
static PyObject *
finish_job(ViewJob *job, void (*body)(CiContext *, void *))
{
    if (job->view == NULL)
        return NULL;
    if (run_job(job, body) < 0) {
        cx_view_release(job->view);
        return NULL;
    }
    return finish_view(job->x, job->view);
}

PyObject *
cx_make_slice(CxTraced *x, const CiExpr *const *starts, const CiExpr *const *steps,
              const CiExpr *const *sizes)
{
    VIEW_BEGIN(x);
    ViewJob job = {.x = x, .starts = starts, .steps = steps, .sizes = sizes};
    job.view = cx_view_new(x, CI_OP_slice, cx_rank(x));
    result = finish_job(&job, body_slice);
    VIEW_END(x);
}

static PyObject *
expand(CxTraced *x, int rank, const CiExpr *const *sizes, CxAccess access)
{
    VIEW_BEGIN(x);
    CxTracer *t = x->tracer;
    int own = cx_rank(x), lead = rank - own;
    bool fits = lead >= 0;

    for (int k = 0; fits && k < own; k++)
        fits = cx_sizes(x)[k] == t->one || cx_size_join(t, cx_sizes(x)[k], sizes[lead + k]) != NULL;
    if (!fits) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "input operand has more dimensions than allowed by the "
                            "axis remapping, or does not broadcast");
        Py_DECREF(x);
        return NULL;
    }
    CxView *v = cx_view_new(x, CI_OP_expand, rank);
    if (v != NULL) {
        for (int k = 0; k < rank; k++) {
            bool repeats = k < lead || (cx_sizes(x)[k - lead] == t->one && sizes[k] != t->one);
            v->sizes[k] = sizes[k];
            v->strides[k] = repeats ? t->zero : cx_strides(x)[k - lead];
        }
        v->access = access;
        result = finish_view(x, v);
    }
    VIEW_END(x);
}

PyObject *
cx_make_expand(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    return expand(x, rank, sizes, CX_READONLY);
}

PyObject *
cx_make_broadcast(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    bool is_readonly = cx_access(x) == CX_READONLY;
    return expand(x, rank, sizes, is_readonly ? CX_READONLY : CX_WARNS_OF_WRITES);
}

static void
body_diagonal(CiContext *ctx, void *arg)
{
    ViewJob *job = arg;
    CxView *v = job->view;
    CiSym *sym = job->x->tracer->sym;
    const CiExpr *zero = ci_expr_const(sym, 0), *const *sizes = cx_sizes(job->x),
                 *const *strides = cx_strides(job->x);
    const CiExpr *right = ci_expr_max(sym, job->starts[0], zero),
                 *down = ci_expr_max(sym, ci_expr_neg(sym, job->starts[0]), zero);
    int first = v->axes[0], second = v->axes[1], at = 0;

    (void)ctx;
    for (int k = 0; k < cx_rank(job->x); k++)
        if (k != first && k != second) {
            v->sizes[at] = sizes[k];
            v->strides[at++] = strides[k];
        }
    const CiExpr *size = ci_expr_min(sym, ci_expr_sub(sym, sizes[first], down),
                                     ci_expr_sub(sym, sizes[second], right));
    v->starts[0] = job->starts[0];
    v->sizes[at] = ci_expr_max(sym, size, zero);
    v->strides[at] = ci_expr_add(sym, strides[first], strides[second]);
    /* An empty diagonal has no start, as in NumPy. */
    if (ci_expr_equals_const(v->sizes[at], 0))
        return;
    v->offset = ci_expr_add(sym, v->offset, ci_expr_mul(sym, down, strides[first]));
    v->offset = ci_expr_add(sym, v->offset, ci_expr_mul(sym, right, strides[second]));
}

PyObject *
cx_make_diagonal(CxTraced *x, int axis1, int axis2, const CiExpr *offset, bool is_readonly)
{
    VIEW_BEGIN(x);
    ViewJob job = {.x = x, .starts = &offset};
    job.view = cx_view_new(x, CI_OP_diagonal, cx_rank(x) - 1);
    if (job.view != NULL) {
        job.view->axes[0] = axis1;
        job.view->axes[1] = axis2;
        job.view->access = is_readonly ? CX_READONLY : job.view->access;
    }
    result = finish_job(&job, body_diagonal);
    VIEW_END(x);
}

static void
body_window(CiContext *ctx, void *arg)
{
    ViewJob *job = arg;
    CxView *v = job->view;
    CiSym *sym = job->x->tracer->sym;
    int rank = cx_rank(job->x), axis = v->axes[0];

    (void)ctx;
    for (int k = 0; k < rank; k++) {
        v->sizes[k] = cx_sizes(job->x)[k];
        v->strides[k] = cx_strides(job->x)[k];
    }
    v->sizes[axis] =
        ci_expr_add(sym, ci_expr_sub(sym, v->sizes[axis], job->sizes[0]), ci_expr_const(sym, 1));
    v->sizes[rank] = job->sizes[0];
    v->strides[rank] = v->strides[axis];
}

/* Read-only, because its elements share memory. The window is not longer than the axis. */
PyObject *
cx_make_window(CxTraced *x, int axis, const CiExpr *size)
{
    VIEW_BEGIN(x);
    ViewJob job = {.x = x, .sizes = &size};
    job.view = cx_view_new(x, CI_OP_window, cx_rank(x) + 1);
    if (job.view != NULL) {
        job.view->axes[0] = axis;
        job.view->access = CX_READONLY;
    }
    result = finish_job(&job, body_window);
    VIEW_END(x);
}

PyObject *
cx_make_part(CxTraced *x, bool imaginary, bool is_fortran)
{
    CiDtype dtype = cx_dtype(x), part = ci_dtype_real(dtype);
    int rank = cx_rank(x);
    bool is_scalar = x->view == NULL && x->storage->kind != CI_KIND_array;
    PyObject *result = NULL;

    if (part == dtype && !imaginary)
        return Py_NewRef(x);
    if (part == dtype) {
        CiConst zero = {0, 0.0, 0.0};
        int8_t order[CI_MAX_RANK];
        if (is_scalar)
            return cx_traced_from_node(x->tracer,
                                       cx_build_const(x->tracer, dtype, x->storage->kind, zero),
                                       x->storage->kind);
        for (int k = 0; k < rank; k++)
            order[k] = (int8_t)(is_fortran ? rank - 1 - k : k);
        result = cx_traced_from_node(
            x->tracer, cx_build_fill(x->tracer, dtype, rank, cx_sizes(x), order, &zero),
            CI_KIND_array);
        if (result != NULL) /* a view, which is also read-only when returned */
            Py_SETREF(result, cx_make_expand((CxTraced *)result, rank, cx_sizes(x)));
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
    if (imaginary)
        v->offset = cx_size_make(x->tracer, CI_OP_add, v->offset,
                                 cx_size_const(x->tracer, ci_dtype_size(part)));
    if (v->offset == NULL) {
        cx_view_release(v);
        return NULL;
    }
    v->dtype = part;
    v->access = v->access < CX_WRITTEN_BY_PYTHON ? CX_WRITTEN_BY_PYTHON : v->access;
    return finish_view(x, v);
}

CxTraced *
cx_size_fit(CxTraced *x, int rank, const CiExpr *const *sizes)
{
    CxTracer *t = x->tracer;
    const CiExpr *starts[CI_MAX_RANK], *steps[CI_MAX_RANK], *own[CI_MAX_RANK];
    int below = cx_rank(x);
    bool is_same = true;

    for (int k = 0; k < below; k++) {
        const CiExpr *size = cx_sizes(x)[k],
                     *want = below - k <= rank ? sizes[rank - below + k] : size;
        bool needs = size != want && size != t->one &&
                     !(cx_size_is_known(t, size) && cx_size_is_known(t, want));
        starts[k] = t->zero;
        steps[k] = t->one;
        own[k] = needs ? want : size;
        is_same &= !needs;
    }
    if (is_same)
        return (CxTraced *)Py_NewRef(x);
    return (CxTraced *)cx_make_slice(x, starts, steps, own);
}
