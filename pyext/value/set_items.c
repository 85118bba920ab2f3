/* The places of a set's items: which of two that collide comes first, now and when more are added,
 * depends on all that was added and removed before. */
#include "value/value.h"

/* are_placed_alike(a, b): whether two sets hold the same objects in the same places, so that they
 * stay alike whatever is added. */
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

/* The next item in the order of iteration; NULL at the end. Removed ones have the hash -1. */
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

/* exchange_items(set, items): as many as it has, in the order of iteration. */
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
