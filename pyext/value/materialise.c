/* Makes real values of traced ones: reads them if known, runs the pending graph if needed. */
#include "state/array.h"
#include "state/device_array.h"
#include "value/index.h"
#include "value/tagged.h"

static bool
is_known(const CxTraced *t)
{
    const CxStorage *s = t->storage;
    return s->value != NULL && s->strong == NULL &&
           (cx_kind(t) == CI_KIND_python ||
            (cx_kind(t) == CI_KIND_scalar && s->source == CX_SOURCE_constant));
}

/* The values of expressions after the pending graph has run. A symbol that is still unknown belongs
 * to a loop or branch: its value there is not one value. */
static int
values_of(CxTracer *tracer, int n, const CiExpr *const *exprs, int64_t *values)
{
    for (int k = 0; k < n; k++)
        if (!cx_size_is_known(tracer, exprs[k]))
            return cx_region_break(tracer, "the value of a loop variable is needed");
    return cx_size_values(tracer, n, exprs, values);
}

static PyObject *
real_view(CxTraced *t, const CxStorage *s)
{
    const CxView *v = t->view;
    int64_t sizes[CI_MAX_RANK], strides[CI_MAX_RANK], offset;

    if (values_of(t->tracer, v->rank, v->sizes, sizes) < 0 ||
        values_of(t->tracer, v->rank, v->strides, strides) < 0 ||
        values_of(t->tracer, 1, &v->offset, &offset) < 0)
        return NULL;
    return cx_array_view(t->tracer->state, s->value, v->dtype, v->rank, sizes, strides, offset,
                         cx_access(t));
}

/* Runs the pending graph. The caller has recorded the reason for a break; otherwise it is
 * recorded here. */
static int
run_pending(CxTracer *t)
{
    return t->needs_python ? cx_tracer_flush(t, NULL, 0, true)
                           : cx_tracer_break(t, "a concrete value is needed by Python");
}

/* The value of an expression after its symbols were defined. */
static PyObject *
int_value(CxTraced *t)
{
    CxTracer *tracer = t->tracer;
    CxStorage *s = t->storage;
    int64_t value;

    if (!cx_size_is_known(tracer, s->expr) && run_pending(tracer) < 0)
        return NULL;
    if (values_of(tracer, 1, &s->expr, &value) < 0)
        return NULL;
    s->value = PyLong_FromLongLong(value);
    return Py_XNewRef(s->value);
}

enum { MAX_AGAIN = 8 }; /* levels of parents that are evaluated each time */

static int
specialize(CxStorage *s, int depth)
{
    int result = 0;

    if (s == NULL)
        return 0;
    if (s->expr != NULL) /* each time again, because a guard may have been forgotten since */
        return cx_size_concretize(s->tracer, s->expr, "Python") < 0 && PyErr_Occurred() ? -1 : 0;
    if (s->left != NULL)
        return cx_size_decide(s->tracer, s->relation, s->left, s->right) < 0 ? -1 : 0;
    if (s->is_specialized && depth > MAX_AGAIN)
        return 0;
    if (s->source >= 0 && !s->is_specialized) {
        PyObject *pair = Py_BuildValue("(iO)", s->source, s->value);
        result = pair == NULL ? -1 : PyList_Append(s->tracer->specialized, pair);
        Py_XDECREF(pair);
    }
    s->is_specialized = true;
    if (result == 0 && specialize(s->parents[0], depth + 1) == 0)
        return specialize(s->parents[1], depth + 1);
    return -1;
}

/* Guards the values from which this Python scalar was computed. */
int
cx_tracer_specialize(CxStorage *s)
{
    return specialize(s, 0);
}

/* The real value of a tagged number, if the number and its bool are real by now. */
static PyObject *
tagged_real(CxStorage *s)
{
    if (s->strong->value == NULL) {
        cx_raise_status(s->tracer->state, CI_ERR_INTERNAL,
                        "the class of a number was lost when an earlier run failed or ended");
        return NULL;
    }
    PyObject *strong = cx_device_result(s->tracer->state, Py_NewRef(s->strong->value));
    int is_strong = strong != NULL ? PyObject_IsTrue(strong) : -1;
    Py_XDECREF(strong);
    PyObject *value = is_strong < 0 ? NULL : cx_device_result(s->tracer->state, Py_NewRef(s->value));
    if (value == NULL || is_strong)
        return value;
    PyObject *pythons = s->kind == CI_KIND_python ? Py_NewRef(value)
                                                  : PyObject_CallMethod(value, "item", NULL);
    Py_DECREF(value);
    if (pythons != NULL && s->weak == CI_DTYPE_i64)
        Py_SETREF(pythons, PyNumber_Long(pythons));
    return pythons;
}

PyObject *
cx_traced_real(CxTraced *t)
{
    CxStorage *s = t->storage;

    if (is_known(t))
        return Py_NewRef(s->value);
    if (cx_is_size(t))
        return int_value(t);
    /* Pending operations may read or write the memory that is returned. */
    if ((t->tracer->ctx != NULL || s->value == NULL) && run_pending(t->tracer) < 0)
        return NULL;
    if (s->value == NULL) {
        cx_raise_status(t->tracer->state, CI_ERR_INTERNAL,
                        "the value was lost when an earlier run failed or ended");
        return NULL;
    }
    if (cx_tagged((PyObject *)t) != NULL)
        return tagged_real(s);
    if (t->view == NULL)
        return Py_NewRef(s->value);
    if (t->real == NULL)
        t->real = real_view(t, s);
    return Py_XNewRef(t->real);
}

/* Until Python is needed in each call, a number that leaves the program is guarded, and an array
 * that leaves it is a break. */
PyObject *
cx_traced_materialise(CxTraced *t)
{
    if (t->tracer->needs_python)
        return cx_traced_real(t);
    if (cx_is_size(t) && cx_size_concretize(t->tracer, t->storage->expr, "Python") < 0 && PyErr_Occurred())
        return NULL;
    if (cx_kind(t) == CI_KIND_python && is_known(t) && cx_tracer_specialize(t->storage) < 0)
        return NULL;
    if (!cx_is_size(t) && !is_known(t) && run_pending(t->tracer) < 0)
        return NULL;
    return cx_traced_real(t);
}

PyObject *
cx_traced_concretize(CxTraced *t, const char *what)
{
    if (is_known(t)) {
        if (cx_kind(t) == CI_KIND_python && cx_tracer_specialize(t->storage) < 0)
            return NULL;
        return Py_NewRef(t->storage->value);
    }
    const CiExpr *requested[] = {t->storage->expr, t->storage->left, t->storage->right};
    for (int k = 0; k < 3; k++)
        if (requested[k] != NULL && cx_size_refuse(t->tracer, requested[k], what) < 0)
            return NULL;
    if (cx_tracer_break(t->tracer, "a concrete value is needed by %s", what) < 0)
        return NULL;
    return cx_traced_materialise(t);
}

PyObject *
cx_materialise_tree(PyObject *object)
{
    PyObject *result = NULL, *key, *value;
    Py_ssize_t at = 0;

    if (cx_is_traced(object)) { /* the caller has recorded the reason */
        ((CxTraced *)object)->tracer->needs_python = true;
        return cx_traced_materialise((CxTraced *)object);
    }
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
        PyObject *list = PySequence_List(object);
        for (Py_ssize_t k = 0; list != NULL && k < PyList_GET_SIZE(list); k++) {
            PyObject *item = cx_materialise_tree(PyList_GET_ITEM(list, k));
            if (item == NULL)
                Py_CLEAR(list);
            else
                PyList_SetItem(list, k, item);
        }
        if (list == NULL || PyList_CheckExact(object))
            return list;
        result = PyList_AsTuple(list);
        Py_DECREF(list);
        return result;
    }
    if (!PyDict_CheckExact(object))
        return Py_NewRef(object);
    result = PyDict_New();
    while (result != NULL && PyDict_Next(object, &at, &key, &value)) {
        PyObject *item = cx_materialise_tree(value);
        if (item == NULL || PyDict_SetItem(result, key, item) < 0)
            Py_CLEAR(result);
        Py_XDECREF(item);
    }
    return result;
}

PyTypeObject *
cx_python_class(const CxStorage *s)
{
    return s->value != NULL            ? Py_TYPE(s->value)
           : s->dtype == CI_DTYPE_f64  ? &PyFloat_Type
           : s->dtype == CI_DTYPE_c128 ? &PyComplex_Type
           : s->dtype == CI_DTYPE_bool ? &PyBool_Type
                                       : &PyLong_Type;
}
