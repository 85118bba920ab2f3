/* Sources: finds the values of a call that guards need, and prints a source as the user would
 * write it. */
#include "replay/guards_private.h"

/* True if the lookup must hold a reference. Arguments are held by the caller, constants by the
 * guards. Other values may be rebound by another thread while a program runs without the GIL. */
static bool
is_owned(const CxSource *s)
{
    return s->kind != SOURCE_arg && s->kind != SOURCE_const;
}

PyObject *
cx_lookup_find(CxLookup *l, int number)
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
        from = cx_lookup_find(l, s->from);
        value = from ? PyObject_GetAttr(from, s->key) : NULL;
        break;
    case SOURCE_item:
        from = cx_lookup_find(l, s->from);
        value = from ? PyObject_GetItem(from, s->key) : NULL;
        break;
    case SOURCE_made:
        from = s->from < 0 ? NULL : cx_lookup_find(l, s->from);
        if (from != NULL || s->from < 0)
            value = PyObject_CallFunctionObjArgs(s->object, from, NULL);
        break;
    case SOURCE_closure: /* a check has verified that the function has this code */
        from = cx_lookup_find(l, s->from);
        if (from != NULL)
            value =
                Py_XNewRef(PyCell_GET(PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(from), s->number)));
        break;
    case SOURCE_address:
        from = cx_lookup_find(l, s->from);
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

/* The text of a constant object: a function by its name, otherwise the compiled callable, whose
 * attributes the user knows as self's. */
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
PyObject *
cx_text_source(const CxGuards *g, int number)
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
        from = cx_text_source(g, s->from);
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

PyObject *
cx_text_missing(const CxGuards *g, int source)
{
    PyObject *name = cx_text_source(g, source);
    PyObject *text = name ? PyUnicode_FromFormat("%U is missing", name) : NULL;
    Py_XDECREF(name);
    return text;
}
