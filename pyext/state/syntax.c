/* Fast helpers for capture: traverses and copies Python syntax trees and source positions
 * (capture/syntax/names.py), and tests the class of an object. It also empties the
 * objects of a capture that is over, and writes values as lines (calls/saved_text.py). */
#include "state/docs.h"
#include "state/syntax.h"

/* ---- syntax ---- */

PyObject *
cx_attributes_of(PyObject *node)
{
    PyObject *own = PyObject_GenericGetDict(node, NULL);
    Py_XDECREF(own); /* the node holds a reference */
    return own;
}

PyObject *
cx_field_of(PyObject *node, PyObject *name)
{
    PyObject *own = cx_attributes_of(node);
    return own != NULL ? PyDict_GetItemWithError(own, name) : NULL;
}

int
cx_copy_location(const CxState *state, PyObject *to, PyObject *from)
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
    PyObject *own = cx_attributes_of(node), *place = own ? PyDict_New() : NULL;
    if (place != NULL && cx_copy_location(PyModule_GetState(module), place, own) < 0)
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
    PyObject *to = cx_attributes_of(node), *from = to ? cx_attributes_of(old) : NULL;
    bool failed = from == NULL || cx_copy_location(PyModule_GetState(module), to, from) < 0;
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

int
cx_append_parts(const CxState *state, PyObject *found, PyObject *node)
{
    PyTypeObject *syntax = (PyTypeObject *)state->syntax_type;
    PyObject *fields = fields_of(state, node), *own = fields ? cx_attributes_of(node) : NULL;
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

int
cx_find_syntax(CxState *state)
{
    static const char *const names[] = {
#define CLASS(name) #name,
        CX_SYNTAX_CLASSES(CLASS)
#undef CLASS
    };
    if (state->syntax_type != NULL)
        return 0;
    PyObject *module = PyImport_ImportModule("_ast"), *type = module ? PyObject_GetAttrString(module, "AST") : NULL;
    bool failed = type == NULL;
    for (int k = 0; !failed && k < CX_SYNTAX_COUNT; k++) {
        Py_XSETREF(state->syntax[k], PyObject_GetAttrString(module, names[k]));
        failed = state->syntax[k] == NULL;
    }
    if (!failed) {
        Py_XSETREF(state->syntax_load, PyObject_CallMethod(module, "Load", NULL));
        Py_XSETREF(state->syntax_store, PyObject_CallMethod(module, "Store", NULL));
        failed = state->syntax_load == NULL || state->syntax_store == NULL;
    }
    Py_XDECREF(module);
    if (failed)
        Py_CLEAR(type);
    state->syntax_type = type; /* the last: it says that the others are there */
    return failed ? -1 : 0;
}

PyObject *
cx_walk(CxState *state, PyObject *node)
{
    PyObject *found = PyList_New(0);
    int status = found == NULL || cx_find_syntax(state) < 0 ? -1 : PyList_Append(found, node);

    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(found); k++)
        status = cx_append_parts(state, found, PyList_GET_ITEM(found, k));
    if (status < 0)
        Py_CLEAR(found);
    return found;
}

/* walk(node): the node and all nodes below it, in breadth-first order. */
static PyObject *
walk(PyObject *module, PyObject *node)
{
    return cx_walk(PyModule_GetState(module), node);
}

/* children(node): the nodes in its fields, in order. */
static PyObject *
children(PyObject *module, PyObject *node)
{
    CxState *state = PyModule_GetState(module);
    PyObject *found = PyList_New(0);

    if (found == NULL || cx_find_syntax(state) < 0 || cx_append_parts(state, found, node) < 0)
        Py_CLEAR(found);
    return found;
}

typedef struct Copying {
    CxState *state;
    PyObject *trees; /* a dict: what replaces names; or NULL */
    PyObject *place; /* the attributes of the node whose position new nodes get; or NULL */
} Copying;

static PyObject *copy_of(const Copying *c, PyObject *value);

/* The tree for a name, borrowed. NULL, mostly without an exception, for other nodes. */
static PyObject *
tree_for(const Copying *c, PyObject *node)
{
    PyObject *name = node != NULL && c->trees != NULL && CX_IS_NODE(c->state, node, Name) ? cx_field_of(node, c->state->str_id) : NULL;
    return name == NULL ? NULL : PyDict_GetItemWithError(c->trees, name);
}

/* Copies the attributes of a node into those of another one. */
static int
copy_attributes(const Copying *c, PyObject *node, PyObject *own)
{
    PyObject *to = cx_attributes_of(node), *name = NULL, *part = NULL;
    int status = to == NULL ? -1 : 0;
    for (Py_ssize_t at = 0; status == 0 && PyDict_Next(own, &at, &name, &part);) {
        PyObject *copy = copy_of(c, part);
        status = copy != NULL ? PyDict_SetItem(to, name, copy) : -1;
        Py_XDECREF(copy);
    }
    return status;
}

static PyObject *
copy_of_node(const Copying *c, PyObject *node)
{
    PyTypeObject *type = Py_TYPE(node);
    PyObject *fields = fields_of(c->state, node), *own = fields ? cx_attributes_of(node) : NULL;
    PyObject *places = own ? PyObject_GetAttr((PyObject *)type, c->state->str__attributes) : NULL;
    bool has_place = places != NULL && PyObject_Size(places) != 0, is_shared = places != NULL && PyTuple_GET_SIZE(fields) == 0 && !has_place;
    Py_XDECREF(fields);
    Py_XDECREF(places);
    if (places == NULL || is_shared)
        return places ? Py_NewRef(node) : NULL;
    PyObject *none = PyTuple_New(0), *made = none ? type->tp_new(type, none, NULL) : NULL;
    Py_XDECREF(none);
    bool failed = made == NULL || copy_attributes(c, made, own) < 0;
    if (!failed && has_place && c->place != NULL)
        failed = cx_copy_location(c->state, cx_attributes_of(made), c->place) < 0;
    if (failed)
        Py_CLEAR(made);
    return made;
}

/* A list of copies. A statement that is a name with a list of statements is replaced by these. */
static PyObject *
copy_of_list(const Copying *c, PyObject *items)
{
    PyObject *made = PyList_New(0);
    for (Py_ssize_t k = 0; made != NULL && k < PyList_GET_SIZE(items); k++) {
        PyObject *item = PyList_GET_ITEM(items, k), *copy = NULL;
        bool is_node = PyObject_TypeCheck(item, (PyTypeObject *)c->state->syntax_type);
        PyObject *tree = is_node && c->trees != NULL ? tree_for(c, cx_field_of(item, c->state->str_value)) : NULL;
        int status = PyErr_Occurred() ? -1 : 0;
        if (status == 0 && tree != NULL && PyList_CheckExact(tree))
            status = PyList_SetSlice(made, PyList_GET_SIZE(made), PyList_GET_SIZE(made), tree);
        else if (status == 0)
            status = (copy = copy_of(c, item)) != NULL ? PyList_Append(made, copy) : -1;
        Py_XDECREF(copy);
        if (status < 0)
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *
copy_of(const Copying *c, PyObject *value)
{
    PyObject *made = NULL;
    if (Py_EnterRecursiveCall(" while a syntax tree is copied"))
        return NULL;
    if (PyList_CheckExact(value)) {
        made = copy_of_list(c, value);
    } else if (!PyObject_TypeCheck(value, (PyTypeObject *)c->state->syntax_type)) {
        made = Py_NewRef(value);
    } else {
        PyObject *tree = tree_for(c, value);
        bool is_other = tree != NULL && !PyUnicode_Check(tree), failed = tree == NULL && PyErr_Occurred();
        made = failed ? NULL : is_other ? Py_NewRef(tree) : copy_of_node(c, value);
        if (made != NULL && tree != NULL && !is_other && PyObject_SetAttr(made, c->state->str_id, tree) < 0)
            Py_CLEAR(made);
    }
    Py_LeaveRecursiveCall();
    return made;
}

/* duplicate(value): a copy of a node and all below it, or of a list of them. Nodes without fields, as `Load`, are objects that all
 * trees share, also those of other packages. */
static PyObject *
duplicate(PyObject *module, PyObject *value)
{
    CxState *state = PyModule_GetState(module);
    return cx_find_syntax(state) < 0 ? NULL : copy_of(&(Copying){.state = state}, value);
}

/* filled(nodes, node, trees): a copy of nodes without positions, at the position of the node. A name with a text in `trees` gets this name,
 * and a tree replaces its name. A list replaces the statement that is only its name. */
static PyObject *
filled(PyObject *module, PyObject *args)
{
    Copying c = {.state = PyModule_GetState(module)};
    PyObject *nodes = NULL, *at = NULL;
    if (!PyArg_ParseTuple(args, "O!OO!:filled", &PyList_Type, &nodes, &at, &PyDict_Type, &c.trees) || cx_find_syntax(c.state) < 0)
        return NULL;
    c.place = cx_attributes_of(at);
    return c.place == NULL ? NULL : copy_of(&c, nodes);
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

/* type_name(cls): the name of a class in Python's own messages; with its module if the class was made in C. */
static PyObject *
type_name(PyObject *module, PyObject *cls)
{
    (void)module;
    return PyType_Check(cls) ? PyUnicode_FromString(((PyTypeObject *)cls)->tp_name)
                             : PyErr_Format(PyExc_TypeError, "type_name() takes a class");
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

/* ---- the end of a capture ---- */

/* Takes the last item of a list; a new reference, NULL with an exception. */
static PyObject *
pop_last(PyObject *list)
{
    Py_ssize_t size = PyList_GET_SIZE(list);
    PyObject *last = Py_NewRef(PyList_GET_ITEM(list, size - 1));
    if (PyList_SetSlice(list, size - 1, size, NULL) < 0)
        Py_CLEAR(last);
    return last;
}

/* The attributes of an object whose class a module of the package has made; NULL for another one. */
static PyObject *
own_attributes(const CxState *state, PyObject *value, PyObject *package)
{
    PyTypeObject *type = Py_TYPE(value);
    if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
        return NULL;
    PyObject *name = PyDict_GetItemWithError(type->tp_dict, state->str___module__);
    bool is_own = name != NULL && PyUnicode_Check(name) &&
                  PyUnicode_Tailmatch(name, package, 0, PY_SSIZE_T_MAX, -1) == 1;
    PyObject *own = is_own ? cx_attributes_of(value) : NULL;
    if (own == NULL)
        PyErr_Clear(); /* the class has slots instead */
    return own;
}

/* Appends the values of attributes, and the items of those that are containers. */
static int
append_values(PyObject *left, PyObject *own)
{
    PyObject *part = NULL;
    int status = 0;
    for (Py_ssize_t at = 0; status == 0 && PyDict_Next(own, &at, NULL, &part);) {
        PyObject *items = PyDict_CheckExact(part) ? PyDict_Values(part) : NULL;
        if (items == NULL && (PyList_CheckExact(part) || PyTuple_CheckExact(part)))
            items = PySequence_Fast(part, "");
        status = PyErr_Occurred() ? -1 : PyList_Append(left, part);
        for (Py_ssize_t k = 0; status == 0 && items != NULL && k < PySequence_Fast_GET_SIZE(items); k++)
            status = PyList_Append(left, PySequence_Fast_GET_ITEM(items, k));
        Py_XDECREF(items);
    }
    return status;
}

/* let_go(values, package, kept): empties those of the objects whose class is of the package, and their parts. What attributes
 * of the names in `kept` hold is not looked at. */
static PyObject *
let_go(PyObject *module, PyObject *args)
{
    const CxState *state = PyModule_GetState(module);
    PyObject *values = NULL, *package = NULL, *kept = NULL;
    if (!PyArg_ParseTuple(args, "OUO!:let_go", &values, &package, &PyTuple_Type, &kept))
        return NULL;
    PyObject *left = PySequence_List(values);
    int status = left == NULL ? -1 : 0;
    while (status == 0 && PyList_GET_SIZE(left) != 0) {
        PyObject *value = pop_last(left);
        PyObject *own = value != NULL ? own_attributes(state, value, package) : NULL;
        status = value == NULL ? -1 : 0;
        for (Py_ssize_t k = 0; own != NULL && status == 0 && k < PyTuple_GET_SIZE(kept); k++)
            if (PyDict_GetItemWithError(own, PyTuple_GET_ITEM(kept, k)) != NULL)
                status = PyDict_DelItem(own, PyTuple_GET_ITEM(kept, k));
        if (own != NULL && status == 0 && (status = append_values(left, own)) == 0)
            PyDict_Clear(own);
        Py_XDECREF(value);
    }
    Py_XDECREF(left);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- lines ---- */

/* The letter and the text of one value; NULL with an exception. */
static PyObject *
line_of(PyObject *value, PyObject *letters, PyObject *name_of)
{
    PyObject *key = PyLong_FromVoidPtr(value);
    PyObject *letter = key != NULL ? PyDict_GetItemWithError(letters, key) : NULL;
    Py_XDECREF(key);
    if (letter != NULL || PyErr_Occurred())
        return Py_XNewRef(letter);
    if (PyLong_CheckExact(value))
        return PyUnicode_FromFormat("i%S", value);
    if (PyTuple_CheckExact(value))
        return PyUnicode_FromFormat("t%zd", PyTuple_GET_SIZE(value));
    if (PyList_CheckExact(value))
        return PyUnicode_FromFormat("l%zd", PyList_GET_SIZE(value));
    if (PyUnicode_CheckExact(value) && PyUnicode_FindChar(value, '\\', 0, PY_SSIZE_T_MAX, 1) == -1 &&
        PyUnicode_FindChar(value, '\n', 0, PY_SSIZE_T_MAX, 1) == -1)
        return PyUnicode_FromFormat("s%U", value);
    return PyObject_CallOneArg(name_of, value);
}

/* Appends the items of a tuple or list to a list that is read from its end. */
static int
push_items(PyObject *left, PyObject *values)
{
    int status = 0;
    for (Py_ssize_t k = PySequence_Fast_GET_SIZE(values); status == 0 && k-- > 0;)
        status = PyList_Append(left, PySequence_Fast_GET_ITEM(values, k));
    return status;
}

/* put_lines(lines, values, letters, name_of): appends the line of each value, and those of the items of tuples and lists.
 * letters: the lines of some values, by id. name_of gives the lines of values that are no ints, texts, tuples or lists. */
static PyObject *
put_lines(PyObject *module, PyObject *args)
{
    PyObject *lines = NULL, *values = NULL, *letters = NULL, *name_of = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O:put_lines", &PyList_Type, &lines, &PyTuple_Type, &values, &PyDict_Type, &letters, &name_of))
        return NULL;
    PyObject *left = PyList_New(0);
    int status = left == NULL ? -1 : push_items(left, values);
    while (status == 0 && PyList_GET_SIZE(left) != 0) {
        PyObject *value = pop_last(left), *line = value ? line_of(value, letters, name_of) : NULL;
        status = line != NULL ? PyList_Append(lines, line) : -1;
        if (status == 0 && (PyTuple_CheckExact(value) || PyList_CheckExact(value)))
            status = push_items(left, value);
        Py_XDECREF(line);
        Py_XDECREF(value);
    }
    Py_XDECREF(left);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

PyMethodDef cx_syntax_methods[] = {
    CX_FUNCTION(walk, walk, METH_O),
    CX_FUNCTION(children, children, METH_O),
    CX_FUNCTION(duplicate, duplicate, METH_O),
    CX_FUNCTION(filled, filled, METH_VARARGS),
    CX_FUNCTION(place_of, place_of, METH_O),
    CX_FUNCTION(placed, placed, METH_VARARGS),
    CX_FUNCTION(is_a, is_a, METH_VARARGS),
    CX_FUNCTION(classes_of, classes_of, METH_O),
    CX_FUNCTION(type_name, type_name, METH_O),
    CX_FUNCTION(let_go, let_go, METH_VARARGS),
    CX_FUNCTION(put_lines, put_lines, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
