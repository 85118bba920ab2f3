/* Library calls that need no Python: products (direct.c), reductions (direct_reduce.c) and random draws (direct_draw.c). */
#ifndef CX_DIRECT_H
#define CX_DIRECT_H

#define NO_IMPORT_UFUNC
#include "state/array.h"

#include <numpy/ufuncobject.h>

/* The class that draws: Generator, RandomState (that of np.random's functions, too), random.Random. */
typedef enum CxDrawFamily { CX_DRAW_new, CX_DRAW_legacy, CX_DRAW_python } CxDrawFamily;

typedef struct CxDirect {
    /* By dtype: the ufunc's loop whose operands and result have that dtype. */
    PyUFuncGenericFunction loops[CI_DTYPE_COUNT];
    void *loop_data[CI_DTYPE_COUNT];
    PyArray_DotFunc *dots[CI_DTYPE_COUNT]; /* a . b of two vectors */
    CxState *state;                        /* for draws */
    CxDrawFamily family;                   /* of a draw */
    void *routine;                         /* NumPy's or torch's function for it */
    /* For products by torch: the functions, its tensors, and the factors. */
    const struct CxTorch *torch;
    int ntensors;
    double factors[2];
    const struct CxAtenCall *aten; /* for a call by torch's dispatcher: the call, and the number of the result */
    int result;
    bool (*run)(const struct CxDirect *direct, const CiExternCall *call);
    /* May be called from any thread, whose float flags it sets. NULL: it may not. */
    bool (*run_anywhere)(const struct CxDirect *direct, const CiExternCall *call);
} CxDirect;

/* Finds a direct implementation of the function of that name; run is NULL if there is none. */
void cx_direct_init(CxState *state, CxDirect *direct, const char *name);

/* Sets the loops of a ufunc of two operands. */
void cx_direct_loops(CxState *state, CxDirect *direct, PyObject *ufunc);

/* direct_reduce.c: finds the implementation of a reduction of that name and key, if there is one. */
void cx_direct_reduce_init(CxState *state, CxDirect *direct, const char *name, const char *key);

/* direct_torch.c: finds it by (functions, name, number of tensors, beta, alpha); -1 with an
 * exception. */
int cx_direct_torch_init(CxDirect *direct, PyObject *torch_call);

/* direct_aten.c: like cx_direct_torch_init, from (aten_call, number of the result, whether it is the first result that the
 * program uses). */
typedef struct CxAtenCall CxAtenCall;
int cx_direct_aten_init(CxDirect *direct, PyObject *torch_call);
PyObject *cx_aten_call(PyObject *module, PyObject *args);

/* legacy_draw.c: the second of a pair of normal numbers, which is cached in the generator of
 * np.random's functions; NULL if it cannot be reached. Needs the lock of the bit generator. */
typedef struct CxLegacyGauss CxLegacyGauss;
struct bitgen;
CxLegacyGauss *cx_legacy_gauss_find(CxState *state, PyObject *random_state, struct bitgen *bits);
double cx_legacy_normal(CxLegacyGauss *gauss);
double cx_legacy_exponential(CxLegacyGauss *gauss);

/* python_draw.c: the state of a random.Random while a run draws from it. Opening needs the GIL and
 * returns NULL if Python must draw; so does closing, which stores the state. */
typedef struct CxTwister CxTwister;
CxTwister *cx_twister_open(CxState *state, PyObject *generator);
int cx_twister_close(CxState *state, CxTwister *twister); /* -1 with an exception */
double cx_twister_random(CxTwister *twister);
int64_t cx_twister_bits(CxTwister *twister, int64_t count); /* 1 to 62 */
int64_t cx_twister_below(CxTwister *twister, int64_t n);
bool cx_twister_gauss(CxTwister *twister, double mean, double deviation, double *result);

PyObject *cx_twister_memory(PyObject *module, PyObject *generator);

/* direct_draw.c: finds the implementation of a draw from a Generator. */
void cx_direct_draw_init(CxState *state, CxDirect *direct, const char *name);

#endif
