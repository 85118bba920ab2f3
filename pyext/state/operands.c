/* Makes visible which operands wait while a later operand of the same expression runs code.
 *
 *     o[0] + f(o)    becomes    waits(item(o, 0)) + done(1, call(f, o))        each a method of `__ci__`
 *
 * CPython keeps `o[0]` on the frame's evaluation stack, where nothing can find it: if f removes the array from o, the stack has the
 * only other reference. `waits` adds the value to `State.waiting` and `done` removes it as soon as the last operand that calls
 * something has been evaluated. Then the operator itself runs. Methods that an operator calls (a property, `__getitem__`) are in no
 * expression: see `Scope.call_method`.
 *
 * Invariant: an operand is left out only if it is a constant, a global, or a local name that no inner function sets and that the later
 * operands do not bind. These are found without `State.waiting`. */
#include "state/docs.h"
#include "state/syntax.h"

/* Fields in the order of their evaluation; a list stands for its items. The callee of a call comes first, the slots of an
 * assignment's targets last, and the items of a dict are pairs. A tuple or list that is a target has slots instead. */
#define ORDER(ROW)                                                                                                                        \
    ROW(Call, "args", "keywords")                                                                                                         \
    ROW(BinOp, "left", "right")                                                                                                           \
    ROW(Compare, "left", "comparators")                                                                                                   \
    ROW(Tuple, "elts", NULL)                                                                                                              \
    ROW(List, "elts", NULL)                                                                                                               \
    ROW(Set, "elts", NULL)                                                                                                                \
    ROW(Dict, "keys", "values")                                                                                                           \
    ROW(Subscript, "value", "slice")                                                                                                      \
    ROW(FormattedValue, "value", "format_spec")                                                                                           \
    ROW(Raise, "exc", "cause")                                                                                                            \
    ROW(Assign, "value", NULL)                                                                                                            \
    ROW(arguments, "defaults", "kw_defaults")                                                                                             \
    ROW(FunctionDef, "decorator_list", NULL)

/* Methods of `__ci__` that return their argument. */
static const char *const SAME[] = {"inverted", "operand", "read_operand", "as_text", "use", NULL};
/* Methods that call the user's code. Every call that is no method of `__ci__` does. */
static const char *const CALLS[] = {"call", "generated", NULL};
/* Methods that return the value of a name, or a place in it. */
static const char *const READS[] = {"name", "bound", "attr_slot", "item_slot", "global_slot", "free_slot", NULL};
/* Methods of which no argument waits for another one. */
static const char *const CHOICES[] = {"choose", "choose_result", NULL};

/* The place of an operand: an item of a list, or a field of a node. */
typedef struct Part {
    PyObject *owner, *name; /* name: of the field; NULL for a list */
    Py_ssize_t item;
} Part;

typedef struct Parts {
    CxState *state;
    PyObject *owners; /* keeps the owners and names alive */
    Part *items;
    Py_ssize_t count, capacity;
} Parts;

static PyObject *
field(PyObject *node, const char *name)
{
    PyObject *own = cx_attributes_of(node);
    return own != NULL ? PyDict_GetItemString(own, name) : NULL;
}

/* True if a method, which may be NULL, is one of these. */
static bool
is_among(PyObject *method, const char *const *names)
{
    for (; method != NULL && *names != NULL; names++)
        if (PyUnicode_CompareWithASCIIString(method, *names) == 0)
            return true;
    return false;
}

/* The method of the stage that a node calls; borrowed, NULL for another node. */
static PyObject *
method_of(const CxState *state, PyObject *node)
{
    PyObject *func = CX_IS_NODE(state, node, Call) ? cx_field_of(node, state->str_func) : NULL;
    PyObject *owner = func != NULL && CX_IS_NODE(state, func, Attribute) ? cx_field_of(func, state->str_value) : NULL;
    PyObject *id = owner != NULL && CX_IS_NODE(state, owner, Name) ? cx_field_of(owner, state->str_id) : NULL;
    return id != NULL && PyUnicode_Compare(id, state->str___ci__) == 0 ? cx_field_of(func, state->str_attr) : NULL;
}

/* ---- nodes that call something ---- */

static bool
is_comprehension(const CxState *state, PyObject *node)
{
    return CX_IS_NODE(state, node, ListComp) || CX_IS_NODE(state, node, SetComp) || CX_IS_NODE(state, node, DictComp) ||
           CX_IS_NODE(state, node, GeneratorExp);
}

/* The calls in a comprehension that Python runs do not mark operands, because its container waits. */
static int
leave_unseen(CxState *state, PyObject *node)
{
    PyObject *nodes = cx_walk(state, node), *unseen = nodes != NULL ? PyUnicode_InternFromString("call_method") : NULL;
    int status = unseen == NULL ? -1 : 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(nodes); k++) {
        PyObject *method = method_of(state, PyList_GET_ITEM(nodes, k));
        if (method != NULL && PyUnicode_CompareWithASCIIString(method, "call") == 0)
            status = PyObject_SetAttr(cx_field_of(PyList_GET_ITEM(nodes, k), state->str_func), state->str_attr, unseen);
    }
    Py_XDECREF(unseen);
    Py_XDECREF(nodes);
    return status;
}

static int
append_list(PyObject *to, PyObject *node, const char *name)
{
    PyObject *items = node != NULL ? field(node, name) : NULL;
    int status = 0;
    for (Py_ssize_t k = 0; items != NULL && PyList_Check(items) && status == 0 && k < PyList_GET_SIZE(items); k++)
        if (PyList_GET_ITEM(items, k) != Py_None)
            status = PyList_Append(to, PyList_GET_ITEM(items, k));
    return status;
}

/* Appends the nodes to look at next, and gives those whose calls a node makes: of an inner function only what evaluates its
 * decorators and defaults. */
static PyObject *
parts_inside(const CxState *state, PyObject *node, PyObject *nodes)
{
    PyObject *inside = PyList_New(0);
    bool is_function = CX_IS_NODE(state, node, FunctionDef), is_lambda = CX_IS_NODE(state, node, Lambda);
    PyObject *arguments = is_function || is_lambda ? cx_field_of(node, state->str_args) : NULL;
    int status = inside == NULL || cx_append_parts(state, inside, node) < 0 ? -1 : 0;

    if (status == 0 && is_function && (append_list(nodes, node, "body") < 0 || append_list(nodes, node, "decorator_list") < 0 ||
                                       append_list(nodes, arguments, "defaults") < 0 || append_list(nodes, arguments, "kw_defaults") < 0))
        status = -1;
    if (status == 0 && !is_function)
        status = PyList_SetSlice(nodes, PyList_GET_SIZE(nodes), PyList_GET_SIZE(nodes), inside);
    if (status == 0 && is_lambda)
        status = PyList_SetSlice(inside, 0, PyList_GET_SIZE(inside), NULL);
    if (status == 0 && arguments != NULL)
        status = cx_append_parts(state, inside, arguments);
    if (status < 0)
        Py_CLEAR(inside);
    return inside;
}

/* 1 if one of these nodes is in the set; -1 with an exception. */
static int
is_any_in(PyObject *inside, PyObject *set)
{
    int found = 0;
    for (Py_ssize_t k = 0; found == 0 && k < PyList_GET_SIZE(inside); k++) {
        PyObject *id = PyLong_FromVoidPtr(PyList_GET_ITEM(inside, k));
        found = id != NULL ? PySet_Contains(set, id) : -1;
        Py_XDECREF(id);
    }
    return found;
}

/* Adds a node to those that call something, and to `found` if one inside it does. */
static int
note_calling(const CxState *state, PyObject *node, PyObject *inside, PyObject *found, PyObject *calling)
{
    int is_calling = is_any_in(inside, calling);
    PyObject *method = method_of(state, node);
    bool calls = is_calling > 0 || (CX_IS_NODE(state, node, Call) && (method == NULL || is_among(method, CALLS)));
    PyObject *id = is_calling >= 0 && calls ? PyLong_FromVoidPtr(node) : NULL;
    int status = is_calling < 0 || (calls && (id == NULL || PySet_Add(calling, id) < 0)) ? -1 : 0;
    Py_XDECREF(id);
    return status == 0 && is_calling > 0 ? PyList_Append(found, node) : status;
}

/* Fills `nodes` with all nodes, `found` with those that have a call inside, each after those inside it, and `calling` with the ids of
 * all that call something. */
static int
find_calling(CxState *state, PyObject *root, PyObject *nodes, PyObject *found, PyObject *calling)
{
    PyObject *parts = PyList_New(0);
    int status = parts != NULL ? PyList_Append(nodes, root) : -1;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(nodes); k++) {
        PyObject *node = PyList_GET_ITEM(nodes, k);
        status = is_comprehension(state, node) ? leave_unseen(state, node) : 0;
        PyObject *inside = status == 0 ? parts_inside(state, node, nodes) : NULL;
        status = inside != NULL ? PyList_Append(parts, inside) : -1;
        Py_XDECREF(inside);
    }
    for (Py_ssize_t k = PyList_GET_SIZE(nodes); status == 0 && k-- > 0;)
        status = note_calling(state, PyList_GET_ITEM(nodes, k), PyList_GET_ITEM(parts, k), found, calling);
    Py_XDECREF(parts);
    return status;
}

/* ---- the parts of a node, in the order of their evaluation ---- */

/* The node of a part; borrowed. */
static PyObject *
node_at(const Part *part)
{
    return part->name != NULL ? cx_field_of(part->owner, part->name) : PyList_GET_ITEM(part->owner, part->item);
}

/* Replaces the node of a part; takes the reference, NULL is a failure. */
static int
put(const Part *part, PyObject *node)
{
    int status = node == NULL ? -1 : 0;
    if (status == 0)
        status = part->name != NULL ? PyObject_SetAttr(part->owner, part->name, node)
                                    : PyList_SetItem(part->owner, part->item, Py_NewRef(node));
    Py_XDECREF(node);
    return status;
}

static int
add(Parts *parts, PyObject *owner, const char *name, Py_ssize_t item)
{
    PyObject *text = name != NULL ? PyUnicode_InternFromString(name) : NULL;
    bool failed = (name != NULL && text == NULL) || PyList_Append(parts->owners, owner) < 0 ||
                  (text != NULL && PyList_Append(parts->owners, text) < 0);
    if (!failed && parts->count == parts->capacity) {
        Py_ssize_t capacity = 2 * parts->capacity + 8;
        Part *items = PyMem_Realloc(parts->items, (size_t)capacity * sizeof *items);
        failed = items == NULL;
        parts->items = failed ? parts->items : items;
        parts->capacity = failed ? parts->capacity : capacity;
        if (failed)
            PyErr_NoMemory();
    }
    if (!failed)
        parts->items[parts->count++] = (Part){owner, text, item};
    Py_XDECREF(text); /* `owners` has a reference */
    return failed ? -1 : 0;
}

/* Adds an item of a list; the operand of a star or keyword is the part. */
static int
add_item(Parts *parts, PyObject *list, Py_ssize_t k)
{
    PyObject *node = PyList_GET_ITEM(list, k);
    if (node == Py_None)
        return 0;
    bool is_inside = CX_IS_NODE(parts->state, node, Starred) || CX_IS_NODE(parts->state, node, keyword);
    return is_inside ? add(parts, node, "value", 0) : add(parts, list, NULL, k);
}

static int
add_field(Parts *parts, PyObject *node, const char *name)
{
    PyObject *value = name != NULL ? field(node, name) : NULL;
    int status = 0;
    if (value == NULL || value == Py_None)
        return 0;
    if (!PyList_CheckExact(value))
        return add(parts, node, name, 0);
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(value); k++)
        status = add_item(parts, value, k);
    return status;
}

/* Adds the callee of a call, of a method its object, unless it is a method of `__ci__`. */
static int
add_callee(Parts *parts, PyObject *node)
{
    PyObject *func = cx_field_of(node, parts->state->str_func);
    if (func == NULL || method_of(parts->state, node) != NULL)
        return 0;
    return CX_IS_NODE(parts->state, func, Attribute) ? add(parts, func, "value", 0) : add(parts, node, "func", 0);
}

/* Adds the slots in a target: `__ci__.item_slot(...)` of `__ci__.item_slot(...).value`. */
static int
add_slots(Parts *parts, PyObject *target)
{
    const CxState *state = parts->state;
    int status = 0;
    if (CX_IS_NODE(state, target, Attribute))
        return add(parts, target, "value", 0);
    if (CX_IS_NODE(state, target, Starred))
        return add_slots(parts, cx_field_of(target, state->str_value));
    bool is_row = CX_IS_NODE(state, target, Tuple) || CX_IS_NODE(state, target, List);
    PyObject *items = is_row ? field(target, "elts") : NULL;
    for (Py_ssize_t k = 0; items != NULL && status == 0 && k < PyList_GET_SIZE(items); k++)
        status = add_slots(parts, PyList_GET_ITEM(items, k));
    return status;
}

static int
add_pairs(Parts *parts, PyObject *keys, PyObject *values)
{
    int status = 0;
    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(keys); k++)
        status = add_item(parts, keys, k) < 0 ? -1 : add_item(parts, values, k);
    return status;
}

/* Fills the parts of a node; they are empty for a node whose operands never wait. */
static int
fill(Parts *parts, PyObject *node)
{
    const CxState *state = parts->state;
    PyObject *context = cx_field_of(node, state->str_ctx), *targets = cx_field_of(node, state->str_targets);
    const char *first = NULL, *second = NULL;

    parts->count = 0;
    if (is_among(method_of(state, node), CHOICES))
        return 0;
    if ((CX_IS_NODE(state, node, Tuple) || CX_IS_NODE(state, node, List)) && context != NULL && Py_TYPE(context) != Py_TYPE(state->syntax_load))
        return 0;
    if (CX_IS_NODE(state, node, Dict))
        return add_pairs(parts, field(node, "keys"), field(node, "values"));
#define ROW(name, one, other)                                                                                                             \
    if (CX_IS_NODE(state, node, name))                                                                                                    \
        first = one, second = other;
    ORDER(ROW)
#undef ROW
    int status = CX_IS_NODE(state, node, Call) ? add_callee(parts, node) : 0;
    if (status == 0 && (add_field(parts, node, first) < 0 || add_field(parts, node, second) < 0))
        status = -1;
    for (Py_ssize_t k = 0; CX_IS_NODE(state, node, Assign) && status == 0 && k < PyList_GET_SIZE(targets); k++)
        status = add_slots(parts, PyList_GET_ITEM(targets, k));
    PyObject *arguments = CX_IS_NODE(state, node, FunctionDef) ? cx_field_of(node, state->str_args) : NULL;
    if (status == 0 && arguments != NULL && (add_field(parts, arguments, "defaults") < 0 || add_field(parts, arguments, "kw_defaults") < 0))
        status = -1;
    return status;
}

/* ---- what waits ---- */

/* 1 if an expression has `name := value`; -1 with an exception. */
static int
binds(CxState *state, PyObject *node, PyObject *name)
{
    PyObject *nodes = cx_walk(state, node);
    int found = nodes == NULL ? -1 : 0;
    for (Py_ssize_t k = 0; found == 0 && k < PyList_GET_SIZE(nodes); k++) {
        PyObject *one = PyList_GET_ITEM(nodes, k);
        PyObject *target = CX_IS_NODE(state, one, NamedExpr) ? field(one, "target") : NULL;
        found = target != NULL ? PyObject_RichCompareBool(cx_field_of(target, state->str_id), name, Py_EQ) : 0;
    }
    Py_XDECREF(nodes);
    return found;
}

/* 1 if the value of a part, which waits for parts up to the last one, may have no other name; -1 with an exception. */
static int
waits_unseen(const Parts *parts, Py_ssize_t k, Py_ssize_t last)
{
    CxState *state = parts->state;
    PyObject *node = node_at(&parts->items[k]), *method = NULL;
    while (is_among(method = method_of(state, node), SAME))
        node = PyList_GET_ITEM(cx_field_of(node, state->str_args), 0);
    if (!CX_IS_NODE(state, node, Name))
        return !(CX_IS_NODE(state, node, Constant) || is_among(method, READS));
    PyObject *id = cx_field_of(node, state->str_id);
    int found = PyUnicode_Tailmatch(id, state->str___ci_, 0, PY_SSIZE_T_MAX, -1) == 1 ? 2 : 0;
    while (found == 0 && ++k <= last)
        found = binds(state, node_at(&parts->items[k]), id);
    return found == 2 ? 0 : found;
}

/* `__ci__.method(first, second)` at the position of a node; the second may be NULL. Takes the reference to the first. */
static PyObject *
call_with(CxState *state, PyObject *at, const char *method, PyObject *first, PyObject *second)
{
    PyObject *name = PyUnicode_InternFromString(method), *args = first != NULL ? PyList_New(0) : NULL, *made = NULL;
    bool is_ready = name != NULL && args != NULL && PyList_Append(args, first) == 0 && (second == NULL || PyList_Append(args, second) == 0);
    if (is_ready)
        made = cx_new_call(state, at, name, Py_NewRef(args), PyList_New(0));
    Py_XDECREF(first);
    Py_XDECREF(args);
    Py_XDECREF(name);
    return made;
}

/* Marks the parts before `last` whose values no name refers to until the last one has been evaluated. */
static int
mark(Parts *parts, Py_ssize_t last)
{
    CxState *state = parts->state;
    Py_ssize_t count = 0;
    for (Py_ssize_t k = 0; k < last; k++) { /* all are found before one is changed */
        int waits = waits_unseen(parts, k, last);
        if (waits < 0)
            return -1;
        if (waits > 0)
            parts->items[count++] = parts->items[k];
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *node = node_at(&parts->items[k]);
        if (put(&parts->items[k], call_with(state, node, "waits", Py_NewRef(node), NULL)) < 0)
            return -1;
    }
    if (count == 0)
        return 0;
    PyObject *node = node_at(&parts->items[last]), *number = PyLong_FromSsize_t(count);
    PyObject *constant = number != NULL ? cx_new_constant(state, node, number) : NULL;
    Py_XDECREF(number);
    return put(&parts->items[last], call_with(state, node, "done", constant, node));
}

/* mark_operands(root): adds `waits` and `done` to a rewritten function and to those inside it. */
static PyObject *
mark_operands(PyObject *module, PyObject *root)
{
    CxState *state = PyModule_GetState(module);
    Parts parts = {.state = state, .owners = PyList_New(0)};
    PyObject *nodes = PyList_New(0), *found = PyList_New(0), *calling = PySet_New(NULL);
    bool is_ready = parts.owners && nodes && found && calling && cx_find_syntax(state) == 0;
    int status = is_ready ? find_calling(state, root, nodes, found, calling) : -1;

    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(found); k++) {
        status = fill(&parts, PyList_GET_ITEM(found, k));
        Py_ssize_t last = status == 0 ? parts.count - 1 : 0;
        for (int is_calling = 0; last > 0; last--) {
            PyObject *id = PyLong_FromVoidPtr(node_at(&parts.items[last]));
            is_calling = id != NULL ? PySet_Contains(calling, id) : -1;
            Py_XDECREF(id);
            status = is_calling < 0 ? -1 : status;
            if (is_calling != 0)
                break;
        }
        if (status == 0 && last > 0)
            status = mark(&parts, last);
    }
    PyMem_Free(parts.items);
    Py_XDECREF(parts.owners);
    Py_XDECREF(nodes);
    Py_XDECREF(found);
    Py_XDECREF(calling);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

PyMethodDef cx_operand_methods[] = {
    CX_FUNCTION(mark_operands, mark_operands, METH_O),
    {NULL, NULL, 0, NULL},
};
