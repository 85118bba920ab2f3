/* Makes guards from the tuples that describe them: see Specialization in _core.pyi. */
#include "replay/guards_private.h"
#include "replay/namespace.h"

#include "graph/storage.h"

static bool
word_is(PyObject *word, const char *text)
{
    return PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, text) == 0;
}

static int
bad(PyObject *what)
{
    PyErr_Clear(); /* for an item that is not a number */
    PyErr_Format(PyExc_ValueError, "not a source or check: %R", what);
    return -1;
}

/* ---- forms: the letters of guards.def ---- */

typedef struct Fields {
    PyObject **first, **second;
    int *source;
    int64_t *number;
    int nsources;
} Fields;

static bool
is_object_of(char letter, PyObject *item)
{
    return letter == 'd'                    ? PyDict_Check(item)
           : letter == 'c'                  ? PyCell_Check(item)
           : letter == 't' || letter == 'l' ? PyTuple_Check(item)
                                            : true;
}

static bool
read_item(const Fields *f, char letter, PyObject *item)
{
    if (letter == 'n') {
        *f->number = PyLong_AsLongLong(item);
        return *f->number >= 0;
    }
    if (letter == 's' || letter == 'm') {
        *f->source = (int)PyLong_AsLong(item);
        return *f->source < f->nsources && *f->source >= (letter == 'm' ? -1 : 0);
    }
    if (is_object_of(letter, item))
        *(letter == 'k' || letter == 'l' ? f->second : f->first) = Py_NewRef(item);
    return is_object_of(letter, item);
}

/* Returns false if the tuple does not have the form; an exception may be set. */
static bool
read_items(const Fields *f, const char *form, PyObject *tuple, Py_ssize_t at)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    for (; *form != '\0'; form++) {
        if (*form == '|') {
            if (at == n)
                return true;
        } else if (at == n || !read_item(f, *form, PyTuple_GET_ITEM(tuple, at++))) {
            return false;
        }
    }
    return at == n && !PyErr_Occurred();
}

static const struct {
    const char *word, *form;
    int cost;
} SOURCES[] = {
#define SOURCE(kind, word, form, cost) [SOURCE_##kind] = {word, form, cost},
#include "replay/guards.def"
};

static int
read_source(CxSource *s, PyObject *tuple, int number)
{
    PyObject *word =
        PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) != 0 ? PyTuple_GET_ITEM(tuple, 0) : Py_None;
    int64_t count = 0;
    Fields fields = {&s->object, &s->key, &s->from, &count, number};

    for (size_t k = 0; k < sizeof SOURCES / sizeof *SOURCES; k++)
        if (word_is(word, SOURCES[k].word)) {
            s->kind = (CxSourceKind)k;
            if (!read_items(&fields, SOURCES[k].form, tuple, 1))
                return bad(tuple);
            *(s->kind == SOURCE_arg ? &s->from : &s->number) = (int)count;
            return 0;
        }
    return bad(tuple);
}

/* ---- checks ---- */

/* Reads extents: ints, and traced ones that vary. */
static int
read_extents(CxGuards *g, CxCheck *c, PyObject *tuple, CxExtent *extents)
{
    for (int k = 0; k < c->rank; k++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, k);
        if (cx_is_traced(item) && cx_is_size((CxTraced *)item)) {
            extents[k].expr = ((CxTraced *)item)->storage->expr;
            if (cx_guards_take(g, &extents[k].expr) < 0)
                return -1;
            c->count = -1;
        } else {
            extents[k].constant = PyLong_AsLongLong(item);
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int
alloc_extents(CxCheck *c, int rank)
{
    c->rank = rank;
    c->sizes = PyMem_Calloc(2 * (size_t)rank + 1, sizeof *c->sizes);
    if (c->sizes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    c->strides = c->sizes + rank;
    return 0;
}

/* Replaces the check of dense strides by one of NumPy's flags, which ignore irrelevant strides. */
static void
read_flags(CxGuards *g, CxCheck *c, bool is_writable, bool is_aligned)
{
    int64_t itemsize = PyDataType_ELSIZE(c->descr);

    c->flags = NPY_ARRAY_WRITEABLE | NPY_ARRAY_ALIGNED;
    c->wanted = (is_writable ? NPY_ARRAY_WRITEABLE : 0) | (is_aligned ? NPY_ARRAY_ALIGNED : 0);
    int dense = cx_guards_is_dense(g, c, itemsize, false)  ? NPY_ARRAY_C_CONTIGUOUS
                : cx_guards_is_dense(g, c, itemsize, true) ? NPY_ARRAY_F_CONTIGUOUS
                                                           : 0;
    c->looks_at_strides = dense == 0;
    c->is_permuted = dense != NPY_ARRAY_C_CONTIGUOUS && c->count < 0 && !cx_guards_is_c_order(g, c);
    c->flags |= dense;
    c->wanted |= dense;
}

static int
read_array(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    PyObject *shape = NULL, *strides = NULL, *dtype = NULL, *skip = NULL, *word = NULL;
    int writable = 0, aligned = 0;

    if (!PyArg_ParseTuple(tuple, "OOOO!O!pp", &skip, &word, &dtype, &PyTuple_Type, &shape,
                          &PyTuple_Type, &strides, &writable, &aligned))
        return -1;
    if (!PyArray_DescrConverter(dtype, &c->descr))
        return -1;
    if (PyTuple_GET_SIZE(shape) != PyTuple_GET_SIZE(strides) ||
        PyTuple_GET_SIZE(shape) > NPY_MAXDIMS)
        return bad(tuple);
    if (alloc_extents(c, (int)PyTuple_GET_SIZE(shape)) < 0 ||
        read_extents(g, c, shape, c->sizes) < 0)
        return -1;
    if (c->count == 0) {
        c->count = 1;
        for (int k = 0; k < c->rank; k++)
            c->count *= c->sizes[k].constant;
    }
    if (read_extents(g, c, strides, c->strides) < 0)
        return -1;
    read_flags(g, c, writable != 0, aligned != 0);
    return PyErr_Occurred() ? -1 : 0;
}

/* (source, "size", size): exactly an int of that value. */
static int
read_size(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    PyObject *one = PyTuple_GetSlice(tuple, 2, 3);
    int result = one == NULL || PyTuple_GET_SIZE(one) != 1 ? bad(tuple) : alloc_extents(c, 1);
    if (result == 0)
        result = read_extents(g, c, one, c->sizes);
    Py_XDECREF(one);
    return result;
}

/* Reads the numbers of the sources in both tuples into one array. */
static int
read_sources(CxCheck *c, PyObject *tuple, PyObject *first, PyObject *second, int nsources)
{
    Py_ssize_t n = PyTuple_GET_SIZE(first), all = n + (second ? PyTuple_GET_SIZE(second) : 0);
    c->source = (int)n;
    c->other = (int)all;
    c->sources = PyMem_Malloc(sizeof *c->sources * ((size_t)all + 1));
    if (c->sources == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < all; k++) {
        c->sources[k] = (int)PyLong_AsLong(k < n ? PyTuple_GET_ITEM(first, k)
                                                 : PyTuple_GET_ITEM(second, k - n));
        if (c->sources[k] < 0 || c->sources[k] >= nsources)
            return PyErr_Occurred() ? -1 : bad(tuple);
    }
    return 0;
}

static int
read_disjoint(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    PyObject *word = NULL, *written = NULL, *others = NULL;
    if (!PyArg_ParseTuple(tuple, "OO!O!", &word, &PyTuple_Type, &written, &PyTuple_Type, &others))
        return -1;
    return read_sources(c, tuple, written, others, g->nsources);
}

static int
read_apart(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    PyObject *word = NULL, *sources = NULL;
    if (!PyArg_ParseTuple(tuple, "OO!", &word, &PyTuple_Type, &sources))
        return -1;
    return read_sources(c, tuple, sources, NULL, g->nsources);
}

/* ("names", dict or class, (name, value, ...)) */
static int
read_names(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    Fields fields = {&c->a, &c->b, NULL, NULL, g->nsources};
    if (!read_items(&fields, "ol", tuple, 1) || !(PyDict_Check(c->a) || PyType_Check(c->a)))
        return bad(tuple);
    return cx_namespace_watch(c->a);
}

typedef int Reader(CxGuards *g, CxCheck *c, PyObject *tuple);

/* Relations between several values, with their own costs. */
static const struct {
    const char *word, *form;
    Reader *read;
    int cost;
    bool is_relation;
} CHECKS[] = {
#define GUARD(kind, read, form, test) [CHECK_##kind] = {#kind, form, read, 0, false},
#define RELATION(kind, cost, test) [CHECK_##kind] = {#kind, NULL, read_##kind, cost, true},
#include "replay/guards.def"
};

/* The class of numbers that the word names; NULL if it names none. */
static PyTypeObject *
class_of_word(PyObject *word)
{
    return word_is(word, "float")     ? &PyFloat_Type
           : word_is(word, "complex") ? &PyComplex_Type
           : word_is(word, "int")     ? &PyLong_Type
                                      : NULL;
}

static int
read_check(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    bool is_relation = n != 0 && PyUnicode_Check(PyTuple_GET_ITEM(tuple, 0));
    PyObject *word = n > 1 ? PyTuple_GET_ITEM(tuple, is_relation ? 0 : 1) : Py_None;
    Fields fields = {&c->a, &c->b, &c->other, &c->count, g->nsources};

    if (!is_relation) {
        c->source = n >= 2 ? (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, 0)) : -1;
        if (c->source < 0 || c->source >= g->nsources)
            return PyErr_Occurred() ? -1 : bad(tuple);
    }
    if (n == 2 && class_of_word(word) != NULL) {
        c->kind = CHECK_type;
        c->a = Py_NewRef(class_of_word(word));
        return 0;
    }
    for (size_t k = 0; k < sizeof CHECKS / sizeof *CHECKS; k++)
        if (CHECKS[k].is_relation == is_relation && word_is(word, CHECKS[k].word)) {
            c->kind = (CxCheckKind)k;
            if (CHECKS[k].read != NULL)
                return CHECKS[k].read(g, c, tuple);
            return read_items(&fields, CHECKS[k].form, tuple, 2) ? 0 : bad(tuple);
        }
    return bad(tuple);
}

/* ---- the order of checks ---- */

static int
depth_of(const CxGuards *g, int source)
{
    int depth = 0;
    for (const CxSource *s = &g->sources[source];
         strpbrk(SOURCES[s->kind].form, "sm") != NULL && s->from >= 0; s = &g->sources[s->from])
        depth++;
    return depth;
}

/* Containers before their items; then arguments, cells, globals; relations last. */
static int
cost_of(const CxGuards *g, const CxCheck *c)
{
    if (CHECKS[c->kind].is_relation)
        return CHECKS[c->kind].cost;
    int depth = depth_of(g, c->source);
    bool has_two = c->kind == CHECK_same || c->kind == CHECK_other;
    if (has_two && depth_of(g, c->other) > depth)
        depth = depth_of(g, c->other);
    return 8 * depth + SOURCES[g->sources[c->source].kind].cost;
}

/* Insertion sort, which is stable: equal checks keep the order in which capture recorded them. */
static void
sort_checks(CxGuards *g)
{
    for (int k = 1; k < g->nchecks; k++) {
        CxCheck check = g->checks[k];
        int cost = cost_of(g, &check), at = k;
        for (; at > 0 && cost_of(g, &g->checks[at - 1]) > cost; at--)
            g->checks[at] = g->checks[at - 1];
        g->checks[at] = check;
    }
}

CxGuards *
cx_guards_new(CxTracer *tracer, PyObject *sources, PyObject *checks)
{
    CxGuards *g = PyMem_Calloc(1, sizeof *g);
    if (g == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    g->state = tracer->state;
    g->sources = PyMem_Calloc((size_t)PyList_GET_SIZE(sources) + 1, sizeof *g->sources);
    g->checks = PyMem_Calloc((size_t)PyList_GET_SIZE(checks) + 1, sizeof *g->checks);
    if (g->sources == NULL || g->checks == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    if (cx_guards_open_sizes(g, tracer) < 0)
        goto fail;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(sources); k++)
        if (read_source(&g->sources[g->nsources++], PyList_GET_ITEM(sources, k), (int)k) < 0)
            goto fail;
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(checks); k++)
        if (read_check(g, &g->checks[g->nchecks++], PyList_GET_ITEM(checks, k)) < 0)
            goto fail;
    sort_checks(g);
    if (cx_guards_number_sizes(g, tracer) < 0)
        goto fail;
    return g;
fail:
    cx_guards_free(g);
    return NULL;
}
