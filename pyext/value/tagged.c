/* Tagged numbers: of one class on one path and of another class on another.
 *
 *   total = 0.0; if c: total += x[i]      Python's float or NumPy's
 *   best = 0; if x[i] > best: best = x[i]  Python's int or NumPy's float
 *   s = 0; if c: s += math.sqrt(v)         Python's int or Python's float
 *
 * The node has kind and dtype of the number if the bool `strong` is true. Otherwise the number is
 * Python's, of the dtype `weak`, and the node has its value exactly: an int with a float is smaller
 * than 2**53 (2**24 for float32), which the program checks. So code that only needs the value
 * uses the node. An operation whose result would differ for the two classes is in tagged_op.c,
 * or it cannot be part of a region. Outside of regions the graph is run before it, and the
 * number then has one class. */
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
    if (cx_tracer_break(t, "a number of one class on one path and of another class on another") < 0)
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

/* The dtype of Python's number of that class. */
static CiDtype
wide_dtype(CiDtype dtype)
{
    switch (ci_dtype_class(dtype)) {
    case CI_CLASS_bool:
        return CI_DTYPE_bool;
    case CI_CLASS_float:
        return CI_DTYPE_f64;
    case CI_CLASS_complex:
        return CI_DTYPE_c128;
    default:
        return CI_DTYPE_i64;
    }
}

/* tagged(number, strong, weak): the number if the bool is true, or if it is None; otherwise
 * Python's number of that dtype and value. */
PyObject *
cx_method_tagged(PyObject *self, PyObject *args)
{
    CxTracer *t = (CxTracer *)self;
    PyObject *value = NULL, *strong = NULL, *weak = Py_None;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OO|O:tagged", &value, &strong, &weak))
        return NULL;
    bool has_bool = cx_is_traced(strong) && ((CxTraced *)strong)->view == NULL &&
                    cx_dtype((CxTraced *)strong) == CI_DTYPE_bool;
    if (!cx_is_traced(value) || cx_rank((CxTraced *)value) != 0 || (strong != Py_None && !has_bool))
        return cx_misuse(t->state, "a Traced number and a Traced bool are expected");
    if (cx_traced_prepare((CxTraced *)value) < 0)
        return NULL;
    CiDtype dtype = weak == Py_None ? wide_dtype(cx_dtype((CxTraced *)value))
                                    : cx_dtype_of_descr((PyArray_Descr *)weak);
    bool is_pythons = cx_is_python_kind(value) && dtype != cx_dtype((CxTraced *)value);
    CiKind kind = strong == Py_None ? cx_kind((CxTraced *)value)
                  : is_pythons      ? CI_KIND_python
                                    : CI_KIND_scalar;
    CxTraced *made = (CxTraced *)cx_traced_from_node(t, cx_node((CxTraced *)value), kind);
    if (made != NULL && has_bool) {
        made->storage->strong = ((CxTraced *)strong)->storage;
        made->storage->strong->refs++;
        made->storage->weak = dtype;
    }
    return (PyObject *)made;
}
