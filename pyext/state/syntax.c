/* Walking and placing Python's syntax (capture/syntax/nodes.py), and of which class an object is: what
 * a capture asks of every node and of every value. */
#include "state/array.h"

/* ---- syntax ---- */

static const char *const places[] = {"lineno", "col_offset", "end_lineno", "end_col_offset"};

/* The attributes of a node; borrowed from it. */
static PyObject *
attributes_of(PyObject *node)
{
    PyObject *own = PyObject_GenericGetDict(node, NULL);
    Py_XDECREF(own); /* the node has it */
    return own;
}

static int
copy_place(PyObject *to, PyObject *from)
{
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        PyObject *value = PyDict_GetItemString(from, places[k]);
        if (value != NULL && PyDict_SetItemString(to, places[k], value) < 0)
            return -1;
    }
    return 0;
}

/* place_of(node): where it stands, as keywords for what makes another there. */
static PyObject *
place_of(PyObject *module, PyObject *node)
{
    PyObject *own = attributes_of(node), *place = own ? PyDict_New() : NULL;
    (void)module;
    if (place != NULL && copy_place(place, own) < 0)
        Py_CLEAR(place);
    return place;
}

/* placed(new, old): the new node, at the old one's place. */
static PyObject *
placed(PyObject *module, PyObject *args)
{
    PyObject *node = NULL, *old = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:placed", &node, &old))
        return NULL;
    PyObject *to = attributes_of(node), *from = to ? attributes_of(old) : NULL;
    return from == NULL || copy_place(to, from) < 0 ? NULL : Py_NewRef(node);
}

/* Appends the nodes in a node's fields; operators and contexts have no fields, and are left out. */
static int
append_parts(PyObject *found, PyObject *node, PyTypeObject *syntax)
{
    PyObject *fields = PyObject_GetAttrString((PyObject *)Py_TYPE(node), "_fields");
    PyObject *own = fields ? attributes_of(node) : NULL;
    int status = own != NULL && PyTuple_Check(fields) ? 0 : -1;

    for (Py_ssize_t k = 0; status == 0 && k < PyTuple_GET_SIZE(fields); k++) {
        PyObject *value = PyDict_GetItemWithError(own, PyTuple_GET_ITEM(fields, k));
        bool is_list = value != NULL && PyList_CheckExact(value);
        for (Py_ssize_t i = 0; is_list && status == 0 && i < PyList_GET_SIZE(value); i++)
            if (PyObject_TypeCheck(PyList_GET_ITEM(value, i), syntax))
                status = PyList_Append(found, PyList_GET_ITEM(value, i));
        if (value == NULL || is_list || !PyObject_TypeCheck(value, syntax))
            continue;
        PyObject *inner = PyObject_GetAttrString((PyObject *)Py_TYPE(value), "_fields");
        if (inner == NULL || (PyTuple_Check(inner) && PyTuple_GET_SIZE(inner) != 0))
            status = inner == NULL ? -1 : PyList_Append(found, value);
        Py_XDECREF(inner);
    }
    Py_XDECREF(fields);
    return status;
}

static PyObject *
walked(PyObject *root, bool is_deep)
{
    PyObject *module = PyImport_ImportModule("_ast"), *found = PyList_New(0);
    PyObject *syntax = module ? PyObject_GetAttrString(module, "AST") : NULL;
    int status = syntax != NULL && found != NULL ? 0 : -1;

    if (status == 0 && is_deep)
        status = PyList_Append(found, root);
    if (status == 0 && !is_deep)
        status = append_parts(found, root, (PyTypeObject *)syntax);
    for (Py_ssize_t k = 0; is_deep && status == 0 && k < PyList_GET_SIZE(found); k++)
        status = append_parts(found, PyList_GET_ITEM(found, k), (PyTypeObject *)syntax);
    if (status < 0)
        Py_CLEAR(found);
    Py_XDECREF(module);
    Py_XDECREF(syntax);
    return found;
}

/* walk(node): it and all nodes below it, those nearer to it first. */
static PyObject *
walk(PyObject *module, PyObject *node)
{
    (void)module;
    return walked(node, true);
}

/* children(node): the nodes in its fields, in order. */
static PyObject *
children(PyObject *module, PyObject *node)
{
    (void)module;
    return walked(node, false);
}

/* ---- classes ---- */

/* is_a(value, classes): isinstance by the object's own class: its `__class__`, which may be code of the
 * user's, is not asked for; a traced value has that of what it stands for. */
static PyObject *
is_a(PyObject *module, PyObject *args)
{
    const CxState *state = PyModule_GetState(module);
    PyObject *value = NULL, *classes = NULL;

    if (!PyArg_ParseTuple(args, "OO:is_a", &value, &classes))
        return NULL;
    bool is_traced = Py_IS_TYPE(value, (PyTypeObject *)state->traced_type);
    int answer = is_traced ? PyObject_IsInstance(value, classes)
                           : PyObject_IsSubclass((PyObject *)Py_TYPE(value), classes);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

PyMethodDef cx_syntax_methods[] = {
    {"walk", walk, METH_O, NULL},
    {"children", children, METH_O, NULL},
    {"place_of", place_of, METH_O, NULL},
    {"placed", placed, METH_VARARGS, NULL},
    {"is_a", is_a, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
