/* The order in which NumPy adds up what a reduction folds. */
#ifndef CX_FOLD_ORDER_H
#define CX_FOLD_ORDER_H

#include "graph/size.h"

/* Elements of the iterator's buffers, where np.setbufsize has set nothing else. */
#define CX_FOLD_BUFFER 8192
/* The C API of NumPy 2.3, whose iterator is another one than those before. */
#define CX_FOLD_NUMPY 0x14

typedef struct CxFoldInput {
    int rank;
    const CiExpr *const *sizes, *const *strides; /* of the operand, before it is cast */
    int naxes;
    const int *axes; /* folded */
    bool is_cast;    /* the operand is of another dtype than the sum is computed in */
    bool is_old;     /* by the iterator of NumPy 2.0 to 2.2 */
    int64_t buffer;  /* CX_FOLD_BUFFER */
} CxFoldInput;

/* As CiPairwise has it. */
typedef struct CxFoldOrder {
    int axes[CI_MAX_RANK], naxes, ninner, nalone;
    const CiExpr *chunk, *alone;
} CxFoldOrder;

/* 1; 0 if sizes decide it that only the running program knows, or if cinductor does not know the
 * order; -1 with an exception. */
int cx_fold_order(CxTracer *tracer, const CxFoldInput *input, CxFoldOrder *order);

#endif
