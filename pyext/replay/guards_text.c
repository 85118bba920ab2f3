/* Prints guards for messages: sources, values, sizes and relations in the user's notation. */
#include "replay/guards_private.h"

PyObject *
cx_text_type(PyTypeObject *type)
{
    const char *name = type == &PyArray_Type ? "array" : type->tp_name;
    return PyUnicode_FromFormat(strchr("aeiouAEIOU", *name) ? "an %s" : "a %s", name);
}

/* A value as the user would write it, shortened; its class if it cannot be written. */
PyObject *
cx_text_value(PyObject *value)
{
    enum { LONGEST = 60, FIRST = 40, LAST = 15 };
    PyObject *text = PyObject_Repr(value);

    if (text == NULL) {
        PyErr_Clear();
        return cx_text_type(Py_TYPE(value));
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

/* The name of an object, as in the user's code. */
PyObject *
cx_text_object(PyObject *o)
{
    bool is_module = PyModule_Check(o);
    if (PyObject_HasAttrString((PyObject *)Py_TYPE(o), "__members__")) /* an enum */
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

/* A function by its name and the position of its code. */
PyObject *
cx_text_code(PyObject *code)
{
    PyObject *name = PyObject_GetAttrString(code, "co_name"), *text = NULL,
             *place = name ? cx_place_text(code) : NULL;

    if (place != NULL)
        text = PyUnicode_FromFormat("the function %S of %U", name, place);
    Py_XDECREF(name);
    Py_XDECREF(place);
    return text;
}

/* ---- expressions of sizes ---- */

/* x.shape[0], x.padding[0] (layout.c), or the name of an int. */
static PyObject *
symbol_text(const CxGuards *g, const CiExpr *symbol)
{
    const CxKnown *known = NULL;
    for (int k = 0; k < g->nknown; k++)
        if (g->known[k].symbol == symbol)
            known = &g->known[k];
    if (known == NULL || known->source < 0 || known->source >= g->nsources)
        return PyUnicode_FromString(symbol->name);
    PyObject *name = cx_text_source(g, known->source);
    bool is_padding = known->axis <= CX_PADDING_AXIS;
    if (name != NULL && (known->axis >= 0 || is_padding))
        Py_SETREF(name, PyUnicode_FromFormat(is_padding ? "%U.padding[%d]" : "%U.shape[%d]", name,
                                             is_padding ? CX_PADDING_AXIS - known->axis : known->axis));
    return name;
}

typedef struct Printing {
    const CiExpr *e;
    PyObject *words; /* a tuple parallel to e->symbols */
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

PyObject *
cx_text_expr(const CxGuards *g, const CiExpr *e)
{
    Printing p = {.e = e, .words = PyTuple_New(e->nsymbols)};
    CiContext *ctx = NULL;
    PyObject *text = NULL;

    for (int k = 0; p.words != NULL && k < e->nsymbols; k++) {
        PyObject *word = symbol_text(g, e->symbols[k]);
        if (word == NULL || PyUnicode_AsUTF8(word) == NULL) { /* the string stores the UTF-8 form */
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

/* " at model.py:12": the line that made the guard, if known, else that of the function. */
PyObject *
cx_text_place(const CxGuards *g, const CiLoc *loc)
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
PyObject *
cx_text_was_is(PyObject *what, PyObject *before, PyObject *place, PyObject *now)
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

PyObject *
cx_text_relation(const CxGuards *g, const CiShapeGuard *guard)
{
    PyObject *left = cx_text_expr(g, guard->left), *right = cx_text_expr(g, guard->right),
             *text = NULL;
    if (left != NULL && right != NULL)
        text = PyUnicode_FromFormat("%U %s %U", left, sign_of(guard->relation), right);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return text;
}

PyObject *
cx_text_relation_failure(const CxGuards *g, const CxRelation *r, const int64_t *table)
{
    const CiShapeGuard *guard = &r->guard;
    PyObject *text = NULL, *what = NULL, *place = NULL, *other = NULL;
    int64_t constant = 0;

    if (guard->relation == CI_REL_eq && ci_expr_is_const(guard->right, &constant))
        return cx_text_was_is(
            cx_text_expr(g, guard->left), PyUnicode_FromFormat("%lld", (long long)constant),
            cx_text_place(g, &guard->loc), PyUnicode_FromFormat("%lld", (long long)table[r->left]));
    what = cx_text_relation(g, guard);
    place = cx_text_place(g, &guard->loc);
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
