/* The type Traced. Attributes are looked up in the surface and in traced_attribute.c; any other
 * name is a break, and the attribute of the real value is used. */
#include "operation/traced.h"
#include "graph/methods.h"
#include "operation/ufunc.h"
#include "state/array.h"
#include "state/docs.h"
#include "value/build.h"
#include "value/index.h"
#include "value/tagged.h"

/* No tp_clear: a cycle through a traced value also contains its tracer, which has one. */
static int
traced_traverse(PyObject *self, visitproc visit, void *arg)
{
    CxTraced *t = (CxTraced *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(t->tracer);
    Py_VISIT(t->real);
    return 0;
}

/* ---- attributes by name ---- */

/* The default __getattribute__ and __setattr__ check this; slots that are called as methods do
 * not. */
static bool
is_name(PyObject *name)
{
    if (PyUnicode_Check(name))
        return true;
    PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'",
                 Py_TYPE(name)->tp_name);
    return false;
}

static PyObject *
get_attribute(PyObject *self, PyObject *name)
{
    CxTraced *t = (CxTraced *)self;
    CxState *state = t->tracer->state;
    PyObject *found = NULL, *real = NULL;
    int failed = 0;

    if (!is_name(name))
        return NULL;
    if (cx_kind(t) != CI_KIND_python && state->methods != NULL) {
        PyObject *handler = cx_dict_find(state->methods, name, &failed);
        bool is_array = cx_kind(t) == CI_KIND_array; /* numbers have fewer methods */
        if (handler != NULL && (is_array || PyObject_HasAttr((PyObject *)cx_traced_class(t), name)))
            return cx_bound_method_new(t, name, handler);
        if (failed)
            return NULL;
    }
    found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    found = PyObject_GetAttr((PyObject *)cx_traced_class(t),
                             name); /* raises with the name of the real class */
    if (found == NULL) {
        PyErr_Clear();
        return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'",
                            cx_traced_class(t)->tp_name, name);
    }
    if (PyCallable_Check(found)) {
        Py_DECREF(found);
        return cx_bound_method_new(t, name, NULL);
    }
    Py_DECREF(found);
    real = cx_traced_concretize(t, PyUnicode_AsUTF8(name) ? PyUnicode_AsUTF8(name) : "an attribute");
    found = real != NULL ? PyObject_GetAttr(real, name) : NULL;
    Py_XDECREF(real);
    return found;
}

static int
set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    CxTraced *t = (CxTraced *)self;
    PyObject *real = NULL;

    if (!is_name(name))
        return -1;
    if (PyUnicode_CompareWithASCIIString(name, "shape") == 0)
        return PyObject_GenericSetAttr(self, name, value);
    real = cx_traced_concretize(t, "setting an attribute");
    if (real == NULL)
        return -1;
    int result = PyObject_SetAttr(real, name, value);
    Py_DECREF(real);
    return result;
}

/* ---- methods of the type ---- */

static PyObject *
traced_materialise(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    return cx_traced_materialise((CxTraced *)self);
}

static PyObject *
traced_shares_storage(PyObject *self, PyObject *other)
{
    return PyBool_FromLong(cx_is_traced(other) &&
                           ((CxTraced *)self)->storage == ((CxTraced *)other)->storage);
}

/* True if two values are identical: the same view of the same memory with the same right to write
 * to it, or the same expression. */
static PyObject *
traced_is_same(PyObject *self, PyObject *other)
{
    const CxTraced *a = (CxTraced *)self, *b = (CxTraced *)other;
    if (!cx_is_traced(other))
        Py_RETURN_FALSE;
    if (cx_is_size(a) && cx_is_size(b))
        return PyBool_FromLong(a->storage->expr == b->storage->expr);
    return PyBool_FromLong(cx_is_same_view(a, b) && cx_access(a) == cx_access(b));
}

static PyObject *
traced_origin(PyObject *self, PyObject *unused)
{
    const CxTraced *x = (CxTraced *)self;

    (void)unused;
    return PyLong_FromVoidPtr(cx_is_size(x) ? (void *)x->storage->expr : (void *)x->storage);
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
    PyObject *real = cx_traced_concretize((CxTraced *)self, "a conversion to a NumPy array");
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
        (a = cx_materialise_tree(args)) != NULL && (k = cx_materialise_tree(kwargs)) != NULL)
        result = cx_tracer_wrap(tracer, PyObject_Call(func, a, k),
                                (CxGiven){{args, kwargs}, {a, k}});
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
    PyObject *real = cx_traced_concretize((CxTraced *)self, "complex()");
    PyObject *result = real ? PyObject_CallOneArg((PyObject *)&PyComplex_Type, real) : NULL;
    Py_XDECREF(real);
    return result;
}

/* copy, deepcopy and pickle get the real value. */
static PyObject *
traced_reduce_ex(PyObject *self, PyObject *protocol)
{
    PyObject *real = cx_traced_concretize((CxTraced *)self, "pickle");
    PyObject *result = real ? PyObject_CallMethod(real, "__reduce_ex__", "(O)", protocol) : NULL;
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
    PyObject *real = cx_traced_concretize((CxTraced *)self, "format()");
    PyObject *result = real ? PyObject_Format(real, spec) : NULL;
    Py_XDECREF(real);
    return result;
}

/* Gives the value a node of the open block. */
static PyObject *
traced_prepare(PyObject *self, PyObject *unused)
{
    (void)unused;
    CX_ENTRY();
    return cx_traced_prepare((CxTraced *)self) < 0 ? NULL : Py_NewRef(Py_None);
}

#define ONE(name) CX_METHOD(Traced, name, cx_traced_##name, METH_O),
#define NONE(name) CX_METHOD(Traced, name, cx_traced_##name, METH_NOARGS),

static PyMethodDef traced_methods[] = {
#include "graph/value_methods.def"
    CX_METHOD(Traced, prepare, traced_prepare, METH_NOARGS),
    CX_METHOD(Traced, materialise, traced_materialise, METH_NOARGS),
    CX_METHOD(Traced, known, cx_traced_known, METH_NOARGS),
    CX_METHOD(Traced, shares_storage, traced_shares_storage, METH_O),
    CX_METHOD(Traced, is_same, traced_is_same, METH_O),
    CX_METHOD(Traced, origin, traced_origin, METH_NOARGS),
    CX_METHOD(Traced, __array__, CX_KEYWORDS(traced_array), METH_VARARGS | METH_KEYWORDS),
    CX_METHOD(Traced, __array_ufunc__, CX_KEYWORDS(traced_array_ufunc),
              METH_VARARGS | METH_KEYWORDS),
    CX_METHOD(Traced, __array_function__, traced_array_function, METH_VARARGS),
    CX_METHOD(Traced, __complex__, traced_complex, METH_NOARGS),
    CX_METHOD(Traced, __reduce_ex__, traced_reduce_ex, METH_O),
    CX_METHOD(Traced, __copy__, traced_copy, METH_NOARGS),
    CX_METHOD(Traced, __deepcopy__, traced_copy, METH_O),
    CX_METHOD(Traced, __format__, traced_format, METH_O),
    {NULL, NULL, 0, NULL},
};

#define BINARY(op, slot, ...)                                                                      \
    PyObject *cx_nb_##slot(PyObject *, PyObject *);                                                \
    PyObject *cx_nb_inplace_##slot(PyObject *, PyObject *);
#define UNARY(op, slot, ...) PyObject *cx_nb_##slot(PyObject *);
#include "value/number.def"

static PyType_Slot traced_slots[] = {
    CX_SLOT(Py_tp_dealloc, cx_traced_dealloc),
    CX_SLOT(Py_tp_traverse, traced_traverse),
    CX_SLOT(Py_tp_getattro, get_attribute),
    CX_SLOT(Py_tp_setattro, set_attribute),
    CX_SLOT(Py_tp_getset, cx_traced_getset),
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
#define BINARY(op, slot, ...)                                                                      \
    CX_SLOT(Py_nb_##slot, cx_nb_##slot), CX_SLOT(Py_nb_inplace_##slot, cx_nb_inplace_##slot),
#define UNARY(op, slot, ...) CX_SLOT(Py_nb_##slot, cx_nb_##slot),
#include "value/number.def"
    {Py_tp_doc, CX_DOC_Traced},
    {0, NULL},
};

PyType_Spec cx_traced_spec =
    CX_SPEC("Traced", CxTraced, Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
            traced_slots);
