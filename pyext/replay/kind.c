/* Kinds of calls. A kind is a digest: calls of two kinds that share one are taken for calls of one kind. That changes
 * who runs a call and when it is compiled, and no result: the original function can run each of them. */
#include "replay/kind.h"

#include <math.h>

enum { DEEPEST = 4, MAX_ITEMS = 8, MAX_CHARACTERS = 64 };

typedef struct Walk {
    CxKind kind;
    double largest;
} Walk;

static uint64_t
extended(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 29;
}

static void
add_size(Walk *w, int64_t size)
{
    w->kind.sizes = extended(w->kind.sizes, (uint64_t)size);
    w->largest = fmax(w->largest, fabs((double)size));
}

static void
add_array(Walk *w, PyArrayObject *a)
{
    const PyArray_Descr *dtype = PyArray_DESCR(a);

    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned)dtype->type_num);
    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned char)dtype->byteorder);
    w->kind.kind = extended(w->kind.kind, (uint64_t)(unsigned)PyArray_FLAGS(a));
    for (int k = 0; k < PyArray_NDIM(a); k++) {
        npy_intp size = PyArray_DIM(a, k);
        w->kind.kind = extended(w->kind.kind, size < 2 ? (uint64_t)size : 2);
        add_size(w, size);
    }
    w->largest = fmax(w->largest, (double)PyArray_SIZE(a));
}

static void add_value(Walk *w, PyObject *value, int depth);

/* The first items: those of a long container may differ from call to call. */
static void
add_items(Walk *w, PyObject *value, int depth)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(value);

    if (PyTuple_CheckExact(value))
        w->kind.kind = extended(w->kind.kind, (uint64_t)count);
    add_size(w, count);
    for (Py_ssize_t k = 0; k < count && k < MAX_ITEMS && depth < DEEPEST; k++)
        add_value(w, PySequence_Fast_GET_ITEM(value, k), depth + 1);
}

static void
add_dict(Walk *w, PyObject *dict, int depth)
{
    Py_ssize_t at = 0;
    PyObject *name = NULL, *item = NULL;

    add_size(w, PyDict_GET_SIZE(dict));
    for (int k = 0; k < MAX_ITEMS && depth < DEEPEST && PyDict_Next(dict, &at, &name, &item); k++) {
        add_value(w, name, depth + 1);
        add_value(w, item, depth + 1);
    }
}

/* Runs no code of the user's. */
static void
add_value(Walk *w, PyObject *value, int depth)
{
    PyTypeObject *cls = Py_TYPE(value);
    bool is_itself = value == Py_None || PyBool_Check(value) || PyType_Check(value) ||
                     cls == &PyFunction_Type || cls == &PyCFunction_Type;

    w->kind.kind = extended(w->kind.kind, (uint64_t)(uintptr_t)(is_itself ? (void *)value : (void *)cls));
    if (cls == &PyArray_Type)
        add_array(w, (PyArrayObject *)value);
    else if (cls == &PyLong_Type) {
        int overflow = 0;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        add_size(w, overflow ? INT64_MAX : number);
    } else if (cls == &PyUnicode_Type && PyUnicode_GET_LENGTH(value) > MAX_CHARACTERS)
        add_size(w, PyUnicode_GET_LENGTH(value)); /* data, and no mode */
    else if (cls == &PyUnicode_Type)
        w->kind.kind = extended(w->kind.kind, (uint64_t)PyObject_Hash(value));
    else if (cls == &PyTuple_Type || cls == &PyList_Type)
        add_items(w, value, depth);
    else if (cls == &PyDict_Type)
        add_dict(w, value, depth);
}

CxKind
cx_kind_of(PyObject *const *bound, int count)
{
    Walk walk = {.largest = 1};

    for (int k = 0; k < count; k++)
        add_value(&walk, bound[k], 0);
    walk.kind.class = ilogb(walk.largest);
    return walk.kind;
}

PyObject *
cx_kind_object(PyObject *module, PyObject *bound)
{
    (void)module;
    CX_ENTRY();
    if (!PyTuple_CheckExact(bound))
        return PyErr_Format(PyExc_TypeError, "wanted: a tuple of arguments, got %s",
                            Py_TYPE(bound)->tp_name);
    CxKind kind = cx_kind_of(((PyTupleObject *)bound)->ob_item, (int)PyTuple_GET_SIZE(bound));
    const uint64_t parts[2] = {kind.kind, kind.sizes};
    return PyBytes_FromStringAndSize((const char *)parts, sizeof parts);
}

bool
cx_kind_from_object(PyObject *object, CxKind *kind)
{
    uint64_t parts[2];

    if (!PyBytes_CheckExact(object) || PyBytes_GET_SIZE(object) != (Py_ssize_t)sizeof parts) {
        PyErr_SetString(PyExc_ValueError, "the kind of a call is what kind_of returns");
        return false;
    }
    memcpy(parts, PyBytes_AS_STRING(object), sizeof parts);
    *kind = (CxKind){.kind = parts[0], .sizes = parts[1]};
    return true;
}
