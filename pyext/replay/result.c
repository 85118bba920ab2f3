/* Materialises the result of a traced call: nested containers that contain traced values. */
#include "replay/result.h"
#include "state/device_array.h"
#include "value/index.h"

/* The attribute of a tuple's class, or of a base of it; borrowed, or NULL. No __getattr__ of a
 * metaclass is called. */
static PyObject *
of_tuples_class(PyObject *o, const char *text)
{
    bool is_subclass = PyTuple_Check(o) && !PyTuple_CheckExact(o);
    PyObject *name = is_subclass ? PyUnicode_InternFromString(text) : NULL,
             *found = name != NULL ? _PyType_Lookup(Py_TYPE(o), name) : NULL;

    Py_XDECREF(name);
    return found;
}

static bool
is_named_tuple(PyObject *o)
{
    return of_tuples_class(o, "_fields") != NULL;
}

int
cx_result_is_call(PyObject *result)
{
    PyObject *acts = of_tuples_class(result, "__cinductor_call__");
    return acts == NULL && PyErr_Occurred() ? -1 : acts != NULL && acts != Py_False;
}

PyObject *
cx_container_parts(PyObject *o, CxPieceKind *kind, PyObject **names)
{
    PyObject *parts = NULL;

    *names = NULL;
    if (PyTuple_CheckExact(o) || is_named_tuple(o)) {
        *kind = PyTuple_CheckExact(o) ? PIECE_tuple : PIECE_named;
        return PyTuple_GetSlice(o, 0, PY_SSIZE_T_MAX);
    }
    if (PyList_CheckExact(o)) {
        *kind = PIECE_list;
        return PyList_AsTuple(o);
    }
    if (PyDict_CheckExact(o)) {
        *kind = PIECE_dict;
        PyObject *values = PyDict_Values(o);
        *names = PySequence_Tuple(o);
        parts = values ? PyList_AsTuple(values) : NULL;
        Py_XDECREF(values);
        return parts;
    }
    PyObject *acts = of_tuples_class(o, "__cinductor_call__"); /* a call: (callable, arguments) */
    if (acts == NULL || PyTuple_GET_SIZE(o) == 0)
        return NULL;
    *kind = acts == Py_False ? PIECE_new : PIECE_call;
    *names = Py_NewRef(PyTuple_GET_ITEM(o, 0));
    return PyTuple_GetSlice(o, 1, PY_SSIZE_T_MAX);
}

PyObject *
cx_container_build(CxPieceKind kind, PyTypeObject *type, PyObject *names, Py_ssize_t n,
                   PyObject **parts)
{
    PyObject *result = NULL, *args = NULL;

    if (kind == PIECE_list || kind == PIECE_tuple || kind == PIECE_named) {
        result = kind == PIECE_list ? PyList_New(n) : PyTuple_New(n);
        for (Py_ssize_t k = 0; k < n; k++) {
            if (result == NULL)
                Py_DECREF(parts[k]);
            else if (kind == PIECE_list)
                PyList_SET_ITEM(result, k, parts[k]);
            else
                PyTuple_SET_ITEM(result, k, parts[k]);
        }
        if (kind == PIECE_named && result != NULL) {
            args = PyTuple_Pack(1, result);
            Py_SETREF(result, args ? PyTuple_Type.tp_new(type, args, NULL) : NULL);
            Py_XDECREF(args);
        }
        return result;
    }
    result = kind >= PIECE_new ? PyObject_Vectorcall(names, parts, (size_t)n, NULL) : PyDict_New();
    for (Py_ssize_t k = 0; k < n; k++) {
        if (kind == PIECE_dict && result != NULL &&
            PyDict_SetItem(result, PyTuple_GET_ITEM(names, k), parts[k]) < 0)
            Py_CLEAR(result);
        Py_DECREF(parts[k]);
    }
    return result;
}

/* ---- the first call ---- */

typedef struct Collect {
    CxStorage **wanted;
    int count, capacity;
} Collect;

static int
collect_storage(Collect *c, CxStorage *s)
{
    for (int k = 0; k < c->count && c->count <= CX_MAX_LEAVES; k++)
        if (c->wanted[k] == s)
            return 0;
    if (c->count == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 8;
        CxStorage **grown = PyMem_Realloc(c->wanted, sizeof *grown * (size_t)capacity);
        if (grown == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        c->wanted = grown;
        c->capacity = capacity;
    }
    c->wanted[c->count++] = s;
    return 0;
}

/* Collects a traced value. A data-dependent int needs a node, and a view the values that define
 * its position. */
static int
collect_traced(Collect *c, CxTraced *t)
{
    CxTracer *tracer = t->tracer;

    if (cx_is_size(t) && !tracer->has_run && !cx_size_is_known(tracer, t->storage->expr) &&
        cx_traced_prepare(t) < 0)
        return -1;
    for (int k = 0; t->view != NULL && k < tracer->ndefined; k++)
        if (cx_view_depends_on(t->view, cx_defined_symbol(tracer, k)) &&
            collect_storage(c, cx_defined_storage(tracer, k)) < 0)
            return -1;
    return collect_storage(c, t->storage);
}

static int
collect(Collect *c, PyObject *o, int depth)
{
    PyObject *names = NULL, *parts = NULL;
    CxPieceKind kind;
    int result = 0;

    if (cx_is_traced(o))
        return collect_traced(c, (CxTraced *)o);
    if (depth > 64)
        return 0;
    parts = cx_container_parts(o, &kind, &names);
    if (parts == NULL)
        result = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t k = 0; parts != NULL && result == 0 && k < PyTuple_GET_SIZE(parts); k++)
        result = collect(c, PyTuple_GET_ITEM(parts, k), depth + 1);
    Py_XDECREF(parts);
    Py_XDECREF(names);
    return result;
}

int
cx_result_collect(PyObject *result, CxStorage ***wanted, int *nwanted)
{
    Collect c = {NULL, 0, 0};
    int status = collect(&c, result, 0);
    *wanted = c.wanted;
    *nwanted = c.count;
    return status;
}

/* Materialises a container. Containers without traced values stay the same objects; memo
 * preserves the identity of objects returned twice. */
static PyObject *
materialise(PyObject *o, PyObject *memo, int depth)
{
    PyObject *names = NULL, *parts = NULL, *key = NULL, *result = NULL, **items = NULL;
    CxPieceKind kind;
    bool is_changed = false;
    Py_ssize_t n = 0, done = 0;

    if (cx_is_traced(o))
        return cx_device_result(((CxTraced *)o)->tracer->state, cx_traced_real((CxTraced *)o));
    parts = depth > 64 ? NULL : cx_container_parts(o, &kind, &names);
    if (parts == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(o);
    n = PyTuple_GET_SIZE(parts);
    key = PyLong_FromVoidPtr(o);
    result = key ? Py_XNewRef(PyDict_GetItemWithError(memo, key)) : NULL;
    if (result != NULL || PyErr_Occurred())
        goto done;
    items = PyMem_Calloc((size_t)n + 1, sizeof *items);
    if (items == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (; done < n; done++) {
        items[done] = materialise(PyTuple_GET_ITEM(parts, done), memo, depth + 1);
        if (items[done] == NULL)
            goto done;
        is_changed |= items[done] != PyTuple_GET_ITEM(parts, done);
    }
    if (is_changed || kind >= PIECE_new) {
        done = 0;
        result = cx_container_build(kind, Py_TYPE(o), names, n, items);
    } else {
        result = Py_NewRef(o);
    }
    if (result != NULL && PyDict_SetItem(memo, key, result) < 0)
        Py_CLEAR(result);
done:
    for (Py_ssize_t k = 0; k < done; k++)
        Py_XDECREF(items[k]);
    PyMem_Free(items);
    Py_XDECREF(key);
    Py_XDECREF(parts);
    Py_XDECREF(names);
    return result;
}

PyObject *
cx_result_materialise(PyObject *result)
{
    PyObject *memo = PyDict_New();
    PyObject *real = memo ? materialise(result, memo, 0) : NULL;
    Py_XDECREF(memo);
    return real;
}
