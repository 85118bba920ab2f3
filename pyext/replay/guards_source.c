/* Sources: finds the values of a call that guards need. */
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
