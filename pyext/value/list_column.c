/* Lists of numbers as arrays. The items are bools, ints or floats, all of one class, or tuples of
 * such numbers: then there is an array for each place in the tuples.
 *
 * A list of lists of one length is an array of rank 2; of lists of several lengths, the items are
 * put one after another. A call reads the arrays. What it has changed in an array of numbers is
 * stored in the list afterwards. */
#include "state/array.h"
#include "value/value.h"

enum {
    ITEM = 8,       /* bytes of an int or float */
    MAX_PARTS = 16, /* of a tuple */
};
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

/* The columns of many items that are numbers, or tuples of numbers, of the same classes. */
typedef struct Columns {
    bool are_tuples;
    int count, types[MAX_PARTS];
    PyObject *arrays[MAX_PARTS];
} Columns;

static void
drop(Columns *c)
{
    for (int k = 0; k < c->count; k++)
        Py_CLEAR(c->arrays[k]);
}

/* Makes arrays of these sizes for items like one. 0: there are none for it; -1 with an exception. */
static int
begin(Columns *c, PyObject *item, int rank, npy_intp *sizes)
{
    memset(c, 0, sizeof *c);
    c->are_tuples = PyTuple_CheckExact(item);
    Py_ssize_t count = c->are_tuples ? PyTuple_GET_SIZE(item) : 1;
    if (count < 1 || count > MAX_PARTS)
        return 0;
    for (c->count = 0; c->count < count; c->count++) {
        int k = c->count;
        c->types[k] = type_of(c->are_tuples ? PyTuple_GET_ITEM(item, k) : item);
        if (c->types[k] != NPY_NOTYPE)
            c->arrays[k] = PyArray_SimpleNew(rank, sizes, c->types[k]);
        if (c->arrays[k] == NULL) {
            drop(c);
            return c->types[k] == NPY_NOTYPE ? 0 : -1;
        }
    }
    return 1;
}

/* Writes the items of a list into consecutive rows; false if one of them has other classes. */
static bool
fill(Columns *c, npy_intp place, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++, place++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (c->are_tuples && (!PyTuple_CheckExact(item) || PyTuple_GET_SIZE(item) != c->count))
            return false;
        for (int k = 0; k < c->count; k++) {
            char *data = PyArray_DATA((PyArrayObject *)c->arrays[k]);
            npy_intp step = c->types[k] == NPY_BOOL ? 1 : ITEM;
            PyObject *part = c->are_tuples ? PyTuple_GET_ITEM(item, k) : item;
            if (!bytes_of(part, c->types[k], data + place * step))
                return false;
        }
    }
    return true;
}

/* The array, or the tuple of arrays. Gives the columns up. */
static PyObject *
taken(Columns *c)
{
    PyObject *made;

    if (!c->are_tuples)
        return c->arrays[0];
    made = PyTuple_New(c->count);
    for (int k = 0; made != NULL && k < c->count; k++)
        PyTuple_SET_ITEM(made, k, Py_NewRef(c->arrays[k]));
    drop(c);
    return made;
}

/* Where the items of each list in a list begin, and where the last ones end, if these are put one
 * after another; sample: the first item. NULL without an exception if an item is no list. */
static PyObject *
begins_of(PyObject *list, PyObject **sample)
{
    npy_intp count = PyList_GET_SIZE(list), size = count + 1;
    PyObject *begins = PyArray_SimpleNew(1, &size, NPY_INT64);
    int64_t *at = begins ? PyArray_DATA((PyArrayObject *)begins) : NULL;

    *sample = NULL;
    if (at != NULL)
        at[0] = 0;
    for (npy_intp k = 0; at != NULL && k < count; k++) {
        PyObject *row = PyList_GET_ITEM(list, k);
        if (!PyList_CheckExact(row)) {
            Py_DECREF(begins);
            return NULL;
        }
        if (*sample == NULL && PyList_GET_SIZE(row) > 0)
            *sample = PyList_GET_ITEM(row, 0);
        at[k + 1] = at[k] + PyList_GET_SIZE(row);
    }
    return begins;
}

/* The columns of a list of lists: an array of rank 2, or where each list begins and the columns of
 * all items. NULL without an exception: there are none. */
static PyObject *
of_lists(PyObject *list)
{
    PyObject *sample, *begins = begins_of(list, &sample), *made = NULL;
    Py_ssize_t count = PyList_GET_SIZE(list), length;
    npy_intp sizes[2], total = begins ? ((int64_t *)PyArray_DATA((PyArrayObject *)begins))[count] : 0;
    int is_table = 0, status = 0;
    Columns c;

    if (begins != NULL && sample != NULL) {
        length = PyList_GET_SIZE(PyList_GET_ITEM(list, 0));
        is_table = PyTuple_CheckExact(sample) ? 0 : are_rows(list, length);
        sizes[0] = is_table ? count : total;
        sizes[1] = length;
        status = is_table < 0 ? -1 : begin(&c, sample, is_table ? 2 : 1, sizes);
        if (is_table < 0)
            PyErr_NoMemory();
    }
    if (status > 0) {
        const int64_t *at = PyArray_DATA((PyArrayObject *)begins);
        bool is_filled = true;
        for (Py_ssize_t k = 0; k < count && is_filled; k++)
            is_filled = fill(&c, at[k], PyList_GET_ITEM(list, k));
        if (is_filled)
            made = taken(&c);
        else
            drop(&c);
        if (made != NULL && !is_table)
            Py_SETREF(made, Py_BuildValue("ON", begins, Py_NewRef(made)));
    }
    Py_XDECREF(begins);
    return made;
}

/* list_column(list): the arrays of the items of a list, or None. */
PyObject *
cx_list_column(PyObject *module, PyObject *list)
{
    PyObject *made = NULL;
    Columns c;
    int status;

    (void)module;
    if (!PyList_CheckExact(list) || PyList_GET_SIZE(list) == 0)
        Py_RETURN_NONE;
    if (PyList_CheckExact(PyList_GET_ITEM(list, 0))) {
        made = of_lists(list);
    } else {
        npy_intp size = PyList_GET_SIZE(list);
        status = begin(&c, PyList_GET_ITEM(list, 0), 1, &size);
        if (status > 0 && fill(&c, 0, list)) {
            made = taken(&c);
            if (made != NULL && c.are_tuples)
                Py_SETREF(made, PyTuple_Pack(1, made));
        } else if (status > 0) {
            drop(&c);
        }
    }
    if (made == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return made;
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
