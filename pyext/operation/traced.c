/* The type Traced: what it says of itself without data, what it does when data are demanded, and
 * its methods, which are the surface's. A name the surface has not is a break: the real value
 * answers. */
#include "operation/traced.h"
#include "graph/methods.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "value/build.h"
#include "value/index.h"
#include "value/mixed.h"

static int
traced_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxTraced *t = (CxTraced *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->tracer);
    Py_VISIT(t->real);
    return 0;
}

/* ---- attributes ---- */

static PyTypeObject *
real_class(CxTraced *t)
{
    switch (cx_kind(t)) {
    case CI_KIND_array:
        return &PyArray_Type;
    case CI_KIND_scalar:
        return cx_descr(t->tracer->state, cx_dtype(t))->typeobj;
    default:
        return cx_python_class(t->storage);
    }
}

#define GETTER(name) static PyObject *get_##name(PyObject *self, void *closure)
#define SELF(t)                                                                                    \
    CxTraced *t = (CxTraced *)self;                                                                \
    (void)closure

GETTER(class)
{
    SELF(t);
    return Py_NewRef(real_class(t));
}
GETTER(tracer)
{
    SELF(t);
    return Py_NewRef(t->tracer);
}
GETTER(shape)
{
    SELF(t);
    return cx_shape_tuple(t->tracer, cx_rank(t), cx_sizes(t));
}
GETTER(strides)
{
    SELF(t);
    return cx_shape_tuple(t->tracer, cx_rank(t), cx_strides(t));
}
GETTER(dtype)
{
    SELF(t);
    return Py_NewRef(cx_descr(t->tracer->state, cx_dtype(t)));
}
GETTER(ndim)
{
    SELF(t);
    return PyLong_FromLong(cx_rank(t));
}
GETTER(size)
{
    SELF(t);
    return cx_size_object(t->tracer, cx_size_count(t->tracer, cx_rank(t), cx_sizes(t)));
}
GETTER(itemsize)
{
    SELF(t);
    return PyLong_FromLong(ci_dtype_size(cx_dtype(t)));
}
GETTER(nbytes)
{
    SELF(t);
    CxTracer *tracer = t->tracer;
    const CiExpr *count = cx_size_count(tracer, cx_rank(t), cx_sizes(t));
    return cx_size_object(tracer, cx_size_make(tracer, CX_SIZE_mul, count,
                                               cx_size_const(tracer, ci_dtype_size(cx_dtype(t)))));
}

GETTER(kind)
{
    static const char *const names[] = {"array", "scalar", "python"};
    SELF(t);
    return PyUnicode_FromString(names[cx_kind(t)]);
}

/* What tells one piece of memory from another, while something holds it. */
GETTER(storage)
{
    SELF(t);
    return PyLong_FromVoidPtr(t->storage);
}
GETTER(whole)
{
    SELF(t);
    if (t->view == NULL)
        return Py_NewRef(self);
    t->storage->refs++;
    return cx_traced_new(t->tracer, t->storage, NULL);
}
/* Made in this call and not seen by any later one. */
GETTER(is_fresh)
{
    SELF(t);
    return PyBool_FromLong(t->storage->value == NULL && t->view == NULL);
}
/* Whether it is an int that is an expression of sizes and loop variables. */
GETTER(is_expression)
{
    SELF(t);
    return PyBool_FromLong(cx_is_size(t));
}
/* Of a number that may be Python's or NumPy's: the bool that says NumPy's. */
GETTER(strong)
{
    SELF(t);
    CxStorage *strong = cx_mixed(self);
    if (strong == NULL)
        Py_RETURN_NONE;
    strong->refs++;
    return cx_traced_new(t->tracer, strong, NULL);
}
GETTER(version)
{
    SELF(t);
    return PyLong_FromUnsignedLong(t->storage->version);
}
GETTER(is_whole)
{
    SELF(t);
    return PyBool_FromLong(t->view == NULL);
}

GETTER(transposed)
{
    CxTraced *t = (CxTraced *)self;
    int axes[CI_MAX_RANK], rank = cx_rank(t);

    if (cx_kind(t) != CI_KIND_array)
        return Py_NewRef(self);
    if (closure != NULL && rank < 2)
        return PyErr_Format(PyExc_ValueError, "matrix transpose with ndim < 2 is undefined");
    for (int k = 0; k < rank; k++)
        axes[k] = closure == NULL ? rank - 1 - k : k >= rank - 2 ? 2 * rank - 3 - k : k;
    return cx_make_permute(t, axes);
}

/* real and imag; closure tells which. Of a Python number they are its own. */
GETTER(part)
{
    CxTraced *t = (CxTraced *)self;
    if (cx_kind(t) == CI_KIND_python) {
        if (closure == NULL && t->storage->dtype == CI_DTYPE_f64)
            return Py_NewRef(self);
        if (t->storage->dtype == CI_DTYPE_c128 && t->storage->value == NULL) {
            PyObject *numpys = cx_make_part(t, closure != NULL);
            PyObject *own =
                numpys == NULL ? NULL : cx_method_as_python((PyObject *)t->tracer, numpys);
            Py_XDECREF(numpys);
            return own;
        }
        PyObject *value = cx_traced_demand(t, closure ? ".imag" : ".real");
        PyObject *part = value ? PyObject_GetAttr(value, closure ? t->tracer->state->str_imag
                                                                 : t->tracer->state->str_real)
                               : NULL;
        Py_XDECREF(value);
        return part;
    }
    return cx_make_part(t, closure != NULL);
}

/* An array of this layout whose elements are never looked at. */
static PyObject *
layout_of(CxTraced *t, bool is_readonly)
{
    CxState *state = t->tracer->state;
    int rank = cx_rank(t);
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
    const int64_t one = 1;

    cx_size_samples(t->tracer, rank, cx_sizes(t), sizes);
    cx_size_samples(t->tracer, rank, cx_strides(t), strides);
    bool owns_few = t->view == NULL && t->storage->value == NULL && cx_kind(t) == CI_KIND_array &&
                    cx_count(rank, sizes) <= 4096;
    if (owns_few)
        return cx_array_new(state, cx_dtype(t), rank, sizes, strides);
    PyObject *dummy = cx_array_new(state, cx_dtype(t), 1, &one, NULL);
    PyObject *shape =
        dummy ? cx_array_view(state, dummy, cx_dtype(t), rank, sizes, strides, 0, is_readonly)
              : NULL;
    Py_XDECREF(dummy);
    return shape;
}

/* Whether it is in C order by its steps alone, whatever its sizes are. */
static int
has_dense_steps(CxTraced *x)
{
    const CxTracer *t = x->tracer;
    const CiExpr *dense = cx_size_const(x->tracer, ci_dtype_size(cx_dtype(x)));

    for (int k = cx_rank(x) - 1; k >= 0 && dense != NULL; k--) {
        const CiExpr *size = cx_sizes(x)[k];
        if (size != t->one && cx_strides(x)[k] != dense)
            return 0;
        dense = cx_size_make(x->tracer, CX_SIZE_mul, dense, size);
    }
    return dense == NULL ? -1 : 1;
}

/* An array that is not contiguous, in C's order or in Fortran's, has an axis that says so: one with
 * a step that is not what the axes inside take, and with elements to step over. */
static int
guard_gap(CxTraced *x, const int64_t *sizes, int order)
{
    CxTracer *t = x->tracer;
    const CiExpr *dense = cx_size_const(t, ci_dtype_size(cx_dtype(x)));
    int status = dense == NULL ? -1 : 0, rank = cx_rank(x);

    for (int n = 0; n < rank && status >= 0; n++) {
        int k = order == NPY_ARRAY_C_CONTIGUOUS ? rank - 1 - n : n;
        const CiExpr *size = cx_sizes(x)[k], *step = cx_strides(x)[k];
        if (sizes[k] > 1 && (status = cx_size_decide(t, CI_REL_eq, step, dense)) == 0)
            return cx_size_decide(t, CI_REL_lt, t->one, size) < 0 ? -1 : 0;
        dense = status < 0 ? NULL : cx_size_make(t, CX_SIZE_mul, dense, size);
        status = dense == NULL ? -1 : 0;
    }
    return status;
}

enum { IS_C = NPY_ARRAY_C_CONTIGUOUS, IS_F = NPY_ARRAY_F_CONTIGUOUS };

/* What an array's flags say of memory depends on which axes have one element, or none: guards. Of
 * the flags that are not asked for it is left open what fewer elements would do. */
static int
guard_flags(CxTraced *x, int flags, int asked)
{
    CxTracer *t = x->tracer;
    int rank = cx_rank(x);
    int64_t sizes[CI_MAX_RANK];
    bool is_c = flags & IS_C, is_f = flags & IS_F;
    int is_dense = is_c && asked != 0 ? has_dense_steps(x) : 0, status = is_dense;

    if (asked == 0 && is_c && (!is_f || rank < 2))
        return 0;
    if (is_dense == 1 && (asked == IS_C || rank < 2))
        return 0;
    cx_size_samples(t, rank, cx_sizes(x), sizes);
    for (int k = 0; k < rank && status >= 0; k++)
        if (sizes[k] <= 1 && cx_sizes(x)[k]->kind != CI_EXPR_const)
            status = cx_size_decide(t, CI_REL_eq, cx_sizes(x)[k], sizes[k] ? t->one : t->zero);
    if (status >= 0 && !is_c && (asked & IS_C))
        status = guard_gap(x, sizes, IS_C);
    if (status >= 0 && !is_f && (asked & IS_F))
        status = guard_gap(x, sizes, IS_F);
    return status < 0 ? -1 : 0;
}

/* Whether NumPy hands it on as it is where it makes others lie in order. */
GETTER(is_in_order)
{
    CxTraced *t = (CxTraced *)self;
    (void)closure;
    PyObject *shape = layout_of(t, false), *result = NULL;
    if (shape != NULL && guard_flags(t, PyArray_FLAGS((PyArrayObject *)shape), IS_C) == 0)
        result = PyBool_FromLong(PyArray_IS_C_CONTIGUOUS((PyArrayObject *)shape));
    Py_XDECREF(shape);
    return result;
}

/* Whether its elements lie side by side and forwards, in some order of its axes. */
GETTER(is_dense)
{
    SELF(t);
    const CxTracer *tracer = t->tracer;
    const CiExpr *const *sizes = cx_sizes(t), *const *strides = cx_strides(t);
    const CiExpr *step = cx_size_const(t->tracer, ci_dtype_size(cx_dtype(t)));
    bool is_counted[CI_MAX_RANK] = {false};
    int rank = cx_rank(t);

    for (int n = 0; step != NULL && n < rank; n++) {
        int axis = rank;
        for (int k = rank; k-- > 0 && axis == rank;)
            if (!is_counted[k] && (sizes[k] == tracer->one || strides[k] == step))
                axis = k;
        if (axis == rank)
            Py_RETURN_FALSE;
        is_counted[axis] = true;
        step = cx_size_make(t->tracer, CX_SIZE_mul, step, sizes[axis]);
    }
    if (step == NULL)
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *
flags_of(CxTraced *t, int asked)
{
    bool is_readonly = t->storage->is_readonly || (t->view && t->view->is_readonly) ||
                       cx_kind(t) == CI_KIND_scalar;
    PyObject *shape = layout_of(t, is_readonly), *flags = NULL;
    if (shape != NULL && guard_flags(t, PyArray_FLAGS((PyArrayObject *)shape), asked) == 0)
        flags = PyObject_GetAttrString(shape, "flags");
    Py_XDECREF(shape);
    return flags;
}

GETTER(flags)
{
    (void)closure;
    return flags_of((CxTraced *)self, IS_C | IS_F);
}

/* For who does the same to an array of few elements, be it contiguous by that or not. */
GETTER(flags_now)
{
    (void)closure;
    return flags_of((CxTraced *)self, 0);
}

static int
set_shape(PyObject *self, PyObject *value, void *closure)
{
    CxTraced *t = (CxTraced *)self;
    const CiExpr *sizes[CI_MAX_RANK];
    (void)closure;
    int rank = value == NULL ? -1 : cx_shape_from(t->tracer, value, sizes);
    if (rank < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_AttributeError, "Cannot delete array shape");
        return -1;
    }
    CxTraced *other = (CxTraced *)cx_make_reshape(t, rank, sizes);
    if (other == NULL)
        return -1;
    int result = 0;
    if (other->storage != t->storage) {
        PyErr_SetString(PyExc_AttributeError,
                        "Incompatible shape for in-place modification. Use `.reshape()` to make a "
                        "copy with the desired shape.");
        result = -1;
    } else {
        CxView *old = t->view;
        t->view = other->view;
        other->view = old;
        Py_CLEAR(t->real);
    }
    Py_DECREF(other);
    return result;
}

static PyGetSetDef traced_getset[] = {
    {"__class__", get_class, NULL, NULL, NULL},
    {"kind", get_kind, NULL, NULL, NULL},
    {"tracer", get_tracer, NULL, NULL, NULL},
    {"shape", get_shape, set_shape, NULL, NULL},
    {"strides", get_strides, NULL, NULL, NULL},
    {"dtype", get_dtype, NULL, NULL, NULL},
    {"ndim", get_ndim, NULL, NULL, NULL},
    {"size", get_size, NULL, NULL, NULL},
    {"itemsize", get_itemsize, NULL, NULL, NULL},
    {"nbytes", get_nbytes, NULL, NULL, NULL},
    {"T", get_transposed, NULL, NULL, NULL},
    {"mT", get_transposed, NULL, NULL, (void *)1},
    {"real", get_part, NULL, NULL, NULL},
    {"imag", get_part, NULL, NULL, (void *)1},
    {"flags", get_flags, NULL, NULL, NULL},
    {"flags_now", get_flags_now, NULL, NULL, NULL},
    {"is_in_order", get_is_in_order, NULL, NULL, NULL},
    {"is_dense", get_is_dense, NULL, NULL, NULL},
    {"storage", get_storage, NULL, NULL, NULL},
    {"is_whole", get_is_whole, NULL, NULL, NULL},
    {"version", get_version, NULL, NULL, NULL},
    {"strong", get_strong, NULL, NULL, NULL},
    {"is_expression", get_is_expression, NULL, NULL, NULL},
    {"whole", get_whole, NULL, NULL, NULL},
    {"is_fresh", get_is_fresh, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *
get_attribute(PyObject *self, PyObject *name)
{
    CxTraced *t = (CxTraced *)self;
    CxState *state = t->tracer->state;
    PyObject *found = NULL, *real = NULL;
    int failed = 0;

    if (cx_kind(t) != CI_KIND_python && state->methods != NULL) {
        PyObject *handler = cx_dict_find(state->methods, name, &failed);
        if (handler != NULL)
            return cx_bound_method_new(t, name, handler);
        if (failed)
            return NULL;
    }
    found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    found = PyObject_GetAttr((PyObject *)real_class(t), name); /* raises in the real class's name */
    if (found == NULL) {
        PyErr_Clear();
        return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'",
                            real_class(t)->tp_name, name);
    }
    if (PyCallable_Check(found)) {
        Py_DECREF(found);
        return cx_bound_method_new(t, name, NULL);
    }
    Py_DECREF(found);
    real = cx_traced_demand(t, PyUnicode_AsUTF8(name) ? PyUnicode_AsUTF8(name) : "an attribute");
    found = real != NULL ? PyObject_GetAttr(real, name) : NULL;
    Py_XDECREF(real);
    return found;
}

static int
set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    CxTraced *t = (CxTraced *)self;
    PyObject *real = NULL;

    if (PyUnicode_CompareWithASCIIString(name, "shape") == 0)
        return PyObject_GenericSetAttr(self, name, value);
    real = cx_traced_demand(t, "setting an attribute");
    if (real == NULL)
        return -1;
    int result = PyObject_SetAttr(real, name, value);
    Py_DECREF(real);
    return result;
}

/* ---- methods of the type's own ---- */

static PyObject *
traced_is_concrete(PyObject *self, PyObject *unused)
{
    CxTraced *t = (CxTraced *)self;
    (void)unused;
    return PyBool_FromLong(t->storage->value != NULL &&
                           !(t->storage->is_written && t->storage->epoch == t->tracer->epoch));
}

static PyObject *
traced_concrete(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    return cx_traced_concrete((CxTraced *)self);
}

static PyObject *
traced_shares_storage(PyObject *self, PyObject *other)
{
    return PyBool_FromLong(cx_is_traced(other) &&
                           ((CxTraced *)self)->storage == ((CxTraced *)other)->storage);
}

/* Whether two values are one: the same memory seen in the same way, or the same expression. */
static PyObject *
traced_is_same(PyObject *self, PyObject *other)
{
    const CxTraced *a = (CxTraced *)self, *b = (CxTraced *)other;
    if (!cx_is_traced(other))
        Py_RETURN_FALSE;
    if (cx_is_size(a) && cx_is_size(b))
        return PyBool_FromLong(a->storage->expr == b->storage->expr);
    return PyBool_FromLong(cx_is_same_view(a, b));
}

static PyObject *
traced_array(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None, *result = NULL;
    PyArray_Descr *descr = NULL;

    CX_ENTRY();
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", names, &dtype, &copy))
        return NULL;
    if (dtype != Py_None && !PyArray_DescrConverter(dtype, &descr))
        return NULL;
    PyObject *real = cx_traced_demand((CxTraced *)self, "a conversion to a NumPy array");
    if (real != NULL) /* steals descr */
        result =
            PyArray_FromAny(real, descr, 0, 0, copy == Py_True ? NPY_ARRAY_ENSURECOPY : 0, NULL);
    else
        Py_XDECREF(descr);
    Py_XDECREF(real);
    return result;
}

static PyObject *
traced_array_ufunc(PyObject *self, PyObject *args, PyObject *kwargs)
{
    CxTraced *t = (CxTraced *)self;
    PyObject *rest = NULL, *result = NULL;

    CX_ENTRY();
    if (PyTuple_GET_SIZE(args) < 2)
        return PyErr_Format(PyExc_TypeError, "__array_ufunc__ takes a ufunc and a method");
    rest = PyTuple_GetSlice(args, 2, PY_SSIZE_T_MAX);
    if (rest != NULL)
        result = cx_array_ufunc(t->tracer, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1),
                                rest, kwargs);
    Py_XDECREF(rest);
    return result;
}

static PyObject *
call_real_function(CxTracer *tracer, PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *name = PyObject_GetAttr(func, tracer->state->str___name__), *a = NULL, *k = NULL,
             *result = NULL;

    if (name == NULL)
        return NULL;
    if (cx_tracer_break(tracer, "the function '%S' is not captured", name) == 0 &&
        (a = cx_concrete_tree(args)) != NULL && (k = cx_concrete_tree(kwargs)) != NULL)
        result = cx_tracer_wrap(tracer, PyObject_Call(func, a, k));
    Py_DECREF(name);
    Py_XDECREF(a);
    Py_XDECREF(k);
    return result;
}

static PyObject *
traced_array_function(PyObject *self, PyObject *args)
{
    CxTracer *tracer = ((CxTraced *)self)->tracer;
    PyObject *func = NULL, *types = NULL, *func_args = NULL, *func_kwargs = NULL, *result = NULL;
    int failed = 0;

    CX_ENTRY();
    if (!PyArg_ParseTuple(args, "OOO!O!", &func, &types, &PyTuple_Type, &func_args, &PyDict_Type,
                          &func_kwargs))
        return NULL;
    PyObject *handler =
        tracer->state->functions ? cx_dict_find(tracer->state->functions, func, &failed) : NULL;
    if (failed)
        return NULL;
    if (handler != NULL) {
        result =
            PyObject_CallFunctionObjArgs(handler, (PyObject *)tracer, func_args, func_kwargs, NULL);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return call_real_function(tracer, func, func_args, func_kwargs);
}

static PyObject *
traced_complex(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *real = cx_traced_demand((CxTraced *)self, "complex()");
    PyObject *result = real ? PyObject_CallOneArg((PyObject *)&PyComplex_Type, real) : NULL;
    Py_XDECREF(real);
    return result;
}

/* copy, deepcopy and pickle see the real value. */
static PyObject *
traced_reduce_ex(PyObject *self, PyObject *protocol)
{
    PyObject *real = cx_traced_demand((CxTraced *)self, "pickle");
    PyObject *result = real ? PyObject_CallMethod(real, "__reduce_ex__", "O", protocol) : NULL;
    Py_XDECREF(real);
    return result;
}

static PyObject *
traced_copy(PyObject *self, PyObject *unused)
{
    CxTraced *t = (CxTraced *)self;
    (void)unused;
    if (cx_kind(t) != CI_KIND_array)
        return Py_NewRef(self);
    return cx_traced_from_node(t->tracer, cx_build_copy(t->tracer, t, NULL), CI_KIND_array);
}

static PyObject *
traced_format(PyObject *self, PyObject *spec)
{
    PyObject *real = cx_traced_demand((CxTraced *)self, "format()");
    PyObject *result = real ? PyObject_Format(real, spec) : NULL;
    Py_XDECREF(real);
    return result;
}

static PyMethodDef traced_methods[] = {
    {"is_concrete", traced_is_concrete, METH_NOARGS, NULL},
    {"concrete", traced_concrete, METH_NOARGS, NULL},
    {"known", cx_traced_known, METH_NOARGS, NULL},
    {"shares_storage", traced_shares_storage, METH_O, NULL},
    {"is_same", traced_is_same, METH_O, NULL},
    {"__array__", (PyCFunction)(void (*)(void))traced_array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))traced_array_ufunc,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"__array_function__", traced_array_function, METH_VARARGS, NULL},
    {"__complex__", traced_complex, METH_NOARGS, NULL},
    {"__reduce_ex__", traced_reduce_ex, METH_O, NULL},
    {"__copy__", traced_copy, METH_NOARGS, NULL},
    {"__deepcopy__", traced_copy, METH_O, NULL},
    {"__format__", traced_format, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

#define BINARY(slot, inplace, ufunc, python)                                                       \
    PyObject *cx_##slot(PyObject *, PyObject *);                                                   \
    PyObject *cx_##inplace(PyObject *, PyObject *);
#define UNARY(slot, ufunc, python) PyObject *cx_##slot(PyObject *);
#include "operation/number.def"

static PyType_Slot traced_slots[] = {
    CX_SLOT(Py_tp_dealloc, cx_traced_dealloc),
    CX_SLOT(Py_tp_traverse, traced_traverse),
    CX_SLOT(Py_tp_getattro, get_attribute),
    CX_SLOT(Py_tp_setattro, set_attribute),
    CX_SLOT(Py_tp_getset, traced_getset),
    CX_SLOT(Py_tp_methods, traced_methods),
    CX_SLOT(Py_tp_richcompare, cx_richcompare),
    CX_SLOT(Py_tp_hash, cx_hash),
    CX_SLOT(Py_tp_repr, cx_repr),
    CX_SLOT(Py_tp_str, cx_str),
    CX_SLOT(Py_tp_iter, cx_iterate),
    CX_SLOT(Py_mp_length, cx_length),
    CX_SLOT(Py_mp_subscript, cx_subscript),
    CX_SLOT(Py_mp_ass_subscript, cx_ass_subscript),
    CX_SLOT(Py_sq_length, cx_length),
    CX_SLOT(Py_sq_item, cx_item),
    CX_SLOT(Py_sq_contains, cx_contains),
    CX_SLOT(Py_nb_bool, cx_bool),
    CX_SLOT(Py_nb_int, cx_int),
    CX_SLOT(Py_nb_float, cx_float),
    CX_SLOT(Py_nb_index, cx_index),
    CX_SLOT(Py_nb_power, cx_power),
    CX_SLOT(Py_nb_inplace_power, cx_inplace_power),
    CX_SLOT(Py_nb_divmod, cx_divmod),
    CX_SLOT(Py_bf_getbuffer, cx_getbuffer),
#define BINARY(slot, inplace, ufunc, python)                                                       \
    CX_SLOT(Py_##slot, cx_##slot), CX_SLOT(Py_##inplace, cx_##inplace),
#define UNARY(slot, ufunc, python) CX_SLOT(Py_##slot, cx_##slot),
#include "operation/number.def"
    {Py_tp_doc, "A value being traced."},
    {0, NULL},
};

PyType_Spec cx_traced_spec = {
    "cinductor._core.Traced",
    sizeof(CxTraced),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    traced_slots,
};
