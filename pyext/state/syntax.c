/* Fast helpers for capture: traverses Python syntax trees and copies source positions
 * (capture/syntax/names.py), and tests the class of an object. */
#include "state/array.h"
#include "state/docs.h"

/* ---- syntax ---- */

/* The __dict__ of a node; borrowed from it. */
static PyObject *
attributes_of(PyObject *node)
{
    PyObject *own = PyObject_GenericGetDict(node, NULL);
    Py_XDECREF(own); /* the node holds a reference */
    return own;
}

static int
copy_place(const CxState *state, PyObject *to, PyObject *from)
{
    PyObject *const names[] = {state->str_lineno, state->str_col_offset, state->str_end_lineno,
                               state->str_end_col_offset};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        PyObject *value = PyDict_GetItemWithError(from, names[k]);
        if (value != NULL ? PyDict_SetItem(to, names[k], value) < 0 : PyErr_Occurred() != NULL)
            return -1;
    }
    return 0;
}

/* place_of(node): its position, as keyword arguments for a new node. */
static PyObject *
place_of(PyObject *module, PyObject *node)
{
    PyObject *own = attributes_of(node), *place = own ? PyDict_New() : NULL;
    if (place != NULL && copy_place(PyModule_GetState(module), place, own) < 0)
        Py_CLEAR(place);
    return place;
}

/* placed(new, old): gives the new node the position of the old one, and returns it. */
static PyObject *
placed(PyObject *module, PyObject *args)
{
    PyObject *node = NULL, *old = NULL;
    if (!PyArg_UnpackTuple(args, "placed", 2, 2, &node, &old))
        return NULL;
    PyObject *to = attributes_of(node), *from = to ? attributes_of(old) : NULL;
    bool failed = from == NULL || copy_place(PyModule_GetState(module), to, from) < 0;
    return failed ? NULL : Py_NewRef(node);
}

/* The names of a node's fields, a new reference; NULL with an exception. */
static PyObject *
fields_of(const CxState *state, PyObject *node)
{
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(node), state->str__fields);
    if (fields != NULL && !PyTuple_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "a node of syntax is expected");
        Py_CLEAR(fields);
    }
    return fields;
}

/* Appends one child. Operators and contexts have no fields and are left out. */
static int
append_part(const CxState *state, PyObject *found, PyObject *value)
{
    PyObject *inner = fields_of(state, value);
    int status = inner == NULL ? -1 : 0;
    if (status == 0 && PyTuple_GET_SIZE(inner) != 0)
        status = PyList_Append(found, value);
    Py_XDECREF(inner);
    return status;
}

static int
append_parts(const CxState *state, PyObject *found, PyObject *node)
{
    PyTypeObject *syntax = (PyTypeObject *)state->syntax_type;
    PyObject *fields = fields_of(state, node), *own = fields ? attributes_of(node) : NULL;
    int status = own == NULL ? -1 : 0;

    for (Py_ssize_t k = 0; status == 0 && k < PyTuple_GET_SIZE(fields); k++) {
        PyObject *value = PyDict_GetItemWithError(own, PyTuple_GET_ITEM(fields, k));
        if (value != NULL && PyList_CheckExact(value)) {
            for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(value); i++)
                if (PyObject_TypeCheck(PyList_GET_ITEM(value, i), syntax))
                    status = PyList_Append(found, PyList_GET_ITEM(value, i));
        } else if (value != NULL && PyObject_TypeCheck(value, syntax)) {
            status = append_part(state, found, value);
        }
    }
    Py_XDECREF(fields);
    return status;
}

static int
find_syntax(CxState *state)
{
    if (state->syntax_type != NULL)
        return 0;
    PyObject *module = PyImport_ImportModule("_ast");
    state->syntax_type = module ? PyObject_GetAttrString(module, "AST") : NULL;
    Py_XDECREF(module);
    return state->syntax_type == NULL ? -1 : 0;
}

/* walk(node): the node and all nodes below it, in breadth-first order. */
static PyObject *
walk(PyObject *module, PyObject *node)
{
    CxState *state = PyModule_GetState(module);
    PyObject *found = PyList_New(0);
    int status = found == NULL || find_syntax(state) < 0 ? -1 : PyList_Append(found, node);

    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(found); k++)
        status = append_parts(state, found, PyList_GET_ITEM(found, k));
    if (status < 0)
        Py_CLEAR(found);
    return found;
}

/* children(node): the nodes in its fields, in order. */
static PyObject *
children(PyObject *module, PyObject *node)
{
    CxState *state = PyModule_GetState(module);
    PyObject *found = PyList_New(0);

    if (found == NULL || find_syntax(state) < 0 || append_parts(state, found, node) < 0)
        Py_CLEAR(found);
    return found;
}

/* ---- classes ---- */

/* is_a(value, classes): isinstance by the object's own class. Its `__class__`, which may be code
 * of the user's, is not read. A traced value has the class of the value that it stands for. */
static PyObject *
is_a(PyObject *module, PyObject *args)
{
    const CxState *state = PyModule_GetState(module);
    PyObject *value = NULL, *classes = NULL;

    if (!PyArg_UnpackTuple(args, "is_a", 2, 2, &value, &classes))
        return NULL;
    bool is_traced = Py_IS_TYPE(value, (PyTypeObject *)state->traced_type);
    int answer = is_traced ? PyObject_IsInstance(value, classes)
                           : PyObject_IsSubclass((PyObject *)Py_TYPE(value), classes);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

/* Adds the class of an item that follows one of class *latest. */
static int
add_class(PyObject *classes, PyObject *item, PyTypeObject **latest)
{
    if (Py_TYPE(item) == *latest)
        return 0;
    *latest = Py_TYPE(item);
    return PySet_Add(classes, (PyObject *)*latest);
}

/* classes_of(values): the classes of the keys of a dict, or of the items of another iterable. It is asked for each key that a
 * capture stores, so that items of one class must cost next to nothing. */
static PyObject *
classes_of(PyObject *module, PyObject *values)
{
    PyObject *classes = PySet_New(NULL), *key = NULL, *items = NULL;
    PyTypeObject *latest = NULL;
    Py_ssize_t at = 0;
    int status = classes == NULL ? -1 : 0;

    (void)module;
    if (PyDict_Check(values)) {
        while (status == 0 && PyDict_Next(values, &at, &key, NULL))
            status = add_class(classes, key, &latest);
    } else if (status == 0) {
        items = PySequence_Fast(values, "classes_of() takes an iterable");
        status = items == NULL ? -1 : 0;
        for (; status == 0 && at < PySequence_Fast_GET_SIZE(items); at++)
            status = add_class(classes, PySequence_Fast_GET_ITEM(items, at), &latest);
    }
    Py_XDECREF(items);
    if (status < 0)
        Py_CLEAR(classes);
    return classes;
}

PyMethodDef cx_syntax_methods[] = {
    CX_FUNCTION(walk, walk, METH_O),
    CX_FUNCTION(children, children, METH_O),
    CX_FUNCTION(place_of, place_of, METH_O),
    CX_FUNCTION(placed, placed, METH_VARARGS),
    CX_FUNCTION(is_a, is_a, METH_VARARGS),
    CX_FUNCTION(classes_of, classes_of, METH_O),
    {NULL, NULL, 0, NULL},
};
