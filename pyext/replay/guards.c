/* Guards: how a later call finds the values that a specialization depends on, and the conditions
 * on them. One function compares a value and tells where it differs.
 *
 * Checks are sorted (guards_read.c): a check on a container precedes those on its items; otherwise
 * cheap checks that distinguish specializations come first. A source is looked up when a check
 * first needs it.
 *
 * Varying sizes are numbered values of the call's table. Arrays give the values of symbols, then
 * expressions are computed, then checks that depend on them are compared. */
#include "replay/guards_private.h"

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
    return 0;
}

int
cx_guards_count(const CxGuards *g)
{
    return g->nsources;
}

bool
cx_guards_make(const CxGuards *g)
{
    for (int k = 0; k < g->nsources; k++)
        if (g->sources[k].kind == SOURCE_made && g->sources[k].from >= 0)
            return true;
    return false;
}

int
cx_guards_table(const CxGuards *g)
{
    return g->ctx != NULL ? g->values.count : 0;
}

void
cx_guards_show_strides(CxGuards *g, int source)
{
    for (int k = 0; k < g->nchecks; k++)
        if (g->checks[k].kind == CHECK_array && g->checks[k].source == source)
            g->checks[k].shows_strides = true;
}

void
cx_guards_set_words(CxGuards *g, PyObject *names, PyObject *where)
{
    Py_XSETREF(g->names, Py_XNewRef(names));
    Py_XSETREF(g->where, Py_XNewRef(where));
}

/* ---- checking ---- */

/* For most calls this is enough: an argument is compared directly. */
static inline int
test(CxLookup *l, CxCheck *c)
{
    PyObject *value = c->kind == CHECK_array ? cx_lookup_value(l, c->source) : NULL;
    return value != NULL ? cx_check_test_array(c, value, l->table) : cx_check_test(l, c);
}

static bool
is_fulfilled(const CxRelation *r, const int64_t *table)
{
    return ci_relation_is_true(r->guard.relation, table[r->left], table[r->right]);
}

/* Tests expressions that depend on symbols, for an array or an int. */
static inline int
test_computed(const CxCheck *c, PyObject *value, const int64_t *table)
{
    PyArrayObject *a = (PyArrayObject *)value;

    if (c->kind == CHECK_size) {
        bool fits =
            c->sizes[0].is_definition || table[c->sizes[0].number] == PyLong_AsLongLong(value);
        return fits ? AGREES : OTHER_VALUE;
    }
    for (int k = 0; k < c->rank; k++)
        if (c->sizes[k].expr != NULL && !c->sizes[k].is_definition &&
            table[c->sizes[k].number] != PyArray_DIM(a, k))
            return OTHER_SIZE + k;
    for (int k = 0; k < c->rank && cx_check_compares_strides(c, a); k++)
        if (c->strides[k].expr != NULL && table[c->strides[k].number] != PyArray_STRIDE(a, k) &&
            (PyArray_DIM(a, k) > 1 || c->shows_strides))
            return OTHER_LAYOUT;
    return AGREES;
}

/* Returns 1, 0 or CX_GUARDS_UNUSUAL, with *failure set. */
static int
check_sizes(CxLookup *l, CxFailure *failure)
{
    CxGuards *g = l->guards;

    ci_values_run(&g->values.segments[0], g->ncode, l->table);
    for (int k = 0; k < g->nchecks; k++) {
        const CxCheck *c = &g->checks[k];
        if (c->rank == 0 || c->count >= 0)
            continue;
        int where = test_computed(c, l->values[c->source], l->table);
        if (where == AGREES)
            continue;
        *failure = (CxFailure){CX_FAILS_check, k, where};
        return 0;
    }
    for (int k = 0; k < g->nrelations; k++)
        if (!is_fulfilled(&g->relations[k], l->table)) {
            *failure = (CxFailure){CX_FAILS_relation, k, AGREES};
            return g->relations[k].guard.is_usual ? CX_GUARDS_UNUSUAL : 0;
        }
    return 1;
}

int
cx_guards_check(CxGuards *g, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                int64_t *table, CxFailure *failure)
{
    CxLookup lookup = {g, args, nargs, values, table};
    int fits = 1;

    memset(values, 0, sizeof *values * (size_t)g->nsources);
    if (g->values.count > 0)
        memcpy(table, g->values.initial, sizeof *table * (size_t)g->values.count);
    for (int k = 0; k < g->nchecks; k++) {
        CxCheck *c = &g->checks[k];
        int where = test(&lookup, c);
        if (where == AGREES)
            continue;
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
            return -1; /* such as KeyboardInterrupt */
        PyErr_Clear();
        *failure = (CxFailure){CX_FAILS_check, k, where};
        return 0;
    }
    if (g->ctx != NULL && (fits = check_sizes(&lookup, failure)) != 1)
        return fits;
    for (int k = 0; k < g->nsources; k++)
        if (values[k] == NULL && cx_lookup_find(&lookup, k) == NULL) {
            *failure = (CxFailure){CX_FAILS_source, k, AGREES};
            return 0;
        }
    return 1;
}

/* True if the difference is one of few possible ones: a class, dtype or text. Sizes and numbers
 * vary more. */
static bool
is_of_a_kind(const CxCheck *c, int where)
{
    if (where != OTHER_VALUE)
        return where == OTHER_CLASS || where == OTHER_RANK || where == OTHER_DTYPE ||
               where == OTHER_CODE;
    return c->kind == CHECK_keys ||
           ((c->kind == CHECK_equals || c->kind == CHECK_is) &&
            (PyUnicode_Check(c->a) || PyBool_Check(c->a) || PyType_Check(c->a) ||
             PyArray_DescrCheck(c->a) || c->a == Py_None));
}

bool
cx_guards_is_other_kind(CxGuards *g, PyObject *const *args, Py_ssize_t nargs, PyObject **values,
                        int64_t *table)
{
    CxLookup lookup = {g, args, nargs, values, table};
    bool is_other = false;

    memset(values, 0, sizeof *values * (size_t)g->nsources);
    if (g->values.count > 0)
        memcpy(table, g->values.initial, sizeof *table * (size_t)g->values.count);
    for (int k = 0; k < g->nchecks && !is_other; k++) {
        int where = test(&lookup, &g->checks[k]);
        PyErr_Clear();
        is_other = where != AGREES && is_of_a_kind(&g->checks[k], where);
    }
    return is_other;
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
