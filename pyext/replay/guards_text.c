/* Guards in the user's words: what each asks for, and what a call that fails one has instead. */
#include "replay/guards_private.h"
#include "replay/namespace.h"
#include "state/array.h"

static PyObject *
type_text(PyTypeObject *type)
{
    const char *name = type == &PyArray_Type ? "array" : type->tp_name;
    return PyUnicode_FromFormat(strchr("aeiouAEIOU", *name) ? "an %s" : "a %s", name);
}

/* A value as its author would write it, shortened; what it is where it cannot be written. */
static PyObject *
value_text(PyObject *value)
{
    enum { LONGEST = 60, FIRST = 40, LAST = 15 };
    PyObject *text = PyObject_Repr(value);

    if (text == NULL) {
        PyErr_Clear();
        return type_text(Py_TYPE(value));
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    if (length > LONGEST) {
        PyObject *first = PyUnicode_Substring(text, 0, FIRST),
                 *last = PyUnicode_Substring(text, length - LAST, length);
        Py_SETREF(text, first && last ? PyUnicode_FromFormat("%U...%U", first, last) : NULL);
        Py_XDECREF(first);
        Py_XDECREF(last);
    }
    return text;
}

/* What an object is called by those who wrote it. */
static PyObject *
object_text(PyObject *o)
{
    bool is_module = PyModule_Check(o);
    if (PyObject_HasAttrString((PyObject *)Py_TYPE(o), "__members__")) /* of an enum */
        return PyObject_Str(o);
    PyObject *name = PyObject_GetAttrString(o, is_module ? "__name__" : "__qualname__");
    PyObject *text = NULL;

    if (name == NULL) {
        PyErr_Clear();
        return PyUnicode_FromFormat("the same %s object", Py_TYPE(o)->tp_name);
    }
    text = PyUnicode_FromFormat("the %s %S",
                                is_module         ? "module"
                                : PyType_Check(o) ? "class"
                                                  : "function",
                                name);
    Py_DECREF(name);
    return text;
}

/* A function by its name and where its code stands. */
static PyObject *
code_text(PyObject *code)
{
    PyObject *name = PyObject_GetAttrString(code, "co_name"), *text = NULL,
             *file = name ? PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;

    if (path != NULL) {
        const char *slash = strrchr(path, '/');
        text = PyUnicode_FromFormat("the function %S of %s:%d", name, slash ? slash + 1 : path,
                                    ((PyCodeObject *)code)->co_firstlineno);
    }
    Py_XDECREF(name);
    Py_XDECREF(file);
    return text;
}

/* What no argument reaches: a function by its name; else the callable that was compiled, whose
 * attributes its author knows as self's. */
static PyObject *
constant_text(PyObject *o)
{
    PyObject *name = PyMethod_Check(o) ? NULL : PyObject_GetAttrString(o, "__qualname__");
    if (name == NULL) {
        PyErr_Clear();
        return PyUnicode_FromString("self");
    }
    return name;
}

/* x, x.w, x[0] */
static PyObject *
source_text(const CxGuards *g, int number)
{
    const CxSource *s = &g->sources[number];
    PyObject *from = NULL, *text = NULL;

    switch (s->kind) {
    case SOURCE_arg:
        if (g->names != NULL && PyTuple_Check(g->names) && s->from < PyTuple_GET_SIZE(g->names))
            return PyObject_Str(PyTuple_GET_ITEM(g->names, s->from));
        return PyUnicode_FromFormat("argument %d", s->from);
    case SOURCE_dict:
        return PyUnicode_FromFormat("global %S", s->key);
    case SOURCE_cell:
        return s->key ? PyObject_Str(s->key) : PyUnicode_FromString("a closure's variable");
    case SOURCE_const:
        return constant_text(s->object);
    case SOURCE_made:
        text = constant_text(s->object);
        if (text != NULL)
            Py_SETREF(text, PyUnicode_FromFormat("%U(...)", text));
        return text;
    case SOURCE_attr:
        from = g->sources[s->from].kind == SOURCE_const ? g->sources[s->from].object : NULL;
        if (from != NULL && PyMethod_Check(from) &&
            PyUnicode_CompareWithASCIIString(s->key, "__self__") == 0)
            return PyUnicode_FromString("self");
        /* fall through */
    default:
        from = source_text(g, s->from);
        if (from != NULL)
            text = s->kind == SOURCE_address ? PyUnicode_FromFormat("id(%U)", from)
                   : s->kind == SOURCE_closure
                       ? PyUnicode_FromFormat("%S in %U", s->key, from)
                       : PyUnicode_FromFormat(s->kind == SOURCE_attr ? "%U.%S" : "%U[%R]", from,
                                              s->key);
        Py_XDECREF(from);
        return text;
    }
}

/* ---- expressions of sizes ---- */

/* x.shape[0], x.gap[0] (layout.c), or the name of an int. */
static PyObject *
symbol_text(const CxGuards *g, const CiExpr *symbol)
{
    const CxKnown *known = NULL;
    for (int k = 0; k < g->nknown; k++)
        if (g->known[k].symbol == symbol)
            known = &g->known[k];
    if (known == NULL || known->source < 0 || known->source >= g->nsources)
        return PyUnicode_FromString(symbol->name);
    PyObject *name = source_text(g, known->source);
    bool is_padding = known->axis <= CX_GAP_AXIS;
    if (name != NULL && (known->axis >= 0 || is_padding))
        Py_SETREF(name, PyUnicode_FromFormat(is_padding ? "%U.gap[%d]" : "%U.shape[%d]", name,
                                             is_padding ? CX_GAP_AXIS - known->axis : known->axis));
    return name;
}

typedef struct Printing {
    const CiExpr *e;
    PyObject *words; /* a tuple, as e->symbols */
    CiText text;
} Printing;

static void
print_symbol(CiText *out, const CiExpr *symbol, void *arg)
{
    Printing *p = arg;
    for (int k = 0; k < p->e->nsymbols; k++)
        if (p->e->symbols[k] == symbol)
            ci_text_add(out, "%s", PyUnicode_AsUTF8(PyTuple_GET_ITEM(p->words, k)));
}

static void
body_print(CiContext *ctx, void *arg)
{
    Printing *p = arg;
    p->text = ci_text_new(ctx);
    ci_expr_print_with(&p->text, p->e, CI_STYLE_text, print_symbol, p);
}

static PyObject *
expr_text(const CxGuards *g, const CiExpr *e)
{
    Printing p = {.e = e, .words = PyTuple_New(e->nsymbols)};
    CiContext *ctx = NULL;
    PyObject *text = NULL;

    for (int k = 0; p.words != NULL && k < e->nsymbols; k++) {
        PyObject *word = symbol_text(g, e->symbols[k]);
        if (word == NULL || PyUnicode_AsUTF8(word) == NULL) { /* kept in the string from here on */
            Py_XDECREF(word);
            Py_CLEAR(p.words);
        } else {
            PyTuple_SET_ITEM(p.words, k, word);
        }
    }
    if (p.words != NULL && (ctx = ci_context_open()) == NULL)
        PyErr_NoMemory();
    if (ctx != NULL && cx_protect(g->state, ctx, body_print, &p) == 0)
        text = PyUnicode_FromString(p.text.data);
    if (ctx != NULL)
        ci_context_close(ctx);
    Py_XDECREF(p.words);
    return text;
}

static const char *
sign_of(CiRelation relation)
{
    static const char *const SIGNS[] = {
        [CI_REL_eq] = "==", [CI_REL_ne] = "!=", [CI_REL_le] = "<=", [CI_REL_lt] = "<"};
    return SIGNS[relation];
}

/* " at model.py:12", where a line asked; where the function is otherwise. */
static PyObject *
place_text(const CxGuards *g, const CiLoc *loc)
{
    if (loc != NULL && loc->file != NULL && *loc->file != '\0') {
        const char *slash = strrchr(loc->file, '/');
        return PyUnicode_FromFormat(" at %s:%d", slash ? slash + 1 : loc->file, loc->line);
    }
    if (g->where != NULL && PyUnicode_Check(g->where) && PyUnicode_GET_LENGTH(g->where) != 0)
        return PyUnicode_FromFormat(" at %U", g->where);
    return PyUnicode_FromString("");
}

/* "a was X when compiled at F, is Y now"; steals all. */
static PyObject *
was_is(PyObject *what, PyObject *before, PyObject *place, PyObject *now)
{
    PyObject *text = NULL;
    if (what != NULL && before != NULL && place != NULL && now != NULL)
        text =
            PyUnicode_FromFormat("%U was %U when compiled%U, is %U now", what, before, place, now);
    Py_XDECREF(what);
    Py_XDECREF(before);
    Py_XDECREF(place);
    Py_XDECREF(now);
    return text;
}

static PyObject *
relation_text(const CxGuards *g, const CiShapeGuard *guard)
{
    PyObject *left = expr_text(g, guard->left), *right = expr_text(g, guard->right), *text = NULL;
    if (left != NULL && right != NULL)
        text = PyUnicode_FromFormat("%U %s %U", left, sign_of(guard->relation), right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return text;
}

PyObject *
cx_guards_relation_failure(CxGuards *g, const CxRelation *r, PyObject **values,
                           const int64_t *table)
{
    const CiShapeGuard *guard = &r->guard;
    PyObject *text = NULL, *what = NULL, *place = NULL, *other = NULL;
    int64_t constant = 0;

    (void)values;
    if (guard->relation == CI_REL_eq && ci_expr_is_const(guard->right, &constant))
        return was_is(expr_text(g, guard->left), PyUnicode_FromFormat("%lld", (long long)constant),
                      place_text(g, &guard->loc),
                      PyUnicode_FromFormat("%lld", (long long)table[r->left]));
    what = relation_text(g, guard);
    place = place_text(g, &guard->loc);
    if (what == NULL || place == NULL)
        goto done;
    if (ci_expr_is_const(guard->left, NULL))
        other = PyUnicode_FromFormat("%lld", (long long)table[r->right]);
    else if (ci_expr_is_const(guard->right, NULL))
        other = PyUnicode_FromFormat("%lld", (long long)table[r->left]);
    else
        other = PyUnicode_FromFormat("%lld and %lld", (long long)table[r->left],
                                     (long long)table[r->right]);
    if (other != NULL)
        text = PyUnicode_FromFormat("%U held when compiled%U, and does not now: %U", what, place,
                                    other);
done:
    Py_XDECREF(what);
    Py_XDECREF(place);
    Py_XDECREF(other);
    return text;
}

/* ---- arrays ---- */

static PyObject *
extent_text(const CxGuards *g, const CxExtent *extent)
{
    if (extent->expr == NULL)
        return PyUnicode_FromFormat("%lld", (long long)extent->constant);
    if (extent->is_definition && extent->expr->kind == CI_EXPR_symbol)
        return PyUnicode_FromString("any");
    return expr_text(g, extent->expr);
}

static PyObject *
extents_text(const CxGuards *g, int rank, const CxExtent *extents)
{
    PyObject *comma = PyUnicode_FromString(", "), *parts = PyList_New(0), *inner = NULL,
             *text = NULL;
    for (int k = 0; parts != NULL && k < rank; k++) {
        PyObject *part = extent_text(g, &extents[k]);
        if (part == NULL || PyList_Append(parts, part) < 0)
            Py_CLEAR(parts);
        Py_XDECREF(part);
    }
    if (comma != NULL && parts != NULL && (inner = PyUnicode_Join(comma, parts)) != NULL)
        text = PyUnicode_FromFormat(rank == 1 ? "(%U,)" : "(%U)", inner);
    Py_XDECREF(comma);
    Py_XDECREF(parts);
    Py_XDECREF(inner);
    return text;
}

static PyObject *
layout_text(const CxGuards *g, const CxCheck *c)
{
    if (c->looks_at_strides) {
        PyObject *strides = extents_text(g, c->rank, c->strides);
        PyObject *text = strides ? PyUnicode_FromFormat("strides %U", strides) : NULL;
        Py_XDECREF(strides);
        return text;
    }
    return PyUnicode_FromString(c->flags & NPY_ARRAY_C_CONTIGUOUS ? "contiguous"
                                                                  : "contiguous in Fortran order");
}

static PyObject *
array_text(const CxGuards *g, const CxCheck *c)
{
    PyObject *shape = extents_text(g, c->rank, c->sizes), *layout = layout_text(g, c), *text = NULL;
    if (shape != NULL && layout != NULL)
        text = PyUnicode_FromFormat("an array of %S, shape %U, %U%s%s", c->descr, shape, layout,
                                    c->wanted & NPY_ARRAY_WRITEABLE ? ", writable" : "",
                                    c->wanted & NPY_ARRAY_ALIGNED ? "" : ", not aligned");
    Py_XDECREF(shape);
    Py_XDECREF(layout);
    return text;
}

static PyObject *
strides_of(PyArrayObject *a)
{
    PyObject *strides = cx_sizes_tuple(PyArray_NDIM(a), (const int64_t *)PyArray_STRIDES(a));
    PyObject *text = strides ? PyUnicode_FromFormat("strides %R", strides) : NULL;
    Py_XDECREF(strides);
    return text;
}

static PyObject *
member_of(PyObject *name, const char *member)
{
    return name ? PyUnicode_FromFormat("%U.%s", name, member) : NULL;
}

static PyObject *
truth(bool value)
{
    return PyUnicode_FromString(value ? "True" : "False");
}

/* The first extent that differs, or -1. table NULL: symbols are not known yet. */
static int
find_difference(const CxCheck *c, const npy_intp *found, const CxExtent *wanted,
                const int64_t *table)
{
    for (int k = 0; k < c->rank; k++) {
        const CxExtent *e = &wanted[k];
        if (e->expr == NULL ? e->constant != found[k]
                            : table != NULL && !e->is_definition && table[e->number] != found[k])
            return k;
    }
    return -1;
}

/* A size, and where it should be that of others what they have. */
static PyObject *
size_found(const CxExtent *wanted, npy_intp found, const int64_t *table)
{
    if (wanted->expr == NULL || table == NULL)
        return PyUnicode_FromFormat("%zd", (Py_ssize_t)found);
    return PyUnicode_FromFormat("%zd and not %lld", (Py_ssize_t)found,
                                (long long)table[wanted->number]);
}

static PyObject *
array_difference(const CxGuards *g, const CxCheck *c, PyArrayObject *a, PyObject *name,
                 const int64_t *table)
{
    PyObject *place = place_text(g, NULL);
    int flags = PyArray_FLAGS(a) ^ c->wanted, axis = -1;

    if (PyArray_NDIM(a) != c->rank)
        return was_is(member_of(name, "ndim"), PyUnicode_FromFormat("%d", c->rank), place,
                      PyUnicode_FromFormat("%d", PyArray_NDIM(a)));
    if (!PyArray_EquivTypes(PyArray_DESCR(a), c->descr))
        return was_is(member_of(name, "dtype"), PyUnicode_FromFormat("%S", c->descr), place,
                      PyUnicode_FromFormat("%S", PyArray_DESCR(a)));
    axis = find_difference(c, PyArray_DIMS(a), c->sizes, table);
    if (axis >= 0)
        return was_is(name ? PyUnicode_FromFormat("%U.shape[%d]", name, axis) : NULL,
                      extent_text(g, &c->sizes[axis]), place,
                      size_found(&c->sizes[axis], PyArray_DIM(a, axis), table));
    if (flags & c->flags & NPY_ARRAY_WRITEABLE)
        return was_is(member_of(name, "flags.writeable"), truth(c->wanted & NPY_ARRAY_WRITEABLE),
                      place, truth(PyArray_ISWRITEABLE(a)));
    if (flags & c->flags & NPY_ARRAY_ALIGNED)
        return was_is(member_of(name, "flags.aligned"), truth(c->wanted & NPY_ARRAY_ALIGNED), place,
                      truth(PyArray_ISALIGNED(a)));
    return was_is(member_of(name, "layout"), layout_text(g, c), place, strides_of(a));
}

/* ---- everything else ---- */

static PyObject *
expectation(const CxGuards *g, const CxCheck *c)
{
    PyObject *other = NULL, *text = NULL;

    switch (c->kind) {
    case CHECK_is:
        return object_text(c->a);
    case CHECK_function:
        return code_text(c->a);
    case CHECK_body:
        return code_text(PyTuple_GET_ITEM(c->a, 0));
    case CHECK_type:
        return type_text((PyTypeObject *)c->a);
    case CHECK_word:
        return PyUnicode_FromString("an int of 64 bits without a sign");
    case CHECK_equals:
        return value_text(c->a);
    case CHECK_differs:
        return PyUnicode_FromFormat("none of %R", c->a);
    case CHECK_array:
        return array_text(g, c);
    case CHECK_size:
        if (c->sizes[0].is_definition)
            return PyUnicode_FromString("an int");
        return extent_text(g, &c->sizes[0]);
    case CHECK_len:
        return PyUnicode_FromFormat("a %s of %lld item%s", ((PyTypeObject *)c->a)->tp_name,
                                    (long long)c->count, c->count == 1 ? "" : "s");
    case CHECK_keys:
        if (PyTuple_Check(c->b) && PyTuple_GET_SIZE(c->b) == 0)
            return PyUnicode_FromFormat("an empty %s", ((PyTypeObject *)c->a)->tp_name);
        return PyUnicode_FromFormat("a %s with keys %R", ((PyTypeObject *)c->a)->tp_name, c->b);
    default:
        other = source_text(g, c->other);
        text = other ? PyUnicode_FromFormat(c->kind == CHECK_other ? "another object than %U"
                                                                   : "the same object as %U",
                                            other)
                     : NULL;
        Py_XDECREF(other);
        return text;
    }
}

static PyObject *
found_text(const CxCheck *c, PyObject *value)
{
    if (c->kind == CHECK_len && (PyObject *)Py_TYPE(value) == c->a)
        return PyUnicode_FromFormat("one of %zd", PyObject_Size(value));
    if (c->kind == CHECK_keys && PyDict_Check(value)) {
        PyObject *keys = PySequence_Tuple(value);
        PyObject *text = keys ? PyUnicode_FromFormat("one with %R", keys) : NULL;
        Py_XDECREF(keys);
        return text;
    }
    if (c->kind == CHECK_function && PyFunction_Check(value)) {
        if (PyFunction_GET_CODE(value) != c->a)
            return code_text(PyFunction_GET_CODE(value));
        return PyUnicode_FromFormat("one with other %s",
                                    PyFunction_GET_GLOBALS(value) != c->b ? "globals" : "defaults");
    }
    if (c->kind == CHECK_body && PyFunction_Check(value)) {
        if (PyFunction_GET_CODE(value) != PyTuple_GET_ITEM(c->a, 0))
            return code_text(PyFunction_GET_CODE(value));
        return PyUnicode_FromString("one with other defaults");
    }
    bool is_number = PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value);
    bool is_alike = c->kind == CHECK_equals && Py_TYPE(value) == Py_TYPE(c->a);
    if (is_alike || value == Py_None || PyUnicode_Check(value) ||
        PyArray_IsScalar(value, Generic) || (is_number && c->kind != CHECK_type))
        return value_text(value);
    if (is_number) {
        PyObject *number = value_text(value), *text = NULL;
        if (number != NULL)
            text = PyUnicode_FromFormat("the %s %U", Py_TYPE(value)->tp_name, number);
        Py_XDECREF(number);
        return text;
    }
    if (c->kind == CHECK_is && (PyObject_HasAttrString(value, "__qualname__") ||
                                PyObject_HasAttrString((PyObject *)Py_TYPE(value), "__members__") ||
                                PyModule_Check(value)))
        return object_text(value);
    if (c->kind == CHECK_other)
        return PyUnicode_FromString("that very object");
    if (c->kind == CHECK_is || c->kind == CHECK_same)
        return PyUnicode_FromFormat("another %s",
                                    PyArray_CheckExact(value) ? "array" : Py_TYPE(value)->tp_name);
    return type_text(Py_TYPE(value));
}

/* Does the check look at several things? */
static bool
has_many(const CxCheck *c)
{
    return c->kind == CHECK_disjoint || c->kind == CHECK_apart || c->kind == CHECK_names;
}

static PyObject *
special_text(const CxGuards *g, const CxCheck *c, bool is_failure)
{
    if (c->kind == CHECK_disjoint)
        return PyUnicode_FromString(is_failure
                                        ? "an array that is written shares memory with another"
                                        : "arrays that are written share no memory with others");
    if (c->kind == CHECK_apart)
        return PyUnicode_FromString(is_failure ? "two objects are one" : "no two objects are one");
    return cx_namespace_text(c->a, c->b, g->state->missing, is_failure);
}

PyObject *
cx_guards_missing(CxGuards *g, int source)
{
    PyObject *name = source_text(g, source);
    PyObject *text = name ? PyUnicode_FromFormat("%U is missing", name) : NULL;
    Py_XDECREF(name);
    return text;
}

PyObject *
cx_guards_failure(CxGuards *g, const CxCheck *c, PyObject **values, const int64_t *table)
{
    PyObject *name = NULL, *value = NULL, *text = NULL, *place = NULL;

    if (has_many(c))
        return special_text(g, c, true);
    value = values[c->source];
    if (value == NULL)
        return cx_guards_missing(g, c->source);
    name = source_text(g, c->source);
    if (name == NULL)
        return NULL;
    if (c->kind == CHECK_array && PyArray_CheckExact(value)) {
        text = array_difference(g, c, (PyArrayObject *)value, name, table);
        Py_DECREF(name);
        return text;
    }
    place = c->kind == CHECK_equals && c->b != NULL ? PyUnicode_FromFormat(" at %S", c->b)
                                                    : place_text(g, NULL);
    return was_is(name, expectation(g, c), place, found_text(c, value));
}

static PyObject *
check_text(const CxGuards *g, const CxCheck *c)
{
    PyObject *name = NULL, *expected = NULL, *text = NULL;

    if (has_many(c))
        return special_text(g, c, false);
    name = source_text(g, c->source);
    expected = name ? expectation(g, c) : NULL;
    if (expected != NULL)
        text = c->kind == CHECK_equals && c->b != NULL
                   ? PyUnicode_FromFormat("%U is %U (%S)", name, expected, c->b)
                   : PyUnicode_FromFormat("%U is %U", name, expected);
    Py_XDECREF(name);
    Py_XDECREF(expected);
    return text;
}

static PyObject *
placed_relation(const CxGuards *g, const CiShapeGuard *guard)
{
    PyObject *text = relation_text(g, guard), *placed = NULL;
    const char *file = guard->loc.file;

    if (text == NULL || file == NULL || *file == '\0')
        return text;
    const char *slash = strrchr(file, '/');
    placed = PyUnicode_FromFormat("%s%U (%s:%d)", guard->is_usual ? "usually " : "", text,
                                  slash ? slash + 1 : file, guard->loc.line);
    Py_DECREF(text);
    return placed;
}

PyObject *
cx_guards_texts(CxGuards *g)
{
    PyObject *list = PyList_New(0);
    for (int k = 0; list != NULL && k < g->nchecks + g->nrelations; k++) {
        PyObject *text = k < g->nchecks ? check_text(g, &g->checks[k])
                                        : placed_relation(g, &g->relations[k - g->nchecks].guard);
        if (text == NULL || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}
