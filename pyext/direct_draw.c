/* Draws of one number without Python. A Generator's method for a number is its distribution's C
 * routine on the state of its bits, and a loop that draws in each trip spends ten times that on
 * arguments and on getting to the method. The routines are those that NumPy's own module of
 * Generators has and exports, so the bits are NumPy's, whatever its version.
 *
 * Whoever draws holds the lock of the bits. A run takes it at its first draw and keeps it until it
 * ends or calls Python, for that may wait for another thread that wants to draw. A lock that is not
 * free is not waited for, so no run waits for one while it holds another: that draw goes through
 * Python. The lock belongs to the thread, so a handler of signals may draw meanwhile.
 *
 * Draws go through Python too where the generator, its bits or its lock is of a class that is not
 * NumPy's own, and where NumPy would refuse the parameters. */
#include "direct.h"
#include "program.h"

#include <dlfcn.h>
#include <math.h>
#include <numpy/random/bitgen.h>

typedef double (*DrawPlain)(bitgen_t *bits);
typedef double (*DrawScaled)(bitgen_t *bits, double a, double b);
typedef void (*DrawBounded)(bitgen_t *bits, uint64_t low, uint64_t range, npy_intp count,
                            bool is_masked, uint64_t *out);

/* ---- the generators of a run ---- */

/* Is it an object of that class, which the module has under that name? */
static bool
is_exactly(PyObject *object, PyObject *module, const char *name)
{
    PyObject *type = PyObject_GetAttrString(module, name);
    bool is_it = type != NULL && (PyObject *)Py_TYPE(object) == type;
    Py_XDECREF(type);
    return is_it;
}

static bool
is_known(PyObject *bits, PyObject *lock, PyObject *module)
{
    static const char *const classes[] = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"};
    const char *lock_type = Py_TYPE(lock)->tp_name;

    if (strcmp(lock_type, "_thread.RLock") != 0)
        return false;
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
        if (is_exactly(bits, module, classes[k]))
            return true;
    return false;
}

static bool
acquire(PyObject *lock)
{
    PyObject *is_taken = PyObject_CallMethod(lock, "acquire", "i", 0);
    bool is_ours = is_taken == Py_True;
    Py_XDECREF(is_taken);
    return is_ours;
}

/* The state of the generator's bits, its lock taken; NULL when Python has to draw. */
static bitgen_t *
enter(PyObject *module, CxGenerators *g, PyObject *generator)
{
    PyObject *bits = NULL, *lock = NULL, *capsule = NULL;
    bitgen_t *state = NULL;

    if (!is_exactly(generator, module, "Generator"))
        return NULL;
    bits = PyObject_GetAttrString(generator, "bit_generator");
    lock = bits ? PyObject_GetAttrString(bits, "lock") : NULL;
    capsule = lock ? PyObject_GetAttrString(bits, "capsule") : NULL;
    if (capsule != NULL && is_known(bits, lock, module))
        state = PyCapsule_GetPointer(capsule, "BitGenerator");
    if (state != NULL && !acquire(lock))
        state = NULL;
    if (state != NULL) {
        g->addresses[g->count] = (int64_t)(intptr_t)generator;
        g->bits[g->count] = state;
        g->locks[g->count++] = Py_NewRef(lock);
    }
    Py_XDECREF(bits);
    Py_XDECREF(lock);
    Py_XDECREF(capsule);
    return state;
}

/* The caller of the program keeps the generator alive, and that its bits. */
static bitgen_t *
bits_of(const CxDirect *direct, const CiExternCall *call)
{
    CxRun *run = call->arg;
    CxGenerators *g = &run->generators;
    bitgen_t *bits = NULL;

    int64_t address = *(const int64_t *)call->operands[0];
    for (int k = 0; k < g->count; k++)
        if (g->addresses[k] == address)
            return g->bits[k];
    if (g->count == CX_FEW_GENERATORS)
        return NULL;
    CX_CALLBACK_BEGIN();
    bits = enter(direct->state->random_module, g, (PyObject *)(intptr_t)address);
    if (bits == NULL)
        PyErr_Clear(); /* what is the matter comes up when Python draws */
    CX_CALLBACK_END();
    return bits;
}

void
cx_generators_close(CxGenerators *g)
{
    if (g->count == 0)
        return;
    PyObject *exception = cx_take_exception();
    while (g->count > 0) {
        PyObject *lock = g->locks[--g->count];
        PyObject *done = PyObject_CallMethod(lock, "release", NULL);
        if (done == NULL)
            PyErr_WriteUnraisable(lock);
        Py_XDECREF(done);
        Py_DECREF(lock);
    }
    if (exception != NULL)
        cx_restore_exception(exception);
}

/* ---- the draws ---- */

/* One number of that dtype, from parameters that are one number each of it. */
static bool
is_number(const CiExternCall *call, int nparameters, CiDtype dtype)
{
    int n = call->noperands;

    if (n != nparameters + 1 || call->ranks[0] != 0 || call->dtypes[0] != CI_DTYPE_i64)
        return false;
    for (int k = 1; k <= n; k++)
        if (call->ranks[k] != 0 || call->dtypes[k] != dtype)
            return false;
    return true;
}

static bool
run_plain(const CxDirect *direct, const CiExternCall *call)
{
    bitgen_t *bits = is_number(call, 0, CI_DTYPE_f64) ? bits_of(direct, call) : NULL;

    if (bits == NULL)
        return false;
    *(double *)call->result = ((DrawPlain)direct->routine)(bits);
    return true;
}

static bool
run_scaled(const CxDirect *direct, const CiExternCall *call, double a, double b)
{
    bitgen_t *bits = signbit(b) ? NULL : bits_of(direct, call);

    if (bits == NULL)
        return false;
    *(double *)call->result = ((DrawScaled)direct->routine)(bits, a, b);
    return true;
}

static bool
run_normal(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_number(call, 2, CI_DTYPE_f64))
        return false;
    return run_scaled(direct, call, *(const double *)call->operands[1],
                      *(const double *)call->operands[2]);
}

/* NumPy's routine takes the lower end and how far the other one is. */
static bool
run_uniform(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_number(call, 2, CI_DTYPE_f64))
        return false;
    double low = *(const double *)call->operands[1];
    double range = *(const double *)call->operands[2] - low;
    return isfinite(range) && run_scaled(direct, call, low, range);
}

/* In [low, high), all of them signed numbers of 64 bits. */
static bool
run_integers(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_number(call, 2, CI_DTYPE_i64))
        return false;
    int64_t low = *(const int64_t *)call->operands[1], high = *(const int64_t *)call->operands[2];
    bitgen_t *bits = low < high ? bits_of(direct, call) : NULL;
    if (bits == NULL)
        return false;
    uint64_t range = (uint64_t)high - (uint64_t)low - 1;
    ((DrawBounded)direct->routine)(bits, (uint64_t)low, range, 1, false, call->result);
    return true;
}

/* ---- which there are ---- */

static const struct {
    const char *name, *routine;
    bool (*run)(const CxDirect *direct, const CiExternCall *call);
} draws[] = {
    {"draw_random", "random_standard_uniform", run_plain},
    {"draw_standard_normal", "random_standard_normal", run_plain},
    {"draw_normal", "random_normal", run_normal},
    {"draw_uniform", "random_uniform", run_uniform},
    {"draw_integers", "random_bounded_uint64_fill", run_integers},
};

/* The routine of that name in the library of NumPy's Generators, which stays loaded. */
static void *
find_routine(CxState *state, const char *name)
{
    PyObject *module = PyImport_ImportModule("numpy.random._generator");
    PyObject *file = module ? PyModule_GetFilenameObject(module) : NULL;
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    void *routine = library ? dlsym(library, name) : NULL;

    if (state->random_module == NULL)
        state->random_module = PyImport_ImportModule("numpy.random");
    if (library != NULL)
        dlclose(library); /* the module's own hold on it stays */
    Py_XDECREF(file);
    Py_XDECREF(module);
    return state->random_module != NULL ? routine : NULL;
}

void
cx_direct_draw_init(CxState *state, CxDirect *direct, const char *name)
{
    for (size_t k = 0; k < sizeof draws / sizeof *draws; k++) {
        if (strcmp(name, draws[k].name) != 0)
            continue;
        direct->state = state;
        direct->routine = find_routine(state, draws[k].routine);
        if (direct->routine != NULL)
            direct->run = draws[k].run;
        PyErr_Clear(); /* a NumPy that is built otherwise: Python draws */
    }
}
