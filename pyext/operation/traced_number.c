/* Operators of traced values, and conversions that need a value.
 *
 * Values of kind python follow Python: Python computes the result at once, and the graph
 * computes it too if only the numbers can differ from call to call. If the type of the result or
 * an exception depends on the numbers, their values are guarded. */
#include "operation/traced.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/index.h"
#include "value/python_number.h"
#include "value/tagged.h"

/* True if NumPy's operators accept the operand; other operands' own methods are tried first. */
static bool
is_operand(PyObject *o)
{
    bool is_strong;
    return cx_is_traced(o) || PyArray_CheckExact(o) || PyList_CheckExact(o) ||
           PyTuple_CheckExact(o) || cx_code_of_number(o, &is_strong) >= 0;
}

/* True if the operand's class says that NumPy's operators leave operations to its own. */
static bool
is_deferred_to(PyObject *o)
{
    if (is_operand(o))
        return false;
    PyObject *found = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__array_ufunc__");
    if (found == NULL)
        PyErr_Clear();
    Py_XDECREF(found);
    return found == Py_None;
}

/* Runs the real operation on real values, for an operation that the graph does not have. An array
 * that it may write to is saved before, because the call may have to restart. */
static PyObject *
binary_break(PyObject *a, PyObject *b, binaryfunc python, bool in_place)
{
    CxTracer *tracer = ((CxTraced *)(cx_is_traced(a) ? a : b))->tracer;
    PyObject *x = NULL, *y = NULL, *result = NULL;

    if (cx_tracer_break(tracer, "an operator with an operand of type '%s'",
                        Py_TYPE(cx_is_traced(a) ? b : a)->tp_name) == 0 &&
        (x = cx_materialise_tree(a)) != NULL && (y = cx_materialise_tree(b)) != NULL &&
        (!in_place || !cx_is_traced(a) || cx_storage_keep(((CxTraced *)a)->storage) == 0))
        result = python(x, y);
    result = cx_tracer_wrap(tracer, result, (CxGiven){{a, b}, {x, y}});
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

/* True for a scalar of Python or NumPy, which has no operator @, so the other operand's is
 * tried. */
static bool
is_single(PyObject *o)
{
    if (!cx_is_traced(o))
        return !PyArray_Check(o);
    return ((CxTraced *)o)->view == NULL && cx_kind((CxTraced *)o) != CI_KIND_array;
}

/* The graph refuses an operand (an array of objects). Or, after Python steps and outside of regions, the operation cannot be
 * captured, it met an internal error, or two scalars do not have it: then the message is theirs, not a ufunc's. */
bool
cx_is_refused(const CxTracer *tracer, bool are_single)
{
    bool is_late = tracer->needs_python && tracer->nblocks == 0 && !tracer->forbids_breaks && !tracer->is_busy;
    bool is_mistake = PyErr_ExceptionMatches(cx_exception(tracer->state, "InternalError")) ||
                      PyErr_ExceptionMatches(tracer->state->region_break) || (are_single && PyErr_ExceptionMatches(PyExc_TypeError));
    bool is_refused = PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported")) || (is_late && is_mistake);
    if (is_refused)
        PyErr_Clear();
    return is_refused;
}

/* The result of an operation of two operands; if it is refused, Python's own. */
static PyObject *
or_break(PyObject *result, PyObject *a, PyObject *b, binaryfunc python, bool in_place)
{
    bool is_known = result != NULL || !cx_is_refused(((CxTraced *)(cx_is_traced(a) ? a : b))->tracer, is_single(a) && is_single(b));
    return is_known ? result : binary_break(a, b, python, in_place);
}

static bool
is_sequence(PyObject *o)
{
    return PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o);
}

/* True if Python's `*` repeats the other operand, which happens for NumPy scalars but not for
 * arrays. */
static bool
repeats(PyObject *a, int ufunc)
{
    return cx_is_python_kind(a) ||
           (ufunc == CI_OP_multiply && cx_is_traced(a) && cx_kind((CxTraced *)a) == CI_KIND_scalar);
}

/* [0] * n needs the value of n. */
static PyObject *
repeat(PyObject *a, PyObject *b, binaryfunc python)
{
    bool is_first = cx_is_traced(a);
    PyObject *number = cx_traced_concretize((CxTraced *)(is_first ? a : b), "a sequence"),
             *result = NULL;
    if (number != NULL)
        result = is_first ? python(number, b) : python(a, number);
    Py_XDECREF(number);
    return result;
}

/* a @= b, whose second operand is a matrix. */
static PyObject *
matmul_into(CxTraced *a, PyObject *b, binaryfunc python)
{
    if (cx_check_writable(a, CX_OUTPUT_READONLY) < 0)
        return NULL;
    if (!cx_is_traced(b) || cx_rank((CxTraced *)b) < 2)
        return binary_break((PyObject *)a, b, python, true);
    PyObject *product = cx_matmul(a->tracer, (PyObject *)a, b), *result = NULL;
    if (product == NULL)
        return NULL;
    if (!cx_matmul_fits((CxTraced *)product, a))
        result = binary_break((PyObject *)a, b, python, true);
    else if (cx_assign_value(a, product, CX_OUTPUT_READONLY) == 0)
        result = Py_NewRef(a);
    Py_DECREF(product);
    return result;
}

static PyObject *
binary_traced(PyObject *a, PyObject *b, int ufunc, binaryfunc python, bool in_place)
{
    int is_tagged = cx_is_tagged_op(ufunc, a, b);
    if (is_tagged != 0)
        return is_tagged < 0 ? NULL : cx_tagged_op(ufunc, a, b);
    if (cx_is_python_number(a) && cx_is_python_number(b) &&
        (cx_is_python_kind(a) || cx_is_python_kind(b)))
        return cx_python_binary(ufunc, a, b, python);
    if ((is_sequence(b) && repeats(a, ufunc)) || (is_sequence(a) && repeats(b, ufunc)))
        return repeat(a, b, python);
    bool is_pythons = (cx_is_python_kind(a) && is_sequence(b)) || (is_sequence(a) && cx_is_python_kind(b));
    if (is_pythons || !is_operand(a) || !is_operand(b))
        return binary_break(a, b, python, in_place);
    CxTraced *t = (CxTraced *)(cx_is_traced(a) ? a : b);
    PyObject *args[2] = {a, b};
    bool is_array = in_place && (t->view != NULL || t->storage->kind == CI_KIND_array);
    if (ufunc == CI_OP_matmul && is_single(a) && is_single(b))
        return binary_break(a, b, python, in_place);
    if (ufunc == CI_OP_matmul)
        return is_array ? matmul_into((CxTraced *)a, b, python) : cx_matmul(t->tracer, a, b);
    return is_array ? cx_ufunc_into(t->tracer, ufunc, 2, args, (CxTraced *)a)
                    : cx_ufunc_operator(t->tracer, ufunc, 2, args);
}

/* The right operand. For a Python complex number on the left, which is tried first, an
 * np.float64 is a float. A new reference. */
static PyObject *
right_operand(PyObject *a, PyObject *b)
{
    bool is_complex =
        cx_is_python_kind(a) ? cx_dtype((CxTraced *)a) == CI_DTYPE_c128 : PyComplex_CheckExact(a);
    if (is_complex && PyFloat_Check(b))
        return PyFloat_FromDouble(PyFloat_AS_DOUBLE(b));
    if (!is_complex || !cx_is_traced(b) || cx_kind((CxTraced *)b) != CI_KIND_scalar ||
        cx_tagged(b) != NULL || cx_dtype((CxTraced *)b) != CI_DTYPE_f64)
        return Py_NewRef(b);
    if (cx_traced_prepare((CxTraced *)b) < 0)
        return NULL;
    return cx_traced_from_node(((CxTraced *)b)->tracer, cx_node((CxTraced *)b), CI_KIND_python);
}

/* The operation on operands that Python had loaded before NumPy took over the call. */
static PyObject *
binary_in_numpy(PyObject *a, PyObject *b, binaryfunc python)
{
    PyObject *x = cx_materialise_tree(a), *y = x != NULL ? cx_materialise_tree(b) : NULL;
    PyObject *result = y != NULL ? python(x, y) : NULL;

    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

static PyObject *
binary(PyObject *a, PyObject *b, int ufunc, binaryfunc python, bool in_place)
{
    CX_ENTRY();
    if (is_deferred_to(cx_is_traced(a) ? b : a))
        Py_RETURN_NOTIMPLEMENTED;
    if (((CxTraced *)(cx_is_traced(a) ? a : b))->tracer->has_fallen_back)
        return binary_in_numpy(a, b, python);
    PyObject *right = right_operand(a, b), *result = NULL;
    if (right != NULL)
        result = or_break(binary_traced(a, right, ufunc, python, in_place), a, right, python,
                          in_place);
    Py_XDECREF(right);
    return result;
}

/* abs() of a NumPy complex scalar is the C library's hypot; the loop of np.absolute has other bits. */
static PyObject *
scalar_magnitude(CxTraced *z)
{
    PyObject *parts[2] = {cx_make_part(z, false, false), cx_make_part(z, true, false)}, *result = NULL;

    if (parts[0] != NULL && parts[1] != NULL)
        result = cx_ufunc_operator(z->tracer, CI_OP_hypot, 2, parts);
    Py_XDECREF(parts[0]);
    Py_XDECREF(parts[1]);
    return result;
}

static PyObject *
unary_traced(PyObject *a, int ufunc, unaryfunc python)
{
    CxTraced *x = (CxTraced *)a;
    int is_tagged = cx_is_tagged_op(ufunc, a, NULL);
    if (is_tagged != 0)
        return is_tagged < 0 ? NULL : cx_tagged_op(ufunc, a, NULL);
    if (cx_is_python_kind(a))
        return cx_python_unary(ufunc, a, python);
    bool is_complex = ci_dtype_class(cx_dtype(x)) == CI_CLASS_complex;
    if (ufunc == CI_OP_absolute && is_complex && cx_kind(x) == CI_KIND_scalar)
        return scalar_magnitude(x);
    return cx_ufunc_operator(x->tracer, ufunc, 1, &a);
}

static PyObject *
unary(PyObject *a, int ufunc, unaryfunc python)
{
    CxTracer *tracer = ((CxTraced *)a)->tracer;
    PyObject *result = unary_traced(a, ufunc, python);
    if (result != NULL || !cx_is_refused(tracer, is_single(a)))
        return result;
    PyObject *real = cx_traced_concretize((CxTraced *)a, "an operator");
    if (real != NULL)
        result = cx_tracer_wrap(tracer, python(real), (CxGiven){{a, NULL}, {real, NULL}});
    Py_XDECREF(real);
    return result;
}

#define BINARY(op, slot, python, ...)                                                              \
    PyObject *cx_nb_##slot(PyObject *a, PyObject *b);                                              \
    PyObject *cx_nb_inplace_##slot(PyObject *a, PyObject *b);                                      \
    PyObject *cx_nb_##slot(PyObject *a, PyObject *b)                                               \
    {                                                                                              \
        return binary(a, b, CI_OP_##op, PyNumber_##python, false);                                 \
    }                                                                                              \
    PyObject *cx_nb_inplace_##slot(PyObject *a, PyObject *b)                                       \
    {                                                                                              \
        return binary(a, b, CI_OP_##op, PyNumber_InPlace##python, true);                           \
    }
#define UNARY(op, slot, python, ...)                                                               \
    PyObject *cx_nb_##slot(PyObject *a);                                                           \
    PyObject *cx_nb_##slot(PyObject *a)                                                            \
    {                                                                                              \
        return unary(a, CI_OP_##op, PyNumber_##python);                                            \
    }
#define COMPARE(op, sign, python, ...)                                                             \
    static PyObject *compare_##python(PyObject *a, PyObject *b)                                    \
    {                                                                                              \
        return PyObject_RichCompare(a, b, Py_##python);                                            \
    }
#include "value/number.def"

PyObject *
cx_divmod(PyObject *a, PyObject *b)
{
    PyObject *quotient = NULL, *rest = NULL, *result = NULL;

    if (!is_operand(a) || !is_operand(b))
        return binary_break(a, b, PyNumber_Divmod, false);
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

/* The ufunc that ndarray.__pow__ uses instead of power for this Python exponent, or -1. */
static int
fast_power(CxTraced *base, PyObject *exponent)
{
    CiClass kind = ci_dtype_class(cx_dtype(base));
    bool is_inexact = kind == CI_CLASS_float || kind == CI_CLASS_complex;
    bool is_scalar = base->view == NULL && base->storage->kind != CI_KIND_array;
    double e;

    if (is_scalar && kind == CI_CLASS_float) /* powers of NumPy scalars are the C library's */
        return -1;
    if (PyLong_CheckExact(exponent)) {
        int overflow = 0;
        e = (double)PyLong_AsLongAndOverflow(exponent, &overflow);
        if (overflow != 0)
            return -1;
        bool is_other = is_scalar && (kind == CI_CLASS_complex || kind == CI_CLASS_bool);
        if (e == 2.0 && !is_other)
            return CI_OP_square;
    } else if (PyFloat_CheckExact(exponent)) {
        e = PyFloat_AS_DOUBLE(exponent);
    } else {
        return -1;
    }
    bool is_complex = kind == CI_CLASS_complex;
    if (!is_inexact || is_scalar)
        return -1; /* also for NumPy scalars, whose power has another root and other products */
    if (is_complex && e != 0.5 && (e == 1.0 || !PyLong_CheckExact(exponent)) &&
        cx_complex_powers_are_general())
        return -1;
    return e == 2.0    ? CI_OP_square
           : e == 1.0  ? CI_OP_positive
           : e == -1.0 ? CI_OP_reciprocal
           : e == 0.5  ? CI_OP_sqrt
                       : -1;
}

static PyObject *
power_of(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

/* Makes a value of a source a constant. For an int argument the source is marked as having a
 * known value, so that not every value becomes another program. */
static int
specialise_value(CxStorage *s)
{
    const CiShapeEnv *env = s->tracer->env;
    int source = -1;

    for (int k = 0; s->expr != NULL && k < env->nsources; k++)
        if (env->sources[k].symbol == s->expr && env->sources[k].axis == -1)
            source = env->sources[k].input;
    if (source < 0)
        return cx_tracer_specialize(s);
    PyObject *row = Py_BuildValue("(iO)", source, s->value);
    int result = row == NULL ? -1 : PyList_Append(s->tracer->specialized, row);
    Py_XDECREF(row);
    return result;
}

/* Guards, also for later calls, that an int exponent that is an expression of sizes has no
 * special case. */
static int
keep_general(CxTraced *base, const CiExpr *exponent)
{
    CxTracer *t = base->tracer;
    int result = 0;

    for (long value = -1; result == 0 && value <= 2; value++) {
        PyObject *number = PyLong_FromLong(value);
        bool has_way = number != NULL && fast_power(base, number) >= 0;
        const CiExpr *e = has_way ? cx_size_const(t, value) : NULL;
        if (number == NULL ||
            (has_way && (e == NULL || cx_size_decide(t, CI_REL_eq, exponent, e) < 0)))
            result = -1;
        Py_XDECREF(number);
    }
    return result;
}

/* Handles an exponent that is a run-time value: if this one has a special case, it becomes a
 * constant; otherwise a guard refuses later calls with one that has. Returns the number, or NULL
 * for a value that varies; an exception is set if *failed. */
static PyObject *
specialise_exponent(CxTraced *base, PyObject *b, bool *failed)
{
    CiClass class = ci_dtype_class(cx_dtype(base));
    CxStorage *s = cx_is_python_kind(b) ? ((CxTraced *)b)->storage : NULL;

    *failed = false;
    if (s == NULL || s->value == NULL || s->is_specialized ||
        (class != CI_CLASS_float && class != CI_CLASS_complex))
        return b;
    bool is_general = fast_power(base, s->value) < 0;
    if (s->expr != NULL && is_general) {
        *failed = keep_general(base, s->expr) < 0;
        return b;
    }
    if (!is_general || s->source < 0) {
        *failed = specialise_value(s) < 0;
        return s->value;
    }
    PyObject *row = Py_BuildValue("(i(dddd)s)", s->source, -1.0, 0.5, 1.0, 2.0, "differs");
    *failed = row == NULL || PyList_Append(s->tracer->specialized, row) < 0;
    Py_XDECREF(row);
    return b;
}

static PyObject *
inplace_power_of(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

static PyObject *
power_traced(PyObject *a, PyObject *b, bool in_place)
{
    PyObject *args[2] = {a, b};

    int is_tagged = cx_is_tagged_op(CI_OP_power, a, b);
    if (is_tagged != 0)
        return is_tagged < 0 ? NULL : cx_tagged_op(CI_OP_power, a, b);
    if (cx_is_python_number(a) && cx_is_python_number(b) &&
        (cx_is_python_kind(a) || cx_is_python_kind(b)))
        return cx_python_binary(CI_OP_power, a, b, power_of);
    if (!is_operand(a) || !is_operand(b))
        return binary_break(a, b, in_place ? inplace_power_of : power_of, in_place);
    CxTraced *t = (CxTraced *)(cx_is_traced(a) ? a : b);
    bool is_array = in_place && (t->view != NULL || t->storage->kind == CI_KIND_array);
    int ufunc = CI_OP_power, nargs = 2;
    if (cx_is_traced(a)) {
        bool failed;
        args[1] = specialise_exponent((CxTraced *)a, b, &failed);
        int fast = failed ? -1 : fast_power((CxTraced *)a, args[1]);
        if (failed)
            return NULL;
        if (fast >= 0) {
            ufunc = fast;
            nargs = 1;
        }
    }
    return is_array ? cx_ufunc_into(t->tracer, ufunc, nargs, args, (CxTraced *)a)
                    : cx_ufunc_operator(t->tracer, ufunc, nargs, args);
}

static PyObject *
power(PyObject *a, PyObject *b, PyObject *modulo, bool in_place)
{
    CX_ENTRY();
    if (modulo != Py_None)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *right = right_operand(a, b), *result = NULL;
    if (right != NULL)
        result = or_break(power_traced(a, right, in_place), a, right,
                          in_place ? inplace_power_of : power_of, in_place);
    Py_XDECREF(right);
    return result;
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
    static const struct {
        int ufunc;
        binaryfunc python;
    } rows[] = {
#define COMPARE(op, sign, python, ...) [Py_##python] = {CI_OP_##op, compare_##python},
#include "value/number.def"
    };
    int ufunc = rows[op].ufunc;
    PyObject *args[2] = {a, b};

    CX_ENTRY();
    int is_tagged = cx_is_tagged_op(ufunc, a, b);
    if (is_tagged != 0)
        return is_tagged < 0 ? NULL : cx_tagged_op(ufunc, a, b);
    if (cx_is_python_number(a) && cx_is_python_number(b))
        return cx_python_binary(ufunc, a, b, rows[op].python);
    bool is_pythons = cx_is_python_kind(a) && (PyList_CheckExact(b) || PyTuple_CheckExact(b));
    if (is_pythons && (op == Py_EQ || op == Py_NE)) /* a Python number never equals a list */
        Py_RETURN_NOTIMPLEMENTED;
    if (is_operand(b) && !is_pythons)
        return or_break(cx_ufunc_operator(((CxTraced *)a)->tracer, ufunc, 2, args), a, b,
                        rows[op].python, false);
    PyObject *real =
        cx_traced_concretize((CxTraced *)a, "a comparison with an object that is no number");
    PyObject *result = real ? PyObject_RichCompare(real, b, op) : NULL;
    Py_XDECREF(real);
    return result;
}

/* ---- conversions ---- */

static PyObject *
convert(PyObject *self, const char *what, PyObject *(*conversion)(PyObject *))
{
    CX_ENTRY();
    PyObject *real = cx_traced_concretize((CxTraced *)self, what);
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
    if (cx_is_size(t)) {
        int is_some = cx_size_decide(t->tracer, CI_REL_ne, t->storage->expr, t->tracer->zero);
        if (is_some != CX_OPEN)
            return is_some;
    }
    if (t->view == NULL && t->storage->left != NULL) { /* more may be known by now */
        const CxStorage *s = t->storage;
        int holds = cx_size_decide(t->tracer, s->relation, s->left, s->right);
        if (holds != CX_OPEN)
            return holds;
    }
    const CiExpr *count = cx_size_count(t->tracer, cx_rank(t), cx_sizes(t));
    int is_one = count == NULL ? -1
                               : cx_size_require(t->tracer, CI_REL_eq, count, t->tracer->one,
                                                 "the truth of an array of one element");
    if (is_one < 0)
        return -1;
    if (is_one == 0) /* ambiguous for any data */
        real = cx_size_dummy(t);
    else
        real = cx_traced_concretize(t, "a condition");
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
    PyObject *real = cx_traced_concretize(t, "hash()");
    Py_hash_t result = real ? PyObject_Hash(real) : -1;
    Py_XDECREF(real);
    return result;
}

int
cx_contains(PyObject *self, PyObject *item)
{
    PyObject *real = cx_traced_concretize((CxTraced *)self, "'in'"),
             *value = real ? cx_materialise_tree(item) : NULL;
    int result = value ? PySequence_Contains(real, value) : -1;
    Py_XDECREF(value);
    Py_XDECREF(real);
    return result;
}

int
cx_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *real = cx_traced_concretize((CxTraced *)self, "the buffer protocol");
    int result = real ? PyObject_GetBuffer(real, view, flags) : -1;
    Py_XDECREF(real);
    return result;
}
