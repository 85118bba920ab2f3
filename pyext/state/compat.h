/* Hides the differences between the supported versions of CPython and NumPy. */
#ifndef CX_COMPAT_H
#define CX_COMPAT_H

/* NumPy's API is a table of object pointers that are converted to functions, which pedantic C
 * forbids. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#endif

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL cinductor_array_api
#ifndef CX_IMPORTS_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#if PY_VERSION_HEX < 0x030A0000
#error "Python 3.10 or newer is needed"
#endif

/* True if Python adds and multiplies a real number to the parts of a complex one without
 * converting it to complex first. An imaginary part then keeps its sign, its NaN and its
 * infinity. */
enum { CX_REAL_STAYS_REAL = PY_VERSION_HEX >= 0x030E0000 };

/* The innermost Python frame, borrowed, or NULL. */
static inline PyFrameObject *
cx_frame(void)
{
    return PyEval_GetFrame();
}

/* Assigns the locals of a running frame; 0 or -1. */
static inline int
cx_set_locals(PyFrameObject *frame, PyObject *values)
{
    PyObject *locals = PyObject_GetAttrString((PyObject *)frame, "f_locals"), *name, *value;
    Py_ssize_t at = 0;
    int failed = locals == NULL;
    while (!failed && PyDict_Next(values, &at, &name, &value))
        failed = PyObject_SetItem(locals, name, value) < 0;
#if PY_VERSION_HEX < 0x030D0000
    if (!failed)
        PyFrame_LocalsToFast(frame, 0); /* later versions write through */
    if (!failed && Py_REFCNT(locals) == 2) /* only the frame's: it keeps values that names drop */
        PyDict_Clear(locals);
#endif
    Py_XDECREF(locals);
    return failed ? -1 : 0;
}

/* A copy by PyMem_Malloc; NULL without memory. */
static inline char *
cx_copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = PyMem_Malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

/* Takes the current exception; NULL if there is none. */
static inline PyObject *
cx_take_exception(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL)
        return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_DECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Steals exception. */
static inline void
cx_restore_exception(PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception,
                  PyException_GetTraceback(exception));
#endif
}

/* Saves the current exception while other code runs that must not see it. Unlike cx_take_exception, this runs no Python code. */
typedef struct CxAside {
    PyObject *type, *value, *traceback;
} CxAside;

static inline CxAside
cx_set_aside(void)
{
    CxAside aside = {NULL, NULL, NULL};
#if PY_VERSION_HEX >= 0x030C0000
    aside.value = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&aside.type, &aside.value, &aside.traceback);
#endif
    return aside;
}

static inline void
cx_put_back(CxAside aside)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(aside.value);
#else
    PyErr_Restore(aside.type, aside.value, aside.traceback);
#endif
}

/* Sets the traceback of the current exception to the one it had when it was last caught, because
 * before 3.11 a bare `raise` restores the old one. */
static inline void
cx_keep_given_traceback(void)
{
#if PY_VERSION_HEX < 0x030B0000
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(traceback);
    PyErr_Restore(type, value, value ? PyException_GetTraceback(value) : NULL);
#endif
}

/* True if a complex array to the power 1 or 2.0 is computed by the general power: from NumPy 2.3
 * on. */
static inline int
cx_complex_powers_are_general(void)
{
    return PyArray_GetNDArrayCFeatureVersion() >= 0x14;
}

/* Flags of every type: attributes of the class cannot be set. */
#define CX_TYPE_FLAGS (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE)
/* A type of the module: its name, the struct of its objects, other flags, and its slots. */
#define CX_SPEC(name, object, flags, slots)                                                        \
    {"cinductor._core." name, sizeof(object), 0, CX_TYPE_FLAGS | (flags), slots}

/* Sets an item of a new list or tuple, and takes the reference. If there is none, with an exception, the sequence
 * becomes NULL. */
static inline void
cx_put_item(PyObject **sequence, Py_ssize_t k, PyObject *item)
{
    if (item == NULL)
        Py_CLEAR(*sequence);
    else if (PyList_CheckExact(*sequence))
        PyList_SET_ITEM(*sequence, k, item);
    else
        PyTuple_SET_ITEM(*sequence, k, item);
}

/* Appends an item to a list and takes the reference; if that fails, the list becomes NULL. */
static inline void
cx_add_item(PyObject **list, PyObject *item)
{
    if (item == NULL || PyList_Append(*list, item) < 0)
        Py_CLEAR(*list);
    Py_XDECREF(item);
}

/* The end of a tp_dealloc: frees an object of such a type, which holds a reference to its type. */
static inline void
cx_object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* A path, which to the core is a byte string; NULL gives "", and the reverse. */
static inline PyObject *
cx_path(const char *path)
{
    return PyUnicode_DecodeFSDefault(path ? path : "");
}

/* Returns a borrowed value, or NULL without an exception; *failed is -1 if the lookup raised. */
static inline PyObject *
cx_dict_find(PyObject *dict, PyObject *key, int *failed)
{
    PyObject *value = PyDict_GetItemWithError(dict, key);
    *failed = value == NULL && PyErr_Occurred() != NULL;
    return value;
}

/* The value of that name, borrowed, or NULL. It allocates no string, so it cannot fail and keeps
 * the current exception, also when out of memory. */
static inline PyObject *
cx_dict_named(PyObject *dict, const char *name)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value))
        if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, name) == 0)
            return value;
    return NULL;
}

#endif
