/* Library calls that need no Python: products, see direct.c, and draws, see direct_draw.c. */
#ifndef CX_DIRECT_H
#define CX_DIRECT_H

#define NO_IMPORT_UFUNC
#include "state/array.h"

#include <numpy/ufuncobject.h>

typedef struct CxDirect {
    PyUFuncGenericFunction loops[CI_DTYPE_COUNT]; /* of np.matmul, a, b and result of that dtype */
    void *loop_data[CI_DTYPE_COUNT];
    PyArray_DotFunc *dots[CI_DTYPE_COUNT]; /* a . b of two vectors */
    CxState *state;                        /* of a draw */
    void *routine;                         /* NumPy's own for it, or torch's */
    const struct CxTorch *torch;           /* of a product by torch: that, its tensors, and what it multiplies by */
    int ntensors;
    double factors[2];
    bool (*run)(const struct CxDirect *direct, const CiExternCall *call);
    /* From any thread, which is left with the float flags; NULL: it is not so. */
    bool (*run_anywhere)(const struct CxDirect *direct, const CiExternCall *call);
} CxDirect;

/* What can be called of the function of that name; run is NULL where it has no such part. */
void cx_direct_init(CxState *state, CxDirect *direct, const char *name);

/* direct_torch.c: the same by (functions, name, number of tensors, beta, alpha) of torch; -1 with an exception. */
int cx_direct_torch_init(CxDirect *direct, PyObject *torch_call);

/* legacy_draw.c: the second of two normal numbers, which waits in the generator behind np.random's
 * functions; NULL where it cannot be reached. Whoever draws holds the lock of the bits. */
typedef struct CxFreeBlock CxFreeBlock;
struct bitgen;
CxFreeBlock *cx_spare_find(CxState *state, PyObject *random_state, struct bitgen *bits);
double cx_legacy_normal(CxFreeBlock *spare);
double cx_legacy_exponential(CxFreeBlock *spare);

/* direct_draw.c: the same of a draw from a Generator. */
void cx_direct_draw_init(CxState *state, CxDirect *direct, const char *name);

#endif
