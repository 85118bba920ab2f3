/* Calls of ufuncs without keywords, which also implement the operators. */
#include "operation/ufunc.h"

static const CxResolved *
resolve(CxState *state, int ufunc, int nargs, const int *codes)
{
    if (state->resolved[ufunc] == NULL) {
        state->resolved[ufunc] = PyMem_Calloc(CX_CODE_COUNT * CX_CODE_COUNT, sizeof(CxResolved));
        if (state->resolved[ufunc] == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
    }
    CxResolved *r = &state->resolved[ufunc][codes[0] * CX_CODE_COUNT + (nargs > 1 ? codes[1] : 0)];
    if (!r->is_known && cx_resolve_slow(state, ufunc, nargs, codes, NULL, r) < 0)
        return NULL;
    return r;
}

static PyObject *
pack(PyObject **parts, int count)
{
    PyObject *result = NULL;
    if (count == 1)
        return parts[0];
    if (parts[0] != NULL && parts[1] != NULL)
        result = PyTuple_Pack(2, parts[0], parts[1]);
    Py_XDECREF(parts[0]);
    Py_XDECREF(parts[1]);
    return result;
}

/* The ufunc as a break, with separate operands. */
static PyObject *
call_fallback(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, PyObject *out,
              const char *reason)
{
    PyObject *tuple = PyTuple_New(nargs), *kwargs = PyDict_New(), *result = NULL;

    for (int k = 0; tuple != NULL && k < nargs; k++)
        PyTuple_SET_ITEM(tuple, k, Py_NewRef(args[k]));
    if (tuple != NULL && kwargs != NULL &&
        (out == NULL || PyDict_SetItem(kwargs, tracer->state->str_out, out) == 0))
        result = cx_ufunc_fallback(tracer, tracer->state->ufuncs[ufunc],
                                   tracer->state->str___call__, tuple, kwargs, reason);
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    return result;
}

/* ufunc(*args) if an operand is a traced number. */
static PyObject *
call(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, bool is_called)
{
    CxArgs operands;
    PyObject *parts[2] = {NULL, NULL}, *result = NULL;
    const char *reason = NULL;
    int codes[3], nout = cx_ufunc_nout(ufunc);

    if (tracer->state->ufuncs[ufunc] == NULL)
        return PyErr_Format(cx_exception(tracer->state, "Unsupported"),
                            "this NumPy has no ufunc '%s'",
                            ufunc < CI_OP_COUNT ? ci_op_name((CiOp)ufunc) : "");
    if (cx_operands_open(tracer, ufunc, nargs, args, &operands) < 0)
        goto done;
    operands.is_called = is_called;
    for (int k = 0; k < nargs; k++)
        codes[k] = operands.args[k].code;
    bool fits = cx_args_broadcast(tracer, &operands);
    if (!fits && PyErr_Occurred())
        goto done;
    const CxResolved *r = fits ? resolve(tracer->state, ufunc, nargs, codes) : NULL;
    if (r == NULL) {
        PyErr_Clear();
        cx_ufunc_raise(tracer, ufunc, &operands, NULL);
        if (!PyErr_Occurred())
            result = call_fallback(tracer, ufunc, nargs, args, NULL,
                                   "operands that NumPy alone understands");
        goto done;
    }
    CiKind kind = operands.rank == 0 ? CI_KIND_scalar : CI_KIND_array;
    for (int part = 0; part < nout; part++) {
        CiNode *node = NULL;
        int status = cx_ufunc_node(tracer, ufunc, part, &operands, r, kind, &node, &reason);
        if (status > 0) {
            Py_CLEAR(parts[0]);
            result = call_fallback(tracer, ufunc, nargs, args, NULL, reason);
            goto done;
        }
        parts[part] = status < 0 ? NULL : cx_traced_from_node(tracer, node, kind);
        if (parts[part] == NULL) {
            Py_CLEAR(parts[0]);
            goto done;
        }
    }
    result = pack(parts, nout);
done:
    cx_operands_close(&operands);
    return result;
}

PyObject *
cx_ufunc_call(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args)
{
    return call(tracer, ufunc, nargs, args, true);
}

PyObject *
cx_ufunc_operator(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args)
{
    return call(tracer, ufunc, nargs, args, false);
}

int
cx_ufunc_check(CxTracer *t, int ufunc, PyObject *a, PyObject *b, const char *why)
{
    PyObject *holds = NULL;

    if (a != NULL && b != NULL)
        holds = cx_ufunc_operator(t, ufunc, 2, (PyObject *[]){a, b});
    if (holds != NULL)
        (void)cx_build_check(t, (CxTraced *)holds, why);
    Py_XDECREF(holds);
    return PyErr_Occurred() ? -1 : 0;
}
