/* Binds arguments to the parameters of a function. */
#include "replay/signature.h"

enum { POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, VAR_POSITIONAL, KEYWORD_ONLY, VAR_KEYWORD };

/* kinds: inspect's, per parameter. */
static int
read_kinds(CxSignature *s, PyObject *kinds)
{
    for (int k = 0; k < s->count; k++) {
        long kind = PyLong_AsLong(PyTuple_GET_ITEM(kinds, k));
        if (kind < POSITIONAL_ONLY || kind > VAR_KEYWORD ||
            !PyUnicode_Check(PyTuple_GET_ITEM(s->names, k))) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "not a parameter");
            return -1;
        }
        s->kind[k] = (uint8_t)kind;
        if (kind <= POSITIONAL_OR_KEYWORD)
            s->npositional = k + 1;
        if (kind == VAR_POSITIONAL)
            s->var_args = k;
        if (kind == VAR_KEYWORD)
            s->var_keywords = k;
    }
    return 0;
}

int
cx_signature_open(CxSignature *s, PyObject *names, PyObject *kinds, PyObject *defaults,
                  PyObject *missing)
{
    Py_ssize_t count = PyTuple_GET_SIZE(names);

    if (PyTuple_GET_SIZE(kinds) != count || PyTuple_GET_SIZE(defaults) != count) {
        PyErr_SetString(PyExc_ValueError, "parameters, kinds and defaults differ in length");
        return -1;
    }
    s->names = Py_NewRef(names);
    s->defaults = Py_NewRef(defaults);
    s->missing = missing;
    s->count = (int)count;
    s->var_args = s->var_keywords = -1;
    s->kind = PyMem_Calloc((size_t)count + 1, 1);
    if (s->kind == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    return read_kinds(s, kinds);
}

bool
cx_signature_is_named(const CxSignature *s, int number)
{
    return s->kind[number] == KEYWORD_ONLY;
}

void
cx_signature_clear(CxSignature *s)
{
    s->count = s->npositional = 0;
    s->var_args = s->var_keywords = -1;
    Py_CLEAR(s->defaults);
}

void
cx_signature_close(CxSignature *s)
{
    Py_CLEAR(s->names);
    Py_CLEAR(s->defaults);
    PyMem_Free(s->kind);
    s->kind = NULL;
}

static int
find_parameter(const CxSignature *s, PyObject *name)
{
    for (int pass = 0; pass < 2; pass++) /* names are interned: identity first */
        for (int k = 0; k < s->count; k++) {
            PyObject *own = PyTuple_GET_ITEM(s->names, k);
            bool is_name = s->kind[k] == POSITIONAL_OR_KEYWORD || s->kind[k] == KEYWORD_ONLY;
            if (is_name && (own == name || (pass == 1 && PyUnicode_Compare(own, name) == 0)))
                return k;
        }
    return -1;
}

int
cx_signature_bind(const CxSignature *s, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                  PyObject **bound)
{
    Py_ssize_t positional = nargs < s->npositional ? nargs : s->npositional;
    Py_ssize_t nnames = names ? PyTuple_GET_SIZE(names) : 0;

    for (Py_ssize_t k = 0; k < positional; k++)
        bound[k] = Py_NewRef(args[k]);
    if (nargs > positional && s->var_args < 0)
        return 0;
    if (s->var_args >= 0) {
        PyObject *rest = PyTuple_New(nargs - positional);
        if (rest == NULL)
            return -1;
        for (Py_ssize_t k = positional; k < nargs; k++)
            PyTuple_SET_ITEM(rest, k - positional, Py_NewRef(args[k]));
        bound[s->var_args] = rest;
    }
    if (s->var_keywords >= 0 && (bound[s->var_keywords] = PyDict_New()) == NULL)
        return -1;
    for (Py_ssize_t k = 0; k < nnames; k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k), *value = args[nargs + k];
        int at = find_parameter(s, name);
        if (at >= 0 && bound[at] != NULL)
            return 0;
        if (at >= 0)
            bound[at] = Py_NewRef(value);
        else if (s->var_keywords < 0)
            return 0;
        else if (PyDict_SetItem(bound[s->var_keywords], name, value) < 0)
            return -1;
    }
    for (int k = 0; k < s->count; k++)
        if (bound[k] == NULL) {
            PyObject *value = PyTuple_GET_ITEM(s->defaults, k);
            if (value == s->missing)
                return 0;
            bound[k] = Py_NewRef(value);
        }
    return 1;
}
