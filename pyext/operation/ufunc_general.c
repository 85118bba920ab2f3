/* Ufuncs as Python calls them: `__array_ufunc__` with out, where, dtype, casting and signature. */
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"

/* Keywords of one call. References are borrowed except for lifted values. */
typedef struct Call {
    int ufunc, nin, nout;
    PyObject *signature;      /* for resolve_dtypes, or NULL */
    PyObject *casting;        /* or NULL */
    PyObject *where;          /* or NULL */
    CxTraced *mask, *outs[2]; /* owned */
    bool has_out;
    const char *refused;
} Call;

static int
set_outs(CxTracer *tracer, Call *call, PyObject *const *outs, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count && k < call->nout; k++) {
        if (outs[k] == Py_None)
            continue;
        call->has_out = true;
        if (cx_is_traced(outs[k]) && ((CxTraced *)outs[k])->tracer == tracer)
            call->outs[k] = (CxTraced *)Py_NewRef(outs[k]);
        else if (PyArray_CheckExact(outs[k]))
            call->outs[k] = (CxTraced *)cx_tracer_array(tracer, outs[k], CX_SOURCE_unknown);
        else
            call->refused = "an out= of another type";
        if (call->refused == NULL && call->outs[k] == NULL)
            return -1;
        CxTraced *t = call->outs[k];
        if (t != NULL && cx_kind(t) != CI_KIND_array)
            call->refused = "an out= that is no array";
        else if (t != NULL && cx_check_writable(t, CX_OUTPUT_READONLY) < 0)
            return -1;
    }
    /* The other result is broadcast to it, or is a number. */
    if (call->nout == 2 && (call->outs[0] == NULL) != (call->outs[1] == NULL))
        call->refused = "an out= for one of two results";
    return 0;
}

/* dtype= means a signature with only the outputs. */
static int
set_signature(Call *call, PyObject *dtype, PyObject *signature)
{
    if (signature != NULL) {
        call->signature = Py_NewRef(signature);
        return 0;
    }
    if (dtype == NULL || dtype == Py_None)
        return 0;
    call->signature = PyTuple_New(call->nin + call->nout);
    if (call->signature == NULL)
        return -1;
    PyArray_Descr *descr = NULL;
    if (!PyArray_DescrConverter(dtype, &descr))
        return -1;
    for (int k = 0; k < call->nin + call->nout; k++)
        PyTuple_SET_ITEM(call->signature, k,
                         Py_NewRef(k < call->nin ? Py_None : (PyObject *)descr));
    Py_DECREF(descr);
    return 0;
}

static int
read_keywords(CxTracer *tracer, Call *call, PyObject *kwargs)
{
    CxState *state = tracer->state;
    PyObject *key, *value, *dtype = NULL, *signature = NULL;
    Py_ssize_t at = 0;

    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        if (PyUnicode_Compare(key, state->str_out) == 0) {
            PyObject *one = value;
            bool is_tuple = PyTuple_Check(value);
            if (set_outs(tracer, call, is_tuple ? ((PyTupleObject *)value)->ob_item : &one,
                         is_tuple ? PyTuple_GET_SIZE(value) : 1) < 0)
                return -1;
        } else if (PyUnicode_Compare(key, state->str_where) == 0)
            call->where = value == Py_True ? NULL : value;
        else if (PyUnicode_Compare(key, state->str_dtype) == 0)
            dtype = value;
        else if (PyUnicode_Compare(key, state->str_casting) == 0)
            call->casting = value;
        else if (PyUnicode_Compare(key, state->str_signature) == 0 ||
                 PyUnicode_Compare(key, state->str_sig) == 0)
            signature = value;
        else if (PyUnicode_Compare(key, state->str_order) == 0) {
            if (!PyUnicode_Check(value) || PyUnicode_CompareWithASCIIString(value, "K") != 0)
                call->refused = "order= other than 'K'";
        } else if (PyUnicode_Compare(key, state->str_subok) != 0)
            call->refused = "a keyword that is not captured";
    }
    if (call->where != NULL) {
        call->mask = cx_lifted(tracer, call->where);
        if (call->mask == NULL)
            return -1;
        if (cx_dtype(call->mask) != CI_DTYPE_bool)
            call->refused = "a where= that is not boolean";
    }
    return set_signature(call, dtype, signature);
}

static int
resolve_call(CxTracer *tracer, Call *call, CxArgs *args, CxResolved *r)
{
    CxState *state = tracer->state;
    PyObject *kwargs = PyDict_New(), *casting = call->casting;
    int codes[3], result = -1;

    /* "equiv" allows more than "no" only in byte order, which native dtypes share. NumPy 2.4
     * crashes if resolve_dtypes is given "equiv" and the type of a Python number. */
    if (casting != NULL && PyUnicode_Check(casting) &&
        PyUnicode_CompareWithASCIIString(casting, "equiv") == 0)
        casting = state->str_no;
    if (kwargs == NULL ||
        (call->signature && PyDict_SetItem(kwargs, state->str_signature, call->signature) < 0) ||
        (casting && PyDict_SetItem(kwargs, state->str_casting, casting) < 0))
        goto done;
    for (int k = 0; k < args->nargs; k++)
        codes[k] = args->args[k].code;
    result = cx_resolve_slow(state, call->ufunc, args->nargs, codes, kwargs, r);
done:
    Py_XDECREF(kwargs);
    return result;
}

/* Checks the shapes and casts of out= and where=; false if NumPy would raise. */
static bool
fits(CxTracer *tracer, Call *call, CxArgs *args, const CxResolved *r)
{
    NPY_CASTING casting = NPY_SAME_KIND_CASTING;

    if (!cx_args_broadcast(tracer, args) ||
        (call->mask && !cx_broadcast_into(tracer, &args->rank, args->sizes, cx_rank(call->mask),
                                          cx_sizes(call->mask))))
        return false;
    if (call->casting != NULL && !PyArray_CastingConverter(call->casting, &casting)) {
        PyErr_Clear();
        return false;
    }
    for (int k = 0; k < call->nout; k++)
        if (call->outs[k] != NULL &&
            !cx_broadcast_into(tracer, &args->rank, args->sizes, cx_rank(call->outs[k]),
                               cx_sizes(call->outs[k])))
            return false;
    for (int k = 0; k < call->nout; k++) {
        CxTraced *out = call->outs[k];
        if (out == NULL)
            continue;
        if (cx_rank(out) != args->rank ||
            cx_sizes_equal(tracer, args->rank, cx_sizes(out), args->sizes) != 1)
            return false;
        if (r->out[k] == CI_DTYPE_none ||
            !PyArray_CanCastTypeTo(cx_descr(tracer->state, (CiDtype)r->out[k]),
                                   cx_descr(tracer->state, cx_dtype(out)), casting))
            return false;
    }
    return true;
}

static bool
loses_imaginary(const Call *call, const CxArgs *args, const CxResolved *r)
{
    bool loses = false;

    for (int k = 0; k < args->nargs; k++) {
        int code = args->args[k].code == CX_WEAK_complex ? CI_DTYPE_c128 : args->args[k].code;
        loses |= code >= 0 && code < CI_DTYPE_COUNT &&
                 cx_loses_imaginary((CiDtype)code, (CiDtype)r->in[k]);
    }
    for (int k = 0; k < call->nout; k++)
        loses |= call->outs[k] != NULL &&
                 cx_loses_imaginary((CiDtype)r->out[k], cx_dtype(call->outs[k]));
    return loses;
}

/* Repeats the call on arrays without data, so that NumPy raises its exception. */
static void
raise_call(CxTracer *tracer, Call *call, CxArgs *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    PyObject *copy = kwargs ? PyDict_Copy(kwargs) : PyDict_New(), *outs = NULL, *mask = NULL;

    if (copy == NULL)
        return;
    if (call->has_out) {
        outs = PyTuple_New(call->nout);
        for (int k = 0; outs != NULL && k < call->nout; k++) {
            CxTraced *out = call->outs[k];
            cx_put_item(&outs, k, out == NULL ? Py_NewRef(Py_None) : cx_size_dummy(out));
        }
        if (outs == NULL || PyDict_SetItem(copy, state->str_out, outs) < 0)
            goto done;
    }
    if (call->mask != NULL) {
        mask = cx_size_dummy(call->mask);
        if (mask == NULL || PyDict_SetItem(copy, state->str_where, mask) < 0)
            goto done;
    }
    cx_ufunc_raise(tracer, call->ufunc, args, copy);
done:
    Py_XDECREF(outs);
    Py_XDECREF(mask);
    Py_DECREF(copy);
}

/* where(mask, value, other), broadcast to the shape of the result. */
static CiNode *
masked(CxTracer *tracer, CxTraced *mask, CxTraced *value, CxTraced *other, CiDtype dtype)
{
    CxOperand operands[3] = {
        {.traced = mask, .want = CI_DTYPE_bool},
        {.traced = value, .want = dtype},
        {.traced = other, .want = dtype},
    };
    return cx_build_pointwise(tracer, CI_OP_where, 3, operands, CI_DTYPE_none, CI_KIND_array);
}

/* Replaces the masked elements of arrays by 1 (arctanh: 0), for which no operation sets a float
 * flag: NumPy does not compute masked elements, so it does not warn of them. */
static int
mask_operands(CxTracer *tracer, const Call *call, CxArgs *args)
{
    double number = call->ufunc == CI_OP_arctanh ? 0.0 : 1.0;

    for (int k = 0; call->mask != NULL && k < args->nargs; k++) {
        CxTraced *t = args->args[k].traced;
        if (t == NULL || cx_kind(t) != CI_KIND_array || cx_dtype(t) == CI_DTYPE_bool)
            continue;
        CxOperand operands[3] = {
            {.traced = call->mask, .want = CI_DTYPE_bool},
            {.traced = t, .want = cx_dtype(t)},
            {.value = {(int64_t)number, number, 0.0}, .want = cx_dtype(t), .kind = CI_KIND_scalar},
        };
        CiNode *node =
            cx_build_pointwise(tracer, CI_OP_where, 3, operands, CI_DTYPE_none, CI_KIND_array);
        CxTraced *safe = (CxTraced *)cx_traced_from_node(tracer, node, CI_KIND_array);
        if (safe == NULL)
            return -1;
        Py_SETREF(args->args[k].traced, safe);
    }
    return 0;
}

/* Delivers one result: writes it to its out, or returns a new value. Steals value, which has not
 * been masked. */
static PyObject *
deliver(CxTracer *tracer, Call *call, CxArgs *args, int part, CxTraced *value)
{
    CxTraced *out = call->outs[part], *other = out;
    PyObject *result = NULL;

    if (call->mask != NULL) {
        CiDtype dtype = out ? cx_dtype(out) : cx_dtype(value);
        if (out == NULL) /* NumPy leaves the masked elements uninitialised */
            other = (CxTraced *)cx_traced_from_node(
                tracer, cx_build_fill(tracer, dtype, args->rank, args->sizes, NULL, NULL),
                CI_KIND_array);
        CxTraced *mixed =
            other ? (CxTraced *)cx_traced_from_node(
                        tracer, masked(tracer, call->mask, value, other, dtype), CI_KIND_array)
                  : NULL;
        if (out == NULL)
            Py_XDECREF(other);
        Py_SETREF(value, mixed);
        if (value == NULL)
            return NULL;
    }
    if (out == NULL)
        return (PyObject *)value;
    CxOperand operand = {.traced = value, .want = cx_dtype(out)};
    if (cx_build_assign(tracer, out, &operand) == 0)
        result = Py_NewRef(out);
    Py_DECREF(value);
    return result;
}

/* Performs a call whose operands fit. *reason is set if it is not captured. */
static PyObject *
perform(CxTracer *tracer, Call *call, CxArgs *args, const CxResolved *r, const char **reason)
{
    CxTraced *values[2] = {NULL, NULL};
    PyObject *results[2] = {NULL, NULL}, *result = NULL;
    CiKind kind =
        args->rank == 0 && !call->has_out && call->mask == NULL ? CI_KIND_scalar : CI_KIND_array;

    for (int k = 0; k < call->nout; k++)
        if (call->outs[k] != NULL) {
            int status = cx_write_prepare(call->outs[k], CX_OUTPUT_READONLY);
            if (status > 0)
                *reason = "an out= that shares memory";
            if (status != 0)
                return NULL;
        }
    if (mask_operands(tracer, call, args) < 0)
        return NULL;
    for (int k = 0; k < call->nout; k++) {
        CiNode *node = NULL;
        args->out = call->outs[k];
        if (cx_ufunc_node(tracer, call->ufunc, k, args, r, kind, &node, reason) == 0)
            values[k] = (CxTraced *)cx_traced_from_node(tracer, node, kind);
        if (values[k] == NULL)
            goto done;
    }
    for (int k = 0; k < call->nout; k++) {
        CxTraced *value = values[k];
        values[k] = NULL;
        results[k] = deliver(tracer, call, args, k, value);
        if (results[k] == NULL)
            goto done;
    }
    result = call->nout == 1 ? Py_NewRef(results[0]) : PyTuple_Pack(2, results[0], results[1]);
done:
    for (int k = 0; k < 2; k++) {
        Py_XDECREF(values[k]);
        Py_XDECREF(results[k]);
    }
    return result;
}

static PyObject *
call_with_keywords(CxTracer *tracer, PyObject *ufunc, int number, PyObject *args, PyObject *kwargs)
{
    Call call = {.ufunc = number, .nout = cx_ufunc_nout(number)};
    CxArgs operands = {0};
    CxResolved r;
    PyObject *result = NULL, *nin = PyObject_GetAttrString(ufunc, "nin");
    const char *reason = NULL;
    Py_ssize_t nargs = PyTuple_GET_SIZE(args);

    call.nin = nin ? (int)PyLong_AsLong(nin) : -1;
    Py_XDECREF(nin);
    if (call.nin < 0 || nargs < call.nin || nargs > call.nin + call.nout || call.nin > 3)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(
                         PyExc_TypeError,
                         "%s() takes from %d to %d positional arguments but %zd were given",
                         number < CI_OP_COUNT ? ci_op_name((CiOp)number) : "ufunc", call.nin,
                         call.nin + call.nout, nargs);
    PyObject *const *items = ((PyTupleObject *)args)->ob_item;
    if (set_outs(tracer, &call, items + call.nin, nargs - call.nin) < 0 ||
        read_keywords(tracer, &call, kwargs) < 0 ||
        cx_operands_open(tracer, number, call.nin, items, &operands) < 0)
        goto done;
    reason = call.refused;
    if (reason == NULL &&
        (resolve_call(tracer, &call, &operands, &r) < 0 || !fits(tracer, &call, &operands, &r))) {
        PyErr_Clear();
        raise_call(tracer, &call, &operands, kwargs);
        if (PyErr_Occurred())
            goto done;
        reason = "keywords that NumPy alone understands";
    }
    if (reason == NULL && loses_imaginary(&call, &operands, &r))
        reason = CX_LOSES_IMAGINARY;
    if (reason == NULL)
        result = perform(tracer, &call, &operands, &r, &reason);
    if (reason != NULL && result == NULL && !PyErr_Occurred())
        result =
            cx_ufunc_fallback(tracer, ufunc, tracer->state->str___call__, args, kwargs, reason);
done:
    cx_operands_close(&operands);
    Py_XDECREF(call.signature);
    Py_XDECREF(call.mask);
    Py_XDECREF(call.outs[0]);
    Py_XDECREF(call.outs[1]);
    return result;
}

static PyObject *
call_matmul(CxTracer *tracer, PyObject *ufunc, PyObject *args, PyObject *kwargs)
{
    CxState *state = tracer->state;
    PyObject *out = kwargs ? PyDict_GetItemWithError(kwargs, state->str_out) : NULL;

    if (PyTuple_GET_SIZE(args) == 2 &&
        (kwargs == NULL || PyDict_GET_SIZE(kwargs) == (out != NULL))) {
        if (out != NULL && PyTuple_Check(out) && PyTuple_GET_SIZE(out) == 1)
            out = PyTuple_GET_ITEM(out, 0);
        if (out == NULL || out == Py_None)
            return cx_matmul(tracer, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1));
        CxTraced *target = cx_lifted(tracer, out);
        if (target == NULL || cx_check_writable(target, CX_OUTPUT_READONLY) < 0) {
            Py_XDECREF(target);
            return NULL;
        }
        CxTraced *product = cx_is_traced(out)
                                ? (CxTraced *)cx_matmul(tracer, PyTuple_GET_ITEM(args, 0),
                                                        PyTuple_GET_ITEM(args, 1))
                                : NULL;
        int status = product != NULL && cx_matmul_fits(product, target)
                         ? cx_assign_value(target, (PyObject *)product, CX_OUTPUT_READONLY)
                         : 1;
        Py_XDECREF(product);
        Py_XDECREF(target);
        if (status == 0)
            return Py_NewRef(out);
        if (PyErr_Occurred())
            return NULL;
    }
    return cx_ufunc_fallback(tracer, ufunc, state->str___call__, args, kwargs,
                             "keywords that are not captured");
}

PyObject *
cx_ufunc_general(CxTracer *tracer, PyObject *ufunc, PyObject *args, PyObject *kwargs)
{
    int number = cx_ufunc_find(tracer->state, ufunc);

    if (number < 0)
        return number == -2 ? NULL
                            : cx_ufunc_fallback(tracer, ufunc, tracer->state->str___call__, args,
                                                kwargs, "not captured");
    if (number == CI_OP_matmul)
        return call_matmul(tracer, ufunc, args, kwargs);
    /* The common call has only operands. */
    Py_ssize_t nargs = PyTuple_GET_SIZE(args);
    bool is_plain = (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0) && nargs <= 2 &&
                    number < CI_OP_COUNT && nargs == ci_op_arity((CiOp)number);
    if (is_plain)
        return cx_ufunc_call(tracer, number, (int)nargs, ((PyTupleObject *)args)->ob_item);
    return call_with_keywords(tracer, ufunc, number, args, kwargs);
}

/* target op= other: the ufunc with out=target. */
PyObject *
cx_ufunc_into(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, CxTraced *out)
{
    PyObject *tuple = PyTuple_New(nargs), *kwargs = PyDict_New(),
             *outs = PyTuple_Pack(1, (PyObject *)out), *result = NULL;

    for (int k = 0; tuple != NULL && k < nargs; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
    if (tuple != NULL && kwargs != NULL && outs != NULL &&
        PyDict_SetItem(kwargs, tracer->state->str_out, outs) == 0)
        result = cx_ufunc_general(tracer, tracer->state->ufuncs[ufunc], tuple, kwargs);
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    Py_XDECREF(outs);
    return result;
}
