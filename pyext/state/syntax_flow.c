/* Names, blocks and jumps of syntax trees, by the rows of capture/syntax/rows.py. */
#include "state/docs.h"
#include "state/syntax.h"

/* Names by what happens to them; `rows` has the table, by class. */
typedef struct Flow {
    CxState *state;
    PyObject *rows;
    bool is_deep;        /* blocks are included */
    PyObject *uses;      /* sets: read before they are bound here */
    PyObject *kills;     /* bound in every case */
    PyObject *later;     /* read by inner functions */
    PyObject *suspended; /* read by generators */
    PyObject *drops;     /* unbound afterwards; with blocks also those that inner functions may unbind */
    PyObject *binds;     /* lists: bound, once for each binding */
    PyObject *declared;  /* nodes that declare names */
} Flow;

static int add_node(Flow *flow, PyObject *node, bool is_certain);

/* A column of the row of a node: its parts, its blocks, its flow; borrowed, NULL if there is none. */
static PyObject *
column_of(PyObject *rows, PyObject *node, Py_ssize_t column)
{
    PyObject *row = PyDict_GetItemWithError(rows, (PyObject *)Py_TYPE(node));
    PyObject *value = row != NULL ? PyTuple_GET_ITEM(row, column) : NULL;
    return value == Py_None ? NULL : value;
}

/* The sign of part k of a row; 0: evaluated where it stands. */
static char
sign_of(PyObject *parts, Py_ssize_t k)
{
    PyObject *sign = PyTuple_GET_ITEM(parts, k);
    return PyUnicode_GET_LENGTH(sign) == 0 ? '\0' : (char)PyUnicode_READ_CHAR(sign, 0);
}

static bool
is_node(const CxState *state, PyObject *value)
{
    return value != NULL && PyObject_TypeCheck(value, (PyTypeObject *)state->syntax_type);
}

/* 1 if the name is in the set, -1 with an exception; otherwise it is added to the other one, unless that is NULL. */
static int
add_unless(PyObject *set, PyObject *name, PyObject *to)
{
    int found = PySet_Contains(set, name);
    return found == 0 && to != NULL ? PySet_Add(to, name) : found < 0 ? -1 : 0;
}

typedef enum Context { LOAD, STORE, DELETE } Context;

/* The context of a name; a node without one is a load. */
static Context
context_of(const CxState *state, PyObject *node)
{
    PyObject *context = cx_field_of(node, state->str_ctx);
    if (context == NULL || Py_IS_TYPE(context, Py_TYPE(state->syntax_load)))
        return LOAD;
    return Py_IS_TYPE(context, Py_TYPE(state->syntax_store)) ? STORE : DELETE;
}

static int
bind(Flow *flow, PyObject *name, bool is_certain)
{
    int status = PyList_Append(flow->binds, name);
    return status == 0 && is_certain ? PySet_Add(flow->kills, name) : status;
}

static int
add_name(Flow *flow, PyObject *node, bool is_certain)
{
    PyObject *name = cx_field_of(node, flow->state->str_id);
    Context context = context_of(flow->state, node);
    if (context != STORE && add_unless(flow->kills, name, flow->uses) < 0)
        return -1;
    if (context != LOAD && bind(flow, name, is_certain) < 0)
        return -1;
    return context == DELETE ? PySet_Add(flow->drops, name) : 0;
}

/* Binds a name, or each of the names of an import. */
static int
add_bound(Flow *flow, PyObject *value)
{
    if (PyUnicode_Check(value))
        return bind(flow, value, true);
    int status = 0;
    for (Py_ssize_t k = 0; PyList_Check(value) && status == 0 && k < PyList_GET_SIZE(value); k++) {
        PyObject *own = cx_attributes_of(PyList_GET_ITEM(value, k));
        PyObject *name = own != NULL ? PyDict_GetItemString(own, "asname") : NULL;
        if (name == NULL || name == Py_None)
            name = own != NULL ? PyDict_GetItemString(own, "name") : NULL;
        Py_ssize_t end = name != NULL ? PyUnicode_FindChar(name, '.', 0, PY_SSIZE_T_MAX, 1) : -2;
        PyObject *first = end == -2 ? NULL : end < 0 ? Py_NewRef(name) : PyUnicode_Substring(name, 0, end);
        status = first != NULL ? bind(flow, first, true) : -1;
        Py_XDECREF(first);
    }
    return status;
}

/* Adds the names in a tree, which code that runs later reads; with blocks also those that it may unbind. */
static int
add_names_in(Flow *flow, PyObject *root, PyObject *to)
{
    const CxState *state = flow->state;
    PyObject *nodes = cx_walk(flow->state, root);
    int status = nodes == NULL ? -1 : 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(nodes); k++) {
        PyObject *node = PyList_GET_ITEM(nodes, k);
        PyObject *parts = flow->is_deep ? column_of(flow->rows, node, 0) : NULL;
        if (CX_IS_NODE(state, node, Name)) {
            PyObject *name = cx_field_of(node, state->str_id);
            bool is_dropped = flow->is_deep && context_of(state, node) == DELETE;
            status = PySet_Add(to, name) < 0 || (is_dropped && PySet_Add(flow->drops, name) < 0) ? -1 : 0;
        }
        for (Py_ssize_t i = 0; parts != NULL && status == 0 && i < PyTuple_GET_SIZE(parts); i += 2) {
            PyObject *name = sign_of(parts, i) == '-' ? cx_field_of(node, PyTuple_GET_ITEM(parts, i + 1)) : NULL;
            status = name != NULL && name != Py_None ? PySet_Add(flow->drops, name) : 0;
        }
    }
    Py_XDECREF(nodes);
    return status;
}

/* Calls add_names_in for a node, or for each node of a list. */
static int
add_later(Flow *flow, PyObject *value, PyObject *to)
{
    int status = 0;
    if (!PyList_Check(value))
        return is_node(flow->state, value) ? add_names_in(flow, value, to) : 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(value); k++)
        status = add_later(flow, PyList_GET_ITEM(value, k), to);
    return status;
}

/* Evaluates a node, or the nodes of a list in turn. */
static int
add_value(Flow *flow, PyObject *value, bool is_certain, bool is_first_only)
{
    int status = 0;
    if (!PyList_Check(value))
        return is_node(flow->state, value) ? add_node(flow, value, is_certain) : 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(value); k++)
        if (is_node(flow->state, PyList_GET_ITEM(value, k)))
            status = add_node(flow, PyList_GET_ITEM(value, k), is_certain && (k == 0 || !is_first_only));
    return status;
}

/* ---- comprehensions ---- */

/* The sets of names in a comprehension: its own targets, those that `:=` binds outside of it, those that it reads. */
typedef struct Inside {
    PyObject *own, *walrus, *loads;
} Inside;

/* Adds a node inside a comprehension. What a function or a generator in it reads is read later. */
static int
sort_inside(Flow *flow, PyObject *node, const Inside *inside, bool is_root)
{
    const CxState *state = flow->state;
    PyObject *parts = column_of(flow->rows, node, 0), *target = NULL;
    int status = 0;
    if (CX_IS_NODE(state, node, Name))
        return PySet_Add(context_of(state, node) == LOAD ? inside->loads : inside->own, cx_field_of(node, state->str_id));
    if (CX_IS_NODE(state, node, NamedExpr)) {
        target = PyDict_GetItemString(cx_attributes_of(node), "target");
        return target != NULL ? PySet_Add(inside->walrus, cx_field_of(target, state->str_id)) : -1;
    }
    for (Py_ssize_t k = 0; parts != NULL && status == 0 && k < PyTuple_GET_SIZE(parts); k += 2) {
        char sign = sign_of(parts, k);
        PyObject *value = sign == '@' ? cx_field_of(node, PyTuple_GET_ITEM(parts, k + 1)) : NULL;
        if (value != NULL)
            status = add_later(flow, value, flow->later);
        else if (sign == '(' && !is_root)
            status = add_names_in(flow, node, flow->suspended);
    }
    return status;
}

/* Adds the names that a comprehension reads from outside of it, and those that it binds there. */
static int
add_inside(Flow *flow, const Inside *inside, bool is_later)
{
    PyObject *own = PyNumber_Subtract(inside->own, inside->walrus), *reads = own ? PyNumber_Subtract(inside->loads, own) : NULL;
    PyObject *name = NULL, *names = reads != NULL ? PyObject_GetIter(reads) : NULL;
    int status = names == NULL ? -1 : 0;
    while (status == 0 && (name = PyIter_Next(names)) != NULL) {
        status = add_unless(flow->kills, name, flow->uses);
        if (status == 0 && is_later)
            status = PySet_Add(flow->suspended, name);
        Py_DECREF(name);
    }
    if (status == 0 && !PyErr_Occurred() && PySet_GET_SIZE(inside->walrus) != 0) {
        Py_ssize_t end = PyList_GET_SIZE(flow->binds);
        status = PyList_SetSlice(flow->binds, end, end, inside->walrus);
    }
    Py_XDECREF(names);
    Py_XDECREF(reads);
    Py_XDECREF(own);
    return PyErr_Occurred() ? -1 : status;
}

/* A comprehension, whose targets are its own. The first iterable is evaluated outside of it. */
static int
add_comprehension(Flow *flow, PyObject *node, PyObject *generators, bool is_certain, bool is_later)
{
    PyObject *first = PyList_GET_SIZE(generators) != 0 ? cx_attributes_of(PyList_GET_ITEM(generators, 0)) : NULL;
    PyObject *items = first != NULL ? PyDict_GetItemString(first, "iter") : NULL;
    Inside inside = {PySet_New(NULL), PySet_New(NULL), PySet_New(NULL)};
    bool is_made = inside.own != NULL && inside.walrus != NULL && inside.loads != NULL;
    int status = items != NULL && is_made ? add_node(flow, items, is_certain) : -1;
    PyObject *nodes = status == 0 ? cx_walk(flow->state, node) : NULL;

    for (Py_ssize_t k = 0; nodes != NULL && status == 0 && k < PyList_GET_SIZE(nodes); k++)
        status = sort_inside(flow, PyList_GET_ITEM(nodes, k), &inside, k == 0);
    if (status == 0)
        status = nodes != NULL ? add_inside(flow, &inside, is_later) : -1;
    Py_XDECREF(nodes);
    Py_XDECREF(inside.own);
    Py_XDECREF(inside.walrus);
    Py_XDECREF(inside.loads);
    return status;
}

/* ---- parts ---- */

/* A target that is stored to only if the statement has a value; otherwise it is declared to be local. */
static int
add_if_given(Flow *flow, PyObject *node, PyObject *target, bool is_certain)
{
    const CxState *state = flow->state;
    PyObject *value = cx_field_of(node, state->str_value);
    if (value != NULL && value != Py_None)
        return add_value(flow, target, is_certain, false);
    bool is_local = flow->is_deep && CX_IS_NODE(state, target, Name);
    return is_local ? bind(flow, cx_field_of(target, state->str_id), false) : 0;
}

/* A target that is read before it is stored to. */
static int
add_read(Flow *flow, PyObject *target)
{
    const CxState *state = flow->state;
    return CX_IS_NODE(state, target, Name) ? add_unless(flow->kills, cx_field_of(target, state->str_id), flow->uses) : 0;
}

/* True for a function that capture has made: it reads no names of those around it. */
static bool
is_closed(PyObject *node)
{
    return PyDict_GetItemString(cx_attributes_of(node), "ci_is_closed") != NULL;
}

static int
add_part(Flow *flow, PyObject *node, char sign, PyObject *value, bool is_certain)
{
    switch (sign) {
    case '@': return is_closed(node) ? 0 : add_later(flow, value, flow->later);
    case '~': return add_value(flow, value, is_certain, false) < 0 ? -1 : add_later(flow, value, flow->later);
    case '=': return add_read(flow, value);
    case '+': return add_if_given(flow, node, value, is_certain);
    case '!': return add_bound(flow, value);
    case '-': return PySet_Add(flow->drops, value);
    case '^': return PyList_Append(flow->declared, node);
    case '[': return add_comprehension(flow, node, value, is_certain, false);
    case '(': return add_comprehension(flow, node, value, is_certain, true);
    default: return add_value(flow, value, is_certain && sign != '?', sign == '1');
    }
}

static int
add_parts(Flow *flow, PyObject *node, bool is_certain)
{
    PyObject *parts = column_of(flow->rows, node, 0), *blocks = flow->is_deep ? column_of(flow->rows, node, 1) : NULL;
    PyObject *every = parts == NULL ? PyList_New(0) : NULL;
    int status = 0;
    if (parts == NULL && (every == NULL || cx_append_parts(flow->state, every, node) < 0 || add_value(flow, every, is_certain, false) < 0))
        status = -1;
    for (Py_ssize_t k = 0; parts != NULL && status == 0 && k < PyTuple_GET_SIZE(parts); k += 2) {
        PyObject *value = cx_field_of(node, PyTuple_GET_ITEM(parts, k + 1));
        status = value != NULL && value != Py_None ? add_part(flow, node, sign_of(parts, k), value, is_certain) : 0;
    }
    for (Py_ssize_t k = 0; blocks != NULL && status == 0 && k < PyTuple_GET_SIZE(blocks); k++) {
        PyObject *block = cx_field_of(node, PyTuple_GET_ITEM(blocks, k));
        status = block != NULL ? add_value(flow, block, false, false) : 0;
    }
    Py_XDECREF(every);
    return PyErr_Occurred() ? -1 : status;
}

static int
add_node(Flow *flow, PyObject *node, bool is_certain)
{
    if (CX_IS_NODE(flow->state, node, Name))
        return add_name(flow, node, is_certain);
    if (Py_EnterRecursiveCall(" while names of a syntax tree are sorted"))
        return -1;
    int status = add_parts(flow, node, is_certain);
    Py_LeaveRecursiveCall();
    return status;
}

/* names_of(rows, nodes, is_deep): what evaluating the nodes in turn does with names. */
static PyObject *
names_of(PyObject *module, PyObject *args)
{
    CxState *state = PyModule_GetState(module);
    PyObject *rows = NULL, *nodes = NULL, *found = NULL;
    int is_deep = 0;
    if (!PyArg_ParseTuple(args, "O!O!p:names_of", &PyDict_Type, &rows, &PyTuple_Type, &nodes, &is_deep) || cx_find_syntax(state) < 0)
        return NULL;
    Flow flow = {state, rows, is_deep != 0, PySet_New(NULL), PySet_New(NULL), PySet_New(NULL), PySet_New(NULL), PySet_New(NULL), PyList_New(0), PyList_New(0)};
    bool is_made = flow.uses && flow.kills && flow.later && flow.suspended && flow.drops && flow.binds && flow.declared;
    int status = is_made ? 0 : -1;
    for (Py_ssize_t k = 0; status == 0 && k < PyTuple_GET_SIZE(nodes); k++)
        status = add_value(&flow, PyTuple_GET_ITEM(nodes, k), true, false);
    if (status == 0)
        found = PyTuple_Pack(7, flow.uses, flow.kills, flow.binds, flow.later, flow.suspended, flow.drops, flow.declared);
    PyObject *const all[] = {flow.uses, flow.kills, flow.later, flow.suspended, flow.drops, flow.binds, flow.declared};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        Py_XDECREF(all[k]);
    return found;
}

/* ---- blocks and jumps ---- */

/* Appends the blocks of a node that are not empty. After a * are parts, which have a block each. */
static int
append_blocks(PyObject *rows, PyObject *node, PyObject *found)
{
    PyObject *fields = column_of(rows, node, 1);
    int status = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t k = 0; fields != NULL && status == 0 && k < PyTuple_GET_SIZE(fields); k++) {
        PyObject *name = PyTuple_GET_ITEM(fields, k), *block = cx_field_of(node, name);
        if (block != NULL && PyList_Check(block) && PyList_GET_SIZE(block) != 0)
            status = PyList_Append(found, block);
        if (block != NULL || PyUnicode_READ_CHAR(name, 0) != '*')
            continue;
        PyObject *field = PyUnicode_Substring(name, 1, PY_SSIZE_T_MAX), *parts = field != NULL ? cx_field_of(node, field) : NULL;
        for (Py_ssize_t i = 0; parts != NULL && status == 0 && i < PyList_GET_SIZE(parts); i++)
            status = append_blocks(rows, PyList_GET_ITEM(parts, i), found);
        Py_XDECREF(field);
    }
    return PyErr_Occurred() ? -1 : status;
}

/* blocks_of(rows, node): the lists of statements in a statement. */
static PyObject *
blocks_of(PyObject *module, PyObject *args)
{
    PyObject *rows = NULL, *node = NULL, *found = PyList_New(0);
    bool failed = found == NULL || cx_find_syntax(PyModule_GetState(module)) < 0;
    if (failed || !PyArg_ParseTuple(args, "O!O:blocks_of", &PyDict_Type, &rows, &node) || append_blocks(rows, node, found) < 0)
        Py_CLEAR(found);
    return found;
}

/* Appends the jumps that leave a block; of one in a loop only `return` leaves it. */
static int
append_jumps(PyObject *rows, PyObject *block, bool is_in_loop, PyObject *found)
{
    int status = 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(block); k++) {
        PyObject *node = PyList_GET_ITEM(block, k), *flow = column_of(rows, node, 2), *blocks = PyList_New(0);
        bool is_return = flow != NULL && PyUnicode_CompareWithASCIIString(flow, "return") == 0;
        bool is_loop = flow != NULL && PyUnicode_CompareWithASCIIString(flow, "loop") == 0;
        bool leaves_loop = flow != NULL && (PyUnicode_CompareWithASCIIString(flow, "break") == 0 || PyUnicode_CompareWithASCIIString(flow, "continue") == 0);
        if (is_return || (leaves_loop && !is_in_loop))
            status = PyList_Append(found, node);
        if (blocks == NULL || append_blocks(rows, node, blocks) < 0)
            status = -1;
        for (Py_ssize_t i = 0; status == 0 && i < PyList_GET_SIZE(blocks); i++)
            status = append_jumps(rows, PyList_GET_ITEM(blocks, i), is_in_loop || (is_loop && i == 0), found);
        Py_XDECREF(blocks);
    }
    return status;
}

/* jumps_of(rows, block): the jumps that leave a block, in the order of the text. */
static PyObject *
jumps_of(PyObject *module, PyObject *args)
{
    PyObject *rows = NULL, *block = NULL, *found = PyList_New(0);
    bool failed = found == NULL || cx_find_syntax(PyModule_GetState(module)) < 0;
    if (failed || !PyArg_ParseTuple(args, "O!O!:jumps_of", &PyDict_Type, &rows, &PyList_Type, &block) || append_jumps(rows, block, false, found) < 0)
        Py_CLEAR(found);
    return found;
}

PyMethodDef cx_flow_methods[] = {
    CX_FUNCTION(names_of, names_of, METH_VARARGS),
    CX_FUNCTION(blocks_of, blocks_of, METH_VARARGS),
    CX_FUNCTION(jumps_of, jumps_of, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
