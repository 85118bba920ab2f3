/* Builds nodes of syntax at the position of another one: capture/syntax/stage_calls.py. */
#include "state/docs.h"
#include "state/syntax.h"

/* A new node of a class at the position of another one. The fields follow as pairs of a name and a value, up to NULL. The node takes the
 * references to the values, also if it fails; a value of NULL is a failure. */
static PyObject *
new_node(CxState *state, int kind, PyObject *at, ...)
{
    PyTypeObject *type = cx_find_syntax(state) == 0 ? (PyTypeObject *)state->syntax[kind] : NULL;
    PyObject *none = type != NULL ? PyTuple_New(0) : NULL, *made = none != NULL ? type->tp_new(type, none, NULL) : NULL;
    PyObject *own = made != NULL ? cx_attributes_of(made) : NULL, *from = own != NULL ? cx_attributes_of(at) : NULL;
    bool failed = from == NULL || cx_copy_location(state, own, from) < 0;
    va_list fields;

    va_start(fields, at);
    for (PyObject *name; (name = va_arg(fields, PyObject *)) != NULL;) {
        PyObject *value = va_arg(fields, PyObject *);
        failed = failed || value == NULL || PyDict_SetItem(own, name, value) < 0;
        Py_XDECREF(value);
    }
    va_end(fields);
    Py_XDECREF(none);
    if (failed)
        Py_CLEAR(made);
    return made;
}

static PyObject *
new_name(CxState *state, PyObject *at, PyObject *id, PyObject *context)
{
    return new_node(state, CX_SYNTAX_Name, at, state->str_id, Py_NewRef(id), state->str_ctx, Py_NewRef(context), NULL);
}

static PyObject *
new_attribute(CxState *state, PyObject *at, PyObject *owner, PyObject *name)
{
    PyObject *value = cx_find_syntax(state) == 0 ? new_name(state, at, owner, state->syntax_load) : NULL;
    return value == NULL ? NULL
                         : new_node(state, CX_SYNTAX_Attribute, at, state->str_value, value, state->str_attr, Py_NewRef(name), state->str_ctx,
                                    Py_NewRef(state->syntax_load), NULL);
}

PyObject *
cx_new_constant(CxState *state, PyObject *at, PyObject *value)
{
    return new_node(state, CX_SYNTAX_Constant, at, state->str_value, Py_NewRef(value), NULL);
}

/* `__ci__.method(args)`; takes the references to the lists of arguments and keywords. */
PyObject *
cx_new_call(CxState *state, PyObject *at, PyObject *method, PyObject *args, PyObject *keywords)
{
    PyObject *func = new_attribute(state, at, state->str___ci__, method);
    return new_node(state, CX_SYNTAX_Call, at, state->str_func, func, state->str_args, args, state->str_keywords, keywords, NULL);
}

/* stage_call(node, method, *args, keywords): `__ci__.method(args)` at the position of the node. */
static PyObject *
stage_call(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t nnamed = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    if (n < 2 || nnamed > 1 || (nnamed == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "keywords") != 0)) {
        PyErr_SetString(PyExc_TypeError, "stage_call() takes a node, a method, arguments and keywords");
        return NULL;
    }
    PyObject *given = PyList_New(n - 2), *keywords = nnamed == 0 ? PyList_New(0) : Py_NewRef(args[n]);
    for (Py_ssize_t k = 2; given != NULL && k < n; k++)
        PyList_SET_ITEM(given, k - 2, Py_NewRef(args[k]));
    return cx_new_call(PyModule_GetState(module), args[0], args[1], given, keywords);
}

/* attribute_at(node, owner, name): `owner.name` at the position of the node. */
static PyObject *
attribute_at(PyObject *module, PyObject *args)
{
    PyObject *at = NULL, *owner = NULL, *name = NULL;
    if (!PyArg_UnpackTuple(args, "attribute_at", 3, 3, &at, &owner, &name))
        return NULL;
    return new_attribute(PyModule_GetState(module), at, owner, name);
}

/* constant_at(node, value) */
static PyObject *
constant_at(PyObject *module, PyObject *args)
{
    PyObject *at = NULL, *value = NULL;
    if (!PyArg_UnpackTuple(args, "constant_at", 2, 2, &at, &value))
        return NULL;
    return cx_new_constant(PyModule_GetState(module), at, value);
}

/* name_at(node, name): a load of the name. */
static PyObject *
name_at(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *at = NULL, *name = NULL;
    if (!PyArg_UnpackTuple(args, "name_at", 2, 2, &at, &name) || cx_find_syntax(state) < 0)
        return NULL;
    return new_name(state, at, name, state->syntax_load);
}

/* store_at(node, name, value): `name = value`. */
static PyObject *
store_at(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *at = NULL, *name = NULL, *value = NULL;
    if (!PyArg_UnpackTuple(args, "store_at", 3, 3, &at, &name, &value) || cx_find_syntax(state) < 0)
        return NULL;
    PyObject *targets = PyList_New(1), *target = targets != NULL ? new_name(state, at, name, state->syntax_store) : NULL;
    if (target == NULL)
        Py_CLEAR(targets);
    else
        PyList_SET_ITEM(targets, 0, target);
    return new_node(state, CX_SYNTAX_Assign, at, state->str_targets, targets, state->str_value, Py_NewRef(value), NULL);
}

PyMethodDef cx_node_methods[] = {
    CX_FUNCTION(stage_call, CX_KEYWORDS(stage_call), METH_FASTCALL | METH_KEYWORDS),
    CX_FUNCTION(attribute_at, attribute_at, METH_VARARGS),
    CX_FUNCTION(constant_at, constant_at, METH_VARARGS),
    CX_FUNCTION(name_at, name_at, METH_VARARGS),
    CX_FUNCTION(store_at, store_at, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
