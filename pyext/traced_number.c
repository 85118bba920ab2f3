/* Operators of traced values, and the conversions that demand data.
 *
 * Values of kind python follow Python: the result is computed at once by Python itself, and where
 * nothing but the numbers can differ from call to call the graph computes it too. Where the
 * result's type or an exception depends on the numbers they are specialised. */
#include "pyext.h"

/* Largest int that a float holds exactly. */
#define EXACT_INT (1LL << 53)

static bool
is_python_kind(PyObject *o)
{
    return cx_is_traced(o) && ((CxTraced *)o)->view == NULL &&
           ((CxTraced *)o)->storage->kind == CI_KIND_python;
}

static bool
is_python_number(PyObject *o)
{
    return is_python_kind(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) ||
           PyComplex_CheckExact(o) || PyBool_Check(o);
}

static PyObject *
python_value(PyObject *o)
{
    return cx_is_traced(o) ? ((CxTraced *)o)->storage->value : o;
}

/* The operand as the graph sees it; false when the graph cannot do what Python does. */
static bool
python_operand(CxState *state, PyObject *o, CiDtype want, CxOperand *out)
{
    PyObject *value = python_value(o);

    if (PyBool_Check(value) ||
        !(PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyComplex_CheckExact(value)))
        return false;
    if (PyLong_CheckExact(value)) {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow != 0 || v > EXACT_INT || v < -EXACT_INT || cx_is_traced(o))
            return false;
    }
    out->want = want;
    out->kind = CI_KIND_python;
    if (cx_is_traced(o)) {
        out->traced = (CxTraced *)o;
        return true;
    }
    return cx_const_of(state, value, want, &out->value) == 0;
}

/* A traced value whose number is already known. */
static PyObject *
python_result(CxTracer *tracer, CiNode *node, PyObject *value, PyObject *a, PyObject *b)
{
    CxStorage *s = node ? cx_storage_from_node(tracer, node, CI_KIND_python) : NULL;
    PyObject *both[2] = {a, b};

    if (s == NULL)
        return NULL;
    s->value = Py_NewRef(value);
    for (int k = 0; k < 2; k++)
        if (both[k] != NULL && cx_is_traced(both[k])) {
            s->parents[k] = ((CxTraced *)both[k])->storage;
            s->parents[k]->refs++;
        }
    return cx_traced_new(tracer, s, NULL);
}

static int
specialize_both(PyObject *a, PyObject *b)
{
    if (cx_is_traced(a) && cx_tracer_specialize(((CxTraced *)a)->storage) < 0)
        return -1;
    return b != NULL && cx_is_traced(b) ? cx_tracer_specialize(((CxTraced *)b)->storage) : 0;
}

static bool
graph_can(int ufunc, PyObject *b)
{
    switch (ufunc) {
    case CI_OP_add:
    case CI_OP_subtract:
    case CI_OP_multiply:
    case CI_OP_negative:
    case CI_OP_positive:
    case CI_OP_less:
    case CI_OP_less_equal:
    case CI_OP_greater:
    case CI_OP_greater_equal:
    case CI_OP_equal:
    case CI_OP_not_equal:
        return true;
    case CI_OP_absolute:
        return true;
    case CI_OP_divide: /* by a constant that is not zero no exception can come */
        return PyFloat_CheckExact(b) ? PyFloat_AS_DOUBLE(b) != 0.0
                                     : PyLong_CheckExact(b) && PyObject_IsTrue(b) == 1;
    default:
        return false;
    }
}

/* value: what Python computed from a and b (NULL when it raised). Steals it. */
static PyObject *
python_op(int ufunc, PyObject *a, PyObject *b, PyObject *value)
{
    CxTraced *t = (CxTraced *)(cx_is_traced(a) ? a : b);
    CxTracer *tracer = t->tracer;
    CxOperand operands[2] = {{0}, {0}};
    CiDtype want = CI_DTYPE_f64;
    PyObject *result = NULL;

    if (value == NULL) { /* the numbers made it raise */
        PyObject *exception = cx_take_exception();
        if (specialize_both(a, b) < 0)
            PyErr_Clear();
        cx_restore_exception(exception);
        return NULL;
    }
    if (PyComplex_CheckExact(python_value(a)) ||
        (b != NULL && PyComplex_CheckExact(python_value(b))))
        want = CI_DTYPE_c128;
    bool fits = graph_can(ufunc, b) &&
                !(want == CI_DTYPE_c128 && (ufunc == CI_OP_absolute || ufunc == CI_OP_divide));
    fits = fits && python_operand(tracer->state, a, want, &operands[0]) &&
           (b == NULL || python_operand(tracer->state, b, want, &operands[1]));
    if (fits) {
        CiNode *node = cx_build_pointwise(tracer, (CiOp)ufunc, b ? 2 : 1, operands, CI_DTYPE_none,
                                          CI_KIND_python);
        result = python_result(tracer, node, value, a, b);
    } else if (specialize_both(a, b) == 0) {
        result = Py_NewRef(value);
    }
    Py_DECREF(value);
    return result;
}

/* An operand that NumPy's operators would take; others get their own chance first. */
static bool
is_operand(PyObject *o)
{
    bool is_strong;
    return cx_is_traced(o) || PyArray_CheckExact(o) || PyList_CheckExact(o) ||
           PyTuple_CheckExact(o) || cx_code_of_number(o, &is_strong) >= 0;
}

/* The real operation on real values, where the graph has none. */
static PyObject *
binary_break(PyObject *a, PyObject *b, binaryfunc python)
{
    CxTracer *tracer = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *x = NULL, *y = NULL, *result = NULL;

    if (cx_tracer_break(tracer, "an operator with an operand of type '%s'",
                        Py_TYPE(cx_is_traced(a) ? b : a)->tp_name) == 0 &&
        (x = cx_concrete_tree(a)) != NULL && (y = cx_concrete_tree(b)) != NULL)
        result = cx_tracer_wrap(tracer, python(x, y));
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *
break_into(PyObject *a, PyObject *b, binaryfunc python)
{
    PyObject *value = binary_break(a, b, python);
    CxTraced *t = (CxTraced *)a;
    if (value == NULL || (t->view == NULL && t->storage->kind != CI_KIND_array))
        return value;
    int failed = cx_assign_value(t, value, "output array is read-only");
    Py_DECREF(value);
    return failed < 0 ? NULL : Py_NewRef(a);
}

static PyObject *
binary(PyObject *a, PyObject *b, int ufunc, binaryfunc python, bool in_place)
{
    CX_ENTRY();
    if (is_python_number(a) && is_python_number(b) && (is_python_kind(a) || is_python_kind(b)))
        return python_op(ufunc, a, b, python(python_value(a), python_value(b)));
    if (!is_operand(a) || !is_operand(b)) {
        PyObject *other = is_operand(a) ? b : a;
        if (PyArray_IsAnyScalar(other) || PyArray_Check(other))
            return in_place ? break_into(a, b, python) : binary_break(a, b, python);
        Py_RETURN_NOTIMPLEMENTED;
    }
    CxTraced *t = (CxTraced *)(cx_is_traced(a) ? a : b);
    PyObject *args[2] = {a, b};
    bool is_array = in_place && (t->view != NULL || t->storage->kind == CI_KIND_array);
    if (ufunc == CI_OP_matmul) {
        PyObject *product = cx_matmul(t->tracer, a, b);
        if (!is_array || product == NULL)
            return product;
        int failed = cx_assign_value((CxTraced *)a, product, "output array is read-only");
        Py_DECREF(product);
        return failed < 0 ? NULL : Py_NewRef(a);
    }
    return is_array ? cx_ufunc_into(t->tracer, ufunc, 2, args, (CxTraced *)a)
                    : cx_ufunc_call(t->tracer, ufunc, 2, args);
}

#define BINARY(slot, inplace, ufunc, python)                                                       \
    PyObject *cx_##slot(PyObject *a, PyObject *b);                                                 \
    PyObject *cx_##inplace(PyObject *a, PyObject *b);                                              \
    PyObject *cx_##slot(PyObject *a, PyObject *b)                                                  \
    {                                                                                              \
        return binary(a, b, ufunc, python, false);                                                 \
    }                                                                                              \
    PyObject *cx_##inplace(PyObject *a, PyObject *b)                                               \
    {                                                                                              \
        return binary(a, b, ufunc, python, true);                                                  \
    }
#define UNARY(slot, ufunc, python)                                                                 \
    PyObject *cx_##slot(PyObject *a);                                                              \
    PyObject *cx_##slot(PyObject *a)                                                               \
    {                                                                                              \
        if (is_python_kind(a))                                                                     \
            return python_op(ufunc, a, NULL, python(python_value(a)));                             \
        return cx_ufunc_call(((CxTraced *)a)->tracer, ufunc, 1, &a);                               \
    }
#include "number.def"

PyObject *
cx_divmod(PyObject *a, PyObject *b)
{
    PyObject *quotient = NULL, *rest = NULL, *result = NULL;

    if (is_python_number(a) && is_python_number(b))
        return python_op(CX_UFUNC_divmod, a, b, PyNumber_Divmod(python_value(a), python_value(b)));
    quotient = cx_nb_floor_divide(a, b);
    rest = quotient != NULL && quotient != Py_NotImplemented ? cx_nb_remainder(a, b)
                                                             : Py_XNewRef(quotient);
    if (quotient == Py_NotImplemented)
        result = Py_NewRef(quotient);
    else if (quotient != NULL && rest != NULL)
        result = PyTuple_Pack(2, quotient, rest);
    Py_XDECREF(quotient);
    Py_XDECREF(rest);
    return result;
}

/* The ufunc that ndarray.__pow__ takes for a Python exponent instead of power; -1: none. -2: x**0.
 */
static int
fast_power(CxTraced *base, PyObject *exponent)
{
    CiClass kind = ci_dtype_class(cx_dtype(base));
    bool is_inexact = kind == CI_CLASS_float || kind == CI_CLASS_complex;
    double e;

    if (PyLong_CheckExact(exponent)) {
        int overflow = 0;
        e = (double)PyLong_AsLongAndOverflow(exponent, &overflow);
        if (overflow != 0)
            return -1;
        if (kind != CI_CLASS_bool && e == 2.0)
            return CI_OP_square;
    } else if (PyFloat_CheckExact(exponent)) {
        e = PyFloat_AS_DOUBLE(exponent);
    } else {
        return -1;
    }
    if (!is_inexact)
        return -1;
    return e == 2.0    ? CI_OP_square
           : e == 1.0  ? CI_OP_positive
           : e == -1.0 ? CI_OP_reciprocal
           : e == 0.5  ? CI_OP_sqrt
                       : -1;
}

static PyObject *
power(PyObject *a, PyObject *b, PyObject *modulo, bool in_place)
{
    PyObject *args[2] = {a, b};

    CX_ENTRY();
    if (modulo != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    if (is_python_number(a) && is_python_number(b) && (is_python_kind(a) || is_python_kind(b)))
        return python_op(CI_OP_power, a, b,
                         PyNumber_Power(python_value(a), python_value(b), Py_None));
    if (!is_operand(a) || !is_operand(b))
        Py_RETURN_NOTIMPLEMENTED;
    CxTraced *t = (CxTraced *)(cx_is_traced(a) ? a : b);
    bool is_array = in_place && (t->view != NULL || t->storage->kind == CI_KIND_array);
    int ufunc = CI_OP_power, nargs = 2;
    if (cx_is_traced(a)) {
        int fast = fast_power((CxTraced *)a, b);
        if (fast >= 0) {
            ufunc = fast;
            nargs = 1;
        }
    }
    return is_array ? cx_ufunc_into(t->tracer, ufunc, nargs, args, (CxTraced *)a)
                    : cx_ufunc_call(t->tracer, ufunc, nargs, args);
}

PyObject *
cx_power(PyObject *a, PyObject *b, PyObject *modulo)
{
    return power(a, b, modulo, false);
}

PyObject *
cx_inplace_power(PyObject *a, PyObject *b, PyObject *modulo)
{
    return power(a, b, modulo, true);
}

PyObject *
cx_richcompare(PyObject *a, PyObject *b, int op)
{
    static const int ufuncs[] = {
        [Py_LT] = CI_OP_less,      [Py_LE] = CI_OP_less_equal, [Py_EQ] = CI_OP_equal,
        [Py_NE] = CI_OP_not_equal, [Py_GT] = CI_OP_greater,    [Py_GE] = CI_OP_greater_equal,
    };
    PyObject *args[2] = {a, b};

    CX_ENTRY();
    if (is_python_number(a) && is_python_number(b))
        return python_op(ufuncs[op], a, b,
                         PyObject_RichCompare(python_value(a), python_value(b), op));
    if (is_operand(b))
        return cx_ufunc_call(((CxTraced *)a)->tracer, ufuncs[op], 2, args);
    PyObject *real =
        cx_traced_demand((CxTraced *)a, "a comparison with an object that is no number");
    PyObject *result = real ? PyObject_RichCompare(real, b, op) : NULL;
    Py_XDECREF(real);
    return result;
}

/* ---- conversions ---- */

static PyObject *
convert(PyObject *self, const char *what, PyObject *(*conversion)(PyObject *))
{
    CX_ENTRY();
    PyObject *real = cx_traced_demand((CxTraced *)self, what);
    PyObject *result = real ? conversion(real) : NULL;
    Py_XDECREF(real);
    return result;
}

PyObject *
cx_int(PyObject *self)
{
    return convert(self, "int()", PyNumber_Long);
}

PyObject *
cx_float(PyObject *self)
{
    return convert(self, "float()", PyNumber_Float);
}

PyObject *
cx_index(PyObject *self)
{
    return convert(self, "an index", PyNumber_Index);
}

PyObject *
cx_repr(PyObject *self)
{
    return convert(self, "repr()", PyObject_Repr);
}

PyObject *
cx_str(PyObject *self)
{
    return convert(self, "str()", PyObject_Str);
}

int
cx_bool(PyObject *self)
{
    CxTraced *t = (CxTraced *)self;
    PyObject *real = NULL;

    CX_ENTRY();
    const CiExpr *count = cx_size_count(t->tracer, cx_rank(t), cx_sizes(t));
    int is_one = count == NULL ? -1
                               : cx_size_require(t->tracer, CI_REL_eq, count, t->tracer->one,
                                                 "the truth of an array of one element");
    if (is_one < 0)
        return -1;
    if (is_one == 0) /* ambiguous, whatever the data */
        real = cx_size_dummy(t);
    else
        real = cx_traced_demand(t, "a condition");
    int result = real ? PyObject_IsTrue(real) : -1;
    Py_XDECREF(real);
    return result;
}

Py_hash_t
cx_hash(PyObject *self)
{
    CxTraced *t = (CxTraced *)self;
    if (t->view != NULL || t->storage->kind == CI_KIND_array) {
        PyErr_SetString(PyExc_TypeError, "unhashable type: 'numpy.ndarray'");
        return -1;
    }
    PyObject *real = cx_traced_demand(t, "hash()");
    Py_hash_t result = real ? PyObject_Hash(real) : -1;
    Py_XDECREF(real);
    return result;
}

int
cx_contains(PyObject *self, PyObject *item)
{
    PyObject *real = cx_traced_demand((CxTraced *)self, "'in'"),
             *value = real ? cx_concrete_tree(item) : NULL;
    int result = value ? PySequence_Contains(real, value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(real);
    return result;
}

int
cx_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *real = cx_traced_demand((CxTraced *)self, "the buffer protocol");
    int result = real ? PyObject_GetBuffer(real, view, flags) : -1;
    Py_XDECREF(real);
    return result;
}
