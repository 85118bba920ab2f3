/* Attributes of a traced value that need no data: class, type, layout and flags. Attributes that
 * depend on sizes are those of this call, with guards where another call may differ. */
#include "graph/methods.h"
#include "operation/traced.h"
#include "state/array.h"
#include "state/docs.h"
#include "value/index.h"
#include "value/tagged.h"

#include "ir/layout.h"

PyTypeObject *
cx_traced_class(const CxTraced *t)
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
    return Py_NewRef(cx_traced_class(t));
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
    return cx_size_object(tracer, cx_size_make(tracer, CI_OP_multiply, count,
                                               cx_size_const(tracer, ci_dtype_size(cx_dtype(t)))));
}

GETTER(kind)
{
    static const char *const names[] = {"array", "scalar", "python"};
    SELF(t);
    return PyUnicode_FromString(names[cx_kind(t)]);
}

/* Identifier of the memory of the value. */
GETTER(storage)
{
    SELF(t);
    return PyLong_FromUnsignedLong(t->storage->serial);
}
GETTER(whole)
{
    SELF(t);
    if (t->view == NULL)
        return Py_NewRef(self);
    t->storage->refs++;
    return cx_traced_new(t->tracer, t->storage, NULL);
}
/* True if it was made in this call and later calls cannot see it. */
GETTER(is_fresh)
{
    SELF(t);
    return PyBool_FromLong(t->storage->value == NULL && t->view == NULL);
}
/* True for an int that is an expression of sizes and loop variables. */
GETTER(is_expression)
{
    SELF(t);
    return PyBool_FromLong(cx_is_size(t));
}
/* The bool of a tagged number (value/tagged.c). */
GETTER(strong)
{
    SELF(t);
    CxStorage *strong = cx_tagged(self);
    if (strong == NULL)
        Py_RETURN_NONE;
    strong->refs++;
    return cx_traced_new(t->tracer, strong, NULL);
}
GETTER(weak)
{
    SELF(t);
    if (cx_tagged(self) == NULL)
        Py_RETURN_NONE;
    return Py_NewRef((PyObject *)cx_descr(t->tracer->state, t->storage->weak));
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
/* Offset of a view in bytes from the start of its memory. */
GETTER(offset)
{
    SELF(t);
    return t->view ? cx_size_object(t->tracer, t->view->offset) : PyLong_FromLong(0);
}
/* True for an int that does not change during the call. */
GETTER(is_fixed)
{
    SELF(t);
    const CiExpr *e = cx_is_size(t) ? t->storage->expr : NULL;
    bool result = e != NULL;
    for (int k = 0; result && k < e->nsymbols; k++)
        result = e->symbols[k]->symbol_kind == CI_SYMBOL_size ||
                 e->symbols[k]->symbol_kind == CI_SYMBOL_argument;
    return PyBool_FromLong(result);
}
/* True if the last axis is the innermost, unless this makes no difference. */
GETTER(is_c_order)
{
    SELF(t);
    if (cx_traced_prepare(t) < 0)
        return NULL;
    return PyBool_FromLong(ci_layout_is_c_order(cx_rank(t), cx_node(t)->order));
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

/* An array with this layout whose elements are never read. */
static PyObject *
layout_of(CxTraced *t, CxAccess access)
{
    CxState *state = t->tracer->state;
    int rank = cx_rank(t);
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK];
    const int64_t one = 1;

    cx_size_sample_layout(t, sizes, strides);
    bool owns_few = t->view == NULL && t->storage->value == NULL && cx_kind(t) == CI_KIND_array &&
                    cx_count(rank, sizes) <= 4096;
    if (owns_few)
        return cx_array_new(state, cx_dtype(t), rank, sizes, strides);
    PyObject *dummy = cx_array_new(state, cx_dtype(t), 1, &one, NULL);
    PyObject *shape =
        dummy ? cx_array_view(state, dummy, cx_dtype(t), rank, sizes, strides, 0, access)
              : NULL;
    Py_XDECREF(dummy);
    return shape;
}

int
cx_has_dense_steps(CxTraced *x)
{
    const CxTracer *t = x->tracer;
    const CiExpr *dense = cx_size_const(x->tracer, ci_dtype_size(cx_dtype(x)));

    for (int k = cx_rank(x) - 1; k >= 0 && dense != NULL; k--) {
        const CiExpr *size = cx_sizes(x)[k];
        if (size != t->one && cx_strides(x)[k] != dense)
            return 0;
        dense = cx_size_make(x->tracer, CI_OP_multiply, dense, size);
    }
    return dense == NULL ? -1 : 1;
}

/* Guards that every axis except `but`, which has several elements, is not empty, because an
 * empty array is contiguous. */
static int
guard_elements(CxTraced *x, int but)
{
    CxTracer *t = x->tracer;
    int status = cx_size_decide(t, CI_REL_lt, t->one, cx_sizes(x)[but]);

    for (int k = 0; k < cx_rank(x) && status >= 0; k++)
        if (k != but)
            status = cx_size_decide(t, CI_REL_lt, t->zero, cx_sizes(x)[k]);
    return status < 0 ? -1 : 0;
}

/* Guards why an array is not contiguous in C or Fortran order: an axis with several elements
 * whose stride is not the size of the axes inside it. */
static int
guard_padding(CxTraced *x, const int64_t *sizes, int order)
{
    CxTracer *t = x->tracer;
    const CiExpr *dense = cx_size_const(t, ci_dtype_size(cx_dtype(x)));
    int status = dense == NULL ? -1 : 0, rank = cx_rank(x);

    for (int n = 0; n < rank && status >= 0; n++) {
        int k = order == NPY_ARRAY_C_CONTIGUOUS ? rank - 1 - n : n;
        const CiExpr *size = cx_sizes(x)[k], *step = cx_strides(x)[k];
        if (sizes[k] > 1 && (status = cx_size_decide(t, CI_REL_eq, step, dense)) == 0)
            return guard_elements(x, k);
        dense = status < 0 ? NULL : cx_size_make(t, CI_OP_multiply, dense, size);
        status = dense == NULL ? -1 : 0;
    }
    return status;
}

enum { IS_C = NPY_ARRAY_C_CONTIGUOUS, IS_F = NPY_ARRAY_F_CONTIGUOUS };

/* Guards the axes with no or one element, on which the flags depend. The effect of fewer
 * elements on flags that are not queried is not guarded. */
static int
guard_flags(CxTraced *x, int flags, int requested)
{
    CxTracer *t = x->tracer;
    int rank = cx_rank(x);
    int64_t sizes[CI_MAX_RANK];
    bool is_c = flags & IS_C, is_f = flags & IS_F;
    int is_dense = is_c && requested != 0 ? cx_has_dense_steps(x) : 0, status = is_dense;

    if (requested == 0 && is_c && (!is_f || rank < 2))
        return 0;
    if (is_dense == 1 && (requested == IS_C || rank < 2))
        return 0;
    cx_size_sample_layout(x, sizes, NULL);
    for (int k = 0; k < rank && status >= 0; k++)
        if (sizes[k] <= 1 && cx_sizes(x)[k]->kind != CI_EXPR_const)
            status = cx_size_decide(t, CI_REL_eq, cx_sizes(x)[k], sizes[k] ? t->one : t->zero);
    if (status >= 0 && !is_c && (requested & IS_C))
        status = guard_padding(x, sizes, IS_C);
    if (status >= 0 && !is_f && (requested & IS_F))
        status = guard_padding(x, sizes, IS_F);
    return status < 0 ? -1 : 0;
}

/* True if it is contiguous in Fortran order and not in C order, with guards. */
static int
is_only_fortran(CxTraced *t)
{
    PyObject *shape = cx_rank(t) > 1 ? layout_of(t, CX_WRITABLE) : NULL;
    int result = shape == NULL && PyErr_Occurred() ? -1 : 0;

    if (shape != NULL && (result = guard_flags(t, PyArray_FLAGS((PyArrayObject *)shape),
                                               IS_C | IS_F)) == 0)
        result = PyArray_IS_F_CONTIGUOUS((PyArrayObject *)shape) &&
                 !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)shape);
    Py_XDECREF(shape);
    return result;
}

/* real and imag, by the closure. For a Python number they are Python's. */
GETTER(part)
{
    CxTraced *t = (CxTraced *)self;
    if (cx_kind(t) == CI_KIND_python) {
        if (closure == NULL && t->storage->dtype == CI_DTYPE_f64)
            return Py_NewRef(self);
        if (t->storage->dtype == CI_DTYPE_c128 && t->storage->value == NULL) {
            PyObject *numpys = cx_make_part(t, closure != NULL, false);
            PyObject *own =
                numpys == NULL ? NULL : cx_method_as_python((PyObject *)t->tracer, numpys);
            Py_XDECREF(numpys);
            return own;
        }
        PyObject *value = cx_traced_concretize(t, closure ? ".imag" : ".real");
        PyObject *part = value ? PyObject_GetAttr(value, closure ? t->tracer->state->str_imag
                                                                 : t->tracer->state->str_real)
                               : NULL;
        Py_XDECREF(value);
        return part;
    }
    bool has_zeros = closure != NULL && ci_dtype_class(cx_dtype(t)) != CI_CLASS_complex;
    int is_fortran = has_zeros ? is_only_fortran(t) : 0;
    return is_fortran < 0 ? NULL : cx_make_part(t, closure != NULL, is_fortran);
}

/* True if NumPy's conversions to a contiguous array return it unchanged. */
GETTER(is_in_order)
{
    CxTraced *t = (CxTraced *)self;
    (void)closure;
    PyObject *shape = layout_of(t, CX_WRITABLE), *result = NULL;
    if (shape != NULL && guard_flags(t, PyArray_FLAGS((PyArrayObject *)shape), IS_C) == 0)
        result = PyBool_FromLong(PyArray_IS_C_CONTIGUOUS((PyArrayObject *)shape));
    Py_XDECREF(shape);
    return result;
}

bool
cx_is_part(const CxTraced *x)
{
    return ci_dtype_class(x->storage->dtype) == CI_CLASS_complex &&
           ci_dtype_class(cx_dtype(x)) != CI_CLASS_complex;
}

GETTER(is_view_of_part)
{
    CxTraced *x = (CxTraced *)self;
    (void)closure;
    return PyBool_FromLong(cx_is_part(x) && x->view->op != CI_OP_real && x->view->op != CI_OP_imag);
}

GETTER(is_readonly)
{
    SELF(t);
    return PyBool_FromLong(cx_access(t) == CX_READONLY);
}

GETTER(warns_of_writes)
{
    SELF(t);
    return PyBool_FromLong(cx_access(t) == CX_WARNS_OF_WRITES);
}

/* True if its elements fill a contiguous block in forward order, for some order of its axes. */
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
        step = cx_size_make(t->tracer, CI_OP_multiply, step, sizes[axis]);
    }
    if (step == NULL)
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *
flags_of(CxTraced *t, int requested)
{
    CxAccess access = cx_kind(t) == CI_KIND_scalar ? CX_READONLY : cx_access(t);
    bool warns = requested != 0 && access == CX_WARNS_OF_WRITES; /* already if its flags are read */
    PyObject *flags = NULL,
             *shape = warns ? cx_traced_concretize(t, "flags of a result of broadcast_arrays")
                            : layout_of(t, access == CX_READONLY ? access : CX_WRITABLE);
    if (shape != NULL && warns)
        flags = PyObject_GetAttrString(shape, "flags");
    else if (shape != NULL && guard_flags(t, PyArray_FLAGS((PyArrayObject *)shape), requested) == 0)
        flags = PyObject_GetAttrString(shape, "flags");
    Py_XDECREF(shape);
    return flags;
}

GETTER(flags)
{
    (void)closure;
    return flags_of((CxTraced *)self, IS_C | IS_F);
}

/* Flags as in this call. Used for operations whose result does not depend on contiguity that
 * comes from few elements. */
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

PyGetSetDef cx_traced_getset[] = {
    {"__class__", get_class, NULL, NULL, NULL},
    CX_GETTER(Traced, kind, get_kind, NULL, NULL),
    CX_GETTER(Traced, tracer, get_tracer, NULL, NULL),
    CX_GETTER(Traced, shape, get_shape, set_shape, NULL),
    CX_GETTER(Traced, strides, get_strides, NULL, NULL),
    CX_GETTER(Traced, dtype, get_dtype, NULL, NULL),
    CX_GETTER(Traced, ndim, get_ndim, NULL, NULL),
    CX_GETTER(Traced, size, get_size, NULL, NULL),
    CX_GETTER(Traced, itemsize, get_itemsize, NULL, NULL),
    CX_GETTER(Traced, nbytes, get_nbytes, NULL, NULL),
    CX_GETTER(Traced, T, get_transposed, NULL, NULL),
    CX_GETTER(Traced, mT, get_transposed, NULL, (void *)1),
    CX_GETTER(Traced, real, get_part, NULL, NULL),
    CX_GETTER(Traced, imag, get_part, NULL, (void *)1),
    CX_GETTER(Traced, flags, get_flags, NULL, NULL),
    CX_GETTER(Traced, flags_now, get_flags_now, NULL, NULL),
    CX_GETTER(Traced, is_in_order, get_is_in_order, NULL, NULL),
    CX_GETTER(Traced, is_dense, get_is_dense, NULL, NULL),
    CX_GETTER(Traced, is_readonly, get_is_readonly, NULL, NULL),
    CX_GETTER(Traced, warns_of_writes, get_warns_of_writes, NULL, NULL),
    CX_GETTER(Traced, is_view_of_part, get_is_view_of_part, NULL, NULL),
    CX_GETTER(Traced, storage, get_storage, NULL, NULL),
    CX_GETTER(Traced, is_whole, get_is_whole, NULL, NULL),
    CX_GETTER(Traced, offset, get_offset, NULL, NULL),
    CX_GETTER(Traced, is_fixed, get_is_fixed, NULL, NULL),
    CX_GETTER(Traced, is_c_order, get_is_c_order, NULL, NULL),
    CX_GETTER(Traced, version, get_version, NULL, NULL),
    CX_GETTER(Traced, strong, get_strong, NULL, NULL),
    CX_GETTER(Traced, weak, get_weak, NULL, NULL),
    CX_GETTER(Traced, is_expression, get_is_expression, NULL, NULL),
    CX_GETTER(Traced, whole, get_whole, NULL, NULL),
    CX_GETTER(Traced, is_fresh, get_is_fresh, NULL, NULL),
    {NULL, NULL, NULL, NULL, NULL},
};
