/* Finds which objects can be reached from others. An object refers to what its class's
 * tp_traverse visits, which is the rule of the garbage collector. The traversal only runs
 * tp_traverse, and only that of classes of CPython, of NumPy, and written in Python.
 *
 *     roots --> what their classes visit --> ... --> the traced values met, or the objects wanted
 *
 * Invariant: an object is left out only if it is known to refer to nothing, or is closed. If a
 * class hides references, or there are too many objects, the result is "unknown". */
#include "state/array.h"
#include "state/docs.h"

enum { WANTED = 1, SEEN = 2, FLAGS = 3 }; /* stored in the low bits of an address in the table */
enum { DONE = 0, FAILED = -1, UNKNOWN = 1, FOUND = 2 }; /* FAILED: with an exception */
enum { MAX_VISITS = 100000 };

/* How much of an object's references its class shows. */
typedef enum Shows { SHOWS_no_references, SHOWS_all, SHOWS_some } Shows;

typedef struct Walk {
    const CxState *state;
    /* A dict; its keys are ids of objects that are not entered. */
    PyObject *closed;
    PyObject *atoms, *modules, *opened; /* frozensets: see `cx_reach_methods` */
    PyObject *traced;                   /* a list of the traced values found, or NULL */
    bool is_for_own; /* goes on past what is unknown, to the first object of the package: see `own_in` */
    PyObject *own;                      /* that object, borrowed */
    PyObject *passed[2];                /* also not entered: globals of the inspected function */
    uintptr_t *table;                   /* addresses and flags, open addressing */
    size_t mask, count, wanted;         /* wanted: those not found yet */
    PyObject **stack;
    size_t height, capacity;
    int left; /* number of visits left */
    PyTypeObject *last; /* the last class inspected, with the result */
    Shows last_shows;
} Walk;

/* ---- the table of visited objects ---- */

static uintptr_t *
slot_of(uintptr_t *table, size_t mask, uintptr_t address)
{
    size_t at = (address >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20;
    while (table[at & mask] != 0 && (table[at & mask] & ~(uintptr_t)FLAGS) != address)
        at++;
    return &table[at & mask];
}

static int
grow_table(Walk *w)
{
    size_t mask = w->mask ? 2 * w->mask + 1 : 255;
    uintptr_t *table = PyMem_Calloc(mask + 1, sizeof *table);

    if (table == NULL) {
        PyErr_NoMemory();
        return FAILED;
    }
    for (size_t k = 0; w->table != NULL && k <= w->mask; k++)
        if (w->table[k] != 0)
            *slot_of(table, mask, w->table[k] & ~(uintptr_t)FLAGS) = w->table[k];
    PyMem_Free(w->table);
    w->table = table;
    w->mask = mask;
    return DONE;
}

/* Sets the flag for the object. Returns its former flags, or FAILED. */
static int
flag(Walk *w, PyObject *object, unsigned flags)
{
    if (2 * w->count >= w->mask && grow_table(w) < 0)
        return FAILED;
    uintptr_t address = (uintptr_t)object, *slot = slot_of(w->table, w->mask, address);
    int before = (int)(*slot & FLAGS);
    w->count += *slot == 0;
    *slot = address | (uintptr_t)before | flags;
    return before;
}

static int
push(Walk *w, PyObject *object)
{
    if (w->height == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 256;
        PyObject **stack = PyMem_Realloc(w->stack, capacity * sizeof *stack);
        if (stack == NULL) {
            PyErr_NoMemory();
            return FAILED;
        }
        w->stack = stack;
        w->capacity = capacity;
    }
    w->stack[w->height++] = object;
    return DONE;
}

static int
found_own(Walk *w, PyObject *object)
{
    w->own = object;
    return FOUND;
}

/* A visitproc: records a visit. */
static int
visit(PyObject *object, void *arg)
{
    Walk *w = arg;

    if (--w->left < 0)
        return UNKNOWN;
    bool is_traced = Py_IS_TYPE(object, (PyTypeObject *)w->state->traced_type);
    if (is_traced && w->is_for_own)
        return found_own(w, object);
    if (is_traced)
        return w->traced == NULL ? DONE : PyList_Append(w->traced, object);
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyUnicode_CheckExact(object) ||
        object == Py_None || object == w->passed[0] || object == w->passed[1])
        return DONE;
    int before = flag(w, object, SEEN);
    if (before < 0 || before & SEEN)
        return before < 0 ? FAILED : DONE;
    if (before & WANTED && --w->wanted == 0)
        return FOUND;
    return push(w, object);
}

/* ---- classes ---- */

/* True if the first part of a dotted name is in the set; -1 with an exception. */
static int
is_of(PyObject *modules, const char *name)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL)
        return false;
    PyObject *first = PyUnicode_FromStringAndSize(name, dot - name);
    int found = first == NULL ? -1 : PySet_Contains(modules, first);
    Py_XDECREF(first);
    return found;
}

/* True for a class written in Python whose module's name begins so. */
static bool
is_of_module(PyTypeObject *type, const char *prefix)
{
    PyObject *module = type->tp_dict ? cx_dict_named(type->tp_dict, "__module__") : NULL;
    const char *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
    if (name == NULL)
        PyErr_Clear();
    return name != NULL && strncmp(name, prefix, strlen(prefix)) == 0;
}

/* True of scalars that hold no object. */
static bool
is_numpy_scalar(PyTypeObject *type)
{
    return PyType_IsSubtype(type, &PyGenericArrType_Type) &&
           !PyType_IsSubtype(type, &PyVoidArrType_Type) &&
           !PyType_IsSubtype(type, &PyObjectArrType_Type);
}

/* The Shows of a class made by C code. Objects of a builtin class without the collector's flag hold
 * no object that could change. is_derived: the object's class is a Python class derived from it. */
static int
shown_by_c(Walk *w, PyTypeObject *type, bool is_derived)
{
    bool is_builtin = strchr(type->tp_name, '.') == NULL && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE);
    bool has_gc = PyType_HasFeature(type, Py_TPFLAGS_HAVE_GC);
    int found = is_numpy_scalar(type) || (is_builtin && !has_gc)
                    ? 1
                    : PySet_Contains(w->atoms, (PyObject *)type);
    if (found != 0)
        return found < 0 ? FAILED : is_derived ? SHOWS_all : SHOWS_no_references;
    if (!has_gc)
        return SHOWS_some;
    if (strncmp(type->tp_name, "cinductor.", 10) == 0) {
        found = PySet_Contains(w->opened, (PyObject *)type);
        return found < 0 ? FAILED : found ? SHOWS_all : SHOWS_no_references;
    }
    if (!is_builtin && (found = is_of(w->modules, type->tp_name)) < 0)
        return FAILED;
    return is_builtin || found ? SHOWS_all : SHOWS_some;
}

/* Returns a Shows, or FAILED. */
static int
shown_by(Walk *w, PyTypeObject *type)
{
    if (type == w->last)
        return w->last_shows;
    traverseproc of_python = ((PyTypeObject *)w->state->region_break)->tp_traverse;
    bool is_derived = type->tp_traverse == of_python;
    PyTypeObject *base = type;
    while (base->tp_traverse == of_python)
        base = base->tp_base;
    int shows = shown_by_c(w, base, is_derived);
    if (shows == SHOWS_all && is_derived && !PyType_IsSubtype(base, &PyTuple_Type) &&
        is_of_module(type, "cinductor.")) { /* the package's own objects refer to internal state */
        int found = PySet_Contains(w->opened, (PyObject *)type);
        shows = found < 0 ? FAILED : found ? SHOWS_all : SHOWS_no_references;
    }
    if (shows != FAILED) {
        w->last = type;
        w->last_shows = (Shows)shows;
    }
    return shows;
}

/* ---- deaths ---- */

enum { MAX_ITEMS = 64 };

/* Dtypes without fields and metadata refer to nothing. */
static bool
is_plain_dtype(PyArray_Descr *dtype)
{
    return !PyDataType_HASFIELDS(dtype) && PyDataType_METADATA(dtype) == NULL;
}

static bool
is_number_or_text(PyObject *o)
{
    return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyUnicode_CheckExact(o) ||
           PyComplex_CheckExact(o) || PyBytes_CheckExact(o) || o == Py_None ||
           (is_numpy_scalar(Py_TYPE(o)) && !PyType_HasFeature(Py_TYPE(o), Py_TPFLAGS_HEAPTYPE));
}

/* left: the number of objects that may still be looked at. */
static bool
dies_quietly(PyObject *o, int *left)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    if (--*left < 0)
        return false;
    if (PyArray_CheckExact(o)) {
        PyArrayObject *array = (PyArrayObject *)o;
        return !PyDataType_REFCHK(PyArray_DESCR(array)) && is_plain_dtype(PyArray_DESCR(array)) &&
               ((PyArrayObject_fields *)o)->weakreflist == NULL &&
               (PyArray_BASE(array) == NULL || dies_quietly(PyArray_BASE(array), left));
    }
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
        for (; at < PySequence_Fast_GET_SIZE(o); at++)
            if (!dies_quietly(PySequence_Fast_GET_ITEM(o, at), left))
                return false;
        return true;
    }
    if (PyDict_CheckExact(o)) {
        while (PyDict_Next(o, &at, &key, &value))
            if (!dies_quietly(key, left) || !dies_quietly(value, left))
                return false;
        return true;
    }
    return is_number_or_text(o);
}

bool
cx_dies_quietly(PyObject *o)
{
    int left = MAX_ITEMS;
    return dies_quietly(o, &left);
}

/* ---- traversal ---- */

static int
traverse(Walk *w, PyObject *object)
{
    traverseproc visit_all = Py_TYPE(object)->tp_traverse;
    if (PyFunction_Check(object)) {
        w->passed[0] = PyFunction_GET_GLOBALS(object);
        w->passed[1] = ((PyFunctionObject *)object)->func_builtins;
    }
    int status = visit_all == NULL ? DONE : visit_all(object, visit, w);
    w->passed[0] = w->passed[1] = NULL;
#ifdef Py_TPFLAGS_INLINE_VALUES /* then tp_traverse visits the attributes, not the dict that has them */
    if (status == DONE && PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_INLINE_VALUES)) {
        PyObject *own = PyObject_GenericGetDict(object, NULL);
        status = own == NULL ? FAILED : visit(own, w);
        Py_XDECREF(own);
    }
#endif
    return status;
}

/* NumPy's arrays have no tp_traverse: visits an array's items, and its base. */
static int
enter_array(Walk *w, PyArrayObject *array)
{
    if (PyDataType_REFCHK(PyArray_DESCR(array)))
        return UNKNOWN;
    PyObject *base = PyArray_BASE(array);
    int status = base == NULL ? DONE : visit(base, w);
    return status != DONE ? status : traverse(w, (PyObject *)array);
}

/* Visits all objects to which an object refers. */
static int
enter(Walk *w, PyObject *object)
{
    if (PyModule_Check(object) ||
        (PyType_Check(object) && !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE)))
        return DONE;
    PyObject *id = PyLong_FromVoidPtr(object);
    int is_closed = id == NULL ? -1 : PyDict_Contains(w->closed, id);
    Py_XDECREF(id);
    if (is_closed != 0)
        return is_closed < 0 ? FAILED : DONE;
    if (w->is_for_own && is_of_module(Py_TYPE(object), "cinductor.capture.")) {
        int is_allowed = PySet_Contains(w->opened, (PyObject *)Py_TYPE(object));
        return is_allowed < 0 ? FAILED : is_allowed ? DONE : found_own(w, object);
    }
    if (PyArray_Check(object))
        return enter_array(w, (PyArrayObject *)object);
    if (PyArray_DescrCheck(object))
        return is_plain_dtype((PyArray_Descr *)object) ? DONE : UNKNOWN;
    int shows = shown_by(w, Py_TYPE(object));
    if (shows != SHOWS_all)
        return shows == SHOWS_no_references ? DONE : shows == SHOWS_some ? UNKNOWN : FAILED;
    int status = DONE;
    /* The collector does not follow weak references, but a call of one does. */
    if (PyWeakref_Check(object))
        status = visit(PyWeakref_GET_OBJECT(object), w);
    return status != DONE ? status : traverse(w, object);
}

static int
walk_from(Walk *w, PyObject *roots)
{
    int status = DONE;
    for (Py_ssize_t k = 0; status == DONE && k < PyList_GET_SIZE(roots); k++)
        status = visit(PyList_GET_ITEM(roots, k), w);
    while (w->height > 0 && (status == DONE || (status == UNKNOWN && w->is_for_own && w->left > 0)))
        status = enter(w, w->stack[--w->height]);
    return status;
}

static void
end(Walk *w)
{
    PyMem_Free(w->table);
    PyMem_Free(w->stack);
}

/* A new set with the ids of the wanted objects that were found, or of all. */
static PyObject *
ids_of(Walk *w, PyObject *wanted, bool is_all)
{
    PyObject *ids = PySet_New(NULL);
    int status = ids == NULL ? -1 : 0;

    for (Py_ssize_t k = 0; status == 0 && k < PyList_GET_SIZE(wanted); k++) {
        PyObject *object = PyList_GET_ITEM(wanted, k);
        if (!is_all && !(*slot_of(w->table, w->mask, (uintptr_t)object) & SEEN))
            continue;
        PyObject *id = PyLong_FromVoidPtr(object);
        status = id == NULL ? -1 : PySet_Add(ids, id);
        Py_XDECREF(id);
    }
    if (status < 0)
        Py_CLEAR(ids);
    return ids;
}

static int
want(Walk *w, PyObject *wanted)
{
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(wanted); k++) {
        int before = flag(w, PyList_GET_ITEM(wanted, k), WANTED);
        if (before < 0)
            return FAILED;
        w->wanted += before == 0;
    }
    return w->wanted == 0 ? FOUND : DONE;
}

static int
parse(PyObject *module, PyObject *args, const char *format, Walk *w, PyObject **roots,
      PyObject **wanted)
{
    *w = (Walk){.state = PyModule_GetState(module), .left = MAX_VISITS};
    return wanted != NULL
               ? PyArg_ParseTuple(args, format, &PyList_Type, roots, &PyList_Type, wanted, &PyDict_Type,
                                  &w->closed, &PyFrozenSet_Type, &w->atoms, &PyFrozenSet_Type,
                                  &w->modules, &PyFrozenSet_Type, &w->opened)
               : PyArg_ParseTuple(args, format, &PyList_Type, roots, &PyDict_Type, &w->closed,
                                  &PyFrozenSet_Type, &w->atoms, &PyFrozenSet_Type, &w->modules,
                                  &PyFrozenSet_Type, &w->opened);
}

/* reached(roots, wanted, closed, atoms, modules, opened): the ids of the wanted objects that can
 * be reached. */
static PyObject *
reached(PyObject *module, PyObject *args)
{
    Walk w;
    PyObject *roots = NULL, *wanted = NULL, *ids = NULL;

    if (!parse(module, args, "O!O!O!O!O!O!", &w, &roots, &wanted))
        return NULL;
    int status = want(&w, wanted);
    if (status == DONE)
        status = walk_from(&w, roots);
    if (status != FAILED)
        ids = ids_of(&w, wanted, status != DONE);
    end(&w);
    return ids;
}

/* traced_in(roots, closed, atoms, modules, opened): the traced values that can be reached, once
 * per reference; None if that is unknown. */
static PyObject *
traced_in(PyObject *module, PyObject *args)
{
    Walk w;
    PyObject *roots = NULL;

    if (!parse(module, args, "O!O!O!O!O!", &w, &roots, NULL))
        return NULL;
    w.traced = PyList_New(0);
    int status = w.traced == NULL || grow_table(&w) < 0 ? FAILED : walk_from(&w, roots);
    end(&w);
    if (status != DONE)
        Py_CLEAR(w.traced);
    if (status == UNKNOWN)
        Py_RETURN_NONE;
    return w.traced;
}

/* own_in(roots, closed, atoms, modules, allowed): a traced value or an object of capture that can
 * be reached, except of the allowed classes; None if there is none. Classes that hide references,
 * and objects beyond the limit, are left out. */
static PyObject *
own_in(PyObject *module, PyObject *args)
{
    Walk w;
    PyObject *roots = NULL;

    if (!parse(module, args, "O!O!O!O!O!", &w, &roots, NULL))
        return NULL;
    w.is_for_own = true;
    int status = grow_table(&w) < 0 ? FAILED : walk_from(&w, roots);
    end(&w);
    if (status == FAILED)
        return NULL;
    return Py_NewRef(w.own == NULL ? Py_None : w.own);
}

PyMethodDef cx_reach_methods[] = {
    CX_FUNCTION(own_in, own_in, METH_VARARGS),
    CX_FUNCTION(reached, reached, METH_VARARGS),
    CX_FUNCTION(traced_in, traced_in, METH_VARARGS),
    {NULL, NULL, 0, NULL},
};
