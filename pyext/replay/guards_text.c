/* Guards as rows, which Python writes out in words (diagnosis/guard_texts.py). */
#include "replay/guards_private.h"
#include "replay/namespace.h"

static PyObject *
or_none(PyObject *o)
{
    return o != NULL ? o : Py_None;
}

/* ---- rows ---- */

static PyObject *
source_row(const CxSource *s)
{
    static const char *const WORDS[] = {
#define SOURCE(kind, word, form, cost) [SOURCE_##kind] = word,
#include "replay/guards.def"
    };
    return Py_BuildValue("(siOO)", WORDS[s->kind], s->from, or_none(s->object), or_none(s->key));
}

/* A number, the text of an expression, or None for the value of a symbol. */
static PyObject *
extent_part(const CxGuards *g, const CxExtent *extent)
{
    if (extent->expr == NULL)
        return PyLong_FromLongLong(extent->constant);
    if (extent->is_definition && extent->expr->kind == CI_EXPR_symbol)
        return Py_NewRef(Py_None);
    return cx_guards_expr_text(g, extent->expr);
}

static PyObject *
extent_parts(const CxGuards *g, int rank, const CxExtent *extents)
{
    PyObject *parts = PyTuple_New(rank);

    for (int k = 0; parts != NULL && k < rank; k++)
        cx_put_item(&parts, k, extent_part(g, &extents[k]));
    return parts;
}

static PyObject *
check_row(const CxGuards *g, const CxCheck *c)
{
    static const char *const WORDS[] = {
#define GUARD(kind, read, form, test) [CHECK_##kind] = #kind,
#include "replay/guards.def"
    };
    PyObject *sizes = extent_parts(g, c->rank, c->sizes), *strides = NULL, *row = NULL;

    if (sizes != NULL)
        strides = extent_parts(g, c->kind == CHECK_array ? c->rank : 0, c->strides);
    if (strides != NULL)
        row = Py_BuildValue("(siOOiLOOOOii)", WORDS[c->kind],
                            cx_check_is_relation(c) ? -1 : c->source, or_none(c->a), or_none(c->b), c->other,
                            (long long)c->count, or_none((PyObject *)c->descr), sizes, strides,
                            c->looks_at_strides ? Py_True : Py_False, c->flags, c->wanted);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return row;
}

static PyObject *
rows_of(const CxGuards *g)
{
    PyObject *sources = PyList_New(0), *checks = PyList_New(0), *symbols = cx_guards_symbols(g),
             *relations = cx_guards_relations(g, true), *rows = NULL;

    for (int k = 0; sources != NULL && k < g->nsources; k++)
        cx_add_item(&sources, source_row(&g->sources[k]));
    for (int k = 0; checks != NULL && k < g->nchecks; k++)
        cx_add_item(&checks, check_row(g, &g->checks[k]));
    if (sources != NULL && checks != NULL && symbols != NULL && relations != NULL)
        rows = PyTuple_Pack(6, or_none(g->names), or_none(g->where), sources, symbols, checks, relations);
    Py_XDECREF(sources);
    Py_XDECREF(checks);
    Py_XDECREF(symbols);
    Py_XDECREF(relations);
    return rows;
}

/* ---- failures ---- */

static PyObject *
where_row(int where)
{
    static const char *const WORDS[] = {
        [AGREES] = "",         [OTHER_VALUE] = "value",       [OTHER_CLASS] = "class",
        [OTHER_RANK] = "rank", [OTHER_DTYPE] = "dtype",       [OTHER_WRITABLE] = "writeable",
        [OTHER_LAYOUT] = "layout", [OTHER_ALIGNED] = "aligned", [OTHER_LENGTH] = "length",
        [OTHER_CODE] = "code", [OTHER_GLOBALS] = "globals",   [OTHER_DEFAULTS] = "defaults",
    };
    return where >= OTHER_SIZE    ? Py_BuildValue("si", "size", where - OTHER_SIZE)
           : where >= ONE_ELEMENT ? Py_BuildValue("si", "one", where - ONE_ELEMENT)
                                  : Py_BuildValue("si", WORDS[where], 0);
}

/* The pair of names that has changed, or -1. */
static Py_ssize_t
pair_changed(const CxGuards *g, const CxCheck *c)
{
    Py_ssize_t which = -1;
    bool has = cx_namespace_has(c->a, c->b, g->state->missing, &which);

    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) /* not KeyboardInterrupt */
        PyErr_Clear();
    return has ? -1 : which;
}

/* (what, number, where, axis, value, two numbers): those of a relation, or the wanted size, or the changed pair. */
static PyObject *
failure_row(const CxGuards *g, const CxFailure *f, PyObject **values, const int64_t *table)
{
    const CxCheck *c = f->what == CX_FAILS_check ? &g->checks[f->number] : NULL;
    bool has_source = c != NULL && !cx_check_is_relation(c);
    PyObject *value = has_source ? values[c->source] : NULL;
    long long first = 0, second = -1;

    if (f->what == CX_FAILS_source || (has_source && value == NULL))
        return Py_BuildValue("si", "source", c != NULL ? c->source : f->number);
    if (f->what == CX_FAILS_relation) {
        first = table[g->relations[f->number].left];
        second = table[g->relations[f->number].right];
    } else if (c->kind == CHECK_names)
        first = pair_changed(g, c);
    else if (f->where >= OTHER_SIZE && c->sizes[f->where - OTHER_SIZE].expr != NULL)
        second = table[c->sizes[f->where - OTHER_SIZE].number];
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("siNOLL", c != NULL ? "check" : "relation", f->number, where_row(f->where),
                         or_none(value), first, second);
}

static PyObject *
in_words(const CxGuards *g, const char *function, PyObject *failure)
{
    PyObject *module = PyImport_ImportModule("cinductor.diagnosis.guard_texts"), *text = NULL,
             *rows = module ? rows_of(g) : NULL;

    if (rows != NULL)
        text = PyObject_CallMethod(module, function, failure ? "OO" : "(O)", rows, failure);
    Py_XDECREF(module);
    Py_XDECREF(rows);
    return text;
}

PyObject *
cx_guards_texts(const CxGuards *g)
{
    return in_words(g, "guards", NULL);
}

PyObject *
cx_guards_why_not(const CxGuards *g, const CxFailure *f, PyObject **values, const int64_t *table)
{
    PyObject *row = failure_row(g, f, values, table), *text = row ? in_words(g, "why_not", row) : NULL;
    Py_XDECREF(row);
    return text;
}
