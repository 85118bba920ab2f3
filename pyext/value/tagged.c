/* Tagged numbers: Python's on one path and NumPy's on another, such as `total` after `total =
 * 0.0; if c: total += x[i]`. They are computed as NumPy's; `strong` is the bool that is true if
 * they are NumPy's. An operation that would differ for Python's number cannot be part of a
 * region. Outside of regions the graph is run before it, and the number becomes one or the
 * other. */
#include "value/tagged.h"
#include "graph/methods.h"
#include "state/array.h"
#include "value/python_number.h"

/* Replaces the tagged number by its real value. */
static void
become(CxStorage *s, PyObject *real)
{
    if (!PyArray_IsScalar(real, Generic)) {
        s->kind = CI_KIND_python;
        s->dtype = PyBool_Check(real)   ? CI_DTYPE_bool
                   : PyLong_Check(real) ? CI_DTYPE_i64
                                        : CI_DTYPE_f64;
        Py_SETREF(s->value, Py_NewRef(real));
    }
    cx_storage_release(s->strong);
    s->strong = NULL;
}

int
cx_tagged_resolve(CxTracer *t, PyObject *o)
{
    if (cx_tagged(o) == NULL)
        return 0;
    if (cx_tracer_break(t, "a number that is Python's on one path and NumPy's on another") < 0)
        return -1;
    PyObject *real = cx_traced_materialise((CxTraced *)o);
    if (real == NULL)
        return -1;
    become(((CxTraced *)o)->storage, real);
    Py_DECREF(real);
    return 0;
}

PyObject *
cx_method_resolve_class(PyObject *self, PyObject *value)
{
    CX_ENTRY();
    if (cx_tagged_resolve((CxTracer *)self, value) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* True if NumPy's promotion with the operand gives the same dtype for both kinds of number. */
bool
cx_promotes_alike(CiDtype mixed, PyObject *other)
{
    bool is_strong = false;
    int code = cx_is_traced(other) ? (int)cx_dtype((CxTraced *)other)
                                   : cx_code_of_number(other, &is_strong);

    if (cx_tagged(other) != NULL)
        return true;
    if (mixed == CI_DTYPE_bool) /* Python's bool also gives way to any other dtype */
        return true;
    if (cx_is_python_number(other)) /* a NumPy float32 keeps the other operand narrow, too */
        return mixed != CI_DTYPE_f32;
    if (mixed == CI_DTYPE_f32)
        return code == CI_DTYPE_f32 || code == CI_DTYPE_f64 || code == CI_DTYPE_c64 ||
               code == CI_DTYPE_c128;
    if (code == CI_DTYPE_f64 || code == CI_DTYPE_c128 || code == CI_DTYPE_bool)
        return true;
    CiClass kind =
        code >= 0 && code < CI_DTYPE_COUNT ? ci_dtype_class((CiDtype)code) : CI_CLASS_complex;
    bool is_wide = mixed == CI_DTYPE_f64 || mixed == CI_DTYPE_c128;
    return is_wide ? kind == CI_CLASS_int || kind == CI_CLASS_uint : code == CI_DTYPE_i64;
}

int
cx_tagged_check(CxTracer *t, int nargs, PyObject *const *args)
{
    for (int k = 0; k < nargs; k++) {
        if (cx_tagged(args[k]) == NULL)
            continue;
        for (int j = 0; j < nargs; j++)
            if (j != k && !cx_promotes_alike(cx_dtype((CxTraced *)args[k]), args[j])) {
                if (cx_tagged_resolve(t, args[k]) < 0)
                    return -1;
                break;
            }
    }
    return 0;
}

/* tagged(number, strong): the number, which is NumPy's if the bool is true, or if it is None. */
PyObject *
cx_method_tagged(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *strong = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO:tagged", &value, &strong))
        return NULL;
    bool has_bool = cx_is_traced(strong) && ((CxTraced *)strong)->view == NULL &&
                    cx_dtype((CxTraced *)strong) == CI_DTYPE_bool;
    if (!cx_is_traced(value) || cx_rank((CxTraced *)value) != 0 || (strong != Py_None && !has_bool))
        return cx_misuse(t->state, "tagged() takes a Traced number and a Traced bool");
    if (cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    CxTraced *made = (CxTraced *)cx_traced_from_node(t, cx_node((CxTraced *)value), CI_KIND_scalar);
    if (made != NULL && has_bool) {
        made->storage->strong = ((CxTraced *)strong)->storage;
        made->storage->strong->refs++;
    }
    return (PyObject *)made;
}
