/* Random draws without Python, for parameters that are single numbers. A Generator's method calls
 * the C routine of its distribution on the bit generator's state, once per element for an array.
 *
 * In a loop with one draw per iteration, reaching the method and its arguments costs ten times as
 * much. The same holds for those functions of np.random that draw like Generators; legacy_draw.c
 * has some of the others. NumPy's own module exports the routines, so the bits are NumPy's in
 * every version.
 *
 * A draw needs the lock of the bit generator. A run takes it at its first draw and keeps it
 * until it ends or calls Python, which may wait for another thread that wants to draw. If a lock
 * is taken, the draw goes through Python, so a run never waits for a lock while it holds
 * another. The lock belongs to the thread, so a signal handler may draw meanwhile.
 *
 * A draw also goes through Python if the generator, its bit generator or its lock is not of
 * NumPy's own class, or if NumPy would refuse the parameters. */
#include "program/direct.h"
#include "program/program.h"

#include <dlfcn.h>
#include <math.h>
#include <numpy/random/bitgen.h>

typedef double (*DrawPlain)(bitgen_t *bits);
typedef double (*DrawScaled)(bitgen_t *bits, double a, double b);
typedef void (*DrawBounded)(bitgen_t *bits, uint64_t low, uint64_t range, npy_intp count,
                            bool is_masked, uint64_t *out);

/* ---- the generators of a run ---- */

/* True if the object is exactly of the class that the module has under that name. */
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
    bool is_internal = is_taken == Py_True;
    Py_XDECREF(is_taken);
    return is_internal;
}

/* Generators are identified by their address and their family, which is added to it: most draws
 * of a RandomState, such as that of np.random's functions, differ from a Generator's. */
enum { FAMILIES = 4 }; /* no object has an address that is not a multiple of it */

static bool
is_legacy(int64_t key)
{
    return key % FAMILIES == CX_DRAW_legacy;
}

/* A new reference to the RandomState; for np.random's functions that of the module. */
static PyObject *
random_state_of(CxState *state, PyObject *generator)
{
    if (is_exactly(generator, state->random_module, "RandomState"))
        return Py_NewRef(generator);
    return PyObject_GetAttrString(generator, "random_state");
}

/* The cached second number of a RandomState, or NULL. */
static CxLegacyGauss *
legacy_gauss_of(CxState *state, PyObject *generator, bitgen_t *bits)
{
    PyObject *own = random_state_of(state, generator);
    CxLegacyGauss *gauss = NULL;

    if (own != NULL && is_exactly(own, state->random_module, "RandomState"))
        gauss = cx_legacy_gauss_find(state, own, bits); /* the object stays alive */
    Py_XDECREF(own);
    return gauss;
}

static PyObject *
bit_generator_of(CxState *state, PyObject *generator, bool is_old)
{
    if (!is_old && !is_exactly(generator, state->random_module, "Generator"))
        return NULL;
    PyObject *own = is_old ? random_state_of(state, generator) : Py_NewRef(generator);
    PyObject *bits =
        own ? PyObject_GetAttrString(own, is_old ? "_bit_generator" : "bit_generator") : NULL;
    Py_XDECREF(own);
    return bits;
}

static void
enter_python(CxState *state, CxGenerators *g, PyObject *generator, int64_t key)
{
    g->addresses[g->count] = key;
    g->bits[g->count] = NULL;
    g->spares[g->count] = NULL;
    g->locks[g->count] = NULL;
    g->twisters[g->count++] = cx_twister_open(state, generator);
    PyErr_Clear();
}

/* Adds the generator to the run's table and takes its lock, or records that Python must draw. */
static void
enter(CxState *state, CxGenerators *g, PyObject *generator, int64_t key)
{
    PyObject *bits = NULL, *lock = NULL, *capsule = NULL, *module = state->random_module;
    bitgen_t *functions = NULL;

    bits = bit_generator_of(state, generator, is_legacy(key));
    lock = bits ? PyObject_GetAttrString(bits, "lock") : NULL;
    capsule = lock ? PyObject_GetAttrString(bits, "capsule") : NULL;
    if (capsule != NULL && is_known(bits, lock, module))
        functions = PyCapsule_GetPointer(capsule, "BitGenerator");
    if (functions != NULL && !acquire(lock))
        functions = NULL;
    g->addresses[g->count] = key;
    g->bits[g->count] = functions;
    g->locks[g->count] = functions ? Py_NewRef(lock) : NULL;
    g->spares[g->count] =
        functions && is_legacy(key) ? legacy_gauss_of(state, generator, functions) : NULL;
    g->twisters[g->count] = NULL;
    g->count++;
    Py_XDECREF(bits);
    Py_XDECREF(lock);
    Py_XDECREF(capsule);
    PyErr_Clear(); /* the error appears again when Python draws */
}

/* The index of the generator in the run's table, or -1. The caller of the program keeps the
 * generator alive, and the generator its bit generator. */
static int
place_of(const CxDirect *direct, const CiExternCall *call)
{
    CxRun *run = call->arg;
    CxGenerators *g = &run->generators;

    int64_t address = *(const int64_t *)call->operands[0], key = address + (int)direct->family;
    for (int k = 0; k < g->count; k++)
        if (g->addresses[k] == key)
            return k;
    if (g->count == CX_FEW_GENERATORS)
        return -1;
    CX_CALLBACK_BEGIN();
    g->state = direct->state;
    (direct->family == CX_DRAW_python ? enter_python : enter)(direct->state, g,
                                                     (PyObject *)(intptr_t)address, key);
    CX_CALLBACK_END();
    return g->count - 1;
}

static bitgen_t *
bits_of(const CxDirect *direct, const CiExternCall *call)
{
    int k = place_of(direct, call);
    return k < 0 ? NULL : ((CxRun *)call->arg)->generators.bits[k];
}

void
cx_generators_close(CxGenerators *g)
{
    if (g->count == 0)
        return;
    PyObject *exception = cx_take_exception();
    while (g->count > 0) {
        PyObject *lock = g->locks[--g->count];
        CxTwister *twister = g->twisters[g->count];
        if (twister != NULL && cx_twister_close(g->state, twister) < 0)
            PyErr_WriteUnraisable(NULL);
        PyObject *done = lock ? PyObject_CallMethod(lock, "release", NULL) : Py_NewRef(Py_None);
        if (done == NULL)
            PyErr_WriteUnraisable(lock);
        Py_XDECREF(done);
        Py_XDECREF(lock);
    }
    if (exception != NULL)
        cx_restore_exception(exception);
}

/* ---- the draws ---- */

/* True if the call has an address and single numbers of that dtype as parameters. */
static bool
is_of_numbers(const CiExternCall *call, int nparameters, CiDtype dtype)
{
    int n = call->noperands;

    if (n != nparameters + 1 || call->ranks[0] != 0 || call->dtypes[0] != CI_DTYPE_u64)
        return false;
    for (int k = 1; k <= n; k++)
        if ((k < n && call->ranks[k] != 0) || call->dtypes[k] != dtype)
            return false;
    return true;
}

static bool
run_standard(const CxDirect *direct, const CiExternCall *call)
{
    bitgen_t *bits = is_of_numbers(call, 0, CI_DTYPE_f64) ? bits_of(direct, call) : NULL;
    double *result = call->result;

    if (bits == NULL)
        return false;
    for (int64_t k = 0, count = ci_extern_count(call, call->noperands); k < count; k++)
        result[k] = ((DrawPlain)direct->routine)(bits);
    return true;
}

static bool
run_scaled(const CxDirect *direct, const CiExternCall *call, double a, double b)
{
    bitgen_t *bits = signbit(b) ? NULL : bits_of(direct, call);
    double *result = call->result;

    if (bits == NULL)
        return false;
    for (int64_t k = 0, count = ci_extern_count(call, call->noperands); k < count; k++)
        result[k] = ((DrawScaled)direct->routine)(bits, a, b);
    return true;
}

static bool
run_normal(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_of_numbers(call, 2, CI_DTYPE_f64))
        return false;
    return run_scaled(direct, call, *(const double *)call->operands[1],
                      *(const double *)call->operands[2]);
}

/* NumPy's routine takes the lower bound and the width. */
static bool
run_uniform(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_of_numbers(call, 2, CI_DTYPE_f64))
        return false;
    double low = *(const double *)call->operands[1];
    double range = *(const double *)call->operands[2] - low;
    return isfinite(range) && run_scaled(direct, call, low, range);
}

/* Integers in [low, high), as signed 64-bit numbers; np.random draws by masking, and Generators
 * do not. */
static bool
run_integers(const CxDirect *direct, const CiExternCall *call)
{
    if (!is_of_numbers(call, 2, CI_DTYPE_i64))
        return false;
    int64_t low = *(const int64_t *)call->operands[1], high = *(const int64_t *)call->operands[2];
    bitgen_t *bits = low < high ? bits_of(direct, call) : NULL;
    if (bits == NULL)
        return false;
    uint64_t range = (uint64_t)high - (uint64_t)low - 1;
    ((DrawBounded)direct->routine)(bits, (uint64_t)low, range, ci_extern_count(call, call->noperands),
                                   direct->family == CX_DRAW_legacy, call->result);
    return true;
}

/* ---- draws of np.random's functions ---- */

/* Computes shift + scale * number for each element. A shift of -0.0 changes nothing, not even
 * -0.0. */
static bool
run_legacy(const CxDirect *direct, const CiExternCall *call, double (*number)(CxLegacyGauss *),
           double shift, double scale)
{
    int place = signbit(scale) ? -1 : place_of(direct, call);
    CxLegacyGauss *gauss = place < 0 ? NULL : ((CxRun *)call->arg)->generators.spares[place];
    double *result = call->result;

    if (gauss == NULL)
        return false;
    for (int64_t k = 0, count = ci_extern_count(call, call->noperands); k < count; k++)
        result[k] = shift + scale * number(gauss);
    return true;
}

static bool
run_legacy_standard_normal(const CxDirect *direct, const CiExternCall *call)
{
    return is_of_numbers(call, 0, CI_DTYPE_f64) &&
           run_legacy(direct, call, cx_legacy_normal, -0.0, 1.0);
}

static bool
run_legacy_normal(const CxDirect *direct, const CiExternCall *call)
{
    return is_of_numbers(call, 2, CI_DTYPE_f64) &&
           run_legacy(direct, call, cx_legacy_normal, *(const double *)call->operands[1],
                      *(const double *)call->operands[2]);
}

static bool
run_legacy_exponential(const CxDirect *direct, const CiExternCall *call)
{
    return is_of_numbers(call, 1, CI_DTYPE_f64) &&
           run_legacy(direct, call, cx_legacy_exponential, -0.0,
                      *(const double *)call->operands[1]);
}

/* ---- draws of Python's random module ---- */

/* The state of the generator; NULL if Python must draw. */
static CxTwister *
twister_of(const CxDirect *direct, const CiExternCall *call)
{
    int k = place_of(direct, call);
    return k < 0 ? NULL : ((CxRun *)call->arg)->generators.twisters[k];
}

static bool
run_python_random(const CxDirect *direct, const CiExternCall *call)
{
    CxTwister *twister =
        is_of_numbers(call, 0, CI_DTYPE_f64) ? twister_of(direct, call) : NULL;

    if (twister != NULL)
        *(double *)call->result = cx_twister_random(twister);
    return twister != NULL;
}

/* A draw with one int, which is in [1, limit]. */
static bool
run_python_int(const CxDirect *direct, const CiExternCall *call, int64_t limit,
               int64_t (*number)(CxTwister *, int64_t))
{
    if (!is_of_numbers(call, 1, CI_DTYPE_i64))
        return false;
    int64_t n = *(const int64_t *)call->operands[1];
    CxTwister *twister = n < 1 || n > limit ? NULL : twister_of(direct, call);
    if (twister != NULL)
        *(int64_t *)call->result = number(twister, n);
    return twister != NULL;
}

static bool
run_python_bits(const CxDirect *direct, const CiExternCall *call)
{
    return run_python_int(direct, call, 62, cx_twister_bits);
}

static bool
run_python_below(const CxDirect *direct, const CiExternCall *call)
{
    return run_python_int(direct, call, (int64_t)1 << 61, cx_twister_below);
}

static bool
run_python_gauss(const CxDirect *direct, const CiExternCall *call)
{
    CxTwister *twister =
        is_of_numbers(call, 2, CI_DTYPE_f64) ? twister_of(direct, call) : NULL;

    return twister != NULL && cx_twister_gauss(twister, *(const double *)call->operands[1],
                                               *(const double *)call->operands[2], call->result);
}

/* ---- the table of draws ---- */

static const struct {
    CxDrawFamily family;
    const char *name, *routine; /* routine: NULL if none of NumPy's is needed */
    bool (*run)(const CxDirect *direct, const CiExternCall *call);
} draws[] = {
    {CX_DRAW_new, "draw_random", "random_standard_uniform", run_standard},
    {CX_DRAW_legacy, "draw_legacy_random_sample", "random_standard_uniform", run_standard},
    {CX_DRAW_new, "draw_standard_normal", "random_standard_normal", run_standard},
    {CX_DRAW_new, "draw_normal", "random_normal", run_normal},
    {CX_DRAW_new, "draw_uniform", "random_uniform", run_uniform},
    {CX_DRAW_new, "draw_integers", "random_bounded_uint64_fill", run_integers},
    {CX_DRAW_legacy, "draw_legacy_randint", "random_bounded_uint64_fill", run_integers},
    {CX_DRAW_legacy, "draw_legacy_uniform", "random_uniform", run_uniform},
    {CX_DRAW_legacy, "draw_legacy_standard_normal", "random_standard_normal", run_legacy_standard_normal},
    {CX_DRAW_legacy, "draw_legacy_normal", "random_normal", run_legacy_normal},
    {CX_DRAW_legacy, "draw_legacy_exponential", "random_exponential", run_legacy_exponential},
    {CX_DRAW_python, "draw_python_random", NULL, run_python_random},
    {CX_DRAW_python, "draw_python_getrandbits", NULL, run_python_bits},
    {CX_DRAW_python, "draw_python_randrange", NULL, run_python_below},
    {CX_DRAW_python, "draw_python_gauss", NULL, run_python_gauss},
};

/* The routine of that name in the library of NumPy's Generators, which stays loaded. */
static void *
find_routine(CxState *state, const char *name)
{
    PyObject *module = PyImport_ImportModule("numpy.random._generator");
    PyObject *file = module ? PyModule_GetFilenameObject(module) : NULL;
    PyObject *path = file ? PyUnicode_EncodeFSDefault(file) : NULL;
    void *library =
        path ? dlopen(PyBytes_AS_STRING(path), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    void *routine = library ? dlsym(library, name) : NULL;

    if (state->random_module == NULL)
        state->random_module = PyImport_ImportModule("numpy.random");
    if (library != NULL)
        dlclose(library); /* the module keeps it open */
    Py_XDECREF(path);
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
        direct->family = draws[k].family;
        direct->routine = draws[k].routine ? find_routine(state, draws[k].routine) : NULL;
        if (direct->routine != NULL || draws[k].routine == NULL)
            direct->run = draws[k].run;
        PyErr_Clear(); /* NumPy was built differently: Python draws */
    }
}
