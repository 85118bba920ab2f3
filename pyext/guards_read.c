/* Guards from the tuples that describe them: see Specialization in _core.pyi. */
#include "guards.h"

static bool
word_is(PyObject *word, const char *text)
{
    return PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, text) == 0;
}

static int
bad(PyObject *what)
{
    PyErr_Format(PyExc_ValueError, "not a source or check: %R", what);
    return -1;
}

static int
read_source(CxSource *s, PyObject *tuple, int number)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    PyObject *word = n > 1 ? PyTuple_GET_ITEM(tuple, 0) : Py_None,
             *first = n > 1 ? PyTuple_GET_ITEM(tuple, 1) : NULL;
    bool is_attr = word_is(word, "attr");

    if (word_is(word, "arg") && n == 2) {
        s->kind = SOURCE_arg;
        s->from = (int)PyLong_AsLong(first);
        return s->from < 0 ? bad(tuple) : 0;
    }
    if ((is_attr || word_is(word, "item")) && n == 3) {
        s->kind = is_attr ? SOURCE_attr : SOURCE_item;
        s->from = (int)PyLong_AsLong(first);
        s->key = Py_NewRef(PyTuple_GET_ITEM(tuple, 2));
        return s->from < 0 || s->from >= number ? bad(tuple) : 0;
    }
    if (word_is(word, "global") && n == 3 && PyDict_Check(first)) {
        s->kind = SOURCE_dict;
        s->key = Py_NewRef(PyTuple_GET_ITEM(tuple, 2));
    } else if (word_is(word, "cell") && n == 2 && PyCell_Check(first))
        s->kind = SOURCE_cell;
    else if (word_is(word, "const") && n == 2)
        s->kind = SOURCE_const;
    else
        return bad(tuple);
    s->object = Py_NewRef(first);
    return 0;
}

static int
read_array(CxCheck *c, PyObject *tuple)
{
    PyObject *shape = NULL, *strides = NULL, *dtype = NULL, *skip = NULL, *word = NULL;
    int writable = 0, aligned = 0;
    int64_t sizes[NPY_MAXDIMS], steps[NPY_MAXDIMS];

    if (!PyArg_ParseTuple(tuple, "OOOOOpp", &skip, &word, &dtype, &shape, &strides, &writable,
                          &aligned))
        return -1;
    if (!PyArray_DescrConverter(dtype, &c->descr))
        return -1;
    c->rank = cx_sizes_from(shape, sizes, NPY_MAXDIMS);
    if (c->rank < 0 || cx_sizes_from(strides, steps, NPY_MAXDIMS) != c->rank)
        return PyErr_Occurred() ? -1 : bad(tuple);
    c->kind = CHECK_array;
    c->writable = writable != 0;
    c->aligned = aligned != 0;
    c->sizes = PyMem_Malloc(sizeof(int64_t) * (2 * (size_t)c->rank + 1));
    if (c->sizes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    c->strides = c->sizes + c->rank;
    memcpy(c->sizes, sizes, sizeof(int64_t) * (size_t)c->rank);
    memcpy(c->strides, steps, sizeof(int64_t) * (size_t)c->rank);
    c->count = cx_count(c->rank, sizes);
    return 0;
}

static int
read_disjoint(CxCheck *c, PyObject *tuple, int nsources)
{
    PyObject *word = NULL, *written = NULL, *others = NULL;
    if (!PyArg_ParseTuple(tuple, "OO!O!", &word, &PyTuple_Type, &written, &PyTuple_Type, &others))
        return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(written), all = n + PyTuple_GET_SIZE(others);
    c->kind = CHECK_disjoint;
    c->source = (int)n;
    c->other = (int)all;
    c->sizes = PyMem_Malloc(sizeof(int64_t) * ((size_t)all + 1));
    if (c->sizes == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < all; k++) {
        c->sizes[k] = PyLong_AsLongLong(k < n ? PyTuple_GET_ITEM(written, k)
                                              : PyTuple_GET_ITEM(others, k - n));
        if (c->sizes[k] < 0 || c->sizes[k] >= nsources)
            return PyErr_Occurred() ? -1 : bad(tuple);
    }
    return 0;
}

static int
read_check(CxCheck *c, PyObject *tuple, int nsources)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    PyObject *word = n >= 2 ? PyTuple_GET_ITEM(tuple, 1) : Py_None,
             *third = n >= 3 ? PyTuple_GET_ITEM(tuple, 2) : NULL;

    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "disjoint"))
        return read_disjoint(c, tuple, nsources);
    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "absent") && PyDict_Check(word)) {
        c->kind = CHECK_absent;
        c->a = Py_NewRef(word);
        c->b = Py_NewRef(third);
        return 0;
    }
    c->source = n >= 2 ? (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, 0)) : -1;
    if (c->source < 0 || c->source >= nsources)
        return PyErr_Occurred() ? -1 : bad(tuple);
    if (word_is(word, "array") && n == 7)
        return read_array(c, tuple);
    if (word_is(word, "is") && n == 3)
        c->kind = CHECK_is;
    else if (word_is(word, "type") && n == 3)
        c->kind = CHECK_type;
    else if (word_is(word, "equals") && n == 3)
        c->kind = CHECK_equals;
    else if (word_is(word, "len") && n == 4)
        c->kind = CHECK_len, c->count = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 3));
    else if (word_is(word, "keys") && n == 4 && PyTuple_Check(PyTuple_GET_ITEM(tuple, 3)))
        c->kind = CHECK_keys, c->b = Py_NewRef(PyTuple_GET_ITEM(tuple, 3));
    else if (word_is(word, "same") && n == 3) {
        c->kind = CHECK_same;
        c->other = (int)PyLong_AsLong(third);
        return c->other < 0 || c->other >= nsources ? bad(tuple) : 0;
    } else if (n == 2) {
        PyTypeObject *type = word_is(word, "float")     ? &PyFloat_Type
                             : word_is(word, "complex") ? &PyComplex_Type
                             : word_is(word, "int")     ? &PyLong_Type
                                                        : NULL;
        c->kind = CHECK_type;
        c->a = Py_XNewRef(type);
        return type == NULL ? bad(tuple) : 0;
    } else
        return bad(tuple);
    c->a = Py_NewRef(third);
    return 0;
}

CxGuards *
cx_guards_new(CxState *state, PyObject *sources, PyObject *checks)
{
    CxGuards *g = PyMem_Calloc(1, sizeof *g);
    if (g == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    g->state = state;
    g->sources = PyMem_Calloc((size_t)PyList_GET_SIZE(sources) + 1, sizeof *g->sources);
    g->checks = PyMem_Calloc((size_t)PyList_GET_SIZE(checks) + 1, sizeof *g->checks);
    g->texts = PyTuple_Pack(2, sources, checks);
    if (g->sources == NULL || g->checks == NULL || g->texts == NULL) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        goto fail;
    }
    for (; g->nsources < PyList_GET_SIZE(sources); g->nsources++)
        if (read_source(&g->sources[g->nsources], PyList_GET_ITEM(sources, g->nsources),
                        g->nsources) < 0) {
            g->nsources++;
            goto fail;
        }
    for (; g->nchecks < PyList_GET_SIZE(checks); g->nchecks++)
        if (read_check(&g->checks[g->nchecks], PyList_GET_ITEM(checks, g->nchecks), g->nsources) <
            0) {
            g->nchecks++;
            goto fail;
        }
    return g;
fail:
    cx_guards_free(g);
    return NULL;
}
