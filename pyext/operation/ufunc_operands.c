/* Operands of ufuncs: lifted, with the codes by which NumPy promotes them. A tagged number stays one
 * if NumPy computes in the same dtypes for both of its classes. */
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/python_number.h"
#include "value/tagged.h"

/* The code of a traced operand's dtype. */
static int
code_of(bool is_python, CiDtype dtype)
{
    if (!is_python || dtype == CI_DTYPE_bool)
        return (int)dtype;
    return dtype == CI_DTYPE_f64    ? CX_WEAK_float
           : dtype == CI_DTYPE_c128 ? CX_WEAK_complex
                                    : CX_WEAK_int;
}

/* True if NumPy computes in the same dtypes whichever class the tagged operand k has. */
static bool
promotes_alike(CxTracer *tracer, int ufunc, const CxArgs *args, int k)
{
    CxResolved r[2];
    int codes[3];

    memset(r, 0, sizeof r);
    for (int j = 0; j < args->nargs; j++)
        codes[j] = args->args[j].code;
    for (int which = 0; which < 2; which++) {
        if (which == 1)
            codes[k] = code_of(true, args->args[k].traced->storage->weak);
        if (cx_resolve_slow(tracer->state, ufunc, args->nargs, codes, NULL, &r[which]) < 0) {
            PyErr_Clear();
            return false;
        }
    }
    return memcmp(r[0].in, r[1].in, sizeof r[0].in) == 0 &&
           memcmp(r[0].out, r[1].out, sizeof r[0].out) == 0;
}

int
cx_operands_open(CxTracer *tracer, int ufunc, int nargs, PyObject *const *args, CxArgs *out)
{
    /* For a power, the operation depends on the value of the exponent. */
    int nvarying = ufunc == CI_OP_power ? 1 : nargs;
    bool is_strong;

    memset(out, 0, sizeof *out);
    out->nargs = nargs;
    for (int k = 0; k < nargs; k++) {
        CxArg *a = &out->args[k];
        PyObject *o = args[k];
        int code = -1;
        if (!cx_is_traced(o) && (code = cx_code_of_number(o, &is_strong)) >= 0) {
            bool varies = k < nvarying && cx_tracer_varies(tracer, o);
            a->code = code;
            a->number = Py_NewRef(o);
            if (!varies)
                continue;
        }
        a->traced = cx_lifted(tracer, o);
        if (a->traced == NULL)
            return -1;
        Py_CLEAR(a->number);
        bool is_python = a->traced->view == NULL && a->traced->storage->kind == CI_KIND_python;
        a->code = code_of(is_python, cx_dtype(a->traced));
    }
    for (int k = 0; k < nargs; k++) {
        CxTraced *x = out->args[k].traced;
        if (x == NULL || cx_tagged((PyObject *)x) == NULL || promotes_alike(tracer, ufunc, out, k))
            continue;
        if (cx_tagged_resolve(tracer, (PyObject *)x) < 0)
            return -1;
        out->args[k].code = code_of(cx_kind(x) == CI_KIND_python, cx_dtype(x));
    }
    return 0;
}

void
cx_operands_close(CxArgs *args)
{
    for (int k = 0; k < args->nargs; k++) {
        Py_CLEAR(args->args[k].traced);
        Py_CLEAR(args->args[k].number);
    }
}
