/* Indices and slice bounds that are expressions, by NumPy's rules: negative ones count from the
 * end, bounds of slices are clamped.
 *
 * If the clamping can be proved away, or decided by the sizes of this call, no node is needed.
 * Otherwise bounds become min and max of each other, interned, so that equal slices have equal
 * extents. */
#include "value/index.h"

/* at if it is not negative, else at + size: subtracts size max(min(at, 0), -1) times. */
static const CiExpr *
from_end_if_negative(CxTracer *t, const CiExpr *at, const CiExpr *size)
{
    const CiExpr *sign = cx_size_make(t, CI_OP_minimum, at, t->zero);
    sign = cx_size_make(t, CI_OP_maximum, sign, cx_size_const(t, -1));
    return cx_size_make(t, CI_OP_subtract, at, cx_size_make(t, CI_OP_multiply, size, sign));
}

static const CiExpr *
from_end(CxTracer *t, const CiExpr *at, const CiExpr *size)
{
    int is_inside = cx_size_usual(t, CI_REL_le, t->zero, at);
    if (is_inside < 0)
        return NULL;
    if (is_inside == CX_OPEN)
        return from_end_if_negative(t, at, size);
    return is_inside ? at : cx_size_make(t, CI_OP_add, at, size);
}

/* The position of the index as far as it is known during capture, or CX_OPEN. */
static int
place(CxTracer *t, const CiExpr *at, const CiExpr *size, const CiExpr **start)
{
    int is_counted = cx_size_usual(t, CI_REL_le, t->zero, at);
    if (is_counted != 0 && is_counted != 1)
        return is_counted;
    *start = is_counted ? at : cx_size_make(t, CI_OP_add, at, size);
    if (*start == NULL)
        return -1;
    return is_counted ? cx_size_usual(t, CI_REL_lt, at, size)
                      : cx_size_usual(t, CI_REL_le, t->zero, *start);
}

int
cx_index_wrap(CxTracer *t, const CiExpr *at, const CiExpr *size, const CiExpr **start)
{
    int fits = place(t, at, size, start);

    if (fits == CX_OPEN && !cx_may_check(t))
        fits = cx_tracer_break(t, "an index whose place is not known") < 0
                   ? -1
                   : place(t, at, size, start);
    if (fits != CX_OPEN)
        return fits;
    CxTraced *value = (CxTraced *)cx_traced_int(t, at);
    *start = value ? cx_index_define(value, size, false) : NULL;
    Py_XDECREF(value);
    return *start == NULL ? -1 : 1;
}

/* A bound after clamping. Usually clamping has no effect; assuming this (with a guard) gives
 * better expressions. */
static const CiExpr *
clamped(CxTracer *t, CiOp op, const CiExpr *at, const CiExpr *end)
{
    int is_inside = op == CI_OP_maximum ? cx_size_usual(t, CI_REL_le, end, at)
                                      : cx_size_usual(t, CI_REL_le, at, end);
    if (is_inside < 0)
        return NULL;
    return is_inside == CX_OPEN ? cx_size_make(t, op, at, end) : is_inside ? at : end;
}

/* Raises Python's TypeError for an object that is no bound of a slice. */
static int
check_bound(PyObject *bound)
{
    if (bound == Py_None || cx_is_traced(bound) || PyIndex_Check(bound))
        return 0;
    PyErr_SetString(PyExc_TypeError, "slice indices must be integers or None or have an __index__ method");
    return -1;
}

/* A bound that is not None. An int beyond the sizes of arrays counts as one that is just beyond them, because it is
 * multiplied by strides. */
static const CiExpr *
bound_from(CxTracer *t, PyObject *bound)
{
    const Py_ssize_t beyond = (Py_ssize_t)1 << 52;

    if (cx_is_traced(bound))
        return cx_size_from(t, bound);
    Py_ssize_t value = PyNumber_AsSsize_t(bound, NULL);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    return cx_size_const(t, value < -beyond ? -beyond : value > beyond ? beyond : value);
}

static const CiExpr *
clamp(CxTracer *t, PyObject *bound, const CiExpr *size, const CiExpr *low, const CiExpr *high,
      const CiExpr *missing)
{
    if (bound == Py_None)
        return missing;
    if (cx_is_data_int(bound) && low == t->zero)
        return cx_index_define((CxTraced *)bound, size, true);
    const CiExpr *at = bound_from(t, bound);
    at = at == NULL ? NULL : from_end(t, at, size);
    at = at == NULL ? NULL : clamped(t, CI_OP_maximum, at, low);
    return at == NULL ? NULL : clamped(t, CI_OP_minimum, at, high);
}

/* (stop - start + step - 1) // step for a positive step, and its mirror for a negative one. */
static const CiExpr *
slice_count(CxTracer *t, const CiExpr *start, const CiExpr *stop, int64_t step)
{
    bool is_up = step > 0;
    const CiExpr *from = is_up ? start : stop, *to = is_up ? stop : start;
    int has_some = from == to ? 0 : cx_size_usual(t, CI_REL_lt, from, to);
    if (has_some < 0)
        return NULL;
    if (has_some == 0)
        return t->zero;
    int64_t stride = is_up ? step : -step;
    const CiExpr *count = cx_size_make(t, CI_OP_subtract, to, from);
    if (stride != 1) {
        count = cx_size_make(t, CI_OP_add, count, cx_size_const(t, stride - 1));
        count = cx_size_make(t, CI_OP_floor_divide, count, cx_size_const(t, stride));
    }
    return has_some == CX_OPEN ? cx_size_make(t, CI_OP_maximum, count, t->zero) : count;
}

/* A bound without the clamping; NULL if its sign is open, without an exception. */
static const CiExpr *
unclamped(CxTracer *t, PyObject *bound, const CiExpr *size, const CiExpr *missing)
{
    if (bound == Py_None)
        return missing;
    if (cx_is_data_int(bound))
        return NULL;
    const CiExpr *at = bound_from(t, bound);
    int is_negative = at ? cx_size_prove(t, CI_REL_lt, at, t->zero) : -1;
    if (is_negative != 0 && is_negative != 1)
        return NULL;
    return is_negative ? cx_size_make(t, CI_OP_add, at, size) : at;
}

/* x[1:-1] for any size. From a non-negative start to a stop not after the end there are max(stop
 * - start, 0) elements, whichever bound NumPy clamps, so no guard is needed and equal slices
 * have equal lengths. 0: another kind of slice, or one whose length is constant except for a few
 * small sizes, which is better as a constant. */
static int
slice_of_any_size(CxTracer *t, PySliceObject *slice, const CiExpr *size, int64_t step,
                  const CiExpr **out)
{
    const CiExpr *start = unclamped(t, slice->start, size, t->zero),
                 *stop = start ? unclamped(t, slice->stop, size, size) : NULL;
    if (stop == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int is_inside = cx_size_prove(t, CI_REL_le, t->zero, start);
    if (is_inside == 1)
        is_inside = cx_size_prove(t, CI_REL_le, stop, size);
    if (is_inside != 1)
        return is_inside < 0 ? -1 : 0;
    const CiExpr *count = cx_size_make(t, CI_OP_subtract, stop, start);
    if (step != 1) {
        count = cx_size_make(t, CI_OP_add, count, cx_size_const(t, step - 1));
        count = cx_size_make(t, CI_OP_floor_divide, count, cx_size_const(t, step));
    }
    int has_some = count ? cx_size_prove(t, CI_REL_le, t->zero, count) : -1;
    if (has_some == -1 || count->kind == CI_EXPR_const)
        return has_some == -1 ? -1 : 0;
    out[0] = start;
    out[1] = cx_size_const(t, step);
    out[2] = has_some == 1 ? count : cx_size_make(t, CI_OP_maximum, count, t->zero);
    return out[1] == NULL || out[2] == NULL ? -1 : 1;
}

/* x[i::k] with a symbolic k, which must be positive. 0: it is not in this call. */
static int
slice_by_symbol(CxTracer *t, PySliceObject *slice, const CiExpr *size, const CiExpr **out)
{
    const CiExpr *step = cx_size_from(t, slice->step);
    int is_up = step == NULL ? -1
                             : cx_size_require(t, CI_REL_lt, t->zero, step,
                                               "a slice whose step is positive");
    if (is_up != 1)
        return is_up;
    /* Sizes may be computed before the check. */
    step = cx_size_make(t, CI_OP_maximum, step, t->one);
    const CiExpr *start = clamp(t, slice->start, size, t->zero, size, t->zero),
                 *stop = start ? clamp(t, slice->stop, size, t->zero, size, size) : NULL;
    if (stop == NULL)
        return -1;
    const CiExpr *count = cx_size_make(t, CI_OP_subtract, stop, start);
    count = cx_size_make(t, CI_OP_add, count, cx_size_make(t, CI_OP_subtract, step, t->one));
    count = cx_size_make(t, CI_OP_floor_divide, count, step);
    int has_some = count ? cx_size_prove(t, CI_REL_le, start, stop) : -1;
    out[0] = start;
    out[1] = step;
    out[2] = has_some == 1 ? count : cx_size_make(t, CI_OP_maximum, count, t->zero);
    return has_some < 0 || step == NULL || out[2] == NULL ? -1 : 1;
}

/* out: start, step, count. */
int
cx_index_slice(CxTracer *t, PySliceObject *slice, const CiExpr *size, const CiExpr **out)
{
    int64_t step = 1;
    int is_done = 0;

    if (check_bound(slice->start) < 0 || check_bound(slice->stop) < 0 || check_bound(slice->step) < 0)
        return -1;
    if (cx_is_traced(slice->step))
        is_done = slice_by_symbol(t, slice, size, out);
    if (is_done != 0)
        return is_done;
    if (slice->step != Py_None) {
        step = PyNumber_AsSsize_t(slice->step, NULL);
        if (step == -1 && PyErr_Occurred())
            return -1;
        if (step == 0)
            return 0;
        if (step < -PY_SSIZE_T_MAX)
            step = -PY_SSIZE_T_MAX;
    }
    if (step > 0 && size->kind != CI_EXPR_const)
        is_done = slice_of_any_size(t, slice, size, step, out);
    if (is_done != 0)
        return is_done;
    const CiExpr *minus_one = cx_size_const(t, -1), *low = step > 0 ? t->zero : minus_one,
                 *high = step > 0 ? size : cx_size_make(t, CI_OP_add, size, minus_one);
    if (minus_one == NULL || high == NULL)
        return -1;
    const CiExpr *start = clamp(t, slice->start, size, low, high, step > 0 ? low : high),
                 *stop =
                     start ? clamp(t, slice->stop, size, low, high, step > 0 ? high : low) : NULL;
    out[2] = stop ? slice_count(t, start, stop, step) : NULL;
    if (out[2] == NULL)
        return -1;
    bool is_empty =
        out[2] == t->zero; /* any start is possible, but the core requires a valid position */
    out[0] = is_empty ? t->zero : start;
    out[1] = is_empty ? t->one : cx_size_const(t, step);
    return out[1] == NULL ? -1 : 1;
}
