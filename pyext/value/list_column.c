/* Lists of numbers as arrays: a list of bools, ints or floats, or of lists of one length with such
 * items, all of one class. A call reads the array; what it has changed there is stored in the list
 * afterwards. */
#include "state/array.h"
#include "value/value.h"

enum { ITEM = 8 }; /* bytes of an int or float */
#define CHANGED "a list has changed during the call"

/* NumPy's number of the type of an item; NPY_NOTYPE for other classes. */
static int
type_of(PyObject *item)
{
    return PyBool_Check(item)         ? NPY_BOOL
           : PyLong_CheckExact(item)  ? NPY_INT64
           : PyFloat_CheckExact(item) ? NPY_DOUBLE
                                      : NPY_NOTYPE;
}

/* Writes the bytes of an item; false if it is of another class, or an int of more than 64 bits. */
static bool
bytes_of(PyObject *item, int type, char *out)
{
    int overflow = 0;

    if (type_of(item) != type)
        return false;
    if (type == NPY_BOOL) {
        *out = item == Py_True;
    } else if (type == NPY_DOUBLE) {
        double number = PyFloat_AS_DOUBLE(item);
        memcpy(out, &number, ITEM);
    } else {
        int64_t number = PyLong_AsLongLongAndOverflow(item, &overflow);
        memcpy(out, &number, ITEM);
    }
    return overflow == 0;
}

static PyObject *
item_from(const char *bytes, int type)
{
    double real;
    int64_t whole;

    if (type == NPY_BOOL)
        return PyBool_FromLong(*bytes);
    memcpy(&real, bytes, ITEM);
    memcpy(&whole, bytes, ITEM);
    return type == NPY_DOUBLE ? PyFloat_FromDouble(real) : PyLong_FromLongLong(whole);
}

static int
by_address(const void *a, const void *b)
{
    const PyObject *x = *(PyObject *const *)a, *y = *(PyObject *const *)b;
    return (x > y) - (x < y);
}

/* True if all items of a list are lists of that length, and no list occurs twice. -1: no memory. */
static int
are_rows(PyObject *list, Py_ssize_t length)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    PyObject **rows = PyMem_New(PyObject *, count);
    bool are_distinct = true;

    if (rows == NULL)
        return -1;
    for (Py_ssize_t k = 0; k < count && are_distinct; k++) {
        rows[k] = PyList_GET_ITEM(list, k);
        are_distinct = PyList_CheckExact(rows[k]) && PyList_GET_SIZE(rows[k]) == length;
    }
    if (are_distinct)
        qsort(rows, (size_t)count, sizeof *rows, by_address);
    for (Py_ssize_t k = 1; k < count && are_distinct; k++)
        are_distinct = rows[k] != rows[k - 1];
    PyMem_Free(rows);
    return are_distinct;
}

/* Fills an array with the items of a list; false if one of them is of another class. */
static bool
fill(PyObject *list, int type, char *out)
{
    Py_ssize_t step = type == NPY_BOOL ? 1 : ITEM;

    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(list); k++)
        if (!bytes_of(PyList_GET_ITEM(list, k), type, out + k * step))
            return false;
    return true;
}

/* list_column(list): the array of the items of a list, or None. */
PyObject *
cx_list_column(PyObject *module, PyObject *list)
{
    npy_intp sizes[2] = {0, 0};
    PyObject *first, *array;
    bool is_filled = true;
    int rank = 1, are_distinct;

    (void)module;
    if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) == 0)
        Py_RETURN_NONE;
    first = PyList_GET_ITEM(list, 0);
    sizes[0] = PyList_GET_SIZE(list);
    if (PyList_CheckExact(first) && PyList_GET_SIZE(first) > 0) {
        rank = 2;
        sizes[1] = PyList_GET_SIZE(first);
        if ((are_distinct = are_rows(list, sizes[1])) < 0)
            return PyErr_NoMemory();
        if (!are_distinct)
            Py_RETURN_NONE;
        first = PyList_GET_ITEM(first, 0);
    }
    if (type_of(first) == NPY_NOTYPE)
        Py_RETURN_NONE;
    array = PyArray_SimpleNew(rank, sizes, type_of(first));
    if (array == NULL)
        return NULL;
    char *data = PyArray_DATA((PyArrayObject *)array);
    npy_intp step = PyArray_STRIDE((PyArrayObject *)array, 0);
    if (rank == 1)
        is_filled = fill(list, type_of(first), data);
    for (Py_ssize_t k = 0; rank == 2 && is_filled && k < sizes[0]; k++)
        is_filled = fill(PyList_GET_ITEM(list, k), type_of(first), data + k * step);
    if (is_filled)
        return array;
    Py_DECREF(array);
    Py_RETURN_NONE;
}

/* Stores those numbers in a list that differ from its items. -1 with an exception, also if the list
 * has another length by now: an item that is replaced may run Python when it is freed. */
static int
store(PyObject *list, npy_intp count, int type, const char *data)
{
    Py_ssize_t step = type == NPY_BOOL ? 1 : ITEM;
    char before[ITEM];

    for (npy_intp k = 0; k < count; k++) {
        const char *now = data + k * step;
        if (!PyList_Check(list) || PyList_GET_SIZE(list) != count) {
            PyErr_SetString(PyExc_RuntimeError, CHANGED);
            return -1;
        }
        if (bytes_of(PyList_GET_ITEM(list, k), type, before) && !memcmp(before, now, (size_t)step))
            continue;
        PyObject *item = item_from(now, type);
        if (item == NULL || PyList_SetItem(list, k, item) < 0)
            return -1;
    }
    return 0;
}

/* Stores the rows of an array in the lists of a list. -1 with an exception. */
static int
store_rows(PyObject *list, PyArrayObject *array, int type)
{
    int status = 0;

    for (npy_intp k = 0; status == 0 && k < PyArray_DIM(array, 0); k++) {
        PyObject *row = PySequence_GetItem(list, k); /* the list may change meanwhile */
        if (row == NULL)
            return -1;
        status = store(row, PyArray_DIM(array, 1), type,
                       PyArray_BYTES(array) + k * PyArray_STRIDE(array, 0));
        Py_DECREF(row);
    }
    return status;
}

/* store_column(list, array): stores the array in the list that it was made of. */
PyObject *
cx_store_column(PyObject *module, PyObject *args)
{
    PyObject *list, *made;
    int status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &list, &PyArray_Type, &made))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)made;
    int rank = PyArray_NDIM(array), type = PyArray_TYPE(array);
    bool is_like = PyArray_IS_C_CONTIGUOUS(array) && rank >= 1 &&
                   PyArray_DIM(array, 0) == PyList_GET_SIZE(list) &&
                   (type == NPY_BOOL || type == NPY_INT64 || type == NPY_DOUBLE);
    int are_distinct = is_like && rank == 2 ? are_rows(list, PyArray_DIM(array, 1)) : rank == 1;
    if (are_distinct < 0)
        return PyErr_NoMemory();
    if (!is_like || !are_distinct)
        return PyErr_Format(PyExc_RuntimeError, CHANGED);
    status = rank == 1 ? store(list, PyArray_DIM(array, 0), type, PyArray_DATA(array))
                       : store_rows(list, array, type);
    if (status < 0)
        return NULL;
    Py_RETURN_NONE;
}
