/* Builds the nodes for an operator of Python numbers. */
#ifndef CX_PYTHON_INT_H
#define CX_PYTHON_INT_H

#include "value/python_number.h"

typedef struct CxNumber {
    CxBuilding building; /* first, because body gets a pointer to it */
    int ufunc;
    CxTraced *traced[2]; /* NULL for a constant */
    CiConst values[2];
    CiDtype dtypes[2];
    int nargs;
    bool may_check, are_ints;
    bool has_products; /* a square is a product (cx_squares_are_products) */
    bool is_either;  /* the result may be a NumPy number: overflow is checked even if only low bits are used */
    CiDtype want;    /* dtype of an operation on an int and another number */
    CiDtype cast;    /* for a conversion: the dtype that one operand should get */
    bool is_refused; /* a check is needed but not possible */
} CxNumber;

/* Builds a Python number whose node `body` computes from the operands. value: Python's result in this call, or NULL.
 * NotImplemented if body has built no node. */
PyObject *cx_number_build(CxTracer *tracer, CxNumber *n, void (*body)(CiContext *ctx, void *arg),
                          PyObject *value);
CiNode *cx_number_constant(CxNumber *n, CiDtype dtype, double value);
CiNode *cx_number_operand(CxNumber *n, int k, CiDtype want);
CiNode *cx_number_apply(CxNumber *n, CiOp op, CiNode *a, CiNode *b); /* b NULL: unary */
void cx_number_check(CxNumber *n, CiNode *condition, const char *why);
void cx_number_check_divisor(CxNumber *n, CiNode *b);

static inline bool
cx_is_int_dtype(CiDtype dtype) /* dtypes of Python's ints, including bools */
{
    return dtype == CI_DTYPE_i64 || dtype == CI_DTYPE_u64 || dtype == CI_DTYPE_bool;
}

/* Operations on ints only; cx_int_has tells which exist. */
CiNode *cx_int_op(CxNumber *n);
bool cx_int_has(int ufunc);
CiNode *cx_int_cast(CxNumber *n); /* converts to the type wanted */

#endif
