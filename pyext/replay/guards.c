/* Guards: how a later call finds the values a specialization was made for, and what must hold of
 * them. One function decides and, when asked, explains. Checks stand in an order (guards_read.c) in
 * which one on a container comes before what is taken out of it, and otherwise those that are cheap
 * and tell specializations apart come first. Sources are found when a check first needs them.
 *
 * Sizes that vary are values of the call's table: arrays fill in the symbols, then everything that
 * is computed from them is, then what depends on that is compared. */
#include "replay/guards_private.h"
#include "replay/namespace.h"
#include "state/array.h"

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
        PyMem_Free(g->checks[k].sources);
    }
    Py_XDECREF(g->texts);
    Py_XDECREF(g->names);
    Py_XDECREF(g->where);
    PyMem_Free(g->sources);
    PyMem_Free(g->checks);
    if (g->ctx != NULL)
        ci_context_close(g->ctx);
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

int
cx_guards_table(const CxGuards *g)
{
    return g->ctx != NULL ? g->values.count : 0;
}

void
cx_guards_set_words(CxGuards *g, PyObject *names, PyObject *where)
{
    Py_XSETREF(g->names, Py_XNewRef(names));
    Py_XSETREF(g->where, Py_XNewRef(where));
}

/* ---- checking ---- */

typedef struct Lookup {
    CxGuards *guards;
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject **values;
    int64_t *table;
} Lookup;

/* Arguments are the caller's for the call, constants the guards'. All else is held: while a program
 * runs without the lock another thread may bind the name to something else. */
static bool
is_owned(const CxSource *s)
{
    return s->kind != SOURCE_arg && s->kind != SOURCE_const;
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
        value = Py_XNewRef(PyDict_GetItemWithError(s->object, s->key));
        break;
    case SOURCE_cell:
        value = Py_XNewRef(PyCell_GET(s->object));
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
    case SOURCE_made:
        from = s->from < 0 ? NULL : find_value(l, s->from);
        if (from != NULL || s->from < 0)
            value = PyObject_CallFunctionObjArgs(s->object, from, NULL);
        break;
    case SOURCE_closure: /* a check has seen that the function has this code */
        from = find_value(l, s->from);
        if (from != NULL)
            value =
                Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(from), s->number)));
        break;
    case SOURCE_address:
        from = find_value(l, s->from);
        value = from ? PyLong_FromVoidPtr(from) : NULL;
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

/* Constants are compared and symbols taken; what is computed waits. */
static bool
extent_fits(const CxExtent *extent, int64_t found, int64_t *table)
{
    if (extent->expr == NULL)
        return found == extent->constant;
    if (extent->is_definition)
        table[extent->number] = found;
    return true;
}

/* An axis that has one element now, though the program is for any number, has no place among the
 * others by its stride: what is made of the array is in C's order. */
static bool
has_one(const CxCheck *c, const npy_intp *dims)
{
    bool is_found = false;
    for (int k = 0; k < c->rank; k++) {
        if (dims[k] == 0)
            return false;
        is_found |= dims[k] == 1 && c->sizes[k].expr != NULL;
    }
    return is_found;
}

static bool
array_fits(const CxCheck *c, PyObject *value, int64_t *table)
{
    if (!PyArray_CheckExact(value))
        return false;
    PyArrayObject *a = (PyArrayObject *)value;
    if (PyArray_NDIM(a) != c->rank || (PyArray_FLAGS(a) & c->flags) != c->wanted)
        return false;
    if (PyArray_DESCR(a) != c->descr && !PyArray_EquivTypes(PyArray_DESCR(a), c->descr))
        return false;
    const npy_intp *dims = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
    for (int k = 0; k < c->rank; k++)
        if (!extent_fits(&c->sizes[k], dims[k], table))
            return false;
    if (c->is_permuted && has_one(c, dims))
        return false;
    if (!c->looks_at_strides || PyArray_SIZE(a) == 0)
        return true;
    for (int k = 0; k < c->rank; k++) {
        if (c->strides[k].expr == NULL && strides[k] != c->strides[k].constant && dims[k] > 1)
            return false;
        if (c->strides[k].is_definition)
            table[c->strides[k].shown] = dims[k] > 1 ? strides[k] : 0;
    }
    return true;
}

/* Exactly an int, of 64 bits. */
static bool
size_fits(const CxCheck *c, PyObject *value, int64_t *table)
{
    int overflow = 0;
    if (!PyLong_CheckExact(value))
        return false;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && extent_fits(&c->sizes[0], found, table);
}

/* Exactly an int, of [0, 2**64). */
static bool
word_fits(PyObject *value)
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

/* Made by the same line of the same program: what it reads besides are sources of their own. */
static bool
function_fits(const CxCheck *c, PyObject *value)
{
    if (!PyFunction_Check(value) || PyFunction_GET_CODE(value) != c->a ||
        PyFunction_GET_GLOBALS(value) != c->b)
        return false;
    int64_t has = (PyFunction_GET_DEFAULTS(value) != NULL ? HAS_DEFAULTS : 0) |
                  (PyFunction_GET_KW_DEFAULTS(value) != NULL ? HAS_NAMED_DEFAULTS : 0);
    return has == c->count;
}

/* A float or int that is none of those in a tuple. */
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
        PyObject *a = find_value(l, c->sources[w]);
        char *low, *high, *other_low, *other_high;
        if (a == NULL || !PyArray_Check(a))
            return false;
        cx_array_extent(a, &low, &high);
        for (int k = w + 1; k < c->other; k++) {
            PyObject *b = c->sources[k] == c->sources[w] ? NULL : find_value(l, c->sources[k]);
            if (b == NULL || !PyArray_Check(b))
                continue;
            cx_array_extent(b, &other_low, &other_high);
            if (low < other_high && other_low < high)
                return false;
        }
    }
    return true;
}

static int
compare_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)*(PyObject *const *)a, y = (uintptr_t)*(PyObject *const *)b;
    return (x > y) - (x < y);
}

/* Is no object of these two of them? */
static bool
are_apart(Lookup *l, const CxCheck *c)
{
    PyObject *few[16], **found = few;
    bool is_so = true;

    if (c->other > 16 && (found = PyMem_Malloc(sizeof *found * (size_t)c->other)) == NULL)
        return false;
    for (int k = 0; k < c->other && is_so; k++)
        is_so = (found[k] = find_value(l, c->sources[k])) != NULL;
    if (is_so)
        qsort(found, (size_t)c->other, sizeof *found, compare_addresses);
    for (int k = 1; k < c->other && is_so; k++)
        is_so = found[k] != found[k - 1];
    if (found != few)
        PyMem_Free(found);
    return is_so;
}

/* Of most calls this is all: an argument, compared where it stands. */
static inline bool
check_is_array(Lookup *l, const CxCheck *c)
{
    const CxSource *s = &l->guards->sources[c->source];
    PyObject *value = l->values[c->source];

    if (value == NULL && s->kind == SOURCE_arg && s->from < l->nargs)
        value = l->values[c->source] = l->args[s->from];
    if (value == NULL)
        value = find_value(l, c->source);
    return value != NULL && array_fits(c, value, l->table);
}

/* The stamp is read first: what changes while names are looked up is seen by the next call. */
static bool
names_hold(const CxGuards *g, CxCheck *c)
{
    Py_ssize_t which = 0;
    uint64_t stamp = cx_namespace_stamp(c->a);

    if (stamp != 0 && stamp == c->stamp)
        return true;
    if (!cx_namespace_has(c->a, c->b, g->state->missing, &which))
        return false;
    c->stamp = stamp;
    return true;
}

static bool
or_none(PyObject *found, PyObject *wanted)
{
    return (found != NULL ? found : Py_None) == wanted;
}

static bool
body_fits(PyObject *value, PyObject *parts)
{
    return PyFunction_Check(value) && PyTuple_GET_SIZE(parts) == 3 &&
           PyFunction_GET_CODE(value) == PyTuple_GET_ITEM(parts, 0) &&
           or_none(PyFunction_GET_DEFAULTS(value), PyTuple_GET_ITEM(parts, 1)) &&
           or_none(PyFunction_GET_KW_DEFAULTS(value), PyTuple_GET_ITEM(parts, 2));
}

static bool
check_holds(Lookup *l, CxCheck *c)
{
    PyObject *value = NULL;

    if (c->kind == CHECK_disjoint)
        return are_disjoint(l, c);
    if (c->kind == CHECK_apart)
        return are_apart(l, c);
    if (c->kind == CHECK_names)
        return names_hold(l->guards, c);
    value = find_value(l, c->source);
    if (value == NULL)
        return false;
    switch (c->kind) {
    case CHECK_size:
        return size_fits(c, value, l->table);
    case CHECK_is:
        return value == c->a;
    case CHECK_type:
        return (PyObject *)Py_TYPE(value) == c->a;
    case CHECK_word:
        return word_fits(value);
    case CHECK_function:
        return function_fits(c, value);
    case CHECK_body:
        return body_fits(value, c->a);
    case CHECK_equals:
        return value_equals(value, c->a);
    case CHECK_differs:
        return differs_from_all(value, c->a);
    case CHECK_len:
        return (PyObject *)Py_TYPE(value) == c->a && PyObject_Size(value) == c->count;
    case CHECK_keys:
        return keys_fit(c, value);
    case CHECK_other:
        return value != find_value(l, c->other);
    default:
        return value == find_value(l, c->other);
    }
}

/* What waited for the symbols. */
static bool
computed_fits(const CxCheck *c, PyObject *value, const int64_t *table)
{
    PyArrayObject *a = (PyArrayObject *)value;

    if (c->kind == CHECK_size)
        return c->sizes[0].is_definition || table[c->sizes[0].number] == PyLong_AsLongLong(value);
    for (int k = 0; k < c->rank; k++)
        if (c->sizes[k].expr != NULL && !c->sizes[k].is_definition &&
            table[c->sizes[k].number] != PyArray_DIM(a, k))
            return false;
    for (int k = 0; c->looks_at_strides && k < c->rank; k++)
        if (c->strides[k].expr != NULL && table[c->strides[k].number] != PyArray_STRIDE(a, k) &&
            PyArray_DIM(a, k) > 1 && PyArray_SIZE(a) != 0)
            return false;
    return true;
}

static bool
relation_holds(const CxRelation *r, const int64_t *table)
{
    int64_t a = table[r->left], b = table[r->right];
    switch (r->guard.relation) {
    case CI_REL_eq:
        return a == b;
    case CI_REL_ne:
        return a != b;
    case CI_REL_le:
        return a <= b;
    default:
        return a < b;
    }
}

/* 1, 0 or CX_GUARDS_UNUSUAL with *why. */
static int
check_sizes(Lookup *l, PyObject **why)
{
    CxGuards *g = l->guards;

    ci_values_run(&g->values.segments[0], g->ncode, l->table);
    for (int k = 0; k < g->nchecks; k++) {
        const CxCheck *c = &g->checks[k];
        if ((c->kind == CHECK_array || c->kind == CHECK_size) && c->count < 0 &&
            !computed_fits(c, l->values[c->source], l->table)) {
            if (why != NULL)
                *why = cx_guards_failure(g, c, l->values, l->table);
            return 0;
        }
    }
    for (int k = 0; k < g->nrelations; k++)
        if (!relation_holds(&g->relations[k], l->table)) {
            if (why != NULL)
                *why = cx_guards_relation_failure(g, &g->relations[k], l->values, l->table);
            return g->relations[k].guard.is_usual ? CX_GUARDS_UNUSUAL : 0;
        }
    return 1;
}

int
cx_guards_check(CxGuards *g, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                int64_t *table, PyObject **why)
{
    Lookup lookup = {g, args, nargs, values, table};
    int fits = 1;

    memset(values, 0, sizeof *values * (size_t)g->nsources);
    if (g->values.count > 0)
        memcpy(table, g->values.initial, sizeof *table * (size_t)g->values.count);
    for (int k = 0; k < g->nchecks; k++) {
        CxCheck *c = &g->checks[k];
        if (c->kind == CHECK_array ? check_is_array(&lookup, c) : check_holds(&lookup, c))
            continue;
        PyErr_Clear();
        if (why != NULL)
            *why = cx_guards_failure(g, c, values, NULL);
        return why != NULL && *why == NULL ? -1 : 0;
    }
    if (g->ctx != NULL && (fits = check_sizes(&lookup, why)) != 1)
        return why != NULL && *why == NULL ? -1 : fits;
    for (int k = 0; k < g->nsources; k++)
        if (values[k] == NULL && find_value(&lookup, k) == NULL) {
            if (why != NULL)
                *why = cx_guards_missing(g, k);
            return why != NULL && *why == NULL ? -1 : 0;
        }
    return 1;
}

void
cx_guards_finish(const CxGuards *g, int64_t *table)
{
    if (g->ctx == NULL)
        return;
    const CiSegment *all = &g->values.segments[0];
    CiSegment rest = {all->code + g->ncode, all->ncode - g->ncode, 0};
    ci_values_run(&rest, rest.ncode, table);
}
