/* Products that need no Python: see direct.c. */
#ifndef CX_DIRECT_H
#define CX_DIRECT_H

#define NO_IMPORT_UFUNC
#include "array.h"

#include <numpy/ufuncobject.h>

typedef struct CxDirect {
    PyUFuncGenericFunction loops[CI_DTYPE_COUNT]; /* of np.matmul, a, b and result of that dtype */
    void *loop_data[CI_DTYPE_COUNT];
    PyArray_DotFunc *dots[CI_DTYPE_COUNT]; /* a . b of two vectors */
    bool (*run)(const struct CxDirect *direct, const CiExternCall *call);
} CxDirect;

/* What can be called of the function of that name; run is NULL where it has no such part. */
void cx_direct_init(CxState *state, CxDirect *direct, const char *name);

#endif
