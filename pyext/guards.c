/* Guards: how a later call finds the values a specialization was made for, and what must hold of
 * them. One function decides and, when asked, explains. Sources are found when the first check
 * needs them, in the order of the checks, so a check on a container stands before what is taken out
 * of it. */
#include "guards.h"

void
cx_guards_free(CxGuards *g)
{
    if (g == NULL)
        return;
    for (int k = 0; k < g->nsources; k++) {
        Py_XDECREF(g->sources[k].object);
        Py_XDECREF(g->sources[k].key);
    }
    for (int k = 0; k < g->nchecks; k++) {
        Py_XDECREF(g->checks[k].a);
        Py_XDECREF(g->checks[k].b);
        Py_XDECREF(g->checks[k].descr);
        PyMem_Free(g->checks[k].sizes);
    }
    Py_XDECREF(g->texts);
    PyMem_Free(g->sources);
    PyMem_Free(g->checks);
    PyMem_Free(g);
}

int
cx_guards_traverse(CxGuards *g, visitproc visit, void *arg)
{
    for (int k = 0; g != NULL && k < g->nsources; k++) {
        Py_VISIT(g->sources[k].object);
        Py_VISIT(g->sources[k].key);
    }
    for (int k = 0; g != NULL && k < g->nchecks; k++) {
        Py_VISIT(g->checks[k].a);
        Py_VISIT(g->checks[k].b);
    }
    if (g != NULL)
        Py_VISIT(g->texts);
    return 0;
}

int
cx_guards_count(const CxGuards *g)
{
    return g->nsources;
}

/* ---- checking ---- */

typedef struct Lookup {
    CxGuards *guards;
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject **values;
} Lookup;

static bool
is_owned(const CxSource *s)
{
    return s->kind == SOURCE_attr || s->kind == SOURCE_item;
}

/* The value of a source, or NULL when there is none (no exception is left). */
static PyObject *
find_value(Lookup *l, int number)
{
    const CxSource *s = &l->guards->sources[number];
    PyObject *value = l->values[number], *from = NULL;

    if (value != NULL)
        return value;
    switch (s->kind) {
    case SOURCE_arg:
        value = s->from < l->nargs ? l->args[s->from] : NULL;
        break;
    case SOURCE_dict:
        value = PyDict_GetItemWithError(s->object, s->key);
        break;
    case SOURCE_cell:
        value = PyCell_GET(s->object);
        break;
    case SOURCE_const:
        value = s->object;
        break;
    case SOURCE_attr:
        from = find_value(l, s->from);
        value = from ? PyObject_GetAttr(from, s->key) : NULL;
        break;
    case SOURCE_item:
        from = find_value(l, s->from);
        value = from ? PyObject_GetItem(from, s->key) : NULL;
        break;
    }
    if (value == NULL)
        PyErr_Clear();
    return l->values[number] = value;
}

void
cx_guards_drop(CxGuards *g, PyObject **values)
{
    for (int k = 0; k < g->nsources; k++)
        if (is_owned(&g->sources[k]))
            Py_XDECREF(values[k]);
}

/* x in the user's words. */
static PyObject *
source_text(const CxGuards *g, int number, PyObject *names)
{
    const CxSource *s = &g->sources[number];
    PyObject *from = NULL, *text = NULL;

    switch (s->kind) {
    case SOURCE_arg:
        if (names != NULL && PyTuple_Check(names) && s->from < PyTuple_GET_SIZE(names))
            return PyObject_Str(PyTuple_GET_ITEM(names, s->from));
        return PyUnicode_FromFormat("argument %d", s->from);
    case SOURCE_dict:
        return PyUnicode_FromFormat("global %S", s->key);
    case SOURCE_cell:
        return PyUnicode_FromString("a closure's variable");
    case SOURCE_const:
        return PyUnicode_FromFormat("%R", s->object);
    default:
        from = source_text(g, s->from, names);
        if (from != NULL)
            text = PyUnicode_FromFormat(s->kind == SOURCE_attr ? "%U.%S" : "%U[%R]", from, s->key);
        Py_XDECREF(from);
        return text;
    }
}

static PyObject *
array_text(PyArray_Descr *descr, int rank, const int64_t *sizes, const int64_t *strides,
           bool writable, bool aligned)
{
    PyObject *shape = cx_sizes_tuple(rank, sizes), *steps = cx_sizes_tuple(rank, strides),
             *text = NULL;
    if (shape != NULL && steps != NULL)
        text = PyUnicode_FromFormat("an array of %S, shape %R, strides %R%s%s", descr, shape, steps,
                                    writable ? ", writable" : "", aligned ? "" : ", not aligned");
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    return text;
}

static PyObject *
expectation(const CxGuards *g, const CxCheck *c, PyObject *names)
{
    PyObject *other = NULL, *text = NULL;

    switch (c->kind) {
    case CHECK_is:
        return PyUnicode_FromFormat("%R itself", c->a);
    case CHECK_type:
        return PyUnicode_FromFormat("of type %s", ((PyTypeObject *)c->a)->tp_name);
    case CHECK_equals:
        return PyUnicode_FromFormat("equal to %R", c->a);
    case CHECK_array:
        return array_text(c->descr, c->rank, c->sizes, c->strides, c->writable, c->aligned);
    case CHECK_len:
        return PyUnicode_FromFormat("a %s of %lld items", ((PyTypeObject *)c->a)->tp_name,
                                    (long long)c->count);
    case CHECK_keys:
        return PyUnicode_FromFormat("a %s with keys %R", ((PyTypeObject *)c->a)->tp_name, c->b);
    case CHECK_same:
        other = source_text(g, c->other, names);
        text = other ? PyUnicode_FromFormat("the same object as %U", other) : NULL;
        Py_XDECREF(other);
        return text;
    default:
        return PyUnicode_FromString("");
    }
}

static PyObject *
found_text(PyObject *value)
{
    if (value == NULL)
        return PyUnicode_FromString("missing");
    if (PyArray_CheckExact(value)) {
        PyArrayObject *a = (PyArrayObject *)value;
        return array_text(PyArray_DESCR(a), PyArray_NDIM(a), (const int64_t *)PyArray_DIMS(a),
                          (const int64_t *)PyArray_STRIDES(a), PyArray_ISWRITEABLE(a),
                          PyArray_ISALIGNED(a));
    }
    if (value == Py_None || PyUnicode_Check(value) || PyLong_Check(value) || PyFloat_Check(value) ||
        PyComplex_Check(value))
        return PyUnicode_FromFormat("%R", value);
    return PyUnicode_FromFormat("a %s", Py_TYPE(value)->tp_name);
}

static PyObject *
check_text(CxGuards *g, const CxCheck *c, PyObject *names, PyObject **values, bool is_failure)
{
    PyObject *name = NULL, *expected = NULL, *found = NULL, *text = NULL;

    if (c->kind == CHECK_disjoint)
        return PyUnicode_FromString(is_failure
                                        ? "an array that is written shares memory with another"
                                        : "arrays that are written share no memory with others");
    if (c->kind == CHECK_absent)
        return PyUnicode_FromFormat(is_failure ? "global %S is set" : "global %S is not set", c->b);
    name = source_text(g, c->source, names);
    expected = name ? expectation(g, c, names) : NULL;
    if (expected != NULL && !is_failure)
        text = PyUnicode_FromFormat("%U is %U", name, expected);
    else if (expected != NULL && (found = found_text(values[c->source])) != NULL)
        text = PyUnicode_FromFormat("%U is %U, not %U", name, found, expected);
    Py_XDECREF(name);
    Py_XDECREF(expected);
    Py_XDECREF(found);
    return text;
}

static bool
array_fits(const CxCheck *c, PyObject *value)
{
    if (!PyArray_CheckExact(value))
        return false;
    PyArrayObject *a = (PyArrayObject *)value;
    if (PyArray_NDIM(a) != c->rank)
        return false;
    if (PyArray_DESCR(a) != c->descr && !PyArray_EquivTypes(PyArray_DESCR(a), c->descr))
        return false;
    if (c->writable != (PyArray_ISWRITEABLE(a) != 0) || c->aligned != (PyArray_ISALIGNED(a) != 0))
        return false;
    const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    for (int k = 0; k < c->rank; k++)
        if (dims[k] != c->sizes[k] || (strides[k] != c->strides[k] && dims[k] > 1 && c->count != 0))
            return false;
    return true;
}

static bool
same_double(double a, double b)
{
    return a != a ? b != b : a == b && signbit(a) == signbit(b);
}

/* Same type and equal; NaN equals itself, zeros of two signs do not. */
static bool
value_equals(PyObject *a, PyObject *b)
{
    if (Py_TYPE(a) != Py_TYPE(b))
        return false;
    if (PyFloat_CheckExact(a))
        return same_double(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
    if (PyComplex_CheckExact(a)) {
        Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
        return same_double(x.real, y.real) && same_double(x.imag, y.imag);
    }
    if (a == b)
        return true;
    if (PyArray_IsScalar(a, Generic)) { /* bit for bit */
        PyObject *x = PyObject_Bytes(a), *y = x ? PyObject_Bytes(b) : NULL;
        int equal = y ? PyObject_RichCompareBool(x, y, Py_EQ) : 0;
        Py_XDECREF(x);
        Py_XDECREF(y);
        PyErr_Clear();
        return equal == 1;
    }
    if (PyTuple_CheckExact(a)) {
        bool equal = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
        for (Py_ssize_t k = 0; equal && k < PyTuple_GET_SIZE(a); k++)
            equal = value_equals(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k));
        return equal;
    }
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0)
        PyErr_Clear();
    return equal == 1;
}

static bool
keys_fit(const CxCheck *c, PyObject *dict)
{
    Py_ssize_t at = 0, k = 0;
    PyObject *key, *value;

    if ((PyObject *)Py_TYPE(dict) != c->a || !PyDict_Check(dict) ||
        PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(c->b))
        return false;
    while (PyDict_Next(dict, &at, &key, &value))
        if (!value_equals(key, PyTuple_GET_ITEM(c->b, k++)))
            return false;
    return true;
}

static bool
are_disjoint(Lookup *l, const CxCheck *c)
{
    for (int w = 0; w < c->source; w++) {
        PyObject *a = find_value(l, (int)c->sizes[w]);
        char *low, *high, *other_low, *other_high;
        if (a == NULL || !PyArray_Check(a))
            return false;
        cx_array_extent(a, &low, &high);
        for (int k = w + 1; k < c->other; k++) {
            PyObject *b = c->sizes[k] == c->sizes[w] ? NULL : find_value(l, (int)c->sizes[k]);
            if (b == NULL || !PyArray_Check(b))
                continue;
            cx_array_extent(b, &other_low, &other_high);
            if (low < other_high && other_low < high)
                return false;
        }
    }
    return true;
}

static bool
check_holds(Lookup *l, const CxCheck *c)
{
    PyObject *value = NULL;

    if (c->kind == CHECK_disjoint)
        return are_disjoint(l, c);
    if (c->kind == CHECK_absent)
        return PyDict_GetItemWithError(c->a, c->b) == NULL && !PyErr_Occurred();
    value = find_value(l, c->source);
    if (value == NULL)
        return false;
    switch (c->kind) {
    case CHECK_array:
        return array_fits(c, value);
    case CHECK_is:
        return value == c->a;
    case CHECK_type:
        return (PyObject *)Py_TYPE(value) == c->a;
    case CHECK_equals:
        return value_equals(value, c->a);
    case CHECK_len:
        return (PyObject *)Py_TYPE(value) == c->a && PyObject_Size(value) == c->count;
    case CHECK_keys:
        return keys_fit(c, value);
    default:
        return value == find_value(l, c->other);
    }
}

int
cx_guards_check(CxGuards *g, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                PyObject *names, PyObject **why)
{
    Lookup lookup = {g, args, nargs, values};

    memset(values, 0, sizeof *values * (size_t)g->nsources);
    for (int k = 0; k < g->nchecks; k++)
        if (!check_holds(&lookup, &g->checks[k])) {
            PyErr_Clear();
            if (why != NULL && (*why = check_text(g, &g->checks[k], names, values, true)) == NULL)
                return -1;
            return 0;
        }
    for (int k = 0; k < g->nsources; k++)
        if (find_value(&lookup, k) == NULL) {
            if (why != NULL) {
                PyObject *name = source_text(g, k, names);
                *why = name ? PyUnicode_FromFormat("%U is missing", name) : NULL;
                Py_XDECREF(name);
                if (*why == NULL)
                    return -1;
            }
            return 0;
        }
    return 1;
}

PyObject *
cx_guards_texts(CxGuards *g, PyObject *names)
{
    PyObject *list = PyList_New(0);
    for (int k = 0; list != NULL && k < g->nchecks; k++) {
        PyObject *text = check_text(g, &g->checks[k], names, NULL, false);
        if (text == NULL || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}
