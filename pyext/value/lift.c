/* Lifts any value to an operand: arguments and objects made by Python become traced; numbers
 * that never change become constants. */
#include "graph/methods.h"
#include "graph/size.h"
#include "state/array.h"
#include "value/build.h"

PyObject *
cx_tracer_array(CxTracer *tracer, PyObject *array, int source)
{
    return cx_tracer_array_of(tracer, array, source, NULL, NULL);
}

PyObject *
cx_tracer_array_of(CxTracer *tracer, PyObject *array, int source, const CiExpr *const *sizes,
                   const CiExpr *const *paddings)
{
    PyObject *key = NULL, *traced = NULL;
    int failed = 0;

    if (!PyArray_CheckExact(array)) {
        PyErr_Format(PyExc_TypeError, "an ndarray is expected, not %s", Py_TYPE(array)->tp_name);
        return NULL;
    }
    key = PyLong_FromVoidPtr(array);
    if (key == NULL)
        return NULL;
    traced = cx_dict_find(tracer->by_id, key, &failed);
    if (traced != NULL) {
        CxStorage *s = ((CxTraced *)traced)->storage;
        if (s->source < 0)
            s->source = source;
        Py_INCREF(traced);
    } else if (!failed) {
        traced =
            cx_traced_new(tracer, cx_storage_from_array(tracer, array, source, sizes, paddings), NULL);
        if (traced != NULL && PyDict_SetItem(tracer->by_id, key, traced) < 0)
            Py_CLEAR(traced);
    }
    Py_DECREF(key);
    return traced;
}

/* let_go(traced, others): forgets the array of a traced value unless another view has its memory.
 * others: the references to the traced value but for the caller's; one of them may be `by_id`. */
PyObject *
cx_method_let_go(PyObject *self, PyObject *args)
{
    PyObject *by_id = ((CxTracer *)self)->by_id, *traced = NULL, *key = NULL;
    Py_ssize_t others = 0;
    int failed = 0;

    if (!PyArg_ParseTuple(args, "On", &traced, &others))
        return NULL;
    if (!cx_is_traced(traced))
        return PyErr_Format(PyExc_TypeError, "a traced value is expected");
    const CxTraced *t = (const CxTraced *)traced;
    if (t->view == NULL && t->storage->value != NULL)
        key = PyLong_FromVoidPtr(t->storage->value);
    bool is_listed = key != NULL && cx_dict_find(by_id, key, &failed) == traced;
    bool may_go = others <= is_listed && (t->view != NULL || t->storage->refs == 1);
    if (may_go && is_listed)
        failed = PyDict_DelItem(by_id, key) < 0;
    Py_XDECREF(key);
    return failed || PyErr_Occurred() ? NULL : PyBool_FromLong(may_go);
}

/* A Python int in [2**63, 2**64). For a value with a source a guard checks that it is in [0,
 * 2**64). */
static bool
is_large(PyObject *value)
{
    bool fits = PyLong_AsUnsignedLongLong(value) > INT64_MAX && !PyErr_Occurred();
    PyErr_Clear();
    return fits;
}

PyObject *
cx_tracer_scalar(CxTracer *tracer, PyObject *value, int source)
{
    CiDtype dtype = CI_DTYPE_none;
    CiKind kind = CI_KIND_python;
    bool is_strong = false;
    int code = cx_code_of_number(value, &is_strong);

    if (is_strong) {
        dtype = (CiDtype)code;
        kind = CI_KIND_scalar;
    } else if (code == CX_WEAK_float)
        dtype = CI_DTYPE_f64;
    else if (code == CX_WEAK_complex)
        dtype = CI_DTYPE_c128;
    else if (code == CX_WEAK_int)
        dtype = source >= 0 || is_large(value) ? CI_DTYPE_u64 : CI_DTYPE_i64;
    else if (code == CI_DTYPE_bool)
        dtype = CI_DTYPE_bool;
    else {
        PyErr_SetString(PyExc_TypeError, "a float, complex, int or bool is expected");
        return NULL;
    }
    CxStorage *s = cx_storage_new(tracer, kind, dtype, 0);
    if (s == NULL)
        return NULL;
    s->value = Py_NewRef(value);
    s->source = source;
    return cx_traced_new(tracer, s, NULL);
}

/* True after a break: a number may then differ in each call, so it is not a constant of the
 * graph. */
bool
cx_tracer_varies(CxTracer *tracer, PyObject *value)
{
    if (PyList_GET_SIZE(tracer->breaks) == 0)
        return false;
    if (PyLong_CheckExact(value)) {
        int overflow = 0;
        (void)PyLong_AsLongLongAndOverflow(value, &overflow);
        return overflow == 0;
    }
    return PyFloat_Check(value) || PyComplex_CheckExact(value) || PyArray_IsScalar(value, Number);
}

static PyObject *
lift_number(CxTracer *tracer, PyObject *value, CiDtype like)
{
    PyObject *typed = NULL, *result = NULL;

    if (like != CI_DTYPE_none) { /* like a NumPy scalar of that dtype, with NumPy's checks */
        typed = PyObject_CallOneArg((PyObject *)cx_descr(tracer->state, like)->typeobj, value);
        if (typed == NULL)
            return NULL;
        value = typed;
    }
    bool varies = cx_tracer_varies(tracer, value);
    result = cx_tracer_scalar(tracer, value, varies ? CX_SOURCE_unknown : CX_SOURCE_constant);
    Py_XDECREF(typed);
    return result;
}

enum { MAX_EMBEDDED = 64 };

/* Joins the elements of a small constant array along one axis. */
static PyObject *
embed_elements(CxTracer *tracer, PyArrayObject *array, CiDtype dtype)
{
    CxTraced *parts[MAX_EMBEDDED] = {NULL};
    const CiExpr *sizes[CI_MAX_RANK];
    int n = (int)PyArray_SIZE(array), size = ci_dtype_size(dtype);
    PyObject *flat = PyArray_Ravel(array, NPY_CORDER), *joined = NULL, *result = NULL;

    if (flat == NULL || cx_size_consts(tracer, PyArray_NDIM(array),
                                       (const int64_t *)PyArray_DIMS(array), sizes) < 0)
        goto done;
    for (int k = 0; k < n; k++) {
        CiConst value =
            ci_const_load(dtype, PyArray_BYTES((PyArrayObject *)flat) + (npy_intp)k * size);
        parts[k] = (CxTraced *)cx_traced_from_node(
            tracer, cx_build_fill(tracer, dtype, 1, &tracer->one, NULL, &value), CI_KIND_array);
        if (parts[k] == NULL)
            goto done;
    }
    joined = cx_traced_from_node(tracer, cx_build_concat(tracer, n, parts, 0), CI_KIND_array);
    if (joined != NULL)
        result = cx_make_reshape((CxTraced *)joined, PyArray_NDIM(array), sizes);
done:
    for (int k = 0; k < n; k++)
        Py_XDECREF(parts[k]);
    Py_XDECREF(joined);
    Py_XDECREF(flat);
    return result;
}

static PyObject *
lift_array(CxTracer *tracer, PyObject *value, CiDtype like, bool constant)
{
    PyArrayObject *array = NULL;
    PyObject *result = NULL;
    const CiExpr *sizes[CI_MAX_RANK];
    CiDtype dtype;

    if (like != CI_DTYPE_none) {
        PyArray_Descr *descr = cx_descr(tracer->state, like);
        Py_INCREF(descr);
        array = (PyArrayObject *)PyArray_CastToType((PyArrayObject *)value, descr, 0);
    } else if (constant) {
        array = (PyArrayObject *)Py_NewRef(value);
    } else { /* Python may change it before the graph runs */
        array = (PyArrayObject *)PyArray_NewCopy((PyArrayObject *)value, NPY_KEEPORDER);
    }
    if (array == NULL)
        return NULL;
    dtype = cx_dtype_of_descr(PyArray_DESCR(array));
    if (constant && dtype != CI_DTYPE_none && PyArray_SIZE(array) == 1) {
        CiConst element = ci_const_load(dtype, PyArray_DATA(array));
        int rank = PyArray_NDIM(array);
        if (cx_size_consts(tracer, rank, (const int64_t *)PyArray_DIMS(array), sizes) == 0)
            result = cx_traced_from_node(
                tracer, cx_build_fill(tracer, dtype, rank, sizes, NULL, &element), CI_KIND_array);
    } else if (constant && dtype != CI_DTYPE_none && PyArray_SIZE(array) > 1 &&
               PyArray_SIZE(array) <= MAX_EMBEDDED) {
        result = embed_elements(tracer, array, dtype);
    } else {
        result = cx_traced_new(
            tracer, cx_storage_from_array(tracer, (PyObject *)array, CX_SOURCE_unknown, NULL, NULL),
            NULL);
    }
    Py_DECREF(array);
    return result;
}

PyObject *
cx_tracer_lift(CxTracer *tracer, PyObject *value, CiDtype like, bool constant)
{
    PyObject *array = NULL, *result = NULL;
    bool is_strong = false;

    if (cx_is_traced(value)) {
        if (((CxTraced *)value)->tracer == tracer)
            return Py_NewRef(value);
        array = cx_traced_materialise((CxTraced *)value);
        result = array == NULL ? NULL : cx_tracer_lift(tracer, array, like, false);
        Py_XDECREF(array);
        return result;
    }
    if (cx_code_of_number(value, &is_strong) >= 0)
        return lift_number(tracer, value, like);
    if (PyArray_CheckExact(value))
        return lift_array(tracer, value, like, constant);
    array = PyArray_FROM_O(value);
    if (array != NULL && PyArray_CheckExact(array))
        result = lift_array(tracer, array, like, true);
    else if (array != NULL)
        PyErr_SetString(cx_exception(tracer->state, "Unsupported"),
                        "a subclass of ndarray is not traced");
    Py_XDECREF(array);
    return result;
}

/* The traced value in `given` whose real value, at the same place of `reals`, is `real`. Borrowed;
 * NULL if there is none. */
static PyObject *
find_given(PyObject *real, PyObject *given, PyObject *reals)
{
    PyObject *found = NULL, *key, *value;
    Py_ssize_t at = 0;

    if (given == NULL || reals == NULL || given == reals)
        return NULL;
    if (cx_is_traced(given))
        return real == reals ? given : NULL;
    if (PyTuple_CheckExact(given) && PyTuple_CheckExact(reals))
        for (Py_ssize_t k = 0; found == NULL && k < PyTuple_GET_SIZE(given); k++)
            found = find_given(real, PyTuple_GET_ITEM(given, k), PyTuple_GET_ITEM(reals, k));
    else if (PyDict_CheckExact(given) && PyDict_CheckExact(reals))
        while (found == NULL && PyDict_Next(given, &at, &key, &value))
            found = find_given(real, value, PyDict_GetItemWithError(reals, key));
    return found;
}

PyObject *
cx_tracer_wrap(CxTracer *tracer, PyObject *real, CxGiven given)
{
    if (real == NULL)
        return NULL;
    if (PyArray_CheckExact(real)) {
        PyObject *traced = NULL;
        for (size_t k = 0; traced == NULL && k < CX_GIVEN; k++)
            traced = Py_XNewRef(find_given(real, given.values[k], given.reals[k]));
        if (traced == NULL)
            traced = cx_tracer_array(tracer, real, CX_SOURCE_unknown);
        if (traced == NULL && PyErr_ExceptionMatches(cx_exception(tracer->state, "Unsupported"))) {
            PyErr_Clear();
            return real;
        }
        Py_DECREF(real);
        return traced;
    }
    if (PyTuple_CheckExact(real) || PyList_CheckExact(real)) {
        PyObject *list = PySequence_List(real);
        for (Py_ssize_t k = 0; list != NULL && k < PyList_GET_SIZE(list); k++) {
            PyObject *item = cx_tracer_wrap(tracer, Py_NewRef(PyList_GET_ITEM(list, k)), given);
            if (item == NULL)
                Py_CLEAR(list);
            else
                PyList_SetItem(list, k, item);
        }
        PyObject *result =
            list != NULL && PyTuple_CheckExact(real) ? PyList_AsTuple(list) : Py_XNewRef(list);
        Py_XDECREF(list);
        Py_DECREF(real);
        return result;
    }
    return real;
}

CxTraced *
cx_lifted(CxTracer *tracer, PyObject *value)
{
    return (CxTraced *)cx_tracer_lift(tracer, value, CI_DTYPE_none, false);
}
