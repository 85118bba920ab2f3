/* Recognises calls that run in NumPy, without Python code. A key is made from the values of a
 * call by key_of in job.py:
 *
 *     the class of a value
 *     (class, dtype, shape)                         of an array
 *     (class, value)                                of a value that is compared
 *     (class, keys of the items)                    of a tuple or list
 *     (class, (class of a name, name, key), ...)    of a dict
 *
 * Matching runs no code of the user's. */
#include "replay/specialization.h"

static int is_like(PyObject *key, PyObject *value);

static int
is_array_like(PyObject *key, PyArrayObject *a)
{
    PyObject *shape = PyTuple_GET_ITEM(key, 2);

    if ((PyObject *)PyArray_DESCR(a) != PyTuple_GET_ITEM(key, 1) ||
        PyTuple_GET_SIZE(shape) != PyArray_NDIM(a))
        return 0;
    for (int k = 0; k < PyArray_NDIM(a); k++)
        if (PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, k)) != PyArray_DIM(a, k))
            return 0;
    return 1;
}

static int
are_items_like(PyObject *key, PyObject *value)
{
    bool is_tuple = PyTuple_CheckExact(value);
    Py_ssize_t count = PyTuple_GET_SIZE(key) - 1;
    int found = (is_tuple ? PyTuple_GET_SIZE(value) : PyList_GET_SIZE(value)) == count;

    for (Py_ssize_t k = 0; k < count && found > 0; k++)
        found = is_like(PyTuple_GET_ITEM(key, k + 1),
                        is_tuple ? PyTuple_GET_ITEM(value, k) : PyList_GET_ITEM(value, k));
    return found;
}

static int
is_dict_like(PyObject *key, PyObject *value)
{
    Py_ssize_t at = 0, k = 1, count = PyTuple_GET_SIZE(key) - 1;
    int found = PyDict_GET_SIZE(value) == count;
    PyObject *name, *item;

    while (found > 0 && k <= count && PyDict_Next(value, &at, &name, &item)) {
        PyObject *entry = PyTuple_GET_ITEM(key, k++);
        if (!PyUnicode_CheckExact(name) ||
            PyTuple_GET_ITEM(entry, 0) != (PyObject *)&PyUnicode_Type)
            return 0;
        found = PyObject_RichCompareBool(PyTuple_GET_ITEM(entry, 1), name, Py_EQ);
        found = found > 0 ? is_like(PyTuple_GET_ITEM(entry, 2), item) : found;
    }
    return found;
}

/* 1, 0, or -1 with an exception. */
static int
is_like(PyObject *key, PyObject *value)
{
    PyTypeObject *cls = Py_TYPE(value);

    if (!PyTuple_CheckExact(key))
        return key == (PyObject *)cls;
    if (PyTuple_GET_ITEM(key, 0) != (PyObject *)cls)
        return 0;
    if (cls == &PyArray_Type)
        return is_array_like(key, (PyArrayObject *)value);
    if (cls == &PyTuple_Type || cls == &PyList_Type)
        return are_items_like(key, value);
    if (cls == &PyDict_Type)
        return is_dict_like(key, value);
    return PyObject_RichCompareBool(PyTuple_GET_ITEM(key, 1), value, Py_EQ);
}

int
cx_is_plain(PyObject *keys, PyObject *const *bound, int count)
{
    int found = 0;

    if (keys == NULL || PyTuple_GET_SIZE(keys) == 0)
        return 0;
    Py_INCREF(keys);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keys) && found == 0; k++) {
        PyObject *key = PyTuple_GET_ITEM(keys, k);
        found = 1;
        for (int j = 0; j < count && found > 0; j++)
            found = is_like(PyTuple_GET_ITEM(key, j), bound[j]);
    }
    Py_DECREF(keys);
    return found;
}
