/* Methods of ufuncs: reduce, accumulate, outer. */
#include "operation/fold_order.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

static const struct {
    CiOp ufunc, reduce, scan;
} folds[] = {
    {CI_OP_add, CI_OP_sum, CI_OP_cumsum},
    {CI_OP_multiply, CI_OP_prod, CI_OP_cumprod},
    {CI_OP_maximum, CI_OP_max, CI_OP_cummax},
    {CI_OP_minimum, CI_OP_min, CI_OP_cummin},
    {CI_OP_fmax, CI_OP_fmax_reduce, CI_OP_none},
    {CI_OP_fmin, CI_OP_fmin_reduce, CI_OP_none},
    {CI_OP_logical_or, CI_OP_any, CI_OP_none},
    {CI_OP_logical_and, CI_OP_all, CI_OP_none},
    {CI_OP_bitwise_and, CI_OP_and_reduce, CI_OP_none},
    {CI_OP_bitwise_or, CI_OP_or_reduce, CI_OP_none},
    {CI_OP_bitwise_xor, CI_OP_xor_reduce, CI_OP_none},
};

static CiOp
find_fold(int ufunc, bool is_scan)
{
    for (size_t k = 0; k < sizeof folds / sizeof *folds; k++)
        if ((int)folds[k].ufunc == ufunc)
            return is_scan ? folds[k].scan : folds[k].reduce;
    return CI_OP_none;
}

static int
raise_axis(long long axis, int rank)
{
    PyObject *module = PyImport_ImportModule("numpy.exceptions");
    PyObject *type = module ? PyObject_GetAttrString(module, "AxisError") : NULL;
    PyObject *error = type ? PyObject_CallFunction(type, "Li", axis, rank) : NULL;
    if (error != NULL)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return -1;
}

int
cx_normalize_axes(PyObject *axis, int rank, int *axes)
{
    int64_t given[CI_MAX_RANK];
    bool seen[CI_MAX_RANK] = {false};
    int count = 0;

    if (axis == NULL || axis == Py_None) {
        for (int k = 0; k < rank; k++)
            axes[k] = k;
        return rank;
    }
    int n = cx_axes_from(axis, given, CI_MAX_RANK);
    for (int k = 0; k < n; k++) {
        int64_t a = given[k] < 0 ? given[k] + rank : given[k];
        if (a < 0 || a >= rank)
            return raise_axis(given[k], rank);
        if (seen[a]) {
            PyErr_SetString(PyExc_ValueError, "duplicate value in 'axis'");
            return -1;
        }
        seen[a] = true;
    }
    for (int k = 0; n >= 0 && k < rank; k++)
        if (seen[k])
            axes[count++] = k;
    return n < 0 ? -1 : count;
}

typedef struct Fold {
    int ufunc;
    CiOp op;
    CxTraced *x, *mask, *out; /* owned */
    CiDtype dtype;            /* in which it is computed; none: by NumPy's rule */
    PyObject *axis, *initial; /* borrowed */
    bool keepdims;
    const char *refused;
    bool has_order; /* has NumPy's order of floating-point additions */
    CxFoldOrder order;
} Fold;

static void
fold_close(Fold *f)
{
    Py_XDECREF(f->x);
    Py_XDECREF(f->mask);
    Py_XDECREF(f->out);
}

static int
fold_out(CxTracer *tracer, Fold *f, PyObject *value)
{
    if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 1)
        value = PyTuple_GET_ITEM(value, 0);
    if (value == Py_None)
        return 0;
    if (cx_is_traced(value))
        f->out = (CxTraced *)Py_NewRef(value);
    else if (PyArray_CheckExact(value))
        f->out = (CxTraced *)cx_tracer_array(tracer, value, CX_SOURCE_unknown);
    else
        f->refused = "an out= of another type";
    if (f->out == NULL)
        return f->refused == NULL ? -1 : 0;
    if (cx_kind(f->out) != CI_KIND_array) {
        f->refused = "an out= that is no array";
        return 0;
    }
    return cx_check_writable(f->out, CX_OUTPUT_READONLY);
}

static bool
is_number(PyObject *value)
{
    return cx_is_traced(value) ? cx_rank((CxTraced *)value) == 0
                               : PyNumber_Check(value) && !PyArray_Check(value);
}

static int
fold_open(CxTracer *tracer, Fold *f, PyObject *args, PyObject *kwargs, PyObject *default_axis)
{
    CxState *state = tracer->state;
    PyObject *key, *value;
    Py_ssize_t at = 0;

    f->axis = default_axis;
    f->dtype = CI_DTYPE_none;
    if (PyTuple_GET_SIZE(args) != 1) {
        f->refused = "positional keywords";
        return 0;
    }
    f->x = cx_lifted(tracer, PyTuple_GET_ITEM(args, 0));
    if (f->x == NULL)
        return -1;
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        if (PyUnicode_Compare(key, state->str_axis) == 0)
            f->axis = value;
        else if (PyUnicode_Compare(key, state->str_keepdims) == 0)
            f->keepdims = PyObject_IsTrue(value) == 1;
        else if (PyUnicode_Compare(key, state->str_initial) == 0)
            f->initial = value;
        else if (PyUnicode_Compare(key, state->str_dtype) == 0) {
            if (value != Py_None && (f->dtype = cx_dtype_of_object(state, value)) == CI_DTYPE_none)
                return -1;
        } else if (PyUnicode_Compare(key, state->str_out) == 0) {
            if (fold_out(tracer, f, value) < 0)
                return -1;
        } else if (PyUnicode_Compare(key, state->str_where) == 0) {
            if (value != Py_True &&
                (f->mask = (CxTraced *)cx_tracer_lift(tracer, value, CI_DTYPE_bool, false)) == NULL)
                return -1;
        } else
            f->refused = "a keyword that is not captured";
    }
    if (f->initial != NULL && !is_number(f->initial))
        f->refused = "an initial value that is no number";
    return 0;
}

/* NumPy's promotion of two dtypes; none if there is none, or kernels do not support it. */
static CiDtype
promoted(CxState *state, CiDtype a, CiDtype b)
{
    PyArray_Descr *both = PyArray_PromoteTypes(cx_descr(state, a), cx_descr(state, b));
    CiDtype dtype = both == NULL ? CI_DTYPE_none : cx_dtype_of_descr(both);

    Py_XDECREF(both);
    PyErr_Clear();
    return dtype;
}

/* The dtype in which a reduction computes: the platform's for sums and products of small
 * integers. With out=, the promotion of the elements and out; the result is cast to out's dtype
 * at the end. */
static CiDtype
fold_dtype(const Fold *f)
{
    CiDtype dtype = cx_dtype(f->x);
    CiClass kind = ci_dtype_class(dtype);

    if (f->dtype != CI_DTYPE_none)
        return f->dtype;
    if (f->op == CI_OP_any || f->op == CI_OP_all)
        return CI_DTYPE_bool;
    if (f->out != NULL)
        return promoted(f->x->tracer->state, dtype, cx_dtype(f->out));
    bool is_sum = f->op == CI_OP_sum || f->op == CI_OP_prod || f->op == CI_OP_cumsum ||
                  f->op == CI_OP_cumprod;
    if (!is_sum || kind == CI_CLASS_float || kind == CI_CLASS_complex)
        return dtype;
    return kind == CI_CLASS_uint ? CI_DTYPE_u64 : CI_DTYPE_i64;
}

/* Casts the operand and replaces masked elements by the identity of the reduction. Replaces
 * f->x. */
static int
fold_prepare(CxTracer *tracer, Fold *f, CiDtype dtype)
{
    CiNode *node = NULL;
    CiDtype own = cx_dtype(f->x);

    if (dtype == CI_DTYPE_bool && own != CI_DTYPE_bool) { /* truth value of each element */
        CxOperand operands[2] = {{.traced = f->x, .want = own},
                                 {.want = own, .kind = CI_KIND_array}};
        node =
            cx_build_pointwise(tracer, CI_OP_not_equal, 2, operands, CI_DTYPE_none, CI_KIND_array);
    } else if (own != dtype) {
        node = cx_build_cast(tracer, f->x, dtype, CI_KIND_array);
    }
    if (node == NULL && PyErr_Occurred())
        return -1;
    if (node != NULL) {
        Py_SETREF(f->x, (CxTraced *)cx_traced_from_node(tracer, node, CI_KIND_array));
        if (f->x == NULL)
            return -1;
    }
    if (f->mask == NULL)
        return 0;
    /* In NumPy a masked sum starts from +0, another one from its first element. */
    CiConst skipped = f->op == CI_OP_sum ? (CiConst){0} : ci_op_identity(f->op, dtype);
    CxOperand operands[3] = {
        {.traced = f->mask, .want = CI_DTYPE_bool},
        {.traced = f->x, .want = dtype},
        {.want = dtype, .kind = CI_KIND_array, .value = skipped},
    };
    node = cx_build_pointwise(tracer, CI_OP_where, 3, operands, CI_DTYPE_none, CI_KIND_array);
    Py_SETREF(f->x, (CxTraced *)cx_traced_from_node(tracer, node, CI_KIND_array));
    return f->x == NULL ? -1 : 0;
}

/* initial= as an element of an array of that dtype, checked like a write to one. */
static CxTraced *
initial_value(CxTracer *tracer, PyObject *value, CiDtype dtype)
{
    CxTraced *made = (CxTraced *)cx_traced_from_node(
        tracer, cx_build_fill(tracer, dtype, 0, NULL, NULL, NULL), CI_KIND_array);

    if (made != NULL && cx_assign_value(made, value, "") < 0)
        Py_CLEAR(made);
    return made;
}

/* Applies result kind, initial value, keepdims and out. Steals value. */
static PyObject *
fold_finish(CxTracer *tracer, Fold *f, CxTraced *value, int rank, const CiExpr *const *kept)
{
    PyObject *result = NULL;

    if (value != NULL && f->initial != NULL) {
        CiDtype dtype = cx_dtype(value);
        CxTraced *initial = initial_value(tracer, f->initial, dtype);
        CxOperand operands[2] = {{.traced = initial, .want = dtype},
                                 {.traced = value, .want = dtype}};
        CiNode *node = initial ? cx_build_pointwise(tracer, ci_op_combine(f->op), 2, operands,
                                                    CI_DTYPE_none, CI_KIND_array)
                               : NULL;
        Py_SETREF(value, (CxTraced *)cx_traced_from_node(tracer, node, CI_KIND_array));
        Py_XDECREF(initial);
    }
    if (value != NULL && f->keepdims)
        Py_SETREF(value, (CxTraced *)cx_make_reshape(value, rank, kept));
    if (value == NULL)
        return NULL;
    if (f->out != NULL) {
        bool is_exact =
            cx_rank(f->out) == cx_rank(value) &&
            cx_sizes_equal(tracer, cx_rank(value), cx_sizes(f->out), cx_sizes(value)) == 1;
        if (!is_exact && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError,
                            "output parameter for reduction operation has the wrong shape");
        else if (is_exact && cx_assign_value(f->out, (PyObject *)value, CX_OUTPUT_READONLY) == 0)
            result = Py_NewRef(f->out);
        Py_DECREF(value);
        return result;
    }
    if (cx_rank(value) == 0) {
        CiNode *node = cx_traced_prepare(value) < 0 ? NULL : cx_node(value);
        result = cx_traced_from_node(tracer, node, CI_KIND_scalar);
        Py_DECREF(value);
        return result;
    }
    return (PyObject *)value;
}

/* True for an int or a tuple of ints. NumPy accepts neither bools nor lists as axes. */
static bool
is_axis(PyObject *axis)
{
    return !PyBool_Check(axis) && (PyLong_Check(axis) || PyArray_IsScalar(axis, Integer) ||
                                   (cx_is_traced(axis) && cx_rank((CxTraced *)axis) == 0 &&
                                    cx_dtype((CxTraced *)axis) != CI_DTYPE_bool));
}

static bool
are_axes(PyObject *axis)
{
    if (axis == NULL || axis == Py_None || !PyTuple_Check(axis))
        return axis == NULL || axis == Py_None || is_axis(axis);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(axis); k++)
        if (!is_axis(PyTuple_GET_ITEM(axis, k)))
            return false;
    return true;
}

static const char *
why_not_fold(const CxState *state, const Fold *f, CiDtype dtype)
{
    CiOp combine = f->op == CI_OP_none ? CI_OP_none : ci_op_combine(f->op);

    if (f->refused != NULL)
        return f->refused;
    if (!are_axes(f->axis))
        return "an axis that is no int";
    if (state->is_replaced[f->ufunc])
        return CX_OTHERS_LOOP;
    if (combine == CI_OP_none)
        return "a method that is not captured";
    if (dtype == CI_DTYPE_none)
        return "out= of a dtype that is not captured";
    if (dtype != CI_DTYPE_bool && cx_loses_imaginary(cx_dtype(f->x), dtype))
        return CX_LOSES_IMAGINARY;
    return ci_op_why_not(combine, dtype);
}

/* True if NumPy raises: a reduction without an identity over no elements (even if its result is
 * empty), or with a mask. -1: an exception. */
static int
needs_identity(const Fold *f, int naxes, const int *axes)
{
    bool has_identity = f->op != CI_OP_max && f->op != CI_OP_min && f->op != CI_OP_fmax_reduce &&
                        f->op != CI_OP_fmin_reduce;

    if (has_identity || f->initial != NULL)
        return false;
    if (f->mask != NULL)
        return true;
    CxTracer *t = f->x->tracer;
    for (int k = 0; k < naxes; k++) {
        const CiExpr *size = cx_sizes(f->x)[axes[k]];
        if (size->low > 0)
            continue;
        int has_some = cx_size_require(t, CI_REL_lt, t->zero, size,
                                       "a fold without identity over a size that may be 0");
        if (has_some != 1)
            return has_some < 0 ? -1 : 1;
    }
    return 0;
}

/* True if bits depend on the order and must be NumPy's. */
static bool
needs_order(const CxTracer *t, const Fold *f, CiDtype dtype)
{
    return (f->op == CI_OP_sum || f->op == CI_OP_prod) && !ci_op_is_order_free(f->op, dtype) &&
           !ci_backend_has_own_order(t->backend) && ci_options_have_numpys_order(&t->options);
}

/* True if a complex product of two elements uses an FMA; longer products do not. */
static bool
is_fused_in_pairs(const CxTracer *t, const Fold *f, CiDtype dtype)
{
    return f->op == CI_OP_cumprod && ci_dtype_class(dtype) == CI_CLASS_complex &&
           !ci_backend_has_own_order(t->backend) && ci_options_have_numpys_order(&t->options);
}

/* Finds NumPy's order of the reduction, before its operand is cast. Returns a reason if it is
 * not supported; NULL with or without an exception. */
static const char *
find_order(CxTracer *t, Fold *f, CiDtype dtype, int naxes, const int *axes)
{
    CxFoldInput input = {.rank = cx_rank(f->x),
                         .sizes = cx_sizes(f->x),
                         .strides = cx_strides(f->x),
                         .naxes = naxes,
                         .axes = axes,
                         .is_cast = cx_dtype(f->x) != dtype,
                         .is_old = PyArray_GetNDArrayCFeatureVersion() < CX_FOLD_NUMPY,
                         .buffer = CX_FOLD_BUFFER};
    bool is_sum = f->op == CI_OP_sum || f->op == CI_OP_prod;
    if (naxes > 0 && !is_sum && cx_needs_routine(t, f->op, dtype, CI_KIND_array))
        return CX_OWN_ROUTINE;
    if (naxes == 0 || !needs_order(t, f, dtype))
        return NULL;
    if (f->mask != NULL)
        return "a sum of floats where= says";
    if (f->initial != NULL &&
        dtype == CI_DTYPE_f16) /* it is computed in single precision until the end */
        return "a sum of float16 from a start";
    if (f->out != NULL && (cx_dtype(f->out) != dtype || cx_rank(f->out) > 0))
        return "a sum of floats in out=";
    if (f->op == CI_OP_prod && ci_dtype_class(dtype) == CI_CLASS_complex)
        return "a product of complex numbers"; /* its rounding depends on the CPU and the layout */
    int is_known = cx_fold_order(t, &input, &f->order);
    if (is_known < 0)
        return NULL;
    if (f->op == CI_OP_prod || ci_dtype_adds_in_order(dtype)) { /* sequential addition */
        f->order.ninner = f->order.nalone = 0;
        f->order.chunk = f->order.alone = NULL;
    }
    bool is_one_call = f->order.ninner == f->order.naxes && f->order.chunk == NULL;
    if (!is_known || (!is_one_call && (f->initial != NULL || ci_dtype_sum(dtype) != dtype)))
        return is_known ? "a sum of several calls" : "an order that data decide";
    f->has_order = true;
    return NULL;
}

/* Reduction over no axes: NumPy still combines each element with the identity, so a sum of -0.0
 * is 0.0. */
static CiNode *
build_elements(CxTracer *tracer, Fold *f, CiDtype dtype)
{
    CxOperand operands[2] = {{.traced = f->x, .want = dtype},
                             {.want = dtype, .kind = CI_KIND_array, .value = {0}}};

    if (f->op != CI_OP_sum || f->initial != NULL)
        return cx_build_cast(tracer, f->x, dtype, CI_KIND_array);
    return cx_build_pointwise(tracer, CI_OP_add, 2, operands, CI_DTYPE_none, CI_KIND_array);
}

static CiNode *
build_reduce(CxTracer *tracer, Fold *f, int naxes, const int *axes)
{
    CiPairwise pairwise = {f->order.axes, f->order.ninner, f->order.chunk, f->order.alone,
                           f->order.nalone};

    return f->has_order ? cx_build_pairwise(tracer, f->op, f->x, naxes, axes, &pairwise)
                        : cx_build_fold(tracer, f->op, f->x, naxes, axes);
}

static PyObject *
raise_reduce(CxTracer *tracer, Fold *f, PyObject *kwargs)
{
    CxState *state = tracer->state;
    PyObject *method = PyObject_GetAttr(state->ufuncs[f->ufunc], state->str_reduce);
    PyObject *dummy = cx_size_dummy(f->x);
    PyObject *args = dummy ? PyTuple_Pack(1, dummy) : NULL,
             *copy = kwargs ? PyDict_Copy(kwargs) : PyDict_New();
    PyObject *mask = f->mask ? cx_size_dummy(f->mask) : NULL;

    if (copy != NULL && PyDict_Contains(copy, state->str_out) == 1)
        PyDict_DelItem(copy, state->str_out);
    if (mask != NULL && copy != NULL)
        PyDict_SetItem(copy, state->str_where, mask);
    PyObject *result = method && args && copy ? PyObject_Call(method, args, copy) : NULL;
    Py_XDECREF(result);
    Py_XDECREF(mask);
    Py_XDECREF(copy);
    Py_XDECREF(args);
    Py_XDECREF(dummy);
    Py_XDECREF(method);
    if (!PyErr_Occurred())
        cx_raise_status(state, CI_ERR_VALUE,
                        "zero-size array to reduction operation which has no identity");
    return NULL;
}

PyObject *
cx_ufunc_reduce(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    Fold f = {.ufunc = ufunc, .op = find_fold(ufunc, false)};
    int axes[CI_MAX_RANK], naxes = 0, rank = 0;
    const CiExpr *kept[CI_MAX_RANK];
    PyObject *result = NULL, *zero = PyLong_FromLong(0);

    if (zero == NULL || fold_open(tracer, &f, args, kwargs, zero) < 0)
        goto done;
    CiDtype dtype = f.x ? fold_dtype(&f) : CI_DTYPE_none;
    const char *reason = why_not_fold(state, &f, dtype);
    if (reason != NULL) {
        result = cx_ufunc_fallback(tracer, state->ufuncs[ufunc], state->str_reduce, args, kwargs,
                                   reason);
        goto done;
    }
    rank = cx_rank(f.x);
    bool is_zero_d = rank == 0 && f.axis != Py_None && PyLong_Check(f.axis) &&
                     (PyLong_AsLong(f.axis) == 0 || PyLong_AsLong(f.axis) == -1);
    naxes = is_zero_d ? 0 : cx_normalize_axes(f.axis, rank, axes);
    if (naxes < 0)
        goto done;
    int is_refused = needs_identity(&f, naxes, axes);
    if (is_refused > 0)
        raise_reduce(tracer, &f, kwargs);
    if (is_refused != 0)
        goto done;
    reason = find_order(tracer, &f, dtype, naxes, axes);
    if (reason != NULL)
        result = cx_ufunc_fallback(tracer, state->ufuncs[ufunc], state->str_reduce, args, kwargs,
                                   reason);
    if (reason != NULL || PyErr_Occurred() || fold_prepare(tracer, &f, dtype) < 0)
        goto done;
    rank = cx_rank(f.x); /* a mask may have more axes */
    for (int k = 0; k < rank; k++)
        kept[k] = cx_sizes(f.x)[k];
    for (int k = 0; k < naxes; k++)
        kept[axes[k]] = tracer->one;
    CiNode *node = naxes == 0 ? build_elements(tracer, &f, dtype)
                              : build_reduce(tracer, &f, naxes, axes);
    result = fold_finish(tracer, &f, (CxTraced *)cx_traced_from_node(tracer, node, CI_KIND_array),
                         rank, kept);
done:
    fold_close(&f);
    Py_XDECREF(zero);
    return result;
}

PyObject *
cx_ufunc_accumulate(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    Fold f = {.ufunc = ufunc, .op = find_fold(ufunc, true)};
    int axes[CI_MAX_RANK];
    PyObject *result = NULL, *zero = PyLong_FromLong(0);

    if (zero == NULL || fold_open(tracer, &f, args, kwargs, zero) < 0)
        goto done;
    CiDtype dtype = f.x ? fold_dtype(&f) : CI_DTYPE_none;
    const char *reason = why_not_fold(state, &f, dtype);
    if (reason == NULL && (f.mask != NULL || f.initial != NULL || f.keepdims || cx_rank(f.x) == 0))
        reason = "a keyword that is not captured";
    if (reason == NULL && cx_needs_routine(tracer, f.op, dtype, CI_KIND_array))
        reason = CX_OWN_ROUTINE;
    if (reason == NULL && is_fused_in_pairs(tracer, &f, dtype))
        reason = CX_OWN_ROUTINE;
    if (reason != NULL) {
        result = cx_ufunc_fallback(tracer, state->ufuncs[ufunc], state->str_accumulate, args,
                                   kwargs, reason);
        goto done;
    }
    int naxes = cx_normalize_axes(f.axis, cx_rank(f.x), axes);
    if (naxes != 1) {
        if (naxes >= 0)
            PyErr_SetString(PyExc_ValueError, "accumulate does not allow multiple axes");
        goto done;
    }
    if (fold_prepare(tracer, &f, dtype) == 0)
        result = fold_finish(tracer, &f,
                             (CxTraced *)cx_traced_from_node(
                                 tracer, cx_build_fold(tracer, f.op, f.x, 1, axes), CI_KIND_array),
                             0, NULL);
done:
    fold_close(&f);
    Py_XDECREF(zero);
    return result;
}

/* An operand of outer, which NumPy makes an array of: a Python number becomes one of NumPy's. */
static CxTraced *
outer_operand(CxTracer *tracer, PyObject *given)
{
    CxTraced *x = cx_lifted(tracer, given), *strong = NULL;

    if (x == NULL || cx_kind(x) != CI_KIND_python)
        return x;
    if (cx_traced_prepare(x) == 0)
        strong = (CxTraced *)cx_traced_from_node(tracer, cx_node(x), CI_KIND_scalar);
    Py_DECREF(x);
    return strong;
}

PyObject *
cx_ufunc_outer(CxTracer *tracer, int ufunc, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    CxTraced *a = NULL, *b = NULL;
    PyObject *wide = NULL, *result = NULL;
    const CiExpr *sizes[2 * CI_MAX_RANK];

    if (PyTuple_GET_SIZE(args) != 2)
        return cx_ufunc_fallback(tracer, state->ufuncs[ufunc], state->str_outer, args, kwargs,
                                 "wrong operands");
    a = outer_operand(tracer, PyTuple_GET_ITEM(args, 0));
    b = a ? outer_operand(tracer, PyTuple_GET_ITEM(args, 1)) : NULL;
    if (b == NULL)
        goto done;
    int ra = cx_rank(a), rb = cx_rank(b);
    if (ra + rb > CI_MAX_RANK) {
        PyErr_SetString(PyExc_ValueError, "too many dimensions");
        goto done;
    }
    for (int k = 0; k < ra + rb; k++)
        sizes[k] = k < ra ? cx_sizes(a)[k] : tracer->one;
    wide = rb == 0 ? Py_NewRef(a) : cx_make_reshape(a, ra + rb, sizes);
    PyObject *pair = wide ? PyTuple_Pack(2, wide, (PyObject *)b) : NULL;
    if (pair != NULL)
        result = cx_ufunc_general(tracer, state->ufuncs[ufunc], pair, kwargs);
    Py_XDECREF(pair);
done:
    Py_XDECREF(wide);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return result;
}
