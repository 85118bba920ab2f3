/* Checks names in dicts and classes. A stamp makes this cheap: nothing is looked up while the
 * stamp equals that of the last look.
 *
 * Up to Python 3.11 a dict has its own version number. From 3.12 on a watcher counts the changes
 * of all watched dicts together; these are few: the names of NumPy, math and builtins. */
#include "replay/namespace.h"

#include <stdatomic.h>

#if PY_VERSION_HEX >= 0x030C0000

static _Atomic uint64_t changes = 1;
static _Atomic int watcher = -1;

static int
note_change(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)event, (void)dict, (void)key, (void)value;
    atomic_fetch_add(&changes, 1);
    return 0;
}

int
cx_namespace_watch(PyObject *space)
{
    if (!PyDict_Check(space))
        return 0;
    if (atomic_load(&watcher) < 0) {
        int made = PyDict_AddWatcher(note_change);
        if (made < 0)
            return -1;
        atomic_store(&watcher, made);
    }
    return PyDict_Watch(atomic_load(&watcher), space);
}

static uint64_t
dict_stamp(PyObject *dict)
{
    (void)dict;
    return atomic_load(&changes);
}

#else

int
cx_namespace_watch(PyObject *space)
{
    (void)space;
    return 0;
}

static uint64_t
dict_stamp(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_version_tag;
}

#endif

uint64_t
cx_namespace_stamp(PyObject *space)
{
    if (PyDict_Check(space))
        return dict_stamp(space);
    return PyType_Check(space) ? ((PyTypeObject *)space)->tp_version_tag : 0;
}

/* The names that the class itself defines; a new reference. */
static PyObject *
own_names(PyTypeObject *class)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(class);
#else
    return Py_XNewRef(class->tp_dict);
#endif
}

/* The first entry for a name in the classes that follow `after` in the class's MRO: the lookup of super(). */
static PyObject *
find_after(PyTypeObject *class, PyObject *name, PyObject *after)
{
    PyObject *mro = class->tp_mro, *found = NULL;
    bool is_following = false;

    for (Py_ssize_t k = 0; mro != NULL && found == NULL && !PyErr_Occurred() && k < PyTuple_GET_SIZE(mro); k++) {
        PyObject *base = PyTuple_GET_ITEM(mro, k);
        PyObject *dict = is_following ? own_names((PyTypeObject *)base) : NULL;
        found = dict != NULL ? PyDict_GetItemWithError(dict, name) : NULL;
        Py_XDECREF(dict);
        is_following |= base == after;
    }
    return found;
}

/* Looks a name up; borrowed, NULL if it is missing or with an exception. A tuple (name, class)
 * in a class means the lookup of super(), which starts after that class. A class in a class
 * means whether it is one of its bases. */
static PyObject *
find(PyObject *space, PyObject *name)
{
    PyTypeObject *class = PyType_Check(space) ? (PyTypeObject *)space : NULL;
    if (class != NULL && PyType_Check(name))
        return PyType_IsSubtype(class, (PyTypeObject *)name) ? Py_True : Py_False;
    bool is_super = class != NULL && PyTuple_CheckExact(name) && PyTuple_GET_SIZE(name) == 2;
    PyObject *found =
        is_super ? find_after(class, PyTuple_GET_ITEM(name, 0), PyTuple_GET_ITEM(name, 1))
        : class  ? _PyType_Lookup(class, name)
                 : PyDict_GetItemWithError(space, name);
    return found;
}

static bool
stands_for(PyObject *space, PyObject *name, PyObject *value, PyObject *missing)
{
    if (name != Py_None) {
        PyObject *found = find(space, name);
        return found == value || (found == NULL && value == missing && !PyErr_Occurred());
    }
    PyObject *answer = PyObject_CallOneArg(value, space);
    bool is_false = answer != NULL && PyObject_IsTrue(answer) == 0;
    Py_XDECREF(answer);
    return is_false;
}

bool
cx_namespace_has(PyObject *space, PyObject *pairs, PyObject *missing, Py_ssize_t *which)
{
    for (Py_ssize_t k = 0; k + 1 < PyTuple_GET_SIZE(pairs); k += 2)
        if (!stands_for(space, PyTuple_GET_ITEM(pairs, k), PyTuple_GET_ITEM(pairs, k + 1), missing)) {
            *which = k;
            return false;
        }
    return true;
}
