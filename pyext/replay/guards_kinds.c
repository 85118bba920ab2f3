/* The tests of guards.def. Each returns where a value differs. */
#include "replay/guards_private.h"
#include "replay/namespace.h"
#include "state/array.h"

/* ---- numbers and values ---- */

/* The value must be exactly an int of 64 bits. */
static int
test_size(const CxCheck *c, PyObject *value, int64_t *table)
{
    int overflow = 0;
    if (!PyLong_CheckExact(value))
        return OTHER_CLASS;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && cx_extent_fits(&c->sizes[0], found, table) ? AGREES : OTHER_VALUE;
}

/* True for an int in [0, 2**64). */
static bool
is_uint64(PyObject *value)
{
    if (!PyLong_CheckExact(value))
        return false;
    bool fits = PyLong_AsUnsignedLongLong(value) != (unsigned long long)-1 || !PyErr_Occurred();
    PyErr_Clear();
    return fits;
}

static bool
same_double(double a, double b)
{
    return a != a ? b != b : a == b && signbit(a) == signbit(b);
}

static bool value_equals(PyObject *a, PyObject *b);

static bool
is_equal(PyObject *a, PyObject *b)
{
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0)
        PyErr_Clear();
    return equal == 1;
}

/* Compares scalars by their bytes, texts by their characters. Scalars of one class may also
 * differ in dtype: units of datetime64, fields of a record. */
static bool
scalar_equals(PyObject *a, PyObject *b)
{
    PyArray_Descr *x = PyArray_DescrFromScalar(a), *y = x ? PyArray_DescrFromScalar(b) : NULL;
    bool equal = y != NULL && PyArray_EquivTypes(x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    PyErr_Clear();
    if (!equal || PyArray_IsScalar(a, Unicode))
        return equal && is_equal(a, b);
    PyObject *left = PyObject_Bytes(a), *right = left ? PyObject_Bytes(b) : NULL;
    equal = right != NULL && is_equal(left, right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    PyErr_Clear();
    return equal;
}

static bool
bounds_equal(PyObject *a, PyObject *b)
{
    static const char *const NAMES[] = {"start", "stop", "step"};
    bool equal = true;

    for (int k = 0; equal && k < 3; k++) {
        PyObject *x = PyObject_GetAttrString(a, NAMES[k]);
        PyObject *y = x ? PyObject_GetAttrString(b, NAMES[k]) : NULL;
        equal = y != NULL && value_equals(x, y);
        Py_XDECREF(x);
        Py_XDECREF(y);
    }
    PyErr_Clear();
    return equal;
}

/* Compares items of sets in the order of iteration, which the program may depend on. */
static bool
items_equal(PyObject *a, PyObject *b)
{
    PyObject *x = PySequence_Tuple(a), *y = x ? PySequence_Tuple(b) : NULL;
    bool equal = y != NULL && value_equals(x, y);
    Py_XDECREF(x);
    Py_XDECREF(y);
    PyErr_Clear();
    return equal;
}

/* Same type and equal, recursively, because 1 equals True and the parts of equal ranges may
 * differ. NaN equals itself; 0.0 and -0.0 differ. */
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
    if (PyArray_IsScalar(a, Generic))
        return scalar_equals(a, b);
    if (PyRange_Check(a) || PySlice_Check(a))
        return bounds_equal(a, b);
    if (PyAnySet_CheckExact(a))
        return items_equal(a, b);
    if (PyTuple_CheckExact(a)) {
        bool equal = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
        for (Py_ssize_t k = 0; equal && k < PyTuple_GET_SIZE(a); k++)
            equal = value_equals(PyTuple_GET_ITEM(a, k), PyTuple_GET_ITEM(b, k));
        return equal;
    }
    return is_equal(a, b);
}

/* True for a float or int that equals none of those in a tuple. */
static bool
differs_from_all(PyObject *value, PyObject *others)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(others); k++)
        if (PyObject_RichCompareBool(value, PyTuple_GET_ITEM(others, k), Py_EQ) != 0) {
            PyErr_Clear();
            return false;
        }
    return true;
}

/* ---- functions and containers ---- */

/* A function made by the same line of the same program. The values that it reads are sources of
 * their own. */
static int
test_function(const CxCheck *c, PyObject *value)
{
    if (!PyFunction_Check(value))
        return OTHER_CLASS;
    if (PyFunction_GET_CODE(value) != c->a)
        return OTHER_CODE;
    int64_t has = (PyFunction_GET_DEFAULTS(value) != NULL ? HAS_DEFAULTS : 0) |
                  (PyFunction_GET_KW_DEFAULTS(value) != NULL ? HAS_NAMED_DEFAULTS : 0);
    return PyFunction_GET_GLOBALS(value) != c->b ? OTHER_GLOBALS
           : has != c->count                     ? OTHER_DEFAULTS
                                                 : AGREES;
}

static bool
or_none(PyObject *found, PyObject *wanted)
{
    return (found != NULL ? found : Py_None) == wanted;
}

static int
test_body(PyObject *parts, PyObject *value)
{
    if (!PyFunction_Check(value))
        return OTHER_CLASS;
    if (PyFunction_GET_CODE(value) != PyTuple_GET_ITEM(parts, 0))
        return OTHER_CODE;
    bool fits = or_none(PyFunction_GET_DEFAULTS(value), PyTuple_GET_ITEM(parts, 1)) &&
                or_none(PyFunction_GET_KW_DEFAULTS(value), PyTuple_GET_ITEM(parts, 2));
    return fits ? AGREES : OTHER_DEFAULTS;
}

static int
test_len(const CxCheck *c, PyObject *value)
{
    if ((PyObject *)Py_TYPE(value) != c->a)
        return OTHER_CLASS;
    return PyObject_Size(value) == c->count ? AGREES : OTHER_LENGTH;
}

/* The keys of an OrderedDict, whose order is not that of the dict in it. */
static int
test_ordered_keys(const CxCheck *c, PyObject *dict)
{
    PyObject *keys = PySequence_Tuple(dict);
    bool agrees = keys != NULL;

    for (Py_ssize_t k = 0; agrees && k < PyTuple_GET_SIZE(keys); k++)
        agrees = value_equals(PyTuple_GET_ITEM(keys, k), PyTuple_GET_ITEM(c->b, k));
    if (keys == NULL)
        PyErr_Clear();
    Py_XDECREF(keys);
    return agrees ? AGREES : OTHER_VALUE;
}

static int
test_keys(const CxCheck *c, PyObject *dict)
{
    Py_ssize_t at = 0, k = 0;
    PyObject *key, *value;

    if ((PyObject *)Py_TYPE(dict) != c->a || !PyDict_Check(dict))
        return OTHER_CLASS;
    if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(c->b))
        return OTHER_VALUE;
    if (PyODict_Check(dict) && Py_TYPE(dict)->tp_iter == PyODict_Type.tp_iter)
        return test_ordered_keys(c, dict);
    while (PyDict_Next(dict, &at, &key, &value))
        if (!value_equals(key, PyTuple_GET_ITEM(c->b, k++)))
            return OTHER_VALUE;
    return AGREES;
}

static bool
is_descriptor(PyObject *o)
{
    return Py_IS_TYPE(o, &PyMemberDescr_Type) || Py_IS_TYPE(o, &PyGetSetDescr_Type);
}

/* Reads an object's slot, a member descriptor. Returns a new reference; NULL if the slot is empty, or with an
 * exception. */
static PyObject *
in_slot(PyObject *value, PyObject *slot)
{
    PyObject *found = Py_TYPE(slot)->tp_descr_get(slot, value, NULL);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
        PyErr_Clear();
    return found;
}

/* True if a dict has no such key, or if an object's slot (a member descriptor) is empty. May leave an exception. */
static bool
lacks(PyObject *value, PyObject *name)
{
    bool is_slot = is_descriptor(name);

    if (is_slot ? !PyObject_TypeCheck(value, PyDescr_TYPE(name)) : !PyDict_Check(value))
        return false;
    PyObject *found = is_slot ? in_slot(value, name) : Py_XNewRef(PyDict_GetItemWithError(value, name));
    bool is_empty = found == NULL && !PyErr_Occurred();
    Py_XDECREF(found);
    return is_empty;
}

/* True if runs_code() of capture/deaths.py says that no code of the user's runs when the object dies. May leave an
 * exception. */
static bool
runs_no_code(PyObject *lost)
{
    PyObject *module, *answer = NULL;

    Py_INCREF(lost);
    if ((module = PyImport_ImportModule("cinductor.capture.deaths")) != NULL)
        answer = PyObject_CallMethod(module, "runs_code", "(O)", lost);
    Py_XDECREF(module);
    Py_XDECREF(answer);
    Py_DECREF(lost);
    return answer == Py_False;
}

/* True if a list or dict loses nothing with the item at this place, or an object nothing with what its slot has, or
 * only an object whose death runs no code of the user's. May leave an exception. */
static bool
loses_quietly(PyObject *owner, PyObject *place)
{
    PyObject *lost = NULL;

    if (is_descriptor(place) && PyObject_TypeCheck(owner, PyDescr_TYPE(place)))
        lost = in_slot(owner, place);
    else if (PyDict_Check(owner))
        lost = Py_XNewRef(PyDict_GetItemWithError(owner, place));
    else if (PyList_Check(owner) && PyLong_CheckExact(place)) {
        Py_ssize_t at = PyLong_AsSsize_t(place);
        if (at >= 0 && at < PyList_GET_SIZE(owner))
            lost = Py_NewRef(PyList_GET_ITEM(owner, at));
        else if (at < 0)
            return false;
    } else
        return false;
    if (PyErr_Occurred()) /* of a comparison of keys */
        return false;
    bool is_quiet = lost == NULL || cx_dies_quietly(lost) || runs_no_code(lost);
    Py_XDECREF(lost);
    return is_quiet;
}

/* ---- relations between several values ---- */

static int
test_names(CxLookup *l, CxCheck *c)
{
    Py_ssize_t which = 0;
    /* Read first, so that a change during the lookup is seen by the next call. */
    uint64_t stamp = cx_namespace_stamp(c->a);

    if (stamp != 0 && stamp == c->stamp)
        return AGREES;
    if (!cx_namespace_has(c->a, c->b, l->guards->state->missing, &which))
        return OTHER_VALUE;
    c->stamp = stamp;
    return AGREES;
}

static int
test_disjoint(CxLookup *l, CxCheck *c)
{
    for (int w = 0; w < c->source; w++) {
        PyObject *a = cx_lookup_find(l, c->sources[w]);
        char *low, *high, *other_low, *other_high;
        if (a == NULL || !PyArray_Check(a))
            return OTHER_VALUE;
        cx_array_extent(a, &low, &high);
        for (int k = w + 1; k < c->other; k++) {
            PyObject *b = c->sources[k] == c->sources[w] ? NULL : cx_lookup_find(l, c->sources[k]);
            if (b == NULL || !PyArray_Check(b))
                continue;
            cx_array_extent(b, &other_low, &other_high);
            if (low < other_high && other_low < high)
                return OTHER_VALUE;
        }
    }
    return AGREES;
}

static int
compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(PyObject *const *)a, y = (uintptr_t)*(PyObject *const *)b;
    return (x > y) - (x < y);
}

/* True if a value is an item of that list. */
static bool
is_item(const PyObject *value, PyObject *list)
{
    bool is_there = list == NULL || !PyList_CheckExact(list);

    for (Py_ssize_t k = 0; !is_there && k < PyList_GET_SIZE(list); k++)
        is_there = PyList_GET_ITEM(list, k) == value;
    return is_there;
}

/* True for a number that is not NaN: numbers are compared by value, and NaNs by identity. */
static bool
equals_itself(PyObject *value)
{
    if (PyFloat_Check(value))
        return PyFloat_AS_DOUBLE(value) == PyFloat_AS_DOUBLE(value);
    if (!PyComplex_Check(value) && !PyArray_IsScalar(value, Generic))
        return false;
    PyObject *answer = PyObject_RichCompare(value, value, Py_EQ);
    bool is_equal = answer != NULL && PyObject_IsTrue(answer) > 0;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_equal;
}

/* Tests that no two of the objects and NaNs are one. */
static int
test_apart(CxLookup *l, CxCheck *c)
{
    PyObject *few[16], **found = few;
    size_t count = 0;
    bool agrees = true;

    if (c->other > 16 && (found = PyMem_Malloc(sizeof *found * (size_t)c->other)) == NULL)
        return OTHER_VALUE;
    for (int k = 0; k < c->other && agrees; k++) {
        agrees = (found[count] = cx_lookup_find(l, c->sources[k])) != NULL;
        count += agrees && !equals_itself(found[count]);
    }
    if (agrees && count > 1)
        qsort(found, count, sizeof *found, compare_addresses);
    for (size_t k = 1; k < count && agrees; k++)
        agrees = found[k] != found[k - 1];
    if (found != few)
        PyMem_Free(found);
    return agrees ? AGREES : OTHER_VALUE;
}

/* ---- the tests of the rows ---- */

#define DIFFERS(what, how) ((how) ? OTHER_##what : AGREES)

int
cx_check_test(CxLookup *l, CxCheck *c)
{
    PyObject *value = cx_check_is_relation(c) ? NULL : cx_lookup_value(l, c->source);
    if (value == NULL && !cx_check_is_relation(c))
        return OTHER_VALUE;
    switch (c->kind) {
#define GUARD(kind, read, form, test)                                                              \
    case CHECK_##kind:                                                                             \
        return test;
#include "replay/guards.def"
    }
    return OTHER_VALUE;
}
