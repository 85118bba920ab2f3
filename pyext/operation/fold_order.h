/* The order in which NumPy adds the elements of a reduction. */
#ifndef CX_FOLD_ORDER_H
#define CX_FOLD_ORDER_H

#include "graph/size.h"

/* Elements of the iterator's buffers, unless np.setbufsize has changed it. */
#define CX_FOLD_BUFFER 8192
/* The version of NumPy's C API (2.3) from which on the iterator differs. */
#define CX_FOLD_NUMPY 0x14

typedef struct CxFoldInput {
    int rank;
    const CiExpr *const *sizes, *const *strides; /* of the operand, before casting */
    int naxes;
    const int *axes; /* reduced */
    bool is_cast;    /* the operand's dtype differs from that of the sum */
    bool is_old;     /* use the iterator of NumPy 2.0 to 2.2 */
    int64_t buffer;  /* CX_FOLD_BUFFER */
} CxFoldInput;

/* The order, in the fields of CiPairwise. */
typedef struct CxFoldOrder {
    int axes[CI_MAX_RANK], naxes, ninner, nalone;
    const CiExpr *chunk, *alone;
} CxFoldOrder;

/* Returns 1; 0 if sizes known only at run time decide the order, or if cinductor does not
 * support it; -1 with an exception. */
int cx_fold_order(CxTracer *tracer, const CxFoldInput *input, CxFoldOrder *order);

#endif
