/* Draws of a RandomState (np.random's functions have one) that differ from a Generator's. NumPy
 * promises that its streams never change and does not export these routines, so they are written
 * out here.
 *
 * Normal numbers are made in pairs, and the second one is kept in the RandomState. Its address
 * is found relative to the RandomState's copy of the bit generator's functions, and only used if
 * the state that NumPy reports has the same number. */
#include "program/direct.h"

#include <math.h>
#include <numpy/random/bitgen.h>

struct CxLegacyGauss {
    bitgen_t *bits;
    int is_there;
    double value;
};

/* True if the second number of a pair may be at this offset. */
static bool
is_legacy_gauss(const char *object, Py_ssize_t size, const CxLegacyGauss *gauss, const bitgen_t *bits)
{
    const char *own = (const char *)gauss->bits;

    return own >= object + sizeof(PyObject) && own + sizeof *bits <= object + size &&
           memcmp(own, bits, sizeof *bits) == 0 && (gauss->is_there == 0 || gauss->is_there == 1);
}

/* True if the state that NumPy reports has the same number. */
static bool
is_confirmed(PyObject *random_state, const CxLegacyGauss *gauss)
{
    PyObject *get = PyObject_GetAttrString(random_state, "get_state");
    PyObject *named = Py_BuildValue("{s:O}", "legacy", Py_False), *none = PyTuple_New(0);
    PyObject *state = get && named && none ? PyObject_Call(get, none, named) : NULL;
    PyObject *is_there = state ? PyMapping_GetItemString(state, "has_gauss") : NULL;
    PyObject *value = is_there ? PyMapping_GetItemString(state, "gauss") : NULL;
    bool is_same = value && PyLong_AsLong(is_there) == gauss->is_there &&
                   PyFloat_AsDouble(value) == gauss->value;

    Py_XDECREF(get);
    Py_XDECREF(named);
    Py_XDECREF(none);
    Py_XDECREF(state);
    Py_XDECREF(is_there);
    Py_XDECREF(value);
    return is_same && !PyErr_Occurred();
}

/* Finds the offset, once for all objects of the class: the first that fits, or -1. */
static Py_ssize_t
find_offset(PyObject *random_state, const bitgen_t *bits)
{
    char *object = (char *)random_state;
    Py_ssize_t size = Py_TYPE(random_state)->tp_basicsize;

    for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof(CxLegacyGauss) <= size;
         at += _Alignof(CxLegacyGauss))
        if (is_legacy_gauss(object, size, (CxLegacyGauss *)(object + at), bits))
            return is_confirmed(random_state, (CxLegacyGauss *)(object + at)) ? at : -1;
    return -1;
}

CxLegacyGauss *
cx_legacy_gauss_find(CxState *state, PyObject *random_state, struct bitgen *bits)
{
    char *object = (char *)random_state;

    if (state->legacy_offset == 0)
        state->legacy_offset = find_offset(random_state, bits);
    if (state->legacy_offset < 0)
        return NULL;
    CxLegacyGauss *gauss = (CxLegacyGauss *)(object + state->legacy_offset);
    return is_legacy_gauss(object, Py_TYPE(random_state)->tp_basicsize, gauss, bits) ? gauss : NULL;
}

double
cx_legacy_normal(CxLegacyGauss *gauss)
{
    bitgen_t *bits = gauss->bits;
    double x, y, square;

    if (gauss->is_there) {
        double value = gauss->value;
        gauss->is_there = 0;
        gauss->value = 0.0;
        return value;
    }
    do {
        x = 2.0 * bits->next_double(bits->state) - 1.0;
        y = 2.0 * bits->next_double(bits->state) - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square == 0.0);
    double factor = sqrt(-2.0 * log(square) / square);
    gauss->value = factor * x;
    gauss->is_there = 1;
    return factor * y;
}

double
cx_legacy_exponential(CxLegacyGauss *gauss)
{
    return -log(1.0 - gauss->bits->next_double(gauss->bits->state));
}
