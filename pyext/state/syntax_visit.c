/* The base of visitors of syntax trees (capture/syntax/names.py): calls the visitor's method for the class of a node. */
#include "state/docs.h"
#include "state/syntax.h"

typedef struct Visitor {
    PyObject_HEAD
} Visitor;

/* The module's state, by the base of the visitor's class. */
static CxState *
state_of(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    while (type->tp_base != &PyBaseObject_Type)
        type = type->tp_base;
    return PyType_GetModuleState(type);
}

/* The method of a visitor's class for a class of nodes, None if it has none; borrowed. Found ones are kept in `_methods`. */
static PyObject *
method_for(CxState *state, PyObject *visitor, PyObject *node)
{
    PyObject *cls = (PyObject *)Py_TYPE(visitor), *kind = (PyObject *)Py_TYPE(node);
    PyObject *methods = PyObject_GetAttr(cls, state->str__methods), *found = NULL;
    if (methods == NULL || !PyDict_Check(methods) || (found = PyDict_GetItemWithError(methods, kind)) != NULL || PyErr_Occurred()) {
        Py_XDECREF(methods); /* the class has a reference */
        return found;
    }
    PyObject *word = PyObject_GetAttr(kind, state->str___name__), *name = word ? PyUnicode_FromFormat("visit_%U", word) : NULL;
    found = name != NULL ? PyObject_GetAttr(cls, name) : NULL;
    if (found == NULL && name != NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = Py_NewRef(Py_None);
    }
    if (found != NULL && PyDict_SetItem(methods, kind, found) < 0)
        Py_CLEAR(found);
    Py_XDECREF(found); /* the dict has a reference */
    Py_XDECREF(name);
    Py_XDECREF(word);
    Py_DECREF(methods);
    return found;
}

/* visit(node): the result of the method for the node's class, or of generic_visit. */
static PyObject *
visit(PyObject *self, PyObject *node)
{
    CxState *state = state_of(self);
    PyObject *method = method_for(state, self, node), *both[] = {self, node};
    if (method == NULL || Py_EnterRecursiveCall(" while a syntax tree is visited"))
        return NULL;
    PyObject *result = method != Py_None ? PyObject_Vectorcall(method, both, 2, NULL)
                                         : PyObject_VectorcallMethod(state->str_generic_visit, both, 2, NULL);
    Py_LeaveRecursiveCall();
    return result;
}

/* visit_parts(node): visits the nodes in its fields; None. */
static PyObject *
visit_parts(PyObject *self, PyObject *node)
{
    CxState *state = state_of(self);
    PyObject *parts = PyList_New(0);
    int status = parts == NULL || cx_find_syntax(state) < 0 ? -1 : cx_append_parts(state, parts, node);
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(parts); k++) {
        PyObject *result = visit(self, PyList_GET_ITEM(parts, k));
        status = result == NULL ? -1 : 0;
        Py_XDECREF(result);
    }
    Py_XDECREF(parts);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

/* Adds the replacement of an item: a node, several, or none. */
static int
add_replacement(PyObject *self, const CxState *state, PyObject *item, PyObject *found)
{
    bool is_node = PyObject_TypeCheck(item, (PyTypeObject *)state->syntax_type);
    PyObject *made = is_node ? visit(self, item) : Py_NewRef(item);
    int status = made == NULL ? -1 : 0;
    if (status == 0 && PyList_Check(made))
        status = PyList_SetSlice(found, PyList_GET_SIZE(found), PyList_GET_SIZE(found), made);
    else if (status == 0 && (made != Py_None || item == Py_None))
        status = PyList_Append(found, made);
    Py_XDECREF(made);
    return status;
}

/* The replacement of the value of a field. */
static PyObject *
replacement_of(PyObject *self, const CxState *state, PyObject *value)
{
    if (PyObject_TypeCheck(value, (PyTypeObject *)state->syntax_type))
        return visit(self, value);
    if (!PyList_CheckExact(value))
        return Py_NewRef(value);
    PyObject *found = PyList_New(0);
    for (Py_ssize_t k = 0; found != NULL && k < PyList_GET_SIZE(value); k++)
        if (add_replacement(self, state, PyList_GET_ITEM(value, k), found) < 0)
            Py_CLEAR(found);
    return found;
}

/* replace_parts(node): replaces the nodes in its fields by what visiting them returns; the node. */
static PyObject *
replace_parts(PyObject *self, PyObject *node)
{
    CxState *state = state_of(self);
    PyObject *fields = cx_find_syntax(state) == 0 ? PyObject_GetAttr((PyObject *)Py_TYPE(node), state->str__fields) : NULL;
    PyObject *own = fields != NULL ? cx_attributes_of(node) : NULL;
    int status = own == NULL ? -1 : 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyTuple_GET_SIZE(fields); k++) {
        PyObject *value = Py_XNewRef(PyDict_GetItemWithError(own, PyTuple_GET_ITEM(fields, k)));
        PyObject *made = value != NULL ? replacement_of(self, state, value) : NULL;
        if (made != NULL ? made != value && PyDict_SetItem(own, PyTuple_GET_ITEM(fields, k), made) < 0 : PyErr_Occurred() != NULL)
            status = -1;
        Py_XDECREF(made);
        Py_XDECREF(value);
    }
    Py_XDECREF(fields);
    return status == 0 ? Py_NewRef(node) : NULL;
}

static PyMethodDef visitor_methods[] = {
    CX_METHOD(SyntaxVisitor, visit, visit, METH_O),
    CX_METHOD(SyntaxVisitor, visit_parts, visit_parts, METH_O),
    CX_METHOD(SyntaxVisitor, replace_parts, replace_parts, METH_O),
    {NULL, NULL, 0, NULL},
};

CX_TYPE(cx_syntax_visitor_spec, SyntaxVisitor, Visitor, Py_TPFLAGS_BASETYPE, CX_SLOT(Py_tp_methods, visitor_methods));
