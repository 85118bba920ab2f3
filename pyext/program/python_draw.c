/* Draws from a random.Random of Python: the Mersenne Twister MT19937 (Matsumoto and Nishimura,
 * ACM TOMACS 8, 1998) with the functions that Python makes of it.
 *
 * The draws that loops are full of are part of the program, which has the state as arrays
 * (cx_twister_memory; python/cinductor/numpy/twister.py). For others a run copies the state, draws
 * from the copy, and stores it back when it ends or calls Python.
 * Python does not export the place of the state in the object. It is found by comparing the
 * object's memory with what its getstate() returns, once for the class. If it is not found, or if
 * other threads of Python exist, which could draw meanwhile, Python itself draws. */
#include "program/direct.h"

#include <math.h>

enum { WORDS = 624, SHIFTED = 397 };
#define UPPER 0x80000000u
#define LOWER 0x7fffffffu
#define MATRIX 0x9908b0dfu

typedef struct Place {
    int index;
    uint32_t words[WORDS];
} Place;

struct CxTwister {
    PyObject *owner; /* borrowed: the caller of the program keeps it alive */
    Place now;
    bool has_normal, is_normal_known, is_normal_changed;
    double normal; /* the second one of a pair, which the object keeps as gauss_next */
};

/* True if the memory holds the state that getstate() gave: the words, then the index. */
static bool
has_state(const Place *place, PyObject *numbers)
{
    for (int k = 0; k < WORDS; k++)
        if (PyLong_AsUnsignedLong(PyTuple_GET_ITEM(numbers, k)) != place->words[k])
            return false;
    return PyLong_AsLong(PyTuple_GET_ITEM(numbers, WORDS)) == place->index;
}

/* The offset of the state in the object; -1 if there is none. */
static Py_ssize_t
find_offset(PyObject *generator)
{
    PyObject *state = PyObject_CallMethod(generator, "getstate", NULL);
    PyObject *numbers = state != NULL && PyTuple_Check(state) && PyTuple_GET_SIZE(state) == 3
                            ? PyTuple_GET_ITEM(state, 1)
                            : NULL;
    Py_ssize_t size = Py_TYPE(generator)->tp_basicsize, found = -1;
    Py_ssize_t at = (Py_ssize_t)sizeof(PyObject);

    if (numbers != NULL && PyTuple_Check(numbers) && PyTuple_GET_SIZE(numbers) == WORDS + 1)
        for (; found < 0 && at + (Py_ssize_t)sizeof(Place) <= size; at += _Alignof(Place))
            if (has_state((const Place *)((const char *)generator + at), numbers))
                found = at;
    Py_XDECREF(state);
    PyErr_Clear();
    return found;
}

static Place *
place_in(CxState *state, PyObject *generator)
{
    if (state->twister_offset == 0)
        state->twister_offset = find_offset(generator);
    return state->twister_offset < 0 ? NULL
                                     : (Place *)((char *)generator + state->twister_offset);
}

static bool
has_other_threads(void)
{
    PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    return PyThreadState_Next(first) != NULL;
}

/* True if the object is exactly of Python's class random.Random. */
static bool
is_random(PyObject *generator)
{
    PyObject *module = PyImport_ImportModule("random");
    PyObject *type = module ? PyObject_GetAttrString(module, "Random") : NULL;
    bool is_it = type != NULL && (PyObject *)Py_TYPE(generator) == type;

    Py_XDECREF(module);
    Py_XDECREF(type);
    return is_it;
}

/* An array over memory of the generator, which it keeps alive. */
static PyObject *
array_over(PyObject *generator, int type, npy_intp count, void *memory)
{
    PyObject *array = PyArray_New(&PyArray_Type, 1, &count, type, NULL, memory, 0, NPY_ARRAY_CARRAY, NULL);

    if (array != NULL && PyArray_SetBaseObject((PyArrayObject *)array, Py_NewRef(generator)) < 0)
        Py_CLEAR(array);
    return array;
}

/* twister_memory(generator): the words of the state, and the index of the next one, as arrays over
 * the generator's memory. ValueError if Python must draw. */
PyObject *
cx_twister_memory(PyObject *module, PyObject *generator)
{
    Place *place = is_random(generator) && !has_other_threads()
                       ? place_in(PyModule_GetState(module), generator)
                       : NULL;

    if (place == NULL)
        return PyErr_Format(PyExc_ValueError, "only Python can draw from this generator now");
    PyObject *words = array_over(generator, NPY_UINT32, WORDS, place->words);
    PyObject *index = array_over(generator, NPY_INT32, 1, &place->index);
    PyObject *both = words != NULL && index != NULL ? PyTuple_Pack(2, words, index) : NULL;
    Py_XDECREF(words);
    Py_XDECREF(index);
    return both;
}

/* Reads the kept normal number: None or a float. */
static void
read_normal(CxTwister *t)
{
    PyObject *kept = PyObject_GetAttrString(t->owner, "gauss_next");
    bool is_one = kept != NULL && PyFloat_CheckExact(kept);

    t->is_normal_known = is_one || kept == Py_None;
    t->has_normal = is_one;
    t->normal = is_one ? PyFloat_AS_DOUBLE(kept) : 0.0;
    Py_XDECREF(kept);
    PyErr_Clear();
}

CxTwister *
cx_twister_open(CxState *state, PyObject *generator)
{
    bool may_open = is_random(generator) && !has_other_threads();
    Place *place = may_open ? place_in(state, generator) : NULL;
    CxTwister *t = place != NULL ? PyMem_Calloc(1, sizeof *t) : NULL;

    if (t != NULL) {
        t->owner = generator;
        t->now = *place;
        read_normal(t);
    }
    return t;
}

int
cx_twister_close(CxState *state, CxTwister *t)
{
    int result = 0;

    *place_in(state, t->owner) = t->now;
    if (t->is_normal_changed) {
        PyObject *kept = t->has_normal ? PyFloat_FromDouble(t->normal) : Py_NewRef(Py_None);
        result = kept == NULL ? -1 : PyObject_SetAttrString(t->owner, "gauss_next", kept);
        Py_XDECREF(kept);
    }
    PyMem_Free(t);
    return result;
}

/* ---- numbers ---- */

static void
refill(Place *p)
{
    uint32_t *w = p->words;

    for (int k = 0; k < WORDS; k++) {
        uint32_t y = (w[k] & UPPER) | (w[(k + 1) % WORDS] & LOWER);
        w[k] = w[(k + SHIFTED) % WORDS] ^ (y >> 1) ^ (y & 1 ? MATRIX : 0);
    }
    p->index = 0;
}

static uint32_t
next_word(CxTwister *t)
{
    if (t->now.index >= WORDS)
        refill(&t->now);
    uint32_t y = t->now.words[t->now.index++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double
cx_twister_random(CxTwister *t)
{
    uint32_t high = next_word(t) >> 5, low = next_word(t) >> 6;
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

int64_t
cx_twister_bits(CxTwister *t, int64_t count)
{
    uint64_t low = next_word(t);

    if (count <= 32)
        return (int64_t)(low >> (32 - count));
    return (int64_t)(low | (uint64_t)(next_word(t) >> (64 - count)) << 32);
}

/* random.Random._randbelow: numbers that are too large are drawn again. */
int64_t
cx_twister_below(CxTwister *t, int64_t n)
{
    int64_t count = 64 - __builtin_clzll((unsigned long long)n), number;

    do
        number = cx_twister_bits(t, count);
    while (number >= n);
    return number;
}

/* random.Random.gauss: pairs, by Box and Muller. */
bool
cx_twister_gauss(CxTwister *t, double mean, double deviation, double *result)
{
    if (!t->is_normal_known)
        return false;
    double number = t->normal;
    if (!t->has_normal) {
        double angle = cx_twister_random(t) * (2.0 * 3.14159265358979323846);
        double radius = sqrt(-2.0 * log(1.0 - cx_twister_random(t)));
        number = cos(angle) * radius;
        t->normal = sin(angle) * radius;
    }
    t->has_normal = !t->has_normal;
    t->is_normal_changed = true;
    *result = mean + number * deviation;
    return true;
}
