/* The slots of a set's items. Which of two colliding items comes first depends on everything
 * that was added and removed before. */
#include "value/value.h"

/* are_placed_alike(a, b): True if two sets have the same objects in the same slots, so that they
 * stay equal in order whatever is added. */
PyObject *
cx_are_placed_alike(PyObject *module, PyObject *args)
{
    PySetObject *a, *b;
    bool alike;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PySet_Type, &a, &PySet_Type, &b))
        return NULL;
    alike = a->mask == b->mask && a->fill == b->fill && a->used == b->used;
    for (Py_ssize_t i = 0; alike && i <= a->mask; i++)
        alike = a->table[i].key == b->table[i].key;
    return PyBool_FromLong(alike);
}

/* The next item in the order of iteration; NULL at the end. Removed items have the hash -1. */
static setentry *
next_item(PySetObject *set, Py_ssize_t *position)
{
    while (*position <= set->mask) {
        setentry *entry = &set->table[(*position)++];
        if (entry->key != NULL && entry->hash != -1)
            return entry;
    }
    return NULL;
}

/* exchange_items(set, items): replaces the items of the set, in the order of iteration. */
PyObject *
cx_exchange_items(PyObject *module, PyObject *args)
{
    PyObject *set, *items;
    Py_ssize_t position = 0;
    setentry *entry;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &set, &PyList_Type, &items))
        return NULL;
    if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != PyList_GET_SIZE(items))
        return PyErr_Format(PyExc_ValueError, "a set and as many items are expected");
    for (Py_ssize_t i = 0; (entry = next_item((PySetObject *)set, &position)) != NULL; i++) {
        PyObject *item = PyList_GET_ITEM(items, i), *old = entry->key;
        Py_hash_t hash = item == old ? entry->hash : PyObject_Hash(item);
        if (hash == -1)
            return NULL;
        if (hash != entry->hash)
            return PyErr_Format(PyExc_ValueError, "%R does not hash as what it stands for", item);
        entry->key = Py_NewRef(item);
        Py_DECREF(old);
    }
    Py_RETURN_NONE;
}

/* Compares the struct with the headers, because the table of a set is internal to CPython and
 * writing to a different struct would corrupt it. */
int
cx_check_sets(void)
{
    PyObject *set = PySet_New(NULL), *item = PyLong_FromLong(3);
    int status = set && item && PySet_Add(set, item) == 0 ? 0 : -1;
    const PySetObject *s = (PySetObject *)set;
    Py_ssize_t position = 0;

    if (status == 0) {
        bool is_known = s->used == 1 && s->fill == 1 && s->mask == PySet_MINSIZE - 1 &&
                        s->table == s->smalltable;
        const setentry *entry = is_known ? next_item((PySetObject *)set, &position) : NULL;
        if (entry == NULL || entry->key != item || entry->hash != PyObject_Hash(item) ||
            next_item((PySetObject *)set, &position) != NULL) {
            PyErr_SetString(PyExc_ImportError, "sets of this Python have a layout that is not known");
            status = -1;
        }
    }
    Py_XDECREF(set);
    Py_XDECREF(item);
    return status;
}
