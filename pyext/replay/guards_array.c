/* The guard of an array: finds where an array differs. */
#include "replay/guards_private.h"
#include "state/array.h"

bool
cx_extent_fits(const CxExtent *extent, int64_t found, int64_t *table)
{
    if (extent->expr == NULL)
        return found == extent->constant;
    if (extent->is_definition)
        table[extent->number] = found;
    return true;
}

/* The axis that has one element now although the program is for any number, or -1. Its stride
 * does not tell its place in the stride order, and results of the array would be in C order. */
static int
axis_of_one(const CxCheck *c, const npy_intp *dims)
{
    int found = -1;
    for (int k = 0; k < c->rank; k++) {
        if (dims[k] == 0)
            return -1;
        if (dims[k] == 1 && c->sizes[k].expr != NULL)
            found = k;
    }
    return found;
}

/* True if strides are compared. A new empty array, and its views, have strides of 0 in NumPy. */
bool
cx_check_compares_strides(const CxCheck *c, PyArrayObject *a)
{
    if (c->shows_strides)
        return c->count >= 0 || !cx_is_new_and_empty(a);
    return c->looks_at_strides && PyArray_SIZE(a) != 0;
}

static int
test_flags(const CxCheck *c, PyArrayObject *a)
{
    int others = (PyArray_FLAGS(a) & c->flags) ^ c->wanted;
    return others == 0                    ? AGREES
           : others & NPY_ARRAY_WRITEABLE ? OTHER_WRITABLE
           : others & NPY_ARRAY_ALIGNED   ? OTHER_ALIGNED
                                          : OTHER_LAYOUT;
}

static int
test_strides(const CxCheck *c, const npy_intp *dims, const npy_intp *strides, int64_t *table)
{
    for (int k = 0; k < c->rank; k++) {
        bool matters = dims[k] > 1 || c->shows_strides;
        if (c->strides[k].expr == NULL && strides[k] != c->strides[k].constant && matters)
            return OTHER_LAYOUT;
        if (c->strides[k].is_definition)
            table[c->strides[k].shown] = dims[k] > 1 ? strides[k] : 0;
    }
    return AGREES;
}

int
cx_check_test_array(const CxCheck *c, PyObject *value, int64_t *table)
{
    PyArrayObject *a = (PyArrayObject *)value;
    if (!PyArray_CheckExact(value))
        return OTHER_CLASS;
    if (PyArray_NDIM(a) != c->rank)
        return OTHER_RANK;
    if (PyArray_DESCR(a) != c->descr && !PyArray_EquivTypes(PyArray_DESCR(a), c->descr))
        return OTHER_DTYPE;
    const npy_intp *dims = PyArray_DIMS(a);
    for (int k = 0; k < c->rank; k++)
        if (!cx_extent_fits(&c->sizes[k], dims[k], table))
            return OTHER_SIZE + k;
    if ((PyArray_FLAGS(a) & c->flags) != c->wanted)
        return test_flags(c, a);
    if (c->is_permuted && axis_of_one(c, dims) >= 0)
        return ONE_ELEMENT + axis_of_one(c, dims);
    if (!cx_check_compares_strides(c, a))
        return AGREES;
    return test_strides(c, dims, PyArray_STRIDES(a), table);
}
