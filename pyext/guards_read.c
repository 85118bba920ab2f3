/* Guards from the tuples that describe them: see Specialization in _core.pyi. */
#include "guards_private.h"

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
    if (word_is(word, "address") && n == 2) {
        s->kind = SOURCE_address;
        s->from = (int)PyLong_AsLong(first);
        return s->from < 0 || s->from >= number ? bad(tuple) : 0;
    }
    if (word_is(word, "made") && n == 3) {
        s->kind = SOURCE_made;
        s->from = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, 2));
        s->object = Py_NewRef(first);
        return s->from >= number ? bad(tuple) : 0;
    }
    if (word_is(word, "closure") && n == 4) {
        s->kind = SOURCE_closure;
        s->from = (int)PyLong_AsLong(first);
        s->number = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, 2));
        s->key = Py_NewRef(PyTuple_GET_ITEM(tuple, 3));
        return s->from < 0 || s->from >= number || s->number < 0 ? bad(tuple) : 0;
    }
    if (word_is(word, "global") && n == 3 && PyDict_Check(first)) {
        s->kind = SOURCE_dict;
        s->key = Py_NewRef(PyTuple_GET_ITEM(tuple, 2));
    } else if (word_is(word, "cell") && n <= 3 && PyCell_Check(first)) {
        s->kind = SOURCE_cell;
        s->key = n == 3 ? Py_NewRef(PyTuple_GET_ITEM(tuple, 2)) : NULL;
    } else if (word_is(word, "const") && n == 2)
        s->kind = SOURCE_const;
    else
        return bad(tuple);
    s->object = Py_NewRef(first);
    return 0;
}

/* Ints, and texts of sizes that vary. */
static int
read_extents(CxGuards *g, CxCheck *c, PyObject *tuple, CxExtent *extents)
{
    for (int k = 0; k < c->rank; k++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, k);
        if (PyUnicode_Check(item)) {
            if (cx_guards_parse(g, item, &extents[k].expr) < 0)
                return -1;
            if (ci_expr_is_const(extents[k].expr, &extents[k].constant))
                extents[k].expr = NULL;
        } else {
            extents[k].constant = PyLong_AsLongLong(item);
        }
        if (extents[k].expr != NULL)
            c->count = -1;
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

/* Strides of dense arrays are one of NumPy's flags, which overlooks those that do not matter. */
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
    c->kind = CHECK_array;
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

/* (source, "size", text): exactly an int of that value. */
static int
read_size(CxGuards *g, CxCheck *c, PyObject *text)
{
    PyObject *one = PyTuple_Pack(1, text);
    int result = one == NULL || alloc_extents(c, 1) < 0 ? -1 : read_extents(g, c, one, c->sizes);
    Py_XDECREF(one);
    c->kind = CHECK_size;
    return result;
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
    c->sources = PyMem_Malloc(sizeof *c->sources * ((size_t)all + 1));
    if (c->sources == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t k = 0; k < all; k++) {
        c->sources[k] = (int)PyLong_AsLong(k < n ? PyTuple_GET_ITEM(written, k)
                                                 : PyTuple_GET_ITEM(others, k - n));
        if (c->sources[k] < 0 || c->sources[k] >= nsources)
            return PyErr_Occurred() ? -1 : bad(tuple);
    }
    return 0;
}

/* Checks on one source, by their word. */
static int
read_word(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    PyObject *word = PyTuple_GET_ITEM(tuple, 1),
             *third = n >= 3 ? PyTuple_GET_ITEM(tuple, 2) : NULL;

    if (word_is(word, "array") && n == 7)
        return read_array(g, c, tuple);
    if (word_is(word, "size") && n == 3)
        return read_size(g, c, third);
    if (word_is(word, "is") && n == 3)
        c->kind = CHECK_is;
    else if (word_is(word, "type") && n == 3)
        c->kind = CHECK_type;
    else if (word_is(word, "differs") && n == 3 && PyTuple_Check(third))
        c->kind = CHECK_differs;
    else if (word_is(word, "equals") && n >= 3 && n <= 4) {
        c->kind = CHECK_equals;
        c->b = n == 4 ? Py_NewRef(PyTuple_GET_ITEM(tuple, 3)) : NULL;
    } else if (word_is(word, "function") && n == 5) {
        c->kind = CHECK_function;
        c->b = Py_NewRef(PyTuple_GET_ITEM(tuple, 3));
        c->count = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 4));
    } else if (word_is(word, "len") && n == 4)
        c->kind = CHECK_len, c->count = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 3));
    else if (word_is(word, "keys") && n == 4 && PyTuple_Check(PyTuple_GET_ITEM(tuple, 3)))
        c->kind = CHECK_keys, c->b = Py_NewRef(PyTuple_GET_ITEM(tuple, 3));
    else if (word_is(word, "same") && n == 3) {
        c->kind = CHECK_same;
        c->other = (int)PyLong_AsLong(third);
        return c->other < 0 || c->other >= g->nsources ? bad(tuple) : 0;
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

static int
read_check(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;
    PyObject *word = n >= 2 ? PyTuple_GET_ITEM(tuple, 1) : Py_None;

    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "disjoint"))
        return read_disjoint(c, tuple, g->nsources);
    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "absent") && PyDict_Check(word)) {
        c->kind = CHECK_absent;
        c->a = Py_NewRef(word);
        c->b = Py_NewRef(PyTuple_GET_ITEM(tuple, 2));
        return 0;
    }
    c->source = n >= 2 ? (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, 0)) : -1;
    if (c->source < 0 || c->source >= g->nsources)
        return PyErr_Occurred() ? -1 : bad(tuple);
    return read_word(g, c, tuple);
}

/* ---- the order of checks ---- */

static int
depth_of(const CxGuards *g, int source)
{
    int depth = 0;
    for (const CxSource *s = &g->sources[source];
         s->kind == SOURCE_attr || s->kind == SOURCE_item || s->kind == SOURCE_closure ||
         s->kind == SOURCE_address || (s->kind == SOURCE_made && s->from >= 0);
         s = &g->sources[s->from])
        depth++;
    return depth;
}

/* Outer things before what is taken out of them; then arguments, cells, globals; checks that look
 * at several things last. */
static int
cost_of(const CxGuards *g, const CxCheck *c)
{
    static const int COSTS[] = {[SOURCE_arg] = 0,  [SOURCE_cell] = 1,    [SOURCE_dict] = 2,
                                [SOURCE_attr] = 0, [SOURCE_item] = 0,    [SOURCE_closure] = 0,
                                [SOURCE_made] = 5, [SOURCE_address] = 0, [SOURCE_const] = 5};
    if (c->kind == CHECK_disjoint)
        return INT_MAX;
    if (c->kind == CHECK_absent)
        return 4;
    int depth = depth_of(g, c->source);
    if (c->kind == CHECK_same && depth_of(g, c->other) > depth)
        depth = depth_of(g, c->other);
    return 8 * depth + COSTS[g->sources[c->source].kind];
}

/* Stable, for there may be an order in what capture saw. */
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
    g->texts = PyTuple_Pack(2, sources, checks);
    if (g->sources == NULL || g->checks == NULL || g->texts == NULL) {
        if (!PyErr_Occurred())
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
