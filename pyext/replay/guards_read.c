/* Guards from the tuples that describe them: see Specialization in _core.pyi. */
#include "replay/guards_private.h"
#include "replay/namespace.h"

static bool
word_is(PyObject *word, const char *text)
{
    return PyUnicode_Check(word) && PyUnicode_CompareWithASCIIString(word, text) == 0;
}

static int
bad(PyObject *what)
{
    PyErr_Clear(); /* of an item that is no number */
    PyErr_Format(PyExc_ValueError, "not a source or check: %R", what);
    return -1;
}

/* ---- forms ----
 * What stands in a tuple behind its word, a letter each; what follows a bar may be missing.
 *   o  any object      d  a dict      c  a cell      t  a tuple       the first object
 *   k  any object      l  a tuple                                     the second one
 *   n  a number from 0 on
 *   s  the number of a source that has been read      m  the same, or -1 */

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

/* False: the tuple has another form; an exception may be set. */
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

static int
read_source(CxSource *s, PyObject *tuple, int number)
{
    static const struct {
        const char *word;
        CxSourceKind kind;
        const char *form;
    } forms[] = {{"arg", SOURCE_arg, "n"},      {"attr", SOURCE_attr, "sk"},
                 {"item", SOURCE_item, "sk"},   {"address", SOURCE_address, "s"},
                 {"made", SOURCE_made, "om"},   {"closure", SOURCE_closure, "snk"},
                 {"global", SOURCE_dict, "dk"}, {"cell", SOURCE_cell, "c|k"},
                 {"const", SOURCE_const, "o"}};
    PyObject *word =
        PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) != 0 ? PyTuple_GET_ITEM(tuple, 0) : Py_None;
    int64_t count = 0;
    Fields fields = {&s->object, &s->key, &s->from, &count, number};

    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (word_is(word, forms[k].word)) {
            s->kind = forms[k].kind;
            if (!read_items(&fields, forms[k].form, tuple, 1))
                return bad(tuple);
            *(s->kind == SOURCE_arg ? &s->from : &s->number) = (int)count;
            return 0;
        }
    return bad(tuple);
}

/* ---- checks ---- */

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

/* The sources in both tuples, one behind the other. */
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
read_disjoint(CxCheck *c, PyObject *tuple, int nsources)
{
    PyObject *word = NULL, *written = NULL, *others = NULL;
    if (!PyArg_ParseTuple(tuple, "OO!O!", &word, &PyTuple_Type, &written, &PyTuple_Type, &others))
        return -1;
    c->kind = CHECK_disjoint;
    return read_sources(c, tuple, written, others, nsources);
}

static int
read_apart(CxCheck *c, PyObject *tuple, int nsources)
{
    PyObject *word = NULL, *sources = NULL;
    if (!PyArg_ParseTuple(tuple, "OO!", &word, &PyTuple_Type, &sources))
        return -1;
    c->kind = CHECK_apart;
    return read_sources(c, tuple, sources, NULL, nsources);
}

/* Exactly a number of this class; NULL: the word is none. */
static PyTypeObject *
class_of_word(PyObject *word)
{
    return word_is(word, "float")     ? &PyFloat_Type
           : word_is(word, "complex") ? &PyComplex_Type
           : word_is(word, "int")     ? &PyLong_Type
                                      : NULL;
}

/* Checks on one source, by their word. */
static int
read_word(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    static const struct {
        const char *word;
        CxCheckKind kind;
        const char *form;
    } forms[] = {{"is", CHECK_is, "o"},           {"type", CHECK_type, "o"},
                 {"word", CHECK_word, ""},        {"differs", CHECK_differs, "t"},
                 {"equals", CHECK_equals, "o|k"}, {"function", CHECK_function, "okn"},
                 {"len", CHECK_len, "on"},        {"keys", CHECK_keys, "ol"},
                 {"body", CHECK_body, "t"},
                 {"same", CHECK_same, "s"},       {"other", CHECK_other, "s"}};
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    PyObject *word = PyTuple_GET_ITEM(tuple, 1);
    Fields fields = {&c->a, &c->b, &c->other, &c->count, g->nsources};

    if (word_is(word, "array") && n == 7)
        return read_array(g, c, tuple);
    if (word_is(word, "size") && n == 3)
        return read_size(g, c, PyTuple_GET_ITEM(tuple, 2));
    if (n == 2 && class_of_word(word) != NULL) {
        c->kind = CHECK_type;
        c->a = Py_NewRef(class_of_word(word));
        return 0;
    }
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (word_is(word, forms[k].word)) {
            c->kind = forms[k].kind;
            return read_items(&fields, forms[k].form, tuple, 2) ? 0 : bad(tuple);
        }
    return bad(tuple);
}

/* ("names", dict or class, (name, value, ...)) */
static int
read_names(CxCheck *c, PyObject *tuple)
{
    PyObject *space = PyTuple_GET_ITEM(tuple, 1), *pairs = PyTuple_GET_ITEM(tuple, 2);
    if (!(PyDict_Check(space) || PyType_Check(space)) || !PyTuple_Check(pairs))
        return bad(tuple);
    c->kind = CHECK_names;
    c->a = Py_NewRef(space);
    c->b = Py_NewRef(pairs);
    return cx_namespace_watch(space);
}

static int
read_check(CxGuards *g, CxCheck *c, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Check(tuple) ? PyTuple_GET_SIZE(tuple) : 0;

    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "disjoint"))
        return read_disjoint(c, tuple, g->nsources);
    if (n == 2 && word_is(PyTuple_GET_ITEM(tuple, 0), "apart"))
        return read_apart(c, tuple, g->nsources);
    if (n == 3 && word_is(PyTuple_GET_ITEM(tuple, 0), "names"))
        return read_names(c, tuple);
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
    if (c->kind == CHECK_disjoint || c->kind == CHECK_apart)
        return INT_MAX;
    if (c->kind == CHECK_names)
        return 4;
    int depth = depth_of(g, c->source);
    bool has_two = c->kind == CHECK_same || c->kind == CHECK_other;
    if (has_two && depth_of(g, c->other) > depth)
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
